// Does a critical path name the ports where its time went, tell queueing from pauses, and say the same in its
// tables?
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "sim/core/config.h"
#include "sim/report/screen/screen.h"
#include "sim/report/summary.h"
#include "sim/simulation/simulation.h"
#include "tests/report/fixtures.h"
#include "tests/support/paths.h"

namespace netsim::critical_path_ports_test {
namespace {

using test::Directory;

struct Traced {
  explicit Traced(const std::string& config, const std::string& workload) {
    std::ofstream(directory.path() + "/workload.yaml") << workload;
    SimulationSetup setup;
    setup.config = parse_config(config, "cluster.yaml");
    overlay_config(setup.config, "output.critical_path=true");
    setup.workload = directory.path() + "/workload.yaml";
    setup.output_directory = directory.path() + "/out";
    Simulation simulation(std::move(setup));
    results = simulation.run({});
    simulation.finish_files(results);
  }
  const JobResult& job() const { return results.jobs.at(0); }
  const PathSummary& path() const { return job().paths.at(0); }
  PortDelay at(const std::string& port) const {
    for (const PathPort& found : job().path_ports) {
      if (found.name == port) return found.delay;
    }
    return {};
  }
  // Sums of a table's columns by name, over its rows.
  std::map<std::string, Time> sums(const std::string& table, const std::vector<std::string>& columns) const {
    std::ifstream file(directory.path() + "/out/" + table);
    std::string line, cell;
    std::getline(file, line);
    std::vector<std::string> names;
    for (std::istringstream header(line); std::getline(header, cell, ',');) names.push_back(cell);
    std::map<std::string, Time> sums;
    while (std::getline(file, line)) {
      std::istringstream row(line);
      for (std::size_t i = 0; std::getline(row, cell, ','); ++i) {
        const bool asked = std::find(columns.begin(), columns.end(), names.at(i)) != columns.end();
        if (asked && !cell.empty()) sums[names[i]] += std::stoll(cell);
      }
    }
    return sums;
  }
  Directory directory;
  Results results;
};

std::string star(int hosts, const std::string& of_switch) {
  return fmt::format(
      "{{topology: {{kind: star, hosts: {}, rate: 100 Gbps, delay: 1 us}}, host: single_nic, transport: "
      "{{congestion_control: none}}, network: {{switch: {{marker: none, {}}}}}}}",
      hosts, of_switch);
}

std::string incast(int senders, int bytes) {
  return fmt::format("{{kind: incast, senders: {0}, receiver: {0}, bytes: {1} B}}", senders, bytes);
}

// The bytes of one message on a wire of the star.
Time on_the_wire(Bytes bytes) {
  Time time = 0;
  for (Bytes at = 0; at < bytes; at += 4096)
    time += transmission_time(std::min<Bytes>(4096, bytes - at) + 82 + (at == 0 ? 16 : 0), 100 * kGbps);
  return time;
}

// The last of them to end is queued behind all others.
TEST(CriticalPathPorts, OfAnIncastAreTheSwitchesPortToTheReceiver) {
  for (const int senders : {2, 8}) {
    const Traced run(star(senders + 1, "buffer: 64 MB, alpha: 16"), incast(senders, 400 * 4096));
    const std::string port = fmt::format("switch0->host{}", senders);
    const Time others = (senders - 1) * on_the_wire(400 * 4096);
    const Time queueing = run.at(port).queueing;
    EXPECT_EQ(queueing, others);
    EXPECT_EQ(run.path().queueing, queueing);
    EXPECT_EQ(run.path().paused + run.path().at_sender + run.path().acknowledgement, 0);
    EXPECT_EQ(run.path().propagation + run.path().transmission + queueing, run.job().iteration_ends.at(0));
    // With two senders it takes the time of one message, less that message's transmission by its last packet.
    EXPECT_EQ(run.job().path_ports.at(senders == 2 ? 1 : 0).name, port) << "the largest comes first";
    EXPECT_NE(render_screen(run.results, 120).find(port), std::string::npos);
  }
}

TEST(CriticalPathPorts, TellQueueingFromPauses) {
  const Traced run(star(9, "buffer: 700 KB"), incast(8, 2'000'000));
  ASSERT_GT(run.results.network.pfc_pauses, 0U);
  EXPECT_GT(run.path().paused, 0);
  EXPECT_GT(run.path().queueing, 0);
  EXPECT_EQ(run.path().at_sender, 0);
  Time paused = 0;
  for (int host = 0; host < 8; ++host) paused += run.at(fmt::format("host{}->switch0", host)).paused;
  EXPECT_EQ(paused, run.path().paused) << "the senders' ports are paused";
  EXPECT_EQ(run.at("switch0->host8").queueing, run.path().queueing);
  EXPECT_GT(run.path().paused, run.path().queueing) << "most waited outside the small buffer";
}

// Pipeline, tensor and data parallelism over NVLink, PCIe and the fabric: tables, summary and sums agree.
TEST(CriticalPathPorts, AreTheSameInTablesAndSummary) {
  const Traced run(
      "{topology: {kind: star, hosts: 16, rate: 200 Gbps}, host: dgx_a100, network: {switch: {buffer: 32 "
      "MB}}}",
      "{kind: ptdp, model: {layers: 4, hidden: 512, heads: 8, sequence: 256, vocabulary: 8192}, parallel: "
      "{tensor: 4, pipeline: 2, data: 2}, microbatch: 1, microbatches: 2, iterations: 2}");
  ASSERT_EQ(run.job().paths.size(), 2U);
  Time transmission = 0, queueing = 0, paused = 0, at_sender = 0;
  for (const PathSummary& path : run.job().paths) {
    transmission += path.transmission;
    queueing += path.queueing;
    paused += path.paused;
    at_sender += path.at_sender;
  }
  PortDelay ports;
  std::uint64_t before = UINT64_MAX;
  for (const PathPort& port : run.job().path_ports) {
    ports.transmission += port.delay.transmission;
    ports.queueing += port.delay.queueing;
    ports.paused += port.delay.paused;
    EXPECT_LE(static_cast<std::uint64_t>(port.delay.sum()), before);
    before = static_cast<std::uint64_t>(port.delay.sum());
  }
  EXPECT_EQ(ports.transmission, transmission);
  EXPECT_EQ(ports.queueing, queueing);
  EXPECT_EQ(ports.paused, paused);
  const std::vector<std::string> columns{"transmission_ps", "queueing_ps", "paused_ps"};
  const std::map<std::string, Time> sums{
      {"transmission_ps", transmission}, {"queueing_ps", queueing}, {"paused_ps", paused}};
  EXPECT_EQ(run.sums("critical_path_ports.csv", columns), sums);
  EXPECT_EQ(run.sums("critical_path.csv", columns), sums);
  EXPECT_EQ(run.sums("critical_path.csv", {"at_sender_ps"})["at_sender_ps"], at_sender);
  EXPECT_NE(summary_json(run.results).find("\"ports\""), std::string::npos);
  const std::string screen = render_screen(run.results, 120);
  EXPECT_NE(screen.find("ports on it"), std::string::npos);
  EXPECT_NE(screen.find(run.job().path_ports.at(0).name), std::string::npos);
}

}  // namespace
}  // namespace netsim::critical_path_ports_test
