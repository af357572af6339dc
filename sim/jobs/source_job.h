// SourceJob: the TaskJob that runs the tasks of a TaskSource. Used within sim/jobs only. Its functions are in
// six files. source_job_pause.cpp pauses and moves the job. source_job_launch.cpp takes tasks from ready to
// launched, and source_job_schedule.cpp does so where a task scheduler decides. source_job_waiting.cpp has
// the lines of stall reports, and source_job_circle.cpp finds the ranks that wait for one another.
// source_job.cpp has all else.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/core/event_loop.h"
#include "sim/core/ids.h"
#include "sim/core/index.h"
#include "sim/jobs/circuit_numbers.h"
#include "sim/jobs/job_statistics.h"
#include "sim/jobs/rank_schedule.h"
#include "sim/jobs/rendezvous.h"
#include "sim/jobs/task_job.h"
#include "sim/training/checkpoint/checkpoint.h"

namespace netsim::source_job {

// Group: the GPUs of a group as the executor takes them, and the index of each rank in it.
struct Group {
  std::vector<GpuId> gpus;
  std::vector<std::pair<RankId, std::uint32_t>> places;  // (rank, index), by rank
};

// Active: a task that its rank has received from the source and that has not ended.
struct Active {
  enum class State : std::uint8_t { free, held_back, ready, pausing, launched };
  Task task;
  State state = State::free;
  RankId rank = 0;
  Time posted = 0, start = 0;
  std::uint64_t communication = 0;
  std::uint32_t place = 0;     // index in RankState::active
  std::uint32_t index = 0;     // index of the rank in the group
  std::uint32_t channels = 0;  // channels of the kernel of a communication
  const Group* group = nullptr;
  // Only where a task scheduler launches it: the parts in which it runs, and how many of them have ended.
  std::uint32_t parts = 1, parts_ended = 0;
};

// ActiveTask: names a task that a rank has received: the rank, and the slot of SetState::active.
using ActiveTask = std::pair<std::uint32_t, std::uint32_t>;

struct Membership {
  const Group* group = nullptr;
  std::uint32_t index = 0;
  // Number of the group's collectives and circuit requests that the rank has launched.
  std::uint32_t reached = 0;
};

// StreamQueue: the tasks of one stream of a rank, which are launched one after the other.
struct StreamQueue {
  std::uint32_t under_way = 0;       // running tasks, all of one place
  std::uint32_t next_place = 0;      // all tasks of earlier places were launched
  std::vector<std::uint32_t> ready;  // slots of SetState::active, by place
};

// RankState: the state of one rank, used by its set only.
struct alignas(64) RankState {
  Origin origin;
  std::uint32_t set = 0;
  bool halted = false;
  std::vector<std::uint32_t> active;  // slots of SetState::active
  std::vector<Task> held;             // tasks that hold() keeps from being posted
  std::vector<StreamQueue> queues;
  std::unordered_map<std::uint32_t, Membership> memberships;  // by group; looked up only, never iterated
  RankSchedule schedule;                                      // used only with a task scheduler
};

// SetState: the state that the ranks of one set share.
struct alignas(64) SetState {
  explicit SetState(EventLoop& event_loop) : loop(event_loop) {}
  EventLoop& loop;
  std::vector<Active> active;  // arena
  // The two GPUs of each point-to-point task, by slot of `active`. A deque keeps their addresses, which the
  // executor stores.
  std::deque<std::vector<GpuId>> pairs;
  std::vector<std::uint32_t> free_active;
  std::vector<Task> ready;                             // scratch
  std::vector<std::uint32_t> posted;                   // scratch
  std::vector<Candidate> candidates;                   // scratch
  std::vector<InFlight> in_flight;                     // scratch
  JobRecord::Cause cause = JobRecord::Cause::arrival;  // cause of the tasks that begin in the present event
  RankId decided_by = RankId::none();                  // JobRecord::decided_by of these
};

// SourceJob: runs the tasks of a source, rank by rank. It turns ready tasks into timers and communications
// and returns completions to the source. It changes the state of the rank and its set only; GPUs, durations
// and groups are fixed before and shared.
//
// Records go to the statistics, directly or through a journal. The statistics are read between events only.
class SourceJob final : public TaskJob {
 public:
  SourceJob(const JobRun& run, std::uint32_t number, std::uint32_t first_rank, JobPlan plan,
            JobObserver observer);

  void place(std::vector<GpuId> gpus, const ComputeTimes& times, Time begin,
             std::shared_ptr<const TaskScheduling> scheduling) override;
  std::optional<std::uint32_t> hold() override;
  void move(std::vector<GpuId> gpus, const ComputeTimes& times) override;
  void go_on() override;
  void release() override;
  void set_traffic(std::uint8_t priority, std::uint8_t traffic_class) override;
  void start() override;
  void halt(RankId rank, Time now) override {
    release_gpu(rank);
    statistics_.halt(rank, now);
  }
  void stop(Time now, bool complete) override {
    for (RankId rank = 0; rank < ranks_.size(); ++rank) release_gpu(rank);
    statistics_.stop(now, complete);
  }
  void resume(RankId rank, std::uint64_t argument) override;
  void compute_done(GpuId gpu, std::uint32_t handle) override { complete_compute(gpu, handle); }
  void communication_done(GpuId gpu, const CommunicationRequest& request, Time started) override;
  void arrived(const MemberArrival& arrival) override;
  void decided(const LaunchDecision& decision) override;
  void call_schedulers() override;
  void apply(const JobRecord& record) override { statistics_.apply(record); }
  void apply(const TransferRecord& record, std::span<const PortDelay> ports) override {
    statistics_.apply(record, ports);
  }

  const JobPlan& plan() const override { return plan_; }
  bool begun() const override { return statistics_.opened(); }
  bool done() const override { return statistics_.done(); }
  Time begin_time() const override { return begin_; }
  Time end_time() const override { return statistics_.end_time(); }
  std::uint64_t tasks_done() const override { return statistics_.tasks_done(); }
  std::vector<RankTimes> rank_times(Time until) const override { return statistics_.rank_times(until); }
  const std::vector<Time>& iteration_ends() const override { return statistics_.iteration_ends(); }
  const std::vector<PassedIteration>& passed_iterations() const override {
    return statistics_.passed_iterations();
  }
  Time storage_wait(Time until) const override { return statistics_.storage_wait(until); }
  const std::vector<RankTimes>& warm_up_times() const override { return statistics_.warm_up_times(); }
  const MemoryLedger* memory() const override { return statistics_.memory(); }
  const std::vector<PathSummary>& paths() const override { return statistics_.paths(); }
  SchedulingSummary scheduling() const override;
  std::vector<Stall> stalls() const override;
  std::vector<std::string> waiting(std::size_t limit) const override;
  std::vector<std::string> circle() const override;

 private:
  // The argument of an EventKind::job that calls the task scheduler instead of resuming a task.
  static constexpr std::uint32_t kCallScheduler = kNoIndex;

  SetState& set_of(RankId rank) { return sets_[ranks_[rank].set]; }
  const SetState& set_of(RankId rank) const { return sets_[ranks_[rank].set]; }
  const TaskSource& source() const { return *plan_.source; }

  void prepare();
  void assign_sets();
  void post(RankId rank, const std::vector<Task>& ready);
  std::uint32_t post(SetState& set, RankId rank, const Task& task);
  std::uint32_t open_active(SetState& set, RankId rank, const Task& task);
  void close_active(SetState& set, std::uint32_t slot);
  void validate(RankId rank, const Task& task) const;
  void validate_collective(RankId rank, const Task& task) const;
  [[noreturn]] void refuse(RankId rank, const Task& task, const std::string& message) const {
    refuse_task(source(), rank, task, message);
  }

  void identify(Active& active);
  Membership& membership(RankId rank, const Task& task);
  const Group& map_group(RankId rank, const Task& task);
  Group make_group(RankId rank, const Task& task) const;

  void begin_held_back(SetState& set, std::uint32_t slot);
  void make_ready(SetState& set, std::uint32_t slot);
  void launch_ready(SetState& set, std::uint32_t slot);
  void serve(SetState& set, RankId rank, std::uint32_t queue);
  bool is_next(const SetState& set, const StreamQueue& queue) const;

  // Returns whether a task scheduler launches the task, so that it enters no stream queue.
  bool is_scheduled(const Task& task) const { return plan_.scheduling != nullptr && !has_work(task.kind()); }
  std::uint32_t cut_streams() const;
  const TaskScheduler& scheduler() const { return *plan_.scheduling->scheduler; }
  void add_candidate(SetState& set, std::uint32_t slot);
  Pending pending_of(const SetState& set, std::uint32_t slot) const;
  void complete_candidate(SetState& set, RankSchedule& schedule, Pending pending);
  Bytes part_of(const Task& task, Bytes bytes) const;
  bool is_held(const SetState& set, const Pending& pending) const;
  bool is_held_by_sequence(const Active& first) const;
  bool is_held_by_task(const Active& active) const;
  void release_held(const SetState& set, RankSchedule& schedule);
  void note_end(const SetState& set, RankId rank, TaskId task);
  static void insert(const SetState& set, RankSchedule& schedule, Pending pending);
  void take_turn(const SetState& set, RankSchedule& schedule, const Active& active);
  void call_scheduler(SetState& set, RankId rank);
  void launch_all_parts(SetState& set, RankId rank, std::uint32_t slot, const Launch& launch);
  bool follow_decisions(SetState& set, RankId rank);
  Launch ask_scheduler(SetState& set, RankId rank);
  void call_again(SetState& set, RankId rank, Time time);
  bool is_decided_here(const Active& active) const;
  Candidate candidate_of(const SetState& set, const Pending& pending) const;
  void launch_part(SetState& set, RankId rank, std::size_t candidate, const Launch& launch);
  void start_part(SetState& set, RankId rank, const Pending& pending, const Launch& launch);
  void tell_part_begins(SetState& set, std::uint32_t slot, std::uint64_t operation, bool first);
  void count_launch(const SetState& set, RankId rank, std::size_t candidate);
  void count_part(RankId rank, const Task& task, bool cut);
  void announce_launch(SetState& set, const Active& active, const Launch& launch);
  void part_done(SetState& set, RankId rank, const CommunicationRequest& request, Time started);
  void end_part(SetState& set, std::uint32_t slot, const PartInFlight& part, Time started);
  void drop_parts(RankId rank);

  static Time pause_of(const Task& task) {
    return task.kind() == TaskKind::collective ? task.collective().pause : 0;
  }
  void launch(SetState& set, std::uint32_t slot);
  void pause(SetState& set, std::uint32_t slot);
  void begin(SetState& set, std::uint32_t slot);
  void launch_communication(SetState& set, std::uint32_t slot);
  void ask_for_circuits(SetState& set, std::uint32_t slot);
  void arrive(const SetState& set, std::uint32_t slot, Time delay);
  void wake(const std::vector<MemberArrival>& members);
  const std::vector<GpuId>& members(SetState& set, std::uint32_t slot) const;
  CommunicationRequest request(const Active& active, const std::vector<GpuId>& members,
                               std::uint32_t slot) const;
  // Returns whether the task runs kernels on its GPU. Copies to and from the host use the GPU's copy engines.
  static bool runs_kernels(const Task& task) {
    return is_communication(task) && !is_raw(task) && !is_of_host(task);
  }

  void release_gpu(RankId rank);
  void complete_compute(GpuId gpu, std::uint32_t slot);
  void end_communication(SetState& set, std::uint32_t slot, Time started);
  void complete(SetState& set, std::uint32_t slot, JobRecord::Kind kind, Time start,
                std::uint64_t operation = 0);
  JobRecord record_of(const SetState& set, const Active& active, JobRecord::Kind kind) const;
  void tell(const JobRecord& record) {
    if (*run_.journal) {
      (*run_.journal)(ranks_[record.rank].set, record);
    } else {
      statistics_.apply(record);
    }
  }

  std::vector<std::uint32_t> slots_in_order(RankId rank) const;
  std::vector<RankId> late_peers(const Active& active) const;
  std::string describe(RankId rank, std::uint32_t slot) const;
  Time expected_end(const Active& active) const;
  std::string describe_collective(const Active& active) const;
  std::string describe_circuits(const Active& active) const;
  std::string describe_pause(const Active& active) const;
  std::string describe_held(RankId rank, std::uint32_t slot) const;
  std::string describe_hold(RankId rank, std::uint32_t slot) const;
  std::string describe_part(const Active& active) const;
  std::vector<RankId> missing(const Active& active) const;
  bool has_reached(RankId rank, const Active& active) const;
  bool has_launched_part(RankId rank, const Active& active) const;
  std::string describe_point_to_point(const Active& active) const;

  std::vector<std::string> lines_of(const std::vector<ActiveTask>& circle) const;
  std::vector<ActiveTask> find_circle() const;
  std::vector<ActiveTask> circle_from(ActiveTask first) const;
  std::optional<ActiveTask> blocker(ActiveTask at) const;
  std::optional<ActiveTask> blocker_of_launch(ActiveTask at) const;
  std::optional<ActiveTask> blocker_of_members(const Active& active) const;
  const PartInFlight* holding_part(RankId rank, const Task& task) const;
  std::optional<std::uint64_t> decided_next(RankId rank, GroupId group) const;
  std::optional<ActiveTask> task_of_turn(RankId rank, const Task& task) const;
  std::optional<std::uint32_t> slot_of(RankId rank, std::uint64_t communication) const;
  std::optional<ActiveTask> task_or_first(RankId rank, std::uint64_t communication) const;
  std::optional<ActiveTask> first_task(RankId rank, std::uint32_t besides) const;
  static bool has_slot(const std::vector<Pending>& all, std::uint32_t slot);
  bool is_held(RankId rank, std::uint32_t slot) const;

  JobRun run_;
  std::uint32_t number_;      // number of the job in its run
  std::uint32_t first_rank_;  // among the run's ranks: the target of EventKind::job is this plus the rank
  JobPlan plan_;
  std::uint32_t hold_from_ = UINT32_MAX;       // tasks of this iteration and later ones are held
  std::optional<std::uint8_t> traffic_class_;  // of all its messages; empty: that of each task
  SchedulingSummary released_;                 // scheduling() after release()
  Time begin_;                  // of the ranks: the arrival, or later for a job that waited for GPUs
  const Resumable* resumable_;  // the source; null: it cannot resume from a checkpoint
  JobStatistics statistics_;
  const CircuitNumbers circuits_;
  Rendezvous rendezvous_;  // used between events only
  std::vector<SetState> sets_;
  std::vector<RankState> ranks_;
  // By group. The first rank that uses a group adds it; entries never move and never change.
  std::map<std::uint32_t, Group> groups_;
  std::mutex groups_mutex_;
};

}  // namespace netsim::source_job
