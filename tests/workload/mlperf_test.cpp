// Tests that a log of MLPerf gives a job of kind ptdp its model, batch and number of replicas. What the log
// does not have is refused with the key that gives it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "sim/core/errors.h"
#include "sim/workload/workload.h"
#include "tests/support/mutations.h"
#include "tests/support/shared.h"
#include "tests/support/workload_files.h"

namespace netsim::mlperf_test {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

std::string line(const std::string& key, const std::string& value) {
  return fmt::format(
      R"(0: :::MLLOG {{"namespace": "", "time_ms": 1, "event_type": "POINT_IN_TIME", "key": "{}", "value": {}, )"
      R"("metadata": {{"file": "a}}b.py"}}}} behind it)"
      "\n",
      key, value);
}
// A log of 8 GPUs with a batch of 16 in 2 microbatches, without the keys in `left_out`.
std::string log_text(const std::string& left_out = "", const std::string& platform = "1xDGX H100") {
  std::string text = "begins\n";
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, std::string>>{{"submission_benchmark", "\"bert\""},
                                                        {"submission_platform", '"' + platform + '"'},
                                                        {"global_batch_size", "16"},
                                                        {"gradient_accumulation_steps", "2.0"}}) {
    if (key != left_out) text += line(key, value);
  }
  return text;
}

class MlperfFiles : public test::FolderTest {
 protected:
  std::unique_ptr<TaskSource> load(const std::string& log) const {
    return load_workload(write("result.txt", log), 16);
  }
  // Loads a description of kind mlperf with these further keys.
  std::unique_ptr<TaskSource> described(const std::string& log, const std::string& keys) const {
    write("result.txt", log);
    return load_workload(write("job.yaml", "kind: mlperf\nlog: result.txt\n" + keys), 16);
  }
  std::string refused(const std::string& log, const std::string& keys = "") const {
    try {
      keys.empty() ? load(log) : described(log, keys);
    } catch (const Error& error) {
      return std::string(error.what()).substr(folder_.string().size() + 1);
    }
    return "accepted";
  }
};

// Logs of AMD have the degrees since v6.0, and a platform without the number of nodes.
TEST_F(MlperfFiles, DegreesOfTheLogAreTaken) {
  std::string text = log_text("submission_platform") + line("submission_platform", "\"MI355X\"");
  for (const char* key : {"pipeline_parallelism", "context_parallelism"}) text += line(key, "1");
  text += line("tensor_parallelism", "2") + line("micro_batch_size", "4");
  const auto source = load(text);
  EXPECT_EQ(source->ranks(), 4u);
  EXPECT_THAT(source->notes(),
              Contains(HasSubstr("parallel.tensor 2, parallel.context 1, parallel.pipeline 1, microbatch 4, "
                                 "microbatches 2, parallel.data 2")));
  EXPECT_EQ(described(text, "job: {parallel: {tensor: 1}}")->ranks(), 2u);
}

TEST_F(MlperfFiles, BlocksTellTheTimeOfAStep) {
  const auto block = [](const char* key, int time, int samples) {
    return fmt::format(
        R"(:::MLLOG {{"time_ms": {}, "key": "{}", "value": null, "metadata": {{"samples_count": {}}}}})"
        "\n",
        time, key, samples);
  };
  // The ends of blocks count the samples of the block, or of all blocks.
  for (const int second : {320, 160}) {
    const auto source = load(log_text() + block("block_start", 1000, 0) + block("block_stop", 6000, 160) +
                             block("block_start", 7000, 160) + block("block_stop", 12000, second));
    EXPECT_THAT(source->notes(), Contains(HasSubstr("takes 0.500 s (the batch divided by the median "
                                                    "throughput of 2 blocks)")));
  }
}

TEST_F(MlperfFiles, TheLogGivesModelBatchAndReplicas) {
  const auto source = load(log_text());
  EXPECT_EQ(source->ranks(), 8u);
  EXPECT_THAT(source->notes(),
              Contains(HasSubstr("settings of the log: model bert, microbatches 2, parallel.data 8")));
  // A description of kind ptdp with the same settings has the same tasks.
  const auto same = load_workload(
      write(
          "own.yaml",
          "kind: ptdp\nmodel: {kind: bert, layers: 24, hidden: 1024, heads: 16, inner: 4096, sequence: 512, "
          "positions: 512, vocabulary: 30522, predictions: 76}\nmicrobatches: 2\nparallel: {data: 8}\n"),
      16);
  EXPECT_EQ(source->total_tasks(), same->total_tasks());
  EXPECT_EQ(source->model_flops(), same->model_flops());
}

TEST_F(MlperfFiles, TheDescriptionAddsWhatTheLogLacks) {
  const auto source = described(log_text(), "job:\n  microbatch: 2\n  parallel: {tensor: 2}\n");
  EXPECT_EQ(source->ranks(), 8u);
  EXPECT_THAT(source->notes(), Contains(HasSubstr("parallel.data 4")));
  EXPECT_EQ(described(log_text("submission_platform"), "gpus: 8\njob: {microbatches: 2}\n")->ranks(), 8u);
  EXPECT_EQ(described(log_text("gradient_accumulation_steps", "4xNVIDIA GB200"),
                      "job: {parallel: {data: 4, pipeline: 2, tensor: 2}}\n")
                ->ranks(),
            16u);
  // A list of sequences of another length is another model.
  const auto longer = load(log_text() + line("max_sequence_length", "256"));
  EXPECT_LT(longer->model_flops(), load(log_text())->model_flops());
}

TEST_F(MlperfFiles, TheStepTimeIsNoted) {
  const auto note = [&](const std::string& more) { return load(log_text() + more)->notes(); };
  EXPECT_THAT(note(line("tracked_stats", R"({"train_step_time": 3, "reduced_train_loss": 1})") +
                   line("tracked_stats", R"({"train_step_time": 1, "reduced_train_loss": 1})") +
                   line("tracked_stats", R"({"train_step_time": 9})") +
                   line("tracked_stats", R"({"train_step_time": 2, "reduced_train_loss": 1})")),
              Contains("a step of the log takes 2.000 s (the median of 3 steps)"));
  EXPECT_THAT(note(line("tracked_stats", R"({"train_step_time": 9})")),
              Contains(HasSubstr("9.000 s (the median of 1 blocks)")));
  EXPECT_THAT(note(line("tracked_stats", R"({"throughput": 8})")),
              Contains(HasSubstr("2.000 s (the batch divided by")));
  EXPECT_THAT(note(":::MLLOG {\"key\": :::MLLOG\n"), Contains(HasSubstr("damaged, which are not used: 1")));
}

TEST_F(MlperfFiles, WhatIsMissingIsRefusedWithItsKey) {
  EXPECT_THAT(refused(log_text("", "1xNVIDIA GB200")),
              HasSubstr("result.txt:3:4: 4 GPUs are 8 replicas of 0.50 ranks"));
  EXPECT_THAT(
      refused(log_text("", "2xDGX H100")),
      HasSubstr(
          "16 GPUs are 8 replicas of 2 ranks, whose division the log does not have; job.parallel gives 1"));
  EXPECT_THAT(refused(log_text("", "8xTPU")), HasSubstr("result.txt:3:4: the number of GPUs is not known"));
  EXPECT_THAT(refused(log_text("global_batch_size")), HasSubstr("result.txt: has no global_batch_size"));
  EXPECT_THAT(refused(log_text("gradient_accumulation_steps")),
              HasSubstr("give the key job.microbatches or job.parallel.data"));
  EXPECT_THAT(refused(log_text("submission_benchmark")), HasSubstr("give the key job.model"));
  EXPECT_THAT(refused(line("submission_benchmark", "\"rgat\"")),
              HasSubstr("result.txt:1:4: benchmark rgat has a model that netsim does not know"));
  EXPECT_THAT(refused(line("lora_rank", "16") + line("submission_benchmark", "\"llama2_70b_lora\"")),
              HasSubstr("trains adapters of a frozen model"));
  EXPECT_THAT(refused(log_text() + line("max_sequence_length", "-1")),
              HasSubstr("result.txt:6:4: 'max_sequence_length' is -1"));
  EXPECT_THAT(refused(log_text(), "job: {microbatch: 3}\n"),
              HasSubstr("global_batch_size 16 is no microbatch 3 x 2 microbatches x 2 replicas"));
  EXPECT_THAT(refused(log_text(), "job: {microbatsch: 3}\n"),
              HasSubstr("job.yaml:3:7: job.microbatsch: unknown key 'microbatsch'"));
  EXPECT_THAT(refused(log_text(), "job: {kind: busy}\n"),
              HasSubstr("job.yaml:3:6: job: the keys of a job of kind ptdp are expected"));
}

TEST_F(MlperfFiles, DamagedOnesEndInOneError) {
  test::expect_sane(
      line("submission_benchmark", "\"rgat\"") + line("global_batch_size", "8"),
      [this](const std::string& given) { load(given); }, 300);
}

TEST(MlperfSamples, TheLogOf405BIsReadWithTheDegreesOfItsPublication) {
  NETSIM_NEEDS_SHARED("samples/mlperf_log");
  const std::string folder = test::shared_folder() + "/samples/mlperf_log/";
  const std::string log = folder + "v5.0_nvidia_512xH100_llama31_405b.trimmed.txt";
  try {
    load_workload(log, 512);
    ADD_FAILURE() << "the log does not have the degrees";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("512 GPUs are 4 replicas of 128 ranks"));
  }
  const std::string path = ::testing::TempDir() + "/netsim_mlperf_405b.yaml";
  std::ofstream(path) << "kind: mlperf\nlog: " << log
                      << "\njob: {parallel: {tensor: 8, context: 2, "
                         "pipeline: 8, layers: {count_embedding: true, count_loss: true}}}\n";
  const auto source = load_workload(path, 512);
  EXPECT_EQ(source->ranks(), 512u);
  EXPECT_THAT(source->notes(), Contains("a step of the log takes 55.101 s (the median of 240 steps)"));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace netsim::mlperf_test
