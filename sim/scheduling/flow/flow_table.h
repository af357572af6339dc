// FlowTable: the flows whose sources belong to one set, with their messages under way. Private to
// sim/scheduling/flow.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/core/index.h"
#include "sim/scheduling/flow/flow_scheduler.h"
#include "sim/scheduling/flow/flow_summary.h"
#include "sim/transport/endpoint.h"

namespace netsim {

// FlowKey: identifies the flow of a message.
struct FlowKey {
  JobId job;
  GpuId source, destination;
  std::uint64_t communication = 0;
  auto operator<=>(const FlowKey&) const = default;
};

inline FlowKey key_of(const FlowView& flow) {
  return {flow.job, flow.source, flow.destination, flow.communication};
}

// FlowEntry: a flow, and its messages that are not over.
struct FlowEntry {
  FlowView view;
  Message first;                                               // its first message, as it was sent
  std::vector<PortId> ports;                                   // FlowView::ports
  std::vector<std::uint32_t> messages;                         // in the order of send(), by slot
  std::vector<std::pair<std::uint32_t, std::uint32_t>> lanes;  // queue pairs with the number of messages
  Time held_since = kNever;                                    // kNever: it is not held
  Time idle_since = kNever;  // when its last message was over; kNever: it has messages
  bool used = false;         // false: the entry is free
  bool listed = false;       // it had bytes left at the last decision about all flows
  bool follows = false;      // decisions about another flow into the same tree act on it too

  bool is_aggregated() const { return !first.aggregation.is_none(); }
};

class alignas(64) FlowTable {
 public:
  // Events of a set that decide() may have to know.
  struct News {
    bool began_or_ended = false;  // a flow has bytes to send that had none at the last decision, or lost its
                                  // last message
    bool added = false;           // a message was added to a flow
  };

  // Both must outlive this. A flow without messages is remembered for `idle` at least.
  FlowTable(Endpoint& network, const FlowScheduler& scheduler, Time idle)
      : network_(network), scheduler_(scheduler), central_(scheduler.needs().central), idle_(idle) {}

  // Sends a message of a flow on queue pair `lane` of its GPUs.
  MessageHandle send(const SendRequest& request, std::uint32_t lane, Time now);
  // Returns the note that the message had when it was sent.
  SenderNote note_of(const SendRequest& request) const { return messages_[request.note.channel].note; }
  // Removes a message that is over. `request` is that of the network.
  void end(const SendRequest& request, Time now) { remove(request.note.channel, now); }
  // Cancels what has not left of a message; as Endpoint::cancel().
  Bytes cancel(const MessageHandle& handle, Time now);

  // The functions below are called between events.

  // Return what has happened since the last call of take_news(). Events may call the first one.
  const News& news() const { return news_; }
  News take_news() { return std::exchange(news_, {}); }
  const std::vector<FlowEntry>& entries() const { return entries_; }
  // Returns the flows that began since the last call, by index. Only a central scheduler's table lists them.
  std::vector<std::uint32_t> take_fresh() { return std::exchange(fresh_, {}); }
  FlowEntry& entry(std::uint32_t index) { return entries_[index]; }
  // Sets FlowView::left of a flow.
  void count_left(FlowEntry& flow) const;
  // Returns whether the flow has had no messages for so long that it is forgotten.
  bool is_over(const FlowEntry& flow, Time now) const {
    return flow.used && flow.messages.empty() && now - flow.idle_since >= idle_;
  }
  // Frees the flow, which has no messages.
  void forget(std::uint32_t index);

  // Carry out a decision; return whether it changed something.
  bool hold(FlowEntry& flow, bool held, Time now);
  bool set_rate(FlowEntry& flow, BitRate rate);
  bool set_priority(FlowEntry& flow, std::uint8_t level);
  bool set_path(FlowEntry& flow, std::uint32_t hint);

  // Returns flows, holds and the local decisions of this set up to `now`.
  FlowSchedulingSummary summary(Time now) const;

 private:
  static constexpr std::size_t kFirstSweep = 1024;

  struct LiveMessage {
    MessageHandle handle;
    SenderNote note;         // that of the executor
    std::uint32_t flow = 0;  // index of the flow's entry
    std::uint32_t lane = 0;
    Bytes bytes = 0;
    BitRate limit = 0;  // its own rate limit; 0: none
  };
  struct KeyHash {
    std::size_t operator()(const FlowKey& key) const;
  };

  std::uint32_t find_or_begin(const Message& message, Time now);
  std::uint32_t take_entry(Time now);
  void admit(FlowEntry& flow, const Message& message);
  std::uint32_t take_slot();
  bool add_lane(FlowEntry& flow, std::uint32_t lane);
  bool remove_lane(FlowEntry& flow, std::uint32_t lane);
  BitRate limit_of(const FlowEntry& flow, const LiveMessage& message) const;
  void share_rate(const FlowEntry& flow);
  void remove(std::uint32_t slot, Time now);

  Endpoint& network_;
  const FlowScheduler& scheduler_;
  bool central_;
  Time idle_;
  std::size_t next_sweep_ = kFirstSweep;  // number of entries at which flows that are over are looked for
  std::vector<FlowEntry> entries_;
  std::vector<std::uint32_t> free_entries_, fresh_;
  std::unordered_map<FlowKey, std::uint32_t, KeyHash> index_;  // looked up only, never iterated
  std::vector<LiveMessage> messages_;                          // by slot
  std::vector<std::uint32_t> free_slots_;
  News news_;
  FlowSchedulingSummary counts_;
};

}  // namespace netsim
