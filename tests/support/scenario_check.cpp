#include "tests/support/scenario_check.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

namespace netsim::test {
namespace {

using Kind = Check::Kind;

const std::map<std::string, Kind>& kinds_by_name() {
  static const std::map<std::string, Kind> kinds = {
      {"is", Kind::is},         {"not", Kind::is_not},        {"above", Kind::above},
      {"below", Kind::below},   {"at_least", Kind::at_least}, {"at_most", Kind::at_most},
      {"near", Kind::near},     {"contains", Kind::contains}, {"lacks", Kind::lacks},
      {"begins", Kind::begins}, {"count", Kind::count}};
  return kinds;
}

std::string name_of(Kind kind) {
  for (const auto& [name, other] : kinds_by_name()) {
    if (other == kind) return name;
  }
  return "";
}

bool needs_number(Kind kind) {
  return kind == Kind::above || kind == Kind::below || kind == Kind::at_least || kind == Kind::at_most ||
         kind == Kind::near || kind == Kind::count;
}

std::optional<double> number_of(const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stopped != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

// Integers are compared as text, because a double does not hold all of them.
bool equal(const Check& check, const ActualValue& actual) {
  if (check.text == actual.text) return true;
  const auto is_integer = [](const std::string& text) {
    return text.find_first_not_of("-0123456789") == text.npos;
  };
  if (is_integer(check.text) && is_integer(actual.text)) return false;
  return check.number && actual.number && *check.number == *actual.number;
}

bool holds_for_number(const Check& check, double actual) {
  const double expected = check.number.value();
  switch (check.kind) {
    case Kind::above:
      return actual > expected;
    case Kind::below:
      return actual < expected;
    case Kind::at_least:
      return actual >= expected;
    case Kind::at_most:
      return actual <= expected;
    case Kind::near:
      return std::abs(actual - expected) <= check.tolerance;
    default:
      return actual == expected;
  }
}

bool holds(const Check& check, const ActualValue& actual) {
  if (check.kind == Kind::count)
    return actual.count && holds_for_number(check, static_cast<double>(*actual.count));
  if (needs_number(check.kind)) return actual.number && holds_for_number(check, *actual.number);
  switch (check.kind) {
    case Kind::is:
      return equal(check, actual);
    case Kind::is_not:
      return !equal(check, actual);
    case Kind::contains:
      return actual.text.find(check.text) != std::string::npos;
    case Kind::lacks:
      return actual.text.find(check.text) == std::string::npos;
    default:
      return actual.text.starts_with(check.text);
  }
}

Check check_of(const ConfigNode& node, Kind kind) {
  if (!node.is_scalar() && !node.is_null()) node.fail("a single value is expected here");
  Check check{.kind = kind,
              .text = node.is_null() ? "null" : node.text(),
              .number = {},
              .tolerance = 0,
              .place = node.place()};
  check.number = number_of(check.text);
  if (needs_number(kind) && !check.number) node.fail(fmt::format("'{}' is no number", check.text));
  return check;
}

// The tolerance is a percentage of the expected value or a number in its unit.
void read_tolerance(const ConfigNode& map, Check& check) {
  const ConfigNode* within = map.find("within");
  if (within == nullptr) map.fail("'near' needs 'within', a number or a percentage");
  const double value = read_real(*within);
  check.tolerance = within->text().ends_with('%') ? value * std::abs(*check.number) : value;
}

void append_checks(const ConfigNode& node, Kind kind, std::vector<Check>& checks) {
  if (!node.is_sequence()) return checks.push_back(check_of(node, kind));
  for (const ConfigNode& item : node.items()) checks.push_back(check_of(item, kind));
}

}  // namespace

ActualValue ActualValue::of(const nlohmann::json& value) {
  ActualValue actual;
  actual.text = value.is_string() ? value.get<std::string>() : value.dump();
  if (value.is_number()) actual.number = value.get<double>();
  if (value.is_structured()) actual.count = value.size();
  return actual;
}

ActualValue ActualValue::of(const std::string& text) { return {text, number_of(text), std::nullopt}; }

std::string Check::failure_of(const ActualValue& actual) const {
  if (holds(*this, actual)) return "";
  const std::string expected = kind == Kind::near ? fmt::format("near {} within {}", text, tolerance)
                                                  : name_of(kind) + " '" + text + "'";
  const std::string found =
      kind == Kind::count ? fmt::format("{} elements", actual.count.value_or(0)) : actual.text;
  return fmt::format("{}: expected: {}; found: '{}'", place.to_string(), expected, found);
}

std::vector<Check> read_checks(const ConfigNode& node, Check::Kind plain) {
  std::vector<Check> checks;
  if (!node.is_map()) {
    append_checks(node, plain, checks);
    return checks;
  }
  std::vector<std::string> allowed{"within"};
  for (const auto& [name, kind] : kinds_by_name()) allowed.push_back(name);
  node.allow_keys(allowed);
  for (const auto& [name, value] : node.entries()) {
    if (name == "within") continue;
    append_checks(value, kinds_by_name().at(name), checks);
    if (name == "near") read_tolerance(node, checks.back());
  }
  if (checks.empty()) node.fail("nothing is expected here");
  return checks;
}

}  // namespace netsim::test
