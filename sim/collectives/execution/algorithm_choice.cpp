#include "sim/collectives/execution/algorithm_choice.h"

#include <algorithm>
#include <string>

#include "sim/core/errors.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

bool does(const CollectiveAlgorithm& algorithm, CollectiveKind kind) {
  return algorithm.supports(kind) ||
         (kind == CollectiveKind::barrier && algorithm.supports(CollectiveKind::all_reduce));
}

// Whether what an algorithm does depends on parameters that must be given.
bool says_by_parameters(const std::string& name) {
  const ParameterTable& table =
      Catalogue::instance().find(CollectiveAlgorithm::kComponentKind, name)->parameters;
  return std::any_of(table.begin(), table.end(),
                     [](const ParameterInfo& parameter) { return parameter.required; });
}

// Those that do `kind` or may, for messages.
std::string algorithms_for(CollectiveKind kind) {
  const auto& registry = Registry<CollectiveAlgorithm>::instance();
  std::string names;
  for (const std::string& name : registry.names()) {
    if (says_by_parameters(name) || does(*registry.create(name), kind))
      names += (names.empty() ? "" : ", ") + name;
  }
  return names;
}

std::unique_ptr<CollectiveAlgorithm> choose(const CollectiveKindInfo& info, const ConfigNode& node) {
  const auto& registry = Registry<CollectiveAlgorithm>::instance();
  if (node.is_null() && *info.default_algorithm == '\0') return nullptr;
  auto algorithm = registry.create(node, info.default_algorithm);
  if (!does(*algorithm, info.kind)) {
    const std::string name = registry.component_name(node, info.default_algorithm);
    node.fail("'" + name + (says_by_parameters(name) ? "' with these parameters" : "'") + " does not do " +
              info.name + " (allowed: " + algorithms_for(info.kind) + ")");
  }
  return algorithm;
}

}  // namespace

OwnAlgorithm own_algorithm(CollectiveKind kind, const ConfigNode& node) {
  const CollectiveKindInfo& info = info_of(kind);
  if (node.is_null())
    node.fail(std::string("the name of an algorithm is missing (allowed: ") + algorithms_for(kind) + ")");
  OwnAlgorithm own;
  own.algorithm = choose(info, node);
  own.name = Registry<CollectiveAlgorithm>::instance().component_name(node, info.default_algorithm);
  return own;
}

void check_ranks(const OwnAlgorithm& own, CollectiveKind kind, std::uint32_t ranks, std::uint32_t root,
                 const ConfigNode& node) {
  const CollectiveAlgorithm& algorithm = *own.algorithm;
  if (ranks < 2 || algorithm.depends_on_shape() || !algorithm.candidates(kind).empty()) return;
  try {
    algorithm.plan(plan_kind_of(algorithm, kind), ranks, root);
  } catch (const InputError& error) {
    throw InputError(node.place(), error.what());
  }
}

CollectiveKind plan_kind_of(const CollectiveAlgorithm& algorithm, CollectiveKind kind) {
  return kind == CollectiveKind::barrier && !algorithm.supports(kind) ? CollectiveKind::all_reduce : kind;
}

AlgorithmChoice::AlgorithmChoice(const CollectivesParameters& parameters) {
  for (const CollectiveKindInfo& info : kCollectiveKinds) {
    const ConfigNode& node = parameters.*CollectivesParameters::member(info.kind);
    algorithms_[static_cast<std::size_t>(info.kind)] = choose(info, node);
    configured_[static_cast<std::size_t>(info.kind)] = !node.is_null();
  }
}

bool AlgorithmChoice::has_candidates() const {
  return std::any_of(std::begin(kCollectiveKinds), std::end(kCollectiveKinds), [&](const auto& info) {
    const auto& algorithm = algorithms_[static_cast<std::size_t>(info.kind)];
    return algorithm && !algorithm->candidates(info.kind).empty();
  });
}

CollectiveKind AlgorithmChoice::plan_kind(CollectiveKind kind) const {
  return kind == CollectiveKind::barrier ? plan_kind_of(of(kind), kind) : kind;
}

const CollectiveAlgorithm& AlgorithmChoice::of(CollectiveKind kind) const {
  const auto& algorithm = algorithms_[static_cast<std::size_t>(kind)];
  if (!algorithm && kind == CollectiveKind::barrier) return of(CollectiveKind::all_reduce);
  if (!algorithm) {
    throw InputError(std::string("the workload has a collective of kind ") + to_string(kind) +
                     ", for which the configuration names no algorithm: collectives." + to_string(kind));
  }
  return *algorithm;
}

}  // namespace netsim
