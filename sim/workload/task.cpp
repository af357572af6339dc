#include "sim/workload/task_source.h"

#include <fmt/format.h>

#include "sim/core/errors.h"

namespace netsim {

const char* to_string(TaskKind kind) {
  switch (kind) {
    case TaskKind::compute:
      return "compute";
    case TaskKind::collective:
      return "collective";
    case TaskKind::send:
      return "send";
    case TaskKind::receive:
      return "receive";
    case TaskKind::circuits:
      return "circuits";
    case TaskKind::copy_to_host:
      return "copy_to_host";
    case TaskKind::copy_from_host:
      return "copy_from_host";
    case TaskKind::host_compute:
      return "host_compute";
    case TaskKind::host_thread:
      return "host_thread";
  }
  return "?";
}

const std::vector<AskedCircuits>& WorkloadDescription::circuits() const {
  static const std::vector<AskedCircuits> none;
  return none;
}

std::string task_label(const WorkloadDescription& source, RankId rank, const Task& task) {
  const char* kind =
      task.kind() == TaskKind::collective ? to_string(task.collective().collective) : to_string(task.kind());
  return fmt::format("rank {}, stream {}: {} '{}' (task {})", rank, to_string(task.stream), kind,
                     source.name(task.name), task.id);
}

void refuse_task(const WorkloadDescription& source, RankId rank, const Task& task,
                 const std::string& message) {
  throw InputError(fmt::format("{}: {}: {}", source.job_name(), task_label(source, rank, task), message));
}

}  // namespace netsim
