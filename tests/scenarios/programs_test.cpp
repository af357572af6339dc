// Programs of collectives from the command line: proved, refused, and run as they stand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/programs/msccl_xml.h"
#include "sim/collectives/programs/one_peer_blocks.h"
#include "sim/configuration/load_run.h"
#include "sim/core/errors.h"
#include "sim/core/registry.h"
#include "sim/report/summary.h"
#include "sim/simulation/simulation.h"
#include "tests/support/program.h"
#include "tests/support/shared.h"

namespace netsim::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::string text_of(const char* algorithm, CollectiveKind kind, std::uint32_t ranks) {
  return write_msccl_xml(
      program_of(*Registry<CollectiveAlgorithm>::instance().create(algorithm)->plan(kind, {ranks, 0})));
}

std::string with(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

// Rank 0 gives rank 1 its first chunk, and that its second one in return.
constexpr const char* kTrade = R"(<algo name="trade" nchannels="1" nchunksperloop="2" ngpus="2" coll="custom">
<gpu id="0" i_chunks="2" o_chunks="2"><tb id="0" send="1" recv="1" chan="0">
<step s="0" type="s" srcbuf="i" srcoff="0" cnt="1"/><step s="1" type="r" dstbuf="o" dstoff="1" cnt="1"/></tb></gpu>
<gpu id="1" i_chunks="2" o_chunks="2"><tb id="0" send="0" recv="0" chan="0">
<step s="0" type="s" srcbuf="i" srcoff="1" cnt="1"/><step s="1" type="r" dstbuf="o" dstoff="0" cnt="1"/></tb></gpu>
</algo>
)";

TEST_F(NetsimProgram, ProvesAProgram) {
  const std::string ring = text_of("ring", CollectiveKind::all_reduce, 4);
  write("ring.xml", ring);
  const Ended proved = run("--prove ring.xml");
  EXPECT_EQ(proved.code, 0) << proved.err;
  EXPECT_EQ(
      proved.out,
      "ring.xml: all_reduce 'ring' of 4 ranks: 1 channel, 4 thread blocks, 28 steps, 4 chunks, in place, "
      "Simple: proved\n");
  EXPECT_EQ(run("--prove ring.xml --quiet").out, "");
  write("trade.xml", kTrade);
  EXPECT_THAT(run("--prove trade.xml").out, HasSubstr("custom 'trade' of 2 ranks"));
}

TEST_F(NetsimProgram, RefusesAWrongProgram) {
  const std::string ring = text_of("ring", CollectiveKind::all_reduce, 4);
  // The addition that was removed is missing at the end.
  write("missing.xml", with(ring, "type=\"rrs\"", "type=\"rcs\""));
  expect_error("--prove missing.xml", ExitCode::input, {"missing.xml: all_reduce 'ring'", "refused: rank "});
  write("peer.xml", with(ring, "send=\"1\"", "send=\"7\""));
  expect_error("--prove peer.xml", ExitCode::input,
               {"peer.xml:3:6: <tb>: send is '7'; allowed: an integer from -1 to 3"});
  write("cut.xml", ring.substr(0, ring.size() / 2));
  expect_error("--prove cut.xml", ExitCode::input, {"cut.xml:", "no XML"});
  expect_error("--prove star.yaml", ExitCode::input, {"star.yaml: is a configuration of netsim"});
  expect_error("--prove nothing.xml", ExitCode::io, {"nothing.xml"});
  expect_error("--prove ''", ExitCode::usage, {"--prove"});
  expect_error("--prove a.xml --list", ExitCode::usage, {"--list and --prove exclude each other"});
}

// Runs workloads on the cluster of NetsimProgram in the process of the test.
class Programs : public NetsimProgram {
 protected:
  Results results_of(const std::string& workload, const std::string& assignment) const {
    SimulationSetup setup;
    setup.config = load_run(path("star.yaml"), RunOverrides{{assignment}, {}}).config;
    setup.workload = path(workload);
    setup.threads = 1;
    Results results = Simulation(std::move(setup)).run({});
    EXPECT_EQ(results.outcome, Outcome::done);
    return results;
  }
  // Returns the summary of two all-reduces of 30 MB.
  nlohmann::json summary_with(const std::string& algorithm) const {
    write("all_reduce.yaml", "{kind: collective, collective: all_reduce, bytes: 30 MB, repeat: 2}");
    return nlohmann::json::parse(
        summary_json(results_of("all_reduce.yaml", "collectives.all_reduce=" + algorithm)));
  }
  std::string from_file(const std::string& name) const { return "{kind: msccl, file: '" + path(name) + "'}"; }
};

// A ring that netsim wrote as an MSCCL program gives the same results as the built-in ring.
TEST_F(Programs, TheRingFromAFileTakesTheTimeOfTheRing) {
  write("ring.xml", text_of("ring", CollectiveKind::all_reduce, 4));
  EXPECT_EQ(summary_with("ring"), summary_with(from_file("ring.xml")));
}

// Programs that `--write-program` writes are proved, and give the results of the algorithm that they were
// written from, its parameters included.
TEST_F(Programs, WhatItWritesIsProvedAndTakesTheTimeOfTheAlgorithm) {
  for (const auto& [plan, algorithm] :
       {std::pair("ring", "ring"),
        std::pair("torus_2d --set dimensions=[2,2]", "{kind: torus_2d, dimensions: [2, 2]}"),
        std::pair("'{kind: multi_ring, rings: 2}'", "{kind: multi_ring, rings: 2}")}) {
    const std::string words = std::string("--write-program ") + plan + " --kind all_reduce --ranks 4";
    const Ended written = run(words + " --out plan.xml");
    ASSERT_EQ(written.code, 0) << written.err;
    EXPECT_THAT(written.out, HasSubstr("plan.xml: all_reduce '")) << plan;
    EXPECT_EQ(run("--prove plan.xml --quiet").code, 0);
    EXPECT_EQ(run(words).out, directory_.text("plan.xml")) << "without --out, on stdout";
    const nlohmann::json ours = summary_with(algorithm), theirs = summary_with(from_file("plan.xml"));
    EXPECT_EQ(ours["fingerprint"]["results"], theirs["fingerprint"]["results"]) << plan;
    EXPECT_EQ(ours["collectives"], theirs["collectives"]) << plan;
  }
}

// Any program that it reads: SCCL's JSON becomes MSCCL's XML.
TEST_F(NetsimProgram, WritesAProgramOfAnotherFormat) {
  write("trade.xml", kTrade);
  ASSERT_EQ(run("--write-program trade.xml --out again.xml").code, 0);
  EXPECT_THAT(run("--prove again.xml").out, HasSubstr("again.xml: custom 'trade' of 2 ranks"));
}

TEST_F(NetsimProgram, ShowsASchedule) {
  const Ended shown = run("--show-schedule ring --ranks 8 --out ring.svg");
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_THAT(shown.out,
              HasSubstr("\n    13  3>1     4>2     5>3     6>4     7>5     0>6     1>7     2>0\n"));
  EXPECT_THAT(directory_.text("ring.svg"), HasSubstr("<svg"));
  EXPECT_EQ(run("--show-schedule ring --ranks 8 --quiet").out, "");
  write("trade.xml", kTrade);
  EXPECT_THAT(run("--show-schedule trade.xml").out, HasSubstr("     0  i0>1:o0  i1>0:o1\n"));
  // A wrong one up to where it goes, then why.
  write("wrong.xml", with(text_of("ring", CollectiveKind::all_reduce, 4), "type=\"rrs\"", "type=\"r\""));
  write("lost.xml", with(text_of("ring", CollectiveKind::all_reduce, 4), "type=\"rrs\"", "type=\"rcs\""));
  expect_error("--show-schedule wrong.xml", ExitCode::input, {"wrong.xml:", "rank "});
  const Ended wrong = run("--show-schedule lost.xml");
  EXPECT_EQ(wrong.code, static_cast<int>(ExitCode::input));
  EXPECT_THAT(wrong.out, HasSubstr("     0  0"));
  EXPECT_THAT(wrong.err, HasSubstr("netsim: error: lost.xml: refused: rank "));
  expect_error("--write-program lost.xml", ExitCode::input,
               {"lost.xml: all_reduce 'ring'", "refused: rank "});
}

TEST_F(Programs, AProgramIsForItsCollectiveAndRanks) {
  write("ring.xml", text_of("ring", CollectiveKind::all_reduce, 3));
  write("wrong.xml", with(text_of("ring", CollectiveKind::all_reduce, 4), "type=\"rrs\"", "type=\"rcs\""));
  write("all_reduce.yaml", "{kind: collective, collective: all_reduce, bytes: 1 MB}");
  const auto run_with = [this](const std::string& assignment) {
    return [this, assignment] { results_of("all_reduce.yaml", "collectives." + assignment); };
  };
  EXPECT_THAT(run_with("all_reduce=" + from_file("ring.xml")),
              ThrowsMessage<InputError>(
                  AllOf(HasSubstr("all_reduce with 4 ranks: "), HasSubstr("ring.xml is for 3 ranks"))));
  EXPECT_THAT(run_with("all_gather=" + from_file("ring.xml")),
              ThrowsMessage<ConfigError>(HasSubstr("'msccl' with these parameters does not do all_gather")));
  EXPECT_THAT(run_with("all_reduce={kind: msccl}"), ThrowsMessage<ConfigError>(HasSubstr("file")));
  EXPECT_THAT(run_with("all_reduce=" + from_file("none.xml")), ThrowsMessage<IoError>(HasSubstr("none.xml")));
  EXPECT_THAT(run_with("all_reduce=" + from_file("wrong.xml")),
              ThrowsMessage<InputError>(
                  AllOf(HasSubstr("wrong.xml: all_reduce 'ring' of 4 ranks"), HasSubstr("refused: rank "))));
}

TEST_F(Programs, ACustomCollectiveIsWhatTheConfigurationNames) {
  write("trade.xml", kTrade);
  write("custom.yaml", "{kind: collective, collective: custom, bytes: 1 MB, ranks: 2}");
  EXPECT_EQ(results_of("custom.yaml", "collectives.custom=" + from_file("trade.xml")).collectives.size(), 1U);
  EXPECT_THAT(([this] { results_of("custom.yaml", "topology.hosts=4"); }),
              ThrowsMessage<InputError>(
                  AllOf(HasSubstr("of kind custom"), HasSubstr("names no algorithm: collectives.custom"))));
}

}  // namespace
}  // namespace netsim::test
