// chakra: chakra.N.et, an execution trace of MLCommons' Chakra for each rank of a job, and chakra.json with
// its communicators. Computations have their times of this run. netsim and ASTRA-sim can replay the trace.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/errors.h"
#include "sim/core/registry.h"
#include "sim/report/result_sink.h"
#include "sim/report/work_times.h"
#include "sim/workload/convert/listed_rank.h"
#include "sim/workload/trace/chakra_writer.h"

namespace netsim {
namespace {

constexpr std::uint32_t kMostTraceFiles = 16384;

struct ChakraSinkParameters {
  std::string job;
};

std::string chakra_file(std::uint32_t rank) { return fmt::format("chakra.{}.et", rank); }

constexpr const char* kCommunicatorsFile = "chakra.json";

std::vector<std::string> chakra_files(std::uint32_t ranks, bool communicators) {
  std::vector<std::string> names;
  if (communicators) names.emplace_back(kCommunicatorsFile);
  names.reserve(ranks + std::size_t{1});
  for (std::uint32_t rank = 0; rank < ranks; ++rank) names.push_back(chakra_file(rank));
  return names;
}

// ChakraTrace: keeps the times of all tasks of a job, and writes the files when the run has ended.
class ChakraTrace final : public ResultSink, public Receives<TaskRecord> {
 public:
  ChakraTrace(ChakraSinkParameters parameters, const ConfigNode& node)
      : parameters_(std::move(parameters)), node_(node) {}

  std::vector<std::string> files() const override { return chakra_files(kMostTraceFiles, true); }
  std::vector<std::string> files_with(const Results& results) const override {
    return is_complete(results) ? chakra_files(source_->ranks(), communicators_) : std::vector<std::string>();
  }

  bool open(SinkFiles& /*files*/, const RunView& run) override {
    const auto named = std::find_if(run.jobs.begin(), run.jobs.end(),
                                    [&](const JobView& job) { return job.name == parameters_.job; });
    if (!parameters_.job.empty() && named == run.jobs.end())
      node_.find("job")->fail("no job is called '" + parameters_.job + "'");
    job_ = parameters_.job.empty() ? JobId(0) : JobId(static_cast<std::uint32_t>(named - run.jobs.begin()));
    work_times_.emplace(run, job_);
    source_ = run.jobs[job_].source;
    if (source_->ranks() > kMostTraceFiles)
      node_.fail(fmt::format("the job has {} ranks, and there is a file for each; allowed: at most {}",
                             source_->ranks(), kMostTraceFiles));
    times_.resize(source_->ranks());
    return true;
  }

  void add(const TaskRecord& record) override {
    if (record.job != job_) return;
    ++recorded_;
    std::vector<ChakraWriter::RecordedTimes>& times = times_[record.rank];
    if (times.size() <= record.task.id) times.resize(record.task.id + std::size_t{1});
    times[record.task.id] = {record.start, record.end,
                             has_work(record.task.kind()) ? work_times_->of(record) : Time(0)};
  }

  void finish(const FinishedRun& run, SinkFiles& files) override {
    if (!is_complete(run.results)) return;
    ChakraWriter writer(*source_);
    for (RankId rank = 0; rank < source_->ranks(); ++rank) write_rank(rank, writer, files);
    if (communicators_) files.open(kCommunicatorsFile).write(writer.communicators());
  }

  // Called before the results are complete.
  std::vector<std::string> notes() const override {
    if (!checked_) find_objection();
    if (objection_.empty() && recorded_ < source_->total_tasks().value_or(0))
      objection_ = "the job has not ended";
    if (objection_.empty()) return {};
    return {"`chakra` wrote no trace: " + objection_};
  }

 private:
  // Returns whether the trace has all tasks of the job, each of which Chakra can hold.
  bool is_complete(const Results& results) const {
    const JobResult& job = results.jobs[job_];
    if (!job.done) {
      objection_ = "the job has not ended";
    } else if (!checked_) {
      find_objection();
    }
    return objection_.empty();
  }
  void find_objection() const {
    checked_ = true;
    objection_ = source_->total_tasks() ? listing_objection(*source_)
                                        : "the workload decides its tasks during the run";
    for (RankId rank = 0; rank < source_->ranks() && objection_.empty(); ++rank) {
      source_->for_each_task(rank, [&](const Task& task) {
        if (!objection_.empty()) return;
        communicators_ = communicators_ || has_group(task);
        if (const std::string what = chakra_objection(task); !what.empty())
          objection_ = "Chakra has no place for " + what;
      });
    }
  }

  void write_rank(RankId rank, ChakraWriter& writer, SinkFiles& files) {
    OutputFile& file = files.open(chakra_file(rank));
    file.write(writer.header());
    const ListedRank list = list_rank(*source_, rank);
    for (std::uint32_t i = 0; i < list.tasks.size(); ++i)
      file.write(writer.node(rank, i, list.tasks[i], {list.dependencies(i), list.queued[i], list.joins[i]},
                             times_[rank].at(list.tasks[i].id)));
  }

  ChakraSinkParameters parameters_;
  ConfigNode node_;
  JobId job_ = 0;
  const TaskSource* source_ = nullptr;
  std::vector<std::vector<ChakraWriter::RecordedTimes>> times_;  // by rank and task
  std::optional<WorkTimes> work_times_;
  std::uint64_t recorded_ = 0;  // tasks that have ended
  mutable bool checked_ = false;
  mutable bool communicators_ = false;  // the job has collectives
  mutable std::string objection_;       // why there is no trace
};

const Registration<ResultSink> kChakraTraceRegistration{
    "chakra",
    "chakra.N.et: a trace of each rank in the form of MLCommons' Chakra, which netsim and ASTRA-sim replay",
    Parameters<ChakraSinkParameters>().text("job", &ChakraSinkParameters::job,
                                            "name of the job that is written; empty: the first job"),
    [](const ChakraSinkParameters& p, const ConfigNode& node) {
      return std::make_unique<ChakraTrace>(p, node);
    }};

}  // namespace
}  // namespace netsim
