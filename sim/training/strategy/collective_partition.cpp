#include "sim/training/strategy/collective_partition.h"

#include <algorithm>
#include <array>

namespace netsim {

Time PartitionCosts::time(CollectiveKind kind, CollectiveSpan span, Bytes bytes) const {
  const auto p = static_cast<Bytes>(ranks(span));
  if (p < 2) return 0;
  const Transport& transport = span == CollectiveSpan::within_host ? within : between;
  const Bytes moved = (kind == CollectiveKind::all_reduce ? 2 : 1) * (part_bytes(span, bytes) * (p - 1) / p);
  const bool ring = span == CollectiveSpan::all && ring_rate > 0;
  return transport.startup + transmission_time(moved, ring ? ring_rate : transport.rate);
}

Bytes PartitionCosts::part_bytes(CollectiveSpan span, Bytes bytes) const {
  return span == CollectiveSpan::between_hosts ? (bytes + per_host - 1) / per_host : bytes;
}

Parameters<PartitionCosts::Transport> transport_parameters() {
  using P = PartitionCosts::Transport;
  return Parameters<P>()
      .time("startup", &P::startup, {0, kSecond}, "cost model: time of a collective of a few bytes")
      .rate("rate", &P::rate, {kMbps, 1000 * 1000 * kGbps}, "cost model: rate at which a rank sends");
}

Bytes chunk_bytes(Bytes bytes, std::uint32_t chunks, std::uint32_t chunk) {
  const Bytes begin = bytes * chunk / chunks;
  return std::max<Bytes>(1, bytes * (chunk + 1) / chunks - begin);
}

PartitionSteps partition_steps(CollectiveKind kind, const CollectivePartition& partition) {
  using Span = CollectiveSpan;
  constexpr CollectiveKind kReduce = CollectiveKind::reduce_scatter, kGather = CollectiveKind::all_gather;
  const bool sums = kind == CollectiveKind::all_reduce;
  const bool split = partition.split && sums;
  if (!partition.grouped) {
    if (split) return {{{kReduce, Span::all}}, {{kGather, Span::all}}};
    return {{{kind, Span::all}}, {}};
  }
  if (split) {
    return {{{kReduce, Span::within_host}, {kReduce, Span::between_hosts}, {kGather, Span::between_hosts}},
            {{kGather, Span::within_host}}};
  }
  if (sums)
    return {{{kReduce, Span::within_host}, {kind, Span::between_hosts}}, {{kGather, Span::within_host}}};
  if (kind == kGather) return {{{kind, Span::between_hosts}}, {{kind, Span::within_host}}};
  return {{{kind, Span::within_host}, {kind, Span::between_hosts}}, {}};
}

Time series_time(const PartitionCosts& costs, CollectiveKind kind, Bytes bytes, std::uint32_t count,
                 const CollectivePartition& partition) {
  std::array<Time, 2> queues{};  // ends of the queue between hosts, and of that within hosts
  for (std::uint32_t i = 0; i < count; ++i) {
    append_partition<Time>(
        kind, partition, {Time{0}},
        [&](const PartitionStep& step, std::uint32_t chunk, const std::vector<Time>& after) {
          Time& queue = queues[step.span == CollectiveSpan::within_host ? 1 : 0];
          queue = std::max(queue, *std::max_element(after.begin(), after.end())) +
                  costs.time(step.kind, step.span, chunk_bytes(bytes, partition.chunks, chunk));
          return queue;
        });
  }
  return std::max(queues[0], queues[1]);
}

CollectivePartition best_partition(const PartitionCosts& costs, CollectiveKind kind, Bytes bytes,
                                   std::uint32_t count, const SearchedParts& parts) {
  CollectivePartition best;
  Time least = series_time(costs, kind, bytes, count, best);
  for (const bool grouped : {false, true}) {
    if (grouped && !parts.group) continue;
    for (const std::uint32_t chunks : {1U, 2U, 4U, 8U}) {
      if (chunks > 1 && !parts.workload) continue;
      const CollectivePartition other{false, grouped, chunks};
      const Time time = series_time(costs, kind, bytes, count, other);
      if (time >= least) continue;
      least = time;
      best = other;
    }
  }
  return best;
}

}  // namespace netsim
