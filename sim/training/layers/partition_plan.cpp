#include "sim/training/layers/partition_plan.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace netsim {
namespace {

// PartitionClock: the sink that computes when operations end. The computations of a worker follow each other,
// and so do the collectives of each transport.
class PartitionClock {
 public:
  using Node = std::size_t;

  PartitionClock(const std::vector<TimedLayer>& layers, const PartitionCosts& costs)
      : layers_(layers), costs_(costs), gradient_(layers.size()), exchanged_(layers.size()) {
    for (std::uint32_t layer = static_cast<std::uint32_t>(layers.size()); layer-- > 0;) {
      if (layers[layer].bytes > 0) ready_.push_back(layer);
    }
  }

  // Begins the next iteration. Its operations have the same numbers as those of the one before.
  void next() {
    before_ = std::exchange(ends_, {});
    waits_ = std::exchange(next_waits_, {});
    exchanged_before_ = std::exchange(exchanged_, std::vector<std::vector<Node>>(layers_.size()));
  }
  Time end() const { return *std::max_element(ends_.begin(), ends_.end()); }

  void forward(std::uint32_t layer, const std::vector<Node>& after) {
    Time begin = compute_;
    for (const Node node : after) begin = std::max(begin, ends_[node]);
    if (!before_.empty()) {
      for (const Node node : exchanged_before_[layer]) begin = std::max(begin, before_[node]);
    }
    compute_ = begin + layers_[layer].forward;
    ends_.push_back(compute_);
  }
  void backward() {
    for (std::size_t layer = layers_.size(); layer-- > 0;) {
      compute_ += layers_[layer].backward + layers_[layer].weight_gradient;
      gradient_[layer] = ends_.size();
      ends_.push_back(compute_);
    }
  }
  const std::vector<std::uint32_t>& ready() const { return ready_; }
  Node gradient(std::uint32_t layer) const { return gradient_[layer]; }
  Node collective(CollectiveKind kind, CollectiveSpan span, std::uint32_t, Bytes bytes,
                  const std::vector<Node>& after) {
    Time& queue = queues_[span == CollectiveSpan::within_host ? 1 : 0];
    Time begin = queue;
    for (const Node node : after) begin = std::max(begin, ends_[node]);
    if (!before_.empty()) {
      const auto [first, last] = waits_.equal_range(ends_.size());
      for (auto wait = first; wait != last; ++wait) begin = std::max(begin, before_[wait->second]);
    }
    queue = begin + costs_.time(kind, span, bytes);
    ends_.push_back(queue);
    return ends_.size() - 1;
  }
  void wait_for_previous(Node node, Node earlier) { next_waits_.emplace(node, earlier); }
  void exchanged(std::uint32_t layer, Node node) { exchanged_[layer].push_back(node); }

 private:
  const std::vector<TimedLayer>& layers_;
  const PartitionCosts& costs_;
  std::vector<std::uint32_t> ready_;
  Time compute_ = 0;
  std::array<Time, 2> queues_{};     // end of the queue between hosts, and of that within hosts
  std::vector<Time> ends_, before_;  // by node, of this iteration and of the one before
  std::vector<Node> gradient_;
  std::multimap<Node, Node> waits_, next_waits_;
  std::vector<std::vector<Node>> exchanged_, exchanged_before_;
};

constexpr std::array<std::uint32_t, 4> kChunks{1, 2, 4, 8};

}  // namespace

Time PartitionPlanner::iteration(const Plan& plan) const {
  PartitionClock clock(layers_, costs_);
  Time before = 0, end = 0;
  for (int i = 0; i < 4; ++i) {
    clock.next();
    PartitionedIteration<PartitionClock>(layers_, plan, clock).write();
    before = std::exchange(end, clock.end());
  }
  return end - before;
}

std::vector<GradientPartition> PartitionPlanner::options(const PartitionParts& parts) const {
  std::vector<GradientPartition> options;
  const bool groups = parts.group && costs_.per_host > 1 && costs_.per_host < costs_.workers;
  for (const bool split : {false, true}) {
    for (const bool grouped : {false, true}) {
      if ((split && !parts.primitive) || (grouped && !groups)) continue;
      for (const std::uint32_t chunks : kChunks) {
        if (chunks == 1 || parts.workload)
          options.push_back({{split, grouped, chunks}, split && parts.model_tier});
      }
    }
  }
  return options;
}

PartitionPlanner::Plan PartitionPlanner::improve(Plan plan, const std::vector<GradientPartition>& options,
                                                 bool by_layer) const {
  Time best = iteration(plan);
  const auto try_plan = [&](const Plan& other) {
    const Time time = iteration(other);
    if (time >= best) return;
    best = time;
    plan = other;
  };
  for (const GradientPartition& option : options) try_plan(Plan(layers_.size(), option));
  for (bool improved = by_layer; improved;) {
    const Time before = best;
    for (std::size_t layer = layers_.size(); layer-- > 0;) {
      for (const GradientPartition& option : options) {
        Plan other = plan;
        other[layer] = option;
        if (other != plan) try_plan(other);
      }
    }
    improved = best < before;
  }
  return plan;
}

PartitionPlanner::Plan PartitionPlanner::search(const PartitionParts& parts) const {
  // The plans of all subsets of the parts, smaller ones first. Each search begins with the best of those with
  // one part less.
  constexpr std::array<bool PartitionParts::*, 5> kParts{
      &PartitionParts::primitive, &PartitionParts::group, &PartitionParts::workload,
      &PartitionParts::layer_tier, &PartitionParts::model_tier};
  std::map<std::uint32_t, Plan> found;
  for (std::uint32_t subset = 0; subset < 32; ++subset) {
    PartitionParts some{false, false, false, false, false};
    bool allowed = true;
    Plan begin(layers_.size());
    for (std::uint32_t i = 0; i < kParts.size(); ++i) {
      if ((subset >> i & 1U) == 0) continue;
      some.*kParts[i] = true;
      allowed = allowed && parts.*kParts[i];
      const auto less = found.find(subset & ~(1U << i));
      if (less != found.end() && iteration(less->second) < iteration(begin)) begin = less->second;
    }
    if (allowed) found[subset] = improve(std::move(begin), options(some), some.layer_tier);
  }
  return stripped(found.rbegin()->second);
}

// Returns the plan, or one without some of its parts where that is faster.
PartitionPlanner::Plan PartitionPlanner::stripped(Plan plan) const {
  constexpr std::array<PartitionParts, 4> kOff{{{false, true, true, true, true},
                                                {true, false, true, true, true},
                                                {true, true, false, true, true},
                                                {true, true, true, true, false}}};
  for (bool improved = true; improved;) {
    improved = false;
    for (const PartitionParts& off : kOff) {
      Plan other = without(plan, off);
      if (iteration(other) >= iteration(plan)) continue;
      plan = std::move(other);
      improved = true;
    }
  }
  return plan;
}

PartitionPlanner::Plan PartitionPlanner::without(Plan plan, const PartitionParts& parts) {
  for (GradientPartition& partition : plan) {
    partition.split = partition.split && parts.primitive;
    partition.grouped = partition.grouped && parts.group;
    partition.late = partition.late && partition.split && parts.model_tier;
    if (!parts.workload) partition.chunks = 1;
  }
  return plan;
}

}  // namespace netsim
