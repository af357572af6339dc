#include "sim/core/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <iterator>
#include <utility>

namespace netsim {
namespace {

// Formats with three significant digits: 1.23, 12.3, 123.
std::string three_digits(double value) {
  const double size = std::abs(value);
  return fmt::format("{:.{}f}", value, size < 9.995 ? 2 : size < 99.95 ? 1 : 0);
}

std::string scaled(double value, std::initializer_list<std::pair<double, const char*>> units) {
  for (const auto& [factor, unit] : units) {
    if (std::abs(value) >= factor * 0.9995) return three_digits(value / factor) + " " + unit;
  }
  const auto& [factor, unit] = *std::rbegin(units);
  return three_digits(value / factor) + " " + unit;
}

unsigned byte_at(std::string_view text, std::size_t i) {
  return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
}

bool continues(std::string_view text, std::size_t i) { return (byte_at(text, i) & 0xc0) == 0x80; }

// Returns the length of the UTF-8 character at byte `i`, or 0 if there is none.
std::size_t character_length(std::string_view text, std::size_t i) {
  const unsigned first = byte_at(text, i), second = byte_at(text, i + 1);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return continues(text, i + 1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    const bool overlong = first == 0xe0 && second < 0xa0;
    const bool surrogate = first == 0xed && second > 0x9f;
    return continues(text, i + 1) && continues(text, i + 2) && !overlong && !surrogate ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const bool outside = (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f);
    return continues(text, i + 1) && continues(text, i + 2) && continues(text, i + 3) && !outside ? 4 : 0;
  }
  return 0;
}

// Returns the control character at byte `i`, or 256.
unsigned control_character(std::string_view text, std::size_t i) {
  const unsigned first = byte_at(text, i);
  if (first < 0x20 || first == 0x7f) return first;
  const bool c1 = first == 0xc2 && byte_at(text, i + 1) >= 0x80 && byte_at(text, i + 1) < 0xa0;
  return c1 ? byte_at(text, i + 1) : 256;
}

std::optional<NotText> find(std::string_view text, bool lines) {
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    if ((c >= 0x20 && c < 0x7f) || (lines && (c == '\n' || c == '\t' || c == '\r'))) {
      ++i;
      continue;
    }
    const std::size_t length = character_length(text, i);
    if (length == 0) return NotText{i, "this is not UTF-8 text"};
    if (const unsigned control = control_character(text, i); control < 256) {
      return NotText{i, fmt::format("control character {}: only text is allowed here", control)};
    }
    i += length;
  }
  return std::nullopt;
}

// Returns the position of the blank after the word at `begin`. A word that ends with a digit includes the
// next one ("p50 1.10 KB").
std::size_t end_of_word(std::string_view text, std::size_t begin) {
  std::size_t end = text.find(' ', begin);
  while (end != std::string_view::npos && end > begin && text[end - 1] >= '0' && text[end - 1] <= '9')
    end = text.find(' ', end + 1);
  return std::min(end, text.size());
}

std::size_t widest(const TableColumn& column) {
  std::size_t width = columns(column.title);
  for (const std::string& cell : column.cells) width = std::max(width, columns(cell));
  return width;
}

std::size_t line_length(const std::vector<TableColumn>& table, std::size_t indent) {
  std::size_t length = indent;
  for (const TableColumn& column : table) length += widest(column) + 2;
  return length - std::min<std::size_t>(length, 2);
}

bool says_one_thing(const TableColumn& column) {
  return column.said_once && !column.cells.empty() &&
         std::all_of(column.cells.begin(), column.cells.end(),
                     [&](const std::string& cell) { return cell == column.cells[0]; });
}

bool less_expendable(const TableColumn& a, const TableColumn& b) { return a.expendable < b.expendable; }

// Moves columns with equal cells out of the table, as many as needed, and returns the line that states them.
std::string say_once(std::vector<TableColumn>& table, std::size_t indent, std::size_t width) {
  std::vector<std::size_t> taken;
  for (std::size_t i = 0; i < table.size(); ++i)
    if (says_one_thing(table[i])) taken.push_back(i);
  std::stable_sort(taken.begin(), taken.end(),
                   [&](std::size_t a, std::size_t b) { return less_expendable(table[a], table[b]); });
  std::size_t length = line_length(table, indent), count = 0;
  for (; length > width && count < taken.size(); ++count) length -= widest(table[taken[count]]) + 2;
  taken.resize(count);
  std::sort(taken.begin(), taken.end());
  std::string line;
  for (const std::size_t i : taken) append_item(line, table[i].title + " " + table[i].cells[0]);
  for (; count > 0; --count) table.erase(table.begin() + static_cast<std::ptrdiff_t>(taken[count - 1]));
  return line;
}

void leave_out(std::vector<TableColumn>& table, std::size_t indent, std::size_t width) {
  while (line_length(table, indent) > width) {
    const auto column = std::max_element(table.begin(), table.end(), less_expendable);
    if (column == table.end() || column->expendable == 0) return;
    table.erase(column);
  }
}

}  // namespace

std::string human_seconds(double seconds) {
  if (seconds == 0) return "0 s";
  return scaled(seconds, {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}, {1e-12, "ps"}});
}

std::string human_count(double count) {
  if (count < 1000) return fmt::format("{:.0f}", count);
  return scaled(count, {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}});
}

std::string human_bytes(double bytes) {
  if (bytes < 1000) return fmt::format("{:.0f} B", bytes);
  return scaled(bytes, {{1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "KB"}});
}

std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = to_lower(c);
  return result;
}

std::string human_duration(double seconds) {
  if (seconds < 0.9995) return human_seconds(seconds);
  if (seconds < 9.95) return fmt::format("{:.1f} s", seconds);
  const long long whole = std::llround(seconds);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

std::string counted(std::uint64_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::optional<NotText> find_not_text(std::string_view text) { return find(text, true); }
std::optional<NotText> find_not_name(std::string_view text) { return find(text, false); }

std::string printable(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = character_length(text, i);
    if (text[i] == '\n') {
      result += "\\n";
    } else if (length == 0 || control_character(text, i) < 256) {
      for (std::size_t byte = 0; byte < std::max<std::size_t>(length, 1); ++byte)
        result += fmt::format("\\x{:02x}", byte_at(text, i + byte));
    } else {
      result += text.substr(i, length);
    }
    i += std::max<std::size_t>(length, 1);
  }
  return result;
}

std::size_t columns(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::string wrapped(std::string_view text, std::size_t at, std::size_t indent, std::size_t width) {
  std::string result;
  std::size_t column = at;
  bool begins = true;  // the word begins a line, so no blank goes before it
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = end_of_word(text, begin);
    const std::string_view word = text.substr(begin, end - begin);
    const std::size_t length = columns(word) + (begins ? 0 : 1);
    if (!begins && column + length > width) {
      result += "\n" + std::string(indent, ' ');
      column = indent + length - 1;
    } else {
      if (!begins) result += ' ';
      column += length;
    }
    result += word;
    begins = false;
    begin = end + 1;
  }
  return result;
}

std::string text_table(std::vector<TableColumn> table, std::size_t indent, std::size_t width) {
  const std::string said = say_once(table, indent, width);
  leave_out(table, indent, width);
  std::vector<std::string> lines(1, std::string(indent, ' '));
  for (const TableColumn& column : table)
    lines.resize(std::max(lines.size(), column.cells.size() + 1), lines[0]);
  for (const TableColumn& column : table) {
    const std::size_t wide = widest(column);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const std::string cell = i == 0 ? column.title : i <= column.cells.size() ? column.cells[i - 1] : "";
      const std::string space(wide - columns(cell), ' ');
      lines[i] += column.left ? cell + space : space + cell;
      lines[i] += "  ";
    }
  }
  std::string result;
  if (!said.empty()) result = std::string(indent, ' ') + wrapped(said, indent, indent, width) + "\n";
  for (std::string& line : lines) {
    line.erase(line.find_last_not_of(' ') + 1);
    result += line + "\n";
  }
  return result;
}

namespace {

// Returns the edit distance with swaps of neighbours (optimal string alignment), ignoring case.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = to_lower(a[i - 1]) == to_lower(b[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0U : 1U)});
      const bool swapped = i > 1 && j > 1 && to_lower(a[i - 1]) == to_lower(b[j - 2]) &&
                           to_lower(a[i - 2]) == to_lower(b[j - 1]);
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

// Returns the shortest candidate that contains the word, ignoring case, or "". A word of fewer than three
// letters is in too many.
std::string shortest_with(std::string_view word, const std::vector<std::string>& candidates) {
  constexpr std::size_t kLeastLetters = 3;
  if (word.size() < kLeastLetters) return "";
  const std::string sought = lower_case(word);
  std::string best;
  for (const std::string& candidate : candidates) {
    if (lower_case(candidate).find(sought) == std::string::npos) continue;
    if (best.empty() || candidate.size() < best.size()) best = candidate;
  }
  return best;
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  constexpr std::size_t kMostLetters = 128;
  if (word.size() > kMostLetters) return "";
  std::string best;
  std::size_t best_distance = word.size() / 2 + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance >= best_distance) continue;
    best = candidate;
    best_distance = distance;
  }
  // One wrong letter is a slip. With more, a name that contains the word is likelier: a100 of a100_80gb.
  if (best_distance <= 1) return best;
  const std::string longer = shortest_with(word, candidates);
  return longer.empty() ? best : longer;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string near = nearest(word, candidates);
  return near.empty() ? "" : ", did you mean '" + near + "'?";
}

}  // namespace netsim
