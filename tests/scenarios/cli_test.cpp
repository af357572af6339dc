// Tests the program itself: files, reports and errors that need more than one run or a regular expression.
// The scenario files of declared/ have the rest.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>
#include <utility>
#include <vector>

#include "sim/core/errors.h"
#include "sim/core/output.h"
#include "tests/support/paths.h"
#include "tests/support/program.h"

namespace netsim::cli_test {
namespace {

using nlohmann::json;
using test::NetsimProgram;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

using test::Ended;

TEST_F(NetsimProgram, ShortensWhatItQuotes) {
  const std::string word(5000, '9');
  const Ended ended = run("--config star.yaml --workload incast.yaml --set host=x" + word);
  EXPECT_EQ(ended.code, 2);
  EXPECT_LT(ended.err.size(), 1000u);
  EXPECT_THAT(ended.err, HasSubstr(" ... "));
  EXPECT_THAT(ended.err, HasSubstr("single_nic"));
}

// A flow is over when it is delivered. If the run ends while its acknowledgement is in flight, it counts but
// has no completion time. These flows are the same for all sets and threads.
TEST_F(NetsimProgram, CountsFlowsThatAreDeliveredAndNotAcknowledged) {
  write("tree.yaml", "topology: {kind: fat_tree, k: 4, rate: 100 Gbps, delay: 1 us}\nhost: single_nic\n");
  write("all.yaml", "kind: all_to_all\nbytes: 5 KB\nstagger: 1 us\n");
  const auto cut = [this](const char* how) {
    const Ended ended =
        run(std::string("--config tree.yaml --workload all.yaml --until 15us --quiet --json - ") +
            "--out cut --set engine.sets=" + how);
    EXPECT_EQ(ended.code, 6) << ended.err;
    return std::pair(json::parse(ended.out), directory_.text("cut/flows.csv"));
  };
  const auto [summary, table] = cut("1 --threads 1");
  std::istringstream lines(table);
  std::string line;
  std::getline(lines, line);
  const auto cells = [](const std::string& text) {
    std::vector<std::string> result;
    std::istringstream in(text);
    for (std::string cell; std::getline(in, cell, ',');) result.push_back(cell);
    return result;
  };
  const std::vector<std::string> header = cells(line);
  const auto column = [&](const char* name) {
    return static_cast<std::size_t>(std::find(header.begin(), header.end(), name) - header.begin());
  };
  int flows = 0, unacknowledged = 0;
  for (std::int64_t last = 0; std::getline(lines, line); ++flows) {
    const std::vector<std::string> row = cells(line);
    EXPECT_LE(std::stoll(row[column("end_ps")]), 15'000'000);
    if (!row[column("acknowledged_ps")].empty()) continue;
    ++unacknowledged;
    EXPECT_LE(last, std::stoll(row[column("end_ps")]));
    last = std::stoll(row[column("end_ps")]);
  }
  EXPECT_EQ(summary["flows"]["count"], flows);
  EXPECT_GT(unacknowledged, 10);
  EXPECT_GT(flows, unacknowledged + 10);
  for (const char* how : {"2 --threads 1", "4 --threads 2", "3 --threads 3"}) {
    const auto [same_summary, same_table] = cut(how);
    EXPECT_EQ(same_summary, summary) << how;
    EXPECT_EQ(same_table, table) << how;
  }
}

TEST_F(NetsimProgram, SameInputsGiveTheSameBytesAndAnotherSpeedOthers) {
  EXPECT_EQ(summary("").dump(), summary("").dump());
  EXPECT_NE(summary("")["fingerprint"]["results"],
            summary("--set topology.rate='50 Gbps'")["fingerprint"]["results"]);
}

TEST_F(NetsimProgram, WritesItsFiles) {
  ASSERT_EQ(run("--config star.yaml --workload incast.yaml --quiet --seed 3 --out deep/results").code, 0);
  for (const char* name : {"summary.json", "manifest.json", "jobs.csv", "iterations.csv", "ranks.csv",
                           "tasks.csv", "collectives.csv", "bandwidths.csv", "flows.csv", "links.csv"}) {
    EXPECT_TRUE(directory_.has(std::string("deep/results/") + name)) << name;
  }
  const json manifest = json::parse(directory_.text("deep/results/manifest.json"));
  EXPECT_EQ(manifest["seed"], 3);
  EXPECT_THAT(manifest["command"].get<std::string>(), HasSubstr("--seed 3"));
  EXPECT_THAT(manifest["configuration"].get<std::string>(), HasSubstr("kind: star  # star.yaml:1"));
  const std::string flows = directory_.text("deep/results/flows.csv");
  EXPECT_EQ(std::count(flows.begin(), flows.end(), '\n'), 4);
}

// Returns the inputs that a manifest lists, by path.
std::map<std::string, std::string> inputs_of(const json& manifest) {
  std::map<std::string, std::string> inputs;
  for (const json& input : manifest["inputs"]) inputs[input["path"]] = input["hash"];
  return inputs;
}

TEST_F(NetsimProgram, LogsDecisionsToStderrAndIntoTheDirectory) {
  const std::string words = "--config star.yaml --workload incast.yaml --quiet --out r --seed 3";
  EXPECT_EQ(run(words).err, "");
  EXPECT_EQ(directory_.text("r/run.log"), "") << "nothing to warn of";
  const Ended ended = run(words + " --log info,report=off");
  const std::string log = directory_.text("r/run.log");
  for (const char* line :
       {"info topology: star of single_nic: 4 hosts, 4 GPUs, 1 switches, 4 links\n",
        "info transport: congestion control dcqcn, ", "info collectives: all_reduce by ring\n",
        "info core: ", "info simulation: done after "})
    EXPECT_THAT(log, HasSubstr(line));
  EXPECT_THAT(log, Not(HasSubstr("info report")));
  EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), std::count(log.begin(), log.end(), '\n'));
  EXPECT_THAT(ended.err, MatchesRegex("(netsim: [0-9:.]+ info [a-z]+: [^\n]*\n)+"));
  run(words + " --log info,report=off");
  EXPECT_EQ(directory_.text("r/run.log"), log) << "the same run has the same bytes";
  run(words);
  EXPECT_EQ(directory_.text("r/run.log"), "") << "of one run only";
}

TEST_F(NetsimProgram, TheManifestHashesEveryFileThatWasRead) {
  write("sizes.cdf", "1000 50\n2000 100\n");
  write("poisson.yaml", "kind: poisson\nrate: 100 Gbps\nload: 0.3\nduration: 10 us\ncdf: sizes.cdf\n");
  write("topology.txt", "3 1 2\n2\n0 2 100Gbps 1us 0\n1 2 100Gbps 1us 0\n");
  write("fabric.yaml", "topology: {kind: ns3, file: topology.txt}\nhost: single_nic\n");
  const std::string arguments = "--config fabric.yaml --workload poisson.yaml --quiet ";
  ASSERT_EQ(run(arguments + "--out results").code, 0);
  const json manifest = json::parse(directory_.text("results/manifest.json"));
  const auto inputs = inputs_of(manifest);
  EXPECT_EQ(inputs.size(), 4u) << manifest;
  for (const char* name : {"fabric.yaml", "poisson.yaml", "sizes.cdf", "topology.txt"}) {
    ASSERT_EQ(inputs.count(name), 1u) << name << manifest;
    EXPECT_EQ(inputs.at(name), content_hash(read_file(path(name)))) << name;
  }
  // Without a run the manifest is the same, but for what only a run can say.
  const json planned = json::parse(run(arguments + "--print-config --json -").out);
  EXPECT_EQ(planned["inputs"], manifest["inputs"]);
  EXPECT_EQ(planned["configuration"], manifest["configuration"]);
  EXPECT_EQ(planned["commit"], manifest["commit"]);
  EXPECT_FALSE(planned.contains("fingerprint"));
  write("sizes.cdf", "1000 60\n2000 100\n");
  EXPECT_NE(json::parse(run(arguments + "--print-config --json -").out)["inputs"], manifest["inputs"]);
}

TEST_F(NetsimProgram, RankTimesAddUpToThePicosecond) {
  ASSERT_EQ(run("--config star.yaml --workload incast.yaml --quiet --out results").code, 0);
  std::istringstream ranks(directory_.text("results/ranks.csv"));
  std::istringstream jobs(directory_.text("results/jobs.csv"));
  std::string line;
  std::vector<Time> sums;
  std::getline(ranks, line);
  while (std::getline(ranks, line)) {
    std::istringstream cells(line);
    std::vector<std::string> row;
    for (std::string cell; std::getline(cells, cell, ',');) row.push_back(cell);
    sums.push_back(std::stoll(row.at(4)) + std::stoll(row.at(6)) + std::stoll(row.at(7)));
  }
  ASSERT_EQ(sums.size(), 4u);
  for (const Time sum : sums) EXPECT_EQ(sum, sums[0]);
  EXPECT_GT(sums[0], 0);
}

TEST_F(NetsimProgram, AStallSaysWhatWaitsForWhat) {
  // A lossy switch with next to no buffer, and queue pairs that give up at once.
  const std::string lossy =
      "--config star.yaml --workload incast.yaml --set network.switch.flow_control=none --set "
      "network.switch.buffer=64KB "
      "--set network.switch.reserve=0 --set network.switch.headroom=1B --set "
      "transport.congestion_control=none "
      "--set transport.retries=0 --set transport.retransmission_timeout=10us";
  const Ended shown = run(lossy, "export COLUMNS=200");
  EXPECT_EQ(shown.code, static_cast<int>(ExitCode::stalled));
  EXPECT_THAT(shown.out, HasSubstr("gave up after its retries"));
  EXPECT_THAT(shown.out, HasSubstr("rank 3"));
  EXPECT_THAT(shown.err, StartsWith("netsim: error: stalled"));
  EXPECT_THAT(run(lossy + " --quiet").err, HasSubstr("gave up after its retries"));
  EXPECT_FALSE(json::parse(run(lossy + " --json -").out).at("waiting").empty());
}

TEST_F(NetsimProgram, InterruptionEndsWithAReport) {
  write("long.yaml", "kind: incast\nsenders: 3\nreceiver: 3\nbytes: 100 GB\n");
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (chdir(directory_.path().c_str()) != 0) _exit(99);
    execl(netsim_binary().c_str(), "netsim", "--config", "star.yaml", "--workload", "long.yaml", "--quiet",
          "--out", "results", "--set", "output.sample.interval=100ns", static_cast<char*>(nullptr));
    _exit(98);
  }
  wait_for_samples("results");
  ASSERT_EQ(kill(child, SIGINT), 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
  const json summary = json::parse(directory_.text("results/summary.json"));
  EXPECT_EQ(summary["outcome"], "interrupted");
  EXPECT_GT(summary["packets"].get<int>(), 0);
}

TEST_F(NetsimProgram, PrintedConfigurationIsAConfiguration) {
  const Ended first = run("--config star.yaml --print-config");
  ASSERT_EQ(first.code, 0) << first.err;
  write("resolved.yaml", first.out);
  EXPECT_EQ(run("--config resolved.yaml --workload incast.yaml --quiet").code, 0);
}

TEST_F(NetsimProgram, TellsItsVersionAndSchema) {
  EXPECT_THAT(run("--version").out, MatchesRegex("netsim [0-9.]+, (commit [^ ]+|built outside git)\n"));
  EXPECT_NO_THROW(json::parse(run("--schema").out).at("properties").at("topology"));
}

TEST_F(NetsimProgram, RefusesAWorkloadOfNoise) {
  write("noise.pb", std::string("\x07\xff\x00\x13garbage", 11));
  expect_error("--config star.yaml --workload noise.pb", ExitCode::input, {"noise.pb"});
}

// Hosts keep the file's numbers, and fct.txt is the tool's.
TEST_F(NetsimProgram, ARunOfNs3WritesItsFctFile) {
  // Nodes that are no switches are hosts: all need a link.
  std::string links = "300 1 299\n0\n";
  for (int host = 1; host < 300; ++host) {
    links += "0 " + std::to_string(host) + (host == 299 ? " 50Gbps" : " 100Gbps") + " 1us 0\n";
  }
  write("topology.txt", links);
  write("flow.txt", "3\n7 299 3 100 2500 0\n7 299 3 101 1 0.001\n299 7 3 4791 1000 0.002\n7 9 3 1 1 3\n");
  write("ns3.yaml",
        "topology: {kind: ns3, file: topology.txt}\ntransport: {mtu: 1000 B, framing: ns3, ecn_echo: ack}\n"
        "network: {transmission_resolution: 1 ns}\n");
  const Ended ended = run("--config ns3.yaml --workload flow.txt --quiet --json - --out r");
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("the header counts 3 flows, 1 more follow"));
  const std::string fct = directory_.text("r/fct.txt");
  // The round trip is 2 x 2 us, 80 ns at 100 Gb/s and 160 ns at 50 Gb/s. Size and 48 B a packet at 50 Gb/s
  // are added.
  EXPECT_THAT(fct, HasSubstr("0b000701 0b012b01 10000 100 2500 0 "));
  EXPECT_THAT(fct, HasSubstr(" " + std::to_string(4240 + (2500 + 3 * 48) * 8 / 50) + "\n"));
  EXPECT_THAT(fct, HasSubstr("0b000701 0b012b01 10001 101 1 1000000 "));
  EXPECT_THAT(fct, HasSubstr("0b012b01 0b000701 10000 4791 1000 2000000 "));
  EXPECT_EQ(std::count(fct.begin(), fct.end(), '\n'), 3);
  EXPECT_THAT(directory_.text("r/flows.csv"), HasSubstr(",flow 0,0,host7,host299,"));
  EXPECT_THAT(directory_.text("r/links.csv"), HasSubstr("host299->node0"));
}

TEST_F(NetsimProgram, RefusesAnUnwritableOutputDirectoryBeforeItRuns) {
  write("long.yaml", "kind: incast\nsenders: 3\nreceiver: 3\nbytes: 100 GB\n");
  expect_error("--config star.yaml --workload long.yaml --out star.yaml/results", ExitCode::io,
               {"star.yaml/results"});
}

TEST_F(NetsimProgram, AFullDiskIsAnIoErrorAndLeavesNoTornFile) {
  if (access("/dev/full", W_OK) != 0) GTEST_SKIP() << "no /dev/full here";
  const std::string command =
      "cd '" + directory_.path() + "' && '" + netsim_binary() +
      "' --config star.yaml --workload incast.yaml --quiet --json - >/dev/full 2>err.txt";
  const int status = std::system(command.c_str());
  EXPECT_EQ(WEXITSTATUS(status), static_cast<int>(ExitCode::io));
  EXPECT_THAT(directory_.text("err.txt"), HasSubstr("stdout"));
  ASSERT_EQ(mkdir(path("results").c_str(), 0700), 0);
  ASSERT_EQ(symlink("/dev/full", path("results/flows.csv").c_str()), 0);
  expect_error("--config star.yaml --workload incast.yaml --out results", ExitCode::io, {"flows.csv"});
  EXPECT_FALSE(directory_.has("results/summary.json"));
}

}  // namespace
}  // namespace netsim::cli_test
