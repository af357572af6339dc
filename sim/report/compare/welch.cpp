#include "sim/report/compare/welch.h"

#include <boost/math/special_functions/beta.hpp>
#include <cmath>

namespace netsim::compare {

Spread spread_of(const std::vector<double>& values) {
  Spread spread;
  spread.count = values.size();
  if (values.empty()) return spread;
  const auto count = static_cast<double>(values.size());
  for (const double value : values) spread.mean += value / count;
  if (values.size() < 2) return spread;
  double squares = 0;
  for (const double value : values) squares += (value - spread.mean) * (value - spread.mean);
  spread.deviation = std::sqrt(squares / (count - 1));
  return spread;
}

std::optional<double> welch_test(const Spread& a, const Spread& b) {
  if (a.count < 2 || b.count < 2) return std::nullopt;
  const double difference = b.mean - a.mean;
  const double of_a = a.deviation * a.deviation / static_cast<double>(a.count);
  const double of_b = b.deviation * b.deviation / static_cast<double>(b.count);
  const double variance = of_a + of_b;
  // A mean of equal values may be off by rounding; that is no difference.
  const double rounding = 1e-12 * (std::abs(a.mean) + std::abs(b.mean));
  if (std::abs(difference) <= rounding) return 1.0;
  if (std::sqrt(variance) <= rounding) return 0.0;
  const double freedom =
      variance * variance /
      (of_a * of_a / static_cast<double>(a.count - 1) + of_b * of_b / static_cast<double>(b.count - 1));
  const double square = difference * difference / variance;  // of the t statistic
  return boost::math::ibeta(freedom / 2, 0.5, freedom / (freedom + square));
}

}  // namespace netsim::compare
