#include "sim/network/aggregation/number_format.h"

#include <algorithm>

#include "sim/core/parameters.h"
#include "sim/core/text.h"

namespace netsim {

const std::vector<std::pair<std::string, NumberFormat>>& number_formats() {
  static const std::vector<std::pair<std::string, NumberFormat>> all{
      {"int8", NumberFormat::int8}, {"int32", NumberFormat::int32}, {"fp8", NumberFormat::fp8},
      {"fp16", NumberFormat::fp16}, {"bf16", NumberFormat::bf16},   {"fp32", NumberFormat::fp32},
      {"fp64", NumberFormat::fp64}};
  return all;
}

std::string to_string(NumberFormat format) {
  return number_formats()[static_cast<std::size_t>(format)].first;
}

namespace {

std::string format_names() {
  std::string names;
  for (const auto& [name, format] : number_formats()) append_item(names, name);
  return names;
}

// Returns the format of this name, which stands at `where`.
NumberFormat format_called(const std::string& name, const ConfigNode& where) {
  const auto found = std::find_if(number_formats().begin(), number_formats().end(),
                                  [&](const auto& one) { return one.first == name; });
  if (found == number_formats().end())
    throw ConfigError(where.is_scalar() && where.text() == name ? where.place() : where.key_place(),
                      "no number format '" + name + "' (allowed: " + format_names() + ")");
  return found->second;
}

}  // namespace

NumberFormats read_formats(const ConfigNode& list) {
  NumberFormats formats;
  if (list.is_null()) {
    for (const auto& [name, format] : number_formats()) formats.add(format);
    return formats;
  }
  if (!list.is_sequence() || list.items().empty())
    list.fail("a list of number formats is expected: [int32, fp32] (allowed: " + format_names() + ")");
  for (const ConfigNode& item : list.items()) formats.add(format_called(read_text(item), item));
  return formats;
}

void check_format_rates(const ConfigNode& map, const NumberFormats& formats) {
  if (!map.is_map() || map.entries().empty())
    map.fail("rates by number format are expected: {fp16: 50 Gbps} (allowed: " + format_names() + ")");
  for (const auto& [name, node] : map.entries()) {
    const NumberFormat format = format_called(name, node);
    if (!formats.has(format)) {
      throw ConfigError(node.key_place(),
                        "the switches do not add " + name + " (network.switch.aggregation_formats)");
    }
    if (read_rate(node) <= 0) out_of_range(node, "1 bps", "1000000 Gbps");
  }
}

BitRate rate_of_format(const ConfigNode& map, std::optional<NumberFormat> format, BitRate otherwise) {
  if (!format || map.is_null()) return otherwise;
  const ConfigNode* const rate = map.find(to_string(*format));
  return rate == nullptr ? otherwise : read_rate(*rate);
}

}  // namespace netsim
