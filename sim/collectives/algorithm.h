// CollectiveAlgorithm: makes the plans of a collective algorithm. Each algorithm is one .cpp file (ring.cpp,
// double_binary_tree.cpp, ...).
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

// CostFamily: the row of NCCL's tuning.cc that gives an algorithm's latencies, and the bandwidth by which
// NCCL chooses it. The rows are rings, trees, PAT and algorithms whose switches add and copy. The latter use
// NVSwitches (NVLS; over several hosts NVLS tree, or NVLS with CollNet) or only the switches of the fabric
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
// Returns whether NVSwitches take part in algorithms of this family.
constexpr bool by_switches(CostFamily family) {
  return family == CostFamily::nvls || family == CostFamily::nvls_tree || family == CostFamily::nvls_collnet;
}
// Returns whether the switches of the fabric between hosts take part.
constexpr bool by_fabric(CostFamily family) {
  return family == CostFamily::nvls_collnet || family == CostFamily::collnet_direct ||
         family == CostFamily::collnet_chain;
}

// RankOrder: which members of a group are rank 0, 1, ... of an algorithm's plans
// (execution/communicator_layout.h).
enum class RankOrder : std::uint8_t {
  group,  // rank i is member i of the group
  // Each channel follows another ring that visits domain after domain. All ranks of such a plan have the same
  // number of thread blocks. The root of a rooted plan is the same member on all channels.
  rings,
  // Like `rings` for a group in several domains whose plan has no root; otherwise like `group`. It suits
  // plans that map consecutive ranks (groups, subtrees) to domains. On each channel other members of a domain
  // talk to other domains, so that all NICs are used.
  domains,
  // Each channel visits domain after domain in one of two orders. The members of each domain form a chain
  // that begins near another NIC. Such a plan is made by plan_over() and all its ranks have the same number
  // of thread blocks. Its buffer is cut as NCCL cuts that of its trees (execution/chunking.h).
  chains
};

// DomainSizes: the number of members in each domain, in the order of the ranks. A domain is a host or a rack,
// joined by NVLink or PCIe. A single number stands for all domains.
using DomainSizes = std::vector<std::uint32_t>;

// TreePattern: which ranks of a domain's chain talk to other domains in a tree (NCCL_TOPO_PATTERN_* in
// src/include/graph.h). The first rank always talks to the parent.
enum class TreePattern : std::uint8_t {
  balanced,  // the first rank talks to one child, the second to the other
  split,     // the second rank talks to both children
  plain      // the first rank talks to both children
};

// GroupShape: the properties of a group, besides its number of ranks, that plans may depend on
// (CollectiveAlgorithm::depends_on_shape()).
struct GroupShape {
  // NOLINTNEXTLINE(google-explicit-constructor): domains are most of what there is
  GroupShape(DomainSizes of = {}, TreePattern trees = TreePattern::balanced)
      : sizes(std::move(of)), pattern(trees) {}
  DomainSizes sizes;
  TreePattern pattern = TreePattern::balanced;
  // Number of NICs near the members of a domain, all members together; 0: not known.
  std::uint32_t nics = 0;
  // Channels for sends and receives, as NCCL derives them (execution/peer_channels.h): in all, and for
  // the messages to one rank. 0: not known.
  std::uint32_t peers_channels = 0, channels_per_peer = 0;
  auto operator<=>(const GroupShape&) const = default;
};

// KernelModel: how an algorithm's kernels run where the library's parameters of the protocol do not apply.
struct KernelModel {
  Time base_latency = 0;     // from the start of the kernel to its first step
  Time hop_latency = 0;      // latency of each message of an aggregation group, or within a host
  Time hop_latency_net = 0;  // latency of each message between hosts
  std::uint32_t channels = 1;
  // True: each channel has its own messages. False: the channels are simulated together.
  bool apart = false;
  // NCCL's channels, each a thread block, where their number is known and greater than `channels`; otherwise
  // 0.
  std::uint32_t thread_blocks = 0;
  Bytes chunk = 0;  // largest chunk of a channel, in bytes
  // Number of messages that a chunk is sent as. A step forwards each message before all of the chunk has
  // arrived, as a loop over its lines does.
  std::uint32_t messages = 1;
  std::uint32_t slots = 0;  // receive slots of a connection, in chunks
  // Highest rate at which a thread block writes to another GPU of its host. 0: limited only by the links.
  BitRate block_rate = 0;
  // Highest rates at which a thread block copies, one message after the other, where switches add and copy.
  // `copy_in_rate` applies to a channel's data on the way into buffers that switches add up. `copy_out_rate`
  // applies to data on the way out of buffers that switches have filled. 0: copying takes no time.
  BitRate copy_in_rate = 0, copy_out_rate = 0;
  // From the last piece of a round that a thread block copies to the first one of the next round.
  Time copy_pause = 0;
  // Whether a proxy thread of the GPU's host posts the messages between hosts (LatencyModel::posting()). It
  // is false where the GPU rings the NIC's doorbell itself.
  bool proxied = false;
};

class CollectiveAlgorithm {
 public:
  static constexpr const char* kComponentKind = "collective_algorithm";
  virtual ~CollectiveAlgorithm() = default;
  virtual bool supports(CollectiveKind kind) const = 0;
  virtual CostFamily cost_family() const { return CostFamily::ring; }
  virtual RankOrder order() const { return RankOrder::group; }
  // Returns the algorithms among which the library chooses for each operation, by size and group. An
  // algorithm that is not a choice among others returns none. The candidates live as long as this.
  virtual std::vector<const CollectiveAlgorithm*> candidates(CollectiveKind /*kind*/) const { return {}; }
  // Returns the number of channels on each ring or chain of a group on several hosts. 0: the section
  // `collectives` gives it. kChannelsOfSearch: as many as NCCL has (search_channels() in
  // execution/nccl_tuning.h).
  static constexpr std::uint32_t kChannelsOfSearch = UINT32_MAX;
  virtual std::uint32_t scale_out_channels() const { return 0; }
  // Load: the size of an operation and the group that it runs on. `bytes` are those of
  // CollectiveKindInfo::bytes. `token` is the size of one token in bytes, for kinds that have tokens.
  struct Load {
    CollectiveKind kind = CollectiveKind::all_reduce;
    Bytes bytes = 0;
    std::uint32_t ranks = 2;
    bool several_hosts = false;
    std::uint32_t domains = 1;
    Bytes token = 0;
    std::optional<GpuGeneration> generation = std::nullopt;  // generation of all GPUs; nullopt: not known
    BitRate local_rate = 0;  // rate of a GPU's links within its host; 0: not known
  };
  virtual std::optional<KernelModel> kernel_model(const Load& /*load*/) const { return std::nullopt; }
  // Returns the protocol that the plans are made for; nullopt: they run with any protocol of the library.
  virtual std::optional<Protocol> protocol() const { return std::nullopt; }
  // Makes the plan for ranks >= 2 (point-to-point: 2). `root` is used by rooted kinds only. Throws InputError
  // for a group that needs chunk numbers of more than 32 bits.
  virtual std::unique_ptr<Plan> plan(CollectiveKind kind, std::uint32_t ranks, std::uint32_t root) const = 0;
  // Returns whether plans depend on the shape of the group; plan_over() makes such plans.
  virtual bool depends_on_shape() const { return order() == RankOrder::chains; }
  // Makes the plan for a group with a known shape.
  virtual std::unique_ptr<Plan> plan_over(CollectiveKind kind, std::uint32_t ranks, std::uint32_t root,
                                          const GroupShape& /*shape*/) const {
    return plan(kind, ranks, root);
  }
  // Returns whether the algorithm uses NCCL's sends and receives. A rank then has
  // GroupShape::channels_per_peer channels to each other rank, unless scale_out_channels() gives a number.
  virtual bool sends_and_receives() const { return false; }
  // Returns whether a lone send leaves its host by the NIC of the receiver's rail (PXN;
  // execution/peer_channels.h).
  virtual bool uses_pxn() const { return false; }
};

}  // namespace netsim
