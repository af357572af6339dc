#include "sim/core/config_text.h"

#include "sim/core/text.h"

namespace netsim {

bool is_null_text(std::string_view text) {
  return text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL";
}

std::string joined_path(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + "." + name;
}

std::string shortened(std::string_view text) {
  constexpr std::size_t kMax = 60;
  if (text.size() <= kMax) return std::string(text);
  std::size_t end = kMax;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;  // not inside a character
  return std::string(text.substr(0, end)) + "...";
}

Place text_place(const std::string& name, std::string_view text, std::size_t offset) {
  Place place{name, 1, 1, ""};
  for (std::size_t i = 0; i < offset; ++i) {
    if (text[i] == '\n') {
      ++place.line;
      place.column = 1;
    } else {
      ++place.column;
    }
  }
  return place;
}

void check_characters(std::string_view text, const std::string& name) {
  if (const auto found = find_not_text(text); found)
    throw ConfigError(text_place(name, text, found->offset), found->what);
}

void check_config_size(std::size_t bytes, const Place& place, const char* what) {
  if (bytes <= kMaxConfigBytes) return;
  throw ConfigError(place, std::string("the ") + what + " has " + std::to_string(bytes) + " bytes: at most " +
                               std::to_string(kMaxConfigBytes) + " (4 MiB) are allowed");
}

}  // namespace netsim
