// all_to_all: every rank sends one message to every other, as independent flows. The collective of that name,
// with its algorithm, is `kind: collective`.
#include <memory>
#include <string>
#include <utility>

#include "sim/core/errors.h"
#include "sim/core/registry.h"
#include "sim/workload/traffic/flow_source.h"
#include "sim/workload/traffic/traffic.h"
#include "sim/workload/workload.h"

namespace netsim {

namespace {

constexpr std::uint64_t kMaxAllToAllFlows = 1 << 24;

struct AllToAllParameters {
  Bytes bytes = 1 * kMegabyte;
  std::int64_t ranks = 0;
  Time stagger = 0;
};

const Parameters<AllToAllParameters>& traffic_all_to_all_parameters() {
  using P = AllToAllParameters;
  static const auto p =
      Parameters<P>()
          .bytes("bytes", &P::bytes, kMessageSizes, "size of each message")
          .integer("ranks", &P::ranks, {0, kMaxTrafficRanks},
                   "number of ranks that take part; 0: all GPUs of the cluster")
          .time("stagger", &P::stagger, {0, 1 * kSecond},
                "rank i sends to i + 1 at 0, to i + 2 at stagger, to i + 3 at twice stagger, ...");
  return p;
}

class AllToAll final : public WorkloadKind {
 public:
  AllToAll(const AllToAllParameters& p, const ConfigNode& where)
      : p_(p), ranks_place_(place_of(where, "ranks")) {}

  std::unique_ptr<TaskSource> tasks(const WorkloadContext& context) const override {
    const std::uint32_t ranks = traffic_ranks(p_.ranks, context, ranks_place_);
    const std::uint64_t flows = std::uint64_t{ranks} * (ranks - 1);
    if (flows > kMaxAllToAllFlows) {
      throw InputError(ranks_place_, std::to_string(flows) + " flows between " + std::to_string(ranks) +
                                         " ranks; at most " + std::to_string(kMaxAllToAllFlows) +
                                         " are allowed");
    }
    auto source = std::make_unique<FlowSource>("all_to_all", ranks);
    source->reserve(flows);
    const std::uint32_t name = source->add_name("all_to_all");
    for (std::uint32_t step = 1; step < ranks; ++step) {
      for (std::uint32_t i = 0; i < ranks; ++i) {
        source->add({.from = i,
                     .to = (i + step) % ranks,
                     .bytes = p_.bytes,
                     .start = (step - 1) * p_.stagger,
                     .name = name});
      }
    }
    source->seal();
    return source;
  }

 private:
  AllToAllParameters p_;
  Place ranks_place_;
};

const Registration<WorkloadKind> kTrafficAllToAll{
    "all_to_all", "every rank sends one message to every other, all at once or staggered: incasts everywhere",
    traffic_all_to_all_parameters(), [](const AllToAllParameters& p, const ConfigNode& where) {
      return std::make_unique<AllToAll>(p, where);
    }};

}  // namespace

}  // namespace netsim
