// Compute models with data-sheet rates share the peak of each precision, and the kernels that they refuse.
#pragma once

#include <string>

#include "sim/compute/kernel.h"

namespace netsim {

// Returns the peak of a precision in TFLOP/s; 0: not supported. `P` has a rate for each precision by name.
template <class P>
double peak_tflops_of(const P& rates, Precision precision) {
  switch (precision) {
    case Precision::half:
      return rates.peak_tflops;
    case Precision::fp32:
      return rates.fp32_tflops;
    case Precision::tf32:
      return rates.tf32_tflops;
    case Precision::fp8:
      return rates.fp8_tflops;
    case Precision::fp4:
      return rates.fp4_tflops;
  }
  return 0;
}

// Returns why an accelerator with these rates cannot run the kernel, or an empty string if it can.
template <class P>
std::string objection_to(const Kernel& kernel, const P& rates) {
  const bool multiplies = kernel.kind == Kernel::Kind::gemm || kernel.kind == Kernel::Kind::attention;
  if (multiplies && kernel.held_multiprocessors >= rates.multiprocessors) {
    return "communication holds " + std::to_string(kernel.held_multiprocessors) +
           " multiprocessors, and the accelerator has " + std::to_string(rates.multiprocessors);
  }
  if (!multiplies || peak_tflops_of(rates, kernel.precision) > 0) return "";
  const std::string precision = to_string(kernel.precision);
  return "the accelerator has no " + precision + " (" + precision + "_tflops is 0)";
}

}  // namespace netsim
