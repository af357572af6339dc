#include "sim/core/input_file.h"
#include "sim/core/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <system_error>

namespace netsim {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f' || c == '\n'; }

std::string shown(std::string_view text) {
  constexpr std::size_t kMax = 40;
  return "'" + std::string(text.substr(0, kMax)) + (text.size() > kMax ? "...'" : "'");
}

// Decimal: the number digits * 10^exponent.
struct Decimal {
  std::string digits;  // no leading zeros; empty: 0
  std::int64_t exponent = 0;
};

std::optional<Decimal> parse_decimal(std::string_view text) {
  Decimal decimal;
  bool any = false, point = false;
  std::size_t i = 0;
  for (; i < text.size() && (is_digit(text[i]) || (text[i] == '.' && !point)); ++i) {
    if (text[i] == '.') {
      point = true;
      continue;
    }
    any = true;
    if (point) --decimal.exponent;
    if (!decimal.digits.empty() || text[i] != '0') decimal.digits += text[i];
  }
  if (!any) return std::nullopt;
  if (i == text.size()) return decimal;
  if (text[i] != 'e' && text[i] != 'E') return std::nullopt;
  if (++i < text.size() && text[i] == '+') ++i;
  std::int32_t exponent = 0;
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data() + i, end, exponent);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  decimal.exponent += exponent;
  return decimal;
}

}  // namespace

std::string find_input_file(const std::string& name, const Place& where) {
  namespace fs = std::filesystem;
  const fs::path path(name);
  std::error_code error;
  // A path that the system refuses to look at is returned: who reads it says why.
  if (path.is_absolute() && (fs::exists(path, error) || error)) return name;
  std::vector<fs::path> candidates;
  if (!path.is_absolute() && !where.file.empty() && where.file != "--set") {
    const fs::path folder = fs::path(where.file).parent_path();
    candidates.push_back(folder / path);
    candidates.push_back(folder / ".." / path);
  }
  if (!path.is_absolute()) candidates.push_back(path);
  std::vector<std::string> searched;
  for (const fs::path& candidate : candidates) {
    std::string normal = candidate.lexically_normal().string();
    if (fs::exists(candidate, error)) return normal;
    if (std::find(searched.begin(), searched.end(), normal) == searched.end())
      searched.push_back(std::move(normal));
  }
  std::string list;
  for (const std::string& each : searched) append_item(list, each);
  const std::string place = where.to_string();
  throw IoError((place.empty() ? "" : place + ": ") + "no file '" + name + "'" +
                (list.empty() ? "" : " (looked for " + list + ")"));
}

Place place_in(std::string_view text, std::size_t offset, const std::string& file) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const auto line = 1 + static_cast<int>(std::count(before.begin(), before.end(), '\n'));
  const std::size_t start = before.rfind('\n');
  const std::size_t column = before.size() - (start == std::string_view::npos ? 0 : start + 1);
  return {file, line, static_cast<int>(column) + 1, ""};
}

InputPaths named_input(const ConfigNode& node) {
  const auto find = [](const ConfigNode& name) {
    const std::string path = read_text(name);
    if (path.empty()) name.fail("the name of a file is empty");
    return find_input_file(path, name.place());
  };
  if (node.is_scalar()) return find(node);
  if (node.items().empty()) node.fail("the sequence of files is empty");
  std::vector<std::string> paths;
  for (const ConfigNode& name : node.items()) paths.push_back(find(name));
  return paths;
}

std::optional<std::int64_t> scaled_decimal(std::string_view text, std::int64_t factor) {
  // Significant digits that are kept: the 17 of a double and two more. Later digits cannot change the
  // rounding of a realistic value.
  constexpr std::size_t kDigits = 19;
  std::optional<Decimal> decimal = parse_decimal(text);
  if (!decimal) return std::nullopt;
  if (decimal->digits.size() > kDigits) {
    decimal->exponent += static_cast<std::int64_t>(decimal->digits.size() - kDigits);
    decimal->digits.resize(kDigits);
  }
  UInt128 value = 0;
  for (const char c : decimal->digits) value = value * 10 + static_cast<UInt128>(c - '0');
  value *= static_cast<UInt128>(factor);  // below 10^19 * 2^63: fits
  for (; decimal->exponent > 0 && value != 0; --decimal->exponent) {
    value *= 10;
    if (value > static_cast<UInt128>(INT64_MAX)) return std::nullopt;
  }
  UInt128 divisor = 1;
  for (; decimal->exponent < 0; ++decimal->exponent) {
    if (divisor > value * 2 + 2) return 0;
    divisor *= 10;
  }
  value = (value + divisor / 2) / divisor;
  if (value > static_cast<UInt128>(INT64_MAX)) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

TextReader::TextReader(LineReader lines, std::string file)
    : lines_(std::move(lines)), file_(std::move(file)) {
  ended_ = !lines_.next();
  if (!ended_) line_ = lines_.line();
}

// Moves to the next line; returns false at the end. Behind a line feed at the end the position is that of the
// line that would follow.
bool TextReader::advance() {
  if (ended_) return false;
  ended_ = !lines_.next();
  if (ended_ && !lines_.has_line_feed()) return false;
  line_ = ended_ ? std::string_view() : lines_.line();
  at_ = 0;
  ++number_;
  return !ended_;
}

void TextReader::skip_space() {
  do {
    while (at_ < line_.size() && is_space(line_[at_])) ++at_;
  } while (at_ == line_.size() && advance());
}

// Reads the word at the present position, which must be its first character.
Word TextReader::take_word() {
  const std::size_t begin = at_;
  while (at_ < line_.size() && !is_space(line_[at_])) ++at_;
  return {line_.substr(begin, at_ - begin), number_, static_cast<int>(begin) + 1};
}

bool TextReader::next_line(std::vector<Word>& words) {
  words.clear();
  skip_space();
  while (at_ < line_.size()) {
    words.push_back(take_word());
    while (at_ < line_.size() && is_space(line_[at_])) ++at_;
  }
  return !words.empty();
}

bool TextReader::at_end() {
  skip_space();
  return at_ == line_.size();
}

Word TextReader::next(const std::string& what) {
  if (at_end()) {
    const Word end{"", number_, static_cast<int>(at_) + 1};
    fail(end, "the file ends where " + what + " is expected");
  }
  return take_word();
}

void TextReader::fail(const Word& word, const std::string& message) const {
  throw InputError(place(word), message);
}

std::int64_t TextReader::integer(const Word& word, const std::string& what, Range<std::int64_t> range) const {
  std::int64_t value = 0;
  const char* end = word.text.data() + word.text.size();
  const auto result = std::from_chars(word.text.data(), end, value);
  const bool whole = result.ec == std::errc() && result.ptr == end;
  if (!whole || value < range.minimum || value > range.maximum) {
    fail(word, what + " is " + shown(word.text) + "; allowed: an integer from " +
                   std::to_string(range.minimum) + " to " + std::to_string(range.maximum));
  }
  return value;
}

std::int64_t TextReader::whole(const Word& word, const std::string& what, Range<std::int64_t> range) const {
  const std::optional<std::int64_t> value = scaled_decimal(word.text, 1);
  if (value && *value >= range.minimum && *value <= range.maximum) return *value;
  return integer(word, what, range);
}

double TextReader::real(const Word& word, const std::string& what, Range<double> range) const {
  double value = 0;
  const char* end = word.text.data() + word.text.size();
  const auto result = std::from_chars(word.text.data(), end, value);
  const bool number = result.ec == std::errc() && result.ptr == end && std::isfinite(value);
  if (!number || value < range.minimum || value > range.maximum) {
    fail(word, what + " is " + shown(word.text) + "; allowed: a number from " + format_real(range.minimum) +
                   " to " + format_real(range.maximum));
  }
  return value;
}

Time TextReader::time_in(const Word& word, const std::string& what, Time unit, Range<Time> range) const {
  const std::optional<std::int64_t> value = scaled_decimal(word.text, unit);
  if (!value || *value < range.minimum || *value > range.maximum) {
    fail(word, what + " is " + shown(word.text) + "; allowed: a number of units of " + format_time(unit) +
                   ", " + format_time(range.minimum) + " to " + format_time(range.maximum));
  }
  return *value;
}

Time TextReader::time(const Word& word, const std::string& what, Range<Time> range) const {
  const Time value =
      as_input([&] { return read_time(ConfigNode::scalar(std::string(word.text), place(word))); });
  if (value < range.minimum || value > range.maximum) {
    fail(word, what + " is " + shown(word.text) + "; allowed: " + format_time(range.minimum) + " to " +
                   format_time(range.maximum));
  }
  return value;
}

BitRate TextReader::rate(const Word& word, const std::string& what, Range<BitRate> range) const {
  const BitRate value =
      as_input([&] { return read_rate(ConfigNode::scalar(std::string(word.text), place(word))); });
  if (value < range.minimum || value > range.maximum) {
    fail(word, what + " is " + shown(word.text) + "; allowed: " + format_rate(range.minimum) + " to " +
                   format_rate(range.maximum));
  }
  return value;
}

}  // namespace netsim
