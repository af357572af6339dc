// Do the rules of fusion give the buckets of their sources, and does PACE's dynamic programming find the
// best?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/core/random.h"
#include "sim/scheduling/task/ddp_buckets.h"
#include "sim/scheduling/task/fusion.h"
#include "sim/scheduling/task/mg_wfbp.h"
#include "sim/scheduling/task/pace_fusion.h"
#include "tests/scheduling/profile_maker.h"
#include "tests/support/test_size.h"

namespace netsim::fusion_test {
namespace {

using netsim::test::by_size;
using netsim::test::layer_chain;
using netsim::test::ProfileMaker;
using ::testing::ElementsAre;

std::vector<FusionTensor> tensors_of_bytes(const std::vector<Bytes>& sizes) {
  std::vector<FusionTensor> tensors;
  for (const Bytes bytes : sizes) tensors.push_back({0, 0, 0, bytes});
  return tensors;
}

TEST(DdpBuckets, TheFirstFilledIsSmall) {
  constexpr Bytes kMiB = kMebibyte;
  const auto tensors = tensors_of_bytes({kMiB / 2, kMiB * 6 / 10, 10 * kMiB, 10 * kMiB, 10 * kMiB, 3 * kMiB});
  EXPECT_THAT(ddp_buckets(tensors, {}).buckets,
              ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3, 4), ElementsAre(5)));
}

TEST(DdpBuckets, TheFirstStepFillsThemInTheOrderOfTheParameters) {
  const auto tensors = tensors_of_bytes({2 * kMebibyte, 2 * kMebibyte, 24 * kMebibyte});
  EXPECT_THAT(ddp_buckets(tensors, {}).buckets, ElementsAre(ElementsAre(0), ElementsAre(1, 2)));
  EXPECT_THAT(ddp_first_buckets(tensors, {}).buckets, ElementsAre(ElementsAre(0, 1), ElementsAre(2)));
}

TEST(DdpBuckets, ABucketIsFullWhenItReachesTheLimit) {
  EXPECT_THAT(ddp_buckets(tensors_of_bytes({4, 4, 4, 4}), {8, 8}).buckets,
              ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3)));
  EXPECT_TRUE(ddp_buckets({}, {}).buckets.empty());
}

TEST(MgWfbp, MergesWhatWouldBeginLateOrWaitLessThanAStartUp) {
  const std::vector<FusionTensor> apart{{0, 5, 0, 0}, {10, 5, 0, 0}, {20, 5, 0, 0}};
  EXPECT_THAT(mg_wfbp_fusion(apart, 1).buckets, ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(2)));
  EXPECT_THAT(mg_wfbp_fusion(apart, 20).buckets, ElementsAre(ElementsAre(0, 1, 2)));
  // The second one waits for the long first one, so the third one is ready before it begins.
  const std::vector<FusionTensor> late{{0, 100, 0, 0}, {5, 1, 0, 0}, {6, 1, 0, 0}};
  EXPECT_THAT(mg_wfbp_fusion(late, 2).buckets, ElementsAre(ElementsAre(0), ElementsAre(1, 2)));
}

// Replays the published code: tables of start and time by gradient, and a merge that rewrites them.
FusionMap replayed_merges(const std::vector<FusionTensor>& tensors, Time startup) {
  const std::size_t n = tensors.size();
  std::vector<Time> size(n), time(n), start(n);
  for (std::size_t i = 0; i < n; ++i) size[i] = tensors[i].transfer, time[i] = startup + size[i];
  const auto set_starts = [&] {
    for (std::size_t i = 0; i < n; ++i)
      start[i] = i == 0 ? tensors[0].ready : std::max(start[i - 1] + time[i - 1], tensors[i].ready);
  };
  set_starts();
  FusionMap map{{{}}};
  for (std::size_t i = 0; i < n; ++i) {
    map.buckets.back().push_back(static_cast<std::uint32_t>(i));
    if (i + 1 == n) break;
    const Time next = tensors[i + 1].ready;
    if (next < start[i] + time[i] && (start[i] > next || next - start[i] < startup)) {
      size[i + 1] += size[i];
      time[i] = 0;
      time[i + 1] = startup + size[i + 1];
      set_starts();
    } else {
      map.buckets.emplace_back();
    }
  }
  return map;
}

// Tensors as of a chain of layers: a tensor that is ready later has a longer tail.
std::vector<FusionTensor> random_chain(RandomStream& random, std::uint64_t count) {
  std::vector<FusionTensor> tensors;
  Time ready = 0, tail = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    ready += static_cast<Time>(random.below(6));
    tail += static_cast<Time>(random.below(6));
    tensors.push_back({ready, static_cast<Time>(random.below(12)), tail, 1});
  }
  return tensors;
}

TEST(MgWfbp, EqualsAReplayOnRandomChains) {
  for (std::uint64_t seed = 0; seed < by_size<std::uint64_t>(1000, 200, 50); ++seed) {
    RandomStream random(seed, "mg_wfbp");
    const auto tensors = random_chain(random, 1 + random.below(20));
    const auto startup = static_cast<Time>(random.below(15));
    EXPECT_EQ(mg_wfbp_fusion(tensors, startup).buckets, replayed_merges(tensors, startup).buckets) << seed;
  }
}

// The best preemptive schedule ends at a maximum over sets of buckets: least ready time, sum of times, least
// tail. Only sets with all buckets above two bounds matter.
Time end_by_sets(const std::vector<FusionTensor>& tensors, const FusionMap& map, Time startup) {
  std::vector<FusionTensor> buckets;
  for (const auto& members : map.buckets) {
    FusionTensor bucket{0, startup, 0, 0};
    for (const std::uint32_t i : members) {
      bucket.ready = std::max(bucket.ready, tensors[i].ready);
      bucket.tail = std::max(bucket.tail, tensors[i].tail);
      bucket.transfer += tensors[i].transfer;
    }
    buckets.push_back(bucket);
  }
  Time end = 0;
  for (const FusionTensor& first : buckets) {
    for (const FusionTensor& last : buckets) {
      if (first.tail < last.tail || last.ready < first.ready) continue;
      Time sum = first.ready + last.tail;
      for (const FusionTensor& bucket : buckets) {
        if (bucket.ready >= first.ready && bucket.tail >= last.tail) sum += bucket.transfer;
      }
      end = std::max(end, sum);
    }
  }
  return end;
}

// Returns the buckets that end after each tensor whose bit is set.
FusionMap cut_after(std::uint64_t bits, std::size_t count) {
  FusionMap map{{{}}};
  for (std::uint32_t i = 0; i < count; ++i) {
    map.buckets.back().push_back(i);
    if (i + 1 < count && (bits >> i & 1) != 0) map.buckets.emplace_back();
  }
  return map;
}

TEST(PaceFusion, EqualsTheBestOfAllGroupingsOnRandomChains) {
  for (std::uint64_t seed = 0; seed < by_size<std::uint64_t>(200, 60, 20); ++seed) {
    RandomStream random(seed, "pace");
    const auto tensors = random_chain(random, 1 + random.below(10));
    const auto startup = static_cast<Time>(random.below(10));
    Time best = kNever;
    std::size_t most = 0;  // buckets of the best groupings
    for (std::uint64_t bits = 0; bits < std::uint64_t{1} << (tensors.size() - 1); ++bits) {
      const FusionMap map = cut_after(bits, tensors.size());
      const Time end = end_by_sets(tensors, map, startup);
      most = end > best ? most : std::max(end < best ? 0 : most, map.buckets.size());
      best = std::min(best, end);
    }
    const FusionMap fused = pace_fusion(tensors, startup);
    EXPECT_EQ(fused.buckets.size(), most) << seed;
    EXPECT_EQ(end_by_sets(tensors, fused, startup), best) << seed;
    EXPECT_EQ(preemptive_end(tensors, fused, startup), best) << seed;
  }
}

TEST(PaceFusion, IsNeverWorseThanNoFusionWhateverTheTails) {
  for (std::uint64_t seed = 0; seed < by_size<std::uint64_t>(200, 60, 20); ++seed) {
    RandomStream random(seed, "pace_any");
    auto tensors = random_chain(random, 2 + random.below(10));
    for (FusionTensor& tensor : tensors) tensor.tail = static_cast<Time>(random.below(40));
    const auto startup = static_cast<Time>(random.below(10));
    const FusionMap apart = cut_after(~std::uint64_t{0}, tensors.size());
    EXPECT_EQ(preemptive_end(tensors, apart, startup), end_by_sets(tensors, apart, startup)) << seed;
    EXPECT_LE(preemptive_end(tensors, pace_fusion(tensors, startup), startup),
              preemptive_end(tensors, apart, startup))
        << seed;
  }
}

TEST(PaceFusion, ALargeStartUpFusesAllAndNoneFusesNothingThatHelps) {
  const std::vector<FusionTensor> tensors{{0, 4, 1, 0}, {2, 4, 2, 0}, {4, 4, 3, 0}};
  EXPECT_EQ(pace_fusion(tensors, 100).buckets.size(), 1U);
  EXPECT_EQ(preemptive_end(tensors, pace_fusion(tensors, 0), 0), preemptive_end(tensors, cut_after(3, 3), 0));
  EXPECT_TRUE(pace_fusion({}, 1).buckets.empty());
}

// A long all-reduce is ready last and ends last. Fusing it with the one before it saves a start-up. The
// others have ended long before, so they stay apart.
TEST(PaceFusion, TensorsWhoseFusionGainsNothingStayApart) {
  const std::vector<FusionTensor> tensors{{10, 1, 0, 0}, {20, 1, 1, 0}, {30, 1, 3, 0}, {31, 50, 3, 0}};
  EXPECT_THAT(pace_fusion(tensors, 2).buckets,
              ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(2, 3)));
}

TEST(Fusion, GradientsAreASequenceAndCollectivesOfTheForwardAreNot) {
  ProfileMaker maker;
  const auto first = maker.compute(1, {}, 0);
  const auto tensor = maker.add(ProfileTaskKind::collective, 1, 0, {first});
  const auto second = maker.compute(1, {tensor}, 0);
  for (const std::uint32_t i : {1U, 2U}) {
    const auto back = maker.compute(1, {}, 0);
    maker.add(ProfileTaskKind::collective, 1, i, {back});
  }
  EXPECT_EQ(second, 2U);
  EXPECT_THAT(fusible_sequences(maker.finish()), ElementsAre(ElementsAre(1, 2)));
}

// Tasks 0 and 2 are of one stream, 1 and 3 of another. Task 2 waits for task 1, and 3 for 0.
TEST(Fusion, BucketsThatWouldWaitForOneAnotherAreDivided) {
  const auto all_as_one = [](std::span<const FusionTensor> tensors) {
    FusionMap map{{{}}};
    for (std::uint32_t i = 0; i < tensors.size(); ++i) map.buckets[0].push_back(i);
    return map;
  };
  for (const bool circle : {true, false}) {
    ProfileMaker maker;
    const auto a = maker.add(ProfileTaskKind::collective, 1, 0, {});
    const auto b = maker.add(ProfileTaskKind::collective, 1, 1, {});
    maker.add(ProfileTaskKind::collective, 1, 2, {b});
    maker.add(ProfileTaskKind::collective, 1, 3,
              circle ? std::vector<std::uint32_t>{a} : std::vector<std::uint32_t>{});
    JobProfile profile = maker.finish();
    for (const std::uint32_t task : {1U, 3U}) profile.tasks[task].stream = 1;
    std::vector<std::vector<std::uint32_t>> buckets = fuse(profile, all_as_one).buckets;
    EXPECT_EQ(buckets.size(), circle ? 3U : 2U);
    std::vector<std::uint32_t> members;
    for (const auto& bucket : buckets) members.insert(members.end(), bucket.begin(), bucket.end());
    std::sort(members.begin(), members.end());
    EXPECT_THAT(members, ElementsAre(0, 1, 2, 3));
  }
}

TEST(Fusion, ARuleSeesTensorsInTheOrderInWhichTheyAreReady) {
  std::vector<Time> ready, transfer;
  const auto rule = [&](std::span<const FusionTensor> tensors) {
    for (const FusionTensor& tensor : tensors) {
      ready.push_back(tensor.ready);
      transfer.push_back(tensor.transfer);
    }
    return FusionMap{{{0, 1}, {2}}};
  };
  const FusionMap map = fuse(layer_chain(1, 2, {9, 8, 7}), rule);
  EXPECT_THAT(ready, ElementsAre(5, 7, 9));
  EXPECT_THAT(transfer, ElementsAre(7, 8, 9));
  EXPECT_THAT(map.buckets, ElementsAre(ElementsAre(0, 1), ElementsAre(2)));
}

}  // namespace
}  // namespace netsim::fusion_test
