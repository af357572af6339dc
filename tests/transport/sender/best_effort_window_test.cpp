// Tests windows of workers and of the parameter server of best-effort groups, alone and with a switch between
// them that loses packets.
#include "sim/transport/sender/best_effort_window.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

#include "sim/core/random.h"

namespace netsim::best_effort_window_test {
namespace {

using Arrival = ServerWindow::Arrival;

AggregationPool pool(std::uint32_t window) {
  AggregationPool made;
  made.slots = std::bit_ceil(window);
  made.payload = 248;
  made.header = 60;
  made.timeout = 1000;
  made.best_effort = {.window = window, .increase = 1500};
  return made;
}

Contribution from(std::uint64_t workers, std::uint32_t value) {
  Contribution made;
  made.workers = workers;
  made.value = value;
  return made;
}

// Sends all packets that may be sent and returns their number.
std::uint32_t send_all(BestEffortWindow& window, Time now) {
  std::uint32_t count = 0;
  for (; window.has_ready(); ++count) window.take(now);
  return count;
}

TEST(BestEffortWindow, SendsAWindowAfterItsOldestPacketWithoutAResult) {
  BestEffortWindow window(pool(4), 1, 1);
  window.extend(100);
  EXPECT_EQ(send_all(window, 0), 4U);
  EXPECT_TRUE(window.take_sum(0, false));
  EXPECT_EQ(window.next(), 4U);
  EXPECT_EQ(send_all(window, 0), 1U);
  EXPECT_FALSE(window.take_sum(0, false)) << "again";
  EXPECT_FALSE(window.take_sum(50, false)) << "it was never sent";
  EXPECT_TRUE(window.has_sum(0));
  EXPECT_FALSE(window.has_sum(1));
}

TEST(BestEffortWindow, CountsRoundsSinceTheLastResult) {
  BestEffortWindow window(pool(4), 1, 1);
  window.extend(4);
  Time now = 0;
  for (std::uint64_t round = 0; round < 3; ++round, now += 1000) {
    send_all(window, now);
    EXPECT_EQ(window.fruitless_rounds(), round);
    EXPECT_EQ(window.time_out(now + 1000), 4U);
  }
  send_all(window, now);
  EXPECT_TRUE(window.take_sum(0, false));
  EXPECT_EQ(window.fruitless_rounds(), 0U);
}

TEST(BestEffortWindow, SendsPacketsBeforeAResultAgainOnce) {
  BestEffortWindow window(pool(4), 1, 1);
  window.extend(4);
  send_all(window, 0);
  EXPECT_TRUE(window.take_sum(2, false));
  EXPECT_EQ(window.next(), 0U);
  EXPECT_TRUE(window.take(10));
  EXPECT_TRUE(window.is_again(0));
  EXPECT_EQ(window.next(), 1U);
  EXPECT_TRUE(window.take(10));
  EXPECT_TRUE(window.take_sum(3, false));
  EXPECT_FALSE(window.has_ready());
  EXPECT_EQ(window.due(), 1010);
  EXPECT_EQ(window.time_out(1010), 2U);
  EXPECT_EQ(window.next(), 0U);
}

TEST(BestEffortWindow, HalvesAndGrowsOnceAWindow) {
  BestEffortWindow window(pool(100), 1, 1);
  window.extend(1000);
  send_all(window, 0);
  for (std::uint32_t psn = 0; psn < 99; ++psn) window.take_sum(psn, psn == 10);
  EXPECT_EQ(window.window(), 100 * 308);
  window.take_sum(99, false);
  EXPECT_EQ(window.window(), 50 * 308);
  send_all(window, 0);
  for (std::uint32_t psn = 100; psn < 150; ++psn) window.take_sum(psn, false);
  EXPECT_EQ(window.window(), 54 * 308) << "1,500 B are 4 whole packets more";
}

TEST(BestEffortWindow, KeepsAPacketInFlightHoweverManyMarks) {
  BestEffortWindow window(pool(8), 1, 1);
  window.extend(1000);
  for (std::uint32_t psn = 0; psn < 100; ++psn) {
    send_all(window, 0);
    ASSERT_TRUE(window.take_sum(psn, true));
  }
  EXPECT_EQ(window.window(), 308);
}

TEST(ServerWindow, CompletesWhatCameApartAndDropsWhatItHas) {
  ServerWindow server(pool(4), 1, 0b111);
  server.extend(10);
  EXPECT_EQ(server.add(0, from(0b011, 11)), Arrival::added);
  EXPECT_EQ(server.add(0, from(0b001, 1)), Arrival::dropped);
  EXPECT_EQ(server.add(0, from(0b110, 110)), Arrival::dropped) << "a part of it is there already";
  EXPECT_FALSE(server.has_ready());
  EXPECT_EQ(server.add(0, from(0b100, 100)), Arrival::completes);
  EXPECT_EQ(server.sum(0).value, 111U);
  ASSERT_TRUE(server.has_ready());
  EXPECT_FALSE(server.take(0));
  EXPECT_EQ(server.value(0), 111 + PoolWindow::value(1, 0));
  EXPECT_EQ(server.add(0, from(0b001, 1)), Arrival::repeats);
  EXPECT_TRUE(server.take(0));
  EXPECT_FALSE(server.has_ready());
}

TEST(ServerWindow, ForgetsRepeatedResultsThatAllWorkersHave) {
  ServerWindow server(pool(4), 1, 0b1);
  server.extend(10);
  for (std::uint32_t psn = 0; psn < 3; ++psn) {
    server.add(psn, from(1, 5));
    server.take(0);
  }
  for (std::uint32_t psn = 0; psn < 3; ++psn) EXPECT_EQ(server.add(psn, from(1, 5)), Arrival::repeats);
  server.forget_before(2);
  ASSERT_TRUE(server.has_ready());
  EXPECT_EQ(server.next(), 2U);
  server.take(0);
  EXPECT_FALSE(server.has_ready());
}

TEST(ServerWindow, WaitsForItsOwnData) {
  ServerWindow server(pool(4), 1, 0b1);
  EXPECT_EQ(server.add(0, from(1, 5)), Arrival::completes);
  EXPECT_EQ(server.add(0, from(1, 5)), Arrival::dropped);
  EXPECT_FALSE(server.has_ready());
  server.extend(1);
  EXPECT_EQ(server.next(), 0U);
}

// Workers, a switch and a server, with packets in flight in order and some of them lost.
class Exchange {
 public:
  Exchange(std::uint32_t workers, std::uint32_t window, std::uint32_t aggregators, double loss,
           std::uint64_t seed)
      : all_((std::uint64_t{1} << workers) - 1),
        loss_(loss),
        random_(seed, "exchange"),
        table_(aggregators),
        indices_(seed, window, 0, aggregators),
        server_(pool(window), 1, all_),
        keys_(1) {
    for (std::uint32_t i = 0; i < workers; ++i) {
      workers_.push_back(std::make_unique<BestEffortWindow>(pool(window), 2 * i + 3, std::uint64_t{1} << i));
      keys_ += 2 * i + 3;
    }
  }

  // Runs until all workers have the results of so many packets. Returns the number that the server added.
  std::uint32_t run(std::uint32_t packets) {
    server_.extend(packets);
    for (const auto& worker : workers_) worker->extend(packets);
    for (now_ = 0; done_ < packets * workers_.size(); now_ += 10) {
      for (std::uint32_t i = 0; i < workers_.size(); ++i) send(i);
      while (server_.has_ready()) send_result();
      if (now_ > 10'000'000) ADD_FAILURE() << "it does not end";
      if (now_ > 10'000'000) return 0;
    }
    return added_;
  }

 private:
  bool is_lost() { return random_.uniform() < loss_; }
  void send(std::uint32_t i) {
    BestEffortWindow& worker = *workers_[i];
    worker.time_out(now_);
    if (!worker.has_ready() || random_.below(3) == 0) return;
    const std::uint32_t psn = worker.next();
    worker.take(now_);
    if (is_lost()) return;
    Contribution data = from(worker.worker(), worker.PoolWindow::value(psn));
    const AggregatorTable::Key key{0, psn};
    if (table_.add(indices_.of(psn), key, all_, worker.is_again(psn), data) ==
        AggregatorTable::Outcome::joins)
      return;
    if (is_lost()) return;
    const Arrival arrival = server_.add(psn, data);
    added_ += arrival == Arrival::added || arrival == Arrival::completes ? 1 : 0;
    if (arrival == Arrival::completes) indices_.choose_next(psn, server_.sum(psn).collided);
  }
  void send_result() {
    const std::uint32_t psn = server_.next();
    server_.take(now_);
    if (is_lost()) return;
    EXPECT_EQ(server_.value(psn), PoolWindow::value(keys_, psn));
    table_.free(indices_.of(psn), {0, psn});
    for (const auto& worker : workers_) {
      if (!is_lost()) done_ += worker->take_sum(psn, false) ? 1 : 0;
    }
  }

  std::uint64_t all_;
  double loss_;
  RandomStream random_;
  AggregatorTable table_;
  AggregatorIndices indices_;
  ServerWindow server_;
  std::uint32_t keys_;
  std::vector<std::unique_ptr<BestEffortWindow>> workers_;
  Time now_ = 0;
  std::size_t done_ = 0;
  std::uint32_t added_ = 0;
};

TEST(BestEffort, EveryPacketIsAddedOnceUnderLosses) {
  for (const std::uint32_t aggregators : {0U, 1U, 7U, 1000U}) {
    for (const double loss : {0.0, 1e-2, 0.2}) {
      for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        Exchange exchange(5, 20, aggregators, loss, seed);
        EXPECT_GT(exchange.run(500), 0U) << aggregators << " aggregators, loss " << loss << ", seed " << seed;
      }
    }
  }
}

TEST(BestEffort, OnePacketOfAllWorkersReachesTheServerWithEnoughAggregators) {
  EXPECT_EQ(Exchange(5, 20, 1000, 0, 1).run(500), 500U);
  EXPECT_EQ(Exchange(5, 20, 0, 0, 1).run(500), 2500U);
}

}  // namespace
}  // namespace netsim::best_effort_window_test
