// Tests that a parameter server takes BytePS's times with any number of dedicated servers, and that ports
// carry the bytes of its split. Its plans are proved with servers that contribute nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/core/errors.h"
#include "tests/collectives/algorithms/algorithm_cases.h"
#include "tests/collectives/packet_collectives.h"
#include "tests/support/test_size.h"

namespace netsim::parameter_server_test {
namespace {

using test::every;
using test::make_plan;
using test::PacketCollectives;
using test::request_of;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::string servers(std::uint32_t k, const std::string& split = "optimal") {
  return "{kind: parameter_server, servers: " + std::to_string(k) + ", split: " + split + "}";
}

TEST(ParameterServer, IsProvedWhateverTheServers) {
  for (std::uint32_t n = 2; n <= 33; n += n < 9 ? 1 : 8) {
    for (std::uint32_t k = 0; k <= n + 2; ++k) {
      for (const char* split : {"optimal", "colocated", "dedicated"}) {
        if (k == 0 && std::string(split) == "dedicated") continue;
        const auto plan = make_plan(servers(k, split), CollectiveKind::all_reduce, n + k);
        EXPECT_EQ(plan->workers(), n);
        EXPECT_EQ(prove(*plan), "") << n << " workers, " << k << " servers, " << split;
      }
    }
  }
}

// M_cpu = 2 (n-1) M / D and M_gpu = (n-k) M / D pass each port 2 n (n-1) M / D times (BytePS, section 4.1).
TEST(ParameterServer, LoadsAllPortsAlike) {
  for (const std::uint32_t n : {4U, 8U, 16U}) {
    for (std::uint32_t k = 0; k < n; ++k) {
      const Bytes d = Bytes{n} * n + Bytes{k} * n - 2 * Bytes{k}, m = d * 840;
      const auto plan = make_plan(servers(k), CollectiveKind::all_reduce, n + k);
      for (std::uint32_t rank = 0; rank < n + k; ++rank)
        EXPECT_EQ(bytes_sent(*plan, rank, m), 2 * Bytes{n} * (n - 1) * 840)
            << rank << " of " << n << "+" << k;
    }
  }
}

// t = 2 n (n-1) M / ((n^2 + kn - 2k) B), where B is the rate of the links without packet overhead. The buffer
// goes in rounds of a megabyte, so that pushes and pulls overlap.
TEST(ParameterServer, TakesBytePsTime) {
  constexpr std::uint32_t kWorkers = 8;
  constexpr Bytes kModel = 256 * kMegabyte;
  const std::vector<std::uint32_t> few{0, 2, 8};
  for (const std::uint32_t k : test::by_size<std::vector<std::uint32_t>>({0, 1, 2, 4, 6, 8}, few, few)) {
    const std::uint32_t ranks = kWorkers + k;
    PacketCollectives star(
        "topology: {kind: star, hosts: " + std::to_string(ranks) +
        ", rate: 100 Gbps}\nhost: single_nic\nhosts: " + std::to_string(ranks) +
        "\ntransport: {congestion_control: none, mtu: 4096 B, acknowledge: {every: 64}}\n"
        "collectives: {hop_latency_net_ring: 0, slice: 64 KiB, scale_out_channels: 1, all_reduce: " +
        servers(k) + "}\n");
    const auto members = every(1, ranks);
    const auto time = static_cast<double>(star.run(request_of(CollectiveKind::all_reduce, members, kModel)));
    const double n = kWorkers, d = n * n + k * n - 2.0 * k;
    constexpr double kGoodput = 4096.0 / (4096 + 82);
    const double form =
        2 * n * (n - 1) / d * static_cast<double>(transmission_time(kModel, 100 * kGbps)) / kGoodput;
    EXPECT_NEAR(time / form, 1, 0.03) << k << " servers";
  }
}

TEST(ParameterServer, RefusesGroupsThatItDoesNotSuit) {
  EXPECT_THAT([] { make_plan(servers(3), CollectiveKind::all_reduce, 4); },
              ThrowsMessage<InputError>(HasSubstr("needs at least two workers besides its servers, 3")));
  EXPECT_THAT([] { make_plan(servers(0, "dedicated"), CollectiveKind::all_reduce, 4); },
              ThrowsMessage<ConfigError>(HasSubstr("split: dedicated needs servers")));
}

}  // namespace
}  // namespace netsim::parameter_server_test
