#include "sim/training/model/operators.h"

#include <algorithm>
#include <utility>

namespace netsim {
namespace {

constexpr const char* kAccumulation = "gradient_accumulation";

}  // namespace

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

Operator part_of(Module module, Operator op) {
  op.module = module;
  return op;
}

Operator of_copies(Operator op) {
  op.of_copies = true;
  return op;
}

Operator accumulation(const std::vector<Tensor>& weights, std::int64_t gradient_bytes) {
  std::vector<Traffic> traffic;
  traffic.reserve(weights.size());
  for (const Tensor& weight : weights) traffic.push_back({2 + 2 * gradient_bytes, weight});
  return computing_weights(memory_bound(kAccumulation, std::move(traffic)));
}

bool is_accumulation(const Operator& op) {
  return op.kind == Kernel::Kind::memory && op.weight_gradient && op.name == kAccumulation;
}

Kernel kernel_of(const Operator& op, const Sharding& sharding) {
  Kernel kernel;
  kernel.kind = op.kind;
  kernel.name = op.name;
  if (op.kind != Kernel::Kind::memory) {
    kernel.batch = sharding.local(op.batch);
    // Copies of tokens are distributed evenly over the experts of the batch.
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
    kernel.backward = op.backward;
    kernel.weight_gradient = op.weight_gradient && op.kind == Kernel::Kind::gemm;
    kernel.accumulates = op.accumulates;
    kernel.element_bytes = op.result_bytes;
    kernel.held_multiprocessors = op.held_multiprocessors;
    kernel.slice = op.slice;
  }
  for (const Traffic& traffic : op.traffic) {
    const std::int64_t elements = sharding.local(traffic.tensor);
    kernel.bytes += traffic.bytes_per_element * elements;
    if (traffic.atomic) kernel.atomic_adds += elements;
  }
  return kernel;
}

namespace {

// Returns one of `count` equal kernels that run one after the other.
Kernel one_of(Kernel kernel, std::int64_t count) {
  if (kernel.kind != Kernel::Kind::memory) kernel.batch /= count;
  kernel.bytes = (kernel.bytes + count - 1) / count;
  kernel.atomic_adds = (kernel.atomic_adds + count - 1) / count;
  return kernel;
}

}  // namespace

Work work_of(const std::string& name, const std::vector<Operator>& operators, const Sharding& sharding) {
  Work work{name, {}};
  for (const Operator& op : operators) {
    const std::int64_t count = op.one_by_one ? sharding.local(op.batch) : 1;
    work.kernels.insert(work.kernels.end(), static_cast<std::size_t>(count),
                        one_of(kernel_of(op, sharding), count));
  }
  return work;
}

std::int64_t parameters_of(const std::vector<Tensor>& tensors, const Sharding& sharding) {
  std::int64_t parameters = 0;
  for (const Tensor& tensor : tensors) parameters += sharding.local(tensor);
  return parameters;
}

namespace {

// Calls `visit` with each layer of the whole model, those of the body as often as they occur.
template <class Visit>
void for_each_layer(const Model& model, Visit visit) {
  visit(model.first);
  for (const std::uint32_t kind : model.body) visit(model.kinds[kind]);
  visit(model.last);
}

double elements(const Tensor& tensor) {
  double product = 1;
  for (const Extent& extent : tensor) product *= static_cast<double>(extent.size);
  return product;
}

double operations(const Operator& op) { return 2 * elements({op.m, op.n, op.k, op.batch}); }

}  // namespace

double forward_flops(const Model& model) {
  double all = 0;
  for_each_layer(model, [&](const ModelLayer& layer) {
    for (const ModelPart& part : layer.forward) {
      for (const Operator& op : part.operators) all += op.kind == Kernel::Kind::memory ? 0 : operations(op);
    }
  });
  return all;
}

double largest_bytes(const Model& model) {
  double largest = 0, parameters = model.shared.empty() ? 0 : elements(model.shared);
  for_each_layer(model, [&](const ModelLayer& layer) {
    for (const std::vector<Tensor>* tensors : {&layer.parameters, &layer.tables}) {
      for (const Tensor& tensor : *tensors) parameters += elements(tensor);
    }
    for (const std::vector<ModelPart>* parts : {&layer.forward, &layer.backward}) {
      for (const ModelPart& part : *parts) {
        for (const Operator& op : part.operators) {
          for (const Tensor& matrix : {Tensor{op.m, op.n, op.batch}, Tensor{op.m, op.k, op.batch}})
            largest = std::max(largest, 4 * elements(matrix));
          for (const Traffic& traffic : op.traffic)
            largest =
                std::max(largest, static_cast<double>(traffic.bytes_per_element) * elements(traffic.tensor));
        }
      }
    }
  });
  return std::max(largest, 54 * parameters);
}

bool of_routed_experts(const Tensor& parameters) {
  return std::any_of(parameters.begin(), parameters.end(),
                     [](const Extent& extent) { return extent.along == Dimension::experts; });
}

std::int64_t parameters_of(const Model& model) {
  const Sharding whole;
  std::int64_t parameters = 0;
  for_each_layer(model, [&](const ModelLayer& layer) {
    parameters += parameters_of(layer.parameters, whole) + parameters_of(layer.tables, whole);
  });
  return parameters + (model.shared.empty() ? 0 : whole.local(model.shared));
}

// Returns the work of Adam as Megatron-LM runs it with apex. Bytes per parameter: gradient to fp32 (read 2,
// write 4; not for fp32 gradients), unscale and check (8), norm (4), clip (8). Adam reads gradient,
// parameter, m, v (16) and writes parameter, m, v (12). The fp32 parameter becomes half precision (read 4,
// write 2) or FP8 (read 4, write 1).
Work optimizer_work(std::int64_t parameters, std::int64_t gradient_bytes, std::int64_t reduced) {
  Work work{"optimizer", {}};
  const auto add_for = [&](std::int64_t count, const char* name, std::int64_t bytes) {
    Kernel kernel;
    kernel.name = name;
    kernel.bytes = bytes * count;
    work.kernels.push_back(std::move(kernel));
  };
  const auto add = [&](const char* name, std::int64_t bytes) { add_for(parameters, name, bytes); };
  if (gradient_bytes == 2) add("gradient_to_fp32", 6);
  add("gradient_unscale", 8);
  add("gradient_norm", 4);
  add("gradient_clip", 8);
  add("adam", 28);
  add_for(parameters - reduced, "parameter_to_fp16", 6);
  if (reduced > 0) add_for(reduced, "parameter_to_fp8", 5);
  return work;
}

}  // namespace netsim
