// The program's own operator new. It records the size of a request that failed, so that the message of a run
// that is too large can state it. Part of the program, not of the library.
#pragma once

#include <cstddef>

namespace netsim {

// Returns the size in bytes of the last allocation that failed; 0: none, or one outside of operator new.
std::size_t refused_request();

// Reserve some memory, and release it for the message about lack of memory. set_reserve() must be called at
// the beginning of main(). An allocation that fails before ends the process with exit code 4.
void set_reserve();
void release_reserve();

}  // namespace netsim
