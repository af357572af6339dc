// Is a configuration of HPCC's ns-3 translated into what it means, with the tool's own defaults and derived
// values?
#include "sim/import/ns3_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "sim/configuration/load_run.h"
#include "sim/core/output.h"
#include "tests/support/mutations.h"
#include "tests/support/shared.h"

namespace netsim::ns3_config_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Ns3Config : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) /
              ("netsim_ns3_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::create_directories(folder_ / "mix");
    write("topology.txt", "4 1 3\n3\n0 3 100Gbps 1us 0\n1 3 100Gbps 1us 0\n2 3 100Gbps 1us 0\n");
    write("flow.txt", "2\n0 2 3 100 1000 0\n1 2 3 100 1000 0\n");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
  }
  std::string path() const { return (folder_ / "mix" / "config.txt").string(); }

  ConfiguredRun translate(const std::string& more) const {
    return translate_ns3_config("TOPOLOGY_FILE topology.txt\n" + more, path());
  }
  std::string error(const std::string& more) const {
    try {
      translate(more);
    } catch (const Error& wrong) {
      const std::string message = wrong.what();
      const std::size_t at = message.find("config.txt");
      return std::to_string(static_cast<int>(wrong.code())) + " " +
             (at == std::string::npos ? message : message.substr(at));
    }
    return {};
  }

  std::filesystem::path folder_;
};

const std::string kDcqcn =
    "RP_TIMER 300\nEWMA_GAIN 0.00390625\nRATE_AI 20Mb/s\nRATE_HAI 200Mb/s\n"
    "KMAX_MAP 1 100000000000 1600\nKMIN_MAP 1 100000000000 400\nPMAX_MAP 1 100000000000 0.2\n";

// The value at "transport.mtu"; "-" where there is none.
std::string at(const ConfiguredRun& run, const std::string& dotted) {
  const ConfigNode* node = &run.config;
  for (std::size_t begin = 0; node != nullptr && begin <= dotted.size();) {
    const std::size_t end = std::min(dotted.find('.', begin), dotted.size());
    const std::string name = dotted.substr(begin, end - begin);
    node = node->is_sequence() ? &node->items().at(std::stoul(name)) : node->find(name);
    begin = end + 1;
  }
  return node == nullptr ? "-" : node->text();
}

TEST_F(Ns3Config, IsRecognisedByItsKeys) {
  EXPECT_TRUE(is_ns3_config("ENABLE_QCN 1\n"));
  EXPECT_TRUE(is_ns3_config("\n# comment\nPFC_OUTPUT_FILE mix/pfc.txt\n"));
  EXPECT_FALSE(is_ns3_config("topology: star\n"));
  EXPECT_FALSE(is_ns3_config("ENABLE_QCN: 1\n"));
  EXPECT_FALSE(is_ns3_config("ENABLE_QCN\n"));
  EXPECT_FALSE(is_ns3_config(""));
}

TEST_F(Ns3Config, SaysWhatTheModelIs) {
  const ConfiguredRun run =
      translate("BUFFER_SIZE 32\nFLOW_FILE flow.txt\nSIMULATOR_STOP_TIME 0.10\n" + kDcqcn);
  EXPECT_EQ(at(run, "topology.kind"), "ns3");
  EXPECT_EQ(at(run, "topology.file"), "topology.txt");
  EXPECT_EQ(at(run, "topology.ignore_error_rates"), "-");
  EXPECT_EQ(at(run, "network.switch.buffer"), "32 MiB");
  EXPECT_EQ(at(run, "network.switch.alpha"), "1/8");
  EXPECT_EQ(at(run, "network.switch.headroom"), "37.5 KB");
  EXPECT_EQ(at(run, "network.switch.reserve"), "4 KiB");
  EXPECT_EQ(at(run, "network.switch.classes"), "-");
  EXPECT_EQ(at(run, "network.switch.marker.kind"), "red");
  EXPECT_EQ(at(run, "network.switch.marker.kmin"), "400 KB");
  EXPECT_EQ(at(run, "network.switch.marker.kmax"), "1.6 MB");
  EXPECT_EQ(at(run, "network.switch.marker.pmax"), "0.2");
  EXPECT_EQ(at(run, "network.switch.marker.reference_rate"), "100 Gbps");
  EXPECT_EQ(at(run, "network.switch.marker.at"), "dequeue");
  EXPECT_EQ(at(run, "network.faults"), "-");
  EXPECT_EQ(at(run, "transport.framing"), "ns3");
  EXPECT_EQ(at(run, "transport.ecn_echo"), "ack");
  EXPECT_EQ(at(run, "transport.mtu"), "1 KB");
  EXPECT_EQ(at(run, "transport.acknowledge.every"), "1");
  EXPECT_EQ(run.workload, (folder_ / "flow.txt").string());
  EXPECT_EQ(run.until, 100 * kMillisecond);
  EXPECT_THAT(run.notes, IsEmpty());
}

// Bytes by the tool's code, packets here, and a power of two of them.
TEST_F(Ns3Config, AnIntervalOfAcksBecomesAPowerOfTwoPackets) {
  const ConfiguredRun four = translate("L2_ACK_INTERVAL 4000\n" + kDcqcn);
  EXPECT_EQ(at(four, "transport.acknowledge.every"), "4");
  EXPECT_THAT(four.notes, IsEmpty());
  const ConfiguredRun six = translate("L2_ACK_INTERVAL 6000\n" + kDcqcn);
  EXPECT_EQ(at(six, "transport.acknowledge.every"), "4");
  EXPECT_THAT(six.notes, ElementsAre(HasSubstr("L2_ACK_INTERVAL: an ACK for 4 packets instead of 6")));
}

// The README of the reference runs: 52,000 B and 4160 ns at 1000 B of payload, 4654 ns at 4096 B.
TEST_F(Ns3Config, WorksOutWindowsAndRoundTripsAsTheToolDoes) {
  const ConfiguredRun small = translate("HAS_WIN 1\nVAR_WIN 1\n" + kDcqcn);
  EXPECT_EQ(at(small, "transport.window"), "52 KB");
  EXPECT_EQ(at(small, "transport.window_scales"), "true");
  EXPECT_EQ(at(small, "transport.base_rtt"), "4.16 us");
  const ConfiguredRun large = translate("PACKET_PAYLOAD_SIZE 4096\nHAS_WIN 0\n" + kDcqcn);
  EXPECT_EQ(at(large, "transport.window"), "-");
  EXPECT_EQ(at(large, "transport.base_rtt"), "4654 ns");
  EXPECT_EQ(at(translate("GLOBAL_T 0\n" + kDcqcn), "transport.base_rtt"), "-");
  // A slower host: its pairs have less bandwidth, the longest path and the largest product are two things.
  write("topology.txt", "4 1 3\n3\n0 3 100Gbps 1us 0\n1 3 100Gbps 1us 0\n2 3 10Gbps 3us 0\n");
  const ConfiguredRun mixed = translate(
      "RP_TIMER 300\nEWMA_GAIN 0.00390625\nRATE_AI 20Mb/s\nRATE_HAI 200Mb/s\nGLOBAL_T 0\n"
      "KMAX_MAP 2 100000000000 1600 10000000000 160\nKMIN_MAP 2 100000000000 400 10000000000 40\n"
      "PMAX_MAP 2 100000000000 0.2 10000000000 0.2\n");
  // Pair 0, 1: 4160 ns at 100 Gb/s; pair 0, 2: 8000 + 80 + 800 ns at 10 Gb/s.
  EXPECT_EQ(at(mixed, "transport.window"), "52 KB");
  EXPECT_THAT(mixed.notes, ElementsAre(HasSubstr("headroom"), HasSubstr("GLOBAL_T 0")));
}

// The result is that of a configuration that names the other topology.
TEST_F(Ns3Config, WhatFollowsFromTheTopologyFollowsFromTheOneThatIsPlayed) {
  const std::string far = "4 1 3\n3\n0 3 100Gbps 5us 0\n1 3 100Gbps 5us 0\n2 3 100Gbps 5us 0\n";
  write("far.txt", far);
  const std::string text = "TOPOLOGY_FILE topology.txt\nHAS_WIN 1\n" + kDcqcn;
  std::ofstream(path()) << text;
  const ConfiguredRun near = load_run(path());
  const ConfiguredRun overlaid = load_run(path(), {{"topology.file=" + (folder_ / "far.txt").string()}, ""});
  write("topology.txt", far);
  const ConfiguredRun named = load_run(path());
  for (const char* key : {"transport.window", "transport.base_rtt", "network.switch.headroom"}) {
    EXPECT_EQ(at(overlaid, key), at(named, key)) << key;
    EXPECT_NE(at(overlaid, key), at(near, key)) << key;
  }
  EXPECT_EQ(at(overlaid, "topology.file"), (folder_ / "far.txt").string());
  const ConfiguredRun other = load_run(path(), {{"topology={kind: star, hosts: 4}"}, ""});
  EXPECT_EQ(at(other, "transport.window"), at(named, "transport.window"));
  EXPECT_THAT(other.notes, ::testing::Contains(HasSubstr("the fabric is not TOPOLOGY_FILE's")));
}

TEST_F(Ns3Config, ClassesAreThoseOfTheFlowsThatArePlayed) {
  write("other.txt", "2\n0 2 3 100 1000 0\n1 2 1 100 1000 0\n");
  std::ofstream(path()) << "TOPOLOGY_FILE topology.txt\nFLOW_FILE flow.txt\n" + kDcqcn;
  EXPECT_EQ(at(load_run(path()), "network.switch.classes"), "-");
  const ConfiguredRun run = load_run(path(), {{}, (folder_ / "other.txt").string()});
  EXPECT_EQ(at(run, "network.switch.classes"), "2");
  EXPECT_EQ(run.workload, (folder_ / "other.txt").string());
}

TEST_F(Ns3Config, TranslatesEveryCongestionControl) {
  const std::string control = "transport.congestion_control.";
  const ConfiguredRun dcqcn = translate("CC_MODE 1\nALPHA_RESUME_INTERVAL 1\nMIN_RATE 1000Mb/s\n" + kDcqcn);
  const std::map<std::string, std::string> expected = {{"kind", "dcqcn"},
                                                       {"profile", "vendor"},
                                                       {"g", "0.00390625"},
                                                       {"alpha_timer", "1 us"},
                                                       {"decrease_interval", "4 us"},
                                                       {"increase_timer", "300 us"},
                                                       {"fast_recovery_steps", "5"},
                                                       {"rate_ai", "20 Mbps"},
                                                       {"rate_hai", "200 Mbps"},
                                                       {"minimum_rate", "1 Gbps"}};
  for (const auto& [name, value] : expected) EXPECT_EQ(at(dcqcn, control + name), value) << name;

  const ConfiguredRun hpcc =
      translate("CC_MODE 3\nMI_THRESH 0\nMULTI_RATE 0\nINT_MULTI 4\nFAST_REACT 1\n" + kDcqcn);
  EXPECT_EQ(at(hpcc, control + "kind"), "hpcc");
  EXPECT_EQ(at(hpcc, control + "eta"), "0.95");
  EXPECT_EQ(at(hpcc, control + "max_stage"), "0");
  EXPECT_EQ(at(hpcc, control + "rates"), "single");
  EXPECT_EQ(at(hpcc, control + "unit_multiplier"), "4");
  EXPECT_EQ(at(hpcc, control + "rate_ai"), "20 Mbps");

  const ConfiguredRun timely = translate("CC_MODE 7\n" + kDcqcn);
  EXPECT_EQ(at(timely, control + "kind"), "timely");
  EXPECT_EQ(at(timely, control + "rate_hai"), "200 Mbps");

  const ConfiguredRun dctcp = translate("CC_MODE 8\nDCTCP_RATE_AI 615Mb/s\n" + kDcqcn);
  EXPECT_EQ(at(dctcp, control + "kind"), "dctcp");
  EXPECT_EQ(at(dctcp, control + "form"), "rate");
  EXPECT_EQ(at(dctcp, control + "rate_ai"), "615 Mbps");

  for (const char* mode : {"0", "12"}) {
    const ConfiguredRun none = translate("ENABLE_QCN 0\nCC_MODE " + std::string(mode) + "\n");
    EXPECT_EQ(at(none, "transport.congestion_control"), "none");
    EXPECT_EQ(at(none, "network.switch.marker"), "none");
  }
}

TEST_F(Ns3Config, LossesAndFailuresAreFaults) {
  write("topology.txt", "4 2 3\n0 2\n1 0 100Gbps 1us 0\n3 2 100Gbps 1us 0.01\n0 2 100Gbps 1us 0\n");
  const ConfiguredRun run = translate("ERROR_RATE_PER_LINK 0.001\nLINK_DOWN 500 0 2\n" + kDcqcn);
  EXPECT_EQ(at(run, "topology.ignore_error_rates"), "true");
  const ConfigNode* faults = run.config.find("network")->find("faults");
  ASSERT_NE(faults, nullptr);
  ASSERT_EQ(faults->items().size(), 4u);
  EXPECT_EQ(at(run, "network.faults.0.link"), "host1-node0");
  EXPECT_EQ(at(run, "network.faults.0.loss"), "0.001");
  EXPECT_EQ(at(run, "network.faults.1.link"), "host3-node2");
  EXPECT_EQ(at(run, "network.faults.1.loss"), "0.01");
  EXPECT_EQ(at(run, "network.faults.3.link"), "node0-node2");
  EXPECT_EQ(at(run, "network.faults.3.down"), "2.0005 s");
  EXPECT_EQ(at(run, "network.detection_delay"), "0 s");
  EXPECT_EQ(at(translate("LINK_DOWN 0 0 0\n" + kDcqcn), "network.detection_delay"), "-");
}

TEST_F(Ns3Config, PriorityGroupsAskForClasses) {
  write("flow.txt", "2\n0 2 3 100 1000 0\n1 2 1 100 1000 0\n");
  EXPECT_EQ(at(translate("FLOW_FILE flow.txt\n" + kDcqcn), "network.switch.classes"), "2");
}

TEST_F(Ns3Config, ThresholdsAreThoseOfTheHostsLinks) {
  write("topology.txt", "3 1 2\n2\n0 2 25Gbps 1us 0\n1 2 100Gbps 1us 0\n");
  const std::string rates =
      "RP_TIMER 300\nEWMA_GAIN 0.00390625\nRATE_AI 20Mb/s\nRATE_HAI 200Mb/s\n"
      "PMAX_MAP 2 25000000000 0.2 100000000000 0.2\n";
  const ConfiguredRun linear = translate(
      rates + "KMAX_MAP 2 25000000000 400 100000000000 1600\nKMIN_MAP 2 25000000000 100 100000000000 400\n");
  EXPECT_EQ(at(linear, "network.switch.marker.kmin"), "100 KB");
  EXPECT_EQ(at(linear, "network.switch.marker.reference_rate"), "25 Gbps");
  EXPECT_THAT(linear.notes, Not(::testing::Contains(HasSubstr("thresholds"))));
  const ConfiguredRun other = translate(
      rates + "KMAX_MAP 2 25000000000 400 100000000000 400\nKMIN_MAP 2 25000000000 100 100000000000 400\n");
  EXPECT_THAT(other.notes, ::testing::Contains(HasSubstr("thresholds do not grow")));
  EXPECT_THAT(error(rates + "KMAX_MAP 1 25000000000 400\nKMIN_MAP 2 25000000000 100 100000000000 400\n"),
              AllOf(HasSubstr("config.txt:7:1"), HasSubstr("no value for links of 100 Gbps")));
}

TEST_F(Ns3Config, OutputKeysAndCommentsDoNotMatter) {
  const ConfiguredRun run = translate(
      "TRACE_FILE a\nTRACE_OUTPUT_FILE b\nFCT_OUTPUT_FILE c\nPFC_OUTPUT_FILE d\nENABLE_TRACE "
      "1\nQLEN_MON_FILE e\n"
      "QLEN_MON_START 2000000000\nBW_MON_INTERVAL 10000\nPINT_PROB 1.0\n"
      "BUFFER_SIZE 8 {buffer size per switch}\n\n" +
      kDcqcn);
  EXPECT_EQ(at(run, "network.switch.buffer"), "8 MiB");
  EXPECT_EQ(run.workload, "");
  EXPECT_EQ(run.until, kNever);
  EXPECT_EQ(translate("SIMULATOR_STOP_TIME 40000000000000.00\n" + kDcqcn).until, kNever);
}

TEST_F(Ns3Config, SaysWhereItIsWrong) {
  EXPECT_THAT(error("BUFER_SIZE 3\n"),
              AllOf(HasSubstr("2 config.txt:2:1"), HasSubstr("did you mean 'BUFFER_SIZE'")));
  EXPECT_THAT(error("BUFFER_SIZE x\n" + kDcqcn), HasSubstr("2 config.txt:2:13: BUFFER_SIZE is 'x'"));
  EXPECT_THAT(error("BUFFER_SIZE 3\nBUFFER_SIZE 3\n"),
              HasSubstr("2 config.txt:3:1: 'BUFFER_SIZE' is given twice"));
  EXPECT_THAT(error("BUFFER_SIZE\n" + kDcqcn), HasSubstr("2 config.txt:2:1: one value"));
  EXPECT_THAT(error("CC_MODE 10\n"), HasSubstr("PINT"));
  EXPECT_THAT(error("CC_MODE 5\n"), HasSubstr("2 config.txt:2:1: no such CC_MODE"));
  EXPECT_THAT(error("L2_BACK_TO_ZERO 1\n"), HasSubstr("go-back-to-zero"));
  EXPECT_THAT(error("RATE_BOUND 0\n"), HasSubstr("RATE_BOUND 0"));
  EXPECT_THAT(error(""), HasSubstr("'KMIN_MAP' is missing"));
  EXPECT_THAT(error("ENABLE_QCN 0\n"), HasSubstr("'EWMA_GAIN' is missing"));
  EXPECT_THAT(error("KMIN_MAP 2 100000000000 400\n"), HasSubstr("2 pairs"));
  EXPECT_THAT(error("FLOW_FILE nowhere.txt\n" + kDcqcn), HasSubstr("4 "));
  EXPECT_THAT(error("RATE_AI 20\n" + kDcqcn), HasSubstr("given twice"));
  EXPECT_THAT(error("LINK_DOWN 1 9 3\n" + kDcqcn), HasSubstr("2 config.txt:2:13: a node is '9'"));
  write("topology.txt", "4 1 3\n3\n0 3 100Gbps 1us x\n");
  EXPECT_THAT(error(kDcqcn), AllOf(HasSubstr("3 "), HasSubstr("topology.txt:3:17")));
}

TEST_F(Ns3Config, SurvivesMutations) {
  test::expect_sane(
      "TOPOLOGY_FILE topology.txt\nFLOW_FILE flow.txt\nLINK_DOWN 10 0 3\nSIMULATOR_STOP_TIME 1.5\n" + kDcqcn,
      [this](const std::string& text) { translate_ns3_config(text, path()); }, 1500);
}

TEST_F(Ns3Config, ReadsTheReferenceRuns) {
  NETSIM_NEEDS_SHARED("reference/ns3/conf");
  const std::vector<std::string> files = test::shared_files("reference/ns3/conf", ".txt");
  EXPECT_GT(files.size(), 50u);
  for (const std::string& file : files) {
    const ConfiguredRun run = load_run(file);
    EXPECT_EQ(at(run, "topology.kind"), "ns3") << file;
    EXPECT_FALSE(run.workload.empty()) << file;
    for (const std::string& note : run.notes) EXPECT_THAT(note, HasSubstr("ACK_HIGH_PRIO")) << file;
  }
}

}  // namespace
}  // namespace netsim::ns3_config_test
