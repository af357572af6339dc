// The commit of the program's source. The definition is generated at every build (cmake/commit.cmake).
#pragma once

#include <string>

namespace netsim {

// Returns the output of `git describe --always --dirty`, or "" if the source is no git repository.
std::string commit();

}  // namespace netsim
