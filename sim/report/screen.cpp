#include "sim/report/screen.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "sim/core/config.h"

namespace netsim {
namespace {

constexpr std::size_t kBarWidth = 40, kBesideBar = 41;
constexpr std::size_t kBusiestLinks = 5;

using Text = std::back_insert_iterator<std::string>;

// Writes "  label     text", with the text wrapped beside the label.
void labelled(Text out, const char* label, const std::string& text, std::size_t width,
              std::size_t indent = 12) {
  fmt::format_to(out, "  {:<{}}{}\n", label, indent - 2, wrapped(text, indent, indent, width));
}

// Returns "-" for a missing value, such as those of a job that ended no iteration.
std::string or_dash(const std::optional<double>& value, std::string (*format)(double)) {
  return value ? format(*value) : "-";
}

void header(Text out, const Results& results, const JobResult& job) {
  fmt::format_to(out, "{}: {} GPUs, {}\n\n", printable(job.name), job.gpus.size(),
                 to_string(results.outcome));
}

std::string done_text(const JobResult& job) {
  return fmt::format("{} iterations, {} tasks done", out_of(job.iteration_ends.size(), job.iterations),
                     out_of(job.tasks_done, job.tasks_total));
}

void job_headline(Text out, const JobResult& job, const JobSummary& summary) {
  fmt::format_to(out, "  iteration time   {}", or_dash(summary.iteration_time_s, human_seconds));
  if (job.iterations != 1 || !job.done) fmt::format_to(out, "   ({})", done_text(job));
  fmt::format_to(out, "\n");
  if (summary.jct_s && job.iterations != 1)
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

std::string of_capacity(Bytes capacity) {
  return capacity > 0 ? " of " + gibibytes(capacity) : std::string();
}

// Writes the memory of the fullest GPU.
void memory(Text out, const JobResult& job, std::size_t width) {
  if (!job.memory) return;
  const JobMemory& memory = *job.memory;
  const std::string text =
      fmt::format("rank {} at {}{}: {}", memory.rank, human_seconds(to_seconds(memory.time - job.begin)),
                  of_capacity(memory.capacity), memory.use.text());
  fmt::format_to(out, "  memory           {}\n", wrapped(text, 19, 19, width));
}

void recovery(Text out, const JobResult& job, std::size_t width) {
  if (!job.recovery) return;
  const JobRecovery& r = *job.recovery;
  const auto text = [](Time time) { return human_seconds(to_seconds(time)); };
  fmt::format_to(
      out, "  goodput          {}\n",
      wrapped(
          fmt::format("{:.1f} % of {}: {} restarts, {} of work lost, {} down, {} waiting for storage",
                      100 * r.goodput(), text(r.whole), r.restarts, text(r.lost), text(r.down), text(r.io)),
          19, 19, width));
}

void bar(Text out, const std::string& label, double seconds, double whole, std::size_t width) {
  const double part = whole > 0 ? seconds / whole : 0;
  const std::size_t longest = std::min(kBarWidth, width - std::min(width, kBesideBar));
  const auto length = static_cast<std::size_t>(part * static_cast<double>(longest) + 0.5);
  fmt::format_to(out, "    {:<15} {:>10} {:>6.1f} %{}{}\n", label, human_seconds(seconds), 100 * part,
                 length > 0 ? "  " : "", std::string(std::min(length, longest), '#'));
}

// Writes compute, exposed communication by stream, and idle time. They add up to the iteration time.
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

// Returns the possible reasons for waiting at the sender in this configuration.
std::string at_sender(const Results& results) {
  bool controlled = results.knobs.congestion_control != "none", window = results.knobs.window;
  for (const FabricResult& fabric : results.fabrics) {
    controlled = controlled || fabric.knobs.congestion_control != "none";
    window = window || fabric.knobs.window;
  }
  std::string text = "at the sender: other messages";
  if (controlled || window) text += ", window";
  if (controlled) text += ", pace";
  if (results.network.retransmissions > 0) text += ", repeats";
  return text;
}

// Returns the parts of the critical paths of all iterations together, the largest first.
std::vector<std::pair<std::string, Time>> path_parts(const Results& results, const JobResult& job) {
  std::vector<std::pair<std::string, Time>> parts{
      {"compute", 0},          {"library latency", 0},    {"transmission", 0},     {"propagation", 0},
      {"queueing", 0},         {"pauses, no credits", 0}, {at_sender(results), 0}, {"acknowledgements", 0},
      {"optical circuits", 0}, {"communication", 0},      {"nothing ran", 0}};
  for (const PathSummary& path : job.paths) {
    const Time times[] = {path.compute,  path.launch,    path.transmission, path.propagation,
                          path.queueing, path.paused,    path.at_sender,    path.acknowledgement,
                          path.circuits, path.undivided, path.held};
    for (std::size_t i = 0; i < parts.size(); ++i) parts[i].second += times[i];
  }
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return parts;
}

std::string share_text(const PathShare& share) {
  if (share.kind == PathStep::Kind::held) return "nothing ran: an earliest start";
  if (share.kind == PathStep::Kind::compute) return "compute " + printable(share.name);
  if (share.kind == PathStep::Kind::circuits)
    return fmt::format("optical circuits {} ({})", printable(share.name), to_string(share.stream));
  if (share.stream == Stream::offload)
    return fmt::format("{}: {} (offload)", to_string(share.kind), printable(share.name));
  const bool message = share.collective == CollectiveKind::point_to_point;
  return fmt::format("{}: {} {} ({})", to_string(share.kind),
                     message ? "message" : to_string(share.collective), printable(share.name),
                     to_string(share.stream));
}

// Writes the ports that took most of the iterations' critical paths.
void path_ports(Text out, const JobResult& job, const JobSummary& summary, std::size_t width) {
  constexpr std::size_t kPorts = 5;
  if (job.path_ports.empty()) return;
  TableColumn name{"ports on it", 0, true, {}}, time{"time", 0, false, {}},
      transmission{"transmission", 3, false, {}}, queueing{"queueing", 0, false, {}},
      paused{"held back", 1, false, {}}, without{"without it, at least", 2, false, {}};
  const double iterations = static_cast<double>(job.paths.size());
  const auto mean = [iterations](Time all) { return to_seconds(all) / iterations; };
  for (std::size_t i = 0; i < std::min(kPorts, job.path_ports.size()); ++i) {
    const auto& [port, steps, delay] = job.path_ports[i];
    name.cells.push_back(printable(port));
    time.cells.push_back(human_seconds(mean(delay.sum())));
    transmission.cells.push_back(human_seconds(mean(delay.transmission)));
    queueing.cells.push_back(human_seconds(mean(delay.queueing)));
    paused.cells.push_back(human_seconds(mean(delay.paused)));
    without.cells.push_back(human_seconds(*summary.iteration_time_s - mean(delay.sum())));
  }
  fmt::format_to(out, "\n{}", text_table({name, time, transmission, queueing, paused, without}, 2, width));
}

// Writes the parts of the iterations' critical paths, and how short an iteration could be without each of the
// largest. That is a lower bound, because another path may be longer then.
void critical_path(Text out, const Results& results, const JobResult& job, const JobSummary& summary,
                   std::size_t width) {
  constexpr std::size_t kCauses = 5;
  if (job.paths.empty() || !summary.iteration_time_s) return;
  const double iterations = static_cast<double>(job.paths.size());
  TableColumn cause{"critical path (mean per iteration)", 0, true, {}}, time{"time", 0, false, {}},
      part{"part", 0, false, {}}, without{"without it, at least", 1, false, {}};
  const auto add = [&](const std::string& name, Time all) {
    const double seconds = to_seconds(all) / iterations;
    cause.cells.push_back(name);
    time.cells.push_back(human_seconds(seconds));
    part.cells.push_back(fmt::format("{:.1f} %", 100 * seconds / *summary.iteration_time_s));
    without.cells.push_back(human_seconds(*summary.iteration_time_s - seconds));
  };
  for (const auto& [name, all] : path_parts(results, job)) {
    if (all > 0) add(name, all);
  }
  for (std::size_t i = 0; i < std::min(kCauses, job.path_shares.size()); ++i)
    add("- " + share_text(job.path_shares[i]), job.path_shares[i].time);
  fmt::format_to(out, "\n{}", text_table({cause, time, part, without}, 2, width));
  if (job.path_pairs.empty()) return;
  const PathPair& pair = job.path_pairs.front();
  labelled(
      out, "slowest pair",
      fmt::format("{} from {} to {}", human_seconds(to_seconds(pair.time) / iterations),
                  printable(results.gpu_names[pair.source]), printable(results.gpu_names[pair.destination])),
      width, 15);
  path_ports(out, job, summary, width);
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
    const bool fabric = is_packet_link(link->kind);
    if (shown[static_cast<std::size_t>(link->kind)]++ < (fabric ? kBusiestLinks : 1)) chosen.push_back(link);
  }
  return chosen;
}

void links(Text out, const Results& results, std::size_t width) {
  const auto chosen = busiest(results);
  if (chosen.empty()) return;
  TableColumn name{"busiest links", 0, true, {}}, kind{"kind", 7, false, {}}, rate{"rate", 3, false, {}},
      busy{"busy", 0, false, {}}, carried{"carried", 6, false, {}}, queue{"max queue", 1, false, {}},
      marks{"ECN marks", 4, false, {}}, held_back{"held back", 2, false, {}};
  for (const LinkResult* link : chosen) {
    const PortCounters& c = link->counters;
    name.cells.push_back(printable(link->name));
    kind.cells.emplace_back(to_string(link->kind));
    rate.cells.push_back(fmt::format("{:.0f} Gb/s", static_cast<double>(link->rate) * 1e-9));
    busy.cells.push_back(fmt::format("{:.1f} %", 100 * utilisation(*link, results.simulated)));
    carried.cells.push_back(human_bytes(static_cast<double>(c.wire_bytes)));
    queue.cells.push_back(human_bytes(static_cast<double>(c.max_queue)));
    marks.cells.push_back(fmt::format("{}", c.ecn_marks));
    held_back.cells.push_back(human_seconds(to_seconds(c.paused + c.credit_stalled)));
  }
  fmt::format_to(out, "\n{}",
                 text_table({name, kind, rate, busy, carried, queue, marks, held_back}, 2, width));
}

std::string completion_times(const FlowTimes& flows) {
  return fmt::format("mean {}, p50 {}, p99 {}, max {}", human_seconds(flows.mean * 1e-12),
                     human_seconds(to_seconds(flows.p50)), human_seconds(to_seconds(flows.p99)),
                     human_seconds(to_seconds(flows.maximum)));
}

std::string slowdown_text(const Slowdowns& slowdowns) {
  return fmt::format("mean {:.2f}, p50 {:.2f}, p95 {:.2f}, p99 {:.2f}", slowdowns.mean, slowdowns.p50,
                     slowdowns.p95, slowdowns.p99);
}

std::string counters_text(const Results& results) {
  const NetworkCounters& n = results.network;
  bool credits = results.knobs.flow_control == "credits", pauses = !credits;
  for (const FabricResult& fabric : results.fabrics) {
    const bool own = fabric.knobs.flow_control == "credits";
    if (&fabric == &results.fabrics.front()) credits = pauses = false;
    (own ? credits : pauses) = true;
  }
  std::string held = pauses ? fmt::format("{} pauses", n.pfc_pauses) : "";
  if (credits) held += fmt::format("{}{} credit stalls", pauses ? ", " : "", n.credit_stalls);
  const std::string no_way = n.no_route > 0 ? fmt::format("{} packets without a route, ", n.no_route) : "";
  return fmt::format("{} drops, {}{} ECN marks, {} CNPs, {}", n.drops, no_way, n.ecn_marks, n.cnps, held);
}

std::string queues_text(const Results& results) {
  const auto bytes = [](auto value) { return human_bytes(static_cast<double>(value)); };
  std::string longest = "longest at a switch " + bytes(results.network.max_queue);
  if (results.network.max_host_queue > 0) longest += ", in a host " + bytes(results.network.max_host_queue);
  const auto& queues = results.sampled_queues;
  if (!queues || queues->count == 0) return longest;
  return fmt::format("{}; sampled while not empty: mean {}, p50 {}, p95 {}, p99 {}", longest,
                     bytes(queues->mean), bytes(queues->p50), bytes(queues->p95), bytes(queues->p99));
}

void network(Text out, const Results& results, std::size_t width) {
  if (!results.packet_network) return;
  fmt::format_to(out, "\n");
  std::string flows = fmt::format("{} done", results.network.flows_done);
  if (results.flows.count > 0) flows += ", completion time " + completion_times(results.flows);
  labelled(out, "flows", flows, width);
  if (results.slowdowns.count > 0) labelled(out, "slowdown", slowdown_text(results.slowdowns), width);
  labelled(out, "queues", queues_text(results), width);
  labelled(out, "network", counters_text(results), width);
}

std::string bin_name(std::size_t bin) {
  const auto limit = [](std::size_t i) { return format_bytes(kSizeBins[i]); };
  if (bin == 0) return "below " + limit(0);
  if (bin + 1 == kSizeBins.size()) return "from " + limit(bin - 1);
  return limit(bin - 1) + " to " + limit(bin);
}

// Writes a table with a line for each flow size bin, if at least two bins have flows.
void slowdowns_by_size(Text out, const Results& results, std::size_t width) {
  TableColumn size{"slowdown of flows", 0, true, {}}, flows{"flows", 1, false, {}},
      mean{"mean", 0, false, {}}, p50{"p50", 0, false, {}}, p95{"p95", 2, false, {}},
      p99{"p99", 0, false, {}};
  const auto add = [&](const std::string& name, const Slowdowns& s) {
    size.cells.push_back(name);
    flows.cells.push_back(fmt::format("{}", s.count));
    mean.cells.push_back(fmt::format("{:.2f}", s.mean));
    p50.cells.push_back(fmt::format("{:.2f}", s.p50));
    p95.cells.push_back(fmt::format("{:.2f}", s.p95));
    p99.cells.push_back(fmt::format("{:.2f}", s.p99));
  };
  for (std::size_t bin = 0; bin < kSizeBins.size(); ++bin) {
    if (results.slowdowns_by_size[bin].count > 0) add(bin_name(bin), results.slowdowns_by_size[bin]);
  }
  if (size.cells.size() > 1) add("all", results.slowdowns);
  if (size.cells.empty()) return;
  fmt::format_to(out, "\n{}\n", text_table({size, flows, mean, p50, p95, p99}, 2, width));
}

// Returns the algorithm: "tree", or "nccl: tree" if the workload's algorithm nccl chose it.
std::string algorithm_text(const LibraryChoice& choice) {
  return choice.own.empty() || choice.own == choice.algorithm ? choice.algorithm
                                                              : choice.own + ": " + choice.algorithm;
}

// Writes the columns of nccl-tests, and the algorithm if the workload names any. There is one row where
// nccl-tests has two, because in place and out of place are the same here.
void collectives(Text out, const Results& results, std::size_t width) {
  constexpr std::size_t kRows = 1000;
  if (results.collectives.empty()) return;
  if (results.collectives.size() > kRows) {
    fmt::format_to(out, "\n  {} kinds and sizes of collectives: --out DIR writes bandwidths.csv\n",
                   results.collectives.size());
    return;
  }
  TableColumn name{"collective", 4, true, {}}, ranks{"ranks", 3, false, {}}, size{"size (B)", 0, false, {}},
      count{"count", 5, false, {}}, type{"type", 7, false, {}}, reduction{"redop", 6, false, {}},
      protocol{"protocol", 1, true, {}}, time{"time (us)", 0, false, {}}, runs{"algorithm", 1, true, {}},
      algorithm{"algbw (GB/s)", 2, false, {}}, bus{"busbw (GB/s)", 0, false, {}};
  for (TableColumn* column : {&name, &ranks, &type, &reduction, &protocol, &runs}) column->said_once = true;
  const bool named = std::any_of(results.collectives.begin(), results.collectives.end(),
                                 [](const CollectiveTimes& row) { return !row.choice.own.empty(); });
  for (const CollectiveTimes& row : results.collectives) {
    name.cells.emplace_back(to_string(row.kind));
    ranks.cells.push_back(fmt::format("{}", row.ranks));
    size.cells.push_back(fmt::format("{}", row.bytes));
    count.cells.push_back(fmt::format("{}", row.elements()));
    type.cells.emplace_back("float");
    reduction.cells.emplace_back(row.reduction());
    if (named) runs.cells.push_back(algorithm_text(row.choice));
    protocol.cells.emplace_back(to_string(row.choice.protocol));
    time.cells.push_back(fmt::format("{:.2f}", row.mean_s() * 1e6));
    algorithm.cells.push_back(fmt::format("{:.2f}", row.algorithm_bandwidth() * 1e-9));
    bus.cells.push_back(fmt::format("{:.2f}", row.bus_bandwidth() * 1e-9));
  }
  fmt::format_to(
      out, "\n{}\n",
      named ? text_table({name, ranks, size, count, type, reduction, runs, protocol, time, algorithm, bus}, 2,
                         width)
            : text_table({name, ranks, size, count, type, reduction, protocol, time, algorithm, bus}, 2,
                         width));
}

std::string progress_text(const JobResult& job) {
  std::string time = human_seconds(to_seconds(job.end - job.begin));
  if (job.done && job.iterations == 1) return time;
  return fmt::format("{} ({})", time, done_text(job));
}

// Bytes count when their flow is complete.
std::string throughput_text(const Results& results) {
  const NetworkCounters& n = results.network;
  const double bytes = static_cast<double>(n.bytes_delivered);
  return fmt::format("{:.1f} Gb/s of payload{}, {} in all", bytes * 8e-9 / to_seconds(results.simulated),
                     n.flows_done < n.flows_started ? " in complete flows" : "", human_bytes(bytes));
}

// Writes a line for each of several jobs.
void jobs(Text out, const Results& results, std::size_t width) {
  fmt::format_to(out, "{} jobs: {}\n\n", results.jobs.size(), to_string(results.outcome));
  TableColumn name{"job", 0, true, {}}, gpus{"GPUs", 2, false, {}}, arrival{"arrival", 3, false, {}},
      time{"job time", 0, false, {}}, iteration{"iteration", 1, false, {}}, compute{"compute", 4, false, {}},
      exposed{"exposed", 2, false, {}}, idle{"idle", 5, false, {}}, state{"", 0, true, {}};
  for (const JobResult& job : results.jobs) {
    const JobSummary summary = summarise(job);
    name.cells.push_back(printable(job.name));
    gpus.cells.push_back(fmt::format("{}", job.gpus.size()));
    arrival.cells.push_back(human_seconds(to_seconds(job.arrival)));
    time.cells.push_back(or_dash(summary.jct_s, human_seconds));
    iteration.cells.push_back(or_dash(summary.iteration_time_s, human_seconds));
    compute.cells.push_back(human_seconds(summary.compute_s));
    exposed.cells.push_back(human_seconds(summary.exposed_s));
    idle.cells.push_back(human_seconds(summary.idle_s));
    state.cells.push_back(job.done      ? ""
                          : job.stopped ? "stopped by a failure"
                          : job.begun   ? "under way"
                                        : "not arrived");
  }
  fmt::format_to(out, "{}",
                 text_table({name, gpus, arrival, time, iteration, compute, exposed, idle, state}, 2, width));
}

// Writes the results of a run without computation: the flows, then the network.
void traffic(Text out, const Results& results, std::size_t width) {
  constexpr std::size_t kIndent = 19;
  const NetworkCounters& n = results.network;
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
  line("flows",
       fmt::format("{} done", n.flows_done) +
           (n.flows_done < n.flows_started ? fmt::format(" of {} that began", n.flows_started) : ""));
  if (results.flows.count > 0) line("completion time", completion_times(results.flows));
  slowdowns_by_size(out, results, width);
  if (results.simulated > 0) line("throughput", throughput_text(results));
  line("queues", queues_text(results));
  line("network", counters_text(results));
}

void training(Text out, const Results& results, std::size_t width) {
  if (results.jobs.size() > 1) {
    jobs(out, results, width);
    for (const JobResult& job : results.jobs) {
      if (!job.memory && !job.recovery) continue;
      fmt::format_to(out, "\n  {}\n", printable(job.name));
      memory(out, job, width);
      recovery(out, job, width);
    }
    return;
  }
  const JobResult& job = results.jobs.front();
  const JobSummary summary = summarise(job);
  header(out, results, job);
  job_headline(out, job, summary);
  memory(out, job, width);
  recovery(out, job, width);
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

}  // namespace

std::string render_screen(const Results& results, std::size_t width) {
  std::string text;
  const Text out = std::back_inserter(text);
  if (only_traffic(results)) {
    traffic(out, results, width);
    const JobResult& job = results.jobs.front();
    if (results.jobs.size() == 1) critical_path(out, results, job, summarise(job), width);
    links(out, results, width);
    fmt::format_to(out, "\n");
  } else {
    training(out, results, width);
    links(out, results, width);
    network(out, results, width);
  }
  effort(out, results, width);
  list(out, "waiting", results.waiting, width);
  list(out, "notes", results.notes, width);
  return text;
}

std::string render_prediction(const Prediction& prediction, std::uint32_t gpus) {
  const auto count = [](std::uint64_t value) { return human_count(static_cast<double>(value)); };
  const Volume& volume = prediction.volume;
  const Calibration& calibration = prediction.calibration;
  std::string text;
  const Text out = std::back_inserter(text);
  fmt::format_to(out, "run time, about    {}\n", human_duration(prediction.minutes * 60));
  fmt::format_to(out, "memory, about      {}\n", human_bytes(static_cast<double>(prediction.memory)));
  fmt::format_to(out, "ranks              {} on {} GPUs\n", prediction.ranks, gpus);
  for (const PlannedMemory& planned : prediction.gpu_memory) {
    fmt::format_to(out, "memory of a GPU    {}rank {}{}: {}\n",
                   prediction.gpu_memory.size() > 1 ? printable(planned.job) + ", " : "", planned.peak.rank,
                   of_capacity(planned.capacity), planned.peak.use.text());
  }
  fmt::format_to(out, "tasks              {}\n", count(volume.tasks));
  fmt::format_to(out, "over the fabric    {}, {} flows\n",
                 human_bytes(static_cast<double>(volume.scale_out_bytes)), count(volume.flows));
  fmt::format_to(out, "over all links     {} data packets, {} packet-hops\n", count(volume.packets),
                 count(volume.hops()));
  if (prediction.most_hops > prediction.least_hops) {
    fmt::format_to(out, "detours            {} packet-hops without any, {} if all packets make one\n",
                   count(prediction.least_hops), count(prediction.most_hops));
  }
  fmt::format_to(out, "calibration        {}\n",
                 calibration.complete
                     ? "the whole run: " + human_seconds(calibration.end.seconds)
                     : fmt::format("{} of the run itself, {:.2g} % of its work",
                                   human_seconds(calibration.end.seconds), 100 * prediction.share));
  return text;
}

}  // namespace netsim
