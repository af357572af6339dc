#include "sim/main/describe_trace_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>

#include "sim/core/config.h"
#include "sim/core/errors.h"
#include "sim/core/terminal.h"
#include "sim/core/text.h"
#include "sim/main/command_words.h"
#include "sim/main/model_times.h"
#include "sim/report/page/json_writer.h"
#include "sim/workload/workload.h"

namespace netsim {
namespace {

// Tasks of the critical path that the screen shows.
constexpr std::size_t kShownShares = 8;

boost::program_options::options_description trace_options(std::size_t width = kDefaultWidth) {
  namespace po = boost::program_options;
  const auto columns = static_cast<unsigned>(std::clamp<std::size_t>(width, 60, 120));
  po::options_description all("Options", columns, columns - 28);
  const auto text = [] { return po::value<std::string>(); };
  auto add = all.add_options();
  add("gpu", text()->value_name("MODEL"),
      "compute model for computations without a time of their own, e.g. h100_sxm (--list compute_model); "
      "without it they take no time");
  add("rate", text()->value_name("RATE"),
      "rate at which each rank sends its part of a communication, e.g. 400Gbps (default: communication takes "
      "no time)");
  add("set", po::value<std::vector<std::string>>()->composing()->value_name("KEY=VALUE"),
      "overlay one value of the workload's description; may be repeated");
  add("json", text()->value_name("-"), "print it as JSON instead");
  add("help", "print this");
  return all;
}

double real(Int128 number) { return static_cast<double>(number); }

std::string rows_text(const WorkloadFacts& facts, std::size_t width) {
  std::vector<TableColumn> table{{"tasks", 0, true, {}},
                                 {"number", 0, false, {}},
                                 {"calls", 1, false, {}},
                                 {"bytes", 0, false, {}},
                                 {"time", 0, false, {}}};
  const auto dash = [](bool known, std::string text) { return known ? std::move(text) : std::string("-"); };
  for (const WorkloadFacts::KindRow& row : facts.kinds) {
    table[0].cells.push_back(row.kind);
    table[1].cells.push_back(std::to_string(row.tasks));
    table[2].cells.push_back(dash(row.calls > 0, std::to_string(row.calls)));
    table[3].cells.push_back(dash(row.bytes > 0, human_bytes(real(row.bytes))));
    table[4].cells.push_back(dash(row.time > 0, human_seconds(to_seconds(row.time))));
  }
  return text_table(std::move(table), 2, width);
}

std::string streams_text(const WorkloadFacts& facts, std::size_t width) {
  std::vector<TableColumn> table{
      {"stream", 0, true, {}}, {"number", 0, false, {}}, {"bytes", 0, false, {}}, {"time", 0, false, {}}};
  for (const WorkloadFacts::StreamRow& row : facts.streams) {
    table[0].cells.push_back(row.stream);
    table[1].cells.push_back(std::to_string(row.tasks));
    table[2].cells.push_back(row.bytes > 0 ? human_bytes(real(row.bytes)) : "-");
    table[3].cells.push_back(row.time > 0 ? human_seconds(to_seconds(row.time)) : "-");
  }
  return text_table(std::move(table), 2, width);
}

std::string path_text(const WorkloadFacts& facts, std::size_t width) {
  const ReplayedPath& path = facts.path;
  std::string text = wrapped(fmt::format("critical path on the ideal network: {} in {}",
                                         human_seconds(to_seconds(path.length)), counted(path.tasks, "task")),
                             0, 2, width) +
                     "\n";
  std::vector<TableColumn> table{
      {"kind", 0, true, {}}, {"name", 0, true, {}}, {"number", 0, false, {}}, {"time", 0, false, {}}};
  for (std::size_t i = 0; i < std::min(path.shares.size(), kShownShares); ++i) {
    const ReplayedPath::Share& share = path.shares[i];
    constexpr std::size_t kNameColumns = 40;
    std::string name = printable(share.name);
    if (name.size() > kNameColumns) name = name.substr(0, kNameColumns - 3) + "...";
    table[0].cells.push_back(share.kind);
    table[1].cells.push_back(std::move(name));
    table[2].cells.push_back(std::to_string(share.tasks));
    table[3].cells.push_back(human_seconds(to_seconds(share.time)));
  }
  if (!path.shares.empty()) text += text_table(std::move(table), 2, width);
  return text;
}

// Returns lines on what the numbers leave out.
std::vector<std::string> notes_of_facts(const WorkloadFacts& facts) {
  std::vector<std::string> notes = facts.notes;
  if (facts.untimed > 0)
    notes.push_back(
        fmt::format("computations that have operations instead of a time, which take none here "
                    "(--gpu names a compute model): {}",
                    facts.untimed));
  if (facts.path.waiting > 0)
    notes.push_back("time before the earliest starts that the workload gives, on the critical path: " +
                    human_seconds(to_seconds(facts.path.waiting)));
  if (facts.path.stuck > 0)
    notes.push_back(
        fmt::format("tasks that never begin, because they wait for each other: {}", facts.path.stuck));
  return notes;
}

// TraceWords: the command line behind `describe-trace`.
struct TraceWords {
  InputPaths input;
  std::string gpu;
  BitRate rate = 0;
  std::vector<std::string> assignments;
  bool json = false, help = false;
};

TraceWords parse_trace_words(const std::vector<std::string>& arguments) {
  const CommandWords words = parse_words({arguments.begin() + 1, arguments.end()}, trace_options(),
                                         {" of describe-trace", allowed_options(trace_option_infos())});
  TraceWords given;
  given.help = words.values.count("help") != 0;
  if (given.help) return given;
  if (words.operands.empty())
    throw ConfigError("describe-trace: the workload is missing: netsim describe-trace trace.0.et");
  given.input = words.operands;
  given.gpu = text_of(words.values, "gpu");
  if (const std::string rate = text_of(words.values, "rate"); !rate.empty()) {
    Place place;
    place.file = "--rate";
    given.rate = read_rate(ConfigNode::scalar(rate, place));
  }
  if (words.values.count("set") != 0) given.assignments = words.values["set"].as<std::vector<std::string>>();
  if (const std::string json = text_of(words.values, "json"); !json.empty()) {
    if (json != "-") throw ConfigError("--json: '" + json + "' was given, only - (stdout) is allowed");
    given.json = true;
  }
  return given;
}

}  // namespace

std::vector<OptionInfo> trace_option_infos() { return infos_of(trace_options()); }

std::string trace_usage() { return usage_of("netsim describe-trace FILE...", trace_option_infos()); }

std::string render_facts(const WorkloadFacts& facts, std::size_t width) {
  std::string ranks = fmt::format("{}: {}, {}", printable(facts.job), counted(facts.ranks, "rank"),
                                  counted(facts.tasks, "task"));
  if (facts.iterations.value_or(1) > 1) ranks += " in " + counted(*facts.iterations, "iteration");
  if (facts.groups > 0)
    ranks +=
        fmt::format(", {} of up to {}", counted(facts.groups, "group"), counted(facts.largest_group, "rank"));
  std::string text = wrapped(ranks, 0, 2, width) + "\n\n" + rows_text(facts, width) + "\n" +
                     streams_text(facts, width) + "\n" + path_text(facts, width);
  text += wrapped(fmt::format("computation of a rank on its GPU: {} to {}",
                              human_seconds(to_seconds(facts.least_compute)),
                              human_seconds(to_seconds(facts.most_compute))),
                  0, 2, width) +
          "\n";
  for (const std::string& note : notes_of_facts(facts))
    text += wrapped("note: " + printable(note), 0, 6, width) + "\n";
  return text;
}

std::string facts_json(const WorkloadFacts& facts) {
  JsonWriter json;
  json.object([&] {
    json.field("job", facts.job);
    json.field("ranks", facts.ranks);
    json.field("tasks", facts.tasks);
    json.key("iterations");
    facts.iterations ? json.value(*facts.iterations) : json.null();
    json.field("groups", facts.groups);
    json.field("largest_group", facts.largest_group);
    json.array("kinds", [&] {
      for (const WorkloadFacts::KindRow& row : facts.kinds) {
        json.object([&] {
          json.field("kind", row.kind);
          json.field("tasks", row.tasks);
          json.field("calls", row.calls);
          json.field("bytes", real(row.bytes));
          json.field("time_s", to_seconds(row.time));
        });
      }
    });
    json.array("streams", [&] {
      for (const WorkloadFacts::StreamRow& row : facts.streams) {
        json.object([&] {
          json.field("stream", row.stream);
          json.field("tasks", row.tasks);
          json.field("bytes", real(row.bytes));
          json.field("time_s", to_seconds(row.time));
        });
      }
    });
    json.object("critical_path", [&] {
      json.field("time_s", to_seconds(facts.path.length));
      json.field("tasks", facts.path.tasks);
      json.field("waiting_s", to_seconds(facts.path.waiting));
      json.array("shares", [&] {
        for (const ReplayedPath::Share& share : facts.path.shares) {
          json.object([&] {
            json.field("kind", share.kind);
            json.field("name", share.name);
            json.field("tasks", share.tasks);
            json.field("time_s", to_seconds(share.time));
          });
        }
      });
    });
    json.field("least_compute_s", to_seconds(facts.least_compute));
    json.field("most_compute_s", to_seconds(facts.most_compute));
    json.array("notes", [&] {
      for (const std::string& note : notes_of_facts(facts)) json.value(note);
    });
  });
  return json.text() + "\n";
}

int run_trace_description(const std::vector<std::string>& arguments, const PrintText& print) {
  const TraceWords given = parse_trace_words(arguments);
  if (given.help) {
    print(wrapped(find_subcommand(arguments)->what, 0, 2, line_width(stdout)) + "\n\n  " +
          wrapped(trace_usage(), 2, 9, line_width(stdout)) + "\n\n" +
          options_text(trace_options(line_width(stdout))));
    return static_cast<int>(ExitCode::done);
  }
  WorkloadContext context = WorkloadContext::without_cluster();
  context.assignments = given.assignments;
  const std::unique_ptr<TaskSource> source = load_workload(given.input, context);
  const WorkloadFacts facts = workload_facts(*source, ModelTimes(given.gpu), given.rate);
  print(given.json ? facts_json(facts) : render_facts(facts, line_width(stdout)));
  return static_cast<int>(ExitCode::done);
}

}  // namespace netsim
