// Tests the memory of the process per flow, as the system counts it.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/core/random.h"
#include "tests/report/fixtures.h"
#include "tests/support/paths.h"
#include "tests/support/sanitizers.h"
#include "tests/support/test_size.h"

namespace netsim::memory_test {
namespace {

using nlohmann::json;
using test::Directory;

struct Played {
  std::uint64_t memory = 0;  // largest, bytes
  json answer;
};

std::uint64_t largest(const rusage& usage) { return static_cast<std::uint64_t>(usage.ru_maxrss) << 10; }

Played run(const Directory& directory, std::vector<std::string> arguments) {
  const std::string out = directory.path() + "/out.json";
  arguments.insert(arguments.begin(), {netsim_binary(), "--quiet", "--threads", "1"});
  std::vector<char*> words;
  for (std::string& word : arguments) words.push_back(word.data());
  words.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    if (std::freopen(out.c_str(), "w", stdout) == nullptr) _exit(126);
    execv(words[0], words.data());
    _exit(127);
  }
  int status = 0;
  rusage usage{};
  EXPECT_EQ(wait4(child, &status, 0, &usage), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  return {largest(usage), json::parse(directory.text("out.json"))};
}

// The system counts what a process was before it became another one: this one must be the smaller.
bool larger_than_this(std::uint64_t memory) {
  rusage own{};
  getrusage(RUSAGE_SELF, &own);
  return memory > largest(own);
}

// 16 hosts, and flows of one packet 40 ns apart: a quarter of what the links carry.
class FlowMemory : public ::testing::TestWithParam<std::tuple<const char*, bool>> {
 protected:
  static constexpr std::uint32_t kHosts = 16;

  std::string path(const std::string& name) const { return directory_.path() + "/" + name; }
  void SetUp() override {
    std::ofstream(path("star.yaml")) << "topology: {kind: star, hosts: 16, rate: 100 Gbps, delay: 1 us}\n"
                                        "host: single_nic\n";
  }
  // Returns the name of a workload with this many flows.
  std::string workload(const std::string& kind, std::uint32_t flows) const {
    const std::string name = path(kind + std::to_string(flows));
    std::ofstream file(name);
    if (kind == "poisson") {
      file << "kind: poisson\nrate: 100 Gbps\nload: 0.25\nduration: " << flows * 40
           << " ns\ncdf: [[500 B, 0], [3500 B, 100]]\n";
      return name;
    }
    if (kind == "csv") file << "source,destination,bytes,start_ns,name\n";
    if (kind == "ns3") file << flows << "\n";
    if (kind == "htsim") file << "Nodes 16\nConnections " << flows << "\n";
    RandomStream random(1, "memory");
    for (std::uint32_t i = 0; i < flows; ++i) {
      const std::uint64_t from = random.below(kHosts), to = (from + 1 + random.below(kHosts - 1)) % kHosts;
      const std::uint64_t bytes = 500 + random.below(3000), start = 40 * std::uint64_t{i};
      if (kind == "csv") file << from << "," << to << "," << bytes << "," << start << ",flow\n";
      if (kind == "ns3") file << from << " " << to << " 3 100 " << bytes << " " << start << "e-9\n";
      if (kind == "htsim")
        file << from << "->" << to << " id " << i + 1 << " start " << start * 1000 << " size " << bytes
             << "\n";
    }
    return name;
  }
  Played play(const std::string& workload, bool tables) const {
    std::vector<std::string> arguments{"--config", path("star.yaml"), "--workload", workload, "--json", "-"};
    if (tables) arguments.insert(arguments.end(), {"--out", path("tables")});
    return run(directory_, arguments);
  }

  Directory directory_;
};

TEST_P(FlowMemory, IsAtMostAHundredBytesAFlow) {
  if (test::sanitized()) GTEST_SKIP() << "under a sanitizer";
  const auto [kind, tables] = GetParam();
  const std::uint32_t more = test::by_size(100'000U, 40'000U, 0U);
  const Played few = play(workload(kind, 20'000), tables), many = play(workload(kind, 20'000 + more), tables);
  if (!larger_than_this(few.memory)) GTEST_SKIP() << "this process is larger than what it measures";
  const auto flows = [](const Played& r) { return r.answer["flows"]["count"].get<double>(); };
  EXPECT_NEAR(flows(many) - flows(few), more, more / 5);
  EXPECT_LE(static_cast<double>(many.memory - few.memory) / (flows(many) - flows(few)), 100);
}

// Every kind, in a full run with and without tables.
std::vector<std::tuple<const char*, bool>> kinds_and_tables() {
  using All = std::vector<std::tuple<const char*, bool>>;
  const All some{{"csv", false}, {"ns3", true}, {"htsim", false}, {"poisson", true}};
  All all = some;
  for (const auto& [kind, tables] : some) all.emplace_back(kind, !tables);
  return test::by_size(all, some, some);
}

INSTANTIATE_TEST_SUITE_P(Flows, FlowMemory, ::testing::ValuesIn(kinds_and_tables()), [](const auto& chosen) {
  return std::string(std::get<0>(chosen.param)) + (std::get<1>(chosen.param) ? "_with_tables" : "");
});

// A file is read in pieces: text that is no flow needs no memory.
class InputMemory : public FlowMemory {};

TEST_P(InputMemory, DoesNotGrowWithTheFile) {
  if (test::sanitized()) GTEST_SKIP() << "under a sanitizer";
  constexpr std::uint64_t kMegabytes = 48;
  const std::string name = workload(std::get<0>(GetParam()), 1000);
  const Played small = play(name, false);
  if (!larger_than_this(small.memory)) GTEST_SKIP() << "this process is larger than what it measures";
  {
    std::ofstream file(name, std::ios::app);
    const std::string line = "# " + std::string(997, 'x') + "\n";
    for (std::uint64_t i = 0; i < kMegabytes * 1000; ++i) file << line;
  }
  const Played large = play(name, false);
  EXPECT_EQ(large.answer["fingerprint"]["results"], small.answer["fingerprint"]["results"]);
  EXPECT_LE(large.memory, small.memory + kMegabytes * 1'000'000 / 6);
}

INSTANTIATE_TEST_SUITE_P(Flows, InputMemory,
                         ::testing::Combine(::testing::Values("csv", "ns3", "htsim"),
                                            ::testing::Values(false)),
                         [](const auto& chosen) { return std::string(std::get<0>(chosen.param)); });

// There are enough flows that most have not started when a second has been simulated.
class FlowMemoryPrediction : public FlowMemory {};

TEST_P(FlowMemoryPrediction, IsWithinAQuarter) {
  if (test::sanitized()) GTEST_SKIP() << "under a sanitizer";
  const std::string name = workload(std::get<0>(GetParam()), test::by_size(600'000U, 200'000U, 0U));
  const Played predicted =
      run(directory_, {"--config", path("star.yaml"), "--workload", name, "--dry-run", "--json", "-"});
  const Played played = play(name, false);
  const auto memory = predicted.answer["memory_bytes"].get<double>();
  EXPECT_NEAR(memory / static_cast<double>(played.memory), 1, 0.25);
}

INSTANTIATE_TEST_SUITE_P(Flows, FlowMemoryPrediction,
                         ::testing::Combine(::testing::Values("csv", "poisson"), ::testing::Values(false)),
                         [](const auto& chosen) { return std::string(std::get<0>(chosen.param)); });

}  // namespace
}  // namespace netsim::memory_test
