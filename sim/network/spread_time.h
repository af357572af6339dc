// SpreadTimes: the least time of a message alone in the network where its packets may take different ways.
//
// A cut is a set of links of which every packet has to cross one. It bounds the time from below by three
// parts. The first packet needs the shortest way to the cut. All packets cross it at no more than the sum of
// its rates. The last one has the shortest way from there before it. The links at one distance from either
// end are cuts, and so is each link that all ways share. The largest of these bounds is the message's ideal
// time.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "sim/network/ideal_time.h"
#include "sim/network/open_links.h"

namespace netsim {

class SpreadTimes {
 public:
  explicit SpreadTimes(const FabricState& state);

  // `way`: any way from GPU to GPU over switches of the fabric. Switches route the packets one by one, on the
  // routes that are the same as long as `routes` is. Exact where they leave one way only.
  Time over_routes(std::span<const PortId> way, const PacketTrain& train, std::uint64_t routes);
  // Returns the ideal time where packets may take any links of the fabric.
  Time anywhere(std::span<const PortId> way, const PacketTrain& train);
  // Packets may change from any of these ways to another one wherever two meet. All have the same ends.
  Time over_ways(std::span<const std::vector<PortId>> ways, const PacketTrain& train);

 private:
  // Times of the smallest and of the largest packet. The least time over several ways is a concave function
  // of the size. So a size between the two takes at least what the chord says.
  using TwoSizes = std::array<Time, 2>;
  struct LinkTimes {
    TwoSizes wire{}, passage{};
  };
  struct Cut {
    BitRate rate = 0, fastest = 0;  // all its links together, and the fastest one
    Bytes overhead = 0;             // least overhead of a packet
    TwoSizes before{}, behind{};    // least time to the cut, and from the end of a transmission on it
    bool operator==(const Cut&) const = default;
  };
  // The part of the ways that differs.
  struct Passage {
    TwoSizes time{};  // of one packet
    std::vector<Cut> cuts;
    bool one_way = false;
  };
  struct Link {
    PortId port;
    std::uint32_t from, to;  // numbers of nodes
  };
  struct Reached {
    std::uint32_t from_first = kNoId, to_last = kNoId;  // links
    TwoSizes before{}, behind{};
  };
  struct Known {
    Bytes largest = 0;             // packet
    std::vector<LinkTimes> links;  // by port
    std::uint64_t routes = 0;      // number of the routes that `passages` belong to
    std::map<std::pair<NodeId, NodeId>, Passage> passages, anywhere;  // by first switch and last NIC
    std::map<NodeId, std::vector<TwoSizes>> to_switch;                // from each switch, by its number
  };
  // Ports that all ways of a message share, before they part and after they have met.
  struct Shared {
    std::span<const PortId> before, behind;
  };

  Known& known(const PacketTrain& train);
  bool is_switch(NodeId node) const { return state_.graph.node(node).kind == NodeKind::fabric_switch; }
  BitRate rate(PortId port) const;
  Shared shared(std::span<const PortId> way) const;

  // Analyses the ways over `links_`.
  Passage passage(const Known& known, NodeId first, NodeId last, BitRate most);
  std::uint32_t number(NodeId node);
  void set_links(std::span<const PortId> ports);
  void spread(const Known& known, std::uint32_t first, std::uint32_t last);
  void add_cuts(const Known& known, Passage& passage, std::uint32_t length, bool from_first) const;
  void add_to(Cut& cut, PortId port, const LinkTimes& times, const TwoSizes& before,
              const TwoSizes& behind) const;

  Passage passage_anywhere(Known& known, NodeId first, NodeId last);
  const std::vector<TwoSizes>& times_to(Known& known, NodeId last_switch);
  TwoSizes least_from(Known& known, NodeId from, NodeId last);

  Time bound(const Known& known, const Shared& shared, const Passage& passage,
             const PacketTrain& train) const;

  const FabricState& state_;
  OpenLinks open_;
  bool by_links_;  // whether routes are followed link by link
  std::vector<Known> known_;
  std::vector<std::uint32_t> switch_number_;  // by node
  std::uint32_t switches_ = 0;
  // The links in question, their nodes, and numbers by node (kNoId: none).
  std::vector<Link> links_;
  std::vector<NodeId> nodes_;
  std::vector<Reached> reached_;
  std::vector<std::uint32_t> number_;
};

}  // namespace netsim
