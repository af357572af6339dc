#include "sim/workload/task.h"

namespace netsim {

const char* to_string(Stream stream) {
  switch (stream) {
    case Stream::compute:
      return "compute";
    case Stream::tp:
      return "tp";
    case Stream::pp:
      return "pp";
    case Stream::dp:
      return "dp";
    case Stream::ep:
      return "ep";
    case Stream::cp:
      return "cp";
  }
  return "?";
}

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
  }
  return "?";
}

}  // namespace netsim
