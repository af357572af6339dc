// PsnWindow against a map, also where sequence numbers wrap.
#include "sim/transport/psn_window.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>

namespace netsim::psn_window_test {
namespace {

TEST(PsnWindow, IsEmptyUntilWritten) {
  const PsnWindow<int> window(-1);
  for (const std::uint32_t psn : {0U, 1U, 63U, 64U, 1'000'000U, UINT32_MAX})
    EXPECT_EQ(window.get(0, psn), -1);
}

// Numbers beyond the ring are empty, not those a ring's length before.
TEST(PsnWindow, DoesNotTakeOneNumberForAnother) {
  PsnWindow<int> window(0);
  window.set(100, 101, 7);
  EXPECT_EQ(window.get(100, 101), 7);
  for (std::uint32_t lap = 1; lap < 10; ++lap) EXPECT_EQ(window.get(100, 101 + lap * 64), 0);
  EXPECT_EQ(window.get(100, 99), 0) << "before the window";
}

TEST(PsnWindow, GrowsAndKeepsWhatItHolds) {
  PsnWindow<int> window(0);
  const std::uint32_t base = UINT32_MAX - 10;  // wraps within the window
  for (std::uint32_t i = 0; i < 1000; i += 3) window.set(base, base + i, static_cast<int>(i) + 1);
  for (std::uint32_t i = 0; i < 1000; ++i)
    EXPECT_EQ(window.get(base, base + i), i % 3 == 0 ? static_cast<int>(i) + 1 : 0);
}

TEST(PsnWindow, BehavesLikeAMap) {
  EXPECT_TRUE(rc::check([] {
    PsnWindow<std::uint32_t> window(UINT32_MAX);
    std::map<std::uint32_t, std::uint32_t> model;  // by offset from the first base
    const std::uint32_t origin = *rc::gen::element(0U, UINT32_MAX - 100, UINT32_MAX / 2 - 50);
    std::uint32_t base = 0;
    for (int step = *rc::gen::inRange(1, 200); step > 0; --step) {
      const std::uint32_t at = base + *rc::gen::inRange<std::uint32_t>(0, 300);
      switch (*rc::gen::inRange(0, 3)) {
        case 0:
          window.set(origin + base, origin + at, at);
          model[at] = at;
          break;
        case 1:
          while (base < at) {
            if (model.erase(base) != 0) window.clear(origin + base);
            ++base;
          }
          break;
        default:
          RC_ASSERT(window.get(origin + base, origin + at) == (model.contains(at) ? at : UINT32_MAX));
      }
    }
    for (std::uint32_t at = base; at < base + 700; ++at)
      RC_ASSERT(window.get(origin + base, origin + at) == (model.contains(at) ? at : UINT32_MAX));
  }));
}

}  // namespace
}  // namespace netsim::psn_window_test
