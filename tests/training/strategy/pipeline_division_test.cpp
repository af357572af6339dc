// Tests pipelines whose stages have different numbers of layers. The parts are those of Megatron-Core, and
// numbers that do not fit are refused at their place.
#include "sim/training/strategy/pipeline_division.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "sim/core/errors.h"
#include "tests/support/tasks_of.h"
#include "tests/workload/program/small_programs.h"
#include "tests/workload/task_player.h"

namespace netsim::pipeline_division_test {
namespace {

using netsim::test::parse_workload;
using netsim::test::TaskPlayer;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::vector<std::uint32_t> divided(const std::string& yaml, std::int64_t layers,
                                   const PipelinePlacement& placement) {
  const ConfigNode where = parse_config(yaml, "division.yaml");
  return layers_of_parts(pipeline_division_parameters().parse(where), layers, placement, where);
}

// Llama 3 405B has 126 layers on 8 stages of 8 chunks (MLPerf) or on 16 stages (its paper, section 3.3.2). On
// 9 stages of 7 they divide evenly.
TEST(PipelineDivision, EndsCountAsLayers) {
  const auto mlperf =
      divided("{count_embedding: true, count_loss: true}", 126, PipelinePlacement::looped(8, 8));
  ASSERT_EQ(mlperf.size(), 64U);
  EXPECT_EQ(mlperf.front(), 1U);
  EXPECT_EQ(mlperf.back(), 1U);
  EXPECT_EQ(std::accumulate(mlperf.begin(), mlperf.end(), 0U), 126U);
  EXPECT_EQ(mlperf[7], 2U);
  const auto paper =
      divided("{count_embedding: true, count_loss: true}", 126, PipelinePlacement::looped(16, 1));
  EXPECT_EQ(paper, divided("{first_stage: 7, last_stage: 7}", 126, PipelinePlacement::looped(16, 1)));
  EXPECT_EQ(paper.front(), 7U);
  EXPECT_EQ(paper[3], 8U);
  EXPECT_EQ(divided("{}", 126, PipelinePlacement::looped(9, 7)), std::vector<std::uint32_t>(63, 2));
  EXPECT_THAT(divided("{count_loss: true}", 7, PipelinePlacement::looped(4, 2)),
              ElementsAre(1, 1, 1, 1, 1, 1, 1, 0));
}

TEST(PipelineDivision, StagesHaveNumbersOfTheirOwn) {
  EXPECT_THAT(divided("{first_stage: 2}", 14, PipelinePlacement::looped(4, 2)),
              ElementsAre(1, 2, 2, 2, 1, 2, 2, 2));
  EXPECT_THAT(divided("{last_stage: 0}", 6, PipelinePlacement::looped(3, 1)), ElementsAre(3, 3, 0));
  EXPECT_THAT(divided("{first_stage: 2, last_stage: 4}", 12, PipelinePlacement::v_shaped(3)),
              ElementsAre(1, 3, 2, 2, 3, 1));
  EXPECT_THAT(divided("{stages: [3, 1, 4]}", 8, PipelinePlacement::looped(3, 1)), ElementsAre(3, 1, 4));
  EXPECT_THAT(divided("{stages: [[0, 2], [3, 1]]}", 6, PipelinePlacement::looped(2, 2)),
              ElementsAre(0, 3, 2, 1));
  // Chunk 1 of the last stage of a V comes behind chunk 0.
  EXPECT_THAT(divided("{stages: [[1, 4], [2, 3]]}", 10, PipelinePlacement::v_shaped(2)),
              ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(divided("{stages: [[1, 3], [3, 1]]}", 4, PipelinePlacement::bidirectional(2)),
              ElementsAre(1, 3));
}

TEST(PipelineDivision, RefusesWhatDoesNotFit) {
  const auto refused = [](const std::string& yaml, std::int64_t layers, const PipelinePlacement& placement,
                          const std::string& why) {
    EXPECT_THAT([&] { divided(yaml, layers, placement); },
                ThrowsMessage<ConfigError>(AllOf(HasSubstr("division.yaml:1:"), HasSubstr(why))));
  };
  const auto two = PipelinePlacement::looped(2, 2), four = PipelinePlacement::looped(4, 1);
  refused("{count_loss: true}", 8, four, "9 layers, with the loss cannot be divided by 4");
  refused("{count_embedding: true, count_loss: true}", 8, four, "10 layers, with embedding and loss");
  refused("{count_loss: true, first_stage: 3}", 8, four, "three ways to say one thing");
  refused("{first_stage: 1}", 8, four, "of 8 layers 7 are left for the other 3 stages");
  refused("{first_stage: 9}", 8, four, "-1 are left");
  refused("{first_stage: 3}", 7, two, "3 layers of a stage cannot be divided among its 2 chunks");
  refused("{first_stage: 3}", 7, PipelinePlacement::looped(1, 1), "at least 2 stages");
  refused("{stages: [1, 2, 3]}", 6, four, "of each of the 4 stages");
  refused("{stages: [1, 2, 3, 4]}", 9, four, "these are 10 layers, the model has 9");
  refused("{stages: [1, [2], 3, -1]}", 5, four, "from 0 to 100000");
  refused("{stages: [3, [1, 2]]}", 6, two, "stage 0 has 2 chunks: give a list");
  refused("{stages: [4, 0, 4, 0]}", 8, four, "chunk 0 of stage 1 has no layer");
  refused("{stages: [[1, 3], [2, 1]]}", 4, PipelinePlacement::bidirectional(2), "in its other copy");
}

std::unique_ptr<TaskSource> job(const std::string& parallel, const std::string& more = "") {
  return parse_workload(
             "{kind: ptdp, model: {layers: 6, hidden: 64, heads: 4, sequence: 16, vocabulary: 128}, "
             "parallel: {" +
             parallel + "}, microbatches: 8" + more + "}")
      ->tasks(64);
}
std::map<std::string, int> tasks_of(const TaskSource& source, std::uint32_t rank) {
  std::map<std::string, int> count;
  for (const Task& task : test::tasks_of(source, rank)) ++count[source.names()[task.name]];
  return count;
}

// Each stage computes the layers that it has, and reduces their gradients.
TEST(PipelineDivision, StagesComputeTheirLayers) {
  const auto source = job("pipeline: 2, virtual_stages: 2, data: 2, layers: {stages: [[0, 2], [3, 1]]}",
                          ", gradient: {bucket: 10 kB, overlap: true}, optimizer: distributed_adam, "
                          "overlap_parameter_gather: true");
  auto first = tasks_of(*source, 0), second = tasks_of(*source, 2);
  EXPECT_EQ(first["mlp_forward"], 8 * 2);
  EXPECT_EQ(second["mlp_forward"], 8 * 4);
  EXPECT_EQ(first["embedding_lookup"], 8);
  EXPECT_EQ(second["logits_forward"], 8);
  TaskPlayer player(*source, 2);
  player.run();
  EXPECT_TRUE(player.all_done());
  EXPECT_FALSE(player.mismatched);
}

TEST(PipelineDivision, WorksWithEverySchedule) {
  for (const char* parallel :
       {"schedule: zb_v, virtual_stages: 2, layers: {count_embedding: true, count_loss: true}",
        "schedule: dual_pipe, layers: {stages: [[2, 1], [1, 2], [2, 1], [1, 2]]}", "layers: {first_stage: 0}",
        "schedule: dual_pipe_v, virtual_stages: 2, layers: {count_embedding: true, count_loss: true}"}) {
    SCOPED_TRACE(parallel);
    const auto source = job(std::string("pipeline: 4, tensor: 2, sequence: true, ") + parallel);
    TaskPlayer player(*source, 7);
    player.run();
    EXPECT_TRUE(player.all_done());
    EXPECT_FALSE(player.mismatched);
  }
}

TEST(PipelineDivision, IsNeededWhereLayersDoNotDivide) {
  EXPECT_THAT([] { job("pipeline: 4"); },
              ThrowsMessage<ConfigError>(
                  AllOf(HasSubstr("model.layers (6) cannot be divided by 4"), HasSubstr("parallel.layers"))));
  EXPECT_THAT([] { job("pipeline: 4, layers: {count_loss: true}"); },
              ThrowsMessage<ConfigError>(HasSubstr("7 layers, with the loss cannot be divided by 4")));
}

}  // namespace
}  // namespace netsim::pipeline_division_test
