// Tests that `kind: layers` reads both forms of a CSV, and answers wrong input with its place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/errors.h"
#include "sim/core/registry.h"
#include "sim/training/layers/backward_order.h"
#include "sim/workload/workload.h"
#include "tests/support/tasks_of.h"

namespace netsim::layer_inputs_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

std::unique_ptr<TaskSource> source_of(const std::string& yaml, std::uint32_t gpus = 8) {
  const ConfigNode node = parse_config("kind: layers\n" + yaml, "layers.yaml");
  return Registry<WorkloadKind>::instance().create(node, "")->tasks(gpus);
}

std::string layers_error(const std::string& yaml, std::uint32_t gpus = 8) {
  try {
    source_of(yaml, gpus);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

std::string written(const std::string& name, const std::string& text) {
  const std::string path = ::testing::TempDir() + name;
  std::ofstream(path) << text;
  return path;
}

// Name and time of the computations of rank 0, and name and bytes of its collectives.
std::vector<std::pair<std::string, std::int64_t>> tasks_of_rank_0(const TaskSource& source) {
  std::vector<std::pair<std::string, std::int64_t>> tasks;
  for (const Task& task : test::tasks_of(source, 0)) {
    const bool computes = task.kind() == TaskKind::compute;
    tasks.emplace_back(source.names()[task.name],
                       computes ? source.works()[task.work()].kernels.front().duration : task.bytes());
  }
  return tasks;
}

TEST(LayerFile, IsATableWithTheKeysOfLayers) {
  const std::string path = written("layers_table.csv",
                                   "# two layers\nname,bytes,forward,backward,after,matrix\n"
                                   "a,,1 ms,2 ms,,10 20\nb,5 kB,3 us,4 us,a,\n");
  const auto source = source_of("replicas: 2\nfile: " + path + "\n");
  EXPECT_THAT(source->notes(), IsEmpty());
  EXPECT_THAT(tasks_of_rank_0(*source),
              ElementsAre(Pair("forward a", kMillisecond), Pair("forward b", 3 * kMicrosecond),
                          Pair("backward b", 4 * kMicrosecond), Pair("backward a", 2 * kMillisecond),
                          Pair("gradients b", 5'000), Pair("gradients a", 800)));
}

TEST(LayerFile, IsABenchmarkOfSwitchMl) {
  const std::string path = written("layers_benchmark.csv", "1000,2500,5000\n0,100,200\n");
  const auto source = source_of("replicas: 2\nelement_bytes: 2\nfile: " + path + "\n");
  EXPECT_THAT(source->notes(), ElementsAre(AllOf(HasSubstr("layers_benchmark.csv"), HasSubstr("SwitchML"))));
  EXPECT_THAT(
      tasks_of_rank_0(*source),
      ElementsAre(Pair("forward layer_1", 2500 * kNanosecond), Pair("forward layer_2", 100 * kNanosecond),
                  Pair("backward layer_2", 200 * kNanosecond), Pair("backward layer_1", 5000 * kNanosecond),
                  Pair("gradients layer_1", 2'000)));
}

TEST(LayerFile, HasErrorsWithLineAndColumn) {
  const auto error = [](const std::string& text) {
    return layers_error("replicas: 2\nfile: " + written("layers_wrong.csv", text) + "\n");
  };
  EXPECT_THAT(error("name,forward\na,1 ms\n"), AllOf(HasSubstr("layers_wrong.csv:1"), HasSubstr("backward")));
  EXPECT_THAT(error("name,forward,backward\na,1 ms,-2 ms\n"), HasSubstr("layers_wrong.csv:2:8"));
  EXPECT_THAT(error("name,forward,backward,after\na,1 ms,2 ms,\nb,1 ms,2 ms,a x\n"),
              AllOf(HasSubstr("layers_wrong.csv:3:15"), HasSubstr("there is no layer 'x'")));
  EXPECT_THAT(error("1000,5\n"), AllOf(HasSubstr("layers_wrong.csv:1"), HasSubstr("3: elements")));
  EXPECT_THAT(error("1000,5,-6\n"), HasSubstr("layers_wrong.csv:1:8"));
  EXPECT_THAT(error("# nothing\nname,forward,backward\n"), HasSubstr("has no layers"));
}

TEST(LayersInput, IsRefusedWithItsPlace) {
  const auto error = [](const std::string& yaml) { return layers_error("replicas: 2\n" + yaml); };
  EXPECT_THAT(error(""), HasSubstr("'layers' is missing"));
  EXPECT_THAT(error("layers: []\n"), HasSubstr("layers.yaml:3:"));
  EXPECT_THAT(error("layers: [{forward: -1 ms}]\n"), HasSubstr("layers.yaml:3:"));
  EXPECT_THAT(error("layers: [{name: a}, {name: a}]\n"), HasSubstr("there are two layers 'a'"));
  EXPECT_THAT(error("layers: [{name: a, after: [b]}, {name: b, after: [a]}]\n"),
              AllOf(HasSubstr("layers.yaml:3:"), HasSubstr("wait for each other"), HasSubstr("a")));
  EXPECT_THAT(error("layers: [{name: a, after: [a]}]\n"), HasSubstr("wait for each other: a"));
  EXPECT_THAT(error("layers: [{matrix: [10, 10], bytes: 100 B}]\n"), HasSubstr("contradicts the matrix"));
  EXPECT_THAT(error("layers: [{matrix: [10, 20], bytes: 880 B}]\n"), IsEmpty());  // a bias of 20
  EXPECT_THAT(error("layers: [{bytes: 1 MB}]\nexchange: {kind: servers, servers: 0}\n"),
              AllOf(HasSubstr("layers.yaml:4:"), HasSubstr("servers")));
  EXPECT_THAT(error("layers: [{bytes: 1 MB}]\nexchange: {kind: dear}\noptimizer: {per: whole}\n"),
              HasSubstr("optimizer.per has to be layer"));
  EXPECT_THAT(error("layers: [{bytes: 1 MB}]\nexchange: {kind: sufficient_factors, batch: 4}\n"),
              HasSubstr("no layer has a 'matrix'"));
  EXPECT_THAT(error("layers: [{bytes: 1 MB}]\nexchange: {kind: lazy_fusion, sparse: {density: 0}}\n"),
              AllOf(HasSubstr("layers.yaml:4:"), HasSubstr("density")));
  EXPECT_THAT(error("layers: [{bytes: 1 MB}]\nbackward: {kind: reverse_first_k, k: 2}\n"),
              AllOf(HasSubstr("layers.yaml:4:"), HasSubstr("0 to the number of layers, 1")));
  EXPECT_THAT(error("layers: [{bytes: 1 MB}]\nbackward: {kind: reverse_first_k, k: 1}\n"),
              HasSubstr("has no weight_gradient"));
  EXPECT_THAT(error("layers: [{bytes: 1 MB}]\nwarm_up: 1\n"), HasSubstr("layers.yaml:4:"));
}

TEST(LayersInput, NeedsEnoughGpus) {
  EXPECT_THAT(layers_error("layers: [{bytes: 1 MB}]\nreplicas: 9\n"),
              AllOf(HasSubstr("layers.yaml:3:"), HasSubstr("9 workers")));
  EXPECT_THAT(layers_error("layers: [{bytes: 1 MB}]\nreplicas: 1\n"), HasSubstr("at least 2"));
  EXPECT_THAT(layers_error("layers: [{bytes: 1 MB}]\nexchange: {kind: servers, servers: 8}\n"),
              HasSubstr("8 servers"));
}

TEST(BackwardProblem, NamesTheGradientThatIsImpossible) {
  std::vector<TimedLayer> layers(2);
  layers[0].name = "a";
  layers[1].name = "b";
  layers[1].after = {0};
  EXPECT_THAT(backward_problem(layers, {{1, false}, {0, false}}), IsEmpty());
  EXPECT_THAT(backward_problem(layers, {{0, false}, {1, false}}), HasSubstr("'a' comes before"));
  EXPECT_THAT(backward_problem(layers, {{1, false}}), HasSubstr("'a' is left out"));
  EXPECT_THAT(backward_problem(layers, {{1, false}, {1, false}, {0, false}}), HasSubstr("computed twice"));
  EXPECT_THAT(backward_problem(layers, {{2, false}}), HasSubstr("does not exist"));
}

}  // namespace
}  // namespace netsim::layer_inputs_test
