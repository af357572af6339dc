// InstructionRunner: executes the instructions of operations, as far as messages, the send window and other
// thread blocks let it. Knows nothing of events: it is called when something has changed.
#pragma once

#include <cstdint>

#include "sim/collectives/execution/operation.h"
#include "sim/collectives/execution/operation_trace.h"
#include "sim/collectives/execution/outgoing_messages.h"

namespace netsim {

class InstructionRunner {
 public:
  InstructionRunner(OutgoingMessages& outgoing, const OperationTrace& trace)
      : outgoing_(outgoing), trace_(trace) {}
  // Puts all thread blocks before their first instruction. The operation has its schedule and chunking.
  static void reset(Operation& operation);
  // Whatever can be executed of the whole operation.
  void run(Operation& operation);
  // Whatever can be executed now that a message for thread block `block` arrived or one of its sends left.
  void run(Operation& operation, std::uint32_t block);

 private:
  void run_channel(Operation& operation, std::uint32_t channel);
  bool advance(Operation& operation, std::uint32_t block);
  bool execute(Operation& operation, std::uint32_t block, bool going);
  bool send(Operation& operation, std::uint32_t block, std::uint32_t peer, Bytes bytes);

  OutgoingMessages& outgoing_;
  const OperationTrace& trace_;
};

}  // namespace netsim
