// ChakraCounts: how the nodes of a Chakra trace were taken, for the notes of a run.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace netsim {

struct ChakraCounts {
  std::uint64_t lost = 0;            // dependencies on nodes that no file has
  std::uint64_t unsized = 0;         // communications whose size is not known
  std::uint64_t by_work = 0;         // computations without a duration
  std::uint64_t empty = 0;           // computations without a duration and operations
  std::uint64_t on_cpu = 0;          // nodes of the CPU
  std::uint64_t memory = 0;          // loads and stores of memory
  std::uint64_t unsized_copies = 0;  // loads and stores of memory whose size is not known
  std::uint64_t metadata = 0;        // metadata and nodes of no type
  std::uint64_t chained = 0;         // dependencies from the order of streams
  std::uint64_t contradictions = 0;  // nodes before one of their stream that began earlier
  std::uint64_t other = 0;           // nodes of other types
  std::set<std::uint64_t> types;     // numbers of these types

  std::vector<std::string> notes() const;
};

}  // namespace netsim
