// Tests that time-independent traces of SimGrid give the actions of each rank with their order and sizes.
// Wrong ones are refused with their place.
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

namespace netsim::simgrid_test {
namespace {

using test::tasks_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SimgridFiles : public test::WorkloadFolderTest {
 protected:
  // The folder's file a.txt gets the text.
  std::unique_ptr<TaskSource> load(const std::string& text) const {
    write("a.txt", text);
    return WorkloadFolderTest::load();
  }
  std::string refused(const std::string& text) const {
    write("a.txt", text);
    return WorkloadFolderTest::refused();
  }
};

std::vector<std::string> described(const TaskSource& source, std::uint32_t rank) {
  std::vector<std::string> words;
  for (const Task& task : tasks_of(source, rank)) {
    std::string word = to_string(task.kind());
    if (task.kind() == TaskKind::collective)
      word = fmt::format("{} {} {}", to_string(task.collective().collective), task.bytes(),
                         task.collective().root);
    if (is_point_to_point(task)) word += fmt::format(" {} {}", task.message().peer + 0U, task.bytes());
    words.push_back(std::move(word));
  }
  return words;
}

TEST_F(SimgridFiles, RequestsEndAtTheirWait) {
  const auto source = load(
      "0 init\n1 init\n0 isend 1 0 1e3\n0 isend 1 1 2e3\n0 sleep 1e-3\n0 waitall\n0 sleep 2e-3\n0 finalize\n"
      "1 irecv 0 0 1e3\n1 recv 0 1 2e3\n1 test 0 1 0\n1 wait 0 1 0\n1 sleep 1\n1 finalize\n");
  EXPECT_THAT(described(*source, 0), ElementsAre("send 1 1000", "send 1 2000", "host_thread", "host_thread"));
  std::vector<Task> ready;
  source->start(RankId(0), ready);
  EXPECT_EQ(ready.size(), 3u);
  ready.clear();
  source->start(RankId(1), ready);
  EXPECT_EQ(ready.size(), 2u);
}

TEST_F(SimgridFiles, AmountsAreElementsOfTheirType) {
  const auto source = load(
      "0 init 1\n1 init 1\n0 bcast 10 1\n1 bcast 10 1\n0 allreduce 10 0 1\n1 allreduce 10 0 1\n"
      "0 alltoall 10 10 5 5\n1 alltoall 10 10 5 5\n0 gather 10 10 1 3 3\n1 gather 10 10 1 3 3\n"
      "0 reducescatter 3 4 0 6\n1 reducescatter 3 4 0 6\n0 barrier\n1 barrier\n");
  EXPECT_THAT(described(*source, 1), ElementsAre("broadcast 80 1", "all_reduce 40 0", "all_to_all 80 0",
                                                 "gather 40 1", "reduce_scatter 7 0", "barrier 4 0"));
}

// Traces of SimGrid before 3.20 have no tags, and their `wait` ends the last request.
TEST_F(SimgridFiles, OlderTracesHaveNoTags) {
  const auto source = load(
      "0 init\n1 init\n0 send 1 1e3\n0 Isend 1 2e3\n0 sleep 1\n0 wait\n0 allReduce 8 0\n"
      "1 Irecv 0 1e3\n1 Irecv 0 2e3\n1 wait\n1 sleep 1\n1 wait\n1 allReduce 8 0\n");
  EXPECT_THAT(described(*source, 0),
              ElementsAre("send 1 1000", "send 1 2000", "host_thread", "all_reduce 8 0"));
  EXPECT_THAT(described(*source, 1),
              ElementsAre("receive 0 1000", "receive 0 2000", "host_thread", "all_reduce 8 0"));
}

TEST_F(SimgridFiles, ReceivesHaveTheSizeOfTheirSend) {
  const auto source = load(
      "0 init\n1 init\n0 send p1 0 8\n0 isend 1 0 0\n0 wait 0 1 0\n0 wait 0 1 0\n0 send 1 0 24\n"
      "1 recv 0 0 100\n1 recv 0 0 -1\n1 irecv 0 0 0\n1 wait 0 1 0\n");
  EXPECT_THAT(described(*source, 0), ElementsAre("send 1 8", "send 1 1", "send 1 24"));
  EXPECT_THAT(described(*source, 1), ElementsAre("receive 0 8", "receive 0 1", "receive 0 24"));
  EXPECT_THAT(source->notes(),
              ElementsAre("receives with another size than their send, whose size counts: 1",
                          "messages without bytes, which are sent as one byte: 1",
                          "waits for a message that no isend or irecv before began, which do nothing: 1"));
}

TEST_F(SimgridFiles, SendRecvIsBothMessages) {
  const auto source = load(
      "0 init\n1 init\n0 location main.c 12\n0 comm_split 3\n1 comm_dup 3\n0 sendRecv 10 1 5 1 4 1\n0 sleep "
      "1\n"
      "1 sendRecv 5 0 10 0 1 4\n1 sleep 1\n");
  EXPECT_THAT(described(*source, 0), ElementsAre("send 1 80", "receive 1 20", "host_thread"));
  std::vector<Task> ready;
  source->start(RankId(1), ready);
  EXPECT_EQ(ready.size(), 2u);
  EXPECT_THAT(source->notes(), ElementsAre(HasSubstr("communicators that are made")));
}

TEST_F(SimgridFiles, AFileOfEachRankIsOneTrace) {
  write("b.txt", "1 init\n1 recv 0 0 8\n");
  const auto source = load("0 init\n0 compute 1e9\n0 send 1 0 8\n");
  EXPECT_EQ(source->ranks(), 2u);
  EXPECT_THAT(described(*source, 0), ElementsAre("compute", "send 1 8"));
}

TEST_F(SimgridFiles, AManifestListsTheTraces) {
  const std::string zero = write("zero.txt", "0 init\n0 send 1 0 8\n"),
                    one = write("one.txt", "1 init\n1 recv 0 0 8\n");
  const std::string manifest = write("manifest", "\xEF\xBB\xBF# ranks\r\nzero.txt\r\n\r\n" + one + "\n");
  EXPECT_EQ(load_workload(manifest, 16)->ranks(), 2u);
  const std::string shared = write("shared.list", "both.txt\nboth.txt\n");
  write("both.txt", "0 init\n0 send 1 0 8\n1 init\n1 recv 0 0 8\n");
  EXPECT_EQ(load_workload(shared, 16)->ranks(), 2u);
  write("shared.list", "zero.txt\nnone.txt\n");
  EXPECT_THROW(load_workload(shared, 16), IoError);
}

TEST_F(SimgridFiles, OfSeveralFilesAnErrorNamesTheOne) {
  write("b.txt", "1 init\n1 bcast 9\n");
  EXPECT_THAT(refused("0 init\n0 bcast 8\n"), ::testing::ContainsRegex("line 2 of .*b\\.txt"));
  write("b.txt", "1 init\n1 bcast 8\n");
  write("manifest.txt", "a.txt\nb.txt\n");
  EXPECT_EQ(load("0 init\n0 bcast 8\n")->ranks(), 2u) << "the manifest is beside the traces";
}

TEST_F(SimgridFiles, WrongOnesAreRefusedWithTheirPlace) {
  EXPECT_THAT(refused("0 init\n0 scan 3\n"), HasSubstr("a.txt:2:3: 'scan' is not read; allowed: init"));
  EXPECT_THAT(refused("0 init\n0 send 0 1 8\n"), HasSubstr("a.txt:2:8: a rank sends to itself"));
  EXPECT_THAT(refused("0 init\n0 send 0\n"),
              HasSubstr("a.txt:2:3: 'send' has 1 arguments; argument 2 is a size"));
  EXPECT_THAT(refused("0 init\n1 init\n0 bcast 8 0 38\n1 bcast 8 0 38\n"),
              HasSubstr("a.txt:3:13: a type is '38'; allowed: an integer from 0 to 37"));
  EXPECT_THAT(refused("0 init\n1 init\n0 send 1 0 8\n"), HasSubstr("rank 0 sends to rank 1"));
  EXPECT_THAT(refused("0 init\nx send 1 0 8\n"), HasSubstr("a.txt:2:1: "));
}

TEST_F(SimgridFiles, DamagedOnesEndInOneError) {
  test::expect_sane(
      "0 init\n1 init\n0 isend 1 0 8\n1 irecv 0 0 8\n0 waitall\n1 wait 0 1 0\n0 allreduce 8 1e6\n1 allreduce "
      "8 1e6\n",
      [this](const std::string& given) { load(given); }, 300);
}

TEST(SimgridSamples, AllAreRead) {
  NETSIM_NEEDS_SHARED("samples/simgrid");
  const std::string folder = test::shared_folder() + "/samples/simgrid/";
  std::size_t read = 0;
  for (const std::string& path : test::shared_files("samples/simgrid", ".txt")) {
    if (path.ends_with("actions0.txt") || path.ends_with("actions1.txt")) continue;
    EXPECT_GT(load_workload(path, 16)->total_tasks().value_or(0), 0u) << path;
    ++read;
  }
  EXPECT_EQ(read, 11u);
  const std::vector<std::string> both{folder + "actions0.txt", folder + "actions1.txt"};
  EXPECT_EQ(load_workload(InputPaths(both), 16)->ranks(), 2u);
}

}  // namespace
}  // namespace netsim::simgrid_test
