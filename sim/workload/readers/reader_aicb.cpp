// aicb_csv: workloads of AICB, a table of the communications of one rank in their order. All ranks run it, or
// those of a pipeline's stage where the file has a table for each stage.
//
//   [rank0 ~ rank127]
//   comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time,algbw,busbw,count
//   CommType.all_reduce,CommGroup.tp_group,8,20971520,forward,None,None,,None,None,None,1
//   CommType.isend,CommGroup.pp_group,1,33554432,forward_step,None,None,send_next,None,None,None,1
//
// Each row waits for the one before it, as AICB's own runs do (workload_applyer.py). The size of an
// all-gather is what all ranks have together, as in netsim. AICB's table of GPT-13B with sequence parallelism
// shows it: its gathers have the whole tensor. A computation has two shapes of matrices, and takes its
// measured time where the row has it.
//
// The table of one stage has its forward and backward passes, by which the other stages are filled in.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/errors.h"
#include "sim/core/recognise.h"
#include "sim/core/registry.h"
#include "sim/workload/trace/aicb_table.h"
#include "sim/workload/trace/trace_program.h"
#include "sim/workload/trace/traced_stages.h"
#include "sim/workload/workload.h"

namespace netsim {
namespace {

// AicbPass: rows of one iteration, by what they are for. Forward and backward passes are by microbatch.
struct AicbPass {
  using Rows = std::vector<const AicbRow*>;
  Rows before, after;
  std::vector<Rows> forward, backward;
  Bytes activations = 0, gradients = 0;  // of a message; 0: no row has one
  std::int64_t ahead = 0;                // forward passes before the first backward pass
};

class AicbJob {
 public:
  AicbJob(const InputSet::File& file, const WorkloadContext& context)
      : table_(read_aicb_table(file)),
        path_(file.path),
        gpus_(context.gpus),
        most_ranks_(context.most_ranks),
        sizes_(table_.group_sizes) {}

  std::unique_ptr<TaskSource> read() {
    set_stages();
    set_ranks();
    TraceProgram program("aicb", static_cast<std::uint32_t>(shape_.ranks), path_);
    if (fills_in_stages()) {
      const std::vector<AicbPass> passes = find_passes();
      for (std::int64_t stage = 0; stage < shape_.stages; ++stage)
        program.add_ranks(shape_.ranks_of(stage), filled_in(program, passes, stage), path_);
    } else {
      for (std::int64_t stage = 0; stage < shape_.stages; ++stage)
        program.add_ranks(shape_.ranks_of(stage), recorded(program, stage), path_);
    }
    return program.finish(notes());
  }

 private:
  const std::vector<AicbRow>& rows() const { return table_.sections.front().rows; }
  bool has_tables_of_stages() const { return table_.sections.size() > 1; }
  // Returns whether one table stands for all stages, and has messages between them.
  bool fills_in_stages() const { return !has_tables_of_stages() && shape_.stages > 1 && messages_ > 0; }
  std::int64_t size_of(AicbGroup of) const { return sizes_[static_cast<std::size_t>(of)]; }
  [[noreturn]] void fail_line(int line, const std::string& message) const {
    throw InputError(Place{path_, line, 1, ""}, message);
  }

  // ---- Ranks and groups

  // Stages are those of the file's tables, or of groups along the pipeline, or those to which the ranks
  // belong. Otherwise stage 0 has a forward pass for each stage before its first backward pass.
  void set_stages() {
    for (const AicbTable::Section& section : table_.sections) listed_ += std::ssize(section.ranks);
    messages_ = count_rows([](const AicbRow& row) { return row.kind == AicbRow::Kind::message; });
    const std::int64_t known = size_of(AicbGroup::pp);
    shape_.stages = std::max<std::int64_t>(known, 1);
    if (has_tables_of_stages()) {
      const auto tables = static_cast<std::int64_t>(table_.sections.size());
      if (known != 0 && known != tables)
        fail_line(table_.sections[1].line,
                  fmt::format("the file has {} tables of stages, and a pp_group has {} "
                              "ranks; allowed: a table for each stage, or one table",
                              tables, known));
      shape_.stages = tables;
    } else if (messages_ > 0 && known == 0) {
      const std::int64_t of_stage = ranks_of_stage();
      shape_.stages = of_stage > 0 && listed_ % of_stage == 0 ? listed_ / of_stage : 0;
      if (shape_.stages < 2) shape_.stages = guessed_ = forward_passes_ahead();
      if (shape_.stages < 2)
        fail_line(first_message(),
                  "a message of a pipeline, and nothing tells its stages; allowed: a pp_group "
                  "with its comm_group_size, the ranks in the first line, or a table for each "
                  "stage");
    }
  }
  std::int64_t forward_passes_ahead() const {
    const std::vector<AicbPass> passes = find_passes();
    const auto first = std::find_if(passes.begin(), passes.end(),
                                    [](const AicbPass& pass) { return !pass.forward.empty(); });
    return first == passes.end() ? 0 : first->ahead;
  }
  int first_message() const {
    const auto first = std::find_if(rows().begin(), rows().end(),
                                    [](const AicbRow& row) { return row.kind == AicbRow::Kind::message; });
    return first->line;
  }
  // Returns the ranks of a stage by the sizes of its groups, or 0 where these do not tell. The groups of
  // experts and of their replicas tell as much as those of all replicas.
  std::int64_t ranks_of_stage() const {
    const std::int64_t by_experts = size_of(AicbGroup::ep) * size_of(AicbGroup::ep_dp);
    const std::int64_t columns = size_of(AicbGroup::dp) > 0 ? size_of(AicbGroup::dp) : by_experts;
    return columns * std::max<std::int64_t>(size_of(AicbGroup::tp), 1);
  }

  // Ranks are those that the file lists, or those of the groups, or all GPUs.
  void set_ranks() {
    const std::int64_t tp = std::max<std::int64_t>(size_of(AicbGroup::tp), 1);
    std::int64_t& ranks = shape_.ranks;
    ranks = listed_ > 0 ? listed_ : size_of(AicbGroup::all);
    // The table of one stage may list the ranks of this stage only.
    const bool of_stage = table_.sections.front().of_stage || listed_ == ranks_of_stage();
    if (fills_in_stages() && listed_ > 0 && of_stage) ranks = listed_ * shape_.stages;
    if (ranks == 0) ranks = ranks_of_stage() * shape_.stages;
    if (ranks == 0) ranks = gpus_;
    if (ranks > std::int64_t{most_ranks_})
      fail_file(path_, fmt::format("{} GPUs are needed, but the cluster has {}", ranks, most_ranks_));
    if (ranks % (tp * shape_.stages) != 0)
      fail_file(path_, fmt::format("{} ranks are no multiple of {} (tp_group){}", ranks, tp,
                                   shape_.stages > 1 ? fmt::format(" x {} (stages)", shape_.stages) : ""));
    set_sizes(tp);
    if (has_tables_of_stages()) sort_tables();
  }
  void set_sizes(std::int64_t tp) {
    const std::int64_t columns = shape_.stride() / tp;
    const auto otherwise = [&](AicbGroup of, std::int64_t count) {
      std::int64_t& known = sizes_[static_cast<std::size_t>(of)];
      if (known != 0) return;
      known = count;
      for (const AicbTable::Section& section : table_.sections) {
        const auto calls = [&](const AicbRow& row) {
          return row.kind == AicbRow::Kind::collective && row.group == of;
        };
        if (!std::any_of(section.rows.begin(), section.rows.end(), calls)) continue;
        ++assumed_;
        return;
      }
    };
    otherwise(AicbGroup::tp, tp);
    otherwise(AicbGroup::pp, shape_.stages);
    otherwise(AicbGroup::dp, columns);
    otherwise(AicbGroup::ep, columns);
    otherwise(AicbGroup::ep_tp, tp);
    otherwise(AicbGroup::ep_dp, std::max<std::int64_t>(columns / size_of(AicbGroup::ep), 1));
    sizes_[static_cast<std::size_t>(AicbGroup::all)] = shape_.ranks;
    for (std::size_t i = 0; i < kAicbGroups; ++i) {
      const auto of = static_cast<AicbGroup>(i);
      if (shape_.ranks % (stride(of) * size_of(of)) != 0)
        fail_line(table_.sections.front().line,
                  fmt::format("{} ranks are no multiple of {} ranks of a group, {} apart; allowed: other "
                              "ranks in the first line (`[rank0 ~ rank15]`)",
                              shape_.ranks, size_of(of), stride(of)));
    }
  }
  // Sorts the tables by stage. Stages are the farthest apart.
  void sort_tables() {
    const auto first = [](const AicbTable::Section& section) {
      return section.ranks.empty() ? RankId(UINT32_MAX - 1) : section.ranks.front();
    };
    std::stable_sort(table_.sections.begin(), table_.sections.end(),
                     [&](const auto& a, const auto& b) { return first(a) < first(b); });
    for (std::int64_t stage = 0; stage < shape_.stages; ++stage) {
      const AicbTable::Section& section = table_.sections[static_cast<std::size_t>(stage)];
      if (section.ranks != shape_.ranks_of(stage))
        fail_line(
            section.line,
            fmt::format("the table of stage {} is for other ranks than {} to {}, which are those of {} "
                        "equal stages; allowed: these",
                        stage, stage * shape_.stride(), (stage + 1) * shape_.stride() - 1, shape_.stages));
    }
  }
  // Ranks of one tensor-parallel group follow each other, then those of one expert-parallel group. Stages of
  // a pipeline are the farthest apart.
  std::int64_t stride(AicbGroup of) const {
    if (of == AicbGroup::dp || of == AicbGroup::ep) return size_of(AicbGroup::tp);
    if (of == AicbGroup::pp) return std::max<std::int64_t>(shape_.ranks / size_of(of), 1);
    return of == AicbGroup::ep_dp ? size_of(AicbGroup::tp) * size_of(AicbGroup::ep) : 1;
  }

  // ---- Passes of one stage's table

  static bool is_forward(const AicbRow& row) { return row.stage.starts_with("forward"); }
  static bool is_backward(const AicbRow& row) { return row.stage.starts_with("backward"); }

  // Divides the rows of each iteration into passes. A pass has rows of one direction, and ends at a message
  // or where the direction changes. Rows of neither belong to the pass before them, or to the iteration's
  // end.
  std::vector<AicbPass> find_passes() const {
    std::vector<AicbPass> passes(1);
    bool goes_on = false, forward = false;
    for (const AicbRow& row : rows()) {
      AicbPass& pass = passes.back();
      if (row.kind == AicbRow::Kind::message) {
        (row.is_forward() ? pass.activations : pass.gradients) = row.bytes;
        goes_on = false;
      } else if (row.kind == AicbRow::Kind::epoch_end) {
        passes.emplace_back();
        goes_on = false;
      } else if (is_forward(row) || is_backward(row)) {
        auto& list = is_forward(row) ? pass.forward : pass.backward;
        if (list.empty() && is_backward(row)) pass.ahead = std::ssize(pass.forward);
        if (!goes_on || forward != is_forward(row)) list.emplace_back();
        list.back().push_back(&row);
        goes_on = true;
        forward = is_forward(row);
      } else if (pass.forward.empty()) {
        pass.before.push_back(&row);
      } else {
        (forward ? pass.forward : pass.backward).back().push_back(&row);
      }
    }
    for (AicbPass& pass : passes) end_pass(pass);
    return passes;
  }
  // Moves what follows the last backward pass behind it, and checks the number of passes.
  void end_pass(AicbPass& pass) const {
    if (!pass.backward.empty()) {
      AicbPass::Rows& last = pass.backward.back();
      const auto end =
          std::find_if(last.rbegin(), last.rend(), [](const AicbRow* row) { return is_backward(*row); });
      pass.after.assign(end.base(), last.end());
      last.erase(end.base(), last.end());
    }
    const bool has_messages = pass.activations > 0 || pass.gradients > 0;
    if (pass.forward.size() == pass.backward.size() && (!has_messages || !pass.forward.empty())) return;
    fail_line(
        first_message(),
        fmt::format("a message of a pipeline, and the table is that of one stage. An iteration of it has {} "
                    "forward and {} backward passes, by which the other stages would be filled in; allowed: "
                    "as many of each, whose rows have a stage that begins with forward or backward, or a "
                    "table for each stage",
                    pass.forward.size(), pass.backward.size()));
  }

  // ---- One stage

  // Stage: the tasks of a stage's ranks so far, and those for which the next one waits.
  struct Stage {
    std::vector<TraceTask> list = {};
    std::vector<std::uint32_t> frontier = {};
    TraceTask& add(TraceTask task) {
      task.order = list.size();
      list.push_back(std::move(task));
      return list.back();
    }
    std::uint32_t last() const { return static_cast<std::uint32_t>(list.size() - 1); }
  };

  // Returns the tasks of a stage by its own table, or by the one of all ranks.
  std::vector<TraceTask> recorded(TraceProgram& program, std::int64_t number) {
    Stage stage;
    const std::size_t section = has_tables_of_stages() ? static_cast<std::size_t>(number) : 0;
    for (const AicbRow& row : table_.sections[section].rows) {
      if (row.kind == AicbRow::Kind::message) {
        add_recorded_message(program, stage, row, number);
      } else if (row.kind != AicbRow::Kind::epoch_end) {
        add_row(program, stage, row);
      }
    }
    return std::move(stage.list);
  }
  // AICB leaves out messages over the ends of the pipeline.
  void add_recorded_message(TraceProgram& program, Stage& stage, const AicbRow& row, std::int64_t number) {
    const std::int64_t peer = number + (row.next ? 1 : -1);
    if (peer < 0 || peer >= shape_.stages) {
      ++over_the_end_;
      return;
    }
    TracedStep step;
    step.forward = row.is_forward();
    step.received = step.sent = row.is_forward() ? 0 : 1;
    TraceTask task =
        traced_message(program, shape_, step, row.sends ? TaskKind::send : TaskKind::receive, row.bytes);
    task.label = fmt::format("line {}", row.line);
    task.after = stage.frontier;
    stage.add(std::move(task));
    stage.frontier = {stage.last()};
  }

  // Returns the tasks of a stage with the rows of another one, in the order 1F1B.
  std::vector<TraceTask> filled_in(TraceProgram& program, const std::vector<AicbPass>& passes,
                                   std::int64_t number) {
    Stage stage;
    for (const AicbPass& pass : passes) {
      TracedStages shape = shape_;
      shape.microbatches = std::ssize(pass.forward);
      microbatches_ = std::max(microbatches_, shape.microbatches);
      add_rows(program, stage, pass.before);
      for (const TracedStep& step : traced_steps(shape, number)) {
        if (step.received) add_message(program, stage, step, TaskKind::receive, pass);
        const auto microbatch = static_cast<std::size_t>(step.microbatch);
        add_rows(program, stage, step.forward ? pass.forward[microbatch] : pass.backward[microbatch]);
        if (step.sent) add_message(program, stage, step, TaskKind::send, pass);
      }
      add_rows(program, stage, pass.after);
    }
    return std::move(stage.list);
  }
  // The next tasks wait for a receive, and not for a send.
  void add_message(TraceProgram& program, Stage& stage, const TracedStep& step, TaskKind kind,
                   const AicbPass& pass) const {
    const Bytes own = step.forward ? pass.activations : pass.gradients;
    const Bytes bytes = own > 0 ? own : std::max(pass.activations, pass.gradients);
    TraceTask& task = stage.add(traced_message(program, shape_, step, kind, bytes));
    if (kind == TaskKind::send) task.after = stage.frontier;
    if (kind == TaskKind::receive) stage.frontier.push_back(stage.last());
  }

  void add_rows(TraceProgram& program, Stage& stage, const AicbPass::Rows& rows) const {
    for (const AicbRow* row : rows) add_row(program, stage, *row);
  }
  void add_row(TraceProgram& program, Stage& stage, const AicbRow& row) const {
    TraceTask task;
    task.name = program.name(row.stage);
    task.label = fmt::format("line {}", row.line);
    task.after = stage.frontier;
    if (row.kind == AicbRow::Kind::computation) {
      task.work = work(program, row);
    } else if (row.bytes > 0 || row.collective == CollectiveKind::barrier) {
      task.kind = TaskKind::collective;
      task.collective = row.collective;
      task.bytes = row.bytes;
      task.stream = stream_of(row.group);
      task.root = static_cast<std::uint32_t>(row.root / stride(row.group) % size_of(row.group));
      task.group = program.regular_groups(stride(row.group), size_of(row.group));
    } else {
      task.work = program.fixed_work("nothing", 0);
    }
    stage.add(std::move(task));
    stage.frontier = {stage.last()};
  }
  static std::uint32_t work(TraceProgram& program, const AicbRow& row) {
    if (row.time > 0 || row.m * row.n * row.k == 0) return program.fixed_work(row.stage, row.time);
    Kernel kernel;
    kernel.kind = Kernel::Kind::gemm;
    kernel.name = row.stage;
    kernel.m = row.m;
    kernel.n = row.n;
    kernel.k = row.k;
    return program.work({row.stage, {kernel}});
  }
  static Stream stream_of(AicbGroup of) {
    if (of == AicbGroup::tp || of == AicbGroup::ep_tp) return Stream::tp;
    return of == AicbGroup::ep ? Stream::ep : of == AicbGroup::pp ? Stream::pp : Stream::dp;
  }

  // ---- Notes

  std::int64_t count_rows(bool (*matches)(const AicbRow&)) const {
    std::int64_t count = 0;
    for (const AicbTable::Section& section : table_.sections)
      count += std::count_if(section.rows.begin(), section.rows.end(), matches);
    return count;
  }
  std::vector<std::string> notes() const {
    std::vector<std::string> list;
    const auto note = [&](std::int64_t count, const char* what) {
      if (count > 0) list.push_back(fmt::format("{}: {}", what, count));
    };
    const auto computes = [](const AicbRow& row) { return row.kind == AicbRow::Kind::computation; };
    note(count_rows([](const AicbRow& row) {
           return row.kind == AicbRow::Kind::computation && row.time == 0 && row.m > 0;
         }),
         "computations without a measured time, timed by the compute model");
    if (count_rows(computes) == 0)
      list.emplace_back("the table has no computation, so communications follow each other");
    note(assumed_, "kinds of groups without a comm_group_size, which got the largest that fits");
    note(over_the_end_, "messages over the ends of the pipeline, which AICB leaves out");
    if (fills_in_stages())
      list.push_back(
          fmt::format("all {} stages of the pipeline have the rows of the table, and run {} "
                      "microbatches in the order 1F1B",
                      shape_.stages, microbatches_));
    note(guessed_, "stages of the pipeline, as many as forward passes before the first backward pass");
    if (!table_.unused_columns.empty()) list.push_back("columns that are not used: " + table_.unused_columns);
    return list;
  }

  AicbTable table_;
  std::string path_;
  std::uint32_t gpus_, most_ranks_;
  std::array<std::int64_t, kAicbGroups> sizes_;  // ranks of a group
  TracedStages shape_;
  std::int64_t listed_ = 0;    // ranks that the file lists
  std::int64_t messages_ = 0;  // rows with a message
  std::int64_t guessed_ = 0;   // stages, where only the passes tell them
  std::int64_t assumed_ = 0, over_the_end_ = 0, microbatches_ = 0;
};

bool is_aicb(const Excerpt& file) {
  for (std::size_t i = 0; i < 2; ++i) {
    const auto cells = file.cells(i, ',');
    if (cells.size() > 2 && cells[0] == "comm_type" && cells[1] == "comm_group") return true;
  }
  return false;
}

const FormatRegistration kAicbFormat{{.name = "aicb_csv",
                                      .what = "a workload of AICB",
                                      .use = Format::Use::workload,
                                      .matches = is_aicb,
                                      .component = "aicb_csv",
                                      .advice = {},
                                      .endings = {".csv"}}};

class AicbReader final : public WorkloadReader {
 public:
  std::unique_ptr<TaskSource> open(const InputSet& input, const WorkloadContext& context) const override {
    return AicbJob(input.only("a workload of AICB"), context).read();
  }
};

const Registration<WorkloadReader> kAicb{
    "aicb_csv",
    "a workload of AICB (.csv): the communications of one rank, or of one rank of each stage of a pipeline",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<AicbReader>(); }};

}  // namespace
}  // namespace netsim
