// Parts of a microbatch in turns. A stage divides each microbatch into equal parts, which depend on each
// other only through the sums of gradients. While a collective of one part is in flight, it computes another
// part, across the boundaries of layers.
//
// One source is Oases: Li et al., "Automated Tensor Model Parallelism with Overlapped Communication for
// Efficient Foundation Model Training", arXiv 2305.16121. Domino divides the batch in the same way: Wang et
// al., "Domino: Eliminating Communication in LLM Training via Generic Tensor Slicing and Overlapping", arXiv
// 2409.15241. Domino also computes gradients of weights beside the communication of gradients of inputs
// (weight_gradients: behind_communication). Its second division, of weights by columns, is column_slices.
//
// A model of L parts of compute c and communication x each takes L (c + x). In two sub-batches it takes
// L max(c, x) + min(c, x) / 2.
#include <algorithm>
#include <utility>

#include "sim/training/strategy/strategy.h"
#include "sim/training/strategy/weight_gradients.h"

namespace netsim {
namespace {

struct SubBatchParameters {
  std::int64_t count = 2;
  bool puts_off_weights = false;
};

class SubBatches final : public Strategy {
 public:
  SubBatches(const SubBatchParameters& p, ConfigNode where) : p_(p), where_(std::move(where)) {}

  StrategyOrder order() const override {
    return {.after = {"module_recomputation", "fused_accumulation", "reduced_precision", "context_parallel",
                      "tensor_parallel", "expert_parallel", "embedding_parallel", "sequence_parallel",
                      "tensor_overlap", "full_recomputation", "selective_recomputation"},
            .before = {"pipeline_parallel"}};
  }
  void describe(JobShape& job) const override {
    if (job.sub_batches > 1) where_.fail("sub_batches is listed twice: a job divides its microbatches once");
    job.sub_batches = p_.count;
  }
  double operations_of_layer(const JobShape&) const override {
    return 20.0 * static_cast<double>(p_.count - 1);
  }
  void complete(JobShape& job) const override {
    if (job.microbatch % p_.count == 0) return;
    job.key("microbatch")
        .fail("the " + std::to_string(job.microbatch) + " sequences of a microbatch cannot be divided into " +
              std::to_string(p_.count) + " sub_batches (a sequence is not divided)");
  }
  void check(const JobShape& job) const override {
    if (job.gives("parallel", "stages"))
      job.key("parallel", "stages")
          .fail("stages with other degrees exchange whole microbatches: no sub_batches");
    if (job.plan->pairs()) {
      job.key("parallel", "schedule")
          .fail(
              "in the schedule a forward overlaps a backward, so that each hides the other's communication: "
              "no sub_batches");
    }
    if (job.has("activation_offload"))
      job.key("offload", "activations").fail("has to be 0 with sub_batches: whole microbatches are copied");
  }
  std::vector<std::string> notes(const JobShape& job) const override {
    const bool communicates =
        job.tensor > 1 || job.context > 1 || job.expert > 1 || job.has("embedding_parallel");
    if (communicates) return {};
    return {"sub_batches hides nothing: no rank communicates within a layer of '" + job.name +
            "' (parallel.tensor, context, expert), so smaller kernels are all that it changes"};
  }
  void apply(TrainingGraph& graph, const JobShape&) const override {
    graph.sub_batches = static_cast<std::uint32_t>(p_.count);
    for (LayerGraph& layer : graph.layers) {
      for (Chain* chain : {&layer.forward, &layer.recompute, &layer.backward}) {
        for (GraphNode& node : *chain) cut_into(node, p_.count, "strategies: sub_batches.count");
      }
    }
    if (!p_.puts_off_weights) return;
    for (LayerGraph& layer : graph.layers) {
      const auto talks = [](const GraphNode& node) { return communicates(node); };
      if (std::any_of(layer.backward.begin(), layer.backward.end(), talks))
        layer.backward = put_off_weights(layer.backward);
    }
  }

 private:
  SubBatchParameters p_;
  ConfigNode where_;
};

Parameters<SubBatchParameters> sub_batch_parameters() {
  using P = SubBatchParameters;
  return Parameters<P>()
      .integer("count", &P::count, {2, 64}, "parts of a microbatch, which are computed in turns")
      .choice("weight_gradients", &P::puts_off_weights, {{"in_order", false}, {"behind_communication", true}},
              "when gradients of weights are computed: with their layer's other gradients (Oases), or behind "
              "the next communication, which they help to hide (Domino)");
}

const Registration<Strategy> kSubBatches{
    "sub_batches",
    "parts of a microbatch are computed in turns, so that each hides the communication of another (Oases, "
    "Domino)",
    sub_batch_parameters(), [](const SubBatchParameters& p, const ConfigNode& where) {
      return std::make_unique<SubBatches>(p, where);
    }};

}  // namespace
}  // namespace netsim
