// SendQueues: the messages that the queue pairs of one set of atoms have to send or have not seen
// acknowledged yet: which of them is served, and which packet sequence numbers (psn) are whose.
//
// Messages that have packets to be made wait in one list per queue pair, by priority and order; the first one
// is served. Its packets are a segment: psns in a row of one message. A segment ends where its message does,
// or where another one is served instead. So the queue pair's segments, oldest first, cover all psns from the
// first one that is not acknowledged on; nearly always a message is one segment. Only the newest segment may
// be open: it ends where its message would, as far as one knows, and the packets up to there have yet to be
// made.
//
// A connection rests after a message with a gap (TransferTraits::gap). Its messages leave the list meanwhile.
// When the rest is over they join it behind what was sent until then.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sim/core/arena.h"
#include "sim/core/reserved_array.h"
#include "sim/transport/endpoint.h"
#include "sim/transport/queue_pair.h"

namespace netsim {

// From send() until it is acknowledged (within a host: delivered).
struct Message {
  SendRequest request;
  Time start = 0;                // send()
  Time held_before = 0;          // where it is traced: how long the wire had been held back by then
  std::uint64_t generation = 0;  // of its handle; 0: all of it has left, or it was cancelled
  std::uint32_t queue_pair = 0;
  std::uint32_t number = 0;  // within its queue pair, in order of send()
  std::uint32_t packets = 0;
  std::uint32_t made = 0;                      // of them, without those of the open segment
  std::uint32_t before = kNone, next = kNone;  // among those that wait
  std::uint32_t rest = kNone;                  // its connection's, which it waits for instead
  std::uint8_t priority = 0;                   // the request's; of one that was cancelled, the highest
  bool held = false;                           // does not wait
  BitRate rate_limit() const {
    return request.traits.rate_limit == 0 ? kNoRateLimit : request.traits.rate_limit;
  }
};

struct Segment {
  std::uint32_t message = 0;
  std::uint32_t offset = 0;          // packets of the message before it
  std::uint32_t first = 0, end = 0;  // psns: first to end - 1
  std::uint32_t before = kNone, next = kNone;
};

class SendQueues {
 public:
  // `limits`: by queue pair, of those that have had any; what concerns a queue pair of this set is written
  // here.
  explicit SendQueues(ReservedArray<PaceLimits>& limits) : limits_(limits) {}

  // Takes a message for the queue pair of this number, whose sender's half is `s`; returns the message's
  // number.
  std::uint32_t add(SenderState& s, std::uint32_t queue_pair, const SendRequest& request, Time now);
  // See Message.
  void set_held_before(std::uint32_t message, Time held) { messages_[message].held_before = held; }
  // The number of the message that a handle names; kNone: of that one no packet has yet to be made.
  std::uint32_t find(const MessageHandle& handle) const;

  // Of messages that find() found.
  void hold(SenderState& s, std::uint32_t message);
  void release(SenderState& s, std::uint32_t message, Time now);
  void set_priority(SenderState& s, std::uint32_t message, std::uint8_t priority);
  // Returns the bytes that will not be sent. Afterwards the message has vanished, or one packet of it is
  // left, without payload.
  Bytes cancel(SenderState& s, std::uint32_t message);

  const Message& message(std::uint32_t index) const { return messages_[index]; }
  const Segment& segment(std::uint32_t index) const { return segments_[index]; }
  // Whether its last packet is its message's.
  bool ends_message(const Segment& segment) const {
    return segment.offset + (segment.end - segment.first) == messages_[segment.message].packets;
  }
  // Of the segment's packets, all of which but a message's last are full.
  Bytes payload(const Segment& segment, Bytes mtu) const {
    if (!ends_message(segment)) return static_cast<Bytes>(segment.end - segment.first) * mtu;
    return messages_[segment.message].request.bytes - static_cast<Bytes>(segment.offset) * mtu;
  }
  // The number of the segment to which a psn belongs that was sent and is not acknowledged.
  std::uint32_t segment_of(const SenderState& s, std::uint32_t psn) const;
  // Packets of the queue pair that have yet to be made, without those of messages that are held.
  std::uint64_t unmade_packets(const SenderState& s, std::uint32_t queue_pair) const;

  // The last packet of the message that is served has been made: the next one begins.
  void end_message(SenderState& s);
  // The last packet of this message, which had a gap, is made: its connection rests from `now` until `until`.
  void begin_rest(SenderState& s, std::uint32_t message, Time now, Time until);
  // Returns when the first rest is over that messages of the queue pair wait for and that was not returned
  // before; kNever: there is none. The caller then calls end_rests() at that time.
  Time next_rest(std::uint32_t queue_pair);
  // Serves again the messages whose connections have rested until `now`.
  void end_rests(SenderState& s, std::uint32_t queue_pair, Time now);
  // The next psn is the one behind the current segment.
  void leave_segment(SenderState& s) { set_current(s, segments_[s.current].next); }
  // The next psn is the first one not acknowledged.
  void go_back(SenderState& s);
  // Whether the oldest segment is acknowledged.
  static bool oldest_acknowledged(const SenderState& s) {
    return s.oldest != kNone && static_cast<std::int32_t>(s.acknowledged - s.oldest_end) >= 0;
  }
  // Removes the oldest segment, of which there must be one; its message stays.
  Segment take_oldest(SenderState& s);
  // The message is over: its number may be another one's.
  void forget(std::uint32_t message) { messages_.release(message); }

 private:
  static bool goes_first(const Message& a, const Message& b) {
    if (a.priority != b.priority) return a.priority > b.priority;
    return static_cast<std::int32_t>(a.number - b.number) < 0;
  }
  bool has_open(const SenderState& s) const {
    return s.newest != kNone && segments_[s.newest].end != s.sent_end;
  }
  // A connection of a queue pair after a message with a gap.
  struct Rest {
    std::uint64_t communication = 0;
    std::uint32_t channel = 0;
    bool told = false;  // by next_rest()
    Time until = 0;
    std::uint32_t first = kNone, last = kNone;  // messages that wait for it, linked as those that wait
    std::uint32_t next = kNone;                 // of the queue pair's
    bool is_of(const SendRequest& request) const {
      return !request.credit && request.traits.channel == channel && request.communication == communication;
    }
  };
  static bool waits(const Message& m) { return !m.held && m.rest == kNone; }
  std::uint32_t find_rest(const Message& m, Time now);
  void await_rest(std::uint32_t message, std::uint32_t rest);
  void leave_rest(std::uint32_t message);
  void join(SenderState& s, std::uint32_t message);
  void leave(SenderState& s, std::uint32_t message);
  void serve_first(SenderState& s);
  void open(SenderState& s, std::uint32_t message);
  void close(SenderState& s);
  void drop_newest(SenderState& s);
  void set_end(SenderState& s, std::uint32_t segment, std::uint32_t end);
  // What most packets and acknowledgements need to know of a segment lies in the queue pair.
  void set_current(SenderState& s, std::uint32_t segment);
  void begin_limits(SenderState& s, std::uint32_t queue_pair);
  void note_limits(std::uint32_t message);
  void set_oldest(SenderState& s, std::uint32_t segment);

  ReservedArray<PaceLimits>& limits_;
  Arena<Rest> rests_;
  Arena<Message> messages_;
  Arena<Segment> segments_;
  std::uint64_t generations_ = 0;
};

// ---- What each message costs, inline

inline void SendQueues::set_current(SenderState& s, std::uint32_t segment) {
  s.current = segment;
  if (segment == kNone) return;
  const Segment& current = segments_[segment];
  s.current_first = current.first - current.offset;
  s.current_end = current.end;
  if (s.limited) [[unlikely]]
    note_limits(current.message);
}

inline void SendQueues::set_oldest(SenderState& s, std::uint32_t segment) {
  s.oldest = segment;
  if (segment == kNone) {
    s.newest = kNone;
  } else {
    s.oldest_end = segments_[segment].end;
  }
}

// A segment behind all others, for what the message has yet to send.
inline void SendQueues::open(SenderState& s, std::uint32_t message) {
  const Message& m = messages_[message];
  const std::uint32_t index =
      segments_.add({message, m.made, s.sent_end, s.sent_end + (m.packets - m.made), s.newest, kNone});
  if (s.newest != kNone) segments_[s.newest].next = index;
  s.newest = index;
  if (s.oldest == kNone) set_oldest(s, index);
  if (s.current == kNone) set_current(s, index);
}

// Takes its place among those that wait, which is mostly the last one.
inline void SendQueues::join(SenderState& s, std::uint32_t message) {
  Message& m = messages_[message];
  std::uint32_t at = s.last_waiting;
  while (at != kNone && goes_first(m, messages_[at])) at = messages_[at].before;
  m.before = at;
  m.next = at == kNone ? s.waiting : messages_[at].next;
  (m.next == kNone ? s.last_waiting : messages_[m.next].before) = message;
  (at == kNone ? s.waiting : messages_[at].next) = message;
}

inline std::uint32_t SendQueues::add(SenderState& s, std::uint32_t queue_pair, const SendRequest& request,
                                     Time now) {
  const std::uint32_t index = messages_.take();
  Message& m = messages_[index];
  m.request = request;
  if (!s.limited && (request.traits.rate_limit != 0 || request.traits.gap != 0)) [[unlikely]]
    begin_limits(s, queue_pair);
  m.request.truncated = false;
  m.start = now;
  m.generation = ++generations_;
  m.queue_pair = queue_pair;
  m.packets = static_cast<std::uint32_t>((request.bytes + s.mtu - 1) / s.mtu);
  m.made = 0;
  m.rest = kNone;
  m.priority = request.traits.priority;
  m.held = false;
  if (s.limited) [[unlikely]] {
    if (const std::uint32_t rest = find_rest(m, now); rest != kNone) {
      await_rest(index, rest);
      return index;
    }
  }
  m.number = s.messages++;
  join(s, index);
  if (s.waiting == index) {
    if (s.last_waiting == index) {
      open(s, index);
    } else {
      serve_first(s);
    }
  }
  return index;
}

inline void SendQueues::end_message(SenderState& s) {
  Message& m = messages_[s.waiting];
  m.made = m.packets;
  m.generation = 0;
  s.waiting = m.next;
  if (s.waiting == kNone) {
    s.last_waiting = kNone;
  } else {
    messages_[s.waiting].before = kNone;
    open(s, s.waiting);
  }
}

inline Segment SendQueues::take_oldest(SenderState& s) {
  const std::uint32_t index = s.oldest;
  const Segment taken = segments_[index];
  set_oldest(s, taken.next);
  segments_.release(index);
  return taken;
}

}  // namespace netsim
