#include "sim/jobs/make_task_scheduling.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/errors.h"
#include "sim/jobs/launch_check.h"
#include "sim/jobs/make_task_scheduler.h"
#include "sim/jobs/profile_builder.h"
#include "sim/scheduling/task/operation_graph.h"

namespace netsim {
namespace {

// LinkEstimate: estimates communications by the rate of their GPU's links. These are the links of its NIC if
// the members are on several hosts, and those inside the host otherwise. Congestion and start-up times are
// left out.
class LinkEstimate {
 public:
  LinkEstimate(const Cluster& cluster, const TaskSource& source, const std::vector<GpuId>& gpus)
      : cluster_(cluster), source_(source), gpus_(gpus) {}

  Time operator()(RankId rank, const Task& task) const {
    const Gpu& gpu = cluster_.gpus[gpus_[rank]];
    bool leaves = false;
    Bytes traffic = task.bytes();
    if (task.kind() == TaskKind::collective) {
      const std::vector<RankId>& group = source_.group(task.group());
      for (const RankId member : group) leaves = leaves || host_of(member) != gpu.host;
      const auto members = static_cast<Bytes>(group.size());
      traffic = traffic_of(task.collective().collective, task.bytes()) / members * (members - 1);
    } else if (is_point_to_point(task)) {
      leaves = host_of(task.message().peer) != gpu.host;
    }
    const BitRate nic = cluster_.nic_rate(gpu.nic), local = cluster_.local_rate(gpus_[rank]);
    const BitRate rate = leaves || local == 0 ? nic : local;
    return rate > 0 ? transmission_time(traffic, rate) : 0;
  }

 private:
  std::uint32_t host_of(RankId rank) const { return cluster_.gpus[gpus_[rank]].host; }
  const Cluster& cluster_;
  const TaskSource& source_;
  const std::vector<GpuId>& gpus_;
};

// Sets ProfileTask::leaves_host of all communications.
void find_what_leaves_hosts(JobProfile& profile, const Cluster& cluster, const std::vector<GpuId>& gpus) {
  const auto host = [&](std::uint32_t task) { return cluster.gpus[gpus[profile.tasks[task].rank]].host; };
  for (std::uint32_t i = 0; i < profile.communications(); ++i) {
    const auto members = profile.members.of(i);
    const bool leaves = std::any_of(members.begin(), members.end(), [&](std::uint32_t member) {
      return host(member) != host(members.front());
    });
    for (const std::uint32_t member : members) profile.tasks[member].leaves_host = leaves;
  }
}

// Enters a plan in tables by rank and position.
class PlanTables {
 public:
  PlanTables(const JobProfile& profile, const TaskSource& source)
      : profile_(profile), tables_(sizes_of(source)) {}

  LaunchTables make(const LaunchPlan& plan) {
    for (std::size_t i = 0; i < plan.order.size(); ++i) {
      for_each_member(static_cast<std::uint32_t>(i), [&](const ProfileTask& task) {
        tables_.set_order(task.rank, task.position, plan.order[i]);
      });
    }
    for (std::size_t i = 0; i < plan.links.size(); ++i) {
      for_each_member(static_cast<std::uint32_t>(i), [&](const ProfileTask& task) {
        tables_.set_links(task.rank, task.position, plan.links[i]);
      });
    }
    for (const std::vector<std::uint32_t>& bucket : plan.fused) add_bucket(bucket);
    for (std::uint32_t number = 0; number < plan.sequences.size(); ++number)
      add_sequence(number, plan.sequences[number]);
    for (const LaunchPlan::Hold& hold : plan.holds) {
      const ProfileTask& until = profile_.tasks[hold.task];
      for_each_member(hold.communication, [&](const ProfileTask& task) {
        if (task.rank == until.rank) tables_.add_hold(task.rank, task.position, until.position);
      });
    }
    return std::move(tables_);
  }

 private:
  static std::vector<std::uint32_t> sizes_of(const TaskSource& source) {
    std::vector<std::uint32_t> sizes;
    for (RankId rank = 0; rank < source.ranks(); ++rank)
      sizes.push_back(static_cast<std::uint32_t>(source.graph(rank, {})->tasks.size()));
    return sizes;
  }

  template <class Visit>
  void for_each_member(std::uint32_t communication, const Visit& visit) const {
    for (const std::uint32_t task : profile_.members.of(communication)) visit(profile_.tasks[task]);
  }

  // The first communication of a bucket, in the order of the program, stands for it in sequences.
  void add_bucket(const std::vector<std::uint32_t>& bucket) {
    if (bucket.size() < 2) return;
    const std::uint32_t number = buckets_++;
    tables_.set_bucket_size(number, static_cast<std::uint32_t>(bucket.size()));
    for (const std::uint32_t communication : bucket) {
      buckets_of_[communication] = &bucket;
      for_each_member(communication,
                      [&](const ProfileTask& task) { tables_.set_bucket(task.rank, task.position, number); });
    }
  }

  void add_sequence(std::uint32_t number, const std::vector<std::uint32_t>& sequence) {
    tables_.set_sequence_size(number, static_cast<std::uint32_t>(sequence.size()));
    for (std::uint32_t turn = 0; turn < sequence.size(); ++turn) {
      const auto bucket = buckets_of_.find(sequence[turn]);
      const std::vector<std::uint32_t> alone{sequence[turn]};
      for (const std::uint32_t communication : bucket == buckets_of_.end() ? alone : *bucket->second) {
        for_each_member(communication, [&](const ProfileTask& task) {
          tables_.set_turn(task.rank, task.position, number, turn);
        });
      }
    }
  }

  const JobProfile& profile_;
  LaunchTables tables_;
  std::uint32_t buckets_ = 0;
  std::map<std::uint32_t, const std::vector<std::uint32_t>*> buckets_of_;  // by communication
};

// Returns the waits that a plan adds between tasks. Each communication of a sequence waits for the one
// before, which is launched and so ends if all that it waits for does.
std::vector<AdjacencyList::Edge> waits_of(const LaunchPlan& plan, const JobProfile& profile) {
  std::vector<AdjacencyList::Edge> waits;
  for (const std::vector<std::uint32_t>& sequence : plan.sequences) {
    for (std::size_t i = 1; i < sequence.size(); ++i)
      waits.emplace_back(profile.members.of(sequence[i - 1]).front(),
                         profile.members.of(sequence[i]).front());
  }
  for (const LaunchPlan::Hold& hold : plan.holds) {
    for (const std::uint32_t task : profile.members.of(hold.communication)) {
      if (profile.tasks[task].rank == profile.tasks[hold.task].rank) waits.emplace_back(hold.task, task);
    }
  }
  return waits;
}

// Refuses a plan with which tasks wait for one another for ever.
void refuse_circle(const LaunchPlan& plan, const JobProfile& profile, const std::string& scheduler,
                   const Place& place) {
  if (plan.sequences.empty() && plan.holds.empty()) return;
  const std::vector<std::uint32_t> circle = OperationGraph(profile, waits_of(plan, profile)).circle();
  if (circle.empty()) return;
  std::string tasks;
  for (std::size_t i = 0; i < circle.size() && i < 4; ++i) {
    const ProfileTask& task = profile.tasks[circle[i]];
    tasks += fmt::format("{}task {} of rank {}", i == 0 ? "" : ", ", task.position, std::uint32_t{task.rank});
  }
  throw ConfigError(place,
                    fmt::format("the plan of task scheduler '{}' lets tasks wait for one another in a "
                                "circle of {}: {}{}; use one that decides during the run, such as fifo",
                                scheduler, circle.size(), tasks, circle.size() > 4 ? ", ..." : ""));
}

}  // namespace

std::optional<JobProfile> profile_on(const JobDescription& job, const ComputeTimes& times,
                                     const Cluster& cluster, const std::vector<GpuId>& gpus) {
  std::optional<JobProfile> profile = build_job_profile(
      *job.source, times, LinkEstimate(cluster, *job.source, gpus), Place{job.file, 0, 0, ""});
  if (profile) find_what_leaves_hosts(*profile, cluster, gpus);
  return profile;
}

std::shared_ptr<const TaskScheduling> make_task_scheduling(const SchedulingParameters& parameters,
                                                           const JobDescription& job,
                                                           const ComputeTimes& times, const Cluster& cluster,
                                                           const std::vector<GpuId>& gpus) {
  if (parameters.tasks.is_null()) return nullptr;
  auto scheduling = std::make_shared<TaskScheduling>();
  scheduling->scheduler = make_task_scheduler(parameters.tasks);
  scheduling->name = task_scheduler_name(parameters.tasks);
  scheduling->agreed = parameters.agreed;
  scheduling->latency = parameters.latency;
  const Place place{job.file, 0, 0, ""};
  if (scheduling->scheduler->needs().profile) {
    const TaskSource& source = *job.source;
    const auto profile = profile_on(job, times, cluster, gpus);
    if (!profile) {
      throw ConfigError(
          parameters.tasks.place(),
          fmt::format("task scheduler '{}' needs the dependencies of all tasks before the run, and "
                      "the workload of job '{}' does not tell them (allowed: workloads of programs, "
                      "as ptdp, layers, tasks and .pb; or fifo and preferred)",
                      scheduling->name, job.name));
    }
    const LaunchPlan plan = scheduling->scheduler->plan(*profile);
    refuse_circle(plan, *profile, scheduling->name, parameters.tasks.place());
    scheduling->tables = PlanTables(*profile, source).make(plan);
  }
  check_launches(*job.source, scheduling, place);
  return scheduling;
}

}  // namespace netsim
