// DeepEP's low-latency kernels (csrc/kernels/internode_ll.cu in DeepSeek's DeepEP, v1): a message for each
// token and expert, straight to the expert's GPU, over NVLink where that is in the same host and by RDMA
// else. Nothing is taken together and nothing waits for room: buffers are there for all that may come. All
// messages of a token are sent at once by warps of their own.
#include "sim/collectives/algorithm.h"
#include "sim/collectives/algorithms/each_peer_plan.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

// Latencies of messages as in deepep.cpp. What the kernels do besides - cast the tokens, meet at a grid
// barrier between sending and receiving, wait for the slowest GPU, copy what came to where the experts want
// it - nobody has published. base_latency is what it takes to make the smallest figure right that DeepEP's
// README has, a dispatch of 128 tokens over 8 H800 in 77 us; all others follow from it (docs/evidence/validation.md).
struct LowLatencyParameters {
  Time base_latency = 32 * kMicrosecond;
  Time hop_latency = 3'330 * kNanosecond;
  Time hop_latency_net = 2'800 * kNanosecond;
};

Parameters<LowLatencyParameters> deepep_low_latency_parameters() {
  using P = LowLatencyParameters;
  const Range<Time> latency{0, kSecond};
  return Parameters<P>()
      .time("base_latency", &P::base_latency, latency,
            "of the kernel besides its messages: casts, barriers, copies (from DeepEP's 77 us on 8 H800)")
      .time("hop_latency", &P::hop_latency, latency, "of a message over NVLink (DeepSeek: 3.33 us)")
      .time("hop_latency_net", &P::hop_latency_net, latency, "of one between hosts (DeepSeek: 2.8 us)");
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
  std::optional<KernelModel> own_kernels(const Load& load) const override {
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
    "tokens to their experts and back as DeepEP's low-latency kernels do it: a message for each token and "
    "expert",
    deepep_low_latency_parameters(),
    [](const LowLatencyParameters& p, const ConfigNode&) { return std::make_unique<LowLatency>(p); }};

}  // namespace
}  // namespace netsim
