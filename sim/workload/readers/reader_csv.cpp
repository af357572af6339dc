// csv: a flow list, one flow a line, columns named by the first line:
//
//   source,destination,bytes,start,class,name
//   0,1,10 MB,0,0,elephant
//   2,1,64 KB,30 us,1,mouse
//
// source, destination, bytes and a start are required. class, priority, path, channel, deadline and name are
// optional. Columns may be in any order. Sizes without a unit are bytes. A start needs a unit, or its column
// is called start_s, start_ms, start_us, start_ns or start_ps. So does a deadline, which counts from the
// begin of the flow and may be empty. Several files are one list, in their order; each has its own line of
// column names.
#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/csv.h"
#include "sim/core/input_file.h"
#include "sim/core/input_set.h"
#include "sim/core/recognise.h"
#include "sim/core/registry.h"
#include "sim/workload/traffic/flow_source.h"
#include "sim/workload/traffic/traffic.h"
#include "sim/workload/workload.h"

namespace netsim {

namespace {

enum class Column : std::uint8_t {
  source,
  destination,
  bytes,
  start,
  traffic_class,
  priority,
  path,
  channel,
  deadline,
  name
};
constexpr int kColumns = 10;

struct ColumnName {
  std::string_view name;
  Column column;
  Time unit = 0;  // unit of plain numbers
};
constexpr std::array<ColumnName, 20> kNames = {{{"source", Column::source},
                                                {"destination", Column::destination},
                                                {"bytes", Column::bytes},
                                                {"start", Column::start},
                                                {"start_s", Column::start, kSecond},
                                                {"start_ms", Column::start, kMillisecond},
                                                {"start_us", Column::start, kMicrosecond},
                                                {"start_ns", Column::start, kNanosecond},
                                                {"start_ps", Column::start, kPicosecond},
                                                {"class", Column::traffic_class},
                                                {"priority", Column::priority},
                                                {"path", Column::path},
                                                {"channel", Column::channel},
                                                {"deadline", Column::deadline},
                                                {"deadline_s", Column::deadline, kSecond},
                                                {"deadline_ms", Column::deadline, kMillisecond},
                                                {"deadline_us", Column::deadline, kMicrosecond},
                                                {"deadline_ns", Column::deadline, kNanosecond},
                                                {"deadline_ps", Column::deadline, kPicosecond},
                                                {"name", Column::name}}};

const ColumnName* find_column(std::string_view name) {
  const auto* it = std::find_if(kNames.begin(), kNames.end(), [&](const auto& n) { return n.name == name; });
  return it != kNames.end() ? it : nullptr;
}

// CsvFlows: reads the flows of one file into `source`.
class CsvFlows {
 public:
  CsvFlows(const InputSet::File& file, const WorkloadContext& context, FlowSource& source)
      : table_(file), ranks_(context.gpus), classes_(context.classes), source_(source) {}

  void read() {
    read_header();
    const std::size_t before = source_.flow_count();
    while (table_.next()) {
      if (source_.flow_count() == FlowSource::kMostFlows)
        table_.fail("more than " + std::to_string(FlowSource::kMostFlows) + " flows are too many");
      source_.add(flow());
    }
    if (source_.flow_count() == before) table_.fail("no flows follow the header");
  }

 private:
  void read_header() {
    std::vector<std::string> names;
    names.reserve(kNames.size());
    for (const ColumnName& name : kNames) names.emplace_back(name.name);
    std::array<bool, kColumns> seen{};
    for (const std::size_t index : table_.header(names, 3)) {
      const ColumnName& known = kNames[index];
      bool& given = seen[static_cast<std::size_t>(known.column)];
      if (given) table_.fail("a second column for '" + std::string(known.name) + "'");
      given = true;
      columns_.push_back(&known);
    }
    if (!seen[static_cast<std::size_t>(Column::start)]) table_.fail("column 'start' is missing");
  }

  Flow flow() const {
    Flow result;
    bool named = false;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      named = named || columns_[i]->column == Column::name;
      take(*columns_[i], table_.cells()[i], result);
    }
    if (!named) result.name = source_.add_name("flow");
    if (result.from == result.to) {
      table_.fail("rank " + std::to_string(result.from) +
                  " sends to itself; source and destination must differ");
    }
    return result;
  }
  void take(const ColumnName& column, const Word& word, Flow& flow) const {
    const TextReader& reader = table_.reader();
    const Range<std::int64_t> ranks{0, std::int64_t{ranks_} - 1};
    switch (column.column) {
      case Column::source:
        flow.from = static_cast<std::uint32_t>(reader.integer(word, "the source", ranks));
        break;
      case Column::destination:
        flow.to = static_cast<std::uint32_t>(reader.integer(word, "the destination", ranks));
        break;
      case Column::bytes:
        flow.bytes = bytes(word);
        break;
      case Column::start:
        flow.start = time(column, word, "the start", kStartTimes);
        break;
      case Column::traffic_class:
        flow.traffic_class = static_cast<std::uint8_t>(reader.integer(word, "the class", kTrafficClasses));
        if (const std::string problem = class_problem(flow.traffic_class, classes_); !problem.empty())
          reader.fail(word, problem);
        break;
      case Column::priority:
        flow.priority = static_cast<std::uint8_t>(reader.integer(word, "the priority", {0, UINT8_MAX}));
        break;
      case Column::path:
        flow.path_hint = static_cast<std::uint32_t>(reader.integer(word, "the path", {0, kMaxPathHint}));
        break;
      case Column::channel:
        flow.channel = static_cast<std::uint32_t>(reader.integer(word, "the channel", {0, kMaxChannel}));
        break;
      case Column::deadline:
        if (!word.text.empty()) flow.deadline = time(column, word, "the deadline", kFlowDeadlines);
        break;
      case Column::name:
        flow.name = source_.add_name(word.text.empty() ? "flow" : std::string(word.text));
        break;
    }
  }
  Time time(const ColumnName& column, const Word& word, const char* what, Range<Time> range) const {
    const TextReader& reader = table_.reader();
    return column.unit != 0 ? reader.time_in(word, what, column.unit, range) : reader.time(word, what, range);
  }
  Bytes bytes(const Word& word) const {
    const TextReader& reader = table_.reader();
    const bool plain = !word.text.empty() && word.text.find_first_not_of("0123456789") == std::string::npos;
    if (plain) return reader.integer(word, "the size", {kMessageSizes.minimum, kMessageSizes.maximum});
    const Bytes size =
        as_input([&] { return read_bytes(ConfigNode::scalar(std::string(word.text), reader.place(word))); });
    if (size < kMessageSizes.minimum || size > kMessageSizes.maximum) {
      reader.fail(word, "the size is " + std::string(word.text) + "; allowed: 1 B to 100 GB");
    }
    return size;
  }

  CsvReader table_;
  std::uint32_t ranks_;
  std::int64_t classes_;
  FlowSource& source_;
  std::vector<const ColumnName*> columns_;
};

// Returns whether the first line has a comma and begins with the name of a column.
bool is_flow_list(const Excerpt& file) {
  const auto cells = file.cells(0, ',');
  if (cells.size() < 2) return false;
  const auto is_column = [](std::string_view cell) {
    if (cell.size() > 1 && cell.front() == '"' && cell.back() == '"') cell = cell.substr(1, cell.size() - 2);
    return find_column(cell) != nullptr;
  };
  // Tables of other tools may begin with the column of a flow list, too: "name,cpu_milli,memory_mib".
  return is_column(cells[0]) && (cells.size() == 2 || std::any_of(cells.begin() + 1, cells.end(), is_column));
}

const FormatRegistration kCsvFormat{{.name = "csv",
                                     .what = "a flow list",
                                     .use = Format::Use::workload,
                                     .matches = is_flow_list,
                                     .component = "csv",
                                     .advice = {},
                                     .endings = {".csv"}}};

class FlowListReader final : public WorkloadReader {
 public:
  std::unique_ptr<TaskSource> open(const InputSet& input, const WorkloadContext& context) const override {
    if (context.gpus < 2) {
      throw InputError(Place{input.files().front().path, 1, 1, ""},
                       "a flow list needs a cluster of at least 2 GPUs");
    }
    auto source = std::make_unique<FlowSource>("flows", context.gpus);
    source->reserve(std::min<std::uint64_t>(input.count_lines(), FlowSource::kMostFlows));
    for (const InputSet::File& file : input.files()) CsvFlows(file, context, *source).read();
    source->seal();
    return source;
  }
};

const Registration<WorkloadReader> kCsv{
    "csv",
    "a flow list with one flow a line: source,destination,bytes,start and, as needed, class, priority, path, "
    "channel and name",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<FlowListReader>(); }};

}  // namespace

}  // namespace netsim
