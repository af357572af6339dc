// Does each flow scheduler decide by its rule about four flows of two senders and two receivers?
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/errors.h"
#include "sim/core/registry.h"
#include "sim/scheduling/flow/flow_scheduler.h"

namespace netsim::flow_schedulers_test {
namespace {

constexpr BitRate kRate = 100 * kGbps;

std::unique_ptr<FlowScheduler> make(const std::string& text) {
  return Registry<FlowScheduler>::instance().create(parse_config(text, "c.yaml"), "");
}

// Flows A (two), B and C from GPUs 0 and 1 to GPUs 2 and 3. Port 0 and 1 lead from the senders, 2 and 3 to
// the receivers. Flow i has name i, but both flows of A have name 0.
class TwoByTwo : public FlowFacts {
 public:
  TwoByTwo() {
    add(0, 2, 2 * kGigabyte, 0);
    add(1, 3, 1 * kGigabyte, 0);
    add(0, 3, 4 * kGigabyte, 1);
    add(1, 2, 3 * kGigabyte, 2);
  }
  std::uint32_t path_count(const FlowView&) const override { return 2; }
  // Path 1 goes over a port of its own, 4 plus the source. A flow into a tree has the first port only.
  std::vector<PortId> ports_of_path(const FlowView& flow, std::uint32_t hint) const override {
    if (flow.destination.is_none()) return {flow.source};
    return {flow.source, hint == 0 ? 4U : 5U, flow.destination};
  }
  // A packet takes 300 ns at each port, and the links have no delay.
  std::vector<PortPassage> passages(const FlowView& flow, std::uint32_t hint, Bytes) const override {
    std::vector<PortPassage> path;
    for (const PortId port : ports_of_path(flow, hint)) {
      constexpr Time kWire = 300 * kNanosecond;
      const Time arrival = static_cast<Time>(path.size()) * kWire;
      path.push_back({port, port, port >= 2, arrival, arrival + kWire, kWire, kWire});
    }
    return path;
  }
  std::string name(const FlowView& flow) const override { return std::string(1, "ABC"[flow.name]); }

  // Returns the rate of each flow in Gbit/s after the decisions; -1: it is held, 0: it has no limit.
  std::vector<std::int64_t> decide(FlowScheduler& scheduler) {
    for (FlowView& flow : flows) flow.ports = ports_[flow.id];
    FlowsView view;
    view.now = now;
    view.flows = flows;
    view.port_rates = rates_;
    view.facts = this;
    view.interval = kNanosecond;
    view.network = network;
    view.demand = demand;
    decisions = {};
    scheduler.decide(view, decisions);
    std::vector<std::int64_t> result(flows.size(), -2);
    for (const FlowDecisions::Decision& decision : decisions.list()) {
      if (decision.kind == FlowDecisions::Kind::hold) result[decision.flow] = -1;
      if (decision.kind == FlowDecisions::Kind::release) result[decision.flow] = 0;
      if (decision.kind == FlowDecisions::Kind::rate) result[decision.flow] = decision.value / kGbps;
      if (decision.kind == FlowDecisions::Kind::path)
        hints[decision.flow] = static_cast<std::uint32_t>(decision.value);
    }
    return result;
  }
  std::vector<std::int64_t> decide(const std::string& scheduler) { return decide(*make(scheduler)); }

  Time now = 0;
  NetworkView network;
  DemandView demand;
  std::vector<FlowView> flows;
  FlowDecisions decisions;
  std::map<std::uint32_t, std::uint32_t> hints;  // by flow

 private:
  void add(std::uint32_t source, std::uint32_t destination, Bytes bytes, std::uint32_t name) {
    FlowView flow;
    flow.id = static_cast<std::uint32_t>(flows.size());
    flow.source = source;
    flow.destination = destination;
    flow.bytes = flow.left = bytes;
    flow.name = name;
    flow.communication = flow.id;
    flows.push_back(flow);
    ports_.push_back({source, destination});
  }
  std::vector<std::vector<PortId>> ports_;
  std::vector<BitRate> rates_ = std::vector<BitRate>(6, kRate);
};

using Rates = std::vector<std::int64_t>;

TEST(FlowSchedulers, FairChangesNothing) {
  TwoByTwo net;
  const auto fair = make("fair");
  EXPECT_FALSE(fair->needs().central);
  EXPECT_EQ(fair->admit(net.flows[0]), FlowTreatment());
}

TEST(FlowSchedulers, MaxMinSharesEachLink) {
  TwoByTwo net;
  EXPECT_EQ(net.decide("max_min"), Rates({50, 50, 50, 50}));
  EXPECT_EQ(net.decide("{kind: max_min, use: 0.5}"), Rates({25, 25, 25, 25}));
  EXPECT_TRUE(make("max_min")->admit(net.flows[0]).held);
  EXPECT_FALSE(make("{kind: max_min, new_flows: send}")->admit(net.flows[0]).held);
}

TEST(FlowSchedulers, StrictServesUrgentLevelsFirst) {
  TwoByTwo net;
  const std::string by_size = "{kind: strict, by: size, first: 1500 MB, act: ";
  EXPECT_EQ(net.decide(by_size + "rates}"), Rates({100, 100, -1, -1}));
  const auto classes = make(by_size + "classes}");
  EXPECT_EQ(classes->needs().classes, 2U);
  EXPECT_EQ(classes->admit(net.flows[1]).traffic_class, 0);
  EXPECT_EQ(classes->admit(net.flows[2]).traffic_class, 1);
  net.flows[3].priority = 7;
  EXPECT_EQ(make("strict")->admit(net.flows[3]).traffic_class, 0);
  EXPECT_EQ(make("strict")->admit(net.flows[2]).traffic_class, 1);
  net.flows[2].job = 4;
  EXPECT_EQ(make("{kind: strict, by: job, levels: 3}")->admit(net.flows[2]).traffic_class, 2);
}

TEST(FlowSchedulers, StrictFollowsTheOrderOfStreams) {
  TwoByTwo net;
  net.flows[0].stream = Stream::ep;
  net.flows[1].stream = Stream::dp;
  net.flows[2].stream = net.flows[3].stream = Stream::tp;
  const auto level = [&](const std::string& scheduler, std::size_t flow) {
    return int{make(scheduler)->admit(net.flows[flow]).traffic_class};
  };
  const std::string streams = "{kind: strict, streams: [ep, dp]";
  EXPECT_EQ(make(streams + "}")->needs().classes, 3U);
  EXPECT_EQ(level(streams + "}", 0), 0);
  EXPECT_EQ(level(streams + "}", 1), 1);
  EXPECT_EQ(level(streams + ", by: stream}", 2), 2);
  EXPECT_EQ(level(streams + ", levels: 2}", 2), 1);
  const auto priorities = make(streams + ", act: priorities}");
  EXPECT_EQ(priorities->needs().classes, 1U);
  EXPECT_EQ(priorities->admit(net.flows[0]).priority, 2);
  EXPECT_EQ(priorities->admit(net.flows[2]).priority, 0);
  EXPECT_EQ(priorities->admit(net.flows[0]).traffic_class, 0);
  EXPECT_EQ(net.decide(streams + ", act: rates}"), Rates({100, 100, -1, -1}));
  EXPECT_EQ(net.decide("{kind: strict, streams: [tp], act: rates}"), Rates({-1, -1, 100, 100}));
  for (const char* wrong : {"{kind: strict, by: stream}", "{kind: strict, by: job, streams: [ep]}",
                            "{kind: strict, streams: ep}", "{kind: strict, streams: []}",
                            "{kind: strict, streams: [compute]}", "{kind: strict, streams: [ep, ep]}"})
    EXPECT_THROW(make(wrong), ConfigError) << wrong;
}

TEST(FlowSchedulers, SrptServesTheFewestBytesFirst) {
  TwoByTwo net;
  EXPECT_EQ(net.decide("srpt"), Rates({100, 100, -1, -1}));
  net.flows[3].left = 1;
  EXPECT_EQ(net.decide("srpt"), Rates({-1, -1, 100, 100}));
}

TEST(FlowSchedulers, SrptWithoutSizesServesWhoHasSentLeast) {
  TwoByTwo net;
  const auto srpt = make("srpt");
  EXPECT_TRUE(srpt->needs().required.has(ViewField::topology));
  srpt->set_views({ViewField::topology});
  for (FlowView& flow : net.flows) {
    flow.bytes = flow.id < 2 ? 1000 : 10;  // sent so far
    flow.left = 0;
  }
  EXPECT_EQ(net.decide(*srpt), Rates({-1, -1, 100, 100}));
}

TEST(FlowSchedulers, DeadlineWithoutDeadlinesServesTheFewestBytesFirst) {
  TwoByTwo net;
  const auto deadline = make("{kind: deadline, deadlines: [{name: B, after: 1 s}]}");
  deadline->set_views({ViewField::topology, ViewField::sizes});
  EXPECT_EQ(net.decide(*deadline), Rates({100, 100, -1, -1}));
}

TEST(FlowSchedulers, PathsFollowMeasuredLoadsAndAvoidFailedLinks) {
  const auto hint_of = [](const std::string& scheduler, const NetworkView& network) {
    TwoByTwo net;
    net.flows.resize(1);
    net.network = network;
    net.decide(scheduler);
    return net.hints.at(0);
  };
  const std::string by_loads = "{kind: paths, by: loads, avoid_failed: true}";
  EXPECT_EQ(make(by_loads)->needs().views,
            (ViewFields{ViewField::topology, ViewField::sizes, ViewField::loads, ViewField::failures}));
  const std::vector<double> loads{0, 0, 0, 0, 0.9, 0.5};
  const std::vector<std::uint8_t> down{0, 0, 0, 0, 0, 1};
  EXPECT_EQ(hint_of(by_loads, {}), 0U);
  EXPECT_EQ(hint_of(by_loads, {.loads = loads}), 1U);
  EXPECT_EQ(hint_of("paths", {.loads = loads}), 0U);
  EXPECT_EQ(hint_of(by_loads, {.loads = loads, .down = down}), 0U);
  const std::string by_queues = "{kind: paths, by: queues}";
  EXPECT_EQ(make(by_queues)->needs().views,
            (ViewFields{ViewField::topology, ViewField::sizes, ViewField::queues}));
  const std::vector<Bytes> queues{0, 0, 0, 0, 5000, 4999};
  EXPECT_EQ(hint_of(by_queues, {}), 0U);
  EXPECT_EQ(hint_of(by_queues, {.queues = queues}), 1U);
  EXPECT_EQ(hint_of(by_queues, {.loads = loads}), 0U);
  const std::vector<Bytes> full{0, 0, 0, 0, INT64_MAX / 2, 1};
  EXPECT_EQ(hint_of(by_queues, {.queues = full}), 1U);
}

TEST(FlowSchedulers, LasServesTheFewestBytesSentFirst) {
  TwoByTwo net;
  EXPECT_EQ(net.decide("las"), Rates({50, 50, 50, 50}));
  // The first level ends after 10 MB, which takes 1.6 ms at 50 Gb/s.
  EXPECT_EQ(net.decisions.again(), 1600 * kMicrosecond);
  net.flows[0].left -= 20 * kMegabyte;
  net.flows[1].left -= 20 * kMegabyte;
  EXPECT_EQ(net.decide("las"), Rates({-1, -1, 100, 100}));
}

TEST(FlowSchedulers, VarysServesTheSmallestBottleneckFirst) {
  TwoByTwo net;
  EXPECT_EQ(net.decide("{kind: varys, coflow: name}"), Rates({100, 100, -1, -1}));
  EXPECT_EQ(net.decide("{kind: varys, coflow: name, backfill: none}"), Rates({100, 50, -1, -1}));
}

TEST(FlowSchedulers, SincroniaFollowsItsOrder) {
  TwoByTwo net;
  EXPECT_EQ(net.decide("{kind: sincronia, coflow: name}"), Rates({-1, -1, 100, 100}));
}

TEST(FlowSchedulers, DeadlineServesTheEarliestFirst) {
  TwoByTwo net;
  EXPECT_EQ(net.decide("{kind: deadline, deadlines: [{name: B, after: 1 s}]}"), Rates({-1, -1, 100, 100}));
  // B takes 320 ms, so it is late, and goes behind A.
  EXPECT_EQ(
      net.decide("{kind: deadline, admission: true, deadlines: [{name: A, after: 1 s}, {name: B, after: "
                 "100 ms}]}"),
      Rates({100, 100, -1, -1}));
}

// The flows of A take 160 and 80 ms alone, those of B and C 320 and 240 ms.
TEST(FlowSchedulers, DeadlineTakesThoseOfTheSlack) {
  TwoByTwo net;
  const auto deadline = make("{kind: deadline, of_slack: true}");
  EXPECT_TRUE(deadline->needs().views.has(ViewField::slack));
  EXPECT_FALSE(make("deadline")->needs().views.has(ViewField::slack));
  EXPECT_EQ(net.decide(*deadline), Rates({100, 100, -1, -1}));  // by number, as none has a deadline
  EXPECT_EQ(deadline->notes().size(), 1U);
  const std::vector<CommunicationSlack> slack{{0, 0, kSecond}, {0, 1, 0}, {0, 2, 0}};
  net.demand.slack = slack;
  EXPECT_EQ(net.decide(*deadline), Rates({-1, -1, 100, 100}));
  EXPECT_TRUE(deadline->notes().empty());
  net.flows[0].deadline = 100 * kMillisecond;  // the workload's own counts
  EXPECT_EQ(net.decide(*deadline), Rates({100, 100, -1, -1}));
  const std::vector<CommunicationSlack> of_another_job{{1, 1, 0}};
  net.demand.slack = of_another_job;
  net.flows[0].deadline = kNever;
  EXPECT_EQ(net.decide(*deadline), Rates({100, 100, -1, -1}));
}

TEST(FlowSchedulers, DeadlineTakesThoseOfTheWorkload) {
  TwoByTwo net;
  const auto deadline = make("deadline");
  net.decide(*deadline);
  EXPECT_EQ(deadline->notes().size(), 1U);
  net.flows[2].deadline = kSecond;
  EXPECT_EQ(net.decide(*deadline), Rates({-1, -1, 100, 100}));
  EXPECT_TRUE(deadline->notes().empty());
  // By name, A is due before B.
  EXPECT_EQ(net.decide("{kind: deadline, deadlines: [{name: A, after: 1 ms}]}"), Rates({100, 100, -1, -1}));
  EXPECT_THROW(make("{kind: deadline, deadlines: 1 ms}"), ConfigError);
}

// All flows are of one group. The one that was released first has the earliest deadline.
TEST(FlowSchedulers, EchelonServesDeadlinesInARow) {
  TwoByTwo net;
  EXPECT_EQ(net.decide("{kind: echelon, spacing: 1 s}"), Rates({100, 100, -1, -1}));
}

TEST(FlowSchedulers, PathsSpreadsFlows) {
  TwoByTwo net;
  net.flows.resize(2);
  EXPECT_EQ(net.decide("paths"), Rates({0, 0}));
  EXPECT_NE(net.hints[0], net.hints[1]);
}

// A slot has one packet of 300 ns. Flows are released at its begin and held when the packet is leaving.
TEST(FlowSchedulers, FastpassMatchesSourcesAndDestinations) {
  TwoByTwo net;
  const auto fastpass = make("{kind: fastpass, slot: 310 ns}");
  EXPECT_EQ(net.decide(*fastpass), Rates({0, 0, -2, -2}));
  EXPECT_EQ(net.hints[0], 0U);
  EXPECT_EQ(net.hints[1], 1U);
  EXPECT_EQ(net.decisions.again(), 300 * kNanosecond);
  net.now = 150 * kNanosecond;
  EXPECT_EQ(net.decide(*fastpass), Rates({-2, -2, -2, -2}));
  EXPECT_EQ(net.decisions.again(), 300 * kNanosecond);
  net.now = 300 * kNanosecond;
  EXPECT_EQ(net.decide(*fastpass), Rates({-1, -1, -2, -2}));
  EXPECT_EQ(net.decisions.again(), 310 * kNanosecond);
  net.now = 310 * kNanosecond;
  EXPECT_EQ(net.decide(*fastpass), Rates({-2, -2, 0, 0}));
  net.now = 610 * kNanosecond;
  EXPECT_EQ(net.decide(*fastpass), Rates({-2, -2, -1, -1}));
  net.now = 620 * kNanosecond;
  EXPECT_EQ(net.decide(*fastpass), Rates({0, 0, -2, -2}));
}

// Without bytes left, flows of the slot are held at its end, and nothing is asked for after that.
TEST(FlowSchedulers, FastpassHoldsFlowsThatHaveEnded) {
  TwoByTwo net;
  const auto fastpass = make("{kind: fastpass, slot: 310 ns}");
  EXPECT_TRUE(fastpass->needs().empty);
  net.decide(*fastpass);
  FlowsView view;
  view.now = 300 * kNanosecond;
  view.interval = kNanosecond;
  FlowDecisions decisions;
  fastpass->decide(view, decisions);
  EXPECT_EQ(decisions.list().size(), 2U);
  EXPECT_EQ(decisions.list()[0].kind, FlowDecisions::Kind::hold);
  EXPECT_EQ(decisions.again(), kNever);
}

// Both flows of source 0 share it; those into all-reduce trees share no destination. The flows of the slot
// are released, the others are left held.
TEST(FlowSchedulers, FastpassMatchesEachFlowIntoATree) {
  TwoByTwo net;
  for (FlowView& flow : net.flows) flow.destination = GpuId::none();
  EXPECT_EQ(net.decide("{kind: fastpass, slot: 20 us}"), Rates({0, 0, -2, -2}));
}

}  // namespace
}  // namespace netsim::flow_schedulers_test
