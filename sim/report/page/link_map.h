// LinkMap: the drawn topology with the use of its links, for the heat map of report.html.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/core/units.h"
#include "sim/report/canvas.h"
#include "sim/report/results.h"
#include "sim/topology/topology.h"

namespace netsim {

struct LinkMap {
  static constexpr std::size_t kMostLines = 2000;

  // Node: a switch, hosts that share a box, or the number of parts that are not drawn.
  struct Node {
    double x = 0, y = 0, width = 0;  // centre and width, pixels
    const char* kind = "switch";     // or "host" or "other"
    std::string name;
    std::string short_name = {};  // where `name` has no room; empty: what follows its last slash
    bool named_below = true;      // whether a name without room in the box is drawn below it
  };
  // Line: all links between two nodes, both directions together.
  struct Line {
    std::size_t from = 0, to = 0;  // indices of nodes
    std::uint64_t links = 0;
    double mean = 0, maximum = 0;  // utilisations of their directions
    Bytes longest_queue = 0;
    // The drawn paths: the whole line, or the two ends of one that has no free path. Without paths it is
    // straight between the centres, or in rows between the middles of the edges that face each other.
    std::vector<Path> paths;
  };
  std::vector<Node> nodes;
  std::vector<Line> lines;         // at most kMostLines, those with the largest maximum
  std::vector<std::string> notes;  // what is not drawn, whole sentences
};

// Returns the map of the links outside of hosts, and between routers of one host. Up to 64 switches of a tier
// have a box each; longer rows are folded as those of draw_cluster(). A topology that says where its switches
// are is drawn so, and one with a single tier of several switches as a cycle. No line passes a box that is
// not one of its ends.
LinkMap link_map(const Cluster& cluster, const Results& results);

}  // namespace netsim
