// Do SimAI's topologies become servers with NVSwitches and the fabric between them, and is a broken one
// refused with its place?
#include "sim/topology/files/simai.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "sim/core/output.h"
#include "sim/simulation/simulation.h"
#include "tests/support/mutations.h"
#include "tests/support/program.h"
#include "tests/support/shared.h"
#include "tests/topology/build.h"

namespace netsim::simai_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string shipped() { return read_file(source_directory() + "/configs/topologies/two_servers.simai"); }

std::string error(const std::string& text, bool ignore_error_rates = false) {
  try {
    hosts_of(parse_simai_topology(text, "file", ignore_error_rates));
  } catch (const InputError& wrong) {
    return wrong.what();
  }
  return {};
}

Cluster cluster_of_file(const std::string& path) {
  const std::string part = "{kind: simai, file: " + path + "}\n";
  return cluster_of("topology: " + part + "host: " + part);
}

TEST(Simai, TheShippedOneIsWhatItSays) {
  const Cluster cluster = cluster_of_file(source_directory() + "/configs/topologies/two_servers.simai");
  EXPECT_EQ(cluster.host_count, 2u);
  EXPECT_EQ(cluster.gpus.size(), 8u);
  EXPECT_EQ(cluster.nics.size(), 8u);
  EXPECT_EQ(cluster.way(0, 3), HostRouteKind::nvlink);
  EXPECT_EQ(cluster.way(3, 4), HostRouteKind::packets);
  const auto inside = cluster.way_inside(0, 3);
  ASSERT_EQ(inside.size(), 2u);
  for (const PortId port : inside) {
    EXPECT_EQ(cluster.graph.port(port).link.rate, 2880 * kGbps);
    EXPECT_EQ(cluster.graph.port(port).link.delay, 25 * kNanosecond);
  }
  // GPUs of one number share a rail; the NIC takes no time.
  EXPECT_EQ(walk(cluster, cluster.nics[1].nic, cluster.nics[5].nic, 0), 2u);
  EXPECT_EQ(walk(cluster, cluster.nics[1].nic, cluster.nics[6].nic, 0), 4u);
  const auto ends = cluster.nic_ends(1, 5, 0);
  ASSERT_EQ(ends.from.ports.size(), 1u);
  EXPECT_EQ(cluster.graph.port(ends.from.ports[0]).link.delay, 0);
  EXPECT_GE(cluster.graph.port(ends.from.ports[0]).link.rate, 400 * kGbps);
  expect_shortest_paths(cluster);
}

TEST(Simai, TheSamplesHaveTheCountsOfTheirHeadersAndCarryTraffic) {
  NETSIM_NEEDS_SHARED("samples/simai_topo");
  test::Directory directory;
  std::ofstream(directory.path() + "/shift.yaml") << "kind: permutation\nbytes: 20 kB\n";
  std::size_t files = 0;
  for (const std::string& path : test::shared_files("samples/simai_topo", "00")) {
    const std::string text = read_file(path);
    std::istringstream header(text);
    std::size_t nodes = 0, per_server = 0, nvswitches = 0, switches = 0, links = 0;
    header >> nodes >> per_server >> nvswitches >> switches >> links;
    const DescribedCluster described = parse_simai_topology(text, path, false);
    EXPECT_EQ(described.nodes.size(), nodes) << path;
    EXPECT_EQ(described.links.size(), links) << path;
    const std::size_t gpus = nodes - nvswitches - switches;
    const Cluster cluster = cluster_of_file(path);
    EXPECT_EQ(cluster.gpus.size(), gpus) << path;
    EXPECT_EQ(cluster.host_count, gpus / per_server) << path;
    std::size_t fabric_switches = 0, stages = 0, fabric_links = 0, nvlinks = 0;
    for (NodeId id = 0; id < cluster.graph.node_count(); ++id) {
      fabric_switches += cluster.graph.node(id).kind == NodeKind::fabric_switch;
      stages += cluster.graph.node(id).kind == NodeKind::scale_up_switch;
    }
    for (PortId port = 0; port < cluster.graph.port_count(); port += 2) {
      fabric_links += cluster.graph.port(port).link.kind == LinkKind::ethernet;
      nvlinks += cluster.graph.port(port).link.kind == LinkKind::nvlink;
    }
    EXPECT_EQ(fabric_switches, switches) << path;
    EXPECT_EQ(stages, nvswitches) << path;  // one a server in these
    EXPECT_EQ(fabric_links + nvlinks, links) << path;
    SimulationSetup setup;
    const std::string part = "{kind: simai, file: " + path + "}\n";
    setup.config = parse_config("topology: " + part + "host: " + part, "test.yaml");
    setup.workload = directory.path() + "/shift.yaml";
    EXPECT_EQ(Simulation(std::move(setup)).run({}).outcome, Outcome::done) << path;
    ++files;
  }
  EXPECT_EQ(files, 3u);
}

// Two GPUs of a server, its NVSwitch 2, a switch 3.
const char* const kHeader = "4 2 1 1 4 A100\n2 3\n";
const char* const kLinks = "0 2 100Gbps 25ns 0\n1 2 100Gbps 25ns 0\n0 3 10Gbps 1us 0\n1 3 10Gbps 1us 0\n";

// The GPUs' type: Hopper's NVSwitches add up, Ampere's do not, and another type than the tool and its users
// have is refused.
TEST(Simai, UsesTheTypeOfItsGpus) {
  test::Directory directory;
  const auto of_type = [&](const std::string& type) {
    std::string text = shipped();
    const std::size_t end = text.find('\n'), begin = text.rfind(' ', end) + 1;
    std::ofstream(directory.path() + "/servers") << text.replace(begin, end - begin, type);
    return cluster_of_file(directory.path() + "/servers");
  };
  const auto nvls = [](const Cluster& cluster) {
    const PortId up = cluster.way_inside(0, 1)[0];
    return cluster.graph.node(cluster.graph.port(up).peer_node).combining.efficiency;
  };
  for (const auto& [type, capability, efficiency] : {std::tuple{"A100", 80, 0.0},
                                                     {"H100", 90, 0.85},
                                                     {"H20", 90, 0.85},
                                                     {"B200", 100, 0.74},
                                                     {"NONE", 0, 0.0}}) {
    const Cluster cluster = of_type(type);
    EXPECT_EQ(cluster.groups[0].compute_capability, capability) << type;
    EXPECT_EQ(nvls(cluster), efficiency) << type;
  }
  EXPECT_THAT(error("2 1 0 1 2 nonsense\n1\n"),
              AllOf(StartsWith("file:1:"), HasSubstr("'nonsense'; allowed: NONE, V100, A100, A800, H100")));
}

TEST(Simai, SaysWhereItIsWrong) {
  const std::string header = kHeader;
  EXPECT_EQ(error(header + kLinks), "");
  EXPECT_THAT(error("4 2 1"), HasSubstr("the file ends where the number of switches"));
  EXPECT_THAT(error("5 2 1 1 0 A100\n2 3\n"), AllOf(StartsWith("file:1:3"), HasSubstr("3 GPUs")));
  EXPECT_THAT(error("4 2 4 1 0 A100\n"), StartsWith("file:1:5: the number of NVSwitches is '4'; allowed"));
  EXPECT_THAT(error("4 2 1 1 0 A100\n2 2\n"), StartsWith("file:2:3: switch 2 is listed twice"));
  EXPECT_THAT(error("4 2 1 1 0 A100\n2 4\n"), StartsWith("file:2:3: a switch is '4'; allowed"));
  EXPECT_THAT(error(header + "0 2 100Gbps 25ns 0\n"), HasSubstr("the file ends where link 1"));
  EXPECT_THAT(error(header + "0 2 100 25ns 0\n"), StartsWith("file:3:5"));
  EXPECT_THAT(error(header + "0 0 100Gbps 25ns 0\n"), StartsWith("file:3:1: node 0 is joined to itself"));
  EXPECT_THAT(error(header + "2 3 100Gbps 25ns 0\n"),
              AllOf(StartsWith("file:3:1: NVSwitch 2"), HasSubstr("no GPU")));
  EXPECT_THAT(error("6 2 1 1 2 A100\n4 5\n0 4 1Gbps 1us 0\n2 4 1Gbps 1us 0\n"),
              AllOf(StartsWith("file:4:1"), HasSubstr("servers 0 and 1")));
  const std::string lossy =
      header + "0 2 100Gbps 25ns 1e-3\n1 2 100Gbps 25ns 0\n0 3 10Gbps 1us 0\n1 3 10Gbps 1us 0\n";
  EXPECT_THAT(error(lossy), AllOf(StartsWith("file:3:18"), HasSubstr("network.faults")));
  EXPECT_EQ(error(lossy, true), "");
}

TEST(Simai, SurvivesMutations) {
  test::expect_sane(
      std::string(kHeader) + kLinks,
      [](const std::string& text) {
        described_fabric(parse_simai_topology(text, "file", false), LinkSpec{}, {}, ConfigNode());
      },
      2000);
}

class SimaiProgram : public test::NetsimProgram {};

TEST_F(SimaiProgram, TakesTheFileAsAConfiguration) {
  write("servers", shipped());
  const test::Ended ended = run("--config servers --workload incast.yaml --dry-run");
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("2 hosts, 8 GPUs, 8 NICs"));
  write("broken", "4 2 1 1 4 A100\n2 3\n0 9 1Gbps 1us 0\n");
  expect_error("--config broken --workload incast.yaml", ExitCode::input,
               {"broken:3:3: a node is '9'; allowed"});
}

}  // namespace
}  // namespace netsim::simai_test
