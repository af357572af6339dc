// JobSet: the jobs of one run. It passes each job its own events only. A job's ids, random streams and events
// do not depend on the other jobs, except through the GPUs, links and queues that they share.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/ids.h"
#include "sim/jobs/task_job.h"

namespace netsim {

class JobSet final : private CommunicationListener, private ComputeListener {
 public:
  // GPU g runs in loops[set_of_gpu[g]]; both vectors are copied. The constructor sets the loops' handler of
  // EventKind::job and becomes the listener of executor and devices. It uses the origins first_origin + rank,
  // over all ranks of all jobs.
  JobSet(std::vector<EventLoop*> loops, std::vector<std::uint32_t> set_of_gpu, Executor& executor,
         ComputeDevices& devices, std::uint32_t first_origin, JobObserver observer);
  JobSet(const JobSet&) = delete;
  JobSet& operator=(const JobSet&) = delete;

  // Sets how ranks announce arrivals, and the switches that jobs may ask for circuits (null: there are none).
  // Must be called before the first job is added.
  void set_rendezvous(AnnounceArrival announce, CircuitControl* circuits) {
    announce_ = std::move(announce);
    run_.circuits = circuits;
  }
  // Sets how ranks announce decisions about collectives. Must be called before the first job is added.
  void set_decisions(AnnounceDecision announce) { announce_decision_ = std::move(announce); }
  void decided(const LaunchDecision& decision) { jobs_[decision.job]->decided(decision); }
  // Calls the task schedulers of all jobs once more, because nothing is pending (TaskJob::call_schedulers).
  void call_schedulers() {
    for (const auto& job : jobs_) job->call_schedulers();
  }
  // Handles an announced arrival at its time.
  void arrived(const MemberArrival& arrival) { jobs_[arrival.job]->arrived(arrival); }

  // Adds a job and returns it; jobs are numbered in order of the calls. Must be called between events. Throws
  // InputError for circuits that do not exist.
  const Job& add(JobPlan plan);
  // Gives a job that has not begun other GPUs, with their durations, and a begin after its arrival. Must be
  // called between events; `times` must outlive the job. `scheduling` is that of a job that had no GPUs.
  void place(JobId job, std::vector<GpuId> gpus, const ComputeTimes& times, Time begin,
             std::shared_ptr<const TaskScheduling> scheduling = nullptr) {
    jobs_[job]->place(std::move(gpus), times, begin, std::move(scheduling));
  }
  // These pause a job between two iterations, move it while it is at rest, and let it go on (TaskJob). Must
  // be called between events.
  std::optional<std::uint32_t> hold(JobId job) { return jobs_[job]->hold(); }
  void move(JobId job, std::vector<GpuId> gpus, const ComputeTimes& times) {
    jobs_[job]->move(std::move(gpus), times);
  }
  void go_on(JobId job);
  // Frees what only a running job needs. The job is done, and its results stay.
  void release(JobId job) { jobs_[job]->release(); }
  // Leaves a job out that will never begin: done() does not wait for it.
  void drop(JobId job) { dropped_[job] = true; }
  void set_traffic(JobId job, std::uint8_t priority, std::uint8_t traffic_class) {
    jobs_[job]->set_traffic(priority, traffic_class);
  }
  // Sets a callback for the end of a job, whether it is done or was stopped. start(), stop() and apply() call
  // it between events, at least once for each job that ends.
  void on_end(std::function<void(JobId)> callback) { on_end_ = std::move(callback); }
  // Begins the job at its begin time: now() of all loops is that time, and no set runs.
  void start(JobId job);

  // Stop a rank, or a whole job, which is then over, at time `now`. Must be called between events, like
  // start(). `complete` means that no part of the job has to be repeated. A rank that is halted before
  // start() never begins.
  void halt(JobId job, RankId rank, Time now) { jobs_[job]->halt(rank, now); }
  void stop(JobId job, Time now, bool complete) {
    jobs_[job]->stop(now, complete);
    note_end(job);
  }

  std::uint32_t size() const { return static_cast<std::uint32_t>(jobs_.size()); }
  const Job& job(std::uint32_t number) const { return *jobs_[number]; }
  // Returns the number of ranks of all jobs.
  std::uint32_t ranks() const { return static_cast<std::uint32_t>(rank_of_.size()); }
  bool done() const;
  std::uint64_t tasks_done() const;
  Time end_time() const;  // end of the last task of any job

  // Sends all further records to the journal instead of the statistics. The owner of the journals passes the
  // records of all sets to apply(), in order of time and of events, while no set runs. Without a journal all
  // sets must run in one thread, event by event in order.
  void set_journal(JobJournal journal) { journal_ = std::move(journal); }
  void apply(const JobRecord& record) {
    jobs_[record.job]->apply(record);
    note_end(record.job);
  }
  // Sends the executor's records of transfers to a journal too, if JobObserver::path asks for critical paths.
  // They are passed to apply_transfer() in the same order.
  using TransferJournal =
      std::function<void(std::uint32_t set, const TransferRecord& record, std::span<const PortDelay> ports)>;
  void set_transfer_journal(TransferJournal journal) { transfer_journal_ = std::move(journal); }
  void apply_transfer(const TransferRecord& record, std::span<const PortDelay> ports) {
    jobs_[record.job]->apply(record, ports);
  }

  // Returns the communications that wait for a rank to launch them, by job and rank.
  std::vector<Stall> stalls() const;
  // Returns one line for each wait of an unfinished rank, with the job's name if there are several jobs.
  std::vector<std::string> waiting(std::size_t limit) const;

 private:
  void communication_done(GpuId gpu, const CommunicationRequest& request, Time started) override {
    jobs_[request.traits.job]->communication_done(gpu, request, started);
  }
  void compute_done(GpuId gpu, JobId job, std::uint32_t handle) override {
    jobs_[job]->compute_done(gpu, handle);
  }
  void job_event(const Event& event);
  void begin_now(JobId job, void (TaskJob::*begin)());
  void skip_ended() const;
  void note_end(JobId job) const {
    if (!on_end_ && !tells_executor_) return;
    if (!jobs_[job]->done()) return;
    if (tells_executor_) run_.executor->end_job(job);
    if (on_end_) on_end_(job);
  }

  std::vector<EventLoop*> loops_;
  std::vector<std::uint32_t> set_of_gpu_;
  JobJournal journal_;
  AnnounceArrival announce_;
  AnnounceDecision announce_decision_;
  TransferJournal transfer_journal_;
  std::function<void(JobId)> on_end_;  // empty: nobody asks
  bool tells_executor_ = false;        // Executor::ends_matter
  JobRun run_;
  JobObserver observer_;
  std::vector<std::unique_ptr<TaskJob>> jobs_;
  std::vector<bool> dropped_;  // by job: it will never begin
  // The jobs before ended_ are done or dropped, and have ended so many tasks. Runs of many jobs ask often.
  mutable std::uint32_t ended_ = 0;
  mutable std::uint64_t tasks_of_ended_ = 0;
  std::uint32_t begun_ = 0;  // no job from here on has begun
  // The job and the rank in that job of each rank of the run.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> rank_of_;
};

}  // namespace netsim
