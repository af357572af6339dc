#include "sim/report/screen/screen.h"

#include <fmt/format.h>

#include <iterator>
#include <vector>

#include "sim/report/fault_list.h"
#include "sim/report/screen/collective_text.h"
#include "sim/report/screen/job_text.h"
#include "sim/report/screen/network_text.h"
#include "sim/report/screen/path_text.h"
#include "sim/report/screen/screen_text.h"

namespace netsim {
namespace screen {
namespace {

// Writes the results of a run without computation: the flows, then the network.
void traffic(Text out, const Results& results, std::size_t width) {
  constexpr std::size_t kIndent = 19;
  const auto line = [&](const char* label, const std::string& text) {
    labelled(out, label, text, width, kIndent);
  };
  if (results.jobs.size() == 1) {
    header(out, results, results.jobs.front());
    line("time", progress_text(results.jobs.front()));
  } else {
    jobs(out, results, width);
  }
  collectives(out, results, width);
  if (!results.packet_network) return;
  line("flows", flows_done_text(results));
  if (results.flows.count > 0) line("completion time", completion_times(results.flows));
  slowdowns_by_size(out, results, width);
  if (results.simulated > 0) line("throughput", throughput_text(results));
  line("queues", queues_text(results));
  line("network", counters_text(results));
  if (!results.aggregation.empty()) line("aggregation", aggregation_text(results));
  if (!results.flow_scheduling.scheduler.empty())
    line("scheduling", flow_scheduling_text(results.flow_scheduling));
  if (!results.splits.splitter.empty()) line("splits", splits_text(results.splits));
}

// Writes what the table of several jobs does not hold, job by job.
void details_of_jobs(Text out, const Results& results, std::size_t width) {
  constexpr std::size_t kMostPaths = 4;  // jobs with their critical paths; critical_path.csv has all
  std::size_t paths = 0;
  for (const JobResult& job : results.jobs) {
    const bool has_path = !job.paths.empty() && paths < kMostPaths;
    if (!job.memory && !job.recovery && job.scheduling.scheduler.empty() && !has_path) continue;
    fmt::format_to(out, "\n  {}\n", printable(job.name));
    job_details(out, job, width);
    if (!has_path) continue;
    critical_path(out, results, job, summarise(job), width);
    ++paths;
  }
}

void training(Text out, const Results& results, std::size_t width) {
  if (results.jobs.size() > 1) {
    jobs(out, results, width);
    details_of_jobs(out, results, width);
    return;
  }
  const JobResult& job = results.jobs.front();
  const JobSummary summary = summarise(job);
  header(out, results, job);
  job_headline(out, job, summary);
  job_details(out, job, width);
  breakdown(out, job, summary, width);
  critical_path(out, results, job, summary, width);
}

std::string packets_text(const Results& results, double hops) {
  std::string kinds;
  for (int kind = 0; kind < kLinkKinds; ++kind) {
    const std::uint64_t count = results.network.packet_hops[static_cast<std::size_t>(kind)];
    if (count == 0) continue;
    kinds += fmt::format("{}{} {}", kinds.empty() ? "" : ", ", human_count(static_cast<double>(count)),
                         to_string(static_cast<LinkKind>(kind)));
  }
  return fmt::format("{} packets, {} packet-hops ({}), ",
                     human_count(static_cast<double>(results.network.packets)), human_count(hops), kinds);
}

void effort(Text out, const Results& results, std::size_t width) {
  double hops = 0;
  for (const std::uint64_t count : results.network.packet_hops) hops += static_cast<double>(count);
  const double events = static_cast<double>(results.events), wall = results.wall_seconds;
  labelled(out, "simulated",
           human_seconds(to_seconds(results.simulated)) + ": " +
               (results.packet_network ? packets_text(results, hops) : "") + human_count(events) + " events",
           width);
  if (wall <= 0) return;
  labelled(out, "ran for",
           human_duration(wall) + ": " +
               (results.packet_network ? human_count(hops / wall) + " packet-hops/s, " : "") +
               human_count(events / wall) + " events/s",
           width);
}

void list(Text out, const char* title, const std::vector<std::string>& lines, std::size_t width) {
  if (lines.empty()) return;
  fmt::format_to(out, "\n  {}\n", title);
  for (const std::string& line : lines)
    fmt::format_to(out, "    - {}\n", wrapped(printable(line), 6, 6, width));
}

// Writes the faults of links and hosts, as far as a screen has room for them.
void faults(Text out, const Results& results, std::size_t width) {
  constexpr std::size_t kMostLines = 12;
  std::vector<std::string> lines = fault_lines(results.faults, results.simulated);
  if (lines.size() > kMostLines) {
    const std::size_t more = lines.size() - kMostLines + 1;
    lines.resize(kMostLines - 1);
    lines.push_back(fmt::format("{} more lines, which --log warn,network=info shows", more));
  }
  list(out, "faults", lines, width);
}

}  // namespace
}  // namespace screen

std::string render_screen(const Results& results, std::size_t width) {
  std::string text;
  const screen::Text out = std::back_inserter(text);
  if (only_traffic(results)) {
    screen::traffic(out, results, width);
    const JobResult& job = results.jobs.front();
    if (results.jobs.size() == 1) {
      screen::critical_path(out, results, job, summarise(job), width);
    } else {
      screen::details_of_jobs(out, results, width);
    }
    screen::links(out, results, width);
    fmt::format_to(out, "\n");
  } else {
    screen::training(out, results, width);
    screen::links(out, results, width);
    screen::network(out, results, width);
  }
  screen::effort(out, results, width);
  screen::faults(out, results, width);
  screen::list(out, "waiting", results.waiting, width);
  screen::list(out, "notes", results.notes, width);
  return text;
}

}  // namespace netsim
