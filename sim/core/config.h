// Config: a YAML file as a tree of values that know their place, plus --set overlays.
//
// yaml-cpp stays inside config.cpp and is guarded there: duplicate keys, aliases and anchors, merge keys,
// more than one document, documents over 4 MiB, depth over 64 and more than 100,000 nodes are refused with a
// ConfigError. Scalars stay text here; the typed readings in parameters.h refuse nan, inf, octal (`010`),
// `yes`/`no` and units of the wrong kind.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/core/errors.h"
#include "sim/core/units.h"

namespace netsim {

class ConfigNode {
 public:
  enum class Kind { null, scalar, sequence, map };

  ConfigNode() = default;
  static ConfigNode scalar(std::string text, Place place);
  static ConfigNode map(Place place);
  static ConfigNode sequence(Place place);

  Kind kind() const { return kind_; }
  bool is_null() const { return kind_ == Kind::null; }
  bool is_scalar() const { return kind_ == Kind::scalar; }
  bool is_sequence() const { return kind_ == Kind::sequence; }
  bool is_map() const { return kind_ == Kind::map; }

  const Place& place() const { return place_; }
  // The same with the line and column of the key that names this node in its map, if it has one.
  Place key_place() const;
  // The scalar's text as written (quotes removed). Only for scalars.
  const std::string& text() const { return text_; }
  // True where the scalar was quoted in the file.
  bool quoted() const { return quoted_; }

  // Map entries in file order / sequence items.
  const std::vector<std::pair<std::string, ConfigNode>>& entries() const { return entries_; }
  const std::vector<ConfigNode>& items() const { return items_; }
  // The entry `key` of a map, or nullptr (also for null nodes).
  const ConfigNode* find(std::string_view key) const;
  // The entry's node, created (null) if absent; the node becomes a map if it was null. For overlays.
  ConfigNode& at_or_add(const std::string& key);
  // The same map without the entry `key`.
  ConfigNode without(std::string_view key) const;
  void push_back(ConfigNode item) { items_.push_back(std::move(item)); }

  // Throws ConfigError at this node's place: "place: message".
  [[noreturn]] void fail(const std::string& message) const;
  // ConfigError unless this is a map (or null) whose keys are all in `allowed`; names the nearest allowed
  // key.
  void allow_keys(const std::vector<std::string>& allowed) const;

 private:
  friend class ConfigLoader;   // builds trees from YAML
  friend class ConfigOverlay;  // changes them for --set
  Kind kind_ = Kind::null;
  bool quoted_ = false;
  Place place_;
  int key_line_ = 0, key_column_ = 0;
  std::string text_;
  std::vector<std::pair<std::string, ConfigNode>> entries_;
  std::vector<ConfigNode> items_;
};

// Reads a file. IoError if it cannot be read, ConfigError for what YAML or the guards refuse.
ConfigNode load_config(const std::string& path);
// The same from a string; `name` stands for the file in messages.
ConfigNode parse_config(const std::string& text, const std::string& name);
// Applies one "dotted.path=value" (value: a YAML scalar or flow collection). Path components that are numbers
// index sequences. Places of overlaid values read "--set". ConfigError for a malformed assignment.
void overlay_config(ConfigNode& root, const std::string& assignment);
// The tree as YAML text (for manifest and --print-config).
std::string to_yaml(const ConfigNode& node);
// The key of `candidates` nearest to `word` by edit distance, or "" if none is near (distance > 1/2 of the
// length).
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

// Typed readings of one scalar; each throws ConfigError with place, the text given and what is allowed.
bool read_bool(const ConfigNode& node);             // true | false
std::int64_t read_integer(const ConfigNode& node);  // decimal, no leading zeros
double read_real(const ConfigNode& node);   // decimal; also a ratio "1/8" and a percentage "20 %"; finite
Time read_time(const ConfigNode& node);     // "1 us", "300ns", "2 ms", "1.5 s", "7 ps"; 0 needs no unit
Bytes read_bytes(const ConfigNode& node);   // "32 MB", "64 KiB", "4096 B"; 0 needs no unit
BitRate read_rate(const ConfigNode& node);  // "400 Gbps", "300 GB/s" (bytes per second times 8), "40 Mbit/s"
std::string read_text(const ConfigNode& node);

// Writers of the same notation ("1 us", "32 MB", "400 Gbps"), exact: reading the text gives the value back.
std::string format_time(Time value);
std::string format_bytes(Bytes value);
std::string format_rate(BitRate value);

}  // namespace netsim
