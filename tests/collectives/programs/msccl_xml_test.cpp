// Tests that programs of MSCCL are read as they are meant, and are the same when written and read back. Wrong
// ones are refused with a place.
#include "sim/collectives/programs/msccl_xml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/programs/one_peer_blocks.h"
#include "sim/collectives/programs/program_file.h"
#include "sim/core/errors.h"
#include "sim/core/output.h"
#include "sim/core/registry.h"
#include "tests/collectives/programs/plans.h"
#include "tests/support/mutations.h"
#include "tests/support/shared.h"

namespace netsim::msccl_xml_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// An all-reduce of two ranks that send each other all they have.
constexpr const char* kExchange =
    R"(<algo name="exchange" proto="LL" nchannels="1" nchunksperloop="2" ngpus="2" coll="allreduce" inplace="1">
  <gpu id="0" i_chunks="2" o_chunks="0" s_chunks="2">
    <tb id="0" send="1" recv="1" chan="0">
      <step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="s" dstoff="0" cnt="2" depid="-1" deps="-1" hasdep="1"/>
      <step s="1" type="r" srcbuf="i" srcoff="0" dstbuf="s" dstoff="0" cnt="2" depid="-1" deps="-1" hasdep="1"/>
    </tb>
    <tb id="1" send="-1" recv="-1" chan="0">
      <step s="0" type="nop" srcbuf="i" srcoff="-1" dstbuf="o" dstoff="-1" cnt="0" depid="0" deps="0" hasdep="0"/>
      <step s="1" type="re" srcbuf="s" srcoff="0" dstbuf="i" dstoff="0" cnt="2" depid="0" deps="1" hasdep="0"/>
    </tb>
  </gpu>
  <gpu id="1" i_chunks="2" o_chunks="0" s_chunks="2">
    <tb id="1" send="-1" recv="-1" chan="0">
      <step s="0" type="nop" srcbuf="i" srcoff="-1" dstbuf="o" dstoff="-1" cnt="0" depid="0" deps="0" hasdep="0"/>
      <step s="1" type="re" srcbuf="s" srcoff="0" dstbuf="i" dstoff="0" cnt="2" depid="0" deps="1" hasdep="0"/>
    </tb>
    <tb id="0" send="0" recv="0" chan="0">
      <step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="s" dstoff="0" cnt="2" depid="-1" deps="-1" hasdep="1"/>
      <step s="1" type="r" srcbuf="i" srcoff="0" dstbuf="s" dstoff="0" cnt="2" depid="-1" deps="-1" hasdep="1"/>
    </tb>
  </gpu>
</algo>
)";

// The text with the n-th `from` (from 0) replaced.
std::string with(std::string text, const std::string& from, const std::string& to, int nth = 0) {
  std::size_t at = text.find(from);
  for (; nth > 0 && at != std::string::npos; --nth) at = text.find(from, at + 1);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string error_of(const std::string& text) {
  try {
    read_msccl_xml(text, "a.xml");
  } catch (const InputError& error) {
    EXPECT_EQ(error.code(), ExitCode::input);
    return error.what();
  }
  return "none";
}

TEST(MscclXml, IsReadAsItStands) {
  const CollectiveProgram program = read_msccl_xml(kExchange, "a.xml");
  EXPECT_EQ(describe(program),
            "all_reduce 'exchange' of 2 ranks: 1 channel, 4 thread blocks, 8 steps, 2 chunks, in place, LL");
  const ProgramPlan plan(program);
  EXPECT_EQ(prove(plan), "");
  EXPECT_EQ(plan.scratch_chunks(1), 2U);
  EXPECT_EQ(plan.largest_count(), 2U);
  const Step receive = plan.step(1, 0, 1);
  EXPECT_EQ(receive.kind, Step::Kind::receive);
  EXPECT_EQ(receive.from.rank, 0U);
  EXPECT_EQ(receive.from.block, 0U);
  EXPECT_EQ(receive.destination.buffer, Buffer::scratch);
  EXPECT_EQ(receive.count, 2U);
  EXPECT_EQ(plan.step(1, 1, 0).kind, Step::Kind::nothing);
  EXPECT_EQ(plan.step(1, 1, 1).after_block, 0U);
  EXPECT_EQ(plan.step(1, 1, 1).after_step, 1U);
}

TEST(MscclXml, WhatFollowsTheProgramIsNoPartOfIt) {
  EXPECT_EQ(error_of(std::string(kExchange) + "Latency: 3 < 5 & more\n"), "none");
  EXPECT_EQ(error_of(std::string(kExchange) + kExchange),
            "a.xml:23:1: a second <algo>; allowed: one program a file");
}

TEST(MscclXml, SaysWhereItIsWrong) {
  const std::string text = kExchange;
  const auto wrong = [&](const std::string& from, const std::string& to, int nth = 0) {
    return error_of(with(text, from, to, nth));
  };
  // <algo>
  EXPECT_EQ(wrong("coll=\"allreduce\"", "coll=\"alltonext\""),
            "a.xml:1:2: <algo>: coll is 'alltonext'; allowed: allreduce, allgather, reduce_scatter, "
            "reducescatter, alltoall, broadcast, reduce, gather, scatter, custom");
  EXPECT_EQ(wrong("proto=\"LL\"", "proto=\"LL256\""),
            "a.xml:1:2: <algo>: proto is 'LL256'; allowed: LL, LL128, Simple");
  EXPECT_EQ(wrong("ngpus=\"2\"", "ngpus=\"3\""), "a.xml:1:2: <algo>: ngpus is 3, and there are 2 <gpu>");
  EXPECT_EQ(wrong("nchunksperloop=\"2\"", ""),
            "a.xml:1:2: <algo>: 'nchunksperloop' is missing; allowed: an integer from 1 to 4194304");
  EXPECT_EQ(
      error_of(with(with(text, "allreduce", "allgather"), "nchunksperloop=\"2\"", "nchunksperloop=\"3\"")),
      "a.xml:1:2: <algo>: 3 chunks; all_gather needs a multiple of its 2 ranks");
  // <gpu>, <tb>
  EXPECT_EQ(wrong("gpu id=\"1\"", "gpu id=\"0\""), "a.xml:12:4: <gpu>: id 0 is there twice");
  EXPECT_EQ(
      wrong("i_chunks=\"2\"", "i_chunks=\"1\""),
      "a.xml:2:4: <gpu>: i_chunks is '1'; allowed: 2, as nchunksperloop says, or 0 where it is not used");
  EXPECT_EQ(wrong("i_chunks=\"2\"", "i_chunks=\"0\""),
            "a.xml:2:4: <gpu>: i_chunks is '0', but steps use that buffer; allowed: 2");
  EXPECT_EQ(wrong("tb id=\"1\"", "tb id=\"2\""),
            "a.xml:7:6: <tb>: id is '2'; allowed: an integer from 0 to 1");
  EXPECT_EQ(wrong("send=\"1\"", "send=\"2\""),
            "a.xml:3:6: <tb>: send is '2'; allowed: an integer from -1 to 1");
  EXPECT_EQ(wrong("send=\"1\"", "send=\"0\""),
            "a.xml:3:6: <tb>: rank 0, thread block 0: sends to rank 0, which is its own");
  EXPECT_EQ(wrong("chan=\"0\"", "chan=\"1\""),
            "a.xml:3:6: <tb>: chan is '1'; allowed: an integer from 0 to 0");
  EXPECT_EQ(wrong("send=\"-1\"", "send=\"1\""),
            "a.xml:7:6: <tb>: rank 0, thread block 1: sends to rank 1 on channel 0, as thread block 0 does; "
            "one may");
  EXPECT_EQ(wrong("<tb id=\"0\"", "<op/><tb id=\"0\""), "a.xml:3:6: <op>: unknown in <gpu>; allowed: <tb>");
  // <step>
  EXPECT_EQ(wrong("type=\"r\"", "type=\"d\""),
            "a.xml:5:8: <step>: type is 'd'; allowed: nop, s, r, cpy, re, rcs, rrs, rrc, rrcs");
  EXPECT_EQ(wrong(" s=\"1\"", " s=\"2\""),
            "a.xml:5:8: <step>: s is '2'; allowed: 1, because steps are numbered from 0");
  EXPECT_EQ(wrong("srcbuf=\"s\"", "srcbuf=\"t\""), "a.xml:9:8: <step>: srcbuf is 't'; allowed: i, o, s");
  EXPECT_EQ(wrong("cnt=\"2\"", "cnt=\"0\""),
            "a.xml:4:8: <step>: cnt is '0'; allowed: an integer from 1 to 4194304");
  EXPECT_EQ(wrong("srcoff=\"0\"", "srcoff=\"1\""),
            "a.xml:4:8: <step>: rank 0, thread block 0, step 0: chunks 1 to 2 of the input, which has 2");
  EXPECT_EQ(wrong("dstoff=\"0\"", "dstoff=\"5\"", 1),
            "a.xml:5:8: <step>: rank 0, thread block 0, step 1: chunks 5 to 6 of the scratch, which has 2");
  EXPECT_EQ(wrong("send=\"1\"", "send=\"-1\""),
            "a.xml:4:8: <step>: rank 0, thread block 0, step 0: sends, but its thread block has no rank to "
            "send to");
  EXPECT_EQ(
      wrong("depid=\"0\" deps=\"0\"", "depid=\"2\" deps=\"0\""),
      "a.xml:8:8: <step>: rank 0, thread block 1, step 0: waits for step 0 of thread block 2; the rank has 2 "
      "thread blocks");
  EXPECT_EQ(wrong("depid=\"0\" deps=\"1\"", "depid=\"0\" deps=\"9\""),
            "a.xml:9:8: <step>: rank 0, thread block 1, step 1: waits for step 9 of thread block 0, which "
            "has 2 steps");
  EXPECT_EQ(wrong("depid=\"0\" deps=\"1\"", "depid=\"1\" deps=\"1\""),
            "a.xml:9:8: <step>: rank 0, thread block 1, step 1: waits for step 1 of thread block 1, which is "
            "its own");
  EXPECT_EQ(wrong("hasdep=\"1\"", "hasdep=\"0\"", 1),
            "a.xml:9:8: <step>: waits for step 1 of thread block 0, whose hasdep is '0'");
}

TEST(MscclXml, SaysWhichMessageIsWrong) {
  const std::string text = kExchange;
  // Rank 1 sends less, more, or other chunks than rank 0 receives.
  const std::string second_send = "<step s=\"0\" type=\"s\"";
  EXPECT_EQ(error_of(with(text, second_send, "<step s=\"0\" type=\"nop\"", 1)),
            "a.xml:5:8: <step>: rank 0, thread block 0, step 1: receives a message more than rank 1, thread "
            "block 0 "
            "sends");
  EXPECT_EQ(
      error_of(with(text, "type=\"r\"", "type=\"s\"")),
      "a.xml:5:8: <step>: rank 0, thread block 0, step 1: sends a message more than rank 1, thread block 0 "
      "receives");
  EXPECT_EQ(error_of(with(text, "cnt=\"2\"", "cnt=\"1\"")),
            "a.xml:4:8: <step>: rank 0, thread block 0, step 0: sends 1 chunks where rank 1, thread block 0, "
            "step 1 receives 2");
  EXPECT_EQ(
      error_of(with(text, "recv=\"0\"", "recv=\"-1\"")),
      "a.xml:19:8: <step>: rank 1, thread block 0, step 1: receives, but its thread block has no rank to "
      "receive from");
  EXPECT_EQ(error_of(with(with(text, "nchannels=\"1\"", "nchannels=\"2\""), "chan=\"0\"", "chan=\"1\"")),
            "a.xml:4:8: <step>: rank 0, thread block 0, step 0: sends to rank 1 on channel 1, where no "
            "thread block "
            "receives from rank 0");
}

TEST(MscclXml, RefusesWhatIsBroken) {
  test::expect_sane(kExchange, [](const std::string& text) { read_program(text, "a.xml"); });
  EXPECT_EQ(error_of("<algos/>"), "a.xml:1:1: expected the element 'algo', 'algos' was given");
  EXPECT_THAT(error_of(std::string(kExchange).substr(0, 700)), HasSubstr("a.xml:9:"));
  EXPECT_THAT(error_of(std::string("\x7f"
                                   "ELF\0\0\1",
                                   7)),
              HasSubstr("a.xml:1:"));
}

// Input and output are one memory in place, so there is nothing to copy; else it is a step.
TEST(MscclXml, OldCopiesAreSteps) {
  const std::string gather = R"(<algo nchannels="1" nchunksperloop="2" ngpus="2" coll="allgather" inplace="0">
<gpu id="0" i_chunks="1" o_chunks="2"><copy i_off="0" o_off="0"/><tb id="0" send="1" recv="1" chan="0">
<step s="0" type="s" srcbuf="i" srcoff="0" cnt="1"/><step s="1" type="r" dstbuf="o" dstoff="1" cnt="1"/></tb></gpu>
<gpu id="1" i_chunks="1" o_chunks="2"><copy i_off="0" o_off="1"/><tb id="0" send="0" recv="0" chan="0">
<step s="0" type="s" srcbuf="i" srcoff="0" cnt="1"/><step s="1" type="r" dstbuf="o" dstoff="0" cnt="1"/></tb></gpu>
</algo>)";
  const CollectiveProgram apart = read_msccl_xml(gather, "a.xml");
  EXPECT_EQ(prove(apart), "");
  ASSERT_EQ(apart.ranks[1].blocks.size(), 2U);
  EXPECT_EQ(apart.ranks[1].blocks[1].steps[0].kind, Step::Kind::copy);
  EXPECT_NE(prove(read_msccl_xml(with(gather, "<copy i_off=\"0\" o_off=\"1\"/>", ""), "a.xml")), "");
  const CollectiveProgram together = read_msccl_xml(with(gather, "inplace=\"0\"", "inplace=\"1\""), "a.xml");
  EXPECT_EQ(prove(together), "");
  EXPECT_EQ(together.ranks[1].blocks.size(), 1U);
  EXPECT_EQ(error_of(with(gather, "o_off=\"1\"", "o_off=\"2\"")),
            "a.xml:4:2: <gpu>: rank 1, thread block 1, step 0: chunks 2 to 2 of the output, which has 2");
}

// Without an attribute that says it.
TEST(MscclXml, FindsTheRoot) {
  const auto chain = Registry<CollectiveAlgorithm>::instance().create("chain");
  for (const CollectiveKind kind : {CollectiveKind::broadcast, CollectiveKind::reduce}) {
    const std::string text = write_msccl_xml(program_of(*chain->plan(kind, {4, 2})));
    EXPECT_EQ(read_msccl_xml(text, "a.xml").root, 2U);
    EXPECT_EQ(read_msccl_xml(with(text, " root=\"2\"", ""), "a.xml").root, 2U);
  }
}

TEST(MscclXml, KeepsWhatAPlanDoesNotSay) {
  CollectiveProgram program = read_msccl_xml(kExchange, "a.xml");
  program.name = "<\"&\n>";
  program.least_bytes = 64;
  program.most_bytes = 1 << 20;
  const CollectiveProgram back = read_msccl_xml(write_msccl_xml(program), "b.xml");
  EXPECT_EQ(back.name, program.name);
  EXPECT_EQ(back.protocol, Protocol::ll);
  EXPECT_EQ(back.least_bytes, 64);
  EXPECT_EQ(back.most_bytes, 1 << 20);
}

TEST(MscclXml, TheProgramsOfOthersAreProvedAndWrittenBackTheSame) {
  NETSIM_NEEDS_SHARED("samples/msccl_xml");
  std::vector<std::string> files = test::shared_files("samples/msccl_xml", ".xml");
  for (const std::string& file : test::shared_files("samples/sccl_json", ".xml")) files.push_back(file);
  std::size_t proved = 0;
  for (const std::string& file : files) {
    SCOPED_TRACE(file);
    const CollectiveProgram program = read_program(read_file(file, kLargestProgram), file);
    const ProgramPlan plan(program);
    const CollectiveProgram back = read_msccl_xml(write_msccl_xml(program), "back");
    test::expect_equal(plan, ProgramPlan(back));
    if (file.find("/negative/") != std::string::npos) continue;
    EXPECT_EQ(prove(plan), "");
    ++proved;
  }
  EXPECT_EQ(proved, 29U);
}

// It adds some contributions twice; its own author's check says so.
TEST(MscclXml, AWrongProgramOfOthersIsRefused) {
  NETSIM_NEEDS_SHARED("samples/msccl_xml/negative");
  for (const std::string& file : test::shared_files("samples/msccl_xml/negative", ".xml")) {
    const std::string wrong = prove(read_program(read_file(file), file));
    EXPECT_THAT(wrong, AllOf(HasSubstr("rank 1 thread block 6 step 3"), HasSubstr("adds contributions")))
        << file;
  }
}

}  // namespace
}  // namespace netsim::msccl_xml_test
