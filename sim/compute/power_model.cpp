// GPUs whose clock follows from their power limit. GEMMs run in tiles and waves of clusters (gemm_plan.h),
// attention by its thread blocks (attention_schedule.h), other kernels at the memory's rate. A task's kernels
// run at the highest clock at which their mean power is within the limit (power_law.h).
//
// The constants are for one H100 SXM measured for this project. Some were fitted to the rows that score them
// (docs/concepts/compute.md). The names are those of the columns of sustained.csv.
// - A multiplication takes the whole rate of the tensor cores inside a tile: GEMMs with k of 12,288 and more
//   reach 0.95 of it, all of which is the last wave and the pipeline. The pipeline takes as long as 256 steps
//   of k in half precision, from GEMMs with k of 1,536 to 12,288.
// - Energy of a byte: 31.4 pJ, from 3.92 pJ a bit of HBM2 (O'Connor et al., MICRO 2017); assumed for HBM3.
// - Static power: 70 W, assumed; not measured here.
// - Active power: what a copy of 2,985 GB/s at the highest clock draws beyond these two, of 398 W.
// - Energy of an operation: what bf16 GEMMs draw beyond these at 690 TFLOP/s, 1,330 MHz and 700 W. One in FP8
//   takes half of it, by the bits of its operands. FP8 has no constant of its own.
// - Slope of the voltage: set by hand between fits, with GEMMs beside held multiprocessors at up to
//   1,734 MHz.
// - Attention, by grid search on the rows that score it: causal forward and backward with 2,048 and 8,192
//   tokens. Its operands vary less than those of the GEMMs, from a normal distribution, and an operation
//   takes less energy.
#include <algorithm>
#include <string>
#include <vector>

#include "sim/compute/attention_schedule.h"
#include "sim/compute/compute_model.h"
#include "sim/compute/gemm_plan.h"
#include "sim/compute/power_law.h"
#include "sim/core/config_entries.h"
#include "sim/core/parameters.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

constexpr double kPicojoule = 1e-12;

// ClockedGpu: the defaults are those of an H100 SXM5 (data sheet, white paper, and the measurements above).
struct ClockedGpu {
  double peak_tflops = 989.4;  // at `peak_clock`
  double fp32_tflops = 66.9, tf32_tflops = 494.7, fp8_tflops = 1978.9;
  std::int64_t peak_clock_mhz = 1830;  // 132 SMs x 4,096 FLOP x 1,830 MHz are the peak
  std::int64_t multiprocessors = 132, gpcs = 8;
  double l2_bytes_per_cycle = 5120;  // A100 white paper; assumed for the H100
  std::int64_t pipeline_depth = 256;
  double attention_efficiency = 0.65, attention_backward_efficiency = 0.56;
  std::int64_t attention_fill = 352, attention_backward_fill = 576;
  BitRate hbm_bandwidth = 3350 * 8 * kGbps;
  double hbm_efficiency = 0.9;  // measured copies
  // Read and written by a block that copies memory as a channel of NCCL does: layers_beside.csv.
  BitRate held_bandwidth = 30 * 8 * kGbps;
  Bytes memory = 80 * kGibibyte;
  Time launch = 2 * kMicrosecond;
  double power_limit = 700, static_power = 70, active_power = 234;
  double operation_energy = 1.4, attention_energy = 1.0, byte_energy = 31.4;  // pJ
  double voltage_slope = 0.8;
  std::int64_t clock_mhz = 1980, lowest_clock_mhz = 210, clock_step_mhz = 15;
  // Bursts of 30 to 100 ms run up to 14 % faster than sustained kernels (short_bursts.csv).
  Time power_window = 100 * kMillisecond;
};

template <class P>
Parameters<P> clocked_gpu_parameters() {
  return Parameters<P>()
      .real("peak_tflops", &P::peak_tflops, {0.001, 1e6}, "dense half-precision peak in TFLOP/s (data sheet)")
      .real("fp32_tflops", &P::fp32_tflops, {0, 1e6}, "peak of fp32 in TFLOP/s; 0: not supported")
      .real("tf32_tflops", &P::tf32_tflops, {0, 1e6}, "peak of TF32 in TFLOP/s; 0: not supported")
      .real("fp8_tflops", &P::fp8_tflops, {0, 1e6}, "peak of FP8 in TFLOP/s; 0: not supported")
      .integer("peak_clock_mhz", &P::peak_clock_mhz, {1, 100'000}, "clock in MHz at which the peaks hold")
      .integer("multiprocessors", &P::multiprocessors, {2, 100'000}, "streaming multiprocessors (SMs)")
      .integer("gpcs", &P::gpcs, {1, 1000},
               "GPU processing clusters; a cluster of blocks runs in one of them")
      .real("l2_bytes_per_cycle", &P::l2_bytes_per_cycle, {1, 1e6},
            "bytes that the L2 cache delivers a cycle")
      .integer("pipeline_depth", &P::pipeline_depth, {0, 100'000},
               "fill, drain and epilogue of a tile, in steps of k in half precision")
      .real("attention_efficiency", &P::attention_efficiency, {0.01, 1},
            "share of the tensor cores' rate inside a block of fused attention")
      .real("attention_backward_efficiency", &P::attention_backward_efficiency, {0.01, 1},
            "the same of its backward")
      .integer("attention_fill", &P::attention_fill, {0, 100'000},
               "beginning and end of a block of fused attention, as keys that take as long")
      .integer("attention_backward_fill", &P::attention_backward_fill, {0, 100'000},
               "the same of its backward")
      .rate("hbm_bandwidth", &P::hbm_bandwidth, {1 * kGbps, 1'000'000 * kGbps},
            "memory bandwidth (data sheet)")
      .real("hbm_efficiency", &P::hbm_efficiency, {0.01, 1}, "share of hbm_bandwidth that kernels reach")
      .rate("held_bandwidth", &P::held_bandwidth, {0, 1'000 * 8 * kGbps},
            "memory bandwidth that each multiprocessor held by communication takes; 0: held ones only wait")
      .bytes("memory", &P::memory, {0, 100'000 * kGibibyte},
             "memory that tensors may use; 0: no limit is known")
      .time("launch", &P::launch, {0, 1 * kSecond}, "time from the end of a kernel to the start of the next")
      .real("power_limit", &P::power_limit, {1, 1e5}, "power limit in W (data sheet)")
      .real("static_power", &P::static_power, {0, 1e5}, "power of an idle GPU in W")
      .real("active_power", &P::active_power, {0, 1e5},
            "power in W that any running kernel adds at the highest clock")
      .real("operation_energy", &P::operation_energy, {0, 1e6},
            "energy of a half-precision operation of a GEMM at the highest voltage, in pJ")
      .real("attention_energy", &P::attention_energy, {0, 1e6}, "the same of fused attention")
      .real("byte_energy", &P::byte_energy, {0, 1e6}, "energy of a byte through the memory, in pJ")
      .real("voltage_slope", &P::voltage_slope, {0, 1},
            "relative change of the voltage for a relative change of the clock")
      .integer("clock_mhz", &P::clock_mhz, {1, 100'000}, "highest clock in MHz")
      .integer("lowest_clock_mhz", &P::lowest_clock_mhz, {1, 100'000}, "lowest clock in MHz")
      .integer("clock_step_mhz", &P::clock_step_mhz, {1, 1000}, "distance between clocks in MHz")
      .time("power_window", &P::power_window, {1 * kMicrosecond, 1000 * kSecond},
            "time over which the power is averaged, idle time included");
}

class PowerModel final : public ComputeModel {
 public:
  explicit PowerModel(const ClockedGpu& p)
      : p_(p),
        law_({p.power_limit, p.static_power, p.active_power, p.voltage_slope, p.clock_mhz, p.lowest_clock_mhz,
              p.clock_step_mhz, p.power_window}) {}

  double peak_flops() const override { return p_.peak_tflops * 1e12; }
  Bytes memory() const override { return p_.memory; }
  std::uint32_t multiprocessors() const override { return static_cast<std::uint32_t>(p_.multiprocessors); }
  const PowerLaw* power_law() const override { return &law_; }

  std::string objection(const Kernel& kernel) const override {
    const bool multiplies = kernel.kind == Kernel::Kind::gemm || kernel.kind == Kernel::Kind::attention;
    if (multiplies && kernel.held_multiprocessors >= p_.multiprocessors) {
      return "communication holds " + std::to_string(kernel.held_multiprocessors) +
             " multiprocessors, and the accelerator has " + std::to_string(p_.multiprocessors);
    }
    if (!multiplies || peak_of(kernel.precision) > 0) return "";
    const std::string precision = to_string(kernel.precision);
    return "the accelerator has no " + precision + " (or none whose energy is known)";
  }

  Time duration(const Kernel& kernel) const override { return sustained_time({demand(kernel, 0)}); }
  Time duration(const Work& work) const override { return sustained_time(demands(work, 0)); }

  std::vector<KernelDemand> demands(const Work& work, std::int64_t held) const override {
    std::vector<KernelDemand> demands;
    demands.reserve(work.kernels.size());
    for (const Kernel& kernel : work.kernels) demands.push_back(demand(kernel, held));
    return demands;
  }

  KernelWaves waves(const Kernel& kernel) const override {
    const Time all = duration(kernel);
    if (kernel.kind != Kernel::Kind::gemm) return {0, all, 1, 1, 1};
    const TensorCores cores = cores_for(kernel.precision);
    const GemmPlan plan = plan_gemm(kernel, cores);
    const std::int64_t in_wave =
        std::min(plan.blocks, 2 * usable_clusters(cores, kernel.held_multiprocessors));
    return {std::min(p_.launch, all), all, (plan.blocks + in_wave - 1) / in_wave, plan.blocks, in_wave};
  }

 private:
  double peak_of(Precision precision) const {
    switch (precision) {
      case Precision::half:
        return p_.peak_tflops;
      case Precision::fp32:
        return p_.fp32_tflops;
      case Precision::tf32:
        return p_.tf32_tflops;
      case Precision::fp8:
        return p_.fp8_tflops;
      case Precision::fp4:
        return 0;
    }
    return 0;
  }
  double flops_per_cycle(Precision precision) const {
    return peak_of(precision) * 1e6 / static_cast<double>(p_.peak_clock_mhz * p_.multiprocessors);
  }
  TensorCores cores_for(Precision precision) const {
    const double depth = static_cast<double>(p_.pipeline_depth);
    return {p_.multiprocessors, p_.gpcs, flops_per_cycle(precision), p_.l2_bytes_per_cycle,
            depth * 2 * 256 * 128 / flops_per_cycle(Precision::half)};
  }

  KernelDemand demand(const Kernel& kernel, std::int64_t held) const {
    const std::int64_t all_held = taken(kernel, held);
    switch (kernel.kind) {
      case Kernel::Kind::fixed:
        return {.fixed_time = static_cast<double>(kernel.duration)};
      case Kernel::Kind::memory:
        return with_bytes({}, static_cast<double>(kernel.bytes), all_held);
      case Kernel::Kind::gemm:
        return with_bytes(gemm_demand(kernel, all_held), gemm_traffic(kernel), all_held);
      case Kernel::Kind::attention:
        return with_bytes(attention_demand(kernel, all_held), static_cast<double>(kernel.bytes), all_held);
    }
    return {};
  }
  // Adds the launch and the bytes of a kernel. Communication leaves at least half of the bandwidth.
  KernelDemand with_bytes(KernelDemand demand, double bytes, std::int64_t held) const {
    const double bytes_per_ps = static_cast<double>(p_.hbm_bandwidth) / 8e12 * p_.hbm_efficiency;
    const double moved = static_cast<double>(p_.held_bandwidth) / 8e12 * static_cast<double>(held);
    demand.fixed_time = static_cast<double>(p_.launch);
    demand.memory_time = bytes / std::max(bytes_per_ps - moved, bytes_per_ps / 2);
    demand.memory_energy = bytes * p_.byte_energy * kPicojoule;
    return demand;
  }
  // Returns the multiprocessors that communication takes; the kernel keeps at least one.
  std::int64_t taken(const Kernel& kernel, std::int64_t held) const {
    return std::min(kernel.held_multiprocessors + held, p_.multiprocessors - 1);
  }
  static double operations(const Kernel& kernel) {
    return 2.0 * static_cast<double>(kernel.m) * static_cast<double>(kernel.n) *
           static_cast<double>(kernel.k) * static_cast<double>(kernel.batch);
  }
  static double energy_of(const Kernel& kernel, double half) {
    return operations(kernel) * half * kPicojoule * static_cast<double>(operand_bits(kernel.precision)) / 16;
  }
  KernelDemand gemm_demand(const Kernel& gemm, std::int64_t held) const {
    const TensorCores cores = cores_for(gemm.precision);
    const GemmPlan plan = plan_gemm(gemm, cores);
    return {.cycles = waves_of(plan, cores, held, gemm.pieces) * plan.block_cycles,
            .core_energy = energy_of(gemm, p_.operation_energy)};
  }
  KernelDemand attention_demand(const Kernel& attention, std::int64_t held) const {
    AttentionRates rates{flops_per_cycle(attention.precision), p_.attention_efficiency,
                         static_cast<double>(p_.attention_fill)};
    if (attention.backward) {
      rates.efficiency = p_.attention_backward_efficiency;
      rates.fill_keys = static_cast<double>(p_.attention_backward_fill);
    }
    return {.cycles = attention_cycles(attention, rates, p_.multiprocessors - held),
            .core_energy = energy_of(attention, p_.attention_energy)};
  }

  // Returns the time of kernels that a GPU repeats for long, one after the other.
  Time sustained_time(const std::vector<KernelDemand>& demands) const {
    const double time = PowerLaw::time(demands, law_.clock(demands, 0));
    const Time whole = bounded_time(time);
    return static_cast<double>(whole) < time ? whole + 1 : whole;
  }

  ClockedGpu p_;
  PowerLaw law_;
};

constexpr ClockedGpu kClockedH100{};
// The H200 is the same chip with the same limit of 700 W and other memory (data sheet). The energy of a byte
// of HBM3e is assumed to be the same.
constexpr ClockedGpu kClockedH200{.hbm_bandwidth = 4800 * 8 * kGbps, .memory = 141 * kGibibyte};

template <const ClockedGpu& gpu>
struct ClockedDefaults : ClockedGpu {
  ClockedDefaults() : ClockedGpu(gpu) {}
};

template <const ClockedGpu& gpu>
Registration<ComputeModel> clocked(const char* name, const char* summary, int line = __builtin_LINE()) {
  return Registration<ComputeModel>(
      name, summary, clocked_gpu_parameters<ClockedDefaults<gpu>>(),
      [](const ClockedDefaults<gpu>& p, const ConfigNode& where) -> std::unique_ptr<ComputeModel> {
        if (p.lowest_clock_mhz > p.clock_mhz) {
          entry_or_self(where, "lowest_clock_mhz")
              .fail("lowest_clock_mhz is " + std::to_string(p.lowest_clock_mhz) +
                    ", but the highest clock is " + std::to_string(p.clock_mhz) + " MHz");
        }
        return std::make_unique<PowerModel>(p);
      },
      {}, __FILE__, line);
}

const Registration<ComputeModel> kClocked[] = {
    clocked<kClockedH100>("h100_sxm_power", "NVIDIA H100 SXM5 with clocks that follow from its power limit"),
    clocked<kClockedH100>("h800_sxm_power",
                          "NVIDIA H800 SXM5: the same chip as the H100, with its constants"),
    clocked<kClockedH200>("h200_sxm_power", "NVIDIA H200 SXM5: the H100's constants with its own memory")};

}  // namespace
}  // namespace netsim
