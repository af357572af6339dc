// PipelinePlacement: which stage holds which part of the model. A route lists the stages that hold part 0, 1,
// 2, ... of the model, and each microbatch takes one route there and back. Looped placements go round the
// stages v times, V-shaped ones go to the last stage and back. Bidirectional ones have two routes, one from
// either end, with a copy of the model each.
//
// The parts that a stage holds are its chunks, numbered by their first appearance: route after route, part
// after part.
#pragma once

#include <cstdint>
#include <vector>

namespace netsim {

class PipelinePlacement {
 public:
  struct Spot {
    std::uint32_t stage = 0, chunk = 0;
    bool operator==(const Spot&) const = default;
  };
  struct Part {
    std::uint32_t route = 0, part = 0;
    bool operator==(const Part&) const = default;
  };

  // Makes part c p + s chunk c of stage s (Narayanan et al., SC'21).
  static PipelinePlacement looped(std::uint32_t stages, std::uint32_t chunks);
  // Makes part s and part 2p - 1 - s the chunks of stage s (Qi et al., "Pipeline Parallelism with
  // Controllable Memory", NeurIPS 2024).
  static PipelinePlacement v_shaped(std::uint32_t stages);
  // Gives stage s part s of the first copy and part p - 1 - s of the second (Li and Hoefler, "Chimera",
  // SC'21).
  static PipelinePlacement bidirectional(std::uint32_t stages);

  // Makes a placement from routes: routes[r][k] is the stage that holds part k on route r. All routes have
  // the same number of parts, and all stages are below `stages`.
  PipelinePlacement(std::uint32_t stages, std::vector<std::vector<std::uint32_t>> routes);

  std::uint32_t stages() const { return static_cast<std::uint32_t>(held_.size()); }
  std::uint32_t routes() const { return static_cast<std::uint32_t>(spots_.size()); }
  // Parts of a route.
  std::uint32_t parts() const { return static_cast<std::uint32_t>(spots_.front().size()); }
  std::uint32_t chunks(std::uint32_t stage) const { return static_cast<std::uint32_t>(held_[stage].size()); }
  const Spot& at(std::uint32_t route, std::uint32_t part) const { return spots_[route][part]; }
  const Part& held(std::uint32_t stage, std::uint32_t chunk) const { return held_[stage][chunk]; }
  bool first(std::uint32_t stage, std::uint32_t chunk) const { return held(stage, chunk).part == 0; }
  bool last(std::uint32_t stage, std::uint32_t chunk) const { return held(stage, chunk).part + 1 == parts(); }
  // Returns the stages that hold a part of the model on any route, ascending.
  std::vector<std::uint32_t> holders(std::uint32_t part) const;
  // Returns the route of a microbatch. Routes take equal shares of the microbatches: route 0 the first ones.
  std::uint32_t route_of(std::uint32_t microbatch, std::uint32_t microbatches) const {
    return microbatch / (microbatches / routes());
  }

 private:
  std::vector<std::vector<Spot>> spots_;  // by route and part
  std::vector<std::vector<Part>> held_;   // by stage and chunk
};

}  // namespace netsim
