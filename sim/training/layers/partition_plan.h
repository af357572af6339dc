// PartitionPlan: how the gradients of each layer are exchanged. Each collective may be cut along three
// dimensions (collective_partition.h). A search finds the partition with the shortest iteration.
//
// The three tiers of the schedule are those of Centauri. The operation tier has one partition for all layers.
// The layer tier has one for each layer. The model tier moves all-gathers into the next iteration's forward.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/collectives/collective_kind.h"
#include "sim/training/layers/timed_layer.h"
#include "sim/training/strategy/collective_partition.h"

namespace netsim {

struct GradientPartition : CollectivePartition {
  bool late = false;  // the all-gather is in the next forward; only where it is split
  bool operator==(const GradientPartition&) const = default;
};

// PartitionParts: the parts of the search that may be used.
struct PartitionParts {
  bool primitive = true, group = true, workload = true, layer_tier = true, model_tier = true;
};

// PartitionPlanner: predicts iterations and searches plans. The layers are a chain.
class PartitionPlanner {
 public:
  using Plan = std::vector<GradientPartition>;  // by layer

  // `layers` must outlive this.
  PartitionPlanner(const std::vector<TimedLayer>& layers, const PartitionCosts& costs)
      : layers_(layers), costs_(costs) {}

  // Returns the time of an iteration in steady state.
  Time iteration(const Plan& plan) const;
  // Returns the plan with the shortest iteration that the search finds. It is never longer than that of the
  // same search with fewer parts.
  Plan search(const PartitionParts& parts) const;
  // Returns the plan without the parts that are off.
  static Plan without(Plan plan, const PartitionParts& parts);

 private:
  std::vector<GradientPartition> options(const PartitionParts& parts) const;
  Plan improve(Plan plan, const std::vector<GradientPartition>& options, bool by_layer) const;
  Plan stripped(Plan plan) const;

  const std::vector<TimedLayer>& layers_;
  PartitionCosts costs_;
};

// Writes an iteration with a plan to a sink: the cost model's, or the program's. The sink has Node,
// forward(), backward(), ready(), gradient() and collective(), which puts a collective into the queue of its
// transport.
template <class Sink>
class PartitionedIteration {
 public:
  using Node = typename Sink::Node;
  using Nodes = std::vector<Node>;

  PartitionedIteration(const std::vector<TimedLayer>& layers, const PartitionPlanner::Plan& plan, Sink& sink)
      : layers_(layers), plan_(plan), sink_(sink) {}

  void write() {
    std::vector<Nodes> first(layers_.size());  // by layer: the first operation of each late gather
    for (std::uint32_t layer = 0; layer < layers_.size(); ++layer) {
      Nodes gathered;
      if (plan_[layer].late && layers_[layer].bytes > 0) gathered = gather_late(layer, first[layer]);
      sink_.forward(layer, gathered);
    }
    sink_.backward();
    for (const std::uint32_t layer : sink_.ready()) {
      const Nodes done = reduce(layer);
      for (std::size_t i = 0; i < done.size(); ++i) {
        if (plan_[layer].late) sink_.wait_for_previous(first[layer][i], done[i]);
        if (!plan_[layer].late) sink_.exchanged(layer, done[i]);
      }
    }
  }

 private:
  Bytes chunk(std::uint32_t layer, std::uint32_t i) const {
    return chunk_bytes(layers_[layer].bytes, plan_[layer].chunks, i);
  }
  Node add(CollectiveKind kind, CollectiveSpan span, std::uint32_t layer, std::uint32_t i,
           const Nodes& after) {
    return sink_.collective(kind, span, layer, chunk(layer, i), after);
  }
  Nodes gather_late(std::uint32_t layer, Nodes& first) {
    Nodes gathered;
    for (std::uint32_t i = 0; i < plan_[layer].chunks; ++i) {
      first.push_back(add(CollectiveKind::all_gather,
                          plan_[layer].grouped ? CollectiveSpan::between_hosts : CollectiveSpan::all, layer,
                          i, {}));
      gathered.push_back(first.back());
      if (plan_[layer].grouped)
        gathered.back() =
            add(CollectiveKind::all_gather, CollectiveSpan::within_host, layer, i, {first.back()});
    }
    return gathered;
  }
  Nodes reduce(std::uint32_t layer) {
    const GradientPartition& partition = plan_[layer];
    const CollectiveKind kind = partition.late ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce;
    return append_partition<Node>(kind, partition, {sink_.gradient(layer)},
                                  [&](const PartitionStep& step, std::uint32_t i, const Nodes& after) {
                                    return add(step.kind, step.span, layer, i, after);
                                  });
  }

  const std::vector<TimedLayer>& layers_;
  const PartitionPlanner::Plan& plan_;
  Sink& sink_;
};

}  // namespace netsim
