#include "sim/report/screen/path_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/text.h"

namespace netsim::screen {
namespace {

// Returns the name of the time at the sender, in which it serialises other messages. In this configuration it
// may also wait for congestion control or send packets again.
std::string at_sender(const Results& results) {
  bool controlled = results.knobs.congestion_control != "none", window = results.knobs.window;
  for (const FabricResult& fabric : results.fabrics) {
    controlled = controlled || fabric.knobs.congestion_control != "none";
    window = window || fabric.knobs.window;
  }
  std::string text = "serialisation at the sender";
  if (controlled || window) text += ", window";
  if (controlled) text += ", pace";
  if (results.network.retransmissions > 0) text += ", repeats";
  return text;
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

}  // namespace

std::vector<std::pair<std::string, Time>> path_parts(const Results& results, const JobResult& job) {
  std::vector<std::pair<std::string, Time>> parts{
      {"compute", 0},          {"library latency", 0},    {"transmission", 0},     {"propagation", 0},
      {"queueing", 0},         {"pauses, no credits", 0}, {at_sender(results), 0}, {"acknowledgements", 0},
      {"optical circuits", 0}, {"communication", 0},      {"nothing ran", 0},      {"held by scheduler", 0}};
  for (const PathSummary& path : job.paths) {
    const Time times[] = {path.compute,
                          path.launch,
                          path.transmission,
                          path.propagation,
                          path.queueing,
                          path.paused,
                          path.at_sender,
                          path.acknowledgement,
                          path.circuits,
                          path.undivided,
                          path.held - path.scheduler,
                          path.scheduler};
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
  if (share.kind == PathStep::Kind::scheduler)
    return fmt::format("held by scheduler: {} ({})", printable(share.name), to_string(share.stream));
  const bool message = share.collective == CollectiveKind::point_to_point;
  return fmt::format("{}: {} {} ({})", to_string(share.kind),
                     message ? "message" : to_string(share.collective), printable(share.name),
                     to_string(share.stream));
}

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

}  // namespace netsim::screen
