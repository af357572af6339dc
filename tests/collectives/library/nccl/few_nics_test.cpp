// Do groups on hosts with few NICs leave them by the GPU nearest to the NIC, on as many channels as NCCL has?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/collectives/library/communicator_layout.h"
#include "sim/collectives/library/nccl/nccl_tuning.h"
#include "tests/collectives/packet_collectives.h"
#include "tests/report/fixtures.h"

namespace netsim::few_nics_test {
namespace {

using test::every;
using test::PacketCollectives;
using test::PacketFixture;
using test::request_of;

// Returns NCCL's file of an HGX H100. Its 8 GPUs are at PCIe switches of their own, four at a CPU; some
// switches have a NIC of 400 Gb/s.
std::string hgx(const std::set<int>& with_nic) {
  const auto pci = [](const std::string& busid, const char* of_class, const std::string& inside) {
    return "<pci busid=\"" + busid + "\" class=\"" + of_class +
           "\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">" + inside + "</pci>\n";
  };
  std::string file = "<system version=\"1\">\n";
  int nics = 0;
  for (int cpu = 0; cpu < 2; ++cpu) {
    file += "<cpu numaid=\"" + std::to_string(cpu) +
            "\" arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"143\">\n";
    for (int gpu = 4 * cpu; gpu < 4 * cpu + 4; ++gpu) {
      const std::string bus = std::to_string(gpu + 1), dev = std::to_string(gpu);
      std::string inside = pci(bus + "1", "0x030200",
                               "<gpu dev=\"" + dev + "\" sm=\"90\" rank=\"" + dev +
                                   "\"><nvlink target=\"f1\" count=\"18\" tclass=\"0x068000\"/></gpu>");
      if (with_nic.contains(gpu)) {
        inside += pci(bus + "2", "0x020000",
                      "<nic><net dev=\"" + std::to_string(nics++) + "\" speed=\"400000\"/></nic>");
      }
      file += pci(bus + "0", "0x060400", inside);
    }
    file += "</cpu>\n";
  }
  return file + "</system>\n";
}

class FewNics : public ::testing::Test {
 protected:
  std::string two_hosts(const std::set<int>& with_nic, const std::string& collectives = "{}") const {
    std::ofstream(directory_.path() + "/host.xml") << hgx(with_nic);
    return two_of("{kind: nccl_xml, file: " + directory_.path() + "/host.xml}", collectives);
  }
  static std::string two_of(const std::string& host, const std::string& collectives) {
    return "topology: {kind: star, hosts: 16, rate: 400 Gbps, delay: 1 us}\nhosts: 2\nhost: " + host +
           "\ntransport: {congestion_control: none}\nnetwork: {switch: {buffer: 64 MB}}\ncollectives: " +
           collectives + "\n";
  }
  // GB/s of bus bandwidth, as nccl-tests counts it.
  static double bus_bandwidth(const std::string& config, Bytes bytes) {
    const auto members = every(1, 16);
    PacketCollectives hosts(config);
    const Time end = hosts.run(request_of(CollectiveKind::all_reduce, members, bytes));
    return 2.0 * 15 / 16 * static_cast<double>(bytes) / 1e9 / (static_cast<double>(end) / kSecond);
  }

  test::Directory directory_;
};

constexpr const char* kRingsOfNccl = "{all_reduce: {kind: nccl, tree: false, nvls: false}}";

// Ring c enters the first host by the GPU at NIC c and leaves it by the one at the neighbouring NIC.
TEST_F(FewNics, RingsEnterAndLeaveByTheGpuNearestToTheNic) {
  const PacketFixture packets(two_hosts({0, 2, 4, 6}));
  LinkOrders orders;
  const CommunicatorLayout layout = lay_out(every(1, 16), *packets.network, orders);
  ASSERT_EQ(layout.rings.size(), 4u);
  for (std::uint32_t c = 0; c < 4; ++c) {
    EXPECT_EQ(layout.rings[c][0], 2 * c);
    EXPECT_EQ(layout.rings[c][7], 2 * (c ^ 1U));
    EXPECT_EQ(layout.rings[c][8], 8 + 2 * (c ^ 1U));
    EXPECT_EQ(layout.rings[c][15], 8 + 2 * c);
    EXPECT_EQ(layout.chains[c][0], 2 * c);
  }
}

// A group of the GPUs that have no NIC shares the NICs' ways out.
TEST_F(FewNics, GpusThatAreEquallyFarShareTheRings) {
  const PacketFixture packets(two_hosts({0, 2, 4, 6}));
  LinkOrders orders;
  const std::vector<GpuId> members{1, 3, 5, 7, 9, 11, 13, 15};
  const CommunicatorLayout layout = lay_out(members, *packets.network, orders);
  ASSERT_EQ(layout.rings.size(), 4u);
  std::set<std::uint32_t> first, last;
  for (const auto& ring : layout.rings) {
    first.insert(ring[0]);
    last.insert(ring[3]);
  }
  EXPECT_EQ(first.size(), 4u);
  EXPECT_EQ(last.size(), 4u);
}

// The last GPU of a ring sends over NVLink to the GPU at the NIC (PXN). That GPU's PCIe carries the received
// data in the other direction. Measured on HGX H100: 160 to 190 GB/s with four NICs of 400 Gb/s, and about
// 46, the rate of a NIC, with one. Over PCIe and CPUs it would be 94 and 21.6.
TEST_F(FewNics, GiveWhatTheNicsCarry) {
  const double four = bus_bandwidth(two_hosts({0, 2, 4, 6}, kRingsOfNccl), 512 * kMebibyte);
  EXPECT_GT(four, 160);
  EXPECT_LT(four, 1.1 * 190);
  EXPECT_NEAR(bus_bandwidth(two_hosts({0}, kRingsOfNccl), 128 * kMebibyte) / 46, 1, .1);
}

// Two GPUs and a NIC at a PCIe switch: 181 GB/s on the 16 channels that NCCL runs, which do no worse than 8.
TEST_F(FewNics, RunOnAsManyChannelsAsNccl) {
  const auto with = [](const std::string& channels) {
    return bus_bandwidth(two_of("{kind: dgx_h100, nics: 4}",
                                "{all_reduce: {kind: nccl, tree: false, nvls: false" + channels + "}}"),
                         512 * kMebibyte);
  };
  const double as_nccl = with("");
  EXPECT_NEAR(as_nccl / 181, 1, .1);
  EXPECT_EQ(as_nccl, with(", scale_out_channels: 4"));
  EXPECT_GT(as_nccl, with(", scale_out_channels: 2"));
}

std::pair<std::uint32_t, std::uint32_t> channels_of(const std::string& config,
                                                    const std::vector<GpuId>& members) {
  const PacketFixture packets(config);
  LinkOrders orders;
  const CommunicatorLayout layout = lay_out(members, *packets.network, orders);
  const SearchChannels channels =
      search_channels(layout, generation_of(layout.gpu_model, layout.compute_capability));
  return {channels.search, channels.library};
}
using Channels = std::pair<std::uint32_t, std::uint32_t>;

// By ncclTopoDupChannels and ncclTopoPostset. NCCL's log has 8 for two hosts of H20 with two GPUs each
// (NVIDIA/nccl, issue 1189: "8 coll channels, ... 8 p2p channels, 2 p2p channels per peer"), and 16 for eight
// GPUs with eight NICs each.
TEST_F(FewNics, HaveTheChannelsOfNcclsSearch) {
  const auto hosts = [](const std::string& host, const char* rate = "400 Gbps") {
    return std::string("topology: {kind: star, hosts: 64, rate: ") + rate + "}\nhosts: 2\nhost: " + host +
           "\n";
  };
  EXPECT_EQ(channels_of(hosts("dgx_h100"), every(1, 16)), Channels(8, 16));
  EXPECT_EQ(channels_of(hosts("hgx_h20"), {0, 1, 8, 9}), Channels(4, 8));
  EXPECT_EQ(channels_of(hosts("{kind: dgx_h100, nics: 4}"), every(1, 16)), Channels(8, 16));
  EXPECT_EQ(channels_of(hosts("{kind: dgx_h100, nics: 1}"), every(1, 16)), Channels(2, 4));
  EXPECT_EQ(channels_of(hosts("dgx_h100"), {3, 12}), Channels(2, 4));
  // Six channels of 48 GB/s are not doubled by the search, but by the library.
  EXPECT_EQ(channels_of(hosts("dgx_h100"), {0, 1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 13}), Channels(6, 24));
  // 24 GB/s of a NIC is too little for either.
  EXPECT_EQ(channels_of(hosts("{kind: dgx_h100, nics: 4}", "200 Gbps"), every(1, 16)), Channels(4, 8));
  EXPECT_EQ(channels_of(hosts("aws_p4de", "100 Gbps"), every(1, 16)), Channels(4, 8));
  EXPECT_EQ(channels_of(hosts("dgx_a100", "200 Gbps"), every(1, 16)), Channels(8, 16));
  EXPECT_EQ(channels_of(hosts("dgx_b200"), every(1, 16)), Channels(8, 16));
  // 96 GB/s of a NIC: eight channels become 16 of 48, which the library runs twice.
  EXPECT_EQ(channels_of(hosts("dgx_b200", "800 Gbps"), every(1, 16)), Channels(16, 32));
}

// A file that says Hopper has NVLS and NCCL's tables without the configuration's gpu_generation.
TEST_F(FewNics, KnowTheirGenerationByTheFile) {
  const PacketFixture packets(two_hosts({0, 2, 4, 6}));
  LinkOrders orders;
  const CommunicatorLayout layout = lay_out(every(1, 8), *packets.network, orders);
  EXPECT_TRUE(layout.switches_reduce);
  EXPECT_EQ(generation_of(layout.gpu_model, layout.compute_capability), GpuGeneration::hopper);
}

}  // namespace
}  // namespace netsim::few_nics_test
