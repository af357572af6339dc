// CollectiveAlgorithm: makes plans. One .cpp each (ring.cpp, double_binary_tree.cpp, ...).
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/collectives/gpu_generation.h"
#include "sim/collectives/plan.h"
#include "sim/collectives/protocol.h"

namespace netsim {

// Which of the latencies in NCCL's tuning.cc an algorithm is charged, and by which of its bandwidths NCCL
// chooses it: those of rings, of trees, of PAT, or of switches that add up and copy, whose kernels are their
// own: NVSwitches (NVLS, and over several hosts NVLS tree, or NVLS with CollNet), or only those of the fabric
// between hosts (CollNet).
enum class CostFamily : std::uint8_t {
  ring,
  tree,
  pat,
  nvls,
  nvls_tree,
  nvls_collnet,
  collnet_direct,
  collnet_chain
};
// Whether NVSwitches take part...
constexpr bool by_switches(CostFamily family) {
  return family == CostFamily::nvls || family == CostFamily::nvls_tree || family == CostFamily::nvls_collnet;
}
// ... and those of a fabric.
constexpr bool by_fabric(CostFamily family) {
  return family == CostFamily::nvls_collnet || family == CostFamily::collnet_direct ||
         family == CostFamily::collnet_chain;
}

// Which members of a group are rank 0, 1, ... of an algorithm's plans (execution/communicator_layout.h).
enum class RankOrder : std::uint8_t {
  group,  // the first member, the second, ...
  // On each channel the members of another ring that visits domain after domain. All ranks of such a plan
  // have as many thread blocks. Its root, where it has one, is the same member on all channels.
  rings,
  // Of a group in several domains the same orders, where the plan has no root; else that of the group. For
  // plans that are laid over the domains by ranks that follow each other (groups, subtrees): on each channel
  // others of a domain's members talk to other domains, so that all NICs are used.
  domains,
  // On each channel domain after domain, the members of each in a chain that begins near another NIC, the
  // domains in one of two orders. Such a plan is made by plan_over(), all its ranks have as many thread
  // blocks, and its buffer is cut as NCCL cuts that of its trees (execution/chunking.h).
  chains
};

// How many members of a group each domain has (what NVLink or PCIe joins: a host, a rack), in the order of
// the ranks; one number: all domains have as many.
using DomainSizes = std::vector<std::uint32_t>;

// Which ranks of a domain's chain talk to those of other domains in a tree (NCCL_TOPO_PATTERN_* in
// src/include/graph.h). All talk to the parent by the first one.
enum class TreePattern : std::uint8_t {
  balanced,  // to one child by the first, to the other by the second
  split,     // to both by the second
  plain      // to both by the first
};

// What plans may depend on besides the number of their ranks (CollectiveAlgorithm::depends_on_shape()).
struct GroupShape {
  // NOLINTNEXTLINE(google-explicit-constructor): domains are most of what there is
  GroupShape(DomainSizes of = {}, TreePattern trees = TreePattern::balanced)
      : sizes(std::move(of)), pattern(trees) {}
  DomainSizes sizes;
  TreePattern pattern = TreePattern::balanced;
  // That the members of a domain have near them, all together; 0: not known.
  std::uint32_t nics = 0;
  // Of sends and receives: channels of all together, and those that share what goes to one rank, as NCCL
  // derives them (execution/communicator_layout.h); 0: not known.
  std::uint32_t peers_channels = 0, channels_per_peer = 0;
  auto operator<=>(const GroupShape&) const = default;
};

// How the kernels of an algorithm run that do not run by what the library's parameters say of their protocol.
struct KernelModel {
  Time base_latency = 0;     // from the start of the kernel to its first step
  Time hop_latency = 0;      // of each message of a fan, or within a host
  Time hop_latency_net = 0;  // of one between hosts
  std::uint32_t channels = 1;
  bool apart = false;  // each channel has messages of its own; else they are timed together
  // NCCL's channels, each a thread block, where these are known and more than `channels`; 0: they are not.
  std::uint32_t thread_blocks = 0;
  Bytes chunk = 0;  // of a channel at most
  // Messages of a chunk, by which what comes goes on before all of it is there, as in a loop over its lines.
  std::uint32_t messages = 1;
  std::uint32_t slots = 0;  // chunks
  // What a thread block writes to another GPU of its host at most; 0: as much as the links carry.
  BitRate block_rate = 0;
  // What a thread block copies at most, one message after the other, where switches do the rest: of a
  // channel's data into buffers whose contents they add up, and out of those that they copy into. 0: that
  // takes no time.
  BitRate copy_in_rate = 0, copy_out_rate = 0;
  // From the last piece of a round that a thread block copies to the first one of the next.
  Time copy_pause = 0;
  // Whether a proxy thread of the GPU's host posts the messages between hosts (LatencyModel::posting()). It is
  // false where the GPU rings the NIC's doorbell itself.
  bool proxied = false;
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
  // Returns the channels on each ring or chain of a group on several hosts. 0: as the section `collectives`
  // says. kChannelsOfSearch: as many as NCCL has (search_channels() in execution/nccl_tuning.h).
  static constexpr std::uint32_t kChannelsOfSearch = UINT32_MAX;
  virtual std::uint32_t scale_out_channels() const { return 0; }
  // For so many bytes (CollectiveKindInfo::bytes) of so many ranks, on several hosts or one, in so many
  // domains; `token`: the bytes of one, of kinds that have tokens. Nothing: as the library's parameters say.
  struct Load {
    CollectiveKind kind = CollectiveKind::all_reduce;
    Bytes bytes = 0;
    std::uint32_t ranks = 2;
    bool several_hosts = false;
    std::uint32_t domains = 1;
    Bytes token = 0;
    std::optional<GpuGeneration> generation = std::nullopt;  // of all GPUs; nothing: not known
    BitRate local_rate = 0;                                  // of a GPU's links in its host; 0: not known
  };
  virtual std::optional<KernelModel> own_kernels(const Load& /*load*/) const { return std::nullopt; }
  // What its plans are made for; nothing: they run by whatever protocol the library uses.
  virtual std::optional<Protocol> protocol() const { return std::nullopt; }
  // ranks >= 2 (point-to-point: 2). `root` for rooted kinds. InputError for a group beyond 32-bit chunk
  // numbers.
  virtual std::unique_ptr<Plan> plan(CollectiveKind kind, std::uint32_t ranks, std::uint32_t root) const = 0;
  // Whether plans depend on the shape of the group: then they are made by plan_over().
  virtual bool depends_on_shape() const { return order() == RankOrder::chains; }
  // The same for a group of which something is known.
  virtual std::unique_ptr<Plan> plan_over(CollectiveKind kind, std::uint32_t ranks, std::uint32_t root,
                                          const GroupShape& /*shape*/) const {
    return plan(kind, ranks, root);
  }
  // Whether it is sends and receives as NCCL has them: then a rank's channels to another one are those of
  // GroupShape::channels_per_peer, unless scale_out_channels() says a number.
  virtual bool sends_and_receives() const { return false; }
  // Whether a lone send leaves its host by the NIC of the receiver's rail (PXN; execution/peer_channels.h).
  virtual bool uses_pxn() const { return false; }
};

}  // namespace netsim
