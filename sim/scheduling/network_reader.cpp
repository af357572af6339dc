#include "sim/scheduling/network_reader.h"

#include <algorithm>
#include <utility>

namespace netsim {
namespace {

// Returns the ports of circuits of optical switches.
std::vector<bool> ports_of_circuits(const Graph& graph) {
  std::vector<bool> is_circuit(graph.port_count(), false);
  for (const OpticalSwitch& optical : graph.optical_switches()) {
    for (const OpticalSwitch::Configuration& configuration : optical.configurations) {
      for (const PortId port : configuration.circuits) is_circuit[port] = is_circuit[port ^ 1U] = true;
    }
  }
  return is_circuit;
}

}  // namespace

NetworkReader::NetworkReader(ViewKeeper& keeper, Sources sources)
    : keeper_(keeper),
      sources_(std::move(sources)),
      is_circuit_(ports_of_circuits(sources_.graph)),
      transmissions_(keeper.clock(ViewField::loads), keeper.clock(ViewField::loads).every()),
      queues_(keeper.clock(ViewField::queues)),
      rates_(keeper.clock(ViewField::rates)),
      failures_(keeper.clock(ViewField::failures)),
      circuits_(keeper.clock(ViewField::circuits)),
      stalls_(keeper.clock(ViewField::stalls)) {
  keeper.keep(ViewField::loads,
              [this](Time now, Time time) { transmissions_.add(now, time, read_transmissions()); });
  keep(ViewField::queues, queues_, &NetworkReader::read_queues);
  keep(ViewField::rates, rates_, &NetworkReader::read_rates);
  keep(ViewField::failures, failures_, &NetworkReader::read_failures);
  keep(ViewField::circuits, circuits_, &NetworkReader::read_circuits);
  keep(ViewField::stalls, stalls_, &NetworkReader::read_stalls);
  keeper.set_network([this](Time now, ViewFields wanted) { return view(now, wanted); });
}

template <class Values>
void NetworkReader::keep(ViewField field, Field<Values>& values, Values (NetworkReader::*read)() const) {
  keeper_.keep(
      field, [this, &values, read](Time now, Time time) { values.history.add(now, time, (this->*read)()); });
}

// Returns what a decision sees of a field.
template <class Values>
const Values& NetworkReader::seen(Time now, ViewField field, Field<Values>& values,
                                  Values (NetworkReader::*read)() const) {
  if (!keeper_.keeps(field)) {
    values.now = (this->*read)();
    return values.now;
  }
  static const Values nothing{};
  const auto* entry = values.history.seen(now);
  return entry != nullptr ? entry->values : nothing;
}

NetworkView NetworkReader::view(Time now, ViewFields wanted) {
  NetworkView view;
  if (wanted.has(ViewField::loads)) {
    find_loads(now);
    view.loads = loads_;
  }
  if (wanted.has(ViewField::queues))
    view.queues = seen(now, ViewField::queues, queues_, &NetworkReader::read_queues);
  if (wanted.has(ViewField::rates))
    view.rates = seen(now, ViewField::rates, rates_, &NetworkReader::read_rates);
  if (wanted.has(ViewField::failures)) {
    const Failures& failures = seen(now, ViewField::failures, failures_, &NetworkReader::read_failures);
    view.down = failures.ports;
    view.failed = failures.hosts;
  }
  if (wanted.has(ViewField::circuits))
    view.circuits = seen(now, ViewField::circuits, circuits_, &NetworkReader::read_circuits);
  if (wanted.has(ViewField::stalls))
    view.stalls = seen(now, ViewField::stalls, stalls_, &NetworkReader::read_stalls);
  return view;
}

// Sets the share of the last period in which each port transmitted. A transmission that goes on at the end of
// the period counts up to there.
void NetworkReader::find_loads(Time now) {
  const ViewClock& clock = keeper_.clock(ViewField::loads);
  const Time end = clock.seen(now), begin = end - clock.every();
  loads_.clear();
  if (begin < 0) return;
  const auto *first = transmissions_.at(begin), *last = transmissions_.at(end);
  if (first == nullptr || last == nullptr) return;
  const auto busy = [](const Transmissions& port, Time time) {
    return port.busy - std::max<Time>(port.last_end - time, 0);
  };
  for (PortId port = 0; port < last->values.size(); ++port) {
    const Time used = busy(last->values[port], end) - busy(first->values[port], begin);
    loads_.push_back(static_cast<double>(used) / static_cast<double>(clock.every()));
  }
}

template <class Read>
auto NetworkReader::by_port(Read read) const {
  std::vector<decltype(read(PortId{0}))> values;
  if (sources_.packets == nullptr) return values;
  values.reserve(sources_.graph.port_count());
  for (PortId port = 0; port < sources_.graph.port_count(); ++port) values.push_back(read(port));
  return values;
}

std::vector<NetworkReader::Transmissions> NetworkReader::read_transmissions() const {
  return by_port([&](PortId port) {
    const PortCounters counters = sources_.packets->port_counters(port);
    return Transmissions{counters.busy, counters.last_end};
  });
}

std::vector<Bytes> NetworkReader::read_queues() const {
  return by_port([&](PortId port) { return sources_.packets->queued(port); });
}

std::vector<SendRate> NetworkReader::read_rates() const {
  std::vector<SendRate> rates;
  if (sources_.packets == nullptr) return rates;
  for (const std::uint32_t id : sources_.packets->queue_pairs()) {
    const QueuePairView pair = sources_.packets->queue_pair_view(id);
    if (pair.busy) rates.push_back({pair.job, pair.source, pair.destination, pair.number, pair.rate});
  }
  return rates;
}

NetworkReader::Failures NetworkReader::read_failures() const {
  Failures failures;
  failures.ports = by_port(
      [&](PortId port) { return static_cast<std::uint8_t>(sources_.packets->is_down(port) ? 1 : 0); });
  if (sources_.failed_hosts) failures.hosts = sources_.failed_hosts();
  return failures;
}

std::vector<CircuitState> NetworkReader::read_circuits() const {
  return by_port([&](PortId port) {
    if (!is_circuit_[port]) return CircuitState::none;
    return sources_.packets->is_circuit_down(port) ? CircuitState::down : CircuitState::up;
  });
}

std::vector<Stall> NetworkReader::read_stalls() const {
  return sources_.stalls ? sources_.stalls() : std::vector<Stall>();
}

}  // namespace netsim
