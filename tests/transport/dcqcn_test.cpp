// Does DCQCN follow its published rules? Against a plain tick-by-tick reference, and by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>

#include "sim/core/random.h"
#include "sim/core/registry.h"
#include "sim/transport/congestion_control.h"

namespace netsim {
namespace {

// Drives the component alone: CNPs at given times, its timers in between.
class Driver {
 public:
  Driver(const std::string& yaml, BitRate line) : control_(make(yaml)) {
    context_.line_rate = context_.rate = line;
    context_.state = state_;
    control_->start(context_);
  }
  void advance(Time to) {
    while (!timers_.empty() && timers_.begin()->first <= to) {
      const auto [at, timer] = *timers_.begin();
      timers_.erase(timers_.begin());
      call(at, [&] { control_->on_timer(context_, timer); });
    }
  }
  void cnp(Time at) {
    advance(at);
    call(at, [&] { control_->on_cnp(context_); });
  }
  void sent(Time at, Bytes bytes) {
    advance(at);
    call(at, [&] { control_->on_sent(context_, bytes); });
  }
  BitRate rate() const { return context_.rate; }
  const CongestionControl& control() const { return *control_; }

 private:
  static std::unique_ptr<CongestionControl> make(const std::string& yaml) {
    return Registry<CongestionControl>::instance().create(parse_config(yaml, "dcqcn.yaml"), "dcqcn");
  }
  template <class Call>
  void call(Time at, Call body) {
    context_.now = at;
    context_.timer.fill(kNever);
    body();
    for (unsigned i = 0; i < kCongestionTimers; ++i) {
      if (context_.timer[i] != kNever) timers_.insert({context_.timer[i], i});
    }
  }
  std::unique_ptr<CongestionControl> control_;
  CongestionContext context_;
  alignas(16) std::byte state_[kMaxCongestionStateBytes] = {};
  std::set<std::pair<Time, unsigned>> timers_;
};

// The vendor's rules, microsecond by microsecond, straight from the description in the component's header
// comment.
struct Reference {
  double line, rate, target = 0, alpha = 1;
  Time start = -1, increase_at = kNever;
  bool cnp_alpha = false, cnp_decrease = false, increased = false;
  int stage = 0;

  explicit Reference(double line_rate) : line(line_rate), rate(line_rate) {}
  void microsecond(Time now, bool cnp) {
    if (start >= 0) {
      const Time since = (now - start) / kMicrosecond;
      if (since > 0) {
        alpha = (1 - 1.0 / 256) * alpha + (cnp_alpha ? 1.0 / 256 : 0);
        cnp_alpha = false;
      }
      if (now == increase_at) increase(now);  // scheduled earlier than a decrease of the same instant
      if (since > 0 && since % 4 == 0 && cnp_decrease) decrease(now);
    }
    if (!cnp) return;
    if (start < 0) {
      start = now;
      target = rate;
    }
    cnp_alpha = cnp_decrease = true;
  }
  void decrease(Time now) {
    cnp_decrease = false;
    if (increased) target = rate;
    increased = false;
    rate = std::max(rate * (1 - alpha / 2), line / 100);
    stage = 0;
    increase_at = now + 300 * kMicrosecond;
  }
  void increase(Time now) {
    increased = true;
    if (stage == 1) target += line / 5000;
    if (stage > 1) target += line / 500;
    target = std::min(target, line);
    rate = std::min((rate + target) / 2, line);
    if (line - rate < 0.5e6) rate = line;
    ++stage;
    increase_at = now + 300 * kMicrosecond;
  }
};

TEST(Dcqcn, VendorProfileFollowsTheRulesTickByTick) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    RandomStream random(seed, "cnps");
    Driver driver("kind: dcqcn", 100 * kGbps);
    Reference reference(100e9);
    const std::uint64_t gap = 1 + random.below(200);
    for (Time us = 1; us < 20'000; ++us) {
      const bool burst = (us / 2000) % 2 == 0;
      const bool cnp = burst && random.below(gap) == 0;
      reference.microsecond(us * kMicrosecond, cnp);
      driver.advance(us * kMicrosecond);
      if (cnp) driver.cnp(us * kMicrosecond);
      ASSERT_NEAR(static_cast<double>(driver.rate()), reference.rate, 1e-9 * reference.rate + 20)
          << "seed " << seed << " at " << us << " us";
    }
  }
}

TEST(Dcqcn, PaperProfileHalvesAtTheFirstCnpAndRecoversInFiveSteps) {
  Driver driver("{kind: dcqcn, profile: sigcomm15}", 40 * kGbps);
  driver.cnp(10 * kMicrosecond);
  EXPECT_EQ(driver.rate(), 20 * kGbps);  // alpha starts at 1
  BitRate expected = 20 * kGbps;
  for (int step = 1; step <= 5; ++step) {
    driver.advance(10 * kMicrosecond + step * 55 * kMicrosecond);
    expected = (expected + 40 * kGbps) / 2;
    EXPECT_EQ(driver.rate(), expected) << step;
  }
  EXPECT_EQ(driver.control().needs().cnp_interval, 50 * kMicrosecond);
}

TEST(Dcqcn, ByteCounterIncreasesToo) {
  Driver driver("{kind: dcqcn, profile: sigcomm15}", 40 * kGbps);
  ASSERT_TRUE(driver.control().needs().sent_bytes);
  driver.cnp(0);
  driver.sent(1 * kMicrosecond, 9'999'999);
  EXPECT_EQ(driver.rate(), 20 * kGbps);
  driver.sent(2 * kMicrosecond, 1);
  EXPECT_EQ(driver.rate(), 30 * kGbps);
}

TEST(Dcqcn, NeverBelowTheFloorNorAboveTheLine) {
  Driver driver("{kind: dcqcn, minimum_rate: 3 Gbps}", 100 * kGbps);
  for (Time us = 0; us < 2000; ++us) driver.cnp(us * kMicrosecond);
  EXPECT_EQ(driver.rate(), 3 * kGbps);
  driver.advance(kSecond);
  EXPECT_EQ(driver.rate(), 100 * kGbps);
}

TEST(Dcqcn, WrongParametersAreRefusedWithTheirPlace) {
  try {
    Driver driver("{kind: dcqcn, profile: sigcom15}", kGbps);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("dcqcn.yaml:1:24"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("sigcomm15"), std::string::npos) << error.what();
  }
  EXPECT_THROW(Driver("{kind: dcqcn, g: 2}", kGbps), ConfigError);
}

}  // namespace
}  // namespace netsim
