#include "sim/scheduling/task/mg_wfbp.h"

#include <algorithm>

namespace netsim {

FusionMap mg_wfbp_fusion(std::span<const FusionTensor> tensors, Time startup) {
  FusionMap map;
  std::vector<std::uint32_t> bucket;
  Time transfer = 0;  // of the bucket so far
  Time free = 0;      // end of the communications of closed buckets
  for (std::uint32_t i = 0; i < tensors.size(); ++i) {
    bucket.push_back(i);
    transfer += tensors[i].transfer;
    const Time begin = std::max(free, tensors[i].ready), end = begin + startup + transfer;
    const Time next = i + 1 < tensors.size() ? tensors[i + 1].ready : kNever;
    if (next < end && next - begin < startup) continue;
    map.buckets.push_back(std::move(bucket));
    bucket.clear();
    transfer = 0;
    free = end;
  }
  return map;
}

}  // namespace netsim
