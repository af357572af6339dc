// GPUs of which communication holds multiprocessors.
#include "sim/compute/compute_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/errors.h"

namespace netsim::compute_devices_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

GpuParameters holding(const char* streams, double slowdown = 1) {
  return {.slowdown_beside_communication = slowdown,
          .channels_hold_multiprocessors = parse_config(streams, "gpus.yaml")};
}

// One GPU, and its only task, which began at 0.
class OneTask final : public ComputeListener {
 public:
  OneTask(const GpuParameters& parameters, std::uint32_t multiprocessors, Time work)
      : devices({&loop}, {0}, parameters, 0, {}, {multiprocessors}) {
    devices.set_listener(this);
    devices.begin(0, 0, 0, work);
  }
  void compute_done(GpuId, JobId, std::uint32_t) override { end = loop.now(); }
  Time run() {
    loop.run(kNever);
    return end;
  }
  EventLoop loop;
  ComputeDevices devices;
  Time end = 0;
};

TEST(HeldMultiprocessors, ComputingHasTheOthers) {
  OneTask task(holding("dp"), 132, 128'000);
  task.devices.communication_begins(0, Stream::dp, 4);
  EXPECT_EQ(task.devices.expected_end(0, 0, 0), 132'000);
  EXPECT_EQ(task.run(), 132'000);
}

TEST(HeldMultiprocessors, AddUpOverCommunications) {
  OneTask task(holding("[dp, ep]"), 128, 1000);
  task.devices.communication_begins(0, Stream::dp, 64);
  EXPECT_EQ(task.devices.expected_end(0, 0, 0), 2000);
  task.devices.communication_begins(0, Stream::ep, 32);
  task.devices.communication_begins(0, Stream::tp, 24);
  EXPECT_EQ(task.devices.expected_end(0, 0, 0), 4000) << "tensor parallelism's hold none here";
  task.devices.communication_ends(0, Stream::ep, 32);
  EXPECT_EQ(task.devices.expected_end(0, 0, 0), 2000);
  task.devices.communication_ends(0, Stream::dp, 64);
  EXPECT_EQ(task.run(), 1000);
}

TEST(HeldMultiprocessors, LeaveOneAtLeast) {
  OneTask task(holding("all"), 132, 100);
  task.devices.communication_begins(0, Stream::pp, 500);
  EXPECT_EQ(task.run(), 13'200);
}

TEST(HeldMultiprocessors, SlowDownBesidesTheFactor) {
  OneTask task(holding("dp", 1.5), 10, 100);
  task.devices.communication_begins(0, Stream::dp, 5);
  EXPECT_EQ(task.run(), 300);
}

TEST(HeldMultiprocessors, HaveToBeKnown) {
  EventLoop loop;
  const auto refusal = [&](const GpuParameters& parameters, std::vector<std::uint32_t> multiprocessors) {
    try {
      ComputeDevices({&loop}, {0, 0}, parameters, 0, {}, multiprocessors);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_THAT(
      refusal(holding("dp"), {132, 0}),
      AllOf(HasSubstr("gpus.yaml:1:1:"), HasSubstr("the number of multiprocessors of GPU 1 is not known")));
  EXPECT_EQ(refusal(holding("dp"), {132, 132}), "accepted");
  EXPECT_EQ(refusal(holding("none"), {}), "accepted");
  EXPECT_EQ(refusal({}, {}), "accepted");
  EXPECT_THAT(refusal(holding("[dp, compute]"), {132, 132}),
              HasSubstr("'compute' is not one of: none, all, tp, cp, ep, pp, dp, io"));
  EXPECT_THAT(refusal(holding("[]"), {132, 132}),
              HasSubstr("no stream is named; leave the key out for none"));
}

// Two tasks of 1000 ps share a GPU, at half the rate each. When one is dropped at 1000 ps the other has 500
// ps of work left, and the whole GPU.
TEST(DroppedTasks, LeaveTheGpuToTheOthers) {
  OneTask task({}, 0, 1000);
  task.devices.begin(0, 1, 0, 1000);
  task.loop.run(999);
  task.loop.advance(1000);
  task.devices.drop(0, 1);
  EXPECT_EQ(task.devices.expected_end(0, 0, 0), 1500);
  EXPECT_EQ(task.run(), 1500);
  task.devices.begin(0, 1, 0, 100);
  task.devices.drop(0, 1);
  EXPECT_EQ(task.run(), 1500) << "the listener hears of no dropped task";
}

// Tasks on threads of a process run at full rate, beside each other and beside the GPU's.
TEST(HostThreads, AreSharedByNoTasks) {
  OneTask task({}, 0, 1000);
  task.devices.add_threads();
  task.devices.begin_on_thread(0, 1, 7, 1000);
  task.devices.begin_on_thread(0, 1, 8, 1500);
  EXPECT_EQ(task.devices.expected_end(0, 0, 0), 1000);
  EXPECT_EQ(task.devices.expected_end(0, 1, 7), 1000);
  EXPECT_EQ(task.devices.expected_end(0, 1, 8), 1500);
  task.loop.run(999);
  task.loop.advance(1000);
  task.devices.drop(0, 1);
  EXPECT_EQ(task.run(), 1000) << "the threads' tasks are dropped with the job";
}

}  // namespace
}  // namespace netsim::compute_devices_test
