// Tests that traces of PyTorch's profiler give the operations of each rank with what they wait for. Clocks
// and waiting are taken out, and ranks without a trace are filled in.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/errors.h"
#include "sim/workload/trace/kineto_job.h"
#include "sim/workload/trace/kineto_shape.h"
#include "sim/workload/workload.h"
#include "tests/support/mutations.h"
#include "tests/support/shared.h"
#include "tests/support/tasks_of.h"
#include "tests/support/workload_files.h"
#include "tests/workload/kineto_builder.h"

namespace netsim::kineto_test {
namespace {

using test::tasks_of;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using KinetoFiles = test::WorkloadFolderTest;

// ---- Waits

TEST(KinetoGraph, StreamsWaitForWhatWasRecorded) {
  Builder trace(0, 2, two_ranks());
  trace.kernel("a", 7, 0, 5, 100);
  const int recorded = trace.call("cudaEventRecord", 2);
  trace.kernel("b", 7, 4, 105, 50);
  trace.wait(20, 7, recorded, 6);
  trace.collective("allreduce", 64, 8, 105, 200);
  const KinetoJob job = trace.job();
  const KinetoGraph& graph = job.ranks()[0].graph;
  EXPECT_THAT(graph.after[1], ElementsAre(0));
  EXPECT_THAT(graph.after[2], ElementsAre(0));
  ASSERT_EQ(graph.points.size(), 1u);
  EXPECT_EQ(graph.points[0].work, 0);
  EXPECT_EQ(graph.unexplained, 0u);
}

// Old traces have whole microseconds. Correlations order the calls of one.
TEST(KinetoGraph, CorrelationsOrderCallsOfOneTime) {
  Builder trace(0, 2, two_ranks());
  trace.kernel("a", 7, 0, 5, 100);
  const int recorded = trace.call("cudaEventRecord", 0, 0);
  trace.kernel("b", 7, 0, 105, 50);
  trace.wait(20, 7, recorded, 0);
  trace.collective("allreduce", 64, 0, 105, 200);
  trace.collective("allreduce", 64, 0, 305, 200);
  const KinetoJob job = trace.job();
  const KinetoGraph& graph = job.ranks()[0].graph;
  EXPECT_THAT(graph.after[2], ElementsAre(0));
  EXPECT_THAT(graph.after[3], ElementsAre(2));
}

// netsim's own traces record all waits and have one clock.
TEST(KinetoGraph, NothingIsInferredWhereAllWaitsAreRecorded) {
  Builder trace(0, 2, two_ranks(), R"("netsim": {"waits": true},)");
  trace.kernel("a", 7, 0, 5, 100);
  trace.collective("allreduce", 64, 2, 105, 200);
  const KinetoJob job = trace.job();
  EXPECT_THAT(job.ranks()[0].graph.after[1], IsEmpty());
  EXPECT_EQ(job.ranks()[0].graph.inferred, 0u);
  EXPECT_TRUE(job.ranks()[0].trace.is_simulated);
}

TEST(KinetoGraph, WaitsThatTimesContradictAreLeftOut) {
  Builder trace(0, 2, two_ranks());
  trace.kernel("a", 7, 0, 5, 100);
  const int recorded = trace.call("cudaEventRecord", 2);
  trace.wait(20, 7, recorded, 6);
  trace.collective("allreduce", 64, 8, 50, 200);
  const KinetoJob job = trace.job();
  EXPECT_THAT(job.ranks()[0].graph.after[1], IsEmpty());
  EXPECT_EQ(job.ranks()[0].graph.contradicted, 1u);
}

// By rounded times the kernel seems to have ended when the all-reduce begins, but it has not begun then.
TEST(KinetoGraph, NothingWaitsForWhatBeginsLater) {
  Builder trace(0, 2, two_ranks());
  trace.kernel("a", 7, 0, 6, 1);
  trace.collective("allreduce", 64, 2, 5.5, 1);
  const KinetoJob job = trace.job();
  EXPECT_THAT(job.ranks()[0].graph.after[1], IsEmpty());
  EXPECT_EQ(job.ranks()[0].graph.contradicted, 1u);
}

TEST(KinetoGraph, WithoutRecordsWaitsFollowFromLaunchesAndTimes) {
  Builder trace(0, 2, two_ranks());
  trace.kernel("a", 7, 0, 5, 100);
  trace.collective("allreduce", 64, 2, 105, 200);
  trace.kernel("b", 7, 4, 105, 50);
  trace.kernel("c", 7, 6, 306, 50);
  const KinetoJob job = trace.job();
  const KinetoGraph& graph = job.ranks()[0].graph;
  EXPECT_THAT(graph.after[1], ElementsAre(0));
  EXPECT_THAT(graph.after[2], ElementsAre(0));
  EXPECT_THAT(graph.after[3], ElementsAre(2, 1));
  EXPECT_EQ(graph.inferred, 2u);
}

// The CPU works 40 us, waits for the first kernel, and works 15 us more until it launches the second one.
TEST(KinetoGraph, TheCpuDoesNoWorkWhileItWaits) {
  Builder trace;
  trace.kernel("a", 7, 0, 5, 1000);
  trace.call("cudaStreamSynchronize", 40, 970);
  trace.kernel("b", 7, 1020, 1025, 10);
  const KinetoJob job = trace.job();
  const KinetoGraph& graph = job.ranks()[0].graph;
  ASSERT_EQ(graph.points.size(), 3u);
  EXPECT_EQ(graph.points[1].work, 40000);
  EXPECT_EQ(graph.points[1].op, kNoKineto);
  EXPECT_EQ(graph.points[2].work, 15000);
  EXPECT_THAT(graph.points[2].after, ElementsAre(0));
  EXPECT_EQ(graph.points[2].op, 1u);
}

TEST(KinetoGraph, WaitingThatNothingExplainsIsCounted) {
  Builder trace;
  trace.kernel("a", 7, 0, 5, 100);
  trace.kernel("b", 7, 2, 145, 10);
  const KinetoJob job = trace.job();
  EXPECT_EQ(job.ranks()[0].graph.unexplained, 1u);
  EXPECT_EQ(job.ranks()[0].graph.unexplained_time, 40000);
}

// Kernels that ran at the same time shared the GPU, as they do in the replay.
TEST(KinetoGraph, KernelsThatOverlapHaveTheirShareOfWork) {
  Builder trace;
  trace.kernel("a", 7, 0, 5, 100);
  trace.kernel("b", 23, 1, 45, 100);
  const KinetoJob job = trace.job();
  EXPECT_THAT(kineto_work(job.ranks()[0].trace, {true, true}), ElementsAre(70000, 70000));
  EXPECT_THAT(kineto_work(job.ranks()[0].trace, {true, false}), ElementsAre(100000, 0));
}

// ---- Ranks

TEST_F(KinetoFiles, SizesAreThoseOfNetsim) {
  Builder trace(0, 2, two_ranks());
  trace.kernel("ncclDevKernel_AllGather", 20, 0, 5, 10,
               R"(, "Collective name": "_allgather_base", "In msg nelems": 8, "Out msg nelems": 16, )"
               R"("dtype": "BFloat16", "Process Group Name": "0")");
  trace.kernel("ncclDevKernel_ReduceScatter", 20, 1, 15, 10,
               R"(, "Collective name": "_reduce_scatter_base", "In msg nelems": 16, "Out msg nelems": 8, )"
               R"("dtype": "Float", "Process Group Name": "0")");
  trace.collective("barrier", 0, 2, 25, 10);
  write("rank0.json", trace.text());
  const auto source = load();
  EXPECT_EQ(source->ranks(), 2u);
  std::vector<std::string> found;
  for (const Task& task : tasks_of(*source, 1)) {
    if (task.kind() == TaskKind::collective)
      found.push_back(fmt::format("{} {}", to_string(task.collective().collective), task.bytes()));
  }
  EXPECT_THAT(found, ElementsAre("all_gather 32", "reduce_scatter 64", "barrier 4"));
  EXPECT_THAT(source->notes(),
              Contains(HasSubstr("ranks without a trace: 1, which do what the traced rank does")));
}

// Rank 5 of a grid of 2 x 4 is traced: rank 6 is in the moved groups.
TEST_F(KinetoFiles, GroupsMoveWithTheRank) {
  Builder trace(
      5, 8, R"({"pg_name": "t", "ranks": [4, 5]}, {"pg_name": "d", "pg_desc": "dp", "ranks": [1, 3, 5, 7]})");
  trace.collective("allreduce", 64, 0, 5, 10, "t");
  trace.collective("allreduce", 64, 1, 15, 10, "d");
  write("rank5.json", trace.text());
  const auto source = load();
  std::vector<std::vector<RankId>> groups;
  for (const Task& task : tasks_of(*source, 6)) {
    if (task.kind() == TaskKind::collective) groups.push_back(source->group(task.collective().group));
  }
  EXPECT_THAT(groups, ElementsAre(ElementsAre(6, 7), ElementsAre(0, 2, 4, 6)));
}

TEST_F(KinetoFiles, OtherEndsOfMessagesAreAlwaysReady) {
  Builder trace(1, 3);
  trace.message("recv", 0, 0, 5, 30);
  trace.kernel("a", 7, 1, 6, 10);
  trace.message("send", 2, 2, 40, 10);
  write("rank1.json", trace.text());
  const auto source = load();
  EXPECT_EQ(tasks_of(*source, 0).at(0).kind(), TaskKind::send);
  EXPECT_EQ(tasks_of(*source, 0).at(0).bytes(), 512);
  EXPECT_EQ(tasks_of(*source, 2).at(0).kind(), TaskKind::receive);
  EXPECT_THAT(source->notes(), Contains(HasSubstr("are always ready")));
}

TEST_F(KinetoFiles, PackedFilesAndFilesOfRanksAreRead) {
  for (const std::uint32_t rank : {0U, 1U}) {
    Builder trace(rank, 2, two_ranks());
    trace.collective("allreduce", 64, 0, 5 + rank, 10);
    const std::string text = trace.text();
    gzFile file = gzopen((folder_ / fmt::format("r{}.json.gz", rank)).c_str(), "wb");
    gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
    gzclose(file);
  }
  EXPECT_THAT(load()->notes(), Contains(HasSubstr("differ by up to 1.00 us")));
}

TEST_F(KinetoFiles, WrongOnesAreRefusedWithTheirPlace) {
  Builder trace(0, 2, two_ranks());
  trace.collective("allreduce", 64, 0, 5, 10);
  write("a.json", trace.text());
  write("b.json", trace.text());
  EXPECT_THAT(refused(), HasSubstr("b.json: is of rank 0, as is"));
  std::filesystem::remove(folder_ / "b.json");
  write("a.json", trace.text().substr(0, trace.text().size() - 3));
  EXPECT_THAT(refused(),
              HasSubstr("a.json:4:253: is no JSON, because the file ends too early: syntax error"));
  write("a.json", Builder(3, 2, two_ranks()).text());
  EXPECT_THAT(refused(), HasSubstr("a.json: has no operation of a GPU"));
  Builder late(3, 2, two_ranks());
  late.kernel("a", 7, 0, 5, 10);
  write("a.json", late.text());
  EXPECT_THAT(refused(), HasSubstr("a.json: is of rank 3; allowed: 0 to 1"));
  Builder wide(0, 2, R"({"pg_name": "0", "ranks": [0, 7]})");
  wide.collective("allreduce", 64, 0, 5, 10);
  write("a.json", wide.text());
  EXPECT_THAT(refused(), HasSubstr("a.json: rank 7 is in a group, and the job has 2 ranks"));
  Builder begun;
  begun.kernel("a", 7, 0, 5, 10);
  write("a.json",
        replaced(begun.text(), "\"ph\": \"X\", \"cat\": \"kernel\"", "\"ph\": \"B\", \"cat\": \"kernel\""));
  EXPECT_THAT(refused(),
              HasSubstr("a.json:4: the event 'a' has the phase B; allowed for operations of a GPU: X"));
  write("a.json",
        "{\"schemaVersion\": 1, \"distributedInfo\": {},\n\"traceEvents\": [\n"
        "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"a\", \"ts\": 1}]}");
  EXPECT_THAT(refused(), HasSubstr("a.json:3: the event 'a' has no number as its ts or dur"));
}

TEST_F(KinetoFiles, DamagedOnesEndInOneError) {
  Builder trace(0, 2, two_ranks());
  trace.kernel("a", 7, 0, 5, 100);
  trace.wait(20, 7, trace.call("cudaEventRecord", 2), 6);
  trace.collective("allreduce", 64, 8, 105, 200);
  test::expect_sane(
      trace.text(),
      [this](const std::string& given) {
        write("a.json", given);
        load();
      },
      600);
}

// ---- Shapes

std::string shaped(const std::string& kernel, const KinetoShape& shape) {
  const std::optional<Kernel> found = kineto_kernel(kernel, shape);
  if (!found) return "none";
  if (found->kind == Kernel::Kind::memory) return fmt::format("memory {}", found->bytes);
  return fmt::format("{} {} x {} x {} of {} {} {}", found->kind == Kernel::Kind::gemm ? "gemm" : "attention",
                     found->m, found->n, found->k, found->batch, to_string(found->precision), found->bytes);
}

TEST(KinetoShapes, TellTheWorkOfKernels) {
  const std::string bf16 = "c10::BFloat16",
                    gemm = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64";
  EXPECT_EQ(shaped(gemm, {"aten::mm", {{64, 32}, {32, 16}}, {bf16, bf16}}), "gemm 64 x 16 x 32 of 1 half 0");
  EXPECT_EQ(
      shaped("Cijk_Alik_Bljk", {"aten::addmm", {{16}, {64, 32}, {32, 16}, {}}, {"float", "float", "float"}}),
      "gemm 64 x 16 x 32 of 1 fp32 0");
  EXPECT_EQ(
      shaped("nvjet_hsh_128x256", {"aten::bmm", {{4, 64, 32}, {4, 32, 16}}, {"c10::Half", "c10::Half"}}),
      "gemm 64 x 16 x 32 of 4 half 0");
  EXPECT_EQ(shaped("cutlass_tf32", {"aten::linear", {{2, 64, 32}, {16, 32}}, {"float", "float"}}),
            "gemm 128 x 16 x 32 of 1 tf32 0");
  const std::vector<std::vector<std::int64_t>> heads{{2, 1024, 8, 128}, {2, 512, 8, 128}, {2, 512, 8, 128}};
  EXPECT_EQ(shaped("flash_fwd_kernel", {"aten::_flash_attention_forward", heads, {bf16, bf16, bf16}}),
            "attention 1024 x 512 x 256 of 16 half 12582912");
  std::vector<std::vector<std::int64_t>> with_gradient = heads;
  with_gradient.insert(with_gradient.begin(), heads[0]);
  EXPECT_EQ(shaped("flash_bwd_kernel",
                   {"aten::_flash_attention_backward", with_gradient, {bf16, bf16, bf16, bf16}}),
            "attention 1024 x 512 x 640 of 16 half 25165824");
  EXPECT_EQ(shaped("vectorized_elementwise_kernel",
                   {"aten::add", {{64, 32}, {32}, {}}, {"float", "float", "Scalar"}}),
            "memory 16512");
}

TEST(KinetoShapes, TellNothingWhereTheyDoNotFit) {
  EXPECT_EQ(shaped("my_kernel", {"aten::mm", {{64, 32}, {32, 16}}, {"float", "float"}}), "none");
  EXPECT_EQ(shaped("gemm", {"aten::mm", {{64, 32}, {31, 16}}, {"float", "float"}}), "none");
  EXPECT_EQ(shaped("gemm", {"aten::mm", {{64, 32}}, {"float"}}), "none");
  EXPECT_EQ(shaped("gemm", {"aten::mm", {{0, 32}, {32, 16}}, {"float", "float"}}), "none");
  EXPECT_EQ(shaped("gemm", {"aten::mm", {{64, INT64_MAX}, {INT64_MAX, 16}}, {"float", "float"}}), "none");
  EXPECT_EQ(shaped("gemm", {"my::op", {{64, 32}, {32, 16}}, {"float", "float"}}), "none");
  EXPECT_EQ(shaped("flash", {"my::op", {{64, 32}, {32, 16}, {1}}, {"float", "float"}}), "none");
  EXPECT_EQ(shaped("elementwise", {"aten::foreach", {{}, {}}, {"TensorList", ""}}), "none");
}

TEST_F(KinetoFiles, KernelsHaveTheShapesOfTheirOperators) {
  Builder trace;
  trace.event("cpu_op", "aten::addmm", 1, 1, 0, 3,
              R"("External id": 5, "Input Dims": [[16], [64, 32], [32, 16], [], [[1, 2], [3]]], )"
              R"("Input type": ["float", "float", "float", "Scalar", "TensorList"])");
  trace.kernel("sgemm", 7, 1, 5, 100, R"(, "External id": 5)");
  trace.kernel("sgemm", 7, 2, 105, 100);
  write("rank0.json", trace.text());
  WorkloadContext context = 16;
  context.times_by_shape = [](const std::string& kernel) { return kernel == "sgemm"; };
  const auto source = load_workload(folder_.string(), context);
  std::vector<std::int64_t> rows;
  for (const Task& task : tasks_of(*source, 0)) {
    if (task.kind() == TaskKind::compute) rows.push_back(source->works()[task.work()].kernels[0].m);
  }
  EXPECT_THAT(rows, ElementsAre(64, 0));
  EXPECT_THAT(source->notes(),
              Contains(HasSubstr("by their recorded shapes, without the pauses before them: 1 (")));
  EXPECT_THAT(source->notes(), Contains(HasSubstr("keep their recorded times: 1 (100 us)")));
  const auto plain = load();
  for (const Task& task : tasks_of(*plain, 0)) {
    if (task.kind() != TaskKind::compute) continue;
    EXPECT_EQ(plain->works()[task.work()].kernels[0].kind, Kernel::Kind::fixed);
  }
}

// ---- Samples

// Returns when the last rank of the sample ends if communications take their shortest recorded times, and all
// members begin together.
double replayed(const KinetoJob& job) {
  constexpr std::int64_t kBegin = 5'000'000;  // the sample counts from 5,000 us
  std::vector<std::vector<double>> ends;
  for (const KinetoJob::Rank& rank : job.ranks()) ends.emplace_back(rank.trace.ops.size(), -1);
  const auto ready = [&](std::size_t r, std::uint32_t op) {
    double time = static_cast<double>(job.ranks()[r].graph.first - job.ranks()[r].offset - kBegin);
    for (const std::uint32_t before : job.ranks()[r].graph.after[op]) {
      if (ends[r][before] < 0) return -1.0;
      time = std::max(time, ends[r][before]);
    }
    return time + static_cast<double>(job.ranks()[r].graph.gaps[op]);
  };
  double last = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t r = 0; r < ends.size(); ++r) {
      const KinetoJob::Rank& rank = job.ranks()[r];
      for (std::uint32_t op = 0; op < ends[r].size(); ++op) {
        if (ends[r][op] >= 0 || ready(r, op) < 0) continue;
        const auto one = std::find_if(rank.communications.begin(), rank.communications.end(),
                                      [&](const KinetoCommunication& c) { return c.op == op; });
        double begin = ready(r, op), time = static_cast<double>(rank.trace.ops[op].duration);
        if (one != rank.communications.end()) {
          const KinetoJob::Instance& instance = job.instances()[one->instance];
          time = static_cast<double>(instance.time);
          bool all = true;
          for (const auto& [member, c] : instance.members) {
            const double other = ready(member, job.ranks()[member].communications[c].op);
            all = all && other >= 0;
            begin = std::max(begin, other);
          }
          if (!all) continue;
        }
        ends[r][op] = begin + time;
        last = std::max(last, ends[r][op]);
        moved = true;
      }
    }
  }
  return last;
}

TEST(KinetoSamples, FourRanksGiveWhatIsExpected) {
  NETSIM_NEEDS_SHARED("samples/kineto/synthetic_4rank");
  const std::string folder = test::shared_folder() + "/samples/kineto/synthetic_4rank/";
  std::vector<std::string> paths;
  paths.reserve(4);
  for (int rank = 0; rank < 4; ++rank) paths.push_back(folder + "rank" + std::to_string(rank) + ".json");
  const KinetoJob job{InputSet(InputPaths(paths))};
  const nlohmann::json expected = nlohmann::json::parse(std::ifstream(folder + "EXPECTED.json"));
  const auto ns = [](const nlohmann::json& us) { return std::llround(us.get<double>() * 1000); };
  ASSERT_EQ(job.world(), 4u);
  for (std::size_t r = 0; r < 4; ++r) {
    const KinetoJob::Rank& rank = job.ranks()[r];
    EXPECT_EQ(rank.offset, ns(expected["clock_offset_us"][r])) << r;
    EXPECT_EQ(rank.delay, 0) << r;
    EXPECT_EQ(rank.graph.unexplained + rank.graph.contradicted, 0u) << r;
    const nlohmann::json& ops = expected["ranks"][std::to_string(r)];
    ASSERT_EQ(rank.trace.ops.size(), ops.size());
    std::size_t communication = 0;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const nlohmann::json& wanted = ops[i];
      const KinetoOp& op = rank.trace.ops[i];
      const std::string where = fmt::format("rank {} operation {}", r, i);
      EXPECT_EQ(op.stream.second, wanted["stream"].get<std::int64_t>()) << where;
      std::vector<std::uint32_t> after = rank.graph.after[i];
      std::sort(after.begin(), after.end());
      EXPECT_EQ(after, wanted["deps"].get<std::vector<std::uint32_t>>()) << where;
      if (wanted["kind"] == "compute") {
        EXPECT_EQ(rank.trace.names[op.name], wanted["name"].get<std::string>()) << where;
        EXPECT_EQ(op.duration, ns(wanted["us"])) << where;
        continue;
      }
      ASSERT_LT(communication, rank.communications.size());
      const KinetoCommunication& one = rank.communications[communication++];
      EXPECT_EQ(one.op, i);
      EXPECT_EQ(rank.trace.calls[op.call].name, wanted["coll"].get<std::string>()) << where;
      EXPECT_EQ(op.duration, ns(wanted["kernel_us"])) << where;
      EXPECT_EQ(job.instances()[one.instance].time, ns(wanted["comm_us"])) << where;
      EXPECT_EQ(one.bytes, std::max(wanted["bytes_in"].get<Bytes>(), wanted["bytes_out"].get<Bytes>()))
          << where;
      if (wanted.contains("peer")) {
        EXPECT_EQ(one.peer, wanted["peer"].get<std::uint32_t>()) << where;
        EXPECT_EQ(one.kind, wanted["coll"] == "send" ? KinetoCommunication::Kind::send
                                                     : KinetoCommunication::Kind::receive);
      } else {
        std::vector<std::uint32_t> members;
        for (const RankId member : job.groups()[one.group].ranks) members.push_back(member + 0U);
        EXPECT_EQ(members, wanted["ranks"].get<std::vector<std::uint32_t>>()) << where;
      }
    }
  }
  EXPECT_NEAR(replayed(job), expected["makespan_us"].get<double>() * 1000, 1);
}

TEST(KinetoSamples, OthersAreReadOrRefused) {
  NETSIM_NEEDS_SHARED("samples/kineto");
  std::size_t read = 0;
  for (const std::string& path : test::shared_files("samples/kineto", ".json.gz")) {
    if (path.find("cpu_only") != std::string::npos) {
      EXPECT_THROW(load_workload(path, 512), InputError);
      continue;
    }
    EXPECT_GT(load_workload(path, 16)->total_tasks().value_or(0), 0u) << path;
    ++read;
  }
  EXPECT_EQ(read, 6u);
}

}  // namespace
}  // namespace netsim::kineto_test
