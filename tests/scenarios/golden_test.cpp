// Golden scenarios: YAML in, fingerprints out, the same in every build, on every machine. The expected values
// are in golden/fingerprints.json; NETSIM_UPDATE_GOLDEN=1 writes them anew (then the commit says why they
// changed).
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "sim/core/config.h"
#include "sim/core/fingerprint.h"
#include "sim/simulation/simulation.h"
#include "tests/scenarios/golden_scenarios.h"
#include "tests/support/paths.h"

namespace netsim::golden_test {
namespace {

using test::Scenario;

Results run(const Scenario& scenario, std::uint64_t seed = 1) {
  const std::string configs = source_directory() + "/configs/";
  SimulationSetup setup;
  setup.config = load_config(configs + scenario.config);
  for (const std::string& overlay : scenario.overlays) overlay_config(setup.config, overlay);
  setup.workload = configs + scenario.workload;
  setup.seed = seed;
  Simulation simulation(std::move(setup));
  return simulation.run({});
}

std::string hex(std::uint64_t value) {
  Fingerprint print;
  print.add(value);
  return print.hex();
}

nlohmann::json prints(const Results& results) {
  return {{"results", hex(results.fingerprints.results)}, {"packets", hex(results.fingerprints.packets)}};
}

TEST(Golden, FingerprintsAreTheRecordedOnes) {
  const std::string path = source_directory() + "/tests/scenarios/golden/fingerprints.json";
  nlohmann::json found;
  for (const Scenario& scenario : test::golden_scenarios()) {
    const Results results = run(scenario);
    EXPECT_EQ(results.outcome, Outcome::done) << scenario.name;
    EXPECT_EQ(results.network.drops, 0u) << scenario.name;
    found[scenario.name] = prints(results);
  }
  if (std::getenv("NETSIM_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path) << found.dump(2) << "\n";
    GTEST_SKIP() << "wrote " << path;
  }
  std::ifstream file(path);
  ASSERT_TRUE(file) << path;
  EXPECT_EQ(found, nlohmann::json::parse(file));
}

TEST(Golden, TwoRunsAreTheSameAndEveryKnobShows) {
  const Scenario incast = test::golden_scenarios().front();
  const Results base = run(incast), again = run(incast);
  EXPECT_EQ(base.fingerprints.results, again.fingerprints.results);
  EXPECT_EQ(base.fingerprints.packets, again.fingerprints.packets);
  EXPECT_EQ(base.fingerprints.events, again.fingerprints.events);
  EXPECT_GT(base.network.ecn_marks, 0u);
  Scenario rate = incast;
  rate.overlays.push_back("topology.rate=200 Gbps");
  for (const Results& other : {run(incast, 2), run(test::golden_scenarios()[1]), run(rate)}) {
    EXPECT_NE(base.fingerprints.results, other.fingerprints.results);
    EXPECT_NE(base.fingerprints.packets, other.fingerprints.packets);
  }
}

// The path of an iteration takes exactly as long as the iteration. Recording it changes nothing.
TEST(Golden, CriticalPathsAddUpAndDoNotShow) {
  for (Scenario scenario : test::golden_scenarios()) {
    const Results plain = run(scenario);
    scenario.overlays.push_back("output.critical_path=true");
    const Results traced = run(scenario);
    EXPECT_EQ(prints(plain), prints(traced)) << scenario.name;
    EXPECT_EQ(plain.fingerprints.events, traced.fingerprints.events) << scenario.name;
    const JobResult& job = traced.jobs.at(0);
    ASSERT_EQ(job.paths.size(), job.iteration_ends.size()) << scenario.name;
    Time begin = job.begin, at_ports = 0;
    for (const PathPort& port : job.path_ports) at_ports += port.delay.sum();
    for (std::size_t iteration = 0; iteration < job.paths.size(); ++iteration) {
      const PathSummary& path = job.paths[iteration];
      EXPECT_EQ(path.compute + path.held + path.launch + path.propagation + path.transmission +
                    path.queueing + path.paused + path.at_sender + path.acknowledgement + path.undivided,
                job.iteration_ends[iteration] - begin)
          << scenario.name;
      EXPECT_EQ(path.undivided, 0) << scenario.name;
      begin = job.iteration_ends[iteration];
      at_ports -= path.transmission + path.queueing + path.paused;
    }
    EXPECT_EQ(at_ports, 0) << scenario.name << ": by port as on the whole";
  }
}

// The C library picks fused multiply-add variants of its functions at run time; none of them may show.
TEST(Golden, TheCpusInstructionsDoNotShow) {
  const std::string configs = source_directory() + "/configs/";
  const auto run_program = [&](const std::string& environment) {
    const std::string command = environment + " '" + netsim_binary() + "' --config '" + configs +
                                "two_dgx.yaml' --workload '" + configs +
                                "workloads/small_gpt_ptdp.yaml' --json - --quiet";
    std::string output;
    std::FILE* pipe = ::popen(command.c_str(), "r");
    EXPECT_NE(pipe, nullptr);
    char buffer[4096];
    for (std::size_t n = 0; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) output.append(buffer, n);
    EXPECT_EQ(::pclose(pipe), 0) << command;
    return nlohmann::json::parse(output);
  };
  const nlohmann::json plain = run_program("");
  const nlohmann::json without =
      run_program("GLIBC_TUNABLES=glibc.cpu.hwcaps=-FMA,-AVX2,-AVX2_Usable,-FMA_Usable");
  EXPECT_EQ(plain["fingerprint"], without["fingerprint"]);
  EXPECT_EQ(plain, without) << "nothing in the summary depends on the machine";
}

}  // namespace
}  // namespace netsim::golden_test
