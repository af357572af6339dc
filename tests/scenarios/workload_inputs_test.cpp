// Tests the program on workloads of several files: the manifest lists all of them, and results do not depend
// on how the files are named. Wrong inputs end with one error.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "sim/core/output.h"
#include "tests/support/program.h"

namespace netsim::workload_inputs_test {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Key;

class WorkloadInputs : public test::NetsimProgram {
 protected:
  void SetUp() override {
    NetsimProgram::SetUp();
    std::filesystem::create_directories(path("days"));
    const std::string header = "source,destination,bytes,start\n";
    write("days/monday.csv", header + "0,1,1 MB,0\n");
    write("days/tuesday.csv", header + "2,1,1 MB,1 us\n3,1,1 MB,2 us\n");
    write("all.csv", header + "0,1,1 MB,0\n2,1,1 MB,1 us\n3,1,1 MB,2 us\n");
  }
  // Runs the words of a workload and returns the manifest.
  json manifest(const std::string& workload) const {
    const test::Ended ended = run("--config star.yaml --quiet --out results " + workload);
    EXPECT_EQ(ended.code, 0) << ended.err;
    return json::parse(directory_.text("results/manifest.json"));
  }
  // Returns the hashes of the inputs that a manifest lists, by path.
  static std::map<std::string, std::string> inputs_of(const json& manifest) {
    std::map<std::string, std::string> inputs;
    for (const json& input : manifest["inputs"]) inputs[input["path"]] = input["hash"];
    return inputs;
  }
};

TEST_F(WorkloadInputs, TheManifestHashesEveryFile) {
  const auto inputs = inputs_of(manifest("--workload days"));
  EXPECT_THAT(inputs, ElementsAre(Key("days/monday.csv"), Key("days/tuesday.csv"), Key("star.yaml")));
  for (const auto& [name, hash] : inputs) EXPECT_EQ(hash, content_hash(read_file(path(name)))) << name;
}

TEST_F(WorkloadInputs, AFolderFilesAndOneFileGiveTheSameResults) {
  const json one = manifest("--workload all.csv")["fingerprint"];
  EXPECT_EQ(manifest("--workload days")["fingerprint"], one);
  EXPECT_EQ(manifest("--workload days/monday.csv --workload days/tuesday.csv")["fingerprint"], one);
}

TEST_F(WorkloadInputs, WrongOnesEndWithOneError) {
  const auto refuse = [&](const std::string& workload, ExitCode code, const std::string& part) {
    expect_error("--config star.yaml " + workload, code, {part});
  };
  refuse("--workload days --workload incast.yaml", ExitCode::input,
         "incast.yaml: is a workload of netsim, but days/monday.csv is a flow list");
  refuse("--workload days --workload none.csv", ExitCode::io, "none.csv");
  refuse("--workload all.csv --workload all.csv", ExitCode::input, "all.csv: the file is given twice");
  std::filesystem::create_directories(path("empty"));
  refuse("--workload empty", ExitCode::input, "empty: the folder has no files");
  refuse("--workload .", ExitCode::input, "contains the folder '");
}

}  // namespace
}  // namespace netsim::workload_inputs_test
