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
// forward pass and of the input's gradient, not for those of the weights' gradient.
//
// Sizes are those of netsim: an all-gather has the size of what it gathers from all ranks.
#include <fmt/format.h>

#include <algorithm>
#include <array>
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
#include "sim/workload/workload.h"

namespace netsim {
namespace {

constexpr std::size_t kAstraColumns = 12;
constexpr std::int64_t kMostAstraRows = 1 << 20;
// SimAI raises smaller collectives of the forward pass to this size.
constexpr Bytes kLeastForward = 4096;

enum class AstraGroup : std::uint8_t { none, tp, dp, ep, dp_ep };
constexpr std::size_t kAstraGroups = 5;

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
    check_size();
    TraceProgram program("layers", static_cast<std::uint32_t>(ranks_), path_);
    for (std::uint32_t rank = 0; rank < program.ranks(); ++rank)
      program.add_rank(RankId(rank), tasks(program, rank), path_);
    return program.finish(notes());
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

  // Reads the key words[i] and moves `i` to its last value.
  void read_key(const std::vector<Word>& words, std::size_t& i) {
    std::string key(words[i].text.substr(0, 40));
    if (key.ends_with(':')) key.pop_back();
    if (i + 1 == words.size()) reader_.fail(words[i], "a value is missing behind '" + printable(key) + "'");
    const Word& value = words[++i];
    if (key == "pp_comm") {
      pp_bytes_ =
          static_cast<Bytes>(reader_.real(value, key, {0, static_cast<double>(ProgramLimits::kBytes)}));
      return;
    }
    const std::int64_t number = reader_.integer(value, printable(key), {0, UINT32_MAX});
    if (key == "checkpoints" || key == "checkpoint_initiates") {
      if (number != 0) reader_.fail(value, "recomputation from checkpoints is not read; allowed: 0");
    } else if (key == "pp") {
      pp_ = reader_.integer(value, key, {1, kMostRanks});
    } else if (key == "model_parallel_NPU_group") {
      tp_ = reader_.integer(value, key, {1, kMostRanks});
    } else if (key == "ep" || key == "expert_parallel_npu_group") {
      ep_ = reader_.integer(value, key, {1, kMostRanks});
    } else if (key == "all_gpus") {
      ranks_ = reader_.integer(value, key, {1, kMostRanks});
    } else if (key == "vpp" || key == "ga") {
      repeats_ = repeats_ || number > 1;
      (key == "ga" ? microbatches_ : chunks_) = std::max<std::int64_t>(number, 1);
    } else {
      reader_.fail(words[i - 1],
                   "'" + printable(key) +
                       "' is not known here (allowed: model_parallel_NPU_group, ep, pp, vpp, ga, "
                       "all_gpus, checkpoints, checkpoint_initiates, pp_comm)");
    }
  }

  void read_rows() {
    const std::int64_t count =
        reader_.integer(reader_.next("the number of rows"), "the number of rows", {0, kMostAstraRows});
    std::vector<Word> words;
    for (std::int64_t i = 0; i < count; ++i) {
      if (!reader_.next_line(words) || (words.empty() && !reader_.next_line(words)))
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
      to.time = reader_.integer(words[at], "a time [ns]", {0, ProgramLimits::kKernelTime / kNanosecond}) *
                kNanosecond;
      to.bytes = reader_.integer(words[at + 2], "a size", {0, ProgramLimits::kBytes});
      read_collective(words[at + 1], part, to);
      if (part == 0 && to.group != AstraGroup::none && to.bytes < kLeastForward) {
        to.bytes = kLeastForward;
        ++raised_;
      }
    }
    if (reader_.integer(words[11], "the time of the update", {0, INT64_MAX}) > 0) ++updates_;
    rows_.push_back(std::move(row));
  }

  void read_collective(const Word& word, std::size_t part, AstraPart& to) const {
    if (word.text == "NONE") return;
    std::string_view kind = word.text;
    AstraGroup group = part == 2 ? AstraGroup::dp : AstraGroup::tp;
    if (kind.ends_with("_DP_EP")) {
      group = AstraGroup::dp_ep;
      kind.remove_suffix(6);
    } else if (kind.ends_with("_EP")) {
      group = AstraGroup::ep;
      kind.remove_suffix(3);
    }
    static const std::map<std::string_view, CollectiveKind> kinds{
        {"ALLREDUCE", CollectiveKind::all_reduce},
        {"ALLGATHER", CollectiveKind::all_gather},
        {"ALLTOALL", CollectiveKind::all_to_all},
        {"REDUCESCATTER", CollectiveKind::reduce_scatter},
        {"BROADCAST", CollectiveKind::broadcast}};
    const auto found = kinds.find(kind);
    if (found == kinds.end()) {
      reader_.fail(word, "'" + printable(word.text.substr(0, 40)) +
                             "' is no collective; allowed: NONE, or ALLREDUCE, ALLGATHER, ALLTOALL, "
                             "REDUCESCATTER or BROADCAST, with _EP or _DP_EP or without");
    }
    to.collective = found->second;
    if (to.bytes > 0) to.group = group;
  }

  // Refuses tables whose tasks of all ranks would be too many, before they are made.
  void check_size() const {
    std::uint64_t of_rank = 0;
    for (const AstraRow& row : rows_) {
      for (std::size_t part = 0; part < row.parts.size(); ++part)
        of_rank += (row.parts[part].time > 0 ? 1 : 0) + (is_issued(row, part) ? 1 : 0);
    }
    if (of_rank * static_cast<std::uint64_t>(ranks_) > ProgramLimits::kUnrolled) {
      reader_.fail({"", 1, 1}, fmt::format("{} ranks with {} tasks each are too many; allowed: {} in all",
                                           ranks_, of_rank, ProgramLimits::kUnrolled));
    }
  }

  // ---- The pipeline

  // Finds the rows of a microbatch. With a pipeline the table has those of all microbatches of a stage, one
  // after the other. A row with one name begins each of them.
  void find_microbatches() {
    first_row_ = 0;
    rows_of_each_ = rows_.size();
    if (microbatches_ == 1) return;
    std::map<std::string_view, std::vector<std::size_t>> places;
    for (std::size_t i = 0; i < rows_.size(); ++i) places[rows_[i].name].push_back(i);
    for (const AstraRow& row : rows_) {
      const std::vector<std::size_t>& at = places[row.name];
      if (std::cmp_not_equal(at.size(), microbatches_)) continue;
      const std::size_t length = at[1] - at[0];
      bool regular = at.back() + length <= rows_.size();
      for (std::size_t i = 1; i < at.size(); ++i) regular = regular && at[i] - at[i - 1] == length;
      if (!regular) continue;
      first_row_ = at[0];
      rows_of_each_ = length;
      return;
    }
    reader_.fail(
        {"", 1, 1},
        fmt::format("the rows are not those of {} microbatches (ga): no row is there as often, with as many "
                    "rows between them; allowed with pp {}: the microbatches of a stage, one after the other",
                    microbatches_, pp_));
  }

  // ---- One rank

  // Rank: the tasks of a rank so far, and those for which the next one waits.
  struct Rank {
    std::uint32_t rank = 0;
    std::vector<TraceTask> list = {};
    std::vector<std::uint32_t> frontier = {};
    std::array<std::optional<std::uint32_t>, kAstraGroups> groups = {};  // by AstraGroup, once found
  };

  std::vector<TraceTask> tasks(TraceProgram& program, std::uint32_t number) const {
    Rank rank{number};
    if (pp_ == 1) {
      add_forward(program, rank, 0, rows_.size());
      add_backward(program, rank, 0, rows_.size());
      return std::move(rank.list);
    }
    const std::size_t end = first_row_ + rows_of_each_ * static_cast<std::size_t>(microbatches_);
    add_forward(program, rank, 0, first_row_);
    add_pipeline(program, rank);
    add_forward(program, rank, end, rows_.size());
    add_backward(program, rank, end, rows_.size());
    add_backward(program, rank, 0, first_row_);
    return std::move(rank.list);
  }

  // 1F1B: a stage has as many microbatches forward before the first one backward as stages follow it.
  void add_pipeline(TraceProgram& program, Rank& rank) const {
    const std::int64_t stage = rank.rank / (ranks_ / pp_);
    const std::int64_t ahead = std::min(pp_ - 1 - stage, microbatches_);
    for (std::int64_t i = 0; i < microbatches_ + ahead; ++i) {
      if (i < microbatches_) add_microbatch(program, rank, stage, i, true);
      if (i >= ahead) add_microbatch(program, rank, stage, i - ahead, false);
    }
  }
  void add_microbatch(TraceProgram& program, Rank& rank, std::int64_t stage, std::int64_t number,
                      bool forward) const {
    const auto own = static_cast<std::int64_t>(rank.rank), stride = ranks_ / pp_;
    const std::int64_t source = forward ? stage - 1 : stage + 1,
                       destination = forward ? stage + 1 : stage - 1;
    const auto tag = static_cast<std::uint32_t>(2 * number + (forward ? 0 : 1));
    if (source >= 0 && source < pp_)
      add_message(program, rank, TaskKind::receive, own + (source - stage) * stride, tag);
    const std::size_t begin = first_row_ + rows_of_each_ * static_cast<std::size_t>(number);
    forward ? add_forward(program, rank, begin, begin + rows_of_each_)
            : add_backward(program, rank, begin, begin + rows_of_each_);
    if (destination >= 0 && destination < pp_)
      add_message(program, rank, TaskKind::send, own + (destination - stage) * stride, tag);
  }
  // The next tasks wait for a receive, and not for a send.
  void add_message(TraceProgram& program, Rank& rank, TaskKind kind, std::int64_t peer,
                   std::uint32_t tag) const {
    TraceTask task;
    task.kind = kind;
    task.name = program.name(tag % 2 == 0 ? "activations" : "gradients");
    task.order = rank.list.size();
    task.peer = RankId(static_cast<std::uint32_t>(peer));
    task.tag = tag;
    task.bytes = pp_bytes_;
    task.stream = Stream::pp;
    if (kind == TaskKind::send) task.after = rank.frontier;
    if (kind == TaskKind::receive) rank.frontier.push_back(static_cast<std::uint32_t>(rank.list.size()));
    rank.list.push_back(std::move(task));
  }

  void add_forward(TraceProgram& program, Rank& rank, std::size_t begin, std::size_t end) const {
    for (std::size_t i = begin; i < end; ++i) add_part(program, rank, rows_[i], 0);
  }
  void add_backward(TraceProgram& program, Rank& rank, std::size_t begin, std::size_t end) const {
    for (std::size_t i = end; i-- > begin;) {
      add_part(program, rank, rows_[i], 1);
      add_part(program, rank, rows_[i], 2);
    }
  }
  void add_part(TraceProgram& program, Rank& rank, const AstraRow& row, std::size_t part) const {
    const AstraPart& from = row.parts[part];
    if (from.time > 0) {
      TraceTask task = next_task(program, row, rank);
      task.work = program.fixed_work(row.name, from.time);
      rank.frontier = {static_cast<std::uint32_t>(rank.list.size())};
      rank.list.push_back(std::move(task));
    }
    if (!is_issued(row, part)) return;
    TraceTask task = next_task(program, row, rank);
    task.kind = TaskKind::collective;
    task.collective = from.collective;
    std::optional<std::uint32_t>& group = rank.groups[static_cast<std::size_t>(from.group)];
    if (!group) group = program.group(members(from.group, rank.rank));
    task.group = *group;
    task.bytes = from.bytes;
    task.stream = stream_of(from.group);
    if (part < 2) rank.frontier = {static_cast<std::uint32_t>(rank.list.size())};
    rank.list.push_back(std::move(task));
  }

  static TraceTask next_task(TraceProgram& program, const AstraRow& row, const Rank& rank) {
    TraceTask task;
    task.name = program.name(row.name);
    task.order = rank.list.size();
    task.label = fmt::format("line {} ('{}')", row.line, row.name);
    task.after = rank.frontier;
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
  std::vector<RankId> members(AstraGroup group, std::uint32_t rank) const {
    std::int64_t stride = 1, count = tp_;
    if (group == AstraGroup::dp) stride = tp_, count = ranks_ / (tp_ * pp_);
    if (group == AstraGroup::ep) stride = tp_, count = ep_;
    if (group == AstraGroup::dp_ep) stride = tp_ * ep_, count = ranks_ / (tp_ * ep_ * pp_);
    return regular_group(RankId(rank), stride, count);
  }

  std::vector<std::string> notes() const {
    std::vector<std::string> list;
    if (pp_ > 1) {
      list.push_back(
          fmt::format("all {} stages of the pipeline have the rows of the table, and run {} microbatches in "
                      "the order 1F1B{}",
                      pp_, microbatches_, chunks_ > 1 ? "; vpp is not used" : ""));
    } else if (repeats_) {
      list.emplace_back("vpp and ga are not used: one pass is simulated");
    }
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
  std::size_t first_row_ = 0, rows_of_each_ = 0;  // of the first microbatch, and of each
  bool repeats_ = false;                          // whether vpp or ga is above 1
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

struct AstraTextParameters {};

class AstraTextReader final : public WorkloadReader {
 public:
  std::unique_ptr<TaskSource> open(const InputSet& input, const WorkloadContext& context) const override {
    return AstraText(input.only("a workload of ASTRA-sim or SimAI"), context).read();
  }
};

const Registration<WorkloadReader> kAstraText{
    "astra_text", "a workload of SimAI or ASTRA-sim 1.0 (.txt): layers with their times and collectives",
    Parameters<AstraTextParameters>(),
    [](const AstraTextParameters&, const ConfigNode&) { return std::make_unique<AstraTextReader>(); }};

}  // namespace
}  // namespace netsim
