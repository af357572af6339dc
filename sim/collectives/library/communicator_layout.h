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
// A library may replace these orders (CollectiveLibrary::adjust()), as NCCL does by a graph file.
//
// Within a domain, rings and chains pass the other members in the order of the group. Where GPUs are joined
// by direct links, without a switch, rings and chains follow these links (link_orders.h). In a single domain
// of such GPUs there are as many rings as use the links best. Without direct links any order is as good as
// that of the group.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/library/link_orders.h"
#include "sim/core/ids.h"
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
  // The chains, in the same form; there are twice as many. Empty in a single domain
  // unless the library gave some.
  std::vector<std::vector<std::uint32_t>> chains;
  TreePattern trees = TreePattern::balanced;
  // Given: what a library gave for rings or trees (CollectiveLibrary::adjust()). `channels` is 0 where it
  // gave none for this group.
  struct Given {
    std::uint32_t channels = 0;
    double bandwidth = 0;     // GB/s of all channels, as the library's cost model counts it
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

// Makes the layout of a group. `members` holds at least 2 GPUs in the order of the group. `orders` caches
// results for other groups.
CommunicatorLayout lay_out(const std::vector<GpuId>& members, const Endpoint& endpoint, LinkOrders& orders);
// Joins the chains of all domains to chains of the group. `of_domain` holds the chains of each domain, and
// `alike` says that all domains have as many members.
LinkOrders::Orders joined_chains(const std::vector<LinkOrders::Orders>& of_domain, bool alike);
// Sets `rings_twice` and `ring_places` by `rings`.
void index_rings(CommunicatorLayout& layout);

// LayoutCache: the layouts of the groups of a run, made at the first request. Any thread may call it; layouts
// live as long as the cache.
class LayoutCache {
 public:
  using Key = std::vector<GpuId>;
  using Value = CommunicatorLayout;
  // Adjust: CollectiveLibrary::adjust(); empty: layouts stay as they are found.
  using Adjust = std::function<void(const std::vector<GpuId>&, CommunicatorLayout&)>;
  LayoutCache(const Endpoint& endpoint, Adjust adjust) : endpoint_(endpoint), adjust_(std::move(adjust)) {}
  static const Key& key(const std::vector<GpuId>& members) { return members; }
  const CommunicatorLayout& get(const std::vector<GpuId>& members);

 private:
  const Endpoint& endpoint_;
  const Adjust adjust_;
  std::mutex mutex_;
  LinkOrders orders_;
  std::map<Key, CommunicatorLayout> layouts_;
};

using LayoutLookup = SharedLookup<LayoutCache>;

}  // namespace netsim
