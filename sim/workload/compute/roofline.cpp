// Roofline with tile and wave quantisation: a kernel takes as long as its arithmetic or its memory traffic
// needs, whichever is longer, plus its launch.
//
// GEMM arithmetic (NVIDIA, Matrix Multiplication Background User's Guide, sections 2.3, 3.1, 3.2): the output
// is cut into tiles, one thread block each; partial tiles cost as much as full ones (tile quantisation), and
// the blocks run in waves of one per SM, the last as long as the others (wave quantisation). The library
// picks the tile shape that is fastest. A tile costs its multiply-adds at the SM's rate, and a fill and drain
// of the pipeline worth `pipeline_depth` more of k. Smaller tiles reuse less of what they load and run at a
// smaller share of the rate (kTiles; our reading of figure 3 there).
//
// `sustained` is the share of the data sheet's peak that an SM keeps up inside a large tile: clocks under the
// power limit (NVIDIA rates A100 for HPL at 1305 of 1410 MHz) times issue efficiency. For the A100 it is the
// one calibrated number of this model: 0.72, calibrated on rows 1 and 10 of table 1 of Narayanan et al.
// (SC'21, PTD-P: 1.7B and 1008B parameters), see docs/validation.md, which also shows what it predicts for
// other rows. A GEMM alone on the GPU does better: NVIDIA's CUTLASS profiler documentation has 235.1 TFLOP/s
// for 3456 x 4096 x 8192 in fp16, exactly four waves of 256 x 128, which would be 0.765 here.
//
// Fused attention (FlashAttention-2: Dao, arXiv 2307.08691) computes inside the SMs: its arithmetic runs at
// `attention_efficiency` of the peak, or its `bytes` take longer. FlashAttention-2 reaches 50 to 73 % of an
// A100's peak (abstract there); FlashAttention-3 740 TFLOP/s, 75 %, on an H100 (Shah et al., arXiv
// 2407.08608).
//
// hbm_efficiency: streaming kernels (BabelStream copy and triad) reach 85 to 90 % of an A100's peak
// bandwidth. launch: back-to-back empty kernels of one stream take about 2 us each.
#include <algorithm>
#include <array>

#include "sim/core/registry.h"
#include "sim/workload/compute/compute_model.h"

namespace netsim {
namespace {

struct RooflineParameters {
  double peak_tflops = 312;
  std::int64_t multiprocessors = 108;
  double sustained = 0.72;
  std::int64_t pipeline_depth = 128;
  double attention_efficiency = 0.6;
  BitRate hbm_bandwidth = 2039 * 8 * kGbps;
  double hbm_efficiency = 0.85;
  Time launch = 2 * kMicrosecond;
};

Parameters<RooflineParameters> parameters() {
  using P = RooflineParameters;
  return Parameters<P>()
      .real("peak_tflops", &P::peak_tflops, {0.001, 1e6}, "dense half-precision peak in TFLOP/s (data sheet)")
      .integer("multiprocessors", &P::multiprocessors, {1, 100'000}, "SMs: thread blocks of a wave")
      .real("sustained", &P::sustained, {0.01, 1},
            "share of the peak that an SM sustains inside a large GEMM tile")
      .integer("pipeline_depth", &P::pipeline_depth, {0, 100'000},
               "fill and drain of a tile's pipeline, in steps of k")
      .real("attention_efficiency", &P::attention_efficiency, {0.01, 1},
            "share of the peak that fused attention reaches")
      .rate("hbm_bandwidth", &P::hbm_bandwidth, {1 * kGbps, 1'000'000 * kGbps},
            "memory bandwidth (data sheet)")
      .real("hbm_efficiency", &P::hbm_efficiency, {0.01, 1}, "share of it that streaming kernels reach")
      .time("launch", &P::launch, {0, 1 * kSecond}, "from the end of a kernel to the start of the next");
}

struct Tile {
  std::int64_t m, n;
  double rate;  // share of `sustained`
};
constexpr std::array<Tile, 5> kTiles{
    {{256, 128, 1.0}, {128, 256, 1.0}, {128, 128, 0.9}, {128, 64, 0.75}, {64, 64, 0.6}}};

constexpr double divide_up(std::int64_t a, std::int64_t b) {
  const std::int64_t parts = (a + b - 1) / b;
  return static_cast<double>(parts);
}

class Roofline final : public ComputeModel {
 public:
  explicit Roofline(const RooflineParameters& p)
      : p_(p), bytes_per_ps_(static_cast<double>(p.hbm_bandwidth) / 8e12 * p.hbm_efficiency) {}

  double peak_flops() const override { return p_.peak_tflops * 1e12; }

  Time duration(const Kernel& kernel) const override {
    switch (kernel.kind) {
      case Kernel::Kind::fixed:
        return kernel.duration;
      case Kernel::Kind::memory:
        return p_.launch + round_up(memory_time(static_cast<double>(kernel.bytes)));
      case Kernel::Kind::gemm:
        return p_.launch + round_up(std::max(arithmetic_time(kernel), memory_time(traffic(kernel))));
      case Kernel::Kind::attention:
        return p_.launch +
               round_up(std::max(attention_time(kernel), memory_time(static_cast<double>(kernel.bytes))));
    }
    return 0;
  }
  using ComputeModel::duration;

 private:
  static Time round_up(double picoseconds) {
    const auto whole = static_cast<Time>(picoseconds);
    return static_cast<double>(whole) < picoseconds ? whole + 1 : whole;
  }
  double memory_time(double bytes) const { return bytes / bytes_per_ps_; }

  // Each operand once: caches and tiles reuse the rest.
  static double traffic(const Kernel& g) {
    const auto m = static_cast<double>(g.m), n = static_cast<double>(g.n), k = static_cast<double>(g.k);
    return (m * k + k * n + m * n) * static_cast<double>(g.batch) * static_cast<double>(g.element_bytes);
  }

  double attention_time(const Kernel& a) const {
    const double flops = 2.0 * static_cast<double>(a.m) * static_cast<double>(a.n) *
                         static_cast<double>(a.k) * static_cast<double>(a.batch);
    return flops / (p_.peak_tflops * p_.attention_efficiency);
  }

  double arithmetic_time(const Kernel& g) const {
    const double per_sm =
        p_.peak_tflops / static_cast<double>(p_.multiprocessors) * p_.sustained;  // FLOP per ps
    double best = 0;
    for (const Tile& tile : kTiles) {
      const double tiles = divide_up(g.m, tile.m) * divide_up(g.n, tile.n) * static_cast<double>(g.batch);
      const double waves = divide_up(static_cast<std::int64_t>(tiles), p_.multiprocessors);
      const double flops =
          2.0 * static_cast<double>(tile.m * tile.n) * static_cast<double>(g.k + p_.pipeline_depth);
      const double time = waves * flops / (per_sm * tile.rate);
      if (best == 0 || time < best) best = time;
    }
    return best;
  }

  RooflineParameters p_;
  double bytes_per_ps_;
};

std::unique_ptr<ComputeModel> make(const RooflineParameters& p, const ConfigNode&) {
  return std::make_unique<Roofline>(p);
}

const Registration<ComputeModel> kRoofline{
    "roofline",
    "GEMMs by tiles and waves, other kernels by memory bandwidth; give it any accelerator's data sheet",
    parameters(), make};
// The defaults above are its data sheet (NVIDIA A100 80GB SXM: 312 TFLOP/s dense FP16, 108 SMs, 2,039 GB/s).
const Registration<ComputeModel> kA100{
    "a100_80gb", "NVIDIA A100 SXM 80 GB: the roofline model with its data sheet", parameters(), make};

}  // namespace
}  // namespace netsim
