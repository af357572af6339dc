#include "sim/workload/routing/router.h"

#include <cstddef>
#include <utility>

#include "sim/core/random.h"

namespace netsim {
namespace {

// WeightedSampler: draws by weight. It looks up a number below the sum of all weights in a table with the
// first item of each part of the sum.
class WeightedSampler {
 public:
  WeightedSampler(const double* weights, std::uint32_t size)
      : sums_(size), first_(std::size_t{size} * kParts) {
    double sum = 0;
    for (std::uint32_t i = 0; i < size; ++i) sums_[i] = sum += weights[i];
    std::uint32_t item = 0;
    for (std::size_t part = 0; part < first_.size(); ++part) {
      const double begin = sum * (static_cast<double>(part) / static_cast<double>(first_.size()));
      while (item + 1 < size && sums_[item] <= begin) ++item;
      first_[part] = item;
    }
  }
  std::uint32_t draw(RandomStream& random) const {
    const double uniform = random.uniform(), at = uniform * sums_.back();
    std::uint32_t item = first_[static_cast<std::size_t>(uniform * static_cast<double>(first_.size()))];
    // Rounding put the beginning of the part a little too far.
    while (item > 0 && sums_[item - 1] > at) --item;
    while (item + 1 < sums_.size() && sums_[item] <= at) ++item;
    return item;
  }

 private:
  static constexpr std::size_t kParts = 4;  // parts per item
  std::vector<double> sums_;
  std::vector<std::uint32_t> first_;
};

// Draws, by weight, one of the items for which `free` holds, by going through all items.
template <class Free>
std::uint32_t draw_of(RandomStream& random, const std::vector<double>& weights, Free free) {
  double left = 0;
  for (std::uint32_t i = 0; i < weights.size(); ++i) left += free(i) ? weights[i] : 0;
  double at = random.uniform() * left;
  std::uint32_t last = 0;
  for (std::uint32_t i = 0; i < weights.size(); ++i) {
    if (!free(i)) continue;
    last = i;
    at -= weights[i];
    if (at < 0) break;
  }
  return last;
}

// Draw: draws the experts of tokens one after the other.
class Draw {
 public:
  Draw(const RoutingShape& shape, const std::vector<double>& popularity, std::uint64_t key)
      : shape_(shape),
        popularity_(popularity),
        in_group_(shape.experts / shape.groups),
        random_(key, "experts of tokens"),
        taken_(shape.experts, UINT32_MAX),
        allowed_(shape.groups, UINT32_MAX),
        urn_(popularity.data(), shape.experts) {}

  void token(std::uint32_t number, std::vector<std::uint32_t>& chosen) {
    std::uint32_t groups = 0;
    for (std::uint32_t i = 0; i < shape_.top_k; ++i) {
      const std::uint32_t expert = next(number, groups == shape_.group_limit && groups < shape_.groups);
      taken_[expert] = number;
      if (std::exchange(allowed_[expert / in_group_], number) != number) ++groups;
      chosen.push_back(expert);
    }
  }

 private:
  // Draws the next expert. A group is allowed, and an expert taken, if this token was its last. A forbidden
  // expert is drawn again a few times; then the remaining ones are gone through. Both ways have the same
  // probabilities.
  std::uint32_t next(std::uint32_t token, bool in_allowed_groups) {
    const auto free = [&](std::uint32_t expert) {
      return taken_[expert] != token && (!in_allowed_groups || allowed_[expert / in_group_] == token);
    };
    constexpr int kTries = 16;
    for (int i = 0; i < kTries; ++i) {
      const std::uint32_t expert = urn_.draw(random_);
      if (free(expert)) return expert;
    }
    return draw_of(random_, popularity_, free);
  }

  const RoutingShape& shape_;
  const std::vector<double>& popularity_;
  std::uint32_t in_group_;
  RandomStream random_;
  std::vector<std::uint32_t> taken_, allowed_;
  WeightedSampler urn_;
};

}  // namespace

RoutingShape routing_shape(const RoutedExperts& experts, std::uint32_t sources, std::int64_t tokens) {
  const auto narrow = [](std::int64_t value) { return static_cast<std::uint32_t>(value); };
  RoutingShape shape;
  shape.sources = sources;
  shape.tokens = narrow(tokens);
  shape.experts = narrow(experts.count);
  shape.top_k = narrow(experts.top_k);
  shape.groups = narrow(experts.groups);
  shape.group_limit = narrow(experts.group_limit);
  if (experts.capacity > 0) shape.capacity = experts.capacity_for(tokens);
  return shape;
}

std::vector<std::uint32_t> draw_experts(const RoutingShape& shape, const std::vector<double>& popularity,
                                        std::uint64_t key) {
  Draw draw(shape, popularity, key);
  std::vector<std::uint32_t> chosen;
  chosen.reserve(std::size_t{shape.tokens} * shape.top_k);
  for (std::uint32_t token = 0; token < shape.tokens; ++token) draw.token(token, chosen);
  return chosen;
}

// Computed as 2^n e^r with |r| <= ln 2 / 2, and the series of e^r.
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
