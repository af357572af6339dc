// Stall reports: what the operations of the run wait for, in words.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/collectives/execution/operation.h"

namespace netsim {

// Returns what an operation waits for. `started` is the request of a member that has started it, which names
// an operation that this GPU has not started. It is null where no such member is known.
std::string describe(const Operation& operation, const CommunicationRequest* started = nullptr);

// Returns a line for each operation, at most `limit` of them.
std::vector<std::string> describe_all(std::span<const Operation* const> operations, std::size_t limit);

}  // namespace netsim
