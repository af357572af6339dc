// Arena: stores values by index. A released slot is used again, the last released first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace netsim {

template <class T>
class Arena {
 public:
  std::uint32_t add(const T& value) {
    const std::uint32_t index = take();
    slots_[index] = value;
    return index;
  }
  // Returns a slot with its former content, which the caller overwrites.
  std::uint32_t take() {
    if (free_.empty()) {
      slots_.emplace_back();
      return static_cast<std::uint32_t>(slots_.size() - 1);
    }
    const std::uint32_t index = free_.back();
    free_.pop_back();
    return index;
  }
  void release(std::uint32_t index) { free_.push_back(index); }
  // Returns one more than the highest index so far.
  std::size_t size() const { return slots_.size(); }
  T& operator[](std::uint32_t index) { return slots_[index]; }
  const T& operator[](std::uint32_t index) const { return slots_[index]; }

 private:
  std::vector<T> slots_;
  std::vector<std::uint32_t> free_;
};

// PagedArena: an arena in pages. Its values never move, so growing copies nothing and needs no memory for a
// copy. It prefetches slots that will be taken soon.
template <class T>
class PagedArena {
 public:
  std::uint32_t add(const T& value) {
    const std::uint32_t index = take();
    (*this)[index] = value;
    return index;
  }
  std::uint32_t take() {
    if (!free_.empty()) {
      const std::uint32_t index = free_.back();
      free_.pop_back();
      if (free_.size() > kAhead) prefetch(free_[free_.size() - kAhead]);
      return index;
    }
    if (size_ % kPage == 0) pages_.push_back(std::make_unique<T[]>(kPage));
    return size_++;
  }
  void release(std::uint32_t index) { free_.push_back(index); }
  // Prefetches a slot that will be written soon.
  void prefetch(std::uint32_t index) const { __builtin_prefetch(&(*this)[index], 1); }
  // Returns one more than the highest index so far.
  std::uint32_t size() const { return size_; }
  T& operator[](std::uint32_t index) { return pages_[index / kPage][index % kPage]; }
  const T& operator[](std::uint32_t index) const { return pages_[index / kPage][index % kPage]; }

 private:
  static constexpr std::uint32_t kPage = 256;  // values
  static constexpr std::size_t kAhead = 4;     // additions
  std::vector<std::unique_ptr<T[]>> pages_;
  std::vector<std::uint32_t> free_;
  std::uint32_t size_ = 0;
};

}  // namespace netsim
