#include "sim/workload/routing/experts.h"

#include <algorithm>
#include <string>

#include "sim/core/config_entries.h"

namespace netsim {

std::int64_t RoutedExperts::capacity_for(std::int64_t tokens) const {
  const double share = capacity * static_cast<double>(tokens * top_k) / static_cast<double>(count);
  const auto whole = static_cast<std::int64_t>(share);
  return std::max<std::int64_t>(1, static_cast<double>(whole) < share ? whole + 1 : whole);
}

std::int64_t ExpertsModel::copies_of(std::int64_t tokens) const {
  if (capacity == 0) return tokens * top_k;
  const std::int64_t most = count * capacity_for(tokens);
  return padded ? most : std::min(most, tokens * top_k);
}

const Parameters<ExpertsModel>& experts_parameters() {
  using P = ExpertsModel;
  static const auto p =
      routed_experts_parameters<P>()
          .integer("inner", &P::inner, {0, 10'000'000}, "inner size of an expert; 0: that of the MLP")
          .integer("shared", &P::shared, {0, 1000}, "experts of the same size that every token goes to")
          .integer("every", &P::every, {1, 100'000}, "every n-th layer, from the first on, has experts")
          .integer("first_dense", &P::first_dense, {0, 100'000}, "first layers, which have no experts")
          .flag("padded", &P::padded,
                "with a capacity: the tokens of each expert are padded to its capacity");
  return p;
}

namespace {

[[noreturn]] void fail(const ConfigNode& section, const char* key, const std::string& message) {
  entry_or_self(section, key).fail(message);
}

}  // namespace

void check_routed_experts(const RoutedExperts& e, const ConfigNode& section) {
  if (e.count == 0) return;
  if (e.top_k > e.count) {
    fail(section, "top_k",
         "a token cannot go to " + std::to_string(e.top_k) + " of " + std::to_string(e.count) + " experts");
  }
  if (e.count % e.groups != 0) {
    fail(section, "groups",
         std::to_string(e.count) + " experts cannot be divided into " + std::to_string(e.groups) +
             " groups of one size");
  }
  if (e.group_limit > e.groups || e.top_k > e.group_limit * (e.count / e.groups)) {
    fail(section, "group_limit",
         "with " + std::to_string(e.groups) + " groups of " + std::to_string(e.count / e.groups) +
             " experts it has to be at most the groups, and hold the " + std::to_string(e.top_k) +
             " experts of a token; given: " + std::to_string(e.group_limit));
  }
}

void check_experts(const ExpertsModel& e, const ConfigNode& section) {
  check_routed_experts(e, section);
  if (e.count > 0 && e.padded && e.capacity == 0)
    fail(section, "padded", "padded needs a capacity to pad to");
}

}  // namespace netsim
