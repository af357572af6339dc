// lazy_fusion: GradientFlow (Sun et al., "Optimizing Network Performance for Distributed DNN Training on GPU
// Clusters: ImageNet/AlexNet Training in 1.5 Minutes", 2019). Gradients are appended to a pool in the order
// in which they are computed. One all-reduce takes the pool when it has `threshold` bytes, and at the end.
//
// With `sparse`, only the chunks of the pool with the largest norms are reduced. Before them, the norms of
// all chunks are all-reduced, 4 bytes each, so that all workers choose the same chunks. The first `warm_up`
// iterations reduce everything.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "sim/core/config_entries.h"
#include "sim/core/registry.h"
#include "sim/training/layers/gradient_exchange.h"

namespace netsim {
namespace {

struct SparseReduction {
  Bytes chunk = 64 * kKibibyte;
  double density = 1;
  std::int64_t warm_up = 0;
};
struct LazyFusionParameters {
  Bytes threshold = 64 * kMegabyte;
  SparseReduction sparse;
};

constexpr Bytes kNormBytes = 4;
constexpr std::uint64_t kMaxTableValues = 10'000'000;

class LazyFusion final : public GradientExchange {
 public:
  LazyFusion(const LazyFusionParameters& p, const ConfigNode& where)
      : p_(p), sparse_where_(entry_or_self(where, "sparse")) {
    if (p_.sparse.density == 0)
      entry_or_self(sparse_where_, "density").fail("0; allowed: more than 0, up to 1");
  }

  void check(const std::vector<TimedLayer>&, const ExchangeSettings& settings) const override {
    if (p_.sparse.warm_up > settings.iterations) {
      entry_or_self(sparse_where_, "warm_up")
          .fail(std::to_string(p_.sparse.warm_up) + " of " + std::to_string(settings.iterations) +
                " iterations");
    }
  }

  void write(LayerStep& step, const ExchangeSettings& settings) const override {
    step.forwards();
    step.backward();
    for (const FusedGradients& pool : fuse_gradients(step, p_.threshold, p_.threshold)) {
      const LayerStep::Node reduced =
          p_.sparse.density < 1 ? sparse(step, pool, settings) : dense(step, pool);
      for (const std::uint32_t layer : pool.layers) step.exchanged(layer, reduced);
    }
  }

 private:
  static LayerStep::Node dense(LayerStep& step, const FusedGradients& pool) {
    return step.collective(fused_name("gradients", step, pool), CollectiveKind::all_reduce, pool.bytes,
                           gradients_of(step, pool));
  }
  LayerStep::Node sparse(LayerStep& step, const FusedGradients& pool,
                         const ExchangeSettings& settings) const {
    const Bytes chunks = (pool.bytes + p_.sparse.chunk - 1) / p_.sparse.chunk;
    const Bytes kept = std::clamp<Bytes>(
        static_cast<Bytes>(std::ceil(static_cast<double>(chunks) * p_.sparse.density)), 1, chunks);
    const Bytes bytes = std::min(pool.bytes, kept * p_.sparse.chunk);
    const LayerStep::Node norms = step.collective(fused_name("norms", step, pool), CollectiveKind::all_reduce,
                                                  chunks * kNormBytes, gradients_of(step, pool));
    const LayerStep::Node reduced =
        step.collective(fused_name("chunks", step, pool), CollectiveKind::all_reduce, bytes, {norms});
    if (p_.sparse.warm_up > 0) step.set_table(reduced, warm_up_table(step, pool.bytes, bytes, settings));
    return reduced;
  }
  // Returns the table of the bytes in each iteration: the whole pool at first, then its chosen chunks.
  std::uint32_t warm_up_table(LayerStep& step, Bytes all, Bytes chosen,
                              const ExchangeSettings& settings) const {
    if (std::uint64_t{settings.iterations} * step.ranks() > kMaxTableValues) {
      entry_or_self(sparse_where_, "warm_up")
          .fail("iterations x ranks are too many for it: at most " + std::to_string(kMaxTableValues));
    }
    std::vector<std::int64_t> values(std::size_t{settings.iterations} * step.ranks(), chosen);
    const auto first = static_cast<std::ptrdiff_t>(p_.sparse.warm_up * std::int64_t{step.ranks()});
    std::fill(values.begin(), values.begin() + first, all);
    return step.builder().table(std::move(values));
  }

  LazyFusionParameters p_;
  ConfigNode sparse_where_;
};

Parameters<LazyFusionParameters> lazy_fusion_parameters() {
  using P = LazyFusionParameters;
  using S = SparseReduction;
  return Parameters<P>()
      .bytes("threshold", &P::threshold, {0, 1000 * kGigabyte},
             "bytes at which the pool is reduced; 0: each layer by itself")
      .section(
          "sparse", &P::sparse,
          Parameters<S>()
              .bytes("chunk", &S::chunk, {1, 1000 * kGigabyte}, "bytes of a chunk")
              .real("density", &S::density, {0, 1}, "share of the chunks that is reduced; 1: all")
              .integer("warm_up", &S::warm_up, {0, 1'000'000}, "first iterations that reduce all chunks"),
          "coarse-grained sparse all-reduce");
}

const Registration<GradientExchange> kLazyFusion{"lazy_fusion",
                                                 "GradientFlow: an all-reduce of a pool of gradients when it "
                                                 "has reached a size, of all its chunks or of the "
                                                 "share with the largest norms",
                                                 lazy_fusion_parameters(),
                                                 [](const LazyFusionParameters& p, const ConfigNode& where) {
                                                   return std::make_unique<LazyFusion>(p, where);
                                                 }};

}  // namespace
}  // namespace netsim
