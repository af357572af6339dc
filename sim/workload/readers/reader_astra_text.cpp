// astra_text: workloads of SimAI and of ASTRA-sim 1.0, a table of layers:
//
//   HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 1 pp: 1 all_gpus: 8
//   1
//   mlp -1 5000 ALLREDUCE 65536 9000 NONE 0 100 ALLREDUCE 131072 10
//
// The columns of a layer are its name, a dependency that no reader uses, three times [ns] and the time of the
// update. Each of the three times has a collective and its size. The three belong to the forward pass, the
// gradient of the input and the gradient of the weights.
//
// One pass is read. Each rank runs the layers forward, then backward. It waits for the collectives of the
// forward pass and of the input's gradient, not for those of the weights' gradient. All ranks of a stage have
// the same tasks, which are made once.
//
// Sizes are those of netsim: an all-gather has the size of what it gathers from all ranks.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/input_file.h"
#include "sim/core/recognise.h"
#include "sim/core/registry.h"
#include "sim/core/text.h"
#include "sim/workload/trace/trace_program.h"
#include "sim/workload/trace/traced_stages.h"
#include "sim/workload/workload.h"

namespace netsim {
namespace {

constexpr std::size_t kAstraColumns = 12;
constexpr std::int64_t kMostAstraRows = 1 << 20;
// SimAI raises smaller collectives of the forward pass to this size.
constexpr Bytes kLeastForward = 4096;

enum class AstraGroup : std::uint8_t { none, tp, dp, ep, dp_ep };

struct AstraPart {
  Time time = 0;
  AstraGroup group = AstraGroup::none;  // none: no collective
  CollectiveKind collective = CollectiveKind::all_reduce;
  Bytes bytes = 0;
};

struct AstraRow {
  std::string name;
  int line = 0;
  std::array<AstraPart, 3> parts;  // forward, gradient of the input, gradient of the weights
};

class AstraText {
 public:
  AstraText(const InputSet::File& file, const WorkloadContext& context)
      : reader_(file), path_(file.path), gpus_(context.gpus), most_ranks_(context.most_ranks) {}

  std::unique_ptr<TaskSource> read() {
    read_head();
    read_rows();
    if (pp_ > 1) find_microbatches();
    const TracedStages shape{ranks_, pp_, microbatches_, std::ssize(chunk_rows_) - 1};
    check_size(shape);
    TraceProgram program("layers", static_cast<std::uint32_t>(ranks_), path_);
    for (std::int64_t stage = 0; stage < pp_; ++stage)
      program.add_ranks(shape.ranks_of(stage), tasks(program, shape, stage), path_);
    return program.finish(notes(shape));
  }

 private:
  void read_head() {
    std::vector<Word> words;
    if (!reader_.next_line(words)) reader_.fail({"", 1, 1}, "a policy is expected");
    read_policy(words[0]);
    for (std::size_t i = 1; i < words.size(); ++i) read_key(words, i);
    if (!ranks_) ranks_ = gpus_;
    if (ranks_ > std::int64_t{most_ranks_})
      reader_.fail(words[0], fmt::format("{} GPUs are needed, but the cluster has {}", ranks_, most_ranks_));
    if (policy_ == "MODEL") tp_ = ranks_;
    if (ranks_ % (tp_ * ep_ * pp_) != 0) {
      reader_.fail(
          words[0],
          fmt::format("{} ranks are no multiple of {} (model_parallel_NPU_group) x {} (ep) x {} (pp)", ranks_,
                      tp_, ep_, pp_));
    }
    if (pp_ > 1 && pp_bytes_ == 0)
      reader_.fail(words[0],
                   "pp_comm is missing or 0: the bytes of a message between stages of the pipeline");
  }

  void read_policy(const Word& word) {
    if (!is_one_of(word.text,
                   {"DATA", "MODEL", "MICRO", "HYBRID_TRANSFORMER", "HYBRID_TRANSFORMER_FWD_IN_BCKWD"})) {
      reader_.fail(word,
                   fmt::format("policy {} is not read, as its groups depend on the network's dimensions "
                               "or on the row; allowed: DATA, MODEL, MICRO, HYBRID_TRANSFORMER, "
                               "HYBRID_TRANSFORMER_FWD_IN_BCKWD",
                               printable(word.text.substr(0, 40))));
    }
    policy_ = word.text;
  }

  // Reads the key words[i] and moves `i` to its last value. Keys that no version of SimAI reads are not used.
  void read_key(const std::vector<Word>& words, std::size_t& i) {
    std::string key = printable(lower_case(words[i].text.substr(0, 40)));
    if (key.ends_with(':')) key.pop_back();
    if (i + 1 == words.size()) reader_.fail(words[i], "a value is missing behind '" + key + "'");
    const Word& value = words[++i];
    if (key == "pp_comm") {
      pp_bytes_ = reader_.whole(value, key, {0, ProgramLimits::kBytes});
    } else if (key == "checkpoints" || key == "checkpoint_initiates") {
      if (reader_.integer(value, key, {0, UINT32_MAX}) != 0)
        reader_.fail(value, "recomputation from checkpoints is not read; allowed: 0");
    } else if (std::int64_t* degree = degree_of(key); degree != nullptr) {
      *degree = reader_.integer(value, key, {1, kMostRanks});
    } else if (key == "vpp" || key == "ga") {
      (key == "ga" ? microbatches_ : chunks_) =
          std::max<std::int64_t>(reader_.integer(value, key, {0, UINT32_MAX}), 1);
    } else {
      read_unused(words, i, key);
    }
  }
  std::int64_t* degree_of(std::string_view key) {
    if (key == "pp") return &pp_;
    if (key == "model_parallel_npu_group") return &tp_;
    if (key == "ep" || key == "expert_parallel_npu_group") return &ep_;
    return key == "all_gpus" ? &ranks_ : nullptr;
  }
  // Skips a key with its values, which may be none: up to the next word that looks like a key.
  void read_unused(const std::vector<Word>& words, std::size_t& i, const std::string& key) {
    if (!words[i - 1].text.ends_with(':')) {
      reader_.fail(words[i - 1],
                   "'" + key +
                       "' is not known here (allowed: model_parallel_NPU_group, ep, pp, vpp, ga, "
                       "all_gpus, checkpoints, checkpoint_initiates, pp_comm, or another key with a colon)");
    }
    append_item(unused_keys_, key);
    while (i < words.size() && is_number_word(words[i].text)) ++i;
    --i;
  }

  void read_rows() {
    const std::int64_t count =
        reader_.integer(reader_.next("the number of rows"), "the number of rows", {0, kMostAstraRows});
    std::vector<Word> words;
    for (std::int64_t i = 0; i < count; ++i) {
      if (!reader_.next_line(words))
        reader_.fail({"", 2, 1}, fmt::format("{} rows are expected, but the file has {}", count, i));
      if (words.size() != kAstraColumns)
        reader_.fail(words[0],
                     fmt::format("the row has {} columns; allowed: {}", words.size(), kAstraColumns));
      read_row(words);
    }
    if (reader_.next_line(words)) reader_.fail(words[0], "more rows than the second line says");
  }

  void read_row(const std::vector<Word>& words) {
    AstraRow row;
    row.name = printable(words[0].text.substr(0, 100));
    row.line = words[0].line;
    for (std::size_t part = 0; part < 3; ++part) {
      AstraPart& to = row.parts[part];
      const std::size_t at = 2 + 3 * part;
      to.time = reader_.time_in(words[at], "a time [ns]", kNanosecond, {0, ProgramLimits::kKernelTime});
      to.bytes = reader_.whole(words[at + 2], "a size", {0, ProgramLimits::kBytes});
      read_collective(words[at + 1], part, to);
      if (part == 0 && to.group != AstraGroup::none && to.bytes < kLeastForward) {
        to.bytes = kLeastForward;
        ++raised_;
      }
    }
    if (reader_.whole(words[11], "the time of the update", {0, INT64_MAX}) > 0) ++updates_;
    rows_.push_back(std::move(row));
  }

  void read_collective(const Word& word, std::size_t part, AstraPart& to) const {
    const std::string text = lower_case(word.text.substr(0, 40));
    std::string_view kind = text;
    if (kind == "none") return;
    AstraGroup group = part == 2 ? AstraGroup::dp : AstraGroup::tp;
    if (kind.ends_with("_dp_ep")) {
      group = AstraGroup::dp_ep;
      kind.remove_suffix(6);
    } else if (kind.ends_with("_ep")) {
      group = AstraGroup::ep;
      kind.remove_suffix(3);
    }
    static const std::map<std::string_view, CollectiveKind> kinds{
        {"allreduce", CollectiveKind::all_reduce},
        {"allgather", CollectiveKind::all_gather},
        {"alltoall", CollectiveKind::all_to_all},
        {"reducescatter", CollectiveKind::reduce_scatter},
        {"broadcast", CollectiveKind::broadcast}};
    const auto found = kinds.find(kind);
    if (found == kinds.end()) {
      const bool both = kind == "allreducealltoall";
      reader_.fail(word, "'" + printable(word.text.substr(0, 40)) +
                             (both ? "' is not read, as its parts depend on the network's dimensions"
                                   : "' is no collective") +
                             "; allowed: NONE, or ALLREDUCE, ALLGATHER, ALLTOALL, "
                             "REDUCESCATTER or BROADCAST, with _EP or _DP_EP or without");
    }
    to.collective = found->second;
    if (to.bytes > 0) to.group = group;
  }

  // Refuses tables whose tasks would be too many, before they are made. Ranks of a stage share theirs.
  void check_size(const TracedStages& shape) const {
    std::uint64_t rows = 0;
    for (const AstraRow& row : rows_) {
      for (std::size_t part = 0; part < row.parts.size(); ++part)
        rows += (row.parts[part].time > 0 ? 1 : 0) + (is_issued(row, part) ? 1 : 0);
    }
    const auto messages = static_cast<std::uint64_t>(pp_ > 1 ? 4 * shape.microbatches * shape.chunks : 0);
    const std::uint64_t tasks = rows + messages;
    const auto stages = static_cast<std::uint64_t>(pp_), ranks = static_cast<std::uint64_t>(ranks_);
    if (tasks * stages > ProgramLimits::kUnrolled) {
      reader_.fail({"", 1, 1}, fmt::format("{} stages with {} tasks each are too many; allowed: {} in all",
                                           stages, tasks, ProgramLimits::kUnrolled));
    }
    if (tasks * ranks > ProgramLimits::kTasks) {
      reader_.fail({"", 1, 1},
                   fmt::format("{} ranks with {} tasks each are too many; allowed: {} in all, with "
                               "fewer all_gpus or a smaller ga",
                               ranks, tasks, ProgramLimits::kTasks));
    }
  }

  // ---- The pipeline

  // Repeated: rows that repeat. They begin with `first`, and each repetition has `length` rows.
  struct Repeated {
    std::size_t first = 0, length = 0;
  };
  // Finds repetitions among rows: a row with one name begins each of them, and nothing says where they end
  // but their equal length.
  std::optional<Repeated> find_repeated(std::size_t begin, std::size_t end, std::int64_t count) const {
    std::map<std::string_view, std::vector<std::size_t>> places;
    for (std::size_t i = begin; i < end; ++i) places[rows_[i].name].push_back(i);
    for (std::size_t i = begin; i < end; ++i) {
      const std::vector<std::size_t>& at = places[rows_[i].name];
      if (std::cmp_not_equal(at.size(), count)) continue;
      const std::size_t length = at[1] - at[0];
      bool regular = at.back() + length <= end;
      for (std::size_t k = 1; k < at.size(); ++k) regular = regular && at[k] - at[k - 1] == length;
      if (regular) return Repeated{at[0], length};
    }
    return std::nullopt;
  }

  // Finds the rows of a microbatch. With a pipeline the table has those of all microbatches of a stage, one
  // after the other.
  void find_microbatches() {
    first_row_ = 0;
    std::size_t rows_of_each = rows_.size();
    if (microbatches_ > 1) {
      const auto found = find_repeated(0, rows_.size(), microbatches_);
      if (!found) {
        reader_.fail({"", 1, 1},
                     fmt::format("the rows are not those of {} microbatches (ga): no row is there as often, "
                                 "with as many rows between them; allowed with pp {}: the microbatches of a "
                                 "stage, one after the other",
                                 microbatches_, pp_));
      }
      first_row_ = found->first;
      rows_of_each = found->length;
    }
    find_chunks(rows_of_each);
  }

  // Divides the rows of a microbatch into the chunks of an interleaved pipeline: one for each layer that
  // repeats `vpp` times. Rows before the first layer and behind the last one go with these.
  void find_chunks(std::size_t rows_of_each) {
    chunk_rows_ = {0};
    if (chunks_ > 1 && microbatches_ % pp_ != 0) {
      without_chunks_ = fmt::format("ga {} is no multiple of pp {}", microbatches_, pp_);
    } else if (chunks_ > 1) {
      const auto found = find_repeated(first_row_, first_row_ + rows_of_each, chunks_);
      if (!found) without_chunks_ = fmt::format("no row of a microbatch is there {} times", chunks_);
      for (std::int64_t i = 1; found && i < chunks_; ++i)
        chunk_rows_.push_back(found->first - first_row_ + found->length * static_cast<std::size_t>(i));
    }
    chunk_rows_.push_back(rows_of_each);
  }

  // ---- One stage

  // Stage: the tasks of a stage's ranks so far, and those for which the next one waits.
  struct Stage {
    std::vector<TraceTask> list = {};
    std::vector<std::uint32_t> frontier = {};
  };

  std::vector<TraceTask> tasks(TraceProgram& program, const TracedStages& shape, std::int64_t number) const {
    Stage stage;
    if (pp_ == 1) {
      add_forward(program, stage, 0, rows_.size());
      add_backward(program, stage, 0, rows_.size());
      return std::move(stage.list);
    }
    const std::size_t end = first_row_ + chunk_rows_.back() * static_cast<std::size_t>(microbatches_);
    add_forward(program, stage, 0, first_row_);
    for (const TracedStep& step : traced_steps(shape, number)) add_step(program, shape, stage, step);
    add_forward(program, stage, end, rows_.size());
    add_backward(program, stage, end, rows_.size());
    add_backward(program, stage, 0, first_row_);
    return std::move(stage.list);
  }

  void add_step(TraceProgram& program, const TracedStages& shape, Stage& stage,
                const TracedStep& step) const {
    if (step.received) add_message(program, shape, stage, step, TaskKind::receive);
    const std::size_t microbatch =
        first_row_ + chunk_rows_.back() * static_cast<std::size_t>(step.microbatch);
    const auto chunk = static_cast<std::size_t>(step.chunk);
    const std::size_t begin = microbatch + chunk_rows_[chunk], end = microbatch + chunk_rows_[chunk + 1];
    step.forward ? add_forward(program, stage, begin, end) : add_backward(program, stage, begin, end);
    if (step.sent) add_message(program, shape, stage, step, TaskKind::send);
  }
  // The next tasks wait for a receive, and not for a send.
  void add_message(TraceProgram& program, const TracedStages& shape, Stage& stage, const TracedStep& step,
                   TaskKind kind) const {
    TraceTask task = traced_message(program, shape, step, kind, pp_bytes_);
    task.order = stage.list.size();
    if (kind == TaskKind::send) task.after = stage.frontier;
    if (kind == TaskKind::receive) stage.frontier.push_back(static_cast<std::uint32_t>(stage.list.size()));
    stage.list.push_back(std::move(task));
  }

  void add_forward(TraceProgram& program, Stage& stage, std::size_t begin, std::size_t end) const {
    for (std::size_t i = begin; i < end; ++i) add_part(program, stage, rows_[i], 0);
  }
  void add_backward(TraceProgram& program, Stage& stage, std::size_t begin, std::size_t end) const {
    for (std::size_t i = end; i-- > begin;) {
      add_part(program, stage, rows_[i], 1);
      add_part(program, stage, rows_[i], 2);
    }
  }
  void add_part(TraceProgram& program, Stage& stage, const AstraRow& row, std::size_t part) const {
    const AstraPart& from = row.parts[part];
    if (from.time > 0) {
      TraceTask task = next_task(program, row, stage);
      task.work = program.fixed_work(row.name, from.time);
      stage.frontier = {static_cast<std::uint32_t>(stage.list.size())};
      stage.list.push_back(std::move(task));
    }
    if (!is_issued(row, part)) return;
    TraceTask task = next_task(program, row, stage);
    task.kind = TaskKind::collective;
    task.collective = from.collective;
    task.group = groups_of(program, from.group);
    task.bytes = from.bytes;
    task.stream = stream_of(from.group);
    if (part < 2) stage.frontier = {static_cast<std::uint32_t>(stage.list.size())};
    stage.list.push_back(std::move(task));
  }

  static TraceTask next_task(TraceProgram& program, const AstraRow& row, const Stage& stage) {
    TraceTask task;
    task.name = program.name(row.name);
    task.order = stage.list.size();
    task.label = fmt::format("line {} ('{}')", row.line, row.name);
    task.after = stage.frontier;
    return task;
  }

  // DATA has collectives of the weights' gradient only, MODEL has the others, and MICRO has that of one row.
  bool is_issued(const AstraRow& row, std::size_t part) const {
    if (row.parts[part].group == AstraGroup::none) return false;
    if (policy_ == "DATA") return part == 2;
    if (policy_ == "MODEL") return part != 2;
    return policy_ != "MICRO" || (part == 2 && &row == &rows_.front());
  }

  static Stream stream_of(AstraGroup group) {
    if (group == AstraGroup::tp) return Stream::tp;
    return group == AstraGroup::ep ? Stream::ep : Stream::dp;
  }

  // Ranks of one tensor-parallel group follow each other, then those of one expert-parallel group. Stages of
  // the pipeline are the farthest apart.
  std::uint32_t groups_of(TraceProgram& program, AstraGroup group) const {
    std::int64_t stride = 1, count = tp_;
    if (group == AstraGroup::dp) stride = tp_, count = ranks_ / (tp_ * pp_);
    if (group == AstraGroup::ep) stride = tp_, count = ep_;
    if (group == AstraGroup::dp_ep) stride = tp_ * ep_, count = ranks_ / (tp_ * ep_ * pp_);
    return program.regular_groups(stride, count);
  }

  std::vector<std::string> notes(const TracedStages& shape) const {
    std::vector<std::string> list;
    if (pp_ > 1) {
      std::string order = "1F1B";
      if (shape.chunks > 1)
        order = fmt::format("1F1B, interleaved with {} chunks of layers (vpp)", shape.chunks);
      if (!without_chunks_.empty())
        order += fmt::format("; vpp {} is not used: {}", chunks_, without_chunks_);
      list.push_back(fmt::format(
          "all {} stages of the pipeline have the rows of the table, and run {} microbatches in the order {}",
          pp_, microbatches_, order));
    } else if (microbatches_ > 1 || chunks_ > 1) {
      list.emplace_back("vpp and ga are not used: one pass is simulated");
    }
    if (!unused_keys_.empty()) list.push_back("keys of the first line that are not used: " + unused_keys_);
    if (updates_ > 0) list.push_back(fmt::format("times of updates, which are not used: {}", updates_));
    if (raised_ > 0)
      list.push_back(
          fmt::format("collectives of the forward pass raised to {} B: {}", kLeastForward, raised_));
    std::uint64_t unused = 0;
    for (const AstraRow& row : rows_) {
      for (std::size_t part = 0; part < 3; ++part)
        unused += row.parts[part].group != AstraGroup::none && !is_issued(row, part) ? 1 : 0;
    }
    if (unused > 0)
      list.push_back(fmt::format("collectives that policy {} does not have: {}", policy_, unused));
    return list;
  }

  static constexpr std::int64_t kMostRanks = 1 << 20;
  TextReader reader_;
  std::string path_;
  std::uint32_t gpus_, most_ranks_;
  std::string policy_;
  std::int64_t ranks_ = 0, tp_ = 1, ep_ = 1, pp_ = 1;
  std::int64_t microbatches_ = 1, chunks_ = 1;    // ga and vpp
  Bytes pp_bytes_ = 0;                            // of a message between stages
  std::size_t first_row_ = 0;                     // of the first microbatch
  std::vector<std::size_t> chunk_rows_ = {0, 0};  // of a microbatch: begins of its chunks, and its end
  std::string without_chunks_;                    // why vpp is not used; empty: it is
  std::string unused_keys_;
  std::uint64_t updates_ = 0, raised_ = 0;
  std::vector<AstraRow> rows_;
};

// Matches `POLICY key: value ...`, the number of rows, and rows of 12 columns.
bool is_astra_text(const Excerpt& file) {
  const auto policy = file.words(0), rows = file.words(1), row = file.words(2);
  const bool known =
      !policy.empty() &&
      is_one_of(policy[0], {"DATA", "MODEL", "HYBRID_DATA_MODEL", "HYBRID_MODEL_DATA", "HYBRID_DLRM",
                            "HYBRID_DLRM_ENHANCED", "HYBRID_TRANSFORMER", "HYBRID_TRANSFORMER_FWD_IN_BCKWD",
                            "HYBRID_CUSTOMIZED", "MICRO", "DISTRIBUTED_INFERENCE"});
  return known && rows.size() == 1 && is_integer_word(rows[0]) && (row.empty() || row.size() >= 12);
}

const FormatRegistration kAstraFormat{{.name = "astra_text",
                                       .what = "a workload of ASTRA-sim or SimAI",
                                       .use = Format::Use::workload,
                                       .matches = is_astra_text,
                                       .component = "astra_text",
                                       .advice = {},
                                       .endings = {".txt"}}};

class AstraTextReader final : public WorkloadReader {
 public:
  std::unique_ptr<TaskSource> open(const InputSet& input, const WorkloadContext& context) const override {
    return AstraText(input.only("a workload of ASTRA-sim or SimAI"), context).read();
  }
};

const Registration<WorkloadReader> kAstraText{
    "astra_text", "a workload of SimAI or ASTRA-sim 1.0 (.txt): layers with their times and collectives",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<AstraTextReader>(); }};

}  // namespace
}  // namespace netsim
