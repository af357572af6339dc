// ResultSink: writes results of a run into files. Each file of a run is written by one sink, and each sink is
// one .cpp with its registration (sinks/). docs/how-to/extend.md shows a sink of one's own.
//
// A sink receives the kinds of record that it derives from Receives<...> for, while the run goes on, and the
// Results at its end. All calls come from one thread, between events.
#pragma once

#include <string>
#include <vector>

#include "sim/core/output.h"
#include "sim/report/results.h"
#include "sim/report/run_records.h"
#include "sim/report/run_view.h"
#include "sim/report/samples.h"
#include "sim/report/summary.h"

namespace netsim {

// Receives: the part of a sink that gets the records of one kind.
//
//   TaskRecord             a task that ended, in order of end at each rank
//   RecordedCommunication  a collective or point-to-point operation, when its last rank is done
//   FlowRecord             a message on the scale-out fabric, in order of acknowledgement (packet_network.h)
//   MemoryRecord           a change of a rank's memory, only of jobs whose sources know the memory of tasks
//   RecordedStep           a step of a critical path, when its iteration is done
//   RecordedPortDelay      the delay of such a step at a port
//   QueueSample, LinkSample, FlowSample, AggregationSample
//                                         samples, where OutputParameters::sample asks for them
//
// A record and all that it refers to live until add() returns.
template <class Record>
class Receives {
 public:
  virtual ~Receives() = default;
  virtual void add(const Record& record) = 0;
};

// RunText: what the files that describe a run hold besides its results.
struct RunText {
  std::string log;
  Manifest manifest;
};

// FinishedRun: what a sink gets at the end of the run.
struct FinishedRun {
  const Results& results;
  // Null where netsim is used as a library and the caller describes the run itself. Then there is no
  // summary.json, manifest.json or run.log.
  const RunText* text = nullptr;
  // The names of the files that this run's sinks write, summary.json first and manifest.json last.
  std::vector<std::string> files = {};
};

// SinkFiles: opens the files of one sink in the run's output directory. A file gets its name when all files
// are complete, at the end of the run.
class SinkFiles {
 public:
  virtual ~SinkFiles() = default;
  // Opens a file that ResultSink::files() names. The reference is valid until the end of the run. Throws
  // IoError.
  virtual OutputFile& open(const std::string& name) = 0;
};

class ResultSink {
 public:
  static constexpr const char* kComponentKind = "result_sink";
  virtual ~ResultSink() = default;
  // Returns the names of all files that the sink may write. No other sink may write a file of the same name.
  virtual std::vector<std::string> files() const = 0;
  // Returns those of files() that a run with these results has.
  virtual std::vector<std::string> files_with(const Results& /*results*/) const { return files(); }
  // Returns whether every run with an output directory has this sink. The others are named in `output.sinks`.
  // A sink with a required parameter cannot be in every run.
  virtual bool in_every_run() const { return false; }
  // Opens the files that are written during the run. Returns false if this run has nothing for the sink,
  // which then gets no record and does not finish.
  virtual bool open(SinkFiles& files, const RunView& run) = 0;
  // Completes the open files, and opens and writes those that need the results of the whole run.
  virtual void finish(const FinishedRun& run, SinkFiles& files) = 0;
  // Returns notes for the user, for example that a table was cut.
  virtual std::vector<std::string> notes() const { return {}; }
};

}  // namespace netsim
