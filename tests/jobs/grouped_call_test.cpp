// Tests that a grouped call (ncclGroupStart, ncclGroupEnd) is one launch. Its communications begin together
// when all are ready, and the next task waits for all of them. Sends and receives that need each other run.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "sim/transport/endpoint.h"
#include "sim/workload/traffic/simple_source.h"
#include "tests/collectives/fake_endpoint.h"
#include "tests/support/single_job.h"
#include "tests/support/task_bodies.h"

namespace netsim::grouped_call_test {
namespace {

using netsim::test::SingleJob;

constexpr Time kLaunch = 10 * kMicrosecond;
constexpr const char* kSection =
    "{launch_latency: 10 us, base_latency_ring: 0, hop_latency_net_ring: 0, scale_out_channels: 1}";

struct Played {
  explicit Played(SimpleSource& source, const std::string& section = kSection)
      : endpoint(loop, source.ranks(), 1, {}, {8 * kGbps, kMicrosecond}),
        executor(Executor::create(loop, endpoint, parse_config(section, "test.yaml"), 100'000)),
        job(loop, *executor, source, everyone(source.ranks()), {7 * kMicrosecond}, 200'000,
            {[this](const TaskRecord& record) { tasks.push_back(record); }, {}, {}, {}}) {
    job.start();
    loop.run();
  }
  Time end_of(std::uint32_t rank, std::uint32_t task) const {
    const auto found = std::find_if(tasks.begin(), tasks.end(), [&](const TaskRecord& record) {
      return record.rank == rank && record.task.id == task;
    });
    return found == tasks.end() ? -1 : found->end;
  }
  Time start_of(std::uint32_t rank, std::uint32_t task) const {
    const auto found = std::find_if(tasks.begin(), tasks.end(), [&](const TaskRecord& record) {
      return record.rank == rank && record.task.id == task;
    });
    return found == tasks.end() ? -1 : found->start;
  }

  EventLoop loop;
  FakeEndpoint endpoint;
  std::unique_ptr<Executor> executor;
  std::vector<TaskRecord> tasks;
  SingleJob job;
};

Task reduction(SimpleSource& source, std::uint32_t group) {
  Task task;
  task.stream = Stream::dp;
  task.body = test::collective(CollectiveKind::all_reduce, group, 8);
  task.name = source.add_name("sum");
  return task;
}

// Three all-reduces of 8 bytes over two ranks: 2 messages each, of 4 ns and a microsecond.
Time time_of_three(bool together) {
  SimpleSource source("calls", 2);
  const Task task = reduction(source, source.add_group({0, 1}));
  for (const std::uint32_t rank : {0U, 1U}) {
    for (int i = 0; i < 3; ++i) {
      if (together && i > 0) {
        source.join_task(rank, task);
      } else {
        source.add_task(rank, task);
      }
    }
  }
  const Played played(source);
  EXPECT_TRUE(played.job->done());
  return std::max(played.end_of(0, 2), played.end_of(1, 2));
}

TEST(GroupedCall, IsOneLaunch) {
  const Time alone = kLaunch + 2 * (kMicrosecond + 4 * kNanosecond);
  EXPECT_EQ(time_of_three(false), 3 * alone);
  EXPECT_GE(time_of_three(true), alone);
  EXPECT_LE(time_of_three(true), alone + 2 * 3 * 100 * kNanosecond) << "their messages share a port";
}

TEST(GroupedCall, BeginsWhenAllAreReadyAndEndsWhenAllHave) {
  SimpleSource source("calls", 2);
  const Task small = reduction(source, source.add_group({0, 1}));
  Task large = small;
  large.payload()->bytes = 2'000'000;
  Task held = small;
  held.not_before = 50 * kMicrosecond;
  for (const std::uint32_t rank : {0U, 1U}) {
    source.add_task(rank, small);
    source.join_task(rank, large);
    source.join_task(rank, held);
    source.add_task(rank, small);
  }
  const Played played(source);
  ASSERT_TRUE(played.job->done());
  for (const std::uint32_t rank : {0U, 1U}) {
    for (const std::uint32_t task : {0U, 1U, 2U})
      EXPECT_EQ(played.start_of(rank, task), 50 * kMicrosecond) << "none before the last is ready";
    Time last = 0;
    for (const std::uint32_t task : {0U, 1U, 2U}) last = std::max(last, played.end_of(rank, task));
    EXPECT_GE(last, 50 * kMicrosecond + transmission_time(large.bytes(), 8 * kGbps));
    EXPECT_EQ(played.start_of(rank, 3), last);
  }
}

// All ranks send to all and receive from all, one after the other in one stream, more than slots hold.
SimpleSource exchange(std::uint32_t ranks, bool together) {
  SimpleSource source("exchange", ranks);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    bool first = true;
    for (std::uint32_t distance = 1; distance < ranks; ++distance) {
      Task task;
      task.stream = Stream::ep;
      task.name = source.add_name("block");
      for (const TaskKind kind : {TaskKind::send, TaskKind::receive}) {
        const bool sends = kind == TaskKind::send;
        task.body =
            test::message(kind, (sends ? rank + distance : rank + ranks - distance) % ranks, 40'000'000);
        if (together && !first) {
          source.join_task(rank, task);
        } else {
          source.add_task(rank, task);
        }
        first = false;
      }
    }
  }
  return source;
}

TEST(GroupedCall, RunsSendsAndReceivesThatNeedEachOther) {
  SimpleSource alone = exchange(4, false), together = exchange(4, true);
  const Played stuck(alone);
  EXPECT_FALSE(stuck.job->done()) << "each waits for a receiver that is itself sending, as with NCCL";
  const Played played(together);
  ASSERT_TRUE(played.job->done());
  Time last = 0;
  for (const TaskRecord& record : played.tasks) last = std::max(last, record.end);
  const Time port = transmission_time(3 * Bytes{40'000'000}, 8 * kGbps);
  EXPECT_GE(last, port);
  EXPECT_LE(static_cast<double>(last), 1.02 * static_cast<double>(port)) << "they run at once";
}

}  // namespace
}  // namespace netsim::grouped_call_test
