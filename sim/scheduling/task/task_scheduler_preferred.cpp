// preferred: Lina's rule (Li et al., USENIX ATC 2023). Communications that are preferred, the all-to-alls of
// experts, are launched at once. The others are cut into micro-operations. One of these is launched only
// while no preferred communication is ready or in flight at the rank that decides.
//
// Preferred communications are never held, so that ranks cannot wait for each other in a circle. Therefore
// every rank launches them by itself, without an agreement.
#include <algorithm>
#include <memory>
#include <set>
#include <string>

#include "sim/core/registry.h"
#include "sim/scheduling/task/lanes.h"
#include "sim/scheduling/task/task_scheduler.h"

namespace netsim {
namespace {

struct PreferredParameters {
  ConfigNode prefer;
  Bytes part = 30 * kMegabyte;  // size of Lina's micro-operations
};

const Parameters<PreferredParameters>& preferred_parameters() {
  using P = PreferredParameters;
  static const auto parameters =
      Parameters<P>()
          .names("prefer", &P::prefer, "all_to_all",
                 "collectives or streams that are launched at once: all_to_all, ep, ...")
          .bytes("part", &P::part, {0, 1000 * kGigabyte},
                 "size of a micro-operation of the others; 0: they are not cut");
  return parameters;
}

class Preferred final : public TaskScheduler {
 public:
  explicit Preferred(const PreferredParameters& p)
      : named_(read_names(p.prefer, "all_to_all")), part_(p.part) {
    for (const ConfigNode& name : named_) preferred_.insert(read_text(name));
  }
  std::vector<ConfigNode> named_communications() const override { return named_; }
  Bytes part_bytes(const CommunicationFacts& facts) const override { return is_preferred(facts) ? 0 : part_; }
  bool is_agreed(const CommunicationFacts& facts) const override { return !is_preferred(facts); }
  Launch next(const RankView& rank, std::span<const Candidate> candidates) const override {
    const auto preferred = [this](const Candidate& one) { return is_preferred(one); };
    const std::size_t first = first_candidate(candidates, preferred, is_ready_before);
    if (first != Launch::kNothing) return {first};
    const auto runs = [this](const InFlight& one) { return is_preferred(one); };
    if (std::any_of(candidates.begin(), candidates.end(), preferred)) return {};
    if (std::any_of(rank.in_flight.begin(), rank.in_flight.end(), runs)) return {};
    const auto alone = [&](const Candidate& one) { return parts_in_lane(rank, one) == 0; };
    return {first_candidate(candidates, alone, is_ready_before)};
  }

 private:
  bool is_preferred(const CommunicationFacts& facts) const {
    return preferred_.contains(facts.kind) || preferred_.contains(facts.stream);
  }
  std::vector<ConfigNode> named_;
  Bytes part_;
  std::set<std::string, std::less<>> preferred_;
};

const Registration<TaskScheduler> kPreferred{
    "preferred",
    "Lina: some communications are launched at once, and the others in micro-operations while none of those "
    "is ready or in flight",
    preferred_parameters(),
    [](const PreferredParameters& p, const ConfigNode&) { return std::make_unique<Preferred>(p); }};

}  // namespace
}  // namespace netsim
