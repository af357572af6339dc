#include <algorithm>

#include "sim/training/strategy/strategies.h"

namespace netsim {
namespace {

// Queues of stream offload; activations have queue 0.
enum OffloadQueue : std::uint32_t { kGradients = 1, kHost, kParameters };

class OptimizerOffloadStrategy final : public Strategy {
 public:
  explicit OptimizerOffloadStrategy(const OptimizerOffload& p) : p_(p) {}

  void apply(TrainingGraph& graph) const override {
    if (p_.gradients) graph.replica_traffic.every_reduction = true;
    for (StageGraph& stage : graph.stages) {
      if (p_.gradients) send_gradients(graph, stage);
      add_steps(graph, stage);
    }
  }

 private:
  static GraphNode copy(GraphNode::Kind kind, const char* name, OffloadQueue queue, Bytes bytes) {
    GraphNode node;
    node.kind = kind;
    node.name = name;
    node.stream = Stream::offload;
    node.queue = queue;
    node.bytes = bytes;
    return node;
  }
  // Returns a node in which the CPUs read and write so many bytes.
  GraphNode on_cpus(const char* name, Bytes bytes) const {
    GraphNode node;
    node.kind = GraphNode::Kind::host_compute;
    node.name = name;
    node.stream = Stream::offload;
    node.queue = kHost;
    Kernel kernel;
    kernel.kind = Kernel::Kind::fixed;
    kernel.name = name;
    kernel.duration = transmission_time(bytes, p_.cpu_bandwidth);
    node.work = {name, {kernel}};
    return node;
  }

  // Copies each layer's gradients to the host after its backward, when replicas have summed them.
  void send_gradients(const TrainingGraph& graph, StageGraph& stage) const {
    for (ChunkGraph& chunk : stage.chunks) {
      const std::size_t layers = chunk.layers.size();
      chunk.reductions.resize(layers);
      for (std::size_t i = 0; i < layers; ++i) {
        std::int64_t parameters = 0;
        for (const ParameterSet set : {ParameterSet::common, ParameterSet::experts}) {
          const std::int64_t completed =
              completed_parameters(graph, stage, chunk.layers[layers - 1 - i], set);
          parameters += offloaded(updated_parameters(graph, completed, set, p_.sharded), p_.share);
        }
        if (parameters == 0) continue;
        std::vector<GraphNode>& behind = chunk.reductions[i];
        GraphNode node = copy(GraphNode::Kind::copy_to_host, "gradient_offload", kGradients,
                              parameters * graph.model.gradient_bytes);
        for (std::uint32_t back = 1; back <= behind.size(); ++back) node.after.push_back(back);
        node.memory.end = {{MemoryKind::gradients, -node.bytes}};
        behind.push_back(node);
        if (!p_.sums_up) continue;
        GraphNode sum = on_cpus("gradient_sum", 3 * node.bytes);
        sum.after = {1};
        behind.push_back(std::move(sum));
      }
    }
    const auto waits = [](const StageGraph& of) {
      return std::find(of.finished.begin(), of.finished.end(), FinishNode::kReductions) != of.finished.end();
    };
    if (!waits(stage)) stage.finished.push_back(FinishNode::kReductions);
  }

  void add_steps(const TrainingGraph& graph, StageGraph& stage) const {
    const Bytes gradient = graph.model.gradient_bytes;
    std::int64_t here = 0, there = 0;
    for (const ParameterSet set : {ParameterSet::common, ParameterSet::experts}) {
      const std::int64_t all = updated_parameters(graph, stage.parameters_of(set), set, p_.sharded);
      there += offloaded(all, p_.share);
      here += all - offloaded(all, p_.share);
    }
    const std::vector<std::uint32_t> begin = stage.finished;
    std::vector<std::uint32_t> ends;
    const auto last = [&] { return static_cast<std::uint32_t>(stage.finish.size()); };
    if (here > 0) {
      stage.add_finish(optimizer_step(here, gradient));
      ends.push_back(last());
    }
    const std::int64_t piece = p_.bucket == 0 ? there : std::max<std::int64_t>(1, p_.bucket / gradient);
    for (std::int64_t left = there; left > 0; left -= piece) {
      const std::int64_t parameters = std::min(left, piece);
      stage.finished = begin;
      if (!p_.gradients) {
        stage.add_finish(
            copy(GraphNode::Kind::copy_to_host, "gradient_offload", kGradients, parameters * gradient));
        stage.finished = {last()};
      }
      stage.add_finish(on_cpus("cpu_adam", parameters * (gradient + 2 * kOptimizerBytes + kParameterBytes)));
      stage.finished = {last()};
      stage.add_finish(
          copy(GraphNode::Kind::copy_from_host, "parameter_load", kParameters, parameters * kParameterBytes));
    }
    if (there > 0) ends.push_back(last());
    stage.finished = ends.empty() ? begin : ends;
  }

  OptimizerOffload p_;
};

}  // namespace

std::int64_t offloaded(std::int64_t parameters, double share) {
  return static_cast<std::int64_t>(share * static_cast<double>(parameters));
}

std::unique_ptr<Strategy> optimizer_offload(const OptimizerOffload& parameters) {
  return std::make_unique<OptimizerOffloadStrategy>(parameters);
}

}  // namespace netsim
