// Parameter servers: the last `servers` coordinates of axis "dp" are ranks that compute no part of the model.
// Takes the place of data_parallel, in jobs that have no other parallelism.
//
// Collective, the default: gradients are all-reduced among workers and servers as by data_parallel. The
// servers contribute nothing, which the all-reduce's algorithm has to know (parameter_server: Jiang et al.,
// BytePS, OSDI 2020).
//
// Stale, with a staleness s: each server holds its part of all parameters. An iteration is one clock of each
// worker. The worker pulls the parameters, computes, and pushes its gradients, in buckets during its last
// backward with `overlap`. A server applies a push when it has arrived. It answers a pull after the worker's
// own earlier pushes, and all workers' pushes of the clock s + 1 before. So a worker is at most s clocks
// ahead of the slowest; s = 0 is bulk synchronous. Sources: stale synchronous parallel (Ho et al., NIPS 2013)
// and bounded delay (Li et al., OSDI 2014, section 3.4).
//
// Asynchronous: pulls do not wait for pushes of other workers (Downpour SGD: Dean et al., NIPS 2012, with
// n_push = n_fetch = 1).
#include <algorithm>
#include <utility>
#include <vector>

#include "sim/training/strategy/parameter_bytes.h"
#include "sim/training/strategy/replicas.h"
#include "sim/training/strategy/strategy.h"

namespace netsim {
namespace {

struct ServerParameters {
  std::int64_t servers = 0;
  std::optional<std::int64_t> staleness;
  bool asynchronous = false;
  bool collective() const { return !asynchronous && !staleness; }
};

struct ServedJob {
  std::uint32_t servers = 1;
  BucketRule buckets;  // `size` holds the bytes of one push and of one pull; 0: all in one
  bool overlap = false;
  bool collective = true, waits = false;  // waits: a pull waits for pushes of other workers
  std::uint32_t staleness = 0;
  bool optimizer = true;  // unless collective: each push runs Adam; otherwise it is only summed
};

// Servers: adds the servers of a job to its graph.
class Servers {
 public:
  explicit Servers(const ServedJob& p) : p_(p) {}

  void apply(TrainingGraph& graph) const {
    const std::uint32_t workers = graph.mesh.size("dp") - p_.servers;
    graph.servers = {workers, 0};
    if (p_.collective) {
      sum_gradients(graph, {p_.buckets, p_.overlap, false, ParameterSet::common});
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

  static PeerExpression rank(RankId rank) {
    PeerExpression peer;
    peer.kind = PeerExpression::Kind::rank;
    peer.rank = rank;
    return peer;
  }
  static GraphNode message(GraphNode::Kind kind, const char* name, RankId peer, Bytes bytes) {
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
      const bool full = !buckets.empty() && p_.buckets.size != 0 &&
                        buckets.back().parameters * kParameterBytes >= p_.buckets.size;
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

  // Adds the pushes of gradients, in the buckets of data_parallel. Returns the sizes of the buckets, in
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
      for (const GradientBucket& bucket : gradient_buckets(graph, stage, p_.buckets, ParameterSet::common)) {
        std::vector<std::vector<GraphNode>>& reductions = stage.chunks[bucket.chunk].reductions;
        reductions.resize(stage.chunks[bucket.chunk].layers.size());
        reductions[bucket.layer] = nodes(bucket.bytes / element);
      }
    }
    const std::int64_t most =
        p_.buckets.size == 0 ? left : std::max<std::int64_t>(1, p_.buckets.size / element);
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
    const bool waits = p_.waits;
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

  const ServedJob& p_;
};

class ParameterServers final : public Strategy {
 public:
  explicit ParameterServers(const ServerParameters& p) : p_(p) {}

  StrategyOrder order() const override {
    return {.after = {"pipeline_parallel", "expert_fetch", "reduced_parameters"}};
  }
  void describe(JobShape& job) const override {
    job.servers = p_.servers;
    job.servers_update = p_.servers > 0 && !p_.collective();
  }
  bool takes_part(const JobShape& job) const override {
    return p_.servers > 0 && !job.divides_gradients() && job.local_steps == 1;
  }
  void check(const JobShape& job) const override {
    if (p_.asynchronous && p_.staleness)
      job.key("gradient", "staleness")
          .fail("asynchronous workers have no bound of staleness: give one of the two");
    const char* pushing = p_.asynchronous ? "asynchronous" : "staleness";
    if (p_.servers == 0 && !p_.collective()) {
      job.key("gradient", pushing)
          .fail(std::string(pushing) +
                " is for parameter servers, to which workers push: it needs parallel.servers");
    }
    if (p_.servers > 0) check_servers(job);
  }
  std::vector<std::string> notes(const JobShape& job) const override {
    if (p_.servers == 0 || !p_.collective()) return {};
    const std::string servers = std::to_string(p_.servers);
    return {"the last " + servers + " ranks of '" + job.name +
            "' are servers, which collectives.all_reduce has to know: {kind: parameter_server, servers: " +
            servers + "}"};
  }
  void apply(TrainingGraph& graph, const JobShape& job) const override {
    Servers({static_cast<std::uint32_t>(p_.servers), job.buckets(), job.overlap_gradients, p_.collective(),
             !p_.asynchronous, static_cast<std::uint32_t>(p_.staleness.value_or(0)),
             job.optimizer != OptimizerKind::none})
        .apply(graph);
  }

 private:
  static void check_servers(const JobShape& job) {
    const ConfigNode& key = job.key("parallel", "servers");
    if (job.tensor > 1 || job.pipeline > 1 || job.virtual_stages > 1 || job.context > 1 ||
        job.has_experts() || job.model->tables() > 0) {
      key.fail(
          "parameter servers are for data parallelism alone: no tensor, context, pipeline or expert "
          "parallelism, and no "
          "embedding tables");
    }
    if (job.divides_states())
      key.fail("an optimizer divided among replicas (distributed_adam) has no use for parameter servers");
    if (job.data < 2) job.key("parallel", "data").fail("parameter servers need 2 workers at least");
    if (job.plan->reduces()) key.fail(std::string(kScheduleReduces) + "there can be no parameter servers");
  }

  ServerParameters p_;
};

Parameters<ServerParameters> server_parameters() {
  using P = ServerParameters;
  return in_section(kParallelSection,
                    Parameters<P>().integer("servers", &P::servers, {0, 65'536},
                                            "parameter servers: ranks beside those of data, that compute no "
                                            "part of the model"))
      .section(
          kGradientSection.name,
          Parameters<P>()
              .integer("staleness", &P::staleness, {0, 10'000}, "all-reduce",
                       "parallel.servers: workers push gradients and pull parameters; number of iterations "
                       "by which a worker may be ahead of the slowest (stale synchronous parallel)")
              .flag("asynchronous", &P::asynchronous,
                    "parallel.servers: workers push gradients and pull parameters, and no worker waits for "
                    "another"),
          kGradientSection.doc);
}

const Registration<Strategy> kParameterServers{
    "parameter_servers",
    "workers push gradients to servers and pull parameters, or all-reduce with their help",
    ptdp_keys(server_parameters()),
    [](const ServerParameters& p, const ConfigNode&) { return std::make_unique<ParameterServers>(p); }};

}  // namespace
}  // namespace netsim
