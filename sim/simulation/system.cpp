#include "sim/simulation/system.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <thread>
#include <utility>

#include "sim/configuration/configuration.h"
#include "sim/core/errors.h"
#include "sim/core/registry.h"
#include "sim/scheduling/job/job_scheduler.h"
#include "sim/scheduling/scheduling_parameters.h"
#include "sim/scheduling/view_keeper.h"
#include "sim/transport/ideal_endpoint.h"

namespace netsim {
namespace {

const ConfigNode& known_sections(const ConfigNode& root) {
  check_sections(root);
  return root;
}

// Returns the node with the parameters of `network`, or an absent one if it is a bare name.
const ConfigNode& network_section(const ConfigNode& root) {
  const ConfigNode& node = section_of(root, "network");
  static const ConfigNode absent;
  return node.is_scalar() ? absent : node;
}

std::uint32_t cores(std::uint32_t threads) {
  return threads != 0 ? threads : std::max(1U, std::thread::hardware_concurrency());
}

// Returns whether switches have limited memory for in-network aggregation, or aggregators that jobs share. It
// looks at any fabric or tier below this node of the section `network`.
bool shares_aggregation(const ConfigNode& node) {
  const auto shares = [](const auto& entry) {
    const auto& [key, value] = entry;
    if (key == "aggregators" || key == "aggregation_pairs") return true;
    if (key != "aggregation_memory" && key != "aggregation_groups") return shares_aggregation(value);
    return value.is_scalar() && value.text() != "0";
  };
  return std::any_of(node.entries().begin(), node.entries().end(), shares) ||
         std::any_of(node.items().begin(), node.items().end(), shares_aggregation);
}

// Divides the cluster into sets. There is one set for the ideal network, which has no links and so no
// lookahead. Limits on the memory of switches that add up need one set too. A tree takes memory of all its
// switches at once, and a communicator NVLS groups of all its domains. So do aggregators: a parameter
// server's message ends when the last worker has the result.
Partition choose_partition(const ConfigNode& root, const Cluster& cluster, std::uint32_t threads) {
  const EngineParameters engine = engine_parameters().parse(section_of(root, "engine"));
  if (network_kind(root) == "ideal" || shares_aggregation(section_of(root, "network")) ||
      limits_multicast_groups(cluster.graph))
    return {};
  return partition(cluster.graph, threads, static_cast<std::uint32_t>(engine.sets));
}

}  // namespace

System::System(const ConfigNode& root, std::uint64_t seed, std::uint32_t threads,
               PacketNetwork::FlowObserver observer)
    : root_(root),
      cluster_(build_cluster(known_sections(root))),
      partition_(choose_partition(root, cluster_, cores(threads))),
      engine_({partition_.sets, partition_.lookahead, cores(threads)}),
      output_(output_parameters().parse(section_of(root, "output"))),
      models_(root, cluster_) {
  const auto gpus = static_cast<std::uint32_t>(cluster_.gpus.size());
  next_origin_ = static_cast<std::uint32_t>(cluster_.graph.port_count());
  if (network_kind(root) == "ideal") {
    const IdealParameters ideal = ideal_parameters().parse(network_section(root), {"kind"});
    endpoint_ = std::make_unique<IdealEndpoint>(engine_.loop(), gpus, ideal.delay, next_origin_);
    output_.sample.interval = 0;
  } else {
    auto packets = PacketNetwork::create(engine_, cluster_, partition_, network_section(root),
                                         section_of(root, "transport"), seed, std::move(observer));
    packets_ = packets.get();
    circuits_ = packets_->circuits();
    endpoint_ = std::move(packets);
  }
  for (std::uint32_t fabric = 0; packets_ != nullptr && fabric < cluster_.fabrics.size(); ++fabric)
    transports_.push_back(packets_->transport_figures(fabric));
  next_origin_ += gpus;
  for (std::uint32_t set = 0; set < engine_.sets(); ++set) loops_.push_back(&engine_.loop(set));
  for (const Gpu& gpu : cluster_.gpus) set_of_gpu_.push_back(partition_.set_of(gpu.node));
  scheduling_ = scheduling_parameters().parse(section_of(root, "scheduling"));
  record_phases();
  schedule_flows();
  split_flows();
  executor_ =
      Executor::create(loops_, set_of_gpu_, *endpoint_, section_of(root, "collectives"), next_origin_);
  next_origin_ += gpus;
  std::vector<std::uint32_t> hosts;
  std::vector<std::uint32_t> multiprocessors;
  for (GpuId gpu = 0; gpu < gpus; ++gpu) {
    hosts.push_back(cluster_.gpus[gpu].host);
    multiprocessors.push_back(models_.multiprocessors_of(gpu));
  }
  devices_ =
      std::make_unique<ComputeDevices>(loops_, set_of_gpu_, gpu_parameters().parse(section_of(root, "gpus")),
                                       next_origin_, hosts, multiprocessors);
  next_origin_ += 2 * gpus + cluster_.host_count;
}

// Puts a recorder before the network, if the job scheduler asks for the phases of jobs.
void System::record_phases() {
  const ConfigNode& node = scheduling_.jobs;
  if (node.is_null()) return;
  const Time resolution = Registry<JobScheduler>::instance().create(node, "")->needs().phases;
  if (resolution == 0) return;
  const std::string name = Registry<JobScheduler>::component_name(node, "");
  if (packets_ == nullptr)
    node.fail(fmt::format("job scheduler '{}' needs a fabric, and `network: ideal` has none", name));
  PhaseRecorder::Setup setup{resolution, queue_pairs(), set_of_gpu_};
  auto recorder = std::make_unique<PhaseRecorder>(std::move(endpoint_), engine_, cluster_, std::move(setup));
  phases_ = recorder.get();
  endpoint_ = std::move(recorder);
}

// Puts a flow scheduler between the executor and the network, if the configuration names one.
void System::schedule_flows() {
  const ConfigNode& section = section_of(root_, "scheduling");
  check_views(section, scheduling_.views, scheduling_.interval);
  const ConfigNode& node = scheduling_.flows;
  if (node.is_null()) return;
  const std::string name = Registry<FlowScheduler>::component_name(node, "");
  if (packets_ == nullptr)
    node.fail(fmt::format("flow scheduler '{}' needs a fabric, and `network: ideal` has none", name));
  std::unique_ptr<FlowScheduler> scheduler = Registry<FlowScheduler>::instance().create(node, "");
  const FlowNeeds needs = scheduler->needs();
  const ViewFields views = views_for(section, scheduling_.views, needs.views, needs.required,
                                     fmt::format("flow scheduler '{}'", name));
  scheduler->set_views(views);
  const std::uint32_t wanted = needs.classes;
  const std::int64_t classes =
      read_integer(ConfigNode::scalar(configured(root_, "network.switch.classes"), {}));
  if (classes < wanted) {
    node.fail(fmt::format("flow scheduler '{}' uses {} data classes, and network.switch.classes is {}", name,
                          wanted, classes));
  }
  if (scheduling_.interval > needs.every) {
    node.fail(
        fmt::format("flow scheduler '{}' decides every {}, and scheduling.interval is {}: longer than that",
                    name, format_time(needs.every), format_time(scheduling_.interval)));
  }
  ScheduledEndpoint::Setup setup{
      name, scheduling_.flow_delay, scheduling_.flow_idle, queue_pairs(), set_of_gpu_, views};
  auto scheduled = std::make_unique<ScheduledEndpoint>(std::move(endpoint_), std::move(scheduler), engine_,
                                                       cluster_, std::move(setup));
  flows_ = scheduled.get();
  endpoint_ = std::move(scheduled);
}

// Puts a splitter between the executor and the flow scheduler or the network, if the configuration names one.
void System::split_flows() {
  const ConfigNode& node = scheduling_.splits;
  if (node.is_null()) return;
  const std::string name = Registry<FlowSplitter>::component_name(node, "");
  if (packets_ == nullptr)
    node.fail(fmt::format("flow splitter '{}' needs NICs, and `network: ideal` has none", name));
  SplitEndpoint::Setup setup{name, queue_pairs(), set_of_gpu_};
  auto split = std::make_unique<SplitEndpoint>(std::move(endpoint_),
                                               Registry<FlowSplitter>::instance().create(node, ""), engine_,
                                               cluster_, std::move(setup));
  splits_ = split.get();
  endpoint_ = std::move(split);
}

// Returns the number of queue pairs between two GPUs, by fabric.
std::vector<std::uint32_t> System::queue_pairs() const {
  std::vector<std::uint32_t> numbers;
  for (const TransportFigures& figures : transports_) numbers.push_back(figures.queue_pairs);
  return numbers;
}

WorkloadContext System::workload_context(std::uint64_t seed) const {
  WorkloadContext context(static_cast<std::uint32_t>(cluster_.gpus.size()));
  context.seed = seed;
  context.host_numbers = cluster_.host_numbers;
  for (GpuId gpu = 0; gpu < cluster_.gpus.size(); ++gpu) {
    if (cluster_.is_drives(gpu)) context.drives.push_back(gpu);
  }
  if (network_kind(root_) != "ideal")
    context.classes = read_integer(ConfigNode::scalar(configured(root_, "network.switch.classes"), {}));
  return context;
}

Structure System::structure() const {
  return structure_of(cluster_, packets_ != nullptr ? packets_->failing_ports() : std::vector<bool>());
}

}  // namespace netsim
