// Tests that `kind: layers` takes exactly as long as closed forms say, with communications of given times.
// The forms are those of wait-free backpropagation, PyTorch's DDP, DeAR, servers, and the choice of Poseidon.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "sim/core/random.h"
#include "sim/core/registry.h"
#include "sim/workload/program/program_file.h"
#include "sim/workload/program/role_program_source.h"
#include "sim/workload/workload.h"
#include "tests/support/paths.h"
#include "tests/support/tasks_of.h"
#include "tests/training/layers/replay.h"

namespace netsim::layers_test {
namespace {

using test::Replay;
using ::testing::ElementsAre;

std::unique_ptr<WorkloadKind> kind_of(const std::string& yaml) {
  return Registry<WorkloadKind>::instance().create(parse_config("kind: layers\n" + yaml, "layers.yaml"), "");
}
std::unique_ptr<TaskSource> source_of(const std::string& yaml, std::uint32_t gpus = 8) {
  return kind_of(yaml)->tasks(gpus);
}

// A serial channel on which a byte of an all-reduce takes 1 ns and each communication `startup`. A reduce-
// scatter and an all-gather take half of an all-reduce.
Replay::Duration channel(Time startup = 0, Time byte = kNanosecond) {
  return [=](const Task& task) {
    const bool half = task.kind() == TaskKind::collective &&
                      (task.collective().collective == CollectiveKind::all_gather ||
                       task.collective().collective == CollectiveKind::reduce_scatter);
    return startup + task.bytes() * byte / (half ? 2 : 1);
  };
}

Time steady_time(const std::string& yaml, const Replay::Duration& duration) {
  const auto source = source_of(yaml);
  const Replay replay(*source, duration);
  EXPECT_TRUE(replay.done());
  return replay.steady();
}

struct ChainLayer {
  Time forward, backward;  // ms
  Bytes megabytes;         // 1 ms each
};

std::string chain_yaml(const std::vector<ChainLayer>& layers, const std::string& more = {}) {
  std::string yaml = "replicas: 2\niterations: 4\n" + more + "layers:\n";
  for (const ChainLayer& layer : layers) {
    yaml += "  - {forward: " + std::to_string(layer.forward) +
            " ms, backward: " + std::to_string(layer.backward) +
            " ms, bytes: " + std::to_string(layer.megabytes) + " MB}\n";
  }
  return yaml;
}

// e_l = max(e_(l+1), ready_l) + c_l + a; the iteration takes F + e_1, counted from the end of the forward.
Time recurrence(const std::vector<ChainLayer>& layers, Time startup) {
  Time now = 0, end = 0;
  for (const ChainLayer& layer : layers) now += layer.forward * kMillisecond;
  for (std::size_t l = layers.size(); l-- > 0;) {
    now += layers[l].backward * kMillisecond;
    if (layers[l].megabytes > 0) end = std::max(end, now) + layers[l].megabytes * kMillisecond + startup;
  }
  return std::max(now, end);
}

TEST(WaitFreeBackpropagation, TakesEighteenUnitsOnTheChainOfFour) {
  EXPECT_EQ(steady_time(chain_yaml({{1, 2, 3}, {1, 2, 3}, {1, 2, 3}, {1, 2, 3}}), channel()),
            18 * kMillisecond);
  EXPECT_EQ(steady_time(chain_yaml({{1, 2, 1}, {1, 2, 1}, {1, 2, 1}, {1, 2, 9}}), channel()),
            18 * kMillisecond);
  EXPECT_EQ(steady_time(chain_yaml({{1, 2, 1}, {1, 2, 1}, {1, 2, 9}, {1, 2, 1}}), channel()),
            19 * kMillisecond);
}

// Layers other than the first may have no gradient. Without one in the first layer the next iteration begins
// when the backward has ended, which the recurrence does not say.
TEST(WaitFreeBackpropagation, FollowsTheRecurrenceOnRandomChains) {
  std::uint64_t state = 1;
  const auto draw = [&](std::uint64_t below) {
    state = mix64(state + 1);
    return static_cast<std::int64_t>(state % below);
  };
  for (int round = 0; round < 1000; ++round) {
    std::vector<ChainLayer> layers;
    const std::int64_t count = 1 + draw(12);
    for (std::int64_t l = 0; l < count; ++l)
      layers.push_back({draw(10), draw(10), l == 0 ? 1 + draw(9) : draw(10)});
    const Time startup = draw(1000) * kMicrosecond;
    ASSERT_EQ(steady_time(chain_yaml(layers), channel(startup)), recurrence(layers, startup)) << round;
  }
}

// L = 100, F = 1 s, Bk = 2 s, C = 2 s, a = 20 ms.
TEST(DistributedDataParallel, HasItsBestBucketInTheInterior) {
  const std::map<int, Time> expected{{1, 5020},  {2, 4040},  {5, 3500},  {10, 3400},
                                     {20, 3500}, {50, 4040}, {100, 5020}};
  for (const auto& [layers, milliseconds] : expected) {
    const std::string yaml =
        "replicas: 2\niterations: 4\nlayers: [{count: 100, forward: 10 ms, backward: 20 ms, bytes: 20 MB}]\n"
        "exchange: {kind: all_reduce, bucket: " +
        std::to_string(20 * layers) + " MB}\n";
    EXPECT_EQ(steady_time(yaml, channel(20 * kMillisecond)), milliseconds * kMillisecond) << layers;
  }
}

std::vector<Bytes> collective_bytes(const TaskSource& source, std::uint32_t iteration = 0) {
  std::vector<Bytes> bytes;
  for (const Task& task : test::tasks_of(source, 0)) {
    if (task.kind() == TaskKind::collective && task.iteration == iteration) bytes.push_back(task.bytes());
  }
  return bytes;
}

TEST(DistributedDataParallel, ClosesABucketWhenItHasReachedItsSize) {
  const auto source = source_of(
      "replicas: 2\nlayers: [{count: 6, forward: 1 ms, backward: 1 ms, bytes: 10 MB}]\n"
      "exchange: {kind: all_reduce, bucket: 25 MB, first_bucket: 1 MB}\n");
  EXPECT_THAT(collective_bytes(*source), ElementsAre(10'000'000, 30'000'000, 20'000'000));
}

// T = max(Bk + C/2L, Bk/L + C/2) + C/2L + F/L + (L-1)/L max(F, C/2), with f = 1 ms and b = 2 ms.
TEST(Dear, TakesWhatItsClosedFormSays) {
  const std::map<std::pair<Time, Time>, double> gains{
      {{4, 3}, 1.091},  {{4, 4}, 1.158},   {{4, 6}, 1.111},   {{10, 3}, 1.120}, {{10, 4}, 1.209},
      {{10, 6}, 1.143}, {{100, 3}, 1.140}, {{100, 4}, 1.246}, {{100, 6}, 1.164}};
  for (const auto& [shape, gain] : gains) {
    const auto [layers, c] = shape;
    const std::string yaml = "replicas: 2\niterations: 4\nlayers: [{count: " + std::to_string(layers) +
                             ", forward: 1 ms, backward: 2 ms, bytes: " + std::to_string(c) + " MB}]\n";
    const Time half = c * kMillisecond / 2, f = kMillisecond;
    const Time expected =
        std::max(2 * f * layers + half, 2 * f + layers * half) + half + f + (layers - 1) * std::max(f, half);
    const Time dear = steady_time(yaml + "exchange: {kind: dear, group: 0}\n", channel());
    EXPECT_EQ(dear, expected) << layers << " " << c;
    const Time wait_free = steady_time(yaml, channel());
    EXPECT_NEAR(static_cast<double>(wait_free) / static_cast<double>(dear), gain, 0.0006)
        << layers << " " << c;
  }
}

// With c = 2 f nothing is gained, whatever the number of layers.
TEST(Dear, GainsNothingWhereTheBackwardHidesEverything) {
  const std::string yaml =
      "replicas: 2\niterations: 4\nlayers: [{count: 10, forward: 1 ms, backward: 2 ms, bytes: 2 MB}]\n";
  EXPECT_EQ(steady_time(yaml + "exchange: {kind: dear, group: 0}\n", channel()),
            steady_time(yaml, channel()));
}

TEST(Dear, GathersOneGroupAhead) {
  const auto source = source_of(
      "replicas: 2\niterations: 3\nlayers: [{count: 4, forward: 10 ms, backward: 1 ms, bytes: 2 MB}]\n"
      "exchange: {kind: dear, group: 0}\n");
  const Replay replay(*source, channel());
  EXPECT_EQ(replay.begin("gather layer_3", 1), replay.begin("forward layer_2", 1));
  EXPECT_EQ(replay.begin("gather layer_4", 1), replay.begin("forward layer_3", 1));
}

// A push and a pull channel, each a FIFO of whole layers: the pull of the first layer ends last.
TEST(Servers, PushAndPullWholeLayersInOrder) {
  const std::string yaml =
      "replicas: 1\niterations: 4\nexchange: servers\nlayers:\n"
      "  - {count: 4, forward: 1 ms, backward: 2 ms, bytes: 3 MB}\n";
  EXPECT_EQ(steady_time(yaml, channel()), 21 * kMillisecond);
}

// VGG-19, where a worker computes as long as it pushes: 2.049 times the computing (71.5 % of it is fc6).
TEST(Servers, OfVggTakeTwiceTheComputingWithWholeLayers) {
  const auto source = source_of("file: " + source_directory() +
                                "/configs/workloads/layers/vgg_19.csv\nreplicas: 1\niterations: 4\n"
                                "exchange: {kind: servers, servers: 1}\n");
  Time computing = 0;
  Bytes pushed = 0;
  for (const Task& task : test::tasks_of(*source, 0)) {
    if (task.iteration > 0) continue;
    if (task.kind() == TaskKind::send) pushed += task.bytes();
    if (task.kind() != TaskKind::compute) continue;
    for (const Kernel& kernel : source->works()[task.work()].kernels) computing += kernel.duration;
  }
  ASSERT_EQ(pushed, 4 * 143'667'240);
  const Replay replay(*source, [&](const Task& task) {
    return static_cast<Time>(static_cast<double>(task.bytes()) * static_cast<double>(computing) /
                             static_cast<double>(pushed));
  });
  EXPECT_NEAR(static_cast<double>(replay.steady()) / static_cast<double>(computing), 2.049, 0.005);
}

// Server of each push of rank 0.
std::map<std::string, RankId> servers_by_layer(const TaskSource& source) {
  std::map<std::string, RankId> servers;
  for (const Task& task : test::tasks_of(source, 0)) {
    if (task.kind() == TaskKind::send) servers[source.names()[task.name]] = task.message().peer;
  }
  return servers;
}

TEST(Servers, GetTheLayersInTurnOrBySize) {
  const std::string yaml =
      "replicas: 3\nlayers:\n"
      "  - {name: a, forward: 1 ms, backward: 1 ms, bytes: 8 MB}\n"
      "  - {name: b, forward: 1 ms, backward: 1 ms, bytes: 1 MB}\n"
      "  - {name: c, forward: 1 ms, backward: 1 ms, bytes: 2 MB}\n";
  const auto in_turn = source_of(yaml + "exchange: {kind: servers, servers: 2}\n");
  EXPECT_EQ(in_turn->ranks(), 5U);
  EXPECT_EQ(servers_by_layer(*in_turn),
            (std::map<std::string, RankId>{{"push a", 3}, {"push b", 4}, {"push c", 3}}));
  const auto by_size = source_of(yaml + "exchange: {kind: servers, servers: 2, assign: by_size}\n");
  EXPECT_EQ(servers_by_layer(*by_size),
            (std::map<std::string, RankId>{{"push a", 3}, {"push b", 4}, {"push c", 4}}));
}

// Slices are answered one by one, so that only the pull of the last one follows its push.
TEST(Servers, PushAndPullSlices) {
  const std::string yaml =
      "replicas: 1\niterations: 4\nexchange: {kind: servers, slice: 1 MB}\nlayers:\n"
      "  - {count: 4, forward: 1 ms, backward: 2 ms, bytes: 3 MB}\n";
  EXPECT_EQ(steady_time(yaml, channel()), 19 * kMillisecond);
}

TEST(Servers, GetTheSlicesInTurn) {
  const auto source = source_of(
      "replicas: 1\nexchange: {kind: servers, servers: 2, slice: 4 MB}\nlayers:\n"
      "  - {name: a, forward: 1 ms, backward: 1 ms, bytes: 9 MB}\n"
      "  - {name: b, forward: 1 ms, backward: 1 ms, bytes: 4 MB}\n");
  EXPECT_EQ(
      servers_by_layer(*source),
      (std::map<std::string, RankId>{{"push a.1", 1}, {"push a.2", 2}, {"push a.3", 1}, {"push b", 2}}));
}

TEST(Servers, AddTheGradientsBeforeTheyAnswer) {
  const std::string yaml =
      "replicas: 1\niterations: 3\nlayers: [{forward: 1 ms, backward: 2 ms, bytes: 1 MB}]\n";
  // 1 MB at 8 Gb/s takes 1 ms.
  EXPECT_EQ(steady_time(yaml + "exchange: {kind: servers, sum: 8 Gbps}\n", channel()), 6 * kMillisecond);
}

// fc7 of VGG with a batch of 32: factors are fewer bytes with fewer than 128 workers.
TEST(SufficientFactors, AreSentWhereTheyAreFewerBytes) {
  for (const std::uint32_t workers : {2U, 127U, 128U, 129U}) {
    const auto source =
        source_of("replicas: " + std::to_string(workers) +
                      "\nlayers: [{name: fc7, forward: 1 ms, backward: 2 ms, matrix: [4096, 4096]}]\n"
                      "exchange: {kind: sufficient_factors, batch: 32}\n",
                  129);
    for (const Task& task : test::tasks_of(*source, 0)) {
      if (task.kind() != TaskKind::collective) continue;
      const bool factors = workers < 128;
      EXPECT_EQ(task.collective().collective,
                factors ? CollectiveKind::all_gather : CollectiveKind::all_reduce);
      EXPECT_EQ(task.bytes(), factors ? Bytes{workers} * 32 * 8192 * 4 : 4096 * 4096 * 4) << workers;
    }
  }
}

TEST(SufficientFactors, AreMultipliedAgain) {
  // 2 x 10 x 2 x 1000 x 1000 operations at 1e10 a second take 4 ms, the exchange 80 us.
  const std::string yaml =
      "replicas: 2\niterations: 3\nlayers: [{forward: 1 ms, backward: 2 ms, matrix: [1000, 1000]}]\n"
      "exchange: {kind: sufficient_factors, batch: 10, choice: always, operations: 1e10}\n";
  EXPECT_EQ(steady_time(yaml, channel()), 7 * kMillisecond + 80 * kMicrosecond);
}

TEST(LazyFusion, ReducesThePoolWhenItIsFullAndAtTheEnd) {
  const std::string yaml = "replicas: 2\nlayers: [{count: 10, forward: 1 ms, backward: 1 ms, bytes: 1 MB}]\n";
  const auto source = source_of(yaml + "exchange: {kind: lazy_fusion, threshold: 4 MB}\n");
  EXPECT_THAT(collective_bytes(*source), ElementsAre(4'000'000, 4'000'000, 2'000'000));
}

TEST(LazyFusion, ReducesNormsAndChosenChunksAfterTheWarmUp) {
  const auto source = source_of(
      "replicas: 2\niterations: 2\nlayers: [{count: 4, forward: 1 ms, backward: 1 ms, bytes: 1 MB}]\n"
      "exchange: {kind: lazy_fusion, threshold: 4 MB, sparse: {chunk: 100 kB, density: 0.25, warm_up: 1}}\n");
  EXPECT_THAT(collective_bytes(*source, 0), ElementsAre(160, 4'000'000));
  EXPECT_THAT(collective_bytes(*source, 1), ElementsAre(160, 1'000'000));
}

// N tensors of which each group has one start-up: what fusing saves is exact where nothing is hidden.
TEST(LazyFusion, SavesTheStartUpsOfTheTensorsThatItFuses) {
  const std::string yaml = "replicas: 2\niterations: 3\nlayers: [{count: 12, bytes: 1 MB}]\n";
  const Time startup = 5 * kMillisecond;
  const Time apart = steady_time(yaml, channel(startup));
  const Time fused = steady_time(yaml + "exchange: {kind: lazy_fusion, threshold: 3 MB}\n", channel(startup));
  EXPECT_EQ(apart - fused, (12 - 4) * startup);
}

std::vector<std::string> names_of(const TaskSource& source) {
  std::vector<std::string> names;
  for (const Task& task : test::tasks_of(source, 0)) {
    if (task.iteration == 0) names.push_back(source.names()[task.name]);
  }
  return names;
}

// dW_l and dX_l of the layers above k, then dX_k to dX_2, then dW_1 to dW_k.
TEST(ReverseFirstK, ComputesTheWeightGradientsOfTheFirstLayersLast) {
  const std::string layers =
      "replicas: 2\nlayers:\n  - {name: l_1, forward: 1 ms, weight_gradient: 1 ms}\n"
      "  - {name: l_2, forward: 1 ms, backward: 1 ms, weight_gradient: 1 ms}\n"
      "  - {name: l_3, forward: 1 ms, backward: 1 ms, weight_gradient: 1 ms}\n";
  EXPECT_THAT(names_of(*source_of(layers)),
              ElementsAre("forward l_1", "forward l_2", "forward l_3", "weight_gradient l_3", "backward l_3",
                          "weight_gradient l_2", "backward l_2", "weight_gradient l_1"));
  EXPECT_THAT(names_of(*source_of(layers + "backward: {kind: reverse_first_k, k: 2}\n")),
              ElementsAre("forward l_1", "forward l_2", "forward l_3", "weight_gradient l_3", "backward l_3",
                          "backward l_2", "weight_gradient l_1", "weight_gradient l_2"));
}

// In order, the gradient of the first layer is computed at 11 ms and exchanged at 14. With k = 4 it is
// computed at 8, before the others, and the next forward hides what they exchange.
TEST(ReverseFirstK, HidesWhatTheFirstLayersExchange) {
  const std::string layers =
      "replicas: 2\niterations: 4\nlayers:\n  - {forward: 1 ms, weight_gradient: 1 ms, bytes: 3 MB}\n"
      "  - {name: l, count: 3, forward: 1 ms, backward: 1 ms, weight_gradient: 1 ms, bytes: 1 MB}\n";
  EXPECT_EQ(steady_time(layers, channel()), 14 * kMillisecond);
  EXPECT_EQ(steady_time(layers + "backward: {kind: reverse_first_k, k: 4}\n", channel()), 11 * kMillisecond);
}

TEST(Optimizer, UpdatesEachLayerOrAllOfThem) {
  const std::string yaml =
      chain_yaml({{1, 2, 3}, {1, 2, 3}, {1, 2, 3}, {1, 2, 3}}, "optimizer: {time: 1 ms}\n");
  // The update of the first layer comes last, and the next forward waits for it.
  EXPECT_EQ(steady_time(yaml, channel()), 19 * kMillisecond);
  const std::string whole =
      chain_yaml({{1, 2, 3}, {1, 2, 3}, {1, 2, 3}, {1, 2, 3}}, "optimizer: {per: whole, time: 4 ms}\n");
  EXPECT_EQ(steady_time(whole, channel()), 22 * kMillisecond);
}

TEST(TimedLayers, ExchangeTokensAroundExperts) {
  const auto source = source_of(
      "replicas: 2\nlayers:\n  - {name: a, forward: 1 ms, backward: 1 ms, bytes: 1 MB}\n"
      "  - {name: e, forward: 1 ms, backward: 1 ms, all_to_all: 2 MB}\n");
  EXPECT_THAT(names_of(*source),
              ElementsAre("forward a", "dispatch e", "forward e", "combine e", "combine_gradient e",
                          "backward e", "dispatch_gradient e", "backward a", "gradients a"));
}

// d reads b and c, which read a; the list has them in another order.
TEST(TimedLayers, FormAGraph) {
  const auto source = source_of(
      "replicas: 2\nlayers:\n  - {name: d, forward: 1 ms, after: [b, c]}\n  - {name: a, forward: 1 ms, "
      "after: []}\n"
      "  - {name: b, forward: 1 ms, after: [a]}\n  - {name: c, forward: 1 ms, after: [a]}\n");
  EXPECT_THAT(names_of(*source), ElementsAre("forward a", "forward b", "forward c", "forward d", "backward d",
                                             "backward c", "backward b", "backward a"));
}

TEST(TimedLayers, AreScaled) {
  const std::string yaml = chain_yaml({{1, 2, 3}, {1, 2, 3}, {1, 2, 3}, {1, 2, 3}},
                                      "scale: {forward: 2, backward: 2, bytes: 2}\n");
  EXPECT_EQ(steady_time(yaml, channel()), 36 * kMillisecond);
}

// A compiled file has the same tasks as the description.
TEST(TimedLayers, CompileToAFile) {
  const std::string yaml = chain_yaml({{1, 2, 3}, {1, 2, 3}}, "exchange: {kind: servers, servers: 2}\n");
  const auto source = source_of(yaml);
  const auto compiled =
      make_role_program_source(parse_program(kind_of(yaml)->compile(), "layers.pb"), "layers.pb");
  ASSERT_EQ(compiled->ranks(), source->ranks());
  for (RankId rank = 0; rank < source->ranks(); ++rank)
    EXPECT_EQ(test::task_count(*compiled, rank), test::task_count(*source, rank));
  EXPECT_EQ(Replay(*compiled, channel()).ends(), Replay(*source, channel()).ends());
}

TEST(TimedLayers, TakeAllGpusWithoutReplicas) {
  EXPECT_EQ(source_of("layers: [{forward: 1 ms}]\n", 6)->ranks(), 6U);
  EXPECT_EQ(source_of("layers: [{forward: 1 ms}]\nexchange: {kind: servers, servers: 2}\n", 6)->ranks(), 6U);
}

}  // namespace
}  // namespace netsim::layers_test
