#include "sim/report/fault_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "sim/core/config.h"
#include "sim/core/text.h"
#include "sim/report/timeline.h"

namespace netsim {
namespace {

std::string event_text(const FaultEvent& event) {
  const std::string at = human_seconds(to_seconds(event.at));
  switch (event.kind) {
    case FaultEvent::Kind::loss:
      return fmt::format("loses {:.3g} % of its packets", 100 * event.probability);
    case FaultEvent::Kind::down:
      return "down at " + at;
    case FaultEvent::Kind::up:
      return "up at " + at;
    case FaultEvent::Kind::rate:
      return format_rate(event.rate) + " from " + at + " on";
    case FaultEvent::Kind::failure:
      return "fails at " + at;
  }
  return "?";
}

std::string events_text(const FaultyPart& part, Time end) {
  std::string text;
  for (const FaultEvent& event : part.events) {
    append_item(text, event_text(event));
    if (event.at > end) text += " (after the end of the run)";
  }
  return text;
}

// Returns the name of both directions of a link: "a-b" for "a->b".
std::string both_ways(std::string name) {
  if (const std::size_t arrow = name.find("->"); arrow != std::string::npos) name.replace(arrow, 2, "-");
  return name;
}

void sort_by_time(std::vector<FaultEvent>& events) {
  std::stable_sort(events.begin(), events.end(),
                   [](const FaultEvent& a, const FaultEvent& b) { return a.at < b.at; });
}

// Returns the faults of each port in the order of time.
std::map<PortId, std::vector<FaultEvent>> events_by_port(const FaultSchedule& schedule) {
  using Kind = FaultEvent::Kind;
  std::map<PortId, std::vector<FaultEvent>> events;
  for (const FaultSchedule::Loss& loss : schedule.losses)
    events[loss.port].push_back({0, Kind::loss, 0, loss.probability});
  for (const LinkChange& change : schedule.changes) {
    if (change.kind == LinkChange::Kind::detected) continue;
    const Kind kind = change.kind == LinkChange::Kind::down ? Kind::down
                      : change.kind == LinkChange::Kind::up ? Kind::up
                                                            : Kind::rate;
    events[change.port].push_back({change.at, kind, change.rate, 0});
  }
  for (auto& [port, of_port] : events) sort_by_time(of_port);
  return events;
}

// Returns the name of a host, as its GPUs have it.
std::string name_of_host(HostId host, const Cluster& cluster) {
  const auto gpu = std::find_if(cluster.gpus.begin(), cluster.gpus.end(),
                                [host](const Gpu& of) { return of.host == host; });
  return gpu == cluster.gpus.end() ? "" : host_and_part(cluster.graph.node(gpu->node).name).host;
}

// Returns the end of the fault that begins with an event of a part.
Time end_of_fault(const FaultyPart& part, std::size_t begin) {
  using Kind = FaultEvent::Kind;
  const Kind kind = part.events[begin].kind;
  if (kind != Kind::down && kind != Kind::rate) return kNever;
  const Kind closing = kind == Kind::down ? Kind::up : Kind::rate;
  for (std::size_t i = begin + 1; i < part.events.size(); ++i) {
    if (part.events[i].kind == closing) return part.events[i].at;
  }
  return kNever;
}

// FaultLine: parts of one kind with the same faults.
struct FaultLine {
  std::string first, events;
  FaultyPart::Kind kind = FaultyPart::Kind::link;
  std::vector<std::string> common_ends;  // nodes at which all the links end
  std::size_t parts = 0;
  std::uint64_t lost = 0;
};

// Returns "leaf0-spine0", "2 links of spine0" where all end at one node, or "a-b and 1 other link".
std::string parts_text(const FaultLine& line) {
  if (line.parts == 1) return line.first;
  if (line.common_ends.size() == 1) return counted(line.parts, "link") + " of " + line.common_ends.front();
  return line.first + " and " +
         counted(line.parts - 1, line.kind == FaultyPart::Kind::link ? "other link" : "other host");
}

bool may_hit(const FaultyPart& part, std::size_t job) {
  return part.kind == FaultyPart::Kind::link ||
         std::find(part.jobs.begin(), part.jobs.end(), job) != part.jobs.end();
}

// Returns the iterations of a job that ran during a fault, or nothing. An iteration runs from the end of the
// one before, and one that did not end until the end of the job.
std::optional<HitIterations> hit_iterations(const Results& results, std::size_t number,
                                            const FaultSpan& fault) {
  const JobResult& job = results.jobs[number];
  if (!job.begun) return std::nullopt;
  std::vector<Time> ends = job.iteration_ends;
  if (!job.done && (ends.empty() || ends.back() < job.end)) ends.push_back(job.end);
  if (ends.empty() || fault.event.at >= ends.back() || fault.end <= job.begin) return std::nullopt;
  const auto first = std::upper_bound(ends.begin(), ends.end(), fault.event.at);
  const auto last = std::min(std::lower_bound(ends.begin(), ends.end(), fault.end), std::prev(ends.end()));
  return HitIterations{number, static_cast<std::uint32_t>(first - ends.begin()),
                       static_cast<std::uint32_t>(last - ends.begin())};
}

}  // namespace

std::vector<FaultyPart> faulty_links(const FaultSchedule& schedule, const Graph& graph,
                                     const std::vector<LinkResult>& links) {
  const std::map<PortId, std::vector<FaultEvent>> events = events_by_port(schedule);
  std::vector<FaultyPart> faulty;
  for (const auto& [port, of_port] : events) {
    const auto other = events.find(port ^ 1U);
    const bool both = other != events.end() && other->second == of_port;
    if (both && (port & 1U) != 0) continue;  // the other direction has them
    std::string name = graph.port_name(port);
    std::uint64_t lost = links[port].counters.lost;
    if (both) {
      name = both_ways(std::move(name));
      lost += links[port ^ 1U].counters.lost;
    }
    faulty.push_back({FaultyPart::Kind::link,
                      std::move(name),
                      of_port,
                      lost,
                      {},
                      {graph.node(graph.port(port).node).name, graph.node(graph.port(port).peer_node).name}});
  }
  return faulty;
}

std::vector<FaultyPart> faulty_hosts(const std::vector<HostFailure>& failures,
                                     const std::vector<std::vector<HostId>>& stopped,
                                     const Cluster& cluster) {
  std::map<HostId, std::vector<FaultEvent>> events;
  for (const HostFailure& failure : failures)
    events[failure.host].push_back({failure.at, FaultEvent::Kind::failure, 0, 0});
  std::vector<FaultyPart> faulty;
  faulty.reserve(events.size());
  for (auto& [host, of_host] : events) {
    sort_by_time(of_host);
    FaultyPart part{FaultyPart::Kind::host, name_of_host(host, cluster), std::move(of_host), 0, {}};
    for (std::size_t job = 0; job < stopped.size(); ++job) {
      if (std::find(stopped[job].begin(), stopped[job].end(), host) != stopped[job].end())
        part.jobs.push_back(job);
    }
    faulty.push_back(std::move(part));
  }
  return faulty;
}

std::vector<std::string> fault_lines(const std::vector<FaultyPart>& faults, Time end) {
  std::vector<FaultLine> lines;
  std::map<std::pair<FaultyPart::Kind, std::string>, std::size_t> known;  // by the events in words
  for (const FaultyPart& part : faults) {
    const std::string events = events_text(part, end);
    const auto [it, fresh] = known.try_emplace({part.kind, events}, lines.size());
    if (fresh) lines.push_back({part.name, events, part.kind, part.ends});
    FaultLine& line = lines[it->second];
    ++line.parts;
    line.lost += part.lost;
    std::erase_if(line.common_ends, [&part](const std::string& node) {
      return std::find(part.ends.begin(), part.ends.end(), node) == part.ends.end();
    });
  }
  std::vector<std::string> texts;
  texts.reserve(lines.size());
  for (const FaultLine& line : lines) {
    texts.push_back(
        fmt::format("{}: {}{}", parts_text(line), line.events,
                    line.lost == 0 ? "" : fmt::format("; {} lost", counted(line.lost, "packet"))));
  }
  return texts;
}

std::vector<FaultSpan> fault_spans(const Results& results) {
  std::vector<FaultSpan> spans;
  for (std::size_t i = 0; i < results.faults.size(); ++i) {
    const FaultyPart& part = results.faults[i];
    for (std::size_t e = 0; e < part.events.size(); ++e) {
      if (part.events[e].kind == FaultEvent::Kind::up) continue;
      FaultSpan span{i, part.events[e], end_of_fault(part, e), {}};
      for (std::size_t job = 0; job < results.jobs.size(); ++job) {
        if (!may_hit(part, job)) continue;
        if (const auto hit = hit_iterations(results, job, span)) span.hits.push_back(*hit);
      }
      spans.push_back(std::move(span));
    }
  }
  std::stable_sort(spans.begin(), spans.end(),
                   [](const FaultSpan& a, const FaultSpan& b) { return a.event.at < b.event.at; });
  return spans;
}

}  // namespace netsim
