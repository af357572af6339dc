#include "sim/main/allocation.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>
#include <string_view>

#include "sim/core/errors.h"

namespace {

constexpr std::size_t kReserve = std::size_t{64} << 10;

std::atomic<std::size_t> refused{0};
std::atomic<void*> reserve{nullptr};
std::atomic<bool> begun{false};

}  // namespace

namespace netsim {

std::size_t refused_request() { return refused; }

void set_reserve() {
  begun = true;
  reserve = std::malloc(kReserve);
}

void release_reserve() { std::free(reserve.exchange(nullptr)); }

}  // namespace netsim

// Sanitizers replace operator new by their own, which checks that memory is freed as it was allocated.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

namespace {

// Ends the process, because an exception before main() cannot be caught.
void end_early() {
  constexpr std::string_view kText =
      "netsim: error: out of memory before the run began (ulimit -v sets a higher limit)\n";
  static_cast<void>(!::write(STDERR_FILENO, kText.data(), kText.size()));
  ::_exit(static_cast<int>(netsim::ExitCode::io));
}

}  // namespace

void* operator new(std::size_t bytes) {
  if (void* memory = std::malloc(std::max<std::size_t>(bytes, 1)); memory != nullptr) [[likely]]
    return memory;
  if (!begun) end_early();
  refused = bytes;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

#endif
