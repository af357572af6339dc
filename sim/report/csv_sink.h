// Base classes of result sinks that write one CSV table each, in every run.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/ids.h"
#include "sim/core/registry.h"
#include "sim/report/csv_table.h"
#include "sim/report/result_sink.h"

namespace netsim {

// Returns the names of the columns, separated by commas.
std::string csv_header(const std::vector<ColumnInfo>& columns);

// Returns a column of exposed communication for each stream of communication, "exposed_tp_s" for the unit
// "s".
std::vector<ColumnInfo> exposed_columns(const std::string& unit);
// Returns the lists one after the other.
std::vector<ColumnInfo> joined(std::initializer_list<std::vector<ColumnInfo>> lists);

// CsvSink: the file and the columns of a table.
class CsvSink : public ResultSink {
 public:
  std::vector<std::string> files() const final { return {file_}; }
  bool in_every_run() const final { return true; }

 protected:
  CsvSink(std::string file, const std::vector<ColumnInfo>& columns)
      : file_(std::move(file)), header_(csv_header(columns)) {}
  const std::string& file() const { return file_; }
  const std::string& header() const { return header_; }
  const RunView& run() const { return *run_; }
  void set_run(const RunView& run) { run_ = &run; }

 private:
  std::string file_, header_;
  const RunView* run_ = nullptr;
};

// StreamedCsv: a table that is written while the run goes on, up to OutputParameters::max_rows rows. A
// derived class receives records and writes a row for each into table().
class StreamedCsv : public CsvSink {
 public:
  using CsvSink::CsvSink;
  bool open(SinkFiles& files, const RunView& run) override;
  void finish(const FinishedRun& /*run*/, SinkFiles& /*files*/) override {}
  std::vector<std::string> notes() const override { return table_->notes(); }

 protected:
  // Returns whether this run has the table.
  virtual bool wanted(const RunView& /*run*/) const { return true; }
  CsvTable& table() { return *table_; }
  // Write the name of a job, and of one of its tasks.
  void job_cell(JobId job) { table_->cell(run().jobs[job].name); }
  void task_name_cell(JobId job, std::uint32_t name) { table_->cell(run().jobs[job].task_name(name)); }

 private:
  std::optional<CsvTable> table_;
};

// FinalCsv: a table that is written from the results at the end of the run, if they have anything for it.
class FinalCsv : public CsvSink {
 public:
  using CsvSink::CsvSink;
  bool open(SinkFiles& /*files*/, const RunView& run) override {
    set_run(run);
    return true;
  }
  std::vector<std::string> files_with(const Results& results) const override {
    return wanted(results) ? files() : std::vector<std::string>{};
  }
  void finish(const FinishedRun& run, SinkFiles& files) override;

 protected:
  // Returns whether a run with these results has the table.
  virtual bool wanted(const Results& /*results*/) const { return true; }
  // Returns all rows, with their line breaks.
  virtual std::string rows(const Results& results) const = 0;
};

}  // namespace netsim
