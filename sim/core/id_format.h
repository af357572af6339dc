// Lets fmt print the ids of ids.h as numbers.
#pragma once

#include <fmt/core.h>

#include <cstdint>

#include "sim/core/ids.h"

template <class Kind>
struct fmt::formatter<netsim::Id<Kind>> : fmt::formatter<std::uint32_t> {
  template <class Context>
  auto format(netsim::Id<Kind> id, Context& context) const {
    return fmt::formatter<std::uint32_t>::format(id, context);
  }
};
