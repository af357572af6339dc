// Kernels and models that tests of compute models share.
#pragma once

#include <memory>
#include <string>

#include "sim/compute/compute_model.h"
#include "sim/core/registry.h"

namespace netsim::test {

// Returns the compute model that a configuration describes.
inline std::unique_ptr<ComputeModel> compute_model(const std::string& yaml) {
  return Registry<ComputeModel>::instance().create(parse_config(yaml, "compute.yaml"), "");
}

inline Kernel gemm(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch = 1) {
  Kernel kernel;
  kernel.kind = Kernel::Kind::gemm;
  kernel.m = m;
  kernel.n = n;
  kernel.k = k;
  kernel.batch = batch;
  return kernel;
}

}  // namespace netsim::test
