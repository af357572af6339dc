// Bytes of parameters and of the optimizer's states, and the division of both into equal parts.
#pragma once

#include <cstdint>

#include "sim/core/units.h"

namespace netsim {

// Bytes of a parameter in half precision, and of the state that Adam keeps per parameter in fp32: a copy of
// it, momentum and variance.
inline constexpr std::int64_t kParameterBytes = 2, kOptimizerBytes = 12;
// Returns the bytes of so many parameters as they are gathered. `reduced` of them are kept in FP8
// (reduced_parameters.cpp).
constexpr Bytes parameter_bytes(std::int64_t parameters, std::int64_t reduced) {
  return kParameterBytes * (parameters - reduced) + reduced;
}
// Returns the size of one of `parts` equal parts; the last part may be smaller.
constexpr std::int64_t equal_part(std::int64_t whole, std::int64_t parts) {
  return (whole + parts - 1) / parts;
}

}  // namespace netsim
