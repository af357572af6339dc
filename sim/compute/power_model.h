// A compute model whose GPUs choose their clock by their power limit. GEMMs run in tiles and waves of
// clusters (gemm_plan.h), attention by its thread blocks (attention_schedule.h), other kernels at the
// memory's rate. A task's kernels run at the highest clock at which their mean power is within the limit
// (power_law.h). power_gpus.cpp has the constants of each GPU, with their sources.
#pragma once

#include <memory>
#include <string>

#include "sim/compute/compute_model.h"
#include "sim/core/parameters.h"
#include "sim/core/units.h"

namespace netsim {

// AttentionKernel: the library whose kernels compute fused attention. `tuned` has the constants of
// ClockedGpu, which are cuDNN's. FlashAttention-2 does not use the H100's asynchronous multiplications.
enum class AttentionKernel : std::uint8_t { tuned, flash_attention_2 };

// ClockedGpu: the defaults are those of an H100 SXM5 (data sheet, white paper, and the measurements above).
struct ClockedGpu {
  double peak_tflops = 989.4;  // at `peak_clock`
  double fp32_tflops = 66.9, tf32_tflops = 494.7, fp8_tflops = 1978.9, fp4_tflops = 0;
  std::int64_t peak_clock_mhz = 1830;  // 132 SMs x 4,096 FLOP x 1,830 MHz are the peak
  std::int64_t multiprocessors = 132, gpcs = 8, cluster_blocks = 2;
  bool persistent_gemms = true;
  double l2_bytes_per_cycle = 5120;  // A100 white paper; assumed for the H100
  std::int64_t pipeline_depth = 256;
  std::int64_t fp8_promotion_lanes = 128;  // FP32 lanes of an SM (white paper)
  AttentionKernel attention = AttentionKernel::tuned;
  double attention_efficiency = 0.65, attention_backward_efficiency = 0.56;
  std::int64_t attention_fill = 352, attention_backward_fill = 576;
  BitRate hbm_bandwidth = 3350 * 8 * kGbps;
  double hbm_efficiency = 0.9;  // measured copies
  // PyTorch's index_add() on an H100 takes 4,719 us for 4,000,000 x 128 elements in bf16 (pytorch/pytorch,
  // pull request 175760, before it). Its instructions limit it, so other GPUs have the same rate a cycle.
  double atomic_adds_per_cycle = 0.415;
  // Read and written by a block that copies memory as a channel of NCCL does: layers_beside.csv. These bytes
  // take their energy, too.
  BitRate held_bandwidth = 30 * 8 * kGbps;
  // Blocks of a cluster that NCCL launches its channels in: 4 from compute capability 9.0 on (cgaClusterSize
  // in its init.cc and enqueue.cc). Clusters take whole TPCs.
  std::int64_t channel_cluster = 4;
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
      .real("fp4_tflops", &P::fp4_tflops, {0, 1e6}, "peak of FP4 in TFLOP/s; 0: not supported")
      .integer("peak_clock_mhz", &P::peak_clock_mhz, {1, 100'000}, "clock in MHz at which the peaks hold")
      .integer("multiprocessors", &P::multiprocessors, {2, 100'000}, "streaming multiprocessors (SMs)")
      .integer("gpcs", &P::gpcs, {1, 1000},
               "GPU processing clusters; a cluster of blocks runs in one of them")
      .integer("cluster_blocks", &P::cluster_blocks, {1, 2},
               "blocks of a GEMM that run on a pair of multiprocessors together; 1: no clusters")
      .flag("persistent_gemms", &P::persistent_gemms,
            "GEMMs are launched as a cluster for each pair of multiprocessors; those that find none beside "
            "communication run their first two tiles later. false: the hardware deals tiles")
      .real("l2_bytes_per_cycle", &P::l2_bytes_per_cycle, {1, 1e6},
            "bytes that the L2 cache delivers a cycle")
      .integer("pipeline_depth", &P::pipeline_depth, {0, 100'000},
               "fill, drain and epilogue of a tile, in steps of k in half precision")
      .integer(
          "fp8_promotion_lanes", &P::fp8_promotion_lanes, {0, 100'000},
          "sums that an SM adds a cycle where FP8 GEMMs of the backward accumulate in fp32; 0: at no cost")
      .template choice<AttentionKernel>(
          "attention", &P::attention,
          {{"tuned", AttentionKernel::tuned}, {"flash_attention_2", AttentionKernel::flash_attention_2}},
          "kernels of fused attention: tuned, which have the four constants below (cuDNN), or "
          "flash_attention_2 with its own (H100)")
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
      .real("atomic_adds_per_cycle", &P::atomic_adds_per_cycle, {0, 1e6},
            "elements that an SM adds to the memory a cycle by atomic operations, where a kernel does so "
            "(PyTorch's index_add and scatter_add); 0: as fast as the memory")
      .rate("held_bandwidth", &P::held_bandwidth, {0, 1'000 * 8 * kGbps},
            "memory bandwidth that each multiprocessor held by communication takes; 0: held ones only wait")
      .integer("channel_cluster", &P::channel_cluster, {1, 16},
               "blocks of a cluster that communication channels are launched in; 1: each alone")
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

// Returns the model. `note` says which constants are assumed; it is among the notes of each run unless empty.
std::unique_ptr<ComputeModel> make_power_model(const ClockedGpu& gpu, const std::string& note = "");

}  // namespace netsim
