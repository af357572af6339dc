// Does FlowTable apply a flow's treatment to the messages under way and to those to come?
#include "sim/scheduling/flow/flow_table.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace netsim::flow_table_test {
namespace {

// Endpoint that records what it is told about each message, by slot of the handle.
class RecordingEndpoint final : public Endpoint {
 public:
  struct Sent {
    SendRequest request;
    bool held = false;
    BitRate rate = 0;
    Bytes left = 0;
  };
  void set_listener(MessageListener*) override {}
  MessageHandle send(const SendRequest& request) override {
    sent.push_back({request, false, request.message.traits.rate_limit, request.message.bytes});
    return {request.message.source, static_cast<std::uint32_t>(sent.size() - 1), 1};
  }
  bool hold(const MessageHandle& message) override { return sent[message.slot].held = true; }
  bool release(const MessageHandle& message) override {
    sent[message.slot].held = false;
    return true;
  }
  bool set_priority(const MessageHandle& message, std::uint8_t priority) override {
    sent[message.slot].request.message.traits.priority = priority;
    return true;
  }
  bool set_rate(const MessageHandle& message, BitRate rate) override {
    sent[message.slot].rate = rate;
    return true;
  }
  bool set_path(const MessageHandle& message, std::uint32_t hint) override {
    sent[message.slot].request.message.traits.path_hint = hint;
    return true;
  }
  Bytes left(const MessageHandle& message) const override { return sent[message.slot].left; }
  Bytes cancel(const MessageHandle& message) override { return sent[message.slot].left; }
  void tell_delays() override {}
  Reach reach(GpuId, GpuId) const override { return Reach::scale_out; }
  std::uint32_t gpu_count() const override { return 4; }

  std::vector<Sent> sent;
};

class Central final : public FlowScheduler {
 public:
  explicit Central(bool central, bool held) : central_(central), held_(held) {}
  FlowNeeds needs() const override { return {.central = central_}; }
  FlowTreatment admit(const FlowView& flow) const override {
    FlowTreatment treatment = flow;
    treatment.held = held_;
    treatment.priority = 3;
    return treatment;
  }

 private:
  bool central_, held_;
};

SendRequest request(std::uint64_t communication, std::uint32_t note = 0, BitRate limit = 0) {
  SendRequest request;
  request.message.source = 0;
  request.message.destination = 1;
  request.message.bytes = 1000;
  request.message.communication = communication;
  request.message.traits.rate_limit = limit;
  request.note.channel = note;
  return request;
}

TEST(FlowTable, SharesTheRateAmongQueuePairs) {
  RecordingEndpoint network;
  const Central scheduler(true, false);
  FlowTable table(network, scheduler, kMillisecond);
  table.send(request(7), 0, 0);
  FlowEntry& flow = table.entry(0);
  EXPECT_TRUE(table.set_rate(flow, 900));
  EXPECT_FALSE(table.set_rate(flow, 900));
  EXPECT_EQ(network.sent[0].rate, 900);
  table.send(request(7, 0, 100), 1, 0);  // a second queue pair, with a limit of its own
  EXPECT_EQ(network.sent[0].rate, 450);
  EXPECT_EQ(network.sent[1].rate, 100);
  table.send(request(7), 1, 0);
  EXPECT_EQ(network.sent[2].rate, 450);
  table.end(network.sent[0].request, 5);
  EXPECT_EQ(network.sent[2].rate, 900);
  EXPECT_EQ(network.sent[1].rate, 100);
  EXPECT_EQ(table.entries().size(), 1U);
}

TEST(FlowTable, HoldsWhatComesToAHeldFlow) {
  RecordingEndpoint network;
  const Central scheduler(true, true);
  FlowTable table(network, scheduler, kMillisecond);
  table.send(request(7), 0, 10);
  EXPECT_TRUE(network.sent[0].held);
  EXPECT_EQ(network.sent[0].request.message.traits.priority, 3);
  EXPECT_TRUE(table.hold(table.entry(0), false, 40));
  EXPECT_FALSE(network.sent[0].held);
  table.send(request(7), 0, 50);
  EXPECT_FALSE(network.sent[1].held);
  EXPECT_TRUE(table.hold(table.entry(0), true, 60));
  EXPECT_TRUE(network.sent[1].held);
  const FlowSchedulingSummary summary = table.summary(100);
  EXPECT_EQ(summary.flows, 1U);
  EXPECT_EQ(summary.held, 2U);
  EXPECT_EQ(summary.held_time, 30 + 40);
}

TEST(FlowTable, KeepsTheNotesOfTheSender) {
  RecordingEndpoint network;
  const Central scheduler(true, false);
  FlowTable table(network, scheduler, kMillisecond);
  table.send(request(7, 11), 0, 0);
  table.send(request(8, 12), 0, 0);
  EXPECT_EQ(table.note_of(network.sent[0].request).channel, 11U);
  EXPECT_EQ(table.note_of(network.sent[1].request).channel, 12U);
  network.sent[0].left = 400;
  table.count_left(table.entry(0));
  EXPECT_EQ(table.entry(0).view.left, 400);
  EXPECT_EQ(table.entry(0).view.attained(), 600);
}

TEST(FlowTable, TellsWhatHappened) {
  RecordingEndpoint network;
  const Central scheduler(true, false);
  FlowTable table(network, scheduler, kMillisecond);
  table.send(request(7), 0, 0);
  EXPECT_TRUE(table.take_news().began_or_ended);
  table.entry(0).listed = true;
  table.send(request(7), 0, 0);
  EXPECT_TRUE(table.news().added);
  EXPECT_FALSE(table.take_news().began_or_ended);
  table.end(network.sent[0].request, 5);
  EXPECT_FALSE(table.take_news().began_or_ended);
  table.end(network.sent[1].request, 6);
  EXPECT_TRUE(table.take_news().began_or_ended);
}

// A flow that hosts decide about is remembered for a time, and then begins anew.
TEST(FlowTable, ForgetsAFlowThatIsOver) {
  RecordingEndpoint network;
  const Central scheduler(false, false);
  FlowTable table(network, scheduler, 100);
  table.send(request(7), 0, 0);
  table.end(network.sent[0].request, 10);
  table.send(request(7), 0, 50);
  EXPECT_EQ(table.summary(50).flows, 1U);
  table.end(network.sent[1].request, 60);
  table.send(request(7), 0, 160);
  EXPECT_EQ(table.summary(160).flows, 2U);
  EXPECT_EQ(table.entry(0).view.released, 160);
}

TEST(FlowTable, KnowsTheDeadlineAndTheStream) {
  RecordingEndpoint network;
  const Central scheduler(true, false);
  FlowTable table(network, scheduler, kMillisecond);
  SendRequest urgent = request(7);
  urgent.message.traits.stream = Stream::ep;
  urgent.message.traits.set_deadline(500);
  table.send(urgent, 0, 10);
  table.send(request(8), 0, 10);
  EXPECT_EQ(table.entry(0).view.stream, Stream::ep);
  EXPECT_EQ(table.entry(0).view.deadline, 510);
  EXPECT_EQ(table.entry(1).view.deadline, kNever);
  urgent.message.traits.set_deadline(TransferTraits::kMostDeadline);
  urgent.message.communication = 9;
  table.send(urgent, 0, 10);
  EXPECT_EQ(table.entry(2).view.deadline, TransferTraits::kMostDeadline + 10);
}

// Scheduler that gives each flow class 2.
class OwnClass final : public FlowScheduler {
 public:
  FlowTreatment admit(const FlowView& flow) const override {
    FlowTreatment treatment = flow;
    treatment.traffic_class = 2;
    return treatment;
  }
};

// All members of an all-reduce tree must send in one class, so no scheduler changes it.
TEST(FlowTable, AFlowIntoATreeHasNoDestinationAndKeepsItsClass) {
  RecordingEndpoint network;
  const OwnClass scheduler;
  FlowTable table(network, scheduler, kMillisecond);
  SendRequest sum = request(7);
  sum.message.aggregation = 3;
  sum.message.aggregation_use = AggregationUse::allreduce;
  table.send(sum, 0, 0);
  sum.message.destination = 2;
  sum.message.aggregation = 4;
  table.send(sum, 1, 0);
  table.send(request(7), 0, 0);
  ASSERT_EQ(table.entries().size(), 2U) << "both groups of the communication are one flow";
  EXPECT_TRUE(table.entry(0).view.destination.is_none());
  EXPECT_EQ(table.entry(0).messages.size(), 2U);
  EXPECT_EQ(network.sent[1].request.message.traits.traffic_class, 0);
  EXPECT_EQ(network.sent[1].request.message.destination, 2U);
  EXPECT_EQ(network.sent[2].request.message.traits.traffic_class, 2);
}

TEST(FlowTable, DropsACancelledMessage) {
  RecordingEndpoint network;
  const Central scheduler(true, false);
  FlowTable table(network, scheduler, kMillisecond);
  const MessageHandle handle = table.send(request(7), 0, 0);
  EXPECT_EQ(table.cancel(handle, 5), 1000);
  EXPECT_TRUE(table.entry(0).messages.empty());
}

}  // namespace
}  // namespace netsim::flow_table_test
