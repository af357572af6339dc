// Chakra writer: the files of a Chakra execution trace of schema 1.0.0, one for each rank, and the list of
// communicators. chakra_node.h reads them.
//
// Attributes whose names begin with `netsim_` hold the facts for which Chakra has no field. Other tools
// ignore them. So a trace that netsim reads again gives the same tasks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/ids.h"
#include "sim/workload/task.h"
#include "sim/workload/task_source.h"

namespace netsim {

// Returns why a Chakra trace cannot hold the task, or "".
std::string chakra_objection(const Task& task);

class ChakraWriter {
 public:
  explicit ChakraWriter(const WorkloadDescription& workload) : workload_(workload) {}

  // RecordedTimes: when a task ran, for a trace of a run. `work` is the time of a computation that nothing
  // slows down.
  struct RecordedTimes {
    Time start = 0, end = 0, work = 0;
  };
  // Returns the record that begins a file. It has the name of the job, which seeds the jitter of
  // computations.
  std::string header() const;
  // Waits: the tasks that a task waits for. Those of `queued` only precede it in its stream queue. It may be
  // one call with the task before it there.
  struct Waits {
    std::vector<std::uint32_t> after, queued;
    bool joins = false;
  };
  // Returns the record of a task. Its id is `number`. With `times`
  // a computation takes the recorded time for other tools, and RecordedTimes::work for netsim. Otherwise it
  // takes that of its kernels. The task must have no chakra_objection().
  std::string node(RankId rank, std::uint64_t number, const Task& task, const Waits& waits,
                   const std::optional<RecordedTimes>& times = std::nullopt);
  // Returns the communicators up to the last one of the nodes so far: {"1": [0, 1]}.
  std::string communicators() const;
  bool has_communicators() const { return groups_ > 0; }

 private:
  std::string communicator(GroupId group);
  void put_computation(std::string& node, const Task& task, const std::optional<RecordedTimes>& times) const;
  static void put_message(std::string& node, RankId rank, const Task& task);
  void put_collective(std::string& node, RankId rank, const CollectiveTask& call);

  const WorkloadDescription& workload_;
  std::uint32_t groups_ = 0;  // number of groups up to the last one with a node
};

// Returns the attributes by which netsim reads a kernel: netsim_kernels has so many numbers for each.
inline constexpr std::size_t kChakraKernelNumbers = 14;
std::vector<std::int64_t> chakra_kernel(const Kernel& kernel);
// Returns the kernel of these numbers, or nothing if no kernel has them.
std::optional<Kernel> kernel_of_chakra(const std::int64_t* numbers);

}  // namespace netsim
