// Updates of weights during the steps of a pipeline. The schedule may have steps for them (pipedream_2bw). At
// each of these a stage sums its gradients and runs its optimizer, instead of at the end of an iteration. The
// optimizer runs beside the computations of the next batch.
#include <utility>

#include "sim/training/strategy/strategy.h"

namespace netsim {
namespace {

class DelayedUpdates final : public Strategy {
 public:
  StrategyOrder order() const override {
    return {.after = {"data_parallel", "sequence_gradients", "optimizer", "parameter_gather"}};
  }
  bool takes_part(const JobShape& job) const override { return job.plan->updates(); }
  void check(const JobShape& job) const override {
    if (!job.plan->updates()) return;
    if (job.offloaded_optimizer > 0)
      job.key("offload", "optimizer").fail(kUpdates + "no optimizer of the hosts runs beside them");
    if (job.overlap_parameter_gather)
      job.key("overlap_parameter_gather").fail(kUpdates + "parameters are gathered there: has to be false");
    if (job.gives("parallel", "stages"))
      job.key("parallel", "stages").fail(kUpdates + "stages with other degrees share no such steps");
  }
  void apply(TrainingGraph& graph, const JobShape&) const override {
    for (StageGraph& stage : graph.stages) {
      for (FinishNode& finish : stage.finish) {
        GraphNode& node = stage.update.emplace_back(std::move(finish.node));
        // A computation with a number waits for no other computation of the stage.
        if (node.kind == GraphNode::Kind::compute) node.update_plus_one = 1;
      }
      stage.finish.clear();
      stage.finished = {0};
    }
  }

 private:
  static inline const std::string kUpdates = "the schedule has steps that update the weights: ";
};

const Registration<Strategy> kDelayedUpdates{
    "delayed_updates", "with schedule: pipedream_2bw, gradients are summed and applied after each batch",
    ptdp_keys(Parameters<NoParameters>()),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<DelayedUpdates>(); }};

}  // namespace
}  // namespace netsim
