// MeshResharding: how a tensor that is divided over one mesh of GPUs comes to another mesh with another
// division. Pipeline stages that divide their layers differently need it. It is cross-mesh resharding as in
// AlpaComm (Zhuang et al., "On Optimizing the Communication of Model Parallelism", MLSys 2023, arXiv
// 2211.05322).
//
// A mesh is rows x columns of GPUs. Each row is a host, unless the mesh says which GPUs share one. A spec
// says for each dimension of the tensor whether it is whole everywhere (R) or divided along axes of the mesh.
// S0 divides it along the rows, S1 along the columns, S01 and S10 along both, the slower axis first. So each
// GPU has one tile, and several may have the same.
//
// Slices are the intersections of tiles of both meshes. Each has holders on one side and receivers on the
// other. There are three strategies:
// - send_recv: each receiver gets its own copy of a slice from a holder.
// - all_gather: GPUs of a host that need the same tile each get a part of it. Then they gather the tile among
//   themselves (Alpa: Zheng et al., OSDI 2022).
// - broadcast: one holder sends a slice to all receivers at once, along a chain through the hosts, so that
//   each host's link carries it once.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/ids.h"
#include "sim/core/units.h"

namespace netsim {

// ShardedMesh: GPU (row, column) is number row * columns + column of its mesh.
struct ShardedMesh {
  std::uint32_t rows = 1, columns = 1;
  // By dimension of the tensor: the axes (0, 1) that divide it, the slowest first.
  std::vector<std::vector<std::uint32_t>> division;
  // By GPU: the index of its host, from 0 on and never less than that of the GPU before. Empty: each row is a
  // host.
  std::vector<HostId> hosts_of = {};

  std::uint32_t gpus() const { return rows * columns; }
  HostId host(GpuId gpu) const { return hosts_of.empty() ? HostId(gpu / columns) : hosts_of[gpu]; }
  std::uint32_t hosts() const { return hosts_of.empty() ? rows : hosts_of.back() + 1; }
  std::uint32_t size(std::uint32_t axis) const { return axis == 0 ? rows : columns; }
  // parts() returns into how many parts a dimension is divided, part() which of them a GPU has.
  std::uint32_t parts(std::size_t dimension) const;
  std::uint32_t part(std::size_t dimension, GpuId gpu) const;
};

// Parses a spec: "S01RR" -> {{0, 1}, {}, {}}. Returns what is wrong with it, in words; "" if nothing is.
std::string parse_division(const std::string& spec, std::vector<std::vector<std::uint32_t>>& division);

struct ReshardingSlice {
  std::vector<std::pair<std::int64_t, std::int64_t>> extent;  // by dimension: begin and end of the elements
  Bytes bytes = 0;
  std::vector<GpuId> holders, receivers;  // GPUs of the source mesh and of the destination mesh
};

// ReshardingStep: one communication. The steps of a GPU run one after the other, in the order of
// MeshResharding::steps.
struct ReshardingStep {
  enum class Kind : std::uint8_t {
    message,    // bytes [begin, end) of a slice from a holder to one receiver
    broadcast,  // a slice from a holder to all its receivers, in the order in which it is passed on
    gather      // receivers gather the tile of which they have parts
  };
  Kind kind = Kind::message;
  std::uint32_t slice = 0;
  GpuId from = 0;            // GPU of the source mesh
  std::vector<GpuId> to;     // GPUs of the destination mesh
  Bytes begin = 0, end = 0;  // bytes of the slice; for a gather 0 and the bytes that each GPU has then
};

struct MeshResharding {
  ShardedMesh source, destination;
  std::vector<ReshardingSlice> slices;
  std::vector<ReshardingStep> steps;
};

enum class ReshardingStrategy : std::uint8_t { send_recv, all_gather, broadcast };
// ReshardingBalance: which holder sends the slice of a broadcast, and when.
enum class ReshardingBalance : std::uint8_t {
  none,  // the first holder, slice after slice
  size,  // the largest slices first, each from the host that sends least so far
  // An order of slices in which hosts wait little for each other, where a host sends and receives one slice
  // at a time. It is the best of a greedy order, which takes the slice that can begin first, and up to 2000
  // random ones. AlpaComm searches depth first where slices are few, else also randomly.
  order
};
// Return the names of the strategies and balances for users. The constants below explain them in words.
const std::vector<std::pair<std::string, ReshardingStrategy>>& resharding_strategies();
const std::vector<std::pair<std::string, ReshardingBalance>>& resharding_balances();
inline constexpr const char* kReshardingStrategies =
    "each GPU gets its own copy; those of a host that need the same each get a part and gather; or each "
    "slice is passed on from GPU to GPU and host to host";
inline constexpr const char* kReshardingBalances =
    "broadcast: the first host that has a slice sends it; the one that sends least; or slices come in an "
    "order in which hosts wait for each other as little as possible";

// Returns the steps for a tensor, proved. `tensor` has its dimensions, each of which the meshes' parts
// divide. `element` is the bytes of an element.
MeshResharding make_resharding(const std::vector<std::int64_t>& tensor, Bytes element,
                               const ShardedMesh& source, const ShardedMesh& destination,
                               ReshardingStrategy strategy, ReshardingBalance balance);

// Executes the steps with intervals of bytes instead of bytes. Checks that senders hold the bytes that they
// send, and that no GPU gets a byte twice. At the end each GPU of the destination has to have its tile.
// Returns what is wrong, in words; "" if nothing is.
std::string prove_resharding(const MeshResharding& plan);

}  // namespace netsim
