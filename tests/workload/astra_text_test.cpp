// Tests that tables of layers in the notation of SimAI and ASTRA-sim give the tasks of one pass, with their
// groups and sizes. Wrong ones are refused with their place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "sim/core/errors.h"
#include "sim/workload/workload.h"
#include "tests/support/mutations.h"
#include "tests/support/shared.h"
#include "tests/support/tasks_of.h"
#include "tests/support/workload_files.h"

namespace netsim::astra_text_test {
namespace {

using test::tasks_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class AstraTextFiles : public test::WorkloadFileTest {
 protected:
  AstraTextFiles() : WorkloadFileTest("layers.txt") {}
};

// Returns the tasks of a rank in words: "100" is a time [ns], others are kind/bytes/group size.
std::vector<std::string> described(const TaskSource& source, std::uint32_t rank) {
  std::vector<std::string> words;
  for (const Task& task : tasks_of(source, rank)) {
    if (task.kind() != TaskKind::collective) {
      words.push_back(std::to_string(source.works()[task.work()].kernels[0].duration / kNanosecond));
      continue;
    }
    words.push_back(std::string(to_string(task.collective().collective)) + "/" +
                    std::to_string(task.bytes()) + "/" +
                    std::to_string(source.group(task.collective().group).size()));
  }
  return words;
}

constexpr const char* kHead =
    "HYBRID_TRANSFORMER_FWD_IN_BCKWD\tmodel_parallel_NPU_group: 2 ep: 2 pp: 1 vpp: 4 ga: 8 all_gpus: 8\n";

TEST_F(AstraTextFiles, StagesOfAPipelineRunTheirMicrobatchesInTheOrder1F1B) {
  const auto source = load(
      "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 1 pp: 2 vpp: 1 ga: 3 all_gpus: 8 "
      "pp_comm 4096.0\n"
      "5\n"
      "first -1 5 NONE 0 0 NONE 0 0 ALLREDUCE 8192 1\n"
      "layer -1 10 NONE 0 20 NONE 0 30 NONE 0 1\n"
      "layer -1 11 NONE 0 21 NONE 0 31 NONE 0 1\n"
      "layer -1 12 NONE 0 22 NONE 0 32 NONE 0 1\n"
      "last -1 7 NONE 0 0 NONE 0 0 NONE 0 1\n");
  EXPECT_EQ(source->ranks(), 8u);
  const auto words = [&](std::uint32_t rank) {
    std::vector<std::string> list;
    for (const Task& task : tasks_of(*source, rank)) {
      if (is_point_to_point(task)) {
        list.push_back((task.kind() == TaskKind::send ? ">" : "<") +
                       std::to_string(task.message().peer + 0U));
      } else if (task.kind() == TaskKind::collective) {
        list.push_back("dp" + std::to_string(source->group(task.collective().group).back() + 0U));
      } else {
        list.push_back(std::to_string(source->works()[task.work()].kernels[0].duration / kNanosecond));
      }
    }
    return list;
  };
  // Stage 0 is one microbatch ahead of stage 1. Receives wait for nothing.
  EXPECT_THAT(words(1), ElementsAre("5", "10", ">5", "11", ">5", "<5", "20", "30", "12", ">5", "<5", "21",
                                    "31", "<5", "22", "32", "7", "dp3"));
  EXPECT_THAT(words(5), ElementsAre("5", "<1", "10", "20", "30", ">1", "<1", "11", "21", "31", ">1", "<1",
                                    "12", "22", "32", ">1", "7", "dp7"));
  EXPECT_THAT(source->notes(), ::testing::Contains("all 2 stages of the pipeline have the rows of the table, "
                                                   "and run 3 microbatches in the order 1F1B"));
}

// Two chunks of layers on each of two stages. Rows before the first layer and behind the last one go with
// these.
TEST_F(AstraTextFiles, LayersOfAStageRunInterleavedAsVppSays) {
  const std::string microbatch =
      "emb -1 1 NONE 0 0 NONE 0 0 NONE 0 1\n"
      "layer -1 10 NONE 0 20 NONE 0 0 NONE 0 1\n"
      "layer -1 11 NONE 0 21 NONE 0 0 NONE 0 1\n"
      "head -1 2 NONE 0 0 NONE 0 0 NONE 0 1\n";
  const auto text = [&](int rows, int ga) {
    return "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 1 ep: 1 pp: 2 vpp: 2 ga: " +
           std::to_string(ga) + " all_gpus: 2 pp_comm: 4096\n" + std::to_string(rows) + "\n";
  };
  const auto source = load(text(8, 2) + microbatch + microbatch);
  const auto words = [&](std::uint32_t rank) {
    std::string list;
    for (const Task& task : tasks_of(*source, rank)) {
      const bool message = is_point_to_point(task);
      list += !message ? std::to_string(source->works()[task.work()].kernels[0].duration / kNanosecond)
              : task.kind() == TaskKind::send ? ">" + std::to_string(task.message().tag)
                                              : "<" + std::to_string(task.message().tag);
      list += ' ';
    }
    return list;
  };
  // All forward passes come first, as there are no more microbatches than stages. The tag tells microbatch,
  // chunk of the receiver, and direction.
  EXPECT_EQ(words(0), "1 10 >0 1 10 >4 <2 11 2 >2 <6 11 2 >6 <3 21 >1 <7 21 >5 <1 20 <5 20 ");
  EXPECT_EQ(words(1), "<0 1 10 >2 <4 1 10 >6 <2 11 2 <6 11 2 21 >3 21 >7 <1 20 >1 <5 20 >5 ");
  EXPECT_THAT(source->notes(),
              ::testing::Contains(HasSubstr("1F1B, interleaved with 2 chunks of layers (vpp)")));
  EXPECT_THAT(load(text(12, 3) + microbatch + microbatch + microbatch)->notes(),
              ::testing::Contains(HasSubstr("1F1B; vpp 2 is not used: ga 3 is no multiple of pp 2")));
}

// A table for all ranks of a large job has the memory of its stages.
TEST_F(AstraTextFiles, RanksOfAStageShareTheirTasks) {
  std::string text = "HYBRID_TRANSFORMER model_parallel_NPU_group: 8 ep: 8 pp: 1 all_gpus: 65536\n600\n";
  for (int i = 0; i < 600; ++i) text += "layer -1 1 ALLREDUCE 8192 1 ALLTOALL_EP 8192 1 ALLREDUCE 8192 1\n";
  const auto source = load_workload(write("large.txt", text), WorkloadContext::without_cluster());
  EXPECT_EQ(source->total_tasks(), 65536u * 3600u);
  EXPECT_EQ(source->group(tasks_of(*source, 65535).at(1).collective().group).front(), RankId(65528));
}

TEST_F(AstraTextFiles, NumbersAndKindsAreReadAsToolsWriteThem) {
  const auto source = load(
      "HYBRID_TRANSFORMER MODEL_PARALLEL_NPU_GROUP: 2 mode: 1 note: all_gpus: 4 pp_comm: 0\r\n\r\n1\r\n\r\n"
      "a\t-1\t1.5e1\tallreduce\t8192.0\t0\tNone\t0\t0\tNONE\t0\t100.0\r\n\r\n");
  EXPECT_EQ(source->ranks(), 4u);
  EXPECT_THAT(described(*source, 0), ElementsAre("15", "all_reduce/8192/2"));
  EXPECT_THAT(source->notes(), ::testing::Contains("keys of the first line that are not used: mode, note"));
}

TEST_F(AstraTextFiles, APassRunsForwardThenBackward) {
  const auto source = load(std::string(kHead) +
                           "2\n"
                           "a -1 10 ALLREDUCE 64 20 ALLREDUCE 8192 30 REDUCESCATTER 4096 100\n"
                           "b -1 40 ALLTOALL_EP 8192 0 NONE 0 50 ALLGATHER_DP_EP 8192 100\n");
  EXPECT_EQ(source->ranks(), 8u);
  // The first all-reduce has SimAI's least size of the forward pass.
  EXPECT_THAT(described(*source, 3),
              ElementsAre("10", "all_reduce/4096/2", "40", "all_to_all/8192/2", "50", "all_gather/8192/2",
                          "20", "all_reduce/8192/2", "30", "reduce_scatter/4096/4"));
  std::vector<Task> ready;
  source->start(RankId(3), ready);
  EXPECT_EQ(ready.size(), 1u);
}

TEST_F(AstraTextFiles, PoliciesHaveTheirCollectives) {
  const std::string rows =
      "2\na -1 0 ALLREDUCE 8192 0 ALLREDUCE 8193 0 ALLREDUCE 8194 1\n"
      "b -1 0 NONE 0 0 NONE 0 0 ALLREDUCE 8195 1\n";
  EXPECT_THAT(described(*load("DATA\n" + rows), 0), ElementsAre("all_reduce/8195/16", "all_reduce/8194/16"));
  EXPECT_THAT(described(*load("MODEL\n" + rows), 0), ElementsAre("all_reduce/8192/16", "all_reduce/8193/16"));
  EXPECT_THAT(described(*load("MICRO\n" + rows), 0), ElementsAre("all_reduce/8194/16"));
}

TEST_F(AstraTextFiles, WrongOnesAreRefusedWithTheirPlace) {
  const std::string head = kHead;
  EXPECT_THAT(refused("HYBRID_DLRM\n0\n"), HasSubstr(":1:1: policy HYBRID_DLRM is not read"));
  EXPECT_THAT(refused("DATA pp: 2\n0\n"), HasSubstr(":1:1: pp_comm is missing or 0"));
  EXPECT_THAT(refused("DATA pp: 3 pp_comm 8\n0\n"), HasSubstr("16 ranks are no multiple of 1"));
  EXPECT_THAT(refused("DATA pp: 2 ga: 2 pp_comm: 8\n2\na -1 1 NONE 0 1 NONE 0 1 NONE 0 1\nb -1 1 NONE 0 1 "
                      "NONE 0 1 NONE 0 1\n"),
              HasSubstr(":1:1: the rows are not those of 2 microbatches (ga)"));
  EXPECT_THAT(refused("DATA all_gpus: 17\n0\n"),
              HasSubstr(":1:1: 17 GPUs are needed, but the cluster has 16"));
  EXPECT_THAT(refused("HYBRID_TRANSFORMER model_parallel_NPU_group: 3\n0\n"),
              HasSubstr(":1:1: 16 ranks are no multiple of 3"));
  EXPECT_THAT(refused("DATA size 3\n0\n"), HasSubstr(":1:6: 'size' is not known here"));
  EXPECT_THAT(refused(head + "1\na -1 1 NONE 0 1 ALLREDUCEALLTOALL 8 1 NONE 0 1\n"),
              HasSubstr(":3:17: 'ALLREDUCEALLTOALL' is not read, as its parts depend"));
  EXPECT_THAT(refused("DATA all_gpus: 1000000000 pp_comm: 0\n0\n"),
              HasSubstr(":1:16: all_gpus is '1000000000'"));
  EXPECT_THAT(refused("DATA\n2\na -1 1 NONE 0 1 NONE 0 1 NONE 0 1\n"),
              HasSubstr(":2:1: 2 rows are expected, but the file has 1"));
  EXPECT_THAT(refused("DATA\n1\na -1 1 NONE 0 1 NONE 0 1 NONE 0 1\nb\n"), HasSubstr(":4:1: more rows"));
  EXPECT_THAT(refused(head + "1\na -1 1 NONE 0 1 SUM 0 1 NONE 0 1\n"),
              HasSubstr(":3:17: 'SUM' is no collective; allowed: NONE, or ALLREDUCE"));
  EXPECT_THAT(refused(head + "1\na -1 -1 NONE 0 1 NONE 0 1 NONE 0 1\n"), HasSubstr(":3:6: "));
}

TEST_F(AstraTextFiles, DamagedOnesEndInOneError) {
  const std::string text = std::string(kHead) + "1\na -1 1 ALLREDUCE 64 1 NONE 0 1 NONE 0 1\n";
  test::expect_sane(
      text, [this](const std::string& given) { load(given); }, 300);
}

// Every sample is read, but one with a pipeline and one that has fewer rows than it says.
TEST(AstraTextSamples, AllAreReadOrRefused) {
  NETSIM_NEEDS_SHARED("samples/simai_txt");
  std::size_t read = 0;
  std::vector<std::string> refused;
  for (const std::string& path : test::shared_files("samples/simai_txt", ".txt")) {
    try {
      const auto source = load_workload(path, 16);
      EXPECT_GT(source->total_tasks().value_or(0), 0u) << path;
      ++read;
    } catch (const InputError& error) {
      refused.emplace_back(error.what());
    }
  }
  EXPECT_EQ(read, 9u);
  EXPECT_THAT(refused, ElementsAre(HasSubstr("839 rows are expected, but the file has 33"),
                                   HasSubstr("9216 GPUs are needed, but the cluster has 16")));
}

}  // namespace
}  // namespace netsim::astra_text_test
