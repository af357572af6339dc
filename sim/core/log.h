// Log: what a run decides, for people who ask why it is as it is: components that were chosen, sets and
// threads, defaults that depend on other values, placements, algorithms.
//
// A line has a level and the room of the source that it is about. No log is global: whoever makes a
// simulation makes its log too, so that two simulations may have two. Nothing that a packet passes writes
// here. spdlog stays inside log.cpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace netsim {

enum class LogLevel : std::uint8_t { trace, debug, info, warn, error, off };
// The folders of the source, and the composition root.
enum class Room : std::uint8_t {
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
inline constexpr std::size_t kRooms = 9;
const char* to_string(Room room);

// The least level that each room writes.
struct LogLevels {
  LogLevels() { of.fill(LogLevel::warn); }
  LogLevel at(Room room) const { return of[static_cast<std::size_t>(room)]; }
  std::array<LogLevel, kRooms> of;
};

// Reads LEVEL[,ROOM=LEVEL...], for example "info" or "warn,transport=debug": the level of all rooms, then
// those of single ones. ConfigError for a level or room that does not exist.
LogLevels read_log_levels(const std::string& text);

// Any thread may write.
class Log {
 public:
  // `to_stderr`: whether lines also go there, with the time of day.
  explicit Log(const LogLevels& levels = {}, bool to_stderr = false);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  // Whether a line would be written: for texts that are dear to make.
  bool writes(Room room, LogLevel level) const;
  // A line of text, without a line break. What a terminal would obey is shown instead (printable()). A
  // warning or an error that was written before is not written again.
  void write(Room room, LogLevel level, const std::string& text);
  void info(Room room, const std::string& text) { write(room, LogLevel::info, text); }
  void warn(Room room, const std::string& text) { write(room, LogLevel::warn, text); }

  // All lines so far, for run.log: without times, so that the same run gives the same bytes.
  std::string text() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace netsim
