// Placement: selects the GPU of each rank of a job. It is a component kind. A job names one in its
// `placement`; for other jobs the configuration's section `placement` does.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/ids.h"
#include "sim/core/parameters.h"
#include "sim/topology/topology.h"

namespace netsim {

// PlacementView: the information that a placement may use. All of it belongs to the caller.
struct PlacementView {
  const Cluster& cluster;
  // By GPU: taken by a job that does not share it with this job.
  const std::vector<bool>& taken;
  std::uint32_t ranks = 0;
  // Axes of the grid by which the ranks are numbered, the first axis fastest; empty: a plain list.
  std::vector<std::pair<std::string, std::uint32_t>> axes;
  std::string job;         // name of the job, which seeds random draws
  std::uint64_t seed = 1;  // seed of the run
};

class Placement {
 public:
  static constexpr const char* kComponentKind = "placement";
  explicit Placement(bool shares) : shares_(shares) {}
  virtual ~Placement() = default;
  // Returns whether the job may share its GPUs with other jobs. Each then computes at an equal part of the
  // GPU's rate.
  bool shares() const { return shares_; }
  // Returns the GPU of each rank, all different and none of them taken. Throws ConfigError if the ranks do
  // not fit.
  virtual std::vector<GpuId> place(const PlacementView& view) const = 0;
  // Returns the GPUs that stay idle while the job holds `gpus`, so that no other job gets them.
  virtual std::vector<GpuId> kept_idle(const PlacementView& /*view*/,
                                       const std::vector<GpuId>& /*gpus*/) const {
    return {};
  }

 private:
  bool shares_;
};

// PlacementParameters: the parameters that every placement has first.
struct PlacementParameters {
  bool share = false;
};
template <class P>
Parameters<P> placement_parameters() {
  return Parameters<P>().flag("share", &P::share,
                              "its GPUs may be those of other jobs, which then compute at an equal part of "
                              "the GPU's rate each");
}

// Returns the GPUs that are not taken, in order.
std::vector<GpuId> free_gpus(const PlacementView& view);
// Returns free_gpus(). Throws ConfigError at `where` if there are fewer than ranks.
std::vector<GpuId> enough_gpus(const PlacementView& view, const Place& where);

// Returns the number that a rank of the view's grid has if the axes are counted in `order`, the first one
// fastest. `order` names each axis once, by its index.
std::uint32_t number_in_order(const PlacementView& view, const std::vector<std::size_t>& order, RankId rank);

// PlacedRanks: the GPU of each rank of a job. `shared` means that other jobs may use them too.
struct PlacedRanks {
  std::vector<GpuId> gpus;
  bool shared = false;
  std::vector<GpuId> idle;  // Placement::kept_idle()
};
// Places the ranks by the placement that `node` names (null: packed). `view.taken` marks the GPUs that one
// job has for itself, and `shared` those that jobs share. Only a placement that shares may use shared GPUs.
// Throws ConfigError.
PlacedRanks place_ranks(const ConfigNode& node, const PlacementView& view, const std::vector<bool>& shared);

}  // namespace netsim
