// The strategies of a training job, each of which rewrites a TrainingGraph; one .cpp each. A job applies them
// in this order, as many as it has: its product of strategies is their list.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "sim/core/units.h"
#include "sim/workload/strategy/training_graph.h"

namespace netsim {

// Megatron-LM's tensor parallelism over axis "tp" (Shoeybi et al., arXiv 1909.08053): heads, the inner
// dimension of the MLP and the vocabulary are divided, and each partial sum is all-reduced (stream tp) before
// anything else is computed.
std::unique_ptr<Strategy> tensor_parallel();

// Activations of the body's layers are not kept: each backward computes the layer's forward again (Chen et
// al., arXiv 1604.06174; Megatron-LM's --recompute-granularity full), communication and all.
std::unique_ptr<Strategy> full_recomputation();

// The layers of the body in equal parts over the stages of axis "pp", each first and last part with an end of
// the model; steps in the order of a plan. Gradients of parameters that both ends share are all-reduced
// between the stages that hold them (stream pp).
struct PipelineParallel {
  std::shared_ptr<const PipelinePlan> plan;
  // Between stages each rank of axis "tp" sends 1/t of the boundary tensor and the receivers gather it.
  bool scatter_gather = true;
  // Stages do not wait for what they send.
  bool overlap_transfers = true;
};
std::unique_ptr<Strategy> pipeline_parallel(PipelineParallel parameters);

// Data parallelism over axis "dp": all gradients of a stage are all-reduced (stream dp) after its last
// backward, in pieces of `bucket` bytes (0: in one). With `overlap`, the layers' gradients go out during the
// last microbatch's backward, whenever layers have filled a bucket; what remains follows after it. A
// bidirectional pipeline's copies of the model are summed in the same collective.
std::unique_ptr<Strategy> data_parallel(Bytes bucket, bool overlap);

// Adam over the stage's parameters when their gradients are there.
std::unique_ptr<Strategy> optimizer();

}  // namespace netsim
