// crux: the flows of jobs with a high GPU intensity choose their paths first. Source: Cao et al., "Crux:
// GPU-efficient communication scheduling for deep learning training", SIGCOMM 2024, section 4.1. Its rules
// are in rules/crux.h; the job scheduler `crux` sets the priorities of jobs.
//
// All flows of a job from one GPU to another have one path. Each choice takes the path whose fullest link is
// used least. Paths are chosen anew when a job sends between two GPUs for the first time, and when it is
// over. They are also chosen anew when its first iteration has ended. Flows under way keep their path, so no
// packet overtakes another one.
#include <algorithm>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "sim/core/registry.h"
#include "sim/scheduling/flow/rule_view.h"
#include "sim/scheduling/flow/rules/crux.h"

namespace netsim {
namespace {

struct CruxFlowParameters {
  std::int64_t most_paths = 64;
  bool waits = true;
};

class CruxFlows final : public FlowScheduler {
 public:
  explicit CruxFlows(const CruxFlowParameters& p) : p_(p) {}
  FlowNeeds needs() const override {
    return {.central = true,
            .jobs = true,
            .views = {ViewField::topology, ViewField::sizes, ViewField::phases},
            .required = {ViewField::topology}};
  }

  FlowTreatment admit(const FlowView& flow) const override {
    const auto pair = pairs_.find(key_of_pair(flow));
    if (pair == pairs_.end()) return admit_centrally(flow, p_.waits);
    FlowTreatment treatment = flow;
    treatment.path = pair->second.path;
    return treatment;
  }

  void decide(const FlowsView& view, FlowDecisions& decisions) override {
    std::vector<const FlowView*> fresh;
    for (const FlowView& flow : view.flows) {
      if (add_pair(view, flow)) fresh.push_back(&flow);
    }
    const bool changed = follow_jobs(view);
    if (changed || !fresh.empty()) choose_paths(view);
    for (const FlowView& flow : view.flows) {
      const bool is_new = flow.held || std::find(fresh.begin(), fresh.end(), &flow) != fresh.end();
      if (!is_new) continue;
      const auto pair = pairs_.find(key_of_pair(flow));
      if (pair != pairs_.end() && pair->second.path != kNoPathHint)
        decisions.path(flow.id, pair->second.path);
      decisions.release(flow.id);
    }
  }

 private:
  using PairKey = std::tuple<JobId, GpuId, GpuId>;  // job, source, destination
  // Pair: what a job sends from one GPU to another.
  struct Pair {
    std::vector<std::vector<PortId>> paths;  // ports of each path
    Bytes first = 0;                         // bytes of its first flow when that was seen first
    std::uint32_t path = kNoPathHint;        // kNoPathHint: there is no choice
  };

  static PairKey key_of_pair(const FlowView& flow) { return {flow.job, flow.source, flow.destination}; }

  // Returns whether the flow is the first one of its pair.
  bool add_pair(const FlowsView& view, const FlowView& flow) {
    const auto [entry, added] = pairs_.try_emplace(key_of_pair(flow));
    if (!added) return false;
    Pair& pair = entry->second;
    pair.first = flow.bytes;
    const std::uint32_t paths =
        std::min(static_cast<std::uint32_t>(p_.most_paths), view.facts->path_count(flow));
    if (paths == 1) pair.paths.emplace_back(flow.ports.begin(), flow.ports.end());
    for (std::uint32_t hint = 0; paths > 1 && hint < paths; ++hint)
      pair.paths.push_back(view.facts->ports_of_path(flow, hint));
    return true;
  }

  // Asks for the state of all jobs. Returns whether one is over, or has ended its first iteration.
  bool follow_jobs(const FlowsView& view) {
    std::map<JobId, JobFacts> jobs;
    for (const auto& [key, pair] : pairs_) {
      if (!jobs.contains(std::get<JobId>(key)))
        jobs[std::get<JobId>(key)] = view.facts->job(std::get<JobId>(key));
    }
    bool changed = false;
    for (const auto& [job, facts] : jobs) {
      const auto before = jobs_.find(job);
      changed |= facts.done;
      changed |= facts.iterations_done > 0 && before != jobs_.end() && before->second.iterations_done == 0;
    }
    std::erase_if(pairs_, [&](const auto& entry) { return jobs[std::get<JobId>(entry.first)].done; });
    std::erase_if(jobs, [](const auto& entry) { return entry.second.done; });
    jobs_ = std::move(jobs);
    return changed;
  }

  void choose_paths(const FlowsView& view) {
    std::map<PortId, std::uint32_t> number;  // of links, by port
    std::vector<BitRate> capacity;
    std::map<JobId, std::vector<Pair*>> of_job;
    std::vector<CruxJob> jobs;
    for (auto& [key, pair] : pairs_) {
      const auto& [job, source, destination] = key;
      std::vector<Pair*>& list = of_job[job];
      if (list.empty()) {
        const IterationWork& work = jobs_.at(job).work;
        jobs.push_back({work.gpu_seconds, work.compute, work.offset, {}});
      }
      list.push_back(&pair);
      const Bytes measured = view.facts->sent(job, source, destination);
      PathChoice& choice = jobs.back().traffic.emplace_back();
      for (const std::vector<PortId>& path : pair.paths) {
        std::vector<LinkBytes>& option = choice.options.emplace_back();
        for (const PortId port : path) {
          const auto [link, added] = number.try_emplace(port, static_cast<std::uint32_t>(number.size()));
          if (added) capacity.push_back(view.port_rates[port]);
          option.push_back({link->second, measured > 0 ? measured : pair.first});
        }
      }
    }
    const auto chosen = crux_paths(capacity, jobs);
    std::size_t next = 0;
    for (const auto& [job, list] : of_job) {
      for (std::size_t i = 0; i < list.size(); ++i) {
        if (list[i]->paths.size() > 1) list[i]->path = chosen[next][i];
      }
      ++next;
    }
  }

  CruxFlowParameters p_;
  std::map<PairKey, Pair> pairs_;
  std::map<JobId, JobFacts> jobs_;  // as they were seen last
};

const Parameters<CruxFlowParameters>& crux_flow_parameters() {
  using P = CruxFlowParameters;
  static const auto parameters =
      Parameters<P>()
          .integer("most_paths", &P::most_paths, {1, 4096},
                   "paths between two GPUs that are looked at, the first ones")
          .choice(
              "new_flows", &P::waits, {{"wait", true}, {"send", false}},
              "what the first flow of a job between two GPUs does until it has its path: `wait` for it, or "
              "`send` on the path that routing chose and change to the other one");
  return parameters;
}

const Registration<FlowScheduler> kCruxFlows{
    "crux", "Crux: flows of jobs that compute much per time of communication choose the emptiest paths first",
    crux_flow_parameters(),
    [](const CruxFlowParameters& p, const ConfigNode&) { return std::make_unique<CruxFlows>(p); }};

}  // namespace
}  // namespace netsim
