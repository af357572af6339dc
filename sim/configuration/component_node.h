// Reads the entry of a component in the configuration: {kind: NAME, its parameters}, or a bare NAME.
#pragma once

#include "sim/core/config.h"

namespace netsim {

// Returns the node of the component's name, or null where `given` is null or has no name.
inline const ConfigNode* component_kind(const ConfigNode* given) {
  if (given == nullptr || given->is_scalar()) return given;
  return given->find("kind");
}

}  // namespace netsim
