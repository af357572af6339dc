// Config: a YAML file as a tree of values with their places, plus --set overlays.
//
// yaml-cpp is used in config_loader.cpp only. The loader throws ConfigError for duplicate keys, aliases,
// anchors, merge keys and more than one document. It also refuses documents over 4 MiB, depth over 64 and
// more than 100,000 nodes. Scalars stay text; the typed readings below refuse nan, inf, octal (`010`),
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
  // Returns the place of the key that names this node in its map, or place() where it has none.
  Place key_place() const;
  // Returns the scalar's text as written, without quotes. The node must be a scalar.
  const std::string& text() const { return text_; }
  // True where the scalar was quoted in the file.
  bool quoted() const { return quoted_; }

  // Return the map's entries in the order of the file, and the sequence's items.
  const std::vector<std::pair<std::string, ConfigNode>>& entries() const { return entries_; }
  const std::vector<ConfigNode>& items() const { return items_; }
  // Returns the entry `key` of a map, or nullptr (also for null nodes).
  const ConfigNode* find(std::string_view key) const;
  // Returns the entry's node, added as null if it is absent. A null node becomes a map. Used by overlays.
  ConfigNode& at_or_add(const std::string& key);
  // Returns a node of the same place and kind that has only those entries of the map for which `keep` is
  // true.
  template <class Keep>
  ConfigNode filtered(Keep keep) const {
    ConfigNode result;
    result.kind_ = kind_;
    result.place_ = place_;
    result.key_line_ = key_line_;
    result.key_column_ = key_column_;
    for (const auto& entry : entries_) {
      if (keep(entry.first)) result.entries_.push_back(entry);
    }
    return result;
  }
  // Returns the map without the entry `key`.
  ConfigNode without(std::string_view key) const;
  void push_back(ConfigNode item) { items_.push_back(std::move(item)); }

  // Throws ConfigError "place: message" with this node's place.
  [[noreturn]] void fail(const std::string& message) const;
  // Throws ConfigError unless this is null or a map whose keys are all in `allowed`. The error names the
  // nearest allowed key.
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

// Returns the entry `name` of a map, or a null node where it is absent.
const ConfigNode& section_of(const ConfigNode& root, std::string_view name);

// Reads a file. Throws IoError if it cannot be read, and ConfigError if it is invalid YAML or exceeds a limit
// above.
ConfigNode load_config(const std::string& path);
// Reads a string; `name` stands for the file in messages.
ConfigNode parse_config(const std::string& text, const std::string& name);
// Applies one "dotted.path=value", where the value is a YAML scalar or flow collection. Path components that
// are numbers index sequences. The place of an overlaid value is "--set" with the path in `within`, which is
// "workload" for descriptions of workloads. Throws ConfigError for a malformed assignment.
void overlay_config(ConfigNode& root, const std::string& assignment, const std::string& within = "");
// Returns the tree as YAML text, for the manifest and --print-config.
std::string to_yaml(const ConfigNode& node);

// Typed readings of one scalar. Each throws ConfigError with the place, the given text and the allowed
// values.
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
