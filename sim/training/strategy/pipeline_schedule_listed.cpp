// listed: a schedule that the user writes: the steps of each stage, and which stages hold the parts of the
// model. Like every schedule it is proved before it runs.
#include <memory>
#include <optional>
#include <sstream>
#include <utility>

#include "sim/core/registry.h"
#include "sim/training/strategy/pipeline_schedule.h"

namespace netsim {
namespace {

enum class Shape { looped, v_shaped, bidirectional };

struct ListedParameters {
  Shape placement = Shape::looped;
  ConfigNode routes;
  ConfigNode steps;
};

class Listed : public PipelineSchedule {
 public:
  explicit Listed(const ListedParameters& p) : placement_(p.placement) {
    if (!p.routes.is_null()) read_routes(p.routes);
    read_steps(p.steps);
  }

  std::string refusal(const PipelineShape& shape) const override {
    if (steps_.size() != shape.stages) {
      return "listed has steps for " + std::to_string(steps_.size()) + " stages, the pipeline has " +
             std::to_string(shape.stages);
    }
    for (const auto& route : routes_) {
      for (const std::uint32_t stage : route) {
        if (stage >= shape.stages)
          return "a route goes to stage " + std::to_string(stage) + ", which is not there";
      }
    }
    if (routes_.empty()) return refuse_shape(shape);
    if (routes_.front().size() % shape.stages != 0)
      return "a route has to have a multiple of the " + std::to_string(shape.stages) + " stages as its parts";
    return refuse_microbatches(routes_.size(), shape);
  }
  PipelinePlacement placement(const PipelineShape& shape) const override {
    if (!routes_.empty()) return {shape.stages, routes_};
    if (placement_ == Shape::v_shaped) return PipelinePlacement::v_shaped(shape.stages);
    if (placement_ == Shape::bidirectional) return PipelinePlacement::bidirectional(shape.stages);
    return PipelinePlacement::looped(shape.stages, shape.chunks);
  }
  std::vector<PipelineStep> order(const PipelineShape&, std::uint32_t stage) const override {
    return steps_[stage];
  }
  bool trains() const override {
    for (const auto& stage : steps_) {
      for (const PipelineStep& step : stage) {
        if (step.kind != PipelineStepKind::forward && !is_communication(step.kind)) return true;
      }
    }
    return false;
  }
  const ConfigNode* written(std::uint32_t stage) const override { return &written_[stage]; }

 private:
  std::string refuse_shape(const PipelineShape& shape) const {
    const std::uint32_t chunks = placement_ == Shape::v_shaped        ? 2
                                 : placement_ == Shape::bidirectional ? 1
                                                                      : shape.chunks;
    if (chunks != shape.chunks) return "this placement needs virtual_stages of " + std::to_string(chunks);
    return refuse_microbatches(placement_ == Shape::bidirectional ? 2 : 1, shape);
  }
  static std::string refuse_microbatches(std::size_t routes, const PipelineShape& shape) {
    if (shape.microbatches % routes == 0) return {};
    return std::to_string(routes) + " routes need a multiple of " + std::to_string(routes) + " microbatches";
  }
  void read_routes(const ConfigNode& node) {
    for (const ConfigNode& route : node.items()) {
      if (!route.is_sequence() || route.items().empty())
        route.fail("a route is a list of stages, one for each part of the model");
      routes_.emplace_back();
      for (const ConfigNode& stage : route.items()) {
        const std::int64_t number = read_integer(stage);
        if (number < 0 || number > 65'535) stage.fail(std::to_string(number) + " is no stage");
        routes_.back().push_back(static_cast<std::uint32_t>(number));
      }
      if (routes_.back().size() != routes_.front().size())
        route.fail("all routes have the same number of parts");
    }
    if (routes_.empty()) node.fail("no route is given");
  }
  void read_steps(const ConfigNode& node) {
    for (const ConfigNode& stage : node.items()) {
      std::istringstream words(read_text(stage));
      steps_.emplace_back();
      written_.push_back(stage);
      for (std::string word; words >> word;) {
        PipelineStep step;
        if (!read_step(word, step)) {
          stage.fail(
              "step " + std::to_string(steps_.back().size()) + " of stage " +
              std::to_string(steps_.size() - 1) + ": '" + word +
              "' is no step: F3, B3, I3, W3 (of chunk 1: F3.1), F3.0&B2.1 are, and SF3, RF3, SB3, RB3, "
              "G (of chunk 1: G.1), with '!' where the stage waits");
        }
        steps_.back().push_back(step);
      }
    }
  }

  Shape placement_;
  std::vector<std::vector<std::uint32_t>> routes_;
  std::vector<std::vector<PipelineStep>> steps_;
  std::vector<ConfigNode> written_;  // by stage
};

Parameters<ListedParameters> listed_parameters() {
  using P = ListedParameters;
  return Parameters<P>()
      .choice(
          "placement", &P::placement,
          {{"looped", Shape::looped}, {"v_shaped", Shape::v_shaped}, {"bidirectional", Shape::bidirectional}},
          "placement of the model's parts on the stages")
      .list("routes", &P::routes,
            "used instead of placement: for each direction through the pipeline, the list of the stages that "
            "hold part 0, 1, 2, ...")
      .list("steps", &P::steps,
            "for each stage its steps in order: F forward, B backward, I and W its two halves (gradients of "
            "input and of weights), with microbatch and chunk: F3.1; F3.0&B2.1 overlaps two. SF3.1, RF3.1, "
            "SB3.1, RB3.1 send or receive there, and G.1 reduces the chunk's gradients; with '!' the stage "
            "waits for it")
      .required();
}

const Registration<PipelineSchedule> kListed{
    "listed", "each stage runs the steps that the user lists; they are proved before they run",
    listed_parameters(),
    [](const ListedParameters& p, const ConfigNode&) { return std::make_unique<Listed>(p); }};

}  // namespace
}  // namespace netsim
