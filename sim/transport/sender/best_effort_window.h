// BestEffortWindow: the packets that a worker of a best-effort aggregation group may send (ATP, NSDI 2021).
// ServerWindow: the sums that its parameter server completes, and the results that it may send.
//
// A worker has at most a window of packets after its oldest one without a result. The window changes once for
// each window of results, by additive increase and multiplicative decrease. Packets before a result that
// arrived are sent again at once, others after a timeout (client/p4ml_manager.cc, common/CC_manager.h).
//
// A server keeps the sums of two windows of packets. It drops a packet with data of a worker that it has
// already. So each contribution is added once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/core/errors.h"
#include "sim/core/units.h"
#include "sim/network/aggregation/aggregation_pool.h"
#include "sim/network/aggregation/aggregator_table.h"
#include "sim/transport/psn_window.h"
#include "sim/transport/sender/pool_timeout.h"
#include "sim/transport/sender/pool_window.h"
#include "sim/transport/sender/slot_list.h"

namespace netsim {

class BestEffortWindow final : public PoolWindow {
 public:
  // `key` is as in PoolWindow. `worker` is the worker's bit.
  BestEffortWindow(const AggregationPool& pool, std::uint32_t key, std::uint64_t worker)
      : PoolWindow(key),
        worker_(worker),
        pool_(pool),
        timeout_(pool),
        packet_(pool.payload + pool.header),
        most_(Bytes{pool.best_effort.window} * packet_),
        window_(most_),
        change_at_(pool.best_effort.window - 1),
        mask_(pool.slots - 1),
        slots_(pool.slots) {}

  void extend(std::uint32_t end) override {
    if (first_ == end_) timeout_.begin_anew();
    end_ = end;
  }
  bool has_ready() const override {
    return !repeat_.empty() ||
           (earlier(next_, end_) && next_ - first_ < static_cast<std::uint32_t>(window_ / packet_));
  }
  std::uint32_t next() const override { return repeat_.empty() ? next_ : slots_[repeat_.front()].psn; }
  bool take(Time now) override {
    const bool again = !repeat_.empty();
    const std::uint32_t slot = (again ? slots_[repeat_.front()].psn : next_) & mask_;
    if (again) {
      remove(slot);
    } else {
      slots_[slot] = {};
      slots_[slot].psn = next_++;
    }
    slots_[slot].again = again;
    slots_[slot].due = now + timeout_.wait();
    append(Place::waiting, slot);
    return again;
  }
  // Returns whether a packet is sent again, which the switches must know. It was taken just now.
  bool is_again(std::uint32_t psn) const override { return slots_[psn & mask_].again; }
  bool take_sum(std::uint32_t psn, bool marked) override {
    if (!earlier(psn, next_) || earlier(psn, first_)) return false;
    if (slots_[psn & mask_].place == Place::done) return false;
    remove(psn & mask_);
    slots_[psn & mask_].place = Place::done;
    timeout_.answered();
    marked_ = marked_ || marked;
    while (first_ != next_ && slots_[first_ & mask_].place == Place::done) ++first_;
    repeat_before(psn);
    if (!earlier(psn, change_at_)) change_window();
    return true;
  }
  bool has_sum(std::uint32_t psn) const override { return earlier(psn, first_); }
  Time due() const override { return waiting_.empty() ? kNever : slots_[waiting_.front()].due; }
  std::uint32_t time_out(Time now) override {
    std::uint32_t count = 0;
    for (; due() <= now; ++count) {
      const std::uint32_t slot = waiting_.front();
      remove(slot);
      append(Place::repeat, slot);
      timeout_.timed_out();
    }
    return count;
  }
  std::uint64_t fruitless_rounds() const override {
    return timeout_.in_a_row() / std::max(1U, waiting_.size() + repeat_.size());
  }
  std::uint64_t worker() const override { return worker_; }
  // Returns the window in bytes.
  Bytes window() const { return window_; }

 private:
  enum class Place : std::uint8_t { waiting, repeat, done };
  struct Slot : SlotLink {
    std::uint32_t psn = 0;
    bool again = false;  // whether it was sent again
    Place place = Place::done;
    Time due = 0;
  };

  // Packets before a result that came are taken for lost, once each.
  void repeat_before(std::uint32_t psn) {
    if (earlier(repeated_end_, first_)) repeated_end_ = first_;
    for (; earlier(repeated_end_, psn); ++repeated_end_) {
      const std::uint32_t slot = repeated_end_ & mask_;
      if (slots_[slot].place != Place::waiting || slots_[slot].again) continue;
      remove(slot);
      append(Place::repeat, slot);
    }
  }
  // Changes the window after a window of results (CC_manager::adjustWindow). It is a whole number of packets.
  void change_window() {
    window_ = marked_ ? window_ / 2 : window_ + pool_.best_effort.increase;
    window_ = std::clamp(window_, packet_, most_) / packet_ * packet_;
    marked_ = false;
    change_at_ += static_cast<std::uint32_t>(window_ / packet_);
    if (earlier(change_at_, first_)) change_at_ = first_;
  }

  SlotList& list_of(Place place) { return place == Place::repeat ? repeat_ : waiting_; }
  void append(Place place, std::uint32_t slot) {
    slots_[slot].place = place;
    list_of(place).append(slots_, slot);
  }
  void remove(std::uint32_t slot) { list_of(slots_[slot].place).remove(slots_, slot); }

  std::uint64_t worker_;
  AggregationPool pool_;
  PoolTimeout timeout_;
  Bytes packet_, most_, window_;
  std::uint32_t change_at_;  // the result after which the window changes
  bool marked_ = false;      // whether a result since the window changed was marked
  std::uint32_t mask_;
  // The oldest packet without a result, the first one that has not been sent, and the end of all messages.
  std::uint32_t first_ = 0, next_ = 0, end_ = 0;
  std::uint32_t repeated_end_ = 0;  // packets before this one were sent again after a later result
  SlotList repeat_, waiting_;
  std::vector<Slot> slots_;
};

class ServerWindow final : public PoolWindow {
 public:
  // `workers` has a bit for each worker.
  ServerWindow(const AggregationPool& pool, std::uint32_t key, std::uint64_t workers)
      : PoolWindow(key), workers_(workers), mask_(2 * pool.slots - 1), sums_(std::size_t{mask_} + 1) {
    for (std::uint32_t psn = 0; psn <= mask_; ++psn) sums_[psn].psn = psn;
    results_.resize(sums_.size());
  }

  // Tells what became of a packet of workers.
  enum class Arrival : std::uint8_t { added, completes, dropped, repeats };
  Arrival add(std::uint32_t psn, const Contribution& packet) {
    Sum& sum = sums_[psn & mask_];
    if (earlier(psn, sum.psn)) return Arrival::dropped;  // all workers have its result
    if (sum.psn != psn) {
      NETSIM_CHECK(!sum.queued, "a parameter server forgets a result that it has not sent");
      sum = {};
      sum.psn = psn;
    }
    Contribution& has = sum.has;
    if (has.workers == workers_) {
      if (!is_complete(sum)) return Arrival::dropped;
      queue(sum);
      return Arrival::repeats;
    }
    if ((has.workers & packet.workers) != 0) return Arrival::dropped;
    has.workers |= packet.workers;
    has.value += packet.value;
    has.marked = has.marked || packet.marked;
    has.collided = has.collided || packet.collided;
    if (has.workers != workers_) return Arrival::added;
    if (is_complete(sum)) queue(sum);
    return Arrival::completes;
  }
  // Called when all workers have the results of the packets before `end`. Those that wait to be sent again
  // are not sent.
  void forget_before(std::uint32_t end) {
    for (std::uint32_t left = count_; left > 0; --left) {
      const std::uint32_t psn = results_[head_];
      head_ = (head_ + 1) & mask_;
      --count_;
      if (earlier(psn, end)) {
        sums_[psn & mask_].queued = false;
      } else {
        results_[(head_ + count_++) & mask_] = psn;
      }
    }
  }
  // Returns what the server has of a packet. It was added just now.
  const Contribution& sum(std::uint32_t psn) const { return sums_[psn & mask_].has; }

  void extend(std::uint32_t end) override {
    const std::uint32_t begin = end_;
    end_ = end;
    for (std::uint32_t psn = begin; psn != end && psn - begin <= mask_; ++psn) {
      Sum& sum = sums_[psn & mask_];
      if (sum.psn == psn && sum.has.workers == workers_) queue(sum);
    }
  }
  bool has_ready() const override { return count_ > 0; }
  std::uint32_t next() const override { return results_[head_]; }
  bool take(Time) override {
    Sum& sum = sums_[results_[head_] & mask_];
    head_ = (head_ + 1) & mask_;
    --count_;
    sum.queued = false;
    const bool again = sum.sent;
    sum.sent = true;
    return again;
  }
  bool is_again(std::uint32_t) const override { return false; }
  bool take_sum(std::uint32_t, bool) override { return false; }
  bool has_sum(std::uint32_t) const override { return false; }
  Time due() const override { return kNever; }
  std::uint32_t time_out(Time) override { return 0; }
  // The value of a result holds the server's own packet and those of the workers.
  std::uint32_t value(std::uint32_t psn) const override { return PoolWindow::value(psn) + sum(psn).value; }
  bool is_marked(std::uint32_t psn) const override { return sum(psn).marked; }

 private:
  struct Sum {
    std::uint32_t psn = 0;
    Contribution has;
    bool queued = false, sent = false;  // whether the result waits to be sent, and was sent before
  };
  bool is_complete(const Sum& sum) const { return sum.has.workers == workers_ && earlier(sum.psn, end_); }
  void queue(Sum& sum) {
    if (sum.queued) return;
    sum.queued = true;
    results_[(head_ + count_++) & mask_] = sum.psn;
  }

  std::uint64_t workers_;
  std::uint32_t mask_, end_ = 0;
  std::vector<Sum> sums_;               // by psn modulo its size
  std::vector<std::uint32_t> results_;  // ring of the results to be sent
  std::uint32_t head_ = 0, count_ = 0;
};

}  // namespace netsim
