#include "sim/collectives/programs/json_value.h"

namespace netsim {

bool is_plain(const ConfigNode& node) { return node.is_scalar() && !node.quoted(); }

const char* name_of(ConfigNode::Kind kind) {
  static constexpr const char* kKinds[] = {"null", "a value", "a list", "an object"};
  return kKinds[static_cast<std::size_t>(kind)];
}

void refuse(const ConfigNode& node, const std::string& allowed) {
  std::string what = name_of(node.kind());
  if (node.is_scalar()) what = "'" + node.text() + "'";
  if (node.is_sequence() && node.items().empty()) what = "an empty list";
  node.fail(what + " was given; allowed: " + allowed);
}

}  // namespace netsim
