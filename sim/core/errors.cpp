#include "sim/core/errors.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "sim/core/text.h"

namespace netsim {
namespace {

std::string& reproduction_hint() {
  static std::string hint;
  return hint;
}

// Messages quote what the user wrote, which may hold line breaks or terminal escapes: they are shown, not
// obeyed.
std::string message_at(const Place& place, const std::string& message) {
  const std::string where = place.to_string();
  return printable(where.empty() ? message : where + ": " + message);
}

}  // namespace

std::string Place::to_string() const {
  std::string result = file;
  if (line > 0) result += ":" + std::to_string(line);
  if (line > 0 && column > 0) result += ":" + std::to_string(column);
  if (!path.empty()) result += (result.empty() ? "" : ": ") + path;
  return result;
}

ConfigError::ConfigError(const Place& place, const std::string& message)
    : Error(ExitCode::usage, message_at(place, message)) {}

InputError::InputError(const Place& place, const std::string& message)
    : Error(ExitCode::input, message_at(place, message)) {}

void check_failed(const char* condition, const char* file, int line, const std::string& detail) {
  std::fprintf(stderr, "netsim: this is a bug in netsim: %s:%d: '%s' does not hold%s%s\n", file, line,
               condition, detail.empty() ? "" : ": ", detail.c_str());
  if (!reproduction_hint().empty())
    std::fprintf(stderr, "reproduce with: %s\n", printable(reproduction_hint()).c_str());
  std::fflush(stderr);
  std::abort();
}

void set_reproduction_hint(std::string hint) { reproduction_hint() = std::move(hint); }

}  // namespace netsim
