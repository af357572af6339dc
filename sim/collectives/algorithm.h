// CollectiveAlgorithm: makes plans. One .cpp each (ring.cpp, double_binary_tree.cpp, ...).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/collectives/plan.h"
#include "sim/collectives/protocol.h"

namespace netsim {

// Which of the latencies in NCCL's tuning.cc an algorithm is charged, and by which of its bandwidths NCCL
// chooses it: those of rings, of trees, or of switches that add up and copy (NVLS), whose kernels are its
// own.
enum class CostFamily : std::uint8_t { ring, tree, nvls };

// Which members of a group are rank 0, 1, ... of an algorithm's plans (execution/communicator_layout.h).
enum class RankOrder : std::uint8_t {
  group,  // the first member, the second, ...
  // On each channel the members of another ring that visits domain after domain. All ranks of such a plan
  // have as many thread blocks, and none is a root.
  rings,
  // On each channel domain after domain, the members of each in a chain that begins near another NIC, the
  // domains in one of two orders. Such a plan is made by plan_over(), all its ranks have as many thread
  // blocks, and its buffer is cut as NCCL cuts that of its trees (execution/chunking.h).
  chains
};

// How many members of a group each domain has (what NVLink or PCIe joins: a host, a rack), in the order of
// the ranks; one number: all domains have as many.
using DomainSizes = std::vector<std::uint32_t>;

// How the kernels of an algorithm run that do not run by what the library's parameters say of their protocol.
struct OwnKernels {
  Time base_latency = 0;     // from the start of the kernel to its first step
  Time hop_latency = 0;      // of each message of a fan, or within a host
  Time hop_latency_net = 0;  // of one between hosts
  std::uint32_t channels = 1;
  bool apart = false;  // each channel has messages of its own; else they are timed together
  Bytes slice = 0;     // the largest message of a channel, a chunk
  std::uint32_t slots = 0;
  // What a thread block writes to another GPU of its host at most; 0: as much as the links carry.
  BitRate block_rate = 0;
};

class CollectiveAlgorithm {
 public:
  static constexpr const char* kComponentKind = "collective_algorithm";
  virtual ~CollectiveAlgorithm() = default;
  virtual bool supports(CollectiveKind kind) const = 0;
  virtual CostFamily cost_family() const { return CostFamily::ring; }
  virtual RankOrder order() const { return RankOrder::group; }
  // Those of which the library takes one for each operation, by size and group; empty: it is one itself, and
  // does not depend on them. They live as long as this.
  virtual std::vector<const CollectiveAlgorithm*> candidates(CollectiveKind /*kind*/) const { return {}; }
  // Channels on each ring or chain of a group on several hosts; 0: as the section `collectives` says.
  virtual std::uint32_t scale_out_channels() const { return 0; }
  // For so many bytes (CollectiveKindInfo::bytes) of so many ranks, on several hosts or one; `token`: the
  // bytes of one, of kinds that have tokens. Nothing: as the library's parameters say.
  struct Load {
    Bytes bytes = 0;
    std::uint32_t ranks = 2;
    bool several_hosts = false;
    Bytes token = 0;
  };
  virtual std::optional<OwnKernels> own_kernels(const Load& /*load*/) const { return std::nullopt; }
  // What its plans are made for; nothing: they run by whatever protocol the library uses.
  virtual std::optional<Protocol> protocol() const { return std::nullopt; }
  // ranks >= 2 (point-to-point: 2). `root` for rooted kinds. InputError for a group beyond 32-bit chunk
  // numbers.
  virtual std::unique_ptr<Plan> plan(CollectiveKind kind, std::uint32_t ranks, std::uint32_t root) const = 0;
  // The same over domains of which something is known, where order() is chains.
  virtual std::unique_ptr<Plan> plan_over(CollectiveKind kind, std::uint32_t ranks, std::uint32_t root,
                                          const DomainSizes& /*domains*/) const {
    return plan(kind, ranks, root);
  }
};

}  // namespace netsim
