// What an operation waits for, in words: for stall reports and for the message when members disagree.
#pragma once

#include <string>

#include "sim/collectives/execution/operation.h"

namespace netsim {

std::string describe(const Operation& operation);

}  // namespace netsim
