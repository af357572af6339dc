// Paths of InfraGraph documents, such as "card[1].port", and the indices that their steps select.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/config.h"

namespace netsim::infragraph {

// Step: one step of a path, "nic", "nic[3]" or "nic[a:b:c]", as a name and the text in the brackets.
struct Step {
  std::string name;
  std::optional<std::string> index;
};

// Returns the steps of a path. Throws a ConfigError at `at`, like indices_of().
std::vector<Step> steps_of(const ConfigNode& at, const std::string& text);
// Returns the indices below `count` that a step selects.
std::vector<std::uint32_t> indices_of(const ConfigNode& at, const Step& step, std::uint32_t count);

}  // namespace netsim::infragraph
