// Tests markers, queue disciplines, routing policies and reliability as components: their compiled form and
// the parameters that they refuse. Tests also the arbiter that carries out a discipline.
#include "sim/network/policies.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/core/registry.h"
#include "sim/network/class_arbiter.h"
#include "sim/transport/reliability/reliability.h"

namespace netsim::policies_test {
namespace {

template <class Interface>
std::unique_ptr<Interface> make(const std::string& yaml) {
  const ConfigNode root = parse_config("part: " + yaml, "part.yaml");
  return Registry<Interface>::instance().create(*root.find("part"), "");
}

template <class Interface>
std::string error(const std::string& yaml) {
  try {
    make<Interface>(yaml);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

#define EXPECT_ERROR(Interface, yaml, message)                                                               \
  EXPECT_NE(error<Interface>(yaml).find(std::string(message)), std::string::npos) << error<Interface>(yaml); \
  EXPECT_NE(error<Interface>(yaml).find("part.yaml:1:"), std::string::npos) << error<Interface>(yaml)

TEST(Marker, CompilesToALineThatGoesWithTheSpeed) {
  const RedLine red =
      make<Marker>("{kind: red, kmin: 100 KB, kmax: 400 KB, pmax: 0.3, at: enqueue}")->compile(200 * kGbps);
  EXPECT_EQ(red.kmin, 200'000);
  EXPECT_EQ(red.kmax, 800'000);
  EXPECT_EQ(red.pmax, 0.3);
  EXPECT_TRUE(red.at_enqueue);
  EXPECT_FALSE(make<Marker>("red")->compile(kGbps).at_enqueue);
  const RedLine step = make<Marker>("{kind: step, threshold: 30 KB, reference_rate: 10 Gbps, at: dequeue}")
                           ->compile(40 * kGbps);
  EXPECT_EQ(step.kmin, 120'000);
  EXPECT_EQ(step.kmax, 120'000);
  EXPECT_FALSE(step.at_enqueue);
  EXPECT_EQ(make<Marker>("none")->compile(kGbps).kmin, INT64_MAX);
}

TEST(Marker, RefusesWhatMakesNoSense) {
  EXPECT_ERROR(Marker, "{kind: red, kmin: 2 KB, kmax: 1 KB}", "kmin is above kmax");
  EXPECT_ERROR(Marker, "{kind: red, pmax: 1.5}", "pmax");
  EXPECT_ERROR(Marker, "{kind: red, at: arrival}", "arrival");
  EXPECT_ERROR(Marker, "{kind: step, treshold: 1 KB}", "threshold");
  EXPECT_ERROR(Marker, "stepp", "step");
}

TEST(Discipline, RefusesWhatMakesNoSense) {
  EXPECT_ERROR(QueueDiscipline, "{kind: drr, quantum: 4 KB}", "expected a list of bytes");
  EXPECT_ERROR(QueueDiscipline, "{kind: drr, quantum: [63 B]}", "64 B");
  EXPECT_ERROR(QueueDiscipline, "{kind: strict, quantum: [63 B]}", "quantum");
  EXPECT_ERROR(QueueDiscipline, "{kind: vl_arbitration, low: 3}",
               "expected a list of [virtual lane, weight]");
  EXPECT_ERROR(QueueDiscipline, "{kind: vl_arbitration, low: [3]}", "[virtual lane, weight]");
  EXPECT_ERROR(QueueDiscipline, "{kind: vl_arbitration, low: [[0, -1]]}", "0");
  EXPECT_ERROR(QueueDiscipline, "{kind: vl_arbitration, low: [[6, 1]]}", "5");
  EXPECT_ERROR(QueueDiscipline, "{kind: vl_arbitration, high: [[0, 256]]}", "255");
  EXPECT_ERROR(QueueDiscipline, "{kind: vl_arbitration, limit_of_high_priority: 256}",
               "limit_of_high_priority");
}

TEST(Discipline, RefusesTablesThatDoNotFitTheClasses) {
  EXPECT_THROW(make<QueueDiscipline>("{kind: drr, quantum: [1 KB, 1 KB]}")->compile(3), ConfigError);
  EXPECT_NO_THROW(make<QueueDiscipline>("{kind: drr, quantum: [1 KB, 1 KB]}")->compile(2));
  EXPECT_THROW(make<QueueDiscipline>("{kind: vl_arbitration, high: [[0, 1]], low: [[1, 1]]}")->compile(3),
               ConfigError)
      << "lane 2 would never be served";
  EXPECT_EQ(make<QueueDiscipline>("{kind: vl_arbitration, high: [[0, 1]]}")->compile(3).shares.size(), 2u);
  EXPECT_THROW(make<QueueDiscipline>("{kind: vl_arbitration, low: [[0, 0], [1, 1]]}")->compile(2),
               ConfigError)
      << "lane 0 has no weight anywhere";
  EXPECT_THROW(make<QueueDiscipline>("{kind: vl_arbitration, low: [[0, 0]]}")->compile(1), ConfigError);
  for (const char* table : {"high: [[5, 10]]", "low: [[0, 1], [1, 1], [2, 1]]"})
    EXPECT_THROW(make<QueueDiscipline>(std::string("{kind: vl_arbitration, ") + table + "}")->compile(2),
                 ConfigError)
        << "there is no such lane";
  EXPECT_NO_THROW(make<QueueDiscipline>("{kind: vl_arbitration, high: [[5, 0]]}")->compile(2));
}

TEST(Routing, RefusesWhatMakesNoSense) {
  EXPECT_ERROR(RoutingPolicy, "{kind: spray, choice: any}", "any");
  EXPECT_ERROR(RoutingPolicy, "{kind: ecmp, per_switch_seed: 7}", "7");
  EXPECT_ERROR(RoutingPolicy, "{kind: adaptive, choice: random}", "choice");
  EXPECT_ERROR(RoutingPolicy, "{kind: d_mod_k, k: 4}", "k");
  EXPECT_ERROR(RoutingPolicy, "{kind: static, paths: 3}", "expected a list of paths");
  EXPECT_ERROR(RoutingPolicy, "{kind: static, paths: []}", "'static' needs paths");
  EXPECT_ERROR(RoutingPolicy, "static", "'static' needs paths");
}

TEST(Routing, HashesSpreadAndSeedsMatter) {
  const auto ecmp = make<RoutingPolicy>("ecmp"),
             alike = make<RoutingPolicy>("{kind: ecmp, per_switch_seed: false}");
  std::vector<int> hits(8, 0);
  int differ = 0;
  const std::vector<PortId> ports(8);
  for (std::uint64_t flow = 0; flow < 8000; ++flow) {
    const Branch one{.flow = flow, .seed = 1, .ports = ports}, two{.flow = flow, .seed = 2, .ports = ports};
    ++hits[ecmp->choose(one)];
    differ += ecmp->choose(one) != ecmp->choose(two) ? 1 : 0;
    EXPECT_EQ(alike->choose(one), alike->choose(two));
  }
  for (const int count : hits) EXPECT_NEAR(count, 1000, 150);
  EXPECT_NEAR(differ, 7000, 150);
}

TEST(ReliabilityPolicy, CompilesToAPlan) {
  EXPECT_FALSE(make<Reliability>("go_back_n")->compile().selective);
  const ReliabilityPlan irn = make<Reliability>(
                                  "{kind: irn, timeout_high: 5 us, timeout_low: 2 us, low_packets: 4, "
                                  "bdp_cap: 2, reorder_tolerance: 9}")
                                  ->compile();
  EXPECT_TRUE(irn.selective);
  EXPECT_EQ(irn.timeout, 5 * kMicrosecond);
  EXPECT_EQ(irn.low_timeout, 2 * kMicrosecond);
  EXPECT_EQ(irn.low_packets, 4u);
  EXPECT_EQ(irn.bdp_cap, 2);
  EXPECT_EQ(irn.reorder_tolerance, 9u);
  EXPECT_ERROR(Reliability, "{kind: irn, bdp_cap: -1}", "bdp_cap");
  EXPECT_ERROR(Reliability, "{kind: go_back_n, bdp_cap: 1}", "bdp_cap");
  EXPECT_ERROR(Reliability, "gobackn", "go_back_n");
}

// ---- The arbiter

// Classes with endless queues of packets of the given sizes: how many bytes each sends of `packets` in all.
std::vector<Bytes> serve(const std::string& discipline, const std::vector<Bytes>& sizes, int packets,
                         std::uint32_t ready = UINT32_MAX) {
  const auto classes = static_cast<std::uint32_t>(sizes.size());
  ClassArbiter arbiter(make<QueueDiscipline>(discipline)->compile(classes), 1, classes, 1);
  std::vector<Bytes> sent(sizes.size(), 0);
  for (int i = 0; i < packets; ++i) {
    const std::uint32_t c =
        arbiter.select_class(0, ready & ((1U << classes) - 1), [&](std::uint32_t k) { return sizes[k]; });
    sent[c] += sizes[c];
  }
  return sent;
}

TEST(ClassArbiter, StrictServesTheFirst) {
  EXPECT_EQ(serve("strict", {100, 100, 100}, 10), (std::vector<Bytes>{1000, 0, 0}));
  EXPECT_EQ(serve("strict", {100, 100, 100}, 10, 0b110), (std::vector<Bytes>{0, 1000, 0}));
}

TEST(ClassArbiter, DeficitRoundRobinSharesBytesWhateverThePackets) {
  const std::vector<Bytes> sent =
      serve("{kind: drr, quantum: [3000 B, 2000 B, 1000 B]}", {1500, 64, 9000}, 100'000);
  EXPECT_NEAR(static_cast<double>(sent[0]) / static_cast<double>(sent[2]), 3, 0.01);
  EXPECT_NEAR(static_cast<double>(sent[1]) / static_cast<double>(sent[2]), 2, 0.01);
  const std::vector<Bytes> two =
      serve("{kind: drr, quantum: [3000 B, 2000 B, 1000 B]}", {1500, 64, 9000}, 100'000, 0b101);
  EXPECT_EQ(two[1], 0);
  EXPECT_NEAR(static_cast<double>(two[0]) / static_cast<double>(two[2]), 3, 0.01);
}

// A class does not save the quantum of times without packets.
TEST(ClassArbiter, DeficitsEndWithTheQueue) {
  ClassArbiter arbiter(make<QueueDiscipline>("{kind: drr, quantum: [1000 B, 1000 B]}")->compile(2), 1, 2, 1);
  const auto head = [](std::uint32_t) -> Bytes { return 900; };
  int turns[2] = {0, 0};
  for (int i = 0; i < 1000; ++i) {
    const std::uint32_t c = arbiter.select_class(0, 3, head);
    ++turns[c];
    if (c == 0) arbiter.emptied(0, 0, 2);
  }
  EXPECT_GE(turns[1], turns[0]) << "100 B a round are left over, but only class 1 keeps them";
  EXPECT_LT(turns[1], turns[0] * 12 / 10);
}

TEST(ClassArbiter, PortsAreServedEachForItself) {
  ClassArbiter arbiter(make<QueueDiscipline>("drr")->compile(2), 2, 2, 1);
  const auto head = [](std::uint32_t) -> Bytes { return 4160; };
  std::vector<std::uint32_t> first, second;
  for (int i = 0; i < 4; ++i) first.push_back(arbiter.select_class(0, 3, head));
  for (int i = 0; i < 4; ++i) second.push_back(arbiter.select_class(1, 3, head));
  EXPECT_EQ(first, second);
  EXPECT_EQ(std::count(first.begin(), first.end(), 0U), 2);
}

TEST(ClassArbiter, VirtualLanesAreServedByWeight) {
  const std::vector<Bytes> sent =
      serve("{kind: vl_arbitration, low: [[0, 40], [1, 20], [2, 10]]}", {64, 64, 64}, 70'000);
  EXPECT_EQ(sent, (std::vector<Bytes>{40'000 * 64, 20'000 * 64, 10'000 * 64}));
}

TEST(ClassArbiter, ALaneMayStandInATableMoreThanOnce) {
  const std::vector<Bytes> sent =
      serve("{kind: vl_arbitration, low: [[0, 10], [1, 10], [0, 10]]}", {64, 64}, 3000);
  EXPECT_EQ(sent, (std::vector<Bytes>{2000 * 64, 1000 * 64}));
}

// The tables that OpenSM sets by itself: lane 0 alone has high priority, and its low-priority entry no
// weight.
TEST(ClassArbiter, AnEntryOfWeightZeroIsSkipped) {
  const std::string opensm =
      "{kind: vl_arbitration, high: [[0, 4], [1, 0], [2, 0]], low: [[0, 0], [1, 4], [2, 8]], "
      "limit_of_high_priority: ";
  EXPECT_EQ(serve(opensm + "255}", {64, 64, 64}, 1200), (std::vector<Bytes>{1200 * 64, 0, 0}));
  EXPECT_EQ(serve(opensm + "255}", {64, 64, 64}, 1200, 0b110), (std::vector<Bytes>{0, 400 * 64, 800 * 64}));
  EXPECT_EQ(serve(opensm + "0}", {64, 64, 64}, 1200), (std::vector<Bytes>{600 * 64, 200 * 64, 400 * 64}))
      << "one packet of each table in turn";
}

TEST(ClassArbiter, TheHighTableGoesFirstUpToItsLimit) {
  const auto shares = [](int limit) {
    return serve("{kind: vl_arbitration, high: [[0, 255]], low: [[1, 255]], limit_of_high_priority: " +
                     std::to_string(limit) + "}",
                 {1024, 1024}, 10'000);
  };
  EXPECT_EQ(shares(0), (std::vector<Bytes>{5000 * 1024, 5000 * 1024})) << "one packet each";
  EXPECT_EQ(shares(1), (std::vector<Bytes>{8000 * 1024, 2000 * 1024})) << "four of 1 KiB, then one";
  EXPECT_EQ(shares(255), (std::vector<Bytes>{10'000 * 1024, 0}));
}

}  // namespace
}  // namespace netsim::policies_test
