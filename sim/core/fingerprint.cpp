#include "sim/core/fingerprint.h"

namespace netsim {

std::string Fingerprint::hex() const {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string result(16, '0');
  for (std::size_t i = 0; i < 16; ++i) result[i] = kDigits[(sum_ >> (60 - 4 * i)) & 15];
  return result;
}

}  // namespace netsim
