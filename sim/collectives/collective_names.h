// Returns all collective kinds but point-to-point with their names, for parameters that choose one.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/collectives/collective_kind.h"

namespace netsim {

inline std::vector<std::pair<std::string, CollectiveKind>> collectives_by_name() {
  std::vector<std::pair<std::string, CollectiveKind>> names;
  for (const CollectiveKindInfo& info : kCollectiveKinds) {
    if (is_collective(info.kind)) names.emplace_back(info.name, info.kind);
  }
  return names;
}

}  // namespace netsim
