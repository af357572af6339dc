// CollectiveAlgorithm: makes plans. One .cpp each (ring.cpp, double_binary_tree.cpp, ...).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "sim/collectives/plan.h"
#include "sim/collectives/protocol.h"

namespace netsim {

// Which of the latencies in NCCL's tuning.cc an algorithm is charged: those of rings or those of trees.
enum class CostFamily : std::uint8_t { ring, tree };

// How the kernels of an algorithm run that do not run by what the library's parameters say of their protocol.
struct OwnKernels {
  Time base_latency = 0;  // from the start of the kernel to its first step
  Time hop_latency = 0;   // of each message of a fan
  std::uint32_t channels = 1;
  Bytes slice = 0;  // the largest message of a channel, a chunk
  std::uint32_t slots = 0;
};

class CollectiveAlgorithm {
 public:
  static constexpr const char* kComponentKind = "collective_algorithm";
  virtual ~CollectiveAlgorithm() = default;
  virtual bool supports(CollectiveKind kind) const = 0;
  virtual CostFamily cost_family() const { return CostFamily::ring; }
  // Whether the ranks of its plans stand in a ring of neighbours, so that the library may let other members
  // be rank 0, 1, ... on each channel (execution/communicator_layout.h). All ranks of such a plan have as
  // many thread blocks, and none is a root.
  virtual bool runs_in_rings() const { return false; }
  // For so many bytes (CollectiveKindInfo::bytes) of so many ranks; nothing: as the library's parameters say.
  virtual std::optional<OwnKernels> own_kernels(Bytes /*bytes*/, std::uint32_t /*ranks*/) const {
    return std::nullopt;
  }
  // What its plans are made for; nothing: they run by whatever protocol the library uses.
  virtual std::optional<Protocol> protocol() const { return std::nullopt; }
  // ranks >= 2 (point-to-point: 2). `root` for rooted kinds. InputError for a group beyond 32-bit chunk
  // numbers.
  virtual std::unique_ptr<Plan> plan(CollectiveKind kind, std::uint32_t ranks, std::uint32_t root) const = 0;
};

}  // namespace netsim
