// Tests the all-gathers that SCCL finds for a DGX-1 (Cai et al., PPoPP 2021, table 4). One has 2 steps, 3
// rounds and 2 chunks, the other 3 steps, 7 rounds and 6 chunks. They are proved and keep to the links of
// each round. Their gain or loss against a ring of 7 steps over 6 lanes is that of the forms.
//
// A schedule of S steps, R rounds and C chunks takes S alpha + R / C c beta. A rank contributes c bytes, and
// a lane takes beta for each. The ring takes 7 alpha + 7 / 6 c beta.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>

#include "sim/collectives/programs/program_file.h"
#include "sim/core/output.h"
#include "tests/collectives/packet_collectives.h"
#include "tests/support/paths.h"

namespace netsim::sccl_dgx1_test {
namespace {

using test::every;
using test::PacketCollectives;
using test::request_of;

struct Schedule {
  const char* file;
  double steps, rounds, chunks;
};
constexpr Schedule kBandwidth{"dgx1_all_gather_3_7_6.json", 3, 7, 6};
constexpr Schedule kLatency{"dgx1_all_gather_2_3_2.json", 2, 3, 2};

std::string path_of(const Schedule& schedule) {
  return source_directory() + "/configs/collectives/" + schedule.file;
}
CollectiveProgram program_of(const Schedule& schedule) {
  return read_program(read_file(path_of(schedule)), path_of(schedule));
}

// In one pass; without what starting a kernel costs.
PacketCollectives dgx1(const std::string& all_gather, const char* protocol) {
  return PacketCollectives(
      "topology: {kind: star, hosts: 4, rate: 100 Gbps}\nhost: {kind: dgx_1v, nvlink_piece: 16 MiB}\nhosts: "
      "1\n"
      "collectives: {base_latency_ring: 0, slice: 1 GiB, slices_per_chunk: 1, ll: {base_latency_ring: 0, "
      "slice: "
      "1 GiB}, protocol: " +
      std::string(protocol) + ", all_gather: " + all_gather + "}\n");
}
std::string named(const Schedule& schedule, const char* protocol) {
  return "{kind: msccl, file: '" + path_of(schedule) + "', protocol: " + protocol + "}";
}
double time_of(const std::string& all_gather, const char* protocol, Bytes bytes) {
  PacketCollectives host = dgx1(all_gather, protocol);
  const auto members = every(1, 8);
  return static_cast<double>(host.run(request_of(CollectiveKind::all_gather, members, bytes)));
}
// Returns the ratio of a ring's time to the schedule's.
double gain(const Schedule& schedule, const char* protocol, Bytes bytes) {
  return time_of("ring", protocol, bytes) / time_of(named(schedule, protocol), protocol, bytes);
}

TEST(ScclOnDgx1, BothAreProved) {
  EXPECT_EQ(prove(program_of(kBandwidth)), "");
  EXPECT_EQ(prove(program_of(kLatency)), "");
}

// The busiest lane carries a chunk in each round, and in the one that has the bandwidth all do.
TEST(ScclOnDgx1, LanesCarryAChunkARound) {
  PacketCollectives host = dgx1("ring", "simple");
  for (const Schedule& schedule : {kBandwidth, kLatency}) {
    const CollectiveProgram program = program_of(schedule);
    std::map<std::pair<std::uint32_t, std::uint32_t>, double> chunks;
    for (std::uint32_t rank = 0; rank < 8; ++rank) {
      for (const CollectiveProgramBlock& block : program.ranks[rank].blocks) {
        for (const Step& step : block.steps) {
          if (sends(step.kind)) chunks[{rank, block.send_peer}] += step.count;
        }
      }
    }
    double most = 0, least = 100;
    for (const auto& [link, count] : chunks) {
      const auto rate = static_cast<double>(host.packets.network->direct_rate(link.first, link.second));
      ASSERT_GT(rate, 0) << link.first << " to " << link.second << " is no link";
      most = std::max(most, count / (rate / 160e9));
      least = std::min(least, count / (rate / 160e9));
    }
    EXPECT_EQ(chunks.size(), 32U);
    EXPECT_NEAR(most, schedule.rounds, 1e-6);
    if (schedule.file == kBandwidth.file) {
      EXPECT_NEAR(least, schedule.rounds, 1e-6);
    }
  }
}

// Steps decide: 7 / 3 and 7 / 2.
TEST(ScclOnDgx1, SmallOnesGainByTheirSteps) {
  const Bytes bytes = Bytes{8} * 6 * 8;
  EXPECT_NEAR(gain(kBandwidth, "ll", bytes), 2.33, 0.02 * 2.33);
  EXPECT_NEAR(gain(kLatency, "ll", bytes), 3.5, 0.02 * 3.5);
}

// The busiest lane decides: (7 / 6) / (7 / 6) and (7 / 6) / (3 / 2).
TEST(ScclOnDgx1, LargeOnesTakeTheirRounds) {
  const Bytes bytes = 8 * 6 * 16 * kMebibyte;
  EXPECT_NEAR(gain(kBandwidth, "simple", bytes), 1.0, 0.02);
  EXPECT_NEAR(gain(kLatency, "simple", bytes), 0.78, 0.02 * 0.78);
}

// By LL the same files cross where the forms do.
TEST(ScclOnDgx1, TheOneOfTwoStepsLosesToThatOfThreeWhereTheFormsDo) {
  // One step's alpha is what 3/2 - 7/6 of a rank's part costs more on a lane; half of LL's bytes are flags.
  const double alpha = 625e-9, beta = 2 / 20e9;
  const double part = alpha / beta / (1.5 - 7.0 / 6);
  const auto gained = [&](double of) {
    const Bytes bytes = static_cast<Bytes>(of * part) / 48 * 48 * 8;
    return time_of(named(kBandwidth, "ll"), "ll", bytes) / time_of(named(kLatency, "ll"), "ll", bytes);
  };
  EXPECT_GT(gained(0.8), 1);
  EXPECT_LT(gained(1.2), 1);
}

}  // namespace
}  // namespace netsim::sccl_dgx1_test
