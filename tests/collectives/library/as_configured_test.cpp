// Does the library as_configured take what is configured, at any size, and refuse what leaves it a choice?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "sim/core/errors.h"
#include "tests/collectives/packet_collectives.h"

namespace netsim::as_configured_test {
namespace {

using test::every;
using test::PacketCollectives;
using test::request_of;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::string two_dgx(const std::string& section) {
  return "topology: {kind: star, hosts: 16, rate: 200 Gbps}\nhost: dgx_a100\nhosts: 2\ncollectives: {" +
         section + "}\n";
}

TEST(AsConfigured, TakesAlgorithmProtocolAndChannelsAtAnySize) {
  const auto all = every(1, 16), host = every(1, 8), rail = every(8, 2);
  const PacketCollectives dgx(
      two_dgx("library: as_configured, all_reduce: tree, protocol: ll128, "
              "scale_up_channels: 6, scale_out_channels: 3"));
  for (const Bytes bytes : {Bytes{8}, 64 * kKibibyte, kGibibyte}) {
    const LibraryChoice tree = dgx.executor->choice(request_of(CollectiveKind::all_reduce, all, bytes));
    EXPECT_EQ(tree.algorithm, "tree");
    EXPECT_EQ(tree.protocol, Protocol::ll128);
    EXPECT_EQ(tree.channels, 8U * 3);  // a chain for each NIC
    EXPECT_EQ(tree.why, "configured");
    const LibraryChoice ring = dgx.executor->choice(request_of(CollectiveKind::all_gather, host, bytes));
    EXPECT_EQ(ring.algorithm, "ring");
    EXPECT_EQ(ring.channels, 6U);
    EXPECT_EQ(ring.why, "default");
    EXPECT_EQ(dgx.executor->choice(request_of(CollectiveKind::all_gather, rail, bytes)).channels, 3U);
  }
}

// NCCL's library lets all blocks of an A100 store 144 of the 240 GB/s that its NVLinks carry by LL128. Its
// step takes 1.5 us there, 0.4 us less than NCCL's one figure for all GPUs.
TEST(AsConfigured, AppliesNoLimitsOfThreadBlocks) {
  const auto members = every(1, 8);
  const Bytes piece = 120 * kKibibyte, wire = piece / 15 * 16;
  const std::tuple<const char*, int, Time> libraries[] = {{"nccl", 144, 1'500},
                                                          {"as_configured", 240, 1'900}};
  for (const auto& [library, rate, step] : libraries) {
    PacketCollectives dgx(
        two_dgx(std::string("protocol: ll128, ll128: {base_latency_ring: 0}, library: ") + library));
    const Time end = dgx.run(request_of(CollectiveKind::all_reduce, members, 8 * piece));
    const auto expected =
        static_cast<double>(14 * (step * kNanosecond + transmission_time(wire, 8 * rate * kGbps)));
    EXPECT_NEAR(static_cast<double>(end), expected, 0.01 * expected) << library;
  }
}

// Where the hosts do not say what GPUs they have, NCCL's library knows of no such limits, and both agree.
TEST(AsConfigured, AgreesWithNcclWhereNcclKnowsNothing) {
  const auto members = every(1, 8);
  const auto time = [&](const std::string& library, const std::string& kind) {
    PacketCollectives cluster("topology: {kind: star, hosts: 8, rate: 100 Gbps}\ncollectives: {library: " +
                              library + ", all_reduce: " + kind + "}\n");
    return cluster.run(request_of(CollectiveKind::all_reduce, members, 8 * kMebibyte));
  };
  for (const char* kind : {"ring", "double_binary_tree", "halving_doubling", "direct"})
    EXPECT_EQ(time("as_configured", kind), time("nccl", kind)) << kind;
}

// The kernels of DeepEP and NVLS are the algorithm's, not NCCL's.
TEST(AsConfigured, RunsAlgorithmsWithKernelsOfTheirOwn) {
  const auto members = every(1, 8);
  const auto time = [&](const std::string& library) {
    PacketCollectives dgx(
        "topology: {kind: star, hosts: 8, rate: 400 Gbps}\nhost: dgx_h100\nhosts: 1\ncollectives: "
        "{all_reduce: nvls, library: " +
        library + "}\n");
    return dgx.run(request_of(CollectiveKind::all_reduce, members, 8 * kMebibyte));
  };
  EXPECT_EQ(time("as_configured"), time("nccl"));
}

// PXN is NCCL's: by its library a message for another rail goes to the GPU of that rail first.
TEST(AsConfigured, SendsALoneMessageStraight) {
  const std::vector<GpuId> pair{0, 13};
  const auto destinations = [&](const std::string& library) {
    const PacketCollectives dgx(two_dgx("point_to_point: nccl_p2p, library: " + library));
    std::vector<GpuId> all;
    dgx.executor->for_each_batch(0, request_of(CollectiveKind::point_to_point, pair, kMebibyte),
                                 [&](const MessageBatch& batch) { all.push_back(batch.destination); });
    return all;
  };
  EXPECT_THAT(destinations("as_configured"), ::testing::Each(13U));
  EXPECT_THAT(destinations("nccl"), ::testing::Contains(5U));
}

TEST(AsConfigured, RefusesWhatLeavesAChoice) {
  const auto members = every(1, 8);
  const auto refusal = [&](const std::string& section) {
    try {
      PacketCollectives dgx(two_dgx("library: as_configured, " + section));
      dgx.run(request_of(CollectiveKind::all_reduce, members, kMebibyte));
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("nothing was refused");
  };
  EXPECT_THAT(refusal("all_reduce: nccl"), AllOf(HasSubstr("test.yaml:4"), HasSubstr("library: nccl")));
  EXPECT_THAT(refusal("protocol: auto"), AllOf(HasSubstr("test.yaml:4"), HasSubstr("simple, ll, ll128")));
  for (const char* key : {"nccl_algo: ring", "nccl_proto: ll", "tuner: a.csv", "graph: a.xml"})
    EXPECT_THAT(refusal(key), AllOf(HasSubstr("test.yaml:4"), HasSubstr("only the library nccl"))) << key;
}

}  // namespace
}  // namespace netsim::as_configured_test
