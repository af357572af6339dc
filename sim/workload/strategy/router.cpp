#include "sim/workload/strategy/router.h"

#include <algorithm>

#include "sim/core/random.h"

namespace netsim {
namespace {

// Draws by weight. What has been taken is drawn again a few times, and then what is left is gone through:
// both give the same probabilities.
class Urn {
 public:
  explicit Urn(std::vector<double> weights) : weights_(std::move(weights)), sums_(weights_.size()) {
    double sum = 0;
    for (std::size_t i = 0; i < weights_.size(); ++i) sums_[i] = sum += weights_[i];
  }

  // One for which `free` holds; there is one.
  template <class Free>
  std::uint32_t draw(RandomStream& random, Free free) const {
    constexpr int kTries = 8;
    for (int i = 0; i < kTries; ++i) {
      const double at = random.uniform() * sums_.back();
      const auto found = std::upper_bound(sums_.begin(), sums_.end(), at);
      const auto item = static_cast<std::uint32_t>(
          std::min<std::ptrdiff_t>(found - sums_.begin(), static_cast<std::ptrdiff_t>(sums_.size()) - 1));
      if (free(item)) return item;
    }
    double left = 0;
    for (std::uint32_t i = 0; i < weights_.size(); ++i) left += free(i) ? weights_[i] : 0;
    double at = random.uniform() * left;
    std::uint32_t last = 0;
    for (std::uint32_t i = 0; i < weights_.size(); ++i) {
      if (!free(i)) continue;
      last = i;
      at -= weights_[i];
      if (at < 0) break;
    }
    return last;
  }

 private:
  std::vector<double> weights_, sums_;
};

}  // namespace

std::vector<std::uint32_t> draw_experts(const RoutingShape& shape, const std::vector<double>& popularity,
                                        std::uint64_t key) {
  const std::uint32_t in_group = shape.experts / shape.groups;
  const Urn experts(popularity);
  std::vector<double> of_groups(shape.groups, 0);
  for (std::uint32_t e = 0; e < shape.experts; ++e) of_groups[e / in_group] += popularity[e];
  const Urn groups(of_groups);
  RandomStream random(key, "experts of tokens");
  std::vector<std::uint32_t> chosen;
  chosen.reserve(std::size_t{shape.tokens} * shape.top_k);
  const bool limited = shape.group_limit < shape.groups;
  // The token that took the group or expert last.
  std::vector<std::uint32_t> group_of(shape.groups, UINT32_MAX), expert_of(shape.experts, UINT32_MAX);
  for (std::uint32_t token = 0; token < shape.tokens; ++token) {
    for (std::uint32_t i = 0; limited && i < shape.group_limit; ++i)
      group_of[groups.draw(random, [&](std::uint32_t g) { return group_of[g] != token; })] = token;
    for (std::uint32_t i = 0; i < shape.top_k; ++i) {
      const std::uint32_t expert = experts.draw(random, [&](std::uint32_t e) {
        return expert_of[e] != token && (!limited || group_of[e / in_group] == token);
      });
      expert_of[expert] = token;
      chosen.push_back(expert);
    }
  }
  return chosen;
}

// 2^n e^r with |r| <= ln 2 / 2, and the series of e^r.
double portable_exp(double x) {
  constexpr double kLn2High = 0x1.62e42fee00000p-1, kLn2Low = 0x1.a39ef35793c76p-33;
  const double scaled = x * 0x1.71547652b82fep0;
  const auto n = static_cast<std::int64_t>(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
  const double r = (x - static_cast<double>(n) * kLn2High) - static_cast<double>(n) * kLn2Low;
  double result = 1;
  for (int i = 18; i > 0; --i) result = 1 + result * r / i;
  for (std::int64_t i = 0; i < n; ++i) result *= 2;
  for (std::int64_t i = 0; i > n; --i) result *= 0.5;
  return result;
}

}  // namespace netsim
