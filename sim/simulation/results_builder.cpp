#include "sim/simulation/results_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "sim/collectives/library/nvls_groups.h"
#include "sim/configuration/configuration.h"
#include "sim/report/fault_list.h"
#include "sim/report/link_groups.h"
#include "sim/simulation/used_views.h"

namespace netsim {
namespace {

constexpr std::size_t kWaitingLines = 20;  // of each part of a stall report

FabricSettings settings_of(const ConfigNode& root, const std::string& fabric,
                           const TransportFigures& transport) {
  FabricSettings settings;
  settings.congestion_control = configured_in(root, fabric, "transport", "congestion_control");
  settings.reliability = configured_in(root, fabric, "transport", "reliability");
  settings.marker = configured_in(root, fabric, "network", "switch.marker");
  settings.flow_control = configured_in(root, fabric, "network", "switch.flow_control");
  settings.reacts_to_marks = transport.reacts_to_marks;
  settings.window = transport.window;
  return settings;
}

JobMemory memory_of(const MemoryLedger& ledger, const MemoryPlan& plan) {
  JobMemory memory;
  memory.planned = planned_memory(plan).use;
  memory.rank = ledger.fullest();
  memory.time = ledger.of(memory.rank).peak_time;
  memory.use = ledger.of(memory.rank).peak;
  for (RankId rank = 0; rank < ledger.ranks(); ++rank) {
    memory.rank_peak.push_back(ledger.of(rank).peak.total());
    memory.rank_time.push_back(ledger.of(rank).peak_time);
  }
  return memory;
}

template <class Item>
void append(std::vector<Item>& items, std::vector<Item> more) {
  for (Item& item : more) items.push_back(std::move(item));
}

std::vector<FabricResult> fabric_results(const RunParts& run) {
  const Cluster& cluster = run.cluster;
  std::vector<FabricResult> results;
  for (std::size_t i = 0; i < cluster.fabrics.size(); ++i) {
    const ClusterFabric& fabric = cluster.fabrics[i];
    if (fabric.scale_up) continue;
    FabricResult& result = results.emplace_back();
    result.name = fabric.name;
    result.knobs = settings_of(run.configuration, fabric.name, run.transports[i]);
    const auto inside = [&](NodeId node) { return node >= fabric.first_switch && node < fabric.end_switch; };
    for (PortId port = 0; port < cluster.graph.port_count(); ++port) {
      const PortSpec& spec = cluster.graph.port(port);
      if (!inside(spec.node) && !inside(spec.peer_node)) continue;
      add_counters(port_counters(), result.counters, run.packets->port_counters(port));
    }
  }
  return results;
}

// Adds the memory of a job's GPUs and hosts to its result, if it is known.
void add_memory(const RunParts& run, const Job& job, JobResult& result) {
  if (job.memory() == nullptr || result.gpus.empty()) return;
  result.memory = memory_of(*job.memory(), *job.plan().source->memory());
  result.memory->capacity = run.models.memory_of(result.gpus[result.memory->rank]);
  std::vector<Bytes> of_hosts(run.cluster.hosts.size(), 0);
  for (RankId rank = 0; rank < result.gpus.size(); ++rank) {
    Bytes& host = of_hosts[run.cluster.gpus[result.gpus[rank]].host];
    host += job.memory()->of(rank).host_peak;
    result.memory->host = std::max(result.memory->host, host);
  }
}

// Adds what the job scheduler did with a job, and what it was told of it.
void add_management(const RunParts& run, JobId job, Time now, JobResult& result) {
  const JobDescription& description = run.manager.descriptions()[job];
  const ManagedJob& state = run.manager.state(job);
  result.never_fits = state.why;
  result.pauses = state.pauses;
  result.paused = state.paused_until(now);
  result.moved = state.moved_until(now);
  result.weight = description.weight;
  result.deadline = description.deadline;
  result.vc = description.vc;
}

// Returns the time of a kernel without work on a GPU, or 0 where no model tells it.
Time kernel_startup(const RunParts& run, GpuId gpu) {
  const ComputeModel* model = run.models.of_gpu(gpu);
  Kernel kernel;
  kernel.bytes = 1;
  return model == nullptr || !model->objection(kernel).empty() ? 0 : model->duration(kernel);
}

// Adds what operations that are cut into pieces cost a job, and what they hide.
void add_cuts(const RunParts& run, JobId job, JobResult& result) {
  if (result.gpus.empty()) return;
  result.cuts = run.cuts.summary(job, kernel_startup(run, result.gpus.front()));
  for (const RankTimes& times : result.rank_times) result.cuts.hidden += times.hidden_of_cuts;
}

JobResult job_result(const RunParts& run, std::uint32_t number, Time now) {
  const Job& job = run.jobs.job(number);
  const TaskSource& source = *job.plan().source;
  const Recovery& recovery = run.manager.recovery();
  JobResult result;
  result.name = job.plan().name;
  result.iterations = source.iterations();
  result.begun = job.begun();
  result.stopped = recovery.has_stopped(number);
  result.recovery = recovery.of(number);
  result.done = job.done() && !result.stopped;
  result.priority = job.plan().priority;
  result.waits = run.manager.is_queued(number);
  result.wanted_gpus = source.ranks() - source.storage_ranks();
  add_management(run, number, now, result);
  result.arrival = job.plan().arrival;
  result.begin = job.begin_time();
  result.end = job.done() ? job.end_time() : std::max(now, result.begin);
  result.iteration_ends = job.iteration_ends();
  result.gpus = job.plan().gpus;
  result.rank_times = result.begun ? job.rank_times(result.end) : std::vector<RankTimes>(result.gpus.size());
  // Removes the drives of storage servers, because the job does not compute on them.
  if (!result.gpus.empty()) result.gpus.resize(result.wanted_gpus);
  result.rank_times.resize(result.gpus.size());
  result.paths = job.paths();
  result.path_shares = run.recorder.path_shares(number, source);
  result.path_pairs = run.recorder.path_pairs(number);
  result.path_ports = run.recorder.path_ports(number);
  result.warm_up = source.warm_up();
  result.warm_up_times = job.warm_up_times();
  if (!result.warm_up_times.empty()) result.warm_up_times.resize(result.gpus.size());
  add_memory(run, job, result);
  add_cuts(run, number, result);
  result.scheduling = job.scheduling();
  result.tasks_done = job.tasks_done();
  result.tasks_total = source.total_tasks();
  result.computes = !source.works().empty();
  result.model_flops = source.model_flops();
  result.peak_flops = run.models.mean_peak_flops(result.gpus);
  return result;
}

std::vector<std::string> waiting(const RunParts& run) {
  std::vector<std::string> lines;
  const bool deadlocked = run.packets != nullptr && run.packets->deadlocked();
  if (deadlocked) lines = run.packets->waiting(kWaitingLines);  // the cause before its consequences
  append(lines, run.manager.recovery().waiting(kWaitingLines));
  append(lines, run.jobs.waiting(kWaitingLines));
  append(lines, run.manager.waiting(kWaitingLines));
  if (run.flows != nullptr) append(lines, run.flows->waiting(kWaitingLines));
  append(lines, run.executor.waiting(kWaitingLines));
  if (run.packets != nullptr && !deadlocked) append(lines, run.packets->waiting(kWaitingLines));
  return lines;
}

// Returns a note for each field of `scheduling.views` that no scheduler uses.
std::vector<std::string> unused_views(const RunParts& run, const ConfigNode& scheduling) {
  std::vector<std::string> lines;
  const ConfigNode* views = scheduling.find("views");
  if (views == nullptr || !views->is_map()) return lines;
  for (const ViewField field : fields_in(ViewFields::all() - used_views(run.configuration))) {
    const std::string name(name_of(field));
    if (views->find(name) == nullptr) continue;
    lines.push_back(
        fmt::format("scheduling.views.{} changes nothing: no scheduler of this run uses it", name));
  }
  return lines;
}

// Returns notes about the keys of `scheduling` that changed nothing.
std::vector<std::string> unused_scheduling(const RunParts& run) {
  std::vector<std::string> lines;
  const ConfigNode& scheduling = section_of(run.configuration, "scheduling");
  if (!scheduling.is_map()) return lines;
  if (scheduling.find("interval") != nullptr && !run.intervals.has_subscribers())
    lines.push_back("scheduling.interval changes nothing: nothing in this run is decided at intervals");
  append(lines, unused_views(run, scheduling));
  const ConfigNode* tasks = scheduling.find("tasks");
  for (const char* key : {"order", "latency"}) {
    if (tasks == nullptr && scheduling.find(key) != nullptr)
      lines.push_back(
          fmt::format("scheduling.{} changes nothing: scheduling.tasks names no task scheduler", key));
  }
  for (const char* key : {"flow_delay", "flow_idle"}) {
    if (scheduling.find(key) == nullptr) continue;
    if (run.flows == nullptr) {
      lines.push_back(
          fmt::format("scheduling.{} changes nothing: scheduling.flows names no flow scheduler", key));
    } else if (!run.flows->is_central() && key == std::string_view("flow_delay")) {
      lines.push_back(
          fmt::format("scheduling.{} changes nothing: flow scheduler '{}' decides at the hosts only", key,
                      run.flows->name()));
    }
  }
  if (tasks == nullptr || !tasks->is_map() || tasks->find("part") == nullptr) return lines;
  std::uint64_t launches = 0, cut = 0;
  for (std::uint32_t job = 0; job < run.jobs.size(); ++job) {
    launches += run.jobs.job(job).scheduling().launches;
    cut += run.jobs.job(job).scheduling().cut;
  }
  if (launches > 0 && cut == 0) {
    lines.push_back(
        "scheduling.tasks.part changes nothing: no communication was cut. Those with counts or of a grouped "
        "call never are, nor those that are not larger than a part");
  }
  return lines;
}

// Returns a note about jobs with a priority where nothing compares messages of different jobs.
std::vector<std::string> unused_priorities(const RunParts& run) {
  if (std::any_of(run.transports.begin(), run.transports.end(),
                  [](const TransportFigures& transport) { return transport.priorities; }))
    return {};
  std::vector<std::string> lines;
  for (const JobDescription& job : run.manager.descriptions()) {
    if (job.priority == 0) continue;
    lines.push_back(
        fmt::format("the priority of job '{}' changes nothing between jobs, which never share a queue pair; "
                    "transport.nic_priorities gives NICs levels of priority",
                    job.name));
  }
  return lines;
}

// Returns notes about keys of switches that add up, and that could not act.
std::vector<std::string> unused_aggregation(const RunParts& run) {
  std::vector<std::string> lines;
  const ConfigNode& collectives = section_of(run.configuration, "collectives");
  const ConfigNode& network = section_of(run.configuration, "network");
  const Graph& graph = run.cluster.graph;
  if (collectives.find("nvls_groups") != nullptr && !limits_multicast_groups(graph))
    lines.push_back("collectives.nvls_groups has no effect: no host or rack limits them (nvls_groups)");
  const ConfigNode* const switches = network.is_map() ? network.find("switch") : nullptr;
  const ConfigNode* const adds = switches != nullptr ? switches->find("aggregation") : nullptr;
  if (has_boxes(graph) && (adds == nullptr || !read_bool(*adds)))
    lines.push_back("boxes has no effect: nothing is added up in the fabric (network.switch.aggregation)");
  const ConfigNode* const rates = switches != nullptr ? switches->find("aggregation_rates") : nullptr;
  const ConfigNode* const format = collectives.find("format");
  if (rates != nullptr && (format == nullptr || read_text(*format) == "any"))
    lines.push_back(
        "network.switch.aggregation_rates acts on int32 of switchml and atp only: collectives.format is any");
  return lines;
}

// Returns notes about settings that were not used.
std::vector<std::string> unused_settings(const RunParts& run) {
  std::vector<std::string> lines;
  const ConfigNode& root = run.configuration;
  if (run.packets == nullptr && !section_of(root, "transport").is_null())
    lines.push_back("`transport` was not used: the network is ideal");
  const ConfigNode& gpus = section_of(root, "gpus");
  if (gpus.find("slowing_streams") != nullptr &&
      gpu_parameters().parse(gpus).slowdown_beside_communication == 1)
    lines.push_back("gpus.slowing_streams changes nothing: gpus.slowdown_beside_communication is 1");
  append(lines, unused_scheduling(run));
  append(lines, unused_aggregation(run));
  if (run.flows != nullptr) append(lines, run.flows->notes());
  append(lines, unused_priorities(run));
  const bool asked = output_parameters().parse(section_of(root, "output")).sample.interval > 0;
  if (run.packets == nullptr && asked) lines.push_back("`output.sample` was not used: the network is ideal");
  return lines;
}

// Returns a note about collectives.in_place where no collective stored its own block.
std::vector<std::string> unused_in_place(const RunParts& run, const Results& results) {
  const ConfigNode* const key = section_of(run.configuration, "collectives").find("in_place");
  if (key == nullptr || read_bool(*key)) return {};
  const auto could_store = [](const CollectiveTimes& row) {
    const bool copies = row.kind == CollectiveKind::all_gather || row.kind == CollectiveKind::broadcast;
    return copies && row.choice.algorithm == "ring" && row.choice.protocol == Protocol::simple;
  };
  if (std::any_of(results.collectives.begin(), results.collectives.end(), could_store)) return {};
  return {"collectives.in_place changes nothing: no all-gather or broadcast ran by rings with Simple"};
}

// Returns a note for each reason for which collectives ran without switches that add up.
std::vector<std::string> fallbacks(const Results& results) {
  std::map<std::string, std::uint64_t> counts, without_groups;
  for (const CollectiveTimes& row : results.collectives) {
    if (row.choice.why.find(kNoNvlsGroups) != std::string::npos) {
      without_groups[row.choice.algorithm] += row.count;
    } else if (row.choice.why.starts_with("fell back")) {
      counts[row.choice.algorithm + ": " + row.choice.why] += row.count;
    }
  }
  std::vector<std::string> lines;
  lines.reserve(counts.size());
  for (const auto& [why, count] : counts) {
    lines.push_back(fmt::format(
        "{} collectives were not added up in switches and ran by {}; another collectives.format changes it",
        count, why));
  }
  for (const auto& [algorithm, count] : without_groups) {
    lines.push_back(fmt::format(
        "{} collectives ran by {} without NVLS, because NVSwitches had no multicast group left for their "
        "communicators (nvls_groups of the host; each takes collectives.nvls_groups)",
        count, algorithm));
  }
  return lines;
}

// Returns a note about the jobs that the cluster can never run.
std::vector<std::string> never_fitting(const Results& results) {
  const auto never = [](const JobResult& job) { return !job.never_fits.empty(); };
  const auto first = std::find_if(results.jobs.begin(), results.jobs.end(), never);
  if (first == results.jobs.end()) return {};
  return {fmt::format("{} of {} jobs can never run on this cluster and were left out; the first is '{}': {}",
                      std::count_if(first, results.jobs.end(), never), results.jobs.size(), first->name,
                      first->never_fits)};
}

// Returns a note about the jobs that waited for GPUs.
std::vector<std::string> queueing(const RunParts& run, const Results& results) {
  if (!run.manager.has_queue()) return {};
  std::vector<std::string> lines = never_fitting(results);
  if (run.manager.is_managed()) return lines;
  const auto longest =
      std::max_element(results.jobs.begin(), results.jobs.end(),
                       [](const JobResult& a, const JobResult& b) { return a.queued() < b.queued(); });
  const auto count = std::count_if(results.jobs.begin(), results.jobs.end(),
                                   [](const JobResult& job) { return job.queued() > 0; });
  const std::string all = "the jobs do not fit on the cluster together";
  if (count == 0) return {all + ", but each found free GPUs at its arrival"};
  return {fmt::format("{}: {} of {} waited for GPUs, '{}' the longest, {}", all, count, results.jobs.size(),
                      longest->name, format_time(longest->queued()))};
}

// Returns the kernels of all jobs that have no duration of their own.
std::vector<const Kernel*> modelled_kernels(const std::vector<JobDescription>& jobs) {
  std::vector<const Kernel*> kernels;
  for (const JobDescription& job : jobs) {
    for (const Work& work : job.source->works()) {
      for (const Kernel& kernel : work.kernels) {
        if (kernel.kind != Kernel::Kind::fixed) kernels.push_back(&kernel);
      }
    }
  }
  return kernels;
}

std::vector<std::string> notes(const RunParts& run, const Results& results) {
  std::vector<std::string> lines = derive_notes(results);
  append(lines, run.notes);
  append(lines, run.cluster.notes);
  if (run.packets != nullptr) append(lines, run.packets->notes());
  append(lines, unused_settings(run));
  append(lines, fallbacks(results));
  append(lines, unused_in_place(run, results));
  append(lines, queueing(run, results));
  std::vector<bool> used(run.cluster.gpus.size(), false);
  for (const JobResult& job : results.jobs) {
    for (const GpuId gpu : job.gpus) used[gpu] = true;
  }
  if (const auto idle = std::count(used.begin(), used.end(), false); idle > 0)
    lines.push_back(fmt::format("{} of {} GPUs had no rank", idle, used.size()));
  for (const JobDescription& job : run.manager.descriptions()) append(lines, job.source->notes());
  append(lines, run.manager.notes());
  append(lines, run.models.notes(modelled_kernels(run.manager.descriptions())));
  if (run.sinks != nullptr) append(lines, run.sinks->notes());
  return lines;
}

void add_network(const RunParts& run, Results& results) {
  const Graph& graph = run.cluster.graph;
  results.network = run.packets->counters();
  const std::vector<std::string> names = run.cluster.packet_fabric_names();
  results.knobs = settings_of(run.configuration, names.size() == 1 ? names.front() : "",
                              first_packet_transport(run.cluster, run.transports));
  if (names.size() > 1) results.fabrics = fabric_results(run);
  const LinkTiers tiers = link_tiers(graph);
  results.link_tiers = tiers.names;
  results.links.reserve(graph.port_count());
  for (PortId port = 0; port < graph.port_count(); ++port) {
    const LinkSpec& link = graph.port(port).link;
    results.links.push_back(
        {graph.port_name(port), link.kind, link.rate, run.packets->port_counters(port), tiers.of_port[port]});
  }
  for (const AggregatingSwitch& one : run.packets->aggregating_switches())
    results.aggregation.push_back({graph.node(one.node).name, one});
  results.faults = faulty_links(run.packets->fault_schedule(), graph, results.links);
  results.fingerprints.packets = run.packets->packets_fingerprint();
  results.fingerprints.events = run.packets->events_fingerprint();
  results.deadlocked = run.packets->deadlocked();
}

// Appends the hosts that fail, with the jobs that lost ranks on them.
void add_host_faults(const RunParts& run, Results& results) {
  const Recovery& recovery = run.manager.recovery();
  std::vector<std::vector<HostId>> stopped(results.jobs.size());
  for (JobId job = 0; job < results.jobs.size(); ++job) {
    for (const auto& [host, at] : recovery.failed_hosts(job)) stopped[job].push_back(host);
  }
  append(results.faults, faulty_hosts(recovery.failures(), stopped, run.cluster));
}

}  // namespace

TransportFigures first_packet_transport(const Cluster& cluster,
                                        const std::vector<TransportFigures>& transports) {
  for (std::size_t i = 0; i < transports.size(); ++i) {
    if (!cluster.fabrics[i].scale_up) return transports[i];
  }
  return {};
}

MemoryPeak planned_memory(const MemoryPlan& plan) {
  const std::vector<MemoryPeak> planned = plan.planned();
  return *std::max_element(planned.begin(), planned.end(), [](const MemoryPeak& a, const MemoryPeak& b) {
    return a.use.total() < b.use.total();
  });
}

Results build_results(const RunParts& run, Outcome outcome, Time cut) {
  Results results;
  results.outcome = outcome;
  results.simulated = outcome == Outcome::done    ? run.jobs.end_time()
                      : outcome == Outcome::limit ? cut
                                                  : run.engine.now();
  results.events = run.engine.executed();
  results.packet_network = run.packets != nullptr;
  results.collectives = run.recorder.collectives();
  results.further_collectives = run.recorder.further_collectives();
  results.flows = run.recorder.flow_times();
  results.slowdowns = run.recorder.slowdowns();
  for (std::size_t bin = 0; bin < kSizeBins.size(); ++bin)
    results.slowdowns_by_size[bin] = run.recorder.slowdowns(bin);
  if (run.sinks != nullptr && run.sinks->reports()) {
    results.flow_times_ps = run.recorder.flow_time_percentiles();
    results.slowdowns_millionths = run.recorder.slowdown_percentiles();
  }
  if (run.sampler != nullptr && run.output.sample.queues) results.sampled_queues = run.sampler->queues();
  for (JobId job = 0; job < run.jobs.size(); ++job)
    results.jobs.push_back(job_result(run, job, results.simulated));
  results.uses = run.manager.uses();
  for (GpuId gpu = 0; gpu < run.cluster.gpus.size(); ++gpu)
    results.gpus += run.cluster.is_drives(gpu) ? 0 : 1;
  for (const Gpu& gpu : run.cluster.gpus) results.gpu_names.push_back(run.cluster.graph.node(gpu.node).name);
  if (run.packets != nullptr) add_network(run, results);
  add_host_faults(run, results);
  if (run.flows != nullptr) results.flow_scheduling = run.flows->summary();
  if (run.splits != nullptr) results.splits = run.splits->summary();
  results.fingerprints.results = run.recorder.fingerprint(results.network, results.links);
  if (outcome == Outcome::stalled) results.waiting = waiting(run);
  results.notes = notes(run, results);
  return results;
}

}  // namespace netsim
