// CollectiveAlgorithm: the interface of collective algorithms, which make plans. Each algorithm is one .cpp
// file (ring.cpp, double_binary_tree.cpp, ...).
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "sim/collectives/plan.h"
#include "sim/collectives/protocol.h"
#include "sim/core/index.h"

namespace netsim {

// RankOrder: which members of a group are rank 0, 1, ... of an algorithm's plans
// (library/communicator_layout.h).
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
  // that begins near another NIC. Such a plan depends on the hosts (PlanTraits::hosts), and all its ranks
  // have the same number of thread blocks.
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

// RankSite: the host and the rail of a rank.
struct RankSite {
  std::uint32_t host = 0;  // hosts are numbered from 0 in the order of their first ranks
  // Position, among the NICs of its host, of the NIC that carries the rank's messages: one of the nearest.
  // GPUs of different hosts with the same rail have NICs at the same position. GPUs of a host that share a
  // NIC have the same rail, so a host may have fewer rails than ranks. kNoIndex: no NIC is near.
  std::uint32_t rail = kNoIndex;
  auto operator<=>(const RankSite&) const = default;
};

// RankLinks: for each rank of a group the ranks that a link of the fabric joins with it directly, in order.
using RankLinks = std::vector<std::vector<std::uint32_t>>;

// GroupShape: the group that a plan is made for. Only the facts that PlanTraits asks for are set; a fact that
// is not known keeps its default. Plans are cached by all fields.
struct GroupShape {
  std::uint32_t ranks = 2;  // >= 2; point-to-point: 2
  std::uint32_t root = 0;   // < ranks; 0 for kinds without a root
  // PlanTraits::hosts: the number of ranks in each domain, and what talks to other domains in a tree. Ranks
  // of a domain follow each other for RankOrder::chains; otherwise where the group lists them so. Empty: not
  // known.
  DomainSizes sizes = {};
  TreePattern pattern = TreePattern::balanced;
  // PlanTraits::hosts: number of NICs near the members of a domain, all members together; 0: not known.
  std::uint32_t nics = 0;
  // PlanTraits::sites: host and rail by rank, for RankOrder::group. It is empty where no cluster is known, as
  // for --show-schedule.
  std::vector<RankSite> sites = {};
  // PlanTraits::channels: channels for sends and receives in all, and for the messages to one rank. 0: not
  // known.
  std::uint32_t peers_channels = 0, channels_per_peer = 0;
  // PlanTraits::tokens: number of consecutive ranks on one host, as the workload counts tokens
  // (TokenBytes::host). 0: not known.
  std::uint32_t token_host = 0;
  // PlanTraits::links: the direct links, by rank, for RankOrder::group. It is empty where no fabric is known.
  RankLinks links = {};
  auto operator<=>(const GroupShape&) const = default;
};

// PlanTraits: what a library has to know of an algorithm's plans to run them on a group.
struct PlanTraits {
  RankOrder order = RankOrder::group;
  std::optional<Protocol> protocol = std::nullopt;  // the only protocol for the plans; nullopt: any
  // The facts of GroupShape, besides `ranks` and `root`, that plans depend on.
  bool hosts = false;
  bool sites = false;
  bool channels = false;
  bool tokens = false;
  bool links = false;
  // Whether switches of a fabric add up (not NVSwitches), and in which format.
  enum class FabricSums : std::uint8_t {
    none,
    of_data,  // that of the data
    as_int32  // int32, to which hosts convert the data, as SwitchML's do
  };
  FabricSums sums = FabricSums::none;
  bool nvswitches = false;  // whether NVSwitches add up or copy, so that communicators need groups of them
};

// CollectiveAlgorithm: a component that makes plans. It does not choose itself or its costs: a library does
// (library/collective_library.h). An algorithm may derive from another interface too, which a library asks.
//
// - WithKernels (library/kernel_model.h): its kernels do not run by the parameters of their protocol.
// - WithCandidates (library/candidates.h): it stands for several algorithms, among which a library chooses.
//
// - LinkAlgorithm (link_algorithm.h): its plans follow links that join the ranks directly.
// - WithNcclTraits (library/nccl/nccl_traits.h): NCCL's cost model knows it.
//
// Any thread may call all functions. One object serves all groups of a run.
class CollectiveAlgorithm {
 public:
  static constexpr const char* kComponentKind = "collective_algorithm";
  virtual ~CollectiveAlgorithm() = default;
  // Returns whether the algorithm makes plans for collectives of this kind.
  virtual bool supports(CollectiveKind kind) const = 0;
  // Returns what all its plans need and have. It cannot depend on the group: a library, not an algorithm,
  // chooses another algorithm for some groups.
  virtual PlanTraits traits() const { return {}; }
  // Makes the plan of a supported kind for a group. Throws InputError for a group that it cannot serve.
  virtual std::unique_ptr<Plan> plan(CollectiveKind kind, const GroupShape& shape) const = 0;
};

}  // namespace netsim
