// Progress: tells a waiting person how far a run is. The only place that reads wall time.
//
// On a terminal one line is redrawn at most 5 times a second; elsewhere (a log file) a plain line is printed
// after 2 s and then at most every 10 s. Nothing here may influence a result.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>

#include "sim/core/units.h"

namespace netsim {

class Progress {
 public:
  enum class Style { terminal, plain, quiet };
  // Wall time in seconds from any start.
  using Clock = std::function<double()>;

  // `out` is not owned. `clock` is injected by tests; the default is the monotonic clock.
  explicit Progress(Style style, std::FILE* out = stderr, Clock clock = wall_clock());
  ~Progress() { finish(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // terminal if `out` is one, otherwise plain; quiet if asked.
  static Style style_for(std::FILE* out, bool quiet);
  static Clock wall_clock();

  // `fraction` done, 0 to 1 (what it counts is the caller's choice; NaN or less than 0 stands for unknown),
  // the simulated time and the events executed so far. Call it every few milliseconds.
  void update(double fraction, Time now, std::uint64_t events);
  // Clears the terminal's line, so that something else can be printed. The next update() draws it again.
  void finish();

  // Wall seconds since construction, for summaries.
  double elapsed() const { return clock_() - start_; }

 private:
  bool due(double elapsed);
  void observe(double elapsed, double fraction, std::uint64_t events);
  std::string line(double elapsed, double fraction, Time now, std::uint64_t events) const;

  Style style_;
  std::FILE* out_;
  Clock clock_;
  double start_;
  double next_;         // elapsed time of the next print
  bool drawn_ = false;  // a line stands on the terminal
  double last_elapsed_ = 0, last_fraction_ = 0;
  std::uint64_t last_events_ = 0;
  double fraction_rate_ = -1, event_rate_ = -1;  // per second, smoothed; -1: not known yet
};

}  // namespace netsim
