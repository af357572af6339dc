#include "sim/collectives/programs/named_plan.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/programs/msccl_xml.h"
#include "sim/collectives/programs/one_peer_blocks.h"
#include "sim/collectives/programs/program_file.h"
#include "sim/collectives/schedule.h"
#include "sim/core/errors.h"
#include "sim/core/output.h"
#include "sim/core/registry.h"
#include "sim/core/text.h"

namespace netsim {
namespace {

std::vector<std::string> algorithm_names() { return Registry<CollectiveAlgorithm>::instance().names(); }

bool is_algorithm(const std::string& text) {
  return text.starts_with('{') ||
         Catalogue::instance().find(CollectiveAlgorithm::kComponentKind, text) != nullptr;
}

// ---- Algorithms

ConfigNode algorithm_node(const PlanName& name) {
  const bool map = name.text.starts_with('{');
  ConfigNode node = parse_config(map ? name.text : "{kind: " + name.text + "}", "the algorithm");
  for (const std::string& assignment : name.assignments) overlay_config(node, assignment);
  return node;
}

// Returns the kinds that the algorithm supports and that a group calls together.
std::vector<std::string> kinds_of_algorithm(const CollectiveAlgorithm& algorithm) {
  std::vector<std::string> kinds;
  for (const CollectiveKindInfo& info : kCollectiveKinds) {
    if (is_collective(info.kind) && algorithm.supports(info.kind)) kinds.emplace_back(info.name);
  }
  return kinds;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) append_item(text, word);
  return text;
}

CollectiveKind kind_of(const PlanName& name, const CollectiveAlgorithm& algorithm) {
  const std::vector<std::string> kinds = kinds_of_algorithm(algorithm);
  for (const CollectiveKindInfo& info : kCollectiveKinds) {
    const bool does = is_collective(info.kind) && algorithm.supports(info.kind);
    if (does && (name.kind.empty() || name.kind == info.name)) return info.kind;
  }
  throw ConfigError("--kind: '" + name.kind + "' is no collective that " + name.text + " does" +
                    did_you_mean(name.kind, kinds) + " (allowed: " + joined(kinds) + ")");
}

std::uint32_t ranks_of(const PlanName& name) {
  if (!name.ranks)
    throw ConfigError("--ranks is missing: the number of ranks, e.g. --ranks 8 (" + name.text +
                      " is an algorithm)");
  if (*name.ranks < 2 || *name.ranks > kMostNamedRanks) {
    throw ConfigError("--ranks: " + std::to_string(*name.ranks) + " was given, allowed is 2 to " +
                      std::to_string(kMostNamedRanks));
  }
  return *name.ranks;
}

std::uint32_t root_in_name(const PlanName& name, CollectiveKind kind, std::uint32_t ranks) {
  if (!name.root) return 0;
  if (!has_root(kind)) throw ConfigError(std::string("--root: ") + to_string(kind) + " has none");
  if (*name.root >= ranks) {
    throw ConfigError("--root: " + std::to_string(*name.root) + " was given, allowed is 0 to " +
                      std::to_string(ranks - 1));
  }
  return *name.root;
}

std::unique_ptr<Plan> algorithm_plan(const PlanName& name) {
  const auto algorithm = Registry<CollectiveAlgorithm>::instance().create(algorithm_node(name), "");
  const CollectiveKind kind = kind_of(name, *algorithm);
  const std::uint32_t ranks = ranks_of(name);
  return algorithm->plan(kind, {ranks, root_in_name(name, kind, ranks)});
}

CollectiveProgram algorithm_program(const PlanName& name) {
  const auto plan = algorithm_plan(name);
  refuse_many_steps(*plan, "a program");
  return program_of(*plan);
}

// ---- Files

CollectiveProgram program_in(const PlanName& name) {
  std::error_code error;
  if (!std::filesystem::exists(name.text, error)) {
    throw ConfigError("'" + name.text + "' is no algorithm and no file" +
                      did_you_mean(name.text, algorithm_names()) +
                      " (netsim --list collective_algorithm lists the algorithms)");
  }
  if (!name.kind.empty() || name.ranks || name.root || !name.assignments.empty()) {
    throw ConfigError("--kind, --ranks, --root and --set are for algorithms; " + name.text +
                      " states these itself");
  }
  return read_program(read_file(name.text, kLargestProgram), name.text);
}

}  // namespace

std::unique_ptr<Plan> plan_named(const PlanName& name) {
  if (is_algorithm(name.text)) return algorithm_plan(name);
  return std::make_unique<ProgramPlan>(std::make_shared<const CollectiveProgram>(program_in(name)));
}

std::string program_named(const PlanName& name) {
  const CollectiveProgram program = is_algorithm(name.text) ? algorithm_program(name) : program_in(name);
  if (const std::string wrong = prove(program); !wrong.empty())
    throw InputError(name.text + ": " + describe(program) + ": refused: " + wrong);
  return write_msccl_xml(program);
}

}  // namespace netsim
