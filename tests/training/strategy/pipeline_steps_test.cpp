// Tests schedules with steps that communicate, in training jobs: the data, its ends and times.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "sim/core/errors.h"
#include "tests/support/tasks_of.h"
#include "tests/workload/program/small_programs.h"
#include "tests/workload/task_player.h"

namespace netsim::pipeline_steps_test {
namespace {

using netsim::test::parse_workload;
using netsim::test::PlayedTask;
using netsim::test::TaskPlayer;
using ::testing::HasSubstr;

std::string text(const std::string& more) {
  return "{kind: ptdp, model: {layers: 4, hidden: 64, heads: 4, sequence: 16, vocabulary: 128}, " + more +
         "}";
}
std::unique_ptr<TaskSource> job(const std::string& more, std::uint32_t ranks) {
  return parse_workload(text(more))->tasks(ranks);
}
std::string refusal(const std::string& more) {
  try {
    parse_workload(text(more));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

std::map<std::string, Bytes> bytes_of(const TaskSource& source, std::uint32_t rank) {
  std::map<std::string, Bytes> all;
  for (const Task& task : test::tasks_of(source, rank)) {
    if (is_communication(task)) all[source.names()[task.name]] += task.bytes();
  }
  return all;
}

std::vector<PlayedTask> played(TaskSource& source) {
  TaskPlayer player(source, 1, std::vector<Time>(source.works().size(), 10));
  player.transfer_time = [](const Task&) { return Time{3}; };
  player.run();
  EXPECT_TRUE(player.all_done());
  EXPECT_FALSE(player.mismatched);
  return player.played;
}

// When a rank's tasks of a name begin and end.
std::vector<std::pair<Time, Time>> times_of(const std::vector<PlayedTask>& played, const TaskSource& source,
                                            std::uint32_t rank, const std::string& name) {
  std::vector<std::pair<Time, Time>> times;
  for (const PlayedTask& one : played) {
    if (one.rank == rank && source.names()[one.task.name] == name) times.emplace_back(one.ready, one.end);
  }
  std::sort(times.begin(), times.end());
  return times;
}
Time last_computation(const std::vector<PlayedTask>& played, const TaskSource& source, std::uint32_t rank) {
  Time end = 0;
  for (const PlayedTask& one : played) {
    if (one.rank == rank && one.task.kind() == TaskKind::compute &&
        source.names()[one.task.name] != "optimizer")
      end = std::max(end, one.end);
  }
  return end;
}

constexpr const char* kTwoChunks =
    "steps: ['F0 F1 F0.1 B0.1 F1.1 B1.1 G.1 B0 B1', 'F0 F0.1 F1 B0.1 F1.1 B0 B1.1 B1 G.1 G']}";

// As many bytes as without steps, of which chunk 1 of stage 0 moves before the stage's last backwards.
TEST(PipelineSteps, ReduceAChunksGradientsWhereTheListSaysSo) {
  for (const char* optimizer : {"adam", "distributed_adam"}) {
    const std::string common =
        std::string("optimizer: ") + optimizer +
        ", microbatches: 2, parallel: {pipeline: 2, data: 2, virtual_stages: 2, schedule: "
        "{kind: listed, placement: v_shaped, ";
    const auto with = job(common + kTwoChunks + "}", 4);
    const auto without =
        job(common + "steps: ['F0 F1 F0.1 B0.1 F1.1 B1.1 B0 B1', 'F0 F0.1 F1 B0.1 F1.1 B0 B1.1 B1']}}", 4);
    for (std::uint32_t rank = 0; rank < 4; ++rank) {
      EXPECT_EQ(bytes_of(*with, rank), bytes_of(*without, rank));
      EXPECT_GT(bytes_of(*with, rank).at("dp_gradients"), 0);
    }
    const auto tasks = played(*with);
    const auto reductions = times_of(tasks, *with, 0, "dp_gradients");
    ASSERT_EQ(reductions.size(), 2U);
    EXPECT_LT(reductions[0].first, last_computation(tasks, *with, 0));
    EXPECT_GE(reductions[1].first, last_computation(tasks, *with, 0));
    // The optimizer waits for both, in any stage.
    for (const std::uint32_t rank : {0U, 2U}) {
      EXPECT_GE(times_of(tasks, *with, rank, "optimizer").at(0).first,
                times_of(tasks, *with, rank, "dp_gradients").back().second);
    }
  }
}

TEST(PipelineSteps, ReductionsComeInBuckets) {
  const std::string common =
      "microbatches: 2, parallel: {pipeline: 2, data: 2, schedule: {kind: listed, steps: "
      "['F0 F1 B0 B1 G', 'F0 B0 F1 B1 G']}}";
  const auto whole = job(common, 4), pieces = job(common + ", gradient: {bucket: 50 KB}", 4);
  const auto count = [](TaskSource& source) {
    return times_of(played(source), source, 0, "dp_gradients").size();
  };
  EXPECT_EQ(bytes_of(*whole, 0), bytes_of(*pieces, 0));
  // Two layers of 12 h^2 + 13 h parameters, and positions; the embedding that both ends share comes at the
  // end.
  const Bytes layers = 2 * (2 * (12 * 64 * 64 + 13 * 64) + 16 * 64), shared = 2 * 128 * 64;
  EXPECT_EQ(bytes_of(*whole, 0).at("dp_gradients"), layers + shared);
  EXPECT_EQ(count(*whole), 2U);
  EXPECT_EQ(count(*pieces), static_cast<std::size_t>((layers + 49'999) / 50'000 + 1));
}

// The stage does not compute while it waits; a receive is posted where the list has it.
TEST(PipelineSteps, StagesWaitForWhatTheirListsWaitFor) {
  const auto waiting = [](const char* zero, const char* one) {
    const auto source =
        job(std::string("microbatches: 2, parallel: {pipeline: 2, schedule: {kind: listed, steps: "
                        "['") +
                zero + "', '" + one + "']}}",
            2);
    const auto tasks = played(*source);
    return std::pair{times_of(tasks, *source, 0, "send_forward"),
                     times_of(tasks, *source, 1, "receive_forward")};
  };
  const auto [sent, received] = waiting("F0 F1 SF0! SF1 B0 B1", "RF0 F0 RF1 B0 F1 B1");
  ASSERT_EQ(sent.size(), 2U);
  EXPECT_EQ(sent[1].first, sent[0].second);
  EXPECT_EQ(received[0].first, 0);
  EXPECT_GT(received[1].first, received[0].second);
  // Implied: each as soon as it can.
  const auto [early, posted] = waiting("F0 F1 B0 B1", "F0 B0 F1 B1");
  EXPECT_LT(early[0].first, sent[0].first);
  EXPECT_EQ(posted[1].first, posted[0].second);
}

// Tensor-parallel ranks gather what they receive, at a step or not.
TEST(PipelineSteps, MessagesAreScatteredAndGatheredAsWithoutSteps) {
  const std::string parallel =
      "microbatches: 2, parallel: {pipeline: 2, tensor: 2, schedule: {kind: listed, steps: ";
  const auto with = job(parallel + "['F0 SF0! F1 SF1 RB0! B0 RB1 B1', 'RF0! F0 B0 SB0 RF1 F1 B1 SB1']}}", 4);
  const auto without = job(parallel + "['F0 F1 B0 B1', 'F0 B0 F1 B1']}}", 4);
  for (std::uint32_t rank = 0; rank < 4; ++rank) EXPECT_EQ(bytes_of(*with, rank), bytes_of(*without, rank));
  EXPECT_EQ(bytes_of(*with, 2).at("gather_forward"), 2 * 2 * 16 * 64);
  played(*with);
}

// Stage 1 has posted the receive of microbatch 1 when it gathers and loads for the backward of 0. Stage 0
// sends microbatch 1 when the backward is done. So a backward's inputs wait for the step before, and not for
// operations posted since.
TEST(PipelineSteps, CombineWithAllElse) {
  const auto llama = [](const std::string& parallel, const std::string& more, const std::string& steps) {
    return parse_workload(
        "{kind: ptdp, model: {kind: llama, layers: 4, hidden: 64, heads: 4, groups: 4, inner: 96, "
        "sequence: 16, vocabulary: 128" +
        std::string(more.find("expert") == 0 ? ", " : "") +
        (more.find("expert") == 0 ? "experts: {count: 4, top_k: 2, inner: 32}" : "") +
        "}, microbatches: 2, parallel: {pipeline: 2, " + parallel +
        ", schedule: {kind: listed, steps: " + steps + "}}" + (more.find("expert") == 0 ? "" : more) + "}");
  };
  const std::string zero3 =
      ", recompute: none, optimizer: distributed_adam, sharding: {what: parameters, reshard: all, ahead: ";
  for (const auto& [parallel, more] : std::vector<std::pair<std::string, std::string>>{
           {"data: 2", zero3 + "0}"},
           {"data: 2", zero3 + "1}"},
           {"data: 2", ", recompute: none, offload: {activations: 1}"},
           {"data: 2", ", offload: {optimizer: 1}"},
           {"tensor: 2, sequence: true", ", optimizer: distributed_adam, overlap_parameter_gather: true"},
           {"context: 2", ", overlap_p2p: false"},
           {"data: 2, expert: 2", "experts"}}) {
    SCOPED_TRACE(parallel + more);
    const auto with = llama(parallel, more, "['F0 F1 RB0! SF1 B0 B1', 'F0 RF1 B0 SB0 F1 SB0! B1']")->tasks(4);
    const auto without = llama(parallel, more, "['F0 F1 B0 B1', 'F0 B0 F1 B1']")->tasks(4);
    for (std::uint32_t rank = 0; rank < 4; ++rank) EXPECT_EQ(bytes_of(*with, rank), bytes_of(*without, rank));
    EXPECT_FALSE(played(*with).empty());
  }
}

// A copy of the model's last part is on the first stage, and of its first part on the last.
TEST(PipelineSteps, ChimeraReducesTheLastPartsGradientsBeforeTheEnd) {
  const auto chimera = [](const char* eager) {
    return job(std::string("microbatches: 4, parallel: {pipeline: 4, data: 2, schedule: {kind: chimera, "
                           "eager_reduction: ") +
                   eager + "}}",
               8);
  };
  const auto none = chimera("none"), bubbles = chimera("bubbles"), all = chimera("all");
  for (std::uint32_t rank = 0; rank < 8; ++rank) {
    EXPECT_EQ(bytes_of(*none, rank), bytes_of(*bubbles, rank));
    EXPECT_EQ(bytes_of(*none, rank), bytes_of(*all, rank));
  }
  // Ranks that reduce something before they have computed all.
  const auto early = [](TaskSource& source) {
    const auto tasks = played(source);
    std::set<std::uint32_t> ranks;
    for (std::uint32_t rank = 0; rank < 8; ++rank) {
      if (times_of(tasks, source, rank, "dp_gradients").at(0).first < last_computation(tasks, source, rank))
        ranks.insert(rank);
    }
    return ranks;
  };
  EXPECT_THAT(early(*none), ::testing::IsEmpty());
  EXPECT_THAT(early(*bubbles), ::testing::ElementsAre(0U, 1U, 6U, 7U));
  EXPECT_THAT(early(*all), ::testing::ElementsAre(0U, 1U, 2U, 3U, 4U, 5U, 6U, 7U));
}

TEST(PipelineSteps, ReductionsExcludeOtherWaysToReduceEarly) {
  const std::string steps = "schedule: {kind: listed, steps: ['F0 B0 G', 'F0 B0 G']}";
  const std::string with = "parallel: {pipeline: 2, data: 2, " + steps + "}";
  EXPECT_EQ(refusal(with), "accepted");
  EXPECT_THAT(refusal(with + ", gradient: {bucket: 1 MB, overlap: true}"),
              HasSubstr("gradient.overlap has to be false"));
  EXPECT_THAT(refusal(with + ", gradient: {local_steps: 2}"), HasSubstr("replicas cannot step alone"));
  EXPECT_THAT(
      refusal("optimizer: distributed_adam, sharding: {what: gradients}, parallel: {pipeline: 1, data: 2, "
              "schedule: {kind: listed, steps: ['F0 B0 G']}}"),
      HasSubstr("gradients that are divided are reduced in each backward"));
  // Copies that ptdp would sum with the wrong stage.
  EXPECT_THAT(
      refusal("microbatches: 2, parallel: {pipeline: 2, schedule: {kind: listed, routes: [[0, 1], [0, 1]], "
              "steps: ['F0 F1.1 B0 B1.1', 'F0 F1.1 B0 B1.1']}}"),
      HasSubstr("copies of a part of the model have to be on opposite stages"));
}

}  // namespace
}  // namespace netsim::pipeline_steps_test
