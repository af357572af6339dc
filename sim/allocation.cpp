#include "sim/allocation.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::size_t> refused{0};

}  // namespace

namespace netsim {

std::size_t refused_request() { return refused; }

}  // namespace netsim

// Sanitizers have their own, which check that what is freed was allocated so.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

void* operator new(std::size_t bytes) {
  if (void* memory = std::malloc(std::max<std::size_t>(bytes, 1)); memory != nullptr) [[likely]]
    return memory;
  refused = bytes;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

#endif
