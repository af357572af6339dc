#include "sim/core/stream.h"

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
    case Stream::io:
      return "io";
    case Stream::cp:
      return "cp";
    case Stream::offload:
      return "offload";
  }
  return "?";
}

}  // namespace netsim
