// Welch's t-test: whether the means of two samples with unequal variances differ.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace netsim::compare {

// Spread: the number, mean and standard deviation (with n - 1) of some values; 0 for a single one.
struct Spread {
  std::size_t count = 0;
  double mean = 0, deviation = 0;
};
Spread spread_of(const std::vector<double>& values);

// Returns the two-sided probability of a difference of the means at least this large if both samples came
// from distributions of one mean. Returns nothing for samples of fewer than two values. Where neither varies
// it is 1 for equal means and else 0. Source: B. L. Welch, Biometrika 34 (1947), 28-35.
std::optional<double> welch_test(const Spread& a, const Spread& b);

}  // namespace netsim::compare
