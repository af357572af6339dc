// Arena: values by number; a slot that is released is used again, last released first.
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
  // A slot with whatever it had before, to be filled in by the caller.
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
  // One more than the highest number that there has been.
  std::size_t size() const { return slots_.size(); }
  T& operator[](std::uint32_t index) { return slots_[index]; }
  const T& operator[](std::uint32_t index) const { return slots_[index]; }

 private:
  std::vector<T> slots_;
  std::vector<std::uint32_t> free_;
};

// The same in pages: what is there stays where it is, so that a large one costs no copies, nor memory for
// both, when it grows. A slot that will be taken soon is fetched ahead.
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
  // The slot will be written soon.
  void prefetch(std::uint32_t index) const { __builtin_prefetch(&(*this)[index], 1); }
  // As of Arena.
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
