// Do GPUs whose clock follows from power do their arithmetic, and are they near what was measured on an H100?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <utility>
#include <vector>

#include "sim/compute/attention_schedule.h"
#include "sim/compute/compute_model.h"
#include "sim/compute/power_law.h"
#include "tests/compute/kernels.h"
#include "tests/support/kernel_table.h"

namespace netsim::power_test {
namespace {

using test::compute_model;
using test::Errors;
using test::gemm;
using test::KernelRow;
using ::testing::HasSubstr;

Kernel of_bytes(Bytes bytes) {
  Kernel kernel;
  kernel.bytes = bytes;
  return kernel;
}

// ---- The power law

TEST(PowerLaw, AddsItsTerms) {
  const PowerLaw law({.limit_watts = 1000, .static_watts = 50, .active_watts = 200, .voltage_slope = 0.5});
  // 1,980 cycles at 1,980 MHz are 1 us; 1e-4 J in it are 100 W.
  const std::vector<KernelDemand> kernels{{.cycles = 1980, .core_energy = 1e-4, .memory_energy = 2e-5}};
  EXPECT_DOUBLE_EQ(PowerLaw::time(kernels, 1980), 1e6);
  EXPECT_DOUBLE_EQ(law.power(kernels, 0, 1980), 50 + 200 + 100 + 20);
  EXPECT_DOUBLE_EQ(law.power(kernels, 1e6, 1980), 50 + 100 + 50 + 10) << "half of the time is idle";
  EXPECT_DOUBLE_EQ(law.power(kernels, 0, 990), 50 + 0.75 * 0.75 * (100 + 50) + 10) << "half the clock";
  EXPECT_DOUBLE_EQ(law.power({}, 0, 1980), 50);
}

TEST(PowerLaw, FindsTheHighestClockWithinTheLimit) {
  const std::vector<KernelDemand> kernels{{.cycles = 1e6, .core_energy = 0.5}};
  std::int64_t last = 0;
  for (const double limit : {100.0, 300.0, 500.0, 700.0, 900.0, 2000.0}) {
    const PowerLaw law({.limit_watts = limit});
    const std::int64_t mhz = law.clock(kernels, 0);
    EXPECT_EQ((1980 - mhz) % 15, 0);
    EXPECT_GE(mhz, last);
    if (mhz > 210) {
      EXPECT_LE(law.power(kernels, 0, mhz), limit);
    }
    if (mhz < 1980) {
      EXPECT_GT(law.power(kernels, 0, mhz + 15), limit);
    }
    last = mhz;
  }
  EXPECT_EQ(last, 1980);
  const PowerLaw law({.limit_watts = 500});
  EXPECT_GT(law.clock(kernels, 2e8), law.clock(kernels, 0)) << "a GPU that idles may run faster afterwards";
  EXPECT_EQ(PowerLaw({.limit_watts = 71}).clock(kernels, 0), 210) << "no clock is low enough";
}

// ---- Waves, clusters

TEST(PowerModel, KernelsFinishInWaves) {
  const auto h100 = compute_model("h100_sxm_power");
  Kernel kernel = gemm(8192, 4096, 4096);
  for (const std::int64_t held : {0, 4, 20}) {
    kernel.held_multiprocessors = held;
    const KernelWaves waves = h100->waves(kernel);
    EXPECT_GT(waves.waves, 1);
    EXPECT_EQ(waves.end, h100->duration(kernel));
    EXPECT_EQ(waves.end_of(waves.waves), waves.end);
    EXPECT_EQ(waves.blocks_after(waves.waves), waves.blocks);
    EXPECT_LE(waves.blocks_in_wave, 132 - held);
    Time last = waves.begin;
    std::int64_t blocks = 0;
    for (std::int64_t wave = 1; wave <= waves.waves; ++wave) {
      EXPECT_GT(waves.end_of(wave), last);
      EXPECT_GT(waves.blocks_after(wave), blocks);
      last = waves.end_of(wave);
      blocks = waves.blocks_after(wave);
    }
  }
  EXPECT_EQ(h100->waves(of_bytes(1000)).waves, 1);
}

// Kernels of clusters of two take whole TPCs; single blocks leave half of some idle. GEMMs are launched for
// the SMs beside the former, and some of their clusters wait beside NCCL's channels.
TEST(PowerModel, ClustersHoldWholeTpcs) {
  const char* power = "{kind: h100_sxm_power, held_bandwidth: 0, power_limit: 5000, persistent_gemms: ";
  const auto cycles = [&](const std::string& rest, std::int64_t channels, std::int64_t told) {
    Kernel kernel = gemm(256 * 66 * 16, 128 * 2, 8192);
    kernel.held_multiprocessors = told;
    return compute_model(power + rest + "}")->demands({"", {kernel}}, channels).front().cycles;
  };
  const double alone = cycles("true", 0, 0), told = cycles("true", 0, 16);
  EXPECT_NEAR(told / alone, 66.0 / 58, 0.05);
  EXPECT_EQ(cycles("true", 0, 15), told) << "half a TPC is no use";
  EXPECT_EQ(cycles("false", 16, 0), told);
  EXPECT_LT(told, cycles("false, channel_cluster: 1", 16, 0));
  EXPECT_LT(told, cycles("true", 16, 0));
  EXPECT_LT(cycles("true", 16, 0), cycles("true, channel_cluster: 1", 16, 0));
}

// Slower by 1.1 to 1.2: what users of torch._scaled_mm report of use_fast_accum (pytorch/ao, issue 2377).
TEST(PowerModel, Fp8GemmsOfTheBackwardAccumulateExactly) {
  const auto h100 = compute_model("h100_sxm_power");
  for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{8192, 28672, 4096}, {4096, 14336, 8192}}) {
    Kernel kernel = gemm(m, n, k);
    kernel.precision = Precision::fp8;
    const Time fast = h100->duration(kernel);
    kernel.backward = true;
    const double slower = static_cast<double>(h100->duration(kernel)) / static_cast<double>(fast);
    EXPECT_GT(slower, 1.1);
    EXPECT_LT(slower, 1.2);
    EXPECT_EQ(compute_model("{kind: h100_sxm_power, fp8_promotion_lanes: 0}")->duration(kernel), fast);
    kernel.precision = Precision::half;
    const Time half = h100->duration(kernel);
    kernel.backward = false;
    EXPECT_EQ(h100->duration(kernel), half);
  }
}

TEST(PowerModel, SaysWhichConstantsAreAssumed) {
  for (const char* gpu : {"a100_80gb_power", "b200_power", "gb200_power"})
    EXPECT_THAT(compute_model(gpu)->notes({}),
                ::testing::ElementsAre(HasSubstr("are assumed, not measured")));
  EXPECT_THAT(compute_model("h100_sxm_power")->notes({}), ::testing::IsEmpty());
  Kernel kernel = gemm(8192, 8192, 8192);
  kernel.precision = Precision::fp4;
  EXPECT_EQ(compute_model("b200_power")->objection(kernel), "");
  kernel.precision = Precision::fp8;
  EXPECT_THAT(compute_model("a100_80gb_power")->objection(kernel), HasSubstr("no fp8"));
}

// Azure's AI benchmarking guide has 222 to 257 TFLOP/s of an A100. The energy was found from other GEMMs.
TEST(PowerModel, CubesOnAnA100AreNearWhatIsPublished) {
  const auto a100 = compute_model("a100_80gb_power");
  const std::pair<std::int64_t, double> cubes[] = {{2048, 222}, {4096, 228}, {8192, 254}, {16384, 257}};
  Errors errors;
  for (const auto& [rows, published] : cubes) {
    const auto n = static_cast<double>(rows);
    const auto time = static_cast<double>(a100->duration(gemm(rows, rows, rows))) / kSecond;
    const double error = errors.add(2 * n * n * n / time / 1e12, published);
    std::printf("cube of %ld on an A100: %+.1f %%\n", static_cast<long>(rows), 100 * error);
  }
  EXPECT_LT(errors.mean(), 0.08);
  EXPECT_LT(errors.worst(), 0.14);
}

// ---- Attention

TEST(AttentionSchedule, EqualBlocksRunInWaves) {
  Kernel full = gemm(1024, 1024, 128);
  full.kind = Kernel::Kind::attention;
  const double wave = 2.0 * 128 * 1024 * 128 / 4096;
  EXPECT_DOUBLE_EQ(attention_cycles(full, {4096, 1, 0}, 8), wave);
  EXPECT_DOUBLE_EQ(attention_cycles(full, {4096, 1, 0}, 7), 2 * wave);
  EXPECT_DOUBLE_EQ(attention_cycles(full, {4096, 0.5, 1024}, 8), 4 * wave);
}

// The rates are those of FlashAttention-2 on an H100 SXM5, in TFLOP/s (arXiv 2407.08608, figures 5 and 6).
// There are 16 heads of 128 elements and 16,384 tokens. The forward is causal, the backward is not.
TEST(AttentionSchedule, FlashAttention2IsNearItsPublishedRates) {
  const auto flash = compute_model("{kind: h100_sxm_power, attention: flash_attention_2}");
  const auto tuned = compute_model("h100_sxm_power");
  const std::pair<std::int64_t, std::array<double, 2>> published[] = {
      {512, {191, 214}},  {1024, {260, 260}}, {2048, {298, 291}},
      {4096, {319, 310}}, {8192, {333, 318}}, {16384, {335, 322}}};
  Errors errors;
  for (const auto& [tokens, rates] : published) {
    for (const bool backward : {false, true}) {
      Kernel kernel =
          gemm(tokens, backward ? tokens : tokens / 2, (backward ? 5 : 2) * 128, 16 * (16384 / tokens));
      kernel.kind = Kernel::Kind::attention;
      kernel.backward = backward;
      const double operations = 2.0 * static_cast<double>(kernel.m) * static_cast<double>(kernel.n) *
                                static_cast<double>(kernel.k) * static_cast<double>(kernel.batch);
      const Time time = flash->duration(kernel);
      const double rate = operations / static_cast<double>(time);
      const double error = errors.add(rate, rates[backward ? 1 : 0]);
      std::printf("FlashAttention-2, %5ld tokens, %s: %.0f TFLOP/s, published %.0f, %+.1f %%\n",
                  static_cast<long>(tokens), backward ? "backward" : "forward", rate, rates[backward ? 1 : 0],
                  100 * error);
      EXPECT_GT(time, tuned->duration(kernel));
    }
  }
  EXPECT_LT(errors.mean(), 0.03);
  EXPECT_LT(errors.worst(), 0.06);
}

TEST(AttentionSchedule, UnequalBlocksLeaveATail) {
  Kernel causal = gemm(4096, 2048, 128, 64);
  causal.kind = Kernel::Kind::attention;
  // 32 x 64 blocks of 2,048 keys on 100 SMs, and 4/3 of the mean at the end.
  EXPECT_NEAR(attention_cycles(causal, {4096, 1, 0}, 100), (20.48 + 4.0 / 3) * 2.0 * 128 * 2048 * 128 / 4096,
              1);
}

// ---- The model

TEST(PowerModel, MemoryBoundKernelsRunAtTheFullClockBesideHeldMultiprocessors) {
  const auto h100 = compute_model(
      "{kind: h100_sxm_power, launch: 0, held_bandwidth: 0, hbm_bandwidth: 1000 GB/s, hbm_efficiency: 0.5}");
  EXPECT_EQ(h100->duration(of_bytes(500'000'000)), kMillisecond);
  const Work work{"copy", {of_bytes(500'000'000)}};
  EXPECT_EQ(h100->power_law()->clock(h100->demands(work, 0), 0), 1980);
  EXPECT_EQ(PowerLaw::time(h100->demands(work, 64), 1980), PowerLaw::time(h100->demands(work, 0), 1980));
}

// PyTorch's index_add() of 4,000,000 rows of 128 elements takes 4,719 us (pytorch/pytorch, pull request
// 175760). Its bytes alone would take a fifth of that.
TEST(PowerModel, AtomicAdditionsTakeTheirTime) {
  Kernel kernel = of_bytes(6 * 4'000'000LL * 128);
  const auto time = [&](const char* yaml) {
    return static_cast<double>(compute_model(yaml)->duration(kernel)) / kMicrosecond;
  };
  const double copied = time("h100_sxm_power");
  kernel.atomic_adds = 4'000'000LL * 128;
  EXPECT_NEAR(time("h100_sxm_power"), 4719, 0.01 * 4719);
  EXPECT_LT(copied, 4719.0 / 4);
  EXPECT_EQ(time("{kind: h100_sxm_power, atomic_adds_per_cycle: 0}"), copied);
}

TEST(PowerModel, CopyingChannelsTakeMemoryBandwidth) {
  const auto h100 = compute_model(
      "{kind: h100_sxm_power, launch: 0, held_bandwidth: 25 GB/s, hbm_bandwidth: 1000 GB/s, hbm_efficiency: "
      "1}");
  Kernel copy = of_bytes(1'000'000'000);
  EXPECT_EQ(h100->duration(copy), kMillisecond);
  copy.held_multiprocessors = 8;
  EXPECT_EQ(h100->duration(copy), kMillisecond * 5 / 4);
  copy.held_multiprocessors = 100;
  EXPECT_EQ(h100->duration(copy), 2 * kMillisecond) << "half of the bandwidth is left";
}

// 16 channels move 400 GB/s at 50 pJ a byte, which are 20 W.
TEST(PowerModel, WhatChannelsMoveTakesPower) {
  const auto h100 = compute_model("{kind: h100_sxm_power, held_bandwidth: 25 GB/s, byte_energy: 50}");
  const auto waits = compute_model("{kind: h100_sxm_power, held_bandwidth: 0, byte_energy: 50}");
  const Work work{"gemm", {gemm(8192, 8192, 8192)}};
  const std::vector<KernelDemand> moving = h100->demands(work, 16), waiting = waits->demands(work, 16);
  const PowerLaw& law = *h100->power_law();
  EXPECT_NEAR(law.power(moving, 0, 1200) - law.power(waiting, 0, 1200), 20, 0.5);
  EXPECT_LT(law.clock(moving, 0), law.clock(waiting, 0));
}

TEST(PowerModel, HalfTheBitsTakeHalfTheEnergy) {
  const auto h100 = compute_model("h100_sxm_power");
  Kernel kernel = gemm(8192, 8192, 8192);
  const double half = h100->demands({"", {kernel}}, 0).front().core_energy;
  kernel.precision = Precision::fp8;
  EXPECT_DOUBLE_EQ(h100->demands({"", {kernel}}, 0).front().core_energy, half / 2);
  EXPECT_NEAR(half, 2.0 * 8192 * 8192 * 8192 * 1.4e-12, 1e-9);
}

TEST(PowerModel, LessPowerIsALowerClock) {
  const Kernel kernel = gemm(8192, 8192, 8192);
  const Time whole = compute_model("h100_sxm_power")->duration(kernel);
  EXPECT_GT(compute_model("{kind: h100_sxm_power, power_limit: 500}")->duration(kernel), whole * 11 / 10);
  EXPECT_LT(compute_model("{kind: h100_sxm_power, power_limit: 2000}")->duration(kernel), whole * 8 / 10);
}

TEST(PowerModel, RefusesWhatItDoesNotKnow) {
  const auto h100 = compute_model("h100_sxm_power");
  Kernel kernel = gemm(64, 64, 64);
  kernel.held_multiprocessors = 132;
  EXPECT_THAT(h100->objection(kernel), HasSubstr("132 multiprocessors"));
  kernel.held_multiprocessors = 0;
  kernel.precision = Precision::fp4;
  EXPECT_THAT(h100->objection(kernel), HasSubstr("no fp4"));
  EXPECT_THROW(compute_model("{kind: h100_sxm_power, lowest_clock_mhz: 2000}"), ConfigError);
}

// ---- Against measurements: the bounds are those that the model was asked to meet.

Kernel measured_gemm(const KernelRow& row) {
  Kernel kernel = gemm(row.size("m"), row.size("n"), row.size("k"), row.size("batch"));
  if (row.text("precision") == "fp8") kernel.precision = Precision::fp8;
  return kernel;
}
// Causal attention of m sequences with n heads and k tokens; heads have 128 elements.
Kernel measured_attention(const KernelRow& row, bool backward) {
  Kernel kernel =
      gemm(row.size("k"), (row.size("k") + 1) / 2, (backward ? 5 : 2) * 128, row.size("m") * row.size("n"));
  kernel.kind = Kernel::Kind::attention;
  kernel.backward = backward;
  return kernel;
}
std::int64_t held_in(const KernelRow& row) {
  const std::string& extra = row.text("extra");
  return std::stoll(extra.substr(std::string("held=").size()));
}
double microseconds(const ComputeModel& model, const Kernel& kernel) {
  return static_cast<double>(model.duration(kernel)) / kMicrosecond;
}
void print(const KernelRow& row, double predicted, double error) {
  std::printf("%-28s %6s x %6s x %6s %-5s %-12.12s %9.1f us, measured %9.1f, %+.1f %%\n",
              row.text("name").c_str(), row.text("m").c_str(), row.text("n").c_str(), row.text("k").c_str(),
              row.text("precision").c_str(), row.text("extra").c_str(), predicted, row.number("time_us"),
              100 * error);
}

// Returns a row of the tables of short bursts (nccl_one_host/gemm_short_bursts.csv). A row in FP8 is a layer
// that scales and casts its input, because AIConfigurator's collect_gemm.py gives it no scale. A kernel finds
// the largest value (read 2), another one scales and casts (read 2, write 1).
Work burst(const KernelRow& row) {
  Kernel kernel = gemm(row.size("m"), row.size("n"), row.size("k"));
  if (row.text("dtype") != "fp8") return {"gemm", {kernel}};
  kernel.precision = Precision::fp8;
  return {"layer", {of_bytes(2 * kernel.m * kernel.k), of_bytes(3 * kernel.m * kernel.k), kernel}};
}

// Returns the errors of the rows of 10^11 operations and more. One constant of these GPUs was found from the
// BF16 rows. FP8 is a prediction. `most_cast` is the largest share of a row's time that its casts may have.
Errors errors_of_bursts(const std::string& gpu, const std::string& kind, const std::string& type,
                        double most_cast = 1) {
  const auto model = compute_model(kind);
  Errors errors;
  for (const KernelRow& row : test::table_rows("reference/measured/nccl_one_host", "gemm_short_bursts.csv")) {
    if (row.text("gpu") != gpu || row.text("dtype") != type) continue;
    const Work work = burst(row);
    const Kernel& kernel = work.kernels.back();
    const double operations =
        2.0 * static_cast<double>(kernel.m) * static_cast<double>(kernel.n) * static_cast<double>(kernel.k);
    Work casts = work;
    casts.kernels.pop_back();
    const double cast = static_cast<double>(model->duration(casts)) / kMicrosecond;
    if (operations < 1e11 || cast > most_cast * row.number("us")) continue;
    errors.add(static_cast<double>(model->duration(work)) / kMicrosecond, row.number("us"));
  }
  std::printf("%s, %s, casts at most %.2f: %zu rows, mean %.1f %%, at most %.1f %%\n", kind.c_str(),
              type.c_str(), most_cast, errors.rows(), 100 * errors.mean(), 100 * errors.worst());
  return errors;
}

TEST(BurstKernels, AssumedConstantsAreNearPublishedGemms) {
  NETSIM_NEEDS_SHARED("reference/measured/nccl_one_host");
  const Errors a100 = errors_of_bursts("a100_sxm", "a100_80gb_power", "bfloat16");
  EXPECT_GT(a100.rows(), 50U);
  EXPECT_LT(a100.mean(), 0.05);
  const Errors b200 = errors_of_bursts("b200_sxm", "b200_power", "bfloat16");
  EXPECT_GT(b200.rows(), 200U);
  EXPECT_LT(b200.mean(), 0.10);
}

// Casts of the measured library take more than their bytes. Rows with little of them are those of the GEMM.
TEST(BurstKernels, LayersInFp8AreNearWhereCastsAreShort) {
  NETSIM_NEEDS_SHARED("reference/measured/nccl_one_host");
  EXPECT_LT(errors_of_bursts("b200_sxm", "b200_power", "fp8").mean(), 0.25);
  const Errors b200 = errors_of_bursts("b200_sxm", "b200_power", "fp8", 0.05);
  EXPECT_GT(b200.rows(), 25U);
  EXPECT_LT(b200.mean(), 0.10);
  EXPECT_LT(errors_of_bursts("h100_sxm", "h100_sxm_power", "fp8").mean(), 0.15);
  const Errors h100 = errors_of_bursts("h100_sxm", "h100_sxm_power", "fp8", 0.05);
  EXPECT_GT(h100.rows(), 25U);
  EXPECT_LT(h100.mean(), 0.10);
}

// Left out: the FP8 cube of 2,048. PyTorch takes 22 to 28 us to launch torch._scaled_mm, whatever the size.
TEST(SustainedKernels, GemmsAreNearWhatWasMeasured) {
  NETSIM_NEEDS_SHARED(test::kKernelTables);
  const auto h100 = compute_model("h100_sxm_power");
  Errors errors;
  for (const KernelRow& row : test::kernel_rows("sustained.csv")) {
    if (row.text("section") != "gemm") continue;
    if (row.size("m") == 2048 && row.size("n") == 2048 && row.text("precision") == "fp8") continue;
    const double time = microseconds(*h100, measured_gemm(row));
    print(row, time, errors.add(time, row.number("time_us")));
  }
  std::printf("%zu GEMMs: %.1f %%, at most %.1f %%\n", errors.rows(), 100 * errors.mean(),
              100 * errors.worst());
  EXPECT_GT(errors.rows(), 80U);
  EXPECT_LT(errors.mean(), 0.04);
  EXPECT_LT(errors.worst(), 0.10);
}

TEST(SustainedKernels, AttentionIsNearWhatWasMeasured) {
  NETSIM_NEEDS_SHARED(test::kKernelTables);
  const auto h100 = compute_model("h100_sxm_power");
  Errors errors;
  for (const KernelRow& row : test::kernel_rows("sustained.csv")) {
    if (row.text("section") != "attention") continue;
    const double time = microseconds(*h100, measured_attention(row, row.text("name") == "backward"));
    print(row, time, errors.add(time, row.number("time_us")));
  }
  EXPECT_EQ(errors.rows(), 6U);
  EXPECT_LT(errors.worst(), 0.05);
}

TEST(SustainedKernels, KernelsBesideHeldMultiprocessorsAreNearWhatWasMeasured) {
  NETSIM_NEEDS_SHARED(test::kKernelTables);
  const auto h100 =
      compute_model("{kind: h100_sxm_power, held_bandwidth: 0, channel_cluster: 1}");  // they wait
  Errors gemms, others;
  for (const KernelRow& row : test::kernel_rows("sustained.csv")) {
    if (row.text("section") != "held") continue;
    const std::string& name = row.text("name");
    const std::int64_t held = held_in(row);
    if (name == "gemm_fwd" && row.size("n") == 28672 && held == 1) continue;  // a reading at 1,152 MHz
    Kernel kernel = of_bytes(4 * row.size("m"));
    if (name == "gemm_fwd") kernel = measured_gemm(row);
    if (name == "attention_fwd") kernel = measured_attention(row, false);
    const bool multiplies = kernel.kind != Kernel::Kind::memory;
    const auto demands = h100->demands({"", {kernel}}, multiplies ? held : 0);
    const double time =
        PowerLaw::time(demands, h100->power_law()->clock(demands, 0)) / static_cast<double>(kMicrosecond);
    print(row, time, (name == "gemm_fwd" ? gemms : others).add(time, row.number("time_us")));
  }
  std::printf("%zu GEMMs: %.1f %%, at most %.1f %%; %zu others: %.1f %%, at most %.1f %%\n", gemms.rows(),
              100 * gemms.mean(), 100 * gemms.worst(), others.rows(), 100 * others.mean(),
              100 * others.worst());
  EXPECT_LT(gemms.mean(), 0.04);
  EXPECT_LT(gemms.worst(), 0.10);
  EXPECT_LT(others.worst(), 0.06);
}

}  // namespace
}  // namespace netsim::power_test
