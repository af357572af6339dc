// Compares queues of the fabric with queueing theory: mean waits of M/D/1 and M/M/1 (Pollaczek-Khinchine) and
// loss of M/M/1/K. D/D/1 and tandem lines are exact to the picosecond. Little's law on sample paths is an
// equality of integers.
//
// Tests whose names begin with `Long` take minutes and run with scripts/test.sh --long.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "sim/core/random.h"
#include "tests/support/port_fixture.h"

namespace netsim::queue_theory_test {
namespace {

using test::Hop;
using test::PortFixture;

// The buffer is unlimited: no marks, no pauses, no drops.
constexpr const char* kEndless = "{switch: {buffer: 1000 GB, alpha: 1, marker: none}}";

// Mean and standard error of a sequence by batch means: batches so long that their means are independent.
class BatchMeans {
 public:
  explicit BatchMeans(std::uint64_t batch) : batch_(batch) {}
  void add(std::int64_t value) {
    sum_ += value;
    if (++count_ < batch_) return;
    means_.push_back(static_cast<double>(sum_) / static_cast<double>(batch_));
    sum_ = 0;
    count_ = 0;
  }
  double mean() const {
    double sum = 0;
    for (const double mean : means_) sum += mean;
    return sum / static_cast<double>(means_.size());
  }
  double standard_error() const {
    const double center = mean(), n = static_cast<double>(means_.size());
    double squares = 0;
    for (const double mean : means_) squares += (mean - center) * (mean - center);
    return std::sqrt(squares / (n - 1) / n);
  }

 private:
  std::uint64_t batch_, count_ = 0;
  Int128 sum_ = 0;
  std::vector<double> means_;
};

constexpr BitRate kRate = 100 * kGbps;
constexpr std::uint32_t kMeanBytes = 1'000'000;  // so large that rounding to bytes does not matter
constexpr Time kMeanService = transmission_time(kMeanBytes, kRate);
constexpr std::uint64_t kBatches = 100;

// Poisson arrivals; packets of kMeanBytes, or exponential with that mean.
class PoissonArrivals {
 public:
  PoissonArrivals(double load, bool exponential_sizes, std::uint64_t packets, std::uint64_t seed)
      : gap_(static_cast<double>(kMeanService) / load),
        exponential_sizes_(exponential_sizes),
        left_(packets),
        gaps_(seed, "gaps"),
        sizes_(seed, "sizes") {}
  PortFixture::Arrival operator()() {
    if (left_-- == 0) return {};
    time_ += static_cast<Time>(gaps_.exponential(gap_) + 0.5);
    return {time_, exponential_sizes_ ? size() : kMeanBytes};
  }

 private:
  std::uint32_t size() {
    return std::max<std::uint32_t>(static_cast<std::uint32_t>(sizes_.exponential(kMeanBytes) + 0.5), 1);
  }
  double gap_;
  bool exponential_sizes_;
  std::uint64_t left_;
  RandomStream gaps_, sizes_;
  Time time_ = 0;
};

// Waits of `packets` packets at one port, after the first hundredth of them.
BatchMeans waits(double load, bool exponential_sizes, std::uint64_t packets) {
  BatchMeans waits(packets / kBatches);
  std::uint64_t warming = packets / kBatches;
  PortFixture f({{kRate, kMicrosecond}}, kEndless,
                PoissonArrivals(load, exponential_sizes, packets + warming, 1),
                [&](const PortFixture::Passage& p) {
                  if (warming > 0) {
                    --warming;
                    return;
                  }
                  waits.add(p.end - p.arrival - kMicrosecond - transmission_time(p.bytes, kRate));
                });
  f.loop.run();
  EXPECT_EQ(f.left(), packets + packets / kBatches);
  return waits;
}

struct Point {
  double load;
  bool exponential_sizes;
  double tolerance;  // of the mean wait, relative, with 10^7 packets: three standard deviations
};

void PrintTo(const Point& point, std::ostream* out) {
  *out << (point.exponential_sizes ? "M/M/1" : "M/D/1") << " at load " << point.load;
}

constexpr std::uint64_t kLongRun = 10'000'000, kShortRun = 1'000'000;

// The tolerances are three standard deviations of such a run. A few seeds in a thousand miss them, as with
// Lindley's recurrence over the same draws.
//
// The mean wait is that of Pollaczek and Khinchine: load S / (1 - load), half of it where sizes are constant.
void expect_mean_wait(const Point& point, std::uint64_t packets) {
  const BatchMeans found = waits(point.load, point.exponential_sizes, packets);
  const double theory =
      point.load * static_cast<double>(kMeanService) / (1 - point.load) * (point.exponential_sizes ? 1 : 0.5);
  const double allowed =
      point.tolerance * std::sqrt(static_cast<double>(kLongRun) / static_cast<double>(packets));
  ::testing::Test::RecordProperty("relative_error", std::to_string(found.mean() / theory - 1));
  ::testing::Test::RecordProperty("relative_standard_error", std::to_string(found.standard_error() / theory));
  EXPECT_NEAR(found.mean() / theory, 1, allowed);
  // The batches know how far off the mean may be: neither more than the tolerance nor less than what it is.
  EXPECT_LT(found.standard_error() / theory, allowed);
  EXPECT_LT(std::abs(found.mean() - theory), 4 * found.standard_error());
}

class QueueTheory : public ::testing::TestWithParam<Point> {};

TEST_P(QueueTheory, MeanWait) { expect_mean_wait(GetParam(), kShortRun); }

class QueueTheoryAtLength : public ::testing::TestWithParam<Point> {};

TEST_P(QueueTheoryAtLength, MeanWait) { expect_mean_wait(GetParam(), kLongRun); }

const Point kPoints[] = {{0.5, false, 0.0032}, {0.8, false, 0.0096}, {0.9, false, 0.018},
                         {0.95, false, 0.033}, {0.5, true, 0.0068},  {0.8, true, 0.013},
                         {0.9, true, 0.020},   {0.95, true, 0.039}};
INSTANTIATE_TEST_SUITE_P(Loads, QueueTheory, ::testing::ValuesIn(kPoints));
INSTANTIATE_TEST_SUITE_P(Long, QueueTheoryAtLength, ::testing::ValuesIn(kPoints));

// --- M/M/1/K

struct LossPoint {
  double load;
  std::int64_t queue_limit;
};

void PrintTo(const LossPoint& point, std::ostream* out) {
  *out << "load " << point.load << " queue_limit " << point.queue_limit;
}

// The share of packets that a queue limited in packets drops. K is one more than may wait: a packet leaves
// its queue when its transmission starts. Standard error by batches of packets.
void expect_loss(const LossPoint& point, std::uint64_t packets) {
  const std::string network =
      "{switch: {buffer: 1000 GB, alpha: 1, marker: none, flow_control: none, queue_limit: " +
      std::to_string(point.queue_limit) + "}}";
  PortFixture f({{kRate, kMicrosecond}}, network, PoissonArrivals(point.load, true, packets, 1),
                [](const PortFixture::Passage&) {});
  const auto drops = [&f] { return static_cast<std::int64_t>(f.fabric->counters(f.ports[0]).drops); };
  BatchMeans losses(1);
  std::int64_t before = 0;
  for (std::uint64_t batch = 1; batch <= kBatches; ++batch) {
    while (f.arrived() < batch * packets / kBatches) f.loop.run_some(1);
    losses.add(drops() - before);
    before = drops();
  }
  f.loop.run();
  EXPECT_EQ(f.left() + static_cast<std::uint64_t>(drops()), packets);
  double power = 1;  // load^K
  for (std::int64_t i = 0; i <= point.queue_limit; ++i) power *= point.load;
  const double theory = (1 - point.load) * power / (1 - power * point.load);
  const double per_batch = static_cast<double>(packets) / kBatches;
  ::testing::Test::RecordProperty("loss", std::to_string(losses.mean() / per_batch));
  ::testing::Test::RecordProperty("theory", std::to_string(theory));
  ::testing::Test::RecordProperty("standard_error", std::to_string(losses.standard_error() / per_batch));
  EXPECT_NEAR(losses.mean() / per_batch, theory, 4 * losses.standard_error() / per_batch);
  EXPECT_LT(losses.standard_error() / per_batch, theory / 10);  // so that it says something
}

class QueueLoss : public ::testing::TestWithParam<LossPoint> {};

TEST_P(QueueLoss, IsThatOfMM1K) { expect_loss(GetParam(), kShortRun); }

class QueueLossAtLength : public ::testing::TestWithParam<LossPoint> {};

TEST_P(QueueLossAtLength, IsThatOfMM1K) { expect_loss(GetParam(), kLongRun); }

const LossPoint kLossPoints[] = {{0.5, 1}, {0.5, 6}, {0.8, 9}, {0.95, 19}, {1.2, 4}, {2.0, 9}};
INSTANTIATE_TEST_SUITE_P(Limits, QueueLoss, ::testing::ValuesIn(kLossPoints));
INSTANTIATE_TEST_SUITE_P(Long, QueueLossAtLength, ::testing::ValuesIn(kLossPoints));

// --- D/D/1

// `count` packets of `bytes`, `batch` of them every `gap`.
PortFixture::Arrivals regular(std::uint64_t count, std::uint32_t bytes, Time gap, std::uint64_t batch = 1) {
  return [=, i = std::uint64_t{0}]() mutable -> PortFixture::Arrival {
    if (i == count) return {};
    const auto round = static_cast<Time>(i++ / batch);
    return {round * gap, bytes};
  };
}

// Returns how long each packet of `arrivals` waits at one port of 37 Gb/s.
std::vector<Time> waits_at_one_port(const PortFixture::Arrivals& arrivals) {
  std::vector<Time> waits;
  PortFixture f({{37 * kGbps, 3 * kMicrosecond}}, kEndless, arrivals, [&](const PortFixture::Passage& p) {
    waits.push_back(p.end - p.arrival - 3 * kMicrosecond - transmission_time(p.bytes, 37 * kGbps));
  });
  f.loop.run();
  EXPECT_EQ(f.left(), f.arrived());
  return waits;
}

constexpr Time kService = transmission_time(1000, 37 * kGbps);

TEST(QueueDD1, NobodyWaitsUpToFullLoad) {
  for (const Time gap : {kService, kService + 1, 2 * kService}) {
    EXPECT_EQ(waits_at_one_port(regular(10'000, 1000, gap)), std::vector<Time>(10'000, 0)) << gap;
  }
}

TEST(QueueDD1, OverloadAddsTheSameToEveryWait) {
  for (const Time gap : {kService - 1, kService / 2, Time{1}, Time{0}}) {
    const std::vector<Time> waits = waits_at_one_port(regular(10'000, 1000, gap));
    for (std::size_t i = 0; i < waits.size(); ++i) {
      ASSERT_EQ(waits[i], static_cast<Time>(i) * (kService - gap)) << gap;
    }
  }
}

TEST(QueueDD1, BatchesWaitForThoseBeforeThem) {
  const std::vector<Time> waits = waits_at_one_port(regular(10'000, 1000, 8 * kService, 8));
  for (std::size_t i = 0; i < waits.size(); ++i) ASSERT_EQ(waits[i], static_cast<Time>(i % 8) * kService);
}

// --- tandem lines

struct Line {
  std::vector<Hop> hops;
  std::vector<PortFixture::Arrival> arrivals;
};

PortFixture::Arrivals in_turn(const std::vector<PortFixture::Arrival>& arrivals) {
  return [&arrivals, i = std::size_t{0}]() mutable {
    return i < arrivals.size() ? arrivals[i++] : PortFixture::Arrival{};
  };
}

// Sizes, gaps, speeds and delays of all magnitudes; now and then packets that arrive together.
Line random_line(std::uint64_t seed, std::size_t hops, std::size_t packets) {
  RandomStream random(seed, "line");
  Line line;
  for (std::size_t i = 0; i < hops; ++i) {
    const auto rate =
        static_cast<BitRate>(1 + random.below(400)) * kGbps + static_cast<BitRate>(random.below(7));
    line.hops.push_back({rate, static_cast<Time>(1000 + random.below(5'000'000))});
  }
  Time time = 0;
  for (std::size_t i = 0; i < packets; ++i) {
    line.arrivals.push_back({time, static_cast<std::uint32_t>(1 + random.below(9000))});
    if (random.below(4) > 0) time += static_cast<Time>(random.exponential(500'000));
  }
  return line;
}

// Delivery times by the recurrence of FIFO queues in tandem (Lindley): a packet begins when it has arrived
// and the one before has ended.
std::vector<Time> deliveries(const Line& line) {
  std::vector<Time> at;
  for (const PortFixture::Arrival& arrival : line.arrivals) at.push_back(arrival.time);
  for (const Hop& hop : line.hops) {
    Time free = 0;
    for (std::size_t i = 0; i < at.size(); ++i) {
      free = std::max(free, at[i]) + transmission_time(line.arrivals[i].bytes, hop.rate);
      at[i] = free + hop.delay;
    }
  }
  return at;
}

TEST(QueueTandem, EveryPacketArrivesToThePicosecond) {
  EXPECT_TRUE(rc::check([] {
    const auto seed = *rc::gen::arbitrary<std::uint64_t>();
    const Line line = random_line(seed, *rc::gen::inRange<std::size_t>(1, 9), 300);
    std::vector<Time> found;
    PortFixture f(line.hops, kEndless, in_turn(line.arrivals),
                  [&](const PortFixture::Passage& p) { found.push_back(p.end); });
    f.loop.run();
    RC_ASSERT(found == deliveries(line));
  }));
}

// No packet waits after the slowest link. The line as a whole is D/D/1 at that link.
TEST(QueueTandem, TheSlowestLinkSetsThePace) {
  const std::vector<Hop> hops{{400 * kGbps, kMicrosecond},
                              {25 * kGbps, 2 * kMicrosecond},
                              {100 * kGbps, 1 * kMicrosecond},
                              {40 * kGbps, 5 * kMicrosecond}};
  std::vector<Time> ends;
  PortFixture f(hops, kEndless, regular(5000, 1500, 0),
                [&](const PortFixture::Passage& p) { ends.push_back(p.end); });
  f.loop.run();
  Time first = 0;
  for (const Hop& hop : hops) first += transmission_time(1500, hop.rate) + hop.delay;
  ASSERT_EQ(ends.size(), 5000u);
  for (std::size_t i = 0; i < ends.size(); ++i) {
    ASSERT_EQ(ends[i], first + static_cast<Time>(i) * transmission_time(1500, 25 * kGbps));
  }
  EXPECT_EQ(f.fabric->counters(f.ports[2]).max_queue, 0);
  EXPECT_EQ(f.fabric->counters(f.ports[3]).max_queue, 0);
}

// --- Little's law

// Steps event by event; `state` is what holds between events. Returns its integral over time.
template <class State>
Int128 integral(PortFixture& f, State state) {
  Int128 sum = 0;
  for (;;) {
    const Time before = f.loop.now();
    const std::int64_t value = state();
    if (f.loop.run_some(1) == 0) return sum;
    sum += static_cast<Int128>(value) * (f.loop.now() - before);
  }
}

// Seconds of all packets in the queue, as the port counts arrivals and starts, are the sum of their waits.
TEST(QueueLittle, PacketsThatWaitAddUpToTheirWaits) {
  for (const double load : {0.5, 0.95, 1.3}) {
    Int128 waited = 0;
    PortFixture f({{kRate, kMicrosecond}}, kEndless, PoissonArrivals(load, true, 50'000, 2),
                  [&](const PortFixture::Passage& p) {
                    waited += p.end - p.arrival - kMicrosecond - transmission_time(p.bytes, kRate);
                  });
    const Int128 found = integral(f, [&] {
      return static_cast<std::int64_t>(f.arrived() - f.fabric->counters(f.ports[0]).data_packets);
    });
    EXPECT_TRUE(found == waited) << load;
    EXPECT_TRUE(waited > 0);
  }
}

// Number in the whole line, from outside, against sojourn times.
TEST(QueueLittle, PacketsInALineAddUpToTheirSojourns) {
  const Line line = random_line(3, 6, 20'000);
  Int128 sojourns = 0;
  PortFixture f(line.hops, kEndless, in_turn(line.arrivals),
                [&](const PortFixture::Passage& p) { sojourns += p.end - p.arrival; });
  const Int128 found = integral(f, [&] { return static_cast<std::int64_t>(f.arrived() - f.left()); });
  EXPECT_TRUE(found == sojourns);
  EXPECT_EQ(f.left(), 20'000u);
}

// The law with weights (H = lambda G; Brumelle, J. Appl. Prob. 1971): bytes that wait at all ports of a line
// over time are each packet's bytes times its waits.
TEST(QueueLittle, BytesThatWaitAddUpToSizesTimesWaits) {
  const Line line = random_line(4, 5, 20'000);
  Int128 waited = 0;
  PortFixture f(line.hops, kEndless, in_turn(line.arrivals), [&](const PortFixture::Passage& p) {
    Time moving = 0;
    for (const Hop& hop : line.hops) moving += transmission_time(p.bytes, hop.rate) + hop.delay;
    waited += static_cast<Int128>(p.bytes) * (p.end - p.arrival - moving);
  });
  const Int128 found = integral(f, [&] {
    Bytes sum = 0;
    for (const PortId port : f.ports) sum += f.fabric->queued(port);
    return sum;
  });
  EXPECT_TRUE(found == waited);
  EXPECT_TRUE(waited > 0);
}

}  // namespace
}  // namespace netsim::queue_theory_test
