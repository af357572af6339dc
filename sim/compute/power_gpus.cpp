// GPUs whose clock follows from their power limit (power_model.h).
//
// The constants of H100, H800 and H200 are for one H100 SXM measured for this project. Some were fitted to
// the rows that score them (docs/concepts/compute.md). The names are those of the columns of sustained.csv.
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
//
// No clock and power of A100, B200 and GB200 is known, so two constants are assumed. Their static and active
// power take the same shares of the limit as on the H100. One constant each was found from a published table,
// the energy of an operation (AIConfigurator, commit 095f58a51, short bursts). It makes the mean of the
// logarithmic errors zero over the BF16 GEMMs of 10^11 operations and more. Attention's constants are those
// of the H100, and its operations take the same share of a GEMM's energy. A note says so in each run.
#include <memory>
#include <string>

#include "sim/compute/power_model.h"
#include "sim/core/config_entries.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

constexpr BitRate kPowerGBps = 8 * kGbps;

constexpr ClockedGpu kClockedH100{};
// The H200 is the same chip with the same limit of 700 W and other memory (data sheet). The energy of a byte
// of HBM3e is assumed to be the same.
constexpr ClockedGpu kClockedH200{.hbm_bandwidth = 4800 * 8 * kGbps, .memory = 141 * kGibibyte};

// NVIDIA A100 80GB SXM: data sheet, GA100 white paper (1,410 MHz, 108 SMs; clusters came with the H100).
constexpr ClockedGpu kClockedA100{.peak_tflops = 312,
                                  .fp32_tflops = 19.5,
                                  .tf32_tflops = 156,
                                  .fp8_tflops = 0,
                                  .peak_clock_mhz = 1410,
                                  .multiprocessors = 108,
                                  .cluster_blocks = 1,
                                  .persistent_gemms = false,
                                  .hbm_bandwidth = 2039 * kPowerGBps,
                                  .hbm_efficiency = 0.85,  // roofline.h
                                  .channel_cluster = 1,
                                  .power_limit = 400,
                                  .static_power = 40,
                                  .active_power = 134,
                                  .operation_energy = 1.2,
                                  .attention_energy = 0.85,
                                  .clock_mhz = 1410};
// NVIDIA HGX B200: Blackwell data sheet (1,000 W). 148 SMs x 8,192 FLOP x 1,856 MHz are the peak. The rate of
// its L2 cache is not published; twice the H100's is assumed. From this generation on the hardware deals
// clusters to persistent kernels (clusterlaunchcontrol in the PTX ISA); cuBLAS is assumed to use that. cuBLAS
// has no fast accumulation there to choose (Transformer Engine, pull request 2748), so FP8 costs no
// additions.
constexpr ClockedGpu kClockedB200{.peak_tflops = 2250,
                                  .fp32_tflops = 75,
                                  .tf32_tflops = 1100,
                                  .fp8_tflops = 4500,
                                  .fp4_tflops = 9000,
                                  .peak_clock_mhz = 1856,
                                  .multiprocessors = 148,
                                  .persistent_gemms = false,
                                  .l2_bytes_per_cycle = 10'240,
                                  .fp8_promotion_lanes = 0,
                                  .hbm_bandwidth = 7700 * kPowerGBps,
                                  .memory = 180 * kGibibyte,
                                  .power_limit = 1000,
                                  .static_power = 100,
                                  .active_power = 334,
                                  .operation_energy = 0.9,
                                  .attention_energy = 0.64,
                                  .clock_mhz = 1965};
// A GPU of GB200 NVL72: the same data sheet (1,200 W, 152 SMs, 2,008 MHz). The energies are those of the
// B200.
constexpr ClockedGpu kClockedGb200{.peak_tflops = 2500,
                                   .fp32_tflops = 80,
                                   .tf32_tflops = 1250,
                                   .fp8_tflops = 5000,
                                   .fp4_tflops = 10'000,
                                   .peak_clock_mhz = 2008,
                                   .multiprocessors = 152,
                                   .persistent_gemms = false,
                                   .l2_bytes_per_cycle = 10'240,
                                   .fp8_promotion_lanes = 0,
                                   .hbm_bandwidth = 8000 * kPowerGBps,
                                   .memory = 186 * kGibibyte,
                                   .power_limit = 1200,
                                   .static_power = 120,
                                   .active_power = 401,
                                   .operation_energy = 0.9,
                                   .attention_energy = 0.64,
                                   .clock_mhz = 2062};

constexpr const char* kAssumed =
    "the power constants of this GPU are assumed, not measured: static and active power are the H100's "
    "shares of the limit, and the energy of an operation was found from short bursts of BF16 GEMMs "
    "(docs/concepts/compute.md). compute.kind without _power has published rates instead";

template <const ClockedGpu& gpu>
struct ClockedDefaults : ClockedGpu {
  ClockedDefaults() : ClockedGpu(gpu) {}
};

template <const ClockedGpu& gpu>
Registration<ComputeModel> clocked(const char* name, const char* summary, const char* note = "",
                                   int line = __builtin_LINE()) {
  return Registration<ComputeModel>(
      name, summary, clocked_gpu_parameters<ClockedDefaults<gpu>>(),
      [note](const ClockedDefaults<gpu>& p, const ConfigNode& where) -> std::unique_ptr<ComputeModel> {
        if (p.lowest_clock_mhz > p.clock_mhz) {
          entry_or_self(where, "lowest_clock_mhz")
              .fail("lowest_clock_mhz is " + std::to_string(p.lowest_clock_mhz) +
                    ", but the highest clock is " + std::to_string(p.clock_mhz) + " MHz");
        }
        return make_power_model(p, note);
      },
      {}, __FILE__, line);
}

const Registration<ComputeModel> kClocked[] = {
    clocked<kClockedH100>("h100_sxm_power", "NVIDIA H100 SXM5 with clocks that follow from its power limit"),
    clocked<kClockedH100>("h800_sxm_power",
                          "NVIDIA H800 SXM5: the same chip as the H100, with its constants"),
    clocked<kClockedH200>("h200_sxm_power", "NVIDIA H200 SXM5: the H100's constants with its own memory"),
    clocked<kClockedA100>("a100_80gb_power", "NVIDIA A100 SXM 80 GB with clocks from power, partly assumed",
                          kAssumed),
    clocked<kClockedB200>("b200_power", "NVIDIA B200 (HGX) with clocks from power, partly assumed", kAssumed),
    clocked<kClockedGb200>("gb200_power", "a GPU of NVIDIA's GB200 with clocks from power, partly assumed",
                           kAssumed)};

}  // namespace
}  // namespace netsim
