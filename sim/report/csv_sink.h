// Base classes of result sinks that write one CSV table each. Both are in every run.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/registry.h"
#include "sim/report/csv_table.h"
#include "sim/report/result_sink.h"

namespace netsim {

// Returns the names of the columns, separated by commas.
std::string csv_header(const std::vector<ColumnInfo>& columns);

// StreamedCsv: a table that is written while the run goes on, up to OutputParameters::max_rows rows. A
// derived class receives records and writes a row for each into table().
class StreamedCsv : public ResultSink {
 public:
  StreamedCsv(std::string file, const std::vector<ColumnInfo>& columns)
      : file_(std::move(file)), header_(csv_header(columns)) {}
  std::vector<std::string> files() const override { return {file_}; }
  bool in_every_run() const override { return true; }
  bool open(SinkFiles& files, const RunView& run) override;
  void finish(const FinishedRun& /*run*/, SinkFiles& /*files*/) override {}
  std::vector<std::string> notes() const override { return table_->notes(); }

 protected:
  // Returns whether this run has the table.
  virtual bool wanted(const RunView& /*run*/) const { return true; }
  CsvTable& table() { return *table_; }
  const RunView& run() const { return *run_; }
  // Writes the name of a job, and of one of its tasks.
  void job_cell(std::uint32_t job) { table_->cell(run_->jobs[job].name); }
  void task_name_cell(std::uint32_t job, std::uint32_t name) {
    table_->cell(run_->jobs[job].task_name(name));
  }

 private:
  std::string file_, header_;
  const RunView* run_ = nullptr;
  std::optional<CsvTable> table_;
};

// FinalCsv: a table that is written from the results at the end of the run.
class FinalCsv : public ResultSink {
 public:
  FinalCsv(std::string file, const std::vector<ColumnInfo>& columns)
      : file_(std::move(file)), header_(csv_header(columns)) {}
  std::vector<std::string> files() const override { return {file_}; }
  bool in_every_run() const override { return true; }
  bool open(SinkFiles& /*files*/, const RunView& run) override {
    run_ = &run;
    return true;
  }
  void finish(const FinishedRun& run, SinkFiles& files) override;

 protected:
  // Returns all rows, with their line breaks.
  virtual std::string rows(const Results& results) const = 0;
  const RunView& run() const { return *run_; }

 private:
  std::string file_, header_;
  const RunView* run_ = nullptr;
};

}  // namespace netsim
