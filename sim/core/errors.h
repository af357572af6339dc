// Errors: exceptions for the user's mistakes. A message names the place, the given value and the allowed
// values (law 6). A bug of netsim fails a NETSIM_CHECK, which throws too, because the library never ends the
// process. Every exception holds the exit code that main() returns for it.
#pragma once

#include <stdexcept>
#include <string>

namespace netsim {

enum class ExitCode : int {
  done = 0,
  bug = 1,
  usage = 2,    // command line or configuration
  input = 3,    // workload or other input data
  io = 4,       // a file could not be read or written
  stalled = 5,  // no event is left but tasks are; the report lists what each waits for
  limit = 6,    // --until or another limit reached
  interrupted = 130
};

// Place: a place in a file that the user wrote. line and column count from 1, and 0 means unknown. `path` is
// the dotted path of a value, e.g. "network.switch.buffer".
struct Place {
  std::string file;
  int line = 0;
  int column = 0;
  std::string path;
  std::string to_string() const;  // "file:line:column: path"
};

class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

// ConfigError: a wrong configuration value or command line. Its message is one line, "place: message".
class ConfigError : public Error {
 public:
  ConfigError(const Place& place, const std::string& message);
  explicit ConfigError(const std::string& message) : Error(ExitCode::usage, message) {}
};

// InputError: wrong input data, such as a workload file.
class InputError : public Error {
 public:
  InputError(const Place& place, const std::string& message);
  explicit InputError(const std::string& message) : Error(ExitCode::input, message) {}
};

// IoError: a file that cannot be read or written. The message carries the path and the system's reason.
class IoError : public Error {
 public:
  explicit IoError(const std::string& message) : Error(ExitCode::io, message) {}
};

// InternalError: a broken invariant, which is a bug of netsim or of a component in a plugin. The objects that
// threw it can only be destroyed afterwards.
class InternalError : public Error {
 public:
  // `file` and `line` are the place of the check.
  InternalError(const char* condition, const char* file, int line, const std::string& detail);
};

// Throws an InternalError. User input never reaches it.
[[noreturn]] void check_failed(const char* condition, const char* file, int line, const std::string& detail);

#define NETSIM_CHECK(condition, detail)                                 \
  do {                                                                  \
    if (!(condition)) [[unlikely]]                                      \
      ::netsim::check_failed(#condition, __FILE__, __LINE__, (detail)); \
  } while (false)

// Throws InputError for a whole file.
[[noreturn]] inline void fail_file(const std::string& path, const std::string& message) {
  throw InputError(Place{path, 0, 0, ""}, message);
}

}  // namespace netsim
