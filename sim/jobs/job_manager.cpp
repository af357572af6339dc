#include "sim/jobs/job_manager.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/core/input_file.h"
#include "sim/core/registry.h"
#include "sim/jobs/make_task_scheduling.h"
#include "sim/workload/memory_plan.h"

namespace netsim {
namespace {

// Returns the kind of host to name in an error: this one, if its hosts can have CPUs, or one that can.
std::string kind_with_cpus(const std::string& kind) {
  const ComponentInfo* info = Catalogue::instance().find(Host::kComponentKind, kind);
  const bool can = info != nullptr && std::any_of(info->parameters.begin(), info->parameters.end(),
                                                  [](const ParameterInfo& p) { return p.name == "cpus"; });
  return can ? kind : "dgx_h100";
}

// Returns a function by which an event of a set announces a record for a later time. The engine then passes
// the record to the reader, between events.
template <class Record>
auto announce_to(Engine& engine, JournalReader& reader) {
  return [&engine, number = engine.add_reader(reader)](std::uint32_t set, Time time, Origin& origin,
                                                       const Record& record) {
    engine.set(set).ask_call(time, origin, number, record);
  };
}

}  // namespace

JobManager::JobManager(const Environment& environment, std::vector<JobDescription> jobs)
    : environment_(environment), jobs_(environment.jobs), descriptions_(std::move(jobs)) {
  const ConfigNode& root = environment_.configuration;
  const Cluster& cluster = environment_.cluster;
  scheduling_ = scheduling_parameters().parse(section_of(root, "scheduling"));
  scheduler_ = Registry<JobScheduler>::instance().create(scheduling_.jobs, "fifo");
  const JobNeeds needs = scheduler_->needs();
  views_ = views_for(
      section_of(root, "scheduling"), scheduling_.views, needs.views, needs.required,
      fmt::format("job scheduler '{}'", Registry<JobScheduler>::component_name(scheduling_.jobs, "fifo")));
  scheduler_->set_views(views_);
  is_managed_ = !scheduling_.jobs.is_null() || std::any_of(descriptions_.begin(), descriptions_.end(),
                                                           [](const auto& job) { return job.at_begin; });
  check_needs();
  connect_arrivals();
  connect_decisions();
  const GpuParameters gpus = gpu_parameters().parse(section_of(root, "gpus"));
  overcommit_memory_ = gpus.overcommit_memory;
  variation_ = {{}, gpus.jitter, read_stragglers(gpus.stragglers, cluster)};
  if (gpus.variation > 0) {
    variation_.slowness =
        slowness_of_gpus(static_cast<std::uint32_t>(cluster.gpus.size()), gpus.variation, environment_.seed);
  }
  add_all();
  std::vector<HostFailure> failures = read_failures(gpus.failures, cluster);
  recovery_ = std::make_unique<Recovery>(environment_.engine, cluster, jobs_, std::move(failures),
                                         [this](Recovery::Rest rest) { add_rest(std::move(rest)); });
  if (has_queue_) open_queue();
  open_phases();
}

// Connects the arrivals at rendezvous to the engine. The call delay is set only if a job has
// such tasks, because it shortens the engine's windows.
void JobManager::connect_arrivals() {
  Engine& engine = environment_.engine;
  arrivals_ = std::make_unique<JournalOf<MemberArrival, JobSet>>(jobs_, &JobSet::arrived);
  jobs_.set_rendezvous(announce_to<MemberArrival>(engine, *arrivals_), environment_.circuits);
  Time delay = kNever;
  for (const JobDescription& job : descriptions_) {
    if (const Time pause = job.source->least_pause(); pause > 0) delay = std::min(delay, pause);
    if (!job.source->circuits().empty() && environment_.circuits != nullptr)
      delay = std::min(delay, environment_.circuits->request_latency());
  }
  if (!scheduling_.tasks.is_null() && scheduling_.agreed) delay = std::min(delay, scheduling_.latency);
  if (delay != kNever) engine.set_call_delay(delay);
}

// Connects the decisions of task schedulers about collectives to the engine.
void JobManager::connect_decisions() {
  decisions_ = std::make_unique<JournalOf<LaunchDecision, JobSet>>(jobs_, &JobSet::decided);
  jobs_.set_decisions(announce_to<LaunchDecision>(environment_.engine, *decisions_));
}

// ---- Placement

// Returns the ranks of a job that are GPUs, 0 for a job without GPUs.
std::uint32_t JobManager::gpu_ranks(const JobDescription& job, const std::vector<GpuId>& gpus) {
  if (gpus.empty()) return 0;
  return static_cast<std::uint32_t>(gpus.size()) - job.source->storage_ranks();
}

void JobManager::add_all() {
  states_.resize(descriptions_.size());
  std::optional<std::vector<PlacedRanks>> placed;
  if (!is_managed_) placed = place_together();
  has_queue_ = !placed.has_value();
  if (!placed) placed = is_managed_ ? place_or_leave_out() : place_one_by_one();
  for (JobId job = 0; job < descriptions_.size(); ++job) {
    shares_.push_back((*placed)[job].shared);
    idle_.push_back(std::move((*placed)[job].idle));
    add(descriptions_[job], std::move((*placed)[job].gpus));
    if (states_[job].stage == Stage::never_fits) jobs_.drop(job);
  }
}

// Marks the GPUs of a job as used. `idle` are those that nobody may have while it holds its own.
void JobManager::mark(const JobDescription& job, const std::vector<GpuId>& gpus, bool shared,
                      const std::vector<GpuId>& idle, GpuUse& use) {
  for (RankId rank = 0; rank < gpu_ranks(job, gpus); ++rank)
    (shared ? use.shared : use.taken)[gpus[rank]] = true;
  for (const GpuId gpu : idle) use.taken[gpu] = true;
}

void JobManager::mark(const JobDescription& job, const PlacedRanks& placed, GpuUse& use) {
  mark(job, placed.gpus, placed.shared, placed.idle, use);
}

// Returns the GPUs of all jobs, or nothing if they do not fit together.
std::optional<std::vector<PlacedRanks>> JobManager::place_together() const {
  GpuUse use = no_use();
  std::vector<PlacedRanks> all;
  for (const JobDescription& job : descriptions_) {
    std::optional<PlacedRanks> placed = place_if_free(job, use);
    if (!placed) return std::nullopt;
    mark(job, *placed, use);
    all.push_back(std::move(*placed));
  }
  return all;
}

// Places each job as if it were alone. Throws where that is not possible.
std::vector<PlacedRanks> JobManager::place_one_by_one() const {
  std::vector<PlacedRanks> all;
  for (const JobDescription& job : descriptions_) all.push_back(place(job, no_use()));
  return all;
}

// Places each job as if it were alone, and leaves out those that lack GPUs. If that is all of them, throws
// what is wrong with the first. Jobs whose state is made at their begin have no GPUs before.
std::vector<PlacedRanks> JobManager::place_or_leave_out() {
  std::vector<PlacedRanks> all;
  std::size_t left_out = 0;
  for (JobId job = 0; job < descriptions_.size(); ++job) {
    const auto leave_out = [&](const Error& error) {
      states_[job].stage = Stage::never_fits;
      states_[job].why = error.what();
      ++left_out;
    };
    PlacedRanks placed;
    try {
      placed = find_gpus(descriptions_[job], no_use());
    } catch (const ConfigError& error) {
      leave_out(error);
    } catch (const InputError& error) {
      leave_out(error);
    }
    require_memory(descriptions_[job], placed.gpus);
    require_cpus(descriptions_[job], placed.gpus);
    if (descriptions_[job].at_begin) placed.gpus.clear();
    all.push_back(std::move(placed));
  }
  if (left_out == descriptions_.size()) place(descriptions_.front(), no_use());
  return all;
}

// Returns nothing if the placement fails, which for a job that can run alone means that GPUs are not free.
std::optional<PlacedRanks> JobManager::place_if_free(const JobDescription& job, const GpuUse& use) const {
  PlacedRanks placed;
  try {
    placed = find_gpus(job, use);
  } catch (const ConfigError&) {
    return std::nullopt;
  } catch (const InputError&) {
    return std::nullopt;
  }
  require_memory(job, placed.gpus);
  require_cpus(job, placed.gpus);
  return placed;
}

PlacedRanks JobManager::place(const JobDescription& job, const GpuUse& use) const {
  PlacedRanks placed = find_gpus(job, use);
  require_memory(job, placed.gpus);
  require_cpus(job, placed.gpus);
  return placed;
}

// Returns the GPU of each rank, drives included. Throws if they are not free.
PlacedRanks JobManager::find_gpus(const JobDescription& job, const GpuUse& use) const {
  const Cluster& cluster = environment_.cluster;
  if (job.source->ranks() > cluster.gpus.size()) {
    throw InputError(fmt::format("{}: {}the workload has {} ranks, the cluster only {} GPUs ({} hosts)",
                                 job.file, descriptions_.size() > 1 ? "job '" + job.name + "': " : "",
                                 job.source->ranks(), cluster.gpus.size(), cluster.host_count));
  }
  const ConfigNode& node =
      job.placement.is_null() ? section_of(environment_.configuration, "placement") : job.placement;
  const std::uint32_t storage = job.source->storage_ranks();
  std::vector<bool> not_free = use.taken;  // drives are no GPUs for a job that uses them as storage
  for (GpuId gpu = 0; storage > 0 && gpu < not_free.size(); ++gpu)
    not_free[gpu] = not_free[gpu] || cluster.is_drives(gpu);
  PlacementView view{cluster, not_free, job.source->ranks() - storage, {}, job.name, environment_.seed};
  for (const RankAxis& axis : job.source->axes()) view.axes.emplace_back(axis.name, axis.size);
  const auto find = [&] { return place_ranks(node, view, use.shared); };
  PlacedRanks placed = job.placement.is_null() ? find() : as_input(find);
  std::uint32_t left = storage;
  for (GpuId gpu = 0; left > 0 && gpu < not_free.size(); ++gpu) {
    if (!cluster.is_drives(gpu)) continue;
    placed.gpus.push_back(gpu);
    --left;
  }
  return placed;
}

void JobManager::add(const JobDescription& job, std::vector<GpuId> gpus) {
  times_.push_back(gpus.empty() ? nullptr : times_of(job, gpus));
  std::shared_ptr<const TaskScheduling> scheduling;
  if (!gpus.empty())
    scheduling = make_task_scheduling(scheduling_, job, *times_.back(), environment_.cluster, gpus);
  jobs_.add({job.name, job.source.get(), times_.back().get(), std::move(gpus), job.arrival, job.priority,
             std::move(scheduling), job.traffic_class});
}

std::unique_ptr<ComputeTimes> JobManager::times_of(const JobDescription& job,
                                                   const std::vector<GpuId>& gpus) const {
  return environment_.models.times({job.name, job.file, job.source->works(), gpus}, variation_,
                                   environment_.seed);
}

// Adds the rest of a stopped job as a job of its own. Schedulers know as much of an iteration as before.
void JobManager::add_rest(Recovery::Rest rest) {
  const JobDescription& before = descriptions_[rest.before];
  JobDescription job;
  job.name = std::move(rest.name);
  job.source = std::move(rest.source);
  job.arrival = environment_.engine.now();
  job.priority = before.priority;
  job.traffic_class = before.traffic_class;
  job.file = before.file;
  job.placement = before.placement;
  job.weight = before.weight;
  job.deadline = before.deadline;
  job.vc = before.vc;
  job.phases = before.phases;
  if (before.duration > 0) job.duration = told_iteration(rest.before) * job.source->iterations().value_or(1);
  if (on_job_added_) on_job_added_(job);
  add(job, std::move(rest.gpus));
  shares_.push_back(shares_[rest.before]);
  idle_.push_back(std::vector(idle_[rest.before]));
  descriptions_.push_back(std::move(job));
  states_.emplace_back().stage = Stage::running;
  if (has_queue_) let_rest_live(rest.before);
}

// Throws InputError for a job whose tensors do not fit into the memory of its GPUs.
void JobManager::require_memory(const JobDescription& job, const std::vector<GpuId>& gpus) const {
  const MemoryPlan* plan = job.source->memory();
  if (plan == nullptr || overcommit_memory_) return;
  const Cluster& cluster = environment_.cluster;
  const std::vector<MemoryPeak> planned = plan->planned();
  for (RankId rank = 0; rank < gpu_ranks(job, gpus); ++rank) {
    const MemoryUse& use = planned[plan->role(rank)].use;
    const Bytes capacity = environment_.models.memory_of(gpus[rank]);
    if (capacity == 0 || use.total() <= capacity) continue;
    throw InputError(
        Place{job.file, 0, 0, ""},
        fmt::format("rank {} does not fit into the {} of its GPU {}: it needs {} (allowed: less, or "
                    "gpus.overcommit_memory)",
                    rank, gibibytes(capacity), cluster.graph.node(cluster.gpus[gpus[rank]].node).name,
                    use.text()));
  }
}

// Throws InputError if a rank of a job that copies to host memory has no path there.
void JobManager::require_cpus(const JobDescription& job, const std::vector<GpuId>& gpus) const {
  if (!job.source->uses_hosts() || !environment_.packet_network) return;
  const Cluster& cluster = environment_.cluster;
  for (RankId rank = 0; rank < gpu_ranks(job, gpus); ++rank) {
    if (!cluster.way_inside(gpus[rank], gpus[rank]).empty()) continue;
    const std::string& kind = cluster.group_of(gpus[rank]).kind;
    throw InputError(
        Place{job.file, 0, 0, ""},
        fmt::format(
            "rank {} offloads to its host's memory, and {} has no way to a CPU: hosts {} have none "
            "(allowed: {} with cpus, or hosts that have CPUs in any case, as pcie_server, dgx_1v, gb200)",
            rank, cluster.graph.node(cluster.gpus[gpus[rank]].node).name, kind, kind_with_cpus(kind)));
  }
}

}  // namespace netsim
