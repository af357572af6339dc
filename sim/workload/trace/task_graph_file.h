// TaskGraphFile: a task graph of FlexFlow's simulator, as TopoOpt publishes them (.fbuf). The schema is
// src/runtime/taskgraph.fbs in github.com/hipersys-team/FlexFlow. flatbuffers is used in the .cpp only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/core/input_set.h"

namespace netsim {

struct TaskGraphFile {
  // The numbers of SimTaskType.
  enum class Type : std::uint8_t {
    forward,
    backward,
    transfer,
    update,
    barrier,
    nominal_transfer,
    all_reduce
  };
  static constexpr int kTypes = 7;
  struct Task {
    Type type = Type::forward;
    std::uint64_t id = 0, device = 0;
    double runtime = 0;  // ms
    std::uint64_t bytes = 0;
    std::uint64_t first_next = 0, end_next = 0;  // in `next`
  };
  // The numbers of DeviceType that matter here.
  static constexpr int kGpu = 0, kCpu = 1, kNetwork = 13, kNominalNetwork = 14;
  struct Device {
    int type = 0;
    std::uint64_t id = 0, node = 0, property = 0;
  };

  std::uint32_t gpus_per_node = 0, nodes = 0, switches = 0;
  std::vector<Task> tasks;
  std::vector<std::uint64_t> next;  // ids of tasks behind a task; members of an all-reduce
  std::vector<Device> devices;
  std::size_t connections = 0, routes = 0;  // the file's own topology
};

// Reads a file. Throws InputError for one that is no such FlatBuffer, with the task.
TaskGraphFile read_task_graph(const InputSet::File& file);

}  // namespace netsim
