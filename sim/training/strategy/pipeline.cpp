// pipeline: a synthetic pipeline of equal stages with given durations, and nothing else. There is one rank
// per stage, or several replicas of it. It is for exact tests of bubbles and of schedules.
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/config_entries.h"
#include "sim/core/errors.h"
#include "sim/core/registry.h"
#include "sim/training/strategy/pipeline_program.h"
#include "sim/workload/program/program_file.h"
#include "sim/workload/program/role_program_source.h"
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
  Time weights = kUnset;
  Time overlapped = kUnset;
  Bytes bytes = kMegabyte;
  std::int64_t replicas = 1;
  Bytes gradients = 0;
  bool overlap_p2p = true, ordered_p2p = false;
  ConfigNode schedule;
  std::int64_t iterations = 1, warm_up = 0;
  static constexpr Time kUnset = -1;
};

const Parameters<PipelineParameters>& pipeline_parameters() {
  using P = PipelineParameters;
  static const auto p =
      Parameters<P>()
          .text("name", &P::name, "name of the job")
          .integer("stages", &P::stages, {1, 65'536}, "pipeline stages, one rank each (p)")
          .integer("virtual_stages", &P::virtual_stages, {1, 10'000}, "model chunks per stage (v)")
          .integer("microbatches", &P::microbatches, {1, 1'000'000}, "microbatches per iteration (m)")
          .time("forward", &P::forward, {0, 1000 * kSecond},
                "time of the forward of one microbatch in one stage; virtual_stages divides it evenly among "
                "the stage's chunks; default: 1 ms, rounded down to a multiple of virtual_stages in ps")
          .time("backward", &P::backward, {0, 1000 * kSecond},
                "backward of one microbatch in one stage, gradients of input and weights, divided likewise")
          .time("weights", &P::weights, {0, 1000 * kSecond},
                "part of the backward that computes gradients of weights, for schedules that split the "
                "backward; default: half of the backward, rounded down to a multiple of virtual_stages")
          .time("overlapped", &P::overlapped, {0, 1000 * kSecond},
                "time of a forward and a backward of two microbatches that are computed together, for "
                "schedules that do so; default: forward + backward")
          .bytes("bytes", &P::bytes, {1, 1000 * kGigabyte}, "message between stages, in both directions")
          .integer("replicas", &P::replicas, {1, 65'536},
                   "replicas of the pipeline (d); ranks are stages x replicas")
          .bytes("gradients", &P::gradients, {0, 1000 * kGigabyte},
                 "bytes of the gradients of one stage, which virtual_stages divides among its chunks; all "
                 "copies of the stage reduce them, at the end of an iteration or where the schedule says so; "
                 "copies are those of replicas and of a bidirectional schedule")
          .flag("overlap_p2p", &P::overlap_p2p,
                "a stage continues while its messages are in flight; false: it waits for them")
          .flag("ordered_p2p", &P::ordered_p2p,
                "all messages of a stage are in one stream, as in one NCCL communicator: the sends of a step "
                "and the next receives are one call, which waits for the call before it; false: a send waits "
                "only for its data, and a receive only for the receive before it in its direction")
          .component("schedule", &P::schedule, "pipeline_schedule", "",
                     "order of forwards and backwards; default: interleaved if virtual_stages is more than "
                     "1, otherwise one_f_one_b")
          .integer("iterations", &P::iterations, {1, 1'000'000}, "iterations")
          .integer("warm_up", &P::warm_up, {0, 999'999}, "number of first iterations that means exclude");
  return p;
}

// EqualParts: every part of the model takes the same time and has the same size of gradients.
class EqualParts : public StageComputation {
 public:
  // Gradients: the bytes of a part's gradients. `groups` has, by part of the model, the group that reduces
  // them, if there is one.
  struct Gradients {
    Bytes bytes = 0;
    std::vector<std::optional<std::uint32_t>> groups = {};
  };
  struct Times {
    Time forward, backward, weights, overlapped;
  };
  EqualParts(const ScheduledPipeline& plan, const Times& times, Gradients gradients)
      : plan_(plan),
        gradients_(std::move(gradients)),
        forward_(fixed("forward", times.forward)),
        backward_(fixed("backward", times.backward)),
        input_(fixed("input_backward", times.backward - times.weights)),
        weights_(fixed("weights", times.weights)),
        overlapped_(fixed("forward_and_backward", times.overlapped)) {}

  Results append(BlockBuilder& block, const StageStep& step, const Inputs& inputs) const override {
    std::vector<Position> after = inputs.forward;
    after.insert(after.end(), inputs.backward.begin(), inputs.backward.end());
    const Position done = block.compute(work(step.kind), after);
    return {done, done};
  }
  OperationsAside reduce(BlockBuilder& block, std::uint32_t stage, std::uint32_t chunk,
                         const std::vector<Position>& after) const override {
    const auto group = gradients_.groups[plan_.placement.held(stage, chunk).part];
    OperationsAside last;
    if (!group || gradients_.bytes == 0) return last;
    last.add(Stream::dp, 0,
             block.collective("gradients", CollectiveKind::all_reduce, Stream::dp, 0, *group,
                              gradients_.bytes, after));
    return last;
  }
  // An update takes no time beyond that of its reduction.
  OperationsAside update(BlockBuilder& block, std::uint32_t stage, std::uint32_t chunk,
                         const std::vector<Position>& after) const override {
    return reduce(block, stage, chunk, after);
  }
  // Appends the reductions that are no steps of the stage, in the order of the model, which is the same for
  // all copies.
  void reduce_rest(BlockBuilder& block, std::uint32_t stage, const PipelineProgram::End& end) const {
    if (!plan_.trains || plan_.updates()) return;
    std::map<std::uint32_t, std::uint32_t> chunks;  // by part
    for (std::uint32_t chunk = 0; chunk < plan_.placement.chunks(stage); ++chunk)
      chunks.try_emplace(plan_.placement.held(stage, chunk).part, chunk);
    std::vector<Position> after = end.waits;
    after.push_back(end.computed);
    for (const auto& [part, chunk] : chunks) {
      if (!plan_.reduces(stage, chunk)) reduce(block, stage, chunk, after);
    }
  }

 private:
  const Work& work(PipelineStepKind kind) const {
    switch (kind) {
      case PipelineStepKind::forward:
        return forward_;
      case PipelineStepKind::backward:
        return backward_;
      case PipelineStepKind::input_backward:
        return input_;
      case PipelineStepKind::weight_backward:
        return weights_;
      case PipelineStepKind::overlapped:
        return overlapped_;
      case PipelineStepKind::send_forward:
      case PipelineStepKind::receive_forward:
      case PipelineStepKind::send_backward:
      case PipelineStepKind::receive_backward:
      case PipelineStepKind::reduce:
      case PipelineStepKind::update:
        break;
    }
    NETSIM_CHECK(false, "a step that communicates computes nothing");
    return overlapped_;
  }
  static Work fixed(const char* name, Time duration) {
    Kernel kernel;
    kernel.kind = Kernel::Kind::fixed;
    kernel.name = name;
    kernel.duration = duration;
    return {name, {kernel}};
  }
  const ScheduledPipeline& plan_;
  Gradients gradients_;
  Work forward_, backward_, input_, weights_, overlapped_;
};

class PipelineWorkload : public WorkloadKind {
 public:
  PipelineWorkload(PipelineParameters parameters, const ConfigNode& where)
      : p_(std::move(parameters)),
        shape_{static_cast<std::uint32_t>(p_.stages), static_cast<std::uint32_t>(p_.virtual_stages),
               static_cast<std::uint32_t>(p_.microbatches)},
        file_(where.place().file) {
    const double operations = 6.0 * static_cast<double>(p_.stages) * static_cast<double>(p_.virtual_stages) *
                              static_cast<double>(p_.microbatches);
    if (operations > static_cast<double>(ProgramLimits::kUnrolled)) {
      where.fail("stages x virtual_stages x microbatches is too much: at most " +
                 std::to_string(ProgramLimits::kUnrolled / 6));
    }
    plan_ = std::make_unique<const ScheduledPipeline>(schedule_pipeline(p_.schedule, where, shape_));
    if (where.find("forward") == nullptr) p_.forward = dividing(p_.forward);
    if (where.find("backward") == nullptr) p_.backward = dividing(p_.backward);
    if (p_.weights == P::kUnset) p_.weights = dividing(p_.backward / 2);
    if (p_.overlapped == P::kUnset) p_.overlapped = p_.forward + p_.backward;
    if (p_.weights > p_.backward) {
      where.fail("weights (" + format_time(p_.weights) +
                 ") is more than the backward that it is a part of (" + format_time(p_.backward) + ")");
    }
    if (p_.ordered_p2p) {
      const std::string refusal = refuse_order(*plan_, !p_.overlap_p2p);
      if (!refusal.empty()) entry_or_self(where, "ordered_p2p").fail(refusal);
    }
    if (p_.warm_up >= p_.iterations && where.find("warm_up") != nullptr) {
      where.find("warm_up")->fail(std::to_string(p_.warm_up) + " of " + std::to_string(p_.iterations) +
                                  " iterations: warm_up has to be fewer than all");
    }
    require_divides(where, "forward", p_.forward);
    require_divides(where, "backward", p_.backward);
    if (plan_->splits_backward()) require_divides(where, "weights", p_.weights);
    require_divides(where, "overlapped", p_.overlapped);
    if (p_.gradients % divisor() != 0) {
      entry_or_self(where, "gradients")
          .fail("gradients (" + format_bytes(p_.gradients) + ") cannot be divided among " +
                std::to_string(divisor()) + " virtual_stages to the byte");
    }
    if (p_.stages * p_.replicas > static_cast<std::int64_t>(ProgramLimits::kRanks)) {
      entry_or_self(where, "replicas")
          .fail("stages x replicas is more than " + std::to_string(ProgramLimits::kRanks) + " ranks");
    }
  }

  std::string compile() const override { return serialize_program(build()); }
  std::unique_ptr<TaskSource> tasks(const WorkloadContext&) const override {
    std::vector<std::string> notes = p_.overlap_p2p ? std::vector<std::string>() : notes_on_blocking(*plan_);
    if (p_.ordered_p2p && p_.stages == 1) notes.push_back(kNoMessages);
    return make_role_program_source(build(), file_, {}, notes);
  }

 private:
  // Returns the number of parts of the model per stage.
  std::int64_t divisor() const { return plan_->parts() / shape_.stages; }
  // Returns the longest time up to `time` that the chunks can share to the picosecond. It rounds a default,
  // so that it is not refused.
  Time dividing(Time time) const { return time - time % divisor(); }
  void require_divides(const ConfigNode& where, const char* key, Time time) const {
    if (time % divisor() == 0) return;
    entry_or_self(where, key)
        .fail(std::string(key) + " (" + format_time(time) + ") cannot be divided among " +
              std::to_string(divisor()) + " virtual_stages to the picosecond");
  }

  // Returns the group of ranks that have copies of a part; nothing where only one rank has it.
  std::optional<std::uint32_t> copies_of(ProgramBuilder& builder, std::uint32_t part,
                                         std::optional<std::uint32_t> replicas, std::uint32_t stages) const {
    GroupExpression copies;
    if (replicas) copies.axes.push_back({*replicas, {}});
    const std::vector<std::uint32_t> holders = plan_->placement.holders(part);
    if (holders.size() > 1) copies.axes.push_back({stages, holders});
    if (copies.axes.empty() || p_.gradients == 0) return {};
    return builder.group(copies);
  }

  Program build() const {
    ProgramBuilder builder(p_.name);
    PipelineTransfers transfers;
    std::optional<std::uint32_t> replicas;
    if (p_.replicas > 1) replicas = builder.axis("dp", static_cast<std::uint32_t>(p_.replicas));
    transfers.axis = builder.axis("pp", shape_.stages);
    transfers.message = p_.bytes;
    transfers.overlap = p_.overlap_p2p;
    transfers.ordered = p_.ordered_p2p;
    EqualParts::Gradients gradients{p_.gradients / divisor(), {}};
    for (std::uint32_t part = 0; part < plan_->parts(); ++part)
      gradients.groups.push_back(copies_of(builder, part, replicas, transfers.axis));
    const EqualParts parts(
        *plan_,
        {p_.forward / divisor(), p_.backward / divisor(), p_.weights / divisor(), p_.overlapped / divisor()},
        std::move(gradients));
    const PipelineProgram pipeline(builder, *plan_, transfers, parts);
    for (std::uint32_t stage = 0; stage < shape_.stages; ++stage) {
      const std::string name = "stage_" + std::to_string(stage);
      BlockBuilder main(builder, name);
      PipelineProgram::End end = pipeline.append(main, stage);
      parts.reduce_rest(main, stage, end);
      builder.role({name, {{transfers.axis, {stage}}}, main.finish(), {}, std::move(end.marks)});
    }
    Program program = builder.finish();
    program.iterations = static_cast<std::uint32_t>(p_.iterations);
    program.warm_up = static_cast<std::uint32_t>(p_.warm_up);
    return program;
  }

  using P = PipelineParameters;
  P p_;
  PipelineShape shape_;
  std::string file_;
  std::unique_ptr<const ScheduledPipeline> plan_;
};

const Registration<WorkloadKind> kPipeline{
    "pipeline",
    "a synthetic pipeline of equal stages, one rank each: for exact tests of schedules and bubbles",
    pipeline_parameters(), [](const PipelineParameters& p, const ConfigNode& where) {
      return std::make_unique<PipelineWorkload>(p, where);
    }};

}  // namespace
}  // namespace netsim
