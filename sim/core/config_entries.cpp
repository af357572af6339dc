#include "sim/core/config_entries.h"

#include <string>

#include "sim/core/parameters.h"

namespace netsim {

const ConfigNode& entry_or_self(const ConfigNode& node, const char* key) {
  const ConfigNode* entry = node.find(key);
  return entry != nullptr ? *entry : node;
}

std::vector<std::int64_t> read_sizes(const ConfigNode& list, const char* what, std::size_t least,
                                     std::size_t most, std::int64_t largest) {
  if (!list.is_sequence() || list.items().size() < least || list.items().size() > most)
    list.fail("expected a list of " + std::to_string(least) +
              (least == most ? "" : " to " + std::to_string(most)) + " " + what);
  std::vector<std::int64_t> sizes;
  sizes.reserve(list.items().size());
  for (const ConfigNode& item : list.items()) {
    sizes.push_back(read_integer(item));
    if (sizes.back() < 1 || sizes.back() > largest) out_of_range(item, "1", std::to_string(largest));
  }
  return sizes;
}

}  // namespace netsim
