#include "sim/training/strategy/training_program.h"

#include <string>
#include <utility>

#include "sim/training/strategy/checkpoint_bytes.h"
#include "sim/training/strategy/memory_accounting.h"

namespace netsim {
namespace {

class JobProgram {
 public:
  JobProgram(const TrainingJob& job, bool with_memory, CheckpointParts* checkpoint)
      : job_(job), with_memory_(with_memory), checkpoint_(checkpoint), builder_(job.shape.name) {}

  Program make() { return job_.stages.alike() ? make_alike() : make_stages(); }

 private:
  Program make_alike() {
    TrainingGraph graph(builder_, job_.shape.mesh(), model(job_.shape));
    apply(graph, job_.shape);
    add_checkpoint(graph, job_.shape, graph.mesh.ranks());
    return make_program(graph);
  }

  Program make_stages() {
    const std::vector<StageLayout> layouts = job_.stages.layouts(job_.shape);
    const std::uint32_t ranks = layouts.back().first + layouts.back().ranks();
    builder_.axis("rank", ranks);
    const StageReshardings reshardings = job_.stages.reshardings(builder_, job_.shape);
    const std::vector<std::uint32_t> mesh_of_stage = job_.stages.mesh_of_stage();
    const std::vector<JobShape> shapes = job_.stages.shapes(job_.shape);
    std::vector<TrainingGraph> graphs;
    graphs.reserve(shapes.size());
    for (std::uint32_t i = 0; i < shapes.size(); ++i) {
      std::vector<Mesh::StageStart> starts;
      for (std::uint32_t stage = 0; stage < layouts.size(); ++stage)
        if (mesh_of_stage[stage] == i) starts.push_back({stage, layouts[stage].first});
      Mesh mesh = shapes[i].mesh_of({"pp", static_cast<std::uint32_t>(starts.size())});
      mesh.lay_out(std::move(starts));
      TrainingGraph& graph = graphs.emplace_back(builder_, std::move(mesh), model(shapes[i]));
      apply(graph, shapes[i]);
      graph.transfers.reshardings = &reshardings;
      add_checkpoint(graph, shapes[i], ranks);
    }
    return make_program(graphs, mesh_of_stage);
  }

  static Model model(const JobShape& job) { return job.model->make(job.sub_batch(), job.gradient_bytes); }

  void apply(TrainingGraph& graph, const JobShape& shape) const {
    job_.strategies.apply(graph, shape);
    if (with_memory_) account_memory(graph, shape);
  }

  // Sets the parts of a checkpoint that the graph's ranks write and read. The job has `ranks` ranks.
  void add_checkpoint(const TrainingGraph& graph, const JobShape& shape, std::size_t ranks) {
    if (checkpoint_ == nullptr) return;
    const std::vector<Bytes> written = checkpoint_bytes(graph, shape, checkpoint_->divided);
    const std::vector<Bytes> read = restored_bytes(graph, shape);
    checkpoint_->written.resize(ranks);
    checkpoint_->read.resize(ranks);
    for (RankId rank = 0; rank < graph.mesh.ranks(); ++rank) {
      checkpoint_->written[graph.mesh.job_rank(rank)] = written[rank];
      checkpoint_->read[graph.mesh.job_rank(rank)] = read[rank];
    }
  }

  const TrainingJob& job_;
  bool with_memory_;
  CheckpointParts* checkpoint_;
  ProgramBuilder builder_;
};

}  // namespace

void check_size(const JobShape& job, const JobStrategies& strategies) {
  const double ranks = static_cast<double>(job.tensor) * static_cast<double>(job.pipeline) *
                       static_cast<double>(job.data + job.servers) * static_cast<double>(job.context);
  if (ranks > static_cast<double>(ProgramLimits::kRanks)) {
    job.key("parallel", "data")
        .fail("tensor x context x pipeline x data is more than " + std::to_string(ProgramLimits::kRanks) +
              " ranks");
  }
  // A generous estimate of the operations of one rank. The exact number is checked when the program is read.
  const double of_layer = 20.0 + strategies.operations_of_layer(job);
  const double operations =
      (of_layer * static_cast<double>(job.model->layers()) / static_cast<double>(job.pipeline) +
       20.0 * static_cast<double>(job.virtual_stages)) *
      static_cast<double>(job.microbatches) * static_cast<double>(job.local_steps);
  if (operations * static_cast<double>(job.pipeline) > static_cast<double>(ProgramLimits::kUnrolled)) {
    job.where.fail("layers x microbatches is too much: the programs of all stages may have " +
                   std::to_string(ProgramLimits::kUnrolled) + " operations");
  }
  if (job.model->largest_bytes(job.microbatch) > static_cast<double>(ProgramLimits::kBytes))
    job.key("model", "hidden").fail("the model is too large: a tensor of it has more than 2^50 bytes");
}

Program training_program(const TrainingJob& job, bool with_memory, CheckpointParts* checkpoint) {
  Program program = JobProgram(job, with_memory, checkpoint).make();
  const JobShape& shape = job.shape;
  program.iterations = static_cast<std::uint32_t>(shape.iterations);
  program.model_flops =
      shape.model->flops(shape.microbatch * shape.microbatches * shape.local_steps * shape.data,
                         shape.recompute == Recompute::full);
  return program;
}

}  // namespace netsim
