// Tests that the input is recognised by its content, and that the shipped .pb equals what its YAML gives. Any
// file that is not a workload is refused in one line with its name.
#include "sim/workload/workload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>

#include "sim/core/errors.h"
#include "sim/core/output.h"
#include "tests/support/paths.h"
#include "tests/support/tasks_of.h"
#include "tests/support/workload_files.h"

namespace netsim::workload_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string kRoot = source_directory();

class WorkloadFiles : public test::FolderTest {
 protected:
  // Exit code and message of a load.
  static std::pair<ExitCode, std::string> load(const InputPaths& paths) {
    try {
      load_workload(paths, 16);
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

TEST_F(WorkloadFiles, JobsHavePriorityAndClass) {
  const std::string jobs =
      write("jobs.yaml",
            "jobs:\n  - {name: a, workload: {kind: ring, ranks: 4, bytes: 1 MB}, priority: 3, class: 1}\n"
            "  - {name: b, workload: {kind: ring, ranks: 4, bytes: 1 MB}}\n");
  WorkloadContext context(16);
  context.classes = 2;
  const std::vector<JobDescription> read = load_jobs(jobs, context);
  EXPECT_EQ(read[0].priority, 3);
  EXPECT_EQ(read[0].traffic_class, 1);
  EXPECT_EQ(read[1].traffic_class, 0);
  context.classes = 1;
  try {
    load_jobs(jobs, context);
    FAIL() << "a class that the network does not have";
  } catch (const Error& error) {
    EXPECT_THAT(std::string(error.what()),
                AllOf(HasSubstr("jobs.yaml:2:"), HasSubstr("set network.switch.classes to 2")));
  }
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

// A folder and several files are one input, on the command line and in a list of jobs.
TEST_F(WorkloadFiles, SeveralFilesAreOneWorkload) {
  const std::string header = "source,destination,bytes,start\n";
  const std::string a = write("a.csv", header + "0,1,1,0\n"),
                    b = write("b.csv", header + "1,0,1,0\n1,2,1,0\n");
  EXPECT_EQ(load_workload(a, 16)->total_tasks(), 2U);
  EXPECT_EQ(load_workload(std::vector<std::string>{a, b}, 16)->total_tasks(), 6U);
  const std::string folder = (std::filesystem::path(a).parent_path() / "days").string();
  std::filesystem::create_directories(folder);
  std::filesystem::copy(a, folder);
  std::filesystem::copy(b, folder);
  EXPECT_EQ(load_workload(folder, 16)->total_tasks(), 6U);
  const std::string jobs = write("jobs.yaml",
                                 "jobs:\n  - {name: one, workload: days}\n"
                                 "  - {name: two, workload: [b.csv, a.csv]}\n"
                                 "  - {name: three, workload: a.csv}\n");
  const std::vector<JobDescription> read = load_jobs(jobs, WorkloadContext(16));
  ASSERT_EQ(read.size(), 3U);
  EXPECT_EQ(read[0].source->total_tasks(), 6U);
  EXPECT_EQ(read[1].source->total_tasks(), 6U);
  EXPECT_EQ(read[2].source->total_tasks(), 2U);
  EXPECT_EQ(read[0].file, folder);
  EXPECT_EQ(read[1].file, b + ", " + a);
}

// A file with the ending of a trace may be a damaged one, so that only documents among these are left out.
TEST_F(WorkloadFiles, OtherFilesOfAFolderAreLeftOutWithANote) {
  const std::string folder =
      (std::filesystem::path(write("a.csv", "unused")).parent_path() / "days").string();
  std::filesystem::create_directories(folder);
  const auto put = [&](const std::string& name, const std::string& text) { write("days/" + name, text); };
  const std::string list = "source,destination,bytes,start\n0,1,1,0\n";
  put("b.csv", list);
  put("c.csv", list);
  put("README.csv", "about the lists\n");
  put("SHA256SUMS", "0123456789abcdef  b.csv\n");
  put("cluster.yaml", "topology: {kind: star, hosts: 4}\n");
  put("run.log", "just words\n");
  const auto source = load_workload(folder, 16);
  EXPECT_EQ(source->total_tasks(), 4U);
  EXPECT_THAT(source->notes(),
              ::testing::Contains("files of the folder that are no traces and are left out: 4 "
                                  "(README.csv, SHA256SUMS, cluster.yaml, run.log)"));
  const auto refusal = [](const std::vector<std::string>& paths) { return load(paths).second; };
  EXPECT_THAT(refusal({folder + "/b.csv", folder + "/run.log"}), HasSubstr("run.log: is of no known format"))
      << "the user named it";
  put("damaged.csv", "just words\n");
  EXPECT_THAT(refusal({folder}), HasSubstr("damaged.csv: is of no known format"));
  std::filesystem::remove(folder + "/damaged.csv");
  put("ring.yaml", "kind: ring\n");
  EXPECT_THAT(refusal({folder}), HasSubstr("ring.yaml: is a workload of netsim, but"));
  for (const char* name : {"ring.yaml", "cluster.yaml", "b.csv", "c.csv"})
    std::filesystem::remove(folder + "/" + name);
  EXPECT_THAT(refusal({folder}), HasSubstr("days: no file has a known format"));
}

TEST_F(WorkloadFiles, FilesThatAreNoOneWorkloadAreRefused) {
  const std::string list = write("a.csv", "source,destination,bytes,start\n0,1,1,0\n");
  const std::string matrix = write("b.cm", "Nodes 4\nConnections 1\n0->1 start 0 size 1\n");
  const std::string words = write("c.txt", "just words\n"), ring = write("ring.yaml", "kind: ring\n");
  const std::string again = write("again.yaml", "kind: ring\n"),
                    topo = write("t.topo", "Nodes 8\nTiers 3\nPodsize 4\nTier 0\nRadix_Down 2\n");
  const std::string program = kRoot + "/traces/gpt3_ptdp.pb";
  const auto refusal = [](const std::vector<std::string>& paths) { return load(paths).second; };
  EXPECT_EQ(
      refusal({list, matrix}),
      matrix + ": is a connection matrix of htsim, but " + list +
          " is a flow list: the files of one workload have formats of one reader; name only those, or take "
          "the others out of the folder");
  EXPECT_THAT(refusal({list, words}), AllOf(HasSubstr(words + ": is of no known format"), HasSubstr(list)));
  EXPECT_THAT(refusal({list, program}), HasSubstr(program + ": is a workload of netsim (.pb), but"));
  EXPECT_THAT(refusal({list, topo}), HasSubstr(topo + ": is a fat tree of htsim"));
  EXPECT_THAT(refusal({ring, again}), HasSubstr("has 2 files, but a workload of netsim is one file"));
  EXPECT_THAT(refusal({ring, list}), HasSubstr(list + ": is a flow list, but " + ring));
  EXPECT_THAT(load(write("jobs.yaml", "jobs: [{name: a, workload: [ring.yaml, a.csv]}]\n")).second,
              HasSubstr("is a list of jobs"));
  const auto jobs = [&](const std::string& text) {
    try {
      load_jobs(write("jobs.yaml", text), WorkloadContext(16));
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_THAT(jobs("jobs: [{name: a, workload: [a.csv, b.cm]}]\n"), HasSubstr("have formats of one reader"));
  EXPECT_THAT(jobs("jobs: [{name: a, workload: []}]\n"), HasSubstr("the sequence of files is empty"));
  EXPECT_THAT(jobs("jobs: [{name: a, workload: ''}]\n"), HasSubstr("the name of a file is empty"));
  EXPECT_THAT(jobs("jobs: [{name: a, workload: [a.csv, none.csv]}]\n"), HasSubstr("no file 'none.csv'"));
}

// The first byte that is not text is far behind the part by which the format is recognised.
TEST_F(WorkloadFiles, AControlCharacterFarBehindIsFoundWhileReading) {
  std::string list = "source,destination,bytes,start\n";
  for (int i = 0; i < 40'000; ++i) list += "0,1,1,0 us\n";
  expect(list + "0,1,1,\x1b[31m\n", ExitCode::input, ":40002:7: control character 27");
  EXPECT_EQ(load_workload(write("good", list), 16)->total_tasks(), 80'000U);
}

TEST_F(WorkloadFiles, ADescriptionIsNotReadWithinItself) {
  const std::string self = write("self.yaml", "kind: trace\nfile: self.yaml\n");
  const auto refusal = [](const InputPaths& path) { return load(path).second; };
  EXPECT_THAT(refusal(self), HasSubstr("self.yaml:2:7: file: names '"));
  const std::string first = write("first.yaml", "kind: trace\nfile: second.yaml\n"),
                    second = write("second.yaml", "kind: trace\nfile: first.yaml\n");
  EXPECT_THAT(refusal(first), AllOf(HasSubstr("second.yaml:2:7: file: names '"), HasSubstr("first.yaml'")));
  std::filesystem::create_directories(folder_ / "folder");
  write("folder/a.yaml", "kind: trace\nfile: .\n");
  EXPECT_THAT(refusal((folder_ / "folder").string()), HasSubstr("a.yaml:2:7: file: names '"));
}

// Readers that read a file as a whole get it unpacked, too.
TEST_F(WorkloadFiles, PackedFilesAreReadByAllReaders) {
  for (const char* file : {"aicb/steps.csv", "flexflow/step.fbuf", "goal/steps.goal"}) {
    const std::string plain = kRoot + "/configs/import/" + file;
    const std::string bytes = read_file(plain);
    const std::string path = (folder_ / (std::filesystem::path(plain).filename().string() + ".gz")).string();
    gzFile packed = gzopen(path.c_str(), "wb");
    gzwrite(packed, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose(packed);
    EXPECT_EQ(load_workload(path, 1024)->total_tasks(), load_workload(plain, 1024)->total_tasks()) << file;
  }
}

TEST_F(WorkloadFiles, WhatIsAlmostOfAFormatIsToldAllFormats) {
  expect("rank 0 {\nl1: calc 5\n}\n", ExitCode::input, "Nor has the file a format that netsim --list");
  expect(std::string("\xfd"
                     "7zXZ\0 rest",
                     11),
         ExitCode::input, "unpack it, or pack it with gzip");
}

TEST_F(WorkloadFiles, OnlyDescriptionsAreCompiled) {
  EXPECT_THROW(compile_workload(kRoot + "/traces/gpt3_ptdp.pb"), InputError);
  EXPECT_THROW(compile_workload(write("empty.yaml", "")), InputError);
}

}  // namespace
}  // namespace netsim::workload_test
