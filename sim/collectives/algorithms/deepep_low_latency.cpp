// DeepEP's low-latency kernels (csrc/kernels/internode_ll.cu in DeepSeek's DeepEP, v1). Each token and expert
// has a message that goes directly to the expert's GPU, over NVLink in the same host and by RDMA otherwise.
// Messages are not merged and never wait for a slot: buffers have room for all messages that may come. All
// messages of a token are sent at once by separate warps.
#include "sim/collectives/algorithm.h"
#include "sim/collectives/algorithms/each_peer_plan.h"
#include "sim/collectives/library/deepep/deepep_kernels.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

Parameters<LowLatencyParameters> deepep_low_latency_parameters() {
  using P = LowLatencyParameters;
  const Range<Time> latency{0, kSecond};
  const Range<BitRate> rate{0, 100'000 * kGbps};
  return Parameters<P>()
      .time(
          "base_latency", &P::base_latency, latency,
          "time of the kernel besides its messages: casts, barriers, copies (from DeepEP's 77 us on 8 H800)")
      .time("hop_latency", &P::hop_latency, latency, "latency of a message over NVLink (DeepSeek: 3.33 us)")
      .time("hop_latency_net", &P::hop_latency_net, latency,
            "latency of a message between hosts (DeepSeek: 2.8 us)")
      .rate(
          "local_rate", &P::local_rate, rate,
          "rate at which a GPU's warps write tokens of a dispatch to the other GPUs of its host; 0: no limit")
      .rate("combine_local_rate", &P::combine_local_rate, rate, "the same in a combine; 0: no limit");
}

class LowLatency final : public CollectiveAlgorithm, public WithKernels {
 public:
  explicit LowLatency(const LowLatencyParameters& p) : p_(p) {}
  bool supports(CollectiveKind kind) const override { return has_tokens(kind); }
  PlanTraits traits() const override { return {.protocol = Protocol::simple}; }
  std::unique_ptr<Plan> plan(CollectiveKind kind, const GroupShape& shape) const override {
    check_all_to_all("deepep_low_latency", kind, shape.ranks);
    return std::make_unique<EachPeerPlan>("deepep_low_latency", kind, shape.ranks, Counted::What::copies);
  }
  KernelModel kernel_model(const KernelLoad& load) const override { return low_latency_kernels(p_, load); }

 private:
  LowLatencyParameters p_;
};

const Registration<CollectiveAlgorithm> kDeepepLowLatency{
    "deepep_low_latency",
    "sends tokens to their experts and back as DeepEP's low-latency kernels do, with a message for each "
    "token and expert",
    deepep_low_latency_parameters(),
    [](const LowLatencyParameters& p, const ConfigNode&) { return std::make_unique<LowLatency>(p); }};

}  // namespace
}  // namespace netsim
