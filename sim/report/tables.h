// Tables: writes CSV tables, with units in the headers. tasks.csv, collectives.csv, flows.csv and samples are
// streamed during the run; the others are written at its end. A file gets its name only when it is complete.
//
// Ids begin with a letter, so that readers do not take them for numbers: flows f, communications c
// (collectives and point-to-point operations), tasks t. docs/reference/results.md documents the columns.
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

// OutputParameters: the section `output` of the configuration.
struct OutputParameters {
  std::int64_t max_rows = 1'000'000;  // limit of each streamed table
  bool critical_path = false;
  SampleParameters sample;
};
const Parameters<OutputParameters>& output_parameters();

// Returns the names of all files that a run may leave in its directory. The files that show that a run ended
// come first.
const std::vector<std::string>& output_files();

// RunTexts: the files of a run that are not tables. If `manifest` is empty, none of them is written.
struct RunTexts {
  std::string log, summary;
  // Returns the text of the manifest, which names all other files.
  std::function<std::string(const std::vector<WrittenFile>&)> manifest;
};

class Tables {
 public:
  // Locks the directory for this run until the tables are destroyed. Throws IoError at once if it cannot be
  // written, belongs to another run, or has files of these names that netsim did not write.
  //
  // `jobs` is by number; their sources must outlive the tables. `nics` holds the NIC name of each GPU as in
  // links.csv; GPUs beyond its end have none. `fct` writes fct.txt; null: no such file.
  struct NamedSource {
    std::string name;
    const TaskSource* source;
  };
  Tables(const std::string& directory, const OutputParameters& parameters,
         const std::vector<NamedSource>& jobs, const std::vector<std::string>& nics = {},
         std::unique_ptr<Ns3Fct> fct = nullptr);

  // Adds a job during the run.
  void add_job(const NamedSource& job);

  // Removes the files of earlier runs. Called when no more errors in the input are possible.
  void begin() { directory_.clear(); }
  void add(const TaskRecord& record);
  // `choice` is as in Recorder::record().
  void add(const CommunicationRecord& record, const LibraryChoice& choice);
  void add(const FlowRecord& record);
  // Only called for jobs whose sources know the memory of their tasks.
  void add(const MemoryRecord& record);
  // Only called if OutputParameters::critical_path is set.
  void add(std::uint32_t job, std::uint32_t iteration, const PathStep& step);
  // Adds the delay of a transfer step at one port.
  void add(std::uint32_t job, std::uint32_t iteration, const PathStep& step, std::string_view port,
           const PortDelay& delay);
  // Only called for samples that OutputParameters::sample asks for.
  void add(const QueueSample& sample);
  void add(const LinkSample& sample);
  void add(const FlowSample& sample);

  // Completes the streamed tables and writes the others. The manifest gets its name first, so that a manifest
  // names every file in the directory, and the summary last.
  void finish(const Results& results, const RunTexts& texts = {});
  // Returns a note for each table that was cut at max_rows.
  std::vector<std::string> notes() const;

 private:
  struct Rows {
    Rows(const OutputDirectory& directory, const char* name, const char* header, std::uint64_t limit);
    // Begins a row. Returns false if the row is over the limit; it is then only counted.
    bool begin_row();
    void cell(std::int64_t value);
    void cell(std::string_view text);
    // Writes the letter and 16 hexadecimal digits.
    void cell_id(char letter, std::uint64_t value);
    void end_row();

    OutputFile file;
    std::uint64_t limit;
    std::uint64_t rows = 0;
    bool first = true;
  };

  // Returns the streamed tables of this run.
  std::vector<Rows*> streamed() const;
  void name_cell(Rows& table, std::uint32_t job, std::uint32_t name) const;
  std::string_view nic(std::uint32_t gpu) const;

  // JobCells: a job's name and the names of its tasks, formatted as cells.
  struct JobCells {
    const TaskSource* source;
    std::string name;
    std::vector<std::string> names;
  };

  OutputDirectory directory_;
  std::vector<JobCells> jobs_;
  std::vector<std::string> nics_;  // by GPU, formatted as cells
  std::unique_ptr<Ns3Fct> fct_;
  std::unique_ptr<Rows> tasks_, collectives_, flows_;
  std::unique_ptr<Rows> memory_;                                       // null: no job knows its memory
  std::unique_ptr<Rows> critical_path_, critical_path_ports_;          // null: not enabled
  std::unique_ptr<Rows> fct_lines_;                                    // null: no fct.txt
  std::unique_ptr<Rows> queue_samples_, link_samples_, flow_samples_;  // null: not enabled
};

}  // namespace netsim
