#include "sim/core/csv.h"

#include <algorithm>

#include "sim/core/config.h"
#include "sim/core/text.h"

namespace netsim {
namespace {

std::string_view trimmed_cell(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace

bool CsvReader::next_line() {
  constexpr std::string_view kMark = "\xef\xbb\xbf";  // byte order mark of UTF-8
  while (lines_.next()) {
    line_ = lines_.line();
    if (lines_.number() == 1 && line_.starts_with(kMark)) line_.remove_prefix(kMark.size());
    const std::string_view content = trimmed_cell(line_);
    if (!content.empty() && content.front() != '#') return true;
  }
  return false;
}

void CsvReader::split() {
  cells_.clear();
  texts_.clear();
  texts_.reserve(static_cast<std::size_t>(std::count(line_.begin(), line_.end(), ',')) + 1);
  for (std::size_t at = 0; at <= line_.size();) {
    std::size_t begin = at;
    while (begin < line_.size() && (line_[begin] == ' ' || line_[begin] == '\t')) ++begin;
    std::string& text = texts_.emplace_back();
    if (begin < line_.size() && line_[begin] == '"') {
      at = unquote(begin, text);
    } else {
      const std::size_t end = std::min(line_.find(',', at), line_.size());
      text = trimmed_cell(line_.substr(at, end - at));
      at = end + 1;
    }
    cells_.push_back({text, line(), static_cast<int>(begin) + 1});
  }
}

// Reads a quoted cell into `text` and returns where the next cell begins.
std::size_t CsvReader::unquote(std::size_t begin, std::string& text) const {
  std::size_t at = begin + 1;
  for (; at < line_.size(); ++at) {
    if (line_[at] == '"' && (at + 1 == line_.size() || line_[at + 1] != '"')) break;
    if (line_[at] == '"') ++at;
    text += line_[at];
  }
  if (at >= line_.size())
    reader_.fail({"", line(), static_cast<int>(begin) + 1}, "the quote that opens here is never closed");
  const std::size_t end = std::min(line_.find(',', at), line_.size());
  if (!trimmed_cell(line_.substr(at + 1, end - at - 1)).empty())
    reader_.fail({"", line(), static_cast<int>(at) + 2}, "text behind a closing quote");
  return end + 1;
}

const std::vector<std::size_t>& CsvReader::header(const std::vector<std::string>& names, std::size_t required,
                                                  std::string* others) {
  std::string list;
  for (const std::string& name : names) append_item(list, name);
  if (!next_line())
    reader_.fail({"", 1, 1}, "the file has no line that names columns (allowed: " + list + ")");
  split();
  for (const Word& cell : cells_) {
    const auto known = std::find(names.begin(), names.end(), cell.text);
    const std::string text(cell.text.substr(0, 40));
    if (known == names.end() && others != nullptr) {
      append_item(*others, printable(text));
      columns_.push_back(kNone);
      continue;
    }
    if (known == names.end()) {
      reader_.fail(cell, "unknown column '" + text + "'" + did_you_mean(cell.text, names) +
                             " (allowed: " + list + ")");
    }
    const auto index = static_cast<std::size_t>(known - names.begin());
    if (std::find(columns_.begin(), columns_.end(), index) != columns_.end())
      reader_.fail(cell, "a second column for '" + text + "'");
    columns_.push_back(index);
  }
  for (std::size_t name = 0; name < required; ++name) {
    if (column(name) == kNone) fail("column '" + names[name] + "' is missing (allowed: " + list + ")");
  }
  return columns_;
}

std::size_t CsvReader::column(std::size_t name) const {
  const auto found = std::find(columns_.begin(), columns_.end(), name);
  return found != columns_.end() ? static_cast<std::size_t>(found - columns_.begin()) : kNone;
}

bool CsvReader::next() {
  if (!next_line()) return false;
  split();
  if (!columns_.empty() && cells_.size() != columns_.size()) {
    fail(std::to_string(cells_.size()) + " cells, but the header has " + std::to_string(columns_.size()) +
         " columns");
  }
  return true;
}

}  // namespace netsim
