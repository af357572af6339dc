// Does the compute model do its arithmetic, and is it near what is published for a GEMM alone?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/compute/compute_model.h"
#include "tests/compute/kernels.h"

namespace netsim::roofline_test {
namespace {

using test::compute_model;
using test::gemm;

// One SM at 1 TFLOP/s, one tile: 2 * 256 * 128 * k FLOP at 1 FLOP/ps.
TEST(Roofline, OneTileOnOneMultiprocessor) {
  const auto m = compute_model(
      "{kind: roofline, peak_tflops: 1, multiprocessors: 1, sustained: 1, pipeline_depth: 0, launch: 5 ns}");
  EXPECT_EQ(m->duration(gemm(256, 128, 1000)), 2 * 256 * 128 * 1000 + 5000);
  EXPECT_EQ(m->duration(gemm(255, 127, 1000)), 2 * 256 * 128 * 1000 + 5000)
      << "a partial tile costs a full one";
  EXPECT_EQ(m->duration(gemm(256, 128, 1000, 3)), 3 * 2 * 256 * 128 * 1000 + 5000);
}

// 108 tiles are one wave, 109 two.
TEST(Roofline, WavesAreQuantised) {
  const auto m = compute_model("{kind: a100_80gb, launch: 0}");
  const Time one = m->duration(gemm(256 * 108, 128, 8192)), two = m->duration(gemm(256 * 108 + 1, 128, 8192));
  EXPECT_GT(two, one * 3 / 2);
  EXPECT_LE(two, one * 2 + 1);
}

// Pieces of a GEMM fill each other's last waves: together they take the waves of the whole.
TEST(Roofline, PiecesShareTheirWaves) {
  const auto m = compute_model("{kind: a100_80gb, launch: 0}");
  Kernel piece = gemm(1024, 4096, 8192);
  const Time alone = m->duration(piece), whole = m->duration(gemm(4096, 4096, 8192));
  piece.pieces = 4;
  EXPECT_NEAR(static_cast<double>(4 * m->duration(piece)), static_cast<double>(whole), 4);
  EXPECT_LT(m->duration(piece), alone);
}

TEST(Roofline, MemoryBoundKernelsTakeTheirBytes) {
  const auto m =
      compute_model("{kind: roofline, hbm_bandwidth: 1000 GB/s, hbm_efficiency: 0.5, launch: 1 us}");
  Kernel kernel;
  kernel.kind = Kernel::Kind::memory;
  kernel.bytes = 500'000'000;
  EXPECT_EQ(m->duration(kernel), kMillisecond + kMicrosecond);
  // A GEMM too thin to compute for long is bound by its operands: 2 (m k + k n + m n) bytes.
  const Bytes traffic = 2 * (16'384LL * 16'384 + 16'384 + 16'384);
  EXPECT_GE(m->duration(gemm(1, 16'384, 16'384)), traffic * 2 + kMicrosecond);
}

// Results are 2 m n bytes, which take 2 ps each at half of 1000 GB/s, behind the multiplication.
TEST(Roofline, ResultsAreWrittenBehindTheMultiplicationWhereTheEpilogueIsExposed) {
  const std::string gpu =
      "{kind: roofline, peak_tflops: 1, multiprocessors: 1, sustained: 1, pipeline_depth: 0, launch: 0, "
      "hbm_bandwidth: 1000 GB/s, hbm_efficiency: 0.5";
  const Kernel kernel = gemm(256, 128, 1000, 3);
  const Time hidden = compute_model(gpu + "}")->duration(kernel);
  EXPECT_EQ(hidden, 3 * 2 * 256 * 128 * 1000);
  EXPECT_EQ(compute_model(gpu + ", exposed_epilogue: true}")->duration(kernel),
            hidden + 3 * 2 * 256 * 128 * 2);
}

// A sum has 4 bytes an element. It is written after the multiplication, and read beside it if there is time.
// In fp32 that is 4 m k + 4 k n bytes of operands and 8 m n, or 8 + 4 of them with the epilogue.
TEST(Roofline, ResultsAreAddedToThoseThatAreThere) {
  const std::string gpu =
      "{kind: roofline, peak_tflops: 1, fp32_tflops: 1, multiprocessors: 1, sustained: 1, pipeline_depth: 0, "
      "launch: 0, hbm_bandwidth: 1000 GB/s, hbm_efficiency: 0.5";
  Kernel kernel = gemm(256, 128, 1000, 3);
  kernel.element_bytes = 4;
  kernel.precision = Precision::fp32;
  kernel.accumulates = true;
  const Time multiplied = 3 * 2 * 256 * 128 * 1000;
  EXPECT_EQ(compute_model(gpu + "}")->duration(kernel), multiplied);
  EXPECT_EQ(compute_model(gpu + ", exposed_epilogue: true}")->duration(kernel),
            multiplied + 3 * 4 * 256 * 128 * 2);
  kernel.k = 1;
  const Time moved = 2 * 3 * (4 * (256 + 128) + 8 * 256 * 128);
  EXPECT_EQ(compute_model(gpu + "}")->duration(kernel), moved);
  kernel.accumulates = false;
  EXPECT_EQ(compute_model(gpu + "}")->duration(kernel), moved - 2 * 3 * 4 * 256 * 128);
}

// With 1 TFLOP/s in FP8 all GEMMs run at a half, and GEMMs of gradients of weights at a quarter. In half
// precision nothing changes.
TEST(Roofline, GradientsOfWeightsHaveARateOfTheirOwnInFp8) {
  const std::string gpu =
      "{kind: roofline, peak_tflops: 1, fp8_tflops: 1, multiprocessors: 1, sustained: 1, fp8_sustained: 0.5, "
      "pipeline_depth: 0, launch: 0";
  const auto own = compute_model(gpu + ", fp8_wgrad_sustained: 0.25}"), same = compute_model(gpu + "}");
  Kernel kernel = gemm(256, 128, 1000);
  const Time full = 2 * 256 * 128 * 1000;
  kernel.weight_gradient = true;
  EXPECT_EQ(own->duration(kernel), full);
  kernel.precision = Precision::fp8;
  EXPECT_EQ(same->duration(kernel), 2 * full);
  EXPECT_EQ(own->duration(kernel), 4 * full);
  kernel.weight_gradient = false;
  EXPECT_EQ(own->duration(kernel), 2 * full);
}

// 20 of 132 multiprocessors are held. So 132 x 112 tiles of 256 x 128 take 132 waves instead of 112.
TEST(Roofline, CommunicationMayHoldMultiprocessors) {
  const auto m = compute_model(
      "{kind: roofline, peak_tflops: 132, multiprocessors: 132, sustained: 1, attention_efficiency: 1, "
      "pipeline_depth: 0, launch: 0, hbm_bandwidth: 1000 Tbps}");
  const Time tile = 2 * 256 * 128 * 1000;
  Kernel tiles = gemm(256, 128, 1000, 132 * 112);
  EXPECT_EQ(m->duration(tiles), 112 * tile);
  tiles.held_multiprocessors = 20;
  EXPECT_EQ(m->duration(tiles), 132 * tile);
  Kernel attention = gemm(1024, 512, 132 * 112, 8);
  attention.kind = Kernel::Kind::attention;
  attention.bytes = 1;
  EXPECT_EQ(m->duration(attention), 2 * 1024 * 512 * 112 * 8LL);
  attention.held_multiprocessors = 20;
  EXPECT_EQ(m->duration(attention), 2 * 1024 * 512 * 132 * 8LL);
  attention.held_multiprocessors = 132;
  EXPECT_THAT(m->objection(attention),
              ::testing::HasSubstr("holds 132 multiprocessors, and the accelerator has 132"));
}

// With 1 TFLOP/s the forward runs at a half, and the backward at a quarter, or at the same rate.
TEST(Roofline, AttentionHasARateOfItsOwnBackward) {
  const std::string gpu = "{kind: roofline, peak_tflops: 1, attention_efficiency: 0.5, launch: 0";
  Kernel kernel = gemm(1024, 512, 320, 8);
  kernel.kind = Kernel::Kind::attention;
  kernel.bytes = 1;
  const Time forward = compute_model(gpu + "}")->duration(kernel);
  EXPECT_EQ(forward, 2 * 2 * 1024 * 512 * 320 * 8LL);
  const auto own = compute_model(gpu + ", attention_backward_efficiency: 0.25}");
  EXPECT_EQ(own->duration(kernel), forward);
  kernel.backward = true;
  EXPECT_EQ(own->duration(kernel), 2 * forward);
  EXPECT_EQ(compute_model(gpu + "}")->duration(kernel), forward);
}

TEST(Roofline, FixedKernelsTakeWhatTheySay) {
  Kernel kernel;
  kernel.kind = Kernel::Kind::fixed;
  kernel.duration = 12'345;
  EXPECT_EQ(compute_model("a100_80gb")->duration(kernel), 12'345);
}

// NVIDIA's CUTLASS profiler documentation: 235.1 TFLOP/s at 3456 x 4096 x 8192, fp16, on an A100. The model
// is calibrated on training runs, which reach less: within 8 %.
TEST(Roofline, IsNearThePublishedGemm) {
  const auto m = compute_model("a100_80gb");
  const double flops = 2.0 * 3456 * 4096 * 8192;
  const double tflops = flops / static_cast<double>(m->duration(gemm(3456, 4096, 8192)));
  EXPECT_LT(tflops, 235.1);
  EXPECT_GT(tflops, 235.1 * 0.92);
}

// Scores stay on the chip: arithmetic at its share of the peak, or the bytes that are named.
TEST(Roofline, FusedAttentionIsArithmeticOrItsBytes) {
  const auto m = compute_model("{kind: a100_80gb, launch: 0, attention_efficiency: 0.5}");
  Kernel kernel;
  kernel.kind = Kernel::Kind::attention;
  kernel.m = 1000;
  kernel.n = 500;
  kernel.k = 256;
  kernel.batch = 39;
  kernel.bytes = 1000;
  // 2 x 1000 x 500 x 256 x 39 operations at 156 TFLOP/s: 64 us.
  EXPECT_EQ(m->duration(kernel), 64'000'000);
  kernel.bytes = 2'039'000'000;
  EXPECT_NEAR(static_cast<double>(m->duration(kernel)), 1e9 / 0.85, 1);
}

TEST(Roofline, RefusesWhatCannotBe) {
  EXPECT_THROW(compute_model("{kind: a100_80gb, sustained: 1.5}"), ConfigError);
  EXPECT_THROW(compute_model("{kind: a100_80gb, hbm_bandwith: 1 GB/s}"), ConfigError);
  EXPECT_THROW(compute_model("{kind: a100}"), ConfigError);
}

}  // namespace
}  // namespace netsim::roofline_test
