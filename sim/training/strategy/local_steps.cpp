// Local SGD (Stich, arXiv 1805.09767; federated averaging: McMahan et al., AISTATS 2017). Replicas take
// `local_steps` steps alone, each with an optimizer. Then they all-reduce their parameters to the mean, in
// the type of gradients (stream dp). An iteration is a round of so many steps. Takes the place of
// data_parallel; optimizers are not divided.
#include <algorithm>

#include "sim/training/strategy/replicas.h"
#include "sim/training/strategy/strategy.h"

namespace netsim {
namespace {

struct LocalStepParameters {
  std::int64_t steps = 1;
};

class LocalSteps final : public Strategy {
 public:
  explicit LocalSteps(const LocalStepParameters& p) : p_(p) {}

  StrategyOrder order() const override {
    return {.after = {"pipeline_parallel", "expert_fetch", "reduced_parameters"}};
  }
  void describe(JobShape& job) const override { job.local_steps = p_.steps; }
  bool takes_part(const JobShape& job) const override { return p_.steps > 1 && !job.divides_gradients(); }
  void check(const JobShape& job) const override {
    if (p_.steps == 1) return;
    const ConfigNode& key = job.key("gradient", "local_steps");
    if (job.servers > 0)
      key.fail("replicas that step alone average among themselves; leave parallel.servers out");
    if (job.divides_states())
      key.fail(
          "replicas that step alone need an optimizer of their own; set optimizer: adam instead of "
          "distributed_adam");
    if (job.overlap_gradients)
      key.fail("parameters are averaged after the last step: gradient.overlap has nothing to overlap");
    if (job.plan->placement.routes() > 1)
      key.fail(
          "a bidirectional pipeline has two copies of the model, whose gradients are summed in each step");
    if (job.plan->reduces()) key.fail(std::string(kScheduleReduces) + "replicas cannot step alone");
  }
  void apply(TrainingGraph& graph, const JobShape& job) const override {
    graph.local_steps = static_cast<std::uint32_t>(p_.steps);
    for (const ParameterSet set : parameter_sets(job)) average(graph, set, job.bucket);
  }

 private:
  static void average(TrainingGraph& graph, ParameterSet set, Bytes bucket) {
    if (replica_count(graph, set) == 1) return;
    for (std::uint32_t s = 0; s < graph.stages.size(); ++s) {
      StageGraph& stage = graph.stages[s];
      GraphNode node = among_replicas(graph, s, "average", CollectiveKind::all_reduce, set);
      Bytes left = stage.parameters_of(set) * graph.model.gradient_bytes;
      for (; left > 0; left -= node.bytes) {
        node.bytes = bucket == 0 ? left : std::min(left, bucket);
        stage.average.push_back(node);
      }
    }
  }

  LocalStepParameters p_;
};

const Registration<Strategy> kLocalSteps{
    "local_steps", "replicas step alone and then average their parameters (local SGD)",
    ptdp_keys(in_section(kGradientSection, Parameters<LocalStepParameters>().integer(
                                               "local_steps", &LocalStepParameters::steps, {1, 100'000},
                                               "steps that each replica takes alone, in an iteration, before "
                                               "all average their parameters (local "
                                               "SGD); 1: gradients are summed in each step"))),
    [](const LocalStepParameters& p, const ConfigNode&) { return std::make_unique<LocalSteps>(p); }};

}  // namespace
}  // namespace netsim
