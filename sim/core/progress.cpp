#include "sim/core/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

namespace netsim {
namespace {

// Redraw at most 5 times a second on a terminal; in a log first after 2 s, then every 10 s.
constexpr double kTerminalPeriod = 0.2;
constexpr double kPlainFirst = 2, kPlainPeriod = 10;
// Rates are smoothed over about this many seconds, so that the ETA follows phases but does not flicker.
constexpr double kSmoothing = 10;
constexpr double kLongestEta = 1000 * 3600.0;

std::string duration(double seconds) {
  const long long total = std::llround(seconds);
  if (total < 60) return fmt::format("{} s", total);
  if (total < 3600) return fmt::format("{}:{:02} min", total / 60, total % 60);
  return fmt::format("{}:{:02} h", total / 3600, total / 60 % 60);
}

std::string simulated(Time time) {
  const double t = static_cast<double>(time);
  if (time < kMicrosecond) return fmt::format("{:.0f} ns", t / static_cast<double>(kNanosecond));
  if (time < kMillisecond) return fmt::format("{:.1f} us", t / static_cast<double>(kMicrosecond));
  if (time < kSecond) return fmt::format("{:.3f} ms", t / static_cast<double>(kMillisecond));
  return fmt::format("{:.4f} s", t / static_cast<double>(kSecond));
}

std::string count(double value) {
  if (value < 1e3) return fmt::format("{:.0f}", value);
  if (value < 1e6) return fmt::format("{:.1f} k", value * 1e-3);
  if (value < 1e9) return fmt::format("{:.2f} M", value * 1e-6);
  return fmt::format("{:.2f} G", value * 1e-9);
}

double smoothed(double before, double sample, double weight) {
  return before < 0 ? sample : before + (sample - before) * weight;
}

}  // namespace

Progress::Progress(Style style, std::FILE* out, Clock clock)
    : style_(style),
      out_(out),
      clock_(std::move(clock)),
      start_(clock_()),
      next_(style == Style::terminal ? kTerminalPeriod : kPlainFirst) {}

Progress::Style Progress::style_for(std::FILE* out, bool quiet) {
  if (quiet) return Style::quiet;
  return ::isatty(::fileno(out)) == 1 ? Style::terminal : Style::plain;
}

Progress::Clock Progress::wall_clock() {
  return [] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  };
}

void Progress::update(double fraction, Time now, std::uint64_t events) {
  if (style_ == Style::quiet) return;
  const double time = elapsed();
  if (!due(time)) return;
  fraction = fraction >= 0 ? std::min(fraction, 1.0) : -1;  // NaN becomes -1 too
  observe(time, fraction, events);
  const std::string text = line(time, fraction, now, events);
  if (style_ == Style::terminal) {
    std::fprintf(out_, "\r%s\x1b[K", text.c_str());  // the escape erases the rest of an older, longer line
    drawn_ = true;
  } else {
    std::fprintf(out_, "%s\n", text.c_str());
  }
  std::fflush(out_);
}

void Progress::finish() {
  if (!drawn_) return;
  std::fputs("\r\x1b[K", out_);
  std::fflush(out_);
  drawn_ = false;
}

bool Progress::due(double elapsed) {
  if (elapsed < next_) return false;
  next_ = elapsed + (style_ == Style::terminal ? kTerminalPeriod : kPlainPeriod);
  return true;
}

void Progress::observe(double elapsed, double fraction, std::uint64_t events) {
  const double passed = elapsed - last_elapsed_;
  if (passed <= 0) return;
  const double weight = passed / (passed + kSmoothing);
  event_rate_ =
      smoothed(event_rate_, static_cast<double>(events - std::min(events, last_events_)) / passed, weight);
  if (fraction >= 0) {
    fraction_rate_ = smoothed(fraction_rate_, std::max(0.0, fraction - last_fraction_) / passed, weight);
    last_fraction_ = fraction;
  }
  last_elapsed_ = elapsed;
  last_events_ = events;
}

std::string Progress::line(double elapsed, double fraction, Time now, std::uint64_t events) const {
  std::string text = fraction >= 0 ? fmt::format("{:5.1f} %  ", fraction * 100) : "";
  text +=
      fmt::format("simulated {}  {} events  {} events/s  elapsed {}", simulated(now),
                  count(static_cast<double>(events)), count(std::max(0.0, event_rate_)), duration(elapsed));
  if (fraction < 0 || fraction_rate_ <= 0) return text;
  const double left = (1 - fraction) / fraction_rate_;
  return left > kLongestEta ? text : text + "  left " + duration(left);
}

}  // namespace netsim
