// StepRunner: executes the steps of operations, as far as messages, free slots and other thread blocks allow.
// It handles no events itself; it is called when something has changed.
#pragma once

#include <cstdint>

#include "sim/collectives/execution/operation.h"
#include "sim/collectives/execution/operation_trace.h"
#include "sim/collectives/execution/outgoing_messages.h"

namespace netsim {

class StepRunner {
 public:
  StepRunner(OutgoingMessages& outgoing, const OperationTrace& trace) : outgoing_(outgoing), trace_(trace) {}
  // Sets all thread blocks to their first step. The operation must have its plan and chunking.
  void reset(Operation& operation) const;
  // Executes all steps of the operation that can be executed now.
  void run(Operation& operation);
  // Executes all steps that can be executed after a message for thread block `block` arrived. It may be a
  // credit, which frees a slot of the thread block.
  void run(Operation& operation, std::uint32_t block, const Delivery& delivery);

 private:
  void open(Operation& operation, std::uint32_t number) const;
  bool load_step(Operation& operation, std::uint32_t number) const;
  void open_next_step(Operation& operation, std::uint32_t number) const;
  void run_channel(Operation& operation, std::uint32_t channel);
  bool advance(Operation& operation, std::uint32_t block, const Delivery* delivery);
  void execute(Operation& operation, std::uint32_t block);
  void free_slot(Operation& operation, std::uint32_t block);

  OutgoingMessages& outgoing_;
  const OperationTrace& trace_;
};

}  // namespace netsim
