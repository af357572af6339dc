// SpreadTimes: the least time of a message alone in the network where its packets may take different ways.
//
// A cut is a set of links of which every packet must cross one. It bounds the time from below by three parts.
// The first packet needs at least the shortest way to the cut.
//
// All packets cross the cut at no more than the sum of its rates. The last one needs at least the shortest
// way from the cut to its destination.
//
// The links at one distance from either end form a cut, and so does each link that all ways share. The
// largest of these bounds is the message's ideal time.
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

  // Returns the ideal time where switches route packets one by one. `way` is any way from GPU to GPU over the
  // fabric's switches. `routes` is a number that changes with the routes. The result is exact if the routes
  // leave one way only.
  Time over_routes(std::span<const PortId> way, const PacketTrain& train, std::uint64_t routes);
  // Returns the ideal time where packets may take any links of the fabric.
  Time anywhere(std::span<const PortId> way, const PacketTrain& train);
  // Returns the ideal time where packets may change from any of these ways to another wherever two meet. All
  // ways have the same ends.
  Time over_ways(std::span<const std::vector<PortId>> ways, const PacketTrain& train);

 private:
  // Times of the smallest and of the largest packet. The least time over several ways is a concave function
  // of the packet's size. So a size between the two takes at least the linear interpolation of their times.
  using TwoSizes = std::array<Time, 2>;
  struct LinkTimes {
    TwoSizes wire{}, passage{};
  };
  struct Cut {
    BitRate rate = 0, fastest = 0;  // sum over its links, and the fastest link
    Bytes overhead = 0;             // least overhead of a packet
    TwoSizes before{}, behind{};  // least time to the cut, and from the end of transmission on it to the end
    bool operator==(const Cut&) const = default;
  };
  // The part between the first and the last port that all ways share.
  struct Passage {
    TwoSizes time{};  // least time of one packet
    std::vector<Cut> cuts;
    bool one_way = false;
  };
  struct Link {
    PortId port;
    std::uint32_t from, to;  // numbers of nodes
  };
  struct Reached {
    std::uint32_t from_first = kNoId, to_last = kNoId;  // numbers of links
    TwoSizes before{}, behind{};
  };
  struct Known {
    Bytes largest = 0;             // largest packet in bytes
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
  bool is_switch(NodeId node) const { return netsim::is_switch(state_.graph, node); }
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
