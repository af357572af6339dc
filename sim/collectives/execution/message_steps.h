// MessageStep: what one member of a communication sends and receives, as a list. Writers of other notations
// use it, in which messages stand for a collective.
//
// The messages are those of the executor: the rounds of each channel, and the slices of each step. Credits,
// latencies and rates of the library are not in the list.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/collectives/execution/communication.h"
#include "sim/collectives/plan.h"
#include "sim/core/index.h"
#include "sim/core/units.h"

namespace netsim {

struct CollectiveConfig;

// A step first receives and then sends. It may do one of both, or nothing.
struct MessageStep {
  struct End {
    std::uint32_t member = kNoIndex;  // index in the group of the member at the other end; kNoIndex: none
    Bytes bytes = 0;                  // on the wire
    // Number of the connection from the sender's to the receiver's thread block, the same at both ends. Its
    // messages are in order.
    std::uint64_t connection = 0;
  };
  End from, to;
  std::uint32_t block = 0;  // thread block; its steps follow each other in the list
  // Index in the list of an earlier step of another thread block that must have ended; kNoIndex: none.
  std::uint32_t after = kNoIndex;
};

// Returns the steps of member `request.index`. Throws InputError for a plan in which switches add up.
std::vector<MessageStep> message_steps(const CollectiveConfig& config, const CommunicationRequest& request);
// Returns those of a plan on one channel that sends each step as one message.
std::vector<MessageStep> message_steps(const Plan& plan, const CommunicationRequest& request);

}  // namespace netsim
