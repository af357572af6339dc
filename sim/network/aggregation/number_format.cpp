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

NumberFormats read_formats(const ConfigNode& list) {
  NumberFormats formats;
  std::string names;
  for (const auto& [name, format] : number_formats()) {
    append_item(names, name);
    if (list.is_null()) formats.add(format);
  }
  if (list.is_null()) return formats;
  if (!list.is_sequence() || list.items().empty())
    list.fail("a list of number formats is expected: [int32, fp32] (allowed: " + names + ")");
  for (const ConfigNode& item : list.items()) {
    const std::string given = read_text(item);
    const auto found = std::find_if(number_formats().begin(), number_formats().end(),
                                    [&](const auto& one) { return one.first == given; });
    if (found == number_formats().end())
      item.fail("no number format '" + given + "' (allowed: " + names + ")");
    formats.add(found->second);
  }
  return formats;
}

}  // namespace netsim
