// Roofline with tile and wave quantisation: a kernel takes as long as its arithmetic or its memory traffic
// needs, whichever is longer, plus its launch.
//
// GEMM arithmetic (NVIDIA, Matrix Multiplication Background User's Guide, sections 2.3, 3.1, 3.2): the output
// is cut into tiles, one thread block each; partial tiles cost as much as full ones (tile quantisation), and
// the blocks run in waves of one per SM, the last as long as the others (wave quantisation). The library
// picks the tile shape that is fastest. A tile costs its multiply-adds at the SM's rate, and a fill and drain
// of the pipeline worth `pipeline_depth` more of k; that takes the same time in every precision. Smaller
// tiles reuse less of what they load and run at a smaller share of the rate.
//
// Results are written while the next tile is multiplied; with `exposed_epilogue` no SM multiplies meanwhile,
// as in kernels whose accumulators fill the registers (DeepGEMM's first release, which adds up FP8 products
// in fp32 on CUDA cores): what they take of the memory comes on top. A GEMM that adds its results to those
// that are there reads these while it multiplies (DeepGEMM's kernels for gradients of weights fetch them
// behind the last operands: fp8_wgrad_gemm.cuh, pull request 95).
//
// Fused attention (FlashAttention-2: Dao, arXiv 2307.08691) computes inside the SMs: its arithmetic runs at
// `attention_efficiency` of the peak, its backward at a share of its own, or its `bytes` take longer.
#pragma once

#include <memory>

#include "sim/compute/compute_model.h"
#include "sim/core/parameters.h"
#include "sim/core/units.h"

namespace netsim {

// The defaults are an A100's (gpus.cpp). Rates in TFLOP/s are those of data sheets for dense matrices; 0: the
// accelerator has no such arithmetic, and a kernel that needs it is refused.
struct RooflineParameters {
  double peak_tflops = 312;  // half precision
  double fp32_tflops = 19.5, tf32_tflops = 156, fp8_tflops = 0, fp4_tflops = 0;
  std::int64_t multiprocessors = 108;
  // The share of the peak that an SM keeps up inside a large tile: clocks under the power limit times issue
  // efficiency. 8 and 4 bits draw more power a second, so theirs is a number of its own.
  double sustained = 0.72, fp8_sustained = 0.72;
  // What a training job leaves of that, where it runs hotter than a GEMM alone. 1: nothing is lost.
  double clock = 1;
  std::int64_t pipeline_depth = 128;
  // FlashAttention-2 reaches 50 to 73 % of an A100's peak (abstract there); FlashAttention-3 740 TFLOP/s, 75
  // %, forward on an H100 (Shah et al., arXiv 2407.08608), and less backward.
  double attention_efficiency = 0.6;
  // Its backward; 0: the same. FlashAttention-3 on an H100, head size 128, 4,096 tokens, no mask: 542
  // TFLOP/s, where its forward has 638, and 579 with a causal mask (figures 5 and 6 there).
  double attention_backward_efficiency = 0;
  // `fp8_sustained` of GEMMs of gradients of weights; 0: the same. Where both operands are scaled for each
  // 128 elements of a row, CUDA cores multiply each sum by two scales. DeepGEMM's kernels then reach 0.63
  // on an H800 (docs/concepts/compute.md).
  double fp8_wgrad_sustained = 0;
  bool exposed_epilogue = false;
  BitRate hbm_bandwidth = 2039 * 8 * kGbps;
  // Streaming kernels (BabelStream copy and triad) reach 85 to 90 % of an A100's peak bandwidth.
  double hbm_efficiency = 0.85;
  Bytes memory = 80 * kGibibyte;
  Time launch = 2 * kMicrosecond;  // back-to-back empty kernels of one stream take about 2 us each
};

// Declares the parameters for a struct that is derived from RooflineParameters, or that itself.
template <class P>
Parameters<P> roofline_parameters() {
  return Parameters<P>()
      .real("peak_tflops", &P::peak_tflops, {0.001, 1e6}, "dense half-precision peak in TFLOP/s (data sheet)")
      .real("fp32_tflops", &P::fp32_tflops, {0, 1e6}, "of fp32 without tensor cores; 0: there is none")
      .real("tf32_tflops", &P::tf32_tflops, {0, 1e6}, "of TF32; 0: there is none")
      .real("fp8_tflops", &P::fp8_tflops, {0, 1e6}, "of FP8; 0: there is none")
      .real("fp4_tflops", &P::fp4_tflops, {0, 1e6}, "of FP4 (NVFP4, MXFP4); 0: there is none")
      .integer("multiprocessors", &P::multiprocessors, {1, 100'000}, "SMs: thread blocks of a wave")
      .real("sustained", &P::sustained, {0.01, 1},
            "share of the peak that an SM sustains inside a large GEMM tile")
      .real("fp8_sustained", &P::fp8_sustained, {0.01, 1}, "the same in FP8 and FP4")
      .real("clock", &P::clock, {0.01, 1},
            "share of these rates that is left in the user's training job (power limit); 1: all")
      .integer("pipeline_depth", &P::pipeline_depth, {0, 100'000},
               "fill and drain of a tile's pipeline, in steps of k in half precision")
      .real("attention_efficiency", &P::attention_efficiency, {0.01, 1},
            "share of the peak that fused attention reaches")
      .real("attention_backward_efficiency", &P::attention_backward_efficiency, {0, 1},
            "the same of its backward; 0: as forward")
      .real("fp8_wgrad_sustained", &P::fp8_wgrad_sustained, {0, 1},
            "fp8_sustained of GEMMs that compute gradients of weights; 0: the same")
      .flag("exposed_epilogue", &P::exposed_epilogue,
            "a GEMM multiplies nothing while it writes results, as kernels with large accumulators")
      .rate("hbm_bandwidth", &P::hbm_bandwidth, {1 * kGbps, 1'000'000 * kGbps},
            "memory bandwidth (data sheet)")
      .real("hbm_efficiency", &P::hbm_efficiency, {0.01, 1}, "share of it that streaming kernels reach")
      .bytes("memory", &P::memory, {0, 100'000 * kGibibyte},
             "what tensors may take of it (data sheet); 0: no limit is known")
      .time("launch", &P::launch, {0, 1 * kSecond}, "from the end of a kernel to the start of the next");
}

std::unique_ptr<ComputeModel> make_roofline(const RooflineParameters& parameters);

}  // namespace netsim
