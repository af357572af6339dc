// SendQueues: the messages that the queue pairs of one logical process have to send or that are not
// acknowledged yet. It decides which message is served, and assigns packet sequence numbers (psn) to
// messages.
//
// Messages with packets still to be made wait in one list per queue pair, by priority and order. The first
// one is served. Its packets form a segment: consecutive psns of one message.
//
// A segment ends with its message, or where another message is served instead. So the queue pair's segments,
// oldest first, cover all psns from the first one that is not acknowledged. Nearly always a message is one
// segment.
//
// Only the newest segment may be open. It ends where its message is expected to end, and its remaining
// packets are still to be made.
//
// A connection rests after a message with a gap (TransferTraits::gap). Its messages leave the list meanwhile.
// When the rest is over they join the list behind messages sent before that time.
//
// Messages through aggregation groups keep their order of send(), whatever their priority. A held one stays
// in the list, and those behind it wait for it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sim/core/arena.h"
#include "sim/core/reserved_array.h"
#include "sim/transport/endpoint.h"
#include "sim/transport/queue_pair.h"

namespace netsim {

// A message from send() until it is acknowledged (within a host: delivered).
struct QueuedMessage {
  SendRequest request;
  Bytes bytes = 0;       // bytes to carry: those of the message, or after cancel() those that had left
  Time start = 0;        // time of send()
  Time held_before = 0;  // with traces: total time for which the wire had been held back by then
  std::uint64_t generation = 0;  // that of its handle; 0: all of it has left, or it was cancelled
  std::uint32_t queue_pair = 0;
  std::uint32_t number = 0;  // within its queue pair, in order of send()
  std::uint32_t packets = 0;
  std::uint32_t made = 0;                      // packets made, without those of the open segment
  std::uint32_t before = kNone, next = kNone;  // in the list of waiting messages
  std::uint32_t rest = kNone;  // rest of its connection for which it waits; it is then in no other list
  std::uint8_t priority = 0;   // the request's; the highest one after cancel()
  bool held = false;           // a held message does not wait in the list, except with aggregation
  std::uint32_t way = kNone;   // its HintedPath; kNone: the queue pair's own path
  BitRate rate_limit() const {
    const BitRate limit = request.message.traits.rate_limit;
    return limit == 0 ? kNoRateLimit : limit;
  }
};

struct Segment {
  std::uint32_t message = 0;
  std::uint32_t offset = 0;          // packets of the message before the segment
  std::uint32_t first = 0, end = 0;  // psns: first to end - 1
  std::uint32_t before = kNone, next = kNone;
};

class SendQueues {
 public:
  // `limits` is indexed by queue pair and valid for those that had a limit. This object writes the entries of
  // its own queue pairs.
  explicit SendQueues(ReservedArray<PaceLimits>& limits) : limits_(limits) {}

  // Takes a message for queue pair `queue_pair`, whose sender's half is `s`. `way` is its HintedPath or
  // kNone. Returns the message's number.
  std::uint32_t add(SenderState& s, std::uint32_t queue_pair, const SendRequest& request, Time now,
                    std::uint32_t way = kNone);
  // Sets QueuedMessage::held_before.
  void set_held_before(std::uint32_t message, Time held) { messages_[message].held_before = held; }
  // Returns the number of the message that a handle identifies, or kNone if all its packets have been made.
  std::uint32_t find(const MessageHandle& handle) const;

  // These take a message that find() returned.
  void hold(SenderState& s, std::uint32_t message);
  void release(SenderState& s, std::uint32_t message, Time now);
  void set_priority(SenderState& s, std::uint32_t message, std::uint8_t priority);
  // Cancels the unsent part and returns its bytes. Afterwards the message has vanished, or one packet without
  // payload is left.
  Bytes cancel(SenderState& s, std::uint32_t message);
  void set_rate(SenderState& s, std::uint32_t message, BitRate rate);
  // `way` is the HintedPath of the hint, or kNone.
  void set_path(SenderState& s, std::uint32_t message, std::uint32_t path_hint, std::uint32_t way);
  // Returns the bytes of the message's packets that have not been made.
  Bytes left(const SenderState& s, std::uint32_t message) const;

  // The paths of this object's queue pairs for messages with path hints.
  Arena<HintedPath>& hinted_paths() { return hinted_paths_; }
  // Returns the path of the message's packets (SenderState::path). Its queue pair must have limits.
  std::uint32_t path_of(std::uint32_t message) const {
    const QueuedMessage& m = messages_[message];
    return m.way == kNone ? limits_[m.queue_pair].own_path : hinted_paths_[m.way].path();
  }
  // Called when the paths of the queue pair, which has limits, have changed. `own` is its own path.
  void set_own_path(SenderState& s, std::uint32_t queue_pair, std::uint32_t own);

  const QueuedMessage& message(std::uint32_t index) const { return messages_[index]; }
  const Segment& segment(std::uint32_t index) const { return segments_[index]; }
  // Returns whether the segment's last packet is its message's last one.
  bool ends_message(const Segment& segment) const {
    return segment.offset + (segment.end - segment.first) == messages_[segment.message].packets;
  }
  // Returns the payload bytes of the segment's packets. All packets of a message but the last are full.
  Bytes payload(const Segment& segment, Bytes mtu) const {
    if (!ends_message(segment)) return static_cast<Bytes>(segment.end - segment.first) * mtu;
    return messages_[segment.message].bytes - static_cast<Bytes>(segment.offset) * mtu;
  }
  // Returns the number of the segment of a psn, which must be sent and not acknowledged.
  std::uint32_t segment_of(const SenderState& s, std::uint32_t psn) const;
  // Returns the number of packets of the queue pair still to be made, without those of held messages.
  std::uint64_t unmade_packets(const SenderState& s, std::uint32_t queue_pair) const;

  // Called when the last packet of the served message has been made. Serves the next message.
  void end_message(SenderState& s);
  // Called when the last packet of a message with a gap has been made. Its connection rests from `now` until
  // `until`.
  void begin_rest(SenderState& s, std::uint32_t message, Time now, Time until);
  // Returns the end of the first rest that messages wait for and that was not returned before; kNever if
  // there is none. The caller must call end_rests() at that time.
  Time next_rest(std::uint32_t queue_pair);
  // Serves again the messages whose connections have rested until `now`.
  void end_rests(SenderState& s, std::uint32_t queue_pair, Time now);
  // Moves on to the segment behind the current one.
  void leave_segment(SenderState& s) { set_current(s, segments_[s.current].next); }
  // Makes the first unacknowledged psn the next one.
  void go_back(SenderState& s);
  // Returns whether the oldest segment is acknowledged.
  static bool oldest_acknowledged(const SenderState& s) {
    return s.oldest != kNone && static_cast<std::int32_t>(s.acknowledged - s.oldest_end) >= 0;
  }
  // Removes and returns the oldest segment, of which there must be one. Its message stays.
  Segment take_oldest(SenderState& s);
  // Called when the message is over. Its number may be reused.
  void forget(std::uint32_t message) { messages_.release(message); }

 private:
  static bool goes_first(const SenderState& s, const QueuedMessage& a, const QueuedMessage& b) {
    if (a.priority != b.priority && !s.aggregation) return a.priority > b.priority;
    return static_cast<std::int32_t>(a.number - b.number) < 0;
  }
  bool has_open(const SenderState& s) const {
    return s.newest != kNone && segments_[s.newest].end != s.sent_end;
  }
  // The rest of a connection of a queue pair after a message with a gap.
  struct Rest {
    std::uint64_t communication = 0;
    std::uint32_t channel = 0;
    bool told = false;  // returned by next_rest()
    Time until = 0;
    // Messages that wait for the rest, linked like waiting messages.
    std::uint32_t first = kNone, last = kNone;
    std::uint32_t next = kNone;  // next rest of the queue pair
    bool is_of(const Message& message) const {
      return !message.credit && message.traits.channel == channel && message.communication == communication;
    }
  };
  // Returns whether the message is in the list of its queue pair.
  static bool waits(const SenderState& s, const QueuedMessage& m) {
    return (!m.held || s.aggregation) && m.rest == kNone;
  }
  // Returns the message to be served, or kNone.
  std::uint32_t first_to_serve(const SenderState& s) const {
    return s.waiting != kNone && messages_[s.waiting].held ? kNone : s.waiting;
  }
  std::uint32_t find_rest(const QueuedMessage& m, Time now);
  void await_rest(std::uint32_t message, std::uint32_t rest);
  void leave_rest(std::uint32_t message);
  void join(SenderState& s, std::uint32_t message);
  void leave(SenderState& s, std::uint32_t message);
  void serve_first(SenderState& s);
  void open(SenderState& s, std::uint32_t message);
  void close(SenderState& s);
  void drop_newest(SenderState& s);
  void set_end(SenderState& s, std::uint32_t segment, std::uint32_t end);
  // Sets the current segment, and copies what most packets and acknowledgements need of it to the queue pair.
  // Limits and path of its message are looked up when its first packet is made.
  void set_current(SenderState& s, std::uint32_t segment);
  void begin_limits(SenderState& s, std::uint32_t queue_pair);
  void set_oldest(SenderState& s, std::uint32_t segment);

  ReservedArray<PaceLimits>& limits_;
  Arena<Rest> rests_;
  Arena<QueuedMessage> messages_;
  Arena<Segment> segments_;
  Arena<HintedPath> hinted_paths_;
  std::uint64_t generations_ = 0;
};

// ---- Inline functions, which every message uses

inline void SendQueues::set_current(SenderState& s, std::uint32_t segment) {
  s.current = segment;
  if (segment == kNone) return;
  const Segment& current = segments_[segment];
  s.current_first = current.first - current.offset;
  s.current_end = current.end;
  s.renews_limits = true;
}

inline void SendQueues::set_oldest(SenderState& s, std::uint32_t segment) {
  s.oldest = segment;
  if (segment == kNone) {
    s.newest = kNone;
  } else {
    s.oldest_end = segments_[segment].end;
  }
}

// Adds a segment behind all others, for the packets that the message has yet to send.
inline void SendQueues::open(SenderState& s, std::uint32_t message) {
  const QueuedMessage& m = messages_[message];
  const std::uint32_t index =
      segments_.add({message, m.made, s.sent_end, s.sent_end + (m.packets - m.made), s.newest, kNone});
  if (s.newest != kNone) segments_[s.newest].next = index;
  s.newest = index;
  if (s.oldest == kNone) set_oldest(s, index);
  if (s.current == kNone) set_current(s, index);
}

// Inserts the message into the list of waiting messages, mostly at its end.
inline void SendQueues::join(SenderState& s, std::uint32_t message) {
  QueuedMessage& m = messages_[message];
  std::uint32_t at = s.last_waiting;
  while (at != kNone && goes_first(s, m, messages_[at])) at = messages_[at].before;
  m.before = at;
  m.next = at == kNone ? s.waiting : messages_[at].next;
  (m.next == kNone ? s.last_waiting : messages_[m.next].before) = message;
  (at == kNone ? s.waiting : messages_[at].next) = message;
}

inline std::uint32_t SendQueues::add(SenderState& s, std::uint32_t queue_pair, const SendRequest& request,
                                     Time now, std::uint32_t way) {
  const std::uint32_t index = messages_.take();
  QueuedMessage& m = messages_[index];
  m.request = request;
  m.bytes = request.message.bytes;
  const TransferTraits& traits = request.message.traits;
  if (!s.limited && (traits.rate_limit != 0 || traits.gap != 0 || way != kNone)) [[unlikely]]
    begin_limits(s, queue_pair);
  m.way = way;
  m.start = now;
  m.generation = ++generations_;
  m.queue_pair = queue_pair;
  m.packets = static_cast<std::uint32_t>((m.bytes + s.mtu - 1) / s.mtu);
  m.made = 0;
  m.rest = kNone;
  m.priority = traits.priority;
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
  QueuedMessage& m = messages_[s.waiting];
  m.made = m.packets;
  m.generation = 0;
  s.waiting = m.next;
  if (s.waiting == kNone) {
    s.last_waiting = kNone;
  } else {
    messages_[s.waiting].before = kNone;
    if (!messages_[s.waiting].held) [[likely]]
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
