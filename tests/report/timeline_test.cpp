// The parts that timelines share, and the three sinks with records made by hand.
// tests/scripts/timelines_test.py compares the files of a run with its tables.
#include "sim/report/timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sim/core/protobuf_fields.h"
#include "sim/report/kineto_events.h"
#include "sim/report/result_sinks.h"
#include "tests/report/fixtures.h"
#include "tests/support/resident.h"
#include "tests/support/sanitizers.h"
#include "tests/support/task_bodies.h"

namespace netsim::timeline_test {
namespace {

using nlohmann::json;
using test::Directory;
using test::TinySource;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Timeline, LanesHoldNoTwoIntervalsAtATime) {
  Lanes lanes;
  EXPECT_EQ(lanes.take(0, 10), 0u);
  EXPECT_EQ(lanes.take(10, 20), 0u);  // it begins when the other ends
  EXPECT_EQ(lanes.take(15, 25), 1u);
  EXPECT_EQ(lanes.take(18, 26), 2u);
  EXPECT_EQ(lanes.take(22, 30), 0u);
  EXPECT_EQ(lanes.take(30, 40), 0u);  // the lane that ended last
  EXPECT_EQ(lanes.take(28, 41), 2u);
}

TEST(Timeline, ALaneTakesAnInstant) {
  Lanes lanes;
  EXPECT_EQ(lanes.take(5, 5), 0u);
  EXPECT_EQ(lanes.take(5, 9), 0u);
}

TEST(Timeline, CountsWhatIsOverTheLimit) {
  RecordLimit limit("tasks", 2);
  EXPECT_TRUE(limit.take());
  EXPECT_TRUE(limit.take());
  EXPECT_TRUE(limit.notes("a").empty());
  EXPECT_FALSE(limit.take());
  EXPECT_THAT(limit.notes("a"), ElementsAre("a holds the first 2 of 3 tasks (output.max_rows)"));
}

TEST(Timeline, MembersOfACollectiveWaitForItsEnd) {
  CollectiveMembers<int> members;
  std::string written;
  const auto write = [&](int held, const LibraryChoice* choice) {
    written += std::to_string(held) + (choice == nullptr ? "?" : choice->algorithm) + " ";
  };
  members.add(0, 7, 1, write);
  members.add(0, 8, 2, write);
  members.add(1, 7, 3, write);
  EXPECT_EQ(written, "");
  CommunicationRecord communication;
  communication.id = 7;
  const LibraryChoice choice{"ring", Protocol::simple, 1, "default"};
  members.end({communication, choice}, write);
  members.add(0, 7, 4, write);  // the last member
  EXPECT_EQ(written, "1ring 4ring ");
  members.finish(write);
  EXPECT_EQ(written, "1ring 4ring 2? 3? ");
}

TEST(Timeline, NamesAreThoseOfNccl) {
  EXPECT_STREQ(nccl_function(CollectiveKind::reduce_scatter), "ReduceScatter");
  EXPECT_STREQ(nccl_function(CollectiveKind::dispatch), "SendRecv");
  const LibraryChoice choice{"collnet-chain", Protocol::ll128, 1, ""}, none{};
  EXPECT_EQ(nccl_algorithm(&choice), "COLLNET_CHAIN");
  EXPECT_EQ(nccl_protocol(&choice), "LL128");
  EXPECT_EQ(nccl_algorithm(nullptr), "unknown");
  EXPECT_EQ(nccl_protocol(&none), "unknown");
  const CallBytes gathered = call_bytes(CollectiveKind::all_gather, 800, 4);
  EXPECT_EQ(gathered.in, 200);
  EXPECT_EQ(gathered.out, 800);
  EXPECT_EQ(call_bytes(CollectiveKind::reduce_scatter, 800, 4).out, 200);
  EXPECT_EQ(call_bytes(CollectiveKind::barrier, 0, 4).in, kBarrierBytes);
}

TEST(Timeline, DividesTheNamesOfNodes) {
  EXPECT_EQ(host_and_part("host0/gpu3").host, "host0");
  EXPECT_EQ(host_and_part("host0/gpu3").part, "gpu3");
  EXPECT_EQ(host_and_part("host1").host, "host1");
  EXPECT_EQ(host_and_part("host1").part, "");
}

TEST(Timeline, ListsRanksAsPyTorchDoes) {
  EXPECT_EQ(kineto_ranks({0, 2}), "[0, 2]");
  std::vector<RankId> many;
  for (std::uint32_t rank = 0; rank < 31; ++rank) many.emplace_back(rank);
  EXPECT_THAT(kineto_ranks(many), ::testing::EndsWith(", 28, ..., 30]"));
}

// Records of a computation, a send and an all-reduce at rank 0 of TinySource, whose group has two ranks.
TaskRecord record_of(TaskId id, TaskBody body, Time posted, Time start, Time end) {
  TaskRecord record;
  record.rank = 0;
  record.task.id = id;
  record.task.body = body;
  record.posted = posted;
  record.start = start;
  record.end = end;
  return record;
}

constexpr std::uint64_t kReduced = 0xab;

// Runs sinks over three tasks of rank 0 and returns their notes.
class SinksOfTimelines : public ::testing::Test {
 protected:
  std::vector<std::string> run(const std::string& sinks, std::int64_t max_rows = 100) {
    RunView view{{}, {{source_.job_name(), &source_}}};
    view.output.sinks = parse_config(sinks, "sinks.yaml");
    view.output.max_rows = max_rows;
    ResultSinks all(directory_.path(), view);
    all.add(record_of(0, ComputeTask(), 0, 1'999, 5'000'001));
    TaskRecord send =
        record_of(1, test::message(TaskKind::send, 1, 4097), 5'000'001, 6 * kMicrosecond, 8 * kMicrosecond);
    send.task.stream = Stream::pp;
    all.add(send);
    CommunicationRecord communication;
    communication.id = kReduced;
    TaskRecord reduce = record_of(2, test::collective(CollectiveKind::all_reduce, 0, 1'000'000), 8'500'000,
                                  9 * kMicrosecond, 19 * kMicrosecond);
    reduce.task.stream = Stream::dp;
    reduce.task.name = 1;
    reduce.communication = kReduced;
    all.add(reduce);
    all.add(RecordedCommunication{communication, {"tree", Protocol::ll, 2, "default"}});
    all.finish(test::two_rank_results());
    return all.notes();
  }
  std::string text(const std::string& name) const { return directory_.text(name); }
  bool has(const std::string& name) const { return directory_.has(name); }

  const Directory directory_;
  const TinySource source_{};
};

std::string error_of(const std::string& sinks) {
  const Directory directory;
  const TinySource source;
  RunView view{{}, {{source.job_name(), &source}}};
  view.output.sinks = parse_config(sinks, "sinks.yaml");
  try {
    const ResultSinks all(directory.path(), view);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

// Returns the number of packets of the trace with a field of this number.
std::size_t packets_with(const std::string& trace, std::uint64_t number) {
  std::size_t found = 0;
  ProtobufFields packets(trace);
  while (const auto packet = packets.next()) {
    ProtobufFields fields(packet->content);
    while (const auto field = fields.next()) found += field->number == number ? 1 : 0;
  }
  return found;
}

// PairedSource: all its tasks compute a forward together with a backward.
class PairedSource final : public TinySource {
 public:
  std::optional<PipelineMark> pipeline_mark(RankId, TaskId) const override {
    return PipelineMark{3, 1, true, 2, 0, 7};
  }
};

TEST(Timeline, APairHasTheMicrobatchesAndChunksOfBothPasses) {
  const Directory directory;
  const PairedSource source;
  RunView view{{}, {{source.job_name(), &source}}};
  view.output.sinks = parse_config("[perfetto, kineto]", "sinks.yaml");
  ResultSinks all(directory.path(), view);
  all.add(record_of(0, ComputeTask(), 0, 0, 1000));
  all.finish(test::two_rank_results());
  const json trace = json::parse(directory.text("kineto_rank_0.json"));
  const auto kernel = std::find_if(trace["traceEvents"].begin(), trace["traceEvents"].end(),
                                   [](const json& event) { return event.value("cat", "") == "kernel"; });
  ASSERT_NE(kernel, trace["traceEvents"].end());
  const std::map<std::string, int> expected{
      {"microbatch", 3}, {"chunk", 1}, {"backward_microbatch", 2}, {"backward_chunk", 0}, {"layer", 7}};
  for (const auto& [name, value] : expected) {
    EXPECT_EQ((*kernel)["args"][name], value) << name;
    EXPECT_THAT(directory.text("timeline.pftrace"), HasSubstr(name));
  }
  EXPECT_THAT(directory.text("tasks.csv"), HasSubstr(",3+2,1+0,7\n"));
}

TEST_F(SinksOfTimelines, PerfettoHasATrackForEachStream) {
  EXPECT_TRUE(run("[perfetto]").empty());
  const std::string trace = text("timeline.pftrace");
  EXPECT_EQ(packets_with(trace, 60), 5u);  // the job, the rank and three streams
  EXPECT_EQ(packets_with(trace, 11), 6u);  // a begin and an end for each task
  EXPECT_THAT(trace, HasSubstr("rank 0 dp"));
  EXPECT_THAT(trace, HasSubstr("tree"));
}

// Returns the times in nanoseconds of all events, in the order of the file.
std::vector<std::uint64_t> times_of(const std::string& trace) {
  std::vector<std::uint64_t> times;
  ProtobufFields packets(trace);
  while (const auto packet = packets.next()) {
    ProtobufFields fields(packet->content);
    while (const auto field = fields.next()) {
      if (field->number == 8) times.push_back(field->value);
    }
  }
  return times;
}

// A rank may leave a collective, and end its next communication, before the other members have left.
TEST(Timeline, PerfettoWritesTheSlicesOfATrackInOrder) {
  const Directory directory;
  const TinySource source;
  RunView view{{}, {{source.job_name(), &source}}};
  view.output.sinks = parse_config("[perfetto]", "sinks.yaml");
  ResultSinks all(directory.path(), view);
  TaskRecord first = record_of(0, test::collective(CollectiveKind::broadcast, 0, 1000), 0, 1000, 5000);
  first.communication = kReduced;
  all.add(first);
  all.add(record_of(1, test::message(TaskKind::send, 1, 100), 5000, 5000, 8000));
  CommunicationRecord communication;
  communication.id = kReduced;
  all.add(RecordedCommunication{communication, {"chain", Protocol::simple, 1, "default"}});
  all.finish(test::two_rank_results());
  EXPECT_THAT(times_of(directory.text("timeline.pftrace")), ElementsAre(1, 5, 5, 8));
}

// A run of any length holds the tracks and the collectives in flight, here one at a time. The boxes of the
// report's timeline reach their limit first.
TEST(Timeline, MemoryDoesNotGrowWithTheRun) {
  if (test::sanitized()) GTEST_SKIP() << "a sanitizer keeps what was freed";
  const Directory directory;
  const TinySource source;
  RunView view{{}, {{source.job_name(), &source}}};
  view.output.sinks = parse_config("[perfetto, kineto, nccl_inspector]", "sinks.yaml");
  ResultSinks all(directory.path(), view);
  const auto play = [&all](std::uint32_t from, std::uint32_t to) {
    for (std::uint32_t id = from; id < to; id += 2) {
      const Time begin = Time{id} * kMicrosecond;
      all.add(record_of(id, ComputeTask(), begin, begin, begin + kMicrosecond));
      TaskRecord reduce = record_of(id + 1, test::collective(CollectiveKind::all_reduce, 0, 1000), begin,
                                    begin + kMicrosecond, begin + 2 * kMicrosecond);
      reduce.task.stream = Stream::dp;
      reduce.communication = id;
      all.add(reduce);
      CommunicationRecord communication;
      communication.id = id;
      all.add(RecordedCommunication{communication, {"ring", Protocol::simple, 1, "default"}});
    }
  };
  play(0, 100'000);
  const std::int64_t before = test::resident_bytes();
  play(100'000, 300'000);
  EXPECT_LT(test::resident_bytes() - before, 1'000'000);
  all.finish(test::two_rank_results());
  EXPECT_GT(std::filesystem::file_size(directory.path() + "/timeline.pftrace"), 5'000'000U);
}

TEST_F(SinksOfTimelines, PerfettoSaysThatTasksWereLeftOut) {
  EXPECT_THAT(run("[perfetto]", 2),
              ::testing::Contains("timeline.pftrace holds the first 2 of 3 tasks (output.max_rows)"));
  EXPECT_EQ(packets_with(text("timeline.pftrace"), 11), 4u);
}

TEST_F(SinksOfTimelines, KinetoHasAFileForEachRank) {
  EXPECT_TRUE(run("[kineto]").empty());
  EXPECT_TRUE(has("kineto_rank_1.json"));
  EXPECT_FALSE(has("kineto_rank_2.json"));
  const json trace = json::parse(text("kineto_rank_0.json"));
  EXPECT_EQ(trace["distributedInfo"]["world_size"], 2);
  std::vector<json> kernels;
  for (const json& event : trace["traceEvents"]) {
    if (event.value("cat", "") == "kernel") kernels.push_back(event);
  }
  ASSERT_EQ(kernels.size(), 3u);
  EXPECT_EQ(kernels[0]["name"], "forward");
  EXPECT_DOUBLE_EQ(kernels[0]["ts"].get<double>(), 0.001);   // 1,999 ps
  EXPECT_DOUBLE_EQ(kernels[0]["dur"].get<double>(), 4.999);  // up to 5,000 ns
  EXPECT_EQ(kernels[0]["tid"], 7);
  EXPECT_EQ(kernels[1]["args"]["dtype"], "Byte");  // 4097 bytes are no whole number of bf16
  EXPECT_EQ(kernels[1]["args"]["In msg nelems"], 4097);
  EXPECT_EQ(kernels[1]["args"]["Dst Rank"], 1);
  EXPECT_EQ(kernels[1]["tid"], 15);
  EXPECT_EQ(kernels[2]["name"], "ncclDevKernel_AllReduce_Sum_bf16_TREE_LL(ncclDevKernelArgsStorage<4096ul>)");
  EXPECT_EQ(kernels[2]["args"]["In msg nelems"], 500'000);
  EXPECT_EQ(kernels[2]["args"]["Process Group Ranks"], "[0, 1]");
  EXPECT_EQ(kernels[2]["args"]["Name"], "grad,sync");
}

TEST_F(SinksOfTimelines, KinetoWritesTheTypeThatIsAskedFor) {
  run("[{kind: kineto, ranks: [0], dtype: float}]");
  EXPECT_FALSE(has("kineto_rank_1.json"));
  EXPECT_THAT(text("kineto_rank_0.json"), HasSubstr("ncclDevKernel_AllReduce_Sum_f32_TREE_LL"));
}

TEST_F(SinksOfTimelines, InspectorHasALineForEachCommunication) {
  EXPECT_TRUE(run("[nccl_inspector]").empty());
  std::istringstream lines(text("nccl_inspector.jsonl"));
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  const json send = json::parse(line);
  EXPECT_EQ(send["p2p_perf"]["p2p"], "Send");
  EXPECT_EQ(send["p2p_perf"]["p2p_msg_size_bytes"], 4097);
  EXPECT_EQ(send["p2p_perf"]["p2p_exec_time_us"], 2);
  ASSERT_TRUE(std::getline(lines, line));
  const json reduce = json::parse(line);
  EXPECT_EQ(reduce["header"]["n_ranks"], 2);
  EXPECT_EQ(reduce["coll_perf"]["coll"], "AllReduce");
  EXPECT_EQ(reduce["coll_perf"]["coll_algo"], "TREE");
  EXPECT_EQ(reduce["coll_perf"]["coll_sn"], 0);
  EXPECT_DOUBLE_EQ(reduce["coll_perf"]["coll_algobw_gbs"].get<double>(), 100);  // 1 MB in 10 us
  EXPECT_DOUBLE_EQ(reduce["coll_perf"]["coll_busbw_gbs"].get<double>(), 100);   // factor 1 for two ranks
  EXPECT_FALSE(std::getline(lines, line));
}

// NCCL composes an uneven all-to-all of messages, and its inspector sees these.
TEST(Timeline, InspectorHasTheMessagesOfAnUnevenAllToAll) {
  const Directory directory;
  const TinySource source;
  RunView view{{}, {{source.job_name(), &source}}};
  view.output.sinks = parse_config("[nccl_inspector]", "sinks.yaml");
  ResultSinks all(directory.path(), view);
  const BlockCounts counts(2, {10, 30, 0, 5});
  TaskBody body = test::collective(CollectiveKind::all_to_all_v, 0, 0);
  std::get<CollectiveTask>(body).counts = &counts;
  TaskRecord call = record_of(0, body, 0, 0, 4 * kMicrosecond);
  call.communication = kReduced;
  all.add(call);
  CommunicationRecord communication;
  communication.id = kReduced;
  all.add(RecordedCommunication{communication, {"pairwise", Protocol::simple, 1, "default"}});
  all.finish(test::two_rank_results());
  std::istringstream lines(directory.text("nccl_inspector.jsonl"));
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  const json send = json::parse(line);
  EXPECT_EQ(send["p2p_perf"]["p2p"], "Send");
  EXPECT_EQ(send["p2p_perf"]["p2p_peer"], 1);
  EXPECT_EQ(send["p2p_perf"]["p2p_msg_size_bytes"], 30);
  EXPECT_FALSE(std::getline(lines, line)) << "rank 1 sends nothing to rank 0";
}

TEST(Timeline, KinetoRefusesRanksAndJobsThatAreNotThere) {
  EXPECT_THAT(error_of("[{kind: kineto, ranks: [0, 2]}]"),
              HasSubstr("the ranks 0 to 1, and rank 2 is named"));
  EXPECT_THAT(error_of("[{kind: kineto, ranks: [1, 1]}]"), HasSubstr("this rank is named twice"));
  EXPECT_THAT(error_of("[{kind: kineto, ranks: [-1]}]"), HasSubstr("a rank from 0 on is expected"));
  EXPECT_THAT(error_of("[{kind: kineto, job: other}]"), HasSubstr("no job is called 'other'"));
}

}  // namespace
}  // namespace netsim::timeline_test
