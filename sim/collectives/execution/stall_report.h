// Returns what an operation waits for, in words. Stall reports use it, and the message when members disagree.
#pragma once

#include <string>

#include "sim/collectives/execution/operation.h"

namespace netsim {

std::string describe(const Operation& operation);

}  // namespace netsim
