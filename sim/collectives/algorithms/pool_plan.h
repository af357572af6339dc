// PoolPlan: the plan of an all-reduce over a pool of slots in programmable switches (AggregationPool).
// PoolParameters: the parameters of such algorithms that concern the hosts, and their kernel model.
//
// A worker is a host: its ranks add up their data first. Each rank is the worker for its part of the buffer.
// Hosts with one rank each use only the switches.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "sim/collectives/algorithms/direct_aggregation_plan.h"
#include "sim/collectives/algorithms/grouping.h"
#include "sim/collectives/library/kernel_model.h"
#include "sim/core/config.h"
#include "sim/core/parameters.h"

namespace netsim {

class PoolPlan final : public DirectAggregationPlan {
 public:
  PoolPlan(const char* algorithm, std::uint32_t ranks, std::uint32_t group, const AggregationPool& pool)
      : DirectAggregationPlan(algorithm, CollectiveKind::all_reduce, ranks, 0, group, 1), pool_(pool) {}
  AggregationPool pool() const override { return pool_; }

 private:
  AggregationPool pool_;
};

struct PoolParameters : HostGroupParameters {
  Time base_latency = 0;
  Time hop_latency = 0;
  Bytes chunk = 0;

  // Returns the plan of an all-reduce over the shape's hosts.
  std::unique_ptr<Plan> plan(const GroupShape& shape, const char* algorithm,
                             const AggregationPool& pool) const {
    const auto kind = CollectiveKind::all_reduce;
    const std::uint32_t each = group_of(group_size(shape, algorithm, kind), algorithm, kind, shape.ranks);
    return std::make_unique<PoolPlan>(algorithm, shape.ranks, each, pool);
  }
  // Returns the kernel model for chunks of whole packets of `payload` bytes. `usual_chunk` is the chunk of
  // hosts with several ranks where none is given; 0 means a rank's whole part.
  KernelModel kernel_model(const KernelLoad& load, Bytes payload, Bytes usual_chunk) const {
    constexpr std::uint32_t kNcclSteps = 8;  // NCCL_STEPS
    Bytes bytes = chunk;
    if (bytes == 0 && group_size(load) > 1) bytes = usual_chunk;
    if (bytes == 0) bytes = load.bytes;
    bytes = std::max<Bytes>((bytes + payload - 1) / payload, 1) * payload;
    return KernelModel{.base_latency = base_latency,
                       .hop_latency = hop_latency,
                       .hop_latency_net = hop_latency,
                       .channels = 1,
                       .chunk = bytes,
                       .slots = kNcclSteps};
  }
};

// Adds `group`, which all algorithms over pools of slots have.
template <typename P>
Parameters<P> pool_parameters() {
  return Parameters<P>().integer("group", &P::group, {0, 1 << 20},
                                 std::string("ranks of a host, with consecutive numbers") + P::kZeroMeans);
}
// Adds `base_latency` and `hop_latency`.
template <typename P>
Parameters<P> with_pool_latencies(Parameters<P>&& parameters) {
  return std::move(parameters)
      .time("base_latency", &P::base_latency, {0, kSecond}, "latency before the first step")
      .time("hop_latency", &P::hop_latency, {0, kSecond}, "latency of each message");
}

// Throws ConfigError at a key whose value is no power of two.
inline void check_power_of_two(const ConfigNode& node, const char* key, std::int64_t value,
                               std::int64_t largest, const char* reason) {
  if ((value & (value - 1)) == 0) return;
  (node.find(key) != nullptr ? *node.find(key) : node)
      .fail(std::string(key) + ": " + std::to_string(value) + " is no power of two (allowed: 1, 2, 4, ... " +
            std::to_string(largest) + "), as " + reason);
}

}  // namespace netsim
