// Does a switch's account of its buffers say the right thing at the right byte, without any packet moving?
#include "sim/network/switch_buffers.h"

#include <gtest/gtest.h>

#include <optional>

namespace netsim::switch_buffers_test {
namespace {

using Admission = SwitchBuffers::Admission;

constexpr PortId kFromHost = 0, kToSink = 2;  // into the switch, and out of it
constexpr std::uint32_t kPool = 0;            // the switch's buffer

SwitchRules rules(FlowControl flow_control) {
  SwitchRules rules;
  rules.switches.flow_control = flow_control;
  return rules;
}

// A host, a switch and a sink. The pool has 10,000 B. One link may use as much of it as is free, and then
// 3,000 B of headroom.
class Bench {
 public:
  explicit Bench(FlowControl flow_control)
      : graph(line()), state(graph, rules(flow_control), 1, ConfigNode()) {
    state.buffers.push_back({.shared_total = 10'000,
                             .alpha_2_16 = 65'536,
                             .reserve = 1000,
                             .resume_offset = 500,
                             .lossless = flow_control == FlowControl::pfc ? 1U << kDataPriority : 0,
                             .credits = flow_control == FlowControl::credits});
    state.ingress[state.class_index(kFromHost, kDataPriority)].headroom = 3000;
    buffers.emplace(state);
  }
  // A packet of 1,000 B that the host has sent.
  Admission admit() {
    const Admission admission = buffers->admit(kPool, queue(), packet());
    if (admission != Admission::refused) {
      ++queue().packets;
      queue().bytes += 1000;
    }
    return admission;
  }
  bool leave() {
    --queue().packets;
    queue().bytes -= 1000;
    return buffers->leave(kPool, packet());
  }
  fabric::Queue& queue() { return state.queue(kToSink, kDataPriority); }

  Graph graph;
  FabricState state;
  std::optional<SwitchBuffers> buffers;

 private:
  static Graph line() {
    Graph graph;
    const NodeId host = graph.add_node(NodeKind::nic, graph.add_atom(), "host");
    const NodeId middle = graph.add_node(NodeKind::fabric_switch, graph.add_atom(), "switch");
    const NodeId sink = graph.add_node(NodeKind::nic, graph.add_atom(), "sink");
    graph.add_link(host, middle, LinkSpec{});
    graph.add_link(middle, sink, LinkSpec{});
    return graph;
  }
  static Packet packet() {
    Packet packet{};
    packet.bytes = 1000;
    packet.ingress = kFromHost;
    packet.set_priority(kDataPriority);
    return packet;
  }
};

// The reserve holds the first packet. The k-th brings the link to (k-1) kB of the pool, of which 10 - (k-1)
// kB are then free. So the sixth crosses the threshold, and the three after it fill the headroom.
TEST(SwitchBuffers, PausesAtTheThresholdAndRefusesBeyondTheHeadroom) {
  Bench bench(FlowControl::pfc);
  for (int k = 1; k <= 5; ++k) EXPECT_EQ(bench.admit(), Admission::admitted) << k;
  EXPECT_EQ(bench.admit(), Admission::admitted_as_last);
  EXPECT_TRUE(bench.buffers->is_pausing(kFromHost, kDataPriority));
  for (int k = 7; k <= 9; ++k) EXPECT_EQ(bench.admit(), Admission::admitted) << k;
  EXPECT_EQ(bench.admit(), Admission::refused);
  EXPECT_EQ(bench.state.buffers[kPool].shared_used, 5000);
}

// Headroom is freed first. The sender continues when 500 B below the threshold are reached, and only then.
TEST(SwitchBuffers, ResumesOnceBelowTheThreshold) {
  Bench bench(FlowControl::pfc);
  while (bench.admit() != Admission::refused) {
  }
  for (int k = 1; k <= 3; ++k) EXPECT_FALSE(bench.leave()) << k;
  EXPECT_TRUE(bench.leave());  // 4 kB of the pool used, 6 kB free
  EXPECT_FALSE(bench.buffers->is_pausing(kFromHost, kDataPriority));
  for (int k = 5; k <= 9; ++k) EXPECT_FALSE(bench.leave()) << k;
  EXPECT_EQ(bench.state.buffers[kPool].shared_used, 0);
  EXPECT_EQ(bench.state.ingress[bench.state.class_index(kFromHost, kDataPriority)].used, 0);
}

// Lossy traffic counts by its queue, up to half of 10 kB, and pauses no sender.
TEST(SwitchBuffers, LimitLossyQueuesByTheThreshold) {
  Bench bench(FlowControl::none);
  for (int k = 1; k <= 5; ++k) EXPECT_EQ(bench.admit(), Admission::admitted) << k;
  EXPECT_EQ(bench.admit(), Admission::refused);
  EXPECT_FALSE(bench.leave());
  EXPECT_EQ(bench.admit(), Admission::admitted);
}

TEST(SwitchBuffers, RefuseMoreThanTheQueueLimit) {
  Bench bench(FlowControl::pfc);
  bench.state.buffers[kPool].queue_limit = 2;
  EXPECT_EQ(bench.admit(), Admission::admitted);
  EXPECT_EQ(bench.admit(), Admission::admitted);
  EXPECT_EQ(bench.admit(), Admission::refused);
}

TEST(SwitchBuffers, CountCreditsAtBothEnds) {
  Bench bench(FlowControl::credits);
  bench.state.credits.resize(bench.state.ingress.size());
  bench.state.credits[bench.state.class_index(kFromHost, kDataPriority)] = {4000, 1500, 8, 1000};
  SwitchBuffers& buffers = *bench.buffers;
  EXPECT_TRUE(buffers.use_credit(kFromHost, kDataPriority, 1000));
  EXPECT_TRUE(buffers.use_credit(kFromHost, kDataPriority, 1000));
  EXPECT_FALSE(buffers.use_credit(kFromHost, kDataPriority, 1000));  // 1,000 B left, a packet may have 1,500
  EXPECT_EQ(buffers.free_credit(kFromHost, kDataPriority, 600), 0U);
  EXPECT_EQ(buffers.free_credit(kFromHost, kDataPriority, 600), 1200U);
  EXPECT_TRUE(buffers.add_credit(kFromHost, kDataPriority, 1200));
  buffers.owe_credit(kFromHost, kDataPriority, 300);
  EXPECT_EQ(buffers.take_owed_credit(kFromHost, kDataPriority), 300U);
  EXPECT_EQ(buffers.take_owed_credit(kFromHost, kDataPriority), 0U);
}

}  // namespace
}  // namespace netsim::switch_buffers_test
