// Tests fabrics that are listed link by link, by hand or in the files of other simulators. They are built as
// written, and wrong lists are refused at the wrong place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "sim/core/output.h"
#include "sim/topology/files/ns3_topology.h"
#include "tests/support/mutations.h"
#include "tests/support/shared.h"
#include "tests/topology/build.h"

namespace netsim::link_list_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// A cluster of a topology whose file has `text`.
class FileTopology : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::path(::testing::TempDir()) /
        ("netsim_topology_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  Cluster build(const std::string& kind, const std::string& text, const std::string& more = "") const {
    const std::string path = (folder_ / "file").string();
    std::ofstream(path) << text;
    return cluster_of("topology: {kind: " + kind + ", file: " + path + more + "}\nhost: single_nic\n");
  }
  // The message without the folder, "exit code message"; "" if there is none.
  std::string error(const std::string& kind, const std::string& text, const std::string& more = "") const {
    try {
      build(kind, text, more);
    } catch (const Error& wrong) {
      std::string message = wrong.what();
      const std::string folder = folder_.string() + "/";
      if (message.starts_with(folder)) message.erase(0, folder.size());
      return std::to_string(static_cast<int>(wrong.code())) + " " + message;
    }
    return {};
  }

 private:
  std::filesystem::path folder_;
};

std::uint32_t hops(const Cluster& cluster, std::uint32_t from, std::uint32_t to) {
  return walk(cluster, cluster.nics[from].nic, cluster.nics[to].nic, 0);
}

const LinkSpec& link_from_host(const Cluster& cluster, std::uint32_t host) {
  return cluster.graph.port(cluster.graph.ports_of(cluster.nics[host].nic)[0]).link;
}

// ---- Links of all fabrics

TEST(FabricLinks, HaveTheOverheadOfTheirKindUnlessTold) {
  const auto overhead = [](const std::string& more) {
    return link_from_host(cluster_of("topology: {kind: star, hosts: 2" + more + "}"), 0).overhead;
  };
  EXPECT_EQ(overhead(""), 20);
  EXPECT_EQ(overhead(", overhead: 0 B"), 0);
  EXPECT_EQ(overhead(", overhead: 24 B"), 24);
  EXPECT_EQ(overhead(", link: infiniband"), 0);
  EXPECT_EQ(overhead(", link: infiniband, overhead: 4 B"), 4);
  for (const char* kind : {"star, hosts: 2", "switch_line, switches: 2", "fat_tree, k: 4"}) {
    const Cluster cluster = cluster_of(std::string("topology: {kind: ") + kind + ", link: infiniband}");
    for (PortId port = 0; port < cluster.graph.port_count(); ++port) {
      EXPECT_EQ(cluster.graph.port(port).link.kind, LinkKind::infiniband) << kind;
    }
  }
  EXPECT_THAT(cluster_error("topology: {kind: star, link: copper}"), HasSubstr("ethernet, infiniband"));
  EXPECT_THAT(cluster_error("topology: {kind: star, overhead: 1 MB}"), HasSubstr("overhead"));
}

// ---- custom

const char* const kTwoSwitches =
    "topology:\n"
    "  kind: custom\n"
    "  rate: 10 Gbps\n"
    "  delay: 2 us\n"
    "  switches: [left, right]\n"
    "  links:\n"
    "    - {from: host0, to: left}\n"
    "    - {from: right, to: host1, overhead: 0}\n"
    "    - {from: left, to: right, rate: 40 Gbps, delay: 5 us}\n"
    "    - {from: right, to: left}\n";

TEST(Custom, IsWhatIsWritten) {
  const Cluster cluster = cluster_of(kTwoSwitches);
  EXPECT_EQ(cluster.gpus.size(), 2u);
  EXPECT_EQ(hops(cluster, 0, 1), 3u);
  EXPECT_EQ(link_from_host(cluster, 0).rate, 10 * kGbps);
  EXPECT_EQ(link_from_host(cluster, 0).delay, 2 * kMicrosecond);
  EXPECT_EQ(link_from_host(cluster, 0).overhead, 20);
  EXPECT_EQ(link_from_host(cluster, 1).overhead, 0);
  const NodeId left = cluster.graph.port(cluster.graph.ports_of(cluster.nics[0].nic)[0]).peer_node;
  EXPECT_EQ(cluster.graph.node(left).name, "left");
  const auto parallel = next_hop_set(*cluster.routes, left, cluster.nics[1].nic);
  ASSERT_EQ(parallel.size(), 2u);
  std::multimap<BitRate, Time> links;
  for (const PortId port : parallel) {
    links.emplace(cluster.graph.port(port).link.rate, cluster.graph.port(port).link.delay);
    EXPECT_EQ(cluster.graph.port(port ^ 1U).link.rate, cluster.graph.port(port).link.rate);
  }
  EXPECT_THAT(links,
              ElementsAre(std::pair(10 * kGbps, 2 * kMicrosecond), std::pair(40 * kGbps, 5 * kMicrosecond)));
}

// `rate` holds from `from` to `to`, `rate_back` the other way, however the list is written.
TEST(Custom, ALinkMayHaveARateForEachDirection) {
  const Cluster cluster = cluster_of(
      "topology:\n  kind: custom\n  switches: [a, b]\n  rate: 100 Gbps\n  links:\n"
      "    - {from: host0, to: a, rate: 200 Gbps, rate_back: 50 Gbps}\n    - {from: b, to: host1, rate_back: "
      "10 "
      "Gbps}\n    - {from: a, to: b, rate: 40 Gbps, rate_back: 80 Gbps}\n");
  std::map<std::string, BitRate> rates;
  for (PortId port = 0; port < cluster.graph.port_count(); ++port)
    rates[cluster.graph.port_name(port)] = cluster.graph.port(port).link.rate / kGbps;
  const std::map<std::string, BitRate> expected{{"host0->a", 200}, {"a->host0", 50}, {"b->host1", 100},
                                                {"host1->b", 10},  {"a->b", 40},     {"b->a", 80}};
  EXPECT_EQ(rates, expected);
}

TEST(Custom, MayStayPartlyEmpty) {
  const Cluster cluster = cluster_of(std::string(kTwoSwitches) + "hosts: 1\n");
  EXPECT_EQ(cluster.nics.size(), 1u);
  EXPECT_EQ(cluster.graph.port_count(), 6u);
}

TEST(Custom, SaysWhereItIsWrong) {
  const auto wrong = [](const std::string& switches, const std::string& links) {
    return cluster_error("topology:\n  kind: custom\n  switches: " + switches + "\n  links:\n" + links);
  };
  const std::string two = "    - {from: host0, to: a}\n    - {from: host1, to: a}\n";
  EXPECT_EQ(wrong("[a]", two), "");
  EXPECT_THAT(cluster_error("topology: custom"), HasSubstr("'switches' is missing"));
  EXPECT_THAT(cluster_error("topology: {kind: custom, switches: [a]}"), HasSubstr("'links' is missing"));
  EXPECT_THAT(wrong("[]", two), HasSubstr("names is expected"));
  EXPECT_THAT(wrong("[a, a]", two), HasSubstr("a second switch 'a'"));
  EXPECT_THAT(wrong("[host3, a]", two), HasSubstr("'host3' is the name of a host"));
  EXPECT_THAT(wrong("['a b', a]", two), HasSubstr("without spaces"));
  EXPECT_THAT(wrong("[a]", "    - {from: host0, to: b}\n"),
              AllOf(StartsWith("test.yaml:5:"), HasSubstr("neither a host")));
  EXPECT_THAT(wrong("[alpha]", "    - {from: host0, to: alpho}\n"), HasSubstr("did you mean 'alpha'"));
  EXPECT_THAT(wrong("[a]", two + "    - {from: a, to: a}\n"),
              AllOf(StartsWith("test.yaml:7:"), HasSubstr("itself")));
  EXPECT_THAT(wrong("[a]", two + "    - {from: host0, to: a}\n"), HasSubstr("host0 has a second link"));
  EXPECT_THAT(
      wrong("[a]", two + "    - {from: host2, to: host3}\n"),
      AllOf(HasSubstr("to switches only"), HasSubstr("torus"), HasSubstr("dgx_1v"), HasSubstr("InfraGraph")));
  EXPECT_THAT(wrong("[a]", "    - {from: host1, to: a}\n"), HasSubstr("host0 has no link"));
  EXPECT_THAT(wrong("[a, b]", two + "    - {from: host2, to: b}\n"),
              HasSubstr("no path from host0 to host2"));
  EXPECT_THAT(wrong("[a, b]", "    - {from: a, to: b}\n"), HasSubstr("no link leads to a host"));
  EXPECT_THAT(wrong("[a]", "    - {from: host0}\n"), HasSubstr("'to' is missing"));
  EXPECT_THAT(wrong("[a]", "    - {from: host0, to: a, speed: 1 Gbps}\n"), HasSubstr("unknown key 'speed'"));
  EXPECT_THAT(wrong("[a]", "    - {from: host0, to: a, delay: 0 s}\n"), HasSubstr("delay"));
}

// Hosts of several NICs: a NIC has the number of the list behind its own.
TEST(Custom, NumbersAreKeptInTheNamesOfNics) {
  std::string links;
  for (int host = 0; host < 16; ++host) links += "    - {from: host" + std::to_string(host) + ", to: left}\n";
  const Cluster cluster =
      cluster_of("topology:\n  kind: custom\n  switches: [left]\n  links:\n" + links + "host: dgx_a100\n");
  EXPECT_EQ(cluster.graph.node(cluster.nics[0].nic).name, "host0/nic0(0)");
  EXPECT_EQ(cluster.graph.node(cluster.nics[9].nic).name, "host1/nic1(9)");
  EXPECT_EQ(cluster.graph.node(cluster.gpus[9].node).name, "host1/gpu1");
  EXPECT_EQ(cluster_of("topology: {kind: star, hosts: 8}\nhost: dgx_a100\n").graph.node(9).name,
            "host0/nic4");
}

TEST(Custom, HostsHaveANumberOrNoKey) {
  EXPECT_THAT(cluster_error("topology: {kind: star, hosts: 4}\nhosts:\n"),
              AllOf(StartsWith("test.yaml:2:"), HasSubstr("hosts: nothing is given"), HasSubstr("4")));
  EXPECT_THAT(
      cluster_error("topology:\n  kind: star\n  rate:\n"),
      AllOf(StartsWith("test.yaml:3:"), HasSubstr("topology.rate: nothing is given"), HasSubstr("100 Gbps")));
}

// ---- ns-3

const char* const kTopo =
    "Nodes 8\nTiers 3\nPodsize 4\n"
    "Tier 0\nDownlink_speed_Gbps 200\nRadix_Down 2\nRadix_Up 2\nDownlink_Latency_ns 1000\nSwitch_Latency_ns "
    "100\n"
    "Tier 1\nDownlink_speed_Gbps 200\nRadix_Down 2\nRadix_Up 4\nDownlink_Latency_ns 2000\nBundle 1\n"
    "Tier 2\nDownlink_speed_Gbps 100\nRadix_Down 4\nDownlink_Latency_ns 3000\nBundle 2\nSwitch_Latency_ns "
    "300\n";

const char* const kNs3 =
    "5 2 4\n1 4\n0 1 100Gbps 1us 0\n2 1 25Gbps 0.001ms 0.000000\n3 4 100Gbps 1000ns 0\n1 4 400Gbps 2us 0\n";

TEST_F(FileTopology, Ns3IsWhatTheFileSays) {
  const Cluster cluster = build("ns3", kNs3);
  EXPECT_THAT(cluster.host_numbers, ElementsAre(0, 2, 3));
  EXPECT_EQ(hops(cluster, 0, 1), 2u);
  EXPECT_EQ(hops(cluster, 0, 2), 3u);
  EXPECT_EQ(link_from_host(cluster, 1).rate, 25 * kGbps);
  EXPECT_EQ(link_from_host(cluster, 1).delay, kMicrosecond);
  EXPECT_EQ(link_from_host(cluster, 1).overhead, 0);
  EXPECT_EQ(link_from_host(build("ns3", kNs3, ", overhead: 20 B"), 1).overhead, 20);
  // Nodes are called by their numbers in the file.
  EXPECT_EQ(cluster.graph.node(cluster.nics[2].nic).name, "host3");
  EXPECT_EQ(cluster.graph.port_name(cluster.graph.ports_of(cluster.nics[1].nic)[0]), "host2->node1");
}

TEST_F(FileTopology, Ns3WithoutSwitchNumbersHasAnEmptyLine) {
  EXPECT_THAT(error("ns3", "2 0 1\n\n0 1 100Gbps 1us 0\n"), HasSubstr("to switches only"));
}

TEST_F(FileTopology, Ns3SaysWhereItIsWrong) {
  EXPECT_THAT(error("ns3", ""), HasSubstr("the file ends where the number of nodes"));
  EXPECT_THAT(error("ns3", "3 1 2\n3\n"), StartsWith("3 file:2:1: a switch is '3'; allowed"));
  EXPECT_THAT(error("ns3", "4 2 2\n3 3\n"), StartsWith("3 file:2:3: switch 3 is listed twice"));
  EXPECT_THAT(error("ns3", "3 1 2\n2\n0 2 100Gbps 1us 0\n"), HasSubstr("the file ends where link 1"));
  EXPECT_THAT(error("ns3", "3 1 2\n2\n0 2 100 1us 0\n"), AllOf(StartsWith("3 file:3:5"), HasSubstr("unit")));
  EXPECT_THAT(error("ns3", "3 1 2\n2\n0 2 100Gbps 0us 0\n"), StartsWith("3 file:3:13: the delay"));
  EXPECT_THAT(error("ns3", "3 1 2\n2\n0 2 100Gbps 1us 2\n"), StartsWith("3 file:3:17: the error rate"));
  EXPECT_THAT(error("ns3", "3 1 2\n2\n0 2 100Gbps 1us 0\n0 2 100Gbps 1us 0\n"),
              StartsWith("3 file:4:1: host0 has a second link"));
  const std::string lossy = "3 1 2\n2\n0 2 100Gbps 1us 0\n1 2 100Gbps 1us 1e-3\n";
  EXPECT_THAT(error("ns3", lossy), AllOf(StartsWith("3 file:4:1"), HasSubstr("network.faults"),
                                         HasSubstr("`ignore_error_rates: true` beside `kind: ns3` at ")));
  EXPECT_EQ(error("ns3", lossy, ", ignore_error_rates: true"), "");
  EXPECT_THAT(cluster_error("topology: ns3"), HasSubstr("'file' is missing"));
}

TEST_F(FileTopology, FilesOfOtherFormatsAreNamed) {
  EXPECT_THAT(error("ns3", "28 8 2 10 48 H100\n16 17\n0 16 2880Gbps 0.000025ms 0\n"),
              AllOf(StartsWith("3 file: is a topology of SimAI"), HasSubstr("{kind: simai, file: ...}")));
  EXPECT_THAT(error("ns3", kTopo), HasSubstr("{kind: htsim, file: ...}"));
  EXPECT_THAT(error("htsim", kNs3), HasSubstr("{kind: ns3, file: ...}"));
}

TEST_F(FileTopology, Ns3SurvivesMutations) {
  test::expect_sane(kNs3, [](const std::string& text) {
    const Ns3Topology topology = parse_ns3_topology(text, "file");
    Graph graph;
    std::vector<HostPort> nics;
    for (std::size_t i = 0; i < topology.hosts.size(); ++i) {
      nics.push_back({.nic = graph.add_node(NodeKind::nic, graph.add_atom(), "host"), .host = 0, .rail = 0});
    }
    topology.list(LinkKind::ethernet, 0).build(graph, nics, {});
  });
}

TEST_F(FileTopology, Ns3ReadsTheSamples) {
  NETSIM_NEEDS_SHARED("samples/ns3_hpcc");
  for (const auto& [name, hosts] : {std::pair{"topology.txt", 65U}, {"fat.txt", 320U}}) {
    const std::string path = test::shared_folder() + "/samples/ns3_hpcc/" + name;
    const Cluster cluster = cluster_of("topology: {kind: ns3, file: " + path + "}");
    EXPECT_EQ(cluster.nics.size(), hosts) << name;
    EXPECT_GT(hops(cluster, 0, hosts - 1), 1u) << name;
  }
}

// ---- htsim

TEST_F(FileTopology, HtsimIsAFatTreeWithBundles) {
  const Cluster cluster = build("htsim", kTopo);
  EXPECT_EQ(cluster.nics.size(), 8u);
  EXPECT_THAT(cluster.host_numbers, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_EQ(hops(cluster, 0, 1), 2u);
  EXPECT_EQ(hops(cluster, 0, 2), 4u);
  EXPECT_EQ(hops(cluster, 0, 7), 6u);
  std::map<std::string, NodeId> nodes;
  for (NodeId id = 0; id < cluster.graph.node_count(); ++id) nodes[cluster.graph.node(id).name] = id;
  EXPECT_EQ(nodes.count("core3"), 1u);
  EXPECT_EQ(nodes.count("core4"), 0u);
  // Aggregation switch 1 of its pod: two links each to cores 1 and 3.
  std::multiset<std::string> above;
  for (const PortId port : cluster.graph.ports_of(nodes["agg3"])) {
    const Node& peer = cluster.graph.node(cluster.graph.port(port).peer_node);
    if (peer.tier == 2) above.insert(peer.name);
  }
  EXPECT_THAT(above, ElementsAre("core1", "core1", "core3", "core3"));
  // Latencies: of the link, and of the switch that the packet leaves.
  const auto delay = [&](const std::string& from, const std::string& to) {
    for (const PortId port : cluster.graph.ports_of(nodes[from])) {
      if (cluster.graph.port(port).peer_node == nodes[to])
        return cluster.graph.port(port).link.delay / kNanosecond;
    }
    return Time{-1};
  };
  EXPECT_EQ(delay("host0", "tor0"), 1000);
  EXPECT_EQ(delay("tor0", "host0"), 1100);
  EXPECT_EQ(delay("tor0", "agg0"), 2100);
  EXPECT_EQ(delay("agg0", "tor0"), 2000);
  EXPECT_EQ(delay("agg0", "core2"), 3000);
  EXPECT_EQ(delay("core2", "agg0"), 3300);
  EXPECT_EQ(delay("agg0", "tor2"), -1);
}

TEST_F(FileTopology, HtsimNotesItsQueues) {
  EXPECT_TRUE(build("htsim", kTopo).notes.empty());
  const Cluster cluster = build("htsim", std::string(kTopo) + "Queue_Up 100\n");
  ASSERT_EQ(cluster.notes.size(), 1u);
  EXPECT_THAT(cluster.notes[0], HasSubstr("network.switch.buffer"));
}

TEST_F(FileTopology, HtsimSaysWhatIsWrong) {
  const auto with = [](std::string text, const std::string& from, const std::string& to) {
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  EXPECT_THAT(error("htsim", ""), HasSubstr("'Nodes' is missing"));
  EXPECT_THAT(error("htsim", with(kTopo, "Nodes 8", "Nodes x")), StartsWith("3 file:1:7: Nodes is 'x'"));
  EXPECT_THAT(error("htsim", with(kTopo, "Tiers 3", "Tiers 4")), StartsWith("3 file:2:7"));
  EXPECT_THAT(error("htsim", with(kTopo, "Radix_Up 2", "Radix_In 2")),
              AllOf(StartsWith("3 file:7:1"), HasSubstr("Radix_Up")));
  EXPECT_THAT(error("htsim", with(kTopo, "Radix_Up 2\n", "")), HasSubstr("Radix_Up of tier 0 is missing"));
  EXPECT_THAT(error("htsim", with(kTopo, "Tier 1", "Tier 0")), HasSubstr("second section"));
  EXPECT_THAT(error("htsim", with(kTopo, "Podsize 4", "Podsize 3")), HasSubstr("Nodes / Podsize"));
  EXPECT_THAT(error("htsim", with(kTopo, "Bundle 2", "Bundle 4")), HasSubstr("do not fit"));
  EXPECT_THAT(error("htsim", with(kTopo, "Podsize 4", "Podsize 4\nBundle 1")),
              HasSubstr("belongs in a tier"));
  EXPECT_THAT(error("htsim", with(kTopo, "Nodes 8", "Nodes 8 9")), StartsWith("3 file:1:9"));
  EXPECT_THAT(cluster_error("topology: htsim"), HasSubstr("'file' is missing"));
}

TEST_F(FileTopology, HtsimSurvivesMutations) {
  test::expect_sane(
      kTopo, [this](const std::string& text) { build("htsim", text); }, 1500);
}

TEST_F(FileTopology, HtsimReadsTheSamples) {
  NETSIM_NEEDS_SHARED("samples/htsim_topo");
  const std::vector<std::string> files = test::shared_files("samples/htsim_topo", ".topo");
  EXPECT_GT(files.size(), 40u);
  for (const std::string& path : files) {
    const Cluster cluster = cluster_of("topology: {kind: htsim, file: " + path + "}");
    const auto last = static_cast<std::uint32_t>(cluster.nics.size() - 1);
    EXPECT_GT(last, 6u) << path;
    EXPECT_GE(hops(cluster, 0, last), 4u) << path;
  }
}

}  // namespace
}  // namespace netsim::link_list_test
