#include "sim/report/page/page_document.h"

#include "sim/core/errors.h"
#include "sim/report/page/page_assets.h"

namespace netsim {
namespace {

constexpr std::string_view kTemplate = "template.html", kD3 = "d3.min.js";

std::string_view asset(std::string_view name) {
  for (const PageAsset& asset : page_assets()) {
    if (asset.name == name) return asset.text;
  }
  NETSIM_CHECK(false, "the build embeds no " + std::string(name));
  return {};
}

std::string html_text(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '<') {
      escaped += "&lt;";
    } else if (c == '&') {
      escaped += "&amp;";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

}  // namespace

void write_page(const std::string& title, const std::string& data,
                const std::function<void(std::string_view piece)>& write) {
  const auto write_all = [&write](std::string_view ending) {
    for (const PageAsset& asset : page_assets()) {
      if (!asset.name.ends_with(ending) || asset.name == kD3) continue;
      write(asset.text);
      write("\n");
    }
  };
  std::string_view rest = asset(kTemplate);
  const std::string_view marks[] = {"@TITLE@", "@CSS@", "@D3@", "@SCRIPTS@", "@DATA@"};
  while (true) {
    std::size_t at = std::string_view::npos;
    std::string_view mark;
    for (const std::string_view candidate : marks) {
      const std::size_t found = rest.find(candidate);
      if (found < at) {
        at = found;
        mark = candidate;
      }
    }
    write(rest.substr(0, at));
    if (at == std::string_view::npos) return;
    if (mark == "@TITLE@") write(html_text(title));
    if (mark == "@CSS@") write_all(".css");
    if (mark == "@D3@") write(asset(kD3));
    if (mark == "@SCRIPTS@") write_all(".js");
    if (mark == "@DATA@") write(data);
    rest.remove_prefix(at + mark.size());
  }
}

}  // namespace netsim
