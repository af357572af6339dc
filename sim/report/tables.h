// Tables: tidy CSV files, units in the headers. tasks.csv, collectives.csv, flows.csv and samples are
// streamed while the run goes on; the others are written at its end. A file appears under its name only when
// it is complete.
//
// Ids begin with a letter, so that no reader of tables takes them for numbers: flows f, communications c
// (collectives and point-to-point operations), tasks t. Columns are documented in docs/reference/results.md.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/output.h"
#include "sim/core/parameters.h"
#include "sim/report/ns3_fct.h"
#include "sim/report/results.h"
#include "sim/report/samples.h"
#include "sim/workload/task.h"

namespace netsim {

// The configuration's `output` section.
struct OutputParameters {
  std::int64_t max_rows = 1'000'000;  // of each streamed table
  bool critical_path = false;
  SampleParameters sample;
};
const Parameters<OutputParameters>& output_parameters();

// Every file that a run may leave in its directory: first those that say that it ended.
const std::vector<std::string>& output_files();

// The files of a run that its tables do not make. Without `manifest` there is none of them.
struct RunTexts {
  std::string log, summary;
  // Returns the text of the manifest, which names all other files.
  std::function<std::string(const std::vector<WrittenFile>&)> manifest;
};

class Tables {
 public:
  // Takes the directory for this run until the tables are destroyed. IoError at once if it cannot be written,
  // belongs to another run, or has files of these names that netsim did not write. `jobs`: by number; their
  // sources must outlive the tables. `nics`: the NIC of each GPU, as links.csv names it; GPUs beyond them
  // have none. `fct`: for fct.txt; null: no such file.
  struct NamedSource {
    std::string name;
    const TaskSource* source;
  };
  Tables(const std::string& directory, const OutputParameters& parameters,
         const std::vector<NamedSource>& jobs, const std::vector<std::string>& nics = {},
         std::unique_ptr<Ns3Fct> fct = nullptr);

  // One more, while the run goes on.
  void add_job(const NamedSource& job);

  // When nothing can be refused any more: removes the files of earlier runs.
  void begin() { directory_.clear(); }
  void add(const TaskRecord& record);
  // `choice`: as of Recorder::record().
  void add(const CommunicationRecord& record, const LibraryChoice& choice);
  void add(const FlowRecord& record);
  // Only of jobs whose sources know the memory of their tasks.
  void add(const MemoryRecord& record);
  // Only where OutputParameters::critical_path asks for it.
  void add(std::uint32_t job, std::uint32_t iteration, const PathStep& step);
  // What the step, a transfer, spent at a port.
  void add(std::uint32_t job, std::uint32_t iteration, const PathStep& step, std::string_view port,
           const PortDelay& delay);
  // Only what OutputParameters::sample asks for.
  void add(const QueueSample& sample);
  void add(const LinkSample& sample);
  void add(const FlowSample& sample);

  // Completes the streamed tables and writes the others; afterwards all are there. The manifest appears
  // first, so that no file ever lies there that no manifest names, and the summary last.
  void finish(const Results& results, const RunTexts& texts = {});
  // Which tables were cut at max_rows, for Notes.
  std::vector<std::string> notes() const;

 private:
  struct Rows {
    Rows(const OutputDirectory& directory, const char* name, const char* header, std::uint64_t limit);
    // Begins a row; false if it is over the limit (the row is only counted).
    bool begin_row();
    void cell(std::int64_t value);
    void cell(std::string_view text);
    // The letter and 16 hexadecimal digits.
    void cell_id(char letter, std::uint64_t value);
    void end_row();

    OutputFile file;
    std::uint64_t limit;
    std::uint64_t rows = 0;
    bool first = true;
  };

  // The streamed tables that there are.
  std::vector<Rows*> streamed() const;
  void name_cell(Rows& table, std::uint32_t job, std::uint32_t name) const;
  std::string_view nic(std::uint32_t gpu) const;

  // A job's name and those of its tasks, ready as cells.
  struct JobCells {
    const TaskSource* source;
    std::string name;
    std::vector<std::string> names;
  };

  OutputDirectory directory_;
  std::vector<JobCells> jobs_;
  std::vector<std::string> nics_;  // by GPU, ready as cells
  std::unique_ptr<Ns3Fct> fct_;
  std::unique_ptr<Rows> tasks_, collectives_, flows_;
  std::unique_ptr<Rows> memory_;                                       // null: no job knows its memory
  std::unique_ptr<Rows> critical_path_, critical_path_ports_;          // null: not asked for
  std::unique_ptr<Rows> fct_lines_;                                    // null: no fct.txt
  std::unique_ptr<Rows> queue_samples_, link_samples_, flow_samples_;  // null: not asked for
};

}  // namespace netsim
