// SwitchML: an all-reduce whose packets programmable switches add up in a pool of slots. The source is Sapio
// et al., Scaling Distributed Machine Learning with In-Network Aggregation, NSDI 2021.
//
// Each worker has one packet in each slot. Its next packet in the slot leaves when the sum of the former one
// is back, so no congestion control is needed. A packet without its sum is sent again after a timeout. A
// switch keeps two versions of each slot, to send a lost sum again (slot_pool.h).
//
// A worker is a host: its ranks add up their data first, as SwitchML's does for the GPUs of a server. Each
// rank is the worker for its part of the buffer. Hosts with one rank each use only the switches.
//
// The parameters are those of the authors' program (p4lang/p4app-switchML). Packets have 64 or 256
// elements of 4 B, and 256 are in flight. The timeout is 10 ms and doubles after 100 timeouts.
#include "sim/collectives/algorithm.h"
#include "sim/collectives/algorithms/pool_plan.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

struct SwitchMlParameters : PoolParameters {
  std::int64_t slots = 256;
  Bytes payload = 256;
  Bytes header = 56;
  Time timeout = 10 * kMillisecond;
  std::int64_t timeout_threshold = 100;
  std::int64_t cores = 4;
  Time conversion = 0;

  // Returns the rate at which a worker converts its data to int32, and sums back. The same cores do both, so
  // each gets half of them. 0: conversions take no time.
  BitRate conversion_rate() const {
    if (conversion == 0) return 0;
    constexpr BitRate kBits = 4 * 8;  // of an element
    return std::max<BitRate>(1, kBits * cores * kSecond / (2 * conversion));
  }
};

constexpr std::int64_t kMostSlots = 1 << 20;

Parameters<SwitchMlParameters> switchml_parameters() {
  using P = SwitchMlParameters;
  return with_pool_latencies(
             pool_parameters<P>()
                 .integer("slots", &P::slots, {1, kMostSlots},
                          "slots of the pool, a power of two: packets that a worker has in flight. A switch "
                          "holds two copies of each (128 at 10 Gb/s and 512 at 100 Gb/s in the paper)")
                 .bytes("payload", &P::payload, {4, 65536},
                        "data of a packet: 64 or 256 elements of 4 B (32 elements in the paper)")
                 .bytes("header", &P::header, {1, 1024},
                        "headers of a packet: 18 B of Ethernet with its checksum, 20 of IP, 8 of UDP, 10 of "
                        "SwitchML; topology.overhead is what Ethernet adds on the wire")
                 .time("timeout", &P::timeout, {1 * kMicrosecond, 1000 * kSecond},
                       "time until a packet without its sum is sent again (1 ms in the paper)")
                 .integer("timeout_threshold", &P::timeout_threshold, {0, 1 << 30},
                          "timeouts of a worker after which its timeout doubles, until its next message; 0: "
                          "never")
                 .integer("cores", &P::cores, {1, 1024},
                          "cores of a worker that convert floating point to int32 and sums back")
                 .time("conversion", &P::conversion, {0, kMillisecond},
                       "time of a core for one element, each way (not published: the paper converts with "
                       "vector "
                       "instructions); 0: conversions take no time"))
      .bytes(
          "chunk", &P::chunk, {0, kGibibyte},
          "largest message between the ranks of a host and into the pool, cut to whole packets; 0: all of "
          "a rank's part where hosts have one rank each, else 512 KiB; with `conversion` a packet for each "
          "slot");
}

class SwitchMl final : public CollectiveAlgorithm, public WithKernels {
 public:
  explicit SwitchMl(const SwitchMlParameters& p) : p_(p) {}
  bool supports(CollectiveKind kind) const override { return kind == CollectiveKind::all_reduce; }
  PlanTraits traits() const override {
    return {.protocol = Protocol::simple, .hosts = true, .sums = PlanTraits::FabricSums::as_int32};
  }
  std::unique_ptr<Plan> plan(CollectiveKind, const GroupShape& shape) const override {
    return p_.plan(shape, "switchml",
                   {.slots = static_cast<std::uint32_t>(p_.slots),
                    .payload = p_.payload,
                    .header = p_.header,
                    .timeout = p_.timeout,
                    .timeouts_to_double = static_cast<std::uint32_t>(p_.timeout_threshold),
                    .format = NumberFormat::int32});
  }
  KernelModel kernel_model(const KernelLoad& load) const override {
    SwitchMlParameters p = p_;
    if (p.conversion > 0 && p.chunk == 0) p.chunk = p.slots * p.payload;
    KernelModel kernels = p.kernel_model(load, p.payload, 512 * kKibibyte);
    kernels.copy_in_rate = kernels.copy_out_rate = p.conversion_rate();
    return kernels;
  }

 private:
  SwitchMlParameters p_;
};

const Registration<CollectiveAlgorithm> kSwitchMl{
    "switchml",
    "programmable switches add up packets in a pool of slots, and packets that are lost are sent again "
    "(SwitchML, NSDI 2021)",
    switchml_parameters(), [](const SwitchMlParameters& p, const ConfigNode& node) {
      check_power_of_two(node, "slots", p.slots, kMostSlots,
                         "the switch takes the slot from bits of a packet's number");
      return std::make_unique<SwitchMl>(p);
    }};

}  // namespace
}  // namespace netsim
