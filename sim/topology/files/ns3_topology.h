// topology.txt of the HPCC family of ns-3 simulators (HPCC's third.cc and its derivatives). It has the
// numbers of nodes, switches and links; then the switches' node numbers; then `node node rate delay
// error_rate` for each link. All nodes that are not switches are hosts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/errors.h"
#include "sim/topology/files/link_list.h"

namespace netsim {

struct Ns3Topology {
  struct Link {
    std::uint32_t a = 0, b = 0;  // node numbers
    BitRate rate = 0;
    Time delay = 0;
    double error_rate = 0;  // probability of losing a packet, each way
    Place place;
  };
  std::uint32_t nodes = 0;
  std::vector<std::uint32_t> switches, hosts;  // node numbers; the hosts in ascending order
  std::vector<Link> links;

  // Returns a node as the end of a link. Host ports are in the order of the hosts' node numbers. Names
  // contain the node numbers: "host5", "node7".
  LinkEnd end(std::uint32_t node) const;
  LinkList list(LinkKind kind, Bytes overhead) const;
};

// Parses the text. Throws an InputError for errors in it.
Ns3Topology parse_ns3_topology(std::string_view text, const std::string& path);

}  // namespace netsim
