// ResultSinks: the result sinks of one run and its output directory. A file gets its name only when all files
// are complete.
#pragma once

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "sim/core/output.h"
#include "sim/report/result_sink.h"

namespace netsim {

// Returns the names of all files that a run without `output.sinks` may leave in its directory, summary.json
// first and manifest.json last.
const std::vector<std::string>& output_files();

class ResultSinks {
 public:
  // Makes the sinks of every run and those that `run.output.sinks` names. Locks the directory for this run
  // until the object is destroyed. Throws IoError at once if the directory cannot be written, belongs to
  // another run, or has files of these names that netsim did not write. Throws ConfigError for a wrong
  // `output.sinks`.
  ResultSinks(const std::string& directory, RunView run);
  ~ResultSinks();
  ResultSinks(const ResultSinks&) = delete;
  ResultSinks& operator=(const ResultSinks&) = delete;

  // Adds a job during the run.
  void add_job(JobView job) { run_.jobs.push_back(std::move(job)); }
  // Removes the files of earlier runs. Called when no more errors in the input are possible.
  void begin() { directory_->clear(); }
  // Gives the record to the sinks that receive its kind.
  template <class Record>
  void add(const Record& record) {
    for (Receives<Record>* sink : std::get<Receivers<Record>>(receivers_)) sink->add(record);
  }
  // Returns whether a sink receives records of this kind.
  template <class Record>
  bool receives() const {
    return !std::get<Receivers<Record>>(receivers_).empty();
  }
  // Returns whether the run writes report.html.
  bool reports() const { return run_.report; }
  // Completes all files. The manifest gets its name first, so that a manifest names every file in the
  // directory, and the summary last. `text` may be null (FinishedRun::text).
  void finish(const Results& results, const RunText* text = nullptr);
  std::vector<std::string> notes() const;

 private:
  class Files;
  template <class Record>
  using Receivers = std::vector<Receives<Record>*>;

  void open(std::unique_ptr<ResultSink> sink);
  template <class... Records>
  void connect(ResultSink& sink, std::tuple<Receivers<Records>...>& receivers);

  RunView run_;
  std::unique_ptr<OutputDirectory> directory_;
  std::unique_ptr<Files> files_;
  std::vector<std::unique_ptr<ResultSink>> sinks_;
  std::tuple<Receivers<TaskRecord>, Receivers<RecordedCommunication>, Receivers<FlowRecord>,
             Receivers<MemoryRecord>, Receivers<RecordedStep>, Receivers<RecordedPortDelay>,
             Receivers<QueueSample>, Receivers<LinkSample>, Receivers<FlowSample>,
             Receivers<AggregationSample>>
      receivers_;
};

}  // namespace netsim
