#include "sim/training/model/model_kind.h"

namespace netsim {
namespace {

constexpr std::int64_t kGradientBytes = 4;  // any value; neither result depends on it

}  // namespace

double ModelKind::flops(std::int64_t batch, bool /*recompute*/) const {
  return 3.0 * static_cast<double>(batch) * forward_flops(make(1, kGradientBytes));
}

double ModelKind::largest_bytes(std::int64_t microbatch) const {
  return netsim::largest_bytes(make(microbatch, kGradientBytes));
}

}  // namespace netsim
