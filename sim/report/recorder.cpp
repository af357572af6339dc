#include "sim/report/recorder.h"

#include <algorithm>
#include <array>

#include "sim/network/counters.h"

namespace netsim {
namespace {

// Start values of the hashes, so that equal numbers of different kinds of record hash differently.
constexpr std::uint64_t kTask = hash_name("task"), kCommunication = hash_name("communication"),
                        kFlow = hash_name("flow"), kLink = hash_name("link"), kNetwork = hash_name("network"),
                        kJob = hash_name("job");

template <class... Values>
std::uint64_t hash_all(std::uint64_t start, Values... values) {
  ((start = hash_combine(start, static_cast<std::uint64_t>(values))), ...);
  return start;
}

// Adds the counters of a port to the fingerprint, as PortCounterInfo::hashed says.
void hash_port(std::size_t port, const PortCounters& counters, Fingerprint& all) {
  std::array<std::int64_t, kHashedCounters> places{};
  for (const PortCounterInfo& counter : port_counters()) {
    const std::int64_t value = value_of(counters, counter.field);
    if (counter.hashed > 0) places[counter.hashed - 1U] += value;
    if (counter.hashed_if_set != nullptr && value > 0)
      all.add(hash_all(hash_name(counter.hashed_if_set), port, value));
  }
  std::uint64_t hash = hash_all(kLink, port);
  for (const std::int64_t value : places) hash = hash_all(hash, value);
  all.add(hash);
}

Slowdowns statistics(const TogetherQuantiles& millionths) {
  const auto ratio = [&](std::uint64_t percent) {
    return static_cast<double>(millionths.quantile(percent)) / 1e6;
  };
  return {millionths.count(), millionths.mean() / 1e6, ratio(50), ratio(95), ratio(99)};
}

Percentiles percentiles(const TogetherQuantiles& values) {
  Percentiles all;
  if (values.count() == 0) return all;
  constexpr std::uint64_t kPercent = 100;
  all.reserve(kPercent);
  for (std::uint64_t percent = 1; percent <= kPercent; ++percent) all.push_back(values.quantile(percent));
  return all;
}

}  // namespace

void Recorder::record(const TaskRecord& task) {
  ends_[task.job].add(hash_all(kTask, task.rank, task.task.id, task.start, task.end));
  if (sinks_ != nullptr) sinks_->add(task);
}

void Recorder::record(const CommunicationRecord& communication, const LibraryChoice& choice) {
  ends_[communication.job].add(
      hash_all(kCommunication, communication.id, communication.last_start, communication.end));
  const Time time = time_of(communication);
  if (is_collective(communication.kind)) add_collective(communication, choice, time);
  if (sinks_ != nullptr) sinks_->add(RecordedCommunication{communication, choice});
}

void Recorder::add_collective(const CommunicationRecord& collective, const LibraryChoice& choice, Time time) {
  const CollectiveKey key{collective.kind,  collective.ranks, collective.bytes, choice.own,
                          choice.algorithm, choice.protocol,  choice.channels,  collective.job};
  if (collectives_.size() >= kCollectiveTimes && !collectives_.contains(key)) {
    ++further_collectives_;
    return;
  }
  CollectiveSum& sum = collectives_[key];
  if (sum.count++ == 0) sum.why = choice.why;
  sum.time += time;
}

// Returns the duration of a communication. A communication called behind another one of its series counts
// only the time that it adds. So the durations add up to the time from the start of the first to the end of
// the last.
Time Recorder::time_of(const CommunicationRecord& communication) {
  const Time alone = times_of(communication).time;
  if (communication.series == 0) return alone;
  Series& series = series_[communication.job];
  const bool first = series.number != communication.series;
  const Time before = first ? communication.last_start : series.end;
  series = {communication.series, std::max(before, communication.end)};
  return series.end - before;
}

std::vector<CollectiveTimes> Recorder::collectives() const {
  std::vector<CollectiveTimes> all;
  for (const auto& [key, sum] : collectives_) {
    const auto& [kind, ranks, bytes, own, algorithm, protocol, channels, job] = key;
    all.push_back(
        {kind, ranks, bytes, {algorithm, protocol, channels, sum.why, own}, sum.count, sum.time, job});
  }
  return all;
}

void Recorder::record(const FlowRecord& flow) {
  if (flow.message.credit) return;
  ends_[flow.message.traits.job].add(hash_all(kFlow, flow.id, flow.end));
  flow_times_.add(flow.end - flow.start);
  if (flow.ideal > 0) {
    std::size_t bin = 0;
    while (flow.bytes >= kSizeBins[bin]) ++bin;
    slowdowns_by_size_[bin].add(slowdown_millionths(flow));
  }
  if (sinks_ != nullptr) sinks_->add(flow);
}

void Recorder::record(JobId job, std::uint32_t iteration, const PathStep& step) {
  auto& [steps, time] = path_[job][{step.kind, step.stream, step.collective, step.name}];
  ++steps;
  time += step.end - step.begin;
  if (step.source != kNoIndex) {
    auto& [transfers, moving] = ways_[job][{step.source, step.destination}];
    ++transfers;
    moving += step.end - step.begin;
  }
  for (const PortDelay& delay : step.ports) {
    auto& [transfers, sum] = ports_[job][delay.port];
    ++transfers;
    sum.transmission += delay.transmission;
    sum.queueing += delay.queueing;
    sum.paused += delay.paused;
  }
  if (sinks_ == nullptr) return;
  sinks_->add(RecordedStep{job, iteration, step});
  if (!sinks_->receives<RecordedPortDelay>()) return;
  for (const PortDelay& delay : step.ports) {
    sinks_->add(RecordedPortDelay{job, iteration, step, port_name(delay.port), delay});
  }
}

std::string Recorder::port_name(PortId port) const {
  return port == kNoId ? "further ports" : graph_.port_name(port);
}

std::vector<PathShare> Recorder::path_shares(JobId job, const TaskSource& source) const {
  std::vector<PathShare> shares;
  for (const auto& [key, sum] : path_[job]) {
    const auto& [kind, stream, collective, name] = key;
    const bool held = kind == PathStep::Kind::held;
    shares.push_back({kind, stream, collective, held ? "" : source.name(name), sum.first, sum.second});
  }
  std::stable_sort(shares.begin(), shares.end(),
                   [](const PathShare& a, const PathShare& b) { return a.time > b.time; });
  return shares;
}

std::vector<PathPair> Recorder::path_pairs(JobId job) const {
  std::vector<PathPair> ways;
  for (const auto& [ends, sum] : ways_[job]) ways.push_back({ends.first, ends.second, sum.first, sum.second});
  std::stable_sort(ways.begin(), ways.end(),
                   [](const PathPair& a, const PathPair& b) { return a.time > b.time; });
  return ways;
}

std::vector<PathPort> Recorder::path_ports(JobId job) const {
  std::vector<PathPort> ports;
  for (const auto& [port, sum] : ports_[job]) ports.push_back({port_name(port), sum.first, sum.second});
  std::stable_sort(ports.begin(), ports.end(),
                   [](const PathPort& a, const PathPort& b) { return a.delay.sum() > b.delay.sum(); });
  return ports;
}

Slowdowns Recorder::slowdowns() const { return statistics(TogetherQuantiles(slowdowns_by_size_)); }
Slowdowns Recorder::slowdowns(std::size_t bin) const {
  return statistics(TogetherQuantiles({&slowdowns_by_size_[bin], 1}));
}

Percentiles Recorder::flow_time_percentiles() const {
  return percentiles(TogetherQuantiles({&flow_times_, 1}));
}
Percentiles Recorder::slowdown_percentiles() const {
  return percentiles(TogetherQuantiles(slowdowns_by_size_));
}

std::uint64_t Recorder::fingerprint(const NetworkCounters& network,
                                    const std::vector<LinkResult>& links) const {
  // With several jobs the hash also depends on which job ended when.
  Fingerprint all = ends_.front();
  for (std::size_t job = 1; job < ends_.size(); ++job) all.add(hash_all(kJob, job, ends_[job].value()));
  for (std::size_t port = 0; port < links.size(); ++port) hash_port(port, links[port].counters, all);
  std::array<std::int64_t, kHashedNetworkCounters> places{};
  for (const NetworkCounterInfo& counter : network_counters()) {
    if (counter.hashed > 0) places[counter.hashed - 1U] = value_of(network, counter.field);
  }
  std::uint64_t counters = kNetwork;
  for (const std::int64_t value : places) counters = hash_all(counters, value);
  for (const std::uint64_t hops : network.packet_hops) counters = hash_all(counters, hops);
  all.add(counters);
  return all.value();
}

}  // namespace netsim
