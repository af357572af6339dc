#include "sim/scheduling/near_gpus.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "sim/core/errors.h"
#include "sim/core/index.h"

namespace netsim {

// ---- Distances

RackDistances::RackDistances(const Cluster& cluster) {
  const std::uint32_t hosts = cluster.host_count;
  std::map<NodeId, std::uint32_t> vertices;  // of switches and NICs
  for (const HostPort& port : cluster.nics) vertices[port.nic] = port.host;
  auto count = hosts;
  for (const ClusterFabric& fabric : cluster.fabrics) {
    for (NodeId node = fabric.first_switch; !fabric.scale_up && node < fabric.end_switch; ++node)
      vertices[node] = count++;
  }
  neighbours_.resize(count);
  for (const auto& [node, vertex] : vertices) {
    for (const PortId port : cluster.graph.ports_of(node)) {
      const auto peer = vertices.find(cluster.graph.port(port).peer_node);
      if (peer != vertices.end() && peer->second != vertex) neighbours_[vertex].push_back(peer->second);
    }
  }
  for (std::vector<std::uint32_t>& list : neighbours_) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  find_racks(cluster);
  for (std::uint32_t rack = 0; rack < std::min(racks(), kMostCenters); ++rack) measure(cluster, rack);
}

// Hosts are in one rack if they are in one NVLink domain, or in none and have the same switches.
void RackDistances::find_racks(const Cluster& cluster) {
  const std::uint32_t hosts = cluster.host_count;
  std::vector<std::uint32_t> domain(hosts, kNoId);
  for (const Gpu& gpu : cluster.gpus) domain[gpu.host] = gpu.domain;
  std::map<std::pair<std::uint32_t, std::vector<std::uint32_t>>, std::uint32_t> numbers;
  for (std::uint32_t host = 0; host < hosts; ++host) {
    std::vector<std::uint32_t> around;
    if (domain[host] == kNoId) around = neighbours_[host];
    if (domain[host] == kNoId && (around.empty() || around.front() < hosts)) around.push_back(host);
    const auto [rack, added] = numbers.try_emplace({domain[host], std::move(around)}, racks());
    if (added) hosts_.emplace_back();
    hosts_[rack->second].push_back(host);
    rack_of_.push_back(rack->second);
  }
}

// Searches from all hosts of the rack at once. Packets pass through hosts only where no switch joins hosts.
void RackDistances::measure(const Cluster& cluster, std::uint32_t center) {
  const std::uint32_t hosts = cluster.host_count;
  const bool switches = neighbours_.size() > hosts;
  std::vector<std::uint16_t> links(neighbours_.size(), kFar);
  std::vector<std::uint32_t> queue = hosts_[center];
  for (const std::uint32_t host : queue) links[host] = 0;
  for (std::size_t i = 0; i < queue.size(); ++i) {
    const std::uint32_t from = queue[i];
    if (from < hosts && switches && links[from] > 0) continue;
    for (const std::uint32_t to : neighbours_[from]) {
      if (links[to] != kFar) continue;
      links[to] = static_cast<std::uint16_t>(links[from] + 1);
      queue.push_back(to);
    }
  }
  std::vector<std::uint16_t>& distances = distances_.emplace_back();
  for (const std::vector<std::uint32_t>& rack : hosts_) {
    std::uint16_t nearest = kFar;
    for (const std::uint32_t host : rack) nearest = std::min(nearest, links[host]);
    distances.push_back(nearest);
  }
  const std::uint32_t first = hosts_[center].front();
  const auto inside = std::find_if(cluster.gpus.begin(), cluster.gpus.end(),
                                   [&](const Gpu& gpu) { return gpu.host == first; });
  const bool nvlink = inside != cluster.gpus.end() && inside->domain != kNoId;
  distances[center] = hosts_[center].size() == 1 ? 0 : nvlink ? 1 : 2;
}

std::vector<std::vector<std::uint32_t>> RackDistances::joined(std::uint16_t radius) const {
  std::vector<std::vector<std::uint32_t>> blocks;
  std::vector<bool> seen(racks(), false);
  for (std::uint32_t first = 0; first < racks(); ++first) {
    if (seen[first]) continue;
    seen[first] = true;
    std::vector<std::uint32_t> queue{first}, inside;
    for (std::size_t i = 0; i < queue.size(); ++i) {
      inside.insert(inside.end(), hosts_[queue[i]].begin(), hosts_[queue[i]].end());
      for (std::uint32_t next = 0; is_center(queue[i]) && next < racks(); ++next) {
        if (seen[next] || distances_[queue[i]][next] > radius) continue;
        seen[next] = true;
        queue.push_back(next);
      }
    }
    blocks.push_back(std::move(inside));
  }
  return blocks;
}

// ---- Choice

std::vector<GpuId> free_gpus_without_drives(const PlacementView& view, const Place& where) {
  std::vector<bool> taken = view.taken;
  for (GpuId gpu = 0; gpu < taken.size(); ++gpu) taken[gpu] = taken[gpu] || view.cluster.is_drives(gpu);
  return enough_gpus({view.cluster, taken, view.ranks, view.axes, view.job, view.seed}, where);
}

NearGpus::NearGpus(const Cluster& cluster, const std::vector<GpuId>& free)
    : distances_(cluster), free_(cluster.host_count), free_in_(distances_.racks(), 0) {
  for (const std::uint32_t gpu : free) {
    free_[cluster.gpus[gpu].host].push_back(gpu);
    ++free_in_[distances_.rack_of(cluster.gpus[gpu].host)];
  }
}

std::vector<GpuId> NearGpus::choose(std::uint32_t count) {
  Racks all(distances_.racks());
  std::iota(all.begin(), all.end(), 0U);
  NETSIM_CHECK(free_in(all) >= count, "there are fewer free GPUs than are to be chosen");
  chosen_.clear();
  take_from(std::move(all), count);
  return chosen_;
}

std::uint32_t NearGpus::free_in(const Racks& racks) const {
  std::uint32_t free = 0;
  for (const std::uint32_t rack : racks) free += free_in_[rack];
  return free;
}

std::vector<std::uint32_t> NearGpus::hosts_of(const Racks& racks) const {
  std::vector<std::uint32_t> hosts;
  for (const std::uint32_t rack : racks)
    hosts.insert(hosts.end(), distances_.hosts(rack).begin(), distances_.hosts(rack).end());
  std::sort(hosts.begin(), hosts.end());
  return hosts;
}

// Returns the blocks around a center, from small to large.
std::vector<NearGpus::Block> NearGpus::blocks_of(const Racks& racks, std::uint32_t center) const {
  const std::vector<std::uint16_t>& distance = distances_.from(center);
  std::map<std::uint16_t, std::uint32_t> free;
  for (const std::uint32_t rack : racks) {
    if (distance[rack] != RackDistances::kFar) free[distance[rack]] += free_in_[rack];
  }
  std::vector<Block> blocks;
  std::uint32_t sum = 0;
  for (const auto& [radius, more] : free) blocks.push_back({radius, sum += more, center});
  return blocks;
}

std::vector<NearGpus::Block> NearGpus::all_blocks(const Racks& racks) const {
  std::vector<Block> all;
  for (const std::uint32_t rack : racks) {
    if (!distances_.is_center(rack)) continue;
    const std::vector<Block> blocks = blocks_of(racks, rack);
    all.insert(all.end(), blocks.begin(), blocks.end());
  }
  return all;
}

// Returns the block with the least radius, and of these with the fewest free GPUs, or null.
const NearGpus::Block* NearGpus::smallest(const std::vector<Block>& blocks, std::uint32_t count) const {
  const Block* best = nullptr;
  for (const Block& block : blocks) {
    if (block.free < count) continue;
    if (best == nullptr || std::pair(block.radius, block.free) < std::pair(best->radius, best->free))
      best = &block;
  }
  return best;
}

NearGpus::Racks NearGpus::members(const Racks& racks, const Block& block) const {
  Racks inside;
  for (const std::uint32_t rack : racks) {
    if (distances_.from(block.center)[rack] <= block.radius) inside.push_back(rack);
  }
  return inside;
}

// Takes from the smallest block that has enough. Where it has smaller blocks, it is filled by whole ones, and
// the rest is chosen in the same way among those that are left.
void NearGpus::take_from(Racks racks, std::uint32_t count) {
  while (count > 0 && !take_on_one_host(racks, count)) {
    const std::vector<Block> blocks = all_blocks(racks);
    const Block* block = smallest(blocks, count);
    const Block* part = nullptr;
    for (const Block& next : blocks) {
      const bool smaller = block != nullptr && next.radius < block->radius && next.free > 0;
      if (!smaller || distances_.from(block->center)[next.center] > block->radius) continue;
      if (part == nullptr || next.free > part->free) part = &next;
    }
    if (part == nullptr)
      return take_on_hosts(hosts_of(block == nullptr ? racks : members(racks, *block)), count);
    const Racks whole = members(racks, *part);
    const std::uint32_t taken = free_in(whole);
    racks = members(racks, *block);
    take_from(whole, taken);
    count -= taken;
    std::erase_if(racks, [&](std::uint32_t rack) {
      return std::find(whole.begin(), whole.end(), rack) != whole.end();
    });
  }
}

// Takes all from the host with the fewest free GPUs that has enough. Returns false if there is none.
bool NearGpus::take_on_one_host(const Racks& racks, std::uint32_t count) {
  std::uint32_t best = kNoIndex;
  for (const std::uint32_t host : hosts_of(racks)) {
    if (free_[host].size() < count) continue;
    if (best == kNoIndex || free_[host].size() < free_[best].size()) best = host;
  }
  if (best == kNoIndex) return false;
  take(best, count);
  return true;
}

// Takes whole hosts, those with the most free GPUs first, and the rest from the fullest host that has enough.
void NearGpus::take_on_hosts(std::vector<std::uint32_t> hosts, std::uint32_t count) {
  std::stable_sort(hosts.begin(), hosts.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return free_[a].size() > free_[b].size(); });
  for (std::size_t i = 0; i < hosts.size() && count > 0; ++i) {
    const auto free = static_cast<std::uint32_t>(free_[hosts[i]].size());
    if (free < count) {
      take(hosts[i], free);
      count -= free;
      continue;
    }
    std::size_t last = i;
    while (last + 1 < hosts.size() && free_[hosts[last + 1]].size() >= count) ++last;
    while (last > i && free_[hosts[last - 1]].size() == free_[hosts[last]].size()) --last;
    return take(hosts[last], count);
  }
}

void NearGpus::take(std::uint32_t host, std::uint32_t count) {
  std::vector<GpuId>& free = free_[host];
  chosen_.insert(chosen_.end(), free.begin(), free.begin() + count);
  free.erase(free.begin(), free.begin() + count);
  free_in_[distances_.rack_of(host)] -= count;
}

}  // namespace netsim
