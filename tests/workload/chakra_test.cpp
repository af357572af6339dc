// Tests that execution traces of Chakra are read in all their schemas, by their conventions of sizes and
// order. Wrong ones are refused with the file and the node.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <bit>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/errors.h"
#include "sim/workload/workload.h"
#include "tests/support/chakra_records.h"
#include "tests/support/mutations.h"
#include "tests/support/shared.h"
#include "tests/support/tasks_of.h"
#include "tests/support/workload_files.h"

namespace netsim::chakra_test {
namespace {

using test::ChakraRecord;
using test::tasks_of;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::uint64_t kMetadataNode = 1, kLoad = 2, kCompute = 4, kSend = 5, kReceive = 6, kCollective = 7;

std::string header() { return test::record(test::bytes_field(1, "1.0.0")); }

class ChakraFiles : public test::WorkloadFolderTest {
 protected:
  std::string write_rank(std::uint32_t rank, const std::vector<ChakraRecord>& nodes) const {
    std::string bytes = header();
    for (const ChakraRecord& node : nodes) bytes += node.bytes();
    return write("trace." + std::to_string(rank) + ".et", bytes);
  }
};

ChakraRecord collective(std::uint64_t type, std::uint64_t bytes) {
  return {.id = 1, .type = kCollective, .numbers = {{"comm_type", type}, {"comm_size", bytes}}};
}

// comm_size is what one rank gives. netsim's bytes of an all-gather are those of all ranks.
TEST_F(ChakraFiles, SizesAreTheInputOfOneRank) {
  const std::map<std::uint64_t, std::pair<CollectiveKind, Bytes>> expected{
      {0, {CollectiveKind::all_reduce, 1000}},     {1, {CollectiveKind::reduce, 1000}},
      {2, {CollectiveKind::all_gather, 4000}},     {3, {CollectiveKind::gather, 4000}},
      {4, {CollectiveKind::scatter, 1000}},        {5, {CollectiveKind::broadcast, 1000}},
      {6, {CollectiveKind::all_to_all, 1000}},     {7, {CollectiveKind::reduce_scatter, 1000}},
      {8, {CollectiveKind::reduce_scatter, 1000}}, {9, {CollectiveKind::barrier, 0}}};
  for (const auto& [type, whole] : expected) {
    for (std::uint32_t rank = 0; rank < 4; ++rank) write_rank(rank, {collective(type, 1000)});
    const auto source = load();
    const Task task = test::task_of(*source, 3, 0);
    ASSERT_EQ(task.kind(), TaskKind::collective) << type;
    EXPECT_EQ(task.collective().collective, whole.first) << type;
    if (task.collective().collective != CollectiveKind::barrier) {
      EXPECT_EQ(task.bytes(), whole.second) << type;
    }
    EXPECT_EQ(source->group(task.group()).size(), 4u);
  }
}

// The parts count rows of 10 bytes. A member sends nothing.
TEST_F(ChakraFiles, AllToAllsHaveThePartsThatPyTorchRecords) {
  const auto parts = [](std::uint64_t bytes, const std::string& in, const std::string& out) {
    ChakraRecord node = collective(6, bytes);
    node.texts = {{"in_split_size", in}, {"out_split_size", out}};
    return node;
  };
  const auto write_all = [&](const std::string& cut) {
    write_rank(0, {parts(40, "[1, 3, 0]", "[1, 0, 2]")});
    write_rank(1, {parts(0, "[0, 0, 0]", "[3, 0, 1]")});
    ChakraRecord last = collective(6, 30);
    last.inputs = "[[[7, 8]], 1, ['0', ''], 2, 'all_to_allv', " + cut + ", [0, 0, 0], 0, 1, 3]";
    write_rank(2, {last});
  };
  write_all("[2, 1, 0]");
  const auto source = load();
  const Task task = test::task_of(*source, 1, 0);
  EXPECT_EQ(task.collective().collective, CollectiveKind::all_to_all_v);
  EXPECT_THAT(task.collective().counts->rows(), ElementsAre(10, 30, 0, 0, 0, 0, 20, 10, 0));
  EXPECT_EQ(task.stream, Stream::ep);
  EXPECT_TRUE(source->notes().empty());
  write_all("[2, 1]");
  const auto equal = load();
  EXPECT_EQ(test::task_of(*equal, 1, 0).collective().counts->of(1, 2), 7);
  EXPECT_THAT(equal->notes(), ElementsAre(HasSubstr("replayed with equal parts: 1")));
}

TEST_F(ChakraFiles, NodesOfTheCpuLeaveTheGpuAloneAndLostDependenciesAreLeftOut) {
  write_rank(0, {{.id = 1, .numbers = {{"is_cpu_op", 1}}, .duration = 7},
                 {.id = 2, .data = {1, 99}, .control = {98}, .duration = 5}});
  const auto source = load();
  const std::vector<Task> tasks = tasks_of(*source, 0);
  ASSERT_EQ(tasks.size(), 2u);
  EXPECT_EQ(tasks[0].kind(), TaskKind::host_thread);
  EXPECT_EQ(tasks[1].kind(), TaskKind::compute);
  EXPECT_EQ(source->works()[tasks[0].work()].kernels[0].duration, 7 * kMicrosecond);
  EXPECT_EQ(source->works()[tasks[1].work()].kernels[0].duration, 5 * kMicrosecond);
  EXPECT_THAT(source->notes(),
              ElementsAre(HasSubstr("nodes of the CPU, which take their recorded time on a thread of the "
                                    "rank's process: 1"),
                          HasSubstr("dependencies on nodes that the trace does not have, which are left "
                                    "out: 2")));
  std::vector<Task> ready;
  source->start(RankId(0), ready);
  EXPECT_EQ(ready.size(), 1u) << "the computation waits for the node of the CPU";
}

TEST_F(ChakraFiles, NodesOfOneCudaStreamFollowEachOther) {
  write_rank(0, {{.id = 1, .numbers = {{"stream", 7}}, .start = 20, .duration = 5},
                 {.id = 2, .numbers = {{"stream", 7}}, .start = 10, .duration = 5},
                 {.id = 3, .numbers = {{"stream", 20}}, .start = 10, .duration = 5}});
  const auto source = load();
  std::vector<Task> ready;
  source->start(RankId(0), ready);
  EXPECT_EQ(ready.size(), 2u);
  EXPECT_THAT(source->notes(), Contains(HasSubstr("nodes of one CUDA stream follow each other: 1")));
}

// Begins are whole microseconds. Equal ones do not say who is first, and a dependency counts more than
// others.
TEST_F(ChakraFiles, DependenciesOrderAStreamWhereItsBeginsDoNot) {
  const auto write_two = [&](std::uint64_t later) {
    write_rank(0, {{.id = 1, .data = {3}, .numbers = {{"stream", 7}}, .start = 100, .duration = 5},
                   {.id = 2, .numbers = {{"stream", 7}}, .start = later, .duration = 5},
                   {.id = 3, .data = {2}, .numbers = {{"stream", 20}}, .start = 100, .duration = 5}});
    return load();
  };
  const auto tie = write_two(100);
  std::vector<Task> ready;
  tie->start(RankId(0), ready);
  EXPECT_EQ(ready.size(), 1u) << "node 1 follows node 2";
  EXPECT_THAT(tie->notes(), ElementsAre(HasSubstr("nodes of one CUDA stream follow each other: 1")));
  EXPECT_THAT(write_two(101)->notes(),
              Contains(HasSubstr("that began earlier, so that its begin is left out: 1")));
}

TEST_F(ChakraFiles, NodesOfLaterSchemasTakeTheirTime) {
  write_rank(0, {{.id = 1, .type = 8, .duration = 500}, {.id = 2, .type = 11, .data = {1}, .duration = 7}});
  const auto source = load();
  const Task task = test::task_of(*source, 0, 0);
  EXPECT_EQ(task.kind(), TaskKind::host_thread);
  EXPECT_EQ(source->works()[task.work()].kernels[0].duration, 500 * kMicrosecond);
  EXPECT_THAT(source->notes(),
              ElementsAre(AllOf(HasSubstr("nodes of other types (8, 11)"), HasSubstr(": 2"))));
}

TEST_F(ChakraFiles, KindsMayBeNamesAndWrongValuesAreRefused) {
  const auto node = [](const std::string& kind, const std::string& size) {
    return ChakraRecord{.id = 1, .type = kCollective, .texts = {{"comm_type", kind}, {"comm_size", size}}};
  };
  for (const std::uint32_t rank : {0U, 1U}) write_rank(rank, {node("REDUCE_SCATTER", "1048576")});
  const Task task = test::task_of(*load(), 1, 0);
  ASSERT_EQ(task.kind(), TaskKind::collective);
  EXPECT_EQ(task.collective().collective, CollectiveKind::reduce_scatter);
  EXPECT_EQ(task.bytes(), 1048576);
  write_rank(0, {node("SHUFFLE", "8")});
  EXPECT_THAT(refused(), HasSubstr("node 1 ('node') has comm_type 'SHUFFLE'; allowed: 0 to 9, or a name"));
  write_rank(0, {node("0", "abc")});
  EXPECT_THAT(refused(), HasSubstr("node 1 ('node') has comm_size 'abc'; allowed: 0 to 9e18"));
  write_rank(0, {collective(0, static_cast<std::uint64_t>(-5))});
  EXPECT_THAT(refused(), HasSubstr("has comm_size -5; allowed: 0 to 9e18"));
  write_rank(0, {{.id = 1, .texts = {{"num_ops", "nan"}}}});
  EXPECT_THAT(refused(), HasSubstr("has num_ops 'nan'; allowed: 0 to 9e18"));
}

TEST_F(ChakraFiles, TheFirstNameMayHaveAnyCharacters) {
  for (const char c : {'\n', '\t', '\r', '\x1b', '\0'}) {
    write_rank(0, {{.id = 1, .duration = 5, .name = std::string("a") + c + "b"}});
    EXPECT_EQ(load()->ranks(), 1u) << static_cast<int>(c);
  }
}

TEST_F(ChakraFiles, ComputationsWithoutADurationAreTimedByTheirOperations) {
  write_rank(0, {{.id = 1, .numbers = {{"num_ops", 2'000'000'000}, {"tensor_size", 4096}}}});
  const auto source = load();
  const Kernel& kernel = source->works()[test::task_of(*source, 0, 0).work()].kernels.at(0);
  EXPECT_EQ(kernel.kind, Kernel::Kind::gemm);
  EXPECT_EQ(kernel.m, 1000);
  EXPECT_EQ(kernel.n * kernel.k, 1'000'000);
  EXPECT_EQ(kernel.bytes, 4096);
}

TEST_F(ChakraFiles, MessagesMatchBySenderReceiverTagAndSize) {
  write_rank(0, {{.id = 1, .type = kSend, .numbers = {{"comm_dst", 1}, {"comm_tag", 5}, {"comm_size", 10}}},
                 {.id = 2, .type = kSend, .numbers = {{"comm_dst", 1}, {"comm_tag", 5}, {"comm_size", 20}}}});
  write_rank(1,
             {{.id = 1, .type = kReceive, .numbers = {{"comm_src", 0}, {"comm_tag", 5}, {"comm_size", 20}}},
              {.id = 2, .type = kReceive, .numbers = {{"comm_src", 0}, {"comm_tag", 5}, {"comm_size", 10}}}});
  const auto source = load();
  const std::vector<Task> sends = tasks_of(*source, 0), receives = tasks_of(*source, 1);
  EXPECT_EQ(sends[0].bytes(), 10);
  EXPECT_EQ(receives[0].bytes(), 20);
  EXPECT_EQ(sends[0].message().tag, receives[1].message().tag);
  EXPECT_NE(sends[0].message().tag, sends[1].message().tag);
}

TEST_F(ChakraFiles, CommunicatorsComeFromAFileOrFromMetadata) {
  const auto in_group = [](const std::string& name) {
    ChakraRecord node = collective(0, 8);
    node.texts = {{"pg_name", name}};
    return node;
  };
  for (std::uint32_t rank = 0; rank < 4; ++rank) write_rank(rank, {in_group(rank < 2 ? "1" : "2")});
  EXPECT_THAT(refused(), AllOf(HasSubstr("trace.0.et: node 1 ('node') is of communicator 1, which is in no "
                                         "list")));
  write("groups.json", R"({"1": [0, 1], "2": [3, 2]})");
  const auto source = load();
  EXPECT_THAT(source->group(test::task_of(*source, 3, 0).group()), ElementsAre(3, 2));
  std::filesystem::remove(folder_ / "groups.json");
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    ChakraRecord list{.id = 0, .type = kMetadataNode};
    list.inputs = R"(['[{"pg_name": "1", "ranks": [0, 1]}, {"pg_name": "2", "ranks": [2, 3]}]'])";
    write_rank(rank, {list, in_group(rank < 2 ? "1" : "2")});
  }
  const auto listed = load();
  EXPECT_THAT(listed->group(test::task_of(*listed, 3, 1).group()), ElementsAre(2, 3));
}

TEST_F(ChakraFiles, DimensionsOfALogicalTopologyAreGroups) {
  const auto along = [](bool first, bool second) {
    ChakraRecord node = collective(0, 8);
    node.numbers.clear();
    // A list of booleans, packed.
    const std::string list = test::bytes_field(1, {first ? '\1' : '\0', second ? '\1' : '\0'});
    std::string bytes = test::integer_field(1, 1) + test::bytes_field(2, "node") + test::integer_field(3, 7);
    const auto attribute = [&](const std::string& name, const std::string& value) {
      bytes += test::bytes_field(10, test::bytes_field(1, name) + value);
    };
    attribute("comm_type", test::integer_field(9, 0));
    attribute("comm_size", test::integer_field(9, 8));
    attribute("involved_dim", test::bytes_field(28, list));
    return header() + test::record(bytes);
  };
  for (std::uint32_t rank = 0; rank < 6; ++rank)
    write("trace." + std::to_string(rank) + ".et", along(false, true));
  EXPECT_THAT(refused(), HasSubstr("names some dimensions of a logical topology (involved_dim)"));
  write("logical.json", R"({"logical-dims": ["2", "3"]})");
  const auto source = load();
  EXPECT_THAT(source->group(test::task_of(*source, 3, 0).group()), ElementsAre(1, 3, 5));
}

TEST_F(ChakraFiles, NumbersOfJsonBeyondIntegersAreRefused) {
  for (const char* text : {R"("comm_type": 0, "comm_size": 6e111)", R"("runtime": 1e30)"}) {
    write("trace.0.json", std::string(R"({"workload_graph": [{"Id": 1, "NodeType": 7, )") + text + "}]}");
    EXPECT_THAT(refused(), HasSubstr("; allowed: up to 9e18")) << text;
  }
}

// Field 21 of an attribute is a fixed64. One of 21 bytes was shifted beyond 64 bits.
TEST_F(ChakraFiles, LongFixedNumbersCountWithTheirFirstBytes) {
  const std::string size = std::string("\x08", 1) + std::string(7, '\0') + std::string(13, '\x15');
  std::string bytes = test::integer_field(1, 1) + test::bytes_field(2, "node") + test::integer_field(3, 7);
  bytes += test::bytes_field(10, test::bytes_field(1, "comm_type") + test::integer_field(9, 0));
  bytes += test::bytes_field(10, test::bytes_field(1, "comm_size") + test::bytes_field(21, size));
  for (std::uint32_t rank = 0; rank < 2; ++rank)
    write("trace." + std::to_string(rank) + ".et", header() + test::record(bytes));
  EXPECT_EQ(test::task_of(*load(), 0, 0).bytes(), 8);
}

// The records are those that Chakra's generators wrote at 7f6b398 and at c236cfa^.
TEST_F(ChakraFiles, OlderSchemasAreRead) {
  using test::bytes_field;
  using test::integer_field;
  const auto attribute = [](const std::string& name, std::uint64_t type, std::uint64_t field,
                            std::uint64_t value) {
    return bytes_field(11, bytes_field(1, name) + integer_field(2, type) + integer_field(field, value));
  };
  const auto gather = [&](std::uint64_t type, std::uint64_t field) {
    return test::record(integer_field(1, 4) + bytes_field(2, "gather") + integer_field(3, 7) +
                        attribute("comm_type", type, field, 2) + attribute("comm_size", type, field, 100));
  };
  // 0.0.3, early and late; 0.0.2, where a collective is node type 6.
  const std::string untyped =
      test::record(integer_field(1, 4) + bytes_field(2, "gather") + integer_field(3, 6) +
                   attribute("comm_type", 1, 5, 2) + attribute("comm_size", 1, 5, 100));
  // 0.0.1 has fields instead of attributes: comm_type 3 is an all-gather.
  const std::string flat = test::record(integer_field(1, 4) + bytes_field(2, "gather") + integer_field(3, 6) +
                                        integer_field(13, 3) + integer_field(18, 100));
  for (const std::string& bytes : {gather(2, 6), gather(3, 7), untyped, flat}) {
    for (const char* name : {"trace.0.et", "trace.1.et"}) write(name, bytes);
    const auto source = load();
    const Task task = test::task_of(*source, 0, 0);
    ASSERT_EQ(task.kind(), TaskKind::collective);
    EXPECT_EQ(task.collective().collective, CollectiveKind::all_gather);
    EXPECT_EQ(task.bytes(), 200);
  }
}

// The metadata may be empty or missing, and integers may be real numbers or texts.
TEST_F(ChakraFiles, TolerantOfWhatWritersLeaveOut) {
  const auto real = [](const std::string& key, double value) {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    std::string bytes;
    for (int i = 0; i < 8; ++i) bytes += static_cast<char>(bits >> (8 * i));
    return test::bytes_field(10, test::bytes_field(1, key) + test::varint(3 << 3 | 1) + bytes);
  };
  const auto text = [](const std::string& key, const std::string& value) {
    return test::bytes_field(10, test::bytes_field(1, key) + test::bytes_field(29, value));
  };
  const std::string node =
      test::record(test::integer_field(1, 1) + test::bytes_field(2, "sum") +
                   test::integer_field(3, kCollective) + text("comm_type", "0") + real("comm_size", 1000.0));
  for (const std::string& metadata : {std::string(), std::string(1, '\0'), header()}) {
    for (const char* rank : {"0", "1"}) write("rank_" + std::string(rank) + ".et", metadata + node);
    const auto source = load();
    EXPECT_EQ(source->ranks(), 2u);
    const Task task = test::task_of(*source, 1, 0);
    ASSERT_EQ(task.kind(), TaskKind::collective) << metadata.size();
    EXPECT_EQ(task.bytes(), 1000);
  }
}

TEST_F(ChakraFiles, AFileStandsForAllRanksBesideIt) {
  write_rank(0, {collective(0, 8)});
  const std::string second = write_rank(1, {collective(0, 8)});
  write("other.0.et", header() + ChakraRecord{.id = 1}.bytes());
  EXPECT_EQ(load_workload(second, 16)->ranks(), 2u);
  EXPECT_THAT(refused(), HasSubstr("is of another trace than"));
}

TEST_F(ChakraFiles, PackedFilesAreUnpacked) {
  const std::string bytes = header() + ChakraRecord{.id = 1, .duration = 3}.bytes();
  const std::string path = (folder_ / "trace.0.et.gz").string();
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
  EXPECT_EQ(load()->ranks(), 1u);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 6);
  EXPECT_THAT(refused(), HasSubstr("trace.0.et.gz: ends within its packed data"));
}

TEST_F(ChakraFiles, WrongOnesAreRefusedWithTheNode) {
  write_rank(0, {{.id = 3}, {.id = 3}});
  EXPECT_THAT(refused(), HasSubstr("trace.0.et: node 3 ('node') is in the file twice"));
  write_rank(0, {{.id = 3, .data = {4}}, {.id = 4, .data = {3}}});
  EXPECT_THAT(refused(),
              HasSubstr("trace.0.et: node 3 ('node') waits for node 4 ('node'), which waits for the first "
                        "one; allowed: no circle of waits"));
  write_rank(0, {{.id = 3, .data = {3}}});
  EXPECT_THAT(refused(), HasSubstr("trace.0.et: node 3 ('node') waits for itself"));
  write_rank(0, {{.id = 3, .type = kSend, .numbers = {{"comm_dst", 9}, {"comm_size", 1}}}});
  EXPECT_THAT(refused(), HasSubstr("node 3 ('node') sends to rank 9; allowed: another rank, 0 to 0"));
  write("trace.0.et", header() + ChakraRecord{.id = 1}.bytes() + "\x50");
  EXPECT_THAT(refused(), HasSubstr("record 3 does not fit a Chakra execution trace: it has 80 bytes, before "
                                   "which the file ends"));
  std::filesystem::remove(folder_ / "trace.0.et");
  write_rank(1, {{.id = 3}});
  EXPECT_THAT(refused(), HasSubstr("has no trace of rank 0, and one of rank 1"));
}

// Any damage gives an answer or one error.
TEST_F(ChakraFiles, DamagedOnesEndInOneError) {
  std::string bytes = header();
  bytes += ChakraRecord{.id = 1, .numbers = {{"is_cpu_op", 1}}, .duration = 7}.bytes();
  bytes += ChakraRecord{.id = 2, .type = kLoad, .numbers = {{"tensor_size", 64}}}.bytes();
  bytes += ChakraRecord{.id = 3, .type = kCompute, .data = {1, 2}, .duration = 5}.bytes();
  std::uint64_t state = 1;
  for (int i = 0; i < 400; ++i) {
    std::string damaged = bytes;
    for (int change = 0; change <= i % 3; ++change) {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      damaged[(state >> 33U) % damaged.size()] = static_cast<char>(state >> 20U);
    }
    write("trace.0.et", damaged);
    try {
      load();
    } catch (const InputError& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    }
  }
}

TEST(ChakraSamples, AllAreRead) {
  NETSIM_NEEDS_SHARED("samples/chakra_et");
  std::size_t traces = 0;
  for (const std::string& path : test::shared_files("samples/chakra_et", ".0.et")) {
    const auto source = load_workload(path, 16);
    EXPECT_GT(source->total_tasks().value_or(0), 0u) << path;
    ++traces;
  }
  EXPECT_GT(traces, 30u);
  const auto json =
      load_workload(test::shared_folder() + "/samples/chakra_et/mlcommons_tests/small_chakra.0.json", 16);
  EXPECT_EQ(json->total_tasks(), 7u);
}

}  // namespace
}  // namespace netsim::chakra_test
