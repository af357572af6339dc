#include "sim/report/schedule_drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "sim/core/ids.h"
#include "sim/core/text.h"
#include "sim/report/canvas.h"
#include "sim/report/link_paths.h"

namespace netsim {
namespace {

// ---- Words

// Returns the chunk into which a message is stored or reduced.
ChunkAt received_at(const ScheduledMessage& message) {
  return writes_destination(message.receiver.step.kind) ? message.receiver.step.destination
                                                        : message.receiver.step.source;
}
bool is_received(const ScheduledMessage& message) { return message.receiver.rank != kNoIndex; }
// Returns the receiving rank, or kNoIndex if the message goes to an aggregation group and is never received.
std::uint32_t receiver_of(const ScheduledMessage& message) {
  return is_received(message) ? message.receiver.rank : message.sender.step.to.rank;
}

class Words {
 public:
  explicit Words(const PlanSchedule& schedule) {
    for (const ScheduledMessage& message : schedule.messages) {
      meet(what_is_sent(message.sender.step).buffer);
      if (is_received(message)) meet(received_at(message).buffer);
    }
    for (const ScheduledStep& local : schedule.local) {
      meet(local.step.source.buffer);
      meet(local.step.destination.buffer);
    }
  }

  // Returns "3" or "3-5", with the buffer's letter if there are several buffers.
  std::string chunks(ChunkAt at, std::uint32_t count) const {
    const char* letter = several_buffers() ? kLetters[static_cast<std::size_t>(at.buffer)] : "";
    return count == 1 ? fmt::format("{}{}", letter, at.chunk)
                      : fmt::format("{}{}-{}", letter, at.chunk, at.chunk + count - 1);
  }
  // Returns the text of a message: "3>1", "i3+>1:s0".
  std::string of(const ScheduledMessage& message) const {
    const Step& step = message.sender.step;
    const ChunkAt sent = what_is_sent(step);
    std::string text = chunks(sent, step.count);
    if (!is_received(message) && step.to.aggregation != kNoIndex)
      return fmt::format("{}>aggregation group {}?", text, step.to.aggregation);
    if (!is_received(message)) return fmt::format("{}>{}?", text, step.to.rank);
    const ChunkAt put = received_at(message);
    const bool same = put.buffer == sent.buffer && put.chunk == sent.chunk;
    text += fmt::format("{}>{}", message.added ? "+" : "", receiver_of(message));
    return same ? text : text + ":" + chunks(put, step.count);
  }
  // Returns the text of a local step: "o1=i1", "o1+=s0".
  std::string of(const ScheduledStep& local) const {
    const Step& step = local.step;
    return fmt::format("{}{}={}", chunks(step.destination, step.count), reduces(step.kind) ? "+" : "",
                       chunks(step.source, step.count));
  }
  bool several_buffers() const { return met_[0] + met_[1] + met_[2] > 1; }

 private:
  static constexpr const char* kLetters[] = {"i", "o", "s"};
  void meet(Buffer buffer) { met_[static_cast<std::size_t>(buffer)] = true; }
  bool met_[3] = {};
};

std::string schedule_headline(const PlanSchedule& schedule) {
  return fmt::format("{} '{}' of {}: {}, {}, {} at {}", to_string(schedule.kind),
                     printable(schedule.algorithm), counted(schedule.ranks, "rank"),
                     counted(schedule.chunks, "chunk"), schedule.in_place ? "in place" : "out of place",
                     counted(schedule.messages.size(), "message"), counted(schedule.times, "time"));
}

// ---- The table

constexpr std::size_t kMostLines = 400;  // lines of all tables together
constexpr std::uint32_t kFirstTimes = 40, kLastTimes = 8;
constexpr std::size_t kMostInCell = 8;
constexpr std::size_t kBetween = 2;  // space between columns, as in text_table()

// Cells: the messages and local steps of each rank at each time.
class Cells {
 public:
  explicit Cells(const PlanSchedule& schedule) : words_(schedule) {
    for (const ScheduledStep& local : schedule.local) add(local, words_.of(local));
    for (const ScheduledMessage& message : schedule.messages) {
      add(message.sender, words_.of(message));
      adds_ = adds_ || words_.of(message).find('+') != std::string::npos;
      moves_ = moves_ || words_.of(message).find(':') != std::string::npos;
      lost_ = lost_ || !is_received(message);
    }
    local_ = !schedule.local.empty();
    for (const auto& [at, lines] : cells_) {
      for (std::size_t line = 0; line < shown_of(lines); ++line)
        widest_ = std::max(widest_, columns(line_of(lines, line)));
    }
  }

  const std::vector<std::string>& at(std::uint32_t time, RankId rank) const {
    static const std::vector<std::string> none;
    const auto found = cells_.find({time, rank});
    return found == cells_.end() ? none : found->second;
  }
  // Return the number of lines shown of a cell, and each of them. The last may say how many more there are.
  static std::size_t shown_of(const std::vector<std::string>& lines) {
    return std::min(kMostInCell + 1, lines.size());
  }
  static std::string line_of(const std::vector<std::string>& lines, std::size_t line) {
    if (line >= shown_of(lines)) return "";
    const bool more = line == kMostInCell && lines.size() > line + 1;
    return more ? fmt::format("+{} more", lines.size() - line) : lines[line];
  }
  std::uint32_t times() const { return cells_.empty() ? 0 : cells_.rbegin()->first.first + 1; }
  std::size_t widest() const { return widest_; }

  // Returns the meaning of the signs that occur, a line each.
  std::string legend() const {
    const bool letters = words_.several_buffers();
    const std::string from = letters ? "i3" : "3", to = letters ? "o5" : "5";
    std::string text;
    const auto add = [&text](bool there, const std::string& sign, const char* meaning) {
      if (there) text += fmt::format("  {:<9}{}\n", sign, meaning);
    };
    add(true, from + ">1", "chunk 3 goes to rank 1");
    add(moves_, from + ">1:" + to, "and is put to chunk 5 there");
    add(adds_, from + "+>1", "and is added to what is there");
    add(local_, to + "=" + from, "chunk 3 is copied to chunk 5 within the rank (+=: added)");
    add(letters, "i, o, s", "chunks of the rank's input, output and scratch");
    add(lost_, from + ">1?", "it is not received");
    return text;
  }

 private:
  void add(const ScheduledStep& at, std::string text) {
    cells_[{at.time, at.rank}].push_back(std::move(text));
  }

  Words words_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::string>> cells_;  // by time and rank
  std::size_t widest_ = 0;
  bool adds_ = false, local_ = false, lost_ = false, moves_ = false;
};

// Shown: numbers from 0 to count. kNoIndex stands for omitted numbers.
using Shown = std::vector<std::uint32_t>;
Shown shown(std::uint32_t count, std::uint32_t first, std::uint32_t last) {
  Shown numbers;
  for (std::uint32_t i = 0; i < count; ++i) {
    const bool gap = count > first + last && i >= first && i < count - last;
    if (!gap) numbers.push_back(i);
    if (gap && i == first) numbers.push_back(kNoIndex);
  }
  return numbers;
}

class ScheduleTable {
 public:
  ScheduleTable(const PlanSchedule& schedule, std::size_t width)
      : ranks_(schedule.ranks),
        cells_(schedule),
        width_(width),
        times_(shown(cells_.times(), kFirstTimes, kLastTimes)) {}

  std::string text() const {
    std::string text;
    const std::size_t at_once = ranks_at_once(), tables = (ranks_ + at_once - 1) / at_once;
    if (tables > 1 && tables * lines_of_a_table() > kMostLines) {
      const auto first = static_cast<std::uint32_t>(std::max<std::size_t>(1, at_once - 2));
      text += table(shown(ranks_, first, 1)) +
              fmt::format("\n  {} left out here; --out FILE.svg draws up to 64\n",
                          counted(ranks_ - first - 1, "rank"));
    } else {
      for (std::size_t begin = 0; begin < ranks_; begin += at_once) {
        Shown ranks;
        for (std::size_t i = begin; i < std::min<std::size_t>(ranks_, begin + at_once); ++i)
          ranks.push_back(static_cast<std::uint32_t>(i));
        text += (begin > 0 ? "\n" : "") + table(ranks);
      }
    }
    return text + "\n" + cells_.legend();
  }

 private:
  static std::string title_of(RankId rank) { return rank == kNoIndex ? "..." : fmt::format("rank {}", rank); }

  std::size_t ranks_at_once() const {
    const std::size_t column = std::max(cells_.widest(), title_of(ranks_ - 1).size()) + kBetween;
    const std::size_t time = 2 + 4 + kBetween;  // "time", indented
    return std::max<std::size_t>(1, (std::max(width_, time) + kBetween - time) / column);
  }
  std::size_t lines_at(std::uint32_t time, const Shown& ranks) const {
    std::size_t most = 1;
    for (const RankId rank : ranks) {
      if (rank != kNoIndex) most = std::max(most, Cells::shown_of(cells_.at(time, rank)));
    }
    return most;
  }
  std::size_t lines_of_a_table() const {
    Shown all(ranks_);
    for (RankId rank = 0; rank < ranks_; ++rank) all[rank] = rank;
    std::size_t lines = 2;
    for (const std::uint32_t time : times_) lines += time == kNoIndex ? 1 : lines_at(time, all);
    return lines;
  }

  std::string table(const Shown& ranks) const {
    TableColumn time{"time", 0, false, {}};
    std::vector<TableColumn> columns;
    for (const RankId rank : ranks) columns.push_back({title_of(rank), 0, true, {}});
    for (const std::uint32_t at : times_) {
      const std::size_t lines = at == kNoIndex ? 1 : lines_at(at, ranks);
      for (std::size_t line = 0; line < lines; ++line) {
        time.cells.push_back(line > 0 ? "" : at == kNoIndex ? "..." : fmt::format("{}", at));
        for (std::size_t i = 0; i < ranks.size(); ++i) columns[i].cells.push_back(cell(at, ranks[i], line));
      }
    }
    columns.insert(columns.begin(), std::move(time));
    return text_table(std::move(columns), 2, width_);
  }
  std::string cell(std::uint32_t time, RankId rank, std::size_t line) const {
    if (time == kNoIndex || rank == kNoIndex) return "";
    return Cells::line_of(cells_.at(time, rank), line);
  }

  std::uint32_t ranks_;
  Cells cells_;
  std::size_t width_;
  Shown times_;
};

// ---- The picture

constexpr std::uint32_t kMostDrawn = 64;  // limit for ranks, and for times
constexpr double kSideMargin = 50, kTop = 56, kRankRow = 64, kNarrowest = 16, kWidest = 110, kAllRanks = 1100;
constexpr double kLabelFont = 9, kAir = 1.5;  // font of labels, and room around them
constexpr std::uint64_t kMostLabels = 600;

// Returns a colour that differs well from those of earlier chunks: the hue advances by the golden ratio.
std::string colour_of(std::uint32_t chunk) {
  constexpr double kGolden = 0.618033988749895;
  const double turns = kGolden * chunk,
               hue = 6 * (turns - static_cast<double>(static_cast<std::uint64_t>(turns)));
  const auto part = [hue](double offset) {
    double at = hue + offset;
    if (at >= 6) at -= 6;
    const double slope = std::clamp(std::min(at, 4 - at), 0.0, 1.0);
    return static_cast<int>(255 * (0.78 - 0.62 * slope));
  };
  return fmt::format("#{:02x}{:02x}{:02x}", part(5), part(3), part(1));
}

class SchedulePicture {
 public:
  explicit SchedulePicture(const PlanSchedule& schedule)
      : schedule_(schedule),
        words_(schedule),
        ranks_(std::min(schedule.ranks, kMostDrawn)),
        times_(std::min(schedule.times, kMostDrawn)),
        step_(std::clamp(kAllRanks / std::max(1U, ranks_ - 1), kNarrowest, kWidest)) {
    for (const ScheduledMessage& message : schedule.messages) drawn_ += is_drawn(message) ? 1 : 0;
    width_ = std::max(640.0, x(ranks_ - 1) + kSideMargin);
  }

  std::string draw() {
    text({kSideMargin, 24}, schedule_headline(schedule_), 13);
    draw_ranks();
    for (const ScheduledStep& local : schedule_.local) draw_local(local);
    for (const ScheduledMessage& message : schedule_.messages) {
      if (is_drawn(message)) draw_message(message);
    }
    if (drawn_ <= kMostLabels) {
      for (const ScheduledMessage& message : schedule_.messages) {
        if (is_drawn(message)) label(message);
      }
    }
    const double bottom = draw_legend();
    return canvas_.finish(width_, bottom);
  }

 private:
  // A line that labels keep away from.
  struct Line {
    Point from, to;
  };

  double x(RankId rank) const { return kSideMargin + 20 + step_ * rank; }
  double y(std::uint32_t time) const { return kTop + 20 + kRankRow * time; }
  bool is_drawn(const ScheduledMessage& message) const {
    return message.sender.time < times_ && message.sender.rank < ranks_ && receiver_of(message) < ranks_;
  }

  // Writes a line of text, and makes the picture wide enough for it.
  void text(Point at, const std::string& line, double font = kPictureFont) {
    width_ = std::max(width_, at.x + text_width(line, font) + kSideMargin);
    canvas_.text(at, line, font);
  }

  double draw_legend() {
    double at = y(times_) + 36;
    const auto line = [&](const std::string& meaning) {
      text({kSideMargin + 44, at + 4}, meaning);
      at += 22;
    };
    canvas_.arrow({kSideMargin, at}, {kSideMargin + 34, at}, colour_of(0), 1.4, Canvas::Head::triangle,
                  "message");
    line("a message, in the colour of its chunk and with the numbers of its chunks");
    if (adds_) {
      canvas_.arrow({kSideMargin, at}, {kSideMargin + 34, at}, colour_of(0), 1.4, Canvas::Head::plus,
                    "reduction");
      line("a message that the receiver adds to its own data");
    }
    if (!schedule_.local.empty()) {
      canvas_.box({{kSideMargin + 17, at}, 7}, Style::nic, "", "copy");
      line("a copy or a sum within the rank");
    }
    line("time is in steps of the schedule, from top to bottom");
    if (words_.several_buffers()) line("i, o, s: chunks of the input, output and scratch buffers");
    if (const std::uint64_t without = schedule_.messages.size() - drawn_; without > 0)
      line(fmt::format("{} of ranks or times beyond {} are left out", counted(without, "message"),
                       kMostDrawn));
    if (labelled_ < drawn_)
      line(fmt::format("numbers of chunks without room are left out: {} of {}", drawn_ - labelled_, drawn_));
    return at + 10;
  }

  void draw_ranks() {
    for (std::uint32_t time = 0; time <= times_; ++time) {
      canvas_.line({x(0) - 12, y(time)}, {x(ranks_ - 1) + 12, y(time)}, "#e4e4e4", 0,
                   fmt::format("time {}", time));
      canvas_.text({x(0) - 22, y(time) + 4}, fmt::format("{}", time), kPictureFont, "end");
    }
    for (RankId rank = 0; rank < ranks_; ++rank) {
      const std::string name = fmt::format("rank {}", rank);
      canvas_.line({x(rank), kTop + kBoxHeight / 2 - 6}, {x(rank), y(times_)}, "#9a9a9a", 1, name);
      canvas_.box({{x(rank), kTop - 6}, std::min(60.0, 0.9 * step_)}, Style::gpu,
                  step_ < 50 ? fmt::format("{}", rank) : name, name);
    }
  }

  void draw_local(const ScheduledStep& local) {
    if (local.rank >= ranks_ || local.time > times_) return;
    canvas_.box({{x(local.rank), y(local.time)}, 7}, Style::nic, "",
                fmt::format("{}: {}", place(local), words_.of(local)));
  }

  Line line_of(const ScheduledMessage& message) const {
    const ScheduledStep& sender = message.sender;
    return {{x(sender.rank), y(sender.time)}, {x(receiver_of(message)), y(sender.time + 1)}};
  }

  void draw_message(const ScheduledMessage& message) {
    const Line line = line_of(message);
    canvas_.arrow(line.from, line.to, colour_of(what_is_sent(message.sender.step).chunk), 1.4,
                  message.added ? Canvas::Head::plus : Canvas::Head::triangle,
                  fmt::format("{}: {}", place(message.sender), words_.of(message)));
    adds_ = adds_ || message.added;
    lines_[message.sender.time].push_back(line);
  }

  // Writes a message's chunks beside its arrow at the first place where they cross nothing, near the sender
  // first. Without such a place they are left out.
  void label(const ScheduledMessage& message) {
    const ChunkAt chunk = what_is_sent(message.sender.step);
    const std::string chunks = words_.chunks(chunk, message.sender.step.count);
    const Line line = line_of(message);
    const double half = text_width(chunks, kLabelFont) / 2 + kAir, height = kLabelFont + kAir;
    const double slope = (line.to.y - line.from.y) / std::max(1.0, std::abs(line.to.x - line.from.x));
    for (int along = 3; along <= 17; ++along) {
      for (const double side : {-1.0, 1.0}) {
        const double share = along / 20.0;
        // The label is as near to its arrow as the arrow's slope allows.
        const double away = height / 2 + std::min(half * slope, height) + kAir;
        const Point at{line.from.x + share * (line.to.x - line.from.x),
                       line.from.y + share * (line.to.y - line.from.y) + side * away};
        const Point beside{at.x + (half * slope > height ? -side * (half + 2) : 0),
                           half * slope > height ? at.y - side * away : at.y};
        const Outline outline{{beside.x - half, beside.y - height / 2},
                              {beside.x + half, beside.y + height / 2}};
        if (!is_free(outline, message.sender.time)) continue;
        labels_[message.sender.time].push_back(outline);
        canvas_.text({beside.x, beside.y + 0.3 * kLabelFont}, chunks, kLabelFont, "middle",
                     colour_of(chunk.chunk));
        ++labelled_;
        return;
      }
    }
  }

  // Returns whether a place between two times is free of lines and labels.
  bool is_free(const Outline& place, std::uint32_t time) {
    if (place.low.y < y(time) + kAir || place.high.y > y(time + 1) - kAir) return false;
    if (place.low.x < 0) return false;
    for (RankId rank = 0; rank < ranks_; ++rank) {
      if (place.low.x < x(rank) + kAir && place.high.x > x(rank) - kAir) return false;
    }
    const auto crossed = [&](const Line& line) { return crosses(line.from, line.to, place); };
    const auto covered = [&](const Outline& label) { return overlap(label, place); };
    return std::none_of(lines_[time].begin(), lines_[time].end(), crossed) &&
           std::none_of(labels_[time].begin(), labels_[time].end(), covered);
  }

  static std::string place(const ScheduledStep& step) {
    return fmt::format("time {}, rank {}, thread block {}, step {}", step.time, step.rank, step.block,
                       step.index);
  }

  const PlanSchedule& schedule_;
  Words words_;
  std::uint32_t ranks_, times_;
  double step_;
  std::uint64_t drawn_ = 0, labelled_ = 0;  // numbers of messages that are drawn and that have a label
  bool adds_ = false;                       // whether a drawn message is added
  std::map<std::uint32_t, std::vector<Line>> lines_;      // arrows, by time
  std::map<std::uint32_t, std::vector<Outline>> labels_;  // by time
  double width_ = 0;
  Canvas canvas_;
};

}  // namespace

std::string render_schedule(const PlanSchedule& schedule, std::size_t width) {
  if (schedule.messages.empty() && schedule.local.empty()) return schedule_headline(schedule) + "\n";
  return wrapped(schedule_headline(schedule), 0, 2, width) + "\n\n" + ScheduleTable(schedule, width).text();
}

std::string draw_schedule(const PlanSchedule& schedule) { return SchedulePicture(schedule).draw(); }

}  // namespace netsim
