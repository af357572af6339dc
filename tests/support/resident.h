// Returns the resident memory of the process, as the system counts it.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <fstream>

namespace netsim::test {

inline std::int64_t resident_bytes() {
  std::int64_t all = 0, pages = 0;
  std::ifstream("/proc/self/statm") >> all >> pages;
  return pages * sysconf(_SC_PAGESIZE);
}

}  // namespace netsim::test
