// CollectivePartition: how one collective is cut. Centauri cuts along three dimensions (Chen et al., ASPLOS
// 2024):
//
// - primitive: an all-reduce becomes a reduce-scatter and an all-gather.
// - group: a collective among ranks of several hosts becomes collectives within hosts and between hosts. Each
//   of the two transports has a queue of its own, so that collectives on different transports run beside each
//   other.
// - workload: the buffer is cut into equal chunks.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sim/collectives/collective_kind.h"
#include "sim/core/parameters.h"
#include "sim/core/units.h"

namespace netsim {

struct CollectivePartition {
  bool split = false;    // reduce-scatter and all-gather
  bool grouped = false;  // within hosts and between hosts
  std::uint32_t chunks = 1;
  bool operator==(const CollectivePartition&) const = default;
};

// CollectiveSpan: which of a collective's ranks a part of it joins.
enum class CollectiveSpan : std::uint8_t { all, within_host, between_hosts };

// PartitionCosts: the cost model. A collective takes `startup` and the time of the bytes that a ring moves,
// at `rate`. A reduce-scatter or all-gather of n bytes among p ranks moves (p - 1)/p n, an all-reduce twice
// that.
struct PartitionCosts {
  struct Transport {
    Time startup = 0;
    BitRate rate = 0;
  };
  std::uint32_t workers = 2, per_host = 1;
  Transport within, between;
  // Rate of a ring among all ranks, whose channels may use the NICs of all ranks of a host; 0: that of
  // `between`.
  BitRate ring_rate = 0;

  std::uint32_t ranks(CollectiveSpan span) const {
    return span == CollectiveSpan::all           ? workers
           : span == CollectiveSpan::within_host ? per_host
                                                 : workers / per_host;
  }
  Time time(CollectiveKind kind, CollectiveSpan span, Bytes bytes) const;
  // Returns the bytes of a part with this span of a collective of `bytes`. Between hosts each rank has its
  // share of its host's bytes.
  Bytes part_bytes(CollectiveSpan span, Bytes bytes) const;
};
// Transports of a DGX A100, a direction: NVLink (NVIDIA's data sheet), and one NIC of 200 Gb/s a GPU.
inline constexpr PartitionCosts::Transport kDgxA100Nvlink{10 * kMicrosecond, 2400 * kGbps};
inline constexpr PartitionCosts::Transport kDgxA100Nic{20 * kMicrosecond, 200 * kGbps};
// Returns the parameters of a transport.
Parameters<PartitionCosts::Transport> transport_parameters();

// Returns the bytes of a chunk of a buffer.
Bytes chunk_bytes(Bytes bytes, std::uint32_t chunks, std::uint32_t chunk);

// PartitionStep: a part of a chunk. Those in `first` follow each other. Those in `then` follow them, behind
// the next chunk's `first`, so that the two transports work on different chunks.
struct PartitionStep {
  CollectiveKind kind = CollectiveKind::all_reduce;
  CollectiveSpan span = CollectiveSpan::all;
};
struct PartitionSteps {
  std::vector<PartitionStep> first, then;
};
PartitionSteps partition_steps(CollectiveKind kind, const CollectivePartition& partition);

// Appends the parts of a collective that waits for `after`. `add(step, chunk, after)` appends one of them and
// returns its node. Returns the last node of each chunk.
template <class Node, class Add>
std::vector<Node> append_partition(CollectiveKind kind, const CollectivePartition& partition,
                                   const std::vector<Node>& after, Add add) {
  const PartitionSteps steps = partition_steps(kind, partition);
  std::vector<Node> done;
  done.reserve(partition.chunks);
  for (std::uint32_t i = 0; i <= partition.chunks; ++i) {
    if (i < partition.chunks) {
      std::vector<Node> waits = after;
      for (const PartitionStep& step : steps.first) waits = {add(step, i, waits)};
      done.push_back(waits.front());
    }
    if (i == 0) continue;
    for (const PartitionStep& step : steps.then) done[i - 1] = add(step, i - 1, std::vector{done[i - 1]});
  }
  return done;
}

// Returns the time of `count` equal collectives that are launched together and follow each other.
Time series_time(const PartitionCosts& costs, CollectiveKind kind, Bytes bytes, std::uint32_t count,
                 const CollectivePartition& partition);
// Returns the partition with which such a series is shortest; that with the fewest parts among equals.
struct SearchedParts {
  bool group = true, workload = true;
};
CollectivePartition best_partition(const PartitionCosts& costs, CollectiveKind kind, Bytes bytes,
                                   std::uint32_t count, const SearchedParts& parts);

}  // namespace netsim
