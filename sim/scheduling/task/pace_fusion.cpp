#include "sim/scheduling/task/pace_fusion.h"

#include <algorithm>

#include "sim/core/index.h"

namespace netsim {
namespace {

// FusedBucket: a bucket as a job of one machine.
struct FusedBucket {
  Time ready = 0, left = 0, tail = 0;
};

std::vector<FusedBucket> buckets_of(std::span<const FusionTensor> tensors, const FusionMap& map,
                                    Time startup) {
  std::vector<FusedBucket> buckets;
  for (const std::vector<std::uint32_t>& members : map.buckets) {
    FusedBucket bucket{0, startup, 0};
    for (const std::uint32_t tensor : members) {
      bucket.ready = std::max(bucket.ready, tensors[tensor].ready);
      bucket.left += tensors[tensor].transfer;
      bucket.tail = std::max(bucket.tail, tensors[tensor].tail);
    }
    buckets.push_back(bucket);
  }
  return buckets;
}

// FewestBuckets: for a bound on the end, the fewest buckets of the tensors from each one on. Tails do not
// fall.
//
// A bucket is preempted by all later ones and by none before. So it ends its tail after its ready time, its
// tail, and the times of itself and all later buckets. The later part counts by its number of buckets only,
// and fewer are always better.
class FewestBuckets {
 public:
  FewestBuckets(std::span<const FusionTensor> tensors, std::vector<Time> tails, Time startup)
      : tensors_(tensors),
        tails_(std::move(tails)),
        startup_(startup),
        transfer_(tensors.size() + 1, 0),
        fewest_(tensors.size() + 1, 0),
        last_(tensors.size(), kNoIndex) {
    for (std::size_t i = tensors.size(); i-- > 0;) transfer_[i] = transfer_[i + 1] + tensors[i].transfer;
  }

  // Returns whether some buckets end by `bound`.
  bool find(Time bound) {
    for (std::size_t first = tensors_.size(); first-- > 0;) {
      fewest_[first] = kNoIndex;
      for (std::size_t last = first; last < tensors_.size(); ++last) {
        if (fewest_[last + 1] == kNoIndex || fewest_[last + 1] + 1 >= fewest_[first]) continue;
        if (end(first, last) > bound) continue;
        fewest_[first] = fewest_[last + 1] + 1;
        last_[first] = static_cast<std::uint32_t>(last);
      }
    }
    return fewest_.front() != kNoIndex;
  }
  // Returns the buckets of the last successful find().
  FusionMap buckets() const {
    FusionMap map;
    for (std::uint32_t first = 0; first < tensors_.size(); first = last_[first] + 1) {
      map.buckets.emplace_back();
      for (std::uint32_t i = first; i <= last_[first]; ++i) map.buckets.back().push_back(i);
    }
    return map;
  }

 private:
  // Returns when the tail of a bucket ends, the fewest buckets after it given.
  Time end(std::size_t first, std::size_t last) const {
    return tensors_[last].ready + tails_[last] + transfer_[first] + (fewest_[last + 1] + 1) * startup_;
  }

  std::span<const FusionTensor> tensors_;
  std::vector<Time> tails_;
  Time startup_;
  std::vector<Time> transfer_;         // by tensor: of it and all after it
  std::vector<std::uint32_t> fewest_;  // by tensor: buckets from it on, kNoIndex if none keep to the bound
  std::vector<std::uint32_t> last_;    // by tensor: last tensor of the bucket that begins with it
};

FusionMap single_buckets(std::size_t count) {
  FusionMap map;
  for (std::uint32_t i = 0; i < count; ++i) map.buckets.push_back({i});
  return map;
}

}  // namespace

Time preemptive_end(std::span<const FusionTensor> tensors, const FusionMap& map, Time startup) {
  std::vector<FusedBucket> buckets = buckets_of(tensors, map, startup);
  Time now = 0, end = 0;
  for (;;) {
    FusedBucket* best = nullptr;
    Time next = kNever;  // when the next bucket becomes ready
    for (FusedBucket& bucket : buckets) {
      if (bucket.left < 0) continue;
      if (bucket.ready > now) next = std::min(next, bucket.ready);
      if (bucket.ready <= now && (best == nullptr || bucket.tail > best->tail)) best = &bucket;
    }
    if (best == nullptr && next == kNever) return end;
    if (best == nullptr) {
      now = next;
      continue;
    }
    const Time step = std::min(best->left, next - now);
    now += step;
    best->left -= step;
    if (best->left > 0) continue;
    end = std::max(end, now + best->tail);
    best->left = -1;  // it has ended
  }
}

FusionMap pace_fusion(std::span<const FusionTensor> tensors, Time startup) {
  FusionMap apart = single_buckets(tensors.size());
  if (tensors.empty()) return apart;
  std::vector<Time> tails;
  for (const FusionTensor& tensor : tensors)
    tails.push_back(tails.empty() ? tensor.tail : std::max(tails.back(), tensor.tail));
  Time above = tensors.back().ready + tails.back() + static_cast<Time>(tensors.size()) * startup;
  for (const FusionTensor& tensor : tensors) above += tensor.transfer;
  FewestBuckets fewest(tensors, std::move(tails), startup);
  Time below = -1;  // no buckets end by it
  while (above - below > 1) {
    const Time middle = below + (above - below) / 2;
    (fewest.find(middle) ? above : below) = middle;
  }
  fewest.find(above);
  FusionMap fused = fewest.buckets();
  const bool worse = preemptive_end(tensors, fused, startup) > preemptive_end(tensors, apart, startup);
  return worse ? apart : fused;
}

}  // namespace netsim
