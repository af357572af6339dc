// ClassArbiter: carries out a DisciplinePlan at the ports of a network. It chooses the data class that a port
// sends next. Within the class it takes the virtual channels round robin.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "sim/network/policies.h"

namespace netsim {

class ClassArbiter {
 public:
  ClassArbiter() = default;
  ClassArbiter(DisciplinePlan plan, std::size_t ports, std::uint32_t classes, std::uint32_t channels)
      : plan_(std::move(plan)), classes_(classes), channels_(channels) {
    if (plan_.kind != DisciplinePlan::Kind::strict) states_.resize(ports);
    if (channels > 1) turns_.resize(ports);
  }
  DisciplinePlan::Kind kind() const { return plan_.kind; }

  // Returns the class whose packet `port` sends next, and counts that packet as sent. `ready` has a bit per
  // class, at least one set. `head(c)` returns the bytes of the packet at the head of ready class c.
  template <class Head>
  std::uint32_t select_class(std::size_t port, std::uint32_t ready, Head head) {
    if (plan_.kind == DisciplinePlan::Kind::strict)
      return static_cast<std::uint32_t>(std::countr_zero(ready));
    State& s = states_[port];
    if (plan_.kind == DisciplinePlan::Kind::deficit_round_robin) return deficit_round_robin(s, ready, head);
    return vl_arbitration(s, ready, head);
  }
  // Returns the data queue that `port` serves next. `ready` has a bit per queue: first all classes of channel
  // 0, then those of channel 1, and so on. `head(q)` is as for select_class().
  template <class Head>
  std::uint32_t select(std::size_t port, std::uint32_t ready, Head head) {
    if (channels_ == 1) return select_class(port, ready, head);
    std::uint32_t classes = 0;
    for (std::uint32_t channel = 0; channel < channels_; ++channel)
      classes |= ready >> channel * classes_ & ((1U << classes_) - 1);
    const std::uint32_t c = select_class(
        port, classes, [&](std::uint32_t of_class) { return head(next_queue(port, of_class, ready)); });
    const std::uint32_t queue = next_queue(port, c, ready);
    turns_[port][c] = static_cast<std::uint8_t>(queue / classes_ + 1);
    return queue;
  }
  // Called when a data queue becomes empty. `others` has a bit per data queue that still holds packets. A
  // class loses its deficit when it has no packet left in any channel.
  void emptied(std::size_t port, std::uint32_t queue, std::uint32_t others) {
    if (plan_.kind != DisciplinePlan::Kind::deficit_round_robin) return;
    for (std::uint32_t q = queue % classes_; q < classes_ * channels_; q += classes_) {
      if ((others >> q & 1) != 0) return;
    }
    states_[port].deficit[queue % classes_] = 0;
  }

 private:
  struct Table {
    std::uint32_t turn = 0;
    Bytes left = 0;
  };
  struct State {
    std::array<Bytes, kMaxClasses> deficit{};
    Table high, low;  // deficit round robin uses low.turn alone
    Bytes high_sent = 0;
  };

  // Returns the first ready queue of the class, counted from the channel whose turn it is. At least one must
  // be ready.
  std::uint32_t next_queue(std::size_t port, std::uint32_t of_class, std::uint32_t ready) const {
    for (std::uint32_t channel = turns_[port][of_class];; ++channel) {
      const std::uint32_t queue = channel % channels_ * classes_ + of_class;
      if ((ready >> queue & 1) != 0) return queue;
    }
  }

  template <class Head>
  std::uint32_t deficit_round_robin(State& s, std::uint32_t ready, Head head) {
    for (;;) {
      const std::uint32_t c = plan_.shares[s.low.turn].traffic_class;
      if ((ready >> c & 1) != 0 && head(c) <= s.deficit[c]) {
        s.deficit[c] -= head(c);
        return c;
      }
      if (++s.low.turn == plan_.shares.size()) s.low.turn = 0;
      const DisciplinePlan::Share& next = plan_.shares[s.low.turn];
      if ((ready >> next.traffic_class & 1) != 0) s.deficit[next.traffic_class] += next.bytes;
    }
  }

  static std::uint32_t classes_of(const std::vector<DisciplinePlan::Share>& shares) {
    std::uint32_t mask = 0;
    for (const DisciplinePlan::Share& share : shares) mask |= 1U << share.traffic_class;
    return mask;
  }

  // The present entry stays selected while part of its weight is left, as the InfiniBand specification has
  // it.
  template <class Head>
  static std::uint32_t from_table(const std::vector<DisciplinePlan::Share>& shares, Table& table,
                                  std::uint32_t ready, Head head) {
    for (;;) {
      const DisciplinePlan::Share& share = shares[table.turn];
      if (table.left > 0 && (ready >> share.traffic_class & 1) != 0) {
        table.left -= head(share.traffic_class);
        return share.traffic_class;
      }
      if (++table.turn == shares.size()) table.turn = 0;
      table.left = shares[table.turn].bytes;
    }
  }

  template <class Head>
  std::uint32_t vl_arbitration(State& s, std::uint32_t ready, Head head) {
    const bool high = (ready & classes_of(plan_.high_shares)) != 0;
    const bool low = (ready & classes_of(plan_.shares)) != 0;
    if (high && (!low || s.high_sent == 0 || s.high_sent < plan_.high_limit)) {
      const std::uint32_t c = from_table(plan_.high_shares, s.high, ready, head);
      s.high_sent += head(c);
      return c;
    }
    s.high_sent = 0;
    return from_table(plan_.shares, s.low, ready, head);
  }

  DisciplinePlan plan_;
  std::uint32_t classes_ = 1, channels_ = 1;
  std::vector<State> states_;
  std::vector<std::array<std::uint8_t, kMaxClasses>>
      // The channel whose turn it is, by port and class.
      turns_;
};

}  // namespace netsim
