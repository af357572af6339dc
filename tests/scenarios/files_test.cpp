// Tests that netsim never changes files that it did not write. Another object takes every name of a run's
// files: a user's file, an input, a link, a pipe, a directory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/core/output.h"
#include "sim/report/result_sinks.h"
#include "tests/support/paths.h"
#include "tests/support/program.h"
#include "tests/support/sanitizers.h"

namespace netsim::files_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::Ended;
using test::NetsimProgram;
using ::testing::HasSubstr;

class Files : public NetsimProgram {
 protected:
  static constexpr const char* kRun = "--config star.yaml --workload incast.yaml --quiet --threads 1 ";

  // Returns what everything below the directory is, and a hash of what it holds, by name.
  std::map<std::string, std::string> state() const {
    std::map<std::string, std::string> found;
    for (const auto& entry : fs::recursive_directory_iterator(directory_.path())) {
      const std::string name = entry.path().lexically_relative(directory_.path()).string();
      if (name == "out.txt" || name == "err.txt") continue;
      if (entry.is_symlink()) {
        found[name] = "link to " + fs::read_symlink(entry.path()).string();
      } else if (entry.is_regular_file()) {
        found[name] = "file " + content_hash(directory_.text(name));
      } else {
        found[name] = entry.is_directory() ? "directory" : "special";
      }
    }
    return found;
  }
  // Expects that the command is refused with these words and changes nothing.
  void expect_refused(const std::string& arguments, const std::vector<std::string>& parts) const {
    const auto before = state();
    expect_error(arguments, ExitCode::io, parts);
    EXPECT_EQ(state(), before) << arguments;
  }
  // Puts a file, a link, a pipe or a directory under a name, by `kind`.
  void occupy(const std::string& name, std::size_t kind) const {
    fs::remove_all(path(name));
    if (kind % 5 == 0) write(name, "mine\n");
    if (kind % 5 == 1) fs::create_symlink("../target.csv", path(name));
    if (kind % 5 == 2) {
      ASSERT_EQ(::mkfifo(path(name).c_str(), 0600), 0);
    }
    if (kind % 5 == 3) fs::create_directory(path(name));
    if (kind % 5 == 4) fs::create_symlink("nowhere", path(name));
  }
};

TEST_F(Files, OfOthersAreNeverReplacedByARun) {
  write("target.csv", "mine\n");
  fs::create_directory(path("results"));
  for (std::size_t i = 0; i < output_files().size(); ++i) {
    occupy("results/" + output_files()[i], i);
    expect_refused(std::string(kRun) + "--out results", {"results/" + output_files()[i], "is not replaced"});
    fs::remove_all(path("results/" + output_files()[i]));
  }
  ASSERT_EQ(run(std::string(kRun) + "--out results").code, 0);
  for (std::size_t i = 0; i < output_files().size(); ++i) occupy("results/" + output_files()[i], i);
  expect_refused(std::string(kRun) + "--out results", {"is not replaced"});
}

// A manifest protects nothing but the files that it names.
TEST_F(Files, OfOthersBesideTheFilesOfARunStay) {
  ASSERT_EQ(run(std::string(kRun) + "--out results").code, 0);
  write("results/memory.csv", "mine\n");
  expect_refused(std::string(kRun) + "--out results", {"memory.csv", "manifest.json does not name it"});
  fs::remove(path("results/memory.csv"));
  EXPECT_EQ(run(std::string(kRun) + "--seed 2 --out results").code, 0) << "its own are replaced";
  write("results/jobs.csv", "mine\n");
  expect_refused(std::string(kRun) + "--out results", {"jobs.csv", "it changed since netsim wrote it"});
}

// Manifests of older versions name no files, so all names count as theirs.
TEST_F(Files, OfAnOlderRunAreReplaced) {
  ASSERT_EQ(run(std::string(kRun) + "--out results").code, 0);
  json manifest = json::parse(directory_.text("results/manifest.json"));
  EXPECT_EQ(manifest["files"].size(), 11U) << manifest["files"];
  for (const json& file : manifest["files"])
    EXPECT_EQ(file["bytes"], fs::file_size(path("results/" + file["name"].get<std::string>()))) << file;
  manifest.erase("files");
  write("results/manifest.json", manifest.dump());
  EXPECT_EQ(run(std::string(kRun) + "--out results").code, 0);
  fs::remove(path("results/manifest.json"));
  expect_refused(std::string(kRun) + "--out results",
                 {"summary.json", "no manifest.json of netsim is there"});
}

TEST_F(Files, ThatARunReadsAreNotReplaced) {
  write("host.yaml", "topology: {kind: star, hosts: 4, rate: 100 Gbps, delay: 1 us}\nhost: single_nic\n");
  fs::create_directory(path("results"));
  write("results/flows.csv", "source,destination,bytes,start\n0,1,1000,0 us\n");
  expect_refused("--config host.yaml --workload results/flows.csv --quiet --out results",
                 {"results/flows.csv", "it is an input of this run"});
  fs::create_hard_link(path("results/flows.csv"), path("jobs.csv"));
  expect_refused("--config host.yaml --workload jobs.csv --quiet --out results", {"results/flows.csv"});
}

TEST_F(Files, ThatACommandReadsAreNotReplaced) {
  write("phases.yaml", "kind: phases\nranks: 4\nphases: [{compute: 1 us}]\n");
  fs::create_symlink("phases.yaml", path("link.pb"));
  fs::create_hard_link(path("phases.yaml"), path("hard.pb"));
  const std::string is_input = "it is an input of this run";
  for (const char* name : {"phases.yaml", "link.pb", "hard.pb"})
    expect_refused(std::string("--compile ") + name + " --workload phases.yaml", {name, is_input});
  fs::create_symlink("star.yaml", path("star.svg"));
  fs::create_symlink("star.yaml", path("star.xml"));
  expect_refused("--config star.yaml --draw star.svg", {"star.svg", is_input});
  expect_refused("--config star.yaml --write-graph star.xml", {"star.xml", is_input});
  ASSERT_EQ(run("--write-program ring --ranks 4 --out ring.xml").code, 0);
  fs::create_symlink("ring.xml", path("ring.svg"));
  expect_refused("--write-program ring.xml --out ring.xml", {"ring.xml", is_input});
  expect_refused("--show-schedule ring.xml --out ring.svg", {"ring.svg", is_input});
  write("other.pb", "mine");
  EXPECT_EQ(run("--compile other.pb --workload phases.yaml").code, 0)
      << "who names a file may have it replaced";
  EXPECT_NE(directory_.text("other.pb"), "mine");
}

// A closed standard descriptor does not become a table that gets the log.
TEST_F(Files, AreNotMixedWithClosedDescriptors) {
  ASSERT_EQ(run("--config star.yaml --workload incast.yaml --threads 1 --log info --out open").code, 0);
  const std::string shut = "cd '" + directory_.path() + "' && '" + netsim_binary() +
                           "' --config star.yaml --workload incast.yaml --threads 1 --log info --out shut";
  ASSERT_EQ(std::system((shut + " >&- 2>&- <&-").c_str()), 0);
  for (const std::string& name : output_files()) {
    if (name == "manifest.json" || name == "report.html") continue;  // the command and the time
    EXPECT_EQ(directory_.has("shut/" + name), directory_.has("open/" + name)) << name;
    if (directory_.has("open/" + name)) {
      EXPECT_EQ(directory_.text("shut/" + name), directory_.text("open/" + name)) << name;
    }
  }
}

TEST_F(Files, TooLargeOnesAreAnErrorAndLeaveNothing) {
  write("many.yaml", "kind: phases\nranks: 4\niterations: 200\nphases: [{compute: 1 us}]\n");
  fs::create_directory(path("results"));
  const Ended ended = run("--config star.yaml --workload many.yaml --quiet --out results", "ulimit -f 1");
  EXPECT_EQ(ended.code, static_cast<int>(ExitCode::io)) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("cannot be written: File too large"));
  EXPECT_TRUE(fs::is_empty(path("results")));
  EXPECT_EQ(run("--schema", "ulimit -f 1").code, static_cast<int>(ExitCode::io));
}

// Want of memory has exit code 4 at any limit, also where the program itself does not fit.
TEST_F(Files, WantOfMemoryIsTold) {
  if (test::sanitized()) GTEST_SKIP() << "sanitizers reserve more address space than any limit here";
  for (int megabytes = 4; megabytes <= 64; megabytes += 4) {
    const Ended ended = run(kRun, "ulimit -v " + std::to_string(megabytes * 1024));
    if (ended.code == 127) continue;  // the system could not load it
    EXPECT_TRUE(ended.code == 0 || ended.code == static_cast<int>(ExitCode::io))
        << megabytes << " MB: " << ended.code;
    if (ended.code != 0) {
      EXPECT_THAT(ended.err, ::testing::StartsWith("netsim: error: ")) << megabytes;
    }
  }
}

TEST_F(Files, AClosedPipeIsNoError) {
  const std::string program = "cd '" + directory_.path() + "' && '" + netsim_binary() + "' ";
  for (const char* words : {"--schema", "--list", "--config star.yaml --workload incast.yaml --json -"}) {
    const std::string command = "bash -c \"set -o pipefail; " + program + words + " 2>err.txt | true\"";
    const int status = std::system(command.c_str());
    EXPECT_EQ(WEXITSTATUS(status), 0) << words;
    EXPECT_EQ(directory_.text("err.txt").find("error"), std::string::npos)
        << words << directory_.text("err.txt");
  }
}

// 1000 iterations of 10,000 s are 115 days; a time beyond 2^63 ps was a check that failed, and flows timed
// out.
TEST_F(Files, SimulationsOfMoreThan40DaysAreRefused) {
  write("slow.yaml",
        "topology: {kind: star, hosts: 4, rate: 1 Mbps, delay: 1 s}\nhost: single_nic\n"
        "transport: {congestion_control: none, mtu: 64 KiB, retransmission_timeout: 100 s}\n");
  write("phases.yaml", "kind: phases\niterations: 1000\nphases: [{compute: 10000 s}]\n");
  const std::string words = "--config slow.yaml --threads 1 --quiet --workload ";
  for (const char* how : {"", " --dry-run", " --until 3470000s"})
    expect_error(words + "phases.yaml" + how, ExitCode::input, {"phases.yaml: ", "its limit of 40 days"});
  EXPECT_EQ(run(words + "phases.yaml --until 3456000s").code, 6);
}

TEST_F(Files, NamesThatAreTooLongAreQuoted) {
  const std::string name(300, 'x');
  expect_error(std::string(kRun) + "--out " + name, ExitCode::io, {name, "File name too long"});
  write("phases.yaml", "kind: phases\nranks: 4\nphases: [{compute: 1 us}]\n");
  expect_error("--compile " + name + " --workload phases.yaml", ExitCode::io, {name, "File name too long"});
  expect_error("--show-schedule " + name, ExitCode::usage, {name, "no algorithm and no file"});
  write(std::string(240, 'y'), "");
  EXPECT_EQ(run("--compile " + std::string(240, 'y') + " --workload phases.yaml").code, 0);
}

}  // namespace
}  // namespace netsim::files_test
