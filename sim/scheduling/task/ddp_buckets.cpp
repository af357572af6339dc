#include "sim/scheduling/task/ddp_buckets.h"

#include <algorithm>

namespace netsim {
namespace {

// Fills buckets with the tensors in this order.
FusionMap filled_buckets(std::span<const FusionTensor> tensors, const std::vector<std::uint32_t>& order,
                         const DdpLimits& limits) {
  FusionMap map;
  std::vector<std::uint32_t> bucket;
  Bytes bytes = 0;
  for (const std::uint32_t tensor : order) {
    bucket.push_back(tensor);
    bytes += tensors[tensor].bytes;
    if (bytes < (map.buckets.empty() ? limits.first : limits.other)) continue;
    map.buckets.push_back(std::move(bucket));
    bucket.clear();
    bytes = 0;
  }
  if (!bucket.empty()) map.buckets.push_back(std::move(bucket));
  return map;
}

std::vector<std::uint32_t> numbers_up_to(std::size_t count) {
  std::vector<std::uint32_t> numbers;
  for (std::uint32_t i = 0; i < count; ++i) numbers.push_back(i);
  return numbers;
}

}  // namespace

FusionMap ddp_buckets(std::span<const FusionTensor> tensors, const DdpLimits& limits) {
  return filled_buckets(tensors, numbers_up_to(tensors.size()), limits);
}

FusionMap ddp_first_buckets(std::span<const FusionTensor> tensors, const DdpLimits& limits) {
  std::vector<std::uint32_t> order = numbers_up_to(tensors.size());
  std::reverse(order.begin(), order.end());
  FusionMap map = filled_buckets(tensors, order, limits);
  std::reverse(map.buckets.begin(), map.buckets.end());
  for (std::vector<std::uint32_t>& bucket : map.buckets) std::reverse(bucket.begin(), bucket.end());
  return map;
}

}  // namespace netsim
