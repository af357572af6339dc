// Runs the optimizer with a share of each rank's parameters updated by the CPUs of its host (stream offload).
// Gradients are copied to the host when their sum over ranks is complete. The CPUs update the parameters,
// whose states are in the host's memory. The parameters are copied back in half precision.
//
// The work is in pieces of `bucket` bytes of gradients (0: in one piece). One piece is copied back while the
// next is updated and the one behind it arrives (Megatron-Core's --optimizer-cpu-offload with
// --optimizer-offload-fraction and --overlap-cpu-optimizer-d2h-h2d).
//
// With `gradients`, they are copied layer by layer in each microbatch's backward, and none stay on the GPU
// (ZeRO-Offload: Ren et al., USENIX ATC'21). The CPUs sum those of several microbatches. Replicas, where
// there are any, then have to divide the gradients (sharded_replicas.cpp).
//
// An update takes the time of its reads and writes of the host's memory at `cpu_bandwidth`, which all ranks
// of a host share. For each parameter these are the gradient, three states in fp32 each way, and the
// parameter in half precision. The default, 109 GB/s, is the rate of ZeRO-Offload's CPU-Adam on two Xeon
// 8168. It needs 2.57 s for 10 billion parameters of 28 bytes each (Ren et al., table 4). From 1 to 8 billion
// parameters it is 93 to 127 GB/s.
#include <algorithm>

#include "sim/training/strategy/optimizer_step.h"
#include "sim/training/strategy/parameter_bytes.h"
#include "sim/training/strategy/replicas.h"
#include "sim/training/strategy/strategy.h"

namespace netsim {
namespace {

// Queues of stream offload; activations have queue 0.
enum OffloadQueue : std::uint32_t { kGradients = 1, kHost, kParameters };

struct OptimizerOffload {
  double share = 0;
  bool gradients = false;
  Bytes bucket = 256 * kMegabyte;
  BitRate cpu_bandwidth = 109 * 8 * kGbps;
};

// HostUpdates: adds the copies and the work of the hosts.
class HostUpdates {
 public:
  // `sums_up`: with gradients, there are several microbatches, whose gradients the CPUs sum. `divided`:
  // replicas divide the optimizer.
  HostUpdates(const OptimizerOffload& p, bool sums_up, bool divided)
      : p_(p), sums_up_(sums_up), divided_(divided) {}

  void apply(TrainingGraph& graph) const {
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
          parameters += offloaded(updated_parameters(graph, completed, set, divided_), p_.share);
        }
        if (parameters == 0) continue;
        std::vector<GraphNode>& behind = chunk.reductions[i];
        GraphNode node = copy(GraphNode::Kind::copy_to_host, "gradient_offload", kGradients,
                              parameters * graph.model.gradient_bytes);
        for (std::uint32_t back = 1; back <= behind.size(); ++back) node.after.push_back(back);
        node.memory.end = {{MemoryKind::gradients, -node.bytes}};
        behind.push_back(node);
        if (!sums_up_) continue;
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
      const std::int64_t all = updated_parameters(graph, stage.parameters_of(set), set, divided_);
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

  const OptimizerOffload& p_;
  bool sums_up_, divided_;
};

class OptimizerOffloadStrategy final : public Strategy {
 public:
  explicit OptimizerOffloadStrategy(const OptimizerOffload& p) : p_(p) {}

  StrategyOrder order() const override {
    return {.after = {"data_parallel", "local_steps", "parameter_servers", "sharded_replicas",
                      "sequence_gradients", "activation_offload"}};
  }
  void describe(JobShape& job) const override {
    job.offloaded_optimizer = p_.share;
    job.offloads_gradients = p_.gradients;
  }
  bool takes_part(const JobShape&) const override { return p_.share > 0; }
  void check(const JobShape& job) const override {
    const ConfigNode& key = job.key("offload", "optimizer");
    if (p_.share > 0 && job.optimizer == OptimizerKind::none)
      key.fail("there is no optimizer to offload: optimizer has to be adam or distributed_adam");
    if (p_.share > 0 && job.servers > 0)
      key.fail("parameter servers update the parameters; leave parallel.servers out");
    if (p_.gradients) check_gradients(job);
  }
  void apply(TrainingGraph& graph, const JobShape& job) const override {
    HostUpdates(p_, job.microbatches * job.local_steps > 1, job.divides_states()).apply(graph);
  }

 private:
  // Checks gradients that leave the GPU before all are complete.
  void check_gradients(const JobShape& job) const {
    const ConfigNode& key = job.key("offload", "gradients");
    if (p_.share == 0)
      key.fail("gradients are offloaded where the optimizer is: offload.optimizer has to be more than 0");
    if (job.data * job.context > 1 && !job.divides_gradients())
      key.fail("replicas have to divide the gradients: sharding.what has to be gradients or parameters");
    if (job.sums_groups_last)
      key.fail("gradients leave behind every backward: sharding.all_reduce has to be every");
    if (job.overlap_gradients || job.bucket != 0)
      key.fail("gradients leave layer by layer; leave gradient.bucket and gradient.overlap out");
    if (job.sequence)
      key.fail(
          "parallel.sequence sums up the gradients of norms when all are there, so this key has to be false");
    if (job.stages_share_parameters())
      key.fail(
          "stages that share an embedding sum its gradients up when all are there, so this key has to be "
          "false");
    if (job.fetches_experts())
      key.fail(
          "gradients of experts that are fetched are summed up over their ranks, so this key has to be "
          "false");
    if (job.plan->placement.routes() > 1)
      key.fail("a bidirectional pipeline has two copies of the model, whose gradients are summed up");
  }

  OptimizerOffload p_;
};

Parameters<OptimizerOffload> optimizer_offload_parameters() {
  using P = OptimizerOffload;
  return in_section(
      kOffloadSection,
      Parameters<P>()
          .real("optimizer", &P::share, {0, 1},
                "share of each rank's parameters whose states are in the host's memory and which its CPUs "
                "update (ZeRO-Offload: 1; Megatron-Core's --optimizer-offload-fraction)")
          .flag(
              "gradients", &P::gradients,
              "their gradients are copied to the host layer by layer in each backward, and none stay on the "
              "GPU (ZeRO-Offload); false: when all are summed up (Megatron-Core)")
          .bytes(
              "bucket", &P::bucket, {0, 1000 * kGigabyte},
              "bytes of gradients that are copied, updated and copied back together; 0 means all gradients")
          .rate("cpu_bandwidth", &P::cpu_bandwidth, {1 * kGbps, 100'000 * kGbps},
                "bandwidth of its memory that a host's CPUs reach while they update parameters "
                "(ZeRO-Offload's CPU-Adam "
                "on two Xeon 8168)"));
}

const Registration<Strategy> kOptimizerOffload{
    "optimizer_offload",
    "CPUs of the hosts update a share of the parameters, whose states are in their memory",
    ptdp_keys(optimizer_offload_parameters()), [](const OptimizerOffload& p, const ConfigNode&) {
      return std::make_unique<OptimizerOffloadStrategy>(p);
    }};

}  // namespace
}  // namespace netsim
