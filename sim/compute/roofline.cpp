#include "sim/compute/roofline.h"

#include <algorithm>
#include <array>
#include <string>

#include "sim/compute/peak_rates.h"
#include "sim/core/registry.h"
#include "sim/core/time_limits.h"

namespace netsim {
namespace {

// Tile shapes and their rates, read from figure 3 of the guide (roofline.h).
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
  Bytes memory() const override { return p_.memory; }
  std::uint32_t multiprocessors() const override { return static_cast<std::uint32_t>(p_.multiprocessors); }

  std::string objection(const Kernel& kernel) const override { return objection_to(kernel, p_); }

  Time duration(const Kernel& kernel) const override {
    switch (kernel.kind) {
      case Kernel::Kind::fixed:
        return kernel.duration;
      case Kernel::Kind::memory:
        return p_.launch + round_up(memory_time(static_cast<double>(kernel.bytes)));
      case Kernel::Kind::gemm:
        return p_.launch + round_up(std::max(arithmetic_time(kernel), memory_time(gemm_traffic(kernel))) +
                                    epilogue_time(kernel));
      case Kernel::Kind::attention:
        return p_.launch +
               round_up(std::max(attention_time(kernel), memory_time(static_cast<double>(kernel.bytes))));
    }
    return 0;
  }
  using ComputeModel::duration;

  KernelWaves waves(const Kernel& kernel) const override {
    const Time all = duration(kernel);
    if (kernel.kind != Kernel::Kind::gemm) return {0, all, 1, 1, 1};
    const std::int64_t blocks = tiling_of(kernel).blocks, in_wave = std::min(blocks, left_to(kernel));
    return {std::min(p_.launch, all), all, (blocks + in_wave - 1) / in_wave, blocks, in_wave};
  }

 private:
  static Time round_up(double picoseconds) {
    const Time whole = bounded_time(picoseconds);
    return static_cast<double>(whole) < picoseconds ? whole + 1 : whole;
  }
  double memory_time(double bytes) const { return bytes / bytes_per_ps_; }

  double epilogue_time(const Kernel& g) const {
    if (!p_.exposed_epilogue) return 0;
    return memory_time(static_cast<double>(g.m) * static_cast<double>(g.n) *
                       static_cast<double>(g.element_bytes) * static_cast<double>(g.batch));
  }

  double peak(Precision precision) const { return peak_tflops_of(p_, precision); }
  double sustained(const Kernel& g) const {
    const bool small = g.precision == Precision::fp8 || g.precision == Precision::fp4;
    if (small && g.weight_gradient && p_.fp8_wgrad_sustained > 0) return p_.fp8_wgrad_sustained * p_.clock;
    return (small ? p_.fp8_sustained : p_.sustained) * p_.clock;
  }

  std::int64_t left_to(const Kernel& kernel) const {
    return p_.multiprocessors - kernel.held_multiprocessors;
  }

  double attention_time(const Kernel& a) const {
    const double flops = 2.0 * static_cast<double>(a.m) * static_cast<double>(a.n) *
                         static_cast<double>(a.k) * static_cast<double>(a.batch);
    const bool own = a.backward && p_.attention_backward_efficiency > 0;
    const double efficiency = own ? p_.attention_backward_efficiency : p_.attention_efficiency;
    const double left = static_cast<double>(left_to(a)) / static_cast<double>(p_.multiprocessors);
    return flops / (peak(a.precision) * efficiency * p_.clock * left);
  }

  // Tiling: the tiles of a GEMM and the time in ps that they take.
  struct Tiling {
    std::int64_t blocks = 1;
    double time = 0;
  };
  double arithmetic_time(const Kernel& g) const { return tiling_of(g).time; }
  // Returns the fastest tiling.
  Tiling tiling_of(const Kernel& g) const {
    const double rate = peak(g.precision);
    const double per_sm = rate / static_cast<double>(p_.multiprocessors) * sustained(g);  // FLOP per ps
    const double depth = static_cast<double>(p_.pipeline_depth) * (rate / p_.peak_tflops);
    Tiling best;
    for (const Tile& tile : kTiles) {
      const double tiles = divide_up(g.m, tile.m) * divide_up(g.n, tile.n) * static_cast<double>(g.batch);
      const auto all = static_cast<std::int64_t>(tiles) * g.pieces;
      const double waves = divide_up(all, left_to(g)) / static_cast<double>(g.pieces);
      const double flops = 2.0 * static_cast<double>(tile.m * tile.n) * (static_cast<double>(g.k) + depth);
      const double time = waves * flops / (per_sm * tile.rate);
      if (best.time == 0 || time < best.time) best = {static_cast<std::int64_t>(tiles), time};
    }
    return best;
  }

  RooflineParameters p_;
  double bytes_per_ps_;
};

const Registration<ComputeModel> kRoofline{
    "roofline",
    "GEMMs by tiles and waves, other kernels by memory bandwidth; give it any accelerator's data sheet",
    roofline_parameters<RooflineParameters>(),
    [](const RooflineParameters& p, const ConfigNode&) { return make_roofline(p); }};

}  // namespace

std::unique_ptr<ComputeModel> make_roofline(const RooflineParameters& parameters) {
  return std::make_unique<Roofline>(parameters);
}

}  // namespace netsim
