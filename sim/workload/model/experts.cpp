#include "sim/workload/model/experts.h"

#include <algorithm>
#include <string>

namespace netsim {

std::int64_t ExpertsModel::capacity_for(std::int64_t tokens) const {
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
      Parameters<P>()
          .integer("count", &P::count, {0, 100'000}, "routed experts of a layer; 0: the model is dense")
          .integer("top_k", &P::top_k, {1, 1000}, "experts that a token goes to")
          .integer("inner", &P::inner, {0, 10'000'000}, "inner size of an expert; 0: that of the MLP")
          .integer("shared", &P::shared, {0, 1000}, "experts of the same size that every token goes to")
          .integer("every", &P::every, {1, 100'000},
                   "only every so many layers, from the first on, have experts")
          .integer("first_dense", &P::first_dense, {0, 100'000}, "the first layers have none")
          .integer("groups", &P::groups, {1, 100'000}, "groups of experts (nodes)")
          .integer("group_limit", &P::group_limit, {1, 100'000},
                   "of them, as many as a token's experts may lie in")
          .real(
              "capacity", &P::capacity, {0, 1000},
              "what an expert takes of a rank's tokens, in even shares; the rest is dropped; 0: it takes all")
          .flag("padded", &P::padded, "with a capacity: experts get as much as that, filled up with nothing");
  return p;
}

void check_experts(const ExpertsModel& e, const ConfigNode& section) {
  const auto fail = [&](const char* key, const std::string& message) {
    const ConfigNode* node = section.is_map() ? section.find(key) : nullptr;
    (node != nullptr ? *node : section).fail(message);
  };
  if (e.count == 0) return;
  if (e.top_k > e.count) {
    fail("top_k",
         "a token cannot go to " + std::to_string(e.top_k) + " of " + std::to_string(e.count) + " experts");
  }
  if (e.count % e.groups != 0) {
    fail("groups", std::to_string(e.count) + " experts cannot be divided into " + std::to_string(e.groups) +
                       " groups of one size");
  }
  if (e.group_limit > e.groups || e.top_k > e.group_limit * (e.count / e.groups)) {
    fail("group_limit",
         "with " + std::to_string(e.groups) + " groups of " + std::to_string(e.count / e.groups) +
             " experts it has to be at most the groups, and hold the " + std::to_string(e.top_k) +
             " experts of a token; given: " + std::to_string(e.group_limit));
  }
  if (e.padded && e.capacity == 0) fail("padded", "padded needs a capacity: what is filled up to");
}

}  // namespace netsim
