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

double gemm_traffic(const Kernel& gemm) {
  if (gemm.bytes > 0) return static_cast<double>(gemm.bytes);
  const auto m = static_cast<double>(gemm.m), n = static_cast<double>(gemm.n),
             k = static_cast<double>(gemm.k);
  const double read = (m * k + k * n) * (static_cast<double>(operand_bits(gemm.precision)) / 8);
  const double result = m * n * static_cast<double>(gemm.element_bytes);
  return (read + (gemm.accumulates ? 2 * result : result)) * static_cast<double>(gemm.batch);
}

}  // namespace netsim
