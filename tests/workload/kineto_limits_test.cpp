// Tests of the limits of Kineto traces: times before the base, layouts of attention and several devices. A
// folder may have other files, and fields may contradict each other.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/workload/trace/kineto_shape.h"
#include "sim/workload/workload.h"
#include "tests/support/tasks_of.h"
#include "tests/support/workload_files.h"
#include "tests/workload/kineto_builder.h"

namespace netsim::kineto_test {
namespace {

using test::tasks_of;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

using KinetoLimits = test::WorkloadFolderTest;

// Returns the works of a rank's computations [us].
std::vector<Time> works_of(const TaskSource& source) {
  std::vector<Time> works;
  for (const Task& task : tasks_of(source, 0)) {
    if (task.kind() == TaskKind::compute)
      works.push_back(source.works()[task.work()].kernels[0].duration / kMicrosecond);
  }
  return works;
}

// The first kernel begins before the base of the trace's times, and the second one spans it.
TEST_F(KinetoLimits, TimesBeforeTheBaseCount) {
  Builder trace;
  trace.kernel("a", 7, -5005, -5000, 1000);
  trace.kernel("b", 7, -505, -500, 1000);
  write("rank0.json", trace.text());
  EXPECT_THAT(works_of(*load()), ElementsAre(1000, 1000));
}

std::string attention_of(const std::string& operation, std::vector<std::vector<std::int64_t>> dims) {
  const std::vector<std::string> types(dims.size(), "c10::BFloat16");
  const auto kernel = kineto_kernel("cudnn_sdpa_flash_fprop", {operation, std::move(dims), types});
  return kernel ? fmt::format("{} x {} x {} of {}", kernel->m, kernel->n, kernel->k, kernel->batch) : "none";
}

TEST(KinetoAttention, TheOperatorTellsThePlaceOfTheHeads) {
  const std::vector<std::int64_t> query{2, 8, 1024, 128}, key{2, 4, 512, 128};
  for (const char* operation :
       {"aten::_scaled_dot_product_cudnn_attention", "aten::_scaled_dot_product_flash_attention",
        "aten::_scaled_dot_product_efficient_attention", "aten::scaled_dot_product_attention",
        "aten::_cudnn_attention_forward"})
    EXPECT_EQ(attention_of(operation, {query, key, key}), "1024 x 512 x 256 of 16") << operation;
  EXPECT_EQ(attention_of("aten::_scaled_dot_product_flash_attention_backward", {query, query, key, key}),
            "1024 x 512 x 640 of 16");
  const std::vector<std::int64_t> tokens{2, 1024, 8, 128};
  for (const char* operation : {"aten::_flash_attention_forward", "aten::_efficient_attention_forward",
                                "flash_attn::_flash_attn_forward", "FlashAttnFunc"})
    EXPECT_EQ(attention_of(operation, {tokens, tokens, tokens}), "1024 x 1024 x 256 of 16") << operation;
}

// The lengths of packed sequences and the inputs of unknown operators are not recorded.
TEST(KinetoAttention, PackedSequencesAndUnknownOperatorsTellNothing) {
  const std::vector<std::int64_t> packed{1, 8192, 8, 128}, flat{8192, 8, 128};
  EXPECT_EQ(attention_of("aten::_efficient_attention_forward", {packed, packed, packed, {}, {5}, {5}}),
            "none");
  EXPECT_EQ(attention_of("aten::_efficient_attention_forward", {packed, packed, packed, {}, {}, {}}),
            "8192 x 8192 x 256 of 8");
  EXPECT_EQ(attention_of("flash_attn::_flash_attn_varlen_forward", {flat, flat, flat}), "none");
  EXPECT_EQ(attention_of("FusedAttnFunc", {packed, packed, packed}), "none");
}

TEST_F(KinetoLimits, OtherJsonOfTheFolderIsLeftOut) {
  Builder trace;
  trace.kernel("a", 7, 0, 5, 100);
  write("rank0.json", trace.text());
  write("manifest.json", R"({"a": 1})");
  write("hosts.json", R"([1, 2])");
  EXPECT_THAT(load()->notes(), Contains(HasSubstr("are left out: 2 (hosts.json, manifest.json)")));
  write("rank1.json", "garbage");
  EXPECT_THAT(refused(), HasSubstr("rank1.json: is of no known format"));
}

// A kernel needs no arguments where the profiler's schema is named.
TEST_F(KinetoLimits, KernelsWithoutArgumentsAreRead) {
  const std::string events =
      R"("traceEvents": [{"ph": "X", "cat": "kernel", "name": "a", "ts": 1, "dur": 5}]})";
  write("a.json", R"({"schemaVersion": 1, )" + events);
  EXPECT_THAT(works_of(*load()), ElementsAre(5));
  EXPECT_THAT(load()->notes(), Not(Contains(HasSubstr("launched late"))));
  write("a.json", "{" + events);
  EXPECT_THAT(refused(),
              AllOf(HasSubstr("is a Chrome trace (JSON): netsim reads those of PyTorch's profiler"),
                    Not(HasSubstr("yet"))));
}

TEST_F(KinetoLimits, ACommaTooManyIsNoEarlyEnd) {
  Builder trace;
  trace.kernel("a", 7, 0, 5, 100);
  std::string text = trace.text();
  text.insert(text.size() - 1, ",");
  write("a.json", text);
  EXPECT_THAT(refused(), AllOf(HasSubstr("is no JSON: "), Not(HasSubstr("too early"))));
  write("a.json", text.substr(0, text.size() - 3));
  EXPECT_THAT(refused(), HasSubstr("because the file ends too early"));
}

// One process with two GPUs, whose kernels are on device 0 and device 1.
std::string two_devices(double second_begin) {
  Builder trace;
  trace.event("kernel", "a", 0, 7, 0, 1000, R"("device": 0, "stream": 7, "correlation": 1)");
  trace.event("kernel", "b", 1, 7, second_begin, 1000, R"("device": 1, "stream": 7, "correlation": 2)");
  return trace.text();
}

TEST_F(KinetoLimits, DevicesThatComputeAtTheSameTimeAreRefused) {
  write("a.json", two_devices(500));
  EXPECT_THAT(refused(),
              HasSubstr("a.json: the kernels 'a' of device 0 and 'b' of device 1 ran at the same time"));
  write("a.json", two_devices(1000));
  EXPECT_THAT(works_of(*load()), ElementsAre(1000, 1000));
  EXPECT_THAT(load()->notes(), Contains(HasSubstr("several devices in turn")));
}

TEST_F(KinetoLimits, TheFolderNamesTheJob) {
  for (const std::uint32_t rank : {0U, 1U}) {
    Builder trace(rank, 2, two_ranks());
    trace.kernel("a", 7, 0, 5, 100);
    write(fmt::format("rank{}.json", rank), trace.text());
  }
  EXPECT_EQ(load()->job_name(), folder_.filename().string());
  EXPECT_EQ(load_workload((folder_ / "rank1.json").string(), 16)->job_name(), "rank1");
  // No collective aligns the second clock, so nothing is said of aligned ones.
  EXPECT_THAT(load()->notes(), Not(Contains(HasSubstr("differ by up to"))));
}

TEST_F(KinetoLimits, FieldsThatAreNotAllowedHaveTheirPlace) {
  Builder trace(0, 2, two_ranks());
  trace.kernel("a", 7, 0, 5, 100);
  const std::string text = trace.text();
  write("a.json", replaced(text, R"("rank": 0)", R"("rank": -1)"));
  EXPECT_THAT(refused(), HasSubstr("a.json:1: rank in distributedInfo is -1; allowed: integers from 0 on"));
  write("a.json", replaced(text, R"("world_size": 2)", R"("world_size": "a")"));
  EXPECT_THAT(refused(), HasSubstr("a.json:1: world_size in distributedInfo is 'a'; allowed"));
  write("a.json", replaced(text, R"("dur": 100.000)", R"("dur": 1e13)"));
  EXPECT_THAT(refused(), HasSubstr("a.json:4: the event 'a' has a dur of 10000000000000 us; allowed: up to"));
  write("a.json", replaced(text, R"("dur": 100.000)", R"("dur": NaN)"));
  EXPECT_THAT(refused(), HasSubstr("a.json:4: the event 'a' has no number as its ts or dur"));
}

std::string all_reduce_of(const std::string& ranks, int size) {
  Builder trace(0, 4, R"({"pg_name": "0", "ranks": [0, 1]})");
  trace.kernel("ncclDevKernel_AllReduce", 20, 2, 105, 200,
               fmt::format(R"(, "Collective name": "allreduce", "In msg nelems": 64, "dtype": "Float", )"
                           R"("Group size": {}, "Process Group Name": "0", "Process Group Ranks": "{}")",
                           size, ranks));
  return trace.text();
}

TEST_F(KinetoLimits, GroupsThatContradictThemselvesAreCounted) {
  constexpr const char* kNote = "calls whose group has other ranks in pg_config, or another size";
  write("a.json", all_reduce_of("[0, 1]", 2));
  EXPECT_THAT(load()->notes(), Not(Contains(HasSubstr(kNote))));
  write("a.json", all_reduce_of("[0, 1]", 4));
  EXPECT_THAT(load()->notes(), Contains(HasSubstr(kNote)));
  write("a.json", all_reduce_of("[0, 2]", 2));
  EXPECT_THAT(load()->notes(), Contains(HasSubstr(kNote)));
  write("a.json", replaced(all_reduce_of("[0, 0]", 2), R"("pg_name": "0")", R"("pg_name": "1")"));
  EXPECT_THAT(refused(), HasSubstr("a.json: rank 0 is twice in a group of 2 ranks"));
}

}  // namespace
}  // namespace netsim::kineto_test
