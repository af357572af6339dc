// Placement: which GPU each rank of a job runs on. A component kind; a job says which one in its `placement`,
// the configuration's section `placement` says it for jobs that do not.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/parameters.h"
#include "sim/topology/topology.h"

namespace netsim {

// What a placement may look at. All of it belongs to the caller.
struct PlacementView {
  const Cluster& cluster;
  // By GPU: taken by a job that does not share it with this one.
  const std::vector<bool>& taken;
  std::uint32_t ranks = 0;
  // The grid that the ranks are numbered by, first axis fastest; empty: a plain list.
  std::vector<std::pair<std::string, std::uint32_t>> axes;
  std::string job;         // its name, by which random draws are made
  std::uint64_t seed = 1;  // of the run
};

class Placement {
 public:
  static constexpr const char* kComponentKind = "placement";
  explicit Placement(bool shares) : shares_(shares) {}
  virtual ~Placement() = default;
  // Whether its GPUs may be those of other jobs: each computes at an equal part of the GPU's rate then.
  bool shares() const { return shares_; }
  // GPUs by rank, each at most once and none that is taken. ConfigError where the ranks do not fit.
  virtual std::vector<std::uint32_t> place(const PlacementView& view) const = 0;

 private:
  bool shares_;
};

// What the parameters of every placement begin with.
struct PlacementParameters {
  bool share = false;
};
template <class P>
Parameters<P> placement_parameters() {
  return Parameters<P>().flag("share", &P::share,
                              "its GPUs may be those of other jobs, which then compute at an equal part of "
                              "the GPU's rate each");
}

// The GPUs that are not taken, in order.
std::vector<std::uint32_t> free_gpus(const PlacementView& view);
// The same if they are enough for all ranks; ConfigError at `where` if not.
std::vector<std::uint32_t> enough_gpus(const PlacementView& view, const Place& where);

// The GPUs of a job's ranks. `shared`: its placement lets others use them too.
struct PlacedRanks {
  std::vector<std::uint32_t> gpus;
  bool shared = false;
};
// By the placement that `node` names (null: packed). `view.taken`: GPUs that a job has for itself; `shared`:
// by GPU, those that some jobs have together, which only a placement that shares may take too. ConfigError.
PlacedRanks place_ranks(const ConfigNode& node, const PlacementView& view, const std::vector<bool>& shared);

}  // namespace netsim
