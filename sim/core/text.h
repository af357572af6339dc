// Text for people: quantities in words and lines that fit a width, without control characters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace netsim {

// Columns of a line where the width of the terminal is unknown.
inline constexpr std::size_t kDefaultWidth = 80;

// Format with three significant digits: 0.00123 -> "1.23 ms"; 1234567 -> "1.23 M".
std::string human_seconds(double seconds);
std::string human_count(double count);
std::string human_bytes(double bytes);  // decimal: "1.23 GB"
// Formats the time that a person waits: "478 ms", "2.7 s", "2 min 14 s", "3 h 07 min".
std::string human_duration(double seconds);
// Formats a number with its noun: "1 step", "2 steps".
std::string counted(std::uint64_t count, const char* what);

// Appends an item to a list of items in a text. `separator` stands between two items.
inline void append_item(std::string& list, std::string_view item, std::string_view separator = ", ") {
  if (!list.empty()) list += separator;
  list += item;
}

// Classify and change ASCII characters, whatever the locale is.
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr char to_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Returns the text with its ASCII letters in lower case.
std::string lower_case(std::string_view text);

// Returns the candidate within one edit of `word`, else the shortest that contains it, else the nearest by
// edit distance. Returns "" if the distance of all is above half of the length.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);
// Returns ", did you mean 'NEAREST'?" for a message about an unknown word, or "" if no candidate is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

// NotText: a byte that is not text. It is not UTF-8, or is a control character (C0, DEL, C1) other than a tab
// or a line break.
struct NotText {
  std::size_t offset = 0;
  std::string what;  // "this is not UTF-8 text", "control character 27: only text is allowed here"
};
std::optional<NotText> find_not_text(std::string_view text);
// Finds the first such byte in a name or another text of one line, where tabs and line breaks count too.
std::optional<NotText> find_not_name(std::string_view text);

// Returns `text` as one line without control characters. A line break becomes \n, others become \x1b and the
// like.
std::string printable(std::string_view text);

// Returns the columns that `text` takes: the number of its UTF-8 characters.
std::size_t columns(std::string_view text);

// Breaks `text` at blanks into lines of at most `width` columns, but not between a number and its unit. A
// longer word has a line of its own. The first line begins at column `at`; the others are indented by
// `indent`. The result does not end with a line break.
std::string wrapped(std::string_view text, std::size_t at, std::size_t indent, std::size_t width);

struct TableColumn {
  std::string title;
  // If the lines are too long, columns with the highest number are omitted first; those with 0 never.
  int expendable = 0;
  bool left = false;  // cells are aligned to the left
  std::vector<std::string> cells;
  // Before columns are omitted, a column whose cells are all equal moves into a line above the titles ("ranks
  // 8, protocol LL128"). Columns with the lowest number move first.
  bool said_once = false;
};
// Returns a line of titles and one for each row, indented and each with its line break.
std::string text_table(std::vector<TableColumn> table, std::size_t indent, std::size_t width);

}  // namespace netsim
