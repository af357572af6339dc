// ReservedArray: an array that grows without moving its elements. It reserves address space for the largest
// possible number of elements and uses memory for those that exist. Therefore addresses stay valid, and
// several threads may add elements, each of which one thread then uses.
#pragma once

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <string>
#include <type_traits>

#include "sim/core/errors.h"

namespace netsim {

// When a ReservedArray reserves its address space. One that reserves it when its first element is added has
// no data() before that, and costs nothing where nothing uses it.
enum class Reserve : std::uint8_t { now, when_used };

// NOLINTBEGIN(bugprone-sizeof-expression): elements may be pointers
template <class T>
class ReservedArray {
 public:
  // Makes an array of at most `capacity` elements, or fewer if the process may not use much address space.
  explicit ReservedArray(std::size_t capacity, Reserve when = Reserve::now)
      : capacity_(std::min(capacity, address_space_share() / sizeof(T))),
        bytes_((capacity_ * sizeof(T) + kStep - 1) / kStep * kStep) {
    if (when == Reserve::now) reserve();
  }
  ~ReservedArray() {
    if constexpr (!std::is_trivially_destructible_v<T>) {
      for (std::size_t i = 0; i < std::min(size(), missing_.load()); ++i) base_[i].~T();
    }
    if (base_ != nullptr) munmap(base_, bytes_);
  }
  ReservedArray(const ReservedArray&) = delete;
  ReservedArray& operator=(const ReservedArray&) = delete;

  std::size_t size() const { return size_.load(std::memory_order_relaxed); }
  T& operator[](std::size_t i) { return base_[i]; }
  const T& operator[](std::size_t i) const { return base_[i]; }
  T* data() { return base_; }
  const T* data() const { return base_; }

  // Adds `count` consecutive elements and returns the index of the first. Any thread may call it.
  std::size_t grow(std::size_t count) {
    const std::size_t first = size_.fetch_add(count, std::memory_order_relaxed);
    construct(first, count);
    return first;
  }
  // Makes `count` elements from index `first` on, for arrays that share the indices of another array. No
  // other thread may make the same elements.
  void make(std::size_t first, std::size_t count) {
    std::size_t size = size_.load(std::memory_order_relaxed);
    while (size < first + count && !size_.compare_exchange_weak(size, first + count)) continue;
    construct(first, count);
  }

 private:
  // The share of the address space that one array may reserve; a simulation has some ten arrays.
  static std::size_t address_space_share() {
    rlimit limit{};
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return SIZE_MAX / 2;
    return static_cast<std::size_t>(limit.rlim_cur) / 16;
  }

  static constexpr std::size_t kStep = std::size_t{2} << 20;  // a huge page

  void construct(std::size_t first, std::size_t count) {
    try {
      make_elements(first, count);
    } catch (...) {
      for (std::size_t missing = missing_;
           first < missing && !missing_.compare_exchange_weak(missing, first);)
        continue;
      throw;
    }
  }
  void make_elements(std::size_t first, std::size_t count) {
    if (first + count > capacity_) {
      throw IoError("more queue pairs or paths than the process has address space for: " +
                    std::to_string(bytes_ >> 20) + " MiB each (ulimit -v)");
    }
    if ((first + count) * sizeof(T) > usable_.load(std::memory_order_acquire)) make_usable(first + count);
    for (std::size_t i = first; i < first + count; ++i) new (base_ + i) T();
  }
  void reserve() {
    void* base = mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) throw std::bad_alloc();
    base_ = static_cast<T*>(base);
  }
  void make_usable(std::size_t count) {
    const std::lock_guard<std::mutex> lock(growing_);
    const std::size_t had = usable_.load(std::memory_order_relaxed);
    const std::size_t wanted = (count * sizeof(T) + kStep - 1) / kStep * kStep;
    if (wanted <= had) return;
    if (base_ == nullptr) reserve();
    const std::size_t step = std::min(bytes_, std::max(wanted, had + had / 4 / kStep * kStep)) - had;
    if (mprotect(reinterpret_cast<char*>(base_) + had, step, PROT_READ | PROT_WRITE) != 0)
      throw std::bad_alloc();
    usable_.store(had + step, std::memory_order_release);
  }

  T* base_ = nullptr;
  std::size_t capacity_, bytes_;
  std::atomic<std::size_t> size_{0}, usable_{0};
  // Index of the first element that could not be made; elements from there on are not destroyed.
  std::atomic<std::size_t> missing_{SIZE_MAX};
  std::mutex growing_;
};
// NOLINTEND(bugprone-sizeof-expression)

}  // namespace netsim
