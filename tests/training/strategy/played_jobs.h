// Runs of workloads by a TaskPlayer that several tests of strategies and schedules expect alike. Totals tell
// what the tasks of a workload move and compute.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "sim/core/random.h"
#include "sim/workload/task_source.h"
#include "tests/support/tasks_of.h"
#include "tests/workload/program/small_programs.h"
#include "tests/workload/task_player.h"

namespace netsim::test {

// Plays a workload to its end, and expects that all its tasks are done and its communications match.
inline void expect_done(TaskPlayer& player) {
  player.run();
  EXPECT_TRUE(player.all_done());
  EXPECT_FALSE(player.mismatched);
}

// Expects that a workload ends, in five orders of the events of one time. A computation takes 10 ps, a
// communication 3 ps.
inline void expect_done_in_any_order(const std::string& workload, std::uint32_t ranks) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const auto source = parse_workload(workload)->tasks(ranks);
    TaskPlayer player(*source, seed, std::vector<Time>(source->works().size(), 10));
    player.transfer_time = [](const Task&) { return Time{3}; };
    expect_done(player);
  }
}

// Expects that a workload ends if computations and communications take up to 1 ns, drawn from a seed.
inline void expect_done_under_jitter(TaskSource& source, std::uint64_t seed) {
  TaskPlayer player(source, seed);
  RandomStream jitter(seed, "jitter");
  player.compute_time = [&](std::uint32_t, const Task&) { return static_cast<Time>(jitter.bits() % 1000); };
  player.transfer_time = [&](const Task&) { return static_cast<Time>(jitter.bits() % 1000); };
  expect_done(player);
}

// Returns the end of a workload whose kernels have durations. A collective takes a picosecond a byte, a
// message no time.
inline Time end_with_durations(const std::string& workload, std::uint32_t ranks) {
  const auto source = parse_workload(workload)->tasks(ranks);
  std::vector<Time> durations;
  durations.reserve(source->works().size());
  for (const Work& work : source->works()) {
    Time time = 0;
    for (const Kernel& kernel : work.kernels) time += kernel.duration;
    durations.push_back(time);
  }
  TaskPlayer player(*source, 1, durations);
  player.transfer_time = [](const Task& task) {
    return task.kind() == TaskKind::collective ? static_cast<Time>(task.bytes()) : 0;
  };
  expect_done(player);
  return player.end();
}

// Totals: what the tasks of all ranks move and compute.
struct Totals {
  std::map<std::string, Bytes> bytes;  // by name of communication
  double products = 0;                 // multiplications of all GEMMs
  bool operator==(const Totals&) const = default;
};
inline Totals totals(const TaskSource& source, std::uint32_t ranks) {
  Totals all;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    for (const Task& task : tasks_of(source, rank)) {
      if (is_communication(task)) all.bytes[source.names()[task.name]] += task.bytes();
      if (task.kind() != TaskKind::compute) continue;
      for (const Kernel& k : source.works()[task.work()].kernels) {
        if (k.kind == Kernel::Kind::gemm)
          all.products += static_cast<double>(k.m) * static_cast<double>(k.n) * static_cast<double>(k.k) *
                          static_cast<double>(k.batch);
      }
    }
  }
  return all;
}

}  // namespace netsim::test
