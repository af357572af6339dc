#include "sim/core/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>
#include <vector>

#include "sim/core/terminal.h"
#include "sim/core/text.h"

namespace netsim {
namespace {

// Seconds between lines: 0.2 on a terminal; in a log 2 before the first line, then 30.
constexpr double kTerminalPeriod = 0.2;
constexpr double kPlainFirst = 2, kPlainPeriod = 30;
// Seconds over which speeds are averaged, so that the ETA follows phases but does not flicker.
constexpr double kMemory = 10;
// No ETA is shown before this time in seconds and fraction done.
constexpr double kFirstPromise = 1, kLeastFraction = 0.002;
constexpr double kLongestPromise = 1000 * 3600.0;

struct Part {
  std::string text;
  int expendable;  // parts with the highest number are left out first
};

// Returns the parts that fit into `width` columns, in their order.
std::string joined_parts(std::vector<Part> parts, std::size_t width) {
  const auto length = [&parts] {
    std::size_t sum = 0;
    for (const Part& part : parts) sum += columns(part.text) + 2;
    return sum - 2;
  };
  const auto less = [](const Part& a, const Part& b) { return a.expendable < b.expendable; };
  while (parts.size() > 1 && length() > width)
    parts.erase(std::max_element(parts.begin(), parts.end(), less));
  std::string line;
  for (const Part& part : parts) append_item(line, part.text, "  ");
  return line.substr(0, width);  // ASCII
}

}  // namespace

Progress::Progress(Style style, std::FILE* out, Clock clock, Width width)
    : style_(style),
      out_(out),
      clock_(std::move(clock)),
      width_(width ? std::move(width) : [out] { return line_width(out); }),
      start_(clock_()),
      next_(style == Style::terminal ? kTerminalPeriod : kPlainFirst) {}

Progress::Style Progress::style_for(std::FILE* out, bool quiet) {
  if (quiet) return Style::quiet;
  return redraws_lines(out) ? Style::terminal : Style::plain;
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
  const double kept = std::exp(-passed / kMemory);
  recent_seconds_ = recent_seconds_ * kept + passed;
  recent_events_ = recent_events_ * kept + static_cast<double>(events - std::min(events, last_events_));
  recent_fraction_ *= kept;
  if (fraction >= 0) {
    recent_fraction_ += std::max(0.0, fraction - last_fraction_);
    last_fraction_ = fraction;
  }
  last_elapsed_ = elapsed;
  last_events_ = events;
}

std::optional<double> Progress::left(double elapsed, double fraction) const {
  if (elapsed < kFirstPromise || fraction < kLeastFraction || recent_fraction_ <= 0) return std::nullopt;
  const double seconds = (1 - fraction) * recent_seconds_ / recent_fraction_;
  return seconds <= kLongestPromise ? std::optional(seconds) : std::nullopt;
}

std::string Progress::line(double elapsed, double fraction, Time now, std::uint64_t events) const {
  const double speed = recent_seconds_ > 0 ? recent_events_ / recent_seconds_ : 0;
  std::vector<Part> parts;
  if (fraction >= 0) parts.push_back({fmt::format("{:5.1f} %", fraction * 100), 0});
  parts.push_back({"simulated " + human_seconds(to_seconds(now)), 2});
  parts.push_back({human_count(static_cast<double>(events)) + " events", 5});
  parts.push_back({human_count(speed) + " events/s", 4});
  parts.push_back({"elapsed " + human_duration(elapsed), 3});
  if (const auto seconds = left(elapsed, fraction); seconds)
    parts.push_back({"left " + human_duration(std::round(*seconds)), 1});
  // A terminal may wrap a line that fills it.
  return joined_parts(std::move(parts),
                      style_ == Style::terminal ? std::max<std::size_t>(width_(), 2) - 1 : 1000);
}

}  // namespace netsim
