#include "sim/report/screen.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

namespace netsim {
namespace {

constexpr std::size_t kBarWidth = 40;
constexpr std::size_t kBusiestLinks = 5;

using Text = std::back_insert_iterator<std::string>;

// Three significant digits: 1.23, 12.3, 123.
std::string three_digits(double value) {
  const double size = std::abs(value);
  return fmt::format("{:.{}f}", value, size < 9.995 ? 2 : size < 99.95 ? 1 : 0);
}

std::string scaled(double value, std::initializer_list<std::pair<double, const char*>> units) {
  for (const auto& [factor, unit] : units) {
    if (std::abs(value) >= factor * 0.9995) return three_digits(value / factor) + " " + unit;
  }
  const auto& [factor, unit] = *std::rbegin(units);
  return three_digits(value / factor) + " " + unit;
}

// A cell that is not there: a job that ended no iteration.
std::string or_dash(const std::optional<double>& value, std::string (*format)(double)) {
  return value ? format(*value) : "-";
}

void header(Text out, const Results& results, const JobResult& job) {
  fmt::format_to(out, "{}: {} GPUs, {}\n\n", job.name, job.gpus.size(), to_string(results.outcome));
}

void headline(Text out, const JobResult& job, const JobSummary& summary) {
  fmt::format_to(out, "  iteration time   {}", or_dash(summary.iteration_time_s, human_seconds));
  if (job.iterations > 1 || !job.done) {
    fmt::format_to(out, "   ({} of {} iterations, {} of {} tasks done)", job.iteration_ends.size(),
                   job.iterations, job.tasks_done, job.tasks_total);
  }
  fmt::format_to(out, "\n");
  if (summary.jct_s && job.iterations > 1)
    fmt::format_to(out, "  job time         {}\n", human_seconds(*summary.jct_s));
  if (summary.tflops_per_gpu && job.model_flops > 0) {
    fmt::format_to(out, "  throughput       {:.1f} TFLOP/s per GPU", *summary.tflops_per_gpu);
    if (job.peak_flops > 0) {
      fmt::format_to(out, ", {:.1f} % of the peak of {:.0f}",
                     100 * *summary.tflops_per_gpu * 1e12 / job.peak_flops, job.peak_flops * 1e-12);
    }
    fmt::format_to(out, "\n");
  }
}

void bar(Text out, const std::string& label, double seconds, double whole) {
  const double part = whole > 0 ? seconds / whole : 0;
  const auto width = static_cast<std::size_t>(part * kBarWidth + 0.5);
  fmt::format_to(out, "    {:<12} {:>10} {:>6.1f} %{}{}\n", label, human_seconds(seconds), 100 * part,
                 width > 0 ? "  " : "", std::string(std::min(width, kBarWidth), '#'));
}

// Compute, what stayed exposed by kind, idle: they add up to the iteration time.
void breakdown(Text out, const JobResult& job, const JobSummary& summary) {
  const double whole = summary.compute_s + summary.exposed_s + summary.idle_s;
  if (whole <= 0) return;
  fmt::format_to(out, "\n  where the time of a GPU goes (mean{})\n",
                 job.done ? " per iteration" : ", so far");
  bar(out, "compute", summary.compute_s, whole);
  static constexpr std::pair<Stream, const char*> kKinds[] = {{Stream::tp, "exposed TP"},
                                                              {Stream::pp, "exposed PP"},
                                                              {Stream::dp, "exposed DP"},
                                                              {Stream::ep, "exposed EP"},
                                                              {Stream::cp, "exposed CP"}};
  for (const auto& [stream, label] : kKinds) {
    const double exposed = summary.exposed_by_s[static_cast<std::size_t>(stream)];
    if (exposed > 0) bar(out, label, exposed, whole);
  }
  bar(out, "idle", summary.idle_s, whole);
  const double hidden = summary.communication_s - summary.exposed_s;
  fmt::format_to(out, "    {} of communication, {} of it hidden behind compute\n",
                 human_seconds(summary.communication_s), human_seconds(hidden));
}

std::vector<const LinkResult*> busiest(const Results& results) {
  std::vector<const LinkResult*> links;
  for (const LinkResult& link : results.links) {
    if (link.counters.wire_bytes > 0) links.push_back(&link);
  }
  const auto busier = [&results](const LinkResult* a, const LinkResult* b) {
    return utilisation(*a, results.simulated) > utilisation(*b, results.simulated);
  };
  std::stable_sort(links.begin(), links.end(), busier);
  std::array<std::size_t, kLinkKinds> shown{};
  std::vector<const LinkResult*> chosen;
  for (const LinkResult* link : links) {
    const bool fabric = link->kind == LinkKind::ethernet || link->kind == LinkKind::infiniband;
    if (shown[static_cast<std::size_t>(link->kind)]++ < (fabric ? kBusiestLinks : 1)) chosen.push_back(link);
  }
  return chosen;
}

void links(Text out, const Results& results) {
  const auto chosen = busiest(results);
  if (chosen.empty()) return;
  fmt::format_to(out, "\n  {:<28} {:>10} {:>10} {:>8} {:>9} {:>9} {:>9} {:>9}\n", "busiest links", "kind",
                 "rate", "busy", "carried", "max queue", "ECN marks", "held back");
  for (const LinkResult* link : chosen) {
    const PortCounters& c = link->counters;
    fmt::format_to(out, "  {:<28} {:>10} {:>5.0f} Gb/s {:>6.1f} % {:>9} {:>9} {:>9} {:>9}\n", link->name,
                   to_string(link->kind), static_cast<double>(link->rate) * 1e-9,
                   100 * utilisation(*link, results.simulated),
                   human_bytes(static_cast<double>(c.wire_bytes)),
                   human_bytes(static_cast<double>(c.max_queue)), c.ecn_marks,
                   human_seconds(to_seconds(c.paused + c.credit_stalled)));
  }
}

void network(Text out, const Results& results) {
  if (!results.packet_network) return;
  const NetworkCounters& n = results.network;
  fmt::format_to(out, "\n  flows     {} done", n.flows_done);
  if (results.flows.count > 0) {
    fmt::format_to(out, ", completion time mean {}, p50 {}, p99 {}, max {}",
                   human_seconds(results.flows.mean * 1e-12), human_seconds(to_seconds(results.flows.p50)),
                   human_seconds(to_seconds(results.flows.p99)),
                   human_seconds(to_seconds(results.flows.maximum)));
  }
  if (results.slowdowns.count > 0) {
    fmt::format_to(out, "\n  slowdown  mean {:.2f}, p50 {:.2f}, p95 {:.2f}, p99 {:.2f}",
                   results.slowdowns.mean, results.slowdowns.p50, results.slowdowns.p95,
                   results.slowdowns.p99);
  }
  const bool credits = results.knobs.flow_control == "credits";
  fmt::format_to(out, "\n  network   {} drops, {} ECN marks, {} CNPs, {} {}, longest queue {}\n",
                 n.drops + n.no_route, n.ecn_marks, n.cnps, credits ? n.credit_stalls : n.pfc_pauses,
                 credits ? "credit stalls" : "pauses", human_bytes(static_cast<double>(n.max_queue)));
  if (const auto& queues = results.sampled_queues; queues && queues->count > 0) {
    fmt::format_to(out, "  queues    sampled while not empty: mean {}, p50 {}, p95 {}, p99 {}\n",
                   human_bytes(queues->mean), human_bytes(static_cast<double>(queues->p50)),
                   human_bytes(static_cast<double>(queues->p95)),
                   human_bytes(static_cast<double>(queues->p99)));
  }
}

void effort(Text out, const Results& results) {
  double hops = 0;
  for (const std::uint64_t count : results.network.packet_hops) hops += static_cast<double>(count);
  const double events = static_cast<double>(results.events);
  fmt::format_to(out, "  simulated {}: ", human_seconds(to_seconds(results.simulated)));
  if (results.packet_network) {
    fmt::format_to(out, "{} packets, {} packet-hops (",
                   human_count(static_cast<double>(results.network.packets)), human_count(hops));
    const char* comma = "";
    for (int kind = 0; kind < kLinkKinds; ++kind) {
      const std::uint64_t count = results.network.packet_hops[static_cast<std::size_t>(kind)];
      if (count == 0) continue;
      fmt::format_to(out, "{}{} {}", comma, human_count(static_cast<double>(count)),
                     to_string(static_cast<LinkKind>(kind)));
      comma = ", ";
    }
    fmt::format_to(out, "), ");
  }
  fmt::format_to(out, "{} events\n", human_count(events));
  if (results.wall_seconds <= 0) return;
  fmt::format_to(out, "  ran for   {}: ", human_seconds(results.wall_seconds));
  if (results.packet_network)
    fmt::format_to(out, "{} packet-hops/s, ", human_count(hops / results.wall_seconds));
  fmt::format_to(out, "{} events/s\n", human_count(events / results.wall_seconds));
}

void list(Text out, const char* title, const std::vector<std::string>& lines) {
  if (lines.empty()) return;
  fmt::format_to(out, "\n  {}\n", title);
  for (const std::string& line : lines) fmt::format_to(out, "    - {}\n", line);
}

}  // namespace

std::string human_seconds(double seconds) {
  if (seconds == 0) return "0 s";
  return scaled(seconds, {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}, {1e-12, "ps"}});
}

std::string human_count(double count) {
  if (count < 1000) return fmt::format("{:.0f}", count);
  return scaled(count, {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}});
}

std::string human_bytes(double bytes) {
  if (bytes < 1000) return fmt::format("{:.0f} B", bytes);
  return scaled(bytes, {{1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "KB"}});
}

std::string render_screen(const Results& results) {
  std::string text;
  const Text out = std::back_inserter(text);
  for (const JobResult& job : results.jobs) {
    const JobSummary summary = summarise(job);
    header(out, results, job);
    headline(out, job, summary);
    breakdown(out, job, summary);
  }
  links(out, results);
  network(out, results);
  effort(out, results);
  list(out, "waiting", results.waiting);
  list(out, "notes", results.notes);
  return text;
}

std::string render_prediction(const Prediction& prediction, std::uint32_t gpus) {
  const auto count = [](std::uint64_t value) { return human_count(static_cast<double>(value)); };
  const Volume& volume = prediction.volume;
  const Calibration& calibration = prediction.calibration;
  std::string text;
  const Text out = std::back_inserter(text);
  fmt::format_to(out, "ranks              {} on {} GPUs\n", prediction.ranks, gpus);
  fmt::format_to(out, "tasks              {}\n", count(volume.tasks));
  fmt::format_to(out, "over the fabric    {}, {} flows\n",
                 human_bytes(static_cast<double>(volume.scale_out_bytes)), count(volume.flows));
  fmt::format_to(out, "everywhere         {} data packets, {} packet-hops\n", count(volume.packets),
                 count(volume.hops()));
  fmt::format_to(out, "memory, about      {}\n", human_bytes(static_cast<double>(prediction.memory)));
  fmt::format_to(out, "this takes, about  {:.{}f} minutes\n", prediction.minutes,
                 prediction.minutes < 0.1 ? 3 : 1);
  if (calibration.complete) {
    fmt::format_to(out, "calibration        the whole run: {}\n", human_seconds(calibration.end.seconds));
  } else {
    fmt::format_to(out, "calibration        {} of the run itself, {:.2g} % of its work\n",
                   human_seconds(calibration.end.seconds), 100 * prediction.share);
  }
  return text;
}

}  // namespace netsim
