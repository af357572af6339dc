// ptdp: a model under pipeline, tensor and data parallelism, as Megatron-LM trains it. The source is
// Narayanan et al. (PTD-P, "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM",
// SC'21). The model (model_kind.h) gives the computation of a rank, and the strategies (strategy.h) divide
// and rewrite it. Most keys of the description are parameters of strategies; this file has the others.
//
// Rank order: tensor is the fastest, then context, data and pipeline (Megatron's initialize_model_parallel).
// Experts number the ranks of a stage anew: first the ranks that divide an expert, then experts, then copies.
// Not simulated: the all-reduces of a few bytes for the loss scale and the gradient norm.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/config_entries.h"
#include "sim/core/registry.h"
#include "sim/training/checkpoint/checkpoint.h"
#include "sim/training/strategy/training_program.h"
#include "sim/workload/program/program_file.h"
#include "sim/workload/program/role_program_source.h"
#include "sim/workload/workload.h"

namespace netsim {
namespace {

struct PtdpParameters {
  std::string name = "ptdp";
  ConfigNode model, stages, strategies;
  StageResharding resharding;
  std::int64_t microbatch = 1, microbatches = 1;
  std::int64_t iterations = 1, warm_up = 0;
  CheckpointParameters checkpoint;
  RecoveryParameters recovery;
};

const Parameters<PtdpParameters>& ptdp_parameters() {
  using P = PtdpParameters;
  static const auto p =
      Parameters<P>()
          .text("name", &P::name, "name of the job")
          .component("model", &P::model, "model", "gpt", "what is trained; the default is GPT-3 175B")
          .integer("microbatch", &P::microbatch, {1, 100'000}, "sequences in a microbatch (b)")
          .integer("microbatches", &P::microbatches, {1, 1'000'000},
                   "microbatches per pipeline and iteration (m)")
          .integer("iterations", &P::iterations, {1, 1'000'000}, "training iterations")
          .integer("warm_up", &P::warm_up, {0, 999'999},
                   "number of first iterations that mean times and throughput exclude")
          .section("checkpoint", &P::checkpoint, checkpoint_parameters(),
                   "parameters and the optimizer's states, written to storage servers at intervals")
          .section("recovery", &P::recovery, recovery_parameters(),
                   "how the job continues from its last checkpoint when a host fails (gpus.failures)")
          .component_list("strategies", &P::strategies, "strategy",
                          "further strategies, as [{kind: NAME}]: layer_optimizer, or those of plugins and "
                          "the user's own "
                          "files")
          .section(kParallelSection.name,
                   Parameters<P>()
                       .list("stages", &P::stages,
                             "the degrees of each stage where they are not all alike, as [{tensor: 2, data: "
                             "2}, {tensor: 4, data: 1}]; what an entry leaves out is that of the job. A "
                             "stage's replicas divide the microbatch x data sequences of a microbatch among "
                             "them")
                       .section("resharding", &P::resharding, stage_resharding_parameters(),
                                "stages: how activations and gradients come to a stage with other degrees"),
                   kParallelSection.doc);
  return p;
}

class Ptdp : public WorkloadKind {
 public:
  Ptdp(PtdpParameters parameters, const ConfigNode& where)
      : p_(std::move(parameters)),
        strategies_("ptdp", where, p_.strategies),
        job_(described(where)),
        stages_(p_.stages, p_.resharding, job_) {
    check_own(where);
    for (const JobShape& shape : stages_.shapes(job_)) check_size(shape, strategies_);
    strategies_.complete(job_);
    for (const JobShape& shape : stages_.shapes(job_)) strategies_.check(shape);
    stages_.check(job_);
  }

  std::string compile() const override { return serialize_program(program(false, nullptr)); }
  std::unique_ptr<TaskSource> tasks(const WorkloadContext& context) const override {
    const std::vector<std::string> notes = strategies_.notes(job_);
    const std::string& file = job_.where.place().file;
    if (p_.checkpoint.every == 0) return make_role_program_source(program(true, nullptr), file, {}, notes);
    CheckpointParts parts{p_.checkpoint.divided, {}, {}};
    CheckpointedJob job;
    job.source = [program = program(true, &parts), file, notes](std::uint32_t iterations) {
      Program rest = program;
      if (iterations != rest.iterations) rest.warm_up = 0;
      rest.iterations = iterations;
      return make_role_program_source(std::move(rest), file, {}, notes);
    };
    job.written = std::move(parts.written);
    job.read = std::move(parts.read);
    job.iterations = static_cast<std::uint32_t>(p_.iterations);
    job.checkpoint = p_.checkpoint;
    if (job_.gives("recovery")) job.recovery = p_.recovery;
    job.servers = storage_servers(context);
    return with_checkpoints(std::move(job));
  }

 private:
  // Returns the shape of the job, with what the strategies enter in it.
  JobShape described(const ConfigNode& where) const {
    JobShape job;
    job.name = p_.name;
    job.where = where;
    job.model = Registry<ModelKind>::instance().create(p_.model, "gpt");
    job.microbatch = p_.microbatch;
    job.microbatches = p_.microbatches;
    job.iterations = p_.iterations;
    strategies_.describe(job);
    return job;
  }
  void check_own(const ConfigNode& where) const {
    const ConfigNode* warm_up = where.find("warm_up");
    if (p_.warm_up >= p_.iterations && warm_up != nullptr) {
      warm_up->fail(std::to_string(p_.warm_up) + " of " + std::to_string(p_.iterations) +
                    " iterations: warm_up has to be fewer than all");
    }
    if (job_.gives("recovery") && p_.checkpoint.every == 0)
      job_.key("recovery").fail("the job has no checkpoint to continue from: set checkpoint.every");
  }
  // Returns the number of storage servers to which checkpoints are written.
  std::uint32_t storage_servers(const WorkloadContext& context) const {
    const auto all = static_cast<std::int64_t>(context.drives.size());
    if (all == 0)
      job_.key("checkpoint", "every").fail("the cluster has no storage_server to write checkpoints to");
    if (p_.checkpoint.servers > all) {
      job_.key("checkpoint", "servers")
          .fail(std::to_string(p_.checkpoint.servers) + " were asked for, the cluster has " +
                std::to_string(all));
    }
    return static_cast<std::uint32_t>(p_.checkpoint.servers == 0 ? all : p_.checkpoint.servers);
  }
  Program program(bool with_memory, CheckpointParts* checkpoint) const {
    Program program = training_program({job_, strategies_, stages_}, with_memory, checkpoint);
    program.warm_up = static_cast<std::uint32_t>(p_.warm_up);
    return program;
  }

  PtdpParameters p_;
  JobStrategies strategies_;
  JobShape job_;
  StageMeshes stages_;
};

const Registration<WorkloadKind> kPtdp{
    "ptdp",
    "training of a model under any product of data, tensor, pipeline, context and expert parallelism, as "
    "Megatron-LM's PTD-P",
    ptdp_parameters(),
    [](const PtdpParameters& p, const ConfigNode& where) { return std::make_unique<Ptdp>(p, where); }};

}  // namespace
}  // namespace netsim
