// Arena: values by number; a slot that is released is used again, last released first.
#pragma once

#include <cstddef>
#include <cstdint>
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

}  // namespace netsim
