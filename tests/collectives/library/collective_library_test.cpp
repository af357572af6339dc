// Is a library of a user's own asked as collective_library.h says, told what it says, and does the executor
// play its answer? And does an algorithm get the hosts and rails of its ranks?
#include "sim/collectives/library/collective_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "sim/collectives/library/standard_config.h"
#include "sim/core/errors.h"
#include "sim/core/registry.h"
#include "tests/collectives/packet_collectives.h"
#include "tests/collectives/table_plan.h"

namespace netsim::collective_library_test {
namespace {

using test::every;
using test::PacketCollectives;
using test::request_of;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr const char* kTwoDgx =
    "topology: {kind: star, hosts: 16, rate: 200 Gbps}\nhost: dgx_a100\nhosts: 2\n";

// ---- A library that counts how often it is asked, and turns the rings of each group round

std::atomic<int> asked = 0, adjusted = 0;

class Backward final : public CollectiveLibrary {
 public:
  CollectiveConfig configure(const LibraryRequest& request) const override {
    ++asked;
    CollectiveConfig config = configured(request, *named_algorithm(request).algorithm);
    config.costs.base = 7 * kMillisecond;
    if (request.explain) config.why = "backward";
    return config;
  }
  void adjust(const std::vector<GpuId>& members, CommunicatorLayout& layout) const override {
    ++adjusted;
    EXPECT_EQ(members.size(), layout.rings.front().size());
    for (std::vector<std::uint32_t>& ring : layout.rings) std::reverse(ring.begin(), ring.end());
  }
};

const Registration<CollectiveLibrary> kBackward{
    "test_backward", "as configured, with all rings backward", Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<Backward>(); }};

std::string collectives(const std::string& section) { return kTwoDgx + ("collectives: {" + section + "}\n"); }

TEST(CollectiveLibrary, IsAskedOnceForAllMembersOfACommunication) {
  const auto members = every(1, 16), others = every(2, 8);
  PacketCollectives cluster(collectives("library: test_backward"));
  asked = adjusted = 0;
  const Time end = cluster.run(request_of(CollectiveKind::all_reduce, members, kMebibyte));
  EXPECT_GT(end, 7 * kMillisecond);
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(adjusted, 1);
  // Each difference is another question.
  int questions = asked;
  const auto ask = [&](const CommunicationRequest& request) {
    cluster.executor->scale_out_bytes((*request.members)[request.index], request);
    ++questions;
    EXPECT_EQ(asked, questions);
  };
  CommunicationRequest request = request_of(CollectiveKind::all_reduce, members, kMebibyte);
  ask(request);
  cluster.executor->scale_out_bytes(members[0], request);
  EXPECT_EQ(asked, questions);
  request.bytes *= 2;
  ask(request);
  request.kind = CollectiveKind::all_gather;
  ask(request);
  request.communication = 6;
  ask(request);
  request.traits.job = 1;
  ask(request);
  request.grouped = {0, 2 * kMebibyte};
  ask(request);
  request.members = &others;
  ask(request);
}

TEST(CollectiveLibrary, SaysWhyForTables) {
  const auto members = every(1, 16);
  const PacketCollectives cluster(collectives("library: test_backward"));
  const LibraryChoice choice =
      cluster.executor->choice(request_of(CollectiveKind::all_reduce, members, kMebibyte));
  EXPECT_EQ(choice.why, "backward");
  EXPECT_EQ(choice.algorithm, "ring");
}

// A member of a ring sends to the one before it where it sent to the one behind it.
TEST(CollectiveLibrary, MayChangeTheOrdersOfRings) {
  const auto members = every(1, 16);
  const auto next_of = [&](const std::string& library, std::uint32_t gpu) {
    const PacketCollectives cluster(collectives("library: " + library));
    CommunicationRequest request = request_of(CollectiveKind::all_gather, members, 64 * kMebibyte);
    request.index = gpu;
    std::vector<std::uint32_t> next;
    cluster.executor->for_each_batch(gpu, request, [&](const MessageBatch& batch) {
      if (!batch.credit) next.push_back(batch.destination);
    });
    std::sort(next.begin(), next.end());
    next.erase(std::unique(next.begin(), next.end()), next.end());
    return next;
  };
  for (const std::uint32_t gpu : members) {
    for (const std::uint32_t next : next_of("as_configured", gpu))
      EXPECT_THAT(next_of("test_backward", next), ::testing::Contains(gpu));
  }
}

TEST(CollectiveLibrary, IsNamedByTheConfiguration) {
  EXPECT_THAT(
      [] { PacketCollectives cluster(collectives("library: ncl")); },
      ThrowsMessage<ConfigError>(HasSubstr("unknown collective_library 'ncl', did you mean 'nccl'?")));
  const PacketCollectives cluster(collectives("library: test_backward"));
  EXPECT_THAT([&] { cluster.executor->nccl_graph(every(1, 16)); },
              ThrowsMessage<InputError>(HasSubstr("collectives.library")));
}

// ---- An algorithm that needs hosts and rails: a broadcast along all ranks of one rail after the other

class ByRail final : public CollectiveAlgorithm {
 public:
  bool supports(CollectiveKind kind) const override { return kind == CollectiveKind::broadcast; }
  PlanTraits traits() const override { return {.sites = true}; }
  std::unique_ptr<Plan> plan(CollectiveKind kind, const GroupShape& shape) const override {
    if (shape.sites.empty()) throw InputError("test_by_rail needs to know the hosts of its ranks");
    std::vector<std::uint32_t> chain;
    for (std::uint32_t rank = 0; rank < shape.ranks; ++rank) {
      if (rank != shape.root) chain.push_back(rank);
    }
    std::sort(chain.begin(), chain.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::pair(shape.sites[a].rail, shape.sites[a].host) <
             std::pair(shape.sites[b].rail, shape.sites[b].host);
    });
    auto plan = std::make_unique<TablePlan>(kind, shape.ranks, 1, 1);
    plan->set_root(shape.root);
    std::uint32_t before = shape.root;
    for (const std::uint32_t rank : chain) {
      plan->list(before, 0).push_back(send(input(0), {rank, 0}));
      plan->list(rank, 0).push_back(receive(input(0), {before, 0}));
      before = rank;
    }
    return plan;
  }
};

const Registration<CollectiveAlgorithm> kByRail{
    "test_by_rail", "broadcast along one rail after the other", Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<ByRail>(); }};

TEST(CollectiveAlgorithm, MayNeedTheHostsAndRailsOfItsRanks) {
  // Each GPU of a DGX A100 has a rail of its own. GPUs 0 and 8 are on the first, 1 and 9 on the second.
  const std::vector<GpuId> members{0, 2, 1, 8, 10, 9};
  for (const char* library : {"nccl", "as_configured", "test_backward"}) {
    PacketCollectives cluster(collectives(std::string("library: ") + library + ", broadcast: test_by_rail"));
    const auto next_of = [&](std::uint32_t index) {
      CommunicationRequest request = request_of(CollectiveKind::broadcast, members, kMebibyte);
      request.index = index;
      std::uint32_t next = kNoIndex;
      cluster.executor->for_each_batch(members[index], request, [&](const MessageBatch& batch) {
        if (!batch.credit) next = batch.destination;
      });
      return next;
    };
    EXPECT_EQ(next_of(0), 8U) << library;  // the other host on the first rail
    EXPECT_EQ(next_of(3), 1U) << library;  // then the next rail
    EXPECT_EQ(next_of(2), 9U) << library;
    EXPECT_EQ(next_of(5), 2U) << library;
    EXPECT_EQ(next_of(1), 10U) << library;
    EXPECT_EQ(next_of(4), kNoIndex) << library;  // the last one
    EXPECT_GT(cluster.run(request_of(CollectiveKind::broadcast, members, kMebibyte)), 0);
  }
}

}  // namespace
}  // namespace netsim::collective_library_test
