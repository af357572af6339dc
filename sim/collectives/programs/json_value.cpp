#include "sim/collectives/programs/json_value.h"

namespace netsim {

bool is_plain(const ConfigNode& node) { return node.is_scalar() && !node.quoted(); }

const char* name_of(ConfigNode::Kind kind) {
  static constexpr const char* kKinds[] = {"null", "a value", "a list", "an object"};
  return kKinds[static_cast<std::size_t>(kind)];
}

std::string name_of(const ConfigNode& node) {
  if (node.is_scalar()) return "'" + node.text() + "'";
  if (node.is_sequence() && node.items().empty()) return "an empty list";
  return name_of(node.kind());
}

}  // namespace netsim
