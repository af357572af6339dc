#include "sim/report/page/fault_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "sim/core/text.h"
#include "sim/report/link_groups.h"
#include "sim/report/screen/job_text.h"

namespace netsim {
namespace {

constexpr std::size_t kMostFaultyJobs = 8;  // jobs whose iterations are named

// Returns the links with the same events, in the order of the first of each.
std::vector<std::vector<FaultyLink>> links_by_events(const std::vector<FaultyLink>& faults) {
  std::vector<std::vector<FaultyLink>> groups;
  for (const FaultyLink& link : faults) {
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const std::vector<FaultyLink>& group) {
      return group.front().events == link.events;
    });
    if (same == groups.end()) {
      groups.push_back({link});
    } else {
      same->push_back(link);
    }
  }
  return groups;
}

const char* mark_word(FaultEvent::Kind kind) {
  if (kind == FaultEvent::Kind::down) return "down";
  return kind == FaultEvent::Kind::up ? "up" : "another rate";
}

std::string iterations_text(const Results& results, const std::vector<Span>& times) {
  std::string text;
  std::size_t jobs = 0;
  for (const JobResult& job : results.jobs) {
    if (!job.begun || !job.computes) continue;
    const std::string hit = iterations_in(job, times);
    if (hit.empty()) continue;
    if (++jobs > kMostFaultyJobs) return text + "; and of further jobs";
    append_item(text, results.jobs.size() == 1 ? hit : job.name + ": " + hit, "; ");
  }
  return text.empty() ? "none" : text;
}

}  // namespace

std::vector<Span> times_of_effect(const std::vector<FaultEvent>& events) {
  std::vector<Span> times;
  Time down = kNever;
  for (const FaultEvent& event : events) {
    if (event.kind == FaultEvent::Kind::loss) times.push_back({0, kNever});
    if (event.kind == FaultEvent::Kind::rate) times.push_back({event.at, kNever});
    if (event.kind == FaultEvent::Kind::down) down = event.at;
    if (event.kind == FaultEvent::Kind::up && down != kNever) {
      times.push_back({down, event.at});
      down = kNever;
    }
  }
  if (down != kNever) times.push_back({down, kNever});
  return times;
}

std::string iterations_in(const JobResult& job, const std::vector<Span>& times) {
  std::string text;
  const std::size_t all = job.iteration_ends.size() + (job.done ? 0 : 1);
  std::size_t first = all;  // of the present range; `all`: there is none
  const auto close_range = [&](std::size_t last) {
    if (first == all) return;
    append_item(text, first == last ? fmt::format("{}", first) : fmt::format("{} to {}", first, last));
    first = all;
  };
  for (std::size_t i = 0; i < all; ++i) {
    const Time begin = i == 0 ? job.begin : job.iteration_ends[i - 1];
    const Time end = i < job.iteration_ends.size() ? job.iteration_ends[i] : job.end;
    const bool hit = std::any_of(times.begin(), times.end(),
                                 [&](const Span& time) { return time.begin < end && time.end > begin; });
    if (!hit && i > 0) close_range(i - 1);
    if (hit && first == all) first = i;
  }
  close_range(all - 1);
  return text;
}

std::vector<FaultRow> fault_rows(const Results& results) {
  std::vector<FaultRow> rows;
  for (const std::vector<FaultyLink>& links : links_by_events(results.faults)) {
    const std::vector<FaultEvent>& events = links.front().events;
    FaultRow row;
    const bool throughout = !events.empty() && events.front().kind == FaultEvent::Kind::loss;
    row.time = throughout || events.empty() ? "throughout" : human_seconds(to_seconds(events.front().at));
    row.text = fault_lines(links, results.simulated).front();
    row.iterations = iterations_text(results, times_of_effect(events));
    for (const FaultEvent& event : events) {
      if (event.kind != FaultEvent::Kind::loss)
        row.marks.emplace_back(event.at, links.front().name + " " + mark_word(event.kind));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string recovered_jobs(const Results& results) {
  std::string text;
  for (const JobResult& job : results.jobs) {
    if (const std::string recovery = screen::recovery_text(job); !recovery.empty())
      append_item(text, fmt::format("Failures of hosts, {}: goodput {}.", job.name, recovery), " ");
  }
  return text;
}

}  // namespace netsim
