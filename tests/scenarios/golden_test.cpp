// Compares runs of the golden scenarios with each other. declared/golden.yaml has their fingerprints, which
// declared_test.cpp compares.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "sim/core/fingerprint.h"
#include "sim/simulation/simulation.h"
#include "tests/scenarios/golden_scenarios.h"
#include "tests/support/paths.h"
#include "tests/support/test_size.h"

namespace netsim::golden_test {
namespace {

using test::run_of;
using test::ShippedRun;

std::string hex(std::uint64_t value) {
  Fingerprint print;
  print.add(value);
  return print.hex();
}

nlohmann::json prints(const Results& results) {
  return {{"results", hex(results.fingerprints.results)}, {"packets", hex(results.fingerprints.packets)}};
}

TEST(Golden, TwoRunsAreTheSameAndEveryKnobShows) {
  const ShippedRun incast = test::golden_scenarios().front();
  const Results base = run_of(incast), again = run_of(incast);
  EXPECT_EQ(base.fingerprints.results, again.fingerprints.results);
  EXPECT_EQ(base.fingerprints.packets, again.fingerprints.packets);
  EXPECT_EQ(base.fingerprints.events, again.fingerprints.events);
  EXPECT_GT(base.network.ecn_marks, 0u);
  ShippedRun rate = incast;
  rate.overlays.push_back("topology.rate=200 Gbps");
  for (const Results& other : {run_of(incast, 2), run_of(test::golden_scenarios()[1]), run_of(rate)}) {
    EXPECT_NE(base.fingerprints.results, other.fingerprints.results);
    EXPECT_NE(base.fingerprints.packets, other.fingerprints.packets);
  }
}

// The path of an iteration takes exactly as long as the iteration. Recording it changes nothing.
TEST(Golden, CriticalPathsAddUpAndDoNotShow) {
  for (ShippedRun scenario : test::share_of(test::golden_scenarios(), 3, 5)) {
    const Results plain = run_of(scenario);
    scenario.overlays.push_back("output.critical_path=true");
    const Results traced = run_of(scenario);
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
