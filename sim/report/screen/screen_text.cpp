#include "sim/report/screen/screen_text.h"

#include <fmt/format.h>

#include "sim/core/text.h"
#include "sim/report/results.h"

namespace netsim::screen {

void labelled(Text out, const char* label, const std::string& text, std::size_t width, std::size_t indent) {
  fmt::format_to(out, "  {:<{}}{}\n", label, indent - 2, wrapped(text, indent, indent, width));
}

std::string of_capacity(Bytes capacity) {
  return capacity > 0 ? " of " + gibibytes(capacity) : std::string();
}

}  // namespace netsim::screen
