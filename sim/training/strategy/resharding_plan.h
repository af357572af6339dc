// ReshardingPlan: how a tensor that is divided over one mesh of GPUs comes to another mesh with another
// division (cross-mesh resharding: Zhuang et al., "On Optimizing the Communication of Model Parallelism",
// MLSys 2023, arXiv 2211.05322, AlpaComm), as between pipeline stages that divide their layers differently.
//
// A mesh is rows x columns of GPUs, a row for each host unless it says which GPUs share one. A spec says of
// each dimension of the tensor whether it is whole everywhere (R) or divided along axes of the mesh (S0:
// along the rows, S1: along the columns, S01, S10: along both, the first named the slower). So each GPU has
// one tile, and several may have the same.
//
// Where tiles of both meshes meet are slices: each has holders on one side and receivers on the other. Three
// strategies bring the slices there:
// - send_recv: each receiver gets its own copy of a slice from a holder;
// - all_gather: of GPUs of a host that need the same tile each gets a part of it, and they gather it among
//   themselves (Alpa: Zheng et al., OSDI 2022);
// - broadcast: one holder sends a slice to all receivers at once, along a chain through the hosts, so that
// each
//   host's link carries it once.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/units.h"

namespace netsim {

// GPU (row, column) is number row * columns + column of its mesh.
struct ShardedMesh {
  std::uint32_t rows = 1, columns = 1;
  // By dimension of the tensor: the axes that divide it, 0 and 1, the slowest first.
  std::vector<std::vector<std::uint32_t>> division;
  // By GPU: the host that it is in, from 0 on and never less than that of the GPU before. Empty: a host for
  // each row.
  std::vector<std::uint32_t> hosts_of = {};

  std::uint32_t gpus() const { return rows * columns; }
  std::uint32_t host(std::uint32_t gpu) const { return hosts_of.empty() ? gpu / columns : hosts_of[gpu]; }
  std::uint32_t hosts() const { return hosts_of.empty() ? rows : hosts_of.back() + 1; }
  std::uint32_t size(std::uint32_t axis) const { return axis == 0 ? rows : columns; }
  // Into how many parts a dimension is divided, and which of them a GPU has.
  std::uint32_t parts(std::size_t dimension) const;
  std::uint32_t part(std::size_t dimension, std::uint32_t gpu) const;
};

// "S01RR" -> {{0, 1}, {}, {}}. What is wrong with it, in words; "" if nothing is.
std::string parse_division(const std::string& spec, std::vector<std::vector<std::uint32_t>>& division);

struct ReshardingSlice {
  std::vector<std::pair<std::int64_t, std::int64_t>> extent;  // by dimension: from, to
  Bytes bytes = 0;
  std::vector<std::uint32_t> holders, receivers;  // GPUs of the one mesh and of the other
};

// One communication. Those of a GPU are done one after the other, in the order of the plan.
struct ReshardingStep {
  enum class Kind : std::uint8_t {
    message,    // bytes [begin, end) of a slice from a holder to one receiver
    broadcast,  // a slice from a holder to all its receivers, in the order in which it is passed on
    gather      // receivers gather what they have parts of
  };
  Kind kind = Kind::message;
  std::uint32_t slice = 0;
  std::uint32_t from = 0;         // of the source mesh
  std::vector<std::uint32_t> to;  // of the destination mesh
  Bytes begin = 0, end = 0;       // of a gather: 0 and what each has then
};

struct ReshardingPlan {
  ShardedMesh source, destination;
  std::vector<ReshardingSlice> slices;
  std::vector<ReshardingStep> steps;
};

enum class ReshardingStrategy : std::uint8_t { send_recv, all_gather, broadcast };
// Who sends the slice, of a broadcast, and when.
enum class ReshardingBalance : std::uint8_t {
  none,  // the first holder, slice after slice
  size,  // the largest slices first, each from the host that sends least so far
  // Slices come in an order in which hosts wait for each other as little as possible, where a host sends one
  // slice at a time and receives one: that of what can begin first, or the best of some two thousand random
  // orders (AlpaComm searches depth first where slices are few, else randomly, too).
  order
};
// Their names, for users, and what they mean in words.
const std::vector<std::pair<std::string, ReshardingStrategy>>& resharding_strategies();
const std::vector<std::pair<std::string, ReshardingBalance>>& resharding_balances();
inline constexpr const char* kReshardingStrategies =
    "each GPU gets its own copy; those of a host that need the same each get a part and gather; or each "
    "slice is passed on from GPU to GPU and host to host";
inline constexpr const char* kReshardingBalances =
    "broadcast: the first host that has a slice sends it; the one that sends least; or slices come in an "
    "order in which hosts wait for each other as little as possible";

// `tensor`: its dimensions, each of which the meshes' parts divide; an element has so many bytes. Proved.
ReshardingPlan plan_resharding(const std::vector<std::int64_t>& tensor, Bytes element,
                               const ShardedMesh& source, const ShardedMesh& destination,
                               ReshardingStrategy strategy, ReshardingBalance balance);

// Executes the plan with intervals of bytes instead of bytes: who sends has what it sends, nobody gets
// anything twice, and at the end each GPU of the destination has its tile. What is wrong, in words; "" if
// nothing is.
std::string prove_resharding(const ReshardingPlan& plan);

}  // namespace netsim
