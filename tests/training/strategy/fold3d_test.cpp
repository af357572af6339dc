// Tests Fold3D: a reduction of which all but 1/v is hidden, whatever the stages.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/training/strategy/played_jobs.h"

namespace netsim::fold3d_test {
namespace {

// Returns the end of one iteration. `forward` and `backward` are those of a microbatch on a stage,
// `reduction` that of a stage's gradients.
Time end_of(const std::string& schedule, Time stages, Time segments, Time microbatches, Time forward,
            Time backward, Time reduction) {
  return test::end_with_durations(
      "{kind: pipeline, replicas: 2, stages: " + std::to_string(stages) + ", virtual_stages: " +
          std::to_string(segments) + ", microbatches: " + std::to_string(microbatches) +
          ", forward: " + std::to_string(forward) + " ps, backward: " + std::to_string(backward) +
          " ps, bytes: 64 B, gradients: " + std::to_string(reduction) + " B, schedule: " + schedule + "}",
      static_cast<std::uint32_t>(2 * stages));
}

// m F + max(m B + x/v, m B/v + x), and the bubble of p stages.
TEST(Fold3D, HidesAllOfAReductionButThatOfItsLastSegment) {
  for (const Time stages : {1, 2, 4}) {
    for (const Time v : {2, 3, 4}) {
      for (const Time reduction : {1200, 12'000, 96'000, 240'000}) {
        const Time m = 8, forward = 1200, backward = 2400;
        const Time bubble = (stages - 1) * (forward + backward) / v;
        EXPECT_EQ(end_of("fold3d", stages, v, m, forward, backward, reduction),
                  m * forward + bubble + std::max(m * backward + reduction / v, m * backward / v + reduction))
            << stages << " " << v << " " << reduction;
      }
    }
  }
}

// A reduction of 0.44 of the iteration: 1.282, 1.415 and 1.493.
TEST(Fold3D, GainsWhatItsPaperSays) {
  const Time whole = end_of("fold3d", 1, 1, 4, 36'000, 132'000, 528'000);
  EXPECT_EQ(whole, 1'200'000);
  EXPECT_EQ(end_of("fold3d", 1, 2, 4, 36'000, 132'000, 528'000), whole * 78 / 100);
  EXPECT_EQ(end_of("fold3d", 1, 3, 4, 36'000, 132'000, 528'000), whole - 528'000 * 2 / 3);
  EXPECT_EQ(end_of("fold3d", 1, 4, 4, 36'000, 132'000, 528'000), whole * 67 / 100);
}

// Without its reductions it is the breadth-first schedule, which reduces all at the end.
TEST(Fold3D, IsBreadthFirstWithReductionsOfSegments) {
  for (const Time v : {1, 2, 4}) {
    const Time whole = end_of("breadth_first", 4, v, 8, 1200, 2400, 12'000);
    EXPECT_EQ(end_of("fold3d", 4, v, 8, 1200, 2400, 12'000), whole - (12'000 - 12'000 / v));
  }
}

}  // namespace
}  // namespace netsim::fold3d_test
