// NearGpus: chooses free GPUs that are near to each other in the fabric, for placements. Private to
// sim/scheduling.
//
// The distance of two hosts is the number of links between them. It is 1 where NVLink joins them, 2 below one
// switch, and 4 in one pod of a fat tree. Hosts with the same switches, or in one NVLink domain, are a rack.
// A block is all racks up to some distance from one of them; in a tree that is a subtree.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/core/errors.h"
#include "sim/scheduling/placement.h"
#include "sim/topology/topology.h"

namespace netsim {

// RackDistances: the racks of a cluster and the distances between them.
class RackDistances {
 public:
  static constexpr std::uint16_t kFar = UINT16_MAX;  // no links join the two
  // Only so many racks are centers of blocks. The memory for distances stays below 150 MB then.
  static constexpr std::size_t kMostCenters = 1024;

  explicit RackDistances(const Cluster& cluster);

  // Returns the racks that chains of distances up to `radius` join, as a list of hosts for each such block.
  std::vector<std::vector<std::uint32_t>> joined(std::uint16_t radius) const;
  std::size_t racks() const { return hosts_.size(); }
  // Returns the hosts of a rack, ascending.
  const std::vector<std::uint32_t>& hosts(std::uint32_t rack) const { return hosts_[rack]; }
  std::uint32_t rack_of(std::uint32_t host) const { return rack_of_[host]; }
  bool is_center(std::uint32_t rack) const { return rack < distances_.size(); }
  // Returns the distances from a center to all racks, by rack. That to itself is the distance of its hosts, 0
  // if there is only one.
  const std::vector<std::uint16_t>& from(std::uint32_t center) const { return distances_[center]; }

 private:
  void find_racks(const Cluster& cluster);
  void measure(const Cluster& cluster, std::uint32_t center);

  // By vertex: its neighbours. The vertices are the hosts, followed by the switches of packet fabrics.
  std::vector<std::vector<std::uint32_t>> neighbours_;
  std::vector<std::vector<std::uint32_t>> hosts_;  // by rack
  std::vector<std::uint32_t> rack_of_;             // by host
  std::vector<std::vector<std::uint16_t>> distances_;
};

// Returns the GPUs that are free for a placement, without drives. Throws ConfigError at `where` if there are
// fewer than ranks.
std::vector<GpuId> free_gpus_without_drives(const PlacementView& view, const Place& where);

// NearGpus: chooses among the free GPUs of a cluster for one job.
class NearGpus {
 public:
  // `free` are the GPUs to choose from, ascending.
  NearGpus(const Cluster& cluster, const std::vector<GpuId>& free);
  // Returns `count` of the free GPUs, which must be so many. They fill the smallest block that has enough,
  // and of equal ones the fullest. Within it whole smaller blocks come first, the largest before the others.
  std::vector<GpuId> choose(std::uint32_t count);

 private:
  // Block: the racks up to a distance from a center, and the free GPUs there.
  struct Block {
    std::uint16_t radius = 0;
    std::uint32_t free = 0, center = 0;
  };
  using Racks = std::vector<std::uint32_t>;

  std::vector<Block> blocks_of(const Racks& racks, std::uint32_t center) const;
  const Block* smallest(const std::vector<Block>& blocks, std::uint32_t count) const;
  Racks members(const Racks& racks, const Block& block) const;
  std::vector<Block> all_blocks(const Racks& racks) const;
  std::vector<std::uint32_t> hosts_of(const Racks& racks) const;
  std::uint32_t free_in(const Racks& racks) const;
  bool take_on_one_host(const Racks& racks, std::uint32_t count);
  void take_on_hosts(std::vector<std::uint32_t> hosts, std::uint32_t count);
  void take_from(Racks racks, std::uint32_t count);
  void take(std::uint32_t host, std::uint32_t count);

  RackDistances distances_;
  std::vector<std::vector<GpuId>> free_;  // by host: free GPUs that are not chosen
  std::vector<std::uint32_t> free_in_;    // by rack: number of these
  std::vector<GpuId> chosen_;
};

}  // namespace netsim
