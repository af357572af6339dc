// Tests that the input is recognised by its content, and that the shipped .pb equals what its YAML gives. Any
// file that is not a workload is refused in one line with its name.
#include "sim/workload/workload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "sim/core/errors.h"
#include "sim/core/output.h"
#include "tests/support/paths.h"
#include "tests/support/tasks_of.h"

namespace netsim::workload_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string kRoot = source_directory();

class WorkloadFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ =
        std::filesystem::path(::testing::TempDir()) /
        ("netsim_workload_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string write(const std::string& name, const std::string& bytes) const {
    const std::string path = (directory_ / name).string();
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  // Exit code and message of a load.
  static std::pair<ExitCode, std::string> load(const std::string& path) {
    try {
      load_workload(path, 16);
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
      return {error.code(), error.what()};
    }
    return {ExitCode::done, ""};
  }
  void expect(const std::string& bytes, ExitCode code, const std::string& part) const {
    const std::string path = write("input", bytes);
    const auto [given, message] = load(path);
    EXPECT_EQ(given, code) << message;
    EXPECT_THAT(message, AllOf(HasSubstr(part), HasSubstr(path)));
  }

 private:
  std::filesystem::path directory_;
};

TEST_F(WorkloadFiles, TheShippedMainJobIsWhatItsDescriptionGives) {
  const std::string compiled = compile_workload(kRoot + "/configs/workloads/gpt3_ptdp.yaml");
  EXPECT_TRUE(compiled == read_file(kRoot + "/traces/gpt3_ptdp.pb"))
      << "compile again: netsim --compile traces/gpt3_ptdp.pb --workload configs/workloads/gpt3_ptdp.yaml";
}

TEST_F(WorkloadFiles, RecognisesBothFormsByContent) {
  const auto from_pb = load_workload(kRoot + "/traces/gpt3_ptdp.pb", 128);
  const auto from_yaml = load_workload(kRoot + "/configs/workloads/gpt3_ptdp.yaml", 128);
  EXPECT_EQ(from_pb->ranks(), 128U);
  EXPECT_EQ(from_pb->job_name(), "gpt3_ptdp");
  EXPECT_EQ(from_yaml->job_name(), from_pb->job_name());
  EXPECT_EQ(test::task_count(*from_yaml, 77), test::task_count(*from_pb, 77));
  const std::string misnamed = write("no_extension", read_file(kRoot + "/traces/gpt3_ptdp.pb"));
  EXPECT_EQ(load_workload(misnamed, 128)->ranks(), 128U);
}

// --set workload.PATH=VALUE: of the file that is named, not of those that it names.
TEST_F(WorkloadFiles, LaysValuesOverTheDescription) {
  const std::string ring = "kind: ring\nranks: 4\nbytes: 1 MB\n";
  WorkloadContext context(16);
  context.assignments = {"ranks=6"};
  EXPECT_EQ(load_workload(write("ring.yaml", ring), context)->ranks(), 6U);
  const std::string jobs = write("jobs.yaml", "jobs:\n  - {name: a, workload: ring.yaml}\n");
  EXPECT_EQ(load_jobs(jobs, WorkloadContext(16))[0].source->ranks(), 4U);
  context.assignments = {"jobs=[{name: b, workload: {kind: ring, ranks: 4, bytes: 1 MB}}]"};
  EXPECT_EQ(load_jobs(jobs, context)[0].name, "b");
  EXPECT_EQ(load_jobs(jobs, context)[0].source->ranks(), 4U);
  const auto refusal = [&](const std::string& path, const std::string& assignment) {
    context.assignments = {assignment};
    try {
      load_jobs(path, context);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_THAT(refusal(write("ring.yaml", ring), "rank=6"), AllOf(HasSubstr("--set"), HasSubstr("'rank'")));
  EXPECT_THAT(refusal(kRoot + "/traces/gpt3_ptdp.pb", "microbatches=1"),
              AllOf(HasSubstr("--set workload.microbatches=1"), HasSubstr("this is none")));
}

TEST_F(WorkloadFiles, RefusesWhatIsNotAWorkload) {
  expect("", ExitCode::input, "is empty");
  expect(" \n\n", ExitCode::input, "is empty");
  expect("just words\n", ExitCode::input, "is not a workload");
  expect(std::string("\x00\x01\x02\x03", 4), ExitCode::input, "not a netsim workload");
  expect(read_file(kRoot + "/traces/gpt3_ptdp.pb").substr(0, 3000), ExitCode::input,
         "is truncated or damaged");
  expect("microbatches: 3\n", ExitCode::input, "'kind' is missing");
  expect("kind: ptpd\n", ExitCode::input, "did you mean 'ptdp'");
  expect("kind: nonsense\n", ExitCode::input, "known:");
  expect("kind: ptdp\nmicrobaches: 3\n", ExitCode::input, "2:1");
  expect("kind: [\n", ExitCode::input, "input");
}

TEST_F(WorkloadFiles, MissingFilesAreIoErrors) {
  const auto [code, message] = load("/nonexistent/job.pb");
  EXPECT_EQ(code, ExitCode::io);
  EXPECT_THAT(message, HasSubstr("/nonexistent/job.pb"));
}

TEST_F(WorkloadFiles, OnlyDescriptionsAreCompiled) {
  EXPECT_THROW(compile_workload(kRoot + "/traces/gpt3_ptdp.pb"), InputError);
  EXPECT_THROW(compile_workload(write("empty.yaml", "")), InputError);
}

}  // namespace
}  // namespace netsim::workload_test
