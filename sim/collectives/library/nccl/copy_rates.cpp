#include "sim/collectives/library/nccl/copy_rates.h"

#include <array>
#include <cstddef>

namespace netsim {
namespace {

// CopyRates: rates in Mbit/s by generation. Volta's is not known.
using CopyRates = std::array<BitRate, 4>;

BitRate of_generation(const CopyRates& rates, GpuGeneration generation) {
  return rates[static_cast<std::size_t>(generation)] * kMbps;
}

}  // namespace

BitRate copy_rate(GpuGeneration generation) {
  constexpr CopyRates kRates = {0, 8 * 14'700, 8 * 29'000, 8 * 42'600};
  return of_generation(kRates, generation);
}

BitRate ring_copy_rate(GpuGeneration generation) {
  return generation == GpuGeneration::ampere ? 8 * 18'600 * kMbps : copy_rate(generation);
}

BitRate ll_copy_rate(GpuGeneration generation) {
  constexpr CopyRates kRates = {0, 8 * 5'700, 8 * 7'400, 8 * 8'000};
  return of_generation(kRates, generation);
}

}  // namespace netsim
