#include "sim/workload/trace/chakra_counts.h"

#include <fmt/format.h>

#include <string_view>

#include "sim/core/text.h"

namespace netsim {

std::vector<std::string> ChakraCounts::notes() const {
  std::vector<std::string> notes;
  const auto note = [&](std::uint64_t count, std::string_view what) {
    if (count > 0) notes.push_back(fmt::format("{}: {}", what, count));
  };
  note(on_cpu, "nodes of the CPU, which take their recorded time on a thread of the rank's process");
  note(by_work,
       "computations without a duration, timed by the compute model as products of square matrices with as "
       "many operations");
  note(empty, "computations without a duration and without operations, which take no time");
  note(unsized, "communications without a size, kind or peer, which take their recorded time on the GPU");
  note(memory, "loads and stores of memory, which are copies between the GPU and its host");
  note(unsized_copies, "loads and stores of memory without a tensor_size, which take no time");
  note(metadata, "nodes of metadata or of no type, which take no time");
  std::string numbers;
  for (const std::uint64_t type : types) append_item(numbers, std::to_string(type));
  note(other, fmt::format("nodes of other types ({}), which take their recorded time on a thread of the "
                          "rank's process",
                          numbers));
  note(lost, "dependencies on nodes that the trace does not have, which are left out");
  note(chained, "dependencies added, so that nodes of one CUDA stream follow each other");
  note(contradictions,
       "nodes that their dependencies put before one of their CUDA stream that began earlier, so that its "
       "begin is left out");
  return notes;
}

}  // namespace netsim
