#include "sim/scheduling/job/phase_recorder.h"

#include <algorithm>
#include <set>
#include <utility>

namespace netsim {

PhaseRecorder::PhaseRecorder(std::unique_ptr<Endpoint> network, Engine& engine, const Cluster& cluster,
                             Setup setup)
    : ForwardingEndpoint(std::move(network), cluster),
      engine_(engine),
      setup_(std::move(setup)),
      ports_(cluster),
      notes_(engine.sets()) {}

// ---- Messages. These are called from events of the source's set.

void PhaseRecorder::set_listener(MessageListener* listener) {
  listener_ = listener;
  network_->set_listener(this);
}

PhaseRecorder::Pair PhaseRecorder::pair_of(const Message& message) const {
  return {message.traits.job, message.source, message.destination, lane_of(message, setup_.queue_pairs)};
}

MessageHandle PhaseRecorder::send(const SendRequest& request) {
  const Message& message = request.message;
  if (!is_over_fabric(message)) return network_->send(request);
  const auto [entry, added] = notes_of(message.source).try_emplace(pair_of(message));
  PairNotes& notes = entry->second;
  if (added) notes.first = message;
  const Time now = now_of(message.source);
  const bool goes_on =
      notes.in_flight > 0 || (!notes.spans.empty() && now - notes.spans.back().end < setup_.resolution);
  if (!goes_on) notes.spans.push_back({now, now, 0});
  notes.spans.back().bytes += message.bytes;
  ++notes.in_flight;
  return network_->send(request);
}

void PhaseRecorder::message_sent(const SendCompletion& completion) {
  const Message& message = completion.request.message;
  if (is_over_fabric(message)) {
    PairNotes& notes = notes_of(message.source).at(pair_of(message));
    --notes.in_flight;
    notes.spans.back().end = now_of(message.source);
    notes.spans.back().bytes -= message.bytes - completion.bytes;
  }
  listener_->message_sent(completion);
}

// ---- Notes. These are called between events.

std::vector<JobActivity> PhaseRecorder::activities(JobId job, Time begin, Time end) {
  std::vector<JobActivity> found;
  for (Notes& notes : notes_) {
    for (auto entry = notes.lower_bound({job, 0, 0, 0}); entry != notes.end() && entry->first.job == job;
         ++entry) {
      PairNotes& pair = entry->second;
      if (pair.ports.empty()) pair.ports = ports_of(pair.first);
      for (const Span& span : pair.spans) {
        const bool open = pair.in_flight > 0 && &span == &pair.spans.back();
        const Time last = open ? std::max(engine_.now(), span.begin) : span.end;
        const Time from = std::max(span.begin, begin), to = std::min(last, end);
        if (from >= to) continue;
        const auto share =
            static_cast<Bytes>(static_cast<Int128>(span.bytes) * (to - from) / (last - span.begin));
        found.push_back({pair.first, pair.ports, from, to, share});
      }
    }
  }
  const auto order = [&](const JobActivity& a) { return std::pair{pair_of(a.first), a.begin}; };
  std::sort(found.begin(), found.end(),
            [&](const JobActivity& a, const JobActivity& b) { return order(a) < order(b); });
  return found;
}

std::vector<JobId> PhaseRecorder::jobs() const {
  std::set<JobId> jobs;
  for (const Notes& notes : notes_)
    for (const auto& [pair, unused] : notes) jobs.insert(pair.job);
  return {jobs.begin(), jobs.end()};
}

void PhaseRecorder::forget(Time time) {
  for (Notes& notes : notes_) {
    for (auto entry = notes.begin(); entry != notes.end();) {
      PairNotes& pair = entry->second;
      const std::size_t open = pair.in_flight > 0 ? 1 : 0;
      const auto kept = std::find_if(pair.spans.begin(), pair.spans.end() - static_cast<std::ptrdiff_t>(open),
                                     [&](const Span& span) { return span.end >= time; });
      pair.spans.erase(pair.spans.begin(), kept);
      entry = pair.spans.empty() ? notes.erase(entry) : std::next(entry);
    }
  }
}

std::vector<PortId> PhaseRecorder::ports_of(const Message& message) {
  if (message.source == message.destination || reach(message.source, message.destination) != Reach::scale_out)
    return {};
  return ports_.path_or_common(network_->path_of(message), message.source, message.destination,
                               lane_of(message, setup_.queue_pairs));
}

}  // namespace netsim
