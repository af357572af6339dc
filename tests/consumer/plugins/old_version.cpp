// Made with the headers of another version; whoever runs anything of it is told so by the system.
#include <cstdlib>

#include "sim/core/plugin.h"

#undef NETSIM_INTERFACE_VERSION
#define NETSIM_INTERFACE_VERSION "0.0.9-0123456789ab"
NETSIM_PLUGIN

namespace {
[[maybe_unused]] const bool ran = [] {
  std::abort();
  return true;
}();
}  // namespace
