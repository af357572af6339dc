// SwitchAggregations: packets that switches copy (multicast) or sum (reduction). An aggregation group is one
// such group of ports at a switch.
//
// All logical processes share the lists of groups, members and adders. Whoever creates a session adds its
// groups, one thread at a time. Afterwards only the logical process of the switch touches a group and the
// adder. Their addresses stay valid while the lists grow.
//
// Each member of a reduction sends equally many packets, with equal sizes. Packets with equal numbers are
// added up. The last of them to arrive goes on by its own path as their sum, and the sum waits in the switch
// until then. Packets arrive in order, except those that a link lost and sent again.
//
// The switch at the root of an all-reduce tree does both: it sends copies of the sum to all members. If only
// one member receives the sum, the others get copies without data. A single member's packet needs no sum and
// takes the same steps.
//
// A packet that is copied or summed releases its space in the port's buffer on arrival and waits in the
// switch. The reason is that a copy is a write, and an addend is the answer to a read.
//
// On NVLink these have separate virtual channels and cannot block each other; in one credit buffer they
// would. The buffer size of NVSwitches for this is not published, and not limited here.
//
// In an all-reduce tree a member has no more packets in flight than the tree's limit of open sums
// (AggregationSessions). So a switch never holds more packets of a child.
//
// A group may have a pool of slots (slot_pool.h) instead. Its packets may be lost and come again. A repeated
// packet of a complete sum is answered by the root to that child alone. A switch below the root repeats its
// sum upward instead.
//
// A best-effort group has aggregators instead, which it shares with all such groups of its switch
// (aggregator_table.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "sim/core/index.h"
#include "sim/core/reserved_array.h"
#include "sim/core/units.h"
#include "sim/network/aggregation/aggregation_counters.h"
#include "sim/network/aggregation/aggregator_table.h"
#include "sim/network/aggregation/key_table.h"
#include "sim/network/aggregation/slot_pool.h"
#include "sim/topology/graph.h"

namespace netsim {

class SwitchAggregations {
 public:
  // The port by which a copy leaves the switch, and the index in the paths of the step after it. `bare` is
  // the bytes of a copy without data; 0 means a whole copy.
  //
  // A bare copy tells a member that only sends that its packet is part of the sum, as acknowledgements on
  // SHARP's reliable connections do.
  struct Branch {
    PortId port = kNoId;
    std::uint32_t path = 0;
    std::uint32_t bare = 0;
  };
  // An aggregation group at one switch. `members` is the number of members whose packets are summed; 0 means
  // that nothing is summed. If `branches` is empty, the sum goes on by the path of its last packet. With a
  // pool branch i leads back to member i.
  //
  // `latency` is the time of summing. At most `open` sums wait for members; 0 means any number.
  struct At {
    std::uint32_t members = 0;
    std::vector<Branch> branches;
    Time latency = 0;
    std::uint32_t open = 0;
    std::uint32_t slots = 0;                                   // slots of its pool; 0: it has none
    std::shared_ptr<const SwitchProtocol> protocol = nullptr;  // makes the sums of its pool; null: a SlotPool
    KeyStore* store = nullptr;       // the key tables that trees of the switch share; null: none
    JobId job = 0;                   // of a tree with `store`
    std::uint32_t keys = 0;          // sum of the keys of all hosts below (aggregation_value)
    std::uint32_t adder = kNoIndex;  // the adder of its switch; kNoIndex: it passes packets on unchanged
    BitRate rate = 0;                // rate at which that adds this group's packets; 0: it takes no time
    // With a table the group is best-effort: the aggregators of its switch, which its session uses by
    // `indices`, and the workers below the switch. Without branches it adds up, with branches it frees.
    std::uint32_t table = kNoIndex;
    std::uint32_t session = 0;
    const AggregatorIndices* indices = nullptr;
    std::uint64_t workers = 0;
  };
  // The part of a switch that adds up, which all its groups share.
  struct Adder {
    NodeId node = kNoId;
    Time free_at = 0;
    AggregationCounters counters;
  };
  // A member of an aggregation group, as the events of its packets name it.
  struct Entry {
    std::uint32_t aggregation = 0, member = 0;
  };

  // add() and adder_of() must be called by one thread at a time; the caller holds a lock.

  // Adds an aggregation group. Returns the index of the entry of its member 0, which those of the others
  // follow. A group without members has one entry.
  std::uint32_t add(At at);

  Entry entry(std::uint32_t index) const { return entries_[index]; }
  const At& at(Entry entry) const { return aggregations_[entry.aggregation].at; }
  // Adds a packet of the member to an aggregation group that sums. With a pool `addend` is replaced as by
  // SwitchSums::add().
  SwitchSums::Arrival add_packet(Entry entry, Addend& addend);
  // Adds a packet of a best-effort group, which becomes what goes on (AggregatorTable::add).
  AggregatorTable::Outcome add_best_effort(const At& at, std::uint32_t psn, Bytes bytes, bool again,
                                           Contribution& packet);
  // Frees the aggregator of a packet whose result passes a switch of a best-effort group.
  void free_aggregator(const At& at, std::uint32_t psn) {
    tables_[at.table].free(at.indices->of(psn), {at.session, psn});
  }
  // Returns the key tables that trees of the switch share, making them at the first call with so many places.
  KeyStore& key_store_of(NodeId node, std::uint32_t front, std::uint32_t back);
  // By switch.
  const std::map<NodeId, KeyStore>& key_stores() const { return key_stores_; }
  // Returns the index of a switch's table of aggregators, making it at its first use.
  std::uint32_t table_of(NodeId node, std::uint32_t size);
  AggregatorTable& table(std::uint32_t index) { return tables_[index]; }
  const AggregatorTable& table(std::uint32_t index) const { return tables_[index]; }
  // By index, the switches with tables in order of first use.
  const std::vector<NodeId>& nodes_with_tables() const { return nodes_with_tables_; }
  // Returns the index of a switch's adder, making it at its first use. It adds one packet after the other.
  std::uint32_t adder_of(NodeId node);
  // Occupies the adder of a group with a packet of so many bytes that arrives now. Returns the time until it
  // is added.
  Time occupy(const At& at, Bytes bytes, Time now);
  // By index, in order of first use.
  std::span<const Adder> adders() const { return {adders_.data(), adders_.size()}; }

 private:
  struct AggregationGroup {
    At at;
    // Number of packets that have arrived for open sum n, at index n mod size. The size is a power of two.
    std::vector<std::uint32_t> arrivals;
    std::uint32_t first = 0;           // the oldest open sum
    std::unique_ptr<SwitchSums> pool;  // null: it has none
  };
  static bool completes(AggregationGroup& aggregation, std::uint32_t psn);
  static void make_room(AggregationGroup& aggregation);

  static constexpr std::size_t kMaxGroups = std::size_t{1} << 22, kMaxEntries = std::size_t{1} << 26;
  static constexpr std::size_t kMaxAdders = std::size_t{1} << 22;

  ReservedArray<AggregationGroup> aggregations_{kMaxGroups, Reserve::when_used};
  ReservedArray<Entry> entries_{kMaxEntries, Reserve::when_used};
  ReservedArray<Adder> adders_{kMaxAdders, Reserve::when_used};
  std::vector<std::uint32_t> adder_of_node_;  // kNoIndex: it has none
  std::deque<AggregatorTable> tables_;
  std::map<NodeId, KeyStore> key_stores_;
  std::vector<NodeId> nodes_with_tables_;
};

}  // namespace netsim
