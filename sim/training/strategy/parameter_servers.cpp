#include <algorithm>
#include <utility>
#include <vector>

#include "sim/training/strategy/strategies.h"

namespace netsim {
namespace {

class Servers final : public Strategy {
 public:
  explicit Servers(const ParameterServers& p) : p_(p) {}

  void apply(TrainingGraph& graph) const override {
    const std::uint32_t workers = graph.mesh.size("dp") - p_.servers;
    graph.servers = {workers, 0};
    if (p_.consistency == ParameterServers::Consistency::collective) {
      data_parallel({p_.bucket, p_.overlap, false, ParameterSet::common})->apply(graph);
      graph.servers->block = all_reducing(graph);
    } else {
      const std::vector<std::int64_t> pulled = pull(graph, workers), pushed = push(graph, workers);
      graph.servers->block = serving(graph, workers, pulled, pushed);
    }
  }

 private:
  using Position = BlockBuilder::Position;

  // Returns a block that takes part in the workers' all-reduces, in their order.
  static std::uint32_t all_reducing(TrainingGraph& graph) {
    BlockBuilder block(graph.builder, "server");
    const auto add = [&](const GraphNode& node) {
      block.collective(node.name, node.collective, node.stream, node.queue, node.group, node.bytes, {});
    };
    const StageGraph& stage = graph.stages.front();
    for (const std::vector<GraphNode>& nodes : stage.chunks.front().reductions) {
      for (const GraphNode& node : nodes) add(node);
    }
    for (const FinishNode& next : stage.finish) add(next.node);
    return block.finish();
  }

  static PeerExpression rank(std::uint32_t rank) {
    PeerExpression peer;
    peer.kind = PeerExpression::Kind::rank;
    peer.rank = rank;
    return peer;
  }
  static GraphNode message(GraphNode::Kind kind, const char* name, std::uint32_t peer, Bytes bytes) {
    GraphNode node;
    node.kind = kind;
    node.name = name;
    node.stream = Stream::dp;
    node.peer = rank(peer);
    node.bytes = bytes;
    return node;
  }
  // Returns how many of so many parameters one server has.
  std::int64_t part(std::int64_t parameters) const { return equal_part(parameters, p_.servers); }

  // Adds the pulls. Parameters come in the order of the forward, in buckets of whole layers. Returns the
  // sizes of the buckets, in parameters.
  std::vector<std::int64_t> pull(TrainingGraph& graph, std::uint32_t workers) const {
    ChunkGraph& chunk = graph.stages.front().chunks.front();
    chunk.gathers.resize(chunk.layers.size());
    struct Bucket {
      std::size_t layer;
      std::int64_t parameters;
    };
    std::vector<Bucket> buckets;
    for (std::size_t i = 0; i < chunk.layers.size(); ++i) {
      std::int64_t parameters = parameters_of(graph.layers[chunk.layers[i]], graph, ParameterSet::common);
      if (i == 0 && !graph.model.shared.empty()) parameters += graph.sharding.local(graph.model.shared);
      if (parameters == 0) continue;
      const bool full =
          !buckets.empty() && p_.bucket != 0 && buckets.back().parameters * kParameterBytes >= p_.bucket;
      if (buckets.empty() || full) buckets.push_back({i, 0});
      buckets.back().parameters += parameters;
    }
    std::vector<std::int64_t> sizes;
    for (const Bucket& bucket : buckets) {
      sizes.push_back(bucket.parameters);
      for (std::uint32_t k = 0; k < p_.servers; ++k) {
        chunk.gathers[bucket.layer].push_back(message(GraphNode::Kind::receive, "pull", workers + k,
                                                      part(bucket.parameters) * kParameterBytes));
      }
    }
    return sizes;
  }

  // Adds the pushes of gradients, in the buckets of data_parallel(). Returns the sizes of the buckets, in
  // parameters.
  std::vector<std::int64_t> push(TrainingGraph& graph, std::uint32_t workers) const {
    StageGraph& stage = graph.stages.front();
    const std::int64_t element = graph.model.gradient_bytes;
    std::vector<std::int64_t> sizes;
    std::int64_t left = stage.parameters_of(ParameterSet::common);
    const auto nodes = [&](std::int64_t parameters) {
      std::vector<GraphNode> all;
      for (std::uint32_t k = 0; k < p_.servers; ++k)
        all.push_back(message(GraphNode::Kind::send, "push", workers + k, part(parameters) * element));
      sizes.push_back(parameters);
      left -= parameters;
      return all;
    };
    if (p_.overlap) {
      for (const GradientBucket& bucket : gradient_buckets(graph, stage, p_.bucket, ParameterSet::common)) {
        std::vector<std::vector<GraphNode>>& reductions = stage.chunks[bucket.chunk].reductions;
        reductions.resize(stage.chunks[bucket.chunk].layers.size());
        reductions[bucket.layer] = nodes(bucket.bytes / element);
      }
    }
    const std::int64_t most = p_.bucket == 0 ? left : std::max<std::int64_t>(1, p_.bucket / element);
    while (left > 0) {
      for (GraphNode& node : nodes(std::min(left, most))) stage.add_finish(std::move(node));
    }
    return sizes;
  }

  Work update(std::int64_t parameters, std::int64_t gradient_bytes) const {
    if (p_.optimizer) {
      Work work = optimizer_work(parameters, gradient_bytes);
      work.name = "update";
      return work;
    }
    Kernel kernel;
    kernel.name = "gradient_sum";
    kernel.bytes = 3 * gradient_bytes * parameters;
    return {"update", {kernel}};
  }

  // Returns the block of a server. Its iteration c has the answers to pulls of clock c, then the pushes of
  // that clock. An answer waits for operations of the iteration before: the worker's own pushes and the end
  // of a chain of marks. The first mark says that all pushes of its clock are applied. Each further mark says
  // that the mark before it was reached an iteration earlier.
  std::uint32_t serving(TrainingGraph& graph, std::uint32_t workers, const std::vector<std::int64_t>& pulled,
                        const std::vector<std::int64_t>& pushed) const {
    const bool waits = p_.consistency == ParameterServers::Consistency::stale;
    const auto answers = static_cast<Position>(pulled.size()), pushes = static_cast<Position>(pushed.size());
    const Position first_push = workers * answers;
    const auto applied = [&](std::uint32_t worker) { return first_push + (worker + 1) * 2 * pushes - 1; };
    const Position first_mark = first_push + workers * 2 * pushes;
    const auto back = [](Position here, Position there) {
      return static_cast<std::int32_t>(here) - static_cast<std::int32_t>(there);
    };

    BlockBuilder block(graph.builder, "server");
    ProgramOp op;
    op.kind = TaskKind::send;
    op.stream = Stream::dp;
    op.unordered = true;
    op.name = graph.builder.name("pull");
    for (std::uint32_t worker = 0; worker < workers; ++worker) {
      op.peer = rank(worker);
      for (const std::int64_t parameters : pulled) {
        op.bytes = part(parameters) * kParameterBytes;
        op.after_previous = {back(block.size(), applied(worker))};
        if (waits) op.after_previous.push_back(back(block.size(), first_mark + p_.staleness));
        block.add(op, {});
      }
    }
    std::vector<Position> all;
    for (std::uint32_t worker = 0; worker < workers; ++worker) {
      for (const std::int64_t parameters : pushed) {
        ProgramOp receive;
        receive.kind = TaskKind::receive;
        receive.stream = Stream::dp;
        receive.queue = worker + 1;
        receive.name = graph.builder.name("push");
        receive.peer = rank(worker);
        receive.bytes = part(parameters) * graph.model.gradient_bytes;
        // This receive in the previous iteration, so that it does not wait for other workers.
        receive.after_previous = {0};
        const Position received = block.add(std::move(receive), {});
        // Pushes of a worker are applied one after the other.
        std::vector<Position> after{received};
        if (received > first_push + worker * 2 * pushes) after.push_back(received - 1);
        all.push_back(
            block.add(computation(graph, update(part(parameters), graph.model.gradient_bytes)), after));
      }
    }
    if (waits) {
      const Work mark{"clock", {fixed("clock")}};
      Position last = block.add(computation(graph, mark), all);
      for (std::uint32_t i = 0; i < p_.staleness; ++i) {
        ProgramOp next = computation(graph, mark);
        next.after_previous = {back(last + 1, last)};
        last = block.add(std::move(next), {});
      }
    }
    return block.finish();
  }
  // Returns a computation that is in no order with others.
  static ProgramOp computation(TrainingGraph& graph, const Work& work) {
    ProgramOp op;
    op.kind = TaskKind::compute;
    op.unordered = true;
    op.work = graph.builder.work(work);
    op.name = graph.builder.name(work.name);
    return op;
  }
  static Kernel fixed(const char* name) {
    Kernel kernel;
    kernel.kind = Kernel::Kind::fixed;
    kernel.name = name;
    return kernel;
  }

  ParameterServers p_;
};

}  // namespace

std::unique_ptr<Strategy> parameter_servers(const ParameterServers& parameters) {
  return std::make_unique<Servers>(parameters);
}

}  // namespace netsim
