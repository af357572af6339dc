// The part of Sender that acts on messages by their handles.
#include <algorithm>
#include <utility>

#include "sim/transport/sender/sender.h"

namespace netsim {

bool Sender::hold(const MessageHandle& handle) {
  const std::uint32_t message = queues_.find(handle);
  if (message == kNone) return false;
  const std::uint32_t id = queues_.message(message).queue_pair;
  if (!queues_.message(message).held) ++state_.records[id].held;
  queues_.hold(senders_[id], message);
  update_level(id);
  return true;
}

bool Sender::release(const MessageHandle& handle) {
  const std::uint32_t message = queues_.find(handle);
  if (message == kNone) return false;
  const std::uint32_t id = queues_.message(message).queue_pair;
  if (queues_.message(message).held) --state_.records[id].held;
  queues_.release(senders_[id], message, loop_.now());
  if (senders_[id].limited) {
    limits_[id].due = kNever;  // the time of the hold is not caught up
    await_rests(id);
  }
  make_ready(id);
  return true;
}

bool Sender::set_priority(const MessageHandle& handle, std::uint8_t priority) {
  const std::uint32_t message = queues_.find(handle);
  if (message == kNone) return false;
  const std::uint32_t id = queues_.message(message).queue_pair;
  queues_.set_priority(senders_[id], message, priority);
  update_level(id);
  return true;
}

Bytes Sender::cancel(const MessageHandle& handle) {
  const std::uint32_t message = queues_.find(handle);
  if (message == kNone) return 0;
  const std::uint32_t id = queues_.message(message).queue_pair;
  SenderState& s = senders_[id];
  if (s.aggregation) return 0;  // the packets of other members would wait for those of this message
  const Bytes asked = queues_.message(message).bytes;
  if (queues_.message(message).held) --state_.records[id].held;
  const Bytes cancelled = queues_.cancel(s, message);
  if (!s.scale_up) {
    counts_.bytes_sent -= cancelled;
    counts_.bytes_cancelled += cancelled;
    if (cancelled == asked) {
      --counts_.flows_started;
      if (state_.observed) set_.write(state_.vanished_reader, FlowVanished{id});
    }
  }
  make_ready(id);
  return cancelled;
}

bool Sender::set_rate(const MessageHandle& handle, BitRate rate) {
  const std::uint32_t message = queues_.find(handle);
  if (message == kNone) return false;
  const std::uint32_t id = queues_.message(message).queue_pair;
  queues_.set_rate(senders_[id], message, rate);
  if (senders_[id].limited && limits_[id].paced_for == message)
    rescale_pace(id, queues_.message(message).rate_limit());
  return true;
}

bool Sender::set_path(const MessageHandle& handle, std::uint32_t path_hint, std::uint32_t way) {
  const std::uint32_t message = queues_.find(handle);
  if (message == kNone) return false;
  queues_.set_path(senders_[queues_.message(message).queue_pair], message, path_hint, way);
  return true;
}

Bytes Sender::left(const MessageHandle& handle) const {
  const std::uint32_t message = queues_.find(handle);
  if (message == kNone) return 0;
  return queues_.left(senders_[queues_.message(message).queue_pair], message);
}

// Called when the rate limit changes of the message that the queue pair waits for. The rest of the wait
// changes in proportion, so that the bytes sent follow the rate however often it changes.
void Sender::rescale_pace(std::uint32_t id, BitRate limit) {
  SenderState& s = senders_[id];
  const BitRate was = std::min(s.rate, std::exchange(limits_[id].paced_at_most, limit)),
                is = std::min(s.rate, limit);
  const Time rest = s.pace_at - loop_.now();
  if (rest <= 0) limits_[id].due = kNever;
  if (rest <= 0 || is == was) return;
  s.pace_at = loop_.now() + static_cast<Time>((static_cast<Int128>(rest) * was + is - 1) / is);
  if (limits_[id].due != kNever) limits_[id].due = s.pace_at;
  if (s.pacing) schedule_timer(id, s.pace_at, EventKind::pace);
}

}  // namespace netsim
