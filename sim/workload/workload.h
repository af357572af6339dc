// Workloads: from what the user has (a .pb, a .yaml, a flow list) to a TaskSource. The kind is
// recognised by content.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/units.h"
#include "sim/workload/task.h"

namespace netsim {

// What a workload may ask about the cluster and the run.
struct WorkloadContext {
  // NOLINTNEXTLINE(google-explicit-constructor): a number of GPUs is a context
  WorkloadContext(std::uint32_t gpu_count) : gpus(gpu_count) {}
  std::uint32_t gpus;  // patterns without a size of their own use that many ranks
  std::uint64_t seed = 1;
  // Cluster::host_numbers: what flow files of other tools call the hosts.
  std::vector<std::uint32_t> host_numbers;
  std::vector<std::uint32_t> drives;  // GPU numbers of what stands for the drives of storage servers
  std::int64_t classes = 6;           // data classes that the network has: flows name 0 to classes - 1
  // Laid over the description that is read (overlay_config()), not over those that it names.
  std::vector<std::string> assignments;
};

// Reads `path`. InputError (place: the file; line or offset where there is one) for what cannot be
// understood: missing magic, newer schema, unknown fields, truncated or empty data, another message, degrees
// that do not divide, peers out of range; for a file of another kind it says which (recognise.h). IoError for
// what cannot be read.
std::unique_ptr<TaskSource> load_workload(const std::string& path, const WorkloadContext& context);

// A job of a run: a workload with a name, a time and a place. What a file with `jobs` holds, or the only one
// of any other workload.
struct JobDescription {
  std::string name;
  std::unique_ptr<TaskSource> source;
  Time arrival = 0;
  std::uint8_t priority = 0;
  ConfigNode placement;  // null: that of the configuration
  std::string file;      // that the workload was read from, for messages; "": none
};

// Reads `path` as jobs:
//
//   jobs:
//     - {name: pretraining, workload: gpt3.pb}
//     - name: finetuning
//       workload: {kind: ptdp, ...}
//       arrival: 2 s
//       placement: {kind: random, seed: 3}
//       priority: 1
//
// Paths are relative to the file. Any other workload is one job that arrives at 0. Errors as above.
std::vector<JobDescription> load_jobs(const std::string& path, const WorkloadContext& context);

// Compiles a YAML description (model x strategy) into the bytes of a workload .pb, deterministically.
// `assignments`: as WorkloadContext's.
std::string compile_workload(const std::string& yaml_path, const std::vector<std::string>& assignments = {});

// YAML workload kinds: a file `{kind: NAME, ...}` with one reader each.
class WorkloadKind {
 public:
  static constexpr const char* kComponentKind = "workload";
  virtual ~WorkloadKind() = default;
  // The serialized workload.proto message, or "" where the kind has no .pb form (then tasks() is used).
  virtual std::string compile() const { return {}; }
  virtual std::unique_ptr<TaskSource> tasks(const WorkloadContext& context) const = 0;
};

// Flow lists in the notations of other tools, one reader each, chosen by content: the reader's file adds the
// format to those of recognise.h, as Format::Use::workload and with the reader's name as its component.
class WorkloadReader {
 public:
  static constexpr const char* kComponentKind = "workload_reader";
  virtual ~WorkloadReader() = default;
  // InputError for what is wrong with it. `text` need not outlive the call.
  virtual std::unique_ptr<TaskSource> read(std::string_view text, const std::string& path,
                                           const WorkloadContext& context) const = 0;
};

}  // namespace netsim
