// StepListener: who wants to know in what order the proof executes a plan.
#pragma once

#include <cstdint>

#include "sim/collectives/plan.h"
#include "sim/collectives/proof/blocks.h"

namespace netsim::proof {

class StepListener {
 public:
  virtual ~StepListener() = default;
  // A step has been done: after the one before it in its thread block, the step that it waits for, the one
  // that sent what it receives, and the one that has freed the slot that it takes.
  virtual void step_done(BlockAt at, std::uint32_t index, const Step& step) = 0;
};

}  // namespace netsim::proof
