#include "sim/scheduling/flow/split_endpoint.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "sim/core/errors.h"
#include "sim/core/random.h"
#include "sim/scheduling/flow/rules/split.h"

namespace netsim {
namespace {

constexpr std::size_t kMostRecords = std::size_t{1} << 26;  // split messages under way; reserves addresses
constexpr std::uint64_t kSplit = std::uint64_t{1} << 63;    // in generations of handles of split messages

bool is_split(const MessageHandle& message) { return (message.generation & kSplit) != 0; }

}  // namespace

std::size_t SplitEndpoint::WaysHash::operator()(const WaysKey& key) const {
  return hash_combine(std::uint64_t{key.source} << 32 | std::uint32_t{key.destination}, key.lane);
}

SplitEndpoint::SplitEndpoint(std::unique_ptr<Endpoint> network, std::unique_ptr<FlowSplitter> splitter,
                             Engine& engine, const Cluster& cluster, Setup setup)
    : ForwardingEndpoint(std::move(network), cluster),
      splitter_(std::move(splitter)),
      settings_(splitter_->settings()),
      engine_(engine),
      setup_(std::move(setup)),
      host_ways_(cluster),
      busy_(cluster.gpus.size(), 0),
      records_(kMostRecords) {
  for (std::uint32_t set = 0; set < engine.sets(); ++set) sets_.push_back(std::make_unique<SetState>());
}

void SplitEndpoint::set_listener(MessageListener* listener) {
  listener_ = listener;
  network_->set_listener(this);
}

// ---- At the source

MessageHandle SplitEndpoint::send(const SendRequest& request) {
  const Message& message = request.message;
  if (!is_over_fabric(message)) return network_->send(request);
  SetState& set = set_of(message.source);
  ++set.counts.messages;
  ++busy_[message.source];
  if (message.bytes < settings_.least) return network_->send(request);
  Ways& ways = ways_of(message);
  if (!divide(message, ways)) return network_->send(request);
  ++set.counts.split;
  const std::uint32_t record = take_record(request, ways);
  const auto shares = static_cast<std::uint32_t>(records_[record].shares.size());
  for (std::uint32_t share = 0; share < shares; ++share) advance(record, share);
  return {message.source, record, kSplit | records_[record].use};
}

SplitEndpoint::Ways& SplitEndpoint::ways_of(const Message& message) {
  const std::uint32_t lane = lane_of(message, setup_.queue_pairs);
  const auto [entry, added] =
      set_of(message.source).ways.try_emplace({message.source, message.destination, lane});
  if (added) {
    entry->second = std::make_unique<Ways>();
    entry->second->ways = host_ways_.between(message.source, message.destination, lane, settings_);
    entry->second->measured.resize(entry->second->ways.size(), 0);
  }
  return *entry->second;
}

// Asks for the shares of a message. Returns whether another way than its own carries some of it.
bool SplitEndpoint::divide(const Message& message, Ways& ways) {
  if (ways.ways.size() < 2) return false;
  SetState& set = set_of(message.source);
  set.views.clear();
  for (std::size_t i = 0; i < ways.ways.size(); ++i) {
    SplitWay& view = set.views.emplace_back(ways.ways[i].view);
    if (view.via != message.source) view.others = busy_[view.via];
    view.measured = ways.measured[i];
  }
  set.bytes.assign(ways.ways.size(), 0);
  splitter_->split(message.bytes, set.views, set.bytes);
  const Bytes sum = std::accumulate(set.bytes.begin(), set.bytes.end(), Bytes{0});
  NETSIM_CHECK(sum == message.bytes && *std::min_element(set.bytes.begin(), set.bytes.end()) >= 0,
               "the flow splitter '" + setup_.name + "' gives shares that are not the message");
  return set.bytes[0] < message.bytes;
}

// Returns a record of the message with the shares that divide() found.
std::uint32_t SplitEndpoint::take_record(const SendRequest& request, Ways& ways) {
  SetState& set = set_of(request.message.source);
  std::uint32_t index = 0;
  if (set.free_records.empty()) {
    index = static_cast<std::uint32_t>(records_.grow(1));
  } else {
    index = set.free_records.back();
    set.free_records.pop_back();
  }
  Record& record = records_[index];
  record.request = request;
  ++record.use;
  record.begun = now_of(request.message.source);
  record.ways = &ways;
  record.shares.clear();
  record.chunks.clear();
  record.held = false;
  record.priority = request.message.traits.priority;
  record.path_hint = request.message.traits.path_hint;
  for (std::uint32_t way = 0; way < ways.ways.size(); ++way) {
    if (set.bytes[way] == 0) continue;
    record.shares.push_back({.way = way, .bytes = set.bytes[way]});
    const WayKind kind = ways.ways[way].view.kind;
    Bytes& counted = kind == WayKind::own      ? set.counts.own
                     : kind == WayKind::nvlink ? set.counts.nvlink
                                               : set.counts.pcie;
    counted += set.bytes[way];
  }
  record.unsent = record.unleft = static_cast<std::uint32_t>(record.shares.size());
  divide_rate(record, request.message.traits.rate_limit);
  return index;
}

// Begins the chunks of a share for which there are buffers. A share without a relay is one message.
void SplitEndpoint::advance(std::uint32_t record, std::uint32_t share) {
  const Share& s = records_[record].shares[share];
  while (!records_[record].held && s.begun < s.bytes && s.under_way < settings_.buffers)
    send_chunk(record, share);
}

void SplitEndpoint::send_chunk(std::uint32_t record, std::uint32_t share) {
  Record& r = records_[record];
  Share& s = r.shares[share];
  const HostWay& way = r.ways->ways[s.way];
  const Message& whole = r.request.message;
  const bool relayed = way.view.via != whole.source || way.at != whole.destination;
  const Bytes bytes = relayed ? std::min(settings_.chunk, s.bytes - s.begun) : s.bytes;
  s.begun += bytes;
  ++s.under_way;
  const ShareTag tag{way.view.via != whole.source ? Leg::to_relay : Leg::fabric, share, record};
  SendRequest request = leg_request(record, tag, bytes);
  request.tell_left = r.request.tell_left && s.begun == s.bytes;
  if (tag.leg == Leg::fabric) return send_over_fabric(request, tag);
  s.to_relay += bytes;
  network_->send(request);
}

// Chunks of which nothing is left are forgotten when there are many.
void SplitEndpoint::send_over_fabric(const SendRequest& request, const ShareTag& tag) {
  const MessageHandle handle = network_->send(request);
  Record& record = records_[tag.number];
  if (handle.is_none()) return;
  if (record.held) network_->hold(handle);
  if (record.chunks.size() >= record.shares.size() * settings_.buffers)
    std::erase_if(record.chunks, [&](const Chunk& chunk) { return network_->left(chunk.handle) == 0; });
  record.chunks.push_back({tag.share, handle});
}

// Makes the message of a chunk for its first leg or the fabric.
SendRequest SplitEndpoint::leg_request(std::uint32_t record, const ShareTag& tag, Bytes bytes) const {
  const Record& r = records_[record];
  const Share& share = r.shares[tag.share];
  const HostWay& way = r.ways->ways[share.way];
  SendRequest request{r.request.message};
  Message& message = request.message;
  TransferTraits& traits = message.traits;
  message.bytes = bytes;
  message.share = true;
  message.tag = tag.packed();
  if (share.bytes != bytes) traits.only_message = false;
  traits.priority = r.priority;
  traits.path_hint = r.path_hint;
  if (!takes_own_path(r, tag.share)) {
    traits.path_hint = kNoPathHint;
    traits.only_message = false;
    traits.gap = 0;
  }
  if (tag.leg == Leg::to_relay) {
    message.destination = way.view.via;
    traits.rate_limit = 0;
    return request;
  }
  message.source = way.view.via;
  message.destination = way.at;
  if (way.lane != kNoIndex) {
    traits.own_queue_pair = true;
    traits.channel = way.lane;
  }
  traits.rate_limit = share.limit;
  return request;
}

void SplitEndpoint::message_left(const SendRequest& request) {
  if (!request.message.share) return listener_->message_left(request);
  Record& record = records_[ShareTag::unpack(request.message.tag).number];
  if (--record.unleft == 0) listener_->message_left(record.request);
}

void SplitEndpoint::message_sent(const SendCompletion& completion) {
  const Message& message = completion.request.message;
  if (!message.share) {
    if (is_over_fabric(message)) --busy_[message.source];
    return listener_->message_sent(completion);
  }
  const ShareTag tag = ShareTag::unpack(message.tag);
  if (tag.leg == Leg::fabric) share_sent(tag, completion.bytes);
}

// A chunk is acknowledged, so its buffer is free.
void SplitEndpoint::share_sent(const ShareTag& tag, Bytes bytes) {
  Record& record = records_[tag.number];
  Share& share = record.shares[tag.share];
  --share.under_way;
  share.sent += bytes;
  if (share.sent < share.bytes) return advance(tag.number, tag.share);
  BitRate& measured = record.ways->measured[share.way];
  const Time took = now_of(record.request.message.source) - record.begun;
  measured = mean_with(measured, share.bytes, std::max<Time>(1, took));
  if (--record.unsent == 0) finish(tag.number);
}

// Frees the record before the listener may send another message.
void SplitEndpoint::finish(std::uint32_t record) {
  const SendRequest request = records_[record].request;
  --busy_[request.message.source];
  set_of(request.message.source).free_records.push_back(record);
  listener_->message_sent({request, request.message.bytes, nullptr});
}

// ---- At the relays and the destination

void SplitEndpoint::message_delivered(const Delivery& delivery) {
  const Message& message = delivery.message;
  if (!message.share) return listener_->message_delivered(delivery);
  const ShareTag tag = ShareTag::unpack(message.tag);
  switch (tag.leg) {
    case Leg::to_relay: {
      const ShareTag onward{Leg::fabric, tag.share, tag.number};
      records_[tag.number].shares[tag.share].to_relay -= delivery.bytes;
      return send_over_fabric(leg_request(tag.number, onward, delivery.bytes), onward);
    }
    case Leg::fabric:
      return arrive(delivery, tag);
    case Leg::to_destination:
      return take(message.destination, tag.number, delivery.bytes, delivery.delays);
  }
}

// A chunk has come over the fabric. It goes on over NVLink if this is not the destination.
void SplitEndpoint::arrive(const Delivery& delivery, const ShareTag& tag) {
  const Record& record = records_[tag.number];
  const Message& whole = record.request.message;
  SetState& set = set_of(whole.destination);
  const std::uint64_t key = std::uint64_t{tag.number} << 32 | record.use;
  const auto [entry, added] = set.arrival_of.try_emplace(key, 0);
  if (added) entry->second = set.arrivals.add({whole, key, 0});
  const std::uint32_t arrival = entry->second;
  if (delivery.message.destination == whole.destination)
    return take(whole.destination, arrival, delivery.bytes, delivery.delays);
  SendRequest onward{whole};
  onward.message.source = delivery.message.destination;
  onward.message.bytes = delivery.bytes;
  onward.message.share = true;
  onward.message.tag = ShareTag{Leg::to_destination, 0, arrival}.packed();
  onward.message.traits.only_message = false;
  onward.message.traits.rate_limit = 0;
  onward.message.traits.gap = 0;
  network_->send(onward);
}

// Some bytes of a message are at its destination. Frees the arrival before the listener may send.
void SplitEndpoint::take(GpuId destination, std::uint32_t arrival, Bytes bytes, DelayTeller* delays) {
  SetState& set = set_of(destination);
  Arrival& a = set.arrivals[arrival];
  a.arrived += bytes;
  if (a.arrived < a.message.bytes) return;
  const Message message = a.message;
  set.arrival_of.erase(a.key);
  set.arrivals.release(arrival);
  listener_->message_delivered({message, message.bytes, delays});
}

// ---- Handles

// Returns the index of the record of a split message that is not over, or kNoIndex.
std::uint32_t SplitEndpoint::record_of(const MessageHandle& message) const {
  const Record& record = records_[message.slot];
  return record.use == (message.generation & ~kSplit) && record.unsent > 0 ? message.slot : kNoIndex;
}

// Returns whether the share takes the path of the whole message.
bool SplitEndpoint::takes_own_path(const Record& record, std::uint32_t share) {
  const HostWay& way = record.ways->ways[record.shares[share].way];
  return way.view.kind == WayKind::own && way.at == record.request.message.destination;
}

// Returns the bytes of a share that no NIC of the source's host has sent.
Bytes SplitEndpoint::left_of(const Record& record, std::uint32_t share) const {
  const Share& s = record.shares[share];
  Bytes left = s.bytes - s.begun + s.to_relay;
  for (const Chunk& chunk : record.chunks)
    if (chunk.share == share) left += network_->left(chunk.handle);
  return left;
}

Bytes SplitEndpoint::left_of(const Record& record) const {
  Bytes left = 0;
  for (std::uint32_t share = 0; share < record.shares.size(); ++share) left += left_of(record, share);
  return left;
}

Bytes SplitEndpoint::left(const MessageHandle& message) const {
  if (!is_split(message)) return network_->left(message);
  const std::uint32_t record = record_of(message);
  return record == kNoIndex ? 0 : left_of(records_[record]);
}

// Lets `change` act on a split message of which something is left, and returns whether there is any.
template <class Change>
bool SplitEndpoint::change(const MessageHandle& message, const Change& change) {
  const std::uint32_t record = record_of(message);
  if (record == kNoIndex || left_of(records_[record]) == 0) return false;
  change(records_[record]);
  return true;
}

// Chunks that are on their way to a relay are held there.
bool SplitEndpoint::hold(const MessageHandle& message) {
  if (!is_split(message)) return network_->hold(message);
  return change(message, [&](Record& record) {
    record.held = true;
    for (const Chunk& chunk : record.chunks) network_->hold(chunk.handle);
  });
}

bool SplitEndpoint::release(const MessageHandle& message) {
  if (!is_split(message)) return network_->release(message);
  return change(message, [&](Record& record) {
    record.held = false;
    for (const Chunk& chunk : record.chunks) network_->release(chunk.handle);
    for (std::uint32_t share = 0; share < record.shares.size(); ++share) advance(message.slot, share);
  });
}

bool SplitEndpoint::set_priority(const MessageHandle& message, std::uint8_t priority) {
  if (!is_split(message)) return network_->set_priority(message, priority);
  return change(message, [&](Record& record) {
    record.priority = priority;
    for (const Chunk& chunk : record.chunks) network_->set_priority(chunk.handle, priority);
  });
}

bool SplitEndpoint::set_rate(const MessageHandle& message, BitRate rate) {
  if (!is_split(message)) return network_->set_rate(message, rate);
  return change(message, [&](Record& record) {
    divide_rate(record, rate);
    for (const Chunk& chunk : record.chunks)
      network_->set_rate(chunk.handle, record.shares[chunk.share].limit);
  });
}

bool SplitEndpoint::set_path(const MessageHandle& message, std::uint32_t path_hint) {
  if (!is_split(message)) return network_->set_path(message, path_hint);
  return change(message, [&](Record& record) {
    record.path_hint = path_hint;
    for (const Chunk& chunk : record.chunks)
      if (takes_own_path(record, chunk.share)) network_->set_path(chunk.handle, path_hint);
  });
}

Bytes SplitEndpoint::cancel(const MessageHandle& message) {
  return is_split(message) ? 0 : network_->cancel(message);
}

// Divides a rate between the shares, by the bytes that are left. A share gets at least 1 bit/s.
void SplitEndpoint::divide_rate(Record& record, BitRate rate) {
  const Bytes all = rate == 0 ? 0 : left_of(record);
  for (std::uint32_t share = 0; share < record.shares.size(); ++share) {
    BitRate& limit = record.shares[share].limit;
    limit = 0;
    if (all == 0) continue;
    const auto part = static_cast<UInt128>(rate) * static_cast<UInt128>(left_of(record, share));
    limit = std::max<BitRate>(1, static_cast<BitRate>(part / static_cast<UInt128>(all)));
  }
}

// ---- Reports

SplitSummary SplitEndpoint::summary() const {
  SplitSummary sum;
  sum.splitter = setup_.name;
  for (const auto& set : sets_) {
    sum.messages += set->counts.messages;
    sum.split += set->counts.split;
    sum.own += set->counts.own;
    sum.nvlink += set->counts.nvlink;
    sum.pcie += set->counts.pcie;
  }
  return sum;
}

}  // namespace netsim
