// Applies an assignment of --set to the tree of the configuration: overlay_config() of config.h.
#include <algorithm>
#include <charconv>
#include <string>
#include <system_error>
#include <vector>

#include "sim/core/config_loader.h"
#include "sim/core/config_text.h"

namespace netsim {

// ConfigOverlay: one assignment with its path and value.
class ConfigOverlay {
 public:
  // `within` is the path of the tree's root, as messages have it.
  ConfigOverlay(const std::string& assignment, const std::string& within)
      : assignment_(joined_path(within, assignment)), within_(within) {
    const std::size_t equals = assignment.find('=');
    if (equals == std::string::npos) fail("has no '='");
    path_ = assignment.substr(0, equals);
    split_path();
    value_ = parse_value(assignment.substr(equals + 1));
  }

  void apply(ConfigNode& root) {
    ConfigNode* node = &root;
    std::string path = within_;
    for (const std::string& component : components_) {
      path = joined_path(path, component);
      node = node->is_sequence() ? &item(*node, component) : &entry(*node, component, path);
    }
    *node = std::move(value_);
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    throw ConfigError(Place{"--set", 0, 0, ""},
                      "'" + shortened(assignment_) + "' " + message + ": write path.to.key=value");
  }
  void split_path() {
    std::size_t begin = 0;
    while (true) {
      const std::size_t end = std::min(path_.find('.', begin), path_.size());
      components_.push_back(path_.substr(begin, end - begin));
      if (components_.back().empty()) fail("has an empty name in its path");
      if (components_.back().size() > kMaxConfigKey) fail("has a too long name in its path");
      if (end == path_.size()) break;
      begin = end + 1;
    }
    if (components_.size() > kMaxConfigDepth || path_.size() > kMaxConfigPath) fail("has a too long path");
    check_characters(path_, "--set");
  }
  ConfigNode parse_value(const std::string& text) const {
    const std::size_t first = text.find_first_not_of(' ');
    if (first == std::string::npos) fail("has no value ('null' stands for the default)");
    ConfigNode value = load_yaml(text, "--set", joined_path(within_, path_), false);
    const bool flow = text[first] == '{' || text[first] == '[';
    if (!flow && (value.is_map() || value.is_sequence())) {
      value.fail("'" + shortened(text) + "' is not one value: write {key: value} or [item, item]");
    }
    const std::size_t last = text.find_last_not_of(' ');
    if (value.is_null() && !is_null_text(text.substr(first, last + 1 - first))) {
      value.fail("'" + shortened(text) + "' is not a value");
    }
    return value;
  }
  ConfigNode& item(ConfigNode& sequence, const std::string& component) const {
    std::size_t index = 0;
    const char* end = component.data() + component.size();
    const auto result = std::from_chars(component.data(), end, index);
    if (result.ec != std::errc() || result.ptr != end || index >= sequence.items_.size()) {
      const std::size_t count = sequence.items_.size();
      throw ConfigError(Place{"--set", 0, 0, joined_path(within_, path_)},
                        "'" + sequence.place_.path + "' is a list: '" + component +
                            "' is not one of its items (" +
                            (count == 0 ? "it is empty" : "0 to " + std::to_string(count - 1)) + ")");
    }
    return sequence.items_[index];
  }
  // Returns the entry of a node. A bare component name `dcqcn` becomes `{kind: dcqcn}`, so that parameters
  // can be added.
  ConfigNode& entry(ConfigNode& node, const std::string& component, const std::string& path) const {
    if (node.is_scalar()) {
      ConfigNode kind = node;
      kind.place_.path = joined_path(node.place_.path, "kind");
      node.kind_ = ConfigNode::Kind::map;
      node.text_.clear();
      node.quoted_ = false;
      node.entries_.emplace_back("kind", std::move(kind));
    }
    ConfigNode& child = node.at_or_add(component);
    if (child.is_null()) child.place_ = Place{"--set", 0, 0, path};
    return child;
  }

  std::string assignment_, within_, path_;
  std::vector<std::string> components_;
  ConfigNode value_;
};

void overlay_config(ConfigNode& root, const std::string& assignment, const std::string& within) {
  ConfigOverlay(assignment, within).apply(root);
}

}  // namespace netsim
