#include "sim/collectives/algorithms/dimensions.h"

#include "sim/collectives/algorithms/regular_plan.h"
#include "sim/core/text.h"

namespace netsim {
namespace {

constexpr std::int64_t kMaxSize = 1 << 20;

std::uint32_t read_size(const ConfigNode& node) {
  const std::int64_t size = read_integer(node);
  if (size < 1 || size > kMaxSize) out_of_range(node, "1", std::to_string(kMaxSize));
  return static_cast<std::uint32_t>(size);
}

void check(const Dimensions& dimensions, const char* algorithm, CollectiveKind kind, std::uint32_t ranks) {
  std::uint64_t product = 1;
  std::string text;
  for (const std::uint32_t size : dimensions) {
    if (product <= UINT32_MAX) product *= size;
    append_item(text, std::to_string(size), " x ");
  }
  if (product != ranks) refuse(algorithm, kind, ranks, "needs as many as its dimensions, " + text + ", have");
}

}  // namespace

Parameters<DimensionsParameters> dimensions_parameters(const std::string& otherwise) {
  return Parameters<DimensionsParameters>().list(
      "dimensions", &DimensionsParameters::dimensions,
      "sizes of the grid of ranks, [X, Y, ...], the one that varies fastest in the numbers of ranks first; "
      "without it " +
          otherwise);
}

Dimensions read_dimensions(const DimensionsParameters& parameters, std::size_t minimum, std::size_t maximum) {
  const ConfigNode& node = parameters.dimensions;
  if (node.is_null()) return {};
  if (!node.is_sequence() || node.items().size() < minimum || node.items().size() > maximum) {
    const std::string most = std::to_string(maximum);
    node.fail("a list of " + (minimum == maximum ? most : std::to_string(minimum) + " to " + most) +
              " sizes is expected");
  }
  Dimensions sizes;
  for (const ConfigNode& item : node.items()) sizes.push_back(read_size(item));
  return sizes;
}

Dimensions dimensions_of(const Dimensions& given, const Dimensions& otherwise, const char* algorithm,
                         CollectiveKind kind, std::uint32_t ranks) {
  Dimensions dimensions = given.empty() ? otherwise : given;
  check(dimensions, algorithm, kind, ranks);
  return dimensions;
}

Dimensions prime_factors(std::uint32_t number) {
  Dimensions factors;
  for (std::uint32_t factor = 2; std::uint64_t{factor} * factor <= number; ++factor) {
    for (; number % factor == 0; number /= factor) factors.push_back(factor);
  }
  if (number > 1) factors.push_back(number);
  return factors;
}

Dimensions nearest_factors(std::uint32_t number) {
  std::uint32_t smaller = 1;
  for (std::uint32_t factor = 2; std::uint64_t{factor} * factor <= number; ++factor) {
    if (number % factor == 0) smaller = factor;
  }
  return {number / smaller, smaller};
}

}  // namespace netsim
