#include "sim/scheduling/job_traffic.h"

namespace netsim {

void JobTraffic::record(const Message& message, Bytes bytes, std::uint32_t queue_pair) {
  if (message.credit || message.source == message.destination) return;
  Sent& sent = jobs_[message.traits.job].sent[{message.source, message.destination, queue_pair}];
  sent.last = message;
  sent.bytes += bytes;
}

void JobTraffic::count(JobId job, std::uint32_t iterations) {
  OfJob& of = jobs_[job];
  if (iterations <= of.counted) return;
  of.counted = iterations;
  for (auto& [key, sent] : of.sent) sent.counted = sent.bytes;
}

Bytes JobTraffic::sent(JobId job, GpuId source, GpuId destination) const {
  const auto of = jobs_.find(job);
  if (of == jobs_.end() || of->second.counted == of->second.first) return 0;
  const std::map<Key, Sent>& all = of->second.sent;
  Bytes sum = 0;
  for (auto next = all.lower_bound({source, destination, 0}); next != all.end(); ++next) {
    const auto& [from, to, queue_pair] = next->first;
    if (from != source || to != destination) break;
    sum += next->second.counted;
  }
  return sum / (of->second.counted - of->second.first);
}

std::vector<LinkBytes> JobTraffic::on_links(JobId job) {
  const OfJob& of = jobs_[job];
  if (of.counted == of.first) return {};
  std::map<PortId, Bytes> on_port;
  for (const auto& [key, sent] : of.sent) {
    if (sent.counted == 0) continue;
    const auto& [source, destination, queue_pair] = key;
    for (const PortId port : ports_.path_or_common(path_of_(sent.last), source, destination, queue_pair))
      on_port[port] += sent.counted;
  }
  std::vector<LinkBytes> links;
  for (const auto& [port, bytes] : on_port) links.push_back({port, bytes / (of.counted - of.first)});
  return links;
}

}  // namespace netsim
