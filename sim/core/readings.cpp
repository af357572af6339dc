// The typed readings of config.h and their writers. They convert decimal text to integers exactly, in 128-bit
// arithmetic.
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <system_error>

#include "sim/core/config.h"
#include "sim/core/text.h"

namespace netsim {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t factor;
};

// Dimension: a kind of quantity with its units, first those that messages list and writers use.
struct Dimension {
  std::string_view what;     // "a time"
  std::string_view allowed;  // for messages
  const Unit* units;
  std::size_t count;
  std::size_t written;  // number of units that format() uses, from the first
  std::string_view smallest;
};

constexpr std::array<Unit, 7> kTimeUnits = {{{"s", kSecond},
                                             {"ms", kMillisecond},
                                             {"us", kMicrosecond},
                                             {"ns", kNanosecond},
                                             {"ps", kPicosecond},
                                             {"\u00b5s", kMicrosecond},
                                             {"\u03bcs", kMicrosecond}}};
constexpr std::array<Unit, 10> kByteUnits = {{{"TB", 1000 * kGigabyte},
                                              {"GB", kGigabyte},
                                              {"MB", kMegabyte},
                                              {"KB", kKilobyte},
                                              {"B", 1},
                                              {"TiB", 1024 * kGibibyte},
                                              {"GiB", kGibibyte},
                                              {"MiB", kMebibyte},
                                              {"KiB", kKibibyte},
                                              {"kB", kKilobyte}}};
constexpr std::int64_t kTbps = 1000 * kGbps;
constexpr std::array<Unit, 28> kRateUnits = {{{"Tbps", kTbps},
                                              {"Gbps", kGbps},
                                              {"Mbps", kMbps},
                                              {"Kbps", 1000},
                                              {"bps", 1},
                                              {"kbps", 1000},
                                              {"Tb/s", kTbps},
                                              {"Gb/s", kGbps},
                                              {"Mb/s", kMbps},
                                              {"Kb/s", 1000},
                                              {"kb/s", 1000},
                                              {"b/s", 1},
                                              {"Tbit/s", kTbps},
                                              {"Gbit/s", kGbps},
                                              {"Mbit/s", kMbps},
                                              {"Kbit/s", 1000},
                                              {"kbit/s", 1000},
                                              {"bit/s", 1},
                                              {"TB/s", 8 * kTbps},
                                              {"GB/s", 8 * kGbps},
                                              {"MB/s", 8 * kMbps},
                                              {"KB/s", 8000},
                                              {"kB/s", 8000},
                                              {"B/s", 8},
                                              {"TiB/s", 8 * 1024 * kGibibyte},
                                              {"GiB/s", 8 * kGibibyte},
                                              {"MiB/s", 8 * kMebibyte},
                                              {"KiB/s", 8 * kKibibyte}}};

constexpr Dimension kTime = {"a time", "s, ms, us, ns or ps", kTimeUnits.data(), kTimeUnits.size(), 5, "ps"};
constexpr Dimension kBytes = {
    "a size", "B, KB, MB, GB, TB, KiB, MiB, GiB or TiB", kByteUnits.data(), kByteUnits.size(), 9, "B"};
constexpr Dimension kRate = {"a rate",
                             "bps, Kbps, Mbps, Gbps, Tbps or B/s, KB/s, MB/s, GB/s, TB/s",
                             kRateUnits.data(),
                             kRateUnits.size(),
                             5,
                             "bps"};

std::string show(std::string_view text) {
  constexpr std::size_t kMax = 60;
  if (text.size() <= kMax) return "'" + std::string(text) + "'";
  return "'" + std::string(text.substr(0, kMax)) + "...'";
}

const std::string& scalar_text(const ConfigNode& node, const std::string& wanted) {
  if (node.is_null()) node.fail("no value is given: " + wanted + " is expected");
  if (node.is_map()) node.fail("keys and values are given: " + wanted + " is expected");
  if (node.is_sequence()) node.fail("a list is given: " + wanted + " is expected");
  return node.text();
}

std::size_t count_digits(std::string_view text) {
  std::size_t count = 0;
  while (count < text.size() && is_digit(text[count])) ++count;
  return count;
}

// Returns the length of the decimal number at the start of `text`: digits, with at most one point between or
// before digits.
std::size_t number_length(std::string_view text) {
  const std::size_t whole = count_digits(text);
  if (whole == text.size() || text[whole] != '.') return whole;
  const std::size_t fraction = count_digits(text.substr(whole + 1));
  return fraction == 0 ? 0 : whole + 1 + fraction;
}

bool leading_zero(std::string_view number) {
  return number.size() > 1 && number[0] == '0' && is_digit(number[1]);
}

void refuse_leading_zero(const ConfigNode& node, std::string_view number) {
  if (leading_zero(number))
    node.fail(show(node.text()) + " has a leading zero, which YAML reads as octal: drop it");
}

const Unit* find_unit(const Dimension& dimension, std::string_view name) {
  for (std::size_t i = 0; i < dimension.count; ++i) {
    if (dimension.units[i].name == name) return &dimension.units[i];
  }
  return nullptr;
}

// Returns whether the unit differs from the word only in case. "gbps" is Gbps misspelt; "GBps" is not,
// because B is 8 b. For sizes "mb" can only mean MB.
bool differs_only_in_case(std::string_view unit, std::string_view word) {
  if (unit.size() != word.size()) return false;
  const bool rate = unit.ends_with("s");
  for (std::size_t i = 0; i < unit.size(); ++i) {
    if (to_lower(unit[i]) != to_lower(word[i])) return false;
    if (rate && to_lower(unit[i]) == 'b' && unit[i] != word[i]) return false;
  }
  return true;
}

// Returns the unit that differs from the word only in case, if there is exactly one.
std::optional<std::string_view> same_but_case(const Dimension& dimension, std::string_view word) {
  std::optional<std::string_view> found;
  for (std::size_t i = 0; i < dimension.count; ++i) {
    const bool same_value = found && find_unit(dimension, *found)->factor == dimension.units[i].factor;
    if (same_value || !differs_only_in_case(dimension.units[i].name, word)) continue;
    if (found) return std::nullopt;
    found = dimension.units[i].name;
  }
  return found;
}

[[noreturn]] void unknown_unit(const ConfigNode& node, const Dimension& dimension, std::string_view unit) {
  const std::string start = show(node.text()) + ": '" + std::string(unit.substr(0, 30)) + "' is ";
  const std::string wanted =
      " (" + std::string(dimension.what) + " has " + std::string(dimension.allowed) + ")";
  for (const Dimension& other : {kTime, kBytes, kRate}) {
    if (other.what != dimension.what && find_unit(other, unit) != nullptr) {
      node.fail(start + "a unit of " + std::string(other.what) + ", not of " + std::string(dimension.what) +
                wanted);
    }
  }
  const auto near = same_but_case(dimension, unit);
  node.fail(start + "not a unit" + (near ? ", did you mean '" + std::string(*near) + "'?" : "") + wanted);
}

std::string format(const Dimension& dimension, std::int64_t value);

enum class Trouble { none, digits, finer, too_large };

// Reads the digits of a decimal without its point. Returns false if they do not fit.
bool read_digits(std::string_view whole, std::string_view fraction, UInt128& mantissa) {
  for (const std::string_view part : {whole, fraction}) {
    for (const char c : part) {
      if (__builtin_mul_overflow(mantissa, UInt128{10}, &mantissa)) return false;
      if (__builtin_add_overflow(mantissa, static_cast<UInt128>(c - '0'), &mantissa)) return false;
    }
  }
  return true;
}

// Computes value = number * factor exactly.
Trouble scale(std::string_view number, std::int64_t factor, std::int64_t& value) {
  const std::size_t point = std::min(number.find('.'), number.size());
  const std::string_view whole = number.substr(0, point);
  std::string_view fraction = number.substr(std::min(point + 1, number.size()));
  while (!fraction.empty() && fraction.back() == '0') fraction.remove_suffix(1);
  UInt128 mantissa = 0;
  if (!read_digits(whole, fraction, mantissa))
    return whole.size() > 20 ? Trouble::too_large : Trouble::digits;
  auto multiplier = static_cast<UInt128>(factor);
  for (std::size_t i = 0; i < fraction.size(); ++i) {
    for (const unsigned prime : {2U, 5U}) {
      if (multiplier % prime != 0 && mantissa % prime != 0) return Trouble::finer;
      (multiplier % prime == 0 ? multiplier : mantissa) /= prime;
    }
  }
  UInt128 product = 0;
  if (__builtin_mul_overflow(mantissa, multiplier, &product)) return Trouble::too_large;
  if (product > static_cast<UInt128>(INT64_MAX)) return Trouble::too_large;
  value = static_cast<std::int64_t>(product);
  return Trouble::none;
}

bool looks_like_exponent(std::string_view unit) {
  return unit.size() > 1 && to_lower(unit[0]) == 'e' &&
         (is_digit(unit[1]) || unit[1] == '-' || unit[1] == '+');
}

// Returns the factor of a unit. `number` is the text before the unit; 0 needs no unit.
std::int64_t unit_factor(const ConfigNode& node, const Dimension& dimension, std::string_view number,
                         std::string_view unit) {
  const std::string allowed(dimension.allowed);
  if (unit.empty()) {
    if (number.find_first_not_of("0.") == std::string_view::npos) return 1;
    node.fail(show(node.text()) + " needs a unit: " + allowed);
  }
  if (const Unit* known = find_unit(dimension, unit); known != nullptr) return known->factor;
  if (looks_like_exponent(unit)) {
    node.fail(show(node.text()) + ": exponents are not allowed here, choose a unit: " + allowed);
  }
  unknown_unit(node, dimension, unit);
}

std::int64_t read_quantity(const ConfigNode& node, const Dimension& dimension) {
  const std::string what(dimension.what), allowed(dimension.allowed), smallest(dimension.smallest);
  const std::string& text = scalar_text(node, what + " with its unit (" + allowed + ")");
  if (text.size() > 1 && text[0] == '-' && number_length(std::string_view(text).substr(1)) > 0) {
    node.fail(show(text) + " is negative: " + what + " is 0 or more");
  }
  const std::string_view number = std::string_view(text).substr(0, number_length(text));
  if (number.empty())
    node.fail(show(text) + " is not " + what + ": write a number and a unit (" + allowed + ")");
  refuse_leading_zero(node, number);
  std::string_view unit = std::string_view(text).substr(number.size());
  unit.remove_prefix(std::min(unit.find_first_not_of(' '), unit.size()));
  std::int64_t value = 0;
  const Trouble trouble = scale(number, unit_factor(node, dimension, number, unit), value);
  if (trouble == Trouble::digits) node.fail(show(text) + " has too many digits");
  if (trouble == Trouble::finer) node.fail(show(text) + " is not a whole number of " + smallest);
  if (trouble == Trouble::too_large) {
    node.fail(show(text) + " is too large: at most " + format(dimension, INT64_MAX) + " is allowed");
  }
  return value;
}

// Returns value / factor as an exact decimal, or "" if it does not end within 12 digits.
std::string decimal(std::uint64_t value, std::uint64_t factor) {
  std::string result = std::to_string(value / factor);
  std::uint64_t rest = value % factor;
  if (rest == 0) return result;
  result += '.';
  for (int digit = 0; digit < 12 && rest != 0; ++digit) {
    const UInt128 shifted = static_cast<UInt128>(rest) * 10;
    result += static_cast<char>('0' + static_cast<char>(shifted / factor));
    rest = static_cast<std::uint64_t>(shifted % factor);
  }
  return rest == 0 ? result : "";
}

// Returns the shortest exact text; of equally long texts, the one with the largest unit.
std::string format(const Dimension& dimension, std::int64_t value) {
  if (value == 0) return "0 " + std::string(dimension.smallest);
  const std::uint64_t size =
      value < 0 ? ~static_cast<std::uint64_t>(value) + 1 : static_cast<std::uint64_t>(value);
  std::string best;
  for (std::size_t i = 0; i < dimension.written; ++i) {
    const auto factor = static_cast<std::uint64_t>(dimension.units[i].factor);
    if (size < factor) continue;
    const std::string number = decimal(size, factor);
    if (number.empty()) continue;
    const std::string text = number + " " + std::string(dimension.units[i].name);
    if (best.empty() || text.size() < best.size()) best = text;
  }
  return (value < 0 ? "-" : "") + best;
}

// Converts decimal text that is known to be well-formed.
double real_of(const ConfigNode& node, const std::string& text) {
  double value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec == std::errc::result_out_of_range)
    node.fail(show(node.text()) + " is too large or too small for a real number");
  return value;
}

[[noreturn]] void not_a_real(const ConfigNode& node) {
  node.fail(show(node.text()) + " is not a number: write 0.25, 1e-3, 1/8 or 20 %");
}

double read_ratio(const ConfigNode& node, const std::string& text, std::size_t slash) {
  const std::string above = text.substr(0, text.find_last_not_of(' ', slash - 1) + 1);
  const std::string below = text.substr(std::min(text.find_first_not_of(' ', slash + 1), text.size()));
  if (above.empty() || number_length(above) != above.size()) not_a_real(node);
  if (below.empty() || number_length(below) != below.size()) not_a_real(node);
  refuse_leading_zero(node, above);
  refuse_leading_zero(node, below);
  const double divisor = real_of(node, below);
  if (divisor == 0) node.fail(show(node.text()) + " divides by zero");
  const double value = real_of(node, above) / divisor;
  if (value > std::numeric_limits<double>::max())
    node.fail(show(node.text()) + " is too large for a real number");
  return value;
}

// Returns the length of an exponent "e-12" at the start of `text`, or 0.
std::size_t exponent_length(std::string_view text) {
  if (text.empty() || (text[0] != 'e' && text[0] != 'E')) return 0;
  const std::size_t sign = text.size() > 1 && (text[1] == '+' || text[1] == '-') ? 1 : 0;
  const std::size_t digits = count_digits(text.substr(1 + sign));
  return digits == 0 ? 0 : 1 + sign + digits;
}

}  // namespace

bool read_bool(const ConfigNode& node) {
  const std::string& text = scalar_text(node, "true or false");
  if (text == "true") return true;
  if (text == "false") return false;
  node.fail(show(text) + " is not allowed: write true or false");
}

std::int64_t read_integer(const ConfigNode& node) {
  const std::string& text = scalar_text(node, "an integer");
  const std::string_view digits = std::string_view(text).substr(!text.empty() && text[0] == '-' ? 1 : 0);
  if (digits.empty() || count_digits(digits) != digits.size()) node.fail(show(text) + " is not an integer");
  refuse_leading_zero(node, digits);
  std::int64_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc()) {
    node.fail(show(text) + (text[0] == '-' ? " is too small" : " is too large") + ": integers from " +
              std::to_string(INT64_MIN) + " to " + std::to_string(INT64_MAX) + " are allowed");
  }
  return value;
}

double read_real(const ConfigNode& node) {
  std::string text = scalar_text(node, "a number");
  const bool negative = !text.empty() && text[0] == '-';
  if (negative) text.erase(0, 1);
  const auto sign = [&](double value) { return negative ? -value : value; };
  if (const std::size_t slash = text.find('/'); slash != std::string::npos)
    return sign(read_ratio(node, text, slash));
  const std::size_t length = number_length(text);
  if (length == 0) not_a_real(node);
  refuse_leading_zero(node, text);
  const std::string number = text.substr(0, length), rest = text.substr(length);
  if (rest == "%" || rest == " %") return sign(real_of(node, number + "e-2"));  // rounded once
  if (exponent_length(rest) != rest.size()) not_a_real(node);
  return sign(real_of(node, text));
}

Time read_time(const ConfigNode& node) { return read_quantity(node, kTime); }
Bytes read_bytes(const ConfigNode& node) { return read_quantity(node, kBytes); }
BitRate read_rate(const ConfigNode& node) { return read_quantity(node, kRate); }

std::string read_text(const ConfigNode& node) { return scalar_text(node, "text"); }

std::string format_time(Time value) { return format(kTime, value); }
std::string format_bytes(Bytes value) { return format(kBytes, value); }
std::string format_rate(BitRate value) { return format(kRate, value); }

}  // namespace netsim
