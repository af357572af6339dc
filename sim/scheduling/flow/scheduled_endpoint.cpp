#include "sim/scheduling/flow/scheduled_endpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace netsim {

// Facts: tells a scheduler what it asks about a flow.
class ScheduledEndpoint::Facts final : public FlowFacts {
 public:
  explicit Facts(ScheduledEndpoint& endpoint) : endpoint_(endpoint) {}
  std::uint32_t path_count(const FlowView& flow) const override {
    return endpoint_.network_->path_count(message_of(flow));
  }
  std::vector<PortId> ports_of_path(const FlowView& flow, std::uint32_t hint) const override {
    Message message = message_of(flow);
    message.traits.path_hint = hint;
    return endpoint_.network_->path_of(message);
  }
  std::string name(const FlowView& flow) const override {
    return endpoint_.names_ ? endpoint_.names_(flow.job, flow.name) : "";
  }

 private:
  const Message& message_of(const FlowView& flow) const {
    const FlowPlace place = endpoint_.places_.at(flow.id);
    return endpoint_.tables_[place.set]->entry(place.index).first;
  }
  ScheduledEndpoint& endpoint_;
};

ScheduledEndpoint::ScheduledEndpoint(std::unique_ptr<Endpoint> network,
                                     std::unique_ptr<FlowScheduler> scheduler, Engine& engine,
                                     const Cluster& cluster, Setup setup)
    : ForwardingEndpoint(std::move(network), cluster),
      scheduler_(std::move(scheduler)),
      needs_(scheduler_->needs()),
      engine_(engine),
      setup_(std::move(setup)),
      ports_(cluster) {
  for (std::uint32_t set = 0; set < engine.sets(); ++set)
    tables_.push_back(std::make_unique<FlowTable>(*network_, *scheduler_, setup_.idle));
}

void ScheduledEndpoint::set_listener(MessageListener* listener) {
  listener_ = listener;
  network_->set_listener(this);
}

void ScheduledEndpoint::connect(SchedulingIntervals& intervals, NameOfCommunication names) {
  names_ = std::move(names);
  if (!needs_.central) return;
  intervals_ = &intervals;
  intervals.subscribe(SchedulingLayer::flows, [this](Time now, bool idle) { at_interval(now, idle); });
}

// ---- Messages. These are called from events of the source's set.

// Returns the number of the message's queue pair between its two GPUs.
std::uint32_t ScheduledEndpoint::lane_of(const Message& message) const {
  if (message.traits.own_queue_pair) return message.traits.channel;
  return message.traits.channel %
         setup_.queue_pairs[cluster_.packet_fabric(message.source, message.destination)];
}

MessageHandle ScheduledEndpoint::send(const SendRequest& request) {
  if (!crosses_fabric(request.message)) return network_->send(request);
  const std::uint32_t set = setup_.set_of_gpu[request.message.source];
  const MessageHandle handle = tables_[set]->send(request, lane_of(request.message), now_of(set));
  ask(set);
  return handle;
}

Bytes ScheduledEndpoint::cancel(const MessageHandle& message) {
  if (message.is_none()) return 0;
  const std::uint32_t set = setup_.set_of_gpu[message.source];
  const Bytes cancelled = tables_[set]->cancel(message, now_of(set));
  ask(set);
  return cancelled;
}

void ScheduledEndpoint::message_left(const SendRequest& request) {
  if (!crosses_fabric(request.message)) return listener_->message_left(request);
  SendRequest own = request;
  own.note = tables_[setup_.set_of_gpu[request.message.source]]->note_of(request);
  listener_->message_left(own);
}

void ScheduledEndpoint::message_sent(const SendCompletion& completion) {
  const SendRequest& request = completion.request;
  if (!crosses_fabric(request.message)) return listener_->message_sent(completion);
  const std::uint32_t set = setup_.set_of_gpu[request.message.source];
  SendRequest own = request;
  own.note = tables_[set]->note_of(request);
  tables_[set]->end(request, now_of(set));
  ask(set);
  listener_->message_sent({own, completion.bytes, completion.delays});
}

// Asks for the next interval where a set has news that the scheduler needs.
void ScheduledEndpoint::ask(std::uint32_t set) {
  if (intervals_ != nullptr && concerns(tables_[set]->news())) intervals_->ask(set);
}

bool ScheduledEndpoint::concerns(const FlowTable::News& news) const {
  return news.began_or_ended || (needs_.sizes && news.added);
}

// ---- Decisions. These are called between events.

void ScheduledEndpoint::at_interval(Time now, bool idle) {
  bool due = idle || again_ <= now;
  for (const auto& table : tables_) due |= concerns(table->take_news());
  if (due) {
    again_ = kNever;
    decide(now);
  }
  if (again_ != kNever) intervals_->ask_at(again_);
}

void ScheduledEndpoint::decide(Time now) {
  forget_idle(now);
  number_flows();
  view_flows();
  if (views_.empty()) return;
  ++counts_.intervals;
  FlowDecisions decisions;
  const Facts facts(*this);
  scheduler_->decide({now, views_, ports_.rates(), &facts}, decisions);
  again_ = decisions.again();
  if (decisions.list().empty()) return;
  if (setup_.delay == 0) return act(decisions.list());
  engine_.call_at(now + setup_.delay, [this, list = decisions.list()] { act(list); });
}

void ScheduledEndpoint::forget_idle(Time now) {
  for (const auto& table : tables_) {
    for (std::uint32_t index = 0; index < table->entries().size(); ++index) {
      const FlowEntry& flow = table->entries()[index];
      if (!table->is_over(flow, now)) continue;
      if (!flow.view.id.is_none()) places_.erase(flow.view.id);
      table->forget(index);
    }
  }
}

// Gives ids to new flows, in an order that does not depend on sets.
void ScheduledEndpoint::number_flows() {
  using Order = std::pair<Time, FlowKey>;
  std::vector<std::pair<Order, FlowPlace>> fresh;
  for (std::uint32_t set = 0; set < tables_.size(); ++set) {
    const std::vector<FlowEntry>& entries = tables_[set]->entries();
    for (std::uint32_t index = 0; index < entries.size(); ++index) {
      if (entries[index].used && entries[index].view.id.is_none())
        fresh.push_back({{entries[index].view.released, key_of(entries[index].view)}, {set, index}});
    }
  }
  std::sort(fresh.begin(), fresh.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [order, place] : fresh) {
    FlowEntry& flow = tables_[place.set]->entry(place.index);
    flow.view.id = next_id_++;
    places_.emplace(flow.view.id, place);
    find_ports(flow);
  }
}

void ScheduledEndpoint::find_ports(FlowEntry& flow) {
  const Message& message = flow.first;
  flow.first.traits.path_hint = flow.view.path;
  flow.first.traits.traffic_class = flow.view.traffic_class;
  flow.ports = network_->path_of(message);
  if (!flow.ports.empty()) return;
  const auto common = ports_.between(message.source, message.destination, lane_of(message));
  flow.ports.assign(common.begin(), common.end());
}

void ScheduledEndpoint::view_flows() {
  views_.clear();
  for (const auto& table : tables_) {
    for (std::uint32_t index = 0; index < table->entries().size(); ++index) {
      FlowEntry& flow = table->entry(index);
      if (!flow.used || flow.messages.empty()) continue;
      table->count_left(flow);
      flow.listed = flow.view.left > 0;
      if (!flow.listed) continue;
      flow.view.ports = flow.ports;
      views_.push_back(flow.view);
    }
  }
  std::sort(views_.begin(), views_.end(), [](const FlowView& a, const FlowView& b) { return a.id < b.id; });
}

void ScheduledEndpoint::act(const std::vector<FlowDecisions::Decision>& decisions) {
  for (const FlowDecisions::Decision& decision : decisions) {
    const auto place = places_.find(decision.flow);
    if (place == places_.end()) {
      ++counts_.late;
    } else if (act(decision, place->second)) {
      ++counts_.decisions;
    }
  }
}

// Returns whether the decision changed something.
bool ScheduledEndpoint::act(const FlowDecisions::Decision& decision, FlowPlace place) {
  FlowTable& table = *tables_[place.set];
  FlowEntry& flow = table.entry(place.index);
  const Time now = engine_.now();
  switch (decision.kind) {
    case FlowDecisions::Kind::hold:
      return table.hold(flow, true, now);
    case FlowDecisions::Kind::release:
      return table.hold(flow, false, now);
    case FlowDecisions::Kind::rate: {
      const bool changed = table.set_rate(flow, decision.value);
      return table.hold(flow, false, now) || changed;
    }
    case FlowDecisions::Kind::priority:
      return table.set_priority(flow, static_cast<std::uint8_t>(decision.value));
    case FlowDecisions::Kind::path:
      if (!table.set_path(flow, static_cast<std::uint32_t>(decision.value))) return false;
      find_ports(flow);
      return true;
  }
  return false;
}

// ---- Reports

FlowSchedulingSummary ScheduledEndpoint::summary() const {
  FlowSchedulingSummary sum = counts_;
  sum.scheduler = setup_.name;
  for (const auto& table : tables_) {
    const FlowSchedulingSummary part = table->summary(engine_.now());
    sum.flows += part.flows;
    sum.decisions += part.decisions;
    sum.held += part.held;
    sum.held_time += part.held_time;
  }
  return sum;
}

std::vector<std::string> ScheduledEndpoint::waiting(std::size_t limit) const {
  std::vector<const FlowEntry*> held;
  for (const auto& table : tables_) {
    for (const FlowEntry& flow : table->entries()) {
      if (flow.used && flow.view.held && !flow.messages.empty()) held.push_back(&flow);
    }
  }
  std::sort(held.begin(), held.end(),
            [](const FlowEntry* a, const FlowEntry* b) { return key_of(a->view) < key_of(b->view); });
  const auto name = [&](GpuId gpu) { return cluster_.graph.node(cluster_.gpus[gpu].node).name; };
  std::vector<std::string> lines;
  for (const FlowEntry* flow : held) {
    if (lines.size() == limit) break;
    lines.push_back(fmt::format("flow scheduler '{}' holds the flow from {} to {} of job {} since {}",
                                setup_.name, name(flow->view.source), name(flow->view.destination),
                                std::uint32_t{flow->view.job}, format_time(flow->held_since)));
  }
  return lines;
}

}  // namespace netsim
