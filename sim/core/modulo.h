// Arithmetic modulo a number.
#pragma once

#include <cstdint>
#include <utility>

namespace netsim {

// Returns x with number * x = 1 modulo `modulus`, by Euclid's algorithm. `number` and `modulus` must have no
// common divisor.
inline std::uint32_t inverse_modulo(std::uint32_t number, std::uint32_t modulus) {
  std::int64_t a = number, b = modulus, x = 1, y = 0;
  while (b != 0) {
    const std::int64_t quotient = a / b;
    a = std::exchange(b, a - quotient * b);
    x = std::exchange(y, x - quotient * y);
  }
  return static_cast<std::uint32_t>((x + modulus) % modulus);
}

}  // namespace netsim
