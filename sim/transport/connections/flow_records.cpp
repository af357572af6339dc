#include "sim/transport/connections/flow_records.h"

#include <algorithm>
#include <utility>

#include "sim/core/random.h"

namespace netsim {

FlowRecords::FlowRecords(Engine& engine, TransportState& state, Connections& connections,
                         PacketNetwork::FlowObserver observer)
    : state_(state), connections_(connections), observer_(std::move(observer)) {
  state.observed = static_cast<bool>(observer_);
  state.delivered_reader = engine.add_reader(delivered_);
  state.acknowledged_reader = engine.add_reader(acknowledged_);
  state.vanished_reader = engine.add_reader(vanished_);
}

void FlowRecords::flow_delivered(const FlowDelivered& flow) {
  HalfFlow half;
  if (take_half(flow.queue_pair, false, half)) {
    end_flow(flow, half.acknowledged);
  } else {
    wait_for_other_end(flow.queue_pair, true, {flow, 0, kNone});
  }
}

void FlowRecords::flow_acknowledged(const FlowAcknowledged& flow) {
  HalfFlow half;
  if (take_half(flow.queue_pair, true, half)) {
    end_flow(half.delivered, flow.acknowledged);
  } else {
    wait_for_other_end(flow.queue_pair, false, {{}, flow.acknowledged, kNone});
  }
}

void FlowRecords::wait_for_other_end(std::uint32_t queue_pair, bool delivered, const HalfFlow& half) {
  const std::uint32_t index = half_flows_.add(half);
  HalfFlows& list = half_flows_of_[queue_pair];
  list.delivered = delivered;
  if (list.oldest == kNone) {
    list.oldest = index;
  } else {
    half_flows_[list.newest].next = index;
  }
  list.newest = index;
}

// Takes the queue pair's oldest flow of which this end is known. Returns false if there is none.
bool FlowRecords::take_half(std::uint32_t queue_pair, bool delivered, HalfFlow& half) {
  if (half_flows_of_.size() <= queue_pair) half_flows_of_.resize(queue_pair + std::size_t{1});
  HalfFlows& list = half_flows_of_[queue_pair];
  if (list.oldest == kNone || list.delivered != delivered) return false;
  const std::uint32_t index = list.oldest;
  half = half_flows_[index];
  list.oldest = half.next;
  half_flows_.release(index);
  return true;
}

// Reports the flows sorted by end and id, because ids of queue pairs depend on thread timing.
void FlowRecords::report_unacknowledged() {
  std::vector<FlowRecord> flows;
  for (HalfFlows& list : half_flows_of_) {
    if (!list.delivered) continue;
    for (; list.oldest != kNone; list.oldest = half_flows_[list.oldest].next)
      flows.push_back(record_of(half_flows_[list.oldest].delivered, 0));
  }
  std::sort(flows.begin(), flows.end(), [](const FlowRecord& a, const FlowRecord& b) {
    return std::pair(a.end, a.id) < std::pair(b.end, b.id);
  });
  for (const FlowRecord& flow : flows) observer_(flow);
}

// A flow into a tree has the numbers of its tree and message that one logical process gives them. It numbers
// trees in order of creation. Both ends of the flow are finished at once.
FlowRecord FlowRecords::record_of(const FlowDelivered& flow, Time acknowledged) const {
  const QueuePairRecord& record = state_.records[flow.queue_pair];
  std::uint64_t key = state_.receivers[flow.queue_pair].key;
  std::uint32_t number = record.identity.number, message = flow.number;
  if (record.tree) {
    const AggregationLedger* ledger = connections_.trees().ledger.get();
    number = kBeyondChannels + (ledger != nullptr ? ledger->tree() : record.tree_number);
    if (ledger != nullptr) message = ledger->message();
    key = Connections::aggregation_key(record.identity.source, record.identity.destination, number);
  }
  return {hash_combine(key, message),
          flow.message,
          flow.bytes,
          number,
          flow.start,
          flow.delivered,
          acknowledged,
          flow.ideal};
}

void FlowRecords::end_flow(const FlowDelivered& flow, Time acknowledged) {
  observer_(record_of(flow, acknowledged));
  connections_.message_ended(flow.queue_pair);
}

}  // namespace netsim
