#include "sim/import/ns3_paths.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace netsim {
namespace {

class PathSearch {
 public:
  PathSearch(const Ns3Topology& topology, Bytes payload) : topology_(topology), payload_(payload) {
    links_.resize(topology.nodes);
    is_host_.resize(topology.nodes);
    for (const std::uint32_t host : topology.hosts) is_host_[host] = true;
    for (const Ns3Topology::Link& link : topology.links) {
      links_[link.a].push_back({link.b, &link});
      links_[link.b].push_back({link.a, &link});
    }
    // The tool visits neighbours in the order of their nodes.
    for (auto& neighbours : links_) std::stable_sort(neighbours.begin(), neighbours.end(), by_node);
    for (const std::uint32_t host : topology.hosts) search(host);
  }
  const PathFigures& figures() const { return figures_; }

 private:
  struct Neighbour {
    std::uint32_t node;
    const Ns3Topology::Link* link;
  };
  static bool by_node(const Neighbour& a, const Neighbour& b) { return a.node < b.node; }
  struct Reached {
    bool yes = false;
    std::int64_t delay_ns = 0, transmission_ns = 0;
    BitRate rate = std::numeric_limits<BitRate>::max();
  };

  void search(std::uint32_t host) {
    std::vector<Reached> reached(topology_.nodes);
    std::vector<std::uint32_t> queue{host};
    reached[host].yes = true;
    for (std::size_t i = 0; i < queue.size(); ++i) {
      const Reached from = reached[queue[i]];
      for (const Neighbour& neighbour : links_[queue[i]]) {
        Reached& to = reached[neighbour.node];
        if (to.yes) continue;
        to = {true, from.delay_ns + neighbour.link->delay / kNanosecond,
              from.transmission_ns + payload_ * 8 * 1'000'000'000 / neighbour.link->rate,
              std::min(from.rate, neighbour.link->rate)};
        if (is_host_[neighbour.node]) {
          take(to);
        } else {
          queue.push_back(neighbour.node);  // hosts do not forward
        }
      }
    }
  }
  void take(const Reached& host) {
    const std::int64_t rtt = 2 * host.delay_ns + host.transmission_ns;
    const auto bdp = static_cast<Bytes>(static_cast<Int128>(rtt) * host.rate / 1'000'000'000 / 8);
    figures_.max_rtt_ns = std::max(figures_.max_rtt_ns, rtt);
    figures_.max_bdp = std::max(figures_.max_bdp, bdp);
    figures_.min_bdp = std::min(figures_.min_bdp, bdp);
  }

  const Ns3Topology& topology_;
  Bytes payload_;
  std::vector<std::vector<Neighbour>> links_;
  std::vector<bool> is_host_;
  PathFigures figures_;
};

}  // namespace

PathFigures path_figures(const Ns3Topology& topology, Bytes payload) {
  return PathSearch(topology, payload).figures();
}

}  // namespace netsim
