// GraphWriter: a library that can write the rings and trees of a group in NCCL's file format
// (NCCL_GRAPH_FILE).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/core/ids.h"

namespace netsim {

class LibraryContext;

class GraphWriter {
 public:
  virtual ~GraphWriter() = default;
  // Returns the text described at Executor::nccl_graph().
  virtual std::string nccl_graph(const std::vector<GpuId>& members, LibraryContext& context) const = 0;
};

}  // namespace netsim
