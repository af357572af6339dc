#include "sim/core/errors.h"

#include "sim/core/text.h"

namespace netsim {
namespace {

// Returns the message with its place. A message quotes the user's text, which may contain line breaks or
// terminal escapes; they are shown as text.
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

InternalError::InternalError(const char* condition, const char* file, int line, const std::string& detail)
    : Error(ExitCode::bug,
            printable(std::string("this is a bug in netsim: ") + file + ":" + std::to_string(line) + ": '" +
                      condition + "' does not hold" + (detail.empty() ? "" : ": ") + detail)) {}

void check_failed(const char* condition, const char* file, int line, const std::string& detail) {
  throw InternalError(condition, file, line, detail);
}

}  // namespace netsim
