// KinetoFile: writes the trace of one rank as PyTorch's profiler does (Chrome's JSON). The form is that of
// libkineto/src/output_json.cpp in github.com/pytorch/kineto. docs/how-to/timelines.md describes the events.
//
// Times are microseconds with three decimals. Kernels begin and end at the simulated times, rounded down to
// nanoseconds. Launches take no simulated time: they have the whole microsecond before the task was posted
// and no duration. Hence events of the CPU never overlap.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/core/output.h"
#include "sim/jobs/job.h"
#include "sim/report/kineto_waits.h"
#include "sim/report/timeline.h"

namespace netsim {

// KinetoGroup: a process group as distributedInfo names it.
struct KinetoGroup {
  std::string name, description;
  std::vector<RankId> ranks;
};

class KinetoFile {
 public:
  // `gpu` is the number of the rank's GPU in its host. `file` must outlive the object.
  KinetoFile(OutputFile& file, RankId rank, std::uint32_t gpu) : file_(file), rank_(rank), gpu_(gpu) {}

  // Lists what the tasks wait for, if the source knows them and they are at most `most`. Returns the number
  // of tasks, or 0 if there is no list. Called before begin().
  std::uint64_t list_waits(const TaskSource& source, std::uint64_t most) {
    return waits_.list(source, rank_, most);
  }
  // Writes the beginning of the file. `groups` are those that the rank belongs to.
  void begin(std::uint32_t world, const std::vector<KinetoGroup>& groups);

  // Launch: where a task ran, and what it waited for.
  struct Launch {
    std::uint32_t stream = 0;  // the CUDA stream
    std::uint64_t correlation = 0;
    std::vector<KinetoWaits::Wait> waits;  // in other streams
    std::uint64_t first_wait = 0;          // correlation of the first wait; the others follow
  };
  // Returns the launch of a task. Tasks of a stream that overlap are in different CUDA streams. Called in
  // order of end.
  Launch take_launch(const TaskRecord& record);

  // Kernel: a task on the GPU. `call` holds members of `args` as JSON, each with a comma before it. They
  // describe a call of NCCL, and what the task works for.
  struct Kernel {
    const TaskRecord& record;
    const Launch& launch;
    std::string operation;  // name of the operation on the CPU
    std::string name;       // name of the kernel
    std::string category;   // kernel or gpu_memcpy
    std::string call;
  };
  void add(const Kernel& kernel);
  // Adds a task that the host does, in a thread of its own. `members` are further ones of `args`, as in
  // Kernel.
  void add_host(const TaskRecord& record, const std::string& name, const std::string& members);
  // Writes the iterations and names, and completes the JSON.
  void finish(const std::string& job);

 private:
  // Step: an iteration at this rank: when its first task was posted, and the end of its last one.
  struct Step {
    Time begin = 0, end = 0;
  };

  void event(std::string_view text);
  void include(const TaskRecord& record);
  std::uint32_t take_stream(const TaskRecord& record);
  void write_runtime(const char* name, int number, std::string_view time, std::uint64_t correlation);
  void write_waits(const Kernel& kernel);
  void write_steps();
  void write_name(std::uint32_t pid, std::uint32_t tid, const char* what, const std::string& value);
  std::uint32_t cpu() const;

  OutputFile& file_;
  RankId rank_;
  std::uint32_t gpu_;
  bool first_ = true;
  std::uint64_t correlation_ = 0;
  KinetoWaits waits_;
  std::array<Lanes, kStreams> lanes_;
  Lanes host_lanes_;
  std::map<std::uint32_t, Stream> streams_;  // by number of the CUDA stream
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> extra_streams_;  // by stream and lane
  std::set<std::uint32_t> host_threads_;
  std::map<std::uint32_t, Step> steps_;  // by iteration
};

// Returns the ranks as PyTorch writes them in events: "[0, 1, 2]". A list of more than 30 ranks has
// the first 29 and the last one: "[0, ..., 31]".
std::string kineto_ranks(const std::vector<RankId>& ranks);

}  // namespace netsim
