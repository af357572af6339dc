#include "sim/topology/files/infragraph/paths.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace netsim::infragraph {
namespace {

// Returns one number of an index or slice; none where it is empty.
std::optional<std::uint32_t> number_of(const ConfigNode& at, const std::string& text,
                                       const std::string& index) {
  const auto is_blank = [](char c) { return c == ' '; };
  std::string digits = text;
  std::erase_if(digits, is_blank);
  if (digits.empty()) return std::nullopt;
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size())
    at.fail("'[" + index + "]' is no index: [3] or a slice [begin:end:step] of numbers from 0 is expected");
  return value;
}

}  // namespace

std::vector<Step> steps_of(const ConfigNode& at, const std::string& text) {
  std::vector<Step> steps;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('.', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t open = part.find('[');
    Step step{part.substr(0, open), {}};
    if (open != std::string::npos) {
      if (!part.ends_with("]")) at.fail("'" + text + "': a ']' is missing");
      step.index = part.substr(open + 1, part.size() - open - 2);
    }
    if (step.name.empty())
      at.fail("'" + text + "': a name is missing; NAME, NAME[3] or NAME[0:4] is expected");
    steps.push_back(std::move(step));
  }
  return steps;
}

std::vector<std::uint32_t> indices_of(const ConfigNode& at, const Step& step, std::uint32_t count) {
  std::vector<std::uint32_t> result;
  const std::string index = step.index.value_or(":");
  std::array<std::optional<std::uint32_t>, 3> parts;
  std::size_t colons = 0, begin = 0;
  for (std::size_t i = 0; i <= index.size(); ++i) {
    if (i < index.size() && index[i] != ':') continue;
    if (colons == 3) at.fail("'[" + index + "]' has more than begin, end and step");
    parts[colons++] = number_of(at, index.substr(begin, i - begin), index);
    begin = i + 1;
  }
  const std::string there = "there " + std::string(count == 1 ? "is" : "are") + " " + std::to_string(count) +
                            " of '" + step.name + "'";
  if (colons == 1) {
    if (!parts[0]) at.fail("'[]' is no index: [3] or a slice [begin:end:step] is expected");
    if (*parts[0] >= count) at.fail("'[" + index + "]': " + there + ", numbered from 0");
    return {*parts[0]};
  }
  const std::uint32_t from = parts[0].value_or(0), to = parts[1].value_or(count), by = parts[2].value_or(1);
  if (by == 0) at.fail("'[" + index + "]': the step is 0; another number is expected");
  if (to > count) at.fail("'[" + index + "]': " + there);
  if (from >= to) at.fail("'[" + index + "]' selects nothing");
  for (std::uint64_t i = from; i < to; i += by) result.push_back(static_cast<std::uint32_t>(i));
  return result;
}

}  // namespace netsim::infragraph
