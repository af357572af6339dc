// The writers: summary.json, manifest.json, tables and the screen.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "sim/report/recorder.h"
#include "sim/report/result_sinks.h"
#include "sim/report/screen/screen.h"
#include "sim/report/summary.h"
#include "tests/report/fixtures.h"
#include "tests/support/task_bodies.h"

namespace netsim::writers_test {
namespace {

using nlohmann::json;
using test::Directory;
using test::TinySource;
using test::two_rank_results;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TaskRecord task_record() {
  TaskRecord record;
  record.rank = 1;
  record.task.id = 7;
  record.task.stream = Stream::pp;
  record.task.body = test::message(TaskKind::send, 0, 4096);
  record.task.name = 1;
  record.communication = 0xab;
  record.posted = 10;
  record.start = 20;
  record.end = 30;
  return record;
}

RunView view_of(const TinySource& source) { return {{}, {{source.job_name(), &source}}}; }

void add(ResultSinks& sinks, const CommunicationRecord& communication, const LibraryChoice& choice) {
  sinks.add(RecordedCommunication{communication, choice});
}

CommunicationRecord all_reduce() {
  CommunicationRecord record;
  record.id = 0xab;
  record.kind = CollectiveKind::all_reduce;
  record.ranks = 4;
  record.bytes = 1'000'000;
  record.first_start = 0;
  record.last_start = 2 * kMillisecond;
  record.end = 3 * kMillisecond;
  return record;
}

FlowRecord flow_record() {
  FlowRecord record;
  record.id = 1;
  record.message.name = 1;
  record.message.communication = 0xab;
  record.message.traits.traffic_class = 2;
  record.message.source = 3;
  record.message.destination = 4;
  record.bytes = 100;
  record.start = 5;
  record.end = 25;
  return record;
}

TEST(SummaryJson, HasEveryKeyThatScriptsRelyOn) {
  const json summary = json::parse(summary_json(two_rank_results()));
  for (const char* key : {"netsim", "fingerprint", "simulated_time_s", "events", "packets", "packet_hops",
                          "jobs", "collectives", "network", "flows", "notes"}) {
    EXPECT_TRUE(summary.contains(key)) << key;
  }
  for (const char* key : {"results", "packets", "events"}) {
    EXPECT_EQ(summary["fingerprint"][key].get<std::string>().size(), 16u) << key;
  }
  for (const char* key :
       {"name", "ranks", "jct_s", "iterations", "iteration_time_s", "compute_s", "communication_s",
        "exposed_communication_s", "idle_s", "tflops_per_gpu", "exposed_by"}) {
    EXPECT_TRUE(summary["jobs"][0].contains(key)) << key;
  }
  for (const char* key :
       {"drops", "no_route", "ecn_marks", "cnps", "pfc_pauses", "credit_stalls", "max_queue_bytes"}) {
    EXPECT_TRUE(summary["network"].contains(key)) << key;
  }
  for (const char* key : {"lost", "queue_samples", "queue_mean_bytes", "queue_p50_bytes", "queue_p95_bytes",
                          "queue_p99_bytes", "queue_max_bytes"}) {
    EXPECT_TRUE(summary["network"].contains(key)) << key;
  }
  for (const char* key : {"count", "fct_mean_s", "fct_p50_s", "fct_p99_s", "fct_max_s", "slowdown_mean",
                          "slowdown_p50", "slowdown_p95", "slowdown_p99", "by_size"}) {
    EXPECT_TRUE(summary["flows"].contains(key)) << key;
  }
}

TEST(SummaryJson, HoldsTheValues) {
  const json summary = json::parse(summary_json(two_rank_results()));
  EXPECT_EQ(summary["packet_hops"]["total"], 547);
  EXPECT_EQ(summary["packet_hops"]["ethernet"], 400);
  EXPECT_EQ(summary["packet_hops"]["infiniband"], 0);
  EXPECT_EQ(summary["packet_hops"]["pcie"], 140);
  EXPECT_EQ(summary["packet_hops"]["nvlink"], 7);
  EXPECT_EQ(summary["jobs"][0]["ranks"], 2);
  EXPECT_DOUBLE_EQ(summary["jobs"][0]["jct_s"].get<double>(), 4e-3);
  EXPECT_DOUBLE_EQ(summary["jobs"][0]["exposed_by"]["dp"].get<double>(), 0.5e-3);
  EXPECT_DOUBLE_EQ(summary["jobs"][0]["exposed_by"]["ep"].get<double>(), 0);
  EXPECT_DOUBLE_EQ(summary["flows"]["fct_p50_s"].get<double>(), 20e-12);
  EXPECT_FALSE(summary.contains("waiting"));
}

TEST(SummaryJson, HasNoSampledQueuesWithoutSamplesAndNoSlowdownWithoutIdealTimes) {
  Results results = two_rank_results();
  json summary = json::parse(summary_json(results));
  EXPECT_TRUE(summary["network"]["queue_p95_bytes"].is_null());
  EXPECT_TRUE(summary["flows"]["slowdown_p99"].is_null());
  results.sampled_queues = QueueStatistics{4, 2.5, 2, 3, 4, 5};
  results.slowdowns = {3, 2, 1.5, 2.5, 3};
  summary = json::parse(summary_json(results));
  EXPECT_EQ(summary["network"]["queue_samples"], 4);
  EXPECT_EQ(summary["network"]["queue_mean_bytes"], 2.5);
  EXPECT_EQ(summary["network"]["queue_p95_bytes"], 3);
  EXPECT_EQ(summary["network"]["queue_max_bytes"], 5);
  EXPECT_EQ(summary["flows"]["slowdown_p95"], 2.5);
}

TEST(SummaryJson, OfAnUnfinishedRunKeepsItsKeys) {
  Results results = two_rank_results();
  results.outcome = Outcome::limit;
  results.jobs[0].done = false;
  results.jobs[0].iteration_ends.clear();
  const json job = json::parse(summary_json(results))["jobs"][0];
  EXPECT_TRUE(job["jct_s"].is_null());
  EXPECT_TRUE(job["iteration_time_s"].is_null());
  EXPECT_TRUE(job["tflops_per_gpu"].is_null());
  EXPECT_TRUE(job["compute_s"].is_number());
}

TEST(SummaryJson, SurvivesAnyJobName) {
  Results results = two_rank_results();
  results.jobs[0].name = "bad \xff\"\n name";
  EXPECT_FALSE(json::parse(summary_json(results)).empty());
}

TEST(SummaryJson, DoesNotDependOnTheMachine) {
  Results results = two_rank_results();
  const std::string before = summary_json(results);
  results.wall_seconds = 42;
  EXPECT_EQ(summary_json(results), before);
}

TEST(ManifestJson, SaysHowToRepeatTheRun) {
  Manifest manifest;
  manifest.command = "netsim --config 'a b.yaml'";
  manifest.seed = 7;
  manifest.configuration = "topology:\n  kind: star  # a b.yaml:1\n";
  manifest.inputs = {{"a b.yaml", "0123"}};
  EXPECT_TRUE(json::parse(manifest_json(manifest))["commit"].is_null());
  EXPECT_FALSE(json::parse(manifest_json(manifest)).contains("outcome"));
  manifest.commit = "v1-2-gabc";
  manifest.until = 2 * kMillisecond;
  const json parsed = json::parse(manifest_json(manifest, two_rank_results()));
  EXPECT_EQ(parsed["command"], manifest.command);
  EXPECT_EQ(parsed["seed"], 7);
  EXPECT_EQ(parsed["configuration"], manifest.configuration);
  EXPECT_EQ(parsed["inputs"][0]["hash"], "0123");
  EXPECT_EQ(parsed["commit"], "v1-2-gabc");
  EXPECT_EQ(parsed["until_s"], 0.002);
}

TEST(ReportTables, AppearWholeAndOnlyAtTheEnd) {
  const Directory directory;
  const TinySource source;
  ResultSinks tables(directory.path() + "/new/deeper", view_of(source));
  tables.add(task_record());
  add(tables, all_reduce(), {"ring", Protocol::ll128, 24, "default"});
  tables.add(flow_record());
  EXPECT_FALSE(directory.has("new/deeper/tasks.csv"));
  tables.finish(two_rank_results());
  for (const char* name : {"tasks", "collectives", "flows", "jobs", "iterations", "ranks", "links"}) {
    EXPECT_TRUE(directory.has(std::string("new/deeper/") + name + ".csv")) << name;
  }
  EXPECT_TRUE(tables.notes().empty());
}

TEST(ReportTables, LeaveNothingWhenTheRunFails) {
  const Directory directory;
  {
    const TinySource source;
    ResultSinks tables(directory.path(), view_of(source));
    tables.add(task_record());
  }
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

TEST(ReportTables, HaveTheirValuesUnderTheirHeaders) {
  const Directory directory;
  const TinySource source;
  ResultSinks tables(directory.path(), view_of(source));
  tables.add(task_record());
  add(tables, all_reduce(), {"ring", Protocol::ll128, 24, "default"});
  tables.add(flow_record());
  tables.finish(two_rank_results());
  EXPECT_EQ(
      lines_of(directory.text("tasks.csv"))[1],
      "\"tiny, \"\"quoted\"\"\",0,1,t1.7,c00000000000000ab,\"grad,sync\",send,pp,,0,4096,10,20,30,1,,,");
  const std::string collective = lines_of(directory.text("collectives.csv"))[1];
  EXPECT_THAT(collective, HasSubstr(",c00000000000000ab,"));
  EXPECT_THAT(collective,
              HasSubstr(",0.002,1.000,1.500,ring,LL128,24"));  // wait, algbw 1 MB / 1 ms, busbw 2 * 3/4 of it
  const std::string flow = lines_of(directory.text("flows.csv"))[1];
  EXPECT_THAT(flow, StartsWith("f0000000000000001,\"tiny, \"\"quoted\"\"\",c00000000000000ab,"));
  EXPECT_THAT(flow, EndsWith(",\"grad,sync\",2,,,3,4,0,0,100,5,25,20,,,,"));
  EXPECT_EQ(lines_of(directory.text("iterations.csv"))[2],
            "pair,1,1000000000,4000000000,3000000000,0.003,0.16666666666666666");
  EXPECT_THAT(lines_of(directory.text("links.csv"))[1],
              StartsWith("edge0->agg1,ethernet,100000000000,25000000,0.500000,"));
}

TEST(ReportTables, NameTheNicsAsTheLinksDo) {
  const Directory directory;
  const TinySource source;
  RunView view = view_of(source);
  view.nic_names = {"host7", "host9", "a", "b/nic0", "c,d"};
  ResultSinks tables(directory.path(), view);
  tables.add(flow_record());
  tables.finish(two_rank_results());
  EXPECT_THAT(lines_of(directory.text("flows.csv"))[1], HasSubstr(",2,b/nic0,\"c,d\",3,4,"));
  EXPECT_THAT(lines_of(directory.text("ranks.csv"))[2], StartsWith("pair,1,1,host9,"));
  EXPECT_FALSE(directory.has("fct.txt"));
}

// A computation has no communication to join with.
TEST(ReportTables, ComputeTasksHaveNoCommunication) {
  const Directory directory;
  const TinySource source;
  ResultSinks tables(directory.path(), view_of(source));
  TaskRecord compute = task_record();
  compute.task.body = ComputeTask();
  tables.add(compute);
  tables.finish(two_rank_results());
  EXPECT_THAT(lines_of(directory.text("tasks.csv"))[1], HasSubstr(",t1.7,,\"grad,sync\",compute,"));
}

TEST(ReportTables, FlowsHaveTheirSlowdownWhereTheIdealTimeIsKnown) {
  const Directory directory;
  const TinySource source;
  ResultSinks tables(directory.path(), view_of(source));
  FlowRecord flow = flow_record();
  flow.acknowledged = 30;
  flow.ideal = 6;
  tables.add(flow);
  flow.ideal = 19;
  tables.add(flow);
  tables.finish(two_rank_results());
  EXPECT_THAT(lines_of(directory.text("flows.csv"))[1], EndsWith(",5,25,20,30,6,3.333333,"));
  EXPECT_THAT(lines_of(directory.text("flows.csv"))[2], EndsWith(",5,25,20,30,19,1.052632,"));
}

// The row of a part joins with those of its communication in the other tables.
TEST(ReportTables, FlowsOfAPartHaveTheIdOfTheWholeAndTheNumberOfThePart) {
  const Directory directory;
  const TinySource source;
  ResultSinks tables(directory.path(), view_of(source));
  FlowRecord flow = flow_record();
  flow.message.communication = 0xc000000000000123;
  flow.message.whole = 0xab;
  flow.message.part = 7;
  tables.add(flow);
  tables.finish(two_rank_results());
  const std::string row = lines_of(directory.text("flows.csv"))[1];
  EXPECT_THAT(row, HasSubstr(",c00000000000000ab,\"grad,sync\","));
  EXPECT_THAT(row, EndsWith(",5,25,20,,,,7"));
}

TEST(ReportTables, EveryRowHasAsManyCellsAsItsHeader) {
  const Directory directory;
  const TinySource source;
  ResultSinks tables(directory.path(), view_of(source));
  TaskRecord compute = task_record();
  compute.task.body = ComputeTask();
  compute.task.name = 0;
  tables.add(compute);
  CommunicationRecord broadcast = all_reduce();
  broadcast.kind = CollectiveKind::broadcast;
  add(tables, broadcast, {"chain", Protocol::simple, 1, "default"});
  tables.add(flow_record());
  Results results = two_rank_results();
  results.jobs[0].done = false;  // empty cells
  tables.finish(results);
  std::size_t checked = 0;
  for (const char* name : {"tasks", "collectives", "flows", "jobs", "iterations", "ranks", "links"}) {
    const auto lines = lines_of(directory.text(std::string(name) + ".csv"));
    for (const std::string& line : lines) {
      std::string bare;  // without what is quoted
      bool quoted = false;
      for (const char c : line) {
        if (c == '"') quoted = !quoted;
        if (!quoted) bare += c;
      }
      EXPECT_EQ(std::count(bare.begin(), bare.end(), ','), std::count(lines[0].begin(), lines[0].end(), ','))
          << name << ": " << line;
      ++checked;
    }
  }
  EXPECT_GE(checked, 14u);
}

TEST(ReportTables, StopAtMaxRowsAndSaySo) {
  const Directory directory;
  const TinySource source;
  RunView view = view_of(source);
  view.output.max_rows = 2;
  ResultSinks tables(directory.path(), view);
  for (int i = 0; i < 5; ++i) tables.add(flow_record());
  tables.finish(two_rank_results());
  EXPECT_EQ(lines_of(directory.text("flows.csv")).size(), 3u);
  ASSERT_EQ(tables.notes().size(), 1u);
  EXPECT_THAT(tables.notes()[0], HasSubstr("flows.csv holds the first 2 of 5 rows"));
}

TEST(ReportSinks, RefuseANameThatEveryRunHasAndOneThatIsUnknown) {
  const Directory directory;
  const TinySource source;
  const auto error_of = [&](const std::string& list) {
    RunView view = view_of(source);
    view.output.sinks = parse_config(list, "sinks.yaml");
    try {
      const ResultSinks sinks(directory.path(), view);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_THAT(error_of("[tasks_csv]"), HasSubstr("another result sink writes tasks.csv"));
  EXPECT_THAT(error_of("[tasks_cvs]"), HasSubstr("did you mean 'tasks_csv'?"));
  EXPECT_THAT(error_of("tasks_csv"), HasSubstr("a list of result sinks is expected"));
  EXPECT_EQ(error_of("[]"), "no error");
}

TEST(ReportSinks, RemoveWhatTheManifestNamesAndNothingElse) {
  const Directory directory;
  const TinySource source;
  const auto put = [&](const std::string& name, const std::string& text) {
    std::ofstream(directory.path() + "/" + name) << text;
  };
  put("flows.jsonl", "{}");
  put("changed.jsonl", "longer than it was");
  put("mine.txt", "a note");
  Manifest manifest;
  manifest.files = {{"flows.jsonl", 2}, {"changed.jsonl", 3}};
  put("manifest.json", manifest_json(manifest, two_rank_results()));
  ResultSinks sinks(directory.path(), view_of(source));
  sinks.begin();
  EXPECT_FALSE(directory.has("flows.jsonl"));
  EXPECT_TRUE(directory.has("changed.jsonl"));
  EXPECT_TRUE(directory.has("mine.txt"));
  EXPECT_FALSE(directory.has("manifest.json"));
}

// A counter is described once: every counter of a port is summed, and no two have one column.
TEST(ReportCounters, AreDescribedOnce) {
  std::set<std::string> columns;
  PortCounters one, sum;
  std::int64_t value = 0;
  for (const PortCounterInfo& counter : port_counters()) {
    EXPECT_TRUE(columns.insert(counter.column).second) << counter.column;
    EXPECT_LE(counter.hashed, kHashedCounters);
    add_counter(one, counter.field, CounterSum::total, ++value);
  }
  for (int port = 0; port < 3; ++port) add_counters(port_counters(), sum, one);
  value = 0;
  for (const PortCounterInfo& counter : port_counters()) {
    EXPECT_EQ(value_of(sum, counter.field), ++value * (counter.sum == CounterSum::total ? 3 : 1))
        << counter.column;
  }
  ASSERT_EQ(sampled_counters().size(), 6u);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(sampled_counters()[i]->sampled, i + 1);
  std::set<std::string> keys;
  std::set<std::uint8_t> places;
  for (const NetworkCounterInfo& counter : network_counters()) {
    EXPECT_TRUE(counter.key == nullptr || keys.insert(counter.key).second) << counter.key;
    EXPECT_TRUE(counter.hashed == 0 || places.insert(counter.hashed).second) << int{counter.hashed};
  }
  EXPECT_EQ(places.size(), kHashedNetworkCounters);
}

TEST(ReportTables, RefuseADirectoryThatCannotBe) {
  const TinySource source;
  EXPECT_THROW(ResultSinks("/dev/null/results", view_of(source)), IoError);
}

TEST(ReportTables, RefuseADirectoryThatCannotBeWritten) {
  const TinySource source;
  if (geteuid() == 0) GTEST_SKIP() << "root may write anywhere";
  const Directory directory;
  ASSERT_EQ(chmod(directory.path().c_str(), 0500), 0);
  EXPECT_THROW(ResultSinks(directory.path(), view_of(source)), IoError);
}

TEST(ReportTables, HaveNcclTestsTable) {
  const Directory directory;
  const TinySource source;
  ResultSinks tables(directory.path(), view_of(source));
  Results results = two_rank_results();
  results.collectives = {{CollectiveKind::all_reduce,
                          8,
                          kMebibyte,
                          {"ring", Protocol::ll128, 1, "default"},
                          2,
                          2 * 100 * kMicrosecond},
                         {CollectiveKind::all_to_all,
                          8,
                          kMebibyte,
                          {"pairwise", Protocol::simple, 4, "configured"},
                          1,
                          50 * kMicrosecond,
                          1}};
  results.jobs.push_back(test::two_rank_job());
  results.jobs[1].name = "second";
  tables.finish(results);
  EXPECT_EQ(
      directory.text("bandwidths.csv"),
      "collective,ranks,bytes,elements,type,redop,count,time_s,algbw_GBps,busbw_GBps,"
      "algorithm,protocol,channels,why,job\n"
      "all_reduce,8,1048576,262144,float,sum,2,0.0001,10.4858,18.3501,ring,LL128,1,default,pair\n"
      "all_to_all,8,1048576,32768,float,none,1,5e-05,20.9715,18.3501,pairwise,Simple,4,configured,second\n");
}

TEST(ReportBandwidth, FollowsNcclTests) {
  CommunicationRecord record = all_reduce();
  EXPECT_DOUBLE_EQ(times_of(record).algorithm_bandwidth(), 1e9);
  EXPECT_DOUBLE_EQ(times_of(record).bus_bandwidth(), 1.5e9);
  record.kind = CollectiveKind::all_gather;
  EXPECT_DOUBLE_EQ(times_of(record).bus_bandwidth(), 0.75e9);
  record.kind = CollectiveKind::broadcast;
  EXPECT_DOUBLE_EQ(times_of(record).bus_bandwidth(), 1e9);
  record.end = record.last_start;
  EXPECT_EQ(times_of(record).bus_bandwidth(), 0);
}

// all_reduce() takes as long twice as once; a third one of another size has a row of its own.
TEST(ReportRecorder, AddsUpCollectivesOfOneSize) {
  const Graph graph;
  Recorder recorder(nullptr, graph, 1);
  CommunicationRecord record = all_reduce();
  recorder.record(record, {});
  record.last_start += 5;
  record.end += 5;
  recorder.record(record, {});
  record.bytes *= 2;
  recorder.record(record, {});
  record.kind = CollectiveKind::point_to_point;
  recorder.record(record, {});
  const std::vector<CollectiveTimes> rows = recorder.collectives();
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].count, 2U);
  EXPECT_EQ(rows[0].time, 2 * (record.end - record.last_start));
  EXPECT_DOUBLE_EQ(rows[0].algorithm_bandwidth(), times_of(all_reduce()).algorithm_bandwidth());
  EXPECT_DOUBLE_EQ(rows[0].bus_bandwidth(), times_of(all_reduce()).bus_bandwidth());
  EXPECT_EQ(rows[1].count, 1U);
  EXPECT_DOUBLE_EQ(rows[1].bus_bandwidth(), 2 * times_of(all_reduce()).bus_bandwidth());
}

TEST(ReportRecorder, KeepsTheCollectivesOfJobsApartAndCountsThoseBeyondItsRoom) {
  const Graph graph;
  Recorder recorder(nullptr, graph, 2);
  CommunicationRecord record = all_reduce();
  recorder.record(record, {});
  record.job = 1;
  recorder.record(record, {});
  recorder.record(record, {});
  std::vector<CollectiveTimes> rows = recorder.collectives();
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].job, 0U);
  EXPECT_EQ(rows[1].job, 1U);
  EXPECT_EQ(rows[1].count, 2U);
  for (std::size_t i = 0; i < kCollectiveTimes; ++i) {
    ++record.bytes;
    recorder.record(record, {});
  }
  EXPECT_EQ(recorder.collectives().size(), kCollectiveTimes);
  EXPECT_EQ(recorder.further_collectives(), 2U);
  Results results = two_rank_results();
  results.further_collectives = 2;
  EXPECT_THAT(derive_notes(results), ::testing::Contains(HasSubstr("2 collectives of others are in")));
}

TEST(ReportRecorder, FingerprintIsBlindToOrderAndSeesEveryTime) {
  const Graph graph;
  Recorder forward(nullptr, graph, 1), backward(nullptr, graph, 1), later(nullptr, graph, 1);
  FlowRecord second = flow_record();
  second.id = 2;
  forward.record(flow_record());
  forward.record(second);
  forward.record(task_record());
  backward.record(task_record());
  backward.record(second);
  backward.record(flow_record());
  later.record(flow_record());
  second.end += 1;
  later.record(second);
  later.record(task_record());
  EXPECT_EQ(forward.fingerprint({}, {}), backward.fingerprint({}, {}));
  EXPECT_NE(forward.fingerprint({}, {}), later.fingerprint({}, {}));
}

TEST(ReportRecorder, KeepsSlowdownsBySize) {
  const Graph graph;
  Recorder recorder(nullptr, graph, 1);
  FlowRecord flow = flow_record();
  recorder.record(flow);  // ideal time unknown
  flow.ideal = 10;
  for (const Bytes bytes : {1, 29'999, 30'000, 999'999, 1'000'000}) {
    flow.bytes = bytes;
    flow.end = flow.start + 10 * (bytes < 30'000 ? 1 : bytes < 1'000'000 ? 2 : 3);
    recorder.record(flow);
  }
  EXPECT_EQ(recorder.slowdowns().count, 5u);
  EXPECT_DOUBLE_EQ(recorder.slowdowns().mean, 9.0 / 5);
  EXPECT_DOUBLE_EQ(recorder.slowdowns().p99, 3);
  const std::uint64_t counts[] = {2, 2, 1};
  for (std::size_t bin = 0; bin < 3; ++bin) {
    EXPECT_EQ(recorder.slowdowns(bin).count, counts[bin]);
    EXPECT_DOUBLE_EQ(recorder.slowdowns(bin).p50, static_cast<double>(bin) + 1);
  }
}

TEST(ReportRecorder, FingerprintSeesCountersAndWhoseTheyAre) {
  const Graph graph;
  const Recorder recorder(nullptr, graph, 1);
  LinkResult idle, busy;
  busy.counters.wire_bytes = 1;
  NetworkCounters marked;
  marked.ecn_marks = 1;
  EXPECT_NE(recorder.fingerprint({}, {idle, busy}), recorder.fingerprint({}, {busy, idle}));
  EXPECT_NE(recorder.fingerprint({}, {}), recorder.fingerprint(marked, {}));
  LinkResult lossy = busy;
  lossy.counters.lost = 1;
  EXPECT_NE(recorder.fingerprint({}, {busy}), recorder.fingerprint({}, {lossy}));
  LinkResult parted = busy;
  parted.counters.no_route = 1;
  EXPECT_NE(recorder.fingerprint({}, {busy}), recorder.fingerprint({}, {parted}));
  EXPECT_NE(recorder.fingerprint({}, {lossy}), recorder.fingerprint({}, {parted}));
}

TEST(ReportScreen, ShowsWhatOneAsksFirst) {
  const std::string screen = render_screen(two_rank_results());
  EXPECT_THAT(screen, HasSubstr("iteration time   2.00 ms"));
  EXPECT_THAT(screen, HasSubstr("25.0 % of the peak of 1"));
  EXPECT_THAT(screen, HasSubstr("exposed TP"));
  EXPECT_THAT(screen, HasSubstr("exposed DP"));
  EXPECT_THAT(screen, Not(HasSubstr("exposed EP")));
  EXPECT_THAT(screen, HasSubstr("links by tier"));
  EXPECT_THAT(screen, HasSubstr("5 ECN marks"));
}

// A run with long names, sentences and large numbers.
Results wide_results() {
  Results results = two_rank_results();
  results.links[0].name = "host12/gpu7->host12/nvswitch";
  results.links[0].counters.paused = 123 * kMicrosecond;
  results.links[0].counters.ecn_marks = 1'234'567;
  results.slowdowns = {3, 2, 1.5, 2.5, 3};
  results.slowdowns_by_size = {Slowdowns{1'000'000, 2, 1.5, 2.5, 3}, Slowdowns{2, 2, 1, 2, 3}, Slowdowns{}};
  results.sampled_queues = QueueStatistics{4, 123'456, 234'567, 345'678, 456'789, 567'890};
  results.notes = {
      "a sentence that goes on and on, so that no terminal of eighty columns can hold it in one line"};
  results.waiting = results.notes;
  results.outcome = Outcome::stalled;
  results.wall_seconds = 134;
  return results;
}

TEST(ReportScreen, HasLinesOfTheWidthAskedFor) {
  for (const bool computes : {true, false}) {
    Results results = wide_results();
    results.jobs[0].computes = computes;
    for (const std::size_t width : {80u, 120u}) {
      for (const std::string& line : lines_of(render_screen(results, width)))
        EXPECT_LE(line.size(), width) << line;
    }
    const std::string narrow = render_screen(results, 60), wide = render_screen(results, 120);
    EXPECT_THAT(wide, HasSubstr("ethernet"));
    EXPECT_THAT(narrow, Not(HasSubstr("carried")));
    for (const char* kept : {"busy", "max queue", "50.0 %"}) EXPECT_THAT(narrow, HasSubstr(kept));
    EXPECT_THAT(wide, HasSubstr("ran for   2 min 14 s"));
  }
}

TEST(ReportScreen, OfTrafficLeadsWithFlowsAndDoesNotSpeakOfTraining) {
  Results results = wide_results();
  EXPECT_FALSE(only_traffic(results));
  results.jobs[0].computes = false;
  ASSERT_TRUE(only_traffic(results));
  const std::string screen = render_screen(results, 80);
  for (const char* word : {"iteration time", "exposed", "idle", "compute", "TFLOP"})
    EXPECT_THAT(screen, Not(HasSubstr(word)));
  std::size_t at = 0;
  for (const char* next :
       {"completion time", "below 30 KB", "30 KB to 1 MB", "all", "throughput", "queues", "links by tier"}) {
    const std::size_t found = screen.find(next, at);
    ASSERT_NE(found, std::string::npos) << next << "\n" << screen;
    at = found;
  }
  results.jobs.push_back(test::two_rank_job());
  EXPECT_FALSE(only_traffic(results)) << "another job trains";
}

TEST(ReportScreen, OfCollectivesIsTheTableOfNcclTests) {
  Results results = wide_results();
  results.jobs[0].computes = false;
  results.collectives = {{CollectiveKind::all_reduce,
                          8,
                          kMebibyte,
                          {"ring", Protocol::ll128, 1, "default"},
                          2,
                          2 * 100 * kMicrosecond},
                         {CollectiveKind::all_gather, 8, kMebibyte, {}, 1, 50 * kMicrosecond},
                         {CollectiveKind::all_to_all, 8, kMebibyte, {}, 1, 50 * kMicrosecond}};
  const std::string screen = render_screen(results, 120);
  EXPECT_THAT(screen, HasSubstr("collective  ranks  size (B)   count   type  redop  protocol  time (us)  "
                                "algbw (GB/s)  "
                                "busbw (GB/s)\n"));
  EXPECT_THAT(
      screen,
      HasSubstr("all_reduce      8   1048576  262144  float    sum  LL128        100.00         10.49  "
                "       18.35\n"));
  EXPECT_THAT(
      screen,
      HasSubstr("all_gather      8   1048576   32768  float   none  Simple        50.00         20.97  "
                "       18.35\n"));
  EXPECT_THAT(
      screen,
      HasSubstr("all_to_all      8   1048576   32768  float   none  Simple        50.00         20.97  "
                "       18.35\n"));
  EXPECT_THAT(render_screen(results, 80), HasSubstr("busbw"));

  // With several jobs each row says whose it is.
  EXPECT_EQ(screen.find(" job\n"), std::string::npos);
  Results two = results;
  two.jobs.push_back(test::two_rank_job());
  two.jobs[1].name = "second";
  two.jobs[1].computes = false;
  two.collectives[1].job = 1;
  EXPECT_THAT(render_screen(two, 140), HasSubstr("busbw (GB/s)  job"));
  EXPECT_THAT(render_screen(two, 140), HasSubstr("18.35  second\n"));

  // Blocks of sizes of their own: all that a rank sends.
  EXPECT_EQ((CollectiveTimes{CollectiveKind::all_to_all_v, 8, kMebibyte, {}, 1, 1}.elements()), 262'144);

  // At 80 columns all of what nccl-tests print is still there, up to 16 GiB.
  results.collectives.resize(1);
  results.collectives.push_back({CollectiveKind::all_reduce,
                                 8,
                                 16 * kGibibyte,
                                 {"ring", Protocol::ll128, 1, "default"},
                                 1,
                                 100 * kMillisecond});
  EXPECT_THAT(render_screen(results, 80),
              HasSubstr("  collective all_reduce, ranks 8, protocol LL128\n"
                        "     size (B)       count   type  redop  time (us)  algbw (GB/s)  busbw (GB/s)\n"
                        "      1048576      262144  float    sum     100.00         10.49         18.35\n"
                        "  17179869184  4294967296  float    sum  100000.00        171.80        300.65\n"));
}

TEST(ReportScreen, ShowsNamesAsTextWhateverTheyHold) {
  for (const bool computes : {true, false}) {
    Results results = wide_results();
    results.jobs[0].computes = computes;
    results.jobs[0].name = results.links[0].name = results.notes[0] = results.waiting[0] =
        "a\x1b[31m\xc2\x9b\xff\r";
    EXPECT_FALSE(find_not_text(render_screen(results, 80)));
  }
}

TEST(ReportScreen, OfAnUnfinishedRunHasNoInventedTime) {
  Results results = two_rank_results();
  results.outcome = Outcome::stalled;
  results.jobs[0].done = false;
  results.jobs[0].iteration_ends.clear();
  results.waiting = {"rank 3 waits for rank 4"};
  const std::string screen = render_screen(results);
  EXPECT_THAT(screen, HasSubstr("iteration time   -"));
  EXPECT_THAT(screen, HasSubstr("rank 3 waits for rank 4"));
}

// Without congestion control there was "window, pace 53.9 %", where neither exists.
TEST(ReportScreen, NamesWhatASenderMayHaveWaitedFor) {
  Results results = two_rank_results();
  results.jobs[0].paths.resize(2);
  for (PathSummary& path : results.jobs[0].paths) path.at_sender = kMillisecond;
  const auto line = [&] {
    for (const std::string& text : lines_of(render_screen(results, 120))) {
      const std::size_t at = text.find("serialisation at the sender");
      if (at != std::string::npos) return text.substr(at, text.find("  ", at) - at);
    }
    return std::string();
  };
  results.knobs.congestion_control = "none";
  EXPECT_EQ(line(), "serialisation at the sender");
  results.knobs.window = true;
  EXPECT_EQ(line(), "serialisation at the sender, window");
  results.knobs.congestion_control = "dcqcn";
  results.network.retransmissions = 1;
  EXPECT_EQ(line(), "serialisation at the sender, window, pace, repeats");
}

// Each of the two maxima has a name of its own.
TEST(ReportScreen, TellsQueuesOfSwitchesFromThoseInHosts) {
  Results results = two_rank_results();
  results.network.max_queue = 4160;
  EXPECT_THAT(render_screen(results), HasSubstr("longest at a switch 4.16 KB\n"));
  results.network.max_host_queue = 58'800;
  EXPECT_THAT(render_screen(results), HasSubstr("longest at a switch 4.16 KB, in a host 58.8 KB\n"));
}

TEST(ReportScreen, NumbersHaveThreeDigits) {
  EXPECT_EQ(human_seconds(0), "0 s");
  EXPECT_EQ(human_seconds(12.345), "12.3 s");
  EXPECT_EQ(human_seconds(0.9999), "1.00 s");
  EXPECT_EQ(human_seconds(1.5e-6), "1.50 us");
  EXPECT_EQ(human_seconds(3e-12), "3.00 ps");
  EXPECT_EQ(human_count(999), "999");
  EXPECT_EQ(human_count(1'100'000'000), "1.10 G");
  EXPECT_EQ(human_bytes(4096), "4.10 KB");
}

}  // namespace
}  // namespace netsim::writers_test
