// Which packet is the next one, and whose was each that was made? Compared with a list of all packets ever
// made and a search for the message whose turn it is.
#include "sim/transport/sender/send_queues.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <deque>
#include <vector>

namespace netsim {
namespace {

constexpr Bytes kMtu = 1000;

class Compared {
 public:
  Compared() { state.mtu = static_cast<std::uint32_t>(kMtu); }

  void send(Bytes bytes, std::uint8_t priority) {
    SendRequest request;
    request.bytes = bytes;
    request.traits.priority = priority;
    const std::uint32_t index = queues.add(state, 5, request, 0);
    messages.push_back({{0, index, queues.message(index).generation},
                        bytes,
                        priority,
                        static_cast<std::uint32_t>((bytes + kMtu - 1) / kMtu)});
  }
  // False if there is nothing to send.
  bool make() {
    if (state.current == kNone) {
      RC_ASSERT(next() == nullptr);
      RC_ASSERT(state.next_psn == state.sent_end);
      return false;
    }
    const Segment segment = queues.segment(state.current);
    const std::uint32_t psn = state.next_psn++;
    const bool fresh = psn == state.sent_end;
    if (fresh) {
      Reference* turn = next();
      RC_ASSERT(turn != nullptr);
      made.push_back({turn, turn->made++});
      ++state.sent_end;
    }
    RC_ASSERT(queues.segment_of(state, psn) == state.current);
    RC_ASSERT(psn - state.current_first == made[psn].number);
    RC_ASSERT(segment.message == made[psn].message->handle.slot);
    if (state.next_psn == state.current_end) {
      RC_ASSERT(queues.ends_message(segment) == (made[psn].number + 1 == made[psn].message->packets));
      if (fresh) queues.end_message(state);
      queues.leave_segment(state);
    }
    return true;
  }
  void act(int kind, std::size_t which, std::uint8_t priority) {
    if (messages.empty()) return;
    Reference& m = messages[which % messages.size()];
    const std::uint32_t index = queues.find(m.handle);
    RC_ASSERT((index == kNone) == (m.cancelled || m.made == m.packets));
    if (index == kNone) return;
    if (kind == 0) {
      queues.hold(state, index);
      m.held = true;
    } else if (kind == 1) {
      queues.release(state, index);
      m.held = false;
    } else if (kind == 2) {
      queues.set_priority(state, index, priority);
      m.priority = priority;
    } else {
      RC_ASSERT(queues.cancel(state, index) == m.bytes - m.made * kMtu);
      m.cancelled = true;
      m.held = false;
      m.priority = UINT8_MAX;
      m.bytes = m.made * kMtu;
      m.packets = m.made == 0 ? 0 : m.made + 1;
    }
  }
  void go_back() { queues.go_back(state); }
  // Acknowledges some of what was sent.
  void acknowledge(std::uint32_t packets) {
    state.acknowledged += std::min(packets, state.next_psn - state.acknowledged);
    while (SendQueues::oldest_acknowledged(state)) {
      const Segment done = queues.take_oldest(state);
      acknowledged += queues.payload(done, kMtu);
      if (!queues.ends_message(done)) continue;
      RC_ASSERT(made[done.end - 1].number + 1 == made[done.end - 1].message->packets);
      ++ended;
      queues.forget(done.message);
    }
  }
  // All of it to the end.
  void finish() {
    for (std::size_t i = 0; i < messages.size(); ++i) act(1, i, 0);
    while (make()) continue;
    acknowledge(UINT32_MAX);
    Bytes bytes = 0;
    std::size_t whole = 0;
    for (const Reference& m : messages) {
      bytes += m.bytes;
      whole += m.packets != 0 ? 1 : 0;
      RC_ASSERT(m.made == m.packets);
    }
    RC_ASSERT(acknowledged == bytes);
    RC_ASSERT(ended == whole);
    RC_ASSERT(state.oldest == kNone);
    RC_ASSERT(queues.unmade_packets(state) == 0);
  }

 private:
  struct Reference {
    MessageHandle handle;
    Bytes bytes;
    std::uint8_t priority;
    std::uint32_t packets;
    std::uint32_t made = 0;
    bool held = false, cancelled = false;
  };
  struct Made {
    Reference* message;
    std::uint32_t number;
  };
  Reference* next() {
    Reference* best = nullptr;
    for (Reference& m : messages) {
      if (m.held || m.made == m.packets) continue;
      if (best == nullptr || m.priority > best->priority) best = &m;
    }
    return best;
  }

  SenderState state;
  SendQueues queues;
  std::deque<Reference> messages;  // in order of send()
  std::vector<Made> made;          // by psn
  Bytes acknowledged = 0;
  std::size_t ended = 0;
};

TEST(SendQueues, ServesByPriorityAndOrderAndKnowsWhosePacketsAre) {
  EXPECT_TRUE(rc::check([] {
    Compared both;
    for (int steps = *rc::gen::inRange(1, 400); steps > 0; --steps) {
      const int what = *rc::gen::inRange(0, 20);
      if (what < 3) both.send(*rc::gen::inRange<Bytes>(1, 8 * kMtu), *rc::gen::inRange<std::uint8_t>(0, 3));
      if (what >= 3 && what < 12) both.make();
      if (what >= 12 && what < 16)
        both.act(what - 12, *rc::gen::inRange<std::size_t>(0, 100), *rc::gen::inRange<std::uint8_t>(0, 3));
      if (what == 16) both.go_back();
      if (what > 16) both.acknowledge(*rc::gen::inRange<std::uint32_t>(0, 6));
    }
    both.finish();
  }));
}

}  // namespace
}  // namespace netsim
