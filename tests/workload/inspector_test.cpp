// Tests that logs of NCCL's inspector become the communications of each rank at their recorded times. The
// processes are numbered, their clocks aligned and missing records filled in.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/core/errors.h"
#include "sim/workload/workload.h"
#include "tests/support/mutations.h"
#include "tests/support/shared.h"
#include "tests/support/tasks_of.h"
#include "tests/support/workload_files.h"

namespace netsim::inspector_test {
namespace {

using test::tasks_of;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Line: a record of a process. Times are microseconds.
struct Line {
  std::string communicator = "0xa";
  std::uint32_t rank = 0, ranks = 2;
  std::string call = R"("coll":"AllReduce","coll_sn":0,"coll_msg_size_bytes":65536)";
  std::int64_t dumped = 0, took = 0;
  std::int64_t pid = 0;
  std::string host = "node0";
  std::string trace = {};
  std::string text() const {
    const bool message = call.starts_with("\"p2p");
    return fmt::format(
        R"({{"header":{{"id":"{}","comm_name":"TP Group","rank":{},"n_ranks":{},"nnodes":1}},)"
        R"("metadata":{{"inspector_output_format_version":"v4.0","dump_timestamp_us":{},"hostname":"{}",)"
        R"("pid":{}}},"{}_perf":{{{},"{}_exec_time_us":{}{}}}}})"
        "\n",
        communicator, rank, ranks, dumped, host, pid, message ? "p2p" : "coll", call,
        message ? "p2p" : "coll", took, trace);
  }
};

std::string collective(const char* name, int number, int bytes) {
  return fmt::format(R"("coll":"{}","coll_sn":{},"coll_msg_size_bytes":{})", name, number, bytes);
}
std::string message(const char* name, int number, int peer, int bytes) {
  return fmt::format(R"("p2p":"{}","p2p_sn":{},"p2p_peer":{},"p2p_msg_size_bytes":{})", name, number, peer,
                     bytes);
}

class InspectorFiles : public test::WorkloadFolderTest {
 protected:
  std::unique_ptr<TaskSource> load(const std::string& text) const {
    write("a.log", text);
    return WorkloadFolderTest::load();
  }
  std::string refused(const std::string& text) const {
    write("a.log", text);
    return WorkloadFolderTest::refused();
  }
};

// Returns each task of a rank with its bytes and earliest start in microseconds.
std::vector<std::string> described(const TaskSource& source, std::uint32_t rank) {
  std::vector<std::string> words;
  for (const Task& task : tasks_of(source, rank)) {
    std::string word = to_string(task.kind());
    if (task.kind() == TaskKind::collective) word = to_string(task.collective().collective);
    if (is_point_to_point(task)) word += fmt::format(" {}", task.message().peer + 0U);
    if (!has_work(task.kind()))
      word += fmt::format(" {} at {}", task.bytes(), task.not_before / kMicrosecond);
    words.push_back(std::move(word));
  }
  return words;
}

TEST_F(InspectorFiles, CommunicationsBeginWhenTheyWereRecordedOnAlignedClocks) {
  // The clock of process 1 is 1,000 us ahead. It waited 30 us in the first collective.
  const auto source = load(
      Line{.dumped = 5100, .took = 40, .pid = 1}.text() +
      Line{.call = collective("AllGather", 0, 4096), .dumped = 5200, .took = 10, .pid = 1}.text() +
      Line{.rank = 1, .dumped = 6100, .took = 70, .pid = 2}.text() +
      Line{.rank = 1, .call = collective("AllGather", 0, 4096), .dumped = 6200, .took = 10, .pid = 2}.text());
  EXPECT_THAT(described(*source, 0), ElementsAre("all_reduce 65536 at 30", "all_gather 8192 at 160"));
  EXPECT_THAT(described(*source, 1), ElementsAre("all_reduce 65536 at 0", "all_gather 8192 at 160"));
  EXPECT_THAT(source->notes(), Contains(HasSubstr("the largest offset is 1.00 ms")));
  EXPECT_EQ(tasks_of(*source, 0)[0].stream, Stream::tp);
}

TEST_F(InspectorFiles, CallbacksThatDidNotComeHaveNoTime) {
  const std::string none = R"(,"event_trace_ts":{"coll_start_ts":0,"kernel_events":[{"kernel_start_ts":0}]})";
  const auto source = load(Line{.dumped = 500, .took = 40, .trace = none}.text() +
                           Line{.rank = 1, .dumped = 500, .took = 70, .pid = 1, .trace = none}.text());
  EXPECT_THAT(described(*source, 0), ElementsAre("all_reduce 65536 at 30"));
}

TEST_F(InspectorFiles, RecordsWrittenTogetherFollowEachOtherBeforeTheirDump) {
  const auto source = load(
      Line{.ranks = 1, .call = collective("AllReduce", 0, 8192), .dumped = 900, .took = 100}.text() +
      Line{.ranks = 1, .call = collective("AllReduce", 1, 8192), .dumped = 900, .took = 200}.text() +
      Line{
          .communicator = "0xb",
          .call = collective("ReduceScatter", 0, 8192),
          .dumped = 900,
          .took = 50,
          .trace =
              R"(,"event_trace_ts":{"coll_start_ts":640,"kernel_events":[{"kernel_start_ts":660},{"kernel_start_ts":650}]})"}
          .text());
  const auto tasks = tasks_of(*source, 0);
  ASSERT_EQ(tasks.size(), 3u);
  EXPECT_THAT(described(*source, 0), Contains("reduce_scatter 16384 at 50"));
  EXPECT_THAT(described(*source, 1), ElementsAre("reduce_scatter 16384 at 0"));
}

TEST_F(InspectorFiles, MessagesOfAGroupOfCallsDoNotWaitForEachOther) {
  std::string text;
  for (std::uint32_t rank : {0U, 1U}) {
    const Line line{.rank = rank, .dumped = 1000, .took = 100, .pid = rank};
    Line next = line;
    next.call = message("Send", 0, 1 - static_cast<int>(rank), 65536);
    text += next.text();
    next.call = message("Recv", 1, 1 - static_cast<int>(rank), 65536);
    text += next.text();
    next.dumped = 2000;
    next.call = collective("Broadcast", 0, 16384);
    text += next.text();
  }
  const auto source = load(text);
  EXPECT_THAT(described(*source, 0), ElementsAre("send 1 65536 at 0", "receive 1 65536 at 0", "host_thread",
                                                 "broadcast 16384 at 1000"));
  std::vector<Task> ready;
  source->start(RankId(1), ready);
  EXPECT_EQ(ready.size(), 2u);
}

TEST_F(InspectorFiles, WhatWasNotRecordedIsFilledIn) {
  // Rank 1 has no record of call 0, ranks 2 and 3 have none at all, and nobody recorded the receive.
  const auto source = load(
      Line{.ranks = 4, .dumped = 100}.text() +
      Line{.ranks = 4, .call = message("Send", 0, 3, 9000), .dumped = 200}.text() +
      Line{.rank = 1, .ranks = 4, .call = collective("AllReduce", 1, 8192), .dumped = 300, .pid = 1}.text());
  EXPECT_EQ(source->ranks(), 4u);
  EXPECT_THAT(described(*source, 1), ElementsAre("all_reduce 65536 at 0", "all_reduce 8192 at 200"));
  EXPECT_THAT(described(*source, 3),
              ElementsAre("all_reduce 65536 at 0", "receive 0 9000 at 0", "all_reduce 8192 at 0"));
  EXPECT_THAT(source->notes(),
              Contains(HasSubstr("a GPU with records did not record, which are always ready: 2")));
}

TEST_F(InspectorFiles, RanksOfSmallCommunicatorsFollowTheLargestOrTheHosts) {
  // Ranks 1 and 3 of four have a communicator of their own.
  const auto odd = load(Line{.rank = 1, .ranks = 4, .dumped = 10, .pid = 1}.text() +
                        Line{.rank = 3, .ranks = 4, .dumped = 10, .pid = 2}.text() +
                        Line{.communicator = "0xb", .dumped = 20, .pid = 1}.text() +
                        Line{.communicator = "0xb", .rank = 1, .dumped = 20, .pid = 2}.text());
  EXPECT_THAT(described(*odd, 3), ElementsAre("all_reduce 65536 at 0", "all_reduce 65536 at 10"));
  EXPECT_THAT(described(*odd, 0), ElementsAre("all_reduce 65536 at 0"));
  // Without a communicator of all, node2 is before node10.
  const auto hosts = load(Line{.dumped = 10, .host = "node10"}.text() +
                          Line{.communicator = "0xb", .dumped = 30, .host = "node2"}.text());
  EXPECT_EQ(hosts->ranks(), 3u);
  EXPECT_THAT(described(*hosts, 0), ElementsAre("all_reduce 65536 at 20"));
  EXPECT_THAT(hosts->notes(), Contains(HasSubstr("numbered by host and process")));
}

TEST_F(InspectorFiles, OddLinesOfRealFilesAreRead) {
  const std::string text = "\xEF\xBB\xBF" + Line{.ranks = 1}.text();
  const auto source = load(text.substr(0, text.size() - 1) + "\r\n\r\n{\"header\":{},\"proxy\":1}\n" +
                           Line{.ranks = 1}.text() + "{\"header\":{\"id");
  EXPECT_EQ(source->total_tasks(), 1u);
  EXPECT_THAT(source->notes(), Contains(HasSubstr("records that are there twice, which are not used: 1")));
  EXPECT_THAT(source->notes(), Contains(HasSubstr("lines without a communication, which are not used: 1")));
  EXPECT_THAT(source->notes(),
              Contains(HasSubstr("last lines of files that are cut, which are not used: 1")));
}

// Since format v4.3 a dump's header and metadata stand in its first line only.
TEST_F(InspectorFiles, CommunicatorsThatMovedNothingNeedNoRanks) {
  const auto source =
      load(Line{}.text() + Line{.rank = 1, .pid = 1}.text() +
           Line{.communicator = "0xb", .ranks = 4, .call = collective("AllReduce", 0, 0)}.text());
  EXPECT_EQ(source->ranks(), 2U);
  EXPECT_THAT(described(*source, 0), ElementsAre("all_reduce 65536 at 0"));
}

TEST_F(InspectorFiles, NumbersBeyondRealOnesAreRefused) {
  EXPECT_THAT(refused(Line{}.text() + Line{.trace = ",\"x\":1e999"}.text()),
              HasSubstr("a.log:2:1: is no JSON: number overflow parsing '1e999'"));
}

TEST_F(InspectorFiles, LinesOfADumpHaveItsHeader) {
  const auto dump = [](std::uint32_t rank, int dropped) {
    return fmt::format(
        R"({{"header":{{"id":"0xa","rank":{},"n_ranks":2,"nnodes":1}},"metadata":{{)"
        R"("inspector_output_format_version":"v4.3","dump_timestamp_us":1000,"hostname":"node0","pid":{}}},)"
        R"("dump_stats":{{"coll_records":1,"coll_dropped_since_last_dump":{},"p2p_records":1}}}})"
        "\n",
        rank, rank, dropped);
  };
  const std::string call =
      fmt::format(R"({{"coll_perf":{{{},"coll_exec_time_us":40}}}})", collective("AllReduce", 0, 8192));
  const std::string put = fmt::format(R"({{"p2p_perf":{{{}}}}})", message("PutSignal", 0, 1, 8192));
  const auto source = load(dump(0, 3) + call + "\n" + put + "\n" + dump(1, 0) + call + "\n");
  EXPECT_THAT(described(*source, 0), ElementsAre("all_reduce 8192 at 0"));
  EXPECT_THAT(described(*source, 1), ElementsAre("all_reduce 8192 at 0"));
  EXPECT_THAT(source->notes(), Contains(HasSubstr("(PutSignal, AlltoAllv), left out: 1")));
  EXPECT_THAT(source->notes(),
              Contains(HasSubstr("that the inspector dropped (dump_stats), which are missing: 3")));
  EXPECT_THAT(
      refused(call + "\n" + dump(0, 0)),
      HasSubstr("a.log:1:1: 'header' is missing; allowed: in each line, or in a line with dump_stats"));
}

TEST_F(InspectorFiles, WrongOnesAreRefusedWithTheirPlace) {
  EXPECT_THAT(refused(Line{.call = collective("AllShuffle", 0, 1)}.text()),
              HasSubstr("'AllShuffle' is no collective; allowed: AllReduce"));
  EXPECT_THAT(refused(Line{.rank = 2}.text()), HasSubstr("'rank' is 2; allowed: an integer from 0 to 1"));
  EXPECT_THAT(refused(Line{.call = collective("AllReduce", 0, 0)}.text()),
              HasSubstr("has no communications with bytes (coll_perf, p2p_perf)"));
  EXPECT_THAT(refused(Line{.ranks = 64}.text()), HasSubstr("64 GPUs are needed, but the cluster has 16"));
  EXPECT_THAT(refused(Line{}.text() + "{\"header\":\n" + Line{}.text()),
              HasSubstr("a.log:2:11: is no JSON: "));
  EXPECT_THAT(
      refused(Line{}.text() + Line{.rank = 1, .call = collective("AllReduce", 0, 7), .pid = 1}.text()),
      HasSubstr("a.log:2:1: call 0 has 7 B here and 65536 B at rank 0; allowed: the same"));
  EXPECT_THAT(refused(Line{}.text() + Line{.pid = 1}.text()),
              HasSubstr("a.log:2:1: two processes are rank 0 of communicator 0xa"));
  EXPECT_THAT(
      refused(Line{}.text() + Line{.communicator = "0xb", .dumped = 2'000'000'000'000}.text()),
      AllOf(HasSubstr("a.log:2:1: begins 2000000 s after the communication of "),
            HasSubstr("a.log:1:1; allowed: up to 1,000,000 s. The two are of different communicators")));
}

TEST_F(InspectorFiles, DamagedOnesEndInOneError) {
  test::expect_sane(
      Line{}.text() + Line{.call = message("Send", 0, 1, 8192)}.text() + Line{.rank = 1, .pid = 1}.text(),
      [this](const std::string& given) { load(given); }, 300);
}

TEST(InspectorSamples, AllAreRead) {
  NETSIM_NEEDS_SHARED("samples/nccl_inspector");
  const std::string folder = test::shared_folder() + "/samples/nccl_inspector/generated/";
  const auto two = load_workload(folder + "nccl-inspector-4242", 16);
  EXPECT_EQ(two->ranks(), 8u);
  EXPECT_THAT(described(*two, 7),
              ElementsAre("all_reduce 67108864 at 0", "all_gather 134217728 at 0",
                          "reduce_scatter 134217728 at 0", "broadcast 1048576 at 0", "all_reduce 8192 at 0"));
  EXPECT_EQ(load_workload(folder + "verbose", 16)->ranks(), 16u);
}

}  // namespace
}  // namespace netsim::inspector_test
