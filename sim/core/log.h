// Log: the decisions of a run, for users who ask for the reasons of its results. It names the chosen
// components, sets, threads, defaults that depend on other values, placements and algorithms.
//
// A line has a level and the folder of the source that it is about. No log is global: the code that makes a
// simulation makes its log too, so two simulations may have two. The packet path never writes here. spdlog is
// used in log.cpp only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace netsim {

enum class LogLevel : std::uint8_t { trace, debug, info, warn, error, off };
// The folders of the source and the composition root, as subjects of log lines.
enum class LogTopic : std::uint8_t {
  core,
  topology,
  network,
  transport,
  scheduling,
  collectives,
  workload,
  report,
  simulation
};
inline constexpr std::size_t kLogTopics = 9;
const char* to_string(LogTopic topic);

// The lowest level that is written, for each folder.
struct LogLevels {
  LogLevels() { of.fill(LogLevel::warn); }
  LogLevel at(LogTopic topic) const { return of[static_cast<std::size_t>(topic)]; }
  std::array<LogLevel, kLogTopics> of;
};

// Reads LEVEL[,FOLDER=LEVEL...], for example "info" or "warn,transport=debug": the level of all folders, then
// those of single ones. Throws ConfigError for a level or folder that does not exist.
LogLevels read_log_levels(const std::string& text);

// Log: a thread-safe log; any thread may write.
class Log {
 public:
  // With `to_stderr`, lines also go to stderr, with the time of day.
  explicit Log(const LogLevels& levels = {}, bool to_stderr = false);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  // Returns whether a line would be written, so that costly texts are made only where they are needed.
  bool writes(LogTopic topic, LogLevel level) const;
  // Writes a line of text, given without a line break. Control characters are shown by printable(). A warning
  // or an error that was written before is not written again.
  void write(LogTopic topic, LogLevel level, const std::string& text);
  void info(LogTopic topic, const std::string& text) { write(topic, LogLevel::info, text); }
  void warn(LogTopic topic, const std::string& text) { write(topic, LogLevel::warn, text); }

  // Returns all lines so far, for run.log. They have no times, so the same run gives the same bytes.
  std::string text() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace netsim
