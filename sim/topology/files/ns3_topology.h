// topology.txt of the HPCC family of ns-3 simulators (HPCC's third.cc and what was made of it): the numbers
// of nodes, switches and links; the switches' node numbers; then `node node rate delay error_rate` for each
// link. Nodes that are no switches are hosts.
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
    double error_rate = 0;  // part of the packets that are lost, each way
    Place place;
  };
  std::uint32_t nodes = 0;
  std::vector<std::uint32_t> switches, hosts;  // node numbers; hosts ascending
  std::vector<Link> links;

  // Host ports are in the order of the hosts' node numbers; nodes are called "host5" and "node7" by their
  // numbers.
  LinkEnd end(std::uint32_t node) const;
  LinkList list(LinkKind kind, Bytes overhead) const;
};

// InputError for what is wrong with the text.
Ns3Topology parse_ns3_topology(std::string_view text, const std::string& path);

}  // namespace netsim
