#include "sim/training/strategy/stage_meshes.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "sim/core/config_entries.h"
#include "sim/training/strategy/pipeline_division.h"

namespace netsim {
namespace {

std::uint32_t count_of(std::int64_t ranks) { return static_cast<std::uint32_t>(ranks); }

}  // namespace

StageMeshes::StageMeshes(const ConfigNode& list, const StageResharding& resharding, JobShape& job)
    : list_(list), resharding_(resharding) {
  if (list.is_null()) {
    if (job.gives("parallel", "resharding"))
      job.key("parallel", "resharding")
          .fail("nothing is resharded between stages that are all alike: no parallel.stages");
    return;
  }
  degrees_ = read_stage_degrees(list, count_of(job.pipeline), {job.tensor, job.data});
  const std::int64_t sequences = job.microbatch * job.data;
  for (const StageDegrees& stage : degrees_) {
    if (sequences % stage.data == 0) continue;
    entry_or_self(stage.where, "data")
        .fail("the " + std::to_string(sequences) +
              " sequences of a microbatch (microbatch x parallel.data) cannot be divided among " +
              std::to_string(stage.data) + " replicas");
  }
  if (meshes().size() == 1) {
    job = job.on_mesh(degrees_.front());
    degrees_.clear();
  } else if (job.has_experts()) {
    list.fail("stages of a model with routed experts have to be all alike");
  }
}

std::vector<StageDegrees> StageMeshes::meshes() const {
  std::vector<StageDegrees> meshes;
  for (const StageDegrees& stage : degrees_) {
    const bool known = std::any_of(meshes.begin(), meshes.end(),
                                   [&](const StageDegrees& mesh) { return mesh.same_mesh(stage); });
    if (!known) meshes.push_back(stage);
  }
  return meshes;
}

std::vector<std::uint32_t> StageMeshes::mesh_of_stage() const {
  const std::vector<StageDegrees> all = meshes();
  std::vector<std::uint32_t> of_stage;
  of_stage.reserve(degrees_.size());
  for (const StageDegrees& stage : degrees_) {
    const auto mesh = std::find_if(all.begin(), all.end(),
                                   [&](const StageDegrees& known) { return known.same_mesh(stage); });
    of_stage.push_back(static_cast<std::uint32_t>(mesh - all.begin()));
  }
  return of_stage;
}

std::vector<JobShape> StageMeshes::shapes(const JobShape& job) const {
  if (alike()) return {job};
  std::vector<JobShape> shapes;
  for (const StageDegrees& mesh : meshes()) shapes.push_back(job.on_mesh(mesh));
  return shapes;
}

void StageMeshes::check(const JobShape& job) const {
  if (alike()) return;
  for (std::size_t s = 0; job.plan->placement.routes() > 1 && s < degrees_.size(); ++s) {
    const std::size_t opposite = degrees_.size() - 1 - s;
    if (degrees_[s].same_mesh(degrees_[opposite])) continue;
    degrees_[s].where.fail("stages " + std::to_string(s) + " and " + std::to_string(opposite) +
                           " have copies of the same layers in a bidirectional pipeline: they need the same "
                           "tensor and data");
  }
  if (job.orders_messages)
    list_.fail("ordered_p2p has to be false: it orders the messages of stages that are all alike");
  if (job.plan->communicates()) {
    list_.fail(
        "a schedule with steps that communicate says so of stages that are all alike: they need the same "
        "tensor and data");
  }
  std::int64_t ranks = 0;
  for (const StageDegrees& stage : degrees_) ranks += stage.tensor * stage.data * job.context;
  if (ranks > static_cast<std::int64_t>(ProgramLimits::kRanks))
    list_.fail(std::to_string(ranks) + " ranks: at most " + std::to_string(ProgramLimits::kRanks));
  check_slices();
}

void StageMeshes::check_slices() const {
  // Upper bound of the slices of a block of StageReshardings.
  constexpr double kMost = 1e7;
  for (std::size_t i = 0; i < degrees_.size(); ++i) {
    const StageDegrees &one = degrees_[i], &other = degrees_[(i + 1) % degrees_.size()];
    const auto rows = static_cast<double>((one.data + other.data) / std::gcd(one.data, other.data));
    const auto columns = static_cast<double>(one.tensor + other.tensor);
    if (rows * rows * columns * columns > kMost)
      one.where.fail("this stage and the next divide what passes between them into too many slices");
  }
}

std::vector<StageLayout> StageMeshes::layouts(const JobShape& job) const {
  std::vector<StageLayout> layouts;
  std::uint32_t first = 0;
  for (const StageDegrees& stage : degrees_) {
    layouts.push_back({first, count_of(stage.tensor), count_of(job.context), count_of(stage.data)});
    first += layouts.back().ranks();
  }
  return layouts;
}

StageBoundaries StageMeshes::boundaries(const JobShape& job) const {
  const Model model = job.model->make(1, 2);
  Sharding sharding;
  for (const Dimension dimension : {Dimension::tokens, Dimension::sequence})
    sharding.divide(dimension, job.context);
  StageBoundaries boundaries;
  boundaries.samples = job.microbatch * job.data;
  boundaries.element = model.boundary_bytes;
  boundaries.sequence = job.sequence;
  for (const Tensor& tensor : boundary_tensors(model, job.layers))
    boundaries.elements.push_back(sharding.local(tensor));
  return boundaries;
}

// Returns the parameters that the ends of the model share, where they do and have different meshes.
std::optional<SharedParameters> StageMeshes::shared_parameters(const JobShape& job) const {
  const PipelinePlacement& placement = job.plan->placement;
  SharedParameters shared;
  shared.first = placement.at(0, 0).stage;
  shared.last = placement.at(0, placement.parts() - 1).stage;
  const Model model = job.model->make(1, job.gradient_bytes);
  if (model.shared.empty() || degrees_[shared.first].same_mesh(degrees_[shared.last])) return {};
  for (const Extent& extent : model.shared)
    (extent.along == Dimension::vocabulary ? shared.rows : shared.columns) *= extent.size;
  shared.element = model.gradient_bytes;
  return shared;
}

StageReshardings StageMeshes::reshardings(ProgramBuilder& builder, const JobShape& job) const {
  return {builder, job.plan->placement, layouts(job), boundaries(job), shared_parameters(job), resharding_};
}

}  // namespace netsim
