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
    if (!sees(ViewField::topology)) return 1;
    return endpoint_.network_->path_count(endpoint_.first_message(flow));
  }
  std::vector<PortId> ports_of_path(const FlowView& flow, std::uint32_t hint) const override {
    if (!sees(ViewField::topology)) return {};
    return endpoint_.network_->path_of(with_hint(flow, hint));
  }
  std::vector<PortPassage> passages(const FlowView& flow, std::uint32_t hint, Bytes payload) const override {
    if (!sees(ViewField::topology)) return {};
    return endpoint_.network_->passages(with_hint(flow, hint), payload);
  }
  std::string name(const FlowView& flow) const override {
    return endpoint_.names_ ? endpoint_.names_(flow.job, flow.name) : "";
  }
  JobFacts job(JobId job) const override {
    JobFacts facts = endpoint_.job_facts_ ? endpoint_.job_facts_(job) : JobFacts{};
    if (!sees(ViewField::phases)) facts.work = {};
    return facts;
  }
  Bytes sent(JobId job, GpuId source, GpuId destination) const override {
    if (!sees(ViewField::phases)) return 0;
    return endpoint_.traffic_ != nullptr ? endpoint_.traffic_->sent(job, source, destination) : 0;
  }

 private:
  bool sees(ViewField field) const { return endpoint_.setup_.views.has(field); }
  Message with_hint(const FlowView& flow, std::uint32_t hint) const {
    Message message = endpoint_.first_message(flow);
    message.traits.path_hint = hint;
    return message;
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

void ScheduledEndpoint::connect(SchedulingIntervals& intervals, NameOfCommunication names,
                                ViewKeeper* keeper) {
  names_ = std::move(names);
  if (!needs_.central) return;
  keeper_ = keeper;
  if (keeper != nullptr && setup_.views.has(ViewField::sizes) && keeper->keeps(ViewField::sizes)) {
    seen_.emplace(keeper->clock(ViewField::sizes));
    keeper->keep(ViewField::sizes, [this](Time now, Time time) { keep_flows(now, time); });
  }
  intervals_ = &intervals;
  intervals.subscribe(SchedulingLayer::flows, [this](Time now, bool idle) { at_interval(now, idle); });
}

// ---- Messages. These are called from events of the source's set.

bool ScheduledEndpoint::is_scheduled(const Message& message) const {
  if (message.credit) return false;
  if (!message.aggregation.is_none()) return message.aggregation_use == AggregationUse::allreduce;
  return is_over_fabric(message);
}

// Returns the number of the message's queue pair among those of its flow. With an aggregation group each tag
// has a queue pair.
std::uint32_t ScheduledEndpoint::lane_of(const Message& message) const {
  if (!message.aggregation.is_none()) return static_cast<std::uint32_t>(message.tag ^ message.tag >> 32);
  return ForwardingEndpoint::lane_of(message, setup_.queue_pairs);
}

MessageHandle ScheduledEndpoint::send(const SendRequest& request) {
  if (!is_scheduled(request.message)) return network_->send(request);
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
  if (!is_scheduled(request.message)) return listener_->message_left(request);
  SendRequest own = request;
  own.note = tables_[setup_.set_of_gpu[request.message.source]]->note_of(request);
  listener_->message_left(own);
}

void ScheduledEndpoint::message_sent(const SendCompletion& completion) {
  const SendRequest& request = completion.request;
  if (!is_scheduled(request.message)) return listener_->message_sent(completion);
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
  return news.began_or_ended || (needs_.sizes && news.added && setup_.views.has(ViewField::sizes));
}

// ---- Decisions. These are called between events.

void ScheduledEndpoint::at_interval(Time now, bool idle) {
  bool news = false;
  for (const auto& table : tables_) news |= concerns(table->take_news());
  if (news) note_news(now);
  const bool visible = take_visible(now);
  if ((news && !seen_) || visible || idle || again_ <= now) {
    again_ = kNever;
    decide(now);
  }
  const Time next = visible_.empty() ? again_ : std::min(again_, *visible_.begin());
  if (next != kNever) intervals_->ask_at(next);
}

// Plans the decisions at which what happened up to `now` becomes visible. Each is pending, so that a run in
// which all flows wait for it goes on.
void ScheduledEndpoint::note_news(Time now) {
  for (const ViewField field : {ViewField::sizes, ViewField::deadlines}) {
    if (keeper_ == nullptr || !setup_.views.has(field) || !keeper_->keeps(field)) continue;
    const ViewClock& clock = keeper_->clock(field);
    const Time visible = clock.first_from(now) + clock.age();
    if (visible_.insert(visible).second && visible > now) engine_.call_at(visible, [] {});
  }
}

// Returns whether news have become visible.
bool ScheduledEndpoint::take_visible(Time now) {
  const auto later = visible_.upper_bound(now);
  const bool any = later != visible_.begin();
  visible_.erase(visible_.begin(), later);
  return any;
}

void ScheduledEndpoint::decide(Time now) {
  forget_idle(now);
  number_flows();
  if (seen_) {
    view_seen_flows(now);
  } else {
    view_flows();
  }
  if (views_.empty() && !needs_.empty) return;
  if (!views_.empty()) ++counts_.intervals;
  FlowDecisions decisions;
  const Facts facts(*this);
  FlowsView view{now, views_, {}, &facts, intervals_->interval()};
  if (setup_.views.has(ViewField::topology)) view.port_rates = ports_.rates();
  if (!setup_.views.has(ViewField::deadlines)) view.deadlines_known = ViewClock::kNothing;
  if (keeper_ != nullptr) {
    if (setup_.views.has(ViewField::deadlines))
      view.deadlines_known = keeper_->clock(ViewField::deadlines).seen(now);
    view.network = keeper_->network(now, setup_.views);
    view.demand = keeper_->demand(now, setup_.views);
  }
  for (FlowView& flow : views_) hide(flow, view.deadlines_known);
  scheduler_->decide(view, decisions);
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
      if (!flow.view.id.is_none()) {
        places_.erase(flow.view.id);
        leave_tree(flow);
      }
      table->forget(index);
    }
  }
}

// Gives ids to new flows, in an order that does not depend on sets.
void ScheduledEndpoint::number_flows() {
  using Order = std::pair<Time, FlowKey>;
  std::vector<std::pair<Order, FlowPlace>> fresh;
  for (std::uint32_t set = 0; set < tables_.size(); ++set) {
    for (const std::uint32_t index : tables_[set]->take_fresh()) {
      const FlowEntry& flow = tables_[set]->entry(index);
      if (flow.used) fresh.push_back({{flow.view.released, key_of(flow.view)}, {set, index}});
    }
  }
  std::sort(fresh.begin(), fresh.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [order, place] : fresh) {
    FlowEntry& flow = tables_[place.set]->entry(place.index);
    flow.view.id = next_id_++;
    places_.emplace(flow.view.id, place);
    if (flow.is_aggregated()) trees_[tree_of(flow)].push_back(flow.view.id);
    find_ports(flow);
  }
}

void ScheduledEndpoint::leave_tree(const FlowEntry& flow) {
  if (!flow.is_aggregated()) return;
  const auto tree = trees_.find(tree_of(flow));
  std::erase(tree->second, flow.view.id);
  if (tree->second.empty()) trees_.erase(tree);
}

void ScheduledEndpoint::find_ports(FlowEntry& flow) {
  const Message& message = flow.first;
  flow.first.traits.path_hint = flow.view.path;
  flow.first.traits.traffic_class = flow.view.traffic_class;
  flow.ports = network_->path_of(message);
  if (flow.is_aggregated()) return;
  flow.ports =
      ports_.path_or_common(std::move(flow.ports), message.source, message.destination, lane_of(message));
}

void ScheduledEndpoint::view_flows() {
  views_.clear();
  for (const auto& table : tables_) {
    for (std::uint32_t index = 0; index < table->entries().size(); ++index) {
      FlowEntry& flow = table->entry(index);
      if (!flow.used || flow.messages.empty()) continue;
      table->count_left(flow);
      flow.listed = flow.view.left > 0;
    }
  }
  join_trees();
  for (const auto& table : tables_) {
    for (std::uint32_t index = 0; index < table->entries().size(); ++index) {
      FlowEntry& flow = table->entry(index);
      if (!flow.used || flow.messages.empty() || !flow.listed || flow.follows) continue;
      flow.view.ports = flow.ports;
      views_.push_back(flow.view);
    }
  }
  const auto earlier = [](const FlowView& a, const FlowView& b) { return a.id < b.id; };
  if (!std::is_sorted(views_.begin(), views_.end(), earlier))
    std::sort(views_.begin(), views_.end(), earlier);
}

// Lets the first flow into each tree that has bytes left stand for all of them, with the most bytes left.
void ScheduledEndpoint::join_trees() {
  for (const auto& [key, flows] : trees_) {
    FlowEntry* first = nullptr;
    for (const FlowId id : flows) {
      FlowEntry& flow = entry(places_.at(id));
      flow.follows = first != nullptr;
      if (flow.messages.empty() || !flow.listed) continue;
      if (first == nullptr) {
        first = &flow;
      } else {
        first->view.left = std::max(first->view.left, flow.view.left);
      }
    }
  }
}

// ---- Flows as they were (`sizes` with an age)

// Keeps the flows that have bytes left now.
void ScheduledEndpoint::keep_flows(Time now, Time time) {
  number_flows();
  view_flows();
  std::vector<SeenFlow> flows;
  flows.reserve(views_.size());
  for (const FlowView& flow : views_)
    flows.push_back({flow, first_message(flow), {flow.ports.begin(), flow.ports.end()}});
  seen_->add(now, time, std::move(flows));
}

std::span<const ScheduledEndpoint::SeenFlow> ScheduledEndpoint::seen_flows(Time now) const {
  if (!seen_) return {};
  const auto* entry = seen_->seen(now);
  return entry != nullptr ? std::span<const SeenFlow>(entry->values) : std::span<const SeenFlow>();
}

// A scheduler knows its own decisions, so treatments are those of the present.
void ScheduledEndpoint::view_seen_flows(Time now) {
  views_.clear();
  for (const SeenFlow& seen : seen_flows(now)) {
    FlowView& view = views_.emplace_back(seen.view);
    view.ports = seen.ports;
    const auto place = places_.find(view.id);
    if (place == places_.end()) continue;
    static_cast<FlowTreatment&>(view) = tables_[place->second.set]->entry(place->second.index).view;
  }
}

// Removes what the scheduler does not see of a flow.
void ScheduledEndpoint::hide(FlowView& flow, Time deadlines_known) const {
  if (flow.released > deadlines_known) flow.deadline = kNever;
  if (!setup_.views.has(ViewField::topology)) flow.ports = {};
  if (setup_.views.has(ViewField::sizes)) return;
  flow.bytes = flow.attained();
  flow.left = 0;
}

// Returns the first message of a flow of the present view, which may have ended.
const Message& ScheduledEndpoint::first_message(const FlowView& flow) const {
  if (const auto place = places_.find(flow.id); place != places_.end())
    return tables_[place->second.set]->entry(place->second.index).first;
  const std::span<const SeenFlow> flows = seen_flows(engine_.now());
  return std::lower_bound(flows.begin(), flows.end(), flow.id,
                          [](const SeenFlow& seen, FlowId wanted) { return seen.view.id < wanted; })
      ->first;
}

void ScheduledEndpoint::act(const std::vector<FlowDecisions::Decision>& decisions) {
  for (const FlowDecisions::Decision& decision : decisions) {
    const auto place = places_.find(decision.flow);
    if (place == places_.end()) {
      ++counts_.late;
    } else if (act_on_all(decision, place->second)) {
      ++counts_.decisions;
    }
  }
}

// Makes the decision for the flow, and for all flows into the same tree. Returns whether it changed
// something.
bool ScheduledEndpoint::act_on_all(const FlowDecisions::Decision& decision, FlowPlace place) {
  const FlowEntry& flow = entry(place);
  if (!flow.is_aggregated()) return act(decision, place);
  bool changed = false;
  for (const FlowId member : trees_.at(tree_of(flow))) changed |= act(decision, places_.at(member));
  return changed;
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
  const auto name = [&](GpuId gpu) {
    return gpu.is_none() ? "its all-reduce tree" : cluster_.graph.node(cluster_.gpus[gpu].node).name;
  };
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
