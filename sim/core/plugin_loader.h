// Loads plugins: shared libraries with components (see sim/core/plugin.h).
#pragma once

#include <string>

namespace netsim {

struct Plugin {
  std::string path;  // as it was given
  std::string hash;  // content_hash() of the file
};

// Loads a plugin for the rest of the process, which registers its components. It must be called before the
// first component is made (Catalogue::frozen()). Throws ConfigError where the file cannot be read or loaded,
// is no plugin, or registers a name that is taken. A plugin made with headers of another version is refused
// too, before any of its code runs.
Plugin load_plugin(const std::string& path);

// Returns the version of the headers that the library was made with: the release and a hash of all headers.
// Any change of a header may change the layout of objects.
std::string interface_version();

}  // namespace netsim
