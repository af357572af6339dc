// StepListener: receives the steps of a plan in the order in which the proof executes them.
#pragma once

#include <cstdint>

#include "sim/collectives/plan.h"
#include "sim/collectives/proof/blocks.h"

namespace netsim::proof {

class StepListener {
 public:
  virtual ~StepListener() = default;
  // Reports that a step was executed. The steps that it depends on were reported before: the previous one of
  // its thread block and the one that it waits for. So were the step that sent its message and the one that
  // freed its slot.
  virtual void step_done(BlockAt at, std::uint32_t index, const Step& step) = 0;
};

}  // namespace netsim::proof
