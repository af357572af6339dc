#include "sim/jobs/job_set.h"

#include <algorithm>

namespace netsim {

JobSet::JobSet(std::vector<EventLoop*> loops, std::vector<std::uint32_t> set_of_gpu, Executor& executor,
               ComputeDevices& devices, std::uint32_t first_origin, JobObserver observer)
    : loops_(std::move(loops)),
      set_of_gpu_(std::move(set_of_gpu)),
      run_{&loops_, &set_of_gpu_, &executor,           &devices,    &journal_,
           nullptr, &announce_,   &announce_decision_, first_origin},
      observer_(std::move(observer)) {
  executor.set_listener(this);
  tells_executor_ = executor.ends_matter();
  if (observer_.path) {
    executor.set_trace([this](const TransferRecord& record, std::span<const PortDelay> ports) {
      if (transfer_journal_) {
        transfer_journal_(set_of_gpu_[record.gpu], record, ports);
      } else {
        apply_transfer(record, ports);
      }
    });
  }
  devices.set_listener(this);
  for (EventLoop* loop : loops_) loop->set_handler<&JobSet::job_event>(EventKind::job, *this);
}

const Job& JobSet::add(JobPlan plan) {
  const std::uint32_t number = size(), first_rank = ranks(), ranks = plan.source->ranks();
  if (plan.source->uses_threads()) run_.devices->add_threads();
  jobs_.push_back(TaskJob::create(run_, number, first_rank, std::move(plan), observer_));
  for (RankId rank = 0; rank < ranks; ++rank) rank_of_.emplace_back(number, rank);
  dropped_.push_back(false);
  return *jobs_.back();
}

void JobSet::start(JobId job) {
  begun_ = std::max(begun_, job + 1U);
  begin_now(job, &TaskJob::start);
}

void JobSet::go_on(JobId job) { begin_now(job, &TaskJob::go_on); }

// The records of the start go to the statistics in the order of ranks; all others in the order of events.
void JobSet::begin_now(JobId job, void (TaskJob::*begin)()) {
  JobJournal journal = std::exchange(journal_, nullptr);
  TransferJournal transfers = std::exchange(transfer_journal_, nullptr);
  ((*jobs_[job]).*begin)();
  journal_ = std::move(journal);
  transfer_journal_ = std::move(transfers);
  note_end(job);
}

void JobSet::job_event(const Event& event) {
  const auto [job, rank] = rank_of_[event.target];
  jobs_[job]->resume(rank, event.argument);
}

void JobSet::skip_ended() const {
  for (; ended_ < jobs_.size() && (jobs_[ended_]->done() || dropped_[ended_]); ++ended_)
    tasks_of_ended_ += jobs_[ended_]->tasks_done();
}

bool JobSet::done() const {
  skip_ended();
  return ended_ == jobs_.size();
}

std::uint64_t JobSet::tasks_done() const {
  skip_ended();
  std::uint64_t sum = tasks_of_ended_;
  for (std::uint32_t job = ended_; job < begun_; ++job) sum += jobs_[job]->tasks_done();
  return sum;
}

Time JobSet::end_time() const {
  Time end = 0;
  for (const auto& job : jobs_) end = std::max(end, job->end_time());
  return end;
}

std::vector<Stall> JobSet::stalls() const {
  skip_ended();
  std::vector<Stall> all;
  for (std::uint32_t job = ended_; job < size(); ++job) {
    if (!jobs_[job]->begun() || jobs_[job]->done()) continue;
    const std::vector<Stall> stalls = jobs_[job]->stalls();
    all.insert(all.end(), stalls.begin(), stalls.end());
  }
  return all;
}

std::vector<std::string> JobSet::waiting(std::size_t limit) const {
  std::vector<std::string> lines;
  for (const auto& job : jobs_) {
    if (lines.size() >= limit || !job->begun()) continue;
    for (std::string& line : job->waiting(limit - lines.size()))
      lines.push_back(size() > 1 ? job->plan().name + ": " + line : std::move(line));
  }
  return lines;
}

}  // namespace netsim
