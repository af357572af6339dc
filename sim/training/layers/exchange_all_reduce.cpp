// all_reduce: gradients are all-reduced in buckets, in the order in which they are computed.
//
// Each layer by itself is wait-free backpropagation (Zhang et al., "Poseidon", USENIX ATC 2017). Buckets are
// those of PyTorch's DistributedDataParallel (Li et al., VLDB 2020; reducer.hpp). A bucket is reduced when
// all of its gradients are computed, and buckets are launched in order. PyTorch fills buckets in the reverse
// order of the parameters, and rebuilds them after the first iteration in the order in which the gradients
// came. The buckets here are the rebuilt ones.
#include <memory>

#include "sim/core/registry.h"
#include "sim/training/layers/gradient_exchange.h"

namespace netsim {
namespace {

struct AllReduceExchangeParameters {
  Bytes bucket = 0;
  std::optional<Bytes> first_bucket;
};

class AllReduceExchange final : public GradientExchange {
 public:
  explicit AllReduceExchange(const AllReduceExchangeParameters& p) : p_(p) {}

  void write(LayerStep& step, const ExchangeSettings&) const override {
    step.forwards();
    step.backward();
    for (const FusedGradients& bucket :
         fuse_gradients(step, p_.first_bucket.value_or(p_.bucket), p_.bucket)) {
      const LayerStep::Node reduced =
          step.collective(fused_name("gradients", step, bucket), CollectiveKind::all_reduce, bucket.bytes,
                          gradients_of(step, bucket));
      for (const std::uint32_t layer : bucket.layers) step.exchanged(layer, reduced);
    }
  }

 private:
  AllReduceExchangeParameters p_;
};

Parameters<AllReduceExchangeParameters> all_reduce_exchange_parameters() {
  using P = AllReduceExchangeParameters;
  return Parameters<P>()
      .bytes("bucket", &P::bucket, {0, 1000 * kGigabyte},
             "bytes at which a bucket is full; PyTorch's default is 25 MiB; 0: each layer is a bucket")
      .bytes("first_bucket", &P::first_bucket, {0, 1000 * kGigabyte}, "bucket",
             "bytes at which the first bucket is full; PyTorch's default is 1 MiB");
}

const Registration<GradientExchange> kAllReduceExchange{
    "all_reduce",
    "an all-reduce of each layer's gradient, or of buckets of layers, as soon as the backward has computed "
    "it "
    "(wait-free backpropagation, PyTorch DDP)",
    all_reduce_exchange_parameters(), [](const AllReduceExchangeParameters& p, const ConfigNode&) {
      return std::make_unique<AllReduceExchange>(p);
    }};

}  // namespace
}  // namespace netsim
