#include "sim/simulation/decisions.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "sim/configuration/configuration.h"
#include "sim/core/text.h"
#include "sim/report/fault_list.h"

namespace netsim {
namespace {

std::size_t switches(const Graph& graph) {
  std::size_t count = 0;
  for (NodeId node = 0; node < graph.node_count(); ++node) {
    if (is_switch(graph, node)) ++count;
  }
  return count;
}

std::string or_none(const std::string& name) { return name.empty() ? "none" : name; }

// Returns each name once, in order.
template <class Things, class Name>
std::string names(const Things& things, Name name) {
  std::string text;
  std::set<std::string> seen;
  for (const auto& thing : things) {
    if (seen.insert(name(thing)).second) append_item(text, name(thing));
  }
  return text;
}

std::string fabrics(const ConfigNode& root, const Cluster& cluster) {
  if (cluster.fabrics.size() == 1) return or_none(configured(root, "topology"));
  return names(cluster.fabrics, [](const ClusterFabric& fabric) { return fabric.name; });
}

std::size_t hosts(const Cluster& cluster, const std::vector<GpuId>& gpus) {
  std::set<std::uint32_t> hosts;
  for (const GpuId gpu : gpus) hosts.insert(cluster.gpus[gpu].host);
  return hosts.size();
}

// Logs the components of a packet fabric, with `who` before each line.
void log_network(Log& log, const ConfigNode& root, const std::string& fabric, const std::string& who) {
  const auto network = [&](const char* path) {
    return or_none(configured_in(root, fabric, "network", path));
  };
  const auto transport = [&](const char* path) {
    return or_none(configured_in(root, fabric, "transport", path));
  };
  log.info(
      LogTopic::network,
      who + fmt::format("packets, {} classes; routing {}, scheduler {}, marker {}, flow control {}",
                        network("switch.classes"), network("switch.routing"), network("switch.scheduler"),
                        network("switch.marker"), network("switch.flow_control")));
  log.info(LogTopic::transport, who + fmt::format("congestion control {}, reliability {}, {} of payload a "
                                                  "packet, {} queue pairs between two GPUs",
                                                  transport("congestion_control"), transport("reliability"),
                                                  transport("mtu"), transport("queue_pairs")));
}

void log_placements(Log& log, const Simulation& simulation) {
  if (simulation.has_queue()) {
    const std::string scheduler = configured(simulation.configuration(), "scheduling.jobs");
    log.info(LogTopic::scheduling,
             (scheduler.empty() ? "the jobs do not fit on the cluster together, or come from a trace"
                                : "job scheduler " + scheduler) +
                 ": each job gets its GPUs at its arrival or later");
    return;
  }
  for (JobId job = 0; job < simulation.jobs(); ++job) {
    const std::vector<GpuId>& gpus = simulation.placement(job);
    log.info(LogTopic::scheduling,
             fmt::format("job '{}': rank 0 on GPU {}, {} ranks on {} hosts", simulation.job(job).name,
                         gpus.front(), gpus.size(), hosts(simulation.cluster(), gpus)));
  }
}

// Says what a task scheduler did, on the whole and with the communications of each name.
void log_scheduling(Log& log, const JobResult& job) {
  const SchedulingSummary& all = job.scheduling;
  if (all.scheduler.empty()) return;
  const auto line = [&](const std::string& what, const LaunchCounts& counts) {
    std::string text = fmt::format("job '{}': {} launched {} {} in {} parts", job.name, all.scheduler,
                                   counts.launches, what, counts.parts);
    if (counts.fused > 0) text += fmt::format(", {} of them fused with others", counts.fused);
    if (counts.reordered > 0) text += fmt::format("; {} launches overtook an earlier one", counts.reordered);
    if (counts.held > 0) {
      text +=
          fmt::format("; {} were held, {} by the scheduler and {} by the agreement on an order, at most {}",
                      counts.held, format_time(counts.held_by_scheduler),
                      format_time(counts.held_by_agreement), format_time(counts.longest_held));
    }
    log.info(LogTopic::scheduling, text);
  };
  line("communications", all);
  for (const auto& [name, counts] : all.by_name) line("'" + name + "'", counts);
}

}  // namespace

void log_decisions(Log& log, const Simulation& simulation) {
  const ConfigNode& root = simulation.configuration();
  const Cluster& cluster = simulation.cluster();
  const Engine& engine = simulation.system().engine();
  log.info(LogTopic::core,
           fmt::format("{} logical processes on {} threads", engine.sets(), engine.threads()));
  log.info(LogTopic::topology,
           fmt::format("{} of {}: {} hosts, {} GPUs, {} switches, {} links", fabrics(root, cluster),
                       names(cluster.groups, [](const HostGroup& group) { return group.kind; }),
                       cluster.host_count, cluster.gpus.size(), switches(cluster.graph),
                       cluster.graph.port_count() / 2));
  if (const std::string channels = cluster.routes->channels_in_words(); !channels.empty())
    log.info(LogTopic::topology, "virtual channels: " + channels);
  if (simulation.system().packets() == nullptr) {
    log.info(LogTopic::network, "ideal: every message takes `network.delay`");
  } else {
    const std::vector<std::string> names = cluster.packet_fabric_names();
    if (names.empty()) log_network(log, root, "", "");
    for (const std::string& name : names)
      log_network(log, root, name, names.size() > 1 ? "fabric " + name + ": " : "");
  }
  for (const ParameterInfo& parameter : Executor::parameter_table()) {
    if (parameter.type != "component") continue;
    const std::string algorithm = configured(root, "collectives." + parameter.name);
    if (!algorithm.empty()) log.info(LogTopic::collectives, parameter.name + " by " + algorithm);
  }
  log_placements(log, simulation);
  const std::string compute = configured(root, "compute");
  log.info(LogTopic::workload,
           "compute model " + or_none(compute.empty() ? common_gpu_model(cluster) : compute));
}

void log_results(Log& log, const Results& results) {
  for (const JobResult& job : results.jobs) {
    log.info(LogTopic::workload, fmt::format("job '{}': {} ranks, {} iterations", job.name, job.gpus.size(),
                                             job.iteration_ends.size()));
    log_scheduling(log, job);
  }
  if (const FlowSchedulingSummary& flows = results.flow_scheduling; !flows.scheduler.empty()) {
    log.info(LogTopic::scheduling,
             fmt::format("{}: {} flows, {} decisions at {} intervals, {} too late; {} holds, in sum {}",
                         flows.scheduler, flows.flows, flows.decisions, flows.intervals, flows.late,
                         flows.held, format_time(flows.held_time)));
  }
  if (const SplitSummary& splits = results.splits; !splits.splitter.empty()) {
    log.info(
        LogTopic::scheduling,
        fmt::format("{}: split {} of {} messages; {} B over their own NICs, {} B over NVLink, {} B over "
                    "PCIe",
                    splits.splitter, splits.split, splits.messages, splits.own, splits.nvlink, splits.pcie));
  }
  for (const CollectiveTimes& row : results.collectives) {
    if (row.choice.algorithm.empty()) continue;
    log.info(LogTopic::collectives,
             fmt::format("{} of {} ranks, {}: {} {}, channels: {}; why: {}", to_string(row.kind), row.ranks,
                         format_bytes(row.bytes), row.choice.algorithm, to_string(row.choice.protocol),
                         row.choice.channels, row.choice.why));
  }
  for (const std::string& line : fault_lines(results.faults, results.simulated))
    log.info(LogTopic::network, "faults: " + line);
  log.info(LogTopic::simulation, fmt::format("{} after {} and {} events", to_string(results.outcome),
                                             format_time(results.simulated), results.events));
  for (const std::string& note : results.notes) log.info(LogTopic::report, note);
}

}  // namespace netsim
