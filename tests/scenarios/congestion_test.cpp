// The incast of configs/congestion/ under every congestion control: does each run as its file says, deliver
// everything without loss, and do what it is for?
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "sim/core/registry.h"
#include "sim/transport/congestion/congestion_control.h"
#include "tests/report/fixtures.h"
#include "tests/support/paths.h"

namespace netsim::congestion_test {
namespace {

using nlohmann::json;

json incast_under(const std::string& control, const std::string& options = "") {
  const test::Directory directory;
  const std::string configs = source_directory() + "/configs/congestion/";
  const std::string command = "'" + netsim_binary() + "' --config '" + configs + control +
                              ".yaml' --workload '" + configs + "incast_8to1.yaml' " + options +
                              " --quiet --json - >'" + directory.path() + "/out.json'";
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  return json::parse(directory.text("out.json"));
}

TEST(Congestion, EveryControlHasAConfigurationThatRuns) {
  std::map<std::string, Bytes> queue;
  for (const std::string& control : Registry<CongestionControl>::instance().names()) {
    SCOPED_TRACE(control);
    const json summary = incast_under(control);
    const json& network = summary["network"];
    EXPECT_EQ(summary["flows"]["count"], 8);
    EXPECT_EQ(network["bytes_delivered"], 16'000'000);
    EXPECT_EQ(network["drops"], 0);
    EXPECT_EQ(network["retransmissions"], 0);
    // 16 MB over one link at 100 Gb/s take 1.28 ms without headers; no flow may need twice that.
    const double last = summary["flows"]["fct_max_s"];
    EXPECT_GT(last, 1.28e-3);
    EXPECT_LT(last, 2.56e-3);
    queue[control] = network["max_queue_bytes"];
  }
  ASSERT_EQ(queue.size(), 8u) << "a further congestion control: it needs a configuration here, too";
  // Without congestion control all bytes beyond the rate of one link are queued. The others hold senders
  // back; those with a window do so from the first packet on.
  for (const auto& [control, bytes] : queue) {
    if (control == "none") continue;
    EXPECT_LT(bytes, queue["none"] / 3) << control;
  }
  for (const std::string control : {"hpcc", "powertcp", "swift", "dctcp"})
    EXPECT_LT(queue[control], 500'000) << control;
}

// Beside HPCC: as high a throughput, and queues that are as short once the first windows have left.
TEST(Congestion, PowerTcpHasFullThroughputAndShortQueues) {
  const std::string sample = "--set 'output={sample: {interval: 1 us, queues: true}}'";
  const auto end_and_p50 = [](const json& summary) {
    return std::pair(summary["flows"]["fct_max_s"].get<double>(),
                     summary["network"]["queue_p50_bytes"].get<double>());
  };
  const auto [hpcc_end, hpcc_queue] = end_and_p50(incast_under("hpcc", sample));
  const auto [power_end, power_queue] = end_and_p50(incast_under("powertcp", sample));
  const auto [theta_end, theta_queue] =
      end_and_p50(incast_under("powertcp", sample + " --set transport.congestion_control.form=delay"));
  EXPECT_LT(power_end, 1.02 * hpcc_end);
  EXPECT_LT(theta_end, 1.02 * hpcc_end);
  EXPECT_LT(power_queue, 20'000);
  EXPECT_LT(theta_queue, 40'000);
  EXPECT_LT(power_queue, 2 * hpcc_queue + 5'000);
}

}  // namespace
}  // namespace netsim::congestion_test
