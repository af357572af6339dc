// Tests that the traffic workloads state exactly which rank sends what to which rank and when, in an order
// that can run. They refuse parameters that make no sense.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "sim/core/registry.h"
#include "sim/workload/traffic/flow_source.h"
#include "sim/workload/traffic/simple_source.h"
#include "sim/workload/workload.h"
#include "tests/support/tasks_of.h"

namespace netsim::traffic_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::unique_ptr<TaskSource> source_of(const std::string& yaml, const WorkloadContext& gpus) {
  return Registry<WorkloadKind>::instance().create(parse_config(yaml, "test.yaml"), "")->tasks(gpus);
}

// The message of the Error, with its exit code in front; "" if there is none.
std::string traffic_error(const std::string& yaml, std::uint32_t gpus = 8) {
  try {
    source_of(yaml, gpus);
  } catch (const Error& error) {
    return std::to_string(static_cast<int>(error.code())) + " " + error.what();
  }
  return {};
}

// (from, to, tag, bytes, not before) of every send, by rank and program order.
using Message = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, Bytes, Time>;

std::vector<Message> sends(const TaskSource& source) {
  std::vector<Message> result;
  for (std::uint32_t rank = 0; rank < source.ranks(); ++rank) {
    for (const Task& task : test::tasks_of(source, rank)) {
      if (task.kind() == TaskKind::send)
        result.emplace_back(rank, task.message().peer, task.message().tag, task.bytes(), task.not_before);
    }
  }
  return result;
}

// Receives as the sends that they wait for.
std::vector<Message> receives(const TaskSource& source) {
  std::vector<Message> result;
  for (std::uint32_t rank = 0; rank < source.ranks(); ++rank) {
    for (const Task& task : test::tasks_of(source, rank)) {
      if (task.kind() != TaskKind::receive) continue;
      result.emplace_back(task.message().peer, rank, task.message().tag, task.bytes(), 0);
    }
  }
  return result;
}

std::vector<std::uint32_t> ids(const std::vector<Task>& tasks) {
  std::vector<std::uint32_t> result;
  result.reserve(tasks.size());
  for (const Task& task : tasks) result.push_back(task.id);
  return result;
}

// Every send has its receive, all are raw messages on the stream dp that wait for nothing but their time, and
// nothing follows.
void expect_independent_messages(TaskSource& source) {
  std::vector<Message> sent = sends(source);
  for (Message& message : sent) std::get<4>(message) = 0;
  std::vector<Message> received = receives(source);
  std::sort(sent.begin(), sent.end());
  std::sort(received.begin(), received.end());
  EXPECT_EQ(sent, received);
  EXPECT_EQ(std::adjacent_find(sent.begin(), sent.end()), sent.end())
      << "two messages that cannot be told apart";
  for (std::uint32_t rank = 0; rank < source.ranks(); ++rank) {
    std::vector<Task> ready;
    source.start(rank, ready);
    for (std::size_t i = 0; i < ready.size(); ++i) {
      if (ready[i].not_before > 0) source.launched(rank, ready[i].id, ready);
    }
    ASSERT_EQ(ready.size(), test::task_count(source, rank));
    for (std::uint32_t id = 0; id < ready.size(); ++id) {
      EXPECT_EQ(ready[id].id, id);
      EXPECT_TRUE(is_raw(ready[id]));
      EXPECT_EQ(ready[id].stream, Stream::dp);
      EXPECT_LT(ready[id].name, source.names().size());
      std::vector<Task> more;
      source.complete(rank, id, more);
      EXPECT_THAT(more, IsEmpty());
    }
  }
}

TEST(Permutation, SendsFromEachRankToTheOneShiftFurther) {
  const auto source = source_of("{kind: permutation, bytes: 1 MB, shift: 3}", 4);
  EXPECT_EQ(source->ranks(), 4u);
  EXPECT_EQ(source->iterations(), 1u);
  EXPECT_EQ(source->job_name(), "permutation");
  EXPECT_THAT(sends(*source), ElementsAre(Message{0, 3, 0, kMegabyte, 0}, Message{1, 0, 0, kMegabyte, 0},
                                          Message{2, 1, 0, kMegabyte, 0}, Message{3, 2, 0, kMegabyte, 0}));
  expect_independent_messages(*source);
}

TEST(Permutation, ShiftsByHalfTheClusterUnlessTold) {
  const auto source = source_of("kind: permutation", 128);
  for (const auto& [from, to, tag, bytes, start] : sends(*source)) {
    EXPECT_EQ(to, (from + 64) % 128);
    EXPECT_EQ(bytes, 10 * kMegabyte);
  }
  EXPECT_EQ(source_of("{kind: permutation, ranks: 6}", 128)->ranks(), 6u);
  EXPECT_THAT(sends(*source_of("{kind: permutation, ranks: 3}", 3)),
              ElementsAre(Message{0, 1, 0, 10 * kMegabyte, 0}, Message{1, 2, 0, 10 * kMegabyte, 0},
                          Message{2, 0, 0, 10 * kMegabyte, 0}));
}

TEST(Permutation, IsOne) {
  EXPECT_TRUE(rc::check("everyone sends once, receives once, never to itself", [] {
    const auto ranks = *rc::gen::inRange<std::uint32_t>(2, 200);
    const auto shift =
        *rc::gen::inRange<std::uint32_t>(1, ranks) + ranks * *rc::gen::inRange<std::uint32_t>(0, 5);
    const auto source = source_of("{kind: permutation, shift: " + std::to_string(shift) + "}", ranks);
    std::vector<int> received(ranks, 0);
    for (const Message& message : sends(*source)) {
      RC_ASSERT(std::get<0>(message) != std::get<1>(message));
      received[std::get<1>(message)] += 1;
    }
    RC_ASSERT(received == std::vector<int>(ranks, 1));
    expect_independent_messages(*source);
  }));
}

TEST(Permutation, RefusesNonsense) {
  EXPECT_THAT(traffic_error("{kind: permutation, shift: 16}"),
              AllOf(HasSubstr("3 test.yaml:1:"), HasSubstr("shift"), HasSubstr("itself")));
  EXPECT_THAT(traffic_error("{kind: permutation, ranks: 9}"),
              AllOf(HasSubstr("ranks"), HasSubstr("9 ranks"), HasSubstr("8 GPUs")));
  EXPECT_THAT(traffic_error("{kind: permutation, ranks: 1}"), HasSubstr("at least 2"));
  EXPECT_THAT(traffic_error("kind: permutation", 1), HasSubstr("at least 2"));
  EXPECT_THAT(traffic_error("{kind: permutation, bytes: 0}"), HasSubstr("bytes"));
  EXPECT_THAT(traffic_error("{kind: permutation, bytes: 10 Gbps}"), HasSubstr("bytes"));
  EXPECT_THAT(traffic_error("{kind: permutation, shfit: 1}"), HasSubstr("'shift'"));
  EXPECT_THAT(traffic_error("kind: permutaton"), HasSubstr("'permutation'"));
}

TEST(Incast, SendsFromTheOthersToTheReceiver) {
  const auto source = source_of("{kind: incast, senders: 3, receiver: 1, bytes: 5 KB, stagger: 2 us}", 8);
  EXPECT_EQ(source->ranks(), 4u);
  EXPECT_THAT(sends(*source), ElementsAre(Message{0, 1, 0, 5000, 0}, Message{2, 1, 0, 5000, 2 * kMicrosecond},
                                          Message{3, 1, 0, 5000, 4 * kMicrosecond}));
  expect_independent_messages(*source);
}

TEST(Incast, UsesTheWholeClusterUnlessTold) {
  const auto source = source_of("{kind: incast, receiver: 8}", 9);
  EXPECT_EQ(source->ranks(), 9u);
  EXPECT_EQ(sends(*source).size(), 8u);
  EXPECT_EQ(test::task_count(*source, 8), 8u);
  expect_independent_messages(*source);
}

TEST(Incast, AReceiverBehindTheSendersIsARankToo) {
  const auto source = source_of("{kind: incast, senders: 2, receiver: 7}", 8);
  EXPECT_EQ(source->ranks(), 8u);
  EXPECT_THAT(sends(*source),
              ElementsAre(Message{0, 7, 0, 10 * kMegabyte, 0}, Message{1, 7, 0, 10 * kMegabyte, 0}));
  expect_independent_messages(*source);
}

TEST(Incast, RefusesNonsense) {
  EXPECT_THAT(traffic_error("{kind: incast, senders: 8}"), AllOf(HasSubstr("3 test"), HasSubstr("8 GPUs")));
  EXPECT_THAT(traffic_error("{kind: incast, receiver: 8}"),
              AllOf(HasSubstr("receiver"), HasSubstr("0 to 7")));
  EXPECT_THAT(traffic_error("{kind: incast, senders: -1}"), HasSubstr("senders"));
  EXPECT_THAT(traffic_error("{kind: incast, stagger: 1 MB}"), HasSubstr("stagger"));
}

TEST(Flows, AreWhatIsWritten) {
  const auto source = source_of(
      "kind: flows\n"
      "flows:\n"
      "  - {from: 2, to: 1, bytes: 64 KB, start: 30 us}\n"
      "  - {from: 0, to: 1, bytes: 10 MB}\n"
      "  - {from: 2, to: 1, bytes: 1 B, start: 7 ps}\n",
      8);
  EXPECT_EQ(source->ranks(), 8u);
  EXPECT_THAT(sends(*source), ElementsAre(Message{0, 1, 0, 10 * kMegabyte, 0}, Message{2, 1, 1, 1, 7},
                                          Message{2, 1, 0, 64 * kKilobyte, 30 * kMicrosecond}));
  expect_independent_messages(*source);
}

TEST(Flows, HavePriorityClassPathAndDeadline) {
  WorkloadContext context(8);
  context.classes = 3;
  const auto source = source_of(
      "kind: flows\nflows:\n  - {from: 0, to: 1, bytes: 1 B, class: 2, priority: 255, path: 5, deadline: 3 "
      "ms}\n"
      "  - {from: 1, to: 2, bytes: 1 B}\n",
      context);
  const std::vector<Flow> flows = dynamic_cast<const FlowSource&>(*source).flows();
  EXPECT_EQ(flows[0].traffic_class, 2);
  EXPECT_EQ(flows[0].priority, 255);
  EXPECT_EQ(flows[0].path_hint, 5U);
  EXPECT_EQ(flows[0].deadline, 3 * kMillisecond);
  EXPECT_EQ(flows[1].deadline, 0);
  EXPECT_THAT(traffic_error("kind: flows\nflows: [{from: 0, to: 1, bytes: 1 B, deadline: 300 s}]\n"),
              HasSubstr("deadline"));
  EXPECT_EQ(flows[1].priority, 0);
  EXPECT_EQ(flows[1].path_hint, TransferTraits().path_hint);
}

TEST(Flows, RefuseNonsense) {
  EXPECT_THAT(traffic_error("kind: flows"), HasSubstr("'flows' is missing"));
  EXPECT_THAT(traffic_error("flows"), HasSubstr("'flows' is missing"));
  EXPECT_THAT(traffic_error("{kind: flows, flows: []}"), HasSubstr("sequence"));
  EXPECT_THAT(traffic_error("{kind: flows, flows: {from: 0}}"), HasSubstr("sequence"));
  EXPECT_THAT(traffic_error("{kind: flows, flows: [3]}"), HasSubstr("2 test.yaml:1:"));
  EXPECT_THAT(traffic_error("{kind: flows, flows: [{from: 0, bytes: 1 B}]}"), HasSubstr("'to' is missing"));
  EXPECT_THAT(traffic_error("{kind: flows, flows: [{from: 0, to: 1, byte: 1 B}]}"), HasSubstr("'bytes'"));
  EXPECT_THAT(traffic_error("{kind: flows, flows: [{from: 0, to: 0, bytes: 1 B}]}"), HasSubstr("itself"));
  EXPECT_THAT(traffic_error("{kind: flows, flows: [{from: 0, to: 8, bytes: 1 B}]}"),
              AllOf(HasSubstr("3 test.yaml:1:"), HasSubstr("rank 8"), HasSubstr("0 to 7")));
  EXPECT_THAT(traffic_error("{kind: flows, ranks: 9, flows: [{from: 0, to: 1, bytes: 1 B}]}"),
              HasSubstr("8 GPUs"));
  EXPECT_THAT(traffic_error("{kind: flows, flow: [{from: 0, to: 1, bytes: 1 B}]}"), HasSubstr("'flows'"));
}

TEST(Flows, HaveQueuePairsOfTheirOwnUnlessTold) {
  const auto source = source_of(
      "kind: flows\n"
      "flows:\n"
      "  - {from: 0, to: 1, bytes: 1 B}\n"
      "  - {from: 0, to: 1, bytes: 2 B, class: 3, name: mouse}\n"
      "  - {from: 0, to: 1, bytes: 3 B, channel: 7}\n"
      "  - {from: 0, to: 1, bytes: 4 B, channel: 7}\n"
      "  - {from: 0, to: 2, bytes: 5 B}\n",
      8);
  std::vector<std::uint32_t> channels, classes;
  for (std::uint32_t id = 0; id < 5; ++id) {
    channels.push_back(test::task_of(*source, 0, id).payload()->traits.channel);
    classes.push_back(test::task_of(*source, 0, id).payload()->traits.traffic_class);
  }
  EXPECT_THAT(channels, ElementsAre(0, 1, 7, 7, 0));
  EXPECT_THAT(classes, ElementsAre(0, 3, 0, 0, 0));
  EXPECT_EQ(source->names()[test::task_of(*source, 0, 1).name], "mouse");
  expect_independent_messages(*source);
  EXPECT_THAT(traffic_error("{kind: flows, flows: [{from: 0, to: 1, bytes: 1 B, class: 6}]}"),
              HasSubstr("class"));
}

TEST(AllToAll, SendsFromEveryRankToEveryOtherInTurn) {
  const auto source = source_of("{kind: all_to_all, bytes: 1 KB, ranks: 3, stagger: 1 us}", 8);
  EXPECT_EQ(source->ranks(), 3u);
  EXPECT_THAT(sends(*source), ElementsAre(Message{0, 1, 0, 1000, 0}, Message{0, 2, 0, 1000, kMicrosecond},
                                          Message{1, 2, 0, 1000, 0}, Message{1, 0, 0, 1000, kMicrosecond},
                                          Message{2, 0, 0, 1000, 0}, Message{2, 1, 0, 1000, kMicrosecond}));
  expect_independent_messages(*source);
}

TEST(AllToAll, RefusesNonsense) {
  EXPECT_THAT(traffic_error("{kind: all_to_all, ranks: 1}"), HasSubstr("at least 2"));
  EXPECT_THAT(traffic_error("{kind: all_to_all, ranks: 9}"), HasSubstr("8 GPUs"));
  EXPECT_THAT(traffic_error("{kind: all_to_all, bytes: 0 B}"), HasSubstr("bytes"));
  EXPECT_THAT(traffic_error("kind: all_to_all", 10'000),
              AllOf(HasSubstr("99990000 flows"), HasSubstr("16777216")));
}

TEST(RingTraffic, ARoundFollowsWhatItsRankSentAndReceived) {
  const auto source = source_of("{kind: ring, bytes: 1 KB, ranks: 3, rounds: 2}", 8);
  // Rank 0: its sends of rounds 0 and 1 and its receives of both.
  ASSERT_EQ(test::task_count(*source, 0), 4u);
  std::vector<Task> ready;
  source->start(0, ready);
  std::vector<std::uint32_t> send_ids, receive_ids;
  for (std::uint32_t id = 0; id < 4; ++id) {
    (test::task_of(*source, 0, id).kind() == TaskKind::send ? send_ids : receive_ids).push_back(id);
  }
  EXPECT_THAT(ids(ready),
              ElementsAre(receive_ids[0] < send_ids[0] ? receive_ids[0] : send_ids[0],
                          receive_ids[0] < send_ids[0] ? send_ids[0] : receive_ids[0], receive_ids[1]));
  ready.clear();
  source->complete(0, send_ids[0], ready);
  EXPECT_THAT(ready, IsEmpty());
  source->complete(0, receive_ids[0], ready);
  EXPECT_THAT(ids(ready), ElementsAre(send_ids[1]));
  ready.clear();
  source->complete(0, send_ids[1], ready);
  source->complete(0, receive_ids[1], ready);
  EXPECT_THAT(ready, IsEmpty());
  for (const auto& [from, to, tag, bytes, start] : sends(*source)) EXPECT_EQ(to, (from + 1) % 3);
  EXPECT_THAT(traffic_error("{kind: ring, rounds: 0}"), HasSubstr("rounds"));
  EXPECT_THAT(traffic_error("{kind: ring, rounds: 1000000}", 100), HasSubstr("messages"));
}

// Returns the load that a Poisson workload offers: the sends of all ranks.
double offered(const TaskSource& source) {
  double bytes = 0;
  for (const Message& message : sends(source)) bytes += static_cast<double>(std::get<3>(message));
  return bytes;
}

TEST(Poisson, OffersTheLoadInItsTime) {
  // Fixed sizes: the load differs from its mean by the number of flows only, here 16,000 +- 0.8 %.
  const auto source = source_of(
      "{kind: poisson, hosts: 16, rate: 100 Gbps, load: 0.5, duration: 16 ms, cdf: [[100 KB, 100]]}", 16);
  const double expected = 16 * 0.5 * 100e9 / 8 * 16e-3;
  EXPECT_NEAR(offered(*source) / expected, 1, 5 * 0.008);
  std::map<std::uint32_t, int> to;
  for (const Message& message : sends(*source)) {
    EXPECT_NE(std::get<0>(message), std::get<1>(message));
    EXPECT_LT(std::get<4>(message), 16 * kMillisecond);
    EXPECT_EQ(std::get<3>(message), 100 * kKilobyte);
    ++to[std::get<1>(message)];
  }
  ASSERT_EQ(to.size(), 16u);
  for (const auto& [rank, count] : to) EXPECT_NEAR(count, 1000, 5 * 32) << rank;
  expect_independent_messages(*source);
}

TEST(Poisson, GapsAreExponential) {
  const auto source = source_of(
      "{kind: poisson, hosts: 2, rate: 100 Gbps, load: 0.5, duration: 100 ms, cdf: [[10 KB, 100]]}", 2);
  std::vector<Time> starts;
  for (const Message& message : sends(*source)) {
    if (std::get<0>(message) == 0) starts.push_back(std::get<4>(message));
  }
  const double mean = 1.6e6;  // ps: 10 KB at 50 Gb/s
  double sum = 0, squares = 0, longer = 0;
  for (std::size_t i = 1; i < starts.size(); ++i) {
    const auto gap = static_cast<double>(starts[i] - starts[i - 1]);
    sum += gap;
    squares += gap * gap;
    longer += gap > 2 * mean ? 1 : 0;
  }
  const auto count = static_cast<double>(starts.size() - 1);  // some 62,500
  EXPECT_NEAR(count, 62'500, 5 * 250);
  EXPECT_NEAR(sum / count / mean, 1, 0.02);
  EXPECT_NEAR(squares / count / (2 * mean * mean), 1, 0.05);
  EXPECT_NEAR(longer / count, 0.1353, 0.01);  // e^-2
}

TEST(Poisson, IsAMatterOfTheSeedAlone) {
  const std::string text =
      "{kind: poisson, rate: 1 Gbps, load: 1, duration: 10 ms, cdf: [[1 KB, 0], [9 KB, 100]]";
  WorkloadContext first(4), second(4);
  second.seed = 2;
  const auto kind = Registry<WorkloadKind>::instance().create(parse_config(text + "}", "test.yaml"), "");
  EXPECT_EQ(sends(*kind->tasks(first)), sends(*kind->tasks(first)));
  EXPECT_NE(sends(*kind->tasks(first)), sends(*kind->tasks(second)));
  const auto fixed =
      Registry<WorkloadKind>::instance().create(parse_config(text + ", seed: 2}", "test.yaml"), "");
  EXPECT_EQ(sends(*fixed->tasks(first)), sends(*kind->tasks(second)));
}

TEST(Poisson, RefusesNonsense) {
  const auto with = [](const std::string& more) {
    return traffic_error("{kind: poisson, rate: 1 Gbps, duration: 1 ms, " + more + "}");
  };
  EXPECT_THAT(traffic_error("kind: poisson"), HasSubstr("'rate' is missing"));
  EXPECT_THAT(traffic_error("{kind: poisson, rate: 1 Gbps}"), HasSubstr("'duration' is missing"));
  EXPECT_THAT(with("load: 1"), HasSubstr("'cdf' is missing"));
  EXPECT_THAT(with("cdf: []"), AllOf(HasSubstr("3 test.yaml"), HasSubstr("at least one point")));
  EXPECT_THAT(with("cdf: [5]"), HasSubstr("pair"));
  EXPECT_THAT(with("cdf: [[1 KB, 0], [2 KB, 90]]"), HasSubstr("must be 100"));
  EXPECT_THAT(with("cdf: [[2 KB, 0], [1 KB, 100]]"), HasSubstr("must rise"));
  EXPECT_THAT(with("cdf: [[1 KB, 50], [2 KB, 40], [3 KB, 100]]"), HasSubstr("must not fall"));
  EXPECT_THAT(with("cdf: [[0, 100]]"), HasSubstr("mean size is 0"));
  EXPECT_THAT(with("cdf: [[1 KB, 101]]"), HasSubstr("0 to 100"));
  EXPECT_THAT(with("cdf: [[1 ms, 100]]"), HasSubstr("unit of a time"));
  EXPECT_THAT(with("cdf: nowhere.cdf"), HasSubstr("no file 'nowhere.cdf'"));
  EXPECT_THAT(with("load: 0, cdf: [[1 KB, 100]]"), HasSubstr("load"));
  EXPECT_THAT(with("cdf: [[100 GB, 100]]"), HasSubstr("no flow starts within"));
  EXPECT_THAT(traffic_error("{kind: poisson, rate: 1 Gbps, duration: 1000 s, cdf: [[1 KB, 100]]}"),
              HasSubstr("flows; at most"));
}

// ---- Incasts

// Senders and receiver by start time.
using ByIncast = std::map<Time, std::pair<std::set<std::uint32_t>, std::set<std::uint32_t>>>;
ByIncast incasts_of(const TaskSource& source) {
  ByIncast result;
  for (const auto& [from, to, tag, bytes, start] : sends(source)) {
    result[start].first.insert(from);
    result[start].second.insert(to);
  }
  return result;
}

// HPCC's incasts have a fixed number of different senders and one receiver, which does not send. Every rank
// occurs equally often.
TEST(Incasts, HaveOneReceiverAndDifferentSenders) {
  const auto source = source_of(
      "{kind: incasts, senders: 12, bytes: 20 KB, interval: 10 us, arrivals: periodic, duration: 20 ms}", 16);
  const ByIncast incasts = incasts_of(*source);
  EXPECT_EQ(incasts.size(), 1999u);  // at 10 us, 20 us, ... before 20 ms
  std::map<std::uint32_t, int> received, sent;
  Time start = 0;
  for (const auto& [time, ends] : incasts) {
    EXPECT_EQ(time, start += 10 * kMicrosecond);
    ASSERT_EQ(ends.first.size(), 12u);
    ASSERT_EQ(ends.second.size(), 1u);
    EXPECT_FALSE(ends.first.contains(*ends.second.begin()));
    ++received[*ends.second.begin()];
    for (const std::uint32_t sender : ends.first) ++sent[sender];
  }
  ASSERT_EQ(received.size(), 16u);
  // 1999 / 16 and 1999 x 12 / 16, within 5 standard deviations.
  for (const auto& [rank, count] : received) EXPECT_NEAR(count, 125, 5 * 11) << rank;
  for (const auto& [rank, count] : sent) EXPECT_NEAR(count, 1499, 5 * 20) << rank;
  // Flows of an incast share its name.
  std::vector<Task> ready;
  source->start(*incasts.begin()->second.first.begin(), ready);
  ASSERT_FALSE(ready.empty());
  EXPECT_EQ(source->name(ready.front().name), "incast 0");
}

// A load is a part of what all hosts' links carry.
TEST(Incasts, OfferTheirLoad) {
  const auto source = source_of(
      "{kind: incasts, senders: 8, bytes: 100 KB, rate: 100 Gbps, load: 2 %, duration: 400 ms}", 32);
  const double expected = 32 * 100e9 / 8 * 0.02 * 0.4;  // of 4,000 incasts +- 1.6 %
  EXPECT_NEAR(offered(*source) / expected, 1, 5 * 0.016);
  double squares = 0, mean = 0;
  Time before = 0;
  const ByIncast incasts = incasts_of(*source);
  for (const auto& [time, ends] : incasts) {
    const auto gap = static_cast<double>(time - before);
    mean += gap / static_cast<double>(incasts.size());
    squares += gap * gap / static_cast<double>(incasts.size());
    before = time;
  }
  EXPECT_NEAR(squares / (2 * mean * mean), 1, 0.15);  // exponential
}

// The n-th incast has the same members whatever the load and the interval; another seed has others.
TEST(Incasts, HaveStreamsOfTheirOwn) {
  const auto members = [](const std::string& more, std::uint64_t seed = 1) {
    WorkloadContext context(9);
    context.seed = seed;
    const auto kind = Registry<WorkloadKind>::instance().create(
        parse_config("{kind: incasts, senders: 3, duration: 1 ms, " + more + "}", "test.yaml"), "");
    std::vector<std::pair<std::set<std::uint32_t>, std::set<std::uint32_t>>> result;
    for (const auto& [time, ends] : incasts_of(*kind->tasks(context))) result.push_back(ends);
    result.resize(20);
    return result;
  };
  EXPECT_EQ(members("interval: 20 us"), members("interval: 30 us, arrivals: periodic"));
  EXPECT_EQ(members("interval: 20 us"), members("load: 0.5, rate: 200 Gbps, bytes: 80 KB"));
  EXPECT_NE(members("interval: 20 us"), members("interval: 20 us", 2));
  EXPECT_EQ(members("interval: 20 us, seed: 2"), members("interval: 20 us", 2));
}

TEST(Incasts, RefuseNonsense) {
  const auto with = [](const std::string& more) {
    return traffic_error("{kind: incasts, duration: 1 ms, " + more + "}", 8);
  };
  EXPECT_THAT(traffic_error("{kind: incasts, senders: 2}"), HasSubstr("'duration' is missing"));
  EXPECT_THAT(with("interval: 1 us"), HasSubstr("'senders' is missing"));
  EXPECT_THAT(with("senders: 2"), HasSubstr("the frequency is missing: give 'interval'"));
  EXPECT_THAT(with("senders: 2, load: 0.1"), HasSubstr("the frequency is missing"));
  EXPECT_THAT(with("senders: 2, interval: 1 us, load: 0.1"), HasSubstr("'interval' already sets how often"));
  EXPECT_THAT(with("senders: 2, interval: 1 us, rate: 1 Gbps"),
              HasSubstr("'interval' already sets how often"));
  EXPECT_THAT(with("senders: 8, interval: 1 us"), HasSubstr("senders 8, of 8 ranks; allowed: 1 to 7"));
  EXPECT_THAT(with("senders: 0, interval: 1 us"), HasSubstr("senders"));
  EXPECT_THAT(with("senders: 7, interval: 1 ns, arrivals: often"), HasSubstr("arrivals"));
  EXPECT_THAT(with("senders: 7, interval: 1 ps"), HasSubstr("flows; at most"));
  EXPECT_THAT(with("senders: 7, interval: 1 s"), HasSubstr("no incast starts within 1 ms"));
}

TEST(Collective, RunsAtEveryRankAsOftenAsTold) {
  const auto source =
      source_of("{kind: collective, collective: broadcast, bytes: 1 MiB, ranks: 4, repeat: 3, root: 2}", 8);
  EXPECT_EQ(source->ranks(), 4u);
  EXPECT_EQ(source->iterations(), 3u);
  EXPECT_EQ(source->job_name(), "broadcast");
  EXPECT_THAT(source->group(0), ElementsAre(0, 1, 2, 3));
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    ASSERT_EQ(test::task_count(*source, rank), 3u);
    std::vector<Task> ready;
    source->start(rank, ready);
    for (std::uint32_t i = 0; i < 3; ++i) {
      ASSERT_THAT(ids(ready), ElementsAre(i));
      EXPECT_EQ(ready[0].kind(), TaskKind::collective);
      EXPECT_EQ(ready[0].collective().collective, CollectiveKind::broadcast);
      EXPECT_EQ(ready[0].bytes(), kMebibyte);
      EXPECT_EQ(ready[0].collective().root, 2u);
      EXPECT_EQ(ready[0].iteration, i);
      EXPECT_FALSE(is_raw(ready[0]));
      ready.clear();
      source->complete(rank, i, ready);
    }
    EXPECT_THAT(ready, IsEmpty());
  }
}

TEST(Collective, GoesThroughSizes) {
  const auto source = source_of("{kind: collective, sizes: {from: 8 B, to: 1 KiB, factor: 4}, repeat: 2}", 8);
  EXPECT_EQ(source->iterations(), 8u);
  for (std::uint32_t i = 0; i < 8; ++i) {
    EXPECT_EQ(test::task_of(*source, 3, i).bytes(), Bytes{8} << (2 * (i / 2)));
    EXPECT_EQ(test::task_of(*source, 3, i).iteration, i);
    EXPECT_EQ(test::task_of(*source, 3, i).collective().series, 1 + i / 2);
    EXPECT_EQ(test::task_of(*source, 3, i).collective().pause, i > 0 && i % 2 == 0 ? 100 * kMicrosecond : 0);
  }
  EXPECT_EQ(source->least_pause(), 100 * kMicrosecond);
}

TEST(Collective, IsAnAllReduceOfTheClusterUnlessTold) {
  const auto source = source_of("kind: collective", 8);
  EXPECT_EQ(source->ranks(), 8u);
  EXPECT_EQ(source->least_pause(), 0);
  EXPECT_EQ(test::task_of(*source, 7, 0).collective().collective, CollectiveKind::all_reduce);
  EXPECT_EQ(source->names()[test::task_of(*source, 7, 0).name], "all_reduce");
}

TEST(Collective, RefusesNonsense) {
  EXPECT_THAT(traffic_error("{kind: collective, collective: allreduce}"), HasSubstr("all_reduce"));
  EXPECT_THAT(traffic_error("{kind: collective, root: 1}"),
              HasSubstr("all_reduce has no root; these have: broadcast: the rank that has the data; reduce"));
  EXPECT_THAT(traffic_error("{kind: collective, collective: broadcast, root: 8}"), HasSubstr("0 to 7"));
  EXPECT_THAT(traffic_error("{kind: collective, repeat: 0}"), HasSubstr("repeat"));
  EXPECT_THAT(traffic_error("{kind: collective, ranks: 16}"), HasSubstr("8 GPUs"));
  EXPECT_THAT(traffic_error("{kind: collective, bytes: 1 kB, sizes: {from: 8 B, to: 1 kB}}"),
              HasSubstr("'sizes' and 'bytes': only one of them is allowed"));
  EXPECT_THAT(traffic_error("{kind: collective, sizes: {to: 1 kB}}"), HasSubstr("'from' is missing"));
  EXPECT_THAT(traffic_error("{kind: collective, sizes: {from: 1 kB, to: 8 B}}"),
              HasSubstr("to 8 B is less than from 1 KB"));
  EXPECT_THAT(traffic_error("{kind: collective, sizes: {from: 8 B, to: 1 kB, factor: 1}}"),
              HasSubstr("factor"));
  EXPECT_THAT(traffic_error("{kind: collective, sizes: {from: 8 B, to: 1 kB, pause: 0}}"),
              HasSubstr("pause"));
}

// ---- phases

const char* const kPhases =
    "{kind: phases, ranks: 5, iterations: 2, phases: [{collective: all_reduce, bytes: 8 B}, {circuits: "
    "ring}, "
    "{compute: 5 ns, groups: [[1, 4]]}, {collective: broadcast, root: 1, groups: [[0, 3], [2, 1]], name: "
    "halves}, "
    "{circuits: pairs, groups: [[4]]}]}";

TEST(Phases, FollowEachOtherAtEachRank) {
  const auto source = source_of(kPhases, 8);
  EXPECT_EQ(source->ranks(), 5u);
  EXPECT_EQ(source->iterations(), 2u);
  EXPECT_EQ(source->total_tasks(), 2u * (2 * 5 + 2 + 4 + 1));
  ASSERT_EQ(source->circuits().size(), 2u);
  EXPECT_EQ(source->circuits()[1].name, "pairs");
  EXPECT_GT(source->circuits()[1].place.column, 0);
  for (std::uint32_t rank = 0; rank < 5; ++rank) {
    std::vector<Task> ready;
    source->start(rank, ready);
    for (const Task& task : test::tasks_of(*source, rank)) {
      EXPECT_THAT(ids(ready), ElementsAre(task.id)) << "nothing beside it";
      ready.clear();
      source->complete(rank, task.id, ready);
    }
    EXPECT_THAT(ready, IsEmpty());
  }
  const std::vector<Task> tasks = test::tasks_of(*source, 1);
  ASSERT_EQ(tasks.size(), 8u);
  EXPECT_EQ(tasks[2].kind(), TaskKind::compute);
  EXPECT_EQ(source->works()[tasks[2].work()].kernels[0].duration, 5 * kNanosecond);
  EXPECT_EQ(source->group(tasks[3].group()), (std::vector<RankId>{2, 1}));
  EXPECT_EQ(tasks[3].collective().root, 1u);
  EXPECT_EQ(source->name(tasks[3].name), "halves");
}

TEST(Phases, CanBeCompiledWhereTheyHaveRanks) {
  const auto kind = Registry<WorkloadKind>::instance().create(parse_config(kPhases, "test.yaml"), "");
  EXPECT_TRUE(kind->compile().starts_with("\x0a\x0fnetsim-workload"));
  const auto open = Registry<WorkloadKind>::instance().create(
      parse_config("{kind: phases, phases: [{compute: 1 us}]}", "test.yaml"), "");
  EXPECT_THROW(open->compile(), ConfigError);
}

// Collectives of one call in the same group know each other's traffic; an all-reduce counts twice its bytes.
TEST(Phases, CollectivesOfACallShareItsKernel) {
  const auto source = source_of(
      "{kind: phases, ranks: 3, phases: [{together: [{collective: all_reduce, bytes: 8 B}, {collective: "
      "all_gather, bytes: 6 B, groups: [[1, 2]]}, {collective: all_gather, bytes: 30 B}]}, {collective: "
      "all_reduce, bytes: 8 B}]}",
      8);
  const std::vector<Task> tasks = test::tasks_of(*source, 1);
  ASSERT_EQ(tasks.size(), 4U);
  EXPECT_EQ(tasks[0].collective().grouped, (GroupedTraffic{0, 46}));
  EXPECT_EQ(tasks[1].collective().grouped, GroupedTraffic());
  EXPECT_EQ(tasks[2].collective().grouped, (GroupedTraffic{16, 46}));
  EXPECT_EQ(tasks[3].collective().grouped, GroupedTraffic());
}

// Ranks 1 and 2 are in both calls of the second phase, and in one call only for rank 0.
TEST(Phases, CallCollectivesTogether) {
  const auto source = source_of(
      "{kind: phases, ranks: 3, iterations: 2, phases: [{compute: 1 ns}, {together: [{collective: "
      "all_reduce, "
      "bytes: 8 B}, {collective: all_gather, bytes: 6 B, groups: [[1, 2]]}]}, {compute: 1 ns}]}",
      8);
  for (const std::uint32_t rank : {0U, 1U}) {
    const std::vector<Task> tasks = test::tasks_of(*source, rank);
    const std::uint32_t calls = rank == 0 ? 1 : 2;
    ASSERT_EQ(tasks.size(), 2 * (2 + calls));
    std::vector<Task> ready;
    source->start(rank, ready);
    for (std::uint32_t iteration = 0; iteration < 2; ++iteration) {
      EXPECT_EQ(ready.size(), 1U);
      const std::uint32_t compute = ready[0].id;
      ready.clear();
      source->complete(rank, compute, ready);
      ASSERT_EQ(ready.size(), calls);
      for (const Task& task : ready) {
        EXPECT_EQ(task.place, iteration);
        EXPECT_EQ(task.together, calls);
      }
      const std::vector<Task> call = std::exchange(ready, {});
      for (const Task& task : call) {
        EXPECT_THAT(ready, IsEmpty()) << "the next waits for the whole call";
        source->complete(rank, task.id, ready);
      }
      ASSERT_EQ(ready.size(), 1U);
      const std::uint32_t last = ready[0].id;
      ready.clear();
      source->complete(rank, last, ready);
    }
    EXPECT_THAT(ready, IsEmpty());
  }
}

TEST(Phases, HaveCountsAndBarriers) {
  const auto source = source_of(
      "{kind: phases, ranks: 3, phases: [{collective: all_to_all_v, counts: [[9, 1, 2], [3, 9, 4], [0, 1 KB, "
      "9]]}, {collective: barrier}, {collective: all_to_all_v, counts: [5, 0, 7], groups: [[2, 1, 0]]}]}",
      8);
  const std::vector<Task> tasks = test::tasks_of(*source, 1);
  ASSERT_EQ(tasks.size(), 3U);
  ASSERT_NE(tasks[0].collective().counts, nullptr);
  EXPECT_EQ(tasks[0].collective().counts->of(2, 1), 1000);
  EXPECT_EQ(tasks[0].bytes(), 1001) << "what rank 1 gets";
  EXPECT_EQ(tasks[1].collective().collective, CollectiveKind::barrier);
  EXPECT_EQ(tasks[1].bytes(), kBarrierBytes);
  EXPECT_EQ(tasks[2].collective().counts->of(0, 2), 7);
  EXPECT_EQ(tasks[2].collective().counts->of(1, 0), 5);
}

TEST(Phases, ReadCountsFromAFile) {
  const std::string path = ::testing::TempDir() + "netsim_counts.csv";
  const auto read = [&](const std::string& text) {
    std::ofstream(path) << text;
    return traffic_error("kind: phases\nphases: [{collective: all_to_all_v, counts: " + path + "}]\n", 2);
  };
  std::ofstream(path) << "# from row to column\n0,2 KB\n3, 4\n";
  const auto source =
      source_of("{kind: phases, ranks: 2, phases: [{collective: all_to_all_v, counts: " + path + "}]}", 8);
  const std::vector<Task> tasks = test::tasks_of(*source, 0);
  EXPECT_EQ(tasks[0].collective().counts->of(0, 1), 2000);
  EXPECT_EQ(tasks[0].collective().counts->of(1, 0), 3);
  EXPECT_THAT(read("1,2\n3\n"), HasSubstr("netsim_counts.csv:2:1: 1 counts for 2 ranks"));
  EXPECT_THAT(read("1,2\n"), HasSubstr("1 rows for 2 ranks"));
  EXPECT_THAT(read("1,2\n3,4\n5,6\n"),
              HasSubstr("netsim_counts.csv:3:1: a row more than there are ranks, 2"));
  EXPECT_THAT(read("1,2\n3,x\n"), HasSubstr("netsim_counts.csv:2:3"));
}

// nccl-tests' sendrecv, of each size in turn.
TEST(CollectiveBenchmark, SendsToTheNextRank) {
  const auto source = source_of(
      "kind: collective\ncollective: all_to_all_v\ncounts: next\nranks: 3\nrepeat: 2\nsizes: {from: 10 B, "
      "to: 40 B, factor: 4}\n",
      8);
  const std::vector<Task> tasks = test::tasks_of(*source, 2);
  ASSERT_EQ(tasks.size(), 4U);
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const Bytes size = i < 2 ? 10 : 40;
    EXPECT_EQ(tasks[i].bytes(), size);
    EXPECT_EQ(*tasks[i].collective().counts, BlockCounts(3, {0, size, 0, 0, 0, size, size, 0, 0}));
  }
  const auto two = source_of(
      "kind: collective\ncollective: all_to_all_v\ncounts: next\nalgorithms: [direct, pairwise]\nsizes: "
      "{from: "
      "10 B, to: 40 B, factor: 4}\n",
      2);
  std::vector<std::pair<Bytes, Bytes>> played;
  for (const Task& task : test::tasks_of(*two, 0))
    played.emplace_back(task.bytes(), task.collective().counts->of(1, 0));
  EXPECT_THAT(played, ElementsAre(std::pair(10, 10), std::pair(40, 40), std::pair(10, 10), std::pair(40, 40)))
      << "all sizes by each algorithm";
  const auto one = source_of("kind: collective\ncollective: all_to_all_v\ncounts: next\nbytes: 7 B\n", 2);
  EXPECT_EQ(*test::tasks_of(*one, 0)[0].collective().counts, BlockCounts(2, {0, 7, 7, 0}));
  const auto phase =
      source_of("kind: phases\nphases: [{collective: all_to_all_v, counts: next, bytes: 5 B}]\n", 2);
  EXPECT_EQ(*test::tasks_of(*phase, 1)[0].collective().counts, BlockCounts(2, {0, 5, 5, 0}));
  EXPECT_THAT(traffic_error("kind: collective\ncollective: all_to_all_v\ncounts: next\n", 1),
              HasSubstr("needs at least 2 ranks"));
  EXPECT_THAT(traffic_error("kind: collective\ncollective: all_reduce\ncounts: next\n", 4),
              HasSubstr("only all_to_all_v has counts"));
  EXPECT_THAT(traffic_error(
                  "kind: collective\ncollective: all_to_all_v\ncounts: next\nbytes: 1 B\nsizes: {from: 1 B, "
                  "to: 2 B}\n",
                  4),
              HasSubstr("only one of them is allowed"));
  EXPECT_THAT(
      traffic_error("kind: collective\ncollective: all_to_all_v\ncounts: next\nsizes: {from: 1 B, to: "
                    "1000 GB}\n",
                    4096),
      HasSubstr("counts of 4096 ranks for 40 sizes are more than the 134217728 that are allowed"));
}

// The routing that the section says.
TEST(Phases, DispatchTokens) {
  const std::string yaml =
      "kind: phases\nranks: 4\nphases: [{collective: dispatch, tokens: {per_rank: 9, bytes: 5 B, "
      "ranks_per_host: 2, experts: {count: 8, top_k: 2, groups: 2}, router: zipf}}]\n";
  const auto source = source_of(yaml, 8);
  const std::vector<Task> tasks = test::tasks_of(*source, 3);
  ASSERT_EQ(tasks.size(), 1U);
  EXPECT_EQ(tasks[0].collective().collective, CollectiveKind::dispatch);
  const BlockCounts& counts = *tasks[0].collective().counts;
  EXPECT_EQ(counts.busiest(), 9 * 5);  // each token goes to one host
  EXPECT_EQ(tasks[0].bytes(), counts.busiest());
  for (std::uint32_t rank = 0; rank < 4; ++rank)
    EXPECT_EQ(counts.to_host(rank, 0) + counts.to_host(rank, 1), 45);
}

TEST(Phases, RefuseWrongCounts) {
  const auto error = [](const std::string& phase) {
    return traffic_error("kind: phases\nphases: [" + phase + "]\n", 3);
  };
  EXPECT_THAT(
      error("{collective: all_to_all_v}"),
      HasSubstr(
          "'counts' is missing, for an all_to_all_v: the bytes that each rank sends to each, as a CSV file"));
  EXPECT_THAT(error("{collective: all_to_all_v, counts: [1, 2, 3], bytes: 1 MB}"),
              HasSubstr("all_to_all_v has its bytes from 'counts'"));
  EXPECT_THAT(error("{collective: all_to_all, counts: [1, 2, 3]}"),
              HasSubstr("only all_to_all_v has counts"));
  EXPECT_THAT(error("{collective: barrier, bytes: 4 B}"), HasSubstr("barrier has no bytes"));
  EXPECT_THAT(error("{collective: combine, bytes: 4 B}"), HasSubstr("combine has its bytes from 'tokens'"));
  EXPECT_THAT(error("{collective: combine, counts: [1, 2, 3]}"), HasSubstr("only all_to_all_v has counts"));
  EXPECT_THAT(error("{collective: all_to_all, tokens: {per_rank: 6}}"),
              HasSubstr("only dispatch and combine have tokens"));
  EXPECT_THAT(error("{collective: dispatch, tokens: {experts: {count: 8}}}"),
              HasSubstr("phases.0.tokens.experts.count: 8 experts cannot be divided evenly among 3 ranks"));
  EXPECT_THAT(error("{collective: dispatch, tokens: {per_rank: 0}}"), HasSubstr("per_rank"));
  EXPECT_THAT(error("{collective: all_to_all_v, counts: [1, 2]}"), HasSubstr("2 counts for 3 ranks"));
  EXPECT_THAT(error("{collective: all_to_all_v, counts: [[1, 2, 3], [1, 2, 3]]}"),
              HasSubstr("2 rows for 3 ranks"));
  EXPECT_THAT(error("{collective: all_to_all_v, counts: [[1, 2, 3], 5, [1, 2, 3]]}"),
              HasSubstr("a list of sizes is expected"));
  EXPECT_THAT(error("{collective: all_to_all_v, counts: [[5, 0, 0], [0, 5, 0], [0, 0, 5]]}"),
              HasSubstr("no rank sends anything to another"));
  EXPECT_THAT(error("{collective: all_to_all_v, counts: [1, -2, 3]}"), HasSubstr("test.yaml:2"));
  EXPECT_THAT(error("{collective: all_to_all_v, counts: nowhere.csv}"), HasSubstr("nowhere.csv"));
  EXPECT_THAT(error("{together: [{compute: 1 us}]}"), HasSubstr("only collectives can share one call"));
  EXPECT_THAT(error("{together: []}"), HasSubstr("a sequence of collectives is expected"));
}

TEST(Phases, RefuseNonsense) {
  const auto error = [](const std::string& phases) {
    return traffic_error("kind: phases\nphases: " + phases + "\n", 4);
  };
  EXPECT_THAT(traffic_error("kind: phases"), HasSubstr("'phases' is missing"));
  EXPECT_THAT(error("[]"), HasSubstr("a sequence of {collective, bytes}"));
  EXPECT_THAT(error("[{bytes: 1 MB}]"), HasSubstr("one of: collective, compute, circuits"));
  EXPECT_THAT(error("[{compute: 1 us, circuits: a}]"), HasSubstr("one of: collective, compute, circuits"));
  EXPECT_THAT(error("[{compute: 1 us, bytes: 1 MB}]"), HasSubstr("only a collective has 'bytes'"));
  EXPECT_THAT(error("[{collective: all_reduce, root: 1}]"), HasSubstr("all_reduce has no root"));
  EXPECT_THAT(error("[{collective: broadcast, root: 4}]"), HasSubstr("root 4; allowed: 0 to 3"));
  EXPECT_THAT(error("[{collective: reduce, root: 2, groups: [[0, 1]]}]"),
              HasSubstr("root 2; allowed: 0 to 1"));
  EXPECT_THAT(error("[{collective: all_reduce, groups: [[0, 4]]}]"), HasSubstr("rank 4; allowed: 0 to 3"));
  EXPECT_THAT(error("[{collective: all_reduce, groups: [[0, 1], [1, 2]]}]"),
              HasSubstr("rank 1 is in this phase twice"));
  EXPECT_THAT(error("[{collective: all_reduce, groups: [[0], [1, 2]]}]"), HasSubstr("at least 2 ranks"));
  EXPECT_THAT(error("[{compute: 1 us, groups: [3]}]"), HasSubstr("a list of ranks is expected"));
  EXPECT_THAT(error("[{compute: 1 us, groups: 3}]"), HasSubstr("a list of groups is expected"));
  EXPECT_THAT(error("[{compute: 1 us, groups: [[0, 1, 3]]}]"),
              HasSubstr("rank 2 is in no group of any phase"));
  EXPECT_THAT(error("[{collectiv: all_reduce}]"), HasSubstr("did you mean 'collective'?"));
}

TEST(SimpleSource, KeepsTheOrderOfEachStreamAndNoOther) {
  SimpleSource source("test", 2);
  Task compute, gather;
  compute.stream = Stream::compute;
  gather.body = CollectiveTask();
  gather.stream = Stream::tp;
  source.add_task(1, compute);
  source.add_task(1, gather);
  source.add_message(1, 0, 0, 5, 0, source.add_name("message"));
  source.add_task(1, compute);
  source.add_task(1, gather);
  EXPECT_EQ(test::task_count(source, 0), 1u);
  std::vector<Task> ready;
  source.start(1, ready);
  EXPECT_THAT(ids(ready), ElementsAre(0, 1, 2));
  ready.clear();
  source.complete(1, 1, ready);
  EXPECT_THAT(ids(ready), ElementsAre(4));
  ready.clear();
  source.complete(1, 2, ready);
  EXPECT_THAT(ready, IsEmpty());
  source.complete(1, 0, ready);
  EXPECT_THAT(ids(ready), ElementsAre(3));
}

TEST(SimpleSource, GivesTheSameNameTheSameIndex) {
  SimpleSource source("test", 1);
  EXPECT_EQ(source.add_name("a"), 0u);
  EXPECT_EQ(source.add_name("b"), 1u);
  EXPECT_EQ(source.add_name("a"), 0u);
  EXPECT_THAT(source.names(), ElementsAre("a", "b"));
}

}  // namespace
}  // namespace netsim::traffic_test
