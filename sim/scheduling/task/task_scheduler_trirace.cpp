// trirace: TriRace (Li et al., "A Multidimensional Communication Scheduling Method for Hybrid Parallel DNN
// Training", IEEE TPDS 35(8), 2024). It schedules three kinds of communication of asynchronous pipelines with
// data parallelism by what waits for them: messages between stages, sparse exchanges, and all-reduces.
// - The next computation of another stage waits for a message, so messages are launched at once.
// - The next batch waits for a sparse exchange, so it is launched at once too, with a lower priority.
// - With PipeDream-2BW the batch after the next one waits for an all-reduce. It is launched in parts, those
//   needed first before others, while no message and no sparse exchange runs on the links that it takes.
//
// The public abstract names the kinds, the use of data dependencies, and a runtime that looks at the topology
// and at what is running. The rest is netsim's reading: the size of parts, and links inside and between hosts
// as what a rank knows of the topology. What the runtime does with the state of the network is not public.
//
// Messages and sparse exchanges are never held, so ranks cannot wait for each other in a circle.
#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "sim/core/registry.h"
#include "sim/scheduling/task/lanes.h"
#include "sim/scheduling/task/order_of_use.h"
#include "sim/scheduling/task/task_scheduler.h"

namespace netsim {
namespace {

struct TriRaceParameters {
  ConfigNode sparse;
  Bytes part = 4 * kMegabyte;
  std::int64_t in_flight = 1;
};

const Parameters<TriRaceParameters>& trirace_parameters() {
  using P = TriRaceParameters;
  static const auto parameters =
      Parameters<P>()
          .names("sparse", &P::sparse, "all_to_all",
                 "collectives or streams that exchange sparse gradients: all_to_all, ep, ...")
          .bytes("part", &P::part, {0, 1000 * kGigabyte}, "size of a part of an all-reduce; 0: it is not cut")
          .integer("in_flight", &P::in_flight, {1, 1 << 20},
                   "most parts of all-reduces that a rank has in flight at once in each group");
  return parameters;
}

// The kinds of communication, those that are waited for earliest first. `other` are those of other
// parallelism, which TriRace does not schedule.
enum class TriRaceKind : std::uint8_t { message, sparse, other, gradient };

class TriRace final : public TaskScheduler {
 public:
  explicit TriRace(const TriRaceParameters& p) : p_(p), named_(read_names(p.sparse, "all_to_all")) {
    for (const ConfigNode& name : named_) sparse_.insert(read_text(name));
  }
  TaskNeeds needs() const override { return {.profile = true}; }
  std::vector<ConfigNode> named_communications() const override { return named_; }
  Bytes part_bytes(const CommunicationFacts& facts) const override {
    return kind_of(facts) == TriRaceKind::gradient ? p_.part : 0;
  }
  bool is_agreed(const CommunicationFacts& facts) const override {
    return kind_of(facts) == TriRaceKind::gradient;
  }
  LaunchPlan plan(const JobProfile& profile) const override {
    LaunchPlan plan;
    plan.order = order_of_use(profile);
    plan.links.reserve(profile.communications());
    for (std::uint32_t i = 0; i < profile.communications(); ++i)
      plan.links.push_back(profile.task_of(i).leaves_host ? 1 : 0);
    return plan;
  }
  Launch next(const RankView& rank, std::span<const Candidate> candidates) const override {
    const auto at_once = [this](const Candidate& one) { return kind_of(one) != TriRaceKind::gradient; };
    const auto waited_for_before = [this](const Candidate& a, const Candidate& b) {
      return kind_of(a) == kind_of(b) ? is_needed_before(a, b) : kind_of(a) < kind_of(b);
    };
    const std::size_t first = first_candidate(candidates, at_once, waited_for_before);
    if (first != Launch::kNothing) return {first, priority_of(candidates[first])};
    const auto may_run = [&](const Candidate& one) {
      return gradient_parts_in_lane(rank, one) < static_cast<std::size_t>(p_.in_flight) &&
             !meets_earlier_need(rank, one);
    };
    return {first_candidate(candidates, may_run, is_needed_before)};
  }

 private:
  TriRaceKind kind_of(const CommunicationFacts& facts) const {
    if (facts.kind == "message") return TriRaceKind::message;
    if (sparse_.contains(facts.kind) || sparse_.contains(facts.stream)) return TriRaceKind::sparse;
    return may_be_gradient(facts) ? TriRaceKind::gradient : TriRaceKind::other;
  }
  std::uint8_t priority_of(const CommunicationFacts& facts) const {
    const TriRaceKind kind = kind_of(facts);
    if (kind == TriRaceKind::message) return 2;
    return kind == TriRaceKind::sparse ? 1 : 0;
  }
  // Returns whether a message or a sparse exchange of the rank runs on the links that the candidate takes.
  bool meets_earlier_need(const RankView& rank, const Candidate& candidate) const {
    return std::any_of(rank.in_flight.begin(), rank.in_flight.end(), [&](const InFlight& one) {
      const TriRaceKind kind = kind_of(one);
      return (kind == TriRaceKind::message || kind == TriRaceKind::sparse) && one.links == candidate.links;
    });
  }

  TriRaceParameters p_;
  std::vector<ConfigNode> named_;
  std::set<std::string, std::less<>> sparse_;
};

const Registration<TaskScheduler> kTriRace{
    "trirace",
    "TriRace: messages between stages and sparse exchanges are launched at once, and all-reduces in parts "
    "while none of those runs on their links",
    trirace_parameters(),
    [](const TriRaceParameters& p, const ConfigNode&) { return std::make_unique<TriRace>(p); }};

}  // namespace
}  // namespace netsim
