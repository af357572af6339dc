// Fabrics of any graph for tests: switches with a host each and links between them, as a `custom` topology.
#pragma once

#include <rapidcheck.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/topology/build.h"

namespace netsim {

struct SwitchLinks {
  std::uint32_t switches = 0;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> links;
};

// `more`: parameters of the topology, ", channels: 2".
inline std::string topology_of(const SwitchLinks& graph, const std::string& more = "") {
  std::string names, links;
  for (std::uint32_t i = 0; i < graph.switches; ++i) {
    names += (i == 0 ? "s" : ", s") + std::to_string(i);
    links +=
        (i == 0 ? "{from: host" : ", {from: host") + std::to_string(i) + ", to: s" + std::to_string(i) + "}";
  }
  for (const auto& [a, b] : graph.links)
    links += ", {from: s" + std::to_string(a) + ", to: s" + std::to_string(b) + "}";
  return "topology: {kind: custom, switches: [" + names + "], links: [" + links + "]" + more + "}\n";
}

// Mesh or torus; dimensions of two have one link in either.
inline SwitchLinks grid_of(const std::vector<std::uint32_t>& sizes, bool wrap) {
  SwitchLinks graph;
  graph.switches = 1;
  for (const std::uint32_t size : sizes) {
    const std::uint32_t step = graph.switches;
    SwitchLinks next;
    next.switches = step * size;
    for (std::uint32_t i = 0; i < size; ++i) {
      for (const auto& [a, b] : graph.links) next.links.emplace_back(a + i * step, b + i * step);
      if (i + 1 == size && (!wrap || size <= 2)) continue;
      for (std::uint32_t at = 0; at < step; ++at)
        next.links.emplace_back(at + i * step, at + (i + 1) % size * step);
    }
    graph = std::move(next);
  }
  return graph;
}
inline SwitchLinks ring_of(std::uint32_t size) { return grid_of({size}, true); }

// Generates a random tree with up to a number of further links.
inline rc::Gen<SwitchLinks> random_connected(std::uint32_t least, std::uint32_t most, int more) {
  return rc::gen::exec([=] {
    SwitchLinks graph;
    graph.switches = *rc::gen::inRange(least, most + 1);
    for (std::uint32_t i = 1; i < graph.switches; ++i)
      graph.links.emplace_back(i, *rc::gen::inRange<std::uint32_t>(0, i));
    const int links = *rc::gen::inRange(0, more + 1);
    for (int i = 0; i < links; ++i) {
      const auto a = *rc::gen::inRange<std::uint32_t>(0, graph.switches),
                 b = *rc::gen::inRange<std::uint32_t>(0, graph.switches);
      if (a != b) graph.links.emplace_back(a, b);
    }
    return graph;
  });
}

}  // namespace netsim
