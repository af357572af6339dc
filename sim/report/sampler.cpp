#include "sim/report/sampler.h"

#include <algorithm>

#include "sim/core/errors.h"
#include "sim/core/text.h"
#include "sim/topology/link_names.h"

namespace netsim {
namespace {

bool has(const std::vector<ConfigNode>& names, const char* name) {
  return std::any_of(names.begin(), names.end(), [name](const ConfigNode& n) { return n.text() == name; });
}

void add_called(const Graph& graph, const ConfigNode& wanted, std::vector<PortId>& ports) {
  const std::size_t before = ports.size();
  for (PortId id = 0; id < graph.port_count(); ++id) {
    if (means_port(graph, id, wanted.text())) ports.push_back(id);
  }
  if (ports.size() > before) return;
  std::vector<std::string> names;
  for (PortId id = 0; id < graph.port_count(); ++id) names.push_back(graph.port_name(id));
  wanted.fail("no port is called '" + wanted.text() + "'" + did_you_mean(wanted.text(), names) +
              " (all, switches, or names as in links.csv)");
}

// Returns the ports with the given names, in the order of their ids.
std::vector<PortId> select(const Graph& graph, const std::vector<ConfigNode>& wanted) {
  const bool all = has(wanted, "all"), switches = has(wanted, "switches");
  std::vector<PortId> ports;
  for (PortId id = 0; id < graph.port_count(); ++id) {
    const bool of_switch = is_switch(graph, graph.port(id).node);
    if (all || (switches && of_switch)) ports.push_back(id);
  }
  for (const ConfigNode& name : wanted) {
    if (name.text() != "all" && name.text() != "switches") add_called(graph, name, ports);
  }
  std::sort(ports.begin(), ports.end());
  ports.erase(std::unique(ports.begin(), ports.end()), ports.end());
  return ports;
}

BitRate rate_of(Bytes bytes, Time time) {
  return static_cast<BitRate>(static_cast<Int128>(bytes) * 8 * kSecond / time);
}

}  // namespace

const Parameters<SampleParameters>& sample_parameters() {
  using P = SampleParameters;
  static const auto parameters =
      Parameters<P>()
          .time("interval", &P::interval, {0, kSecond},
                "time between two samples of the network; 0: no samples")
          .flag("queues", &P::queues, "write queue_samples.csv: bytes that wait at each port")
          .flag("links", &P::links,
                "write link_samples.csv: utilisation, pauses, marks and drops of each port")
          .flag("flows", &P::flows, "write flow_samples.csv: rates of each queue pair")
          .flag("aggregation", &P::aggregation,
                "write aggregation_samples.csv: what switches add up, and their memory in use")
          .names("ports", &P::ports, kDefaultSampledPorts,
                 "ports to sample: all, switches (those of fabric switches), or a list of names as in "
                 "links.csv");
  return parameters;
}

Sampler::Sampler(const SampleParameters& parameters, PacketNetwork& network, const Graph& graph,
                 ResultSinks* sinks)
    : parameters_(parameters), network_(network), graph_(graph), sinks_(sinks) {
  if (parameters_.flows) network_.keep_ended();
  parameters_.aggregation = parameters_.aggregation && network_.aggregates();
  NETSIM_CHECK(parameters.interval > 0, "a sampler without an interval");
  for (const PortId id : select(graph, read_names(parameters.ports, kDefaultSampledPorts))) {
    ports_.push_back({id, graph.port_name(id), 0, {}});
  }
}

void Sampler::look(Time time) {
  quiet_ = true;
  for (SampledPort& port : ports_) {
    if (parameters_.queues) look_at_queue(port, time);
    if (parameters_.links) look_at_link(port, time);
  }
  if (parameters_.flows) look_at_flows(time);
  if (parameters_.aggregation) look_at_aggregation(time);
  last_ = time;
}

void Sampler::look_at_queue(SampledPort& port, Time time) {
  const Bytes before = port.queued;
  port.queued = network_.queued(port.id);
  if (before == 0 && port.queued == 0) return;
  quiet_ = false;
  if (port.queued > 0) lengths_.add(port.queued);
  if (sinks_ != nullptr) sinks_->add(QueueSample{time, port.name, port.queued});
}

void Sampler::look_at_link(SampledPort& port, Time time) {
  const PortCounters before = port.counters;
  const PortCounters& now = port.counters = network_.port_counters(port.id);
  LinkSample sample;
  sample.time = time;
  sample.port = port.name;
  bool active = false;
  for (const PortCounterInfo* counter : sampled_counters()) {
    const std::int64_t change = value_of(now, counter->field) - value_of(before, counter->field);
    add_counter(sample.counters, counter->field, CounterSum::total, change);
    active = active || change != 0;
  }
  const Time busy = now.busy_until(time) - before.busy_until(last_);
  if (busy == 0 && !active) return;
  quiet_ = false;
  sample.utilisation = static_cast<double>(busy) / static_cast<double>(time - last_);
  if (sinks_ != nullptr) sinks_->add(sample);
}

void Sampler::look_at_flows(Time time) {
  for (const std::uint32_t id : network_.queue_pairs()) {
    if (pairs_.size() <= id) pairs_.resize(id + std::size_t{1});
    const QueuePairView view = network_.queue_pair_view(id);
    SampledPair& pair = pairs_[id];
    if (pair.use != view.use) pair = {0, view.use};
    const Bytes bytes = view.acknowledged - pair.acknowledged;
    pair.acknowledged = view.acknowledged;
    if (bytes == 0 && !view.busy) continue;
    quiet_ = false;
    if (sinks_ == nullptr) continue;
    sinks_->add(FlowSample{time, view.source, view.destination, view.number, rate_of(bytes, time - last_),
                           view.rate, view.job});
  }
  network_.forget_ended();
}

void Sampler::look_at_aggregation(Time time) {
  for (const AggregatingSwitch& now : network_.aggregating_switches()) {
    SampledSwitch& one = switches_[now.node];
    const SampledSwitch before = one;
    one = {now.counters, now.used};
    AggregationSample sample{.time = time, .switch_name = graph_.node(now.node).name};
    sample.used = now.used;
    sample.memory = now.taken;
    sample.trees = now.trees_now;
    sample.packets = static_cast<std::int64_t>(now.counters.packets - before.counters.packets);
    sample.bytes = now.counters.bytes - before.counters.bytes;
    sample.sums = static_cast<std::int64_t>(now.counters.sums - before.counters.sums);
    if (before.used == 0 && now.used == 0 && sample.packets == 0) continue;
    quiet_ = false;
    if (sinks_ != nullptr) sinks_->add(sample);
  }
}

void Sampler::skip_to(Time now) {
  NETSIM_CHECK(quiet_, "samples skipped while traffic was active");
  if (now > next()) last_ += (now - last_ - 1) / parameters_.interval * parameters_.interval;
  quiet_ = false;
}

void Sampler::finish(Time end) {
  if (end > last_) look(end);
}

QueueStatistics Sampler::queues() const {
  return {lengths_.count(),      lengths_.mean(),       lengths_.quantile(50),
          lengths_.quantile(95), lengths_.quantile(99), lengths_.maximum()};
}

}  // namespace netsim
