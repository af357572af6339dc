// The files of which report.html is made: assets/ of this folder, and d3.min.js of Debian's package libjs-d3.
// The build writes their text into a generated source (cmake/page_assets.cmake).
#pragma once

#include <span>
#include <string_view>

namespace netsim {

struct PageAsset {
  std::string_view name;  // without directory, "page.css"
  std::string_view text;
};

// Returns all files, those of assets/ in the order of their names, d3.min.js last.
std::span<const PageAsset> page_assets();

}  // namespace netsim
