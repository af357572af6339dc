#include "sim/simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "sim/core/input_file.h"
#include "sim/core/registry.h"
#include "sim/core/time_limits.h"
#include "sim/report/configuration.h"
#include "sim/scheduling/placement.h"
#include "sim/transport/ideal_endpoint.h"
#include "sim/workload/workload.h"

namespace netsim {
namespace {

using WallClock = std::chrono::steady_clock;

constexpr std::uint64_t kSlice = 200'000;          // events between two checks of the watch: about 25 ms
constexpr std::uint64_t kSliceSamples = 1000;      // samples between two checks of the watch
constexpr std::uint64_t kStuckEvents = 5'000'000;  // with kStuckTime: events without progress
constexpr Time kStuckTime = kSecond;
constexpr Time kStuckLook = kStuckTime / 4;  // simulated time between two checks for progress
constexpr std::size_t kWaitingLines = 20;    // of each part of a stall report
// Above this number of tasks progress counts tasks only, because counting their packets takes too long.
constexpr std::uint64_t kPredictTasks = 20'000'000;

double seconds_since(WallClock::time_point start) {
  return std::chrono::duration<double>(WallClock::now() - start).count();
}

const ConfigNode& absent() {
  static const ConfigNode node;
  return node;
}

const ConfigNode& section(const ConfigNode& root, const char* name) {
  const ConfigNode* node = root.find(name);
  return node != nullptr ? *node : absent();
}

const ConfigNode& known_sections(const ConfigNode& root) {
  check_sections(root);
  return root;
}

// Returns the node with the parameters of `network`, or an absent one if it is a bare name.
const ConfigNode& network_section(const ConfigNode& root) {
  const ConfigNode& node = section(root, "network");
  return node.is_scalar() ? absent() : node;
}

// Returns the models by group of hosts; null where neither the configuration nor the host names one.
std::vector<std::unique_ptr<ComputeModel>> create_compute(const ConfigNode& root, const Cluster& cluster) {
  const ConfigNode& node = section(root, "compute");
  std::vector<std::unique_ptr<ComputeModel>> models;
  for (const HostGroup& group : cluster.groups) {
    const bool none = node.is_null() && group.gpu_model.empty();
    models.push_back(none ? nullptr : Registry<ComputeModel>::instance().create(node, group.gpu_model));
  }
  return models;
}

// Returns the time of work without a model of the GPU. Throws ConfigError for a kernel without a given
// duration.
Time given_duration(const Work& work, const std::string& workload, const Place& config) {
  Time total = 0;
  for (const Kernel& kernel : work.kernels) {
    if (kernel.kind != Kernel::Kind::fixed) {
      throw ConfigError(
          config,
          fmt::format("'compute' is missing: kernel '{}' of '{}' in {} needs a model of the GPU, and the "
                      "hosts name none (netsim --list compute_model)",
                      kernel.name, work.name, workload));
    }
    total = bounded_sum(total, kernel.duration);
  }
  return total;
}

// Returns the time of work by the model. Throws ConfigError for a kernel that the model cannot time.
Time modelled_duration(const Work& work, const ComputeModel& model, const std::string& workload,
                       const Place& config) {
  for (const Kernel& kernel : work.kernels) {
    const std::string objection = model.objection(kernel);
    if (objection.empty()) continue;
    throw ConfigError(config, fmt::format("compute: kernel '{}' of '{}' in {}: {}", kernel.name, work.name,
                                          workload, objection));
  }
  return model.duration(work);
}

// Returns the time of each work of the source. With `drives`, work without a given duration takes 0, because
// drives never compute it.
std::vector<Time> durations_of_works(const TaskSource& source, const ComputeModel* model, bool drives,
                                     const std::string& workload, const Place& config) {
  std::vector<Time> result;
  const auto is_fixed = [](const Kernel& kernel) { return kernel.kind == Kernel::Kind::fixed; };
  for (const Work& work : source.works()) {
    if (drives && !std::all_of(work.kernels.begin(), work.kernels.end(), is_fixed)) {
      result.push_back(0);
      continue;
    }
    result.push_back(model != nullptr ? modelled_duration(work, *model, workload, config)
                                      : given_duration(work, workload, config));
  }
  return result;
}

// Returns whether the GPU stands for the drives of a storage server.
bool is_drives(const Cluster& cluster, std::uint32_t gpu) {
  return cluster.groups[cluster.hosts[cluster.gpus[gpu].host].group].kind == "storage_server";
}

WorkloadContext workload_context(const ConfigNode& root, const Cluster& cluster, std::uint64_t seed) {
  WorkloadContext context(static_cast<std::uint32_t>(cluster.gpus.size()));
  context.seed = seed;
  context.host_numbers = cluster.host_numbers;
  for (std::uint32_t gpu = 0; gpu < cluster.gpus.size(); ++gpu) {
    if (is_drives(cluster, gpu)) context.drives.push_back(gpu);
  }
  if (network_kind(root) != "ideal")
    context.classes = read_integer(ConfigNode::scalar(configured(root, "network.switch.classes"), {}));
  return context;
}

// Returns the name of each GPU's NIC as in links.csv.
std::vector<std::string> nic_names(const Cluster& cluster) {
  std::vector<std::string> names;
  for (const Gpu& gpu : cluster.gpus) names.push_back(cluster.graph.node(gpu.nic).name);
  return names;
}

FabricSettings knobs(const ConfigNode& root, const std::string& fabric, const TransportFigures& transport) {
  FabricSettings knobs;
  knobs.congestion_control = configured_in(root, fabric, "transport", "congestion_control");
  knobs.reliability = configured_in(root, fabric, "transport", "reliability");
  knobs.marker = configured_in(root, fabric, "network", "switch.marker");
  knobs.flow_control = configured_in(root, fabric, "network", "switch.flow_control");
  knobs.reacts_to_marks = transport.reacts_to_marks;
  knobs.window = transport.window;
  return knobs;
}

std::uint32_t cores(std::uint32_t threads) {
  return threads != 0 ? threads : std::max(1U, std::thread::hardware_concurrency());
}

// Returns whether the switches of a packet fabric do in-network aggregation.
bool aggregates(const ConfigNode& root, const Cluster& cluster) {
  const std::vector<std::string> names = cluster.packet_fabric_names();
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return configured_in(root, name, "network", "switch.aggregation") == "true";
  });
}

// Divides the cluster into sets. There is one set for the ideal network, which has no links and so no
// lookahead. There is one set with in-network aggregation too, because a tree's operation ends at all its
// hosts at once.
Partition choose_partition(const ConfigNode& root, const Cluster& cluster, std::uint32_t threads) {
  const EngineParameters engine = engine_parameters().parse(section(root, "engine"));
  if (network_kind(root) == "ideal" || aggregates(root, cluster)) return {};
  return partition(cluster.graph, threads, static_cast<std::uint32_t>(engine.sets));
}

// Runs `act`. An error in a task, found while it runs, names the workload and not the source file.
template <class Act>
auto naming(const std::string& workload, Act act) {
  try {
    return act();
  } catch (const InputError& error) {
    if (std::string_view(error.what()).starts_with(workload)) throw;
    throw InputError(Place{workload, 0, 0, ""}, error.what());
  }
}

// Returns the figures of the first packet fabric, or default figures if there is none.
TransportFigures first_packet_transport(const System& system) {
  const std::vector<ClusterFabric>& fabrics = system.cluster().fabrics;
  for (std::size_t i = 0; i < system.transports().size(); ++i) {
    if (!fabrics[i].scale_up) return system.transports()[i];
  }
  return {};
}

// Returns the largest use of any role.
MemoryPeak planned_memory(const MemoryPlan& plan) {
  const std::vector<MemoryPeak> planned = plan.planned();
  return *std::max_element(planned.begin(), planned.end(), [](const MemoryPeak& a, const MemoryPeak& b) {
    return a.use.total() < b.use.total();
  });
}

JobMemory memory_of(const MemoryLedger& ledger, const MemoryPlan& plan) {
  JobMemory memory;
  memory.planned = planned_memory(plan).use;
  memory.rank = ledger.fullest();
  memory.time = ledger.of(memory.rank).peak_time;
  memory.use = ledger.of(memory.rank).peak;
  for (std::uint32_t rank = 0; rank < ledger.ranks(); ++rank) {
    memory.rank_peak.push_back(ledger.of(rank).peak.total());
    memory.rank_time.push_back(ledger.of(rank).peak_time);
  }
  return memory;
}

void append(std::vector<std::string>& lines, std::vector<std::string> more) {
  for (std::string& line : more) lines.push_back(std::move(line));
}

}  // namespace

System::System(const ConfigNode& root, std::uint64_t seed, std::uint32_t threads,
               PacketNetwork::FlowObserver observer)
    : cluster_(build_cluster(known_sections(root))),
      partition_(choose_partition(root, cluster_, cores(threads))),
      engine_({partition_.sets, partition_.lookahead, cores(threads)}),
      output_(output_parameters().parse(section(root, "output"))),
      compute_(create_compute(root, cluster_)) {
  const auto gpus = static_cast<std::uint32_t>(cluster_.gpus.size());
  next_origin_ = static_cast<std::uint32_t>(cluster_.graph.port_count());
  if (network_kind(root) == "ideal") {
    const IdealParameters ideal = ideal_parameters().parse(network_section(root), {"kind"});
    endpoint_ = std::make_unique<IdealEndpoint>(engine_.loop(), gpus, ideal.delay, next_origin_);
    output_.sample.interval = 0;
  } else {
    auto packets = PacketNetwork::create(engine_, cluster_, partition_, network_section(root),
                                         section(root, "transport"), seed, std::move(observer));
    packets_ = packets.get();
    circuits_ = packets_->circuits();
    endpoint_ = std::move(packets);
  }
  for (std::uint32_t fabric = 0; packets_ != nullptr && fabric < cluster_.fabrics.size(); ++fabric)
    transports_.push_back(packets_->transport_figures(fabric));
  next_origin_ += gpus;
  for (std::uint32_t set = 0; set < engine_.sets(); ++set) loops_.push_back(&engine_.loop(set));
  for (const Gpu& gpu : cluster_.gpus) set_of_gpu_.push_back(partition_.set_of(gpu.node));
  executor_ = Executor::create(loops_, set_of_gpu_, *endpoint_, section(root, "collectives"), next_origin_);
  next_origin_ += gpus;
  std::vector<std::uint32_t> hosts;
  std::vector<std::uint32_t> multiprocessors;
  for (std::uint32_t gpu = 0; gpu < gpus; ++gpu) {
    hosts.push_back(cluster_.gpus[gpu].host);
    multiprocessors.push_back(compute(gpu) != nullptr ? compute(gpu)->multiprocessors() : 0);
  }
  devices_ =
      std::make_unique<ComputeDevices>(loops_, set_of_gpu_, gpu_parameters().parse(section(root, "gpus")),
                                       next_origin_, hosts, multiprocessors);
  next_origin_ += gpus + cluster_.host_count;
}

Simulation::Simulation(SimulationSetup setup)
    : setup_(std::move(setup)),
      system_(setup_.config, setup_.seed, setup_.threads,
              [this](const FlowRecord& flow) { recorder_->record(flow); }) {
  descriptions_ = std::move(setup_.jobs);
  if (descriptions_.empty()) {
    WorkloadContext context = workload_context(setup_.config, system_.cluster(), setup_.seed);
    context.assignments = setup_.workload_assignments;
    descriptions_ = load_jobs(setup_.workload, context);
  }
  create_jobs();
  if (!setup_.output_directory.empty()) {
    const Cluster& cluster = system_.cluster();
    std::vector<Tables::NamedSource> sources;
    for (const JobDescription& job : descriptions_) sources.push_back({job.name, job.source.get()});
    const std::vector<std::uint16_t>* ports = sources.size() == 1 ? sources[0].source->ns3_ports() : nullptr;
    tables_ = std::make_unique<Tables>(
        setup_.output_directory, system_.output(), sources, nic_names(cluster),
        ports != nullptr ? std::make_unique<Ns3Fct>(cluster, first_packet_transport(system_).mtu, *ports)
                         : nullptr);
  }
  recorder_ = std::make_unique<Recorder>(tables_.get(), system_.cluster().graph, descriptions_.size());
  if (const SampleParameters& sample = system_.output().sample; sample.interval > 0) {
    sampler_ = std::make_unique<Sampler>(sample, *system_.packets(), system_.cluster().graph, tables_.get());
  }
}

Structure System::structure() const {
  return structure_of(cluster_, packets_ != nullptr ? packets_->failing_ports() : std::vector<bool>());
}

void Simulation::create_jobs() {
  JobObserver observer{[this](const TaskRecord& task) { recorder_->record(task); },
                       [this](const CommunicationRecord& communication) { record(communication); },
                       [this](std::uint32_t job, std::uint32_t iteration, Time end) {
                         if (on_iteration_) on_iteration_(job, iteration, end);
                       },
                       {},
                       [this](const MemoryRecord& memory) { recorder_->record(memory); }};
  if (system_.output().critical_path) {
    observer.path = [this](std::uint32_t job, std::uint32_t iteration, const PathStep& step) {
      recorder_->record(job, iteration, step);
    };
  }
  jobs_ = std::make_unique<JobSet>(system_.loops(), system_.set_of_gpu(), system_.executor(),
                                   system_.devices(), system_.next_origin(), std::move(observer));
  journal_ = std::make_unique<JournalOf<JobRecord, JobSet>>(*jobs_, &JobSet::apply);
  journal_reader_ = system_.engine().add_reader(*journal_);
  transfers_ =
      std::make_unique<JournalInParts<TransferRecord, PortDelay, JobSet>>(*jobs_, &JobSet::apply_transfer);
  transfer_reader_ = system_.engine().add_reader(*transfers_);
  connect_requests();
  const GpuParameters gpus = gpu_parameters().parse(section(setup_.config, "gpus"));
  overcommit_memory_ = gpus.overcommit_memory;
  variation_ = {{}, gpus.jitter, read_stragglers(gpus.stragglers, system_.cluster())};
  if (gpus.variation > 0) {
    variation_.slowness = slowness_of_gpus(static_cast<std::uint32_t>(system_.cluster().gpus.size()),
                                           gpus.variation, setup_.seed);
  }
  std::vector<bool> taken(system_.cluster().gpus.size(), false), shared = taken;
  for (const JobDescription& job : descriptions_) {
    place(job, taken, shared);
  }
  recovery_ = std::make_unique<Recovery>(system_.engine(), system_.cluster(), *jobs_,
                                         read_failures(gpus.failures, system_.cluster()),
                                         [this](Recovery::Rest rest) { resume(std::move(rest)); });
}

void Simulation::record(const CommunicationRecord& communication) {
  LibraryChoice choice;
  if (is_collective(communication.kind) && communication.ranks > 1) {
    const JobPlan& plan = jobs_->job(communication.job).plan();
    members_.clear();
    for (const std::uint32_t rank : plan.source->group(communication.group))
      members_.push_back(plan.gpus[rank]);
    CommunicationRequest request;
    request.kind = communication.kind;
    request.members = &members_;
    request.root = communication.root;
    request.bytes = communication.bytes;
    request.counts = communication.counts;
    request.grouped = communication.grouped;
    request.algorithm = communication.algorithm;
    choice = system_.executor().choice(request);
    check_bound(communication, choice);
  }
  recorder_->record(communication, choice);
}

// Checks that the collective took at least the lower bound set by the links of its members (`members_`).
void Simulation::check_bound(const CommunicationRecord& communication, const LibraryChoice& choice) {
  if (system_.packets() == nullptr) return;  // no links
  if (!bounds_) bounds_.emplace(system_.cluster());
  const Time takes = communication.end - communication.first_start;
  const Time least = bounds_->least(communication.kind, communication.bytes, members_, choice.help);
  NETSIM_CHECK(takes >= least,
               fmt::format("{} of {} among {} ranks by {} took {}, its links need {}",
                           to_string(communication.kind), format_bytes(communication.bytes),
                           communication.ranks, choice.algorithm, format_time(takes), format_time(least)));
}

// Connects the jobs' requests for circuits and pauses to the engine. The call delay is set only if a job has
// such tasks, because it shortens the engine's windows.
void Simulation::connect_requests() {
  CircuitControl* control = system_.circuits();
  circuits_ = std::make_unique<JournalOf<CircuitRequest, JobSet>>(*jobs_, &JobSet::circuits_asked);
  const std::uint32_t reader = system_.engine().add_reader(*circuits_);
  jobs_->set_circuits(
      {control, [this, reader](std::uint32_t set, Time time, Origin& origin, const CircuitRequest& request) {
         system_.engine().set(set).ask_call(time, origin, reader, request);
       }});
  Time delay = kNever;
  for (const JobDescription& job : descriptions_) {
    if (const Time pause = job.source->least_pause(); pause > 0) delay = std::min(delay, pause);
    if (!job.source->circuits().empty() && control != nullptr)
      delay = std::min(delay, control->request_latency());
  }
  if (delay != kNever) system_.engine().set_call_delay(delay);
}

// Places a job. `taken` and `shared` hold by GPU whether one job has it for itself, or several share it.
void Simulation::place(const JobDescription& job, std::vector<bool>& taken, std::vector<bool>& shared) {
  const Cluster& cluster = system_.cluster();
  if (job.source->ranks() > cluster.gpus.size()) {
    throw InputError(fmt::format("{}: the workload has {} ranks, the cluster only {} GPUs ({} hosts)",
                                 job.file, job.source->ranks(), cluster.gpus.size(), cluster.host_count));
  }
  const ConfigNode& node = job.placement.is_null() ? section(setup_.config, "placement") : job.placement;
  const std::uint32_t storage = job.source->storage_ranks();
  std::vector<bool> not_free = taken;  // storage drives are no GPUs for a job that uses them as storage
  for (std::uint32_t gpu = 0; storage > 0 && gpu < not_free.size(); ++gpu)
    not_free[gpu] = not_free[gpu] || is_drives(cluster, gpu);
  PlacementView view{cluster, not_free, job.source->ranks() - storage, {}, job.name, setup_.seed};
  for (const RankAxis& axis : job.source->axes()) view.axes.emplace_back(axis.name, axis.size);
  const auto find = [&] { return place_ranks(node, view, shared); };
  PlacedRanks placed = job.placement.is_null() ? find() : as_input(find);
  for (const std::uint32_t gpu : placed.gpus) (placed.shared ? shared : taken)[gpu] = true;
  for (std::uint32_t gpu = 0, left = storage; left > 0 && gpu < not_free.size(); ++gpu) {
    if (!is_drives(cluster, gpu)) continue;
    placed.gpus.push_back(gpu);
    --left;
  }
  require_memory(job, placed.gpus);
  require_cpus(job, placed.gpus);
  add(job, std::move(placed.gpus));
}

void Simulation::add(const JobDescription& job, std::vector<std::uint32_t> gpus) {
  times_.push_back(compute_times(job, gpus));
  jobs_->add(
      {job.name, job.source.get(), times_.back().get(), std::move(gpus), job.arrival, job.priority, nullptr});
}

Bytes Simulation::memory_of(std::uint32_t gpu) const {
  return system_.compute(gpu) != nullptr ? system_.compute(gpu)->memory() : 0;
}

// Throws InputError for a job whose tensors do not fit into the memory of its GPUs.
void Simulation::require_memory(const JobDescription& job, const std::vector<std::uint32_t>& gpus) const {
  const MemoryPlan* plan = job.source->memory();
  if (plan == nullptr || overcommit_memory_) return;
  const std::vector<MemoryPeak> planned = plan->planned();
  for (std::uint32_t rank = 0; rank < gpus.size() - job.source->storage_ranks(); ++rank) {
    const MemoryUse& use = planned[plan->role(rank)].use;
    const Bytes capacity = memory_of(gpus[rank]);
    if (capacity == 0 || use.total() <= capacity) continue;
    throw InputError(
        Place{job.file, 0, 0, ""},
        fmt::format("rank {} does not fit into the {} of its GPU {}: it needs {} (allowed: less, or "
                    "gpus.overcommit_memory)",
                    rank, gibibytes(capacity),
                    system_.cluster().graph.node(system_.cluster().gpus[gpus[rank]].node).name, use.text()));
  }
}

// Throws InputError if a rank of a job that copies to host memory has no path there.
void Simulation::require_cpus(const JobDescription& job, const std::vector<std::uint32_t>& gpus) const {
  if (!job.source->uses_hosts() || system_.packets() == nullptr) return;
  const Cluster& cluster = system_.cluster();
  for (std::uint32_t rank = 0; rank < gpus.size() - job.source->storage_ranks(); ++rank) {
    if (!cluster.way_inside(gpus[rank], gpus[rank]).empty()) continue;
    const std::string& kind = cluster.group_of(gpus[rank]).kind;
    throw InputError(
        Place{job.file, 0, 0, ""},
        fmt::format(
            "rank {} offloads to its host's memory, and {} has no way to a CPU: hosts {} have none "
            "(allowed: {} with cpus, or hosts that have CPUs in any case, as pcie_server, dgx_1v, gb200)",
            rank, cluster.graph.node(cluster.gpus[gpus[rank]].node).name, kind,
            kind.starts_with("dgx") || kind.starts_with("hgx") ? kind : "dgx_h100"));
  }
}

// Returns the compute times of the job for each kind of GPU that it uses.
std::unique_ptr<ComputeTimes> Simulation::compute_times(const JobDescription& job,
                                                        const std::vector<std::uint32_t>& gpus) const {
  std::vector<std::vector<Time>> by_group(system_.cluster().groups.size());
  std::vector<bool> known(by_group.size(), false);
  std::vector<std::uint32_t> group_of_rank;
  for (const std::uint32_t gpu : gpus) {
    const std::uint32_t group = system_.group_of(gpu);
    group_of_rank.push_back(group);
    if (known[group]) continue;
    known[group] = true;
    const bool drives = job.source->storage_ranks() > 0 && is_drives(system_.cluster(), gpu);
    by_group[group] =
        durations_of_works(*job.source, system_.compute(gpu), drives, job.file, setup_.config.place());
  }
  std::unique_ptr<ComputeTimes> times =
      std::make_unique<WorkDurations>(std::move(by_group), std::move(group_of_rank));
  if (!variation_.any()) return times;
  return std::make_unique<VaryingTimes>(std::move(times), variation_, gpus, setup_.seed, job.name);
}

void Simulation::begin() {
  if (tables_ != nullptr) tables_->begin();
  recovery_->begin();  // before the jobs, so that a host that fails at a job's arrival has failed for it
  for (std::uint32_t job = 0; job < jobs_->size(); ++job) {
    const Time arrival = jobs_->job(job).plan().arrival;
    if (arrival == 0) {
      recovery_->start(job);
    } else {
      system_.engine().call_at(arrival, [this, job] { recovery_->start(job); });
    }
  }
  jobs_->set_journal([this](std::uint32_t set, const JobRecord& record) {
    system_.engine().set(set).write(journal_reader_, record);
  });
  jobs_->set_transfer_journal(
      [this](std::uint32_t set, const TransferRecord& record, std::span<const PortDelay> ports) {
        system_.engine().set(set).write(transfer_reader_, record, ports);
      });
}

// Adds the rest of a stopped job as a job of its own.
void Simulation::resume(Recovery::Rest rest) {
  JobDescription job;
  job.name = std::move(rest.name);
  job.source = std::move(rest.source);
  job.arrival = system_.engine().now();
  job.priority = descriptions_[rest.before].priority;
  job.file = descriptions_[rest.before].file;
  recorder_->add_job();
  if (tables_ != nullptr) tables_->add_job({job.name, job.source.get()});
  add(job, std::move(rest.gpus));
  descriptions_.push_back(std::move(job));
}

// If nothing else makes progress, only checks at simulated times (next_look_) tell whether the run is stuck.
bool Simulation::step(Time until) {
  Engine& engine = system_.engine();
  if (finished() || stuck_ || deadlocked()) return false;
  if (slice(std::min(until, next_look_))) return true;
  if (engine.pending() == 0 || engine.next_time() > until) return false;
  stuck_ = stuck();
  next_look_ = (engine.next_time() / kStuckLook + 1) * kStuckLook;
  return !stuck_;
}

SimulationState Simulation::state() const {
  SimulationState state;
  state.now = system_.engine().now();
  state.events = system_.engine().executed();
  state.done = finished();
  for (std::uint32_t number = 0; number < jobs_->size(); ++number) {
    const Job& job = jobs_->job(number);
    state.jobs.push_back({job.plan().name, job.begun(), job.done(), job.tasks_done(),
                          static_cast<std::uint32_t>(job.iteration_ends().size())});
  }
  if (system_.packets() != nullptr) state.network = system_.packets()->counters();
  return state;
}

Results Simulation::run(const Watch& watch) {
  const WallClock::time_point start = WallClock::now();
  begin();
  const Outcome outcome = play(watch);
  Results results = end(outcome, watch);
  results.wall_seconds = seconds_since(start);
  return results;
}

Results Simulation::results(Time until) {
  Watch watch;
  watch.until = until;
  if (finished()) return end(Outcome::done, watch);
  const Engine& engine = system_.engine();
  const bool stalled = stuck_ || deadlocked() || engine.pending() == 0;
  return end(stalled ? Outcome::stalled : until != kNever ? Outcome::limit : Outcome::interrupted, watch);
}

Results Simulation::end(Outcome outcome, const Watch& watch) {
  if (outcome == Outcome::done) settle(watch);
  if (system_.packets() != nullptr) system_.packets()->report_unacknowledged();
  if (sampler_ != nullptr) finish_samples(outcome, watch);
  return collect(outcome, watch);
}

Prediction Simulation::predict(double seconds, const Watch& watch) {
  const Calibration calibration = calibrate(seconds, watch);
  Prediction prediction = extrapolate(jobs_->ranks(), whole_volume(), calibration);
  for (std::uint32_t job = 0; job < jobs_->size(); ++job) {
    const JobPlan& plan = jobs_->job(job).plan();
    if (plan.source->memory() == nullptr) continue;
    const MemoryPeak peak = planned_memory(*plan.source->memory());
    prediction.gpu_memory.push_back({plan.name, peak, memory_of(plan.gpus[peak.rank])});
  }
  return prediction;
}

// Simulates the run for about `seconds`, and until at least kLooks checks are done. The first slices are slow
// in a large network, because all memory is touched for the first time.
Calibration Simulation::calibrate(double seconds, const Watch& watch) {
  constexpr double kWarmUp = 0.3;  // share of the calibration
  constexpr std::uint32_t kLooks = 8;
  constexpr double kLongest = 4;  // times the requested `seconds`
  Calibration calibration;
  calibration.setup_seconds = since_creation_.seconds();
  const Stopwatch watch_of_run;
  double begin = 0;
  std::uint32_t looks = 0;
  Watch timed;
  timed.until = watch.until;
  timed.interrupted = [&] {
    const double now = watch_of_run.seconds();
    if (looks++ == 0) begin = calibration.early.seconds = now;  // the job has started
    if (calibration.early.done.tasks == 0 && calibration.early.done.hops() == 0 && looks >= kLooks / 4 &&
        now - begin >= kWarmUp * seconds)
      calibration.early = progress_mark(now);
    const bool enough = now - begin >= seconds && (looks >= kLooks || now - begin >= kLongest * seconds);
    if (enough) calibration.end = progress_mark(now);
    return enough || (watch.interrupted && watch.interrupted());
  };
  const Outcome outcome = run(timed).outcome;
  calibration.complete = outcome != Outcome::interrupted;
  if (calibration.end.seconds <= 0) calibration.end = progress_mark(watch_of_run.seconds());
  calibration.memory = peak_memory();
  calibration.simulated = system_.engine().now();
  for (const TransportFigures& transport : system_.transports())
    calibration.timer = std::max(calibration.timer, transport.timeout);
  return calibration;
}

Calibration::Mark Simulation::progress_mark(double seconds) const { return {seconds, done(), peak_memory()}; }

Volume Simulation::done() const {
  Volume done;
  done.tasks = jobs_->tasks_done();
  if (system_.packets() == nullptr) return done;
  const NetworkCounters counters = system_.packets()->counters();
  done.scale_out_bytes = counters.bytes_delivered;
  done.flows = counters.flows_done;
  done.packets = counters.packets;
  done.queue_pairs = system_.packets()->queue_pairs().size();
  done.packet_hops = counters.packet_hops;
  return done;
}

Volume Simulation::whole_volume() {
  Volume sum;
  for (std::uint32_t job = 0; job < jobs_->size(); ++job) {
    add_volume(sum, naming(descriptions_[job].file, [&] {
                 return predict_volume(*descriptions_[job].source, placement(job), system_.executor(),
                                       system_.cluster(), system_.packets());
               }));
  }
  return sum;
}

// Returns the work of the run, or only the number of tasks if there are more than kPredictTasks.
Volume Simulation::predicted() {
  Volume volume;
  for (const JobDescription& job : descriptions_) {
    const auto total = job.source->total_tasks();
    volume.known = volume.known && total;
    volume.tasks += total.value_or(0);
  }
  return volume.known && volume.tasks <= kPredictTasks ? whole_volume() : volume;
}

bool Simulation::slice(Time until) {
  Engine& engine = system_.engine();
  if (sampler_ == nullptr) return engine.run_some(kSlice, until) > 0;
  const std::uint64_t before = engine.executed();
  std::uint64_t samples = 0;
  while (engine.executed() - before < kSlice && samples < kSliceSamples) {
    if (sampler_->quiet()) {
      const Time next = engine.next_time();
      if (next == kNever || next > until) break;
      sampler_->skip_to(next);
    }
    const std::uint64_t left = kSlice - (engine.executed() - before);
    if (engine.run_some(left, std::min(until, sampler_->next())) >= left) break;
    if (engine.stopped() || engine.pending() == 0 || sampler_->next() > until) break;
    sampler_->sample();
    ++samples;
  }
  return engine.executed() > before || samples > 0;
}

// Samples the interval of the last event. If the run was cut, only the interval's part up to the cut is
// sampled.
void Simulation::finish_samples(Outcome outcome, const Watch& watch) {
  if (system_.engine().pending() == 0) {
    sampler_->sample();
  } else {
    sampler_->finish(outcome == Outcome::limit ? watch.until : system_.engine().now());
  }
}

Outcome Simulation::play(const Watch& watch) {
  std::optional<Volume> all;  // computed before the first report, so that short runs do not need it
  WallClock::time_point reported = WallClock::now();
  while (!finished()) {
    if (watch.interrupted && watch.interrupted()) return Outcome::interrupted;
    if (!naming_step(watch.until)) {
      const Engine& engine = system_.engine();
      const bool beyond = engine.pending() > 0 && engine.next_time() > watch.until;
      return beyond && !deadlocked() ? Outcome::limit : Outcome::stalled;
    }
    if (watch.report && seconds_since(reported) >= watch.report_every) {
      if (!all) all = predicted();
      watch.report(advance(*all));
      reported = WallClock::now();
    }
  }
  return Outcome::done;
}

// Executes a step. An error in a task names the job's file.
bool Simulation::naming_step(Time until) {
  return naming(descriptions_.size() == 1 ? descriptions_[0].file : setup_.workload,
                [&] { return step(until); });
}

bool Simulation::deadlocked() const {
  return system_.packets() != nullptr && system_.packets()->deadlocked();
}

// Executes the events that finished jobs left. All timers of the network end by themselves.
void Simulation::settle(const Watch& watch) {
  while (slice(kNever)) {
    if (watch.interrupted && watch.interrupted()) return;
  }
  if (system_.packets() == nullptr) return;
  const NetworkCounters network = system_.packets()->counters();
  NETSIM_CHECK(network.bytes_sent == network.bytes_delivered,
               fmt::format("{} bytes sent, {} delivered", network.bytes_sent, network.bytes_delivered));
  NETSIM_CHECK(network.pfc_pauses == network.pfc_resumes,
               fmt::format("{} pauses, {} resumes", network.pfc_pauses, network.pfc_resumes));
}

// Returns whether the run makes no progress. A network that only retransmits packets that are lost again
// never runs out of events. It is called at simulated times, when the engine has executed exactly the events
// up to there, so the result depends on the run only.
bool Simulation::stuck() {
  const Engine& engine = system_.engine();
  if (recovery_->is_pending()) return false;
  for (std::uint32_t job = 0; job < jobs_->size(); ++job) {
    if (!jobs_->job(job).begun()) return false;
  }
  if (jobs_->tasks_done() == last_move_.tasks) {
    if (engine.executed() - last_move_.event < kStuckEvents || engine.now() - last_move_.time < kStuckTime)
      return false;
    const std::uint64_t packets = system_.packets() != nullptr ? system_.packets()->counters().packets : 0;
    if (packets == last_move_.packets) return true;
    last_move_.packets = packets;
  }
  last_move_.tasks = jobs_->tasks_done();
  last_move_.event = engine.executed();
  last_move_.time = engine.now();
  return false;
}

Advance Simulation::advance(const Volume& all) const {
  if (!all.known) return {-1, system_.engine().now(), system_.engine().executed()};
  Volume so_far = done();
  if (all.packets == 0) so_far.packet_hops = {};  // only tasks are counted
  return {share_done(so_far, all), system_.engine().now(), system_.engine().executed()};
}

Results Simulation::collect(Outcome outcome, const Watch& watch) const {
  Results results;
  results.outcome = outcome;
  const Engine& engine = system_.engine();
  results.simulated = outcome == Outcome::done    ? jobs_->end_time()
                      : outcome == Outcome::limit ? watch.until
                                                  : engine.now();
  results.events = engine.executed();
  results.packet_network = system_.packets() != nullptr;
  results.collectives = recorder_->collectives();
  results.flows = recorder_->flow_times();
  results.slowdowns = recorder_->slowdowns();
  for (std::size_t bin = 0; bin < kSizeBins.size(); ++bin)
    results.slowdowns_by_size[bin] = recorder_->slowdowns(bin);
  if (sampler_ != nullptr && system_.output().sample.queues) results.sampled_queues = sampler_->queues();
  for (std::uint32_t job = 0; job < jobs_->size(); ++job)
    results.jobs.push_back(job_result(job, results.simulated));
  for (const Gpu& gpu : system_.cluster().gpus)
    results.gpu_names.push_back(system_.cluster().graph.node(gpu.node).name);
  if (const PacketNetwork* packets = system_.packets(); packets != nullptr) {
    const Graph& graph = system_.cluster().graph;
    results.network = packets->counters();
    const std::vector<std::string> names = system_.cluster().packet_fabric_names();
    results.knobs =
        knobs(setup_.config, names.size() == 1 ? names.front() : "", first_packet_transport(system_));
    if (names.size() > 1) results.fabrics = fabric_results();
    results.links.reserve(graph.port_count());
    for (PortId port = 0; port < graph.port_count(); ++port) {
      const LinkSpec& link = graph.port(port).link;
      results.links.push_back({graph.port_name(port), link.kind, link.rate, packets->port_counters(port)});
    }
    results.fingerprints.packets = packets->packets_fingerprint();
    results.fingerprints.events = packets->events_fingerprint();
  }
  results.fingerprints.results = recorder_->fingerprint(results.network, results.links);
  results.deadlocked = deadlocked();
  if (outcome == Outcome::stalled) results.waiting = waiting();
  results.notes = notes(results);
  return results;
}

std::vector<FabricResult> Simulation::fabric_results() const {
  const Cluster& cluster = system_.cluster();
  std::vector<FabricResult> results;
  for (std::size_t i = 0; i < cluster.fabrics.size(); ++i) {
    const ClusterFabric& fabric = cluster.fabrics[i];
    if (fabric.scale_up) continue;
    FabricResult& result = results.emplace_back();
    result.name = fabric.name;
    result.knobs = knobs(setup_.config, fabric.name, system_.transports()[i]);
    const auto inside = [&](NodeId node) { return node >= fabric.first_switch && node < fabric.end_switch; };
    for (PortId port = 0; port < cluster.graph.port_count(); ++port) {
      const PortSpec& spec = cluster.graph.port(port);
      if (!inside(spec.node) && !inside(spec.peer_node)) continue;
      const PortCounters counters = system_.packets()->port_counters(port);
      result.packet_hops += counters.data_packets;
      result.ecn_marks += counters.ecn_marks;
      result.drops += counters.drops;
      result.pauses += counters.pauses;
      result.credit_stalls += counters.credit_stalls;
    }
  }
  return results;
}

// Returns the mean peak rate, or 0 if that of one GPU is unknown.
double Simulation::mean_peak_flops(const std::vector<std::uint32_t>& gpus) const {
  std::vector<std::size_t> of_group(system_.cluster().groups.size(), 0);
  for (const std::uint32_t gpu : gpus) ++of_group[system_.group_of(gpu)];
  double sum = 0;
  for (const std::uint32_t gpu : gpus) {
    std::size_t& count = of_group[system_.group_of(gpu)];
    if (count == 0) continue;
    if (system_.compute(gpu) == nullptr) return 0;
    sum += system_.compute(gpu)->peak_flops() * static_cast<double>(count) / static_cast<double>(gpus.size());
    count = 0;
  }
  return sum;
}

JobResult Simulation::job_result(std::uint32_t number, Time now) const {
  const Job& job = jobs_->job(number);
  const TaskSource& source = *job.plan().source;
  JobResult result;
  result.name = job.plan().name;
  result.iterations = source.iterations();
  result.begun = job.begun();
  result.stopped = recovery_->has_stopped(number);
  result.recovery = recovery_->of(number);
  result.done = job.done() && !result.stopped;
  result.priority = job.plan().priority;
  result.arrival = job.plan().arrival;
  result.begin = job.begin_time();
  result.end = job.done() ? job.end_time() : std::max(now, result.begin);
  result.iteration_ends = job.iteration_ends();
  result.gpus = job.plan().gpus;
  result.rank_times = result.begun ? job.rank_times(result.end) : std::vector<RankTimes>(result.gpus.size());
  // Removes the drives of storage servers, because the job does not compute on them.
  result.gpus.resize(result.gpus.size() - source.storage_ranks());
  result.rank_times.resize(result.gpus.size());
  result.paths = job.paths();
  result.path_shares = recorder_->path_shares(number, source);
  result.path_pairs = recorder_->path_pairs(number);
  result.path_ports = recorder_->path_ports(number);
  result.warm_up = source.warm_up();
  result.warm_up_times = job.warm_up_times();
  if (!result.warm_up_times.empty()) result.warm_up_times.resize(result.gpus.size());
  if (job.memory() != nullptr) {
    result.memory = netsim::memory_of(*job.memory(), *source.memory());
    result.memory->capacity = memory_of(result.gpus[result.memory->rank]);
    std::vector<Bytes> of_hosts(system_.cluster().hosts.size(), 0);
    for (std::uint32_t rank = 0; rank < result.gpus.size(); ++rank) {
      Bytes& host = of_hosts[system_.cluster().gpus[result.gpus[rank]].host];
      host += job.memory()->of(rank).host_peak;
      result.memory->host = std::max(result.memory->host, host);
    }
  }
  result.tasks_done = job.tasks_done();
  result.tasks_total = source.total_tasks();
  result.computes = !source.works().empty();
  result.model_flops = source.model_flops();
  result.peak_flops = mean_peak_flops(result.gpus);
  return result;
}

std::vector<std::string> Simulation::waiting() const {
  std::vector<std::string> lines;
  if (deadlocked()) lines = system_.packets()->waiting(kWaitingLines);  // the cause before its consequences
  append(lines, recovery_->waiting(kWaitingLines));
  append(lines, jobs_->waiting(kWaitingLines));
  append(lines, system_.executor().waiting(kWaitingLines));
  if (system_.packets() != nullptr && !deadlocked()) append(lines, system_.packets()->waiting(kWaitingLines));
  return lines;
}

std::vector<std::string> Simulation::notes(const Results& results) const {
  std::vector<std::string> lines = derive_notes(results);
  append(lines, setup_.notes);
  append(lines, system_.cluster().notes);
  if (system_.packets() != nullptr) append(lines, system_.packets()->notes());
  if (system_.packets() == nullptr && !section(setup_.config, "transport").is_null()) {
    lines.push_back("`transport` was not used: the network is ideal");
  }
  const ConfigNode& gpus = section(setup_.config, "gpus");
  if (gpus.find("slowing_streams") != nullptr &&
      gpu_parameters().parse(gpus).slowdown_beside_communication == 1)
    lines.push_back("gpus.slowing_streams changes nothing: gpus.slowdown_beside_communication is 1");
  const bool asked = output_parameters().parse(section(setup_.config, "output")).sample.interval > 0;
  if (system_.packets() == nullptr && asked) {
    lines.push_back("`output.sample` was not used: the network is ideal");
  }
  std::vector<bool> used(system_.cluster().gpus.size(), false);
  for (const JobResult& job : results.jobs) {
    for (const std::uint32_t gpu : job.gpus) used[gpu] = true;
  }
  if (const auto idle = std::count(used.begin(), used.end(), false); idle > 0)
    lines.push_back(fmt::format("{} of {} GPUs had no rank", idle, used.size()));
  for (const JobDescription& job : descriptions_) append(lines, job.source->notes());
  append(lines, compute_notes());
  if (tables_ != nullptr) append(lines, tables_->notes());
  return lines;
}

// Several groups of hosts may have models of the same file.
std::vector<std::string> Simulation::compute_notes() const {
  std::vector<const Kernel*> kernels;
  for (const JobDescription& job : descriptions_) {
    for (const Work& work : job.source->works()) {
      for (const Kernel& kernel : work.kernels) {
        if (kernel.kind != Kernel::Kind::fixed) kernels.push_back(&kernel);
      }
    }
  }
  std::vector<std::string> lines;
  for (std::uint32_t group = 0; group < system_.cluster().groups.size(); ++group) {
    const ComputeModel* model = system_.compute_of_group(group);
    if (model == nullptr) continue;
    for (std::string& line : model->notes(kernels)) {
      if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(std::move(line));
    }
  }
  return lines;
}

void Simulation::finish_files(const Results& results, const RunTexts& texts) {
  if (tables_ != nullptr) tables_->finish(results, texts);
}

}  // namespace netsim
