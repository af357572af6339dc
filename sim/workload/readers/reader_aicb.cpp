// aicb_csv: workloads of AICB, a table of the communications of one rank in their order. All ranks run it.
//
//   [rank0 ~ rank127]
//   comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time,algbw,busbw,count
//   CommType.all_reduce,CommGroup.tp_group,8,20971520,forward,None,None,,None,None,None,1
//
// Each row waits for the one before it. The size of an all-gather is what all ranks have together, as in
// netsim. AICB's table of GPT-13B with sequence parallelism shows it: its gathers have the whole tensor. A
// computation has two shapes of matrices, and takes its measured time [ms] where the row has it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/csv.h"
#include "sim/core/recognise.h"
#include "sim/core/registry.h"
#include "sim/core/text.h"
#include "sim/workload/trace/trace_program.h"
#include "sim/workload/workload.h"

namespace netsim {
namespace {

enum class AicbGroup : std::uint8_t { tp, pp, dp, ep, ep_dp, ep_tp, all };
constexpr std::size_t kAicbGroups = static_cast<std::size_t>(AicbGroup::all) + 1;

struct AicbRow {
  int line = 0;
  std::string stage;
  bool computes = false;
  AicbGroup group = AicbGroup::all;
  CollectiveKind collective = CollectiveKind::all_reduce;
  Bytes bytes = 0;
  std::int64_t root = 0;             // rank that src names
  Time time = 0;                     // of a computation; 0: not measured
  std::int64_t m = 0, n = 0, k = 0;  // of a computation: its shapes
};

class AicbTable {
 public:
  AicbTable(const InputSet::File& file, const WorkloadContext& context)
      : text_(table_text(file)),
        table_(text_, file.path),
        path_(file.path),
        gpus_(context.gpus),
        most_ranks_(context.most_ranks) {}

  std::unique_ptr<TaskSource> read() {
    read_header();
    while (table_.next()) read_row();
    set_ranks();
    TraceProgram program("aicb", static_cast<std::uint32_t>(ranks_), path_);
    for (std::uint32_t rank = 0; rank < program.ranks(); ++rank)
      program.add_rank(RankId(rank), tasks(program, rank), path_);
    return program.finish(notes());
  }

 private:
  enum Column : std::size_t { type, group, size, stage, group_size, source, elapsed };

  // The line of ranks becomes a comment, so that the lines keep their numbers.
  static std::string table_text(const InputSet::File& file) {
    std::string text = read_file(file);
    if (text.starts_with("\xef\xbb\xbf")) text.erase(0, 3);  // byte order mark
    if (text.starts_with('[')) text.front() = '#';
    return text;
  }

  void read_header() {
    static const std::vector<std::string> names{"comm_type",       "comm_group", "msg_size",      "stage",
                                                "comm_group_size", "src",        "_elapsed_time", "dst",
                                                "additional",      "algbw",      "busbw",         "count"};
    table_.header(names, 3);
    // "#rank0 ~ rank127]"
    const std::size_t last =
        text_.starts_with('#') ? text_.substr(0, text_.find('\n')).rfind("rank") : std::string::npos;
    for (std::size_t at = last + 4; last != std::string::npos && at < text_.size() && is_digit(text_[at]);
         ++at)
      last_rank_ = std::min<std::int64_t>(last_rank_ * 10 + (text_[at] - '0'), kMostRanks);
    listed_ = last != std::string::npos && last_rank_ > 0;
  }

  std::optional<Word> cell(Column name) const {
    const std::size_t column = table_.column(name);
    if (column == CsvReader::kNone) return std::nullopt;
    const Word& word = table_.cells()[column];
    return word.text.empty() || word.text == "None" ? std::nullopt : std::optional(word);
  }

  void read_row() {
    const std::optional<Word> kind = cell(type);
    if (!kind) table_.fail("comm_type is missing");
    std::string_view name = kind->text;
    if (name.starts_with("CommType.")) name.remove_prefix(9);
    if (name == "epoch_end") return;
    AicbRow row;
    row.line = table_.line();
    const auto at = cell(stage);
    row.stage = printable(at ? at->text.substr(0, 100) : name);
    if (name == "computation") {
      read_computation(row);
    } else {
      read_communication(*kind, name, row);
    }
    rows_.push_back(std::move(row));
  }

  void read_communication(const Word& word, std::string_view name, AicbRow& row) {
    static const std::map<std::string_view, CollectiveKind> kinds{
        {"all_reduce", CollectiveKind::all_reduce},
        {"broadcast", CollectiveKind::broadcast},
        {"all_gather", CollectiveKind::all_gather},
        {"all_gather_into_tensor", CollectiveKind::all_gather},
        {"reduce_scatter", CollectiveKind::reduce_scatter},
        {"reduce_scatter_tensor", CollectiveKind::reduce_scatter},
        {"reduce", CollectiveKind::reduce},
        {"all_to_all", CollectiveKind::all_to_all},
        {"barrier", CollectiveKind::barrier}};
    if (name == "isend" || name == "irecv") {
      table_.reader().fail(word,
                           "the table is that of one rank, and a message has another one at its other end; "
                           "allowed: workloads without a pipeline");
    }
    const auto found = kinds.find(name);
    if (found == kinds.end()) {
      table_.reader().fail(
          word, "'" + printable(name.substr(0, 40)) +
                    "' is no communication; allowed: all_reduce, all_gather, all_gather_into_tensor, "
                    "reduce_scatter, reduce_scatter_tensor, all_to_all, broadcast, reduce, barrier, "
                    "computation, epoch_end");
    }
    row.collective = found->second;
    row.group = group_of(word);
    const auto ranks = cell(group_size);
    if (ranks) set_size(row.group, *ranks);
    if (const auto root = cell(source); root && has_root(row.collective))
      row.root = table_.reader().integer(*root, "src", {0, kMostRanks - 1});
    const auto bytes = cell(size);
    if (row.collective == CollectiveKind::barrier) return;
    if (!bytes) table_.reader().fail(word, "msg_size is missing");
    row.bytes = table_.reader().integer(*bytes, "msg_size", {0, ProgramLimits::kBytes});
  }

  AicbGroup group_of(const Word& row) const {
    static const std::map<std::string_view, AicbGroup> groups{
        {"tp_group", AicbGroup::tp}, {"pp_group", AicbGroup::pp},       {"dp_group", AicbGroup::dp},
        {"ep_group", AicbGroup::ep}, {"ep_dp_group", AicbGroup::ep_dp}, {"ep_tp_group", AicbGroup::ep_tp},
        {"all", AicbGroup::all}};
    const auto word = cell(group);
    std::string_view name = word ? word->text : "all";
    if (name.starts_with("CommGroup.")) name.remove_prefix(10);
    const auto found = groups.find(name);
    if (found == groups.end()) {
      table_.reader().fail(word ? *word : row,
                           "'" + printable(name.substr(0, 40)) +
                               "' is no group; allowed: tp_group, pp_group, dp_group, ep_group, "
                               "ep_dp_group, ep_tp_group, all");
    }
    return found->second;
  }

  void set_size(AicbGroup of, const Word& word) {
    std::int64_t& known = sizes_[static_cast<std::size_t>(of)];
    const std::int64_t ranks = table_.reader().integer(word, "comm_group_size", {1, kMostRanks});
    if (known != 0 && known != ranks) {
      table_.reader().fail(
          word, fmt::format("comm_group_size is {}, and {} in a row before; allowed: the same for a "
                            "kind of group",
                            ranks, known));
    }
    known = ranks;
  }

  // "((4096,5120) (5120,15360))": a product of two matrices.
  void read_computation(AicbRow& row) const {
    row.computes = true;
    if (const auto time = cell(elapsed))
      row.time =
          table_.reader().time_in(*time, "_elapsed_time", kMillisecond, {0, ProgramLimits::kKernelTime});
    const auto word = cell(size);
    if (!word) return;
    std::vector<std::vector<std::int64_t>> shapes;
    bool in_number = false;
    for (const char c : word->text) {
      if (c == '(') shapes.emplace_back();
      if (is_digit(c) && !shapes.empty()) {
        if (!in_number) shapes.back().push_back(0);
        shapes.back().back() = std::min<std::int64_t>(shapes.back().back() * 10 + (c - '0'), kLongestSide);
      }
      in_number = is_digit(c);
    }
    std::erase_if(shapes, [](const auto& shape) { return shape.empty(); });
    if (shapes.size() != 2 || shapes[0].size() < 2 || shapes[1].size() < 2) return;
    row.m = 1;
    for (std::size_t i = 0; i + 1 < shapes[0].size(); ++i)
      row.m = std::min(row.m * shapes[0][i], kLongestSide);
    row.k = shapes[0].back();
    row.n = shapes[1][shapes[1].size() - 2] == row.k ? shapes[1].back() : shapes[1][shapes[1].size() - 2];
  }

  // ---- Ranks and groups

  std::int64_t size_of(AicbGroup of) const { return sizes_[static_cast<std::size_t>(of)]; }

  // Ranks are those that the first line lists, or those of the groups, or all GPUs.
  void set_ranks() {
    if (rows_.empty()) table_.fail("no rows follow the header");
    const std::int64_t tp = std::max<std::int64_t>(size_of(AicbGroup::tp), 1);
    ranks_ = listed_ ? last_rank_ + 1 : size_of(AicbGroup::all);
    if (ranks_ == 0 && size_of(AicbGroup::dp) > 0) ranks_ = tp * size_of(AicbGroup::dp);
    if (ranks_ == 0) ranks_ = gpus_;
    if (ranks_ > std::int64_t{most_ranks_})
      fail_file(path_, fmt::format("{} GPUs are needed, but the cluster has {}", ranks_, most_ranks_));
    if (ranks_ % tp != 0)
      fail_file(path_, fmt::format("{} ranks are no multiple of {} (tp_group)", ranks_, tp));
    const std::int64_t columns =
        std::max<std::int64_t>(ranks_ / tp / std::max<std::int64_t>(size_of(AicbGroup::pp), 1), 1);
    const auto otherwise = [&](AicbGroup of, std::int64_t count) {
      std::int64_t& known = sizes_[static_cast<std::size_t>(of)];
      if (known != 0) return;
      known = count;
      if (std::any_of(rows_.begin(), rows_.end(),
                      [&](const AicbRow& row) { return !row.computes && row.group == of; }))
        ++assumed_;
    };
    otherwise(AicbGroup::tp, tp);
    otherwise(AicbGroup::pp, 1);
    otherwise(AicbGroup::dp, columns);
    otherwise(AicbGroup::ep, columns);
    otherwise(AicbGroup::ep_tp, tp);
    otherwise(AicbGroup::ep_dp, std::max<std::int64_t>(columns / size_of(AicbGroup::ep), 1));
    sizes_[static_cast<std::size_t>(AicbGroup::all)] = ranks_;
    for (std::size_t i = 0; i < kAicbGroups; ++i) {
      const auto of = static_cast<AicbGroup>(i);
      if (ranks_ % (stride(of) * size_of(of)) != 0)
        fail_file(path_, fmt::format("{} ranks are no multiple of {} ranks of a group, {} apart", ranks_,
                                     size_of(of), stride(of)));
    }
  }
  // Ranks of one tensor-parallel group follow each other, then those of one expert-parallel group. Stages of
  // a pipeline are the farthest apart.
  std::int64_t stride(AicbGroup of) const {
    if (of == AicbGroup::dp || of == AicbGroup::ep) return size_of(AicbGroup::tp);
    if (of == AicbGroup::pp) return std::max<std::int64_t>(ranks_ / size_of(of), 1);
    return of == AicbGroup::ep_dp ? size_of(AicbGroup::tp) * size_of(AicbGroup::ep) : 1;
  }

  // ---- One rank

  std::vector<TraceTask> tasks(TraceProgram& program, std::uint32_t rank) const {
    std::vector<TraceTask> list;
    list.reserve(rows_.size());
    std::array<std::optional<std::uint32_t>, kAicbGroups> groups;
    for (const AicbRow& row : rows_) {
      TraceTask task;
      task.name = program.name(row.stage);
      task.order = list.size();
      task.label = fmt::format("line {}", row.line);
      if (!list.empty()) task.after.push_back(static_cast<std::uint32_t>(list.size() - 1));
      if (row.computes) {
        task.work = work(program, row);
      } else if (row.bytes > 0 || row.collective == CollectiveKind::barrier) {
        task.kind = TaskKind::collective;
        task.collective = row.collective;
        task.bytes = row.bytes;
        task.stream = stream_of(row.group);
        task.root = static_cast<std::uint32_t>(row.root / stride(row.group) % size_of(row.group));
        std::optional<std::uint32_t>& known = groups[static_cast<std::size_t>(row.group)];
        if (!known) known = program.group(regular_group(RankId(rank), stride(row.group), size_of(row.group)));
        task.group = *known;
      } else {
        task.work = program.fixed_work("nothing", 0);
      }
      list.push_back(std::move(task));
    }
    return list;
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

  std::vector<std::string> notes() const {
    std::vector<std::string> list;
    const auto modelled = std::count_if(rows_.begin(), rows_.end(), [](const AicbRow& row) {
      return row.computes && row.time == 0 && row.m > 0;
    });
    if (modelled > 0)
      list.push_back(
          fmt::format("computations without a measured time, timed by the compute model: {}", modelled));
    if (std::none_of(rows_.begin(), rows_.end(), [](const AicbRow& row) { return row.computes; }))
      list.emplace_back("the table has no computation, so communications follow each other");
    if (assumed_ > 0)
      list.push_back(fmt::format(
          "kinds of groups without a comm_group_size, which got the largest that fits: {}", assumed_));
    return list;
  }

  static constexpr std::int64_t kMostRanks = 1 << 20, kLongestSide = 1'000'000;
  std::string text_;
  CsvReader table_;
  std::string path_;
  std::uint32_t gpus_, most_ranks_;
  std::int64_t last_rank_ = 0, ranks_ = 0;
  bool listed_ = false;                            // whether the first line lists the ranks
  std::array<std::int64_t, kAicbGroups> sizes_{};  // ranks of a group; 0: no row says it
  std::uint64_t assumed_ = 0;
  std::vector<AicbRow> rows_;
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

struct AicbParameters {};

class AicbReader final : public WorkloadReader {
 public:
  std::unique_ptr<TaskSource> open(const InputSet& input, const WorkloadContext& context) const override {
    return AicbTable(input.only("a workload of AICB"), context).read();
  }
};

const Registration<WorkloadReader> kAicb{
    "aicb_csv", "a workload of AICB (.csv): the communications of one rank, which all ranks have",
    Parameters<AicbParameters>(),
    [](const AicbParameters&, const ConfigNode&) { return std::make_unique<AicbReader>(); }};

}  // namespace
}  // namespace netsim
