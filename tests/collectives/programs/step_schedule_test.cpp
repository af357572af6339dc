// Do schedules by steps (SCCL, TACCL, TE-CCL) become programs that are proved, and are wrong ones refused
// where they are wrong?
#include "sim/collectives/programs/step_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "sim/collectives/programs/msccl_xml.h"
#include "sim/collectives/programs/program_file.h"
#include "sim/collectives/programs/sccl_json.h"
#include "sim/collectives/programs/teccl_json.h"
#include "sim/core/errors.h"
#include "sim/core/output.h"
#include "tests/support/mutations.h"
#include "tests/support/shared.h"

namespace netsim::step_schedule_test {
namespace {

using ::testing::HasSubstr;

// Reduce-scatter by exchange, then all-gather the same way; 2 ranks, an address each half.
constexpr const char* kAllReduce = R"json({"sccl_type": "algorithm", "name": "halves",
"input_map": {"0": [0, 1], "1": [0, 1]}, "output_map": {"0": [0, 1], "1": [0, 1]},
"steps": [{"rounds": 1, "sends": [[1, 0, 1, 0, 0, "rrc"], [0, 1, 0]]},
 {"rounds": 1, "sends": [[0, 0, 1], [1, 1, 0]]}],
"collective": {"name": "Allreduce(n=2)",
                     "nodes" : 2, "runtime_name" : "allreduce"
}
})json";

// Rank 1 passes on what rank 0 has for rank 2, and its own.
constexpr const char* kAllToAll = R"json({"msccl_type": "algorithm", "name": "line",
"input_map": {"0": [0, 3, 6], "1": [1, 4, 7], "2": [2, 5, 8]},
"output_map": {"0": [0, 1, 2], "1": [3, 4, 5], "2": [6, 7, 8]},
"steps": [{"sends": [[6, 0, 1], [3, 0, 1], [1, 1, 0], [7, 1, 2], [5, 2, 1], [2, 2, 1]]},
 {"sends": [[6, 1, 2], [2, 1, 0]]}],
"collective": {"name": "Alltoall(n=3)", "nodes": 3
}
})json";

// With all that SCCL writes: chunks, which say again what the maps do, and what it was found for.
constexpr const char* kSwap = R"json({"msccl_type": "algorithm", "name": "swap",
"instance": {"steps": 1, "extra_rounds": 0, "chunks": 1, "pipeline": null, "extra_memory": null, "allow_exchange": false},
"input_map": {"0": [0], "1": [1]}, "output_map": {"0": [0, 1], "1": [0, 1]},
"steps": [{"rounds": 1, "sends": [[0, 0, 1, 10.5, 0, null], [1, 1, 0, 10.5, 0, null]]}],
"collective": {"name": "Allgather(n=2)", "nodes": 2, "chunks": [
 {"pre": [0], "post": [0, 1], "addr": 0},
 {"pre": [1], "post": [1, 0], "addr": 1}],
"triggers": {"0": {"1": 0}}, "runtime_name": null},
"topology": {"name": "pair", "links": [[0, 1], [2, 0]], "switches": [[[0], [1], 1, "out"]]}})json";

// Two chunks of the one address, a rank's each.
constexpr const char* kSum = R"json({"msccl_type": "algorithm", "name": "sum",
"input_map": {"0": [0], "1": [0]}, "output_map": {"0": [0], "1": [0]},
"steps": [{"sends": [[0, 0, 1], [0, 1, 0]]}],
"collective": {"name": "Allreduce(n=2)", "nodes": 2, "chunks": [
 {"pre": [0], "post": [0, 1], "addr": 0},
 {"pre": [1], "post": [0, 1], "addr": 0}]}})json";

constexpr const char* kGather = R"json({"1-Epoch_Duration": 1.0,
"6-Demand_Met": {"GPU 1": {"GPU 2": {"Chunk 0": 1.0}, "GPU 10": {"Chunk 0": 1.0}},
 "GPU 2": {"GPU 1": {"Chunk 0": 1.0}, "GPU 10": {"Chunk 0": 2.0}},
 "GPU 10": {"GPU 1": {"Chunk 0": 1.0}, "GPU 2": {"Chunk 0": 2.0}}},
"7-Flows": ["Chunk 0 from 1 traveled over 1->2 in epoch 0", "Chunk 0 from 2 traveled over 2->1 in epoch 0 via switches 0",
 "Chunk 0 from 1 traveled over 1->10 in epoch 0", "Chunk 0 from 10 traveled over 10->1 in epoch 0",
 "Chunk 0 from 10 traveled over 1->2 in epoch 2", "Chunk 0 from 2 traveled over 1->10 in epoch 1"]})json";

// An example of the other layout: no Demand_Met, the number of flows, volumes. Rank 1 forwards halves between
// 0 and 4, which also use a switch (2). Both halves of 0's chunk take the same link in one epoch; the flows
// list it once.
constexpr const char* kExchange = R"json({"1-Epoch_Duration": 1.0,
"6-Flows": ["Chunk 2 from 0 traveled over 0->1 with volume 0.5 in epoch 0"],
"7-Chunk paths": {
"Demand at 4 for chunk 2 from 0 met by epoch 5": [
 [[0, "0->1 with volume 0.5 in epoch 0"], [2, "1->4 with volume 0.5 in epoch 2"]],
 [[0, "0->1 with volume 0.5 in epoch 0"], [5, "1->4 with volume 0.5 in epoch 5 via switches 2"]]],
"Demand at 0 for chunk 0 from 4 met by epoch 1": [[[0, "4->1 with volume 0.25 in epoch 0"], [1, "1->0 with volume 0.25 in epoch 1"]],
 [[1, "4->0 with volume 0.7499999999999999 in epoch 1 via switches 2"]]],
"Demand at 1 for chunk 1 from 0 met by epoch 0": [[[0, "0->1 with volume 1.0 in epoch 0"]]],
"Demand at 0 for chunk 0 from 1 met by epoch 0": [[[0, "1->0 with volume 1.0 in epoch 0"]]],
"Demand at 1 for chunk 1 from 4 met by epoch 0": [[[0, "4->1 with volume 1.0 in epoch 0"]]],
"Demand at 4 for chunk 2 from 1 met by epoch 0": [[[0, "1->4 with volume 1.0 in epoch 0"]]]}})json";

std::string with(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string error_of(const std::string& text) {
  try {
    read_program(text, "a.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "none";
}

TEST(StepSchedules, WhatArrivesIsAddedOrReplaces) {
  const CollectiveProgram program = read_sccl_json(kAllReduce, "a.json");
  EXPECT_EQ(
      describe(program),
      "all_reduce 'halves' of 2 ranks: 1 channel, 4 thread blocks, 8 steps, 2 chunks, in place, Simple");
  EXPECT_EQ(prove(program), "");
  std::string kinds;
  for (const CollectiveProgramBlock& block : program.ranks[0].blocks) {
    for (const Step& step : block.steps) kinds += std::string(to_string(step.kind)) + " ";
  }
  EXPECT_EQ(kinds, "s s rrc r ");
}

// The maps are sets: ncclize sorts both (sccl/ncclize.py), so files may have any order.
TEST(StepSchedules, MapsMayBeInAnyOrder) {
  constexpr const char* kGatherOfFour = R"json({"sccl_type": "algorithm", "name": "swap",
"input_map": {"1": [3, 2], "0": [1, 0]}, "output_map": {"0": [2, 0, 3, 1], "1": [3, 1, 0, 2]},
"steps": [{"rounds": 1, "sends": [[1, 0, 1], [0, 0, 1], [3, 1, 0], [2, 1, 0]]}],
"collective": {"name": "Allgather(n=2)", "nodes": 2}})json";
  const std::string sorted =
      with(with(kGatherOfFour, "\"1\": [3, 2], \"0\": [1, 0]", "\"0\": [0, 1], \"1\": [2, 3]"),
           "\"0\": [2, 0, 3, 1], \"1\": [3, 1, 0, 2]", "\"0\": [0, 1, 2, 3], \"1\": [0, 1, 2, 3]");
  const auto xml_of = [](const std::string& json) { return write_msccl_xml(read_sccl_json(json, "a.json")); };
  EXPECT_EQ(prove(read_sccl_json(kGatherOfFour, "a.json")), "");
  EXPECT_EQ(xml_of(kGatherOfFour), xml_of(sorted));
  const std::string allreduce = with(with(kAllToAll, "[0, 3, 6]", "[6, 0, 3]"), "[3, 4, 5]", "[5, 4, 3]");
  EXPECT_EQ(prove(read_sccl_json(allreduce, "a.json")), "");
  EXPECT_EQ(xml_of(allreduce), xml_of(kAllToAll));
  EXPECT_EQ(xml_of(with(kAllReduce, "\"1\": [0, 1]}, \"output_map\"", "\"1\": [1, 0]}, \"output_map\"")),
            xml_of(kAllReduce));
}

// TE-CCL's demands, flows and paths are objects and lists without an order of their own.
TEST(StepSchedules, DemandsMayBeInAnyOrder) {
  const std::string allreduce = with(
      kGather,
      "\"GPU 1\": {\"GPU 2\": {\"Chunk 0\": 1.0}, \"GPU 10\": {\"Chunk 0\": 1.0}},\n \"GPU 2\": {\"GPU 1\": "
      "{\"Chunk 0\": 1.0}, \"GPU 10\": {\"Chunk 0\": 2.0}}",
      "\"GPU 2\": {\"GPU 10\": {\"Chunk 0\": 2.0}, \"GPU 1\": {\"Chunk 0\": 1.0}},\n \"GPU 1\": {\"GPU 10\": "
      "{\"Chunk 0\": 1.0}, \"GPU 2\": {\"Chunk 0\": 1.0}}");
  EXPECT_EQ(write_msccl_xml(read_program(allreduce, "a.json")),
            write_msccl_xml(read_program(kGather, "a.json")));
}

TEST(StepSchedules, WhatIsPassedOnLiesInScratch) {
  const CollectiveProgram program = read_sccl_json(kAllToAll, "a.json");
  EXPECT_EQ(prove(program), "");
  EXPECT_FALSE(program.in_place);
  // Chunk 2 of rank 0's input and chunk 0 of rank 2's, each where it is as large.
  EXPECT_EQ(program.ranks[1].scratch_chunks, 3U);
  EXPECT_EQ(program.ranks[0].scratch_chunks, 0U);
}

TEST(StepSchedules, RanksOfTeCclAreGpusInOrder) {
  const CollectiveProgram program = read_teccl_json(kGather, "a.json");
  EXPECT_EQ(prove(program), "");
  EXPECT_EQ(program.ranks.size(), 3U);
}

TEST(StepSchedules, PartsOfChunksGoByTheirPaths) {
  const CollectiveProgram program = read_teccl_json(kExchange, "a.json");
  EXPECT_EQ(prove(program), "");
  EXPECT_EQ(program.kind, CollectiveKind::all_to_all);
  EXPECT_EQ(program.ranks.size(), 3U);
  EXPECT_EQ(program.chunks, 12U);  // of three chunks, quarters
  EXPECT_FALSE(program.in_place);
}

// All volumes are 1, as where the epochs are as long as the slowest link takes.
TEST(StepSchedules, AnAllToAllOfWholeChunksHasNoParts) {
  std::string text =
      with(kExchange, R"([[[0, "4->1 with volume 0.25 in epoch 0"], [1, "1->0 with volume 0.25 in epoch 1"]],
 [[1, "4->0 with volume 0.7499999999999999 in epoch 1 via switches 2"]]])",
           R"(["4->1 in epoch 0", "1->0 in epoch 1"])");
  text = with(text, R"( [[0, "0->1 with volume 0.5 in epoch 0"], [2, "1->4 with volume 0.5 in epoch 2"]],
 [[0, "0->1 with volume 0.5 in epoch 0"], [5, "1->4 with volume 0.5 in epoch 5 via switches 2"]]])",
              R"([[0, "0->4 with volume 1 in epoch 0"]]])");
  const CollectiveProgram program = read_teccl_json(text, "a.json");
  EXPECT_EQ(prove(program), "");
  EXPECT_EQ(program.chunks, 3U);
}

TEST(StepSchedules, WhoGetsWhatIsThatOfThePathsOrOfDemandMet) {
  constexpr const char* kPaths = R"json({"1-Epoch_Duration": 1.0, "6-Flows": [
"Chunk 0 from 0 traveled over 0->1 with volume 1.0 in epoch 0", "Chunk 0 from 1 traveled over 1->2 with volume 1.0 in epoch 0",
"Chunk 0 from 2 traveled over 2->0 with volume 1.0 in epoch 0", "Chunk 0 from 0 traveled over 1->2 with volume 1.0 in epoch 1",
"Chunk 0 from 1 traveled over 2->0 with volume 1.0 in epoch 1", "Chunk 0 from 2 traveled over 0->1 with volume 1.0 in epoch 1"],
"7-Chunk paths": {
"Demand at 0 for chunk 0 from 1 met by epoch 1": ["1->2 with volume 1.0 in epoch 0", "2->0 with volume 1.0 in epoch 1"],
"Demand at 0 for chunk 0 from 2 met by epoch 0": ["2->0 with volume 1.0 in epoch 0"],
"Demand at 1 for chunk 0 from 0 met by epoch 1": ["0->1 with volume 1.0 in epoch 0"],
"Demand at 1 for chunk 0 from 2 met by epoch 0": ["2->0 with volume 1.0 in epoch 0", "0->1 with volume 1.0 in epoch 1"],
"Demand at 2 for chunk 0 from 0 met by epoch 1": ["0->1 with volume 1.0 in epoch 0", "1->2 with volume 1.0 in epoch 1"],
"Demand at 2 for chunk 0 from 1 met by epoch 0": ["1->2 with volume 1.0 in epoch 0"]}})json";
  const CollectiveProgram gather = read_teccl_json(kPaths, "a.json");
  EXPECT_EQ(prove(gather), "");
  EXPECT_EQ(gather.kind, CollectiveKind::all_gather);
  EXPECT_THAT(error_of(with(kPaths, "over 1->2 with volume 1.0", "over 1->2 with volume 0.5")),
              HasSubstr("a.json:2:65: 6-Flows.1: 'Chunk 0 from 1 traveled over 1->2 with volume 0.5 in epoch "
                        "0': a part of a chunk, and it is not known which part; allowed: whole chunks"));
  // Two chunks of each pair of two GPUs, by flows alone.
  constexpr const char* kMet = R"json({"1-Epoch_Duration": 1.0,
"6-Demand_Met": {"GPU 3": {"GPU 7": {"Chunk 0": 1.0, "Chunk 3": 2.0}, "GPU 8": {"Chunk 0": 1.0, "Chunk 3": 2.0}},
 "GPU 7": {"GPU 3": {"Chunk 1": 1.0, "Chunk 4": 2.0}, "GPU 8": {"Chunk 1": 1.0, "Chunk 4": 2.0}},
 "GPU 8": {"GPU 3": {"Chunk 2": 1.0, "Chunk 5": 2.0}, "GPU 7": {"Chunk 2": 1.0, "Chunk 5": 2.0}}},
"7-Flows": ["Chunk 0 from 7 traveled over 7->3 in epoch 0", "Chunk 3 from 7 traveled over 7->3 in epoch 1",
 "Chunk 0 from 8 traveled over 8->3 in epoch 0", "Chunk 3 from 8 traveled over 8->3 in epoch 1",
 "Chunk 1 from 3 traveled over 3->7 in epoch 0", "Chunk 4 from 3 traveled over 3->7 in epoch 1",
 "Chunk 1 from 8 traveled over 8->7 in epoch 0", "Chunk 4 from 8 traveled over 8->7 in epoch 1",
 "Chunk 2 from 3 traveled over 3->8 in epoch 0", "Chunk 5 from 3 traveled over 3->7 in epoch 1",
 "Chunk 5 from 3 traveled over 7->8 in epoch 2",
 "Chunk 2 from 7 traveled over 7->8 in epoch 0", "Chunk 5 from 7 traveled over 7->8 in epoch 1"]})json";
  const CollectiveProgram exchange = read_teccl_json(kMet, "a.json");
  EXPECT_EQ(prove(exchange), "");
  EXPECT_EQ(exchange.kind, CollectiveKind::all_to_all);
  EXPECT_EQ(exchange.chunks, 6U);
  EXPECT_NE(prove(read_teccl_json(with(kMet, "over 7->8 in epoch 2", "over 7->3 in epoch 2"), "a.json")), "");
}

// The paths of an all-gather say nothing new, so they are to say the same.
TEST(StepSchedules, PathsOfAnAllGatherAgreeWithItsFlows) {
  constexpr const char* kPair = R"json({"1-Epoch_Duration": 1.0,
"6-Demand_Met": {"GPU 0": {"GPU 1": {"Chunk 0": 1.0}}, "GPU 1": {"GPU 0": {"Chunk 0": 2.0}}},
"7-Flows": ["Chunk 0 from 0 traveled over 0->1 in epoch 1", "Chunk 0 from 1 traveled over 1->0 in epoch 0"],
"8-Chunk paths": {"Demand at 0 for chunk 0 from 1 met by epoch 0": ["1->0 in epoch 0"],
"Demand at 1 for chunk 0 from 0 met by epoch 1": ["0->1 in epoch 1"]}})json";
  EXPECT_EQ(prove(read_teccl_json(kPair, "a.json")), "");
  const auto wrong = [](const std::string& from, const std::string& to) {
    return error_of(with(kPair, from, to));
  };
  EXPECT_THAT(
      wrong("\"Chunk 0\": 2.0", "\"Chunk 0\": \"2.0\""),
      HasSubstr("a.json:2:87: 6-Demand_Met.GPU 1.GPU 0.Chunk 0: '2.0' was given; allowed: a time from 0"));
  EXPECT_THAT(wrong("\"Chunk 0\": 2.0", "\"Chunk 0\": -2.0"), HasSubstr("allowed: a time from 0 on"));
  EXPECT_THAT(wrong("\"Chunk 0\": 2.0", "\"Chunk 0\": {}"),
              HasSubstr("an object was given; allowed: a time from 0 on"));
  EXPECT_THAT(wrong("[\"0->1 in epoch 1\"]", "7"), HasSubstr("'7' was given; allowed: a list of paths"));
  EXPECT_THAT(wrong("[\"0->1 in epoch 1\"]", "[]"),
              HasSubstr("an empty list was given; allowed: a list of paths"));
  EXPECT_THAT(wrong("[\"0->1 in epoch 1\"]", "[\"0->1 in epoch 0\"]"),
              HasSubstr("'0->1 in epoch 0': no flow of chunk 0 of GPU 0 matches; allowed: only demands that "
                        "'N-Flows' meets"));
  EXPECT_THAT(wrong("[\"0->1 in epoch 1\"]", "[\"1->0 in epoch 0\"]"),
              HasSubstr("begins at GPU 1; allowed: GPU 0, where the chunk is"));
  EXPECT_THAT(wrong("Demand at 1 for chunk 0", "Demand at 1 for chunk 3"),
              HasSubstr("no GPU there demands it"));
  EXPECT_THAT(wrong(",\n\"Demand at 1 for chunk 0 from 0 met by epoch 1\": [\"0->1 in epoch 1\"]", ""),
              HasSubstr("a.json:4:18: 8-Chunk paths: no path of chunk 0 of GPU 0 to GPU 1"));
}

TEST(StepSchedules, AWrongAllToAllIsRefusedWhereItIsWrong) {
  const auto wrong = [](const std::string& from, const std::string& to) {
    return error_of(with(kExchange, from, to));
  };
  EXPECT_THAT(
      wrong("1->4 with volume 0.5 in epoch 5", "4->1 with volume 0.5 in epoch 5"),
      HasSubstr("a.json:6:47: 7-Chunk paths.Demand at 4 for chunk 2 from 0 met by epoch 5.1.1.1: '4->1 with "
                "volume 0.5 in epoch 5 via switches 2' begins at GPU 4; allowed: GPU 1, where the chunk is"));
  EXPECT_THAT(wrong("1->4 with volume 0.5 in epoch 5", "1->0 with volume 0.5 in epoch 5"),
              HasSubstr("the path ends at GPU 0; allowed: GPU 4"));
  EXPECT_THAT(wrong("1->4 with volume 0.5 in epoch 5", "1->4 with volume 0.4 in epoch 5"),
              HasSubstr("volume 0.400000, and 0.500000 before; allowed: one volume"));
  EXPECT_THAT(wrong("1->4 with volume 0.5 in epoch 5", "1->4 with volume 0.5 in epoch 0"),
              HasSubstr("rank 1 sends address 10, which it does not have when the step begins"));
  EXPECT_THAT(wrong("1->4 with volume 0.5 in epoch 5", "1->4 with volume x in epoch 5"),
              HasSubstr("allowed: 'G->G [with volume V] in epoch E'"));
  EXPECT_THAT(wrong("[5, \"1->4", "[{}, \"1->4"),
              HasSubstr("1.1.0: an object was given; allowed: an epoch from 0"));
  EXPECT_THAT(wrong("0.7499999999999999", "0.5"),
              HasSubstr("of chunk 0 of GPU 4 3 of 4 parts go to GPU 0; allowed: all"));
  EXPECT_THAT(wrong("0.7499999999999999", "1.0"), HasSubstr("chunk 0 of GPU 4 goes more than once"));
  EXPECT_THAT(wrong("0.7499999999999999", "0.7432109"),
              HasSubstr("multiples of one part of a chunk; allowed: 1/P"));
  EXPECT_THAT(wrong("Demand at 4 for chunk 2 from 1 met", "Demand at 4 for chunk 1 from 0 met"),
              HasSubstr("GPU 1 and GPU 4 get chunk 1 of GPU 0, and others do not; allowed: an all-gather"));
  EXPECT_THAT(wrong("Demand at 4 for chunk 2 from 1 met", "Demand at 4 for chunk 3 from 0 met"),
              HasSubstr("allowed: an all-gather"));
  EXPECT_THAT(wrong("Demand at 4 for chunk 2 from 1 met", "Wish of 4 met"),
              HasSubstr("'Wish of 4 met by epoch 0' was given; allowed: 'Demand at G"));
  EXPECT_THAT(wrong("7-Chunk paths", "7-Ways"), HasSubstr("does not state which GPU gets which chunk"));
}

TEST(StepSchedules, ChunksAgreeWithTheMaps) {
  EXPECT_EQ(prove(read_sccl_json(kSwap, "a.json")), "");
  EXPECT_EQ(prove(read_sccl_json(kSum, "a.json")), "");
  const auto wrong = [](const std::string& text, const std::string& from, const std::string& to) {
    return error_of(with(text, from, to));
  };
  const std::string swap = kSwap, sum = kSum;
  const std::size_t begin = swap.find("[\n {\"pre\""), end = swap.find("],\n\"triggers\"");
  const std::string all = swap.substr(begin, end + 1 - begin);
  EXPECT_THAT(wrong(swap, all, "[]"),
              HasSubstr("a.json:5:64: collective.chunks: no chunk of address 0 begins at rank 0, which has "
                        "it in input_map; allowed: one of each address"));
  EXPECT_THAT(wrong(swap, all, "null"), HasSubstr("collective.chunks: null was given; allowed: a list"));
  EXPECT_THAT(wrong(swap, all, "[null]"),
              HasSubstr("collective.chunks.0: null was given; allowed: an object"));
  EXPECT_THAT(wrong(swap, "\"post\": [0, 1]", "\"post\": []"),
              HasSubstr("a.json:6:23: collective.chunks.0.post: 0 ranks given, and not rank 0, which has "
                        "address 0 in output_map; allowed: all that have it there"));
  EXPECT_THAT(wrong(swap, "\"post\": [0, 1]", "\"past\": [0, 1]"), HasSubstr("'post' is missing"));
  EXPECT_THAT(wrong(swap, "\"post\": [0, 1]", "\"post\": [0, 0, 1]"),
              HasSubstr("collective.chunks.0.post.1: rank 0 was given twice; allowed: once"));
  EXPECT_THAT(wrong(swap, "\"pre\": [0]", "\"pre\": [3]"),
              HasSubstr("collective.chunks.0.pre.0: '3' was given; allowed: an integer from 0 to 1"));
  EXPECT_THAT(wrong(swap, "\"pre\": [0]", "\"pre\": [1]"),
              HasSubstr("rank 1 was given, which does not have address 0 in input_map; allowed: ranks"));
  EXPECT_THAT(wrong(swap, "\"pre\": [0]", "\"pre\": 0"), HasSubstr("'0' was given; allowed: a list"));
  EXPECT_THAT(wrong(swap, "\"pre\": [0]", "\"pre\": []"), HasSubstr("0 ranks given, and not rank 0"));
  EXPECT_THAT(wrong(swap, "\"addr\": 1", "\"addr\": \"x\""),
              HasSubstr("a.json:7:39: collective.chunks.1.addr: 'x' was given; allowed: an integer from 0"));
  EXPECT_THAT(wrong(swap, "\"addr\": 1", "\"addr\": 2"),
              HasSubstr("'2' was given; allowed: an address that input_map has"));
  EXPECT_THAT(
      wrong(swap, ",\n {\"pre\": [1]", ",\n {\"pre\": [0], \"post\": [0, 1], \"addr\": 0}, {\"pre\": [1]"),
      HasSubstr("address 0 was given, of which another chunk begins at rank 0; allowed: one"));
  EXPECT_THAT(wrong(sum, "\"pre\": [1]", "\"pre\": [0, 1]"),
              HasSubstr("2 ranks given; allowed: one, because the all_reduce adds up the chunks"));
  EXPECT_THAT(wrong(sum, "\"pre\": [1]", "\"pre\": [0]"),
              HasSubstr("address 0 was given, of which another chunk begins at rank 0; allowed: one"));
  EXPECT_THAT(wrong(sum, ",\n {\"pre\": [1], \"post\": [0, 1], \"addr\": 0}", ""),
              HasSubstr("no chunk of address 0 begins at rank 1, which has it in input_map; allowed: one of "
                        "each rank that has it there"));
}

TEST(StepSchedules, WhatIsNotUsedHasToBeRightToo) {
  const auto wrong = [](const std::string& from, const std::string& to) {
    return error_of(with(kSwap, from, to));
  };
  EXPECT_THAT(wrong("\"steps\": 1", "\"steps\": \"1\""),
              HasSubstr("a.json:2:23: instance.steps: '1' was given; allowed: an integer from 0"));
  EXPECT_THAT(
      wrong("\"pipeline\": null", "\"pipeline\": []"),
      HasSubstr("instance.pipeline: an empty list was given; allowed: an integer from 0 on, or null"));
  EXPECT_THAT(wrong("\"allow_exchange\": false", "\"allow_exchange\": 0"),
              HasSubstr("allowed: true or false"));
  EXPECT_THAT(wrong("\"rounds\": 1", "\"rounds\": -1"), HasSubstr("allowed: a number from 0 on"));
  EXPECT_THAT(wrong("10.5, 0, null", "\"x\", 0, null"), HasSubstr("allowed: a number from 0 on"));
  EXPECT_THAT(wrong("10.5, 0, null", "10.5, 0, 7"), HasSubstr("'7' was given; allowed: a text"));
  EXPECT_THAT(wrong("{\"1\": 0}", "{\"1\": null}"), HasSubstr("collective.triggers.0.1: null was given"));
  EXPECT_THAT(wrong("\"runtime_name\": null", "\"runtime_name\": []"), HasSubstr("allowed: a text"));
  EXPECT_THAT(wrong("\"pair\"", "2"), HasSubstr("topology.name: '2' was given; allowed: a text"));
  EXPECT_THAT(wrong("[2, 0]", "[2]"), HasSubstr("a list of 1 was given; allowed: of 2, one for each rank"));
  EXPECT_THAT(wrong("[2, 0]", "[2, {}]"),
              HasSubstr("topology.links.1.1: an object was given; allowed: a number from 0 on"));
  EXPECT_THAT(wrong("[[0], [1], 1", "[[0], [2], 1"), HasSubstr("allowed: an integer from 0 to 1"));
  EXPECT_THAT(wrong(", \"out\"]", "]"), HasSubstr("allowed: [senders, receivers, bandwidth, name]"));
  // Keys that TACCL also writes, and keys that no program writes, are ignored.
  EXPECT_EQ(wrong("\"name\": \"pair\"", "\"copies\": null, \"local_switches\": 7"), "none");
  EXPECT_EQ(wrong("\"nodes\": 2", "\"nodes\": 2, \"ranks\": [{\"id\": {}}]"), "none");
}

TEST(StepSchedules, AWrongOneIsRefusedWhereItIsWrong) {
  const auto wrong = [](const std::string& text, const std::string& from, const std::string& to) {
    return error_of(with(text, from, to));
  };
  EXPECT_THAT(
      wrong(kAllToAll, "[2, 1, 0]", "[8, 1, 0]"),
      HasSubstr("a.json:5:24: steps.1.sends.1: rank 1 sends address 8, which it does not have when the "
                "step begins"));
  EXPECT_THAT(wrong(kAllToAll, "[2, 1, 0]", "[2, 1, 3]"), HasSubstr("allowed: an integer from 0 to 2"));
  EXPECT_THAT(wrong(kAllToAll, "[2, 1, 0]", "[2, 1, 1]"), HasSubstr("a send from rank 1 to rank 1"));
  EXPECT_THAT(wrong(kAllToAll, "[2, 1, 0]", "[2, 1]"), HasSubstr("allowed: [address, from, to]"));
  EXPECT_THAT(wrong(kAllToAll, "[0, 3, 6]", "[0, 3]"),
              HasSubstr("2 chunks; all_to_all needs a multiple of its 3 ranks"));
  EXPECT_THAT(wrong(kAllToAll, "[1, 4, 7]", "[1, 4]"), HasSubstr("rank 1 has 2 chunks of input; allowed: 3"));
  EXPECT_THAT(wrong(kAllToAll, "Alltoall", "Gossip"),
              HasSubstr("'Gossip(n=3)' is no collective; allowed: allgather"));
  EXPECT_THAT(wrong(kAllToAll, "\"steps\"", "\"stops\""), HasSubstr("'steps' is missing"));
  EXPECT_THAT(wrong(kGather, "1->10 in epoch 0", "1=>10 in epoch 0"), HasSubstr("a.json:6:"));
  EXPECT_THAT(wrong(kGather, "over 1->10 in epoch 0", "over 1->0 in epoch 0"),
              HasSubstr("0 is no GPU of the demand"));
  EXPECT_THAT(wrong(kGather, "\"GPU 10\": {\"Chunk 0\": 1.0}", "\"GPU 10\": {\"Chunk 1\": 1.0}"),
              HasSubstr("allowed: an all-gather"));
  // The check is on the effect, not on the place.
  EXPECT_NE(prove(read_sccl_json(with(kAllToAll, ", [2, 1, 0]", ""), "a.json")), "");
  EXPECT_NE(prove(read_sccl_json(with(kAllReduce, ", [1, 1, 0]", ""), "a.json")), "");
}

// Each of the two ranks' sums has a contribution that the other has not. Adding them would count the others
// twice.
TEST(StepSchedules, ContributionsInPartAreRefused) {
  constexpr const char* kThree = R"json({"msccl_type": "algorithm", "name": "a",
"input_map": {"0": [0], "1": [0], "2": [0]}, "output_map": {"0": [0], "1": [0], "2": [0]},
"steps": [{"sends": [[0, 0, 1], [0, 1, 2]]}, {"sends": [[0, 1, 2]]}],
"collective": {"name": "Allreduce(n=3)",
                       "nodes" : 3
}
})json";
  EXPECT_THAT(error_of(kThree),
              HasSubstr("steps.1.sends.0: rank 1 sends address 0 to rank 2, which has some of "
                        "its contributions and others"));
}

TEST(StepSchedules, WhatIsBrokenIsRefused) {
  for (const char* text : {kAllReduce, kAllToAll, kSwap, kSum, kGather, kExchange})
    test::expect_sane(
        text, [](const std::string& given) { read_program(given, "a.json"); }, 1000);
}

TEST(StepSchedules, ThoseOfOthersAreProved) {
  NETSIM_NEEDS_SHARED("samples/sccl_json");
  std::vector<std::string> files = test::shared_files("samples/sccl_json", ".json");
  for (const std::string& file : test::shared_files("samples/teccl_json", ".json")) {
    if (read_file(file).find("7-Flows") != std::string::npos) files.push_back(file);
  }
  EXPECT_EQ(files.size(), 6U);
  for (const std::string& file : files) EXPECT_EQ(prove(read_program(read_file(file), file)), "") << file;
}

}  // namespace
}  // namespace netsim::step_schedule_test
