// Strategy: one way to divide or change the work of a training job, as tensor parallelism or recomputation
// does. Each strategy is a component with its own .cpp file. The file has its parameters, its checks, its
// place in the order and its work.
//
// There are two sorts. The parameters of the first are keys of the workload `ptdp` (ptdp_keys()). A job has
// all of these, and each says whether it takes part. The second sort is an entry {kind: NAME, ...} of that
// workload's list `strategies`.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/core/registry.h"
#include "sim/training/strategy/job_shape.h"
#include "sim/training/strategy/strategy_order.h"
#include "sim/training/strategy/training_graph.h"

namespace netsim {

class Strategy {
 public:
  static constexpr const char* kComponentKind = "strategy";
  virtual ~Strategy() = default;

  // The functions are called in the order of this list, each for all strategies of a job in the order of
  // their application. All but takes_part() and order() are called for a strategy whether it takes part or
  // not; divide() and apply() only if it does.

  // Returns the strategies between which this one is applied. Two strategies that change the same part of the
  // graph have to say which of them is first.
  virtual StrategyOrder order() const { return {}; }
  // Enters the values of the strategy's parameters in the shape of the job. The shape has the values of the
  // workload itself; those of other strategies may still be missing.
  virtual void describe(JobShape&) const {}
  // Returns an upper bound of the operations that the strategy adds to each layer of a rank and microbatch.
  // It limits the size of a job.
  virtual double operations_of_layer(const JobShape&) const { return 0; }
  // Enters values that follow from the parameters of several strategies, as the plan of the pipeline does.
  virtual void complete(JobShape&) const {}
  // Returns whether the job uses the strategy.
  virtual bool takes_part(const JobShape&) const { return true; }
  // Throws ConfigError for a job with which the parameters do not agree. Stages with different meshes are
  // checked one mesh after the other, each with a shape of its own (JobShape::on_mesh()).
  virtual void check(const JobShape&) const {}
  // Returns what a user should know about the job, for the log and the report.
  virtual std::vector<std::string> notes(const JobShape&) const { return {}; }

  // Says which dimensions are divided. All strategies do so before the first of them is applied.
  virtual void divide(const Mesh&, Sharding&) const {}
  // Rewrites the graph, as the strategies before this one have left it.
  virtual void apply(TrainingGraph& graph, const JobShape& job) const = 0;
};

// Returns parameters of a strategy that are keys of the workload `ptdp`.
template <class P>
KeysOf<P> ptdp_keys(Parameters<P> parameters) {
  return {"workload", "ptdp", std::move(parameters)};
}

// PtdpSection: name and documentation of a section of `ptdp` in which several strategies have keys.
struct PtdpSection {
  const char* name;
  const char* doc;
};
inline constexpr PtdpSection kParallelSection{"parallel",
                                              "how it is split: tensor x context x data x pipeline ranks"};
inline constexpr PtdpSection kDispatchSection{"dispatch", "what moves between tokens and routed experts"};
inline constexpr PtdpSection kGradientSection{"gradient", "the data-parallel all-reduce"};
inline constexpr PtdpSection kOffloadSection{"offload", "to the memory of the hosts, over PCIe"};
// Returns parameters that are keys of the section.
template <class P>
Parameters<P> in_section(const PtdpSection& section, const Parameters<P>& parameters) {
  return Parameters<P>().section(section.name, parameters, section.doc);
}

}  // namespace netsim
