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

TEST_F(AicbFiles, SizesOfGroupsThatNoRowTellsAreTheLargest) {
  const auto source =
      load("comm_type,comm_group,msg_size,stage\nCommType.all_reduce,CommGroup.dp_group,8,warmup\n");
  EXPECT_EQ(source->ranks(), 16u);
  EXPECT_EQ(source->group(tasks_of(*source, 3).at(0).collective().group).size(), 16u);
  EXPECT_THAT(source->notes(),
              Contains(HasSubstr("without a comm_group_size, which got the largest that fits: 1")));
}

TEST_F(AicbFiles, WrongOnesAreRefusedWithTheirPlace) {
  const std::string head = kHead;
  EXPECT_THAT(refused(head + row("sum", "dp_group", "4", "8")), HasSubstr(":2:1: 'sum' is no communication"));
  EXPECT_THAT(refused(head + row("isend", "pp_group", "4", "8")),
              HasSubstr(":2:1: the table is that of one rank"));
  EXPECT_THAT(refused(head + row("all_reduce", "embedding_group", "4", "8")),
              HasSubstr(":2:21: 'embedding_group' is no group"));
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
  test::expect_sane(
      text, [this](const std::string& given) { load(given); }, 300);
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
