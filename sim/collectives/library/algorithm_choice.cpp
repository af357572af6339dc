#include "sim/collectives/library/algorithm_choice.h"

#include <algorithm>
#include <string>

#include "sim/collectives/collective_names.h"
#include "sim/collectives/library/candidates.h"
#include "sim/core/errors.h"
#include "sim/core/parameters.h"
#include "sim/core/registry.h"
#include "sim/core/text.h"

namespace netsim {
namespace {

constexpr Bytes kMostBytes = 1000 * kGigabyte;

bool does(const CollectiveAlgorithm& algorithm, CollectiveKind kind) {
  return algorithm.supports(kind) ||
         (kind == CollectiveKind::barrier && algorithm.supports(CollectiveKind::all_reduce));
}

// Returns whether the algorithm has required parameters. The kinds that it supports may then depend on them.
bool has_required_parameters(const std::string& name) {
  const ParameterTable& table =
      Catalogue::instance().find(CollectiveAlgorithm::kComponentKind, name)->parameters;
  return std::any_of(table.begin(), table.end(),
                     [](const ParameterInfo& parameter) { return parameter.required; });
}

// Returns the names of the algorithms that support `kind` or may support it, for messages.
std::string algorithms_for(CollectiveKind kind) {
  const auto& registry = Registry<CollectiveAlgorithm>::instance();
  std::string names;
  for (const std::string& name : registry.names()) {
    if (has_required_parameters(name) || does(*registry.create(name), kind)) append_item(names, name);
  }
  return names;
}

std::unique_ptr<CollectiveAlgorithm> choose(const CollectiveKindInfo& info, const ConfigNode& node) {
  const auto& registry = Registry<CollectiveAlgorithm>::instance();
  if (node.is_null() && *info.default_algorithm == '\0') return nullptr;
  auto algorithm = registry.create(node, info.default_algorithm);
  if (!does(*algorithm, info.kind)) {
    const std::string name = registry.component_name(node, info.default_algorithm);
    node.fail("'" + name + (has_required_parameters(name) ? "' with these parameters" : "'") +
              " does not do " + info.name + " (allowed: " + algorithms_for(info.kind) + ")");
  }
  return algorithm;
}

struct RuleParameters {
  CollectiveKind collective = CollectiveKind::all_reduce;
  Bytes from = 0, to = kMostBytes;
  std::optional<std::int64_t> ranks, domains;
  ConfigNode algorithm;
};

const Parameters<RuleParameters>& rule_parameters() {
  using P = RuleParameters;
  static const auto parameters =
      Parameters<P>()
          .choice("collective", &P::collective, collectives_by_name(), "of which kind")
          .required()
          .bytes("from", &P::from, {0, kMostBytes}, "the smallest size")
          .bytes("to", &P::to, {0, kMostBytes}, "the largest size")
          .integer("ranks", &P::ranks, {2, 1 << 30}, "any", "number of the group's ranks")
          .integer("domains", &P::domains, {1, 1 << 30}, "any",
                   "number of the group's domains: hosts, or racks that NVLink joins")
          .component("algorithm", &P::algorithm, CollectiveAlgorithm::kComponentKind, "", "what runs them")
          .required();
  return parameters;
}

std::vector<AlgorithmRule> rules_of(const ConfigNode& list) {
  std::vector<AlgorithmRule> rules;
  if (list.is_null()) return rules;
  if (!list.is_sequence())
    list.fail("a list is expected: [{collective: all_reduce, to: 64 KiB, algorithm: tree}]");
  for (const ConfigNode& item : list.items()) {
    const RuleParameters p = rule_parameters().parse(item);
    if (p.to < p.from) item.fail("to " + format_bytes(p.to) + " is less than from " + format_bytes(p.from));
    rules.push_back({p.collective, p.from, p.to, p.ranks, p.domains,
                     choose(info_of(p.collective), p.algorithm), item.place()});
  }
  return rules;
}

}  // namespace

OwnAlgorithm own_algorithm(CollectiveKind kind, const ConfigNode& node) {
  const CollectiveKindInfo& info = info_of(kind);
  if (node.is_null())
    node.fail(std::string("the name of an algorithm is missing (allowed: ") + algorithms_for(kind) + ")");
  OwnAlgorithm own;
  own.algorithm = choose(info, node);
  own.name = Registry<CollectiveAlgorithm>::instance().component_name(node, info.default_algorithm);
  own.place = node.place();
  return own;
}

void check_ranks(const OwnAlgorithm& own, CollectiveKind kind, std::uint32_t ranks, std::uint32_t root) {
  const CollectiveAlgorithm& algorithm = *own.algorithm;
  const PlanTraits traits = algorithm.traits();
  const bool by_place = traits.hosts || traits.sites || traits.channels || traits.links;
  if (ranks < 2 || by_place || !candidates_of(algorithm, kind).empty()) return;
  try {
    algorithm.plan(plan_kind_of(algorithm, kind), {ranks, root});
  } catch (const InputError& error) {
    throw InputError(own.place, error.what());
  }
}

CollectiveKind plan_kind_of(const CollectiveAlgorithm& algorithm, CollectiveKind kind) {
  return kind == CollectiveKind::barrier && !algorithm.supports(kind) ? CollectiveKind::all_reduce : kind;
}

AlgorithmChoice::AlgorithmChoice(const CollectivesParameters& parameters)
    : rules_(rules_of(parameters.choices)) {
  for (const CollectiveKindInfo& info : kCollectiveKinds) {
    const ConfigNode& node = parameters.*CollectivesParameters::member(info.kind);
    algorithms_[static_cast<std::size_t>(info.kind)] = choose(info, node);
    defaults_[static_cast<std::size_t>(info.kind)] = choose(info, ConfigNode());
    configured_[static_cast<std::size_t>(info.kind)] = !node.is_null();
  }
}

const AlgorithmRule* AlgorithmChoice::rule(CollectiveKind kind, Bytes bytes, std::size_t ranks,
                                           std::uint32_t domains) const {
  const auto found = std::find_if(rules_.begin(), rules_.end(), [&](const AlgorithmRule& rule) {
    return rule.kind == kind && rule.least <= bytes && bytes <= rule.most &&
           rule.ranks.value_or(static_cast<std::int64_t>(ranks)) == static_cast<std::int64_t>(ranks) &&
           rule.domains.value_or(domains) == domains;
  });
  return found == rules_.end() ? nullptr : &*found;
}

bool AlgorithmChoice::has_candidates() const {
  const auto leaves_a_choice = [](const AlgorithmRule& rule) {
    return !candidates_of(*rule.algorithm, rule.kind).empty();
  };
  if (std::any_of(rules_.begin(), rules_.end(), leaves_a_choice)) return true;
  return std::any_of(std::begin(kCollectiveKinds), std::end(kCollectiveKinds), [&](const auto& info) {
    const auto& algorithm = algorithms_[static_cast<std::size_t>(info.kind)];
    return algorithm && !candidates_of(*algorithm, info.kind).empty();
  });
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
