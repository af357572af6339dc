#include "sim/workload/convert/convert.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/core/errors.h"
#include "sim/core/output.h"
#include "sim/core/text.h"
#include "sim/workload/convert/listed_rank.h"
#include "sim/workload/program/program_file.h"
#include "sim/workload/trace/chakra_writer.h"
#include "sim/workload/trace/trace_program.h"

namespace netsim {
namespace {

void write_target(const std::string& path, const std::string& content, Conversion& conversion) {
  OutputFile file(path);
  file.write(content);
  file.commit();
  conversion.files.push_back(path);
}

// Returns why a .pb cannot hold a task that no program gives, or "".
std::string program_objection(const Task& task) {
  const Payload* payload = task.payload();
  if (payload != nullptr && payload->traits.path_hint != kNoPathHint) return "a message with its own path";
  if (task.kind() == TaskKind::circuits) return "a request for optical circuits of a list of tasks";
  if (task.kind() != TaskKind::collective) return "";
  const CollectiveTask& call = task.collective();
  if (call.counts != nullptr) return "a collective with counts of a list of tasks";
  if (call.algorithm != nullptr) return "a collective with its own algorithm";
  return call.pause != 0 ? "a collective that begins at all members at once" : "";
}

// ListedProgram: makes a program of a workload that has none, task by task.
class ListedProgram {
 public:
  explicit ListedProgram(const TaskSource& source)
      : source_(source), program_(source.job_name(), source.ranks(), source.job_name()) {}

  std::string bytes() {
    for (RankId rank = 0; rank < source_.ranks(); ++rank) add(rank);
    return serialize_program(*program_.finish({})->program());
  }

 private:
  void add(RankId rank) {
    const ListedRank list = list_rank(source_, rank);
    std::vector<TraceTask> tasks;
    tasks.reserve(list.tasks.size());
    for (std::size_t i = 0; i < list.tasks.size(); ++i) {
      if (const std::string what = program_objection(list.tasks[i]); !what.empty())
        refuse_conversion(source_, rank, list.tasks[i], what);
      tasks.push_back(trace_task(list.tasks[i]));
      tasks.back().order = i;
      tasks.back().after = list.after[i];
    }
    program_.add_rank(rank, std::move(tasks), source_.job_name());
  }

  TraceTask trace_task(const Task& given) {
    TraceTask task;
    task.kind = given.kind();
    task.name = program_.name(source_.name(given.name));
    task.stream = given.stream;
    task.not_before = given.not_before;
    if (has_work(task.kind)) {
      task.work = program_.work(source_.works()[given.work()]);
      return task;
    }
    task.bytes = given.bytes();
    task.traits = given.payload()->traits;
    if (is_point_to_point(task.kind)) {
      task.peer = given.message().peer;
      task.tag = given.message().tag;
      task.raw = given.message().raw;
    } else if (task.kind == TaskKind::collective) {
      const CollectiveTask& call = given.collective();
      task.collective = call.collective;
      task.group = program_.group(source_.group(call.group), call.group);
      task.root = call.root;
      if (call.collective == CollectiveKind::barrier) task.bytes = 0;
    }
    return task;
  }

  const TaskSource& source_;
  TraceProgram program_;
};

// Writes a file for each rank, and the communicators.
void write_chakra(const TaskSource& source, const std::string& stem, Conversion& conversion) {
  ChakraWriter writer(source);
  std::uint64_t grouped = 0;
  for (RankId rank = 0; rank < source.ranks(); ++rank) {
    const ListedRank list = list_rank(source, rank);
    std::string bytes = ChakraWriter::header();
    for (std::uint32_t i = 0; i < list.tasks.size(); ++i) {
      const Task& task = list.tasks[i];
      if (const std::string what = chakra_objection(task); !what.empty())
        refuse_conversion(source, rank, task, what);
      grouped += task.together > 1 ? 1 : 0;
      bytes += writer.node(rank, i, task, list.after[i]);
    }
    write_target(fmt::format("{}.{}.et", stem, rank + 0U), bytes, conversion);
  }
  write_target(stem + ".json", writer.communicators(), conversion);
  if (grouped > 0)
    conversion.notes.push_back(
        fmt::format("Chakra has no grouped calls, so these communications are launched alone: {}", grouped));
  if (source.iterations().value_or(1) > 1)
    conversion.notes.push_back(fmt::format("Chakra has no iterations: all {} are one", *source.iterations()));
}

}  // namespace

void refuse_conversion(const TaskSource& source, RankId rank, const Task& task, const std::string& what) {
  refuse_task(source, rank, task, "the notation has no place for " + what);
}

std::string program_bytes(const TaskSource& source) {
  if (source.program() != nullptr) return serialize_program(*source.program());
  return ListedProgram(source).bytes();
}

Conversion convert_workload(const TaskSource& source, const std::string& target,
                            const ConversionRules& rules) {
  Conversion conversion;
  if (target.ends_with(".pb")) {
    write_target(target, program_bytes(source), conversion);
  } else if (target.ends_with(".et")) {
    write_chakra(source, target.substr(0, target.size() - 3), conversion);
  } else if (target.ends_with(".goal")) {
    write_target(target, goal_text(source, rules, conversion.notes), conversion);
  } else {
    throw ConfigError("--to: '" + printable(target) +
                      "' was given; allowed are names that end in .pb, .et (Chakra) or .goal");
  }
  return conversion;
}

}  // namespace netsim
