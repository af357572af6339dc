// Tells tests whether the library and the program of this build have AddressSanitizer or ThreadSanitizer. A
// sanitizer keeps memory that was freed and reserves more address space than there is, so nothing is measured
// there.
#pragma once

namespace netsim::test {

// Asks at run time: under AddressSanitizer the tests themselves are compiled without it
// (tests/CMakeLists.txt).
bool sanitized();

}  // namespace netsim::test
