// A fixture that runs training on eight hosts, whose GPUs differ and take times that vary, on packets.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/config.h"
#include "sim/simulation/simulation.h"
#include "tests/report/fixtures.h"

namespace netsim::test {

struct JitteredRun {
  std::string workload;  // its description
  std::uint64_t seed = 1;
  std::uint32_t sets = 1, threads = 1;
  std::vector<std::string> assignments = {};  // laid over the configuration
};

class JitteredStar : public ::testing::Test {
 protected:
  Results run(const JitteredRun& given) const {
    const std::string workload = directory_.path() + "/workload.yaml";
    std::ofstream(workload) << given.workload << "\n";
    SimulationSetup setup;
    setup.config = parse_config(
        "topology: {kind: star, hosts: 8, rate: 100 Gbps, delay: 500 ns}\n"
        "host: single_nic\n"
        "compute: h100_sxm\n"
        "gpus: {jitter: 0.1, variation: 0.05, stragglers: [{host: host1, slowdown: 1.5}, {host: host6, "
        "slowdown: 2, first_iteration: 1}]}\n",
        "star8.yaml");
    for (const std::string& assignment : given.assignments) overlay_config(setup.config, assignment);
    overlay_config(setup.config, "engine.sets=" + std::to_string(given.sets));
    setup.workload = workload;
    setup.seed = given.seed;
    setup.threads = given.threads;
    return Simulation(std::move(setup)).run({});
  }

 private:
  const Directory directory_;
};

// Expects that each rank's times of computation, exposed communication and idling are those of the job.
inline void expect_rank_times_add_up(const JobResult& job) {
  for (const RankTimes& times : job.rank_times) {
    EXPECT_EQ(times.compute + times.exposed + times.idle, job.end - job.begin);
    EXPECT_EQ(std::accumulate(times.exposed_by.begin(), times.exposed_by.end(), Time{0}), times.exposed);
  }
}

}  // namespace netsim::test
