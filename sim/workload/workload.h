// Workloads: makes a TaskSource from the user's input (a .pb, a .yaml, a flow list). The kind is recognised
// by content.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/ids.h"
#include "sim/core/input_set.h"
#include "sim/core/units.h"
#include "sim/workload/task_source.h"

namespace netsim {

// WorkloadContext: facts about the cluster and the run that a workload may use.
struct WorkloadContext {
  // NOLINTNEXTLINE(google-explicit-constructor): a number of GPUs is a context
  WorkloadContext(std::uint32_t gpu_count) : gpus(gpu_count), most_ranks(gpu_count) {}
  // Returns the context of a workload that no cluster limits. Patterns without a size of their own have 8
  // ranks.
  static WorkloadContext without_cluster() {
    WorkloadContext context(8);
    context.most_ranks = 1 << 24;
    return context;
  }
  std::uint32_t gpus;  // number of GPUs; patterns without a size of their own use that many ranks
  // Most ranks that a workload may have: the GPUs of the cluster, or more where there is no cluster.
  std::uint32_t most_ranks;
  std::uint64_t seed = 1;
  // Cluster::host_numbers: the numbers by which flow files of other tools name the hosts.
  std::vector<std::uint32_t> host_numbers;
  std::vector<GpuId> drives;  // GPU numbers that stand for the drives of storage servers
  std::int64_t classes = 6;   // number of the network's data classes; flows name 0 to classes - 1
  // Whether the compute model is to time the kernels of a name by the shapes that a trace recorded. Empty:
  // none.
  std::function<bool(const std::string& kernel)> times_by_shape;
  // Assignments laid over the description that is read (overlay_config()), but not over those that it names.
  std::vector<std::string> assignments;
  // Descriptions on the disk that are being read, the outermost first. One that names another workload passes
  // them on, with the place where it does so, because none may be read within itself.
  std::vector<InputSet::Version> outer;
  Place named_at;
};

// Reads the workload of an input. Throws InputError, with the file as place and a line or offset if there is
// one, if it cannot be understood. Such errors are a missing magic, a newer schema, unknown fields, truncated
// or empty data, and another message. Others are degrees that do not divide and peers out of range. For a
// file of another kind the error names the kind (recognise.h). All files of an input have formats of one
// reader; a description and a .pb are one file. Throws IoError if a file cannot be read.
std::unique_ptr<TaskSource> load_workload(const InputPaths& paths, const WorkloadContext& context);

// GivenPhase: a communication phase of an iteration, counted from the iteration's begin. `rate` is what the
// job then demands of each link that it crosses.
struct GivenPhase {
  Time begin = 0, end = 0;
  BitRate rate = 0;
};

// GivenPhases: what a description says of a job's communication phases. An `iteration` of 0: nothing.
struct GivenPhases {
  Time iteration = 0;  // time of one iteration without other jobs
  std::vector<GivenPhase> phases;
};

// JobDescription: a job of a run, which is a workload with a name, a time and a place. A file with `jobs` has
// several; any other workload is one job.
struct JobDescription {
  std::string name;
  std::unique_ptr<TaskSource> source;
  Time arrival = 0;
  std::uint8_t priority = 0;
  std::uint8_t traffic_class = 0;
  ConfigNode placement;  // null: the placement of the configuration
  std::string file;      // input from which the workload was read, for messages; "": none
  // The following are for job schedulers, and for the table of jobs.
  double weight = 1;
  Time deadline = kNever;  // kNever: none
  Time duration = 0;       // expected time that the whole job runs; 0: what the workload tells, if anything
  GivenPhases phases = {};
  std::string vc = {};  // virtual cluster, "" for none
  // The job's state is made when it begins, and freed when it has ended (TaskStream::open, close).
  bool at_begin = false;
};

// Reads an input as jobs:
//
//   jobs:
//     - {name: pretraining, workload: gpt3.pb}
//     - name: finetuning
//       workload: {kind: ptdp, ...}
//       arrival: 2 s
//       placement: {kind: random, seed: 3}
//       priority: 1
//       class: 1
//     - {name: replay, workload: [monday.csv, tuesday.csv]}
//
// Instead of a list, `jobs` may name a trace or a random process of arrivals (job_list.h).
//
// Paths are those of files or folders, relative to the file. Several of them are one input. Any other
// workload is one job that arrives at 0. Errors are those of load_workload().
std::vector<JobDescription> load_jobs(const InputPaths& paths, const WorkloadContext& context);

// Compiles a YAML description (model x strategy) into the bytes of a workload .pb. Equal descriptions give
// equal bytes. `assignments` are those of WorkloadContext.
std::string compile_workload(const InputPaths& paths, const std::vector<std::string>& assignments = {});

// WorkloadKind: a kind of YAML workload, which is a file `{kind: NAME, ...}`. Each kind has one reader.
class WorkloadKind {
 public:
  static constexpr const char* kComponentKind = "workload";
  virtual ~WorkloadKind() = default;
  // Returns the serialized workload.proto message, or "" where the kind has no .pb form. In the latter case
  // tasks() is used.
  virtual std::string compile() const { return {}; }
  virtual std::unique_ptr<TaskSource> tasks(const WorkloadContext& context) const = 0;
};

// WorkloadReader: reads workloads in the notation of another tool, text or binary. It is chosen by content.
// The reader's file adds its format, or one format for each kind of file, to those of recognise.h. They are
// Format::Use::workload and have the reader's name as their component.
class WorkloadReader {
 public:
  static constexpr const char* kComponentKind = "workload_reader";
  virtual ~WorkloadReader() = default;
  // Opens an input whose files all have formats of this reader; recognise() says which format a file has.
  // A reader of one file calls InputSet::only(). A reader should read in pieces (TextReader, CsvReader,
  // LineReader, InputStream), so that the size of a file has no limit. The input need not outlive the call; a
  // source that reads during the run keeps a copy. Throws InputError for an error in a file.
  virtual std::unique_ptr<TaskSource> open(const InputSet& input, const WorkloadContext& context) const = 0;
};

// Returns the JSON schema of files that describe a workload by its kind, or list jobs, for editors.
std::string workload_schema();

}  // namespace netsim
