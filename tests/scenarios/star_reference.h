// An independent, slow model of one-packet messages on a star: for exact times of collectives that have no
// closed form.
//
// Every rank has a NIC with one port to the switch and back. A message is one data packet, and the receiver
// answers with an ACK. A NIC sends waiting ACKs first, then data of its queue pairs (one per destination) in
// turn. The switch sends in order of arrival. The code follows the model's description, on a plain ordered
// set of events.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "sim/collectives/plan.h"
#include "sim/core/units.h"

namespace netsim::test {

class StarReference {
 public:
  StarReference(const Plan& plan, Bytes chunk, BitRate rate, Time delay)
      : plan_(plan),
        data_(transmission_time(chunk + 62 + 16 + 20, rate)),
        ack_(transmission_time(66 + 20, rate)),
        delay_(delay),
        nics_(plan.ranks()),
        egress_free_(plan.ranks(), 0),
        counters_(plan.ranks(), std::vector<std::uint32_t>(plan.blocks(0), 0)) {}

  // The time when the last rank has executed its last step.
  Time run() {
    for (std::uint32_t rank = 0; rank < plan_.ranks(); ++rank) advance(rank);
    while (!events_.empty()) {
      const auto [time, from, number, action] = *events_.begin();
      events_.erase(events_.begin());
      now_ = time;
      actions_[action]();
    }
    return end_;
  }

 private:
  struct Packet {
    std::uint32_t from, to, thread;
    bool ack;
  };
  struct Nic {
    std::deque<Packet> acks;
    std::map<std::uint32_t, std::deque<Packet>> pairs;  // by destination
    std::deque<std::uint32_t> turn;                     // destinations with something to send, each once
    Time free = 0;
    bool waiting = false;  // for its port
  };

  // Events of one instant: those of the switch's ports (even numbers) and the NICs' (odd), by rank, in their
  // order.
  void at(Time time, std::uint32_t origin, std::function<void()> action) {
    actions_.push_back(std::move(action));
    events_.insert({time, origin, actions_.size(), actions_.size() - 1});
  }

  void post(const Packet& packet) {
    Nic& nic = nics_[packet.from];
    if (packet.ack) {
      nic.acks.push_back(packet);
    } else {
      auto& pair = nic.pairs[packet.to];
      if (pair.empty()) nic.turn.push_back(packet.to);
      pair.push_back(packet);
    }
    pump(packet.from);
  }

  // An idle port takes an ACK at once; data is fetched when the port's turn comes, also at this instant but
  // later.
  void pump(std::uint32_t rank) {
    Nic& nic = nics_[rank];
    if (nic.waiting) return;
    if (now_ >= nic.free && !nic.acks.empty()) {
      transmit(rank);
      if (nic.acks.empty() && nic.turn.empty()) return;
    }
    nic.waiting = true;
    at(std::max(now_, nic.free), 2 * rank + 1, [this, rank] {
      nics_[rank].waiting = false;
      transmit(rank);
      if (!nics_[rank].acks.empty() || !nics_[rank].turn.empty()) pump(rank);
    });
  }

  void transmit(std::uint32_t rank) {
    Nic& nic = nics_[rank];
    Packet packet{};
    if (!nic.acks.empty()) {
      packet = nic.acks.front();
      nic.acks.pop_front();
    } else if (!nic.turn.empty()) {
      const std::uint32_t to = nic.turn.front();
      nic.turn.pop_front();
      packet = nic.pairs[to].front();
      nic.pairs[to].pop_front();
      if (!nic.pairs[to].empty()) nic.turn.push_back(to);
    } else {
      return;
    }
    nic.free = now_ + (packet.ack ? ack_ : data_);
    at(nic.free + delay_, 2 * rank + 1, [this, packet] { forward(packet); });
  }

  void forward(const Packet& packet) {
    Time& free = egress_free_[packet.to];
    free = std::max(free, now_) + (packet.ack ? ack_ : data_);
    at(free + delay_, 2 * packet.to, [this, packet] { receive(packet); });
  }

  void receive(const Packet& packet) {
    if (packet.ack) return;
    post({packet.to, packet.from, packet.thread, true});
    ++arrived_[{packet.to, packet.from, packet.thread}];
    advance(packet.to);
  }

  void advance(std::uint32_t rank) {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::uint32_t thread = 0; thread < plan_.blocks(rank); ++thread) {
        std::uint32_t& next = counters_[rank][thread];
        while (next < plan_.steps(rank, thread) && execute(rank, thread, next)) {
          ++next;
          moved = true;
          end_ = std::max(end_, now_);
        }
      }
    }
  }

  bool execute(std::uint32_t rank, std::uint32_t thread, std::uint32_t index) {
    const Step step = plan_.step(rank, thread, index);
    if (step.after_block != kNoIndex && counters_[rank][step.after_block] <= step.after_step) return false;
    if (receives(step.kind)) {
      auto& count = arrived_[{rank, step.from.rank, thread}];
      if (count == 0) return false;
      --count;
    }
    if (sends(step.kind)) post({rank, step.to.rank, step.to.block, false});
    return true;
  }

  const Plan& plan_;
  Time data_, ack_, delay_, now_ = 0, end_ = 0;
  std::vector<Nic> nics_;
  std::vector<Time> egress_free_;
  std::vector<std::vector<std::uint32_t>> counters_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::uint32_t> arrived_;
  std::set<std::tuple<Time, std::uint32_t, std::size_t, std::size_t>> events_;
  std::deque<std::function<void()>> actions_;
};

}  // namespace netsim::test
