// Loads plugins: shared libraries with components (sim/core/plugin.h says what makes one).
#pragma once

#include <string>

namespace netsim {

struct Plugin {
  std::string path;  // as it was given
  std::string hash;  // content_hash() of the file
};

// Loads a plugin for the rest of the process, so that its components are registered. To be called before the
// first component is made (Catalogue::frozen()). ConfigError where the file cannot be read or loaded, is no
// plugin, was made with headers of another version (nothing of it is run then), or registers a name that is
// taken.
Plugin load_plugin(const std::string& path);

// The version of the headers that the library was made with: the release and a hash of all headers, because
// any change of them may change how objects lie in memory.
std::string interface_version();

}  // namespace netsim
