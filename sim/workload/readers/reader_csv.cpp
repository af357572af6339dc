// csv: a flow list, one flow a line, columns named by the first line:
//
//   source,destination,bytes,start,class,name
//   0,1,10 MB,0,0,elephant
//   2,1,64 KB,30 us,1,mouse
//
// source, destination, bytes and a start are required; class, channel and name are optional; any order. Bytes
// without a unit are bytes; a start needs one, or its column is called start_s, start_ms, start_us, start_ns
// or start_ps. Lines that begin with # and empty lines do not count; cells may be quoted.
#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/input_file.h"
#include "sim/core/recognise.h"
#include "sim/core/registry.h"
#include "sim/workload/traffic/flow_source.h"
#include "sim/workload/traffic/traffic.h"
#include "sim/workload/workload.h"

namespace netsim {

namespace {

enum class Column : std::uint8_t { source, destination, bytes, start, traffic_class, channel, name };
constexpr int kColumns = 7;

struct ColumnName {
  std::string_view name;
  Column column;
  Time unit = 0;  // of plain numbers
};
constexpr std::array<ColumnName, 12> kNames = {{{"source", Column::source},
                                                {"destination", Column::destination},
                                                {"bytes", Column::bytes},
                                                {"start", Column::start},
                                                {"start_s", Column::start, kSecond},
                                                {"start_ms", Column::start, kMillisecond},
                                                {"start_us", Column::start, kMicrosecond},
                                                {"start_ns", Column::start, kNanosecond},
                                                {"start_ps", Column::start, kPicosecond},
                                                {"class", Column::traffic_class},
                                                {"channel", Column::channel},
                                                {"name", Column::name}}};

const ColumnName* find_column(std::string_view name) {
  const auto* it = std::find_if(kNames.begin(), kNames.end(), [&](const auto& n) { return n.name == name; });
  return it != kNames.end() ? it : nullptr;
}

std::string_view trimmed(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

struct Cell {
  std::string text;
  int column = 1;  // in the file
};

// Lines of a file that are not empty and no comment.
class Lines {
 public:
  explicit Lines(std::string_view text) : text_(text) {
    if (text_.starts_with("\xef\xbb\xbf")) text_.remove_prefix(3);
  }
  bool next() {
    while (!text_.empty()) {
      const std::size_t end = std::min(text_.find('\n'), text_.size());
      line_ = text_.substr(0, end);
      text_.remove_prefix(std::min(end + 1, text_.size()));
      ++number_;
      const std::string_view content = trimmed(line_);
      if (!content.empty() && content.front() != '#') return true;
    }
    return false;
  }
  std::string_view line() const { return line_; }
  // Of what is left, with empty ones and comments.
  std::size_t most() const {
    return static_cast<std::size_t>(std::count(text_.begin(), text_.end(), '\n')) + 1;
  }
  int number() const { return number_; }

 private:
  std::string_view text_, line_;
  int number_ = 0;
};

class CsvFlows {
 public:
  CsvFlows(std::string_view text, const std::string& path, const WorkloadContext& context)
      : lines_(text), reader_("", path), ranks_(context.gpus), classes_(context.classes) {}

  std::unique_ptr<TaskSource> read() {
    if (ranks_ < 2) reader_.fail({"", 1, 1}, "a flow list needs a cluster of at least 2 GPUs");
    read_header();
    auto source = std::make_unique<FlowSource>("flows", ranks_);
    source->reserve(lines_.most());
    while (lines_.next()) source->add(flow(*source));
    if (source->flows().empty()) fail(1, "no flows follow the header");
    source->seal();
    return source;
  }

 private:
  [[noreturn]] void fail(int column, const std::string& message) const {
    reader_.fail({"", lines_.number(), column}, message);
  }

  // The line's cells; a quoted one may hold commas and, doubled, quotes.
  void split() {
    cells_.clear();
    const std::string_view line = lines_.line();
    for (std::size_t at = 0; at <= line.size();) {
      std::size_t begin = at;
      while (begin < line.size() && (line[begin] == ' ' || line[begin] == '\t')) ++begin;
      Cell cell{"", static_cast<int>(begin) + 1};
      if (begin < line.size() && line[begin] == '"') {
        at = unquote(line, begin, cell);
      } else {
        const std::size_t end = std::min(line.find(',', at), line.size());
        cell.text = trimmed(line.substr(at, end - at));
        at = end + 1;
      }
      cells_.push_back(std::move(cell));
    }
  }
  // Returns where the next cell begins.
  std::size_t unquote(std::string_view line, std::size_t begin, Cell& cell) const {
    std::size_t at = begin + 1;
    for (; at < line.size(); ++at) {
      if (line[at] == '"' && (at + 1 == line.size() || line[at + 1] != '"')) break;
      if (line[at] == '"') ++at;
      cell.text += line[at];
    }
    if (at >= line.size()) fail(cell.column, "the quote that opens here is never closed");
    const std::size_t end = std::min(line.find(',', at), line.size());
    if (!trimmed(line.substr(at + 1, end - at - 1)).empty()) {
      fail(static_cast<int>(at) + 2, "text behind a closing quote");
    }
    return end + 1;
  }

  void read_header() {
    lines_.next();  // recognises() has seen it
    split();
    std::array<bool, kColumns> seen{};
    for (const Cell& cell : cells_) {
      const ColumnName* known = find_column(cell.text);
      if (known == nullptr) unknown_column(cell);
      bool& given = seen[static_cast<std::size_t>(known->column)];
      if (given) fail(cell.column, "a second column for '" + cell.text + "'");
      given = true;
      columns_.push_back(known);
    }
    for (const Column needed : {Column::source, Column::destination, Column::bytes, Column::start}) {
      if (!seen[static_cast<std::size_t>(needed)]) {
        fail(1, "column '" + std::string(kNames[static_cast<std::size_t>(needed)].name) + "' is missing");
      }
    }
  }
  [[noreturn]] void unknown_column(const Cell& cell) const {
    std::vector<std::string> names;
    std::string list;
    for (const ColumnName& name : kNames) {
      names.emplace_back(name.name);
      list += (list.empty() ? "" : ", ") + names.back();
    }
    const std::string near = nearest(cell.text, names);
    fail(cell.column, "unknown column '" + cell.text.substr(0, 40) + "'" +
                          (near.empty() ? "" : ", did you mean '" + near + "'?") + " (allowed: " + list +
                          ")");
  }

  Flow flow(FlowSource& source) {
    split();
    if (cells_.size() != columns_.size()) {
      fail(1, std::to_string(cells_.size()) + " cells, but the header has " +
                  std::to_string(columns_.size()) + " columns");
    }
    Flow result;
    bool named = false;
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      named = named || columns_[i]->column == Column::name;
      take(*columns_[i], cells_[i], source, result);
    }
    if (!named) result.name = source.add_name("flow");
    if (result.from == result.to) {
      fail(1, "rank " + std::to_string(result.from) + " sends to itself; source and destination must differ");
    }
    return result;
  }
  void take(const ColumnName& column, const Cell& cell, FlowSource& source, Flow& flow) const {
    const Word word{cell.text, lines_.number(), cell.column};
    const Range<std::int64_t> ranks{0, std::int64_t{ranks_} - 1};
    switch (column.column) {
      case Column::source:
        flow.from = static_cast<std::uint32_t>(reader_.integer(word, "the source", ranks));
        break;
      case Column::destination:
        flow.to = static_cast<std::uint32_t>(reader_.integer(word, "the destination", ranks));
        break;
      case Column::bytes:
        flow.bytes = bytes(word);
        break;
      case Column::start:
        flow.start = column.unit != 0 ? reader_.time_in(word, "the start", column.unit, kStartTimes)
                                      : reader_.time(word, "the start", kStartTimes);
        break;
      case Column::traffic_class:
        flow.traffic_class = static_cast<std::uint8_t>(reader_.integer(word, "the class", kTrafficClasses));
        if (const std::string problem = class_problem(flow.traffic_class, classes_); !problem.empty())
          reader_.fail(word, problem);
        break;
      case Column::channel:
        flow.channel = static_cast<std::uint32_t>(reader_.integer(word, "the channel", {0, kMaxChannel}));
        break;
      case Column::name:
        flow.name = source.add_name(cell.text.empty() ? "flow" : cell.text);
        break;
    }
  }
  Bytes bytes(const Word& word) const {
    const bool plain = !word.text.empty() && word.text.find_first_not_of("0123456789") == std::string::npos;
    if (plain) return reader_.integer(word, "the size", {kMessageSizes.minimum, kMessageSizes.maximum});
    const Bytes size =
        as_input([&] { return read_bytes(ConfigNode::scalar(std::string(word.text), reader_.place(word))); });
    if (size < kMessageSizes.minimum || size > kMessageSizes.maximum) {
      reader_.fail(word, "the size is " + std::string(word.text) + "; allowed: 1 B to 100 GB");
    }
    return size;
  }

  Lines lines_;
  TextReader reader_;  // for its readings
  std::uint32_t ranks_;
  std::int64_t classes_;
  std::vector<const ColumnName*> columns_;
  std::vector<Cell> cells_;
};

struct CsvParameters {};

// The first line has a comma and begins with a name of ours.
bool is_flow_list(const Excerpt& file) {
  const auto cells = file.cells(0, ',');
  if (cells.size() < 2) return false;
  std::string_view first = cells.front();
  if (first.size() > 1 && first.front() == '"' && first.back() == '"')
    first = first.substr(1, first.size() - 2);
  return find_column(first) != nullptr;
}

const FormatRegistration kFormat{{.name = "csv",
                                  .what = "a flow list",
                                  .use = Format::Use::workload,
                                  .matches = is_flow_list,
                                  .component = "csv",
                                  .advice = {},
                                  .endings = {".csv"}}};

class CsvReader final : public WorkloadReader {
 public:
  std::unique_ptr<TaskSource> read(std::string_view text, const std::string& path,
                                   const WorkloadContext& context) const override {
    return CsvFlows(text, path, context).read();
  }
};

const Registration<WorkloadReader> kRegistration{
    "csv", "a flow list: source,destination,bytes,start[,class][,channel][,name], one flow a line",
    Parameters<CsvParameters>(),
    [](const CsvParameters&, const ConfigNode&) { return std::make_unique<CsvReader>(); }};

}  // namespace

}  // namespace netsim
