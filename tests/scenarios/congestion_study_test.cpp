// Tests the effect of congestion control on queues and flows, in the situations of its papers.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/core/config.h"
#include "sim/simulation/simulation.h"
#include "tests/support/packet_fixture.h"
#include "tests/support/paths.h"
#include "tests/support/test_size.h"

namespace netsim::congestion_study_test {
namespace {

using test::PacketFixture;

const std::string kValidation = source_directory() + "/configs/validation/";

Results web_search(const char* congestion_control, std::uint64_t seed) {
  SimulationSetup setup;
  setup.config = load_config(kValidation + "web_search.yaml");
  overlay_config(setup.config, std::string("transport.congestion_control=") + congestion_control);
  setup.workload = kValidation + "web_search_50.yaml";
  setup.seed = seed;
  return Simulation(std::move(setup)).run({});
}

// Li et al., HPCC, SIGCOMM 2019, section 5.4: queues near zero, and short flows that do not suffer from long
// ones.
class WebSearch : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(WebSearch, HpccKeepsQueuesShortAndShortFlowsFast) {
  const Results dcqcn = web_search("dcqcn", GetParam());
  const Results hpcc = web_search("hpcc", GetParam());
  ASSERT_EQ(dcqcn.flows.count, hpcc.flows.count);
  EXPECT_GE(dcqcn.sampled_queues->p95, 20 * hpcc.sampled_queues->p95);
  EXPECT_GE(dcqcn.slowdowns_by_size[0].p95, 3 * hpcc.slowdowns_by_size[0].p95);
}

INSTANTIATE_TEST_SUITE_P(Seeds, WebSearch,
                         ::testing::ValuesIn(test::share_of<std::uint64_t>({1, 2, 3, 4, 5}, 5, 5)));

// N flows into one 40 Gb/s port under the paper's DCQCN with its thresholds (Zhu et al., SIGCOMM 2015,
// section 5.2).
class ManyToOne {
 public:
  explicit ManyToOne(int flows)
      : f_("topology: {kind: star, rate: 40 Gbps, delay: 1 us, hosts: " + std::to_string(flows + 1) + "}\n" +
           "network: {switch: {marker: {kind: red, kmin: 5 KB, kmax: 200 KB, pmax: 1 %, reference_rate: 40 "
           "Gbps}, buffer: 64 MB}}\n" +
           "transport: {mtu: 1000 B, congestion_control: {kind: dcqcn, profile: sigcomm15}}\n"),
        flows_(static_cast<std::uint32_t>(flows)) {
    for (std::uint32_t i = 0; i < flows_; ++i) f_.send(i, flows_, 10 * kGigabyte);
    for (PortId port = 0; port < f_.cluster.graph.port_count(); ++port) {
      if (f_.cluster.graph.port_name(port) == "switch0->host" + std::to_string(flows)) port_ = port;
    }
  }
  // Mean queue before the receiver over [from, to), looked at every 10 us.
  double mean_queue(Time from, Time to) {
    f_.loop.run(from);
    double sum = 0;
    int looks = 0;
    for (Time at = from; at < to; at += 10 * kMicrosecond, ++looks) {
      f_.loop.run(at);
      sum += static_cast<double>(f_.network->queued(port_));
    }
    return sum / looks;
  }
  std::vector<double> delivered(Time to) {
    f_.loop.run(to);
    std::vector<double> bytes;
    for (std::uint32_t i = 0; i < flows_; ++i)
      bytes.push_back(static_cast<double>(f_.network->queue_pair_view(i).acknowledged));
    return bytes;
  }

 private:
  PacketFixture f_;
  std::uint32_t flows_;
  PortId port_ = 0;
};

TEST(DcqcnStudy, TwoFlowsShareFairly) {
  ManyToOne run(2);
  std::vector<double> before = run.delivered(20 * kMillisecond);
  for (Time at = 30 * kMillisecond; at <= 100 * kMillisecond; at += 10 * kMillisecond) {
    const std::vector<double> now = run.delivered(at);
    const double a = now[0] - before[0], b = now[1] - before[1];
    EXPECT_GT((a + b) * (a + b) / (2 * (a * a + b * b)), 0.95) << at;
    before = now;
  }
}

// DCQCN's queue grows with the number of flows until marking saturates beyond Kmax (Zhu et al., ECN or Delay,
// CoNEXT 2016). The smallest number of flows whose mean queue is longer lies between 80 and 320.
TEST(DcqcnStudy, TheQueueLeavesKmaxBehindBetween80And320Flows) {
  const auto mean_queue = [](int flows) {
    return ManyToOne(flows).mean_queue(50 * kMillisecond, 100 * kMillisecond);
  };
  for (const int flows : {10, 40, 60, 79}) EXPECT_LT(mean_queue(flows), 200e3) << flows;
  EXPECT_GT(mean_queue(320), 200e3);
}

}  // namespace
}  // namespace netsim::congestion_study_test
