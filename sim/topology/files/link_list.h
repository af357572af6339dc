// LinkList: a fabric written down link by link, for topologies that come from lists and files.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/topology/ordered_routes.h"
#include "sim/topology/topology.h"

namespace netsim {

// A switch, or the host port of that number.
struct LinkEnd {
  bool host = false;
  std::uint32_t index = 0;
  bool operator==(const LinkEnd&) const = default;
};

struct ListedLink {
  LinkEnd a, b;
  LinkSpec forward, backward;  // a to b, b to a
  Place place;
};

struct LinkList {
  struct Switch {
    std::string name;
    int tier = 0;
    std::uint32_t router_of = kNoId;  // the host port whose host it is a part of
  };
  std::vector<Switch> switches;
  std::vector<ListedLink> links;
  std::uint32_t host_ports = 0;
  std::vector<std::uint32_t> host_numbers;  // by host port, what the file calls them; empty: 0, 1, ...

  // "host7" with the file's number.
  std::string name(LinkEnd end) const;
  // host_numbers, written out.
  std::vector<std::uint32_t> numbers() const;
  // The first link that cannot be (index in `links`; links.size(): the list as a whole) and why; "" where all
  // is well: every host port has one link, which leads to a switch; there is a way between any two host
  // ports.
  std::string problem(std::size_t& link) const;
  // For a list without a problem. Host ports beyond nics.size() stay empty. Routes are the shortest ways in
  // virtual channels (ordered_routes.h); `longest` of them: 0: it is looked for.
  std::unique_ptr<Routes> build(Graph& graph, std::span<const HostPort> nics,
                                const ChannelParameters& channels, std::uint32_t longest = 0) const;
};

}  // namespace netsim
