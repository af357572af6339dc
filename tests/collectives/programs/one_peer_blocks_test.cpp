// Does any plan become a program that does the same, with one peer each way in each thread block?
#include "sim/collectives/programs/one_peer_blocks.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/programs/msccl_xml.h"
#include "sim/collectives/programs/program_file.h"
#include "sim/core/errors.h"
#include "sim/core/registry.h"
#include "tests/collectives/programs/plans.h"
#include "tests/collectives/table_plan.h"

namespace netsim::one_peer_blocks_test {
namespace {

Step step_of(Step::Kind kind, std::uint32_t chunk, std::uint32_t from, std::uint32_t to) {
  Step step;
  step.kind = kind;
  step.source = step.destination = {Buffer::input, chunk};
  if (receives(kind)) step.from = {from, 0};
  if (sends(kind)) step.to = {to, 0};
  return step;
}

// The program, which was written and read back; it is proved, and has the plan's messages.
CollectiveProgram program_back(const Plan& plan) {
  CollectiveProgram back = read_msccl_xml(write_msccl_xml(program_of(plan)), "back");
  EXPECT_EQ(prove(back), "") << plan.algorithm() << " " << to_string(plan.kind()) << " " << plan.ranks();
  EXPECT_EQ(test::messages(ProgramPlan(back)), test::messages(plan));
  return back;
}

// And the channels to tell them apart.
bool has_one_peer_blocks(const Plan& plan) {
  std::set<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>> known;
  for (std::uint32_t rank = 0; rank < plan.ranks(); ++rank) {
    for (std::uint32_t block = 0; block < plan.blocks(rank); ++block) {
      std::set<std::uint32_t> to, from;
      for (std::uint32_t i = 0; i < plan.steps(rank, block); ++i) {
        const Step step = plan.step(rank, block, i);
        if (sends(step.kind)) to.insert(step.to.rank);
        if (receives(step.kind)) from.insert(step.from.rank);
      }
      if (to.size() > 1 || from.size() > 1) return false;
      if (!to.empty() && !known.insert({rank, *to.begin(), plan.channel(rank, block)}).second) return false;
    }
  }
  return true;
}

// Returns the algorithms that need no parameter.
std::vector<std::string> algorithms() {
  const Catalogue& catalogue = Catalogue::instance();
  std::vector<std::string> names = catalogue.names(CollectiveAlgorithm::kComponentKind);
  std::erase_if(names, [&](const std::string& name) {
    const ParameterTable& table = catalogue.find(CollectiveAlgorithm::kComponentKind, name)->parameters;
    return std::any_of(table.begin(), table.end(), [](const ParameterInfo& info) { return info.required; });
  });
  return names;
}

TEST(OnePeerBlocks, RefusesWhatProgramsCannotSay) {
  const auto refusal = [](const char* algorithm, CollectiveKind kind) {
    const ConfigNode node = parse_config(algorithm, "test.yaml");
    const auto plan = Registry<CollectiveAlgorithm>::instance().create(node, "")->plan(kind, {4, 0});
    try {
      program_of(*plan);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("written");
  };
  EXPECT_EQ(refusal("direct", CollectiveKind::all_to_all), "written");
  EXPECT_EQ(refusal("direct", CollectiveKind::all_to_all_v),
            "all_to_all_v 'direct' is of a kind that programs of MSCCL do not know");
  EXPECT_EQ(refusal("bruck", CollectiveKind::barrier),
            "barrier 'bruck' is of a kind that programs of MSCCL do not know");
  EXPECT_EQ(refusal("{kind: parameter_server, servers: 1}", CollectiveKind::all_reduce),
            "all_reduce 'parameter_server' has ranks that only serve, and all ranks of a program of MSCCL "
            "contribute");
}

TEST(OnePeerBlocks, EveryAlgorithmOfOursCanBeWritten) {
  std::size_t kept = 0, split = 0;
  for (const std::string& name : algorithms()) {
    const auto algorithm = Registry<CollectiveAlgorithm>::instance().create(name);
    for (const CollectiveKindInfo& info : kCollectiveKinds) {
      if (!algorithm->supports(info.kind) || !is_collective(info.kind)) continue;
      if (!has_bytes(info.kind)) continue;  // RefusesWhatProgramsCannotSay
      for (const std::uint32_t ranks : {2U, 3U, 4U, 7U, 8U, 16U}) {
        SCOPED_TRACE(name + " " + info.name + " " + std::to_string(ranks));
        std::unique_ptr<Plan> plan;
        try {
          plan = algorithm->plan(info.kind, {ranks, has_root(info.kind) ? ranks / 2 : 0});
        } catch (const Error&) {
          continue;  // not for any number of ranks
        }
        if (plan->aggregations() > 0) continue;  // IsNoProgramOfMsccl
        const CollectiveProgram back = program_back(*plan);
        if (has_one_peer_blocks(*plan)) test::expect_equal(*plan, ProgramPlan(back));
        ++(has_one_peer_blocks(*plan) ? kept : split);
      }
    }
  }
  EXPECT_GT(kept, 80U);
  EXPECT_GT(split, 100U);
}

// Rank 0 adds up data from rank 1 for rank 2, and for rank 3. The steps that store nothing need scratch,
// because one thread block cannot send to both.
TEST(OnePeerBlocks, FusedStepsWithSeveralPartnersComeApart) {
  using Kind = Step::Kind;
  const std::uint32_t no = kNoIndex;
  const TablePlan plan(
      CollectiveKind::custom, 2,
      {{{step_of(Kind::receive_reduce_send, 0, 1, 2), step_of(Kind::receive_reduce_send, 1, 1, 3),
         step_of(Kind::receive_copy_send, 1, 1, 3), step_of(Kind::receive_reduce_copy_send, 0, 1, 3)}},
       {{step_of(Kind::send, 0, no, 0), step_of(Kind::send, 1, no, 0), step_of(Kind::send, 1, no, 0),
         step_of(Kind::send, 0, no, 0)}},
       {{step_of(Kind::receive, 0, 0, no)}},
       {{step_of(Kind::receive, 1, 0, no), step_of(Kind::receive, 1, 0, no),
         step_of(Kind::receive, 0, 0, no)}}});
  ASSERT_EQ(prove(plan), "");
  const CollectiveProgram program = program_back(plan);
  const ProgramRank& middle = program.ranks[0];
  EXPECT_EQ(middle.scratch_chunks, 2U) << "one, in the place of chunk 1";
  ASSERT_EQ(middle.blocks.size(), 2U);
  std::vector<std::string> kinds;
  for (const CollectiveProgramBlock& block : middle.blocks) {
    for (const Step& step : block.steps) kinds.push_back(to_string(step.kind));
  }
  EXPECT_EQ(kinds, (std::vector<std::string>{"rrs", "rrc", "r", "rrc", "s", "s", "s"}));
  EXPECT_EQ(middle.blocks[0].steps[1].destination.buffer, Buffer::scratch);
  EXPECT_EQ(middle.blocks[0].steps[1].destination.chunk, 1U);
  // Each in the order of the plan.
  EXPECT_EQ(middle.blocks[1].steps[0].after_step, 1U);
  EXPECT_EQ(middle.blocks[0].steps[2].after_block, 1U);
  EXPECT_EQ(middle.blocks[0].steps[2].after_step, 0U);
}

// A step that has to wait for a step of another thread block already.
TEST(OnePeerBlocks, ANopCarriesASecondDependency) {
  using Kind = Step::Kind;
  Step copy = step_of(Kind::copy, 0, kNoIndex, kNoIndex);
  copy.destination.chunk = 1;
  Step second = step_of(Kind::send, 1, kNoIndex, 2);
  second.after_block = 1;
  const TablePlan plan(CollectiveKind::custom, 2,
                       {{{step_of(Kind::send, 0, kNoIndex, 1), second}, {copy}},
                        {{step_of(Kind::receive, 0, 0, kNoIndex)}},
                        {{step_of(Kind::receive, 1, 0, kNoIndex)}}});
  ASSERT_EQ(prove(plan), "");
  const CollectiveProgram program = program_back(plan);
  const std::vector<CollectiveProgramBlock>& blocks = program.ranks[0].blocks;
  ASSERT_EQ(blocks.size(), 3U);
  ASSERT_EQ(blocks[1].steps.size(), 2U);
  EXPECT_EQ(blocks[1].steps[0].kind, Kind::nothing);
  EXPECT_EQ(blocks[1].steps[0].after_block, 2U);
  EXPECT_EQ(blocks[1].steps[1].kind, Kind::send);
  EXPECT_EQ(blocks[1].steps[1].after_block, 0U);
}

// The test writes a broadcast or a reduce over any tree. Each rank has one thread block for all its partners,
// or several for the same two ranks.
TEST(OnePeerBlocks, AnyTreeCanBeWritten) {
  rc::check([] {
    using Kind = Step::Kind;
    const auto ranks = *rc::gen::inRange<std::uint32_t>(2, 12);
    const auto chunks = *rc::gen::inRange<std::uint32_t>(1, 4);
    std::vector<std::uint32_t> parent(ranks, kNoIndex);
    for (std::uint32_t rank = 1; rank < ranks; ++rank) parent[rank] = *rc::gen::inRange(0U, rank);
    std::vector<std::vector<std::vector<Step>>> blocks(ranks, std::vector<std::vector<Step>>(1));
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) {
        std::vector<std::uint32_t> children;
        for (std::uint32_t child = rank + 1; child < ranks; ++child) {
          if (parent[child] == rank) children.push_back(child);
        }
        std::vector<Step>& steps = blocks[rank][0];
        if (rank > 0) {
          steps.push_back(children.empty()
                              ? step_of(Kind::receive, chunk, parent[rank], kNoIndex)
                              : step_of(Kind::receive_copy_send, chunk, parent[rank], children[0]));
        }
        for (std::size_t i = rank > 0 ? 1 : 0; i < children.size(); ++i)
          steps.push_back(step_of(Kind::send, chunk, kNoIndex, children[i]));
      }
    }
    const TablePlan plan(CollectiveKind::broadcast, chunks, blocks);
    RC_ASSERT(prove(plan) == "");
    program_back(plan);
  });
}

}  // namespace
}  // namespace netsim::one_peer_blocks_test
