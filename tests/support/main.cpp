// The main function of all test runners. Its exit code tells a run whose tests all pass from one in which
// some of them were skipped. ctest reports the second as skipped (SKIP_RETURN_CODE), and never one that
// fails.
#include <gtest/gtest.h>

int main(int argc, char** argv) {
  constexpr int kFailed = 1, kSkipped = 77;
  testing::InitGoogleTest(&argc, argv);
  if (RUN_ALL_TESTS() != 0) return kFailed;
  return testing::UnitTest::GetInstance()->skipped_test_count() > 0 ? kSkipped : 0;
}
