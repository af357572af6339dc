// Where this build finds what is not compiled into it: the source tree and the program. Defined in one file,
// so that no other test depends on the place of the clone, and compilers' caches serve every clone.
#pragma once

#include <string>

namespace netsim {

// The root of the source tree, without a slash at its end.
std::string source_directory();
// The `netsim` of the same build.
std::string netsim_binary();

}  // namespace netsim
