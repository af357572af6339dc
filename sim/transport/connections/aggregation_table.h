// AggregationTable: which session serves the messages of a communication through an aggregation group.
//
// A session serves one key while messages of it are in flight. An idle session may serve another key of the
// same group next.
//
// A tree over a link that goes down is closed. It still takes the messages that some member had sent by then.
// Later messages of the key take another session. Only counts of messages decide that, so all members decide
// alike, whenever they send.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

#include "sim/core/reserved_array.h"
#include "sim/transport/message.h"
#include "sim/transport/queue_pair.h"

namespace netsim {

// Key of messages that share a session.
struct AggregationKey {
  AggregationId aggregation;
  AggregationUse use = AggregationUse::none;
  std::uint8_t traffic_class = 0;  // only with AggregationUse::allreduce
  JobId job = 0;
  std::uint64_t communication = 0, tag = 0;
  bool operator==(const AggregationKey&) const = default;
  // Returns the key of all sessions of the aggregation group that may replace each other.
  AggregationKey of_group() const { return {aggregation, use, traffic_class, job, 0, 0}; }
  static AggregationKey of(const Message& message);
};

struct AggregationKeyHash {
  std::size_t operator()(const AggregationKey& key) const;
};

class AggregationTable {
 public:
  // Returns the session that serves the member's next message of this key. kNone: one must be added.
  std::uint32_t find(const AggregationKey& key, std::uint32_t member);
  // Adds a session of so many members, which serves no key. Returns its number.
  std::uint32_t add(std::uint32_t members);
  // Makes a new session serve the key, and later others of its group if `shared`.
  void bind_new(std::uint32_t session, const AggregationKey& key, bool shared = true);

  // Called when a member sends a message, which `ways` deliveries end.
  void begin(std::uint32_t session, std::uint32_t member, std::uint64_t ways) {
    Entry& entry = entries_[session];
    if (entry.sent.size() > member) ++entry.sent[member];
    entry.in_flight.fetch_add(ways, std::memory_order_relaxed);
  }
  // Called at so many of these deliveries. Any thread may call it.
  void end(std::uint32_t session, std::uint64_t ways) {
    entries_[session].in_flight.fetch_sub(ways, std::memory_order_acq_rel);
  }
  bool is_idle(std::uint32_t session) const {
    return entries_[session].in_flight.load(std::memory_order_acquire) == 0;
  }
  const AggregationKey& key(std::uint32_t session) const { return entries_[session].key; }
  // Called when an idle session may not be used any more, because its memory was taken.
  void retire(std::uint32_t session) { entries_[session].retired = true; }
  // Closes the sessions for which breaks(session) holds. Called between events.
  void close(const std::function<bool(std::uint32_t)>& breaks);
  std::uint32_t size() const { return static_cast<std::uint32_t>(entries_.size()); }

 private:
  struct Entry {
    AggregationKey key;
    std::atomic<std::uint64_t> in_flight{0};  // deliveries that are still to come
    std::vector<std::uint64_t> sent;          // messages sent so far, by member
    std::uint64_t closes_at = UINT64_MAX;     // messages of each member that it takes
    std::uint32_t before = kNone;             // closed session that takes earlier messages of the key
    bool retired = false;
    bool usable() const { return closes_at == UINT64_MAX && !retired; }
  };
  static constexpr std::size_t kMaxSessions = std::size_t{1} << 20;

  std::uint32_t known(const AggregationKey& key, std::uint32_t member) const;
  void bind(std::uint32_t session, const AggregationKey& key);

  ReservedArray<Entry> entries_{kMaxSessions, Reserve::when_used};
  std::unordered_map<AggregationKey, std::uint32_t, AggregationKeyHash> session_of_;  // never iterated
  // Usable sessions of an aggregation group, use, class and job, the oldest first.
  std::unordered_map<AggregationKey, std::vector<std::uint32_t>, AggregationKeyHash> sessions_of_group_;
};

}  // namespace netsim
