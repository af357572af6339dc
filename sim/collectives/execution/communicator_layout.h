// CommunicatorLayout: where the members of a group are, what joins them, and in which orders rings and trees
// run through them.
//
// A ring visits one domain after the other; a domain is a host or a rack, joined by NVLink or PCIe. It enters
// each domain by one NIC and leaves it by another, so one ring uses two NICs of a host. NCCL's search
// (src/graph/search.cc) therefore finds as many rings as keep all NICs busy, each with one or several
// channels.
//
// netsim does the same: with R NICs near the members of each domain there are R rings. Ring c enters the
// first domain by the member that is nearest to NIC c. It leaves the domain near that NIC's neighbour, c xor
// 1 (c + 1 mod R for odd R).
//
// It enters the next domain by that same NIC, so that the hop stays on its rail, and leaves it near NIC c.
// Then each NIC of each domain carries one ring in and one out. With an odd number of domains the last hop
// changes rails. On two DGX A100 ring 0 is the one that NCCL prints: 0 ... 1, 9 ... 8.
//
// Trees run along chains. Chain c begins in each domain near NIC c, so that traffic between domains stays on
// its rail.
//
// An NCCL graph file (nccl_graph.h) replaces these orders for groups with exactly its GPUs in each domain.
//
// Within a domain, rings and chains pass the other members in the order of the group. Where GPUs are joined
// by direct links, without a switch, rings and chains follow these links (link_orders.h). In a single domain
// of such GPUs there are as many rings as use the links best. Without direct links any order is as good as
// that of the group.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/execution/link_orders.h"
#include "sim/collectives/execution/nccl_graph.h"
#include "sim/core/index.h"
#include "sim/core/shared_lookup.h"
#include "sim/transport/endpoint.h"

namespace netsim {

// Largest number of rings of a group, and of channels on several rings. NCCL's search stops at the same
// number (MAXCHANNELS / 2, src/init.cc).
inline constexpr std::size_t kMaxRings = 32;

struct CommunicatorLayout {
  // Reach from the first member to the farthest one; Reach::scale_up for a group that NVLink joins.
  Reach farthest = Reach::scale_up;
  // Reach between neighbours in a domain; equal to `farthest` where each member has a domain of its own.
  Reach nearest = Reach::scale_up;
  std::uint32_t domains = 1;
  DomainSizes sizes;  // members of each domain, in the order of the chains
  // Rates of a member's links to the others of its domain, and of all NICs near the members of a domain. Both
  // are the least of all members or domains. 0: there are none, or the endpoint does not know.
  BitRate local_rate = 0, nic_rate = 0;
  BitRate rate_of_nic = 0;      // rate of a single NIC of the first member
  std::uint32_t nics_near = 0;  // number of NICs near the first member
  bool beside_cpu = false;      // GpuSite::beside_cpu of the first member
  bool direct_links = false;    // whether the GPUs of a host are joined by direct links
  // Whether switches join the members of each domain and can add and copy their messages.
  bool switches_reduce = false;
  bool by_domain = true;  // whether the members of a domain are consecutive in the group
  // Whether NVSwitches join the GPUs of the first member's host, in the group or not.
  bool nvswitches = false;
  // `aggregates`: switches of a fabric add up (Endpoint::aggregates()). `trees_join`: all domains have the
  // same number of consecutive members, and aggregation trees join the members with the same number in all
  // domains.
  bool aggregates = false, trees_join = false;
  std::string gpu_model;                // model of the first member; "": the endpoint does not know
  std::int64_t compute_capability = 0;  // GpuSite::compute_capability of the first member
  // Each ring lists all members' indices in the group, in the order of the ring. It is empty where the order
  // of the group is as good as any. That holds in a single domain without rings along links, and where each
  // member has its own domain.
  std::vector<std::vector<std::uint32_t>> rings;
  // Each ring twice in a row, and the position of each member in it. From that position on, the doubled ring
  // begins with that member.
  std::vector<std::vector<std::uint32_t>> rings_twice, ring_places;
  // The chains, in the same form; there are twice as many. Empty in a single domain without an NCCL graph
  // file.
  std::vector<std::vector<std::uint32_t>> chains;
  TreePattern trees = TreePattern::balanced;
  // Given: what an NCCL graph file gave for rings or trees. `channels` is 0 where the file has none for this
  // group.
  struct Given {
    std::uint32_t channels = 0;
    double bandwidth = 0;     // GB/s of all channels, as NCCL's cost model counts it
    double speed_inside = 0;  // GB/s of a channel within a domain
  };
  Given given_rings, given_trees;
  // Returns the order that `order` stands for in this group. RankOrder::domains becomes that of rings or of
  // the group.
  RankOrder order(RankOrder order, bool rooted) const {
    if (order != RankOrder::domains) return order;
    return domains > 1 && !rooted ? RankOrder::rings : RankOrder::group;
  }
  const Given& given(RankOrder order) const {
    static constexpr Given kNone;
    return order == RankOrder::rings ? given_rings : order == RankOrder::chains ? given_trees : kNone;
  }
};

// Returns the index in the group of rank `rank` in an order. An empty order maps each rank to the same index.
constexpr std::uint32_t place_of(std::span<const std::uint32_t> order, std::uint32_t rank) {
  return order.empty() ? rank : order[rank];
}
// Returns the rank of the member with index `place` in the group; the inverse of place_of().
std::uint32_t rank_at(std::span<const std::uint32_t> order, std::uint32_t place);

// ChannelOrders: the order of a plan's ranks on each channel of a group. As in NCCL, channels take the rings
// in turn. The first half of the channels takes the chains of the first tree.
class ChannelOrders {
 public:
  // All channels use the order of the group.
  ChannelOrders() = default;
  // Holds the orders of `channels` channels of a group from `first` on; channel 0 here is the group's channel
  // `first`. `layout` must outlive this. `root` is the member whose rank equals its index on all channels;
  // kNoIndex: none.
  ChannelOrders(const CommunicatorLayout& layout, RankOrder order, std::uint32_t channels,
                std::uint32_t first = 0, std::uint32_t root = kNoIndex);

  // Returns the number of orders that the channels use in turn.
  std::uint32_t count() const { return orders_.empty() ? 1 : static_cast<std::uint32_t>(orders_.size()); }

  // Returns the index in the group of each rank. Empty: rank r has index r.
  std::span<const std::uint32_t> of(std::uint32_t channel) const {
    if (orders_.empty()) return {};
    channel += first_;
    const std::uint32_t tree = channel < half_ ? 0 : 1;
    return order(tree * each_ + (channel - tree * half_) % each_);
  }

  // Returns the endpoint's number of a channel (TransferTraits::channel). Channels that may join the same two
  // members have consecutive numbers, so that they use different queue pairs.
  std::uint32_t number(std::uint32_t channel) const {
    channel += first_;
    if (orders_.empty()) return channel;
    const std::uint32_t tree = channel < half_ ? 0 : 1;
    const std::uint32_t in_tree = channel - tree * half_;
    return (in_tree % each_ * channels_each_ + in_tree / each_) * trees() + tree;
  }
  // Returns the difference of the numbers of consecutive channels of an order.
  std::uint32_t number_step() const { return trees(); }

  // Channels: the channels first, first + step, ...
  struct Channels {
    std::uint32_t first = 0, step = 1, count = 0;
    std::span<const std::uint32_t> order;
  };
  // Returns the sets of channels, among the first `channels`, that share an order.
  std::vector<Channels> sets(std::uint32_t channels) const;

 private:
  std::uint32_t trees() const { return half_ == kNoIndex ? 1 : 2; }
  std::span<const std::uint32_t> order(std::uint32_t number) const {
    if (rooted_ == nullptr) return orders_[number];
    const std::vector<std::uint32_t>& places = rooted_->ring_places[number];
    const auto ranks = static_cast<std::uint32_t>(places.size());
    const std::uint32_t ahead = (places[root_] + ranks - root_) % ranks;
    return std::span(rooted_->rings_twice[number]).subspan(ahead, ranks);
  }

  std::span<const std::vector<std::uint32_t>> orders_;
  std::uint32_t first_ = 0;
  std::uint32_t each_ = 1;           // number of orders of a tree, or of all rings
  std::uint32_t channels_each_ = 1;  // largest number of channels of an order
  std::uint32_t half_ = kNoIndex;    // first channel of the second tree
  const CommunicatorLayout* rooted_ = nullptr;
  std::uint32_t root_ = kNoIndex;
};

// Makes the layout of a group. `members` holds at least 2 GPUs in the order of the group. `orders` caches
// results for other groups, and `graph` may be null. Throws InputError where the graph leaves a host by a NIC
// that is not near.
CommunicatorLayout lay_out(const std::vector<std::uint32_t>& members, const Endpoint& endpoint,
                           LinkOrders& orders, const NcclGraph* graph = nullptr);

// Returns the rings and trees of the group's first domain as an NCCL graph. `inside` is the number of
// channels of a group in one host. Speeds are left 0.
NcclGraph graph_of(const std::vector<std::uint32_t>& members, const Endpoint& endpoint,
                   const CommunicatorLayout& layout, std::uint32_t inside);
// Returns the number of a GPU among the GPUs of its host.
std::uint32_t device_number(const Endpoint& endpoint, std::uint32_t gpu);

// LayoutCache: the layouts of the groups of a run, made at the first request. Any thread may call it; layouts
// live as long as the cache.
class LayoutCache {
 public:
  using Key = std::vector<std::uint32_t>;
  using Value = CommunicatorLayout;
  // `graph` may be null.
  LayoutCache(const Endpoint& endpoint, const NcclGraph* graph) : endpoint_(endpoint), graph_(graph) {}
  static const Key& key(const std::vector<std::uint32_t>& members) { return members; }
  const CommunicatorLayout& get(const std::vector<std::uint32_t>& members);

 private:
  const Endpoint& endpoint_;
  const NcclGraph* const graph_;
  std::mutex mutex_;
  LinkOrders orders_;
  std::map<Key, CommunicatorLayout> layouts_;
};

using LayoutLookup = SharedLookup<LayoutCache>;

}  // namespace netsim
