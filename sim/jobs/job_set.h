// JobSet: the jobs of one run. It tells each job what concerns it, and nothing of the others: a job's ids,
// random streams and events do not depend on who else is there, only on the GPUs, links and queues they
// share.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/jobs/task_job.h"

namespace netsim {

class JobSet final : private CommunicationListener, private ComputeListener {
 public:
  // GPU g runs in loops[set_of_gpu[g]]; both vectors are copied. Handles EventKind::job of the loops, and is
  // the listener of executor and devices. Origins first_origin + rank, over all ranks of all jobs, are its
  // own.
  JobSet(std::vector<EventLoop*> loops, std::vector<std::uint32_t> set_of_gpu, Executor& executor,
         ComputeDevices& devices, std::uint32_t first_origin, JobObserver observer);
  JobSet(const JobSet&) = delete;
  JobSet& operator=(const JobSet&) = delete;

  // Jobs may ask for optical circuits, and pause, from now on. Before the first job is added.
  void set_circuits(CircuitAccess access) { circuits_ = std::move(access); }
  // A request that CircuitAccess::ask was given has come to the switches, or its pause is over.
  void circuits_asked(const CircuitRequest& request) { jobs_[request.job]->circuits_asked(request); }

  // Adds a job; its number is that of the calls before. Between events. InputError for circuits that
  // there are not.
  const Job& add(JobPlan plan);
  // The job begins, at its arrival: now() of all loops is that time, and no set runs.
  void start(std::uint32_t job);

  // A rank stops, or a whole job, which is over then, at `now`: between events, as start(). `complete`:
  // nothing of the job has to be done again. A rank that is halted before start() never begins.
  void halt(std::uint32_t job, std::uint32_t rank, Time now) { jobs_[job]->halt(rank, now); }
  void stop(std::uint32_t job, Time now, bool complete) { jobs_[job]->stop(now, complete); }

  std::uint32_t size() const { return static_cast<std::uint32_t>(jobs_.size()); }
  const Job& job(std::uint32_t number) const { return *jobs_[number]; }
  // Ranks of all jobs.
  std::uint32_t ranks() const { return static_cast<std::uint32_t>(rank_of_.size()); }
  bool done() const;
  std::uint64_t tasks_done() const;
  Time end_time() const;  // of the last task of any job

  // From now on what happens goes to the journal, and not to the statistics: whoever keeps the journals gives
  // the records of all sets to apply(), in order of time and of events, while no set runs. Without a journal
  // all sets must run in one thread, event by event in order.
  void set_journal(JobJournal journal) { journal_ = std::move(journal); }
  void apply(const JobRecord& record) { jobs_[record.job]->apply(record); }
  // The same for the executor's trace of transfers, where JobObserver::path asks for critical paths. It is
  // told of in the same order.
  using TransferJournal =
      std::function<void(std::uint32_t set, const TransferRecord& record, std::span<const PortDelay> ports)>;
  void set_transfer_journal(TransferJournal journal) { transfer_journal_ = std::move(journal); }
  void apply_transfer(const TransferRecord& record, std::span<const PortDelay> ports) {
    jobs_[record.job]->apply(record, ports);
  }

  // What unfinished ranks wait for, one line each, with the job's name where there are several.
  std::vector<std::string> waiting(std::size_t limit) const;

 private:
  void communication_done(std::uint32_t gpu, const CommunicationRequest& request, Time started) override {
    jobs_[request.traits.job]->communication_done(gpu, request, started);
  }
  void compute_done(std::uint32_t gpu, std::uint32_t job, std::uint32_t handle) override {
    jobs_[job]->compute_done(gpu, handle);
  }
  void job_event(const Event& event);

  std::vector<EventLoop*> loops_;
  std::vector<std::uint32_t> set_of_gpu_;
  JobJournal journal_;
  CircuitAccess circuits_;
  TransferJournal transfer_journal_;
  JobRun run_;
  JobObserver observer_;
  std::vector<std::unique_ptr<TaskJob>> jobs_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> rank_of_;  // of the run: job, and rank there
};

}  // namespace netsim
