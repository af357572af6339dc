// ring: rank i sends to i + 1, in rounds. A rank starts a round when its two messages of the round before,
// sent and received, are done. It is the traffic of a ring all-gather, without a collective library.
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

constexpr std::uint64_t kMaxRingFlows = 1 << 24;

struct RingParameters {
  Bytes bytes = 1 * kMegabyte;
  std::int64_t ranks = 0;
  std::int64_t rounds = 1;
};

const Parameters<RingParameters>& traffic_ring_parameters() {
  using P = RingParameters;
  static const auto p = Parameters<P>()
                            .bytes("bytes", &P::bytes, kMessageSizes, "size of each message")
                            .integer("ranks", &P::ranks, {0, kMaxTrafficRanks},
                                     "number of ranks that take part; 0: all GPUs of the cluster")
                            .integer("rounds", &P::rounds, {1, 1'000'000}, "messages of each rank");
  return p;
}

class Ring final : public WorkloadKind {
 public:
  Ring(const RingParameters& p, const ConfigNode& where)
      : p_(p), ranks_place_(place_of(where, "ranks")), rounds_place_(place_of(where, "rounds")) {}

  std::unique_ptr<TaskSource> tasks(const WorkloadContext& context) const override {
    const std::uint32_t ranks = traffic_ranks(p_.ranks, context, ranks_place_);
    const auto rounds = static_cast<std::uint32_t>(p_.rounds);
    const std::uint64_t flows = std::uint64_t{ranks} * rounds;
    if (flows > kMaxRingFlows) {
      throw InputError(rounds_place_, std::to_string(flows) + " messages; at most " +
                                          std::to_string(kMaxRingFlows) + " are allowed");
    }
    auto source = std::make_unique<FlowSource>("ring", ranks);
    source->reserve(flows);
    const std::uint32_t name = source->add_name("ring");
    // All rounds of a pair share a queue pair: one connection, used again.
    for (std::uint32_t round = 0; round < rounds; ++round) {
      for (std::uint32_t i = 0; i < ranks; ++i) {
        const std::uint32_t flow = source->add({.from = i,
                                                .to = (i + 1) % ranks,
                                                .bytes = p_.bytes,
                                                .channel = 0,
                                                .name = name,
                                                .needs = round == 0 ? 0U : 2U});
        if (round == 0) continue;
        source->add_dependency(flow - ranks, FlowSource::End::sent, flow);
        const std::uint32_t received = (round - 1) * ranks + (i + ranks - 1) % ranks;
        source->add_dependency(received, FlowSource::End::received, flow);
      }
    }
    source->seal();
    return source;
  }

 private:
  RingParameters p_;
  Place ranks_place_, rounds_place_;
};

const Registration<WorkloadKind> kTrafficRing{
    "ring", "rank i sends to rank i + 1, round after round: the traffic of a ring collective",
    traffic_ring_parameters(),
    [](const RingParameters& p, const ConfigNode& where) { return std::make_unique<Ring>(p, where); }};

}  // namespace

}  // namespace netsim
