#include "sim/core/config.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "sim/core/config_loader.h"
#include "sim/core/config_text.h"
#include "sim/core/output.h"
#include "sim/core/text.h"

namespace netsim {

ConfigNode ConfigNode::scalar(std::string text, Place place) {
  ConfigNode node;
  node.kind_ = Kind::scalar;
  node.text_ = std::move(text);
  node.place_ = std::move(place);
  return node;
}

ConfigNode ConfigNode::map(Place place) {
  ConfigNode node;
  node.kind_ = Kind::map;
  node.place_ = std::move(place);
  return node;
}

ConfigNode ConfigNode::sequence(Place place) {
  ConfigNode node;
  node.kind_ = Kind::sequence;
  node.place_ = std::move(place);
  return node;
}

Place ConfigNode::key_place() const {
  Place place = place_;
  if (key_line_ > 0) {
    place.line = key_line_;
    place.column = key_column_;
  }
  return place;
}

const ConfigNode& section_of(const ConfigNode& root, std::string_view name) {
  static const ConfigNode absent;
  const ConfigNode* node = root.find(name);
  return node != nullptr ? *node : absent;
}

const ConfigNode* ConfigNode::find(std::string_view key) const {
  for (const auto& [name, node] : entries_) {
    if (name == key) return &node;
  }
  return nullptr;
}

ConfigNode ConfigNode::without(std::string_view key) const {
  ConfigNode result = *this;
  std::erase_if(result.entries_, [&](const auto& entry) { return entry.first == key; });
  return result;
}

ConfigNode& ConfigNode::at_or_add(const std::string& key) {
  if (is_null()) kind_ = Kind::map;
  if (!is_map()) fail("'" + key + "' cannot be set inside " + (is_scalar() ? "a single value" : "a list"));
  for (auto& [name, node] : entries_) {
    if (name == key) return node;
  }
  ConfigNode node;
  node.place_ = Place{place_.file, 0, 0, joined_path(place_.path, key)};
  return entries_.emplace_back(key, std::move(node)).second;
}

void ConfigNode::fail(const std::string& message) const { throw ConfigError(place_, message); }

void ConfigNode::allow_keys(const std::vector<std::string>& allowed) const {
  if (is_null()) return;
  std::string list;
  for (const std::string& key : allowed) append_item(list, key);
  if (is_scalar())
    fail("'" + shortened(text_) + "' stands where keys and values are expected (allowed: " + list + ")");
  if (is_sequence()) fail("a list stands where keys and values are expected (allowed: " + list + ")");
  for (const auto& [key, node] : entries_) {
    if (std::find(allowed.begin(), allowed.end(), key) != allowed.end()) continue;
    throw ConfigError(node.key_place(), "unknown key '" + key + "'" + did_you_mean(key, allowed) +
                                            " (allowed: " + (list.empty() ? "none" : list) + ")");
  }
}

ConfigNode load_config(const std::string& path) {
  std::error_code error;
  const auto size =
      std::filesystem::is_regular_file(path, error) ? std::filesystem::file_size(path, error) : 0;
  if (!error) check_config_size(size, Place{path, 0, 0, ""}, "file");
  return parse_config(read_file(path, kMaxConfigBytes), path);
}

ConfigNode parse_config(const std::string& text, const std::string& name) {
  return load_yaml(text, name, "", true);
}

}  // namespace netsim
