// Text for people: quantities in words, lines that fit a width, and nothing in them that a terminal would
// obey.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace netsim {

// Columns of a line where nobody says how many there are.
inline constexpr std::size_t kDefaultWidth = 80;

// Three significant digits: 0.00123 -> "1.23 ms"; 1234567 -> "1.23 M".
std::string human_seconds(double seconds);
std::string human_count(double count);
std::string human_bytes(double bytes);  // decimal: "1.23 GB"
// How long a person waits: "478 ms", "2.7 s", "2 min 14 s", "3 h 07 min".
std::string human_duration(double seconds);
// "1 step", "2 steps".
std::string counted(std::uint64_t count, const char* what);

// What is no text: bytes that are not UTF-8, and control characters (C0, DEL, C1) other than tabs and line
// breaks.
struct NotText {
  std::size_t offset = 0;
  std::string what;  // "this is not UTF-8 text", "control character 27: only text is allowed here"
};
std::optional<NotText> find_not_text(std::string_view text);
// The same for names and other text of one line, in which tabs and line breaks are control characters too.
std::optional<NotText> find_not_name(std::string_view text);

// One line that shows what `text` holds and that no terminal obeys: a line break is \n, what is no text \x1b.
std::string printable(std::string_view text);

// Columns that `text` takes: its UTF-8 characters.
std::size_t columns(std::string_view text);

// Breaks `text` at blanks, but not between a number and its unit, into lines of at most `width` columns (a
// longer word has a line of its own). The first line begins at column `at`; the others are indented by
// `indent`. No line break at the end.
std::string wrapped(std::string_view text, std::size_t at, std::size_t indent, std::size_t width);

struct TableColumn {
  std::string title;
  // Where the lines are too long, the columns with the highest number are left out first; 0: never.
  int expendable = 0;
  bool left = false;  // where its cells stand
  std::vector<std::string> cells;
  // Before that, if its cells are all the same, a line above the titles says it instead ("ranks 8, protocol
  // LL128"); those with the lowest number go there first.
  bool said_once = false;
};
// A line of titles, then one for each row, indented; each with its line break.
std::string text_table(std::vector<TableColumn> table, std::size_t indent, std::size_t width);

}  // namespace netsim
