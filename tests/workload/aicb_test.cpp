// Tests that workloads of AICB give the communications of each rank in their order, with its groups. Wrong
// ones are refused with their place.
#include <fmt/format.h>
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

namespace netsim::aicb_test {
namespace {

using test::tasks_of;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class AicbFiles : public test::WorkloadFileTest {
 protected:
  AicbFiles() : WorkloadFileTest("table.csv") {}
};

constexpr const char* kHead =
    "comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time,algbw,busbw,"
    "count\n";

std::string row(const char* kind, const char* group, const char* size, const char* bytes,
                const char* time = "None", const char* source = "None") {
  return fmt::format("CommType.{},CommGroup.{},{},{},step,None,{},,{},None,None,1\n", kind, group, size,
                     bytes, source, time);
}

std::string described(const TaskSource& source, std::uint32_t rank) {
  std::string text;
  for (const Task& task : tasks_of(source, rank)) {
    if (task.kind() != TaskKind::collective) {
      const Kernel& kernel = source.works()[task.work()].kernels[0];
      text += fmt::format("{}/{}x{}x{}; ", kernel.duration / kMicrosecond, kernel.m, kernel.n, kernel.k);
      continue;
    }
    text += fmt::format("{} {} of", to_string(task.collective().collective), task.bytes());
    for (const RankId member : source.group(task.collective().group)) text += fmt::format(" {}", member + 0U);
    text += fmt::format(" from {}; ", task.collective().root);
  }
  return text;
}

TEST_F(AicbFiles, RowsFollowEachOtherInTheRanksGroups) {
  const auto source =
      load("[rank0 ~ rank7]\n" + std::string(kHead) + row("broadcast", "tp_group", "2", "64", "None", "1") +
           row("computation", "None", "None", "\"((2, 3, 5) (5, 7))\"") +
           row("computation", "None", "None", "\"((2, 3, 5) (5, 7))\"", "0.25") +
           row("all_to_all", "ep_group", "2", "64") + row("all_reduce", "ep_dp_group", "2", "64") +
           row("all_gather", "dp_group", "4", "64", "3.5") + row("epoch_end", "None", "None", "None"));
  EXPECT_EQ(source->ranks(), 8u);
  EXPECT_EQ(described(*source, 5),
            "broadcast 64 of 4 5 from 1; 0/6x7x5; 250/0x0x0; all_to_all 64 of 5 7 from 0; "
            "all_reduce 64 of 1 5 from 0; all_gather 64 of 1 3 5 7 from 0; ");
  std::vector<Task> ready;
  source->start(RankId(5), ready);
  EXPECT_EQ(ready.size(), 1u);
}

// AICB writes shapes without quotes, and sizes as real numbers. A time without a rate is in nanoseconds.
TEST_F(AicbFiles, RowsAreReadAsAicbWritesThem) {
  const auto source =
      load(std::string(kHead) +
           "CommType.computation,None,None,((2, 3, 5), (5, 7)),forward.a,None,None,,None,None,None,1\r\n"
           "CommType.computation,None,None,((2, 3, 5), (5, 7)),forward.a,None,None,,3000,None,None,1\n"
           "computation,None,None,((2, 3, 5), (5, 7)),forward.a,None,None,,3,0.5,0.5,1\n" +
           row("all_reduce", "all_nodes", "4.0", "1e6"));
  EXPECT_EQ(described(*source, 1), "0/6x7x5; 3/0x0x0; 3000/0x0x0; all_reduce 1000000 of 0 1 2 3 from 0; ");
}

constexpr const char* kStage0 =
    "[ pp_stage0: [rank0, rank1] ]\n"
    "comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time,algbw,busbw,count\n"
    "CommType.all_reduce,CommGroup.pp_group,2,8,init,None,None,,None,None,None,1\n"
    "CommType.epoch_end,None,None,0,,None,None,,None,None,None,1\n"
    "CommType.all_reduce,CommGroup.tp_group,2,11,forward.a,None,None,,None,None,None,1\n"
    "CommType.isend,CommGroup.pp_group,1,100,forward_step,None,None,send_next,None,None,None,1\n"
    "CommType.all_reduce,CommGroup.tp_group,2,12,forward.b,None,None,,None,None,None,1\n"
    "CommType.irecv,CommGroup.pp_group,1,100,forward_step,None,None,recv_next,None,None,None,1\n"
    "CommType.isend,CommGroup.pp_group,1,100,forward_step,None,None,send_next,None,None,None,1\n"
    "CommType.all_reduce,CommGroup.tp_group,2,21,backward.a,None,None,,None,None,None,1\n"
    "CommType.irecv,CommGroup.pp_group,1,100,backward_step,None,None,recv_next,None,None,None,1\n"
    "CommType.all_reduce,CommGroup.tp_group,2,22,backward.b,None,None,,None,None,None,1\n"
    "CommType.all_reduce,CommGroup.tp_group,2,31,step,None,None,,None,None,None,1\n"
    "CommType.epoch_end,None,None,0,,None,None,,None,None,None,1\n";
constexpr const char* kStage1 =
    "[ pp_stage1: [rank2, rank3] ]\n"
    "comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time,algbw,busbw,count\n"
    "CommType.all_reduce,CommGroup.pp_group,2,8,init,None,None,,None,None,None,1\n"
    "CommType.irecv,CommGroup.pp_group,1,100,forward_step,None,None,recv_prev,None,None,None,1\n"
    "CommType.all_reduce,CommGroup.tp_group,2,41,forward.c,None,None,,None,None,None,1\n"
    "CommType.isend,CommGroup.pp_group,1,100,forward_step,None,None,send_next,None,None,None,1\n"
    "CommType.all_reduce,CommGroup.tp_group,2,51,backward.c,None,None,,None,None,None,1\n"
    "CommType.isend,CommGroup.pp_group,1,100,backward_step,None,None,send_prev,None,None,None,1\n"
    "CommType.irecv,CommGroup.pp_group,1,100,backward_step,None,None,recv_prev,None,None,None,1\n"
    "CommType.all_reduce,CommGroup.tp_group,2,42,forward.c,None,None,,None,None,None,1\n"
    "CommType.all_reduce,CommGroup.tp_group,2,52,backward.c,None,None,,None,None,None,1\n"
    "CommType.isend,CommGroup.pp_group,1,100,backward_step,None,None,send_prev,None,None,None,1\n";

// Returns the bytes of a rank's collectives, and its messages as ">2" and "<2".
std::vector<std::string> steps_of(const TaskSource& source, std::uint32_t rank) {
  std::vector<std::string> words;
  for (const Task& task : tasks_of(source, rank)) {
    if (is_point_to_point(task)) {
      words.push_back(
          fmt::format("{}{}", task.kind() == TaskKind::send ? ">" : "<", task.message().peer + 0U));
    } else {
      words.push_back(std::to_string(task.bytes()));
    }
  }
  return words;
}

TEST_F(AicbFiles, EachStageRunsItsOwnTable) {
  const auto source = load(std::string(kStage0) + kStage1);
  EXPECT_EQ(source->ranks(), 4u);
  EXPECT_THAT(steps_of(*source, 1), ElementsAre("8", "11", ">3", "12", "<3", ">3", "21", "<3", "22", "31"));
  EXPECT_THAT(steps_of(*source, 3), ElementsAre("8", "<1", "41", "51", ">1", "<1", "42", "52", ">1"));
  EXPECT_THAT(source->notes(), Contains("messages over the ends of the pipeline, which AICB leaves out: 1"));
  EXPECT_THAT(source->group(tasks_of(*source, 3).at(0).collective().group),
              ElementsAre(RankId(1), RankId(3)));
  // A row waits for the one before it.
  std::vector<Task> ready;
  source->start(RankId(3), ready);
  EXPECT_EQ(ready.size(), 1u);
}

TEST_F(AicbFiles, OtherStagesAreFilledInByThePassesOfOne) {
  const auto source = load(kStage0);
  EXPECT_EQ(source->ranks(), 4u);
  EXPECT_THAT(steps_of(*source, 0), ElementsAre("8", "11", ">2", "12", ">2", "<2", "21", "<2", "22", "31"));
  EXPECT_THAT(steps_of(*source, 2), ElementsAre("8", "<0", "11", "21", ">0", "<0", "12", "22", ">0", "31"));
  EXPECT_THAT(source->notes(), Contains("all 2 stages of the pipeline have the rows of the table, and run 2 "
                                        "microbatches in the order 1F1B"));
}

TEST_F(AicbFiles, PassesTellTheStagesWhereNothingElseDoes) {
  std::string text = kStage0;
  text.erase(0, text.find("comm_type"));
  const std::string groups = "CommType.all_reduce,CommGroup.pp_group";
  text.replace(text.find(groups), groups.size(), "CommType.all_reduce,CommGroup.dp_group");
  const auto source = load(text);
  EXPECT_EQ(source->ranks(), 8u);
  EXPECT_THAT(
      source->notes(),
      Contains("stages of the pipeline, as many as forward passes before the first backward pass: 2"));
}

TEST_F(AicbFiles, SizesOfGroupsThatNoRowTellsAreTheLargest) {
  const auto source =
      load("comm_type,comm_group,msg_size,stage\nCommType.all_reduce,CommGroup.dp_group,8,warmup\n");
  EXPECT_EQ(source->ranks(), 16u);
  EXPECT_EQ(source->group(tasks_of(*source, 3).at(0).collective().group).size(), 16u);
  EXPECT_THAT(source->notes(),
              Contains(HasSubstr("without a comm_group_size, which got the largest that fits: 1")));
}

TEST_F(AicbFiles, GroupsOfExpertsTellTheRanks) {
  const auto source =
      load(std::string(kHead) + row("all_to_all", "ep_group", "4", "64") +
           row("all_reduce", "ep_dp_group", "2", "64") + row("all_reduce", "tp_group", "2", "8"));
  EXPECT_EQ(source->ranks(), 16u);
}

TEST_F(AicbFiles, WrongOnesAreRefusedWithTheirPlace) {
  const std::string head = kHead;
  EXPECT_THAT(refused(head + row("sum", "dp_group", "4", "8")), HasSubstr(":2:1: 'sum' is no communication"));
  EXPECT_THAT(
      refused(head + row("isend", "pp_group", "4", "8")),
      HasSubstr(":2:1: the other end of the message is ''; allowed in `additional`: send_next, send_prev"));
  EXPECT_THAT(
      refused(head + "irecv,pp_group,1,8,a,None,None,send_next,None,None,None,1\n"),
      HasSubstr(":2:32: the other end of the message is 'send_next'; allowed in `additional`: recv_next"));
  EXPECT_THAT(refused(head + "isend,pp_group,1,8,a,None,None,send_next,None,None,None,1\n"),
              HasSubstr(":2:1: a message of a pipeline, and the table is that of one stage"));
  EXPECT_THAT(
      refused(std::string(kStage0) + kStage1 + "[rank4, rank5]\n" + row("all_reduce", "tp_group", "2", "8")),
      HasSubstr(":15:1: the file has 3 tables of stages, and a pp_group has 2 ranks"));
  std::string others = kStage1;
  others.replace(others.find("rank2, rank3"), 12, "rank1, rank3");
  EXPECT_THAT(refused(kStage0 + others),
              HasSubstr(":15:1: the table of stage 1 is for other ranks than 2 to 3"));
  EXPECT_THAT(refused(head + row("all_reduce", "embedding_group", "4", "8")),
              HasSubstr(":2:21: 'embedding_group', the first and the last stage of a pipeline, is not read"));
  EXPECT_THAT(refused(head + row("all_reduce", "dp_group", "4", "None")),
              HasSubstr(":2:1: msg_size is missing"));
  EXPECT_THAT(
      refused(head + row("all_reduce", "dp_group", "4", "8") + row("all_reduce", "dp_group", "2", "8")),
      HasSubstr(":3:40: comm_group_size is 2, and 4 in a row before"));
  EXPECT_THAT(refused("[rank0 ~ rank31]\n" + head + row("all_reduce", "dp_group", "4", "8")),
              HasSubstr(": 32 GPUs are needed, but the cluster has 16"));
  EXPECT_THAT(refused("[rank0 ~ rank7]\n" + head + row("all_reduce", "tp_group", "3", "8")),
              HasSubstr(": 8 ranks are no multiple of 3"));
  EXPECT_THAT(refused(head), HasSubstr("no rows follow the header"));
}

TEST_F(AicbFiles, DamagedOnesEndInOneError) {
  const std::string text = "[rank0 ~ rank7]\n" + std::string(kHead) +
                           row("broadcast", "tp_group", "2", "64") +
                           row("computation", "None", "None", "\"((2, 3, 5) (5, 7))\"");
  for (const std::string& sample : {text, std::string(kStage0), std::string(kStage0) + kStage1})
    test::expect_sane(
        sample, [this](const std::string& given) { load(given); }, 300);
}

TEST(AicbSamples, AllAreRead) {
  NETSIM_NEEDS_SHARED("samples/aicb_csv");
  std::size_t read = 0;
  for (const std::string& path : test::shared_files("samples/aicb_csv", ".csv")) {
    if (path.find("Workload_spec") != std::string::npos) continue;
    EXPECT_GT(load_workload(path, 128)->total_tasks().value_or(0), 0u) << path;
    ++read;
  }
  EXPECT_EQ(read, 11u);
}

}  // namespace
}  // namespace netsim::aicb_test
