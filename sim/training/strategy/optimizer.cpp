// Runs Adam over the stage's parameters when their gradients are complete. With a distributed optimizer it
// runs over this rank's part of them. layer_optimizer takes its place where a job lists it.
#include "sim/training/strategy/optimizer_step.h"
#include "sim/training/strategy/strategy.h"

namespace netsim {
namespace {

struct OptimizerParameters {
  OptimizerKind kind = OptimizerKind::adam;
};

class Optimizer final : public Strategy {
 public:
  explicit Optimizer(const OptimizerParameters& p) : p_(p) {}

  StrategyOrder order() const override {
    return {.after = {"data_parallel", "local_steps", "parameter_servers", "sharded_replicas",
                      "sequence_gradients", "activation_offload"}};
  }
  void describe(JobShape& job) const override { job.optimizer = p_.kind; }
  bool takes_part(const JobShape& job) const override {
    return p_.kind != OptimizerKind::none && job.offloaded_optimizer == 0 && !job.servers_update &&
           !job.cuts_optimizer;
  }
  void apply(TrainingGraph& graph, const JobShape& job) const override {
    const bool divided = job.divides_states();
    for (StageGraph& stage : graph.stages) {
      std::int64_t parameters = 0, reduced = 0;
      for (const ParameterSet set : {ParameterSet::common, ParameterSet::experts}) {
        parameters += updated_parameters(graph, stage.parameters_of(set), set, divided);
        reduced += updated_parameters(graph, stage.reduced_of(set), set, divided);
      }
      stage.add_finish(optimizer_step(parameters, graph.model.gradient_bytes, reduced));
      stage.finished = {static_cast<std::uint32_t>(stage.finish.size())};
    }
  }

 private:
  OptimizerParameters p_;
};

const Registration<Strategy> kOptimizer{
    "optimizer", "Adam updates the parameters when their gradients are complete",
    ptdp_keys(Parameters<OptimizerParameters>().choice(
        "optimizer", &OptimizerParameters::kind,
        {{"adam", OptimizerKind::adam},
         {"distributed_adam", OptimizerKind::distributed_adam},
         {"none", OptimizerKind::none}},
        "optimizer that runs when the gradients are complete; distributed: each replica gets the gradients "
        "of its part of the parameters and updates them, and all parts are then gathered")),
    [](const OptimizerParameters& p, const ConfigNode&) { return std::make_unique<Optimizer>(p); }};

}  // namespace
}  // namespace netsim
