// The program's own operator new, which remembers the request that could not be fulfilled, so that a run that
// is too large says how much was needed. Part of the program, not of the library.
#pragma once

#include <cstddef>

namespace netsim {

// The size in bytes of the last allocation that failed; 0: none, or one that is not made by operator new.
std::size_t refused_request();

}  // namespace netsim
