#include "sim/compute/compute_model.h"

#include <algorithm>

namespace netsim {

std::int64_t KernelWaves::waves_before(const KernelSlice& slice) const {
  if (slice.index >= slice.count) return waves;
  const Int128 reached = Int128{blocks} * slice.index;
  const auto whole = [](Int128 a, Int128 b) { return static_cast<std::int64_t>(a / b); };
  if (slice.awaits) return std::min(waves, whole(reached, Int128{slice.count} * blocks_in_wave));
  const std::int64_t released = whole(reached + slice.count - 1, slice.count);
  const std::int64_t next = slice.starts_kernel && slice.index > 0 ? 1 : 0;
  return std::min(waves, whole(Int128{released} + blocks_in_wave - 1, blocks_in_wave) + next);
}

Time KernelWaves::time_of(const KernelSlice& slice) const {
  const auto point = [&](std::int64_t index) {
    return index == 0 ? Time{0}
                      : end_of(waves_before({index, slice.count, slice.awaits, slice.starts_kernel}));
  };
  return point(slice.index + 1) - point(slice.index);
}

Time ComputeModel::duration(const Work& work) const {
  Time total = 0;
  for (const Kernel& kernel : work.kernels) {
    const bool whole = kernel.slice.count == 1;
    total = bounded_sum(total, whole ? duration(kernel) : waves(kernel).time_of(kernel.slice));
  }
  return total;
}

std::optional<Time> time_of_work(const ComputeModel* model, const Work& work) {
  Time given = 0;
  for (const Kernel& kernel : work.kernels) {
    const bool fixed = kernel.kind == Kernel::Kind::fixed;
    if (model == nullptr ? !fixed : !model->objection(kernel).empty()) return std::nullopt;
    given = bounded_sum(given, fixed ? kernel.duration : 0);
  }
  return model == nullptr ? given : model->duration(work);
}

}  // namespace netsim
