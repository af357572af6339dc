// The table of collective kinds, one line per kind. It holds everything that differs from kind to kind: name,
// meaning of the bytes, the goal of a plan, reported bandwidth and default algorithm. A new kind needs a new
// line here, a value of workload.proto's Collective, and an algorithm that supports it.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "sim/core/units.h"

namespace netsim {

// The values are positions in kCollectiveKinds. They must never change, because results depend on them.
enum class CollectiveKind : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  broadcast,
  point_to_point,  // the send and the receive of a workload: rank 0 sends to rank 1
  reduce,
  gather,
  scatter,
  custom,  // defined by a program alone; no built-in algorithm supports it
  all_to_all_v,
  barrier,
  dispatch,
  combine
};

// ChunkRanks: a set of ranks of the group, given for one chunk of the buffer.
enum class ChunkRanks : std::uint8_t {
  none,  // as holders: ranks may end with any data
  all,
  root,
  owner,       // the rank r that owns the chunk; of `chunks` chunks, r owns chunks / p from r * chunks / p on
  source,      // the source of block (source, destination), which is chunk source * p + destination
  destination  // the destination of that block
};

// CollectiveGoal: what has to hold for each chunk of a plan. At the beginning each of `contributors` holds
// its own contribution, and no other rank holds anything. At the end each of `holders` holds the contribution
// of every contributor exactly once; the buffers of other ranks do not matter.
struct CollectiveGoal {
  ChunkRanks contributors = ChunkRanks::all;
  ChunkRanks holders = ChunkRanks::all;
};

struct CollectiveKindInfo {
  CollectiveKind kind;
  // Name in YAML, tables and messages. It is also the parameter of the section `collectives` that chooses the
  // algorithm.
  const char* name;
  // The buffer whose size is the bytes of a communication, in words.
  const char* bytes;
  // Role of the root, in words; null for a kind without a root.
  const char* root;
  CollectiveGoal goal;
  // Returns the "bus bandwidth" of nccl-tests (doc/PERFORMANCE.md there) for an algorithm bandwidth, which is
  // bytes / time. The bus bandwidth compares with the rate of a link for any number of ranks.
  double (*bus_bandwidth)(double algorithm_bandwidth, double ranks);
  // The value of workload.proto's Collective; 0: a workload cannot name this kind.
  int protobuf;
  // "": the configuration must name an algorithm where the kind is used; a barrier uses that of all_reduce.
  const char* default_algorithm;
};

namespace bus_bandwidths {
constexpr double same(double bandwidth, double) { return bandwidth; }
// A collective without data has no bandwidth.
constexpr double none(double, double) { return 0; }
// Each rank already has 1 / n of the buffer.
constexpr double others(double bandwidth, double n) { return bandwidth * (n - 1) / n; }
// An all-reduce moves as much as a reduce-scatter and an all-gather.
constexpr double others_twice(double bandwidth, double n) { return bandwidth * 2 * (n - 1) / n; }
}  // namespace bus_bandwidths

inline constexpr CollectiveKindInfo kCollectiveKinds[] = {
    {CollectiveKind::all_reduce,
     "all_reduce",
     "the buffer that each rank holds and gets back reduced",
     nullptr,
     {ChunkRanks::all, ChunkRanks::all},
     bus_bandwidths::others_twice,
     1,
     "ring"},
    {CollectiveKind::all_gather,
     "all_gather",
     "the gathered buffer, to which each rank contributes bytes / ranks",
     nullptr,
     {ChunkRanks::owner, ChunkRanks::all},
     bus_bandwidths::others,
     2,
     "ring"},
    {CollectiveKind::reduce_scatter,
     "reduce_scatter",
     "the buffer that each rank contributes, of which it keeps bytes / ranks reduced",
     nullptr,
     {ChunkRanks::all, ChunkRanks::owner},
     bus_bandwidths::others,
     3,
     "ring"},
    {CollectiveKind::all_to_all,
     "all_to_all",
     "the buffer that one rank sends, of which block i, bytes / ranks, goes to rank i",
     nullptr,
     {ChunkRanks::source, ChunkRanks::destination},
     bus_bandwidths::others,
     4,
     "pairwise"},
    {CollectiveKind::broadcast,
     "broadcast",
     "the root's buffer",
     "the rank that has the data",
     {ChunkRanks::root, ChunkRanks::all},
     bus_bandwidths::same,
     5,
     "chain"},
    {CollectiveKind::point_to_point,
     "point_to_point",
     "the message from rank 0 to rank 1",
     nullptr,
     {ChunkRanks::root, ChunkRanks::all},  // the root is rank 0
     bus_bandwidths::same,
     0,
     "direct"},
    {CollectiveKind::reduce,
     "reduce",
     "the buffer that each rank contributes and the root gets reduced",
     "the rank that gets the result",
     {ChunkRanks::all, ChunkRanks::root},
     bus_bandwidths::same,
     6,
     "chain"},
    {CollectiveKind::gather,
     "gather",
     "the gathered buffer that the root gets, to which each rank contributes bytes / ranks",
     "the rank that gets the result",
     {ChunkRanks::owner, ChunkRanks::root},
     bus_bandwidths::others,
     7,
     "direct"},
    {CollectiveKind::scatter,
     "scatter",
     "the root's buffer, of which each rank gets bytes / ranks",
     "the rank that has the data",
     {ChunkRanks::root, ChunkRanks::owner},
     bus_bandwidths::others,
     8,
     "direct"},
    {CollectiveKind::custom,
     "custom",
     "the input of a rank, as large as its output",
     nullptr,
     {ChunkRanks::all, ChunkRanks::none},
     bus_bandwidths::same,
     9,
     ""},
    {CollectiveKind::all_to_all_v,
     "all_to_all_v",
     "the largest number of bytes that one rank sends to others or receives from others, by the counts of "
     "the blocks",
     nullptr,
     {ChunkRanks::source, ChunkRanks::destination},
     bus_bandwidths::same,
     10,
     "direct"},
    {CollectiveKind::barrier,
     "barrier",
     "one element of 4 bytes without a meaning",
     nullptr,
     {ChunkRanks::owner, ChunkRanks::all},  // each rank ends when it knows that all have entered
     bus_bandwidths::none,
     11,
     ""},
    // Dispatch and combine are the two halves of a layer of experts. They are an all-gather and a
    // reduce-scatter in which each rank needs only a part of the data. The bytes are counted as DeepEP does
    // (tests/test_intranode.py and test_internode.py there).
    {CollectiveKind::dispatch,
     "dispatch",
     "the largest number of bytes that one rank sends, by the tokens' experts: a token counts once for each "
     "host that it goes to, including its own; on a single host, once for each rank",
     nullptr,
     {ChunkRanks::owner, ChunkRanks::all},
     bus_bandwidths::same,
     12,
     "direct"},
    {CollectiveKind::combine,
     "combine",
     "the largest number of bytes that one rank gets back, counted as in a dispatch",
     nullptr,
     {ChunkRanks::all, ChunkRanks::owner},
     bus_bandwidths::same,
     13,
     "direct"},
};
inline constexpr std::size_t kCollectiveKindCount = std::size(kCollectiveKinds);

constexpr const CollectiveKindInfo& info_of(CollectiveKind kind) {
  return kCollectiveKinds[static_cast<std::size_t>(kind)];
}
constexpr const char* to_string(CollectiveKind kind) { return info_of(kind).name; }
constexpr bool has_root(CollectiveKind kind) { return info_of(kind).root != nullptr; }
// Returns whether each rank owns a part of the buffer, so that the number of chunks is a multiple of the
// ranks.
constexpr bool has_parts(CollectiveKind kind) {
  const auto one_each = [](ChunkRanks ranks) {
    return ranks == ChunkRanks::owner || ranks == ChunkRanks::source || ranks == ChunkRanks::destination;
  };
  return one_each(info_of(kind).goal.contributors) || one_each(info_of(kind).goal.holders);
}
// Returns whether the blocks have individual sizes (block_counts.h) instead of being equal parts of the
// bytes.
constexpr bool has_counts(CollectiveKind kind) {
  return kind == CollectiveKind::all_to_all_v || kind == CollectiveKind::dispatch ||
         kind == CollectiveKind::combine;
}
// Returns whether the blocks are tokens on their way to experts or back (TokenBytes in block_counts.h).
constexpr bool has_tokens(CollectiveKind kind) {
  return kind == CollectiveKind::dispatch || kind == CollectiveKind::combine;
}
// Bytes of a barrier that runs as an all-reduce. PyTorch's barrier (ProcessGroupNCCL::barrier) reduces a
// single float, because NCCL has no barrier.
inline constexpr Bytes kBarrierBytes = 4;
// Returns whether the workload gives the number of bytes.
constexpr bool has_bytes(CollectiveKind kind) { return !has_counts(kind) && kind != CollectiveKind::barrier; }
// Returns the traffic by which NCCL shares out the channels of a kernel among collectives
// (ncclFuncTrafficPerByte in src/include/info.h). An all-reduce counts its bytes twice.
constexpr Bytes traffic_of(CollectiveKind kind, Bytes bytes) {
  return kind == CollectiveKind::all_reduce ? 2 * bytes : bytes;
}
// GroupedTraffic: the position of a collective in a grouped call. `before` is the traffic of the collectives
// of the same communicator that are called before it. `all` is the traffic of all of them; 0: the collective
// is called alone.
struct GroupedTraffic {
  Bytes before = 0, all = 0;
  auto operator<=>(const GroupedTraffic&) const = default;
};
// Returns whether a whole group calls it together, unlike the send and receive of two ranks.
constexpr bool is_collective(CollectiveKind kind) { return kind != CollectiveKind::point_to_point; }

namespace collective_kind_checks {
constexpr bool in_order() {
  for (std::size_t i = 0; i < kCollectiveKindCount; ++i) {
    if (kCollectiveKinds[i].kind != static_cast<CollectiveKind>(i)) return false;
  }
  return true;
}
static_assert(in_order(), "kCollectiveKinds is in the order of CollectiveKind");
}  // namespace collective_kind_checks

}  // namespace netsim
