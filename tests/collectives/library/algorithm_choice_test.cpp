// Algorithms by size and group: the entries of `choices` in the section `collectives`.
#include "sim/collectives/library/algorithm_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/collectives/packet_collectives.h"

namespace netsim::algorithm_choice_test {
namespace {

using test::every;
using test::PacketCollectives;
using test::request_of;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Kind = CollectiveKind;

std::string two_dgx(const std::string& choices) {
  return "topology: {kind: star, hosts: 16, rate: 200 Gbps}\nhost: dgx_a100\nhosts: 2\n"
         "collectives:\n  all_reduce: ring\n  choices:\n" +
         choices;
}

constexpr const char* kChoices =
    "    - {collective: all_reduce, to: 64 KiB, algorithm: double_binary_tree}\n"
    "    - {collective: all_reduce, ranks: 2, domains: 2, algorithm: recursive_doubling}\n"
    "    - {collective: all_reduce, domains: 1, from: 1 MiB, to: 2 MiB, algorithm: {kind: multi_ring, rings: "
    "2}}\n"
    "    - {collective: all_reduce, ranks: 8, from: 1 GiB, algorithm: {kind: nccl, nvls: false}}\n"
    "    - {collective: barrier, algorithm: bruck}\n";

TEST(Choices, TakeTheFirstEntryThatFits) {
  const PacketCollectives dgx(two_dgx(kChoices));
  const std::vector<GpuId> all = every(1, 16), host = every(1, 8), rail = every(8, 2);
  const auto algorithm = [&](Bytes bytes, const std::vector<GpuId>& members) {
    return dgx.executor->choice(request_of(Kind::all_reduce, members, bytes)).algorithm;
  };
  EXPECT_EQ(algorithm(64 * kKibibyte, all), "double_binary_tree");
  EXPECT_EQ(algorithm(64 * kKibibyte, rail), "double_binary_tree");
  EXPECT_EQ(algorithm(64 * kKibibyte + 1, rail), "recursive_doubling");
  EXPECT_EQ(algorithm(64 * kKibibyte + 1, all), "ring");
  EXPECT_EQ(algorithm(kMebibyte, host), "multi_ring");
  EXPECT_EQ(algorithm(2 * kMebibyte + 1, host), "ring");
  EXPECT_EQ(algorithm(kMebibyte, all), "ring");
  EXPECT_EQ(algorithm(kGibibyte, host), "ring");  // by NCCL's choice
  const auto why = [&](Bytes bytes, Kind kind = Kind::all_reduce) {
    return dgx.executor->choice(request_of(kind, host, bytes)).why;
  };
  EXPECT_EQ(why(kMebibyte), "choices test.yaml:9");
  EXPECT_THAT(why(kGibibyte), HasSubstr("choices test.yaml:10; NCCL's cost model: "));
  EXPECT_EQ(why(4 * kMebibyte), "configured");
  EXPECT_EQ(why(kMebibyte, Kind::all_gather), "default");
  EXPECT_EQ(why(4, Kind::barrier), "choices test.yaml:11");
}

TEST(Choices, RunWhatTheyName) {
  const auto time = [](const std::string& cluster) {
    PacketCollectives dgx(cluster);
    const auto members = every(1, 16);
    return dgx.run(request_of(Kind::all_reduce, members, 4 * kKibibyte));
  };
  EXPECT_EQ(time(two_dgx(kChoices)),
            time("topology: {kind: star, hosts: 16, rate: 200 Gbps}\nhost: dgx_a100\nhosts: 2\n"
                 "collectives: {all_reduce: double_binary_tree}\n"));
}

TEST(Choices, AreRefusedWhereTheyStand) {
  const auto refusal = [](const std::string& choices) {
    try {
      PacketCollectives dgx(two_dgx(choices));
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("nothing was refused");
  };
  EXPECT_THAT(refusal("    - {collective: all_reduce, algorithm: bruck}\n"),
              AllOf(HasSubstr("test.yaml:7:43"), HasSubstr("'bruck' does not do all_reduce")));
  EXPECT_THAT(refusal("    - {collective: all_reduce}\n"),
              AllOf(HasSubstr("test.yaml:7"), HasSubstr("algorithm")));
  EXPECT_THAT(refusal("    - {algorithm: ring}\n"), HasSubstr("collective"));
  EXPECT_THAT(refusal("    - {collective: point_to_point, algorithm: direct}\n"),
              HasSubstr("test.yaml:7:20"));
  EXPECT_THAT(refusal("    - {collective: all_reduce, from: 2 MiB, to: 1 MiB, algorithm: ring}\n"),
              HasSubstr("to 1 MiB is less than from 2 MiB"));
  EXPECT_THAT(refusal("    - {collective: all_reduce, bytes: 2 MiB, algorithm: ring}\n"),
              HasSubstr("unknown key 'bytes'"));
  EXPECT_THAT(refusal("    ring\n"), HasSubstr("a list is expected"));
}

}  // namespace
}  // namespace netsim::algorithm_choice_test
