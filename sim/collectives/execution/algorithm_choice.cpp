#include "sim/collectives/execution/algorithm_choice.h"

#include <string>

#include "sim/core/registry.h"

namespace netsim {
namespace {

// Those that do `kind`, for messages.
std::string algorithms_for(CollectiveKind kind) {
  const auto& registry = Registry<CollectiveAlgorithm>::instance();
  std::string names;
  for (const std::string& name : registry.names()) {
    if (registry.create(name)->supports(kind)) names += (names.empty() ? "" : ", ") + name;
  }
  return names;
}

std::unique_ptr<CollectiveAlgorithm> choose(const CollectiveKindInfo& info, const ConfigNode& node) {
  const auto& registry = Registry<CollectiveAlgorithm>::instance();
  auto algorithm = registry.create(node, info.default_algorithm);
  if (!algorithm->supports(info.kind)) {
    node.fail("'" + registry.component_name(node, info.default_algorithm) + "' does not do " + info.name +
              " (allowed: " + algorithms_for(info.kind) + ")");
  }
  return algorithm;
}

}  // namespace

AlgorithmChoice::AlgorithmChoice(const CollectivesParameters& parameters) {
  for (const CollectiveKindInfo& info : kCollectiveKinds) {
    algorithms_[static_cast<std::size_t>(info.kind)] =
        choose(info, parameters.*CollectivesParameters::member(info.kind));
  }
}

}  // namespace netsim
