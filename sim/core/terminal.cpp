#include "sim/core/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "sim/core/text.h"

namespace netsim {
namespace {

constexpr std::size_t kNarrowest = 10, kWidest = 10'000;

std::size_t terminal_columns(std::FILE* out) {
  winsize size{};
  return ::ioctl(::fileno(out), TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

std::size_t environment_columns() {
  const char* text = std::getenv("COLUMNS");
  if (text == nullptr) return 0;
  const char* end = text + std::strlen(text);
  std::size_t value = 0;
  const auto result = std::from_chars(text, end, value);
  return result.ec == std::errc() && result.ptr == end ? value : 0;
}

}  // namespace

std::size_t line_width(std::FILE* out) {
  std::size_t width = terminal_columns(out);
  if (width == 0) width = environment_columns();
  if (width == 0) width = kDefaultWidth;
  return std::clamp(width, kNarrowest, kWidest);
}

bool redraws_lines(std::FILE* out) {
  const char* kind = std::getenv("TERM");
  return ::isatty(::fileno(out)) == 1 && (kind == nullptr || std::string_view(kind) != "dumb");
}

}  // namespace netsim
