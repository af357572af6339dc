// kineto: traces of PyTorch's profiler (Kineto, Chrome's JSON), one file per rank; one rank is enough.
//
// Kernels take their recorded time on the GPU, with the pause before them. Communications are simulated, and
// waiting is left out (kineto_graph.h). Communications whose size is not known keep their recorded time.
//
// Ranks without a trace do what the traced one does, if one rank was traced and its groups are regular.
// Otherwise they take part in the communications of the traced ranks and are always ready.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "sim/core/errors.h"
#include "sim/core/input_set.h"
#include "sim/core/registry.h"
#include "sim/core/text.h"
#include "sim/workload/trace/kineto_job.h"
#include "sim/workload/trace/trace_program.h"
#include "sim/workload/workload.h"

namespace netsim {
namespace {

// KinetoTotals: what the note tells of a class of operations.
struct KinetoTotals {
  std::uint64_t count = 0;
  std::int64_t time = 0;  // recorded, ns
  void add(std::int64_t duration) {
    ++count;
    time += duration;
  }
  std::string text() const {
    return fmt::format("{} ({})", count, human_seconds(static_cast<double>(time) * 1e-9));
  }
};

struct KinetoCounts {
  KinetoTotals compute, simulated, recorded, copies, gaps, cpu, unexplained;
  KinetoTotals shaped, shapeless;  // kernels that the compute model times, and those without a shape for it
  std::string untimed;             // for the note: the first kernel whose shape does not tell its work
  std::uint64_t grouped = 0, negative = 0, inferred = 0, contradicted = 0, ignored = 0;
};

// Returns the stream under which a communication is reported, by the words of its group's description. That
// of messages is `pp`, except where netsim has named another one.
Stream kineto_stream(const KinetoJob& job, const KinetoCommunication& one, const KinetoCall& call) {
  if (one.kind != KinetoCommunication::Kind::collective)
    return stream_called(call.description).value_or(Stream::pp);
  const std::string& known = job.groups()[one.group].description;
  return named_stream(call.description.empty() ? known : call.description, one.collective);
}

// KinetoTasks: makes the tasks of a traced rank, or of a rank that does what that one does.
class KinetoTasks {
 public:
  KinetoTasks(const KinetoJob& job, const KinetoJob::Rank& traced, TraceProgram& program,
              const WorkloadContext& context)
      : job_(job), traced_(traced), ops_(traced.trace.ops), program_(program), context_(context) {
    by_op_.assign(ops_.size(), kNoKineto);
    // By op: its first communication.
    for (auto c = static_cast<std::uint32_t>(traced.communications.size()); c-- > 0;)
      by_op_[traced.communications[c].op] = c;
    std::vector<bool> computes(ops_.size(), true);
    for (std::uint32_t i = 0; i < ops_.size(); ++i) computes[i] = !is_simulated(i) && !copy_of(i);
    work_ = kineto_work(traced.trace, computes);
    for (std::uint32_t i = 0; i < ops_.size(); ++i) work_[i] += traced.graph.gaps[i];
  }

  // `groups` gives the group of the rank for each group of the job.
  std::vector<TraceTask> make(const std::vector<std::uint32_t>& groups) {
    std::vector<TraceTask> tasks;
    tasks.reserve(ops_.size() + traced_.graph.points.size() + 1);
    for (std::uint32_t i = 0; i < ops_.size(); ++i) {
      TraceTask task = is_simulated(i) ? communication(traced_.communications[by_op_[i]], groups)
                       : copy_of(i)    ? copy(i)
                                       : computation(i);
      task.order = i;
      task.after = traced_.graph.after[i];
      task.label = fmt::format("operation {} of the GPU", i);
      tasks.push_back(std::move(task));
    }
    add_cpu(tasks);
    add_groups(tasks, groups);
    return tasks;
  }

  void count(KinetoCounts& counts) const {
    for (std::uint32_t i = 0; i < ops_.size(); ++i) {
      KinetoTotals& totals = is_simulated(i)                          ? counts.simulated
                             : by_op_[i] != kNoKineto                 ? counts.recorded
                             : ops_[i].kind == KinetoOp::Kind::kernel ? counts.compute
                                                                      : counts.copies;
      totals.add(ops_[i].duration);
      if (!is_simulated(i) && !copy_of(i) && traced_.graph.gaps[i] > 0)
        counts.gaps.add(traced_.graph.gaps[i]);
      if (is_simulated(i) && ops_[i].calls > 1) counts.grouped += ops_[i].calls;
      if (by_op_[i] == kNoKineto && is_timed_by_shape(i)) count_shape(i, counts);
    }
    for (const KinetoGraph::Point& point : traced_.graph.points) counts.cpu.add(point.work);
    counts.unexplained.count += traced_.graph.unexplained;
    counts.unexplained.time += traced_.graph.unexplained_time;
    counts.inferred += traced_.graph.inferred;
    counts.contradicted += traced_.graph.contradicted;
    counts.ignored += traced_.trace.ignored;
    counts.negative += traced_.trace.negative;
  }

 private:
  bool is_simulated(std::uint32_t op) const {
    return by_op_[op] != kNoKineto &&
           traced_.communications[by_op_[op]].kind != KinetoCommunication::Kind::unknown;
  }
  // Returns the kind of a copy between GPU and host in a trace of netsim, which is simulated anew. Other
  // copies take their recorded time.
  std::optional<TaskKind> copy_of(std::uint32_t op) const {
    if (!traced_.trace.is_simulated || ops_[op].kind != KinetoOp::Kind::copy || ops_[op].bytes == 0)
      return std::nullopt;
    const std::string& name = traced_.trace.names[ops_[op].name];
    if (name.starts_with("Memcpy DtoH")) return TaskKind::copy_to_host;
    return name.starts_with("Memcpy HtoD") ? std::optional(TaskKind::copy_from_host) : std::nullopt;
  }
  TraceTask copy(std::uint32_t op) const {
    TraceTask task;
    task.kind = *copy_of(op);
    task.name = program_.name(traced_.trace.names[ops_[op].name]);
    task.bytes = ops_[op].bytes;
    task.stream = Stream::offload;
    return task;
  }
  std::uint32_t fixed(const std::string& name, std::int64_t time) const {
    constexpr std::int64_t kLongest = ProgramLimits::kKernelTime / kNanosecond;
    if (time > kLongest) {
      fail_file(traced_.trace.path, fmt::format("'{}' takes {} ns; allowed: up to {}", name, time, kLongest));
    }
    return program_.fixed_work(name, time * kNanosecond);
  }
  TraceTask computation(std::uint32_t op) const {
    const std::string& name = traced_.trace.names[ops_[op].name];
    TraceTask task;
    task.name = program_.name(name.empty() ? "kernel" : name);
    if (const std::optional<Kernel> kernel = kernel_by_shape(op)) {
      task.work = program_.work(Work{name, {*kernel}});
      return task;
    }
    const Time work = ops_[op].work;
    task.work = work < 0 ? fixed(name.empty() ? "kernel" : name, work_[op])
                         : program_.fixed_work(name, work + traced_.graph.gaps[op] * kNanosecond);
    return task;
  }
  bool is_timed_by_shape(std::uint32_t op) const {
    return ops_[op].kind == KinetoOp::Kind::kernel && context_.times_by_shape &&
           context_.times_by_shape(traced_.trace.names[ops_[op].name]);
  }
  // Returns the shape of an operation's operator, or null if none was recorded.
  const KinetoShape* shape_of(std::uint32_t op) const {
    const auto found = traced_.trace.shapes.find(ops_[op].operation);
    return ops_[op].operation == 0 || found == traced_.trace.shapes.end() ? nullptr : &found->second;
  }
  // Returns the kernel as the compute model shall time it, if it shall and its shape tells its work.
  std::optional<Kernel> kernel_by_shape(std::uint32_t op) const {
    const KinetoShape* shape = is_timed_by_shape(op) ? shape_of(op) : nullptr;
    return shape == nullptr ? std::nullopt : kineto_kernel(traced_.trace.names[ops_[op].name], *shape);
  }
  void count_shape(std::uint32_t op, KinetoCounts& counts) const {
    const bool known = kernel_by_shape(op).has_value();
    (known ? counts.shaped : counts.shapeless).add(ops_[op].duration);
    const KinetoShape* shape = known || !counts.untimed.empty() ? nullptr : shape_of(op);
    if (shape != nullptr)
      counts.untimed = fmt::format(", such as '{}' of {}", traced_.trace.names[ops_[op].name], shape->text());
  }
  TraceTask communication(const KinetoCommunication& one, const std::vector<std::uint32_t>& groups) const {
    TraceTask task;
    const KinetoCall& call = traced_.trace.calls[one.call];
    task.name = program_.name(call.name);
    task.stream = kineto_stream(job_, one, call);
    task.bytes = one.bytes;
    if (one.kind == KinetoCommunication::Kind::collective) {
      task.kind = TaskKind::collective;
      task.collective = one.collective;
      task.blocks = one.blocks;
      task.group = groups[one.group];
      task.root = one.root;
    } else {
      task.kind = one.kind == KinetoCommunication::Kind::send ? TaskKind::send : TaskKind::receive;
      task.peer = one.peer;
    }
    return task;
  }

  // The calls of a group wait for the same tasks, and what waits for one waits for all. The first one is the
  // task of the kernel; this adds the others.
  void add_groups(std::vector<TraceTask>& tasks, const std::vector<std::uint32_t>& groups) const {
    std::map<std::uint32_t, std::pair<std::uint32_t, std::uint32_t>>
        others;  // by op: first task and their end
    for (std::uint32_t i = 0; i < ops_.size(); ++i) {
      if (!is_simulated(i) || ops_[i].calls < 2) continue;
      const auto first = static_cast<std::uint32_t>(tasks.size());
      for (std::uint32_t c = 1; c < ops_[i].calls; ++c) {
        TraceTask task = communication(traced_.communications[by_op_[i] + c], groups);
        task.order = i;
        task.after = tasks[i].after;
        task.label = tasks[i].label;
        tasks.push_back(std::move(task));
      }
      others[i] = {first, static_cast<std::uint32_t>(tasks.size())};
    }
    for (TraceTask& task : tasks) {
      const std::size_t count = task.after.size();
      for (std::size_t i = 0; i < count; ++i) {
        const auto found = others.find(task.after[i]);
        if (found == others.end()) continue;
        for (std::uint32_t other = found->second.first; other < found->second.second; ++other)
          task.after.push_back(other);
      }
    }
  }

  // The work of the CPU: points follow each other, and the rank's first tasks wait for its begin.
  void add_cpu(std::vector<TraceTask>& tasks) const {
    const std::uint32_t name = program_.name("cpu");
    std::optional<std::uint32_t> last;
    const auto add = [&](std::int64_t work, std::vector<std::uint32_t> after) {
      TraceTask task;
      task.kind = TaskKind::host_thread;
      task.name = name;
      task.work = fixed("cpu", work);
      task.after = std::move(after);
      if (last) task.after.push_back(*last);
      task.order = 0;
      last = static_cast<std::uint32_t>(tasks.size());
      tasks.push_back(std::move(task));
    };
    std::optional<std::uint32_t> begin;
    if (traced_.delay > 0) {
      add(traced_.delay, {});
      begin = last;
    }
    for (const KinetoGraph::Point& point : traced_.graph.points) {
      add(point.work, point.after);
      if (point.op != kNoKineto) tasks[point.op].after.push_back(*last);
    }
    for (std::uint32_t i = 0; begin && i < ops_.size(); ++i) {
      if (tasks[i].after.empty()) tasks[i].after.push_back(*begin);
    }
  }

  const KinetoJob& job_;
  const KinetoJob::Rank& traced_;
  const std::vector<KinetoOp>& ops_;
  TraceProgram& program_;
  const WorkloadContext& context_;
  std::vector<std::uint32_t> by_op_;  // index in the communications
  std::vector<std::int64_t> work_;
};

// ---- Ranks without a trace

// Grid: ranks of a group are `stride` apart.
struct KinetoGrid {
  std::uint32_t stride = 1, size = 1;
};

// Returns the grid of a group that, moved, divides all ranks; nothing for other groups.
std::optional<KinetoGrid> grid_of(const std::vector<RankId>& ranks, std::uint32_t world) {
  KinetoGrid grid;
  grid.size = static_cast<std::uint32_t>(ranks.size());
  if (grid.size == 1) return grid;
  if (ranks[1] <= ranks[0]) return std::nullopt;
  grid.stride = ranks[1] - ranks[0];
  for (std::uint32_t i = 0; i < grid.size; ++i) {
    if (ranks[i] != ranks[0] + i * grid.stride) return std::nullopt;
  }
  const bool aligned = ranks[0] / grid.stride % grid.size == 0;
  return aligned && world % (grid.stride * grid.size) == 0 ? std::optional(grid) : std::nullopt;
}

// KinetoFiller: adds the ranks that have no trace.
class KinetoFiller {
 public:
  KinetoFiller(const KinetoJob& job, TraceProgram& program) : job_(job), program_(program) {
    grids_.reserve(job.groups().size());
    for (const KinetoJob::Group& group : job.groups()) grids_.push_back(grid_of(group.ranks, job.world()));
  }

  // Returns whether all ranks can do what the only traced one does.
  bool can_copy() const {
    if (job_.ranks().size() != 1) return false;
    for (const KinetoCommunication& one : job_.ranks().front().communications) {
      if (one.kind == KinetoCommunication::Kind::send || one.kind == KinetoCommunication::Kind::receive)
        return false;
    }
    return std::all_of(grids_.begin(), grids_.end(), [](const auto& grid) { return grid.has_value(); });
  }

  // Returns for each group the one to which `rank` belongs, if all do what the traced rank does.
  std::vector<std::uint32_t> groups_of(std::uint32_t rank) {
    std::vector<std::uint32_t> groups;
    groups.reserve(job_.groups().size());
    for (std::uint32_t g = 0; g < grids_.size(); ++g) {
      const KinetoGrid grid = *grids_[g];
      const std::uint32_t first = rank - rank / grid.stride % grid.size * grid.stride;
      const auto [at, is_new] = copies_.try_emplace({g, first}, 0);
      if (is_new) {
        std::vector<RankId> members;
        members.reserve(grid.size);
        for (std::uint32_t i = 0; i < grid.size; ++i) members.emplace_back(first + i * grid.stride);
        at->second = program_.group(members, job_.groups()[g].communicator);
      }
      groups.push_back(at->second);
    }
    return groups;
  }

  // Returns by rank the other ends of the communications of traced ranks. Those of a group follow each other,
  // and so do the messages of a pair.
  std::map<std::uint32_t, std::vector<TraceTask>> other_ends(const std::vector<std::uint32_t>& groups) {
    std::vector<bool> traced(job_.world(), false);
    for (const KinetoJob::Rank& rank : job_.ranks()) traced[rank.rank] = true;
    std::map<std::uint32_t, std::vector<TraceTask>> tasks;
    for (const KinetoJob::Instance& instance : job_.instances()) {
      const auto [index, c] = instance.members.front();
      const KinetoJob::Rank& rank = job_.ranks()[index];
      const KinetoCommunication& one = rank.communications[c];
      const KinetoCall& call = rank.trace.calls[one.call];
      if (one.kind == KinetoCommunication::Kind::collective) {
        for (const RankId member : job_.groups()[one.group].ranks) {
          if (!traced[member])
            add(tasks[member], collective_end(one, call, groups[one.group]), member, {0, one.group});
        }
      } else if (!traced[one.peer]) {
        const std::uint32_t direction = one.kind == KinetoCommunication::Kind::send ? 1 : 2;
        add(tasks[one.peer], message_end(one, rank.rank, call), one.peer, {direction, rank.rank + 0U});
      }
    }
    return tasks;
  }

 private:
  using Channel = std::pair<std::uint32_t, std::uint32_t>;

  TraceTask collective_end(const KinetoCommunication& one, const KinetoCall& call, std::uint32_t group) {
    TraceTask task;
    task.kind = TaskKind::collective;
    task.name = program_.name(call.name);
    task.stream = kineto_stream(job_, one, call);
    task.collective = one.collective;
    task.bytes = one.bytes;
    task.group = group;
    task.root = one.root;
    return task;
  }
  TraceTask message_end(const KinetoCommunication& one, RankId other, const KinetoCall& call) {
    TraceTask task;
    task.kind = one.kind == KinetoCommunication::Kind::send ? TaskKind::receive : TaskKind::send;
    task.name = program_.name(call.name);
    task.stream = kineto_stream(job_, one, call);
    task.bytes = one.bytes;
    task.peer = other;
    return task;
  }
  void add(std::vector<TraceTask>& tasks, TraceTask task, RankId rank, Channel channel) {
    task.order = tasks.size();
    const auto [last, is_first] = last_.try_emplace({rank + 0U, channel}, 0);
    if (!is_first) task.after.push_back(last->second);
    last->second = static_cast<std::uint32_t>(tasks.size());
    tasks.push_back(std::move(task));
  }

  const KinetoJob& job_;
  TraceProgram& program_;
  std::vector<std::optional<KinetoGrid>> grids_;  // by group of the job
  // By group of the job and first rank: the group of the program.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> copies_;
  std::map<std::pair<std::uint32_t, Channel>, std::uint32_t> last_;  // task of a rank in a channel
};

// ---- The reader

std::vector<std::string> kineto_notes(const KinetoJob& job, const KinetoCounts& counts, bool copied) {
  std::vector<std::string> notes;
  notes.push_back(
      fmt::format("operations of the GPU, with their recorded times: computation {}, communication "
                  "{}, copies and fills {}",
                  counts.compute.text(), counts.simulated.text(), counts.copies.text()));
  const auto note = [&](std::uint64_t count, const std::string& text) {
    if (count > 0) notes.push_back(text);
  };
  note(counts.cpu.count, "work of CPUs that launched late: " + counts.cpu.text());
  note(
      counts.recorded.count,
      "communications whose size, group or peer is missing or not allowed, which take their recorded time on "
      "the GPU: " +
          counts.recorded.text());
  note(counts.shaped.count,
       "kernels that the compute model times by their recorded shapes, without the pauses before them: " +
           counts.shaped.text());
  note(counts.shapeless.count,
       fmt::format("{}: {}{}", kUntimedKernels, counts.shapeless.text(), counts.untimed));
  note(counts.gaps.count,
       "pauses of up to 5 us before operations, which are part of their work: " + counts.gaps.text());
  note(counts.unexplained.count,
       "longer waiting that no recorded cause explains, left out: " + counts.unexplained.text());
  note(counts.grouped, fmt::format("calls of groups that one kernel runs, matched by the order of calls: {}",
                                   counts.grouped));
  note(counts.negative, fmt::format("events with a negative duration, taken as 0: {}", counts.negative));
  note(job.world() > 1 ? job.named() : 0,
       fmt::format("files that do not say their rank, which is that of their names or order: {}",
                   job.named()));
  note(counts.inferred,
       fmt::format(
           "waits between streams that the trace does not record, inferred from launches and times: {}",
           counts.inferred));
  note(counts.contradicted,
       fmt::format("recorded waits that the times contradict, left out: {}", counts.contradicted));
  note(counts.ignored, fmt::format("other events, which are not used: {}", counts.ignored));
  const std::size_t untraced = job.world() - job.ranks().size();
  note(untraced,
       fmt::format("ranks without a trace: {}, which {}", untraced,
                   copied ? "do what the traced rank does"
                          : "take part in the communications of traced ranks and are always ready"));
  std::uint64_t unaligned = 0, devices = 0, conflicts = 0;
  std::int64_t largest = 0;
  for (const KinetoJob::Rank& rank : job.ranks()) {
    unaligned += rank.aligned ? 0 : 1;
    largest = std::max({largest, rank.offset, -rank.offset});
    devices += rank.devices > 1 ? 1 : 0;
    conflicts += rank.conflicts;
  }
  note(devices,
       fmt::format("ranks whose kernels ran on several devices in turn, all on the rank's one GPU here: {}",
                   devices));
  note(conflicts,
       fmt::format("calls whose group has other ranks in pg_config, or another size than its ranks "
                   "(pg_config counts, then the ranks): {}",
                   conflicts));
  note(unaligned,
       fmt::format("ranks whose clocks no collective aligns, which begin with the first one: {}", unaligned));
  if (job.ranks().size() > unaligned + 1) {
    notes.push_back("clocks of ranks, aligned by the ends of collectives, differ by up to " +
                    human_seconds(static_cast<double>(largest) * 1e-9));
  }
  return notes;
}

// Returns the name of the only file, or of the folder of several.
std::string kineto_job_name(const KinetoJob& job) {
  const std::filesystem::path first = job.ranks().front().trace.path;
  const std::string folder = first.parent_path().filename().string();
  if (job.ranks().size() == 1) return first.stem().string();
  return folder.empty() || folder == "." || folder == ".." ? "kineto" : folder;
}

class KinetoReader final : public WorkloadReader {
 public:
  std::unique_ptr<TaskSource> open(const InputSet& input, const WorkloadContext& context) const override {
    const KinetoJob job(input, static_cast<bool>(context.times_by_shape));
    TraceProgram program(printable(kineto_job_name(job)), job.world(), input.name());
    std::vector<std::uint32_t> groups;
    groups.reserve(job.groups().size());
    for (const KinetoJob::Group& group : job.groups())
      groups.push_back(program.group(group.ranks, group.communicator));
    KinetoCounts counts;
    KinetoFiller filler(job, program);
    const bool copies = filler.can_copy();
    for (const KinetoJob::Rank& rank : job.ranks()) {
      KinetoTasks tasks(job, rank, program, context);
      tasks.count(counts);
      program.add_rank(rank.rank, tasks.make(groups), rank.trace.path);
      for (std::uint32_t other = 0; copies && other < job.world(); ++other) {
        if (other != rank.rank + 0U)
          program.add_rank(RankId(other), tasks.make(filler.groups_of(other)), rank.trace.path);
      }
    }
    if (!copies) {
      for (auto& [other, tasks] : filler.other_ends(groups))
        program.add_rank(RankId(other), std::move(tasks), input.name());
    }
    return program.finish(kineto_notes(job, counts, copies));
  }
};

const Registration<WorkloadReader> kKineto{
    "kineto", "traces of PyTorch's profiler (Kineto), one file per rank; one rank is enough",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<KinetoReader>(); }};

}  // namespace
}  // namespace netsim
