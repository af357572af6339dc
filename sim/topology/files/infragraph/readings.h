// Readings of an InfraGraph document's entries. All throw a ConfigError at the place of a missing or wrong
// entry.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/units.h"
#include "sim/topology/files/infragraph/descriptions.h"

namespace netsim::infragraph {

inline constexpr std::size_t kMostNodes = 1 << 21, kMostEdges = 1 << 23;

// Returns the entry `key`, which must be there.
const ConfigNode& needed(const ConfigNode& map, const char* key);
// Returns the items of the list `key`; none where it is absent.
const std::vector<ConfigNode>& list_in(const ConfigNode& map, const char* key);
// Returns the text of the entry `key`; "" where it is absent.
std::string text_in(const ConfigNode& map, const char* key);
// Returns a name that paths refer to, so it has no '.', ':', brackets or blanks.
std::string name_in(const ConfigNode& map, const char* key = "name");
// Returns the entry `count`, the number of copies of a component or device.
std::uint32_t count_in(const ConfigNode& map);
// Returns a rank of a node, as a host port is counted.
std::int64_t rank_of(const ConfigNode& node);

// Refuses an entry that only versions of InfraGraph before 1.0 have.
[[noreturn]] void fail_as_old(const ConfigNode& at, const char* expected);
// Refuses `name`, which is none of `known`, with the nearest of them. `what` says what it should be.
[[noreturn]] void fail_as_unknown(const ConfigNode& at, const std::string& name,
                                  const std::vector<std::string>& known, const std::string& what);
// Refuses `name`, which is no key of `things`.
template <class Things>
[[noreturn]] void unknown(const ConfigNode& at, const std::string& name, const Things& things,
                          const std::string& what) {
  std::vector<std::string> names;
  names.reserve(things.size());
  for (const auto& [known, value] : things) names.push_back(known);
  fail_as_unknown(at, name, names, what);
}

// Return a rate or delay in netsim's units. They refuse one that no link may have.
BitRate rate_of(const ConfigNode& at, double bits);
Time delay_of(const ConfigNode& at, double picoseconds);

// Wires: the named links of a device or of the infrastructure.
using Wires = std::map<std::string, Wire>;
// Reads the list `links` of its owner.
Wires wires_of(const ConfigNode& owner);

}  // namespace netsim::infragraph
