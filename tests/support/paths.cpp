#include "tests/support/paths.h"

namespace netsim {

std::string source_directory() { return NETSIM_SOURCE_DIR; }
std::string netsim_binary() { return NETSIM_BINARY; }

}  // namespace netsim
