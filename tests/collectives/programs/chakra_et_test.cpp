// Tests that custom collectives in Chakra execution traces are recognised, with and without chunks in their
// records. Wrong ones are refused with the file, the rank and the node.
#include "sim/collectives/programs/chakra_et.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/collectives/programs/program_file.h"
#include "sim/core/errors.h"
#include "sim/core/output.h"
#include "tests/support/chakra_records.h"
#include "tests/support/mutations.h"
#include "tests/support/paths.h"

namespace netsim::chakra_et_test {
namespace {

using test::varint;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kMetadata = 1, kCompute = 4, kSend = 5, kReceive = 6;

// ---- Records, byte by byte

std::string text_attribute(const std::string& name, const std::string& value) {
  return test::bytes_field(2, test::bytes_field(1, name) + test::bytes_field(29, value));
}

using Attributes = std::vector<std::pair<std::string, std::uint64_t>>;

struct Record {
  std::uint64_t id = 0;
  int type = 0;
  std::vector<std::uint64_t> data;
  Attributes attributes;
  std::string name = "node";
  std::vector<std::uint64_t> control = {};

  std::string bytes() const {
    std::string out = test::integer_field(1, id) + test::bytes_field(2, name) +
                      test::integer_field(3, static_cast<std::uint64_t>(type));
    std::string packed;
    for (const std::uint64_t other : control) packed += varint(other);
    if (!packed.empty()) out += test::bytes_field(4, packed);
    for (const std::uint64_t other : data)
      out += test::integer_field(5, other);  // unpacked, as proto3 may be too
    int field = 7;                           // each of the types of integers that writers use
    for (const auto& [key, value] : attributes) {
      out += test::bytes_field(
          10, test::bytes_field(1, key) + test::integer_field(static_cast<std::uint64_t>(field), value));
      field = field == 13 ? 7 : field + 2;
    }
    return out;
  }
};

// Files of the ranks in a folder of their own.
class Trace {
 public:
  explicit Trace(const std::string& name, const std::string& metadata = "")
      : prefix_(::testing::TempDir() + "chakra_" + name),
        metadata_(test::bytes_field(1, "1.0.0") + metadata) {
    for (int rank = 0; rank < 9; ++rank) std::filesystem::remove(path(static_cast<std::uint32_t>(rank)));
  }
  std::string path(std::uint32_t rank) const { return prefix_ + "." + std::to_string(rank) + ".et"; }

  // Nodes with consecutive ids; the id.
  std::uint64_t send(std::uint32_t rank, std::uint32_t to, std::vector<std::uint64_t> after = {},
                     Attributes more = {{"comm_size", 1000}}, std::uint64_t tag = 0) {
    more.insert(more.begin(), {{"comm_dst", to}, {"comm_tag", tag}});
    return add(rank, kSend, std::move(after), std::move(more));
  }
  std::uint64_t receive(std::uint32_t rank, std::uint32_t from, std::vector<std::uint64_t> after = {},
                        Attributes more = {{"comm_size", 1000}}, std::uint64_t tag = 0) {
    more.insert(more.begin(), {{"comm_src", from}, {"comm_tag", tag}});
    return add(rank, kReceive, std::move(after), std::move(more));
  }
  std::uint64_t reduce(std::uint32_t rank, std::vector<std::uint64_t> after) {
    return add(rank, kCompute, std::move(after), {});
  }
  std::uint64_t add(std::uint32_t rank, int type, std::vector<std::uint64_t> after, Attributes attributes) {
    std::vector<Record>& file = ranks_[rank];
    file.push_back({file.size(), type, std::move(after), std::move(attributes)});
    return file.back().id;
  }
  std::vector<Record>& operator[](std::uint32_t rank) { return ranks_[rank]; }

  std::string bytes(std::uint32_t rank) const {
    std::string out = varint(metadata_.size()) + metadata_;
    const auto found = ranks_.find(rank);
    if (found == ranks_.end()) return out;
    for (const Record& record : found->second) {
      const std::string bytes = record.bytes();
      out += varint(bytes.size()) + bytes;
    }
    return out;
  }
  CollectiveProgram read() const {
    for (const auto& [rank, records] : ranks_) std::ofstream(path(rank), std::ios::binary) << bytes(rank);
    return read_program(read_file(path(0)), path(0));
  }
  std::string error() const {
    try {
      read();
    } catch (const InputError& error) {
      return error.what();
    }
    return "none";
  }

 private:
  std::string prefix_, metadata_;
  std::map<std::uint32_t, std::vector<Record>> ranks_;
};

std::string of(const std::string& collective) { return text_attribute("collective", collective); }

std::string kinds_of(const CollectiveProgram& program, std::uint32_t rank) {
  std::string kinds;
  for (const CollectiveProgramBlock& block : program.ranks[rank].blocks) {
    for (const Step& step : block.steps) kinds += std::string(to_string(step.kind)) + " ";
  }
  return kinds;
}

// Each rank passes on what it gets, `rounds` times; the first `sums` times it adds its own.
void add_ring(Trace& trace, std::uint32_t ranks, std::uint32_t rounds, std::uint32_t sums) {
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    std::vector<std::uint64_t> after;
    for (std::uint32_t round = 0; round < rounds; ++round) {
      after = {trace.send(rank, (rank + 1) % ranks, after)};
      after = {trace.receive(rank, (rank + ranks - 1) % ranks, after)};
      if (round < sums) after = {trace.reduce(rank, after)};
    }
  }
}

TEST(ChakraEt, TheExampleIsARingOfFour) {
  const std::string prefix = source_directory() + "/configs/collectives/chakra_ring_4.";
  const CollectiveProgram program = read_program(read_file(prefix + "0.et"), prefix + "0.et");
  EXPECT_EQ(
      describe(program),
      "all_reduce 'chakra_ring_4' of 4 ranks: 1 channel, 8 thread blocks, 48 steps, 4 chunks, in place, "
      "Simple");
  EXPECT_EQ(prove(program), "");
  EXPECT_EQ(describe(read_program(read_file(prefix + "2.et"), prefix + "2.et")), describe(program));
}

TEST(ChakraEt, RingsAreTheirCollectives) {
  struct Case {
    const char* collective;
    std::uint32_t rounds, sums, chunks;
  };
  for (const auto& [collective, rounds, sums, chunks] :
       {Case{"allreduce", 6, 3, 4}, Case{"reducescatter", 3, 3, 4}, Case{"allgather", 3, 0, 4},
        Case{"", 6, 3, 4}, Case{"", 3, 3, 4}, Case{"", 3, 0, 4}}) {
    Trace trace("ring", *collective == 0 ? "" : of(collective));
    add_ring(trace, 4, rounds, sums);
    const CollectiveProgram program = trace.read();
    EXPECT_EQ(prove(program), "") << collective << rounds;
    EXPECT_EQ(program.chunks, chunks);
    EXPECT_EQ(program.kind, rounds == 6 ? CollectiveKind::all_reduce
                            : sums == 3 ? CollectiveKind::reduce_scatter
                                        : CollectiveKind::all_gather);
  }
}

TEST(ChakraEt, TheCollectiveIsThatOfTheProgramThatItWasMadeFrom) {
  Trace trace("made", text_attribute("input_file", "<algo name=\"a\" coll=\"allreduce\" ngpus=\"3\">"));
  add_ring(trace, 3, 4, 2);
  EXPECT_EQ(trace.read().kind, CollectiveKind::all_reduce);
  EXPECT_EQ(prove(trace.read()), "");
}

// Every rank sends each owner its part, and the owner sends the sum to all: it waits for all contributions.
TEST(ChakraEt, SumsOfSeveralReceivesAreOneChunk) {
  for (const bool gathers : {true, false}) {
    Trace trace("direct", of(gathers ? "all_reduce" : "reduce_scatter"));
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      std::vector<std::uint64_t> sent, sums;
      for (std::uint32_t other = 0; other < 3; ++other)
        if (other != rank) sent.push_back(trace.send(rank, other));
      for (std::uint32_t other = 0; other < 3; ++other) {
        if (other == rank) continue;
        // One after the other, because they are added to the same place.
        const auto got = trace.receive(rank, other, sums.empty() ? sent : std::vector{sums.back()});
        sums.push_back(trace.reduce(rank, {got}));
      }
      const auto sum = trace.add(rank, kMetadata, sums, {});
      for (std::uint32_t other = 0; other < 3 && gathers; ++other)
        if (other != rank) trace.send(rank, other, {sum});
      for (std::uint32_t other = 0; other < 3 && gathers; ++other)
        if (other != rank) trace.receive(rank, other, sent);
    }
    const CollectiveProgram program = trace.read();
    EXPECT_EQ(prove(program), "");
    EXPECT_EQ(program.chunks, 3U);
  }
}

// With two ranks, and with four in two steps, each message is the whole vector.
TEST(ChakraEt, RecursiveDoublingSendsTheWholeVector) {
  Trace trace("doubling", of("allreduce"));
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    std::vector<std::uint64_t> after;
    for (const std::uint32_t bit : {1U, 2U}) {
      after = {trace.receive(rank, rank ^ bit, {trace.send(rank, rank ^ bit, after)})};
      after = {trace.reduce(rank, after)};
    }
  }
  EXPECT_EQ(prove(trace.read()), "");
  EXPECT_EQ(trace.read().chunks, 1U);
}

TEST(ChakraEt, AnAllGatherMayHaveSeveralChunksARank) {
  Trace trace("gather", of("allgather"));
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    for (std::uint32_t other = 0; other < 3; ++other) {
      if (other == rank) continue;
      for (std::uint64_t tag = 0; tag < 2; ++tag) {
        trace.send(rank, other, {}, {{"comm_size", 10}}, tag);
        trace.receive(rank, other, {}, {{"comm_size", 10}}, tag);
      }
    }
  }
  const CollectiveProgram program = trace.read();
  EXPECT_EQ(prove(program), "");
  EXPECT_EQ(program.chunks, 6U);
  EXPECT_EQ(program.channels, 2U);
}

// Rank 1 passes on between 0 and 2.
TEST(ChakraEt, AnAllToAllMayGoOverOtherRanks) {
  Trace trace("line", of("alltoall"));
  for (const std::uint32_t end : {0U, 2U}) {
    trace.send(end, 1);
    trace.send(end, 1);
    trace.receive(end, 1);
    trace.receive(end, 1);
    trace.send(1, end);
    trace.receive(1, end);
    trace.send(1, 2 - end, {trace.receive(1, end)});
  }
  const CollectiveProgram program = trace.read();
  EXPECT_EQ(prove(program), "");
  EXPECT_EQ(program.ranks[1].scratch_chunks, 3U);
}

TEST(ChakraEt, ARootIsWhoReceivesOrSendsNothing) {
  Trace broadcast("broadcast", of("broadcast"));
  broadcast.send(2, 0);
  broadcast.send(0, 1, {broadcast.receive(0, 2)});
  broadcast.receive(1, 0);
  EXPECT_EQ(prove(broadcast.read()), "");
  EXPECT_EQ(broadcast.read().root, 2U);
  Trace reduce("reduce", of("reduce"));
  reduce.send(2, 0);
  reduce.send(0, 1, {reduce.reduce(0, {reduce.receive(0, 2)})});
  reduce.reduce(1, {reduce.receive(1, 0)});
  EXPECT_EQ(prove(reduce.read()), "");
  EXPECT_EQ(reduce.read().root, 1U);
}

Attributes chunk(std::uint64_t index, std::uint64_t count, std::uint64_t total, bool sum = false) {
  Attributes result{{"msg_chunk_idx", index}, {"msg_chunk_cnt", count}, {"total_chunk_cnt", total}};
  if (sum) result.emplace_back("is_rrc", 1);
  return result;
}

// Halves, of two chunks each. Only is_rrc marks messages that are no sums.
Trace halves(const std::string& name) {
  Trace trace(name, of("allreduce"));
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    const std::uint32_t other = 1 - rank;
    const auto sent = trace.send(rank, other, {}, chunk(2 * other, 2, 4));
    const auto sum = trace.reduce(rank, {trace.receive(rank, other, {sent}, chunk(2 * rank, 2, 4, true))});
    const auto back = trace.send(rank, other, {sum}, chunk(2 * rank, 2, 4));
    trace.reduce(rank, {trace.receive(rank, other, {back}, chunk(2 * other, 2, 4))});
  }
  return trace;
}

TEST(ChakraEt, ChunksThatItSaysAreTaken) {
  const CollectiveProgram program = halves("halves").read();
  EXPECT_EQ(prove(program), "");
  EXPECT_EQ(program.chunks, 4U);
  EXPECT_EQ(program.largest_count, 2U);
  EXPECT_EQ(kinds_of(program, 0), "s s rrc r ");
}

TEST(ChakraEt, AnAllToAllThatSaysItsChunksIsOfInputAndOutput) {
  Trace trace("says", of("alltoall"));
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    trace.send(rank, 1 - rank, {}, chunk(1 - rank, 1, 2));
    trace.receive(rank, 1 - rank, {}, chunk(1 - rank, 1, 2));
  }
  EXPECT_EQ(prove(trace.read()), "");
}

TEST(ChakraEt, AWrongOneIsRefusedWhereItIsWrong) {
  const auto wrong = [](auto change) {
    Trace trace = halves("wrong");
    change(trace);
    return trace.error();
  };
  EXPECT_EQ(wrong([](Trace&) {}), "none");
  EXPECT_THAT(wrong([](Trace& t) { t[1][0].data = {9}; }),
              AllOf(HasSubstr("chakra_wrong.1.et: rank 1, node 0: waits for node 9; allowed: nodes of its "
                              "file")));
  EXPECT_THAT(wrong([](Trace& t) { t[1][0].control = {4}; }),
              HasSubstr("rank 1, node 0: waits for nodes that wait for it"));
  EXPECT_THAT(wrong([](Trace& t) { t[0][1].id = 0; }), HasSubstr("rank 0, node 0: is in the file twice"));
  EXPECT_THAT(wrong([](Trace& t) { t[0][1].type = 7; }), HasSubstr("rank 0, node 1: is of type 7; allowed"));
  EXPECT_THAT(wrong([](Trace& t) { t[0][0].attributes[0].second = 2; }),
              HasSubstr("rank 0, node 0: the rank at the other end is 2, and there is no"));
  EXPECT_THAT(wrong([](Trace& t) { t[0][0].attributes[0].second = 0; }),
              HasSubstr("rank 0, node 0: comm_dst is 0; allowed: another rank"));
  EXPECT_THAT(wrong([](Trace& t) { t[0][0].attributes[0].first = "to"; }),
              HasSubstr("rank 0, node 0: comm_dst is missing"));
  EXPECT_THAT(wrong([](Trace& t) { t[0][0].attributes.emplace_back("comm_src", 1); }),
              HasSubstr("rank 0, node 0: comm_src is 1; allowed: 0, the rank whose file it is"));
  EXPECT_THAT(wrong([](Trace& t) { t[0][0].attributes[1].second = 7; }),
              HasSubstr("rank 1, node 4: receives from rank 0 with tag 0 message 2, which no node"));
  EXPECT_THAT(
      wrong([](Trace& t) { t.send(0, 1); }),
      HasSubstr("rank 0, node 6: sends to rank 1 with tag 0 message 3, which no node there receives"));
  EXPECT_THAT(
      wrong([](Trace& t) { t[0][0].attributes[3].second = 1; }),
      HasSubstr("rank 0, node 0: msg_chunk_cnt is 1, and 2 where it is received, by node 1 of rank 1"));
  EXPECT_THAT(wrong([](Trace& t) { t[0][0].attributes[2].second = 3; }),
              HasSubstr("rank 0, node 0: 2 chunks from chunk 3 on; allowed"));
  EXPECT_THAT(wrong([](Trace& t) { t[0][0].attributes[4].second = 8; }), HasSubstr("total_chunk_cnt is"));
  EXPECT_THAT(wrong([](Trace& t) { t[0][0].attributes.pop_back(); }),
              HasSubstr("rank 0, node 0: has neither comm_size nor all of msg_chunk_idx"));
  // The check is on the effect, not on the place: the sum goes back to where it came from.
  Trace other = halves("other");
  for (const std::size_t node : {0, 1, 3, 4}) other[0][node].attributes[2].second ^= 2;
  EXPECT_NE(prove(other.read()), "");
}

TEST(ChakraEt, WhatNothingSaysIsRefused) {
  Trace several("several", of("allgather"));
  several.send(0, 1, {several.receive(0, 1), several.receive(0, 2)});
  several.receive(1, 0);
  several.send(1, 0);
  several.send(2, 0);
  EXPECT_THAT(several.error(), HasSubstr("rank 0, node 2: waits for 2 receives, and it is not known which"));
  Trace sizes("sizes", of("allgather"));
  sizes.send(0, 1, {}, {{"comm_size", 8}});
  sizes.receive(1, 0, {}, {{"comm_size", 8}});
  sizes.send(1, 0, {}, {{"comm_size", 9}});
  sizes.receive(0, 1, {}, {{"comm_size", 9}});
  EXPECT_THAT(sizes.error(), HasSubstr("rank 1, node 1: comm_size is 9, and 8 elsewhere; allowed: one size"));
  Trace ends("ends", of("allgather"));
  ends.send(0, 1, {}, {{"comm_size", 8}});
  ends.receive(1, 0, {}, {{"comm_size", 9}});
  EXPECT_THAT(ends.error(), HasSubstr("comm_size is 8, and 9 where it is received"));
  Trace nothing("nothing");
  nothing.send(0, 1);
  nothing.receive(1, 0);
  nothing.send(2, 1);
  nothing.receive(1, 2);
  EXPECT_THAT(nothing.error(), HasSubstr("does not name its collective, and its messages perform none"));
  Trace gossip("gossip", of("gossip"));
  gossip.send(0, 1);
  gossip.receive(1, 0);
  EXPECT_THAT(gossip.error(), HasSubstr("of the collective 'gossip'; allowed: allreduce, allgather"));
  Trace empty("empty", of("allreduce"));
  empty.add(0, kMetadata, {}, {});
  EXPECT_THAT(empty.error(), HasSubstr("has no message"));
}

TEST(ChakraEt, FilesThatAreMissingAreNamed) {
  Trace trace("files", of("allreduce"));
  add_ring(trace, 3, 4, 2);
  trace.read();
  std::filesystem::remove(trace.path(1));
  EXPECT_THAT(trace.error(), "none");  // written again
  std::filesystem::remove(trace.path(1));
  const auto error = [&](const std::string& path) -> std::string {
    try {
      read_program(trace.bytes(0), path);
    } catch (const InputError& wrong) {
      return wrong.what();
    }
    return "none";
  };
  EXPECT_THAT(error(trace.path(0)), AllOf(HasSubstr("rank 0, node 0: the rank at the other end is 1"),
                                          HasSubstr("there is no " + trace.path(1))));
  EXPECT_THAT(error(trace.path(2)), HasSubstr("is rank 2's, and there is no " + trace.path(1)));
  EXPECT_THAT(error("ring.et"), HasSubstr("allowed: a file NAME.R.et of rank R"));
}

TEST(ChakraEt, WhatIsBrokenIsRefused) {
  const Trace trace = halves("broken");
  trace.read();
  test::expect_sane(
      trace.bytes(0), [&](const std::string& given) { read_chakra_et(given, trace.path(0)); }, 2000);
}

}  // namespace
}  // namespace netsim::chakra_et_test
