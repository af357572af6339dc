// Are flow lists, our own and those of other simulators, read as their writers meant them, and wrong ones
// refused with file, line and column?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "sim/core/output.h"
#include "sim/core/recognise.h"
#include "sim/core/registry.h"
#include "sim/workload/readers/ns3_flows.h"
#include "sim/workload/traffic/flow_source.h"
#include "sim/workload/workload.h"
#include "tests/support/mutations.h"
#include "tests/support/shared.h"
#include "tests/support/tasks_of.h"

namespace netsim::flow_list_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// The one reader that recognises the text; "" if none, "a+b" if several do.
std::string reader_of(const std::string& text) {
  std::string found;
  for (const Format* format : matching_formats(Excerpt(text, text.size()), "list")) {
    if (format->use != Format::Use::workload || format->component.empty()) continue;
    found += (found.empty() ? "" : "+") + format->component;
  }
  return found;
}

std::unique_ptr<TaskSource> read_list(const std::string& text, const WorkloadContext& context) {
  const std::string name = reader_of(text);
  if (name.empty()) throw InputError("not recognised");
  return Registry<WorkloadReader>::instance().create(name)->open(InputSet::in_memory({{"list", text}}),
                                                                 context);
}

std::string list_error(const std::string& text, const WorkloadContext& context = 8) {
  try {
    read_list(text, context);
  } catch (const Error& error) {
    return std::to_string(static_cast<int>(error.code())) + " " + error.what();
  }
  return {};
}

// (from, to, bytes, start, channel, class) in file order.
using Row = std::tuple<std::uint32_t, std::uint32_t, Bytes, Time, std::uint32_t, int>;

std::vector<Row> rows(const TaskSource& source) {
  std::vector<Row> result;
  for (const Flow& flow : dynamic_cast<const FlowSource&>(source).flows()) {
    result.emplace_back(flow.from, flow.to, flow.bytes, flow.start, flow.channel, flow.traffic_class);
  }
  return result;
}

// ---- Which reader

TEST(WorkloadReaders, AreChosenByContent) {
  EXPECT_EQ(reader_of("source,destination,bytes,start\n"), "csv");
  EXPECT_EQ(reader_of("\xef\xbb\xbf# comment\n\n \"bytes\" , start_us,source,destination\r\n"), "csv");
  EXPECT_EQ(reader_of("2\n0 1 3 100 10 2.0\n0 1 3 100 10 2.0\n"), "ns3_flows");
  EXPECT_EQ(reader_of("0\n"), "ns3_flows");
  EXPECT_EQ(reader_of("# comment\nNodes 16\nConnections 1\n"), "htsim_cm");
  EXPECT_EQ(reader_of("kind: flows\nflows: []\n"), "");
  EXPECT_EQ(reader_of("{kind: incast, senders: 3}\n"), "");
  EXPECT_EQ(reader_of("Nodes: 16\n"), "");
  EXPECT_EQ(reader_of("a, b, c\n"), "");
  EXPECT_EQ(reader_of(""), "");
}

// ---- CSV

TEST(FlowListCsv, HasUnitsInCellsOrHeader) {
  const auto source = read_list(
      "source,destination,bytes,start\n"
      "0,1,10 MB,0\n"
      "# comment\n"
      "\n"
      " 2 , 1 , 64000 , 30 us\r\n"
      "7,0,\"1 KiB\",2 ms\n",
      8);
  EXPECT_EQ(source->ranks(), 8u);
  EXPECT_THAT(rows(*source),
              ElementsAre(Row{0, 1, 10 * kMegabyte, 0, 0, 0}, Row{2, 1, 64'000, 30 * kMicrosecond, 0, 0},
                          Row{7, 0, 1024, 2 * kMillisecond, 0, 0}));
  for (const auto& [name, unit] : {std::pair{"start_s", kSecond},
                                   {"start_ms", kMillisecond},
                                   {"start_us", kMicrosecond},
                                   {"start_ns", kNanosecond},
                                   {"start_ps", Time{1}}}) {
    const auto timed = read_list(std::string(name) + ",bytes,destination,source\n1000,1,2,3\n", 8);
    EXPECT_THAT(rows(*timed), ElementsAre(Row{3, 2, 1, 1000 * unit, 0, 0})) << name;
  }
}

TEST(FlowListCsv, HasPriorityAndPath) {
  const auto source =
      read_list("source,destination,bytes,start,priority,path\n0,1,1,0,255,7\n1,2,1,0,0,0\n", 8);
  const std::vector<Flow> flows = dynamic_cast<const FlowSource&>(*source).flows();
  EXPECT_EQ(flows[0].priority, 255);
  EXPECT_EQ(flows[0].path_hint, 7U);
  EXPECT_EQ(flows[1].priority, 0);
  EXPECT_EQ(flows[1].path_hint, 0U);
  EXPECT_THAT(list_error("source,destination,bytes,start,priority\n0,1,1,0,256\n"),
              HasSubstr("the priority"));
  EXPECT_THAT(list_error("source,destination,bytes,start,path\n0,1,1,0,-1\n"), HasSubstr("the path"));
}

// Opens files in memory with a reader. Returns the message of an error in `message`.
std::unique_ptr<TaskSource> open_files(const std::string& reader,
                                       std::vector<std::pair<std::string, std::string>> files,
                                       std::string& message) {
  try {
    return Registry<WorkloadReader>::instance().create(reader)->open(InputSet::in_memory(std::move(files)),
                                                                     8);
  } catch (const InputError& error) {
    message = error.what();
  }
  return nullptr;
}

TEST(FlowListCsv, SeveralFilesAreOneList) {
  std::string message;
  const auto source = open_files("csv",
                                 {{"b", "source,destination,bytes,start\n0,1,5,0\n1,2,6,1 us\n"},
                                  {"a", "bytes,start_us,destination,source,name\n7,2,1,0,late\n"}},
                                 message);
  ASSERT_NE(source, nullptr) << message;
  EXPECT_THAT(rows(*source), ElementsAre(Row{0, 1, 5, 0, 0, 0}, Row{1, 2, 6, kMicrosecond, 0, 0},
                                         Row{0, 1, 7, 2 * kMicrosecond, 1, 0}));
  EXPECT_THAT(source->names(), ElementsAre("flow", "late"));
  const std::string good = "source,destination,bytes,start\n0,1,5,0\n";
  EXPECT_EQ(open_files("csv", {{"b", good}, {"a", good + "0,8,1,0\n"}}, message), nullptr);
  EXPECT_THAT(message, StartsWith("a:3:3: the destination is '8'"));
  EXPECT_EQ(open_files("csv", {{"b", good}, {"a", "source,destination,bytes,start\n"}}, message), nullptr);
  EXPECT_THAT(message, StartsWith("a:1:1: no flows follow"));
}

TEST(WorkloadReaders, OfOneFileRefuseSeveral) {
  for (const auto& [reader, text] : {std::pair{"ns3_flows", "1\n0 1 3 100 7 0\n"},
                                     {"htsim_cm", "Nodes 4\nConnections 1\n0->1 start 0 size 1\n"}}) {
    std::string message;
    EXPECT_NE(open_files(reader, {{"a", text}}, message), nullptr) << message;
    EXPECT_EQ(open_files(reader, {{"a", text}, {"b", text}}, message), nullptr);
    EXPECT_THAT(message, AllOf(StartsWith("a, b: has 2 files, but a "), HasSubstr("is one file"))) << reader;
  }
}

TEST(FlowListCsv, NumbersTheQueuePairsOfAPairUnlessTold) {
  const auto source = read_list(
      "source,destination,bytes,start,class,channel,name\n"
      "0,1,1,0,0,5,a\n"
      "0,1,2,0,2,5,\"b, \"\"quoted\"\"\"\n",
      8);
  EXPECT_THAT(rows(*source), ElementsAre(Row{0, 1, 1, 0, 5, 0}, Row{0, 1, 2, 0, 5, 2}));
  EXPECT_THAT(source->names(), ElementsAre("a", "b, \"quoted\""));
  const auto own = read_list("source,destination,bytes,start\n0,1,1,0\n1,0,1,0\n0,1,2,0\n0,2,3,0\n", 8);
  EXPECT_THAT(rows(*own), ElementsAre(Row{0, 1, 1, 0, 0, 0}, Row{1, 0, 1, 0, 0, 0}, Row{0, 1, 2, 0, 1, 0},
                                      Row{0, 2, 3, 0, 0, 0}));
}

TEST(FlowListCsv, SaysWhereItIsWrong) {
  const std::string header = "source,destination,bytes,start\n";
  EXPECT_THAT(list_error(header + "0,8,1,0\n"), StartsWith("3 list:2:3: the destination is '8'; allowed"));
  EXPECT_THAT(list_error(header + "0,1,1,0\nx,1,1,0\n"), StartsWith("3 list:3:1: the source is 'x'"));
  EXPECT_THAT(list_error(header + "0,1,1 Gbps,0\n"),
              AllOf(StartsWith("3 list:2:5"), HasSubstr("unit of a rate")));
  EXPECT_THAT(list_error(header + "0,1,0,0\n"), StartsWith("3 list:2:5: the size is '0'"));
  EXPECT_THAT(list_error(header + "0,1,0 B,0\n"), StartsWith("3 list:2:5: the size is 0 B"));
  EXPECT_THAT(list_error(header + "0,1,1,5\n"), AllOf(StartsWith("3 list:2:7"), HasSubstr("needs a unit")));
  EXPECT_THAT(list_error(header + "0,1,1\n"), StartsWith("3 list:2:1: 3 cells"));
  EXPECT_THAT(list_error(header + "1,1,1,0\n"), StartsWith("3 list:2:1: rank 1 sends to itself"));
  EXPECT_THAT(list_error(header + "0,1,\"1,0\n"), StartsWith("3 list:2:5: the quote"));
  EXPECT_THAT(list_error(header + "0,1,\"1\"x,0\n"), StartsWith("3 list:2:8: text behind"));
  EXPECT_THAT(list_error(header), HasSubstr("no flows follow"));
  EXPECT_THAT(list_error("source,destination,bytes\n0,1,1\n"), HasSubstr("'start' is missing"));
  EXPECT_THAT(list_error("source,destination,byte,start\n"),
              AllOf(StartsWith("3 list:1:20"), HasSubstr("did you mean 'bytes'")));
  EXPECT_THAT(list_error("source,destination,bytes,start,start_us\n"), HasSubstr("second column"));
  EXPECT_THAT(list_error("source,destination,bytes,start,class\n0,1,1,0,6\n"),
              StartsWith("3 list:2:9: the class"));
  EXPECT_THAT(list_error("source,destination,bytes,start,channel\n0,1,1,0,-1\n"), StartsWith("3 list:2:9"));
  EXPECT_THAT(list_error(header + "0,1,1,0\n", 1), HasSubstr("at least 2 GPUs"));
}

// The network has a fixed number of classes. The place in the error is that of the flow.
TEST(FlowLists, ClassesAreThoseOfTheNetwork) {
  WorkloadContext context(8);
  context.classes = 1;
  const std::string csv = "source,destination,bytes,start,class\n0,1,1,0,0\n0,1,1,0,1\n";
  EXPECT_THAT(list_error(csv, context),
              AllOf(StartsWith("3 list:3:9: class 1, but the network has 1 data class"),
                    HasSubstr("set network.switch.classes to 2")));
  EXPECT_THAT(list_error("2\n0 1 3 100 1 0\n0 1 5 100 1 0\n", context),
              AllOf(StartsWith("3 list:3:5: 2 priority groups are in use"), HasSubstr("class 1, but")));
  context.classes = 2;
  EXPECT_EQ(list_error(csv, context), "");
  EXPECT_EQ(list_error("2\n0 1 3 100 1 0\n0 1 5 100 1 0\n", context), "");
}

TEST(FlowListCsv, SurvivesMutations) {
  test::expect_sane(
      "source,destination,bytes,start,class,channel,name\n0,1,10 MB,0,0,1,\"a \"\"b\"\"\"\n2,3,5,1 us,1,,x\n",
      [](const std::string& text) { read_list(text, 8); });
}

TEST(FlowListCsv, AHundredThousandFlowsAreCheap) {
  std::string text = "source,destination,bytes,start_ns\n";
  for (int i = 0; i < 100'000; ++i) {
    text +=
        std::to_string(i % 16) + "," + std::to_string(16 + i % 7) + ",1000," + std::to_string(i * 10) + "\n";
  }
  const auto source = read_list(text, 32);
  ASSERT_EQ(rows(*source).size(), 100'000u);
  // Handed out one start time ahead: rank 3 is given its first flow, and the next ones as they begin.
  std::vector<Task> ready;
  source->start(3, ready);
  ASSERT_EQ(ready.size(), 1u);
  std::uint32_t given = 0;
  for (std::size_t i = 0; i < ready.size(); ++i, ++given) source->launched(3, ready[i].id, ready);
  EXPECT_EQ(given, test::task_count(*source, 3));
}

// ---- ns-3

TEST(Ns3Flows, AreWhatTheToolReads) {
  const auto source = read_list(
      "3\n0 2 3 100 10000000 0.000000000\n1 2 3 100 1 2.5e-05\n\n1 2 3 101 7 2\ntrailing text\n", 8);
  EXPECT_THAT(rows(*source),
              ElementsAre(Row{0, 2, 10 * kMegabyte, 0, 0, 0}, Row{1, 2, 1, 25 * kMicrosecond, 0, 0},
                          Row{1, 2, 7, 2 * kSecond, 1, 0}));
}

TEST(Ns3Flows, HaveTheirNumbersAndPorts) {
  const auto source = read_list("2\n0 2 3 100 7 0\n1 2 3 4791 1 0\n", 8);
  const auto& flows = dynamic_cast<const FlowSource&>(*source).flows();
  EXPECT_EQ(source->name(flows[0].name), "flow 0");
  EXPECT_EQ(source->name(flows[1].name), "flow 1");
  const auto* list = dynamic_cast<const Ns3FlowList*>(source.get());
  ASSERT_NE(list, nullptr);
  EXPECT_THAT(list->ports(), ElementsAre(100, 4791));
  const auto other = read_list("source,destination,bytes,start\n0,1,1,0\n", 8);
  EXPECT_EQ(dynamic_cast<const Ns3FlowList*>(other.get()), nullptr);
}

TEST(Ns3Flows, AHeaderThatCountsFewerThanFollowIsNoted) {
  const auto source = read_list("1\n0 2 3 100 7 0\n1 2 3 100 1 2.5\n1 2 3 100 1 3\n", 8);
  EXPECT_EQ(rows(*source).size(), 1u);
  EXPECT_THAT(source->notes(),
              ElementsAre(AllOf(StartsWith("list:1:1: "), HasSubstr("1 flows, 2 more follow"))));
  EXPECT_THAT(read_list("1\n0 2 3 100 7 0\n\nsrc dst pg port bytes start\n1 2\n", 8)->notes(), IsEmpty());
}

TEST(Ns3Flows, PriorityGroupsAreClassesInTheirOrder) {
  const auto source = read_list("3\n0 2 5 100 1 0\n1 2 1 100 2 0\n1 2 3 100 3 0\n", 8);
  std::vector<int> classes;
  for (const Row& row : rows(*source)) classes.push_back(std::get<5>(row));
  EXPECT_THAT(classes, ElementsAre(2, 0, 1));
}

TEST(Ns3Flows, NodesAreHostsOfTheTopologyFile) {
  WorkloadContext context(3);
  context.host_numbers = {1, 2, 7};
  EXPECT_THAT(rows(*read_list("2\n1 7 3 100 10 0\n7 2 3 100 10 0\n", context)),
              ElementsAre(Row{0, 2, 10, 0, 0, 0}, Row{2, 1, 10, 0, 0, 0}));
  EXPECT_THAT(list_error("1\n1 0 3 100 10 0\n", context), StartsWith("3 list:2:3: node 0 is no host"));
  EXPECT_THAT(list_error("1\n1 8 3 100 10 0\n", 8), StartsWith("3 list:2:3: node 8 is no host"));
  context.gpus = 2;  // the third host port is empty
  EXPECT_THAT(list_error("1\n1 7 3 100 10 0\n", context), HasSubstr("node 7 is no host"));
  context.gpus = 24;
  EXPECT_THAT(list_error("1\n1 7 3 100 10 0\n", context), HasSubstr("hosts of one GPU"));
}

TEST(Ns3Flows, SaysWhereItIsWrong) {
  EXPECT_THAT(list_error("0\n"), StartsWith("3 list:1:1: the number of flows is '0'"));
  EXPECT_THAT(list_error("2\n0 1 3 100 10 0\n"), HasSubstr("the file ends where the source of flow 1"));
  EXPECT_THAT(list_error("1\n0 0 3 100 10 0\n"), StartsWith("3 list:2:3: a flow to its own source"));
  EXPECT_THAT(list_error("1\n0 1 8 100 10 0\n"), StartsWith("3 list:2:5: the priority group"));
  EXPECT_THAT(list_error("1\n0 1 3 100 0 0\n"), StartsWith("3 list:2:11: the size"));
  EXPECT_THAT(list_error("1\n0 1 3 100 10 -1\n"), StartsWith("3 list:2:14: the start"));
  EXPECT_THAT(list_error("1\n0 1 3 100 10 1us\n"), StartsWith("3 list:2:14: the start"));
}

TEST(Ns3Flows, SurvivesMutations) {
  test::expect_sane("2\n0 2 3 100 10000000 0.000000000\n1 2 3 100 10000000 2.5e-05\n",
                    [](const std::string& text) { read_list(text, 8); });
}

TEST(Ns3Flows, ReadsTheSamples) {
  NETSIM_NEEDS_SHARED("reference/ns3/flow");
  for (const std::string& path : test::shared_files("reference/ns3/flow", ".txt")) {
    const auto source = load_workload(path, 17);
    EXPECT_GE(rows(*source).size(), 2u) << path;
  }
}

// ---- htsim

TEST(HtsimMatrix, StartsArePicoseconds) {
  const auto source = read_list(
      "# comment\n"
      "Nodes 4\n"
      "Connections 3\n"
      "0->1 id 1 start 0 size 2000000\n"
      "2->3 start 40 size 1\n"
      "3->2 id 9 start 1.5e6 size 5 prio 7\n",
      8);
  EXPECT_EQ(source->ranks(), 4u);
  EXPECT_THAT(rows(*source), ElementsAre(Row{0, 1, 2 * kMegabyte, 0, 0, 0}, Row{2, 3, 1, 40, 0, 0},
                                         Row{3, 2, 5, 1'500'000, 0, 0}));
  EXPECT_THAT(source->notes(), ElementsAre(HasSubstr("'prio' of 1 connections is not used")));
}

TEST(HtsimMatrix, MessagesOfOneIdShareAQueuePair) {
  const auto source = read_list(
      "Nodes 2\nConnections 5\n"
      "0->1 id 1 msg start 0 size 1\n0->1 id 2 start 0 size 2\n0->1 id 1 msg 2 start 0 size 3\n"
      "0->1 id 3 msg 1 start 0 size 4\n0->1 id 3 msg start 0 size 5\n",
      8);
  std::vector<std::uint32_t> channels;
  for (const Row& row : rows(*source)) channels.push_back(std::get<4>(row));
  EXPECT_THAT(channels, ElementsAre(0, 1, 0, 3, 3));
}

TEST(HtsimMatrix, IdsAreOneConnections) {
  const std::string head = "Nodes 4\nConnections 2\n0->1 id 7 start 0 size 1\n";
  EXPECT_THAT(list_error(head + "2->3 start 5 id 7 size 1\n"),
              StartsWith("3 list:4:17: id 7 is that of 0->1 in line 3"));
  EXPECT_THAT(list_error(head + "0->1 id 7 start 5 size 1\n"), StartsWith("3 list:4:9: id 7"));
  EXPECT_THAT(list_error(head + "0->1 id 7 msg start 5 size 1\n"), StartsWith("3 list:4:9: id 7"));
  const std::string message = "Nodes 4\nConnections 2\n0->1 id 7 msg start 0 size 1\n";
  EXPECT_THAT(list_error(message + "0->2 id 7 msg start 5 size 1\n"), StartsWith("3 list:4:9: id 7"));
  EXPECT_EQ(list_error(message + "0->1 id 7 msg start 5 size 1\n"), "");
}

TEST(HtsimMatrix, IdsAreKeptInTheNames) {
  const auto source = read_list(
      "Nodes 4\nConnections 3\n0->1 id 12 start 0 size 1\n1->2 start 0 size 1\n"
      "2->3 id 4000000000 start 0 size 1\n",
      8);
  std::vector<std::string> names;
  for (const Flow& flow : dynamic_cast<const FlowSource&>(*source).flows())
    names.push_back(source->name(flow.name));
  EXPECT_THAT(names, ElementsAre("connection 12", "connection", "connection 4000000000"));
}

// Sizes of the flows that become ready at their sender, in turn, when each that is ready is sent and
// received.
std::vector<Bytes> order_of(TaskSource& source, std::uint32_t rank) {
  std::vector<Task> ready;
  source.start(rank, ready);
  std::vector<Bytes> order;
  for (std::size_t i = 0; i < ready.size(); ++i) {
    const Task task = ready[i];
    if (task.kind() == TaskKind::send) order.push_back(task.bytes());
    source.complete(rank, task.id, ready);
  }
  return order;
}

TEST(HtsimMatrix, TriggersStartWhatWaitsForThem) {
  const std::string head = "Nodes 4\nConnections 4\nTriggers 1\n";
  const auto one = read_list(head +
                                 "0->1 start 0 size 1 send_done_trigger 5\n0->2 trigger 5 size 2\n"
                                 "0->3 trigger 5 size 3\n2->0 start 0 size 4 recv_done_trigger 5\n"
                                 "trigger id 5 oneshot\n",
                             8);
  EXPECT_THAT(order_of(*one, 0), ElementsAre(1, 2, 3));
  const auto many = read_list(head +
                                  "0->1 start 0 size 1 send_done_trigger 5\n0->2 trigger 5 size 2 "
                                  "send_done_trigger 5\n0->3 trigger 5 size 3\n2->1 start 0 size 4\n"
                                  "trigger id 5 multishot\n",
                              8);
  EXPECT_THAT(order_of(*many, 0), ElementsAre(1, 2, 3));
  const auto barrier = read_list(head +
                                     "0->1 start 0 size 1 send_done_trigger 5\n0->2 start 0 size 2 "
                                     "send_done_trigger 5\n0->3 trigger 5 size 3\n2->1 start 0 size 4\n"
                                     "trigger id 5 barrier count 2\n",
                                 8);
  std::vector<Task> ready;
  barrier->start(0, ready);
  ASSERT_EQ(ready.size(), 2u);
  ready.clear();
  barrier->complete(0, 0, ready);
  EXPECT_THAT(ready, IsEmpty());
  barrier->complete(0, 1, ready);
  ASSERT_EQ(ready.size(), 1u);
  EXPECT_EQ(ready[0].bytes(), 3);
}

TEST(HtsimMatrix, SaysWhereItIsWrong) {
  const std::string head = "Nodes 4\nConnections 1\n";
  EXPECT_THAT(list_error("Nodes 9\nConnections 0\n"),
              StartsWith("3 list:1:7: 9 nodes, but the cluster has 8 GPUs"));
  EXPECT_THAT(list_error("Nodes 1\n"), HasSubstr("at least 2 nodes"));
  EXPECT_THAT(list_error("Nodes 4\n"), HasSubstr("no connections"));
  EXPECT_THAT(list_error(head), HasSubstr("the header says Connections 1, 0 follow"));
  EXPECT_THAT(list_error(head + "0->4 start 0 size 1\n"), StartsWith("3 list:3:4: the destination is '4'"));
  EXPECT_THAT(list_error(head + "1->1 start 0 size 1\n"), StartsWith("3 list:3:4: a connection to its own"));
  EXPECT_THAT(list_error(head + "0->1 size 1\n"), StartsWith("3 list:3:1: 'start' or 'trigger' is missing"));
  EXPECT_THAT(list_error(head + "0->1 start 0\n"), StartsWith("3 list:3:1: 'size' is missing"));
  EXPECT_THAT(list_error(head + "0->1 start 0 size 0\n"), StartsWith("3 list:3:19: size is '0'"));
  EXPECT_THAT(list_error(head + "0->1 start 0 size\n"), HasSubstr("a value is missing behind 'size'"));
  EXPECT_THAT(list_error(head + "0->1 start 0 sise 1\n"), StartsWith("3 list:3:14: 'sise' is not known"));
  EXPECT_THAT(list_error(head + "0->1 start 0 trigger 1 size 1\n"), HasSubstr("a second"));
  EXPECT_THAT(list_error(head + "0->1 trigger 1 size 1\n"),
              StartsWith("3 list:3:14: trigger 1 is not declared"));
  EXPECT_THAT(list_error("Nodes 4\nConnections 1\nTriggers 1\n0->1 trigger 1 size 1\ntrigger id 1 oneshot\n"),
              HasSubstr("waits for 1 connections, 0 name it"));
  EXPECT_THAT(list_error("Nodes 4\nConnections 2\nTriggers 1\n0->1 start 0 size 1 send_done_trigger 1\n"
                         "1->2 trigger 1 size 1\ntrigger id 1 oneshot\n"),
              AllOf(StartsWith("3 list:4:21"), HasSubstr("fires at node 0"), HasSubstr("of node 1")));
  EXPECT_THAT(list_error(head + "trigger id 1 twoshot\n"), HasSubstr("'twoshot' is not one of"));
  EXPECT_THAT(list_error(head + "failure switch_type TOR switch_id 1 link_id 1\n"),
              HasSubstr("network.faults"));
  EXPECT_THAT(list_error("Nodes 4\n0->1 start 0 size 1\n"), HasSubstr("says Connections 0, 1 follow"));
  EXPECT_THAT(list_error("Nodes 4\nfoo bar\n"), StartsWith("3 list:2:1: 'foo' is not known"));
}

TEST(HtsimMatrix, SurvivesMutations) {
  test::expect_sane(
      "Nodes 4\nConnections 3\nTriggers 1\n0->1 id 1 start 0 size 2 send_done_trigger 1\n"
      "0->2 id 2 msg 1 trigger 1 size 2 prio 3\n3->1 start 1.5e3 size 7\ntrigger id 1 barrier count 1\n",
      [](const std::string& text) { read_list(text, 8); });
}

TEST(HtsimMatrix, ReadsTheSamples) {
  NETSIM_NEEDS_SHARED("samples/htsim_cm");
  std::size_t files = 0;
  for (const char* ending : {".cm", ".tm"}) {
    for (const std::string& path : test::shared_files("samples/htsim_cm", ending)) {
      // Its header says 3600 connections, 240 follow.
      if (path.ends_with("/uet/a2a.cm")) {
        EXPECT_THROW(load_workload(path, 1024), InputError);
        continue;
      }
      ++files;
      EXPECT_FALSE(rows(*load_workload(path, 1024)).empty()) << path;
    }
  }
  EXPECT_GT(files, 10u);
}

// ---- FlowSource

TEST(FlowSource, HandsOutATimeAtATime) {
  FlowSource source("test", 2);
  for (const Time start : {5, 0, 5, 9}) source.add({.from = 0, .to = 1, .bytes = 1, .start = start});
  source.seal();
  const auto starts = [](const std::vector<Task>& tasks) {
    std::vector<Time> result;
    for (const Task& task : tasks) result.push_back(task.not_before);
    return result;
  };
  for (const std::uint32_t rank : {0U, 1U}) {
    std::vector<Task> ready;
    source.start(rank, ready);
    EXPECT_THAT(starts(ready), ElementsAre(0, 5, 5));
    std::vector<Task> more;
    source.launched(rank, 1, more);
    EXPECT_THAT(more, IsEmpty());
    source.launched(rank, 2, more);
    EXPECT_THAT(starts(more), ElementsAre(9));
    more.clear();
    source.launched(rank, 3, more);
    EXPECT_THAT(more, IsEmpty());
  }
}

}  // namespace
}  // namespace netsim::flow_list_test
