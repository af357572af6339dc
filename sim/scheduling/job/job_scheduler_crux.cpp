// crux: the messages of jobs with a high GPU intensity go first. Source: Cao et al., "Crux: GPU-efficient
// communication scheduling for deep learning training", SIGCOMM 2024. Its rules are in flow/rules/crux.h.
//
// Jobs begin in the order of their arrivals. The intensity of a job is its computation in an iteration per
// time of its fullest link. The computation is what the workload says, the traffic is measured. At each end
// of an iteration all measured jobs are ordered anew and compressed to a few levels. A level is a data class
// of the network, or a priority of messages at NICs.
#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "sim/core/registry.h"
#include "sim/scheduling/flow/rules/crux.h"
#include "sim/scheduling/job/job_order.h"

namespace netsim {
namespace {

struct CruxJobParameters {
  std::int64_t levels = 2;
  bool classes = true;
  bool backfill = false;
};

class CruxJobs final : public JobScheduler {
 public:
  explicit CruxJobs(const CruxJobParameters& p) : p_(p), levels_(static_cast<std::uint32_t>(p.levels)) {}

  JobNeeds needs() const override {
    JobNeeds needs{.iterations = true, .traffic = true, .views = {ViewField::jobs, ViewField::phases}};
    (p_.classes ? needs.classes : needs.nic_levels) = levels_;
    return needs;
  }

  void decide(const JobSchedulerView& view, JobDecisions& decisions) override {
    const auto in_order = [](const JobState&, const JobState&) { return false; };
    start_in_order(sorted_jobs(view, in_order), p_.backfill, decisions);
    std::vector<const JobState*> measured;
    for (const JobState& job : view.jobs) {
      if (!job.traffic.empty()) measured.push_back(&job);
    }
    const std::vector<std::uint32_t> level = levels_of(view, measured);
    std::map<JobId, std::uint32_t> set;
    for (std::size_t i = 0; i < measured.size(); ++i) {
      const auto before = set_.find(measured[i]->job);
      if (before == set_.end() || before->second != level[i]) set_level(*measured[i], level[i], decisions);
      set.emplace(measured[i]->job, level[i]);
    }
    set_ = std::move(set);
  }

 private:
  std::vector<std::uint32_t> levels_of(const JobSchedulerView& view,
                                       const std::vector<const JobState*>& measured) const {
    std::map<std::uint32_t, std::uint32_t> number;  // of links that are used, by port
    std::vector<BitRate> capacity;
    std::vector<CruxJob> jobs;
    for (const JobState* job : measured) {
      PathChoice traffic;
      traffic.options.emplace_back();
      for (const LinkBytes& next : job->traffic) {
        const auto [link, added] = number.try_emplace(next.link, static_cast<std::uint32_t>(number.size()));
        if (added) capacity.push_back(view.port_rates[next.link]);
        traffic.options.front().push_back({link->second, next.bytes});
      }
      jobs.push_back({job->work.gpu_seconds, job->work.compute, job->work.offset, {std::move(traffic)}});
    }
    return crux_plan(capacity, jobs, levels_).level;
  }

  void set_level(const JobState& job, std::uint32_t level, JobDecisions& decisions) const {
    if (p_.classes) {
      decisions.set_traffic(job.job, job.priority, static_cast<std::uint8_t>(level));
    } else {
      decisions.set_traffic(job.job, static_cast<std::uint8_t>(levels_ - 1 - level), job.traffic_class);
    }
  }

  CruxJobParameters p_;
  std::uint32_t levels_;
  std::map<JobId, std::uint32_t> set_;  // level of each job that has one
};

const Parameters<CruxJobParameters>& crux_job_parameters() {
  using P = CruxJobParameters;
  static const auto parameters =
      Parameters<P>()
          .integer(
              "levels", &P::levels, {1, 256},
              "levels of urgency to which the order of jobs is compressed; until its first iteration has "
              "ended, a job has the class and priority of the list of jobs")
          .choice(
              "act", &P::classes, {{"classes", true}, {"priorities", false}},
              "a level is a data class of the network (`classes`, with network.switch.scheduler: strict), "
              "or a priority of messages (`priorities`, with as many transport.nic_priorities)")
          .flag("backfill", &P::backfill,
                "later jobs that fit begin before one that does not; otherwise all wait behind it");
  return parameters;
}

const Registration<JobScheduler> kCruxJobs{
    "crux", "Crux: jobs that compute much per time of communication send first, in a few levels",
    crux_job_parameters(),
    [](const CruxJobParameters& p, const ConfigNode&) { return std::make_unique<CruxJobs>(p); }};

}  // namespace
}  // namespace netsim
