#include "sim/scheduling/flow/host_ways.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "sim/core/errors.h"

namespace netsim {

// Search: collects the ways of one message.
class HostWays::Search {
 public:
  Search(const HostWays& all, GpuId source, GpuId destination, std::uint32_t lane)
      : cluster_(all.cluster_),
        rails_(all.rails_),
        source_(source),
        destination_(destination),
        lane_(lane),
        sources_(with_peers(source)),
        destinations_(with_peers(destination)) {
    add(WayKind::own, source, destination, cluster_.nic_ends(source, destination, lane));
  }

  // Adds the NICs of the GPUs that NVLink joins to the source. The source's own NIC is added where its own
  // way takes that of another GPU.
  void add_over_nvlink() {
    for (const bool same_rail : {true, false}) {
      for (const GpuId via : sources_) {
        const std::optional<Found> found = best_end(via, same_rail);
        if (found) add(via == source_ ? WayKind::own : WayKind::nvlink, via, found->at, found->ends);
      }
    }
  }

  void add_over_pcie() {
    const std::uint32_t count = cluster_.nic_choices(source_, destination_);
    for (std::uint32_t nic = 0; nic < count; ++nic) {
      const std::uint32_t lane = Cluster::lane_over(nic, lane_);
      const Cluster::NicEnds ends = cluster_.nic_ends(source_, destination_, lane);
      if (is_used(froms_, ends.from.nic) || !is_pcie(ends.from.ports)) continue;
      add(WayKind::pcie, source_, destination_, ends);
      ways_.back().lane = lane;
    }
  }

  std::vector<HostWay> finish() {
    std::map<PortId, BitRate> users;  // ways that pass each port of the source's host
    for (const std::vector<PortId>& ports : out_) {
      for (const PortId port : ports) ++users[port];
    }
    for (std::size_t i = 0; i < ways_.size(); ++i) {
      SplitWay& view = ways_[i].view;
      view.host_rate = narrowest(in_[i]);
      for (const PortId port : out_[i]) view.host_rate = std::min(view.host_rate, rate(port) / users[port]);
      const auto ends_there = std::count(tos_.begin(), tos_.end(), tos_[i]);
      view.nic_rate = std::min(cluster_.nic_rate(froms_[i]), cluster_.nic_rate(tos_[i]) / ends_there);
    }
    return std::move(ways_);
  }

 private:
  struct Found {
    GpuId at;
    Cluster::NicEnds ends;
  };

  // Returns the GPU and those of its host that NVLink joins to it, by their numbers, itself first.
  std::vector<GpuId> with_peers(GpuId gpu) const {
    std::vector<GpuId> gpus{gpu};
    const std::uint32_t first = gpu - cluster_.gpus[gpu].local;
    for (std::uint32_t peer = first; peer < first + cluster_.group_of(gpu).gpus; ++peer) {
      if (peer != gpu && cluster_.way(gpu, peer) == HostRouteKind::nvlink) gpus.emplace_back(peer);
    }
    return gpus;
  }

  // Returns where a share that leaves by the NIC of `via` arrives; nothing if that NIC is in use. With
  // `same_rail` only a free NIC of the same rail counts.
  std::optional<Found> best_end(GpuId via, bool same_rail) const {
    std::optional<Found> own;
    for (const GpuId at : destinations_) {
      if (cluster_.way(via, at) != HostRouteKind::packets) continue;
      const std::optional<Cluster::NicEnds> ends = ends_of(via, at);
      if (!ends || is_used(froms_, ends->from.nic)) continue;
      if (is_used(tos_, ends->to.nic)) {
        if (at == destination_) own = Found{at, *ends};
      } else if (!same_rail || rails_[ends->from.nic] == rails_[ends->to.nic]) {
        return Found{at, *ends};
      }
    }
    return same_rail ? std::nullopt : own;
  }

  // Returns nothing where no fabric joins NICs of the two GPUs.
  std::optional<Cluster::NicEnds> ends_of(GpuId via, GpuId at) const {
    try {
      return cluster_.nic_ends(via, at, lane_);
    } catch (const ConfigError&) {
      return std::nullopt;
    }
  }

  void add(WayKind kind, GpuId via, GpuId at, const Cluster::NicEnds& ends) {
    HostWay& way = ways_.emplace_back();
    way.view.kind = kind;
    way.view.via = via;
    way.at = at;
    froms_.push_back(ends.from.nic);
    tos_.push_back(ends.to.nic);
    std::vector<PortId>& out = out_.emplace_back(ends.from.ports);
    if (via != source_) append(out, cluster_.way_inside(source_, via));
    std::vector<PortId>& in = in_.emplace_back(ends.to.ports);
    if (at != destination_) append(in, cluster_.way_inside(at, destination_));
  }

  static void append(std::vector<PortId>& ports, const std::vector<PortId>& more) {
    ports.insert(ports.end(), more.begin(), more.end());
  }
  static bool is_used(const std::vector<NodeId>& nics, NodeId nic) {
    return std::find(nics.begin(), nics.end(), nic) != nics.end();
  }
  bool is_pcie(const std::vector<PortId>& ports) const {
    return !ports.empty() && std::all_of(ports.begin(), ports.end(), [this](PortId port) {
      return cluster_.graph.port(port).link.kind == LinkKind::pcie;
    });
  }
  BitRate rate(PortId port) const { return cluster_.graph.port(port).link.rate; }
  BitRate narrowest(const std::vector<PortId>& ports) const {
    BitRate least = std::numeric_limits<BitRate>::max();
    for (const PortId port : ports) least = std::min(least, rate(port));
    return least;
  }

  const Cluster& cluster_;
  const std::vector<std::uint32_t>& rails_;
  GpuId source_, destination_;
  std::uint32_t lane_;
  std::vector<GpuId> sources_, destinations_;
  // By way: the NICs at both ends of the fabric, and the ports inside the hosts before and behind it.
  std::vector<HostWay> ways_;
  std::vector<NodeId> froms_, tos_;
  std::vector<std::vector<PortId>> out_, in_;
};

HostWays::HostWays(const Cluster& cluster) : cluster_(cluster), rails_(cluster.graph.node_count(), kNoIndex) {
  for (const HostPort& port : cluster.nics) rails_[port.nic] = port.rail;
}

std::vector<HostWay> HostWays::between(GpuId source, GpuId destination, std::uint32_t lane,
                                       const SplitSettings& settings) const {
  Search search(*this, source, destination, lane);
  if (settings.nvlink) search.add_over_nvlink();
  if (settings.pcie) search.add_over_pcie();
  return search.finish();
}

}  // namespace netsim
