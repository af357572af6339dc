#include "sim/report/screen/screen_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "sim/core/text.h"
#include "sim/report/results.h"

namespace netsim::screen {

void labelled(Text out, const char* label, const std::string& text, std::size_t width, std::size_t indent) {
  const std::size_t at =
      std::max(indent, std::string_view(label).size() + 3);  // a long label has a space too
  fmt::format_to(out, "  {:<{}}{}\n", label, at - 2, wrapped(text, at, indent, width));
}

std::string of_capacity(Bytes capacity) {
  return capacity > 0 ? " of " + gibibytes(capacity) : std::string();
}

}  // namespace netsim::screen
