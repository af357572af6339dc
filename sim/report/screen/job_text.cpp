#include "sim/report/screen/job_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/text.h"

namespace netsim::screen {
namespace {

constexpr std::size_t kBarWidth = 40, kBesideBar = 41;
constexpr std::size_t kJobIndent = 19;
constexpr std::size_t kShownJobs = 100;  // rows of the table of jobs; jobs.csv has all

// Returns "-" for a missing value, such as those of a job that ended no iteration.
std::string or_dash(const std::optional<double>& value, std::string (*format)(double)) {
  return value ? format(*value) : "-";
}

std::string done_text(const JobResult& job) {
  return fmt::format("{} iterations, {} tasks done", out_of(job.iteration_ends.size(), job.iterations),
                     out_of(job.tasks_done, job.tasks_total));
}

void bar(Text out, const std::string& label, double seconds, double whole, std::size_t width) {
  const double part = whole > 0 ? seconds / whole : 0;
  const std::size_t longest = std::min(kBarWidth, width - std::min(width, kBesideBar));
  const auto length = static_cast<std::size_t>(part * static_cast<double>(longest) + 0.5);
  fmt::format_to(out, "    {:<15} {:>10} {:>6.1f} %{}{}\n", label, human_seconds(seconds), 100 * part,
                 length > 0 ? "  " : "", std::string(std::min(length, longest), '#'));
}

// Returns how the run ended: "done" where all jobs are done, or how many jobs are in which state, the first
// one's first.
std::string states_text(const Results& results) {
  std::vector<std::pair<std::string, std::size_t>> states;
  for (const JobResult& job : results.jobs) {
    const auto known = std::find_if(states.begin(), states.end(),
                                    [&job](const auto& state) { return state.first == job.state(); });
    if (known == states.end()) {
      states.emplace_back(job.state(), 1);
    } else {
      ++known->second;
    }
  }
  const bool done = results.outcome == Outcome::done;
  if (states.size() == 1 && done && results.jobs.front().done) return to_string(results.outcome);
  std::string text = done ? "" : to_string(results.outcome);
  for (const auto& [state, count] : states) append_item(text, fmt::format("{} {}", count, state));
  return text;
}

}  // namespace

void header(Text out, const Results& results, const JobResult& job) {
  const bool all = results.outcome != Outcome::done || job.done;
  fmt::format_to(out, "{}: {} GPUs, {}\n\n", printable(job.name), job.gpu_count(),
                 all ? to_string(results.outcome) : job.state());
}

std::vector<TableColumn> job_table(const Results& results, std::size_t most) {
  TableColumn name{"job", 0, true, {}}, gpus{"GPUs", 2, false, {}}, arrival{"arrival", 3, false, {}},
      time{"job time", 0, false, {}}, iteration{"iteration", 1, false, {}}, compute{"compute", 4, false, {}},
      exposed{"exposed", 2, false, {}}, idle{"idle", 5, false, {}}, queued{"queued", 2, false, {}},
      begin{"begin", 2, false, {}}, slowdown{"slowdown", 1, false, {}}, held{"GPU time", 3, false, {}},
      state{"", 0, true, {}};
  for (const JobResult& job : std::span(results.jobs).first(std::min(results.jobs.size(), most))) {
    const JobSummary summary = summarise(job);
    name.cells.push_back(printable(job.name));
    gpus.cells.push_back(fmt::format("{}", job.gpu_count()));
    arrival.cells.push_back(human_seconds(to_seconds(job.arrival)));
    queued.cells.push_back(human_seconds(to_seconds(job.queued())));
    begin.cells.push_back(job.begun ? human_seconds(to_seconds(job.begin)) : "-");
    time.cells.push_back(or_dash(summary.jct_s, human_seconds));
    slowdown.cells.push_back(
        or_dash(job.slowdown(), [](double ratio) { return fmt::format("{:.2f}", ratio); }));
    held.cells.push_back(human_seconds(to_seconds(job.held()) * static_cast<double>(job.gpu_count())));
    iteration.cells.push_back(or_dash(summary.iteration_time_s, human_seconds));
    compute.cells.push_back(human_seconds(summary.compute_s));
    exposed.cells.push_back(human_seconds(summary.exposed_s));
    idle.cells.push_back(human_seconds(summary.idle_s));
    state.cells.push_back(job.done ? "" : job.state());
  }
  if (!results.uses.empty())
    return {name, gpus, arrival, queued, begin, time, slowdown, held, iteration, state};
  std::vector<TableColumn> table{name, gpus, arrival, time, iteration, compute, exposed, idle, state};
  if (std::any_of(results.jobs.begin(), results.jobs.end(),
                  [](const JobResult& job) { return job.queued() > 0; })) {
    table.insert(table.begin() + 3, queued);
  }
  return table;
}

std::vector<std::string> management_lines(const Results& results) {
  if (results.uses.empty()) return {};
  double jct = 0, queued = 0, slowdown = 0, held = 0, pauses = 0;
  std::size_t done = 0;
  for (const JobResult& job : results.jobs) {
    held += to_seconds(job.held()) * static_cast<double>(job.gpu_count());
    if (!job.done) continue;
    ++done;
    jct += to_seconds(job.end - job.arrival);
    queued += to_seconds(job.queued());
    slowdown += job.slowdown().value_or(1);
    pauses += job.pauses;
  }
  const double all = to_seconds(results.simulated) * results.gpus;
  if (done == 0 || all <= 0) return {};
  const auto mean = [&](double sum) { return sum / static_cast<double>(done); };
  return {fmt::format("{} of {} jobs done; {:.1f} % of the GPU time was held until {}", done,
                      results.jobs.size(), 100 * held / all, human_seconds(to_seconds(results.simulated))),
          fmt::format("means: job time {}, queued {}, slowdown {:.2f}, {:.2f} pauses",
                      human_seconds(mean(jct)), human_seconds(mean(queued)), mean(slowdown), mean(pauses))};
}

void jobs(Text out, const Results& results, std::size_t width) {
  fmt::format_to(out, "{} jobs: {}\n\n", results.jobs.size(), states_text(results));
  fmt::format_to(out, "{}", text_table(job_table(results, kShownJobs), 2, width));
  if (kShownJobs < results.jobs.size())
    fmt::format_to(out, "  and {} more, in jobs.csv (--out)\n", results.jobs.size() - kShownJobs);
  const std::vector<std::string> lines = management_lines(results);
  if (!lines.empty()) fmt::format_to(out, "\n");
  for (const std::string& line : lines) fmt::format_to(out, "  {}\n", line);
}

void job_headline(Text out, const JobResult& job, const JobSummary& summary) {
  fmt::format_to(out, "  iteration time   {}", or_dash(summary.iteration_time_s, human_seconds));
  if (job.iterations != 1 || !job.done) fmt::format_to(out, "   ({})", done_text(job));
  fmt::format_to(out, "\n");
  if (summary.jct_s && job.iterations != 1)
    fmt::format_to(out, "  job time         {}\n", human_seconds(*summary.jct_s));
  if (const std::string text = throughput_text(job, summary); !text.empty())
    fmt::format_to(out, "  throughput       {}\n", text);
}

std::string throughput_text(const JobResult& job, const JobSummary& summary) {
  if (!summary.tflops_per_gpu || job.model_flops <= 0) return {};
  std::string text = fmt::format("{:.1f} TFLOP/s per GPU", *summary.tflops_per_gpu);
  if (job.peak_flops > 0) {
    text += fmt::format(", {:.1f} % of the peak of {:.0f}",
                        100 * *summary.tflops_per_gpu * 1e12 / job.peak_flops, job.peak_flops * 1e-12);
  }
  return text;
}

std::string memory_text(const JobResult& job) {
  if (!job.memory) return {};
  const JobMemory& memory = *job.memory;
  return fmt::format("rank {} at {}{}: {}", memory.rank, human_seconds(to_seconds(memory.time - job.begin)),
                     of_capacity(memory.capacity), memory.use.text());
}

std::string recovery_text(const JobResult& job) {
  if (!job.recovery) return {};
  const JobRecovery& r = *job.recovery;
  const auto text = [](Time time) { return human_seconds(to_seconds(time)); };
  std::string parts =
      fmt::format("{:.1f} % of {}: {} restarts, {} of work lost, {} down, {} waiting for storage",
                  100 * r.goodput(), text(r.whole), r.restarts, text(r.lost), text(r.down), text(r.io));
  if (r.paused > 0) parts += fmt::format(", {} paused", text(r.paused));
  return parts;
}

std::string scheduling_text(const JobResult& job) {
  const SchedulingSummary& s = job.scheduling;
  if (s.scheduler.empty()) return {};
  const auto time = [](Time sum) { return human_seconds(to_seconds(sum)); };
  std::string text = fmt::format("{}: {} communications in {} parts", s.scheduler, s.launches, s.parts);
  if (s.fused > 0) text += fmt::format(", {} of them fused", s.fused);
  text += fmt::format("; {} launches overtook an earlier one", s.reordered);
  if (s.held > 0) {
    text += fmt::format("; {} were held, in sum {} by the scheduler and {} by the agreement on an order",
                        s.held, time(s.held_by_scheduler), time(s.held_by_agreement));
  }
  return text;
}

void job_details(Text out, const JobResult& job, std::size_t width) {
  const std::pair<const char*, std::string> lines[] = {
      {"memory", memory_text(job)}, {"goodput", recovery_text(job)}, {"scheduling", scheduling_text(job)}};
  for (const auto& [label, text] : lines) {
    if (!text.empty()) labelled(out, label, text, width, kJobIndent);
  }
}

void breakdown(Text out, const JobResult& job, const JobSummary& summary, std::size_t width) {
  const double whole = summary.compute_s + summary.exposed_s + summary.idle_s;
  if (whole <= 0) return;
  fmt::format_to(out, "\n  where the time of a GPU goes (mean{})\n",
                 job.done ? " per iteration" : ", so far");
  bar(out, "compute", summary.compute_s, whole, width);
  static constexpr std::pair<Stream, const char*> kKinds[] = {
      {Stream::tp, "exposed TP"},          {Stream::pp, "exposed PP"}, {Stream::dp, "exposed DP"},
      {Stream::ep, "exposed EP"},          {Stream::cp, "exposed CP"}, {Stream::io, "exposed IO"},
      {Stream::offload, "exposed offload"}};
  for (const auto& [stream, label] : kKinds) {
    const double exposed = summary.exposed_by_s[static_cast<std::size_t>(stream)];
    if (exposed > 0) bar(out, label, exposed, whole, width);
  }
  bar(out, "idle", summary.idle_s, whole, width);
  const double hidden = summary.communication_s - summary.exposed_s;
  fmt::format_to(out, "    {} of communication, {} of it hidden behind compute\n",
                 human_seconds(summary.communication_s), human_seconds(hidden));
}

std::string progress_text(const JobResult& job) {
  std::string time = human_seconds(to_seconds(job.end - job.begin));
  if (job.done && job.iterations == 1) return time;
  return fmt::format("{} ({})", time, done_text(job));
}

}  // namespace netsim::screen
