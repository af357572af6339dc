// Tests slices of kernels: where waves run between progress points, and that slices add up to their kernel.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "sim/compute/compute_model.h"
#include "sim/core/registry.h"

namespace netsim::kernel_slice_test {
namespace {

std::unique_ptr<ComputeModel> model_of(const std::string& name) {
  return Registry<ComputeModel>::instance().create(parse_config(name, "compute.yaml"), "");
}
Kernel gemm_kernel(std::int64_t m, std::int64_t n, std::int64_t k) {
  Kernel kernel;
  kernel.kind = Kernel::Kind::gemm;
  kernel.m = m;
  kernel.n = n;
  kernel.k = k;
  return kernel;
}
Kernel sliced(Kernel kernel, std::int64_t index, std::int64_t count, bool awaits = false) {
  kernel.slice = {index, count, awaits};
  return kernel;
}
std::vector<Time> times_of(const KernelWaves& waves, std::int64_t count, bool awaits) {
  std::vector<Time> times;
  times.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) times.push_back(waves.time_of({i, count, awaits}));
  return times;
}

// Ten blocks run in waves of four, each of 100 ps, after a launch of 7 ps.
constexpr KernelWaves kThreeWaves{7, 307, 3, 10, 4};

TEST(KernelSlice, ResultsAreThereWhenTheirLastBlockHasEnded) {
  EXPECT_EQ(times_of(kThreeWaves, 2, false), (std::vector<Time>{207, 100})) << "5 blocks need two waves";
  EXPECT_EQ(times_of(kThreeWaves, 5, false), (std::vector<Time>{107, 0, 100, 0, 100}));
}

TEST(KernelSlice, AWaveRunsWhenTheInputOfAllItsBlocksIsThere) {
  EXPECT_EQ(times_of(kThreeWaves, 2, true), (std::vector<Time>{107, 200})) << "5 blocks feed one wave";
  EXPECT_EQ(times_of(kThreeWaves, 5, true), (std::vector<Time>{7, 100, 0, 100, 100}));
}

// The kernel that waits for a slice gets multiprocessors when the next wave leaves them.
TEST(KernelSlice, AKernelBeginsWhenTheNextWaveHasEnded) {
  std::vector<Time> times;
  for (std::int64_t i = 0; i < 5; ++i)
    times.push_back(kThreeWaves.time_of({.index = i, .count = 5, .starts_kernel = true}));
  EXPECT_EQ(times, (std::vector<Time>{207, 0, 100, 0, 0})) << "nothing runs behind the last wave";
}

// With as many slices as waves of full length, each slice is a wave.
TEST(KernelSlice, EvenWavesAreEvenSlices) {
  const KernelWaves waves{0, 1000, 100, 400, 4};
  for (const bool awaits : {false, true}) EXPECT_EQ(times_of(waves, 100, awaits), std::vector<Time>(100, 10));
}

// No model loses or adds time for any number of slices, whatever holds multiprocessors.
TEST(KernelSlice, SlicesAddUpToTheirKernel) {
  for (const char* name : {"a100_80gb", "h100_sxm", "h100_sxm_power"}) {
    const auto model = model_of(name);
    for (const std::int64_t held : {0, 20}) {
      Kernel kernel = gemm_kernel(8192, 3584, 4096);
      kernel.held_multiprocessors = held;
      const Time whole = model->duration(Work{"whole", {kernel}});
      for (const std::int64_t count : {1, 2, 7, 64, 1000}) {
        for (const bool awaits : {false, true}) {
          Time sum = 0;
          for (std::int64_t i = 0; i < count; ++i) {
            const Time slice = model->duration(Work{"slice", {sliced(kernel, i, count, awaits)}});
            EXPECT_GE(slice, 0);
            sum += slice;
          }
          // The power model chooses a clock for each slice, and the launch draws no power.
          const double tolerance = model->power_law() != nullptr ? 0.02 : 0;
          EXPECT_NEAR(static_cast<double>(sum), static_cast<double>(whole),
                      tolerance * static_cast<double>(whole))
              << name << " held " << held << " count " << count;
        }
      }
    }
  }
}

// A kernel of four waves has four points at which chunks end, however many chunks there are.
TEST(KernelSlice, ChunksEndAtTheEndsOfWaves) {
  const auto model = model_of("a100_80gb");
  const Kernel kernel = gemm_kernel(256 * 108, 128 * 4, 4096);
  EXPECT_EQ(model->waves(kernel).waves, 4);
  int with_time = 0;
  for (std::int64_t i = 0; i < 100; ++i)
    with_time += model->duration(Work{"slice", {sliced(kernel, i, 100)}}) > 0 ? 1 : 0;
  EXPECT_EQ(with_time, 4);
}

}  // namespace
}  // namespace netsim::kernel_slice_test
