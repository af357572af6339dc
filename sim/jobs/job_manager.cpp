#include "sim/jobs/job_manager.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/core/input_file.h"
#include "sim/core/registry.h"
#include "sim/scheduling/placement.h"
#include "sim/workload/memory_plan.h"

namespace netsim {
namespace {

// Returns the ranks of a job that are GPUs.
std::uint32_t gpu_ranks(const JobDescription& job, const std::vector<std::uint32_t>& gpus) {
  return static_cast<std::uint32_t>(gpus.size()) - job.source->storage_ranks();
}

// Returns the kind of host to name in an error: this one, if its hosts can have CPUs, or one that can.
std::string kind_with_cpus(const std::string& kind) {
  const ComponentInfo* info = Catalogue::instance().find(Host::kComponentKind, kind);
  const bool can = info != nullptr && std::any_of(info->parameters.begin(), info->parameters.end(),
                                                  [](const ParameterInfo& p) { return p.name == "cpus"; });
  return can ? kind : "dgx_h100";
}

}  // namespace

JobManager::JobManager(const Environment& environment, std::vector<JobDescription> jobs)
    : environment_(environment), jobs_(environment.jobs), descriptions_(std::move(jobs)) {
  const ConfigNode& root = environment_.configuration;
  const Cluster& cluster = environment_.cluster;
  connect_arrivals();
  const GpuParameters gpus = gpu_parameters().parse(section_of(root, "gpus"));
  overcommit_memory_ = gpus.overcommit_memory;
  variation_ = {{}, gpus.jitter, read_stragglers(gpus.stragglers, cluster)};
  if (gpus.variation > 0) {
    variation_.slowness =
        slowness_of_gpus(static_cast<std::uint32_t>(cluster.gpus.size()), gpus.variation, environment_.seed);
  }
  const std::vector<bool> none(cluster.gpus.size(), false);
  GpuUse use{none, none};
  for (const JobDescription& job : descriptions_) place(job, use);
  recovery_ =
      std::make_unique<Recovery>(environment_.engine, cluster, jobs_, read_failures(gpus.failures, cluster),
                                 [this](Recovery::Rest rest) { add_rest(std::move(rest)); });
}

// Connects the arrivals at rendezvous to the engine. The call delay is set only if a job has
// such tasks, because it shortens the engine's windows.
void JobManager::connect_arrivals() {
  Engine& engine = environment_.engine;
  arrivals_ = std::make_unique<JournalOf<MemberArrival, JobSet>>(jobs_, &JobSet::arrived);
  const std::uint32_t reader = engine.add_reader(*arrivals_);
  jobs_.set_rendezvous(
      [&engine, reader](std::uint32_t set, Time time, Origin& origin, const MemberArrival& arrival) {
        engine.set(set).ask_call(time, origin, reader, arrival);
      },
      environment_.circuits);
  Time delay = kNever;
  for (const JobDescription& job : descriptions_) {
    if (const Time pause = job.source->least_pause(); pause > 0) delay = std::min(delay, pause);
    if (!job.source->circuits().empty() && environment_.circuits != nullptr)
      delay = std::min(delay, environment_.circuits->request_latency());
  }
  if (delay != kNever) engine.set_call_delay(delay);
}

void JobManager::place(const JobDescription& job, GpuUse& use) {
  const Cluster& cluster = environment_.cluster;
  if (job.source->ranks() > cluster.gpus.size()) {
    throw InputError(fmt::format("{}: the workload has {} ranks, the cluster only {} GPUs ({} hosts)",
                                 job.file, job.source->ranks(), cluster.gpus.size(), cluster.host_count));
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
  for (const GpuId gpu : placed.gpus) (placed.shared ? use.shared : use.taken)[gpu] = true;
  std::uint32_t left = storage;
  for (GpuId gpu = 0; left > 0 && gpu < not_free.size(); ++gpu) {
    if (!cluster.is_drives(gpu)) continue;
    placed.gpus.push_back(gpu);
    --left;
  }
  require_memory(job, placed.gpus);
  require_cpus(job, placed.gpus);
  add(job, std::move(placed.gpus));
}

void JobManager::add(const JobDescription& job, std::vector<std::uint32_t> gpus) {
  times_.push_back(environment_.models.times({job.name, job.file, job.source->works(), gpus}, variation_,
                                             environment_.seed));
  jobs_.add(
      {job.name, job.source.get(), times_.back().get(), std::move(gpus), job.arrival, job.priority, nullptr});
}

// Adds the rest of a stopped job as a job of its own.
void JobManager::add_rest(Recovery::Rest rest) {
  JobDescription job;
  job.name = std::move(rest.name);
  job.source = std::move(rest.source);
  job.arrival = environment_.engine.now();
  job.priority = descriptions_[rest.before].priority;
  job.file = descriptions_[rest.before].file;
  if (on_job_added_) on_job_added_(job);
  add(job, std::move(rest.gpus));
  descriptions_.push_back(std::move(job));
}

// Throws InputError for a job whose tensors do not fit into the memory of its GPUs.
void JobManager::require_memory(const JobDescription& job, const std::vector<std::uint32_t>& gpus) const {
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
void JobManager::require_cpus(const JobDescription& job, const std::vector<std::uint32_t>& gpus) const {
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

void JobManager::begin() {
  recovery_->begin();  // before the jobs, so that a host that fails at a job's arrival has failed for it
  for (JobId job = 0; job < jobs_.size(); ++job) {
    const Time arrival = jobs_.job(job).plan().arrival;
    if (arrival == 0) {
      recovery_->start(job);
    } else {
      environment_.engine.call_at(arrival, [this, job] { recovery_->start(job); });
    }
  }
}

bool JobManager::is_pending() const {
  if (recovery_->is_pending()) return true;
  for (JobId job = 0; job < jobs_.size(); ++job) {
    if (!jobs_.job(job).begun()) return true;
  }
  return false;
}

}  // namespace netsim
