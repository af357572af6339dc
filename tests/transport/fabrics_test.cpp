// Fabrics with sections of their own: does each work as its sections say, whatever the others do?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "sim/configuration/configuration.h"
#include "sim/core/errors.h"
#include "tests/support/packet_fixture.h"

namespace netsim::fabrics_test {
namespace {

using test::PacketFixture;
using ::testing::HasSubstr;

// GPUs 0 to 7 and 8 to 15 are those of two hosts, 16 and 17 the drives of two servers.
constexpr const char* kCluster =
    "fabrics:\n"
    "  scale_out: {kind: star, hosts: 16, rate: 100 Gbps, delay: 500 ns}\n"
    "  storage: {kind: leaf_spine, leaves: 2, spines: 1, hosts_per_leaf: 4, rate: 50 Gbps, delay: 300 ns}\n"
    "hosts:\n"
    "  - {kind: dgx_h100, count: 2, storage_nics: 2}\n"
    "  - {kind: storage_server, count: 2, fabric: storage}\n";

// The text of `network` and `transport`, for all fabrics or for one.
struct Sections {
  const char* name;
  const char* network;
  const char* transport;
};
constexpr std::array<Sections, 6> kSections{{
    {"PfcDcqcn",
     "switch: {buffer: 2 MB, alpha: 1/16, marker: {kind: red, kmin: 20 KB, kmax: 200 KB, pmax: 0.3}}",
     "congestion_control: dcqcn, queue_pairs: 2"},
    {"Credits", "switch: {flow_control: credits, marker: none, credit_buffer: 30 KB}",
     "framing: infiniband, congestion_control: none, mtu: 2 KiB, nic_buffer: 32 KiB"},
    {"GoBackNDctcp",
     "switch: {flow_control: none, buffer: 150 KB, alpha: 1, marker: {kind: step, threshold: 30 KB}}",
     "congestion_control: dctcp, retransmission_timeout: 300 us, window: 200 KB"},
    {"IrnSwift", "switch: {flow_control: none, buffer: 200 KB, alpha: 1, marker: none}",
     "reliability: irn, congestion_control: swift, base_rtt: 20 us"},
    {"Hpcc", "switch: {marker: none, latency: 200 ns}",
     "congestion_control: hpcc, framing: ns3, acknowledge: {every: 4}"},
    {"Timely", "switch: {marker: none, forwarding: cut_through}, tiers: [{tier: 0, latency: 1 us}]",
     "congestion_control: timely, mtu: 1 KiB, retransmission_backoff: 2"},
}};

enum class Side : std::uint8_t { scale_out, storage };
const char* name_of(Side side) { return side == Side::scale_out ? "scale_out" : "storage"; }

// Four to one, there and back, and one by itself: between GPUs that send nothing over the other fabric.
void send(PacketFixture& f, Side side) {
  const bool storage = side == Side::storage;
  const std::array<std::uint32_t, 6> ends = storage ? std::array<std::uint32_t, 6>{4, 5, 12, 13, 16, 17}
                                                    : std::array<std::uint32_t, 6>{0, 1, 2, 3, 8, 9};
  for (std::uint32_t i = 0; i < 4; ++i) {
    f.send(ends[i], ends[4], 300'000 + 1000 * i, i * kMicrosecond, i);
    f.send(ends[4], ends[i], 50'000, 20 * kMicrosecond, i);
  }
  f.send(ends[3], ends[5], 1'000'000, 5 * kMicrosecond);
}

// The times of the messages of one fabric, in order of send(), and the counters of its ports.
struct Times {
  std::vector<Time> delivered, acknowledged;
  std::map<std::string, std::array<std::uint64_t, 6>> ports;
  bool operator==(const Times&) const = default;
};

Times run(const std::string& yaml, const std::vector<Side>& sides, Side of) {
  PacketFixture f(yaml);
  std::size_t first = 0, count = 0;
  for (const Side side : sides) {
    if (side == of) first = f.messages.size();
    send(f, side);
    if (side == of) count = f.messages.size() - first;
  }
  f.loop.run();
  EXPECT_TRUE(f.all_delivered());
  Times times;
  const auto begin = static_cast<std::ptrdiff_t>(first), end = static_cast<std::ptrdiff_t>(first + count);
  times.delivered.assign(f.delivered.begin() + begin, f.delivered.begin() + end);
  times.acknowledged.assign(f.sent.begin() + begin, f.sent.begin() + end);
  const auto at = std::find_if(f.cluster.fabrics.begin(), f.cluster.fabrics.end(),
                               [of](const ClusterFabric& fabric) { return fabric.name == name_of(of); });
  for (NodeId node = at->first_switch; node < at->end_switch; ++node) {
    for (const PortId out : f.cluster.graph.ports_of(node)) {
      for (const PortId port : {out, out ^ 1U}) {
        const PortCounters c = f.network->port_counters(port);
        times.ports[f.cluster.graph.port_name(port)] = {static_cast<std::uint64_t>(c.wire_bytes),
                                                        c.ecn_marks,
                                                        c.drops,
                                                        c.pauses,
                                                        c.credit_stalls,
                                                        c.cnps};
      }
    }
  }
  return times;
}

std::string common(const Sections& s) {
  return std::string(kCluster) + "network: {" + s.network + "}\ntransport: {" + s.transport + "}\n";
}
std::string each(const Sections& scale_out, const Sections& storage) {
  return std::string(kCluster) + "network:\n  fabrics:\n    scale_out: {" + scale_out.network +
         "}\n    storage: {" + storage.network + "}\ntransport:\n  fabrics:\n    scale_out: {" +
         scale_out.transport + "}\n    storage: {" + storage.transport + "}\n";
}

class FabricPairs : public ::testing::TestWithParam<std::tuple<std::size_t, std::size_t>> {};

// To the picosecond, and to each mark, drop, pause and credit: as if the sections were those of all and the
// other fabric lay idle.
TEST_P(FabricPairs, WorkAsEachAlone) {
  const Sections &scale_out = kSections[std::get<0>(GetParam())],
                 &storage = kSections[std::get<1>(GetParam())];
  const std::string both = each(scale_out, storage);
  const std::vector<Side> sides{Side::scale_out, Side::storage};
  EXPECT_EQ(run(both, sides, Side::scale_out), run(common(scale_out), {Side::scale_out}, Side::scale_out));
  EXPECT_EQ(run(both, sides, Side::storage), run(common(storage), {Side::storage}, Side::storage));
}

INSTANTIATE_TEST_SUITE_P(Sections, FabricPairs,
                         ::testing::Combine(::testing::Range<std::size_t>(0, kSections.size()),
                                            ::testing::Range<std::size_t>(0, kSections.size())),
                         [](const auto& pair) {
                           return std::string(kSections[std::get<0>(pair.param)].name) +
                                  kSections[std::get<1>(pair.param)].name;
                         });

// Otherwise the pairs would show little: each of the sections makes something happen, and all differ.
TEST(Fabrics, TellSectionsApart) {
  std::vector<std::vector<Time>> seen;
  for (const Sections& sections : kSections) {
    const Times alone = run(common(sections), {Side::scale_out}, Side::scale_out);
    std::array<std::uint64_t, 6> sum{};
    for (const auto& [name, counters] : alone.ports) {
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += counters[i];
    }
    const auto [bytes, marks, drops, pauses, stalls, cnps] = sum;
    const std::string name = sections.name;
    EXPECT_EQ(marks > 0, name == "PfcDcqcn" || name == "GoBackNDctcp") << name;
    EXPECT_EQ(drops > 0, name == "GoBackNDctcp" || name == "IrnSwift") << name;
    EXPECT_EQ(stalls > 0, name == "Credits") << name;
    if (name == "PfcDcqcn") {
      EXPECT_GT(pauses, 0U);
      EXPECT_GT(cnps, 0U);
    }
    EXPECT_EQ(std::find(seen.begin(), seen.end(), alone.delivered), seen.end()) << name;
    seen.push_back(alone.delivered);
  }
}

// A cluster that has nothing but the scale-out fabric: the same times, where nothing is left to chance, which
// goes by the numbers of ports.
TEST(Fabrics, OfSeveralWorkAsTheOnlyOne) {
  const std::string alone =
      "topology: {kind: star, hosts: 16, rate: 100 Gbps, delay: 500 ns}\nhost: dgx_h100\n";
  for (const Sections& sections : kSections) {
    if (sections.name == std::string("PfcDcqcn")) continue;  // marks by chance
    const std::string only =
        alone + "network: {" + sections.network + "}\ntransport: {" + sections.transport + "}\n";
    const std::vector<Time> one = run(only, {Side::scale_out}, Side::scale_out).delivered;
    const std::vector<Side> sides{Side::scale_out, Side::storage};
    EXPECT_EQ(run(each(sections, kSections[0]), sides, Side::scale_out).delivered, one) << sections.name;
    // The short form's fabric has a name, too.
    const std::string named = alone + "network: {fabrics: {scale_out: {" + sections.network +
                              "}}}\ntransport: {fabrics: {scale_out: {" + sections.transport + "}}}\n";
    EXPECT_EQ(run(named, {Side::scale_out}, Side::scale_out).delivered, one) << sections.name;
  }
}

// Keys that a fabric's section leaves out have the values of the common section, also within `switch`. null
// is the default.
TEST(Fabrics, HaveWhatTheyDoNotSayFromTheCommonSections) {
  const std::string both =
      std::string(kCluster) +
      "network: {switch: {latency: 3 us, marker: none}, fabrics: {storage: {switch: {marker: step}}}}\n"
      "transport: {mtu: 1 KiB, congestion_control: none, fabrics: {storage: {congestion_control: dcqcn}}}\n";
  const std::string storage = std::string(kCluster) +
                              "network: {switch: {latency: 3 us, marker: step}}\ntransport: {mtu: 1 KiB, "
                              "congestion_control: dcqcn}\n";
  const std::vector<Side> sides{Side::scale_out, Side::storage};
  EXPECT_EQ(run(both, sides, Side::storage), run(storage, {Side::storage}, Side::storage));
  const std::string cleared =
      std::string(kCluster) +
      "network: {switch: {latency: 3 us}, fabrics: {storage: {switch: {latency: null}}}}\n"
      "transport: {mtu: 1 KiB, fabrics: {storage: {mtu: null}}}\n";
  EXPECT_EQ(run(cleared, sides, Side::storage), run(kCluster, {Side::storage}, Side::storage));
  // Keys of the common section that only apply to its own flow control.
  const std::string pfc = std::string(kCluster) +
                          "network: {switch: {lossless: [0], queue_limit: 9}, "
                          "fabrics: {storage: {switch: {flow_control: credits}}}}\n";
  const std::string credits = std::string(kCluster) + "network: {switch: {flow_control: credits}}\n";
  EXPECT_EQ(run(pfc, {Side::storage}, Side::storage), run(credits, {Side::storage}, Side::storage));
}

// A fabric's `tiers` stand in the place of the common ones, which else hold there, too.
TEST(Fabrics, HaveTheirTiers) {
  const std::string tiers = "tiers: [{tier: 0, latency: 2 us}]";
  const auto storage = [](const std::string& network) {
    return run(std::string(kCluster) + "network: {" + network + "}\n", {Side::storage}, Side::storage)
        .delivered;
  };
  EXPECT_EQ(storage(tiers), storage("fabrics: {storage: {" + tiers + "}}"));
  EXPECT_EQ(storage(tiers), storage(tiers + ", fabrics: {storage: {switch: {latency: 0 s}}}"));
  EXPECT_EQ(storage("switch: {latency: 0 s}"), storage(tiers + ", fabrics: {storage: {tiers: []}}"));
  EXPECT_EQ(storage(tiers),
            storage("fabrics: {scale_out: {tiers: [{tier: 0, latency: 7 us}]}, storage: {" + tiers + "}}"));
}

// ---- What is wrong

std::string error_of(const std::string& yaml) {
  try {
    PacketFixture f(yaml);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}
std::string error_of(const std::string& network, const std::string& transport) {
  return error_of(std::string(kCluster) + "network: {" + network + "}\ntransport: {" + transport + "}\n");
}

TEST(Fabrics, AreNamed) {
  EXPECT_EQ(error_of("fabrics: {storge: {}}", ""),
            "test.yaml:7:21: network.fabrics.storge: no fabric 'storge', did you mean 'storage'? (allowed: "
            "scale_out, storage)");
  EXPECT_EQ(error_of("", "fabrics: {rack: {mtu: 1 KiB}}"),
            "test.yaml:8:23: transport.fabrics.rack: no fabric 'rack' (allowed: scale_out, storage)");
  EXPECT_THAT(error_of("", "fabrics: [1]"),
              HasSubstr("test.yaml:8:22: transport.fabrics: expected sections by fabric"));
  EXPECT_THAT(error_of("", "fabrics: {storage: 7}"), HasSubstr("test.yaml:8:32: "));
  const std::string rack =
      "fabrics:\n  rack: {kind: nvl_rack}\n  scale_out: {kind: star, hosts: 72}\nhost: gb200\nhosts: 18\n";
  const std::string error = error_of(rack + "network: {fabrics: {rack: {}}}\n");
  EXPECT_THAT(error, HasSubstr("test.yaml:6:21: network.fabrics.rack: fabric 'rack' is no packet fabric"));
  EXPECT_THAT(error, HasSubstr("(allowed: scale_out)"));
}

TEST(Fabrics, ShareWhatIsOfTheRun) {
  EXPECT_EQ(error_of("fabrics: {storage: {switch: {routing: spray}}}", ""),
            "test.yaml:7:40: network.fabrics.storage.switch.routing: 'routing' is common to all fabrics: "
            "give it in network.switch (a fabric may have its "
            "own buffer, alpha, reserve, resume_offset, flow_control, headroom, pfc_response, pfc_frame, "
            "credit_buffer, lossless, marker, forwarding, header, latency, queue_limit, aggregation, "
            "aggregation_switches, aggregation_formats, aggregation_latency, aggregation_payload, "
            "aggregation_outstanding, aggregation_rate, aggregation_rates, aggregation_memory, "
            "aggregation_groups, aggregation_pairs, aggregation_back_pairs, aggregators)");
  EXPECT_THAT(error_of("fabrics: {storage: {switch: {classes: 2}}}", ""), HasSubstr("'classes' is common"));
  EXPECT_THAT(error_of("fabrics: {storage: {switch: {scheduler: strict}}}", ""), HasSubstr("is common"));
  EXPECT_EQ(error_of("fabrics: {storage: {detection_delay: 1 us}}", ""),
            "test.yaml:7:31: network.fabrics.storage.detection_delay: 'detection_delay' is common to all "
            "fabrics: give it in network (a fabric may have "
            "its own switch, tiers)");
  EXPECT_THAT(error_of("", "fabrics: {storage: {fabrics: {}}}"), HasSubstr("'fabrics' is common"));
  EXPECT_EQ(error_of("", "fabrics: {storage: {mtuu: 1 KiB}}").find(", fabrics)"), std::string::npos);
  EXPECT_THAT(error_of("", "fabrics: {storage: {mtuu: 1 KiB}}"),
              HasSubstr("unknown key 'mtuu', did you mean 'mtu'?"));
  EXPECT_THAT(error_of("", "fabrics: {storage: {mtu: 1 B}}"), HasSubstr("test.yaml:8:38: "));
  EXPECT_THAT(error_of("", "fabrics: {storage: {acknowledge: {every: 3}}}"), HasSubstr("no power of two"));
  EXPECT_THAT(error_of("fabrics: {storage: {tiers: [{tier: 2}]}}", ""), HasSubstr("0 to 1"));
  EXPECT_THAT(error_of("fabrics: {scale_out: {tiers: [{tier: 1}]}}", ""), HasSubstr("0 to 0"));
  EXPECT_THAT(
      error_of("fabrics: {storage: {switch: {buffer: 1 KB}}}", ""),
      HasSubstr("test.yaml:7:48: network.fabrics.storage.switch.buffer: 1000 B cannot hold the headroom"));
}

// A torus with one virtual channel is refused only if its packets wait for each other.
TEST(Fabrics, AreSearchedForCirclesWherePacketsWait) {
  const std::string cluster =
      "fabrics:\n"
      "  scale_out: {kind: star, hosts: 16}\n"
      "  storage: {kind: torus, sizes: [4], channels: 1}\n"
      "hosts:\n"
      "  - {kind: dgx_h100, count: 1, storage_nics: 2}\n"
      "  - {kind: storage_server, count: 1, fabric: storage}\n";
  const std::string lossy = "{switch: {flow_control: none}}", lossless = "{switch: {flow_control: credits}}";
  EXPECT_THAT(error_of(cluster), HasSubstr("storage/router0->storage/router1"));
  EXPECT_EQ(error_of(cluster + "network: {fabrics: {storage: " + lossy + "}}\n"), "");
  EXPECT_EQ(error_of(cluster + "network: " + lossy + "\n"), "");
  EXPECT_THAT(error_of(cluster + "network: {fabrics: {scale_out: " + lossy + "}}\n"),
              HasSubstr("in a cycle"));
  EXPECT_THAT(
      error_of(cluster + "network: {switch: {flow_control: none}, fabrics: {storage: " + lossless + "}}\n"),
      HasSubstr("in a cycle"));
}

// ---- What is shown

TEST(Fabrics, AreShownAndReadBackTheSame) {
  const auto shown = [](const std::string& yaml) {
    const ConfigNode root = parse_config(yaml, "test.yaml");
    return resolved_configuration(root, build_cluster(root));
  };
  for (const Sections& scale_out : kSections) {
    for (const Sections& storage : kSections) {
      const std::string yaml = each(scale_out, storage);
      const std::string text = shown(yaml);
      const std::vector<Side> sides{Side::scale_out, Side::storage};
      if (&storage == &kSections[1] || &scale_out == &kSections[1]) {
        EXPECT_EQ(run(text, sides, Side::storage), run(yaml, sides, Side::storage));
        EXPECT_EQ(run(text, sides, Side::scale_out), run(yaml, sides, Side::scale_out));
      }
      const ConfigNode again = parse_config(text, "again.yaml");
      const ConfigNode* all = again.find("transport")->find("fabrics");
      ASSERT_NE(all, nullptr);
      const std::string kept = to_yaml(*all),
                        twice = to_yaml(*parse_config(shown(text), "").find("transport")->find("fabrics"));
      EXPECT_EQ(kept, twice);
    }
  }
  const std::string other = std::string(kCluster) +
                            "network: {switch: {lossless: [0], queue_limit: 9}, "
                            "fabrics: {storage: {switch: {flow_control: credits}}}}\n";
  EXPECT_EQ(run(shown(other), {Side::storage}, Side::storage), run(other, {Side::storage}, Side::storage));
  const std::string text = shown(
      std::string(kCluster) +
      "transport: {mtu: 1 KiB, congestion_control: hpcc, fabrics: {storage: {congestion_control: dcqcn}}}\n");
  const std::size_t storage = text.find("    storage:\n", text.find("\ntransport:"));
  ASSERT_NE(storage, std::string::npos);
  const std::string own = text.substr(storage);
  EXPECT_THAT(text.substr(0, storage), HasSubstr("every: 1  # default: congestion control needs every ACK"));
  EXPECT_THAT(own, HasSubstr("every: 256  # default: the host's NIC"));
  EXPECT_THAT(own, HasSubstr("      mtu: 1 KiB  # test.yaml:7"));
  EXPECT_THAT(own, HasSubstr("kind: dcqcn  # test.yaml:7"));
}

TEST(Fabrics, AreDescribed) {
  EXPECT_THAT(describe_subject("transport.fabrics", 200), HasSubstr("congestion_control"));
  EXPECT_THAT(describe_subject("network.fabrics", 200), HasSubstr("switch.flow_control"));
  const std::string text = describe_subject("network.fabrics", 200);
  EXPECT_EQ(text.find("switch.routing"), std::string::npos);
  EXPECT_EQ(describe_subject("mtu", 200).find("fabrics"), std::string::npos) << "each parameter once";
}

TEST(Fabrics, HaveTheirValuesLookedUp) {
  const ConfigNode root = parse_config(
      "network: {switch: {flow_control: credits}, fabrics: {storage: {switch: {flow_control: none}}}}\n"
      "transport: {congestion_control: hpcc, fabrics: {storage: {congestion_control: {kind: swift}}, a: "
      "{mtu: null}}}\n",
      "test.yaml");
  EXPECT_EQ(configured_in(root, "storage", "network", "switch.flow_control"), "none");
  EXPECT_EQ(configured_in(root, "scale_out", "network", "switch.flow_control"), "credits");
  EXPECT_EQ(configured_in(root, "storage", "network", "switch.marker"), "red");
  EXPECT_EQ(configured_in(root, "storage", "transport", "congestion_control"), "swift");
  EXPECT_EQ(configured_in(root, "", "transport", "congestion_control"), "hpcc");
  EXPECT_EQ(configured_in(root, "a", "transport", "mtu"), "4 KiB");
}

// ---- Storage

// The drives are reached over the storage NICs of the GPU's CPU, other hosts' GPUs over its own NIC.
TEST(StorageNics, CarryWhatGoesToDrives) {
  PacketFixture f(kCluster);
  f.send(1, 16, 100'000);
  f.send(6, 17, 200'000);
  f.send(16, 14, 300'000);
  f.send(1, 9, 400'000);
  f.loop.run();
  ASSERT_TRUE(f.all_delivered());
  const auto bytes = [&](const std::string& from, const std::string& to) {
    return f.at(from, to).data_packets * 4096;
  };
  EXPECT_GT(bytes("host0/storage_nic0", "storage/leaf0"), 100'000U - 4096);
  EXPECT_LT(bytes("host0/storage_nic0", "storage/leaf0"), 100'000U + 4096);
  EXPECT_GT(bytes("host0/storage_nic1", "storage/leaf0"), 200'000U - 4096);
  EXPECT_LT(bytes("host0/storage_nic1", "storage/leaf0"), 200'000U + 4096);
  EXPECT_GT(bytes("storage/leaf0", "host1/storage_nic1"), 300'000U - 4096);
  EXPECT_EQ(bytes("storage/leaf0", "host1/storage_nic0"), 0U);
  EXPECT_GT(bytes("host0/nic1", "switch0"), 400'000U - 4096);
  EXPECT_EQ(f.cluster.packet_fabric(1, 9), 0U);
  EXPECT_EQ(f.cluster.packet_fabric(16, 1), 1U);
  EXPECT_EQ(f.cluster.packet_fabric(16, 17), 1U);
}

// A host without them is as it was; with them nothing changes between GPUs.
TEST(StorageNics, LeaveTheOthersAlone) {
  const auto times = [](const std::string& yaml) {
    PacketFixture f(yaml);
    send(f, Side::scale_out);
    f.send(0, 5, 1'000'000);
    f.loop.run();
    EXPECT_TRUE(f.all_delivered());
    return f.delivered;
  };
  const std::string control = "network: {switch: {marker: none}}\n";
  for (const std::string host : {"dgx_a100", "dgx_h100", "dgx_h200", "dgx_b200"}) {
    const std::string without =
        "topology: {kind: star, hosts: 16, rate: 100 Gbps}\nhost: " + host + "\n" + control;
    const std::string with =
        "fabrics: {scale_out: {kind: star, hosts: 16, rate: 100 Gbps}, storage: {kind: star, hosts: 6}}\n"
        "hosts:\n  - {kind: " +
        host + ", count: 2, storage_nics: 2}\n" + control;
    EXPECT_EQ(times(with), times(without)) << host;
  }
  EXPECT_THAT(error_of("topology: star\nhosts: [{kind: dgx_a100, storage_nics: 1}]\n"),
              HasSubstr("has 1 port for a fabric 'storage', and there is none (fabrics: scale_out)"));
  EXPECT_THAT(error_of("topology: star\nhosts: [{kind: dgx_2, storage_nics: 1}]\n"),
              HasSubstr("unknown key"));
}

}  // namespace
}  // namespace netsim::fabrics_test
