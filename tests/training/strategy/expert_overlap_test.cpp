// Tests exchanges of expert parallelism beside tiles of the experts' GEMMs. Bytes and products do not change,
// times are those of pieces that hide, and every offered product ends in any order of events.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "sim/core/errors.h"
#include "tests/support/tasks_of.h"
#include "tests/training/strategy/played_jobs.h"
#include "tests/workload/program/small_programs.h"
#include "tests/workload/task_player.h"

namespace netsim::expert_overlap_test {
namespace {

using netsim::test::parse_workload;
using netsim::test::TaskPlayer;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::string text(const std::string& parallel, const std::string& more = "") {
  return "{kind: ptdp, model: {kind: llama, groups: 8, inner: 96, layers: 2, hidden: 64, heads: 8, "
         "sequence: 64, vocabulary: 128, experts: {count: 8, top_k: 2, inner: 32}}, recompute: none, "
         "optimizer: none, parallel: {" +
         parallel + "}" + more + "}";
}
std::unique_ptr<TaskSource> job(const std::string& overlap, const std::string& more = "") {
  return parse_workload(
             text("data: 4, expert: 4" + (overlap.empty() ? "" : ", expert_overlap: {" + overlap + "}"),
                  more))
      ->tasks(4);
}

// Returns the bytes that leave a rank for experts and back.
Bytes exchanged(const TaskSource& source) {
  Bytes sum = 0;
  for (const Task& task : test::tasks_of(source, 1)) {
    if (task.stream != Stream::ep || task.kind() == TaskKind::receive) continue;
    if (task.kind() == TaskKind::send) sum += task.bytes();
    if (task.kind() != TaskKind::collective) continue;
    const CollectiveTask& call = task.collective();
    if (call.collective == CollectiveKind::all_to_all) sum += task.bytes() * 3 / 4;
    if (call.counts == nullptr) continue;
    for (std::uint32_t to = 0; to < 4; ++to) sum += to == 1 ? 0 : call.counts->of(1, to);
  }
  return sum;
}
double products(const TaskSource& source) {
  double sum = 0;
  for (const Task& task : test::tasks_of(source, 0)) {
    if (task.kind() != TaskKind::compute) continue;
    for (const Kernel& k : source.works()[task.work()].kernels) {
      if (k.kind == Kernel::Kind::memory || k.slice.index > 0) continue;
      sum += static_cast<double>(k.m) * static_cast<double>(k.n) * static_cast<double>(k.k) *
             static_cast<double>(k.batch);
    }
  }
  return sum;
}

TEST(ExpertOverlap, MovesAndComputesTheSame) {
  const auto plain = job("");
  for (const char* overlap : {"exchanges: collective", "exchanges: collective, pieces: 8",
                              "exchanges: direct, pieces: 1", "exchanges: direct, pieces: 4"}) {
    SCOPED_TRACE(overlap);
    const auto source = job(overlap);
    EXPECT_EQ(exchanged(*source), exchanged(*plain));
    EXPECT_DOUBLE_EQ(products(*source), products(*plain));
  }
}

// A router that is not even gives each piece its part of each block.
TEST(ExpertOverlap, PiecesOfUnevenBlocksAddUp) {
  const char* router = ", router: {kind: zipf, exponent: 0.5}";
  const auto plain = job("", router);
  const auto source = job("exchanges: collective, pieces: 3", router);
  EXPECT_GT(exchanged(*plain), 0);
  EXPECT_EQ(exchanged(*source), exchanged(*plain));
  EXPECT_DOUBLE_EQ(products(*source), products(*plain));
  test::expect_done_under_jitter(*source, 1);
}

// Experts' GEMMs take `gemm` each and an exchange `transfer`; all else takes no time.
Time forward_time(TaskSource& source, Time gemm, Time transfer) {
  std::vector<Time> durations;
  for (const Work& work : source.works()) {
    Time time = 0;
    for (const Kernel& k : work.kernels) {
      if (k.name == "expert_up_gemm" || k.name == "expert_down_gemm") time += gemm / k.slice.count;
    }
    durations.push_back(time);
  }
  Bytes whole = 0;
  for (const Task& task : test::tasks_of(*job(""), 0)) {
    if (task.stream == Stream::ep && task.bytes() > whole) whole = task.bytes();
  }
  TaskPlayer player(source, 1, durations);
  player.transfer_time = [&](const Task& task) {
    const std::string& name = source.names()[task.name];
    const bool forward =
        name == "ep_dispatch_forward" || name == "ep_combine_forward" || name == "ep_send_forward";
    return forward ? transfer * task.bytes() / whole : 0;
  };
  player.run();
  EXPECT_TRUE(player.all_done());
  return player.end();
}

// Each of two layers has an exchange before its first GEMM and one behind its last.
TEST(ExpertOverlap, PiecesHideBehindTiles) {
  for (const auto& [gemm, transfer] : std::vector<std::pair<Time, Time>>{{8000, 3200}, {3200, 8000}}) {
    EXPECT_EQ(forward_time(*job(""), gemm, transfer), 4 * (gemm + transfer));
    EXPECT_EQ(forward_time(*job("exchanges: collective, pieces: 8"), gemm, transfer),
              4 * (std::max(gemm, transfer) + std::min(gemm, transfer) / 8));
    // Each of four ranks has a fourth of its copies already, and the others' pieces come one by one.
    const Time slice = gemm / 8, message = transfer / 8;
    const Time first = std::max(gemm, 6 * message + slice);
    const Time last = gemm + message;  // behind the last slice of two, to three ranks at once
    EXPECT_EQ(forward_time(*job("exchanges: direct, pieces: 2"), gemm, transfer), 2 * (first + last));
  }
}

TEST(ExpertOverlap, EveryProductEndsUnderJitter) {
  struct Degrees {
    std::uint32_t ranks;
    std::string parallel, more;
  };
  const std::vector<Degrees> products{
      {4, "data: 4, expert: 4", ""},
      {8, "data: 4, expert: 2, pipeline: 2", ", microbatches: 2"},
      {8, "data: 2, context: 2, expert: 2, pipeline: 2, schedule: zb_h1", ", microbatches: 2"},
      {4, "tensor: 2, sequence: true, data: 2, expert: 2, expert_tensor: 1", ""}};
  for (const Degrees& degrees : products) {
    for (const std::string kind : {"collective", "direct"}) {
      SCOPED_TRACE(degrees.parallel + " " + kind);
      const auto input = parse_workload(
          text(degrees.parallel + ", expert_overlap: {pieces: 2, exchanges: " + kind + "}", degrees.more));
      for (std::uint64_t seed = 0; seed < 50; ++seed)
        test::expect_done_under_jitter(*input->tasks(degrees.ranks), seed);
    }
  }
}

TEST(ExpertOverlap, RefusesWhatHasNoTilesToWaitFor) {
  const auto refuse = [](const std::string& parallel, const char* why, const std::string& more = "") {
    EXPECT_THAT([&] { parse_workload(text(parallel, more)); }, ThrowsMessage<ConfigError>(HasSubstr(why)));
  };
  const std::string overlap = ", expert_overlap: {exchanges: direct}";
  refuse("data: 4, expert: 4, expert_exchange: dispatch" + overlap, "needs expert_exchange: all_to_all");
  refuse("tensor: 2, sequence: true, data: 2, expert: 2" + overlap, "needs expert_tensor: 1");
  refuse("data: 4, expert: 4" + overlap, "gives all experts equally many tokens",
         ", router: {kind: zipf, exponent: 0.5}");
  refuse("tensor: 2, sequence: true, data: 2, expert: 4, expert_tensor: 1" + overlap, "along one axis");
  EXPECT_THAT(parse_workload(text("data: 4" + overlap))->tasks(4)->notes(),
              ::testing::Contains(HasSubstr("parallel.expert is 1")));
}

}  // namespace
}  // namespace netsim::expert_overlap_test
