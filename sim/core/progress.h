// Progress: shows the user how far a run is, by the wall clock.
//
// On a terminal one line is redrawn at most 5 times a second; it omits parts that do not fit, so it never
// wraps. Elsewhere (a log file) a plain line is printed after 2 s and then every half minute. Nothing here
// may influence a result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>

#include "sim/core/units.h"

namespace netsim {

class Progress {
 public:
  enum class Style { terminal, plain, quiet };
  // Returns wall time in seconds since an arbitrary start.
  using Clock = std::function<double()>;
  // Returns the columns of the terminal; called before every line.
  using Width = std::function<std::size_t()>;

  // `out` is not owned. Tests pass `clock` and `width`; the defaults are the monotonic clock and the
  // terminal's width.
  explicit Progress(Style style, std::FILE* out = stderr, Clock clock = wall_clock(), Width width = {});
  ~Progress() { finish(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Returns terminal if `out` is a terminal, otherwise plain; quiet if requested.
  static Style style_for(std::FILE* out, bool quiet);
  static Clock wall_clock();

  // Updates the fraction done (0 to 1; NaN or below 0 stands for unknown), the simulated time and the number
  // of events so far. The caller calls it every few milliseconds.
  void update(double fraction, Time now, std::uint64_t events);
  // Clears the terminal's line, so that something else can be printed. The next update() draws it again.
  void finish();

  // Returns wall seconds since construction, for summaries.
  double elapsed() const { return clock_() - start_; }

 private:
  bool due(double elapsed);
  void observe(double elapsed, double fraction, std::uint64_t events);
  std::string line(double elapsed, double fraction, Time now, std::uint64_t events) const;
  // Returns the seconds to the end, or nothing where too little is known.
  std::optional<double> left(double elapsed, double fraction) const;

  Style style_;
  std::FILE* out_;
  Clock clock_;
  Width width_;
  double start_;
  double next_;         // elapsed time of the next print
  bool drawn_ = false;  // a line stands on the terminal
  double last_elapsed_ = 0, last_fraction_ = 0;
  std::uint64_t last_events_ = 0;
  // Recent progress and the seconds that it took, with a weight that falls with age. Their ratios are the
  // speeds; at first they are those since the start.
  double recent_seconds_ = 0, recent_fraction_ = 0, recent_events_ = 0;
};

}  // namespace netsim
