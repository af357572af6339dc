// Which source the program was built from; the definition is generated at every build (cmake/commit.cmake).
#pragma once

#include <string>

namespace netsim {

// What `git describe --always --dirty` says; "" where the source is no git repository.
std::string commit();

}  // namespace netsim
