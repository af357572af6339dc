// The program of a GPT under pipeline, tensor and data parallelism, as Megatron-LM trains it (Narayanan et
// al., "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM", SC'21: PTD-P).
//
// Rank order: tensor fastest, then data, then pipeline (Megatron's initialize_model_parallel).
// Per layer and microbatch: an all-reduce of b s h halves over the tensor group after the attention and after
// the MLP, forward; before each of them, backward; and the forward's again in the recomputation. They block
// the computation. The first stage all-reduces its vocabulary-parallel embedding, the last one three numbers
// per token for the loss and the input gradient of the logits. After the last backward: the gradients of the
// tied embedding between first and last stage (stream pp), then the gradients over the data-parallel group
// (stream dp), then Adam. With overlap, the layers' gradients of the last microbatch go out in buckets as its
// backward produces them; what remains follows after the backward. Not modelled: the all-reduces of a few
// bytes for the loss scale and the gradient norm.
#pragma once

#include <string>

#include "sim/core/units.h"
#include "sim/workload/model/transformer.h"
#include "sim/workload/program/program.h"
#include "sim/workload/strategy/pipeline_schedule.h"

namespace netsim {

struct PtdpPlan {
  std::string name;
  TransformerModel model;
  std::int64_t tensor = 1, data = 1;
  PipelineShape pipeline;
  std::int64_t microbatch = 1;
  bool recompute = true;
  bool scatter_gather = true;
  std::int64_t gradient_bytes = 2;  // per parameter
  Bytes gradient_bucket = 0;        // 0: all in one
  bool gradient_overlap = false;
  bool adam = true;
  std::uint32_t iterations = 1;
};

// The plan's degrees divide what they divide; the schedule does not refuse the pipeline.
Program make_ptdp_program(const PtdpPlan& plan, const PipelineSchedule& schedule);

}  // namespace netsim
