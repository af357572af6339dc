#include "sim/compute/kernel.h"

namespace netsim {

const char* to_string(Precision precision) {
  switch (precision) {
    case Precision::half:
      return "half";
    case Precision::fp32:
      return "fp32";
    case Precision::tf32:
      return "tf32";
    case Precision::fp8:
      return "fp8";
    case Precision::fp4:
      return "fp4";
  }
  return "";
}

std::int64_t operand_bits(Precision precision) {
  switch (precision) {
    case Precision::half:
      return 16;
    case Precision::fp32:
    case Precision::tf32:
      return 32;
    case Precision::fp8:
      return 8;
    case Precision::fp4:
      return 4;
  }
  return 0;
}

}  // namespace netsim
