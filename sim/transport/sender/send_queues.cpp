#include "sim/transport/sender/send_queues.h"

namespace netsim {

std::uint32_t SendQueues::find(const MessageHandle& handle) const {
  if (handle.generation == 0 || handle.slot >= messages_.size()) return kNone;
  return messages_[handle.slot].generation == handle.generation ? handle.slot : kNone;
}

// Creates the queue pair's limits. The next packet may still belong to a message without limits.
void SendQueues::begin_limits(SenderState& s, std::uint32_t queue_pair) {
  s.limited = true;
  limits_.make(queue_pair, 1);
  limits_[queue_pair].own_path = s.path;
}

// ---- Rests

// Returns the rest that the message must wait for, or kNone. Its queue pair must have limits. Removes rests
// that are over and that no message waits for.
std::uint32_t SendQueues::find_rest(const QueuedMessage& m, Time now) {
  std::uint32_t* link = &limits_[m.queue_pair].rests;
  while (*link != kNone) {
    const std::uint32_t index = *link;
    Rest& rest = rests_[index];
    if (rest.until <= now && rest.first == kNone) {
      *link = rest.next;
      rests_.release(index);
      continue;
    }
    if (rest.is_of(m.request.message)) return index;
    link = &rest.next;
  }
  return kNone;
}

void SendQueues::await_rest(std::uint32_t message, std::uint32_t rest) {
  QueuedMessage& m = messages_[message];
  Rest& r = rests_[rest];
  m.rest = rest;
  m.before = r.last;
  m.next = kNone;
  (r.last == kNone ? r.first : messages_[r.last].next) = message;
  r.last = message;
}

void SendQueues::leave_rest(std::uint32_t message) {
  QueuedMessage& m = messages_[message];
  Rest& r = rests_[m.rest];
  (m.before == kNone ? r.first : messages_[m.before].next) = m.next;
  (m.next == kNone ? r.last : messages_[m.next].before) = m.before;
  m.rest = kNone;
}

void SendQueues::begin_rest(SenderState& s, std::uint32_t message, Time now, Time until) {
  const QueuedMessage& ended = messages_[message];
  std::uint32_t index = find_rest(ended, now);
  if (index == kNone) {
    std::uint32_t& first = limits_[ended.queue_pair].rests;
    Rest rest;
    rest.communication = ended.request.message.communication;
    rest.channel = ended.request.message.traits.channel;
    rest.next = first;
    first = index = rests_.add(rest);
  }
  rests_[index].until = until;
  rests_[index].told = false;
  for (std::uint32_t at = s.waiting; at != kNone;) {
    const std::uint32_t next = messages_[at].next;
    if (rests_[index].is_of(messages_[at].request.message)) {
      leave(s, at);
      await_rest(at, index);
    }
    at = next;
  }
  serve_first(s);
}

Time SendQueues::next_rest(std::uint32_t queue_pair) {
  std::uint32_t found = kNone;
  for (std::uint32_t index = limits_[queue_pair].rests; index != kNone; index = rests_[index].next) {
    const Rest& rest = rests_[index];
    if (rest.first == kNone || rest.told) continue;
    if (found == kNone || rest.until < rests_[found].until) found = index;
  }
  if (found == kNone) return kNever;
  rests_[found].told = true;
  return rests_[found].until;
}

void SendQueues::end_rests(SenderState& s, std::uint32_t queue_pair, Time now) {
  std::uint32_t* link = &limits_[queue_pair].rests;
  while (*link != kNone) {
    const std::uint32_t index = *link;
    const Rest rest = rests_[index];
    if (rest.until > now) {
      link = &rests_[index].next;
      continue;
    }
    for (std::uint32_t at = rest.first; at != kNone;) {
      QueuedMessage& m = messages_[at];
      const std::uint32_t message = at;
      at = m.next;
      m.rest = kNone;
      m.number = s.messages++;
      if (waits(s, m)) join(s, message);
    }
    *link = rest.next;
    rests_.release(index);
  }
  serve_first(s);
}

// ---- Which message is served

void SendQueues::leave(SenderState& s, std::uint32_t message) {
  const QueuedMessage& m = messages_[message];
  (m.before == kNone ? s.waiting : messages_[m.before].next) = m.next;
  (m.next == kNone ? s.last_waiting : messages_[m.next].before) = m.before;
}

// Serves the first waiting message, which may have changed.
void SendQueues::serve_first(SenderState& s) {
  const std::uint32_t first = first_to_serve(s);
  if (has_open(s)) {
    if (segments_[s.newest].message == first) return;
    close(s);
  }
  if (first != kNone) open(s, first);
}

// Ends the open segment with the packets that have been made. A segment without any is removed.
void SendQueues::close(SenderState& s) {
  const Segment& g = segments_[s.newest];
  messages_[g.message].made = g.offset + (s.sent_end - g.first);
  if (g.first == s.sent_end) {
    drop_newest(s);
    return;
  }
  set_end(s, s.newest, s.sent_end);
  if (s.current == s.newest && s.next_psn == s.sent_end) s.current = kNone;
}

void SendQueues::drop_newest(SenderState& s) {
  const std::uint32_t index = s.newest;
  if (s.oldest == index) {
    set_oldest(s, kNone);
  } else {
    s.newest = segments_[index].before;
    segments_[s.newest].next = kNone;
  }
  if (s.current == index) s.current = kNone;
  segments_.release(index);
}

void SendQueues::set_end(SenderState& s, std::uint32_t segment, std::uint32_t end) {
  segments_[segment].end = end;
  if (s.oldest == segment) s.oldest_end = end;
  if (s.current == segment) s.current_end = end;
}

// ---- Handles

void SendQueues::hold(SenderState& s, std::uint32_t message) {
  if (messages_[message].held) return;
  messages_[message].held = true;
  if (messages_[message].rest != kNone) return;
  if (!s.aggregation) leave(s, message);
  serve_first(s);
}

void SendQueues::release(SenderState& s, std::uint32_t message, Time now) {
  QueuedMessage& m = messages_[message];
  if (!m.held) return;
  m.held = false;
  if (m.rest != kNone) return;
  if (s.aggregation) return serve_first(s);
  const std::uint32_t rest = s.limited ? find_rest(m, now) : kNone;
  if (rest != kNone) return await_rest(message, rest);
  join(s, message);
  serve_first(s);
}

void SendQueues::set_priority(SenderState& s, std::uint32_t message, std::uint8_t priority) {
  QueuedMessage& m = messages_[message];
  const bool moves = waits(s, m) && !s.aggregation;
  if (moves) leave(s, message);
  m.priority = m.request.message.traits.priority = priority;
  if (moves) join(s, message);
  serve_first(s);
}

Bytes SendQueues::cancel(SenderState& s, std::uint32_t message) {
  QueuedMessage& m = messages_[message];
  const bool is_open = has_open(s) && segments_[s.newest].message == message;
  if (waits(s, m)) leave(s, message);
  if (m.rest != kNone) leave_rest(message);
  if (is_open) close(s);
  m.generation = 0;
  const Bytes bytes = m.bytes, carried = static_cast<Bytes>(m.made) * s.mtu;
  if (m.made == 0) {
    messages_.release(message);
  } else {
    m.bytes = carried;
    m.priority = UINT8_MAX;
    m.packets = m.made + 1;
    m.held = false;
    join(s, message);
  }
  serve_first(s);
  return bytes - carried;
}

void SendQueues::set_rate(SenderState& s, std::uint32_t message, BitRate rate) {
  QueuedMessage& m = messages_[message];
  m.request.message.traits.rate_limit = rate;
  s.renews_limits = true;
  if (!s.limited && rate != 0) begin_limits(s, m.queue_pair);
}

void SendQueues::set_path(SenderState& s, std::uint32_t message, std::uint32_t path_hint, std::uint32_t way) {
  QueuedMessage& m = messages_[message];
  m.request.message.traits.path_hint = path_hint;
  if (m.way == way) return;
  if (!s.limited) begin_limits(s, m.queue_pair);
  m.way = way;
  s.renews_limits = true;
}

void SendQueues::set_own_path(SenderState& s, std::uint32_t queue_pair, std::uint32_t own) {
  limits_[queue_pair].own_path = own;
  s.renews_limits = true;
}

Bytes SendQueues::left(const SenderState& s, std::uint32_t message) const {
  const QueuedMessage& m = messages_[message];
  std::uint32_t made = m.made;
  if (has_open(s) && segments_[s.newest].message == message) made += s.sent_end - segments_[s.newest].first;
  return m.bytes - static_cast<Bytes>(made) * s.mtu;
}

// ---- Segments

std::uint32_t SendQueues::segment_of(const SenderState& s, std::uint32_t psn) const {
  std::uint32_t index = s.oldest;
  while (static_cast<std::int32_t>(psn - segments_[index].end) >= 0) index = segments_[index].next;
  return index;
}

std::uint64_t SendQueues::unmade_packets(const SenderState& s, std::uint32_t queue_pair) const {
  std::uint64_t packets = 0;
  const auto add = [&](std::uint32_t first) {
    for (std::uint32_t index = first; index != kNone; index = messages_[index].next)
      packets += messages_[index].held ? 0 : messages_[index].packets - messages_[index].made;
  };
  add(s.waiting);
  for (std::uint32_t rest = s.limited ? limits_[queue_pair].rests : kNone; rest != kNone;
       rest = rests_[rest].next)
    add(rests_[rest].first);
  if (has_open(s)) packets -= s.sent_end - segments_[s.newest].first;
  return packets;
}

void SendQueues::go_back(SenderState& s) {
  s.next_psn = s.acknowledged;
  std::uint32_t index = s.oldest;
  while (index != kNone && static_cast<std::int32_t>(s.next_psn - segments_[index].end) >= 0)
    index = segments_[index].next;
  set_current(s, index);
}

}  // namespace netsim
