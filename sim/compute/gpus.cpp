// GPUs by name: the roofline model with the values of their data sheets. Rates are for dense matrices. Where
// a data sheet gives only rates with 2:4 sparsity, they are halved.
//
// `sustained` is the highest GEMM rate that was measured, as a share of the peak, and so includes clocks
// under the power limit. The source is mamf-finder (Bekman, Machine Learning Engineering Open Book, chapter
// Accelerators), with two exceptions:
//
// - a100_80gb: 0.72, calibrated on rows 1 and 10 of table 1 of Narayanan et al. (SC'21, PTD-P: 1.7B and
//   1008B parameters). It therefore includes the clocks of training; docs/evidence/validation.md shows the
//   predictions for other rows. A GEMM alone is faster: mamf-finder measured 271.2 TFLOP/s (0.87). NVIDIA's
//   CUTLASS profiler documentation has 235.1 for 3456 x 4096 x 8192, four whole waves of 256 x 128, which
//   would be 0.765 here.
// - v100_sxm2: the highest rate that Markidis et al. (arXiv 1803.04014) measured, 83 TFLOP/s.
//
// Memory: the GB of data sheets are GiB, because HBM is sold in powers of two. The 80 GB of an A100 are 85.9
// 10^9 bytes (nvidia-smi: 81920 MiB). Driver and firmware keep a part (an H100 shows 81559 MiB), which is not
// subtracted here.
//
// Attention: 0.6 of the peak everywhere (roofline.h), except for mi300x, whose GEMMs reach less than that.
// The mi300x gets the same share of its GEMM rate as an h100_sxm, which is an assumption, not a measurement.
#include <string>

#include "sim/compute/roofline.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

constexpr BitRate kGBps = 8 * kGbps;

// NVIDIA A100 80GB SXM data sheet; GA100 white paper.
constexpr RooflineParameters kA100{};
// NVIDIA A100 40GB SXM data sheet: the same chip with less and slower memory.
constexpr RooflineParameters kA100With40{.hbm_bandwidth = 1555 * kGBps, .memory = 40 * kGibibyte};
// NVIDIA V100 data sheet: SXM2, with 16 or 32 GB. Its tensor cores support half precision only.
constexpr RooflineParameters kV100{.peak_tflops = 125,
                                   .fp32_tflops = 15.7,
                                   .tf32_tflops = 0,
                                   .multiprocessors = 80,
                                   .sustained = 83.0 / 125,
                                   .hbm_bandwidth = 900 * kGBps,
                                   .memory = 32 * kGibibyte};
// NVIDIA H100 data sheet, SXM5; H100 white paper. MAMF 794.5 (bf16) and 1402.6 (fp8) TFLOP/s.
constexpr RooflineParameters kH100{.peak_tflops = 989.4,
                                   .fp32_tflops = 66.9,
                                   .tf32_tflops = 494.7,
                                   .fp8_tflops = 1978.9,
                                   .multiprocessors = 132,
                                   .sustained = 794.5 / 989.4,
                                   .fp8_sustained = 1402.6 / 1978.9,
                                   .hbm_bandwidth = 3350 * kGBps};
// The H800 is the same chip with fewer NVLinks. Its data sheet has the same rates and memory.
constexpr RooflineParameters kH800 = kH100;
// Returns the parameters of the same chip with other memory. The H200 has more and faster memory than the
// H100 (NVIDIA H200 data sheet).
constexpr RooflineParameters with_memory(RooflineParameters gpu, BitRate bandwidth, Bytes memory) {
  gpu.hbm_bandwidth = bandwidth;
  gpu.memory = memory;
  return gpu;
}
constexpr RooflineParameters kH200 = with_memory(kH100, 4800 * kGBps, 141 * kGibibyte);
// NVIDIA H20, SXM5: its data sheet as SemiAnalysis printed it (9 November 2023). MegaScale-Infer (Zhu et al.,
// SIGCOMM 2025, table 3) has the same rate and memory. Geekbench reports 78 SMs. The sustained rates of its
// GEMMs are not published; the H100's shares are assumed.
constexpr RooflineParameters kH20{.peak_tflops = 148,
                                  .fp32_tflops = 44,
                                  .tf32_tflops = 74,
                                  .fp8_tflops = 296,
                                  .multiprocessors = 78,
                                  .sustained = 794.5 / 989.4,
                                  .fp8_sustained = 1402.6 / 1978.9,
                                  .hbm_bandwidth = 4000 * kGBps,
                                  .memory = 96 * kGibibyte};
// NVIDIA Blackwell data sheet, HGX B200; 148 SMs on two dies. MAMF 1745 and 3432.5 TFLOP/s.
constexpr RooflineParameters kB200{.peak_tflops = 2250,
                                   .fp32_tflops = 75,
                                   .tf32_tflops = 1100,
                                   .fp8_tflops = 4500,
                                   .fp4_tflops = 9000,
                                   .multiprocessors = 148,
                                   .sustained = 1745.0 / 2250,
                                   .fp8_sustained = 3432.5 / 4500,
                                   .hbm_bandwidth = 7700 * kGBps,
                                   .memory = 180 * kGibibyte};
// A GPU of GB200 NVL72, from the same data sheet; 152 SMs. MAMF 1822 and 3615.6 TFLOP/s.
constexpr RooflineParameters kGb200{.peak_tflops = 2500,
                                    .fp32_tflops = 80,
                                    .tf32_tflops = 1250,
                                    .fp8_tflops = 5000,
                                    .fp4_tflops = 10'000,
                                    .multiprocessors = 152,
                                    .sustained = 1822.0 / 2500,
                                    .fp8_sustained = 3615.6 / 5000,
                                    .hbm_bandwidth = 8000 * kGBps,
                                    .memory = 186 * kGibibyte};
// AMD MI300X data sheet; compute units count as SMs. MAMF 668.4 TFLOP/s (bf16), also used for fp8.
constexpr RooflineParameters kMi300x{.peak_tflops = 1307.4,
                                     .fp32_tflops = 163.4,
                                     .tf32_tflops = 653.7,
                                     .fp8_tflops = 2614.9,
                                     .multiprocessors = 304,
                                     .sustained = 668.4 / 1307.4,
                                     .fp8_sustained = 668.4 / 1307.4,
                                     .attention_efficiency = 0.6 * (668.4 / 1307.4) / (794.5 / 989.4),
                                     .hbm_bandwidth = 5300 * kGBps,
                                     .memory = 192 * kGibibyte};

// GpuDefaults: the roofline parameters with the values of `gpu` as defaults.
template <const RooflineParameters& gpu>
struct GpuDefaults : RooflineParameters {
  GpuDefaults() : RooflineParameters(gpu) {}
};

template <const RooflineParameters& gpu>
Registration<ComputeModel> registration(const char* name, const char* summary, int line = __builtin_LINE()) {
  return Registration<ComputeModel>(
      name, summary, roofline_parameters<GpuDefaults<gpu>>(),
      [](const GpuDefaults<gpu>& p, const ConfigNode&) { return make_roofline(p); }, {}, __FILE__, line);
}

const Registration<ComputeModel> kRegistrations[] = {
    registration<kA100>("a100_80gb", "NVIDIA A100 SXM 80 GB: the roofline model with its data sheet"),
    registration<kA100With40>("a100_40gb", "NVIDIA A100 SXM 40 GB: the roofline model with its data sheet"),
    registration<kV100>("v100_sxm2", "NVIDIA V100 SXM2: the roofline model with its data sheet"),
    registration<kH100>("h100_sxm", "NVIDIA H100 SXM5: the roofline model with its data sheet"),
    registration<kH800>("h800_sxm", "NVIDIA H800 SXM5: the roofline model with the H100's data sheet"),
    registration<kH200>("h200_sxm", "NVIDIA H200 SXM5: the roofline model with its data sheet"),
    registration<kH20>("h20_sxm", "NVIDIA H20 SXM5: the roofline model with its published figures"),
    registration<kB200>("b200", "NVIDIA B200 (HGX): the roofline model with its data sheet"),
    registration<kGb200>("gb200", "a GPU of NVIDIA's GB200: the roofline model with its data sheet"),
    registration<kMi300x>("mi300x", "AMD MI300X: the roofline model with its data sheet")};

}  // namespace
}  // namespace netsim
