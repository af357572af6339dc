// Tests collectives in parts: closed forms of their times and bytes, the search, and products with all other
// parallelism.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/errors.h"
#include "sim/core/random.h"
#include "sim/training/strategy/collective_partition.h"
#include "tests/support/tasks_of.h"
#include "tests/support/test_size.h"
#include "tests/training/strategy/played_jobs.h"
#include "tests/workload/program/small_programs.h"
#include "tests/workload/task_player.h"

namespace netsim::partitioned_collectives_test {
namespace {

using netsim::test::parse_workload;
using netsim::test::TaskPlayer;
using ::testing::HasSubstr;

constexpr std::array kKinds{CollectiveKind::all_reduce, CollectiveKind::reduce_scatter,
                            CollectiveKind::all_gather};

PartitionCosts random_costs(RandomStream& random) {
  PartitionCosts costs;
  costs.per_host = random.below(2) == 0 ? 2 : 4;
  costs.workers = costs.per_host * static_cast<std::uint32_t>(2 + random.below(3));
  costs.within = {static_cast<Time>(random.below(40)) * kMicrosecond,
                  static_cast<BitRate>(50 + random.below(1000)) * kGbps};
  costs.between = {static_cast<Time>(random.below(200)) * kMicrosecond,
                   static_cast<BitRate>(20 + random.below(200)) * kGbps};
  costs.ring_rate = costs.between.rate * static_cast<BitRate>(costs.per_host);
  return costs;
}

// The partition that the search finds is never slower than that of a search with fewer parts, nor than the
// same one without a part. Each part pays for some series.
TEST(PartitionedCollectives, NoPartMakesASeriesSlower) {
  const std::uint64_t count = test::by_size<std::uint64_t>(500, 500, 100);
  std::map<std::string, int> gains;
  for (std::uint64_t seed = 1; seed <= count; ++seed) {
    RandomStream random(seed, "series of a test");
    const PartitionCosts costs = random_costs(random);
    const CollectiveKind kind = kKinds[random.below(kKinds.size())];
    const Bytes bytes = static_cast<Bytes>(1 + random.below(400)) * 100'000;
    const auto series = static_cast<std::uint32_t>(1 + random.below(6));
    const auto time = [&](const CollectivePartition& p) {
      return series_time(costs, kind, bytes, series, p);
    };
    const CollectivePartition best = best_partition(costs, kind, bytes, series, {});
    CollectivePartition ungrouped = best, whole = best;
    ungrouped.grouped = false;
    whole.chunks = 1;
    for (const CollectivePartition& other :
         {ungrouped, whole, CollectivePartition{}, best_partition(costs, kind, bytes, series, {true, false}),
          best_partition(costs, kind, bytes, series, {false, true})})
      EXPECT_LE(time(best), time(other)) << seed;
    gains["group"] += time(best) < time(ungrouped) ? 1 : 0;
    gains["workload"] += time(best) < time(whole) ? 1 : 0;
    gains["none"] += best == CollectivePartition{} ? 1 : 0;
  }
  for (const auto& [part, times] : gains) EXPECT_GT(times, 0) << part;
}

std::string gpt(const std::string& more) {
  return "{kind: ptdp, model: {layers: 4, hidden: 64, heads: 4, sequence: 16, vocabulary: 128}, " + more +
         "}";
}
std::string with(const std::string& text, const std::string& strategy) {
  const std::size_t list = text.find("strategies: [");
  if (list != std::string::npos) return std::string(text).insert(list + 13, strategy + ", ");
  return text.substr(0, text.size() - 1) + ", strategies: [" + strategy + "]}";
}
// Collectives have no start-up in the cost model, so cuts pay wherever they may.
std::string parts(std::uint32_t per_host = 2, const std::string& more = "") {
  return "{kind: partitioned_collectives, per_host: " + std::to_string(per_host) +
         ", within: {startup: 0 s, rate: 60 Gbps}, between: {startup: 0 s, rate: 8 Gbps}" + more + "}";
}

struct Span {
  std::uint32_t ranks = 1, per_host = 1;
};
Span span_of(const TaskSource& source, const Task& task, std::uint32_t per_host) {
  std::map<RankId, std::uint32_t> hosts;
  for (const RankId rank : source.group(task.group())) ++hosts[rank / per_host];
  std::uint32_t most = 0;
  for (const auto& [host, ranks] : hosts) most = std::max(most, ranks);
  return {static_cast<std::uint32_t>(source.group(task.group()).size()), most};
}

// An all-reduce of n takes x between hosts and y = 2 h within them. In groups and chunks it takes x + y/8.
TEST(PartitionedCollectives, ChunksHideOneTransportBehindTheOther) {
  const auto end = [](const std::string& used) {
    const std::string strategy = parts(2, used);
    const auto source =
        parse_workload(with(gpt("optimizer: none, recompute: none, parallel: {data: 4}"), strategy))
            ->tasks(4);
    TaskPlayer player(*source, 1);
    // A byte within a host takes 3 ps, a byte between them 10 ps; each transport has a half of n to carry.
    player.transfer_time = [&](const Task& task) {
      const Span span = span_of(*source, task, 2);
      const Bytes passes = task.collective().collective == CollectiveKind::all_reduce ? 2 : 1;
      return static_cast<Time>(passes * task.bytes() * (span.ranks - 1) / span.ranks *
                               (span.per_host == span.ranks ? 3 : 10));
    };
    test::expect_done(player);
    return player.end();
  };
  Bytes n = 0;
  {
    const auto source = parse_workload(gpt("optimizer: none, parallel: {data: 4}"))->tasks(4);
    for (const Task& task : test::tasks_of(*source, 0)) n += is_communication(task) ? task.bytes() : 0;
  }
  ASSERT_EQ(n % 64, 0);
  const Time x = 2 * (n / 2) / 2 * 10, y = 2 * (n / 2 * 3);
  EXPECT_EQ(end(", parts: {group: false}"), 2 * (n * 3 / 4) * 10);
  EXPECT_EQ(end(", parts: {workload: false}"), x + y);
  EXPECT_EQ(end(""), x + y / 8);
}

struct Product {
  const char* name;
  std::uint32_t ranks, per_host;
  std::string text;
};
std::vector<Product> products() {
  const std::string experts =
      "{kind: ptdp, model: {kind: llama, layers: 4, hidden: 64, heads: 4, groups: 4, inner: 128, sequence: "
      "32, vocabulary: 128, experts: {count: 4, top_k: 2, inner: 64}}, microbatch: 2, recompute: none, ";
  return {
      {"tensor", 4, 2, gpt("microbatch: 2, parallel: {tensor: 4}")},
      {"sequence", 4, 2, gpt("microbatch: 2, recompute: selective, parallel: {tensor: 4, sequence: true}")},
      {"tensor, pipeline and data", 16, 4,
       gpt("microbatches: 4, parallel: {tensor: 2, pipeline: 2, data: 4}, gradient: {bucket: 20 KB, overlap: "
           "true}")},
      {"context", 8, 4,
       gpt("parallel: {tensor: 2, context: 4, context_exchange: all_gather}, optimizer: distributed_adam")},
      {"zero bubbles", 8, 2, gpt("microbatches: 4, parallel: {tensor: 4, pipeline: 2, schedule: zb_h1}")},
      {"bidirectional", 8, 2,
       gpt("microbatches: 4, parallel: {pipeline: 2, data: 4, schedule: {kind: chimera, eager_reduction: "
           "none}}")},
      {"divided parameters", 4, 2,
       gpt("microbatches: 2, parallel: {data: 4}, optimizer: distributed_adam, sharding: {what: "
           "parameters}")},
      {"divided by groups", 16, 2,
       gpt("microbatches: 2, parallel: {data: 16}, optimizer: distributed_adam, sharding: {what: parameters, "
           "group: 4, separate_reduce_scatter: true}")},
      {"divided gradients", 4, 2,
       gpt("microbatches: 2, parallel: {data: 4}, optimizer: distributed_adam, sharding: {what: gradients}")},
      {"a distributed optimizer", 8, 4,
       gpt("parallel: {tensor: 2, data: 4}, optimizer: distributed_adam, overlap_parameter_gather: true, "
           "gradient: {bucket: 20 KB, overlap: true}")},
      {"local steps", 4, 2, gpt("parallel: {data: 4}, gradient: {local_steps: 3, bucket: 100 KB}")},
      {"experts", 4, 2, experts + "parallel: {data: 4, expert: 4}}"},
      {"experts, tensor and pipeline", 16, 4,
       experts + "microbatches: 2, parallel: {tensor: 2, sequence: true, pipeline: 2, data: 4, expert: 4}}"},
      {"an optimizer in steps", 8, 4,
       gpt("iterations: 2, parallel: {tensor: 2, data: 4}, optimizer: distributed_adam, "
           "overlap_parameter_gather: true, gradient: {bucket: 20 KB, overlap: true, per: layer}, "
           "strategies: "
           "[layer_optimizer]")},
      {"halves of a microbatch", 4, 2,
       gpt("microbatch: 2, parallel: {tensor: 4}, strategies: [sub_batches]")},
      {"windows", 4, 2, gpt("recompute: full, parallel: {tensor: 4}, strategies: [recompute_windows]")},
      {"slices", 8, 2,
       gpt("microbatches: 2, parallel: {tensor: 4, pipeline: 2}, strategies: [sliced_boundaries]")},
      {"reductions in bubbles", 8, 2,
       gpt("microbatches: 4, parallel: {pipeline: 2, data: 4, schedule: {kind: chimera, eager_reduction: "
           "all}}, gradient: {bucket: 100 KB}")},
      {"two versions of weights", 8, 2,
       gpt("microbatches: 4, parallel: {pipeline: 2, data: 4, schedule: {kind: pipedream_2bw, batch: 2}}, "
           "optimizer: distributed_adam")},
      {"segments", 16, 4,
       gpt("microbatches: 4, parallel: {tensor: 2, pipeline: 2, virtual_stages: 2, data: 4, schedule: "
           "fold3d}")},
  };
}

// Traffic: bytes that leave ranks within hosts and between hosts, by the name of the whole collective.
struct Traffic {
  std::map<std::string, std::pair<double, double>> moved;
  bool in_parts = false;
};
// `cuts`: counts whole collectives as if they were cut wherever they may be.
Traffic traffic(const TaskSource& source, const Product& product, bool cuts) {
  const auto part_of = [](const std::string& name, const char* end) { return name.ends_with(end); };
  Traffic all;
  for (std::uint32_t rank = 0; rank < product.ranks; ++rank) {
    for (const Task& task : test::tasks_of(source, rank)) {
      if (task.kind() != TaskKind::collective) continue;
      // The pipeline writes gathers at the boundaries of stages, which stay whole.
      if (source.names()[task.name] == "gather_forward" || source.names()[task.name] == "gather_backward")
        continue;
      std::string name = source.names()[task.name];
      for (const char* end : {"_within", "_between"}) {
        if (!part_of(name, end)) continue;
        name.resize(name.size() - std::string(end).size());
        all.in_parts = true;
      }
      const Span span = span_of(source, task, product.per_host);
      const double n = static_cast<double>(task.bytes()), p = span.ranks, h = span.per_host;
      const CollectiveKind kind = task.collective().collective;
      const double passes = kind == CollectiveKind::all_reduce ? 2 : 1;
      auto& [within, between] = all.moved[name];
      if (h == p) {
        within += passes * n * (p - 1) / p;
      } else if (h == 1) {
        between += passes * n * (p - 1) / p;
      } else if (kind == CollectiveKind::all_to_all) {
        between += n * (p - h) / p;
      } else if (cuts) {
        within += passes * n * (h - 1) / h;
        between += passes * n / h * (p / h - 1) / (p / h);
      } else {
        ADD_FAILURE() << name << " is whole";
      }
    }
  }
  return all;
}

// Every product moves what closed forms say, and ends in any order of events.
TEST(PartitionedCollectives, MoveWhatTheirGroupsMoveInEveryProduct) {
  for (const Product& product : products()) {
    SCOPED_TRACE(product.name);
    const auto whole = parse_workload(product.text)->tasks(product.ranks);
    const auto cut = parse_workload(with(product.text, parts(product.per_host)))->tasks(product.ranks);
    const Traffic expected = traffic(*whole, product, true), found = traffic(*cut, product, false);
    EXPECT_TRUE(found.in_parts);
    ASSERT_EQ(found.moved.size(), expected.moved.size());
    for (const auto& [name, bytes] : expected.moved) {
      EXPECT_NEAR(found.moved.at(name).first, bytes.first, 1e-3 * bytes.first) << name;
      EXPECT_NEAR(found.moved.at(name).second, bytes.second, 1e-3 * bytes.second) << name;
    }
    test::expect_done_in_any_order(with(product.text, parts(product.per_host)), product.ranks);
    for (std::uint64_t seed = 1; seed <= test::by_size<std::uint64_t>(50, 2, 1); ++seed) {
      const auto source = parse_workload(with(product.text, parts(product.per_host)))->tasks(product.ranks);
      test::expect_done_under_jitter(*source, seed);
    }
  }
}

// The memory that a gather needs is that of the whole.
TEST(PartitionedCollectives, NeedTheMemoryOfTheWhole) {
  const auto most = [](const std::string& text, MemoryKind kind) {
    const auto source = parse_workload(text)->tasks(4);
    return source->memory()->planned()[source->memory()->role(0)].use[kind];
  };
  const std::string text =
      gpt("microbatches: 2, parallel: {data: 4}, optimizer: distributed_adam, sharding: {what: parameters, "
          "reshard: all}");
  for (const MemoryKind kind : {MemoryKind::gathered, MemoryKind::gradients})
    EXPECT_EQ(most(with(text, parts()), kind), most(text, kind));
}

TEST(PartitionedCollectives, RefuseWhatTheyCannotCut) {
  const auto refusal = [](const std::string& more) -> std::string {
    try {
      parse_workload(with(gpt(more), parts()));
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(refusal("parallel: {pipeline: 2, data: 2, stages: [{data: 2}, {tensor: 2, data: 1}]}"),
              HasSubstr("may begin within a host: no partitioned_collectives"));
  EXPECT_THAT(refusal("parallel: {data: 4, servers: 2}"),
              HasSubstr("no ranks of a collective within a host"));
  EXPECT_THAT(refusal("parallel: {data: 4}, strategies: [partitioned_collectives]"),
              HasSubstr("is listed twice"));
}

TEST(PartitionedCollectives, SayWhereTheyCutNothing) {
  const auto notes = [](const std::string& more) {
    return parse_workload(with(gpt(more), parts()))->tasks(4)->notes();
  };
  EXPECT_THAT(notes("parallel: {tensor: 2, data: 2}"),
              ::testing::Contains(HasSubstr("partitioned_collectives cuts nothing: no group")));
  EXPECT_THAT(notes("parallel: {data: 4}"), ::testing::Not(::testing::Contains(HasSubstr("cuts nothing"))));
}

}  // namespace
}  // namespace netsim::partitioned_collectives_test
