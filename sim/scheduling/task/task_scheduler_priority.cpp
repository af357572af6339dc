// priority: launches first what is needed first. Parts are not interrupted, so the size of a part is the
// longest time for which a communication that is needed earlier has to wait. Four systems are this rule with
// different orders.
// - P3 (Jayarajan et al., SysML 2019): `order: use`, parts of 40,000 parameters (MXNET_KVSTORE_BIGARRAY_BOUND
// of
//   anandj91/p3 c647954, kvstore_dist.h).
// - TicTac (Hashemi et al., SysML 2019): `order: tic` and `order: tac`, whole communications.
// - PACE (Bao et al., INFOCOM 2020): `order: tail`, small parts, and `fuse`.
#include <memory>
#include <utility>

#include "sim/core/registry.h"
#include "sim/scheduling/task/communication_times.h"
#include "sim/scheduling/task/fusion.h"
#include "sim/scheduling/task/lanes.h"
#include "sim/scheduling/task/order_of_use.h"
#include "sim/scheduling/task/pace_fusion.h"
#include "sim/scheduling/task/task_scheduler.h"
#include "sim/scheduling/task/tictac.h"

namespace netsim {
namespace {

enum class OrderOfNeed : std::uint8_t { use, tail, tic, tac };

struct PriorityParameters {
  OrderOfNeed order = OrderOfNeed::use;
  Bytes part = 160'000;  // 40,000 parameters of 4 bytes
  std::int64_t in_flight = 1;
  bool fuse = false;
  Time startup = 50 * kMicrosecond;
};

const Parameters<PriorityParameters>& priority_parameters() {
  using P = PriorityParameters;
  static const auto parameters =
      Parameters<P>()
          .choice("order", &P::order,
                  {{"use", OrderOfNeed::use},
                   {"tail", OrderOfNeed::tail},
                   {"tic", OrderOfNeed::tic},
                   {"tac", OrderOfNeed::tac}},
                  "what comes first: `use` takes what the next computation needs, `tail` what the longest "
                  "path leads on from, `tic` and `tac` follow the rules of TicTac")
          .bytes("part", &P::part, {0, 1000 * kGigabyte}, "size of a part; 0: communications are not cut")
          .integer(
              "in_flight", &P::in_flight, {1, 1 << 20},
              "most parts of gradients that a rank has in flight at once in each group, and among all its "
              "messages")
          .flag("fuse", &P::fuse,
                "collectives are fused by the dynamic program of PACE, before they are cut into parts")
          .time("startup", &P::startup, {0, kSecond},
                "time that a collective takes beside the transfer of its bytes, which `fuse` saves");
  return parameters;
}

class Priority final : public TaskScheduler {
 public:
  explicit Priority(const PriorityParameters& p) : p_(p) {}
  TaskNeeds needs() const override { return {.profile = true}; }
  bool is_agreed(const CommunicationFacts& facts) const override { return may_be_gradient(facts); }
  Bytes part_bytes(const CommunicationFacts& facts) const override {
    return may_be_gradient(facts) ? p_.part : 0;
  }
  LaunchPlan plan(const JobProfile& profile) const override {
    LaunchPlan plan;
    plan.order = order(profile);
    if (!p_.fuse) return plan;
    plan.fused = fuse(profile, [this](std::span<const FusionTensor> tensors) {
                   return pace_fusion(tensors, p_.startup);
                 }).buckets;
    return plan;
  }
  Launch next(const RankView& rank, std::span<const Candidate> candidates) const override {
    const auto fits = [&](const Candidate& one) {
      return !may_be_gradient(one) ||
             gradient_parts_in_lane(rank, one) < static_cast<std::size_t>(p_.in_flight);
    };
    return {first_candidate(candidates, fits, is_needed_before)};
  }

 private:
  std::vector<std::uint32_t> order(const JobProfile& profile) const {
    switch (p_.order) {
      case OrderOfNeed::use:
        break;
      case OrderOfNeed::tail:
        return order_of_tail(profile);
      case OrderOfNeed::tic:
        return tic_order(profile);
      case OrderOfNeed::tac:
        return tac_order(profile);
    }
    return order_of_use(profile);
  }
  PriorityParameters p_;
};

const Registration<TaskScheduler> kPriority{
    "priority", "P3, TicTac and PACE: communications that are needed first are launched first, in parts",
    priority_parameters(),
    [](const PriorityParameters& p, const ConfigNode&) { return std::make_unique<Priority>(p); }};

}  // namespace
}  // namespace netsim
