#include "sim/workload/convert/convert.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/core/errors.h"
#include "sim/core/output.h"
#include "sim/core/text.h"
#include "sim/workload/convert/listed_program.h"
#include "sim/workload/convert/listed_rank.h"
#include "sim/workload/program/program_file.h"
#include "sim/workload/trace/chakra_writer.h"

namespace netsim {
namespace {

void write_target(const std::string& path, const std::string& content, Conversion& conversion) {
  OutputFile file(path);
  file.write(content);
  file.commit();
  conversion.files.push_back(path);
}

// Writes a file for each rank, and the communicators.
void write_chakra(const TaskSource& source, const std::string& stem, Conversion& conversion) {
  ChakraWriter writer(source);
  for (RankId rank = 0; rank < source.ranks(); ++rank) {
    const ListedRank list = list_rank(source, rank);
    std::string bytes = writer.header();
    for (std::uint32_t i = 0; i < list.tasks.size(); ++i) {
      const Task& task = list.tasks[i];
      if (const std::string what = chakra_objection(task); !what.empty())
        refuse_conversion(source, rank, task, what);
      bytes += writer.node(rank, i, task, {list.dependencies(i), list.queued[i], list.joins[i]});
    }
    write_target(fmt::format("{}.{}.et", stem, rank + 0U), bytes, conversion);
  }
  if (writer.has_communicators()) write_target(stem + ".json", writer.communicators(), conversion);
  if (source.iterations().value_or(1) > 1)
    conversion.notes.push_back(fmt::format("Chakra has no iterations: all {} are one", *source.iterations()));
}

}  // namespace

std::string program_bytes(const TaskSource& source) {
  if (source.program() != nullptr) return serialize_program(*source.program());
  return serialize_program(*list_program(source, {})->program());
}

Conversion convert_workload(const TaskSource& source, const std::string& target,
                            const ConversionRules& rules) {
  Conversion conversion;
  if (target.ends_with(".pb")) {
    write_target(target, program_bytes(source), conversion);
  } else if (target.ends_with(".et")) {
    write_chakra(source, target.substr(0, target.size() - 3), conversion);
  } else if (target.ends_with(".goal")) {
    write_target(target, write_goal_text(goal_schedule(source, rules, conversion.notes)), conversion);
  } else if (target.ends_with(".bin")) {
    write_target(target, write_goal_binary(goal_schedule(source, rules, conversion.notes)), conversion);
  } else {
    throw ConfigError(
        "--to: '" + printable(target) +
        "' was given; allowed are names that end in .pb, .et (Chakra), .goal, or .bin (GOAL, binary)");
  }
  return conversion;
}

}  // namespace netsim
