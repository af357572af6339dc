// Tests that a host from NCCL's topology file has the devices, links and rates that NCCL reads from it. A
// broken file is refused with its place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "sim/core/output.h"
#include "tests/report/fixtures.h"
#include "tests/support/mutations.h"
#include "tests/support/paths.h"
#include "tests/support/shared.h"
#include "tests/topology/build.h"

namespace netsim::nccl_xml_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr BitRate kGBps = 8 * kGbps;

class NcclXml : public ::testing::Test {
 protected:
  Cluster of_file(const std::string& file, const std::string& more = "",
                  const std::string& hosts = "1") const {
    return cluster_of("topology: {kind: star, hosts: 64}\nhosts: " + hosts +
                      "\nhost: {kind: nccl_xml, file: " + file + more + "}\n");
  }
  Cluster of_text(const std::string& xml, const std::string& more = "") const {
    std::ofstream(directory_.path() + "/host.xml") << xml;
    return of_file(directory_.path() + "/host.xml", more);
  }
  std::string error(const std::string& xml, const std::string& more = "") const {
    try {
      of_text(xml, more);
    } catch (const InputError& wrong) {
      return wrong.what();
    }
    return {};
  }
  static BitRate rate(const Cluster& cluster, NodeId from, NodeId to, LinkKind kind) {
    BitRate sum = 0;
    for (const PortId port : cluster.graph.ports_of(from)) {
      const PortSpec& spec = cluster.graph.port(port);
      if (spec.peer_node == to && spec.link.kind == kind) sum += spec.link.rate;
    }
    return sum;
  }

  test::Directory directory_;
};

TEST_F(NcclXml, HasTheDevicesAndRatesOfTheFile) {
  const Cluster cluster = of_file(source_directory() + "/configs/topologies/four_gpus.xml", "", "2");
  ASSERT_EQ(cluster.gpus.size(), 8u);
  ASSERT_EQ(cluster.nics.size(), 4u);
  for (std::uint32_t gpu = 0; gpu < 8; ++gpu) {
    EXPECT_EQ(cluster.gpus[gpu].nic, cluster.nics[gpu / 2].nic);
    const std::uint32_t bridged = gpu ^ 1U, other = gpu / 4 * 4 + (gpu + 2) % 4;
    EXPECT_EQ(rate(cluster, cluster.gpus[gpu].node, cluster.gpus[bridged].node, LinkKind::nvlink),
              4 * 20 * kGBps);
    EXPECT_EQ(cluster.way(gpu, bridged), HostRouteKind::nvlink);
    EXPECT_EQ(cluster.way(gpu, other), HostRouteKind::pcie);
    const auto ports = cluster.way_inside(gpu, other);  // switch, CPU, CPU, switch
    ASSERT_EQ(ports.size(), 5u);
    EXPECT_EQ(cluster.graph.port(ports[0]).link.rate, 24 * kGBps);  // 16 lanes x 120 / 80
    EXPECT_EQ(cluster.graph.port(ports[2]).link.rate, 16 * kGBps);  // AMD
  }
}

TEST_F(NcclXml, JoinsNvlinksToSwitchesInOneStage) {
  const std::string gpu = R"(<pci busid="0:0:)",
                    rest = R"(.0" class="0x030200" link_speed="8 GT/s" link_width="8">
    <gpu sm="90"><nvlink target="0000:aa:00.0" count="9" tclass="0x068000"/>
    <nvlink target="0000:ab:00.0" count="9" tclass="0x068000"/></gpu></pci>)";
  const Cluster cluster = of_text("<system version=\"1\"><cpu>" + gpu + "1" + rest + gpu + "2" + rest + gpu +
                                  "3" + rest + R"(<pci busid="0:0:9.0" class="0x020000"/></cpu></system>)");
  ASSERT_EQ(cluster.gpus.size(), 3u);
  const auto ports = cluster.way_inside(0, 2);
  ASSERT_EQ(ports.size(), 2u);
  for (const PortId port : ports) EXPECT_EQ(cluster.graph.port(port).link.rate, 18 * 206 * kGBps / 10);
  EXPECT_TRUE(cluster.graph.port(ports[0]).link.cut_through);
  EXPECT_EQ(cluster.nics.size(), 1u);
}

TEST_F(NcclXml, TakesTheFastestNetsAndThePortsOfOneNic) {
  const Cluster cluster = of_text(R"(<system><cpu>
    <pci busid="1" class="0x030200"/>
    <pci busid="2" class="0x020000"><nic><net name="a" dev="1" speed="100000" port="0"/><net name="b" dev="2" speed="100000" port="1"/></nic></pci>
    <nic><net name="eno1" dev="0" speed="1000"/></nic></cpu></system>)");
  ASSERT_EQ(cluster.nics.size(), 2u);
  const auto first = cluster.groups[0].ways.nics(0, 0)[0].ports;
  const auto second = cluster.groups[0].ways.nics(0, 0)[1].ports;
  ASSERT_EQ(first.size(), 3u);  // CPU, NIC, its port
  EXPECT_EQ(first[1], second[1]);
  EXPECT_EQ(cluster.groups[0].ways.nearest(0, 0), 2u);
}

// Two GPUs at NVSwitches and a NIC.
std::string hopper(const std::string& sm, const std::string& net = "speed=\"100000\"") {
  std::string gpus;
  for (const char* number : {"1", "2"}) {
    gpus += std::string("<pci busid=\"0:0:") + number + ".0\" class=\"0x030200\"><gpu dev=\"" + number +
            "\" sm=\"" + sm + "\"><nvlink target=\"a\" count=\"18\" tclass=\"0x068000\"/></gpu></pci>";
  }
  return "<system><cpu>" + gpus + "<pci busid=\"0:0:9.0\" class=\"0x020000\"><nic><net dev=\"0\" " + net +
         "/></nic></pci></cpu></system>";
}

// NVSwitches add up for Hopper and later (ncclTopoCompute: ccMin < 90 has no NVLS), and the capability is
// what NCCL's tables are read by.
TEST_F(NcclXml, UsesTheCapabilityOfItsGpus) {
  const auto efficiency = [](const Cluster& cluster) {
    double found = -1;
    for (NodeId node = 0; node < cluster.graph.node_count(); ++node) {
      if (cluster.graph.node(node).kind == NodeKind::scale_up_switch)
        found = cluster.graph.node(node).combining.efficiency;
    }
    return found;
  };
  for (const auto& [sm, nvls] : {std::pair{80, 0.0}, {90, 0.85}, {100, 0.74}}) {
    const Cluster cluster = of_text(hopper(std::to_string(sm)));
    EXPECT_EQ(cluster.groups[0].compute_capability, sm);
    EXPECT_EQ(efficiency(cluster), nvls) << sm;
  }
}

// A net of 100 Gb/s at a link of 100 Gb/s, and where the fabric gives it 400.
TEST_F(NcclXml, LimitsLinksToTheSpeedOfNets) {
  const auto built = [&](const std::string& net, const char* rate) {
    std::ofstream(directory_.path() + "/host.xml") << hopper("90", net);
    return cluster_of(std::string("topology: {kind: star, hosts: 4, rate: ") + rate +
                      "}\nhosts: 2\nhost: {kind: nccl_xml, file: " + directory_.path() + "/host.xml}\n");
  };
  const Cluster limited = built("speed=\"100000\"", "400 Gbps");
  for (const HostPort& nic : limited.nics) {
    EXPECT_EQ(limited.nic_rate(nic.nic), 100 * kGbps);
    const PortId out = limited.graph.ports_of(nic.nic).back();
    EXPECT_EQ(limited.graph.port(out ^ 1U).link.rate, 100 * kGbps);
  }
  ASSERT_EQ(limited.notes.size(), 1u);
  EXPECT_THAT(limited.notes[0], AllOf(HasSubstr("100 Gbps"), HasSubstr("400 Gbps")));
  EXPECT_TRUE(built("speed=\"400000\"", "400 Gbps").notes.empty());
  EXPECT_EQ(built("speed=\"800000\"", "400 Gbps").nic_rate(limited.nics[0].nic), 400 * kGbps);
  EXPECT_EQ(built("speed=\"-1\"", "400 Gbps").nic_rate(limited.nics[0].nic), 400 * kGbps);
}

TEST_F(NcclXml, NotesWhatHasNoEffect) {
  const auto notes = [&](const std::string& xml) {
    std::string all;
    for (const std::string& note : of_text(xml).notes) all += note + "\n";
    return all;
  };
  EXPECT_EQ(notes(hopper("90")), "");
  EXPECT_THAT(notes(hopper("90", "gdr=\"0\"")), HasSubstr("gdr=\"0\" for a net"));
  EXPECT_THAT(notes(hopper("90", "latency=\"75\"")), HasSubstr("collectives.plugin_latency"));
  std::string swapped = hopper("90");
  swapped.replace(swapped.find("dev=\"1\""), 7, "dev=\"1\" rank=\"5\"");
  swapped.replace(swapped.find("dev=\"2\""), 7, "dev=\"2\" rank=\"3\"");
  EXPECT_THAT(notes(swapped), HasSubstr("ranks in another order"));
}

TEST_F(NcclXml, RefusesBrokenFilesWithTheirPlace) {
  EXPECT_THAT(error("<system>\n  <cpu>\n  </pci>\n</system>"),
              AllOf(HasSubstr("host.xml:3:"), HasSubstr("ismatch")));
  EXPECT_THAT(error("<system>\n</system>"), AllOf(HasSubstr("host.xml:1:"), HasSubstr("without CPUs")));
  EXPECT_THAT(error("<system><cpu/></system>"), HasSubstr("without GPUs"));
  EXPECT_THAT(error("<system><cpu>\n <pci class=\"0x030200\"/></cpu></system>"),
              AllOf(HasSubstr("host.xml:2:"), HasSubstr("'busid' is missing")));
  EXPECT_THAT(error("<system><cpu>\n<pci busid=\"1\" class=\"0x03\"/>\n<pci busid=\"1\" "
                    "class=\"0x02\"/></cpu></system>"),
              AllOf(HasSubstr("host.xml:3:"), HasSubstr("there twice")));
  EXPECT_THAT(error("<system><cpu><pci busid=\"1\" class=\"0x03\" link_width=\"many\"/></cpu></system>"),
              HasSubstr("link_width is 'many'; allowed: an integer from 0 to 64"));
  EXPECT_THAT(error("<system><cpu><pci busid=\"1\"/></cpu></system>"),
              HasSubstr("in the host's parameter `nics`"));
  EXPECT_THAT(error("<graphs version=\"1\"/>"), HasSubstr("a graph of NCCL (NCCL_GRAPH_FILE)"));
}

TEST_F(NcclXml, AnswersWhateverIsBroken) {
  const std::string text = read_file(source_directory() + "/configs/topologies/four_gpus.xml");
  test::expect_sane(
      text, [&](const std::string& given) { of_text(given); }, 500);
}

// GPUs and NICs of the samples of cloud vendors and RCCL.
TEST_F(NcclXml, ReadsTheSamples) {
  const std::string folder = test::shared_folder() + "/samples/nccl_topo_xml/";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no samples here";
  struct Sample {
    const char* file;
    const char* more;
    std::size_t gpus, nics;
  };
  for (const Sample& sample :
       {Sample{"aws/p4d-24xl-topo.xml", "", 8, 4},
        Sample{"aws/g5.48xl-topo.xml", ", nics: ['0000:00:15.0']", 8, 1},
        Sample{"azure/ndv4-topo.xml", "", 8, 8}, Sample{"azure/ndv2-topo.xml", "", 8, 1},
        Sample{"azure/ncv4-topo.xml", "", 4, 1}, Sample{"rccl/topo_16p1h.xml", "", 16, 8},
        Sample{"rccl/topo_4p1h_1.xml", "", 4, 2}, Sample{"rccl/topo_8p_940vm.xml", "", 8, 8},
        Sample{"rccl/topo_8p_rome_n4.xml", "", 8, 1}, Sample{"rccl/topo_collnet_n4.xml", "", 8, 4}}) {
    const Cluster cluster = of_file(folder + sample.file, sample.more);
    EXPECT_EQ(cluster.gpus.size(), sample.gpus) << sample.file;
    EXPECT_EQ(cluster.nics.size(), sample.nics) << sample.file;
    for (std::uint32_t from = 0; from < cluster.gpus.size(); ++from) {
      for (std::uint32_t to = 0; to < cluster.gpus.size(); ++to) {
        if (from == to) continue;
        EXPECT_NE(cluster.way(from, to), HostRouteKind::packets) << sample.file;
      }
    }
  }
}

}  // namespace
}  // namespace netsim::nccl_xml_test
