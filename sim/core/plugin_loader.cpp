#include "sim/core/plugin_loader.h"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "sim/core/errors.h"
#include "sim/core/output.h"
#include "sim/core/plugin.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

constexpr std::string_view kMark = NETSIM_PLUGIN_MARK;

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw ConfigError(Place{path, 0, 0, ""}, why);
}

std::string bytes_of(const std::string& path) {
  try {
    return read_file(path);
  } catch (const IoError& error) {
    throw ConfigError(std::string("--plugin: ") + error.what());
  }
}

// Returns the interface version that the plugin in `bytes` was made with: a line of text behind a mark. Other
// files may contain the mark too, as netsim itself does.
std::string interface_of(const std::string& path, const std::string& bytes) {
  constexpr std::size_t kLongest = 80;
  for (std::size_t mark = bytes.find(kMark); mark != std::string::npos; mark = bytes.find(kMark, mark + 1)) {
    const std::size_t begin = mark + kMark.size();
    const std::size_t end = bytes.find('\n', begin);
    if (end == std::string::npos || end == begin || end - begin > kLongest) continue;
    std::string text = bytes.substr(begin, end - begin);
    if (std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; })) return text;
  }
  refuse(path, "is no plugin of netsim: it has no NETSIM_PLUGIN (sim/core/plugin.h)");
}

}  // namespace

std::string interface_version() { return NETSIM_INTERFACE_VERSION; }

Plugin load_plugin(const std::string& path) {
  const std::string bytes = bytes_of(path);
  const std::string interface = interface_of(path, bytes);
  if (interface != interface_version())
    refuse(path, "was made with the headers of netsim " + interface + ", this is " + interface_version() +
                     ": build it again with these");
  if (Catalogue::instance().frozen())
    refuse(path, "comes too late: plugins are loaded before the first component is made");
  // The whole path is needed, because dlopen() searches elsewhere for a mere name.
  if (dlopen(std::filesystem::absolute(path).c_str(), RTLD_NOW | RTLD_LOCAL) == nullptr)
    refuse(path, std::string("cannot be loaded: ") + dlerror());
  Catalogue::instance().check();
  return {path, content_hash(bytes)};
}

}  // namespace netsim
