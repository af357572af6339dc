#include "sim/training/strategy/optimizer_step.h"

#include "sim/training/strategy/parameter_bytes.h"
#include "sim/training/strategy/replicas.h"

namespace netsim {

std::int64_t updated_parameters(const TrainingGraph& graph, std::int64_t parameters, ParameterSet set,
                                bool divided) {
  return divided ? equal_part(parameters, shard_count(graph, set)) : parameters;
}

GraphNode optimizer_step(std::int64_t parameters, Bytes gradient_bytes, std::int64_t reduced) {
  GraphNode node;
  node.work = optimizer_work(parameters, gradient_bytes, reduced);
  node.name = node.work.name;
  // Adam copies gradients in half precision to fp32.
  if (gradient_bytes == 2) {
    const MemoryChange copies{MemoryKind::optimizer, 4 * parameters};
    node.memory = {{copies}, {copies.reversed()}};
  }
  return node;
}

std::int64_t offloaded(std::int64_t parameters, double share) {
  return static_cast<std::int64_t>(share * static_cast<double>(parameters));
}

}  // namespace netsim
