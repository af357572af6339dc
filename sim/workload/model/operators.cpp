#include "sim/workload/model/operators.h"

#include <algorithm>
#include <utility>

namespace netsim {

Operator gemm(const char* name, Extent m, Extent n, Extent k, Extent batch) {
  Operator op;
  op.kind = Kernel::Kind::gemm;
  op.name = name;
  op.m = m;
  op.n = n;
  op.k = k;
  op.batch = batch;
  return op;
}

Operator memory_bound(const char* name, std::vector<Traffic> traffic) {
  Operator op;
  op.name = name;
  op.traffic = std::move(traffic);
  return op;
}

Operator memory_bound(const char* name, std::int64_t bytes_per_element, Tensor tensor) {
  return memory_bound(name, std::vector<Traffic>{{bytes_per_element, std::move(tensor)}});
}

Operator computing_weights(Operator op) {
  op.weight_gradient = true;
  return op;
}

Operator linear(Operator op) {
  op.linear = true;
  return op;
}

Operator gathering(Gather gather, Operator op) {
  op.gathers = std::move(gather);
  return op;
}

Operator in_core(AttentionCore core, Operator op) {
  op.core = std::move(core);
  return op;
}

Operator saving(std::vector<Saved> saved, Operator op) {
  op.saved = std::move(saved);
  return op;
}

Operator accumulation(const std::vector<Tensor>& weights, std::int64_t gradient_bytes) {
  std::vector<Traffic> traffic;
  traffic.reserve(weights.size());
  for (const Tensor& weight : weights) traffic.push_back({2 + 2 * gradient_bytes, weight});
  return computing_weights(memory_bound("gradient_accumulation", std::move(traffic)));
}

Kernel kernel_of(const Operator& op, const Sharding& sharding) {
  Kernel kernel;
  kernel.kind = op.kind;
  kernel.name = op.name;
  if (op.kind != Kernel::Kind::memory) {
    kernel.batch = sharding.local(op.batch);
    // Copies of tokens are dealt out to the experts of the batch, as many to each.
    const auto size = [&](const Extent& extent) {
      const std::int64_t local = sharding.local(extent);
      if (extent.along != Dimension::routed) return local;
      return std::max<std::int64_t>(1, (local + kernel.batch - 1) / kernel.batch);
    };
    kernel.m = size(op.m);
    kernel.n = size(op.n);
    kernel.k = size(op.k);
    kernel.precision = op.precision;
    kernel.pieces = op.pieces;
  }
  for (const Traffic& traffic : op.traffic)
    kernel.bytes += traffic.bytes_per_element * sharding.local(traffic.tensor);
  return kernel;
}

Work work_of(const std::string& name, const std::vector<Operator>& operators, const Sharding& sharding) {
  Work work{name, {}};
  for (const Operator& op : operators) work.kernels.push_back(kernel_of(op, sharding));
  return work;
}

std::int64_t parameters_of(const std::vector<Tensor>& tensors, const Sharding& sharding) {
  std::int64_t parameters = 0;
  for (const Tensor& tensor : tensors) parameters += sharding.local(tensor);
  return parameters;
}

bool of_routed_experts(const Tensor& parameters) {
  return std::any_of(parameters.begin(), parameters.end(),
                     [](const Extent& extent) { return extent.along == Dimension::experts; });
}

std::int64_t parameters_of(const Model& model) {
  const Sharding whole;
  std::int64_t parameters =
      parameters_of(model.first.parameters, whole) + parameters_of(model.last.parameters, whole);
  for (const std::uint32_t kind : model.body)
    parameters += parameters_of(model.kinds[kind].parameters, whole);
  return parameters + (model.shared.empty() ? 0 : whole.local(model.shared));
}

// As Megatron-LM runs it with apex. Bytes per parameter: gradient to fp32 (read 2, write 4; not for fp32
// gradients), unscale and check (8), norm (4), clip (8), Adam (read gradient, parameter, m, v: 16, write
// parameter, m, v: 12), fp32 parameter to half precision (read 4, write 2).
Work optimizer_work(std::int64_t parameters, std::int64_t gradient_bytes) {
  Work work{"optimizer", {}};
  const auto add = [&](const char* name, std::int64_t bytes) {
    Kernel kernel;
    kernel.name = name;
    kernel.bytes = bytes * parameters;
    work.kernels.push_back(std::move(kernel));
  };
  if (gradient_bytes == 2) add("gradient_to_fp32", 6);
  add("gradient_unscale", 8);
  add("gradient_norm", 4);
  add("gradient_clip", 8);
  add("adam", 28);
  add("parameter_to_fp16", 6);
  return work;
}

}  // namespace netsim
