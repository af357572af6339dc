// Does the sampler write what it sees, once an interval, and nothing where nothing happens?
#include "sim/report/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "tests/report/fixtures.h"
#include "tests/support/without_handles.h"

namespace netsim::sampler_test {
namespace {

using test::Directory;
using test::TinySource;
using ::testing::HasSubstr;

// A network that is what the test says.
class FakeNetwork final : public test::WithoutHandles<PacketNetwork> {
 public:
  void set_listener(MessageListener*) override {}
  MessageHandle send(const SendRequest&) override { return {}; }
  Reach reach(GpuId, GpuId) const override { return Reach::scale_out; }
  std::uint32_t gpu_count() const override { return 2; }
  CircuitControl* circuits() override { return nullptr; }
  std::vector<bool> failing_ports() const override { return {}; }
  const FaultSchedule& fault_schedule() const override { return faults; }
  NetworkCounters counters() const override { return {}; }
  PortCounters port_counters(PortId port) const override {
    const auto it = ports.find(port);
    return it != ports.end() ? it->second : PortCounters{};
  }
  Bytes queued(PortId port) const override {
    const auto it = queues.find(port);
    return it != queues.end() ? it->second : 0;
  }
  std::vector<std::uint32_t> queue_pairs() const override {
    std::vector<std::uint32_t> ids(pairs.size());
    std::iota(ids.begin(), ids.end(), 0);
    return ids;
  }
  QueuePairView queue_pair_view(std::uint32_t id) const override { return pairs[id]; }
  void keep_ended() override {}
  void forget_ended() override {}
  void report_unacknowledged() override {}
  std::uint64_t packets_fingerprint() const override { return 0; }
  std::uint64_t events_fingerprint() const override { return 0; }
  TransportFigures transport_figures(std::uint32_t) const override { return {}; }
  MessageCost message_cost(const Message&) const override { return {}; }
  MessageCost aggregation_cost(const SwitchAggregation&, AggregationUse) const override { return {}; }
  std::size_t path_steps() const override { return 0; }
  bool deadlocked() const override { return false; }
  std::vector<std::string> waiting(std::size_t) const override { return {}; }
  std::vector<std::string> notes() const override { return {}; }

  FaultSchedule faults;
  std::map<PortId, PortCounters> ports;
  std::map<PortId, Bytes> queues;
  std::vector<QueuePairView> pairs;
};

// host0 - switch0 - host1: ports 0 and 2 are the hosts', 1 and 3 the switch's.
class ReportSampler : public ::testing::Test {
 protected:
  ReportSampler() {
    const NodeId zero = graph_.add_node(NodeKind::nic, graph_.add_atom(), "host0");
    const NodeId one = graph_.add_node(NodeKind::nic, graph_.add_atom(), "host1");
    const NodeId center = graph_.add_node(NodeKind::fabric_switch, graph_.add_atom(), "switch0");
    graph_.add_link(zero, center, LinkSpec{});
    graph_.add_link(one, center, LinkSpec{});
    output_.sample.interval = kMicrosecond;
  }
  void ports(const std::string& yaml) { output_.sample.ports = parse_config(yaml, "ports.yaml"); }
  Sampler& sampler() {
    if (sampler_ == nullptr) {
      sinks_.reset();
      sinks_ = std::make_unique<ResultSinks>(directory_.path(),
                                             RunView{output_, {{"first", &source_}, {"second", &source_}}});
      sampler_ = std::make_unique<Sampler>(output_.sample, network_, graph_, sinks_.get());
    }
    return *sampler_;
  }
  std::string table(const std::string& name) {
    if (!finished_) sinks_->finish(test::two_rank_results());
    finished_ = true;
    return directory_.text(name);
  }

  Directory directory_;
  TinySource source_;
  Graph graph_;
  FakeNetwork network_;
  OutputParameters output_;
  std::unique_ptr<ResultSinks> sinks_;
  std::unique_ptr<Sampler> sampler_;
  bool finished_ = false;
};

TEST_F(ReportSampler, WritesAQueueUntilItIsEmptyAgain) {
  sampler().sample();
  network_.queues[1] = 500;
  sampler().sample();
  sampler().sample();
  network_.queues[1] = 0;
  sampler().sample();
  sampler().sample();
  network_.queues[3] = 100;
  sampler().sample();
  EXPECT_EQ(table("queue_samples.csv"),
            "time_ps,port,queue_bytes\n"
            "2000000,switch0->host0,500\n"
            "3000000,switch0->host0,500\n"
            "4000000,switch0->host0,0\n"
            "6000000,switch0->host1,100\n");
  const QueueStatistics queues = sampler().queues();
  EXPECT_EQ(queues.count, 3u);  // while not empty
  EXPECT_DOUBLE_EQ(queues.mean, 1100.0 / 3);
  EXPECT_EQ(queues.p50, 500);
  EXPECT_EQ(queues.maximum, 500);
}

TEST_F(ReportSampler, WritesWhatALinkDidInTheInterval) {
  PortCounters& port = network_.ports[3];
  const auto transmit = [&port](Time begin, Time time) {  // at 100 Gb/s
    port.wire_bytes += time / 80;
    port.busy += time;
    port.last_end = begin + time;
  };
  transmit(100'000, 600'000);
  transmit(700'000, 500'000);  // 200 ns of it in the next interval, in which nothing else happens
  port.ecn_marks = 2;
  sampler().sample();
  sampler().sample();
  sampler().sample();
  transmit(3'000'000, 900'000);
  port.pauses = 1;
  port.credit_stalls = 5;
  port.drops = 4;
  port.no_route = 3;
  sampler().finish(3'500'000);  // half an interval
  EXPECT_EQ(table("link_samples.csv"),
            "time_ps,link,wire_bytes,utilisation,pauses,credit_stalls,ecn_marks,drops,no_route\n"
            "1000000,switch0->host1,13750,0.900000,0,0,2,0,0\n"
            "2000000,switch0->host1,0,0.200000,0,0,0,0,0\n"
            "3500000,switch0->host1,11250,1.000000,1,5,0,4,3\n");
}

TEST_F(ReportSampler, WritesTheRatesOfQueuePairsThatAreBusy) {
  network_.pairs = {{7, 8, 0, 0, 100 * kGbps, true}, {8, 7, 1, 0, 100 * kGbps, false}};
  sampler().sample();
  network_.pairs[0].acknowledged = 5000;
  network_.pairs[0].rate = 40 * kGbps;
  sampler().sample();
  network_.pairs[0].acknowledged = 6000;
  network_.pairs[0].busy = false;
  network_.pairs.push_back({1, 2, 3, 125, kGbps, true, 0, 1});  // new since the last look
  sampler().sample();
  network_.pairs[2].busy = false;
  sampler().sample();
  EXPECT_EQ(table("flow_samples.csv"),
            "time_ps,source_gpu,destination_gpu,queue_pair,delivered_bps,allowed_bps,job\n"
            "1000000,7,8,0,0,100000000000,first\n"
            "2000000,7,8,0,40000000000,40000000000,first\n"
            "3000000,7,8,0,8000000000,40000000000,first\n"
            "3000000,1,2,3,1000000000,1000000000,second\n");
}

TEST_F(ReportSampler, IsQuietWhenNothingGoesOnAndSkipsOnItsGrid) {
  EXPECT_FALSE(sampler().quiet());
  network_.queues[1] = 1;
  sampler().sample();
  EXPECT_FALSE(sampler().quiet());
  network_.queues[1] = 0;
  sampler().sample();  // its last row
  EXPECT_FALSE(sampler().quiet());
  sampler().sample();
  ASSERT_TRUE(sampler().quiet());
  sampler().skip_to(10 * kMicrosecond);
  EXPECT_EQ(sampler().next(), 10 * kMicrosecond);
  EXPECT_FALSE(sampler().quiet());
  sampler().sample();
  ASSERT_TRUE(sampler().quiet());
  sampler().skip_to(11 * kMicrosecond + 1);
  EXPECT_EQ(sampler().next(), 12 * kMicrosecond);
}

TEST_F(ReportSampler, LooksAtTheSwitchesPortsUnlessToldOtherwise) {
  for (PortId port = 0; port < 4; ++port) network_.queues[port] = 10 + port;
  sampler().sample();
  EXPECT_EQ(sampler().queues().count, 2u);
  EXPECT_EQ(sampler().queues().p50, 11);
}

TEST_F(ReportSampler, LooksAtAllPorts) {
  for (PortId port = 0; port < 4; ++port) network_.queues[port] = 10 + port;
  ports("all");
  sampler().sample();
  EXPECT_EQ(sampler().queues().count, 4u);
}

TEST_F(ReportSampler, LooksAtThePortsNamedOnce) {
  for (PortId port = 0; port < 4; ++port) network_.queues[port] = 10 + port;
  ports("[host1->switch0, host0->switch0, host1->switch0]");
  sampler().sample();
  EXPECT_EQ(sampler().queues().count, 2u);
  EXPECT_EQ(sampler().queues().maximum, 12);
}

TEST_F(ReportSampler, RefusesPortsThatAreNotThere) {
  ports("\n- host0->switch0\n- host0->swich0\n");
  try {
    sampler();
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("ports.yaml:3:3"));
    EXPECT_THAT(error.what(), HasSubstr("did you mean 'host0->switch0'"));
  }
  ports("{host0: switch0}");
  EXPECT_THROW(sampler(), ConfigError);
}

TEST_F(ReportSampler, WritesOnlyTheTablesAskedFor) {
  output_.sample.queues = output_.sample.flows = false;
  network_.queues[1] = 10;
  network_.ports[1].wire_bytes = 100;
  sampler().sample();
  EXPECT_THAT(table("link_samples.csv"), HasSubstr("switch0->host0,100,"));
  EXPECT_FALSE(directory_.has("queue_samples.csv"));
  EXPECT_FALSE(directory_.has("flow_samples.csv"));
}

TEST_F(ReportSampler, StopsAtMaxRowsAndSaysSo) {
  output_.max_rows = 2;
  network_.queues[1] = 10;
  for (int i = 0; i < 5; ++i) sampler().sample();
  EXPECT_THAT(sinks_->notes(), ::testing::ElementsAre(HasSubstr("queue_samples.csv holds the first 2 of 5")));
  EXPECT_EQ(sampler().queues().count, 5u);
}

}  // namespace
}  // namespace netsim::sampler_test
