#include "sim/workload/trace/aicb_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "sim/core/csv.h"
#include "sim/core/text.h"
#include "sim/workload/program/program.h"

namespace netsim {
namespace {

// AicbParser: reads the table. AICB writes shapes with commas and without quotes, and lines of ranks between
// the rows. Both are changed in the text before it is divided into cells, so that places stay as they are.
class AicbParser {
 public:
  explicit AicbParser(const InputSet::File& file) : text_(table_text(file)), table_(text_, file.path) {}

  AicbTable read() {
    static const std::vector<std::string> names{
        "comm_type",  "comm_group",    "msg_size", "stage", "comm_group_size", "src",
        "additional", "_elapsed_time", "algbw",    "dst",   "busbw",           "count"};
    table_.header(names, 3, &result_.unused_columns);
    while (table_.next()) {
      // Each section of the file has a header of its own.
      if (table_.cells()[table_.column(kType)].text != "comm_type") read_row();
    }
    if (result_.sections.empty()) table_.fail("no rows follow the header");
    return std::move(result_);
  }

 private:
  enum Column : std::size_t { kType, kGroup, kSize, kStage, kGroupSize, kSource, kWay, kElapsed, kRate };

  std::string table_text(const InputSet::File& file) {
    std::string text = read_file(file);
    if (text.starts_with("\xef\xbb\xbf")) text.erase(0, 3);  // byte order mark
    int line = 1, open = 0;
    for (std::size_t at = 0; at < text.size(); ++at) {
      const bool begins = at == 0 || text[at - 1] == '\n';
      if (begins && text[at] == '[') {
        ranks_lines_.emplace_back(line, std::string_view(text).substr(at, text.find('\n', at) - at));
        text[at] = '#';
      }
      if (text[at] == '(') ++open;
      if (text[at] == ')') --open;
      if (text[at] == ',' && open > 0) text[at] = ' ';
      if (text[at] == '\n') ++line, open = 0;
    }
    return text;
  }

  // Returns the ranks of "[rank0 ~ rank127]" and "[ pp_stage0: [rank0, rank1] ]".
  std::vector<RankId> ranks_of(int line, const std::string& text) const {
    constexpr std::string_view kName = "rank";
    std::vector<RankId> ranks;
    std::size_t last_end = 0;
    for (std::size_t at = text.find(kName); at != std::string::npos; at = text.find(kName, at)) {
      std::int64_t rank = 0;
      const std::size_t begin = at;
      for (at += kName.size(); at < text.size() && is_digit(text[at]); ++at)
        rank = std::min<std::int64_t>(rank * 10 + (text[at] - '0'), AicbTable::kMostRanks);
      if (at == begin + kName.size()) continue;
      const bool range =
          !ranks.empty() && text.substr(last_end, begin - last_end).find('~') != std::string::npos;
      std::int64_t first = range ? std::int64_t{ranks.back()} + 1 : rank;
      for (; first <= rank; ++first) ranks.emplace_back(static_cast<std::uint32_t>(first));
      if (rank >= AicbTable::kMostRanks || ranks.size() > static_cast<std::size_t>(AicbTable::kMostRanks))
        table_.reader().fail({"", line, 1},
                             fmt::format("more than {} ranks are listed", AicbTable::kMostRanks));
      last_end = at;
    }
    return ranks;
  }

  std::optional<Word> cell(Column name) const {
    const std::size_t column = table_.column(name);
    if (column == CsvReader::kNone) return std::nullopt;
    const Word& word = table_.cells()[column];
    // pandas writes -1 where AICB asks it to fill in.
    const bool none = word.text.empty() || word.text == "None" || word.text == "nan" || word.text == "-1" ||
                      word.text == "-1.0";
    return none ? std::nullopt : std::optional(word);
  }

  void read_row() {
    const std::optional<Word> kind = cell(kType);
    if (!kind) table_.fail("comm_type is missing");
    const std::string lower = lower_case(kind->text);
    std::string_view name = lower;
    if (name.starts_with("commtype.")) name.remove_prefix(9);
    AicbRow row;
    row.line = table_.line();
    const auto at = cell(kStage);
    row.stage = printable(at ? at->text.substr(0, 100) : name);
    if (name == "epoch_end") {
      row.kind = AicbRow::Kind::epoch_end;
    } else if (name == "computation") {
      read_computation(row);
    } else if (name == "isend" || name == "irecv") {
      read_message(*kind, name == "isend", row);
    } else {
      read_collective(*kind, name, row);
    }
    section().rows.push_back(std::move(row));
  }

  // Returns the section of the present line. A line of ranks before it begins a new one.
  AicbTable::Section& section() {
    while (next_ranks_ < ranks_lines_.size() && ranks_lines_[next_ranks_].first < table_.line()) {
      const auto& [line, text] = ranks_lines_[next_ranks_++];
      if (std::vector<RankId> ranks = ranks_of(line, text); !ranks.empty())
        result_.sections.push_back({line, std::move(ranks), text.find("pp_stage") != std::string::npos, {}});
    }
    if (result_.sections.empty()) result_.sections.emplace_back();
    return result_.sections.back();
  }

  void read_collective(const Word& word, std::string_view name, AicbRow& row) {
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
    const auto found = kinds.find(name);
    if (found == kinds.end()) {
      table_.reader().fail(
          word, "'" + printable(name.substr(0, 40)) +
                    "' is no communication; allowed: all_reduce, all_gather, all_gather_into_tensor, "
                    "reduce_scatter, reduce_scatter_tensor, all_to_all, broadcast, reduce, barrier, "
                    "isend, irecv, computation, epoch_end");
    }
    row.collective = found->second;
    row.group = group_of(word);
    if (const auto ranks = cell(kGroupSize)) set_size(row.group, *ranks);
    if (const auto root = cell(kSource); root && has_root(row.collective))
      row.root = table_.reader().whole(*root, "src", {0, AicbTable::kMostRanks - 1});
    if (row.collective != CollectiveKind::barrier) row.bytes = message_size(word);
  }

  // A message of a pipeline names the stage at its other end. Its comm_group_size has no meaning.
  void read_message(const Word& word, bool sends, AicbRow& row) const {
    const auto way = cell(kWay);
    const std::string_view verb = sends ? "send" : "recv", text = way ? way->text : "";
    if (text != fmt::format("{}_next", verb) && text != fmt::format("{}_prev", verb)) {
      table_.reader().fail(
          way ? *way : word,
          fmt::format("the other end of the message is '{}'; allowed in `additional`: {}_next, "
                      "{}_prev",
                      printable(text.substr(0, 40)), verb, verb));
    }
    row.kind = AicbRow::Kind::message;
    row.group = AicbGroup::pp;
    row.sends = sends;
    row.next = text.ends_with("next");
    row.bytes = message_size(word, 1);
  }
  Bytes message_size(const Word& row, Bytes least = 0) const {
    const auto bytes = cell(kSize);
    if (!bytes) table_.reader().fail(row, "msg_size is missing");
    return table_.reader().whole(*bytes, "msg_size", {least, ProgramLimits::kBytes});
  }

  AicbGroup group_of(const Word& row) const {
    static const std::map<std::string_view, AicbGroup> groups{
        {"tp_group", AicbGroup::tp}, {"pp_group", AicbGroup::pp},       {"dp_group", AicbGroup::dp},
        {"ep_group", AicbGroup::ep}, {"ep_dp_group", AicbGroup::ep_dp}, {"ep_tp_group", AicbGroup::ep_tp},
        {"all", AicbGroup::all},     {"all_nodes", AicbGroup::all}};
    const auto word = cell(kGroup);
    std::string_view name = word ? word->text : "all";
    if (name.starts_with("CommGroup.")) name.remove_prefix(10);
    const auto found = groups.find(name);
    if (found == groups.end()) {
      table_.reader().fail(
          word ? *word : row,
          "'" + printable(name.substr(0, 40)) +
              (name == "embedding_group" ? "', the first and the last stage of a pipeline, is not read"
                                         : "' is no group") +
              "; allowed: tp_group, pp_group, dp_group, ep_group, ep_dp_group, ep_tp_group, "
              "all");
    }
    return found->second;
  }

  void set_size(AicbGroup of, const Word& word) {
    std::int64_t& known = result_.group_sizes[static_cast<std::size_t>(of)];
    const std::int64_t ranks = table_.reader().whole(word, "comm_group_size", {1, AicbTable::kMostRanks});
    if (known != 0 && known != ranks) {
      table_.reader().fail(
          word, fmt::format("comm_group_size is {}, and {} in a row before; allowed: the same for a "
                            "kind of group",
                            ranks, known));
    }
    known = ranks;
  }

  // "((4096,5120) (5120,15360))": a product of two matrices. A row that was run has its time in milliseconds.
  // One that was not, and has no rate, has that of AICB's own measurements in whole nanoseconds.
  void read_computation(AicbRow& row) const {
    row.kind = AicbRow::Kind::computation;
    if (const auto time = cell(kElapsed)) {
      const bool planned = !cell(kRate) && std::all_of(time->text.begin(), time->text.end(), is_digit);
      row.time = table_.reader().time_in(*time, "_elapsed_time", planned ? kNanosecond : kMillisecond,
                                         {0, ProgramLimits::kKernelTime});
    }
    const auto word = cell(kSize);
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

  static constexpr std::int64_t kLongestSide = 1'000'000;
  std::vector<std::pair<int, std::string>> ranks_lines_;  // lines of ranks with their numbers
  std::size_t next_ranks_ = 0;
  std::string text_;
  CsvReader table_;
  AicbTable result_;
};

}  // namespace

AicbTable read_aicb_table(const InputSet::File& file) { return AicbParser(file).read(); }

}  // namespace netsim
