// The program's own operator new, which remembers the request that could not be fulfilled, so that a run that
// is too large says how much was needed. Part of the program, not of the library.
#pragma once

#include <cstddef>

namespace netsim {

// The size in bytes of the last allocation that failed; 0: none, or one that is not made by operator new.
std::size_t refused_request();

// Sets some memory aside, which release_reserve() gives back for the message about want of memory. At the
// beginning of main(): an allocation that fails before ends the process with exit code 4.
void set_reserve();
void release_reserve();

}  // namespace netsim
