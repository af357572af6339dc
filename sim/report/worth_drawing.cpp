// The picture worth.svg.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "sim/report/canvas.h"
#include "sim/report/worth.h"

namespace netsim {
namespace {

constexpr std::size_t kJobsDrawn = 5;
constexpr double kLeftOfPlot = 70, kPlotWidth = 640, kPlotHeight = 180, kBelowPlot = 80, kAbovePlot = 34,
                 kPictureWidth = kLeftOfPlot + kPlotWidth + 30, kFirstPlot = 64, kWidestBar = 34;
constexpr const char* kGrid = "#e0e0e0";
constexpr const char* kAxis = "#555555";

const char* colour_at(std::size_t number) { return kDistinctColours[number % kDistinctColours.size()]; }

// Returns whether two lines are about the same time of different runs.
bool same_subject(const WorthLine& a, const WorthLine& b) {
  return a.kind == b.kind && (a.kind != WorthLine::Kind::job || a.name == b.name);
}

// Returns the line of a run about the same time, or null.
const WorthLine* find_subject(const std::vector<WorthLine>& lines, const WorthLine& subject) {
  const auto found = std::find_if(lines.begin(), lines.end(),
                                  [&](const WorthLine& line) { return same_subject(line, subject); });
  return found == lines.end() ? nullptr : &*found;
}

// Returns the title of the curves of a time.
std::string title_of(const WorthLine& subject) {
  if (subject.kind == WorthLine::Kind::job) return "JCT of " + printable(subject.name);
  return subject.kind == WorthLine::Kind::mean_jct ? "mean JCT" : subject.name;
}

// ValueAxis: a vertical axis of changes in percent, with its range and the distance of its ticks.
struct ValueAxis {
  double low = 0, high = 0, step = 1;

  // Returns the axis of a range that holds 0 and all values. It is not shorter than 1 %.
  static ValueAxis of(const std::vector<double>& values) {
    ValueAxis axis;
    for (const double value : values) {
      axis.low = std::min(axis.low, value);
      axis.high = std::max(axis.high, value);
    }
    if (axis.high - axis.low < 1) axis.high = axis.low + 1;
    const double about = (axis.high - axis.low) / 4;
    const double power = std::pow(10, std::floor(std::log10(about)));
    const double digit = about / power;
    axis.step = power * (digit <= 1 ? 1 : digit <= 2 ? 2 : digit <= 5 ? 5 : 10);
    axis.low = axis.step * std::floor(axis.low / axis.step);
    axis.high = axis.step * std::ceil(axis.high / axis.step);
    return axis;
  }
  // Returns the distance from the top of the plot.
  double y(double value) const { return kPlotHeight * (high - value) / (high - low); }
  int ticks() const { return static_cast<int>(std::lround((high - low) / step)); }
};

class WorthPicture {
 public:
  explicit WorthPicture(const Worth& worth) : worth_(worth) {
    for (const WorthRun& run : worth.runs) lines_.push_back(worth_lines(worth, run));
    const std::vector<std::string> jobs = most_changed_jobs(worth, kJobsDrawn);
    for (const WorthLine& line : lines_.front()) {
      if (line.kind != WorthLine::Kind::job || std::find(jobs.begin(), jobs.end(), line.name) != jobs.end())
        subjects_.push_back(line);
    }
    for (std::size_t i = 1; i < worth.runs.size(); ++i) {
      const WorthRun& run = worth.runs[i];
      if (!run.age) fields_.push_back(i);
      if (run.age && std::find(ages_.begin(), ages_.end(), *run.age) == ages_.end())
        ages_.push_back(*run.age);
    }
    std::sort(ages_.begin(), ages_.end());
  }

  std::string draw() {
    canvas_.text({kLeftOfPlot, 24}, "What each piece of information was worth", 14);
    canvas_.text({kLeftOfPlot, 42},
                 "completion times less those of the run with all of it; above 0 they are longer", 11,
                 "start", kAxis);
    draw_bars();
    if (!ages_.empty()) {
      for (const WorthLine& subject : subjects_) draw_curves(subject);
    }
    return canvas_.finish(kPictureWidth, top_);
  }

 private:
  // ---- Axes

  // Begins a plot, with its title above it, and draws the grid.
  void begin_plot(const std::string& title, const ValueAxis& axis) {
    canvas_.text({kLeftOfPlot, top_ + 16}, title, 12);
    top_ += kAbovePlot;
    for (int i = 0; i <= axis.ticks(); ++i) {
      const double value = axis.low + i * axis.step;
      const bool zero = std::abs(value) < axis.step / 2;
      const double y = top_ + axis.y(value);
      canvas_.line({kLeftOfPlot, y}, {kLeftOfPlot + kPlotWidth, y}, zero ? kAxis : kGrid, 1, "");
      canvas_.text({kLeftOfPlot - 8, y + 4}, zero ? "0 %" : fmt::format("{:+.4g} %", value), 11, "end",
                   kAxis);
    }
  }
  // Ends a plot and its legend below, of these names in the order of the colours.
  void end_plot(const std::vector<std::string>& names) {
    double x = kLeftOfPlot, y = top_ + kPlotHeight + 42;
    for (std::size_t i = 0; i < names.size(); ++i) {
      const double width = 30 + 6.4 * static_cast<double>(columns(names[i]));
      if (x > kLeftOfPlot && x + width > kLeftOfPlot + kPlotWidth) {
        x = kLeftOfPlot;
        y += 18;
      }
      canvas_.area({x, y - 9}, {x + 11, y + 2}, colour_at(i), names[i]);
      canvas_.text({x + 16, y + 1}, names[i], 11);
      x += width;
    }
    top_ = y + kBelowPlot - 42;
  }
  void name_place(double x, const std::string& name) {
    canvas_.text({x, top_ + kPlotHeight + 18}, name, 11, "middle");
  }

  // ---- The bars

  // Returns the change of a time in a run, in percent, or nothing.
  std::optional<double> percent(std::size_t run, const WorthLine& subject) const {
    const WorthLine* line = find_subject(lines_[run], subject);
    if (line == nullptr || !line->change) return std::nullopt;
    return 100 * *line->change;
  }

  void draw_bars() {
    std::vector<double> values;
    for (const std::size_t run : fields_) {
      for (const WorthLine& subject : subjects_) values.push_back(percent(run, subject).value_or(0));
    }
    const ValueAxis axis = ValueAxis::of(values);
    begin_plot("without each field", axis);
    const double group = kPlotWidth / static_cast<double>(std::max<std::size_t>(1, fields_.size()));
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      const double middle = kLeftOfPlot + (static_cast<double>(i) + 0.5) * group;
      draw_group(fields_[i], middle, group, axis);
      name_place(middle, worth_.runs[fields_[i]].field);
    }
    std::vector<std::string> names;
    for (const WorthLine& subject : subjects_) names.push_back(printable(subject.name));
    end_plot(names);
  }

  void draw_group(std::size_t run, double middle, double group, const ValueAxis& axis) {
    const std::string& title = worth_.runs[run].title;
    if (lines_[run].empty()) {
      canvas_.text({middle, top_ + axis.y(0) - 6}, worth_.runs[run].state, 11, "middle", kAxis);
      return;
    }
    const auto count = static_cast<double>(subjects_.size());
    const double width = std::min(kWidestBar, 0.8 * group / count);
    for (std::size_t i = 0; i < subjects_.size(); ++i) {
      const std::optional<double> value = percent(run, subjects_[i]);
      if (!value) continue;
      const double x = middle + (static_cast<double>(i) - count / 2) * width;
      // A bar of no height is drawn as a thin line, so that 0 and a missing time look different.
      const double y = axis.y(*value), base = axis.y(0), thin = std::abs(y - base) < 1 ? 1 : 0;
      canvas_.area({x + 1, top_ + y - thin}, {x + width - 1, top_ + base}, colour_at(i),
                   told(title, *find_subject(lines_[run], subjects_[i])));
    }
  }

  static std::string told(const std::string& run, const WorthLine& line) {
    return fmt::format("{}, {}: {} ({:+.2f} %)", run, line.name, human_seconds(line.time_s.value_or(0)),
                       100 * line.change.value_or(0));
  }

  // ---- The curves over age

  // Returns the place of an age: 0 at the left, the others by their logarithm, and no field at the right.
  double x_of(std::optional<Time> age) const {
    constexpr double kEnd = 60, kWithout = 80;
    const double left = kLeftOfPlot + kEnd / 2, right = kLeftOfPlot + kPlotWidth - kEnd / 2 - kWithout;
    if (!age) return right + kWithout;
    const auto first = std::find_if(ages_.begin(), ages_.end(), [](Time each) { return each > 0; });
    if (*age == 0 || first == ages_.end()) return left;
    const double begin = ages_.front() == 0 ? left + kEnd + 20 : left;
    const double low = std::log10(static_cast<double>(*first)),
                 high = std::log10(static_cast<double>(ages_.back()));
    const double share = high > low ? (std::log10(static_cast<double>(*age)) - low) / (high - low) : 0;
    return begin + share * (right - begin);
  }

  // Returns the run of a field with this age, or without it; 0 if there is none.
  std::size_t run_of(const std::string& field, std::optional<Time> age) const {
    for (std::size_t i = 1; i < worth_.runs.size(); ++i) {
      if (worth_.runs[i].field == field && worth_.runs[i].age == age) return i;
    }
    return 0;
  }

  void draw_curves(const WorthLine& subject) {
    std::vector<double> values;
    for (std::size_t run = 1; run < lines_.size(); ++run) values.push_back(percent(run, subject).value_or(0));
    const ValueAxis axis = ValueAxis::of(values);
    begin_plot(fmt::format("{} by the age of each field ({} with all)", title_of(subject),
                           human_seconds(subject.time_s.value_or(0))),
               axis);
    std::vector<std::string> names;
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      const std::string& field = worth_.runs[fields_[i]].field;
      names.push_back(field);
      draw_curve(field, subject, axis, colour_at(i));
    }
    double taken = 0;  // right end of the last label
    for (const Time age : ages_) {
      const std::string label = age_text(age);
      const double half = 3.2 * static_cast<double>(label.size());
      if (x_of(age) - half < taken) continue;
      taken = x_of(age) + half + 4;
      name_place(x_of(age), label);
    }
    name_place(x_of(std::nullopt), "without");
    end_plot(names);
  }

  void draw_curve(const std::string& field, const WorthLine& subject, const ValueAxis& axis,
                  const char* colour) {
    std::vector<std::optional<Time>> places(ages_.begin(), ages_.end());
    places.emplace_back();
    std::optional<Point> before;
    for (const std::optional<Time>& age : places) {
      const std::size_t run = run_of(field, age);
      const std::optional<double> value = run == 0 ? std::nullopt : percent(run, subject);
      if (!value) {
        before.reset();
        continue;
      }
      const Point at{x_of(age), top_ + axis.y(*value)};
      const std::string title = told(worth_.runs[run].title, *find_subject(lines_[run], subject));
      if (before) canvas_.line(*before, at, colour, 3, title);
      canvas_.area({at.x - 3, at.y - 3}, {at.x + 3, at.y + 3}, colour, title);
      before = at;
    }
  }

  const Worth& worth_;
  std::vector<std::vector<WorthLine>> lines_;  // by run
  std::vector<WorthLine> subjects_;            // of `all`: the times that are drawn
  std::vector<std::size_t> fields_;            // runs without a field
  std::vector<Time> ages_;
  double top_ = kFirstPlot;
  Canvas canvas_;
};

}  // namespace

std::string draw_worth(const Worth& worth) { return WorthPicture(worth).draw(); }

}  // namespace netsim
