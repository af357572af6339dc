#include "sim/report/compare/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "sim/core/config.h"
#include "sim/core/errors.h"
#include "sim/core/output.h"
#include "sim/core/text.h"

namespace netsim::compare {
namespace {

constexpr std::string_view kWorkloadPrefix = "workload.";

// Returns the names of a list's items, or nothing unless all are maps with names of their own.
std::vector<std::string> names_of_items(const ConfigNode& list) {
  std::vector<std::string> names;
  names.reserve(list.items().size());
  std::set<std::string> known;
  for (const ConfigNode& item : list.items()) {
    const ConfigNode* name = item.is_map() ? item.find("name") : nullptr;
    if (name == nullptr || !name->is_scalar() || !known.insert(name->text()).second) return {};
    names.push_back(name->text());
  }
  return names;
}

// Adds the scalars of a tree by their dotted paths. Empty lists and maps are values, too. Items with names
// stand below these, and the list itself has their order.
void add_scalars(const ConfigNode& node, const std::string& path, Settings& settings) {
  const auto below = [&path](const std::string& name) { return path.empty() ? name : path + "." + name; };
  if (node.is_scalar()) settings[path] = node.text();
  if (node.is_null()) settings[path] = "null";
  if (node.is_map() && node.entries().empty()) settings[path] = "{}";
  if (node.is_sequence() && node.items().empty()) settings[path] = "[]";
  for (const auto& [key, entry] : node.entries()) add_scalars(entry, below(key), settings);
  const std::vector<std::string> names = names_of_items(node);
  for (std::size_t i = 0; i < node.items().size(); ++i)
    add_scalars(node.items()[i], below(names.empty() ? std::to_string(i) : names[i]), settings);
  std::string order;
  for (const std::string& name : names) append_item(order, name);
  if (!names.empty()) settings[path] = order;
}

std::vector<std::string> command_of(const StoredValue& manifest) {
  return words_of(manifest.at("command").text());
}

std::string joined(const std::vector<std::string>& texts) {
  std::string result;
  for (const std::string& text : texts) result += (result.empty() ? "" : " ") + text;
  return result;
}

// Returns the hash of an input, or "" if the manifest does not name it.
std::string hash_of(const StoredValue& manifest, const std::string& path) {
  for (const StoredValue& input : manifest.at("inputs").list()) {
    if (input.at("path").text() == path) return input.at("hash").text();
  }
  return "";
}

// Adds the hashes of the workload's files, and of all files but those and the configuration's.
void add_inputs(const StoredValue& manifest, Settings& settings) {
  const std::vector<std::string> words = command_of(manifest);
  std::vector<std::string> known = values_of(words, "--config"), hashes;
  const std::vector<std::string> workload = values_of(words, "--workload");
  for (const std::string& path : workload) {
    known.push_back(path);
    if (const std::string hash = hash_of(manifest, path); !hash.empty()) hashes.push_back(hash);
  }
  if (!workload.empty()) settings["workload"] = joined(workload);
  if (!hashes.empty()) settings["workload content"] = joined(hashes);
  for (const StoredValue& input : manifest.at("inputs").list()) {
    const std::string& path = input.at("path").text();
    if (std::find(known.begin(), known.end(), path) == known.end())
      settings["file " + path] = input.at("hash").text();
  }
}

// Returns whether a file is still the one that the run has read, and a description in YAML by its name.
bool is_same_description(const StoredValue& manifest, const std::string& path, std::string& text) {
  if (!path.ends_with(".yaml") && !path.ends_with(".yml")) return false;
  text = read_file(path);
  return content_hash(text) == hash_of(manifest, path);
}

}  // namespace

std::vector<std::string> words_of(const std::string& command) {
  std::vector<std::string> words;
  bool quoted = false, open = false;  // within quotes; within a word
  for (std::size_t i = 0; i < command.size(); ++i) {
    const char c = command[i];
    if (c == ' ' && !quoted) {
      open = false;
      continue;
    }
    if (!open) words.emplace_back();
    open = true;
    if (c == '\'') {
      quoted = !quoted;
    } else {
      const bool escape = c == '\\' && !quoted && i + 1 < command.size();
      words.back() += escape ? command[++i] : c;
    }
  }
  return words;
}

std::vector<std::string> values_of(const std::vector<std::string>& words, const std::string& option) {
  std::vector<std::string> values;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].starts_with(option + "=")) values.push_back(words[i].substr(option.size() + 1));
    if (words[i] == option && i + 1 < words.size()) values.push_back(words[++i]);
  }
  return values;
}

Settings manifest_settings(const StoredValue& manifest) {
  Settings settings;
  const StoredValue& configuration = manifest.at("configuration");
  try {
    add_scalars(parse_config(configuration.text(), configuration.place), "", settings);
  } catch (const ConfigError& error) {
    throw InputError(error.what());
  }
  settings["seed"] = manifest.at("seed").words;
  const std::optional<double> until = manifest.at("until_s").optional_number();
  settings["until"] = until ? fmt::format("{} s", *until) : "the end";
  for (const StoredValue& plugin : manifest.at("plugins").list())
    settings["plugin " + plugin.at("path").text()] = plugin.at("hash").text();
  add_inputs(manifest, settings);
  return settings;
}

std::optional<Settings> workload_settings(const StoredValue& manifest) {
  const std::vector<std::string> words = command_of(manifest);
  const std::vector<std::string> paths = values_of(words, "--workload");
  if (paths.size() != 1) return std::nullopt;
  try {
    std::string text;
    if (!is_same_description(manifest, paths.front(), text)) return std::nullopt;
    ConfigNode root = parse_config(text, paths.front());
    for (const std::string& assignment : values_of(words, "--set")) {
      if (assignment.starts_with(kWorkloadPrefix))
        overlay_config(root, assignment.substr(kWorkloadPrefix.size()));
    }
    Settings settings;
    add_scalars(root, "workload", settings);
    return settings;
  } catch (const Error&) {  // the file has gone, or it is no description: its hash stands for it
    return std::nullopt;
  }
}

}  // namespace netsim::compare
