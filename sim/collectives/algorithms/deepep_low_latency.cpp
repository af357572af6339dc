// DeepEP's low-latency kernels (csrc/kernels/internode_ll.cu in DeepSeek's DeepEP, v1). Each token and expert
// has a message that goes directly to the expert's GPU, over NVLink in the same host and by RDMA otherwise.
// Messages are not merged and never wait for a slot: buffers have room for all messages that may come. All
// messages of a token are sent at once by separate warps.
#include "sim/collectives/algorithm.h"
#include "sim/collectives/algorithms/each_peer_plan.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

// Latencies of messages are those of deepep.cpp. The other costs of the kernels are not published. They cast
// the tokens and meet at a grid barrier between sending and receiving. They also wait for the slowest GPU,
// and copy the received data for the experts.
//
// base_latency is fitted to the smallest figure of DeepEP's README, a dispatch of 128 tokens over 8 H800 in
// 77 us. All others follow from it (docs/evidence/validation.md).
struct LowLatencyParameters {
  Time base_latency = 32 * kMicrosecond;
  Time hop_latency = 3'330 * kNanosecond;
  Time hop_latency_net = 2'800 * kNanosecond;
};

Parameters<LowLatencyParameters> deepep_low_latency_parameters() {
  using P = LowLatencyParameters;
  const Range<Time> latency{0, kSecond};
  return Parameters<P>()
      .time(
          "base_latency", &P::base_latency, latency,
          "time of the kernel besides its messages: casts, barriers, copies (from DeepEP's 77 us on 8 H800)")
      .time("hop_latency", &P::hop_latency, latency, "latency of a message over NVLink (DeepSeek: 3.33 us)")
      .time("hop_latency_net", &P::hop_latency_net, latency,
            "latency of a message between hosts (DeepSeek: 2.8 us)");
}

class LowLatency final : public CollectiveAlgorithm {
 public:
  explicit LowLatency(const LowLatencyParameters& p) : p_(p) {}
  bool supports(CollectiveKind kind) const override { return has_tokens(kind); }
  std::optional<Protocol> protocol() const override { return Protocol::simple; }
  std::unique_ptr<Plan> plan(CollectiveKind kind, std::uint32_t ranks, std::uint32_t) const override {
    check_all_to_all("deepep_low_latency", kind, ranks);
    return std::make_unique<EachPeerPlan>("deepep_low_latency", kind, ranks, Counted::What::copies);
  }
  std::optional<KernelModel> kernel_model(const Load& load) const override {
    return KernelModel{.base_latency = p_.base_latency,
                       .hop_latency = p_.hop_latency,
                       .hop_latency_net = p_.hop_latency_net,
                       .apart = true,
                       .chunk = load.token};
  }

 private:
  LowLatencyParameters p_;
};

const Registration<CollectiveAlgorithm> kDeepepLowLatency{
    "deepep_low_latency",
    "sends tokens to their experts and back as DeepEP's low-latency kernels: a message for each token and "
    "expert",
    deepep_low_latency_parameters(),
    [](const LowLatencyParameters& p, const ConfigNode&) { return std::make_unique<LowLatency>(p); }};

}  // namespace
}  // namespace netsim
