// NetReduce: an all-reduce by RoCE messages between neighbours of a ring, which switches intercept. The
// sources are Liu et al., NetReduce: RDMA-Compatible In-Network Reduction for Distributed DNN Training
// Acceleration, 2020 (arXiv:2009.09736), and its version at ASPLOS 2023.
//
// Each host sends its data as RoCE messages to its successor in a ring. A switch adds up the messages of all
// hosts with the same number. It sends the sum to each host in place of the predecessor's message. So hosts
// need no protocol besides RoCE, and packets have the transport's size, headers and timeout.
//
// A host has a window of messages: it sends message i + w when it has the sum of message i. RoCE's go-back-N
// repairs losses. A host that gets a packet of a sum after a gap drops it, and the packets from the gap on
// are sent again. The switch keeps the sums of the window twice, to send lost ones again (slot_pool.h).
//
// Where hosts have several ranks, these first add up their data (reduce-scatter), and each rank sends its
// part. At last each rank sends its sum to the others (all-gather). With g ranks, n / B_nic stands beside
// 2 (g - 1) / g n / B_nvlink.
#include "sim/collectives/algorithm.h"
#include "sim/collectives/algorithms/pool_plan.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

struct NetReduceParameters : PoolParameters {
  std::int64_t window = 4;
  std::int64_t message = 32;
};

constexpr std::int64_t kMostMessages = 1024, kMostPackets = 1024;

Parameters<NetReduceParameters> netreduce_parameters() {
  using P = NetReduceParameters;
  return with_pool_latencies(
             pool_parameters<P>()
                 .integer("window", &P::window, {1, kMostMessages},
                          "messages that a host has in flight, a power of two. The switch holds two copies "
                          "of their sums. By default the window is 512 KiB at an MTU of 4 KiB")
                 .integer("message", &P::message, {1, kMostPackets},
                          "packets of a message, a power of two, each of transport.mtu bytes"))
      .bytes("chunk", &P::chunk, {0, kGibibyte},
             "largest message between the ranks of a host, and part that is sent at once; 0: all of a rank's "
             "part, so the steps in the host and between hosts do not overlap");
}

class NetReduce final : public CollectiveAlgorithm, public WithKernels {
 public:
  explicit NetReduce(const NetReduceParameters& p) : p_(p) {}
  bool supports(CollectiveKind kind) const override { return kind == CollectiveKind::all_reduce; }
  PlanTraits traits() const override {
    return {.protocol = Protocol::simple, .hosts = true, .sums = PlanTraits::FabricSums::of_data};
  }
  std::unique_ptr<Plan> plan(CollectiveKind, const GroupShape& shape) const override {
    return p_.plan(shape, "netreduce",
                   {.slots = static_cast<std::uint32_t>(p_.window * p_.message),
                    .message = static_cast<std::uint32_t>(p_.message)});
  }
  KernelModel kernel_model(const KernelLoad& load) const override { return p_.kernel_model(load, 1, 0); }

 private:
  NetReduceParameters p_;
};

const Registration<CollectiveAlgorithm> kNetReduce{
    "netreduce",
    "switches add up the RoCE messages that neighbours of a ring send, in place of the messages (NetReduce, "
    "ASPLOS 2023)",
    netreduce_parameters(), [](const NetReduceParameters& p, const ConfigNode& node) {
      const char* const reason = "the switch takes the place of a packet from bits of its number";
      check_power_of_two(node, "window", p.window, kMostMessages, reason);
      check_power_of_two(node, "message", p.message, kMostPackets, reason);
      return std::make_unique<NetReduce>(p);
    }};

}  // namespace
}  // namespace netsim
