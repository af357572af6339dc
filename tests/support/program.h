// The program itself, run in a directory of its own that holds a small cluster and a small workload.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "sim/core/errors.h"
#include "tests/report/fixtures.h"
#include "tests/support/paths.h"

namespace netsim::test {

struct Ended {
  int code = -1;
  std::string out, err;
};

class NetsimProgram : public ::testing::Test {
 protected:
  void SetUp() override {
    write("star.yaml", "topology: {kind: star, hosts: 4, rate: 100 Gbps, delay: 1 us}\nhost: single_nic\n");
    write("incast.yaml", "kind: incast\nsenders: 3\nreceiver: 3\nbytes: 1 MB\n");
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(directory_.path() + "/" + name) << text;
  }
  std::string path(const std::string& name) const { return directory_.path() + "/" + name; }
  // `before`: shell commands that run first, e.g. a limit.
  Ended run(const std::string& arguments, const std::string& before = "true") const {
    const std::string command = "cd '" + directory_.path() + "' && { " + before + "; '" + netsim_binary() +
                                "' " + arguments + " >out.txt 2>err.txt; }";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), directory_.text("out.txt"),
            directory_.text("err.txt")};
  }
  // One line that begins with "netsim: error: " and holds all of `parts`; nothing on stdout.
  void expect_error(const std::string& arguments, ExitCode code,
                    const std::vector<std::string>& parts) const {
    const Ended ended = run(arguments);
    EXPECT_EQ(ended.code, static_cast<int>(code)) << arguments << "\n" << ended.err;
    EXPECT_THAT(ended.err, ::testing::StartsWith("netsim: error: ")) << arguments;
    EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
    EXPECT_EQ(ended.out, "") << arguments;
    for (const std::string& part : parts) EXPECT_THAT(ended.err, ::testing::HasSubstr(part)) << arguments;
  }
  // Waits until a run that writes into `directory` simulates: the samples of its queues then fill a partial
  // file. The run must have output.sample.interval. Fails if that takes longer than any machine needs.
  void wait_for_samples(const std::string& directory) const {
    for (int i = 0; i < 60'000; ++i) {
      if (has_samples(path(directory))) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    FAIL() << "no run simulates in " << directory;
  }
  nlohmann::json summary(const std::string& arguments) const {
    const Ended ended = run("--config star.yaml --workload incast.yaml --quiet --json - " + arguments);
    EXPECT_EQ(ended.code, 0) << ended.err;
    return nlohmann::json::parse(ended.out);
  }

  Directory directory_;

 private:
  static bool has_samples(const std::string& directory) {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
      const std::string name = entry.path().filename().string();
      const bool partial = name.starts_with(".queue_samples.csv.") && name.ends_with(".partial");
      if (partial && std::filesystem::file_size(entry.path(), error) > 0 && !error) return true;
    }
    return false;
  }
};

}  // namespace netsim::test
