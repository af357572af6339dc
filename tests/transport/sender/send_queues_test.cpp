// Tests the order of packets and the message of each. The reference is a list of all packets ever made and a
// search for the message whose turn it is.
#include "sim/transport/sender/send_queues.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <deque>
#include <vector>

namespace netsim::send_queues_test {
namespace {

constexpr Bytes kMtu = 1000;

class Compared {
 public:
  Compared() { state_.mtu = static_cast<std::uint32_t>(kMtu); }

  void send(const SendRequest& request) {
    const std::uint32_t index = queues_.add(state_, kQueuePair, request, now_);
    const Message& message = request.message;
    const BitRate rate_limit = message.traits.rate_limit;
    limited_ = limited_ || rate_limit != 0 || message.traits.gap != 0;
    RC_ASSERT(state_.limited == limited_);
    messages_.push_back({{0, index, queues_.message(index).generation},
                         message.bytes,
                         message.traits.priority,
                         static_cast<std::uint32_t>((message.bytes + kMtu - 1) / kMtu),
                         rate_limit == 0 ? kNoRateLimit : rate_limit,
                         message});
    enter(messages_.back());
  }
  // False if there is nothing to send.
  bool make() {
    if (state_.current == kNone) {
      RC_ASSERT(next() == nullptr);
      RC_ASSERT(state_.next_psn == state_.sent_end);
      return false;
    }
    const Segment segment = queues_.segment(state_.current);
    const std::uint32_t psn = state_.next_psn++;
    const bool fresh = psn == state_.sent_end;
    if (fresh) {
      Reference* turn = next();
      RC_ASSERT(turn != nullptr);
      made_.push_back({turn, turn->made++});
      ++state_.sent_end;
    }
    RC_ASSERT(queues_.segment_of(state_, psn) == state_.current);
    RC_ASSERT(psn - state_.current_first == made_[psn].number);
    RC_ASSERT(segment.message == made_[psn].message->handle.slot);
    if (limited_) {
      RC_ASSERT(queues_.message(segment.message).rate_limit() == made_[psn].message->rate_limit);
    }
    if (state_.next_psn == state_.current_end) {
      RC_ASSERT(queues_.ends_message(segment) == (made_[psn].number + 1 == made_[psn].message->packets));
      if (fresh) queues_.end_message(state_);
      queues_.leave_segment(state_);
      const Reference& ended = *made_[psn].message;
      const Time gap = ended.message.traits.gap;
      if (fresh && gap > 0) {
        begin_rest(ended, now_ + gap);
        queues_.begin_rest(state_, segment.message, now_, now_ + gap);
      }
    }
    return true;
  }
  // Time advances, and pauses that are over end.
  void tick() {
    ++now_;
    if (limited_) queues_.end_rests(state_, kQueuePair, now_);
    for (std::size_t i = 0; i < rests_.size();) {
      if (rests_[i].until > now_) {
        ++i;
        continue;
      }
      for (Reference* m : rests_[i].waits) {
        m->rests = false;
        m->place = places_++;
      }
      rests_.erase(rests_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  void act(int kind, std::size_t which, std::uint8_t priority) {
    if (messages_.empty()) return;
    Reference& m = messages_[which % messages_.size()];
    const std::uint32_t index = queues_.find(m.handle);
    RC_ASSERT((index == kNone) == (m.cancelled || m.made == m.packets));
    if (index == kNone) return;
    if (kind == 0) {
      queues_.hold(state_, index);
      m.held = true;
    } else if (kind == 1) {
      queues_.release(state_, index, now_);
      if (m.held && !m.rests) enter(m, m.place);
      m.held = false;
    } else if (kind == 2) {
      queues_.set_priority(state_, index, priority);
      m.priority = priority;
    } else {
      RC_ASSERT(queues_.cancel(state_, index) == m.bytes - m.made * kMtu);
      m.cancelled = true;
      m.held = false;
      leave_rest(m);
      m.priority = UINT8_MAX;
      m.bytes = m.made * kMtu;
      m.packets = m.made == 0 ? 0 : m.made + 1;
    }
  }
  void go_back() { queues_.go_back(state_); }
  // Acknowledges some of what was sent.
  void acknowledge(std::uint32_t packets) {
    state_.acknowledged += std::min(packets, state_.next_psn - state_.acknowledged);
    while (SendQueues::oldest_acknowledged(state_)) {
      const Segment done = queues_.take_oldest(state_);
      acknowledged_ += queues_.payload(done, kMtu);
      if (!queues_.ends_message(done)) continue;
      RC_ASSERT(made_[done.end - 1].number + 1 == made_[done.end - 1].message->packets);
      ++ended_;
      queues_.forget(done.message);
    }
    std::size_t all = 0;
    for (std::uint32_t psn = 0; psn < state_.acknowledged; ++psn)
      all += made_[psn].number + 1 == made_[psn].message->packets ? 1 : 0;
    RC_ASSERT(ended_ == all);
  }
  // All of it to the end.
  void finish() {
    for (std::size_t i = 0; i < messages_.size(); ++i) act(1, i, 0);
    do {
      while (make()) continue;
      tick();
    } while (queues_.unmade_packets(state_, kQueuePair) > 0 || state_.current != kNone);
    acknowledge(UINT32_MAX);
    Bytes bytes = 0;
    std::size_t whole = 0;
    for (const Reference& m : messages_) {
      bytes += m.bytes;
      whole += m.packets != 0 ? 1 : 0;
      RC_ASSERT(m.made == m.packets);
    }
    RC_ASSERT(acknowledged_ == bytes);
    RC_ASSERT(ended_ == whole);
    RC_ASSERT(state_.oldest == kNone);
    RC_ASSERT(queues_.unmade_packets(state_, kQueuePair) == 0);
  }

 private:
  struct Reference {
    MessageHandle handle;
    Bytes bytes;
    std::uint8_t priority;
    std::uint32_t packets;
    BitRate rate_limit;
    Message message;
    std::uint64_t place = 0;  // in order of send(), or of the end of a rest
    std::uint32_t made = 0;
    bool held = false, cancelled = false, rests = false;
    bool is_of(const Reference& other) const {
      return !message.credit && message.traits.channel == other.message.traits.channel &&
             message.communication == other.message.communication;
    }
  };
  // The connection of a message with a gap, until a time; newest first.
  struct Rest {
    const Reference* after;
    Time until;
    std::vector<Reference*> waits;
  };
  struct Made {
    Reference* message;
    std::uint32_t number;
  };
  bool goes_first(const Reference& a, const Reference& b) const {
    return a.priority != b.priority ? a.priority > b.priority : a.place < b.place;
  }
  Reference* next() {
    Reference* best = nullptr;
    for (Reference& m : messages_) {
      if (m.held || m.rests || m.made == m.packets) continue;
      if (best == nullptr || goes_first(m, *best)) best = &m;
    }
    return best;
  }
  Rest* rest_of(const Reference& m) {
    const auto found =
        std::find_if(rests_.begin(), rests_.end(), [&](const Rest& rest) { return m.is_of(*rest.after); });
    return found == rests_.end() ? nullptr : &*found;
  }
  void enter(Reference& m) { enter(m, rest_of(m) != nullptr ? 0 : places_++); }
  void enter(Reference& m, std::uint64_t place) {
    m.place = place;
    Rest* rest = rest_of(m);
    m.rests = rest != nullptr;
    if (rest != nullptr) rest->waits.push_back(&m);
  }
  void leave_rest(Reference& m) {
    m.rests = false;
    for (Rest& rest : rests_)
      rest.waits.erase(std::remove(rest.waits.begin(), rest.waits.end(), &m), rest.waits.end());
  }
  void begin_rest(const Reference& ended, Time until) {
    Rest* rest = rest_of(ended);
    if (rest == nullptr) rest = &*rests_.insert(rests_.begin(), Rest{&ended, until, {}});
    rest->until = until;
    std::vector<Reference*> waiting;
    for (Reference& m : messages_) {
      if (!m.held && !m.rests && m.made < m.packets && m.is_of(ended)) waiting.push_back(&m);
    }
    std::sort(waiting.begin(), waiting.end(),
              [&](const Reference* a, const Reference* b) { return goes_first(*a, *b); });
    for (Reference* m : waiting) {
      m->rests = true;
      rest->waits.push_back(m);
    }
  }

  static constexpr std::uint32_t kQueuePair = 5;
  SenderState state_;
  ReservedArray<PaceLimits> limits_{kQueuePair + 1};
  SendQueues queues_{limits_};
  bool limited_ = false;
  Time now_ = 0;
  std::uint64_t places_ = 0;
  std::vector<Rest> rests_;
  std::deque<Reference> messages_;  // in order of send()
  std::vector<Made> made_;          // by psn
  Bytes acknowledged_ = 0;
  std::size_t ended_ = 0;
};

TEST(SendQueues, ServesByPriorityAndOrderAndKnowsWhosePacketsAre) {
  EXPECT_TRUE(rc::check([] {
    Compared both;
    for (int steps = *rc::gen::inRange(1, 400); steps > 0; --steps) {
      const int what = *rc::gen::inRange(0, 21);
      if (what < 3) {
        SendRequest request;
        Message& message = request.message;
        message.bytes = *rc::gen::inRange<Bytes>(1, 8 * kMtu);
        message.traits.priority = *rc::gen::inRange<std::uint8_t>(0, 3);
        message.traits.rate_limit = *rc::gen::inRange<BitRate>(0, 3);
        message.traits.channel = *rc::gen::inRange<std::uint32_t>(0, 2);
        message.communication = *rc::gen::inRange<std::uint64_t>(0, 2);
        message.credit = *rc::gen::inRange(0, 4) == 0;
        if (!message.credit) message.traits.gap = *rc::gen::inRange<Time>(0, 4);
        both.send(request);
      }
      if (what >= 3 && what < 12) both.make();
      if (what >= 12 && what < 16)
        both.act(what - 12, *rc::gen::inRange<std::size_t>(0, 100), *rc::gen::inRange<std::uint8_t>(0, 3));
      if (what == 16) both.go_back();
      if (what == 20) both.tick();
      if (what > 16 && what < 20) both.acknowledge(*rc::gen::inRange<std::uint32_t>(0, 6));
    }
    both.finish();
  }));
}

}  // namespace
}  // namespace netsim::send_queues_test
