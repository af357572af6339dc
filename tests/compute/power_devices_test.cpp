// Do GPUs run tasks at the clock that their power limit allows, beside others and beside communication?
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "sim/compute/compute_devices.h"
#include "tests/compute/kernels.h"

namespace netsim::power_devices_test {
namespace {

using test::gemm;

const ComputeModel& h100() {
  static const auto model =
      test::compute_model("{kind: h100_sxm_power, held_bandwidth: 0, power_window: 1 ms}");
  return *model;
}
Work cubes(int count) {
  return {"cubes", std::vector<Kernel>(static_cast<std::size_t>(count), gemm(8192, 8192, 8192))};
}

// One GPU whose "dp" channels hold multiprocessors, and tasks with demands on it.
class PoweredGpu final : public ComputeListener {
 public:
  PoweredGpu()
      : parameters_{.channels_hold_multiprocessors = parse_config("dp", "gpus.yaml")},
        devices({&loop}, {0}, parameters_, 0, {}, {132}) {
    devices.set_listener(this);
  }
  // Begins a task and returns its time at full rate.
  Time begin(std::uint32_t handle, const Work& work) {
    const Time full = h100().duration(work);
    demands_.push_back(std::make_unique<TaskDemand>(h100(), work, full));
    devices.begin(0, 0, handle, full, demands_.back().get());
    return full;
  }
  void compute_done(GpuId, JobId, std::uint32_t handle) override { ends.emplace_back(handle, loop.now()); }

 private:
  GpuParameters parameters_;
  std::vector<std::unique_ptr<TaskDemand>> demands_;

 public:
  EventLoop loop;
  ComputeDevices devices;
  std::vector<std::pair<std::uint32_t, Time>> ends;
};

double share(Time a, Time b) { return static_cast<double>(a) / static_cast<double>(b); }

TEST(PoweredGpu, TakesTheTimeOfTheModelAtTheSustainedClock) {
  PoweredGpu gpu;
  const Time full = gpu.begin(0, cubes(4));
  gpu.loop.run(kNever);
  ASSERT_EQ(gpu.ends.size(), 1U);
  EXPECT_NEAR(share(gpu.ends[0].second, full), 1, 1e-4) << "no history: the task's own mean power counts";
}

// The limit holds for the mean power, so a GPU that waited computes faster than one that did not.
TEST(PoweredGpu, IsFasterAfterItIdled) {
  PoweredGpu gpu;
  const Time full = gpu.begin(0, cubes(4));
  gpu.loop.run(kNever);
  const Time begin = gpu.loop.now() + 5 * kMillisecond;
  gpu.loop.run(begin - 1);
  gpu.loop.advance(begin);
  gpu.begin(1, cubes(4));
  gpu.loop.run(kNever);
  ASSERT_EQ(gpu.ends.size(), 2U);
  EXPECT_LT(share(gpu.ends[1].second - begin, full), 0.95);
}

TEST(PoweredGpu, RepeatedTasksKeepTheirTime) {
  PoweredGpu gpu;
  Time begin = 0;
  for (std::uint32_t step = 0; step < 5; ++step) {
    const Time full = gpu.begin(step, cubes(1));
    gpu.loop.run(kNever);
    ASSERT_EQ(gpu.ends.size(), step + 1U);
    EXPECT_NEAR(share(gpu.ends[step].second - begin, full), 1, 0.02) << step;
    begin = gpu.ends[step].second;
  }
}

// Beside held multiprocessors the kernels take what the model says of the others, at the clock of that.
TEST(PoweredGpu, BesideHeldMultiprocessorsItTakesTheOthers) {
  PoweredGpu gpu;
  gpu.begin(0, cubes(4));
  gpu.devices.communication_begins(0, Stream::dp, 16);
  gpu.loop.run(kNever);
  const std::vector<KernelDemand> demands = h100().demands(cubes(4), 16);
  const PowerLaw& law = *h100().power_law();
  ASSERT_EQ(gpu.ends.size(), 1U);
  EXPECT_NEAR(static_cast<double>(gpu.ends[0].second) / PowerLaw::time(demands, law.clock(demands, 0)), 1,
              1e-4);
  EXPECT_GT(gpu.ends[0].second, h100().duration(cubes(4)));
}

TEST(PoweredGpu, RatesChangeWhenCommunicationEnds) {
  PoweredGpu beside, alone, half;
  beside.begin(0, cubes(4));
  beside.devices.communication_begins(0, Stream::dp, 24);
  beside.loop.run(kNever);
  const Time full = alone.begin(0, cubes(4));
  alone.loop.run(kNever);
  half.begin(0, cubes(4));
  half.devices.communication_begins(0, Stream::dp, 24);
  half.loop.run(full / 2 - 1);
  half.loop.advance(full / 2);
  half.devices.communication_ends(0, Stream::dp, 24);
  EXPECT_EQ(half.devices.expected_end(0, 0, 0) > full, true);
  half.loop.run(kNever);
  EXPECT_GT(half.ends.at(0).second, alone.ends.at(0).second);
  EXPECT_LT(half.ends.at(0).second, beside.ends.at(0).second);
}

// Two tasks share the GPU in equal parts, and a dropped one leaves it to the other.
TEST(PoweredGpu, TasksShareItAndOneClock) {
  PoweredGpu gpu;
  const Time full = gpu.begin(0, cubes(2));
  gpu.begin(1, cubes(2));
  EXPECT_NEAR(share(gpu.devices.expected_end(0, 0, 0), full), 2, 0.02);
  gpu.loop.run(kNever);
  ASSERT_EQ(gpu.ends.size(), 2U);
  EXPECT_NEAR(share(gpu.ends[1].second, full), 2, 0.02);
  PoweredGpu dropped;
  dropped.begin(0, cubes(2));
  dropped.devices.drop(0, 0);
  dropped.loop.run(kNever);
  EXPECT_TRUE(dropped.ends.empty());
}

}  // namespace
}  // namespace netsim::power_devices_test
