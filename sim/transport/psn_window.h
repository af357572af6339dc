// PsnWindow: a value for each packet sequence number of a moving window. The values lie in a ring that grows
// with the window.
#pragma once

#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

namespace netsim {

// Returns whether packet `a` comes before `b`. They must be less than 2^31 apart.
constexpr bool earlier(std::uint32_t a, std::uint32_t b) { return static_cast<std::int32_t>(a - b) < 0; }

// Values that were not set are `empty`. Sequence numbers wrap at 2^32.
template <class T>
class PsnWindow {
 public:
  explicit PsnWindow(T empty = T{}) : empty_(empty), ring_(kStart, empty) {}

  // Returns the value of `psn`. `base` is the first number of the window; the values of all numbers before it
  // must have been cleared.
  T get(std::uint32_t base, std::uint32_t psn) const {
    return psn - base < ring_.size() ? ring_[psn & (ring_.size() - 1)] : empty_;
  }
  // Resets the value of `psn`, which must have been set, to `empty`.
  void clear(std::uint32_t psn) { ring_[psn & (ring_.size() - 1)] = empty_; }
  void set(std::uint32_t base, std::uint32_t psn, T value) {
    const std::uint32_t span = psn - base + 1;
    if (span > ring_.size()) grow(base, span);
    ring_[psn & (ring_.size() - 1)] = value;
  }

 private:
  static constexpr std::size_t kStart = 64;
  void grow(std::uint32_t base, std::uint32_t span) {
    std::vector<T> larger(std::bit_ceil(static_cast<std::size_t>(span)), empty_);
    for (std::uint32_t i = 0; i < ring_.size(); ++i)
      larger[(base + i) & (larger.size() - 1)] = get(base, base + i);
    ring_.swap(larger);
  }
  T empty_;
  std::vector<T> ring_;  // its size is a power of two
};

}  // namespace netsim
