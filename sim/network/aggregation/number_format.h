// NumberFormat: the format of the numbers that a collective adds, and that the switches of a fabric can add.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/units.h"

namespace netsim {

enum class NumberFormat : std::uint8_t { int8, int32, fp8, fp16, bf16, fp32, fp64 };

// Returns the names of all formats, in the order of NumberFormat.
const std::vector<std::pair<std::string, NumberFormat>>& number_formats();
std::string to_string(NumberFormat format);

// NumberFormats: a set of formats.
class NumberFormats {
 public:
  bool has(NumberFormat format) const { return (bits_ >> static_cast<unsigned>(format) & 1U) != 0; }
  void add(NumberFormat format) { bits_ |= 1U << static_cast<unsigned>(format); }

 private:
  std::uint32_t bits_ = 0;
};

// Reads a list of formats, network.switch.aggregation_formats; without one all formats are in the set. Throws
// ConfigError for an unknown name or an empty list.
NumberFormats read_formats(const ConfigNode& list);

// Checks a map of rates by format, network.switch.aggregation_rates. Throws ConfigError for a format that is
// unknown or not in the set.
void check_format_rates(const ConfigNode& map, const NumberFormats& formats);
// Returns the rate of such a map at which a switch adds numbers of this format. nullopt: the format is not
// known. Where the map has none the rate is `otherwise`.
BitRate rate_of_format(const ConfigNode& map, std::optional<NumberFormat> format, BitRate otherwise);

}  // namespace netsim
