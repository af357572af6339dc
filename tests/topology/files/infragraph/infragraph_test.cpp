// Tests that an InfraGraph document becomes the nodes and edges that its reference service makes of it, and
// then the hosts and the fabric. A broken one is refused with its place.
#include "sim/topology/files/infragraph/infragraph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "sim/configuration/load_run.h"
#include "sim/core/output.h"
#include "sim/scheduling/placement.h"
#include "sim/simulation/simulation.h"
#include "sim/topology/channel_dependencies.h"
#include "tests/report/fixtures.h"
#include "tests/support/mutations.h"
#include "tests/support/program.h"
#include "tests/support/shared.h"
#include "tests/topology/build.h"

namespace netsim::infragraph_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr BitRate kGBps = 8 * kGbps;

DescribedCluster read(const std::string& text) {
  return read_infragraph(parse_config(text, "infra.yaml"), "infra.yaml");
}

std::string error(const std::string& text) {
  try {
    hosts_of(read(text));
  } catch (const Error& wrong) {
    return wrong.what();
  }
  return {};
}

// "a-b" for each edge, sorted.
std::set<std::string> edges(const DescribedCluster& cluster) {
  std::set<std::string> result;
  for (const DescribedCluster::Link& link : cluster.links) {
    const auto [a, b] = std::minmax(cluster.nodes[link.a].name, cluster.nodes[link.b].name);
    result.insert(a + "-" + b);
  }
  return result;
}

// A document of one device `d` with `components` and `edges` of its link `l`, instantiated once as `i`.
std::string document(const std::string& components, const std::string& edges,
                     const std::string& link = "{name: l}") {
  return "devices:\n- name: d\n  components: [" + components + "]\n  links: [" + link + "]\n  edges: [" +
         edges + "]\ninstances: [{name: i, device: d, count: 1}]\n";
}

std::string edge(const std::string& a, const std::string& b, const std::string& scheme) {
  return "{ep1: {component: '" + a + "'}, ep2: {component: '" + b + "'}, scheme: " + scheme + ", link: l}";
}

const std::string kXpus = "{name: x, choice: xpu, count: 4}, {name: n, choice: nic, count: 4}";

// ---- Expansion

TEST(InfraGraph, ChoosesByIndexAndSlice) {
  const auto of = [](const std::string& a, const std::string& b, const std::string& scheme) {
    return edges(read(document(kXpus, edge(a, b, scheme))));
  };
  EXPECT_THAT(of("x[1]", "n[3]", "one2one"), ElementsAre("i.0.n.3-i.0.x.1"));
  EXPECT_THAT(of("x[::2]", "n[1:3]", "one2one"), ElementsAre("i.0.n.1-i.0.x.0", "i.0.n.2-i.0.x.2"));
  EXPECT_THAT(of("x[3:]", "n[:2]", "many2many"), ElementsAre("i.0.n.0-i.0.x.3", "i.0.n.1-i.0.x.3"));
  EXPECT_EQ(of("x", "x", "many2many").size(), 6u);     // each pair once, none with itself
  EXPECT_EQ(of("x", "n[0:2]", "one2one").size(), 2u);  // the longer one's rest is left
  EXPECT_THAT(of("x", "x", "ring"),
              ElementsAre("i.0.x.0-i.0.x.1", "i.0.x.0-i.0.x.3", "i.0.x.1-i.0.x.2", "i.0.x.2-i.0.x.3"));
}

TEST(InfraGraph, NestsDevicesInDevices) {
  const std::string text =
      "devices:\n"
      "- name: d\n"
      "  components: [{name: x, choice: xpu, count: 2}, {name: card, choice: device, count: 2}]\n"
      "  links: [{name: l}]\n"
      "  edges:\n"
      "  - {ep1: {component: x}, ep2: {device: card, component: pins}, scheme: one2one, link: l}\n"
      "- name: card\n"
      "  components: [{name: pins, choice: custom, count: 1}, {name: port, choice: port, count: 2}]\n"
      "  links: [{name: l}]\n"
      "  edges: [{ep1: {component: pins}, ep2: {component: port}, scheme: many2many, link: l}]\n"
      "instances: [{name: i, device: d, count: 2}, {name: s, device: card, count: 1}]\n"
      "links: [{name: l}]\n"
      "edges: [{ep1: {instance: i, component: 'card[1].port[0]'}, ep2: {instance: s, component: port}, "
      "scheme: one2one, link: l}]\n";
  const DescribedCluster cluster = read(text);
  EXPECT_EQ(cluster.nodes.size(), 2u * 8 + 3);
  EXPECT_EQ(cluster.links.size(), 2u * 6 + 2 + 2);
  EXPECT_EQ(edges(cluster).count("i.1.card.1.port.0-s.0.port.1"), 1u);
  EXPECT_EQ(edges(cluster).count("i.1.card.0.pins.0-i.1.x.0"), 1u);
  EXPECT_THAT(error(text + "annotations: {}\n"), HasSubstr("annotations"));
}

TEST(InfraGraph, TheLaterOfTwoEdgesHolds) {
  const std::string links =
      "{name: slow, physical: {bandwidth: {choice: gigabits_per_second, gigabits_per_second: 1}}}, "
      "{name: l, physical: {bandwidth: {gigabytes_per_second: 2}, latency: {choice: ns, ns: 250}}}";
  const std::string both =
      "{ep1: {component: 'x[0]'}, ep2: {component: 'n[0]'}, scheme: one2one, link: slow}, " +
      edge("n[0]", "x[0]", "one2one");
  const DescribedCluster cluster = read(document(kXpus, both, links));
  ASSERT_EQ(cluster.links.size(), 1u);
  EXPECT_EQ(cluster.links[0].rate, 2 * kGBps);
  EXPECT_EQ(cluster.links[0].delay, 250 * kNanosecond);
}

TEST(InfraGraph, TheFilesOfTheReferenceServiceAgree) {
  NETSIM_NEEDS_SHARED("samples/infragraph");
  std::size_t files = 0;
  for (const std::string& path : test::shared_files("samples/infragraph", ".yaml")) {
    const std::string expected = path.substr(0, path.size() - 5) + ".edges.tsv";
    if (!std::filesystem::exists(expected)) continue;
    const DescribedCluster cluster = read_infragraph(load_config(path), path);
    std::set<std::string> wanted;
    std::ifstream lines(expected);
    for (std::string a, b, rest; lines >> a >> b && std::getline(lines, rest);)
      wanted.insert(std::min(a, b) + "-" + std::max(a, b));
    EXPECT_EQ(edges(cluster), wanted) << path;
    EXPECT_EQ(cluster.links.size(), wanted.size()) << path;
    ++files;
  }
  EXPECT_EQ(files, 11u);
}

// EXPECTED.tsv: file, nodes, edges, nodes by type, ...
TEST(InfraGraph, CountsAreThoseOfTheReferenceService) {
  NETSIM_NEEDS_SHARED("samples/infragraph");
  for (const std::string folder : {"generated", "published"}) {
    const std::string at = test::shared_folder() + "/samples/infragraph/" + folder + "/";
    std::ifstream lines(at + "EXPECTED.tsv");
    std::string line;
    std::getline(lines, line);
    while (std::getline(lines, line)) {
      std::istringstream words(line);
      std::string name, types;
      std::size_t nodes = 0, links = 0;
      words >> name >> nodes >> links;
      std::getline(words >> std::ws, types, '\t');
      const DescribedCluster cluster = read_infragraph(load_config(at + name + ".yaml"), name);
      EXPECT_EQ(cluster.nodes.size(), nodes) << name;
      EXPECT_EQ(cluster.links.size(), links) << name;
      const auto xpus = std::count_if(cluster.nodes.begin(), cluster.nodes.end(), [](const auto& node) {
        return node.kind == DescribedCluster::Kind::xpu;
      });
      EXPECT_THAT(types, HasSubstr("xpu:" + std::to_string(xpus))) << name;
    }
  }
}

// ---- Protobuf

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}
std::string field(unsigned number, std::uint64_t value) { return varint(number << 3) + varint(value); }
std::string field(unsigned number, const std::string& content) {
  return varint(number << 3 | 2) + varint(content.size()) + content;
}

// Two xpus that one edge joins at 1.5 GB/s (0x3fc00000).
std::string message() {
  const std::string component = field(1, "x") + field(3, 2) + field(4, 4) + field(14, "");
  const std::string figure = field(1, 2) + varint(3 << 3 | 5) + std::string("\0\0\xc0\x3f", 4);
  const std::string link = field(1, "l") + field(3, field(1, figure));
  const std::string edge =
      field(1, field(2, "x[0]")) + field(2, field(2, "x[1]")) + field(3, 1) + field(4, "l");
  return field(1, "pair") + field(3, field(1, "d") + field(3, component) + field(4, link) + field(5, edge)) +
         field(5, field(1, "i") + field(3, "d") + field(4, 1));
}

TEST(InfraGraph, ProtobufIsTheSameDocument) {
  const DescribedCluster cluster = read_infragraph(parse_infragraph_message(message(), "pair.pb"), "pair.pb");
  EXPECT_THAT(edges(cluster), ElementsAre("i.0.x.0-i.0.x.1"));
  EXPECT_EQ(cluster.links[0].rate, 12 * kGbps);
  const auto error_of = [](const std::string& bytes) -> std::string {
    try {
      read_infragraph(parse_infragraph_message(bytes, "pair.pb"), "pair.pb");
    } catch (const ConfigError& wrong) {
      return wrong.what();
    }
    return {};
  };
  EXPECT_THAT(error_of(message().substr(0, 30)),
              AllOf(StartsWith("pair.pb"), HasSubstr("truncated or damaged")));
  EXPECT_THAT(error_of(field(3, field(1, "d") + field(3, field(4, 9)))),
              AllOf(HasSubstr("devices.0.components.0.choice"), HasSubstr("9 is none of the 8 choices")));
  EXPECT_THAT(error_of(field(3, field(1, 7))), HasSubstr("another type of value"));
  test::expect_sane(
      message(), [](const std::string& bytes) { read_infragraph(parse_infragraph_message(bytes, "f"), "f"); },
      1500);
}

TEST(InfraGraph, TheSampleInProtobufIsTheOneInYaml) {
  NETSIM_NEEDS_SHARED("samples/infragraph");
  const std::string name =
      test::shared_folder() + "/samples/infragraph/generated/clos_fat_tree_2tier_r8_server";
  const DescribedCluster yaml = read_infragraph(load_config(name + ".yaml"), "f");
  const DescribedCluster packed =
      read_infragraph(parse_infragraph_message(read_file(name + ".pb"), "f"), "f");
  EXPECT_EQ(edges(packed), edges(yaml));
  ASSERT_EQ(packed.links.size(), yaml.links.size());
  for (std::size_t i = 0; i < yaml.links.size(); ++i) EXPECT_EQ(packed.links[i].rate, yaml.links[i].rate);
}

// ---- What names say

TEST(InfraGraph, NamesAndDescriptionsTellRates) {
  const auto link_of = [](const std::string& components, const std::string& link) {
    const std::string name = link.substr(7, link.find_first_of(",}") - 7);  // behind "{name: "
    const std::string joint =
        "{ep1: {component: a}, ep2: {component: b}, scheme: many2many, link: " + name + "}";
    return read(document(components, joint, link)).links.at(0);
  };
  const std::string gpu_and_switch =
      "{name: a, choice: xpu, count: 1, description: %}, {name: b, choice: switch, count: 1}";
  const auto of_gpu = [&](const std::string& gpu, const std::string& link) {
    std::string components = gpu_and_switch;
    return link_of(components.replace(components.find('%'), 1, gpu), link);
  };
  EXPECT_TRUE(of_gpu("x", "{name: nvlink}").scale_up);
  EXPECT_FALSE(of_gpu("x", "{name: nvlink}").together.has_value());
  EXPECT_EQ(of_gpu("x", "{name: l, description: nvlink_4}").together, 18 * 206 * kGBps / 10);
  EXPECT_EQ(of_gpu("NVIDIA A100 SXM4", "{name: nvlink}").together, 240 * kGBps);
  EXPECT_EQ(of_gpu("Grace Blackwell", "{name: l}").together, 18 * 401 * kGBps / 10);
  // 32 GT/s x 16 lanes x 128/130 = 504 Gb/s, and 256 of 280 bytes of a TLP.
  const BitRate gen5 = 504 * kGbps * 256 / 280;
  EXPECT_FALSE(of_gpu("x", "{name: pcie}").scale_up);
  EXPECT_FALSE(of_gpu("x", "{name: pcie}").rate.has_value());
  EXPECT_EQ(of_gpu("x", "{name: p, description: PCIE_GEN5 x16}").rate, gen5);
  EXPECT_EQ(of_gpu("x", "{name: pcie, description: Gen 5 x8}").rate, gen5 / 2);
  const std::string transfers =
      "{name: pcie, physical: {bandwidth: {choice: gigatransfers_per_second, gigatransfers_per_second: 32}}}";
  EXPECT_EQ(of_gpu("x", transfers).rate, gen5);
  const std::string pcie_switch =
      "{name: a, choice: xpu, count: 1}, {name: b, choice: switch, count: 1, description: PCI Express Gen4}";
  EXPECT_FALSE(link_of(pcie_switch, "{name: l}").scale_up);
  EXPECT_EQ(link_of(pcie_switch, "{name: l}").rate, gen5 / 2);
  // RCCL's GFX94X_XGMI_WIDTH, as the host full_mesh has it.
  const std::string instinct =
      "{name: a, choice: xpu, count: 1, description: AMD INSTINCT MI300X OAM}, {name: b, choice: xpu, count: "
      "1, "
      "description: AMD INSTINCT MI300X OAM}";
  EXPECT_EQ(link_of(instinct, "{name: infinity_fabric}").rate, 48 * kGBps);
  const std::string cpu = "{name: a, choice: xpu, count: 1}, {name: b, choice: cpu, count: 1}";
  EXPECT_EQ(link_of(cpu, "{name: c2c_link}").rate, 225 * kGBps);
}

// ---- Hosts and fabric

class InfraGraphFiles : public test::NetsimProgram {
 protected:
  Cluster build(const std::string& text, const std::string& hosts = "", const std::string& more = "") const {
    write("infra.yaml", text);
    const std::string file = "kind: infragraph, file: " + path("infra.yaml");
    return cluster_of("topology: {" + file + more + "}\n" +
                      (hosts.empty() ? "host: {" + file + "}\n" : hosts));
  }
  std::string build_error(const std::string& text, const std::string& hosts = "") const {
    try {
      build(text, hosts);
    } catch (const Error& wrong) {
      return wrong.what();
    }
    return {};
  }
};

BitRate rate_between(const Cluster& cluster, const std::string& a, const std::string& b) {
  BitRate sum = 0;
  for (PortId port = 0; port < cluster.graph.port_count(); ++port) {
    const PortSpec& spec = cluster.graph.port(port);
    if (cluster.graph.node(spec.node).name == a && cluster.graph.node(spec.peer_node).name == b)
      sum += spec.link.rate;
  }
  return sum;
}

TEST_F(InfraGraphFiles, TheShippedOneIsWhatItSays) {
  const Cluster cluster = build(read_file(source_directory() + "/configs/topologies/four_boxes.yml"));
  EXPECT_EQ(cluster.gpus.size(), 16u);
  EXPECT_EQ(cluster.nics.size(), 16u);
  EXPECT_EQ(cluster.host_count, 4u);
  EXPECT_EQ(rate_between(cluster, "host3/gpu2", "host3/nvsw.0"), 18 * 206 * kGBps / 10);
  EXPECT_EQ(rate_between(cluster, "host0/cpu.0", "host0/cpu.1"), 22 * kGBps);
  EXPECT_EQ(rate_between(cluster, "leaf.0", "host1/nic1"), 200 * kGbps);
  EXPECT_EQ(rate_between(cluster, "leaf.1", "spine.0"), 800 * kGbps);
  // Two ports of a NIC, on the GPU's own PCIe switch.
  EXPECT_EQ(cluster.nic_ends(0, 4, 0).from.ports.size(), 3u);
  EXPECT_NE(cluster.nic_ends(0, 4, 0).from.nic, cluster.nic_ends(0, 4, 1).from.nic);
  EXPECT_EQ(cluster.way(0, 3), HostRouteKind::nvlink);
  EXPECT_EQ(cluster.way(0, 4), HostRouteKind::packets);
  expect_shortest_paths(cluster);
}

// InfraGraph's translator of NCCL's files (nccl_translator.py) writes NVSwitches, PCIe bridges and links so.
TEST_F(InfraGraphFiles, CustomComponentsAreWhatTheirTypeSays) {
  const std::string text = document(
      "{name: xpu, choice: xpu, count: 2, description: NVIDIA H100 80GB}, {name: nvsw, choice: custom, "
      "count: 4, "
      "custom: {type: switch}, description: NVSwitch}, {name: cpu, choice: cpu, count: 2}, {name: "
      "pci_bridge, "
      "choice: custom, count: 1, custom: {type: pci_bridge}}",
      edge("xpu", "nvsw", "many2many") +
          ", {ep1: {component: cpu}, ep2: {component: cpu}, scheme: many2many, link: AMD Infinity Fabric}, "
          "{ep1: {component: pci_bridge}, ep2: {component: 'cpu[0]'}, scheme: one2one, link: pci}, "
          "{ep1: {component: pci_bridge}, ep2: {component: xpu}, scheme: many2many, link: pci}",
      "{name: l, description: NVLink NVSwitch}, {name: pci}, {name: AMD Infinity Fabric}");
  const Cluster cluster = build(text);
  EXPECT_EQ(cluster.way(0, 1), HostRouteKind::nvlink);
  EXPECT_EQ(rate_between(cluster, "host0/gpu0", "host0/nvsw.0"), 18 * 206 * kGBps / 10);
  EXPECT_EQ(cluster.groups[0].compute_capability, 90);
  const PortId up = cluster.way_inside(0, 1)[0];
  EXPECT_EQ(cluster.graph.node(cluster.graph.port(up).peer_node).combining.efficiency, 0.85);
}

// Xpus at a component of which nothing is known: PCIe.
TEST_F(InfraGraphFiles, XpusMayHangOnAnyComponent) {
  const std::string text = document("{name: x, choice: xpu, count: 2}, {name: box, choice: custom, count: 1}",
                                    edge("x", "box", "many2many"));
  write("box.yaml", text);
  write("sum.yaml", "kind: collective\ncollective: all_reduce\nbytes: 1 MB\n");
  const test::Ended ended = run("--config box.yaml --workload sum.yaml --quiet --json -");
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(build(text).way(0, 1), HostRouteKind::pcie);
}

// `sm` and `speed` of the annotations that the translator writes.
TEST_F(InfraGraphFiles, AnnotationsTellGpusAndNics) {
  const std::string graph =
      "infrastructure:\n"
      "  devices:\n"
      "  - name: d\n"
      "    components: [{name: x, choice: xpu, count: 2}, {name: n, choice: nic, count: 1}, {name: s, "
      "choice: "
      "switch, count: 1}]\n"
      "    links: [{name: nvlink}, {name: pci}]\n"
      "    edges: [{ep1: {component: x}, ep2: {component: s}, scheme: many2many, link: nvlink}, {ep1: "
      "{component: x}, ep2: {component: n}, scheme: many2many, link: pci}]\n"
      "  - {name: leaf, components: [{name: port, choice: port, count: 2}]}\n"
      "  instances: [{name: i, device: d, count: 2}, {name: leaf, device: leaf, count: 1}]\n"
      "  links: [{name: eth}]\n"
      "  edges: [{ep1: {instance: i, component: n}, ep2: {instance: leaf, component: port}, scheme: one2one, "
      "link: eth}]\n"
      "annotations: {nodes: [";
  std::string nodes;
  for (const char* host : {"0", "1"}) {
    for (const char* xpu : {"0", "1"}) {
      nodes +=
          std::string("{name: i.") + host + ".x." + xpu + ", attributes: [{attribute: sm, value: '90'}]}, ";
    }
    nodes += std::string("{name: i.") + host + ".n.0, attributes: [{attribute: speed, value: '100000'}]}, ";
  }
  const Cluster cluster = build(graph + nodes + "]}\n", "", ", rate: 400 Gbps");
  EXPECT_EQ(cluster.groups[0].compute_capability, 90);
  EXPECT_EQ(cluster.local_rate(0), 18 * 206 * kGBps / 10);
  EXPECT_EQ(cluster.nic_rate(cluster.nics[0].nic), 100 * kGbps);
  EXPECT_EQ(cluster.notes.size(), 1u);
}

TEST_F(InfraGraphFiles, SwitchesOfTheSameXpusAreOneStage) {
  const std::string text =
      document("{name: x, choice: xpu, count: 4, description: A100}, {name: s, choice: switch, count: 6}",
               edge("x", "s", "many2many"), "{name: l, description: nvlink_3}");
  const Cluster cluster = build(text);
  EXPECT_EQ(cluster.nics.size(), 0u);
  EXPECT_EQ(rate_between(cluster, "host0/gpu0", "host0/s.0"), 240 * kGBps);
  EXPECT_EQ(cluster.graph.node_count(), 5u);
  EXPECT_EQ(cluster.way(0, 3), HostRouteKind::nvlink);
}

const char* const kChips =
    "devices:\n"
    "- {name: chip, components: [{name: x, choice: xpu, count: 1}, {name: cpu, choice: cpu, count: 1}]}\n"
    "instances: [{name: c, device: chip, count: 8}]\n"
    "links: [{name: ici, physical: {bandwidth: {choice: gigabits_per_second, gigabits_per_second: 400}}}]\n"
    "edges: [{ep1: {instance: c, component: x}, ep2: {instance: c, component: x}, scheme: ring, link: "
    "ici}]\n";

TEST_F(InfraGraphFiles, ChipsThatAreJoinedDirectlyPassPacketsOn) {
  const Cluster cluster = build(kChips);
  EXPECT_EQ(cluster.nics.size(), 8u);
  EXPECT_EQ(walk(cluster, cluster.nics[0].nic, cluster.nics[4].nic, 0), 6u);
  EXPECT_EQ(rate_between(cluster, "c.0.x.0", "c.1.x.0"), 400 * kGbps);
  EXPECT_EQ(cluster.graph.atom_count(), 8u);  // a router is a part of its chip
  // A ring in one channel has a cycle; by hops it has none.
  EXPECT_EQ(cluster.routes->channels(RoutingFreedom::none), 4u);
  EXPECT_TRUE(find_cycle(cluster.graph, *cluster.routes, RoutingFreedom::none, {}, UINT64_MAX).hops.empty());
  const Cluster one = build(kChips, "", ", channels: 1");
  EXPECT_FALSE(find_cycle(one.graph, *one.routes, RoutingFreedom::none, {}, UINT64_MAX).hops.empty());
}

TEST_F(InfraGraphFiles, ATorusWithinADeviceIsTheFabric) {
  const Cluster ring = build(document("{name: x, choice: xpu, count: 7}", edge("x", "x", "ring")));
  EXPECT_EQ(ring.host_count, 1u);
  EXPECT_EQ(ring.nics.size(), 7u);
  EXPECT_EQ(ring.way(0, 3), HostRouteKind::packets);
  // With at most one xpu between any two, NVLinks are what they are in a DGX-1.
  const Cluster square = build(document("{name: x, choice: xpu, count: 4}", edge("x", "x", "ring")));
  EXPECT_EQ(square.nics.size(), 0u);
  EXPECT_EQ(square.way(0, 2), HostRouteKind::nvlink);
}

TEST_F(InfraGraphFiles, ACableBetweenTwoNicsIsAFabric) {
  const Cluster cluster = build(
      "devices:\n"
      "- name: d\n"
      "  components: [{name: x, choice: xpu, count: 1}, {name: n, choice: nic, count: 1}]\n"
      "  links: [{name: pcie}]\n"
      "  edges: [{ep1: {component: x}, ep2: {component: n}, scheme: one2one, link: pcie}]\n"
      "instances: [{name: d, device: d, count: 2}]\n"
      "links: [{name: l}]\n"
      "edges: [{ep1: {instance: 'd[0]', component: n}, ep2: {instance: 'd[1]', component: n}, scheme: "
      "one2one, "
      "link: l}]\n",
      "", ", rate: 10 Gbps");
  EXPECT_EQ(cluster.nics.size(), 2u);
  EXPECT_EQ(walk(cluster, cluster.nics[0].nic, cluster.nics[1].nic, 0), 2u);
  EXPECT_EQ(rate_between(cluster, "d.0.n.0/cable", "host1/nic0"), 10 * kGbps);
}

// Boards of two chips. The chips are joined within their board and around their pod of four boards. Their
// NICs, behind a CPU, join the two pods.
const char* const kPods =
    "devices:\n"
    "- name: board\n"
    "  components: [{name: x, choice: xpu, count: 2}, {name: cpu, choice: cpu, count: 1}, {name: n, choice: "
    "nic, "
    "count: 1}]\n"
    "  links: [{name: ici}, {name: pcie_gen5}]\n"
    "  edges:\n"
    "  - {ep1: {component: 'x[0]'}, ep2: {component: 'x[1]'}, scheme: one2one, link: ici}\n"
    "  - {ep1: {component: x}, ep2: {component: cpu}, scheme: many2many, link: pcie_gen5}\n"
    "  - {ep1: {component: cpu}, ep2: {component: n}, scheme: one2one, link: pcie_gen5}\n"
    "- {name: s, components: [{name: port, choice: port, count: 8}]}\n"
    "instances: [{name: b, device: board, count: 8}, {name: s, device: s, count: 1}]\n"
    "links: [{name: ici, physical: {bandwidth: {choice: gigabits_per_second, gigabits_per_second: 800}}}, "
    "{name: "
    "l, physical: {bandwidth: {choice: gigabits_per_second, gigabits_per_second: 200}}}]\n"
    "edges:\n"
    "- {ep1: {instance: 'b[0:4]', component: x}, ep2: {instance: 'b[0:4]', component: x}, scheme: ring, "
    "link: "
    "ici}\n"
    "- {ep1: {instance: 'b[4:8]', component: x}, ep2: {instance: 'b[4:8]', component: x}, scheme: ring, "
    "link: "
    "ici}\n"
    "- {ep1: {instance: b, component: n}, ep2: {instance: s, component: port}, scheme: one2one, link: l}\n";

TEST_F(InfraGraphFiles, ChipsMayHaveNicsBesides) {
  const Cluster cluster = build(kPods);
  EXPECT_EQ(cluster.gpus.size(), 16u);
  EXPECT_EQ(cluster.nics.size(), 24u);  // the chips, and a NIC of each board
  EXPECT_EQ(rate_between(cluster, "b.0.x.1", "b.1.x.0"), 800 * kGbps);
  // Within a board and a pod from chip to chip, beside PCIe; between pods from NIC to NIC over PCIe.
  for (const std::uint32_t to : {1U, 5U, 7U}) {
    EXPECT_EQ(cluster.way(0, to), HostRouteKind::packets);
    const Cluster::NicEnds near = cluster.nic_ends(0, to, 3);
    EXPECT_EQ(near.from.nic, cluster.gpus[0].node);
    EXPECT_EQ(near.to.nic, cluster.gpus[to].node);
    EXPECT_TRUE(near.from.ports.empty() && near.to.ports.empty());
  }
  const Cluster::NicEnds far = cluster.nic_ends(0, 9, 0);
  EXPECT_EQ(cluster.graph.node(far.from.nic).name, "host0/nic0");
  EXPECT_EQ(cluster.graph.node(far.to.nic).name, "host4/nic0");
  EXPECT_EQ(far.from.ports.size(), 2u);
  EXPECT_EQ(far.to.ports.size(), 2u);
  EXPECT_TRUE(find_cycle(cluster.graph, *cluster.routes, RoutingFreedom::none, {}, UINT64_MAX).hops.empty());
}

TEST_F(InfraGraphFiles, ChipsWithNicsCarryTraffic) {
  write("pods.yaml", kPods);
  write("all.yaml", "kind: all_to_all\nbytes: 20 kB\n");
  const test::Ended ended = run("--config pods.yaml --workload all.yaml --quiet --json -");
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("\"flows\""));
}

// Xpus of a host on NVSwitches, and one by one with those of the next host: one network of all of them.
TEST_F(InfraGraphFiles, NvswitchesOfChipsThatPassPacketsOnAreTheFabrics) {
  const std::string text =
      "devices:\n"
      "- name: d\n"
      "  components: [{name: x, choice: xpu, count: 4, description: H100}, {name: s, choice: switch, count: "
      "2}]\n"
      "  links: [{name: nvlink_4}]\n"
      "  edges: [{ep1: {component: x}, ep2: {component: s}, scheme: many2many, link: nvlink_4}]\n"
      "instances: [{name: d, device: d, count: 3}]\n"
      "links: [{name: l}]\n"
      "edges:\n"
      "- {ep1: {instance: 'd[0]', component: x}, ep2: {instance: 'd[1]', component: x}, scheme: one2one, "
      "link: l}\n"
      "- {ep1: {instance: 'd[1]', component: x}, ep2: {instance: 'd[2]', component: x}, scheme: one2one, "
      "link: l}\n";
  const Cluster cluster = build(text);
  EXPECT_EQ(cluster.nics.size(), 12u);
  EXPECT_EQ(rate_between(cluster, "d.0.x.0", "d.0.s.1"), 18 * 206 * kGBps / 10 / 2);
  EXPECT_EQ(cluster.graph.atom_count(), 3u);
  for (std::uint32_t to = 1; to < 12; ++to) {
    EXPECT_EQ(cluster.way(0, to), HostRouteKind::packets);
    EXPECT_GE(walk(cluster, cluster.nics[0].nic, cluster.nics[to].nic, 0), 3u);
  }
}

// A switch for the xpus of each rack, and NICs from rack to rack.
TEST_F(InfraGraphFiles, RacksWithASwitchOfTheirOwnAreJoinedByNics) {
  const std::string text =
      "devices:\n"
      "- name: d\n"
      "  components: [{name: x, choice: xpu, count: 1}, {name: n, choice: nic, count: 1}]\n"
      "  links: [{name: pcie}]\n"
      "  edges: [{ep1: {component: x}, ep2: {component: n}, scheme: one2one, link: pcie}]\n"
      "- {name: s, components: [{name: port, choice: port, count: 8}]}\n"
      "instances: [{name: d, device: d, count: 6}, {name: up, device: s, count: 2}, {name: out, device: s, "
      "count: "
      "1}]\n"
      "links: [{name: l}]\n"
      "edges:\n"
      "- {ep1: {instance: 'd[0:3]', component: x}, ep2: {instance: 'up[0]', component: port}, scheme: "
      "one2one, "
      "link: l}\n"
      "- {ep1: {instance: 'd[3:6]', component: x}, ep2: {instance: 'up[1]', component: port}, scheme: "
      "one2one, "
      "link: l}\n"
      "- {ep1: {instance: d, component: n}, ep2: {instance: out, component: port}, scheme: one2one, link: "
      "l}\n";
  const Cluster cluster = build(text);
  EXPECT_EQ(cluster.nics.size(), 12u);
  const auto over = [&](std::uint32_t from, std::uint32_t to) {
    return cluster.graph.node(access_switch(cluster.graph, cluster.nic_ends(from, to, 0).to.nic)).name;
  };
  EXPECT_EQ(over(0, 2), "up.0");
  EXPECT_EQ(over(4, 3), "up.1");
  EXPECT_EQ(over(0, 3), "out.0");
  EXPECT_EQ(over(5, 1), "out.0");
}

// Two kinds of hosts: the second one has one link less.
const char* const kTwoKinds =
    "devices:\n"
    "- name: d\n"
    "  components: [{name: x, choice: xpu, count: 2}, {name: n, choice: nic, count: 2}]\n"
    "  links: [{name: pcie}]\n"
    "  edges: [{ep1: {component: x}, ep2: {component: n}, scheme: many2many, link: pcie}]\n"
    "- {name: s, components: [{name: port, choice: port, count: 8}]}\n"
    "instances: [{name: d, device: d, count: 4}, {name: s, device: s, count: 2}, {name: t, device: d, count: "
    "1}]\n"
    "links: [{name: l}]\n"
    "edges:\n"
    "- {ep1: {instance: d, component: 'n[0]'}, ep2: {instance: 's[0]', component: port}, scheme: one2one, "
    "link: l}\n"
    "- {ep1: {instance: 'd[1::2]', component: 'n[1]'}, ep2: {instance: 's[0]', component: 'port[4:]'}, "
    "scheme: "
    "one2one, link: l}\n";

TEST_F(InfraGraphFiles, HostsThatAreLinkedDifferentlyAreGroups) {
  const std::string text = build_error(kTwoKinds);
  EXPECT_THAT(text, AllOf(HasSubstr("several kinds of hosts"), HasSubstr("instance: d.0, count: 2}"),
                          HasSubstr("instance: d.1, count: 2}"), HasSubstr("2 ports")));
  const auto group = [this](const std::string& instance) {
    return "  - {kind: infragraph, file: " + path("infra.yaml") + ", instance: " + instance + ", count: 2}\n";
  };
  const Cluster cluster = build(kTwoKinds, "hosts:\n" + group("d.2") + group("d.3"));
  EXPECT_EQ(cluster.nics.size(), 6u);
  EXPECT_EQ(cluster.gpus.size(), 8u);
  EXPECT_EQ(cluster.groups[1].fabrics.size(), 1u);
  EXPECT_THAT(build_error(kTwoKinds, "hosts:\n" + group("t.0")), HasSubstr("no such host"));
}

TEST_F(InfraGraphFiles, RanksOrderHostsAndXpus) {
  const std::string infrastructure =
      "infrastructure:\n"
      "  devices:\n"
      "  - name: d\n"
      "    components: [{name: x, choice: xpu, count: 2}, {name: n, choice: nic, count: 2}]\n"
      "    links: [{name: pcie}]\n"
      "    edges: [{ep1: {component: x}, ep2: {component: n}, scheme: one2one, link: pcie}]\n"
      "  - {name: s, components: [{name: port, choice: port, count: 4}]}\n"
      "  instances: [{name: d, device: d, count: 2}, {name: s, device: s, count: 1}]\n"
      "  links: [{name: l}]\n"
      "  edges: [{ep1: {instance: d, component: n}, ep2: {instance: s, component: port}, scheme: one2one, "
      "link: "
      "l}]\n"
      "annotations:\n"
      "  nodes:\n";
  const auto rank = [](const std::string& node, int number) {
    return "  - {name: " + node + ", attributes: [{attribute: type, value: xpu}, {attribute: rank, value: '" +
           std::to_string(number) + "'}]}\n";
  };
  const DescribedCluster cluster = read(infrastructure + rank("d.0.x.0", 3) + rank("d.0.x.1", 2) +
                                        rank("d.1.x.0", 1) + rank("d.1.x.1", 0));
  const auto hosts = hosts_of(cluster);
  ASSERT_EQ(hosts.size(), 1u);
  EXPECT_THAT(hosts[0].units, ElementsAre(1u, 0u));
  EXPECT_THAT(hosts[0].xpus, ElementsAre(1u, 0u));
  EXPECT_THAT(error(infrastructure + rank("d.5.x.0", 3)), HasSubstr("infra.yaml:13:12: annotations.nodes"));
}

// Ranks in turns: 0 and 2 in one host, 1 and 3 in the other.
TEST_F(InfraGraphFiles, ThePlacementFollowsTheAnnotatedRanks) {
  const std::string document =
      "infrastructure:\n"
      "  devices:\n"
      "  - name: d\n"
      "    components: [{name: x, choice: xpu, count: 2}, {name: n, choice: nic, count: 2}]\n"
      "    links: [{name: pcie}]\n"
      "    edges: [{ep1: {component: x}, ep2: {component: n}, scheme: one2one, link: pcie}]\n"
      "  - {name: s, components: [{name: port, choice: port, count: 4}]}\n"
      "  instances: [{name: d, device: d, count: 2}, {name: s, device: s, count: 1}]\n"
      "  links: [{name: l}]\n"
      "  edges: [{ep1: {instance: d, component: n}, ep2: {instance: s, component: port}, scheme: one2one, "
      "link: l}]\n"
      "annotations:\n"
      "  nodes:\n";
  const auto annotated = [&](const std::vector<int>& ranks) {
    std::string text = document;
    const char* const names[] = {"d.0.x.0", "d.0.x.1", "d.1.x.0", "d.1.x.1"};
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      text += "  - {name: " + std::string(names[i]) + ", attributes: [{attribute: rank, value: '" +
              std::to_string(ranks[i]) + "'}]}\n";
    }
    return build(text);
  };
  const auto place = [](const Cluster& cluster, std::uint32_t ranks) {
    const std::vector<bool> taken(cluster.gpus.size(), false);
    const PlacementView view{cluster, taken, ranks, {}, "job", 1};
    return place_ranks(parse_config("kind: infragraph", "c.yaml"), view, taken).gpus;
  };
  const Cluster cluster = annotated({0, 2, 1, 3});
  EXPECT_THAT(place(cluster, 4), ElementsAre(0u, 2u, 1u, 3u));
  EXPECT_THAT(place(cluster, 2), ElementsAre(0u, 2u));
  EXPECT_THAT(place(annotated({3, 1, 2, 0}), 4),
              ElementsAre(0u, 2u, 1u, 3u));  // the host of rank 0 comes first
  const auto refusal = [&](const Cluster& wrong, std::uint32_t ranks) {
    try {
      place(wrong, ranks);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_THAT(refusal(cluster_of("topology: {kind: star, hosts: 4}\n"), 2),
              HasSubstr("assigns ranks to its GPUs"));
  EXPECT_THAT(refusal(annotated({0, 0, 1, 2}), 3),
              HasSubstr("rank 0 of job 'job' (3 ranks) is assigned to GPUs 0 and 1"));
  EXPECT_THAT(refusal(annotated({0, 1, 2, 7}), 4),
              HasSubstr("rank 3 of job 'job' (4 ranks) is assigned to no GPU"));
}

// ---- Mistakes

TEST(InfraGraph, SaysWhereItIsWrong) {
  const auto wrong = [](const std::string& a, const std::string& b, const std::string& scheme = "one2one") {
    return error(document(kXpus, edge(a, b, scheme)));
  };
  EXPECT_THAT(wrong("x[4]", "n"),
              AllOf(StartsWith("infra.yaml:5:29: devices"), HasSubstr("there are 4 of 'x'")));
  EXPECT_THAT(wrong("x[0:5]", "n"), HasSubstr("there are 4 of 'x'"));
  EXPECT_THAT(wrong("x[-1]", "n"), HasSubstr("'[-1]' is no index"));
  EXPECT_THAT(wrong("x[2:2]", "n"), HasSubstr("selects nothing"));
  EXPECT_THAT(wrong("x[::0]", "n"), HasSubstr("the step is 0"));
  EXPECT_THAT(wrong("x[0:1:1:1]", "n"), HasSubstr("more than begin, end and step"));
  EXPECT_THAT(wrong("x[]", "n"), HasSubstr("'[]' is no index"));
  EXPECT_THAT(wrong("x[1", "n"), HasSubstr("a ']' is missing"));
  EXPECT_THAT(wrong("nick", "n"), AllOf(HasSubstr("'nick' is no component"), HasSubstr("there are: n, x")));
  EXPECT_THAT(wrong("x.y", "n"), HasSubstr("'x' is no device"));
  EXPECT_THAT(wrong("x", "n", "some"),
              AllOf(HasSubstr("infra.yaml:5:"), HasSubstr("one2one, many2many, ring")));
  EXPECT_THAT(error(document("{name: n, choice: nic, count: 1}", "")), HasSubstr("no host"));
  EXPECT_THAT(error(document("{name: x, choice: gpu, count: 1}", "")), HasSubstr("'gpu' is none of custom"));
  EXPECT_THAT(error(document("{name: x, choice: xpu, count: 0}", "")), HasSubstr("1 to 1048576"));
  EXPECT_THAT(error(document("{name: d, choice: device, count: 1}", "")),
              HasSubstr("a device holds itself: d holds d"));
  EXPECT_THAT(error(document("{name: e, choice: device, count: 1}", "")), HasSubstr("'e' is no device"));
  EXPECT_THAT(error(document(kXpus, "", "{name: l, physical: {bandwidth: {choice: gigabits_per_second}}}")),
              HasSubstr("gigabits_per_second"));
  EXPECT_THAT(error(document(kXpus, "", "{name: l, physical: {latency: {choice: us, us: -1}}}")),
              HasSubstr("above 0"));
  EXPECT_THAT(error(document(kXpus, edge("x", "n", "one2one"), "{name: m}")),
              HasSubstr("'l' is no link of this device (there are: m)"));
  EXPECT_THAT(error(document(kXpus, "") + "edges: [{ep1: {instance: j, component: x}, ep2: {instance: i, "
                                          "component: x}, scheme: one2one, link: l}]\nlinks: [{name: l}]\n"),
              AllOf(StartsWith("infra.yaml:7:26: "), HasSubstr("'j' is no instance (there are: i)")));
  EXPECT_THAT(error(document(kXpus, "") + "connections: [i.0.x.0.l.i.0.n.0]\n"),
              HasSubstr("before its version 1.0"));
  EXPECT_THAT(error("devices:\n- name: d\n  components:\n  - {name: x, type: xpu, count: 8}\n"),
              AllOf(StartsWith("infra.yaml:4:"), HasSubstr("before its version 1.0")));
  EXPECT_THAT(error(document(kXpus, "", "{name: l, bandwidth: {gigabytes_per_second: 32}}")),
              HasSubstr("before its version 1.0"));
}

TEST_F(InfraGraphFiles, HostsThatNothingJoinsAreRefused) {
  const std::string split =
      "devices:\n"
      "- {name: d, components: [{name: x, choice: xpu, count: 1}]}\n"
      "- {name: s, components: [{name: port, choice: port, count: 4}]}\n"
      "instances: [{name: d, device: d, count: 2}, {name: s, device: s, count: 2}]\n"
      "links: [{name: l}]\n"
      "edges: [{ep1: {instance: d, component: x}, ep2: {instance: s, component: 'port[0]'}, scheme: one2one, "
      "link: l}]\n";
  EXPECT_THAT(build_error(split), HasSubstr("d.0 and d.1 have no ports on the same networks"));
}

TEST(InfraGraph, SurvivesMutations) {
  test::expect_sane(
      kTwoKinds, [](const std::string& text) { hosts_of(read(text)); }, 1500);
  test::expect_sane(
      kChips, [](const std::string& text) { described_fabric(read(text), LinkSpec{}, {}, ConfigNode()); },
      1500);
}

// ---- Runs

TEST_F(InfraGraphFiles, TheProgramTakesTheDocumentAsAConfiguration) {
  std::filesystem::copy_file(source_directory() + "/configs/topologies/four_boxes.yml", path("boxes.yaml"));
  const test::Ended ended = run("--config boxes.yaml --workload incast.yaml --quiet --json -");
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("\"flows\""));
  write("broken.yaml", "devices:\n- name: d\n  components: [{name: x, choice: gpu, count: 1}]\n");
  expect_error("--config broken.yaml --workload incast.yaml", ExitCode::input,
               {"broken.yaml:3:34: devices.0.components.0.choice", "custom, device, cpu, xpu"});
}

TEST_F(InfraGraphFiles, TheSamplesCarryTraffic) {
  NETSIM_NEEDS_SHARED("samples/infragraph");
  write("shift.yaml", "kind: permutation\nbytes: 20 kB\n");
  std::size_t files = 0;
  for (const char* folder : {"generated", "published"}) {
    for (const std::string& file : test::shared_files("samples/infragraph/" + std::string(folder), "")) {
      if (!file.ends_with(".yaml") && !file.ends_with(".json") && !file.ends_with(".pb")) continue;
      if (file.ends_with("/switch.yaml") || file.ends_with("/cx5_100gbe.yaml")) continue;  // no host
      const std::string part = "{kind: infragraph, file: " + file + "}\n";
      SimulationSetup setup;
      setup.config = parse_config("topology: " + part + "host: " + part, "test.yaml");
      setup.workload = path("shift.yaml");
      const Results results = Simulation(std::move(setup)).run({});
      EXPECT_EQ(results.outcome, Outcome::done) << file;
      ++files;
    }
  }
  EXPECT_EQ(files, 17u);
}

TEST_F(InfraGraphFiles, TheSampleOfAllIndexFormsCarriesTraffic) {
  NETSIM_NEEDS_SHARED("samples/infragraph");
  const std::string file = test::shared_folder() + "/samples/infragraph/hand_made/slices.yaml";
  const std::string part = "kind: infragraph, file: " + file;
  const Cluster cluster =
      cluster_of("topology: {" + part + "}\nhosts:\n  - {" + part + ", instance: host.0, count: 2}\n  - {" +
                 part + ", instance: host.2, count: 1}\n  - {" + part + ", instance: host.3}\n");
  EXPECT_EQ(cluster.gpus.size(), 16u);
  EXPECT_EQ(cluster.nics.size(), 10u);
  EXPECT_EQ(cluster.groups.size(), 3u);
  // Xpu 3 of host.2 has no NIC that PCIe leads to: over NVLink and another xpu.
  EXPECT_GE(cluster.nic_ends(11, 0, 0).from.ports.size(), 2u);
  // As a configuration of its own the document is the same.
  const Cluster own = build_cluster(load_run(file, {}).config);
  EXPECT_EQ(own.gpus.size(), 16u);
  EXPECT_EQ(own.nics.size(), 10u);
  EXPECT_EQ(own.groups.size(), 3u);
  for (std::uint32_t gpu = 0; gpu < 16; ++gpu) EXPECT_EQ(own.gpus[gpu].node, cluster.gpus[gpu].node);
}

}  // namespace
}  // namespace netsim::infragraph_test
