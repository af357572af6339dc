#include "sim/core/random.h"

#include <array>
#include <bit>

#include "sim/core/errors.h"

namespace netsim {
namespace {

// ln 2 in two parts. The high part has 21 trailing zero bits, so that exponent * high is exact.
constexpr double kLn2High = 0x1.62e42fee00000p-1;
constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
constexpr std::uint64_t kMantissa = (std::uint64_t{1} << 52) - 1;

// x = mantissa * 2^exponent with sqrt(1/2) < mantissa <= sqrt(2).
struct Parts {
  double mantissa;
  int exponent;
};

Parts split(double x) {
  int exponent = 0;
  if (x < 0x1p-1022) {  // subnormal
    x *= 0x1p54;
    exponent = -54;
  }
  const auto bits = std::bit_cast<std::uint64_t>(x);
  exponent += static_cast<int>(bits >> 52) - 1023;
  const double mantissa = std::bit_cast<double>((bits & kMantissa) | std::bit_cast<std::uint64_t>(1.0));
  if (mantissa > 0x1.6a09e667f3bcdp+0) return {mantissa * 0.5, exponent + 1};
  return {mantissa, exponent};
}

// Returns ln m = 2 atanh(s) with s = (m - 1) / (m + 1), which is 2 s (1 + s^2/3 + s^4/5 + ...). |s| <=
// 0.1716, so the first omitted term is below 1e-18 of the sum.
double log_of_mantissa(double m) {
  static constexpr std::array<double, 12> kSeries = {1.0,      1.0 / 3,  1.0 / 5,  1.0 / 7,
                                                     1.0 / 9,  1.0 / 11, 1.0 / 13, 1.0 / 15,
                                                     1.0 / 17, 1.0 / 19, 1.0 / 21, 1.0 / 23};
  const double s = (m - 1) / (m + 1);
  const double square = s * s;
  double sum = 0;
  for (std::size_t i = kSeries.size(); i-- > 0;) sum = sum * square + kSeries[i];
  return 2 * s * sum;
}

}  // namespace

double portable_log(double x) {
  NETSIM_CHECK(x > 0 && x <= 0x1.fffffffffffffp1023, "logarithm of " + std::to_string(x));
  const Parts parts = split(x);
  const double exponent = parts.exponent;
  return exponent * kLn2High + (exponent * kLn2Low + log_of_mantissa(parts.mantissa));
}

double RandomStream::exponential(double mean) { return mean * -portable_log(1.0 - uniform()); }

}  // namespace netsim
