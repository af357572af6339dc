#include "sim/compute/attention_schedule.h"

#include <algorithm>

namespace netsim {
namespace {

constexpr std::int64_t kQueries = 128;

}  // namespace

double attention_cycles(const Kernel& attention, const AttentionRates& rates, std::int64_t multiprocessors) {
  const std::int64_t blocks = (attention.m + kQueries - 1) / kQueries * attention.batch;
  const auto mean = static_cast<double>(attention.n);
  const double longest = std::max(mean, std::min(2 * mean, static_cast<double>(attention.m)));
  const double key =
      2.0 * kQueries * static_cast<double>(attention.k) / (rates.flops_per_cycle * rates.efficiency);
  if (longest == mean) {
    const std::int64_t waves = (blocks + multiprocessors - 1) / multiprocessors;
    return static_cast<double>(waves) * (mean + rates.fill_keys) * key;
  }
  // Lengths are uniform between 2 * mean - longest and longest.
  const double range = 2 * (longest - mean);
  const double left = (mean * mean + range * range / 12) / (2 * mean);
  const double load =
      static_cast<double>(blocks) / static_cast<double>(multiprocessors) * (mean + rates.fill_keys);
  return (load + longest - left) * key;
}

}  // namespace netsim
