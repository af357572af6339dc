#include "tests/support/paths.h"

#include "tests/support/sanitizers.h"

namespace netsim {

std::string source_directory() { return NETSIM_SOURCE_DIR; }
std::string netsim_binary() { return NETSIM_BINARY; }

bool test::sanitized() { return NETSIM_SANITIZED; }

}  // namespace netsim
