// pipeline: a synthetic pipeline of equal stages with given durations, one rank per stage and nothing else:
// for exact tests of bubbles and of schedules.
#include <memory>
#include <string>
#include <utility>

#include "sim/core/registry.h"
#include "sim/workload/program/program_file.h"
#include "sim/workload/program/role_program_source.h"
#include "sim/workload/strategy/pipeline_program.h"
#include "sim/workload/workload.h"

namespace netsim {
namespace {

struct PipelineParameters {
  std::string name = "pipeline";
  std::int64_t stages = 4;
  std::int64_t virtual_stages = 1;
  std::int64_t microbatches = 8;
  Time forward = kMillisecond;
  Time backward = 2 * kMillisecond;
  Bytes bytes = kMegabyte;
  ConfigNode schedule;
  std::int64_t iterations = 1;
};

const Parameters<PipelineParameters>& parameters() {
  using P = PipelineParameters;
  static const auto p =
      Parameters<P>()
          .text("name", &P::name, "name of the job")
          .integer("stages", &P::stages, {1, 65'536}, "pipeline stages, one rank each (p)")
          .integer("virtual_stages", &P::virtual_stages, {1, 10'000}, "model chunks per stage (v)")
          .integer("microbatches", &P::microbatches, {1, 1'000'000}, "microbatches per iteration (m)")
          .time("forward", &P::forward, {0, 1000 * kSecond},
                "forward of one microbatch in one stage; virtual_stages divides it among the chunks")
          .time("backward", &P::backward, {0, 1000 * kSecond}, "backward of one microbatch in one stage")
          .bytes("bytes", &P::bytes, {1, 1000 * kGigabyte}, "message between stages, in both directions")
          .component("schedule", &P::schedule, "pipeline_schedule", "",
                     "order of forwards and backwards; interleaved if virtual_stages > 1, else one_f_one_b")
          .integer("iterations", &P::iterations, {1, 1'000'000}, "iterations");
  return p;
}

class EqualStages : public StageComputation {
 public:
  EqualStages(Time forward, Time backward)
      : forward_(fixed("forward", forward)), backward_(fixed("backward", backward)) {}
  BlockBuilder::Position forward(BlockBuilder& block, std::uint32_t, std::uint32_t,
                                 bool waits) const override {
    return append(block, forward_, waits);
  }
  BlockBuilder::Position backward(BlockBuilder& block, std::uint32_t, std::uint32_t, bool waits,
                                  bool) const override {
    return append(block, backward_, waits);
  }

 private:
  static BlockBuilder::Position append(BlockBuilder& block, const Work& work, bool waits) {
    if (!waits) return block.compute(work);
    return block.compute(work, {block.size() - 1});
  }
  static Work fixed(const char* name, Time duration) {
    Kernel kernel;
    kernel.kind = Kernel::Kind::fixed;
    kernel.name = name;
    kernel.duration = duration;
    return {name, {kernel}};
  }
  Work forward_, backward_;
};

class Pipeline : public WorkloadKind {
 public:
  Pipeline(PipelineParameters parameters, const ConfigNode& where)
      : p_(std::move(parameters)),
        shape_{static_cast<std::uint32_t>(p_.stages), static_cast<std::uint32_t>(p_.virtual_stages),
               static_cast<std::uint32_t>(p_.microbatches)},
        file_(where.place().file) {
    require_divides(where, "forward", p_.forward);
    require_divides(where, "backward", p_.backward);
    const double operations = 6.0 * static_cast<double>(p_.stages) * static_cast<double>(p_.virtual_stages) *
                              static_cast<double>(p_.microbatches);
    if (operations > static_cast<double>(ProgramLimits::kUnrolled)) {
      where.fail("stages x virtual_stages x microbatches is too much: at most " +
                 std::to_string(ProgramLimits::kUnrolled / 6));
    }
    schedule_ = create_pipeline_schedule(p_.schedule, where, shape_);
  }

  std::string compile() const override { return serialize_program(build()); }
  std::unique_ptr<TaskSource> tasks(const WorkloadContext&) const override {
    return make_role_program_source(build(), file_);
  }

 private:
  void require_divides(const ConfigNode& where, const char* key, Time time) const {
    if (time % p_.virtual_stages == 0) return;
    const ConfigNode* node = where.find(key);
    (node != nullptr ? *node : where)
        .fail(std::string(key) + " (" + format_time(time) + ") cannot be divided among " +
              std::to_string(p_.virtual_stages) + " virtual_stages to the picosecond");
  }

  Program build() const {
    ProgramBuilder builder(p_.name);
    PipelineTransfers transfers;
    transfers.axis = builder.axis("pp", shape_.stages);
    transfers.message = p_.bytes;
    const EqualStages stages(p_.forward / p_.virtual_stages, p_.backward / p_.virtual_stages);
    const PipelineProgram pipeline(builder, shape_, transfers, stages);
    for (std::uint32_t stage = 0; stage < shape_.stages; ++stage) {
      const std::string name = "stage_" + std::to_string(stage);
      BlockBuilder main(builder, name);
      pipeline.append(main, stage, *schedule_);
      builder.role({name, {{transfers.axis, {stage}}}, main.finish()});
    }
    Program program = builder.finish();
    program.iterations = static_cast<std::uint32_t>(p_.iterations);
    return program;
  }

  PipelineParameters p_;
  PipelineShape shape_;
  std::string file_;
  std::unique_ptr<PipelineSchedule> schedule_;
};

const Registration<WorkloadKind> kRegistration{
    "pipeline",
    "a synthetic pipeline of equal stages, one rank each: for exact tests of schedules and bubbles",
    parameters(), [](const PipelineParameters& p, const ConfigNode& where) {
      return std::make_unique<Pipeline>(p, where);
    }};

}  // namespace
}  // namespace netsim
