// ATP: an all-reduce over a parameter server, in which switches add up packets as far as they have free
// aggregators. The sources are Lao et al., ATP: In-network Aggregation for Multi-tenant Learning, NSDI 2021,
// and its program (in-ATP/ATP).
//
// A worker's packet names an aggregator by a hash of its job and number. The switches of the worker's and the
// server's racks add it up there, or let it pass if another sum is there (aggregator_table.h). The server
// completes the sums and sends the results, which the same switches multicast.
//
// One host is the parameter server. It is a worker too, and adds its own data. Each of its ranks is the
// server for its part of the buffer.
//
// The parameters are those of the program. Packets have 62 elements of 4 B and take 308 B. The window grows
// by 1,500 B, and packets are sent again after 0.2 ms (common/CC_manager.h, client/p4ml_manager.cc).
#include <bit>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/algorithms/pool_plan.h"
#include "sim/core/registry.h"
#include "sim/network/aggregation/aggregator_table.h"

namespace netsim {
namespace {

struct AtpParameters : PoolParameters {
  std::int64_t server = 0;
  std::int64_t window = 100;
  Bytes increase = 1500;
  std::int64_t aggregators = 0;
  Bytes payload = 248;
  Bytes header = 60;
  Time timeout = 200 * kMicrosecond;
  std::int64_t timeout_threshold = 100;
};

Parameters<AtpParameters> atp_parameters() {
  using P = AtpParameters;
  return with_pool_latencies(
             pool_parameters<P>()
                 .integer("server", &P::server, {0, 1 << 20},
                          "host that is the parameter server, by its number in the group")
                 .integer("window", &P::window, {1, 1 << 16},
                          "largest number of packets in flight of a worker, with which it begins")
                 .bytes("increase", &P::increase, {0, kGibibyte},
                        "bytes that are added to a worker's window after a window of results without ECN "
                        "marks; a mark halves it")
                 .integer("aggregators", &P::aggregators, {0, AggregatorTable::kMostAggregators},
                          "aggregators of a switch that only this job uses, as with a static split of its "
                          "memory; 0: all jobs share them (network.switch.aggregators)")
                 .bytes("payload", &P::payload, {4, 65536}, "data of a packet: 62 elements of 4 B")
                 .bytes("header", &P::header, {1, 1024},
                        "headers of a packet: 308 B less the data; topology.overhead is what Ethernet adds "
                        "on the wire")
                 .time("timeout", &P::timeout, {1 * kMicrosecond, 1000 * kSecond},
                       "time until a packet without its result is sent again")
                 .integer("timeout_threshold", &P::timeout_threshold, {0, 1 << 30},
                          "timeouts of a worker after which its timeout doubles, until its next message; 0: "
                          "never"))
      .bytes("chunk", &P::chunk, {0, kGibibyte},
             "largest message between the ranks of a host and into the switches, cut to whole packets; 0: "
             "all of a rank's part where hosts have one rank each, else 512 KiB");
}

class Atp final : public CollectiveAlgorithm, public WithKernels {
 public:
  explicit Atp(const AtpParameters& p) : p_(p) {}
  bool supports(CollectiveKind kind) const override { return kind == CollectiveKind::all_reduce; }
  PlanTraits traits() const override {
    return {.protocol = Protocol::simple, .hosts = true, .sums = PlanTraits::FabricSums::as_int32};
  }
  std::unique_ptr<Plan> plan(CollectiveKind, const GroupShape& shape) const override {
    const auto window = static_cast<std::uint32_t>(p_.window);
    return p_.plan(shape, "atp",
                   {.slots = std::bit_ceil(window),
                    .payload = p_.payload,
                    .header = p_.header,
                    .timeout = p_.timeout,
                    .timeouts_to_double = static_cast<std::uint32_t>(p_.timeout_threshold),
                    .format = NumberFormat::int32,
                    .best_effort = {.window = window,
                                    .increase = p_.increase,
                                    .server = static_cast<std::uint32_t>(p_.server),
                                    .aggregators = static_cast<std::uint32_t>(p_.aggregators)}});
  }
  KernelModel kernel_model(const KernelLoad& load) const override {
    return p_.kernel_model(load, p_.payload, 512 * kKibibyte);
  }

 private:
  AtpParameters p_;
};

const Registration<CollectiveAlgorithm> kAtp{
    "atp",
    "switches add up what finds a free aggregator, and a parameter server does the rest (ATP, NSDI 2021)",
    atp_parameters(), [](const AtpParameters& p, const ConfigNode&) { return std::make_unique<Atp>(p); }};

}  // namespace
}  // namespace netsim
