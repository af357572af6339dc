// Does a workload file give back the program that was written, and is everything else refused with the place?
#include "sim/workload/program/program_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "sim/core/errors.h"
#include "sim/workload/program/workload.pb.h"
#include "tests/workload/program/small_programs.h"

namespace netsim::program_file_test {
namespace {

using netsim::test::two_ranks;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::string refusal(const std::string& bytes) {
  try {
    make_role_program_source(parse_program(bytes, "job.pb"), "job.pb");
  } catch (const InputError& error) {
    EXPECT_EQ(error.code(), ExitCode::input);
    EXPECT_THAT(error.what(), HasSubstr("job.pb"));
    return error.what();
  }
  return "accepted";
}

pb::Workload message() {
  pb::Workload result;
  EXPECT_TRUE(result.ParseFromString(serialize_program(two_ranks())));
  return result;
}

// The refusal of the two-rank workload after a change.
template <class Change>
std::string changed(Change change) {
  pb::Workload workload = message();
  change(workload);
  return refusal(workload.SerializeAsString());
}

TEST(ProgramFile, GivesBackWhatWasWritten) {
  const std::string bytes = serialize_program(two_ranks());
  EXPECT_TRUE(looks_like_program(bytes));
  const Program read = parse_program(bytes, "job.pb");
  EXPECT_EQ(serialize_program(read), bytes);
  EXPECT_EQ(read.job, "two_ranks");
  ASSERT_EQ(read.roles.size(), 2U);
  EXPECT_EQ(read.blocks.size(), 2U);
  EXPECT_EQ(read.works.size(), 1U);
}

TEST(ProgramFile, KeepsEveryFieldOfAnOperation) {
  Program program = two_ranks();
  auto& op = std::get<ProgramOp>(program.blocks[0].items[1]);
  op.raw = true;
  op.not_before = 12345;
  op.queue = 3;
  op.after_previous = {0, -1};
  op.traffic_class = 5;
  op.priority = 255;
  op.deadline = 5 * kMillisecond;
  op.channel = 9;
  program.tables = {{5, 6}};
  op.table_plus_one = 1;
  program.iterations = 3;
  program.model_flops = 1.5e15;
  const Program read = parse_program(serialize_program(program), "job.pb");
  auto copy = std::get<ProgramOp>(read.blocks[0].items[1]);
  copy.bytes = op.bytes;  // a table replaces the bytes
  EXPECT_EQ(copy, op);
  EXPECT_EQ(read.tables, program.tables);
  EXPECT_EQ(read.iterations, 3U);
  EXPECT_EQ(read.model_flops, 1.5e15);
}

// Fields at their defaults take no bytes, so files of programs without them stay as they were.
TEST(ProgramFile, WritesClassPriorityAndChannelOnlyWhereTheyAreGiven) {
  const auto size_of = [](const Program& program) {
    pb::Workload written;
    EXPECT_TRUE(written.ParseFromString(serialize_program(program)));
    return written.blocks(0).items(1).op().ByteSizeLong();
  };
  Program program = two_ranks();
  const std::size_t plain = size_of(program);
  std::get<ProgramOp>(program.blocks[0].items[1]).traffic_class = 1;
  EXPECT_EQ(size_of(program), plain + 3) << "a field number of two bytes, and its value";
}

TEST(ProgramFile, RefusesAClassThatTheNetworkHasNot) {
  Program program = two_ranks();
  for (ProgramBlock& block : program.blocks) std::get<ProgramOp>(block.items[3]).traffic_class = 1;
  const InputSet input = InputSet::in_memory({{"job.pb", serialize_program(program)}});
  const auto reader = Registry<WorkloadReader>::instance().create(kProgramReader);
  WorkloadContext context(2);
  context.classes = 2;
  EXPECT_EQ(reader->open(input, context)->ranks(), 2U);
  context.classes = 1;
  try {
    reader->open(input, context);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("job.pb: blocks[0].items[3].op.traffic_class: class 1"),
                                    HasSubstr("network.switch.classes to 2")));
  }
}

TEST(ProgramFile, KeepsEveryFieldOfAKernel) {
  Program program = two_ranks();
  Kernel& kernel = program.works[0].kernels[0];
  kernel = {};
  kernel.kind = Kernel::Kind::attention;
  kernel.name = program.names[0];
  kernel.m = 5;
  kernel.n = 6;
  kernel.k = 7;
  kernel.batch = 8;
  kernel.element_bytes = 4;
  kernel.precision = Precision::fp8;
  kernel.pieces = 3;
  kernel.backward = kernel.weight_gradient = kernel.accumulates = true;
  kernel.held_multiprocessors = 20;
  kernel.bytes = 99;
  const Program read = parse_program(serialize_program(program), "job.pb");
  const Kernel& copy = read.works[0].kernels[0];
  const auto sizes = [](const Kernel& k) {
    return std::vector<std::int64_t>{
        k.m, k.n, k.k, k.batch, k.element_bytes, k.pieces, k.bytes, k.held_multiprocessors};
  };
  EXPECT_EQ(copy.kind, kernel.kind);
  EXPECT_EQ(copy.name, kernel.name);
  EXPECT_EQ(sizes(copy), sizes(kernel));
  EXPECT_EQ(copy.precision, kernel.precision);
  EXPECT_TRUE(copy.backward);
  EXPECT_TRUE(copy.weight_gradient);
  EXPECT_TRUE(copy.accumulates);
}

TEST(ProgramFile, KeepsAtomicAdditions) {
  Program program = two_ranks();
  Kernel& kernel = program.works[0].kernels[0];
  kernel = {};
  kernel.name = program.names[0];
  kernel.bytes = 99;
  kernel.atomic_adds = 33;
  const Program read = parse_program(serialize_program(program), "job.pb");
  EXPECT_EQ(read.works[0].kernels[0].atomic_adds, 33);
}

// Two ranks that ask for circuits instead of all-reducing.
Program asking_ranks() {
  Program program = two_ranks();
  program.names.push_back("pairs");
  for (ProgramBlock& block : program.blocks) {
    auto& op = std::get<ProgramOp>(block.items[3]);
    op.kind = TaskKind::circuits;
    op.circuits = static_cast<std::uint32_t>(program.names.size() - 1);
    op.bytes = 0;
  }
  return program;
}

TEST(ProgramFile, KeepsWhatAsksForCircuits) {
  const Program program = asking_ranks();
  const Program read = parse_program(serialize_program(program), "job.pb");
  EXPECT_EQ(read.blocks[1].items, program.blocks[1].items);
  EXPECT_EQ(serialize_program(read), serialize_program(program));
}

TEST(ProgramFile, RefusesWrongCircuitsWithTheirPath) {
  const auto changed_op = [](auto change) {
    pb::Workload workload;
    EXPECT_TRUE(workload.ParseFromString(serialize_program(asking_ranks())));
    change(*workload.mutable_blocks(0)->mutable_items(3)->mutable_op());
    return refusal(workload.SerializeAsString());
  };
  EXPECT_EQ(changed_op([](pb::Op&) {}), "accepted");
  EXPECT_THAT(changed_op([](pb::Op& op) { op.set_circuits(99); }),
              HasSubstr("blocks[0].items[3].op.circuits: 99 is out of range"));
  EXPECT_THAT(changed_op([](pb::Op& op) { op.set_group(9); }), HasSubstr("items[3].op.group: 9"));
  EXPECT_THAT(changed_op([](pb::Op& op) { op.set_circuits(0); }),
              HasSubstr("of one group call different collectives"));
}

// Two ranks that exchange blocks with sizes of their own, and meet in a barrier that is one call with it.
Program exchanging_ranks() {
  Program program = two_ranks();
  program.counts.emplace_back(2, std::vector<Bytes>{1, 20, 300, 4});
  for (ProgramBlock& block : program.blocks) {
    auto& op = std::get<ProgramOp>(block.items[3]);
    op.collective = CollectiveKind::all_to_all_v;
    op.bytes = 0;
    op.counts_plus_one = 1;
    ProgramOp barrier = op;
    barrier.collective = CollectiveKind::barrier;
    barrier.counts_plus_one = 0;
    barrier.joins = true;
    barrier.after.clear();
    block.items.emplace_back(barrier);
  }
  return program;
}

TEST(ProgramFile, KeepsCountsAndCalls) {
  const Program program = exchanging_ranks();
  const Program read = parse_program(serialize_program(program), "job.pb");
  EXPECT_EQ(read.blocks[1].items, program.blocks[1].items);
  EXPECT_EQ(read.counts, program.counts);
  EXPECT_EQ(serialize_program(read), serialize_program(program));
}

TEST(ProgramFile, KeepsChoicesAndRefusesThoseOfOthers) {
  Program program = exchanging_ranks();
  program.iterations = 2;
  program.tables = {{0, 0, 0, 0}};
  for (ProgramBlock& block : program.blocks) {
    for (const std::size_t item : {0, 3}) std::get<ProgramOp>(block.items[item]).choice_plus_one = 1;
  }
  const Program read = parse_program(serialize_program(program), "job.pb");
  EXPECT_EQ(read.blocks[1].items, program.blocks[1].items);
  EXPECT_EQ(read.tables, program.tables);
  const auto changed = [&](std::size_t item, auto change) {
    Program other = program;
    for (ProgramBlock& block : other.blocks) change(std::get<ProgramOp>(block.items[item]));
    return refusal(serialize_program(other));
  };
  EXPECT_EQ(changed(0, [](ProgramOp&) {}), "accepted");
  EXPECT_THAT(changed(0, [](ProgramOp& op) { op.choice_plus_one = 2; }),
              HasSubstr("blocks[0].items[0].op.choice_plus_one: 2"));
  EXPECT_THAT(changed(0, [](ProgramOp& op) { op.table_plus_one = 1; }), HasSubstr("give one of the two"));
  EXPECT_THAT(changed(1, [](ProgramOp& op) { op.choice_plus_one = 1; }),
              HasSubstr("an all-to-all-v take their values"));
}

// Returns two_ranks() with a dispatch to experts in place of an all-to-all-v; its tokens have 10 bytes.
Program dispatching_ranks() {
  Program program = two_ranks();
  program.counts.emplace_back(2, std::vector<Bytes>{10, 20, 300, 40},
                              TokenBytes{10, 1, {10, 30, 310, 40}, {10, 20, 300, 40}});
  for (ProgramBlock& block : program.blocks) {
    auto& op = std::get<ProgramOp>(block.items[3]);
    op.collective = CollectiveKind::dispatch;
    op.bytes = 0;
    op.counts_plus_one = 1;
  }
  return program;
}

TEST(ProgramFile, KeepsTokens) {
  const Program program = dispatching_ranks();
  const Program read = parse_program(serialize_program(program), "job.pb");
  EXPECT_EQ(read.counts, program.counts);
  EXPECT_EQ(serialize_program(read), serialize_program(program));
  const auto changed = [&](auto change) {
    pb::Workload workload;
    EXPECT_TRUE(workload.ParseFromString(serialize_program(program)));
    change(*workload.mutable_counts(0), *workload.mutable_blocks(0)->mutable_items(3)->mutable_op());
    return refusal(workload.SerializeAsString());
  };
  using Counts = pb::Counts;
  using Op = pb::Op;
  EXPECT_EQ(changed([](Counts&, Op&) {}), "accepted");
  EXPECT_THAT(changed([](Counts& counts, Op&) { counts.set_token(0); }),
              HasSubstr("counts[0].token: is 0, and there are counts of tokens"));
  EXPECT_THAT(changed([](Counts& counts, Op&) { counts.set_host(0); }), HasSubstr("counts[0].host"));
  EXPECT_THAT(changed([](Counts& counts, Op&) { counts.set_host(2); }),
              HasSubstr("counts[0].to_hosts: 4 values instead of 2"));
  EXPECT_THAT(changed([](Counts& counts, Op&) { counts.add_copies(10); }),
              HasSubstr("counts[0].copies: 5 values instead of 4"));
  EXPECT_THAT(changed([](Counts& counts, Op&) { counts.set_values(0, 15); }),
              HasSubstr("counts[0].values[0]: 15 bytes are no whole tokens"));
  EXPECT_THAT(changed([](Counts& counts, Op&) { counts.set_copies(2, -10); }),
              HasSubstr("counts[0].copies[2]"));
  EXPECT_THAT(changed([](Counts&, Op& op) { op.set_collective(Op::ALL_TO_ALL_V); }),
              HasSubstr("all_to_all_v has no tokens"));
}

TEST(ProgramFile, RefusesWrongCountsAndCallsWithTheirPath) {
  const auto changed = [](auto change) {
    pb::Workload workload;
    EXPECT_TRUE(workload.ParseFromString(serialize_program(exchanging_ranks())));
    change(workload, *workload.mutable_blocks(0)->mutable_items(3)->mutable_op(),
           *workload.mutable_blocks(0)->mutable_items(4)->mutable_op());
    return refusal(workload.SerializeAsString());
  };
  using W = pb::Workload;
  using Op = pb::Op;
  EXPECT_EQ(changed([](W&, Op&, Op&) {}), "accepted");
  EXPECT_THAT(changed([](W&, Op& op, Op&) { op.set_counts_plus_one(3); }),
              HasSubstr("blocks[0].items[3].op.counts_plus_one: 3 is out of range"));
  EXPECT_THAT(changed([](W&, Op& op, Op&) { op.set_counts_plus_one(0); }),
              HasSubstr("all_to_all_v needs counts"));
  EXPECT_THAT(changed([](W&, Op& op, Op&) { op.set_bytes(5); }),
              HasSubstr("all_to_all_v has its bytes from counts"));
  EXPECT_THAT(changed([](W&, Op&, Op& op) { op.set_bytes(5); }), HasSubstr("barrier has no bytes"));
  EXPECT_THAT(changed([](W&, Op&, Op& op) { op.set_counts_plus_one(1); }),
              HasSubstr("barrier has no counts of blocks"));
  EXPECT_THAT(changed([](W& w, Op&, Op&) { w.mutable_counts(0)->add_values(1); }),
              HasSubstr("counts[0]: 5 values are not the blocks of"));
  EXPECT_THAT(changed([](W& w, Op&, Op&) { w.mutable_counts(0)->set_values(1, -1); }),
              HasSubstr("counts[0].values[1]"));
  EXPECT_THAT(changed([](W& w, Op&, Op&) {
                for (int i = 0; i < 5; ++i) w.mutable_counts(0)->add_values(1);
              }),
              HasSubstr("counts of 3 ranks for a group of 2"));
  EXPECT_THAT(changed([](W&, Op&, Op& op) { op.set_stream(pb::Op::STREAM_CP); }),
              HasSubstr("items[4].op.joins: it is the first of its stream and queue"));
  EXPECT_THAT(changed([](W&, Op&, Op& op) { op.set_unordered(true); }), HasSubstr("an unordered operation"));
  EXPECT_THAT(changed([](W&, Op&, Op& op) { op.add_after(1); }),
              HasSubstr("items[4].op.after: it waits for an operation of its own call"));
}

TEST(ProgramFile, RefusesEveryProperPrefix) {
  const std::string bytes = serialize_program(two_ranks());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_NE(refusal(bytes.substr(0, size)), "accepted") << size << " of " << bytes.size() << " bytes";
  }
}

TEST(ProgramFile, SurvivesDamagedBytes) {
  const std::string bytes = serialize_program(two_ranks());
  EXPECT_TRUE(rc::check("any change of a byte is accepted or refused with an InputError", [&bytes] {
    std::string damaged = bytes;
    const int changes = *rc::gen::inRange(1, 4);
    for (int i = 0; i < changes; ++i) {
      damaged[*rc::gen::inRange<std::size_t>(0, bytes.size())] = *rc::gen::arbitrary<char>();
    }
    refusal(damaged);
  }));
  EXPECT_TRUE(rc::check("so is any string", [] { refusal(*rc::gen::string<std::string>()); }));
}

TEST(ProgramFile, NamesWhatIsWrongWithTheFile) {
  EXPECT_THAT(refusal(""), HasSubstr("is empty"));
  EXPECT_THAT(refusal(serialize_program(two_ranks()).substr(0, 40)), HasSubstr("the field at byte"));
  EXPECT_THAT(changed([](pb::Workload& w) { w.clear_magic(); }), HasSubstr("not a netsim workload"));
  EXPECT_THAT(changed([](pb::Workload& w) { w.set_magic("netsim-workloaf"); }),
              HasSubstr("not a netsim workload"));
  EXPECT_THAT(changed([](pb::Workload& w) { w.set_schema(2); }),
              AllOf(HasSubstr("version 2"), HasSubstr("reads up to 1")));
  EXPECT_THAT(changed([](pb::Workload& w) { w.clear_total_tasks(); }), HasSubstr("truncated"));
  EXPECT_THAT(changed([](pb::Workload& w) { w.set_total_tasks(5); }),
              HasSubstr("5 is not the number of tasks"));
  pb::Kernel other;
  other.set_m(5);
  other.set_duration_ps(77);
  EXPECT_THAT(refusal(other.SerializeAsString()), HasSubstr("not a netsim workload"));
}

TEST(ProgramFile, RefusesUnknownFieldsAtAnyDepth) {
  const auto add = [](google::protobuf::Message& m) {
    m.GetReflection()->MutableUnknownFields(&m)->AddVarint(99, 1);
  };
  EXPECT_THAT(changed([&](pb::Workload& w) { add(w); }), HasSubstr("unknown field number 99"));
  EXPECT_THAT(changed([&](pb::Workload& w) {
                add(*w.mutable_blocks(0)->mutable_items(1)->mutable_op()->mutable_peer());
              }),
              AllOf(HasSubstr("blocks[0].items[1].op.peer"), HasSubstr("unknown field number 99")));
}

TEST(ProgramFile, RefusesClassPriorityChannelAndDeadlineOfOthersWithTheirPath) {
  const auto op = [](pb::Workload& w, int item) {
    return w.mutable_blocks(0)->mutable_items(item)->mutable_op();
  };
  EXPECT_THAT(changed([&](pb::Workload& w) { op(w, 0)->set_traffic_class(1); }),
              HasSubstr("blocks[0].items[0].op.traffic_class: only a collective, a send and a receive"));
  EXPECT_THAT(changed([&](pb::Workload& w) { op(w, 0)->set_priority(1); }),
              HasSubstr("blocks[0].items[0].op.priority: only a collective, a send and a receive"));
  EXPECT_THAT(changed([&](pb::Workload& w) { op(w, 1)->set_channel(1); }),
              HasSubstr("blocks[0].items[1].op.channel: only a raw send or receive has a channel"));
  EXPECT_THAT(changed([&](pb::Workload& w) { op(w, 1)->set_traffic_class(6); }),
              HasSubstr("items[1].op.traffic_class: 6 is out of range: 0 to 5"));
  EXPECT_THAT(changed([&](pb::Workload& w) { op(w, 1)->set_priority(256); }),
              HasSubstr("items[1].op.priority: 256 is out of range: 0 to 255"));
  EXPECT_THAT(changed([&](pb::Workload& w) { op(w, 0)->set_deadline_ps(1); }),
              HasSubstr("blocks[0].items[0].op.deadline_ps: only a collective, a send and a receive"));
  EXPECT_THAT(changed([&](pb::Workload& w) { op(w, 1)->set_deadline_ps(-1); }),
              HasSubstr("items[1].op.deadline_ps: -1 is out of range: 0 to 281000000000000"));
}

TEST(ProgramFile, RefusesWrongFieldsWithTheirPath) {
  const auto op = [](pb::Workload& w, int item) {
    return w.mutable_blocks(0)->mutable_items(item)->mutable_op();
  };
  EXPECT_THAT(changed([](pb::Workload& w) { w.set_iterations(0); }), HasSubstr("iterations: 0"));
  EXPECT_THAT(changed([](pb::Workload& w) { w.clear_axes(); }), HasSubstr("axes: is missing"));
  EXPECT_THAT(changed([](pb::Workload& w) { w.mutable_axes(0)->set_size(0); }), HasSubstr("axes[0].size: 0"));
  EXPECT_THAT(changed([](pb::Workload& w) { w.mutable_axes(0)->set_size(1U << 30); }),
              HasSubstr("axes[0].size"));
  EXPECT_THAT(changed([](pb::Workload& w) { w.mutable_works(0)->set_name(9); }),
              HasSubstr("works[0].name: 9"));
  EXPECT_THAT(changed([](pb::Workload& w) { w.mutable_works(0)->mutable_kernels(0)->set_duration_ps(-1); }),
              HasSubstr("works[0].kernels[0].duration_ps: -1"));
  EXPECT_THAT(changed([](pb::Workload& w) {
                pb::Kernel& kernel = *w.mutable_works(0)->mutable_kernels(0);
                kernel.set_kind(pb::Kernel::GEMM);
                kernel.set_m(1 << 20);
                kernel.set_n(1 << 20);
                kernel.set_k(1 << 20);
                kernel.set_batch(64);
                kernel.set_element_bytes(2);
              }),
              HasSubstr("works[0].kernels[0]: the matrices are too large"));
  EXPECT_THAT(changed([&](pb::Workload& w) { op(w, 0)->set_work(9); }),
              HasSubstr("blocks[0].items[0].op.work: 9"));
  EXPECT_THAT(changed([&](pb::Workload& w) { op(w, 0)->clear_kind(); }), HasSubstr("op.kind: is missing"));
  EXPECT_THAT(changed([&](pb::Workload& w) { op(w, 0)->set_kind(static_cast<pb::Op::Kind>(77)); }),
              HasSubstr("the value 77 is unknown"));
  EXPECT_THAT(changed([&](pb::Workload& w) { op(w, 1)->set_bytes(0); }), HasSubstr("items[1].op.bytes: 0"));
  EXPECT_THAT(changed([&](pb::Workload& w) { op(w, 1)->set_bytes(-5); }), HasSubstr("op.bytes: -5"));
  EXPECT_THAT(changed([&](pb::Workload& w) { op(w, 1)->clear_peer(); }), HasSubstr("op.peer: is missing"));
  EXPECT_THAT(changed([&](pb::Workload& w) { op(w, 3)->set_group(4); }), HasSubstr("op.group: 4"));
  EXPECT_THAT(changed([&](pb::Workload& w) { op(w, 1)->set_table_plus_one(2); }),
              HasSubstr("op.table_plus_one: 2"));
  EXPECT_THAT(changed([](pb::Workload& w) { w.add_tables()->add_values(1); }),
              HasSubstr("1 values for 2 ranks"));
  EXPECT_THAT(changed([](pb::Workload& w) { w.mutable_blocks(0)->mutable_items(0)->clear_what(); }),
              HasSubstr("blocks[0].items[0]: is empty"));
}

}  // namespace
}  // namespace netsim::program_file_test
