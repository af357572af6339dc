// Tests partitions of collectives. They move and take what closed forms say. Programs take what the cost
// model predicts, and no part of the search makes a plan slower.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "sim/core/errors.h"
#include "sim/core/random.h"
#include "sim/core/registry.h"
#include "sim/training/layers/backward_order.h"
#include "sim/training/layers/layer_step.h"
#include "sim/training/layers/partition_plan.h"
#include "sim/workload/program/role_program_source.h"
#include "sim/workload/workload.h"
#include "tests/support/tasks_of.h"
#include "tests/support/test_size.h"
#include "tests/training/layers/replay.h"

namespace netsim::centauri_test {
namespace {

using test::Replay;
using ::testing::HasSubstr;

constexpr PartitionParts kAll{};
const std::map<std::string, PartitionParts> kOff{{"primitive", {false, true, true, true, true}},
                                                 {"group", {true, false, true, true, true}},
                                                 {"workload", {true, true, false, true, true}},
                                                 {"layer_tier", {true, true, true, false, true}},
                                                 {"model_tier", {true, true, true, true, false}}};

struct Chain {
  std::vector<TimedLayer> layers;
  PartitionCosts costs;
};
Chain random_chain(std::uint64_t seed, std::uint64_t most = 6) {
  RandomStream random(seed, "chains of a test");
  Chain chain;
  for (std::uint64_t i = 0, count = 1 + random.below(most); i < count; ++i) {
    TimedLayer layer;
    layer.name = "l" + std::to_string(i);
    layer.forward = static_cast<Time>(1 + random.below(400)) * kMicrosecond;
    layer.backward = static_cast<Time>(1 + random.below(800)) * kMicrosecond;
    layer.bytes = static_cast<Bytes>(1 + random.below(20)) * 800'000;
    chain.layers.push_back(std::move(layer));
  }
  chain.costs.per_host = random.below(2) == 0 ? 2 : 4;
  chain.costs.workers = chain.costs.per_host * static_cast<std::uint32_t>(2 + random.below(3));
  chain.costs.within = {static_cast<Time>(random.below(40)) * kMicrosecond,
                        static_cast<BitRate>(50 + random.below(1000)) * kGbps};
  chain.costs.between = {static_cast<Time>(random.below(200)) * kMicrosecond,
                         static_cast<BitRate>(20 + random.below(200)) * kGbps};
  return chain;
}

// The plan that the search finds is never slower than without one of its parts. That holds for what the
// search finds without the part, and for the same plan without it.
TEST(Centauri, NoPartMakesAPlanSlower) {
  const std::uint64_t chains = test::by_size<std::uint64_t>(500, 15, 5);
  std::map<std::string, int> gains;
  for (std::uint64_t seed = 1; seed <= chains; ++seed) {
    const Chain chain = random_chain(seed);
    const PartitionPlanner planner(chain.layers, chain.costs);
    const PartitionPlanner::Plan plan = planner.search(kAll);
    const Time best = planner.iteration(plan);
    for (const auto& [part, off] : kOff) {
      const Time less = planner.iteration(planner.search(off));
      EXPECT_LE(best, less) << part << ", seed " << seed;
      EXPECT_LE(best, planner.iteration(PartitionPlanner::without(plan, off))) << part << ", seed " << seed;
      gains[part] += best < less ? 1 : 0;
    }
  }
  // Each part pays on some chain.
  for (const auto& [part, count] : gains) EXPECT_GT(count, 0) << part;
}

std::string yaml_of(const Chain& chain, const std::string& parts) {
  const auto transport = [](const PartitionCosts::Transport& of) {
    return "{startup: " + std::to_string(of.startup) + " ps, rate: " + std::to_string(of.rate) + " bps}";
  };
  std::string text =
      "{kind: layers, replicas: " + std::to_string(chain.costs.workers) +
      ", iterations: 4, exchange: {kind: centauri, per_host: " + std::to_string(chain.costs.per_host) +
      ", within: " + transport(chain.costs.within) + ", between: " + transport(chain.costs.between) +
      ", parts: {" + parts + "}}, layers: [";
  for (const TimedLayer& layer : chain.layers)
    text += (text.back() == '[' ? "" : ", ") + ("{name: " + layer.name) +
            ", forward: " + std::to_string(layer.forward) +
            " ps, backward: " + std::to_string(layer.backward) +
            " ps, bytes: " + std::to_string(layer.bytes) + " B}";
  return text + "]}";
}
std::unique_ptr<TaskSource> source_of(const std::string& yaml, std::uint32_t gpus) {
  return Registry<WorkloadKind>::instance().create(parse_config(yaml, "layers.yaml"), "")->tasks(gpus);
}
CollectiveSpan span_of(const std::string& name) {
  return name.ends_with(" within")    ? CollectiveSpan::within_host
         : name.ends_with(" between") ? CollectiveSpan::between_hosts
                                      : CollectiveSpan::all;
}

// A program whose collectives take what the cost model says takes the iteration that the planner predicts.
TEST(Centauri, ProgramsTakeWhatTheirPlansPredict) {
  const std::uint64_t chains = test::by_size<std::uint64_t>(100, 10, 3);
  for (std::uint64_t seed = 1; seed <= chains; ++seed) {
    const Chain chain = random_chain(seed, 4);
    const PartitionPlanner planner(chain.layers, chain.costs);
    std::map<std::string, PartitionParts> all = kOff;
    all["none"] = kAll;
    for (const auto& [part, parts] : all) {
      SCOPED_TRACE(part + ", seed " + std::to_string(seed));
      const auto source =
          source_of(yaml_of(chain, part == "none" ? "" : part + ": false"), chain.costs.workers);
      const Replay replay(*source, [&](const Task& task) {
        const CollectiveSpan span = span_of(source->names()[task.name]);
        const Bytes whole =
            span == CollectiveSpan::between_hosts ? task.bytes() * chain.costs.per_host : task.bytes();
        return chain.costs.time(task.collective().collective, span, whole);
      });
      EXPECT_TRUE(replay.done());
      EXPECT_EQ(replay.steady(), planner.iteration(planner.search(parts)));
    }
  }
}

// NICs carry 2 (H - 1)/H n/h a rank with groups, 2 (p - 1)/p n without; within a host 2 (h - 1)/h n move.
TEST(Centauri, MovesWhatItsGroupsMove) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const Chain chain = random_chain(seed);
    const Bytes p = chain.costs.workers, h = chain.costs.per_host, hosts = p / h;
    const PartitionPlanner::Plan plan = PartitionPlanner(chain.layers, chain.costs).search(kAll);
    Bytes within = 0, between = 0;  // of a rank and iteration, times p
    for (std::size_t i = 0; i < chain.layers.size(); ++i) {
      const Bytes n = chain.layers[i].bytes;
      within += plan[i].grouped ? 2 * (h - 1) * n * hosts : 0;
      between += plan[i].grouped ? 2 * (hosts - 1) * n : 2 * (p - 1) * n;
    }
    const auto source = source_of(yaml_of(chain, ""), chain.costs.workers);
    Bytes within_found = 0, between_found = 0;
    for (const Task& task : test::tasks_of(*source, 0)) {
      if (task.kind() != TaskKind::collective || task.iteration != 1) continue;
      const CollectiveSpan span = span_of(source->names()[task.name]);
      const Bytes times = task.collective().collective == CollectiveKind::all_reduce ? 2 : 1;
      const Bytes ranks = chain.costs.ranks(span);
      EXPECT_EQ(source->group(task.group()).size(), static_cast<std::size_t>(ranks));
      (span == CollectiveSpan::within_host ? within_found : between_found) +=
          times * task.bytes() * (ranks - 1) * (p / ranks);
    }
    EXPECT_EQ(within_found, within) << seed;
    EXPECT_EQ(between_found, between) << seed;
  }
}

// In k chunks only 1/k of the work within a host shows, half of it at the begin and half at the end.
TEST(Centauri, ChunksHideOneTransportBehindTheOther) {
  std::vector<TimedLayer> layer(1);
  layer[0].bytes = 1'600'000;
  // Two ranks a host and two hosts. Between them 0.8 MB move at a rate of 8 bit/ns, so x = 800 us.
  PartitionCosts costs{4, 2, {0, 0}, {0, 8 * kGbps}};
  // Within a host a reduce-scatter and a gather of 0.8 MB take 300 us each.
  costs.within.rate = 21'333'333'334;
  const PartitionPlanner planner(layer, costs);
  const Time x = costs.time(CollectiveKind::all_reduce, CollectiveSpan::between_hosts, layer[0].bytes);
  const Time half = costs.time(CollectiveKind::all_gather, CollectiveSpan::within_host, layer[0].bytes);
  EXPECT_EQ(x, 800 * kMicrosecond);
  EXPECT_NEAR(static_cast<double>(half), 3e8, 10);
  const auto time = [&](std::uint32_t chunks) { return planner.iteration({{{false, true, chunks}, false}}); };
  EXPECT_EQ(time(1), x + 2 * half);
  for (const std::uint32_t chunks : {2U, 4U, 8U}) {
    const double piece = 2.0 * static_cast<double>(half) / chunks;
    EXPECT_NEAR(static_cast<double>(time(chunks)), static_cast<double>(x) + piece, 10.0 * chunks);
  }
}

// SYNDICATE: x between hosts and y = 0.75 x within them take max(x, y) instead of x + y, 1.75 times less. On
// one transport they follow each other, and nothing is gained.
TEST(Centauri, MotifsOnTwoTransportsRunBesideEachOther) {
  const auto end = [](LayerStep::Span second, std::uint32_t queue) {
    std::vector<TimedLayer> layers(1);
    layers[0].name = "l";
    layers[0].bytes = 1'000'000;
    const auto order = Registry<BackwardOrder>::instance().create(ConfigNode(), "in_order")->order(layers);
    ProgramBuilder builder("motifs");
    LayerStep step(builder, layers, order, 4, 0, 2);
    step.forwards();
    step.backward();
    const LayerStep::Node gradient = step.gradient(0);
    step.collective("x", CollectiveKind::all_to_all, 1'000'000, {gradient}, LayerStep::Span::between_hosts,
                    0);
    step.collective("y", CollectiveKind::all_reduce, 1'000'000, {gradient}, second, queue);
    step.finish();
    const auto source = make_role_program_source(builder.finish(), "motifs", {}, {});
    const Replay replay(*source, [&](const Task& task) {
      return source->names()[task.name] == "x" ? 800 * kMicrosecond : 600 * kMicrosecond;
    });
    EXPECT_TRUE(replay.done());
    return replay.ends().front();
  };
  const Time serial = 1400 * kMicrosecond;
  EXPECT_EQ(100 * serial, 175 * end(LayerStep::Span::within_host, 1));
  EXPECT_EQ(serial, end(LayerStep::Span::between_hosts, 0));
}

TEST(Centauri, RefusesWhatItsCostModelLacks) {
  const auto refusal = [](const std::string& more) -> std::string {
    try {
      source_of("{kind: layers, replicas: 4, " + more + "}", 4);
    } catch (const std::exception& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(refusal("exchange: {kind: centauri, per_host: 2}, layers: [{bytes: 1 MB, all_to_all: 1 MB}]"),
              HasSubstr("without all-to-alls"));
  EXPECT_THAT(refusal("exchange: {kind: centauri, per_host: 3}, layers: [{bytes: 1 MB}]"),
              HasSubstr("4 workers cannot be divided into hosts of 3"));
  EXPECT_THAT(
      refusal("exchange: {kind: centauri, per_host: 2}, optimizer: {per: whole}, layers: [{bytes: 1 MB}]"),
      HasSubstr("optimizer.per has to be layer"));
}

}  // namespace
}  // namespace netsim::centauri_test
