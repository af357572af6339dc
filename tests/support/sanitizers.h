// States whether this is a build with AddressSanitizer or ThreadSanitizer. These keep freed memory and
// reserve more address space than there is, so tests measure nothing there.
#pragma once

namespace netsim::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace netsim::test
