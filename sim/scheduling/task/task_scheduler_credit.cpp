// credit: the scheduler of ByteScheduler (Peng et al., SOSP 2019), by the rule of BytePS's scheduled_queue.cc
// (bytedance/byteps f5df52fe). Communications are cut into parts. The scheduler goes through the parts that
// are ready, those needed first before others, and launches the first one whose bytes fit into the credit. It
// passes over a part that does not fit, also for the shorter last part of the same communication. A part
// takes its bytes from the credit when it is launched and returns them when it ends.
//
// A part alone takes its bytes over the rate plus a round trip. With one part in flight the rate is therefore
// part / (part + rate x round trip) of the link's. A credit of k parts multiplies it by k, up to the link's.
#include <memory>

#include "sim/core/errors.h"
#include "sim/core/registry.h"
#include "sim/core/text.h"
#include "sim/scheduling/task/lanes.h"
#include "sim/scheduling/task/order_of_use.h"
#include "sim/scheduling/task/task_scheduler.h"

namespace netsim {
namespace {

struct CreditParameters {
  Bytes part = 4'096'000;  // BYTEPS_PARTITION_BYTES
  Bytes credit = 16'384'000;
};

const Parameters<CreditParameters>& credit_parameters() {
  using P = CreditParameters;
  static const auto parameters = Parameters<P>()
                                     .bytes("part", &P::part, {1, 1000 * kGigabyte}, "size of a part")
                                     .bytes("credit", &P::credit, {1, 1000 * kGigabyte},
                                            "most bytes of gradients that a rank has in flight at once in "
                                            "each group, and among all its messages");
  return parameters;
}

class Credit final : public TaskScheduler {
 public:
  Credit(const CreditParameters& p, const ConfigNode& where) : p_(p) {
    if (p.credit >= p.part) return;
    const ConfigNode* credit = where.is_map() ? where.find("credit") : nullptr;
    (credit != nullptr ? *credit : where)
        .fail("a credit of " + format_bytes(p.credit) + " lets no part of " + format_bytes(p.part) +
              " leave; allowed: at least a part");
  }
  TaskNeeds needs() const override { return {.profile = true}; }
  bool is_agreed(const CommunicationFacts& facts) const override { return may_be_gradient(facts); }
  Bytes part_bytes(const CommunicationFacts& facts) const override {
    return may_be_gradient(facts) ? p_.part : 0;
  }
  LaunchPlan plan(const JobProfile& profile) const override {
    LaunchPlan plan;
    plan.order = order_of_use(profile);
    return plan;
  }
  Launch next(const RankView& rank, std::span<const Candidate> candidates) const override {
    // A communication that cannot be cut may be larger than the credit. It is launched when nothing else is
    // in flight.
    const auto fits = [&](const Candidate& one, Bytes part) {
      const Bytes used = gradient_bytes_in_lane(rank, one);
      return !may_be_gradient(one) || used == 0 || used + part <= p_.credit;
    };
    const auto any_fits = [&](const Candidate& one) {
      return fits(one, one.next) || (one.last > 0 && fits(one, one.last));
    };
    Launch launch{first_candidate(candidates, any_fits, is_needed_before)};
    if (launch.candidate == Launch::kNothing) return launch;
    launch.last_part = !fits(candidates[launch.candidate], candidates[launch.candidate].next);
    return launch;
  }

 private:
  CreditParameters p_;
};

const Registration<TaskScheduler> kCredit{
    "credit",
    "ByteScheduler: communications run in parts, those needed first before others, and a credit bounds the "
    "bytes in flight",
    credit_parameters(),
    [](const CreditParameters& p, const ConfigNode& where) { return std::make_unique<Credit>(p, where); }};

}  // namespace
}  // namespace netsim
