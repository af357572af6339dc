// Kernels by a table of measured times.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "sim/compute/compute_model.h"
#include "sim/core/errors.h"
#include "sim/core/registry.h"
#include "tests/report/fixtures.h"

namespace netsim::measured_test {
namespace {

using ::testing::HasSubstr;

class MeasuredKernels : public ::testing::Test {
 protected:
  std::unique_ptr<ComputeModel> model(const std::string& table, const std::string& more = "") {
    std::ofstream(path_) << table;
    return Registry<ComputeModel>::instance().create(
        parse_config("{kind: measured, file: " + path_ + more + "}", "compute.yaml"), "");
  }
  std::string refusal(const std::string& table) {
    try {
      model(table);
    } catch (const InputError& error) {
      return std::string(error.what()).substr(path_.size());
    }
    return "taken";
  }

  test::Directory directory_;
  std::string path_ = directory_.path() + "/kernels.csv";
};

Kernel gemm(const std::string& name, std::int64_t m, Precision precision = Precision::half) {
  Kernel kernel;
  kernel.kind = Kernel::Kind::gemm;
  kernel.name = name;
  kernel.m = m;
  kernel.n = 64;
  kernel.k = 32;
  kernel.precision = precision;
  return kernel;
}

TEST_F(MeasuredKernels, TakeTheFirstRowThatFits) {
  const auto timed = model(
      "# timed with our profiler\nkernel,m,n,k,precision,time_us\n"
      "qkv_gemm,128,64,32,fp8,1.5\nqkv_gemm,128,64,32,,2.5\n,256,,,,7\nsoftmax,,,,,9\n");
  EXPECT_EQ(timed->duration(gemm("qkv_gemm", 128, Precision::fp8)), 1'500'000);
  EXPECT_EQ(timed->duration(gemm("qkv_gemm", 128)), 2'500'000);
  EXPECT_EQ(timed->duration(gemm("other", 256)), 7'000'000);
  Kernel softmax;
  softmax.name = "softmax";
  softmax.bytes = 12345;
  EXPECT_EQ(timed->duration(softmax), 9'000'000);
  EXPECT_THAT(timed->objection(gemm("other", 128)),
              HasSubstr("no row of " + path_ + " fits (m 128, n 64, k 32"));
  Kernel fixed;
  fixed.kind = Kernel::Kind::fixed;
  fixed.duration = 5;
  EXPECT_EQ(timed->objection(fixed), "");
  EXPECT_EQ(timed->duration(fixed), 5);
}

TEST_F(MeasuredKernels, LeaveTheRestToAnotherModel) {
  const auto timed = model("kernel,time\nqkv_gemm,3 ms\n", ", otherwise: a100_80gb");
  const auto a100 = Registry<ComputeModel>::instance().create("a100_80gb");
  EXPECT_EQ(timed->duration(gemm("qkv_gemm", 999)), 3 * kMillisecond);
  EXPECT_EQ(timed->duration(gemm("other", 999)), a100->duration(gemm("other", 999)));
  EXPECT_EQ(timed->peak_flops(), a100->peak_flops());
  EXPECT_THAT(timed->objection(gemm("other", 1, Precision::fp8)), HasSubstr("has no fp8"));
}

// A row with a misspelt kernel would leave the kernel to another row or model without a message.
TEST_F(MeasuredKernels, NoteRowsThatTimedNothing) {
  const auto timed =
      model("# ours\nkernel,m,time_us\nqkv_gemm,128,1\nqvk_gemm,128,2\nqkv_gemm,,3\nqkv_gemm,256,4\n",
            ", otherwise: a100_80gb");
  const Kernel narrow = gemm("qkv_gemm", 128), wide = gemm("qkv_gemm", 256);
  EXPECT_THAT(timed->notes({&narrow, &wide}),
              ::testing::ElementsAre(
                  path_ + ":4: this row timed no kernel: no kernel of the workload matches its cells",
                  path_ + ":6: this row timed no kernel: earlier rows match all kernels that it fits"));
  std::string many = "kernel,time_us\nqkv_gemm,1\n";
  for (int i = 0; i < 9; ++i) many += "other" + std::to_string(i) + ",1\n";
  const std::vector<std::string> notes = model(many)->notes({&narrow});
  EXPECT_EQ(notes.size(), 6u);
  EXPECT_EQ(notes.back(), path_ + ": 4 more rows timed no kernel");
}

TEST_F(MeasuredKernels, RefuseWhatIsWrongAtItsPlace) {
  EXPECT_EQ(refusal("kernel,time_us\nx,1\n"), "taken");
  EXPECT_THAT(refusal("kernel,time_su\n"),
              HasSubstr(":1:8: unknown column 'time_su', did you mean 'time_us'?"));
  EXPECT_THAT(refusal("kernel,m\nx,1\n"), HasSubstr(":1:1: one column 'time_us'"));
  EXPECT_THAT(refusal("kernel,time,time_us\nx,1 us,1\n"), HasSubstr("and not both"));
  EXPECT_THAT(refusal("kernel,time_us\n"), HasSubstr("no rows follow the header"));
  EXPECT_THAT(refusal("kernel,time_us\nx\n"), HasSubstr(":2:1: 1 cells, but the header has 2 columns"));
  EXPECT_THAT(refusal("kernel,time_us\nx,fast\n"), HasSubstr(":2:3: the time is 'fast'"));
  EXPECT_THAT(refusal("m,time_us\n-1,1\n"), HasSubstr(":2:1: m is '-1'"));
  EXPECT_THAT(refusal("precision,time_us\nbf16,1\n"),
              HasSubstr(":2:1: the precision is 'bf16'; allowed: half, fp32, tf32, fp8, fp4"));
  EXPECT_THAT(refusal(""), HasSubstr("no line that names columns"));
}

}  // namespace
}  // namespace netsim::measured_test
