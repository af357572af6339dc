// Does every placement put each rank where its name says, on GPUs of its own, and refuse what does not fit?
#include "sim/scheduling/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "sim/core/errors.h"
#include "sim/core/registry.h"
#include "tests/report/fixtures.h"

namespace netsim::placement_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Four hosts of 8 GPUs.
const Cluster& cluster() {
  static const ConfigNode root =
      parse_config("{topology: {kind: star, hosts: 32}, host: dgx_a100}", "cluster.yaml");
  static const Cluster built = build_cluster(root);
  return built;
}

struct Request {
  explicit Request(std::uint32_t number = 8) : ranks(number) {}
  std::uint32_t ranks;
  std::vector<bool> taken = std::vector<bool>(32, false);
  std::vector<std::pair<std::string, std::uint32_t>> axes;
  std::string job = "job";

  std::vector<GpuId> place(const std::string& placement) const {
    const PlacementView view{cluster(), taken, ranks, axes, job, 1};
    return place_ranks(parse_config(placement, "config.yaml"), view, std::vector<bool>(taken.size(), false))
        .gpus;
  }
  std::string refusal(const std::string& placement) const {
    try {
      place(placement);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  }
};

TEST(Placement, PackedTakesTheFirstFreeGpus) {
  Request request(4);
  EXPECT_THAT(request.place("kind: packed"), ElementsAre(0, 1, 2, 3));
  request.taken[1] = request.taken[2] = true;
  EXPECT_THAT(request.place("kind: packed"), ElementsAre(0, 3, 4, 5));
}

TEST(Placement, SpreadGoesFromHostToHost) {
  Request request(6);
  EXPECT_THAT(request.place("kind: spread"), ElementsAre(0, 8, 16, 24, 1, 9));
  request.taken[8] = true;
  EXPECT_THAT(request.place("kind: spread"), ElementsAre(0, 9, 16, 24, 1, 10));
}

TEST(Placement, StridedWrapsAround) {
  EXPECT_THAT(Request(6).place("{kind: strided, stride: 8}"), ElementsAre(0, 8, 16, 24, 1, 9));
  EXPECT_THAT(Request(4).place("{kind: strided, stride: 20}"), ElementsAre(0, 20, 1, 21));
}

TEST(Placement, RandomIsTheSameForTheSameSeedAndJobAndUsesAllOfTheCluster) {
  const Request request(32);
  const std::vector<GpuId> gpus = request.place("kind: random");
  EXPECT_EQ(std::set<std::uint32_t>(gpus.begin(), gpus.end()).size(), 32U);
  EXPECT_NE(gpus, request.place("kind: packed"));
  EXPECT_EQ(gpus, request.place("kind: random"));
  EXPECT_NE(gpus, request.place("{kind: random, seed: 9}"));
  Request other(32);
  other.job = "other";
  EXPECT_NE(gpus, other.place("kind: random"));
}

// tp 2 (fastest), pp 2, dp 4: rank = tp + 2 pp + 4 dp.
TEST(Placement, ByAxisPutsOneAxisIntoHostsAndAnotherOnARail) {
  Request request(16);
  request.axes = {{"tp", 2}, {"pp", 2}, {"dp", 4}};
  EXPECT_EQ(request.place("kind: by_axis"), request.place("kind: packed"));
  const std::vector<GpuId> gpus = request.place("{kind: by_axis, inside: [tp, dp], along: [pp]}");
  for (std::uint32_t rank = 0; rank < 16; ++rank) {
    const std::uint32_t tp = rank % 2, pp = rank / 2 % 2, dp = rank / 4;
    EXPECT_EQ(cluster().gpus[gpus[rank]].host, pp);
    EXPECT_EQ(cluster().gpus[gpus[rank]].local, tp + 2 * dp);
  }
}

// Groups of 3 in hosts of 8 leave two GPUs of each free; of 8 in racks of 12, four.
TEST(Placement, ByAxisDividesNoGroup) {
  Request request(12);
  request.axes = {{"tp", 3}, {"dp", 4}};
  EXPECT_THAT(request.place("{kind: by_axis, inside: [tp]}"),
              ElementsAre(0, 1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 13));
  Request full(27);
  full.axes = {{"tp", 3}, {"dp", 9}};
  EXPECT_THAT(full.refusal("{kind: by_axis, inside: [tp]}"), HasSubstr("8 groups of 3 ranks each fit"));
  const Cluster racks =
      build_cluster(parse_config("fabrics: {rack: {kind: nvl_rack, gpus: 12, racks: 2}, scale_out: {kind: "
                                 "star, hosts: 24}}\nhost: gb200\n",
                                 "test.yaml"));
  const std::vector<bool> taken(racks.gpus.size(), false);
  const PlacementView view{racks, taken, 16, {{"tp", 8}, {"dp", 2}}, "job", 1};
  const ConfigNode node = parse_config("{kind: by_axis, inside: [tp]}", "test.yaml");
  const std::vector<GpuId> gpus = place_ranks(node, view, taken).gpus;
  for (std::uint32_t rank = 0; rank < 16; ++rank) EXPECT_EQ(gpus[rank], rank % 8 + 12 * (rank / 8));
}

TEST(Placement, TopologyAwareTakesTheFullestHostThatHasRoom) {
  Request request(4);
  for (const std::uint32_t gpu : {0U, 1U, 2U, 3U}) request.taken[gpu] = true;
  EXPECT_THAT(request.place("kind: topology_aware"), ElementsAre(4, 5, 6, 7));
  request.ranks = 5;
  EXPECT_THAT(request.place("kind: topology_aware"), ElementsAre(8, 9, 10, 11, 12));
  request.ranks = 12;  // a whole host, and the rest on the fullest one
  EXPECT_THAT(request.place("kind: topology_aware"), ElementsAre(8, 9, 10, 11, 12, 13, 14, 15, 4, 5, 6, 7));
  request.ranks = 29;
  EXPECT_THAT(request.refusal("kind: topology_aware"), HasSubstr("only 28 are free"));
}

TEST(Placement, TopologyAwarePutsTheHeaviestAxisInside) {
  Request request(4);
  request.axes = {{"dp", 2}, {"tp", 2}};  // rank = dp + 2 tp
  EXPECT_THAT(request.place("kind: topology_aware"), ElementsAre(0, 2, 1, 3));
  EXPECT_THAT(request.place("{kind: topology_aware, order: [dp]}"), ElementsAre(0, 1, 2, 3));
}

// A fat tree of 16 hosts has racks of two and pods of four. Host 0 is taken.
class FatTree {
 public:
  FatTree() { taken_[0] = true; }
  PlacedRanks place(const std::string& placement, std::uint32_t ranks) const {
    const PlacementView view{cluster_, taken_, ranks, {}, "job", 1};
    return place_ranks(parse_config(placement, "test.yaml"), view, std::vector<bool>(16, false));
  }

 private:
  Cluster cluster_ = build_cluster(parse_config("topology: {kind: fat_tree, k: 4}", "test.yaml"));
  std::vector<bool> taken_ = std::vector<bool>(16, false);
};

TEST(Placement, TopologyAwareTakesTheSmallestSubtree) {
  const FatTree tree;
  EXPECT_THAT(tree.place("kind: topology_aware", 1).gpus, ElementsAre(1));
  EXPECT_THAT(tree.place("kind: topology_aware", 2).gpus, ElementsAre(2, 3)) << "a whole rack";
  EXPECT_THAT(tree.place("kind: topology_aware", 3).gpus, ElementsAre(2, 3, 1)) << "the pod with three free";
  EXPECT_THAT(tree.place("kind: topology_aware", 6).gpus, ElementsAre(4, 5, 6, 7, 2, 3))
      << "a pod and a rack";
}

TEST(Placement, WholeBlocksAreNotShared) {
  const FatTree tree;
  const PlacedRanks rack = tree.place("{kind: whole_blocks, block: rack}", 1);
  EXPECT_THAT(rack.gpus, ElementsAre(2));
  EXPECT_THAT(rack.idle, ElementsAre(3));
  const PlacedRanks pod = tree.place("{kind: whole_blocks, block: pod}", 2);
  EXPECT_THAT(pod.gpus, ElementsAre(4, 5));
  EXPECT_THAT(pod.idle, ElementsAre(6, 7));
  Request request(4);
  request.taken[3] = true;
  EXPECT_THAT(request.place("kind: whole_blocks"), ElementsAre(8, 9, 10, 11));
  for (const std::uint32_t gpu : {8U, 16U, 24U}) request.taken[gpu] = true;
  EXPECT_THAT(request.refusal("kind: whole_blocks"),
              HasSubstr("4 ranks, but only 0 GPUs are in whole hosts that no other job uses"));
}

TEST(Placement, ByAxisRefusesWhatIsNoAxisOrNoRail) {
  Request request(16);
  EXPECT_THAT(request.refusal("kind: by_axis"), HasSubstr("has no axes"));
  request.axes = {{"tp", 2}, {"dp", 8}};
  EXPECT_THAT(request.refusal("{kind: by_axis, inside: [ep]}"),
              HasSubstr("has no axis 'ep' (it has tp, dp)"));
  EXPECT_THAT(request.refusal("{kind: by_axis, inside: [tp, tp]}"), HasSubstr("named twice"));
  EXPECT_THAT(request.refusal("{kind: by_axis, inside: [tp], along: [dp]}"),
              HasSubstr("do not fill hosts of 8"));
}

struct Table {
  explicit Table(const std::string& text) { std::ofstream(path) << text; }
  test::Directory directory;
  std::string path = directory.path() + "/ranks.csv";
  std::string placement = "{kind: file, file: " + path + "}";
};

TEST(Placement, FileSaysHostAndGpuOfEachRank) {
  const Table table("# ours\nrank,host,gpu\n1,3,7\n0, 2 ,1\n");
  EXPECT_THAT(Request(2).place(table.placement), ElementsAre(17, 31));
  const Table other("gpu,rank,host\r\n7,1,3\r\n1,0,2\r\n");
  EXPECT_THAT(Request(2).place(other.placement), ElementsAre(17, 31));
}

TEST(Placement, FileRefusesWhatIsWrongAtItsPlace) {
  const auto refused = [](const std::string& text, std::uint32_t taken = 31) {
    const Table table(text);
    Request request(2);
    request.taken[taken] = true;
    const std::string message = request.refusal(table.placement);
    return message.substr(std::min(message.size(), table.path.size()));
  };
  EXPECT_THAT(refused("0,1,2\n"), HasSubstr(":1:1: unknown column '0' (allowed: rank, host, gpu)"));
  EXPECT_THAT(refused("rank,host,gpu\n0,1\n"), HasSubstr(":2:1: 2 cells"));
  EXPECT_THAT(refused("rank,host,gpu\n0,4,0\n"),
              HasSubstr(":2:3: the host is '4'; allowed: an integer from 0 to 3"));
  EXPECT_THAT(refused("rank,host,gpu\n0,1,8\n"),
              HasSubstr(":2:5: the GPU is '8'; allowed: an integer from 0 to 7"));
  EXPECT_THAT(refused("rank,host,gpu\n2,1,1\n"), HasSubstr("the rank is '2'"));
  EXPECT_THAT(refused("rank,host,gpu\n0,1,1\n0,1,2\n"), HasSubstr(":3:1: a second line for rank 0"));
  EXPECT_THAT(refused("rank,host,gpu\n0,1,1\n1,1,1\n"), HasSubstr(":3:5: a second rank on GPU 1 of host 1"));
  EXPECT_THAT(refused("rank,host,gpu\n0,1,1\n1,1,2\n", 10),
              HasSubstr(":3:5: another job is on GPU 2 of host 1"));
  EXPECT_THAT(refused("rank,host,gpu\n0,1,1\n"), HasSubstr("rank 1 of job 'job' (2 ranks) has no line"));
}

TEST(Placement, RefusesMoreRanksThanThereAreFreeGpus) {
  Request request(32);
  request.taken[5] = true;
  for (const std::string& name : Registry<Placement>::instance().names()) {
    if (name == "file") continue;
    request.axes = {{"dp", 32}};
    EXPECT_THAT(request.refusal("kind: " + name),
                HasSubstr("32 ranks, but of the cluster's 32 GPUs only 31 are free"));
  }
}

}  // namespace
}  // namespace netsim::placement_test
