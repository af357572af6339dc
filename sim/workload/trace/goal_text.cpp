#include <fmt/format.h>

#include <charconv>
#include <map>
#include <optional>

#include "sim/core/errors.h"
#include "sim/core/line_reader.h"
#include "sim/core/text.h"
#include "sim/workload/program/program.h"
#include "sim/workload/trace/goal_schedule.h"

namespace netsim {
namespace {

// GoalText: reads the text form, line by line.
class GoalText {
 public:
  explicit GoalText(const InputSet::File& file) : file_(file.path), lines_(file) {}

  GoalSchedule read() {
    GoalSchedule schedule;
    expect("num_ranks");
    const std::int64_t ranks = integer("the number of ranks", 1, ProgramLimits::kRanks);
    ranks_ = ranks;
    // A short file cannot name many ranks; each has a block of its own, in any order.
    std::map<std::int64_t, GoalRank> blocks;
    for (std::int64_t block = 0; block < ranks; ++block) {
      expect("rank");
      const std::int64_t rank = integer("the rank", 0, ranks - 1);
      const auto [known, is_new] = blocks.try_emplace(rank);
      if (!is_new) fail(fmt::format("rank {} has a second block; allowed: one for each rank", rank));
      expect("{");
      rank_ = &known->second;
      labels_.clear();
      while (more("a statement or }") && peek() != "}") statement();
      ++at_;
    }
    if (at_ < words_.size() || next_line()) {
      ++at_;
      fail(fmt::format("more text follows the block of the last rank; allowed: {} ranks", ranks));
    }
    schedule.ranks.reserve(blocks.size());
    for (auto& [rank, block] : blocks) schedule.ranks.push_back(std::move(block));
    return schedule;
  }

 private:
  struct Token {
    std::string text;
    int column = 0;
  };

  // Divides the next line that has words. The characters { } : are words of their own.
  bool next_line() {
    words_.clear();
    at_ = 0;
    while (words_.empty()) {
      if (!lines_.next()) return false;
      const std::string_view line = lines_.line();
      constexpr std::string_view kMark = "\xef\xbb\xbf";  // byte order mark of UTF-8
      for (std::size_t i = lines_.number() == 1 && line.starts_with(kMark) ? kMark.size() : 0;
           i < line.size();) {
        if (comment_) {
          const std::size_t end = line.find("*/", i);
          comment_ = end == std::string_view::npos;
          i = comment_ ? line.size() : end + 2;
        } else if (line.substr(i, 2) == "//") {
          break;
        } else if (line.substr(i, 2) == "/*") {
          comment_ = true;
          i += 2;
        } else {
          i = add_word(line, i);
        }
      }
    }
    return true;
  }
  std::size_t add_word(std::string_view line, std::size_t begin) {
    const auto is_mark = [&](std::size_t i) { return line[i] == '{' || line[i] == '}' || line[i] == ':'; };
    const auto is_space = [&](std::size_t i) {
      return line[i] == ' ' || line[i] == '\t' || line[i] == '\r' || line[i] == ';';
    };
    if (is_space(begin)) return begin + 1;
    std::size_t end = begin + 1;
    while (!is_mark(begin) && end < line.size() && !is_mark(end) && !is_space(end) && line[end] != '/') ++end;
    words_.push_back({std::string(line.substr(begin, end - begin)), static_cast<int>(begin) + 1});
    return end;
  }

  bool more(const std::string& what) {
    if (at_ < words_.size() || next_line()) return true;
    throw InputError(Place{file_, lines_.number(), 0, ""}, "the file ends where " + what + " is expected");
  }
  // Returns the next word of this line, or "".
  const std::string& peek(std::size_t ahead = 0) const {
    static const std::string none;
    return at_ + ahead < words_.size() ? words_[at_ + ahead].text : none;
  }
  // Takes a word of this line or, between statements, of a later one.
  const std::string& take(const std::string& what, bool same_line = false) {
    if (same_line && at_ == words_.size())
      throw InputError(Place{file_, lines_.number(), 0, ""}, "the line ends where " + what + " is expected");
    more(what);
    return words_[at_++].text;
  }
  void expect(const std::string& text, bool same_line = false) {
    const std::string& given = take("'" + text + "'", same_line);
    if (given != text) fail(fmt::format("'{}'; allowed: '{}'", printable(given), text));
  }
  std::int64_t integer(const std::string& what, std::int64_t least, std::uint64_t most,
                       bool in_bytes = false) {
    std::string_view text = take(what, true);
    const std::string given = printable(text);
    bool unit = text.ends_with('b');
    if (in_bytes && unit) text.remove_suffix(1);
    // The unit may be a word of its own.
    if (in_bytes && !unit && peek() == "b") unit = true, ++at_;
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = error == std::errc() && end == text.data() + text.size() && unit == in_bytes;
    if (whole && value >= least && (value < 0 || static_cast<std::uint64_t>(value) <= most)) return value;
    fail(
        fmt::format("{} is '{}'; allowed: {} to {}{}", what, given, least, most, in_bytes ? ", then b" : ""));
  }

  void statement() {
    if (peek(1) == "requires" || peek(1) == "irequires") return edge();
    std::string label;
    if (peek(1) == ":") {
      label = take("a label");
      if (labels_.contains(label)) fail(fmt::format("the label '{}' is given twice", printable(label)));
      ++at_;
    }
    GoalOp op = operation(take("an operation", !label.empty()));
    options(op);
    if (!label.empty()) labels_[label] = static_cast<std::uint32_t>(rank_->ops.size());
    rank_->ops.push_back(op);
  }
  GoalOp operation(const std::string& kind) {
    GoalOp op;
    op.line = static_cast<std::uint32_t>(lines_.number());
    if (kind == "calc") {
      op.size = integer("the time", 0, ProgramLimits::kKernelTime / kNanosecond);
      return op;
    }
    if (kind != "send" && kind != "recv")
      fail(
          fmt::format("'{}'; allowed: LABEL:, send, recv, calc, or LABEL requires LABEL, LABEL irequires "
                      "LABEL, }}",
                      printable(kind)));
    const bool sends = kind == "send";
    op.kind = sends ? GoalOp::Kind::send : GoalOp::Kind::receive;
    op.size = integer("the size", 0, ProgramLimits::kBytes, true);
    expect(sends ? "to" : "from", true);
    op.peer = static_cast<std::uint32_t>(integer(sends ? "the destination" : "the source", sends ? 0 : -1,
                                                 static_cast<std::uint64_t>(ranks_ - 1)));
    return op;
  }
  void options(GoalOp& op) {
    const bool message = op.kind != GoalOp::Kind::calc;
    if (message && peek() == "tag") {
      ++at_;
      const bool any = op.kind == GoalOp::Kind::receive;
      op.tag = static_cast<std::uint32_t>(integer("the tag", any ? -1 : 0, UINT32_MAX));
    }
    if (peek() == "cpu") {
      ++at_;
      op.cpu = static_cast<std::uint8_t>(integer("the cpu", 0, UINT8_MAX));
    }
    if (message && peek() == "nic") {
      ++at_;
      op.nic = static_cast<std::uint8_t>(integer("the nic", 0, UINT8_MAX));
    }
    if (peek().empty() || peek() == "}") return;
    ++at_;
    fail(fmt::format("'{}'; allowed at the end of an operation: {}", printable(words_[at_ - 1].text),
                     message ? "tag, cpu and nic with their numbers, in this order" : "cpu with its number"));
  }
  void edge() {
    const std::uint32_t later = label();
    const bool at_end = take("requires") == "requires";
    const std::uint32_t earlier = label();
    (at_end ? rank_->ends : rank_->starts).emplace_back(later, earlier);
  }
  std::uint32_t label() {
    const std::string& text = take("a label", true);
    const auto found = labels_.find(text);
    if (found == labels_.end()) fail(fmt::format("no operation before has the label '{}'", printable(text)));
    return found->second;
  }

  // Throws for the word that was taken last.
  [[noreturn]] void fail(const std::string& message) const {
    throw InputError(Place{file_, lines_.number(), words_[at_ - 1].column, ""}, message);
  }

  std::string file_;
  LineReader lines_;
  std::vector<Token> words_;  // of the current line
  std::size_t at_ = 0;
  bool comment_ = false;
  std::int64_t ranks_ = 0;
  GoalRank* rank_ = nullptr;
  std::map<std::string, std::uint32_t> labels_;  // of the rank's operations
};

}  // namespace

GoalSchedule parse_goal_text(const InputSet::File& file) { return GoalText(file).read(); }

std::string goal_label(const GoalOp& op, std::size_t rank, std::size_t index) {
  return op.line > 0 ? fmt::format("line {}", op.line) : fmt::format("node {} of rank {}", index, rank);
}

}  // namespace netsim
