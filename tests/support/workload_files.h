// Fixtures for tests of readers. Each test has a folder of its own, in which it writes files.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "sim/core/errors.h"
#include "sim/workload/workload.h"

namespace netsim::test {

class FolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const ::testing::TestInfo& test = *::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(::testing::TempDir()) /
              (std::string("netsim_") + test.test_suite_name() + "_" + test.name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Writes a file into the folder. Returns its path.
  std::string write(const std::string& name, const std::string& bytes) const {
    std::string path = (folder_ / name).string();
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

  std::filesystem::path folder_;
};

// WorkloadFolderTest: the files of the folder are one workload.
class WorkloadFolderTest : public FolderTest {
 protected:
  std::unique_ptr<TaskSource> load() const { return load_workload(folder_.string(), 16); }
  // Returns the message with which the workload is refused, from the name of the file on.
  std::string refused() const {
    try {
      load();
    } catch (const InputError& error) {
      return std::string(error.what()).substr(folder_.string().size() + 1);
    }
    return "accepted";
  }
};

// WorkloadFileTest: each workload is the text of one file.
class WorkloadFileTest : public FolderTest {
 protected:
  explicit WorkloadFileTest(std::string name) : name_(std::move(name)) {}
  std::unique_ptr<TaskSource> load(const std::string& content) const {
    return load_workload(write(name_, content), 16);
  }
  // Returns the message with which the workload is refused, behind the name of the file.
  std::string refused(const std::string& content) const {
    try {
      load(content);
    } catch (const InputError& error) {
      return std::string(error.what()).substr((folder_ / name_).string().size());
    }
    return "accepted";
  }

 private:
  std::string name_;
};

}  // namespace netsim::test
