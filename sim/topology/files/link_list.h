// LinkList: a fabric as a list of its links, for topologies from lists and files.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/topology/ordered_routes.h"
#include "sim/topology/topology.h"

namespace netsim {

// One end of a link: a switch, or a host port.
struct LinkEnd {
  bool host = false;
  std::uint32_t index = 0;
  bool operator==(const LinkEnd&) const = default;
};

struct ListedLink {
  LinkEnd a, b;
  LinkSpec forward, backward;  // from a to b, and from b to a
  Place place;
};

struct LinkList {
  struct Switch {
    std::string name;
    int tier = 0;
    std::uint32_t router_of = kNoId;  // host port of the host that it is a part of; kNoId: none
  };
  std::vector<Switch> switches;
  std::vector<ListedLink> links;
  std::uint32_t host_ports = 0;
  std::vector<std::uint32_t> host_numbers;  // by host port: its number in the file; empty: 0, 1, ...

  // Returns the name of an end, "host7" with the number of the file.
  std::string name(LinkEnd end) const;
  // Returns host_numbers, or 0, 1, ... where it is empty.
  std::vector<std::uint32_t> numbers() const;
  // Returns why the list is invalid; "" for a valid one. In a valid list every host port has one link, which
  // leads to a switch, and a route joins any two host ports. `link` is set to the index of the first invalid
  // link, or to links.size() for the list as a whole.
  std::string problem(std::size_t& link) const;
  // Adds the switches and links of a valid list to the graph. Host ports from nics.size() on stay empty.
  // Returns the shortest routes in virtual channels (ordered_routes.h). `longest` is the number of links
  // between the switches farthest apart; 0: it is measured.
  std::unique_ptr<Routes> build(Graph& graph, std::span<const HostPort> nics,
                                const ChannelParameters& channels, std::uint32_t longest = 0) const;
};

}  // namespace netsim
