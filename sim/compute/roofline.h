// Roofline model with tile and wave quantisation: a kernel takes its launch plus the longer of its arithmetic
// and its memory traffic.
//
// GEMM arithmetic follows NVIDIA's Matrix Multiplication Background User's Guide, sections 2.3, 3.1, 3.2. The
// output is divided into tiles, one thread block each; partial tiles cost as much as full ones (tile
// quantisation). The blocks run in waves of one block per SM, and the last wave takes as long as the others
// (wave quantisation).
//
// The library picks the fastest tile shape. A tile costs its multiply-adds at the SM's rate. Filling and
// draining the pipeline costs another `pipeline_depth` steps of k, which take the same time in every
// precision. Smaller tiles reuse less of the data they load and run at a smaller share of the rate.
//
// A tile's results are written while the next tile is multiplied. With `exposed_epilogue` no SM multiplies
// meanwhile, and the time of the writes is added. Such kernels have accumulators that fill the registers
// (DeepGEMM's first release adds up FP8 products in fp32 on CUDA cores).
//
// A GEMM that adds to existing results reads them while it multiplies. DeepGEMM's kernels for weight
// gradients fetch them behind the last operands (fp8_wgrad_gemm.cuh, pull request 95).
//
// Fused attention (FlashAttention-2: Dao, arXiv 2307.08691) computes inside the SMs. Its arithmetic runs at
// `attention_efficiency` of the peak, backward at `attention_backward_efficiency`. Its `bytes` may take
// longer.
#pragma once

#include <memory>

#include "sim/compute/compute_model.h"
#include "sim/core/parameters.h"
#include "sim/core/units.h"

namespace netsim {

// RooflineParameters: the defaults are those of an A100 (gpus.cpp). Rates in TFLOP/s are those of data sheets
// for dense matrices. A rate of 0 means that the accelerator lacks such arithmetic; a kernel that needs it is
// refused.
struct RooflineParameters {
  double peak_tflops = 312;  // half precision
  double fp32_tflops = 19.5, tf32_tflops = 156, fp8_tflops = 0, fp4_tflops = 0;
  std::int64_t multiprocessors = 108;
  // Shares of the peak that an SM sustains inside a large tile: clocks under the power limit times issue
  // efficiency. FP8 and FP4 have a share of their own because they draw more power.
  double sustained = 0.72, fp8_sustained = 0.72;
  // Share of `sustained` that is left in a training job, which runs hotter than a GEMM alone. 1 means no
  // loss.
  double clock = 1;
  std::int64_t pipeline_depth = 128;
  // Share of the peak that fused attention reaches forward. FlashAttention-2 reaches 50 to 73 % on an A100
  // (its abstract). FlashAttention-3 reaches 740 TFLOP/s, 75 %, forward on an H100 (Shah et al., arXiv
  // 2407.08608), and less backward.
  double attention_efficiency = 0.6;
  // Share of the peak that fused attention reaches backward; 0: the same as forward. FlashAttention-3 on an
  // H100 reaches 542 TFLOP/s backward and 638 forward (head size 128, 4,096 tokens, no mask). With a causal
  // mask it reaches 579 backward (figures 5 and 6).
  double attention_backward_efficiency = 0;
  // `fp8_sustained` of GEMMs that compute weight gradients; 0: the same. Where both operands are scaled per
  // 128 elements of a row, CUDA cores multiply each sum by two scales. DeepGEMM's kernels reach 0.63 on an
  // H800 (docs/concepts/compute.md).
  double fp8_wgrad_sustained = 0;
  bool exposed_epilogue = false;
  BitRate hbm_bandwidth = 2039 * 8 * kGbps;
  // Share of the bandwidth that kernels reach. Streaming kernels (BabelStream copy and triad) reach 85 to 90
  // % of an A100's peak bandwidth.
  double hbm_efficiency = 0.85;
  Bytes memory = 80 * kGibibyte;
  Time launch = 2 * kMicrosecond;  // back-to-back empty kernels of one stream take about 2 us each
};

// Declares the parameters. `P` is RooflineParameters or a struct derived from it.
template <class P>
Parameters<P> roofline_parameters() {
  return Parameters<P>()
      .real("peak_tflops", &P::peak_tflops, {0.001, 1e6}, "dense half-precision peak in TFLOP/s (data sheet)")
      .real("fp32_tflops", &P::fp32_tflops, {0, 1e6},
            "peak of fp32 without tensor cores in TFLOP/s; 0: not supported")
      .real("tf32_tflops", &P::tf32_tflops, {0, 1e6}, "peak of TF32 in TFLOP/s; 0: not supported")
      .real("fp8_tflops", &P::fp8_tflops, {0, 1e6}, "peak of FP8 in TFLOP/s; 0: not supported")
      .real("fp4_tflops", &P::fp4_tflops, {0, 1e6}, "peak of FP4 (NVFP4, MXFP4) in TFLOP/s; 0: not supported")
      .integer("multiprocessors", &P::multiprocessors, {1, 100'000},
               "streaming multiprocessors (SMs): thread blocks of a wave")
      .real("sustained", &P::sustained, {0.01, 1},
            "share of the peak that an SM sustains inside a large GEMM tile")
      .real("fp8_sustained", &P::fp8_sustained, {0.01, 1},
            "share of the FP8 or FP4 peak that an SM sustains inside a large GEMM tile")
      .real("clock", &P::clock, {0.01, 1},
            "share of these rates that a training job reaches (power limit); 1: all")
      .integer("pipeline_depth", &P::pipeline_depth, {0, 100'000},
               "fill and drain of a tile's pipeline, in steps of k in half precision")
      .real("attention_efficiency", &P::attention_efficiency, {0.01, 1},
            "share of the peak that fused attention reaches")
      .real("attention_backward_efficiency", &P::attention_backward_efficiency, {0, 1},
            "share of the peak that the backward of fused attention reaches; 0: as the forward")
      .real("fp8_wgrad_sustained", &P::fp8_wgrad_sustained, {0, 1},
            "fp8_sustained of GEMMs that compute gradients of weights; 0: the same")
      .flag("exposed_epilogue", &P::exposed_epilogue,
            "a GEMM does not multiply while it writes results, as in kernels with large accumulators")
      .rate("hbm_bandwidth", &P::hbm_bandwidth, {1 * kGbps, 1'000'000 * kGbps},
            "memory bandwidth (data sheet)")
      .real("hbm_efficiency", &P::hbm_efficiency, {0.01, 1},
            "share of hbm_bandwidth that streaming kernels reach")
      .bytes("memory", &P::memory, {0, 100'000 * kGibibyte},
             "memory that tensors may use (data sheet); 0: no limit is known")
      .time("launch", &P::launch, {0, 1 * kSecond}, "time from the end of a kernel to the start of the next");
}

std::unique_ptr<ComputeModel> make_roofline(const RooflineParameters& parameters);

}  // namespace netsim
