// StepRunner: executes the steps of operations, as far as messages, free slots and other thread blocks let
// it. Knows nothing of events: it is called when something has changed.
#pragma once

#include <cstdint>

#include "sim/collectives/execution/operation.h"
#include "sim/collectives/execution/operation_trace.h"
#include "sim/collectives/execution/outgoing_messages.h"

namespace netsim {

class StepRunner {
 public:
  StepRunner(OutgoingMessages& outgoing, const OperationTrace& trace) : outgoing_(outgoing), trace_(trace) {}
  // Puts all thread blocks before their first step. The operation has its plan and chunking.
  static void reset(Operation& operation);
  // Whatever can be executed of the whole operation.
  void run(Operation& operation);
  // Whatever can be executed now that `message` for thread block `block` arrived or, a credit, says that one
  // of its slots is free.
  void run(Operation& operation, std::uint32_t block, const SendRequest& message);

 private:
  static void open(Operation& operation, std::uint32_t number);
  void run_channel(Operation& operation, std::uint32_t channel);
  bool advance(Operation& operation, std::uint32_t block, const SendRequest* message);
  void execute(Operation& operation, std::uint32_t block);
  void free_slot(Operation& operation, std::uint32_t block);

  OutgoingMessages& outgoing_;
  const OperationTrace& trace_;
};

}  // namespace netsim
