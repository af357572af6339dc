// SubmittedJobs: the jobs of a trace of a cluster, one for each line or object of the trace, before they
// become JobDescriptions. JobTraceReader reads them in one notation.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/csv.h"
#include "sim/core/errors.h"
#include "sim/core/input_set.h"
#include "sim/core/units.h"

namespace netsim {

// JobTraceCell: where a file has a value. A line of 0: the trace does not have it.
struct JobTraceCell {
  std::uint32_t file = 0;  // index in the InputSet
  int line = 0, column = 1;
};

struct SubmittedJob {
  std::string name;      // "" for its number in the trace
  Int128 submitted = 0;  // ps since any time
  std::uint32_t gpus = 1;
  Time duration = 0, deadline = kNever;  // the duration may be 0 if there is a workload
  std::int64_t iterations = 0;           // 0: not given
  std::string workload, vc;
  double weight = 1;
  JobTraceCell place, workload_cell, gpus_cell;
};

// Converts seconds of a trace to SubmittedJob::submitted.
constexpr Int128 submitted_at(std::int64_t microseconds) {
  return Int128{microseconds} * (kSecond / 1'000'000);
}

// Converts the length of a job. Lengths above a run's are bounded, and SubmittedJobs leaves such jobs out.
constexpr Time trace_duration(std::int64_t microseconds) {
  constexpr std::int64_t kLongest = 2'000'000'000'000;
  return (microseconds < kLongest ? microseconds : kLongest) * (kSecond / 1'000'000);
}

// SubmittedJobs: collects jobs, and counts those that are left out.
class SubmittedJobs {
 public:
  struct Rules {
    bool skip_incomplete = false;  // jobs of which a value is missing are left out; otherwise they are errors
    bool successful = false;       // jobs that did not succeed are left out
    std::int64_t first = 0;        // number of jobs that are kept, the ones submitted first; 0: all
  };

  explicit SubmittedJobs(const Rules& rules) : rules_(rules) {}

  // Adds a job, or leaves it out by the rules. Throws InputError for more than 1,000,000 jobs.
  void add(SubmittedJob job, bool succeeded, const std::string& file);
  // Leaves a job out that is complete: "without GPUs".
  void leave_out(const std::string& reason) { ++left_out_[reason]; }
  // Leaves a job out of which a value is missing. Throws InputError unless the rules allow that.
  void incomplete(const Place& place, const std::string& reason, bool succeeded);

  // Sorts the jobs by submission and counts their times from the first one. Jobs after 1,000,000 s are left
  // out.
  std::vector<SubmittedJob> take();
  std::vector<std::string> notes() const;

 private:
  void keep_first();

  Rules rules_;
  std::vector<SubmittedJob> jobs_;
  std::map<std::string, std::uint64_t> left_out_;
};

// JobTraceReader: reads the jobs of a trace in the notation of one cluster. It is chosen by content. The
// reader's file adds its formats to those of recognise.h, with Format::Use::part and the reader's name as
// component.
class JobTraceReader {
 public:
  static constexpr const char* kComponentKind = "job_trace_reader";
  virtual ~JobTraceReader() = default;
  // Throws InputError for an error in a file.
  virtual void read(const InputSet& input, SubmittedJobs& jobs) const = 0;
};

// Returns whether a text stands for no value: "", "None", "NaN", "null".
bool is_missing_value(std::string_view text);
// Returns the microseconds from 2000 on of "YYYY-MM-DD hh:mm:ss", with a "T" and fractions of a second
// allowed. Throws InputError at the place.
std::int64_t date_microseconds(std::string_view text, const std::string& what, const Place& place);

// JobTraceTable: rows of comma-separated values, of which some columns are needed. The file may have others.
class JobTraceTable {
 public:
  // `columns` are the names of all columns in their order, for a file without a line of names.
  JobTraceTable(const InputSet::File& file, std::uint32_t index, std::vector<std::string> columns);

  bool next();
  // Returns the text of a column of the row, "" for a missing value.
  std::string_view text(const char* column) const;
  Place place(const char* column) const;
  JobTraceCell cell(const char* column) const;
  std::int64_t whole(const char* column) const;
  // Returns the microseconds of a column with a decimal number of seconds.
  std::int64_t seconds(const char* column) const;
  // Leaves out the job of a row that has no GPUs, or no value in one of the columns. The first of these has
  // the number of GPUs. Returns whether it did.
  bool leaves_out(const std::vector<const char*>& columns, bool succeeded, SubmittedJobs& jobs) const;

 private:
  const Word& word(const char* column) const;
  void take_names();

  CsvReader table_;
  std::string path_;
  std::uint32_t index_;
  std::vector<std::string> names_;
  bool first_ = true, has_names_ = false;
};

}  // namespace netsim
