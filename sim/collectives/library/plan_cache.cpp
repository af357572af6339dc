#include "sim/collectives/library/plan_cache.h"

#include <string>
#include <utility>

#include "sim/core/errors.h"

namespace netsim {
namespace {

std::unique_ptr<Plan> make_plan(const PlanCache::Key& key) {
  const auto& [algorithm, kind, shape] = key;
  std::unique_ptr<Plan> made = algorithm->plan(kind, shape);
  const std::string wrong = prove(*made);
  NETSIM_CHECK(wrong.empty(), std::string(made->algorithm()) + " " + to_string(kind) + " of " +
                                  std::to_string(shape.ranks) + " ranks: " + wrong);
  return made;
}

}  // namespace

PlanCache::Key PlanCache::key(const CollectiveAlgorithm& algorithm, CollectiveKind kind,
                              const GroupShape& shape) {
  const PlanTraits traits = algorithm.traits();
  GroupShape needed{.ranks = shape.ranks, .root = has_root(kind) ? shape.root : 0};
  if (traits.hosts) {
    needed.sizes = shape.sizes;
    needed.pattern = shape.pattern;
    needed.nics = shape.nics;
  }
  if (traits.sites) needed.sites = shape.sites;
  if (traits.channels) {
    needed.peers_channels = shape.peers_channels;
    needed.channels_per_peer = shape.channels_per_peer;
  }
  if (traits.tokens) needed.token_host = shape.token_host;
  if (traits.links) needed.links = shape.links;
  return {&algorithm, kind, std::move(needed)};
}

const Plan& PlanCache::get(const CollectiveAlgorithm& algorithm, CollectiveKind kind,
                           const GroupShape& shape) {
  const Key wanted = key(algorithm, kind, shape);
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Plan>& plan = plans_[wanted];
  if (!plan) plan = make_plan(wanted);
  return *plan;
}

}  // namespace netsim
