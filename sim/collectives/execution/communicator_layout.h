// CommunicatorLayout: where the members of a group are, what joins them, and in which orders rings and trees
// run through them.
//
// A ring that visits one domain (what NVLink or PCIe joins: a host, a rack) after the other enters each by
// one NIC and leaves it by another. One ring uses two of the NICs of a host; NCCL's search
// (src/graph/search.cc) therefore finds as many as keep all NICs busy, each a channel or several. So does
// this: with R NICs near the members of each domain there are R rings. Ring c enters the first domain by the
// member that is nearest to NIC c. It leaves it near that NIC's neighbour, c xor 1 (c + 1 mod R for odd R).
// It enters the next domain by that same NIC, so that the hop stays on its rail, and leaves it near NIC c.
// Then each NIC of each domain carries one ring in and one out. With an odd number of domains the last hop
// changes rails. On two DGX A100 ring 0 is the one that NCCL prints: 0 ... 1, 9 ... 8.
//
// Trees run along chains: chain c begins in each domain near NIC c, so that what goes between domains stays
// on its rail.
//
// A graph of NCCL's (nccl_graph.h) says these orders instead, for groups with exactly its GPUs in each
// domain.
//
// Within a domain rings and chains pass the others in the order of the group, or where GPUs are joined by
// links of their own, without a switch, along these links (link_orders.h). In a single domain of such GPUs
// there are as many rings as use the links best; without such links the order of the group is as good as any.
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

// The most rings of a group, and channels on several rings: what NCCL's search stops at (MAXCHANNELS / 2,
// src/init.cc).
inline constexpr std::size_t kMaxRings = 32;

struct CommunicatorLayout {
  // Of a member from the first one; Reach::scale_up for a group that NVLink joins.
  Reach farthest = Reach::scale_up;
  // Of neighbours in a domain; farthest where each member has a domain of its own.
  Reach nearest = Reach::scale_up;
  std::uint32_t domains = 1;
  DomainSizes sizes;  // in the order of chains
  // Of a member's links to the others of its domain, and of the NICs near the members of a domain, all
  // together; the least there is. 0: none, or the endpoint does not say.
  BitRate local_rate = 0, nic_rate = 0;
  BitRate rate_of_nic = 0;      // of a single one of the first member
  std::uint32_t nics_near = 0;  // to the first member
  bool beside_cpu = false;      // GpuSite's, of the first member
  bool direct_links = false;    // GPUs of a host are joined by links of their own
  // Switches join the members of each domain and add up and copy what they send.
  bool switches_reduce = false;
  bool by_domain = true;  // the members of a domain follow each other in the group
  // Switches of NVLinks join the GPUs of the first member's host, in the group or not.
  bool nvswitches = false;
  // Switches of a fabric add up (Endpoint::aggregates()), and aggregation trees join the members of the same
  // number in all domains, which have as many of them and follow each other.
  bool aggregates = false, trees_join = false;
  std::string gpu_model;                // of the first member; "": the endpoint does not say
  std::int64_t compute_capability = 0;  // GpuSite's, of the first member
  // Each the places of all members in the group, in the order of the ring. Empty: the order of the group is
  // as good as any, in a single domain without rings along links, or with a member a domain.
  std::vector<std::vector<std::uint32_t>> rings;
  // Each ring twice over, and where each place is in it: from there on a ring is one that begins with any
  // member.
  std::vector<std::vector<std::uint32_t>> rings_twice, ring_places;
  // The same in the order of the chains, twice as many; empty in a single domain without a graph of NCCL's.
  std::vector<std::vector<std::uint32_t>> chains;
  TreePattern trees = TreePattern::balanced;
  // What a graph of NCCL's said of rings, or trees; no channels: there was none for this group.
  struct Given {
    std::uint32_t channels = 0;
    double bandwidth = 0;     // GB/s of all, as NCCL's cost model counts it
    double speed_inside = 0;  // GB/s of a channel within a domain
  };
  Given given_rings, given_trees;
  // What `order` comes to here: of RankOrder::domains that of rings or of the group.
  RankOrder order(RankOrder order, bool rooted) const {
    if (order != RankOrder::domains) return order;
    return domains > 1 && !rooted ? RankOrder::rings : RankOrder::group;
  }
  const Given& given(RankOrder order) const {
    static constexpr Given kNone;
    return order == RankOrder::rings ? given_rings : order == RankOrder::chains ? given_trees : kNone;
  }
};

// The place in the group of rank `rank` in an order of places; in an empty one the same.
constexpr std::uint32_t place_of(std::span<const std::uint32_t> order, std::uint32_t rank) {
  return order.empty() ? rank : order[rank];
}
// The other way round.
std::uint32_t rank_at(std::span<const std::uint32_t> order, std::uint32_t place);

// In which order the ranks of a plan are on each channel of a group. As in NCCL a channel takes one ring
// after the other, and the first half of the channels the chains of the first tree.
class ChannelOrders {
 public:
  // The order of the group on all.
  ChannelOrders() = default;
  // Of `channels` of a group those from `first` on: channel 0 here is the group's channel `first`. `layout`
  // lives as long. `root`: the member whose rank is its own place on all of them; kNoIndex: none is.
  ChannelOrders(const CommunicatorLayout& layout, RankOrder order, std::uint32_t channels,
                std::uint32_t first = 0, std::uint32_t root = kNoIndex);

  // Orders that the channels take in turns.
  std::uint32_t count() const { return orders_.empty() ? 1 : static_cast<std::uint32_t>(orders_.size()); }

  // Of rank r the place in the group at [r]; empty: place r.
  std::span<const std::uint32_t> of(std::uint32_t channel) const {
    if (orders_.empty()) return {};
    channel += first_;
    const std::uint32_t tree = channel < half_ ? 0 : 1;
    return order(tree * each_ + (channel - tree * half_) % each_);
  }

  // What the endpoint calls a channel (TransferTraits::channel): those that may join the same two members
  // follow each other, so that they are on different queue pairs.
  std::uint32_t number(std::uint32_t channel) const {
    channel += first_;
    if (orders_.empty()) return channel;
    const std::uint32_t tree = channel < half_ ? 0 : 1;
    const std::uint32_t in_tree = channel - tree * half_;
    return (in_tree % each_ * channels_each_ + in_tree / each_) * trees() + tree;
  }
  // From one channel of an order to the next.
  std::uint32_t number_step() const { return trees(); }

  // Channels first, first + step, ...
  struct Channels {
    std::uint32_t first = 0, step = 1, count = 0;
    std::span<const std::uint32_t> order;
  };
  // Those of the first `channels` that share an order.
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
  std::uint32_t each_ = 1;           // orders of a tree; all of rings
  std::uint32_t channels_each_ = 1;  // of an order, at the most
  std::uint32_t half_ = kNoIndex;    // the first channel of the second tree
  const CommunicatorLayout* rooted_ = nullptr;
  std::uint32_t root_ = kNoIndex;
};

// `members`: GPUs, in the order of the group; 2 and more. `orders`: what has been found for other groups.
// `graph`: null for none. InputError where it leaves a host by a NIC that is not near.
CommunicatorLayout lay_out(const std::vector<std::uint32_t>& members, const Endpoint& endpoint,
                           LinkOrders& orders, const NcclGraph* graph = nullptr);

// Rings and trees of the group as a graph of NCCL's: what its first domain has of them. `inside`: channels of
// a group in one host. Speeds are left 0.
NcclGraph graph_of(const std::vector<std::uint32_t>& members, const Endpoint& endpoint,
                   const CommunicatorLayout& layout, std::uint32_t inside);
// The number of a GPU among those of its host.
std::uint32_t device_number(const Endpoint& endpoint, std::uint32_t gpu);

// Layouts of the groups of a run, made when they are first asked for. Any thread may ask; they live as long
// as the cache.
class LayoutCache {
 public:
  using Key = std::vector<std::uint32_t>;
  using Value = CommunicatorLayout;
  // `graph`: null for none.
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
