// Checks of one value: of a field of summary.json, a cell of a table, or a text that netsim printed. A
// scenario file writes a check as the value itself or as a map, for example `{near: 1.5, within: 2 %}` or
// `{contains: [a, b]}`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/core/config.h"

namespace netsim::test {

// A value of a run as a check sees it.
struct ActualValue {
  std::string text;                  // a string as it is, everything else as JSON
  std::optional<double> number;      // if the value is a number
  std::optional<std::size_t> count;  // elements of an array or object, rows of a table

  static ActualValue of(const nlohmann::json& value);
  // Returns the value of a text; it is a number if all of the text is one.
  static ActualValue of(const std::string& text);
};

struct Check {
  enum class Kind { is, is_not, above, below, at_least, at_most, near, contains, lacks, begins, count };
  Kind kind = Kind::is;
  std::string text;              // the expected value as written
  std::optional<double> number;  // the same as a number, if it is one
  double tolerance = 0;          // `near`: the largest allowed difference
  Place place;                   // of the expected value in the scenario file

  // Returns a message that begins with the place if the value is not as expected, otherwise "".
  std::string failure_of(const ActualValue& actual) const;
};

// Reads the checks of a value. A scalar, or each item of a sequence, is a check of the kind `plain`. Throws
// ConfigError.
std::vector<Check> read_checks(const ConfigNode& node, Check::Kind plain);

}  // namespace netsim::test
