// ClassArbiter: carries out a DisciplinePlan at the ports of a network: which of the data classes that may
// send goes next.
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
  ClassArbiter(DisciplinePlan plan, std::size_t ports) : plan_(std::move(plan)) {
    if (plan_.kind != DisciplinePlan::Kind::strict) states_.resize(ports);
  }
  DisciplinePlan::Kind kind() const { return plan_.kind; }

  // `ready`: bit per class, at least one; `head(c)`: bytes of the packet at the head of ready class c. The
  // packet is taken to be sent.
  template <class Head>
  std::uint32_t select(std::size_t port, std::uint32_t ready, Head head) {
    if (plan_.kind == DisciplinePlan::Kind::strict)
      return static_cast<std::uint32_t>(std::countr_zero(ready));
    State& s = states_[port];
    if (plan_.kind == DisciplinePlan::Kind::deficit_round_robin) return deficit_round_robin(s, ready, head);
    return vl_arbitration(s, ready, head);
  }
  // The class has nothing left: what it saved up is lost.
  void emptied(std::size_t port, std::uint32_t traffic_class) {
    if (plan_.kind == DisciplinePlan::Kind::deficit_round_robin) states_[port].deficit[traffic_class] = 0;
  }

 private:
  struct Table {
    std::uint32_t turn = 0;
    Bytes left = 0;
  };
  struct State {
    std::array<Bytes, kMaxClasses> deficit{};
    Table high, low;  // deficit round robin: low.turn
    Bytes high_sent = 0;
  };

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

  // The present entry goes on while something of its weight is left, as the specification has it.
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
  std::vector<State> states_;
};

}  // namespace netsim
