// The placement `whole_blocks` gives a job whole hosts, racks or pods, which no other job uses meanwhile.
// GPUs of them that the job does not need stay idle. The blocks are near to each other, as with
// `topology_aware`.
#include <fmt/format.h>
#include <algorithm>
#include <string>

#include "sim/core/errors.h"
#include "sim/core/registry.h"
#include "sim/scheduling/near_gpus.h"
#include "sim/scheduling/placement.h"

namespace netsim {
namespace {

// BlockSize: the distance of hosts within a block (RackDistances).
enum class BlockSize : std::uint8_t { host = 0, rack = 2, pod = 4 };

struct WholeBlocksParameters {
  BlockSize block = BlockSize::host;
};

class WholeBlocks final : public Placement {
 public:
  WholeBlocks(const WholeBlocksParameters& p, Place where)
      : Placement(false), size_(p.block), where_(std::move(where)) {}

  std::vector<GpuId> place(const PlacementView& view) const override {
    const std::vector<GpuId> all = free_gpus_without_drives(view, where_);
    const std::vector<std::uint32_t> block = blocks_of(view.cluster);
    std::vector<bool> used(view.cluster.host_count, false);  // by block
    for (GpuId gpu = 0; gpu < view.taken.size(); ++gpu) {
      if (view.taken[gpu] && !view.cluster.is_drives(gpu)) used[block[view.cluster.gpus[gpu].host]] = true;
    }
    std::vector<GpuId> free;
    for (const GpuId gpu : all) {
      if (!used[block[view.cluster.gpus[gpu].host]]) free.push_back(gpu);
    }
    if (free.size() < view.ranks) {
      throw ConfigError(where_,
                        fmt::format("job '{}' has {} ranks, but only {} GPUs are in whole {}s that no "
                                    "other job uses",
                                    view.job, view.ranks, free.size(), name()));
    }
    return NearGpus(view.cluster, free).choose(view.ranks);
  }

  std::vector<GpuId> kept_idle(const PlacementView& view, const std::vector<GpuId>& gpus) const override {
    const std::vector<std::uint32_t> block = blocks_of(view.cluster);
    std::vector<bool> held(view.cluster.host_count, false), busy = view.taken;
    for (const GpuId gpu : gpus) held[block[view.cluster.gpus[gpu].host]] = busy[gpu] = true;
    std::vector<GpuId> idle;
    for (GpuId gpu = 0; gpu < busy.size(); ++gpu) {
      if (!busy[gpu] && held[block[view.cluster.gpus[gpu].host]] && !view.cluster.is_drives(gpu))
        idle.push_back(gpu);
    }
    return idle;
  }

 private:
  // Returns, by host, the number of its block.
  std::vector<std::uint32_t> blocks_of(const Cluster& cluster) const {
    std::vector<std::uint32_t> block(cluster.host_count);
    if (size_ == BlockSize::host) {
      for (std::uint32_t host = 0; host < cluster.host_count; ++host) block[host] = host;
      return block;
    }
    const auto blocks = RackDistances(cluster).joined(static_cast<std::uint16_t>(size_));
    for (std::uint32_t number = 0; number < blocks.size(); ++number) {
      for (const std::uint32_t host : blocks[number]) block[host] = number;
    }
    return block;
  }

  const char* name() const {
    return size_ == BlockSize::host ? "host" : size_ == BlockSize::rack ? "rack" : "pod";
  }

  BlockSize size_;
  Place where_;
};

const Registration<Placement> kWholeBlocks{
    "whole_blocks", "whole hosts, racks or pods, which the job shares with no other one",
    Parameters<WholeBlocksParameters>().choice(
        "block", &WholeBlocksParameters::block,
        {{"host", BlockSize::host}, {"rack", BlockSize::rack}, {"pod", BlockSize::pod}},
        "what a job gets whole: a `host`; a `rack`, which is all hosts with the same switches (a rail group) "
        "or in one NVLink domain; or a `pod`, all hosts with at most four links between them"),
    [](const WholeBlocksParameters& p, const ConfigNode& where) {
      return std::make_unique<WholeBlocks>(p, where.place());
    }};

}  // namespace
}  // namespace netsim
