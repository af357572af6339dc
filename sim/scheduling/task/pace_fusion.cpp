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

// ChainOfTensors: tensors whose tails do not fall, so a bucket is preempted by all later ones and by none
// before. It ends its tail after its ready time, its tail, and the times of itself and all later buckets. The
// later part counts by its number of buckets only.
class ChainOfTensors {
 public:
  ChainOfTensors(std::span<const FusionTensor> tensors, Time startup)
      : tensors_(tensors), startup_(startup), transfer_(tensors.size() + 1, 0) {
    for (const FusionTensor& tensor : tensors)
      tails_.push_back(tails_.empty() ? tensor.tail : std::max(tails_.back(), tensor.tail));
    for (std::size_t i = tensors.size(); i-- > 0;) transfer_[i] = transfer_[i + 1] + tensors[i].transfer;
  }
  std::size_t size() const { return tensors_.size(); }
  // Returns when the tail of the bucket of these tensors ends, where it and those after it are `buckets`. It
  // does not fall with any of the arguments but `first`.
  Time end(std::size_t first, std::size_t last, std::size_t buckets) const {
    return tensors_[last].ready + tails_[last] + transfer_[first] + static_cast<Time>(buckets) * startup_;
  }
  // Returns a bound that all tensors apart keep to.
  Time latest() const { return end(0, size() - 1, size()); }

 private:
  std::span<const FusionTensor> tensors_;
  Time startup_;
  std::vector<Time> tails_;     // by tensor: the longest tail so far
  std::vector<Time> transfer_;  // by tensor: of it and all after it
};

// Returns whether some buckets end by `bound`. It looks for the fewest buckets from each tensor on, because
// fewer later ones are always better.
bool some_end_by(const ChainOfTensors& chain, Time bound) {
  std::vector<std::uint32_t> fewest(chain.size() + 1, 0);
  for (std::size_t first = chain.size(); first-- > 0;) {
    fewest[first] = kNoIndex;
    for (std::size_t last = first; last < chain.size(); ++last) {
      if (fewest[last + 1] == kNoIndex || fewest[last + 1] + 1 >= fewest[first]) continue;
      if (chain.end(first, last, fewest[last + 1] + 1) > bound) continue;
      fewest[first] = fewest[last + 1] + 1;
    }
  }
  return fewest.front() != kNoIndex;
}

// MostBuckets: the most buckets that end by a bound, to which some keep.
class MostBuckets {
 public:
  MostBuckets(const ChainOfTensors& chain, Time bound)
      : chain_(chain), bound_(bound), possible_(chain.size() + 1, std::vector<bool>(chain.size() + 1)) {
    possible_.back()[0] = true;
    for (std::size_t first = chain.size(); first-- > 0;) {
      for (std::size_t last = first; last < chain.size() && is_in_time(first, last, 1); ++last)
        add_buckets(first, last);
    }
  }
  FusionMap buckets() const {
    FusionMap map;
    std::size_t count = chain_.size();
    while (!possible_.front()[count]) --count;
    for (std::uint32_t first = 0; first < chain_.size(); --count) {
      std::uint32_t last = first;
      while (!possible_[last + 1][count - 1] || !is_in_time(first, last, count)) ++last;
      map.buckets.emplace_back();
      while (first <= last) map.buckets.back().push_back(first++);
    }
    return map;
  }

 private:
  bool is_in_time(std::size_t first, std::size_t last, std::size_t buckets) const {
    return chain_.end(first, last, buckets) <= bound_;
  }
  // Notes the numbers of buckets from `first` on that are possible if the first bucket ends with `last`.
  void add_buckets(std::size_t first, std::size_t last) {
    for (std::size_t count = 1; count <= chain_.size() - last && is_in_time(first, last, count); ++count) {
      if (possible_[last + 1][count - 1]) possible_[first][count] = true;
    }
  }

  const ChainOfTensors& chain_;
  Time bound_;
  std::vector<std::vector<bool>> possible_;  // by first tensor and number of buckets from it on
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
  const ChainOfTensors chain(tensors, startup);
  Time above = chain.latest(), below = -1;  // no buckets end by `below`
  while (above - below > 1) {
    const Time middle = below + (above - below) / 2;
    (some_end_by(chain, middle) ? above : below) = middle;
  }
  FusionMap fused = MostBuckets(chain, above).buckets();
  const bool worse = preemptive_end(tensors, fused, startup) > preemptive_end(tensors, apart, startup);
  return worse ? apart : fused;
}

}  // namespace netsim
