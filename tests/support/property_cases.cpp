// Says how many cases of a property RapidCheck draws: its usual 100 in a full run, otherwise fewer. RC_PARAMS
// comes first, if it is set.
#include <cstdlib>

#include "tests/support/test_size.h"

namespace netsim::test {
namespace {

// Set before main, because RapidCheck reads the variable once, at the first property.
[[maybe_unused]] const bool kNumberOfCasesIsSet = [] {
  return full_size() || setenv("RC_PARAMS", by_size("", "max_success=40", "max_success=20"), 0) == 0;
}();

}  // namespace
}  // namespace netsim::test
