// The text of --dry-run: render_prediction() of screen.h.
#include <fmt/format.h>

#include <string_view>

#include "sim/core/text.h"
#include "sim/report/screen/screen.h"
#include "sim/report/screen/screen_text.h"

namespace netsim {

namespace {

constexpr std::size_t kValueColumn = 19;

// Returns a line of the prediction. Its further lines begin below the value.
std::string prediction_line(std::string_view title, const std::string& value, std::size_t width) {
  return fmt::format("{:<19}{}\n", title, wrapped(value, kValueColumn, kValueColumn, width));
}

// Says what the task scheduler of a job will launch, and whether tasks could wait for one another.
std::string launches_text(const PlannedLaunches& planned, const std::string& whose, std::size_t width) {
  const std::string counts = planned.counts ? fmt::format("{} communications in {} parts; {} cut, {} fused",
                                                          planned.counts->launches, planned.counts->parts,
                                                          planned.counts->cut, planned.counts->fused)
                                            : "only the run shows what it launches";
  const std::string text =
      prediction_line("scheduling", fmt::format("{}{}: {}", whose, planned.scheduler, counts), width);
  const char* waits = planned.checked  ? "one iteration was played, and no tasks wait in a circle"
                      : planned.agreed ? "circular waits were not searched for"
                                       : "ranks that choose different orders may wait for each other";
  return text + prediction_line("launch order",
                                fmt::format("{}: {}", planned.agreed ? "agreed" : "local", waits), width);
}

}  // namespace

std::string render_prediction(const Prediction& prediction, std::uint32_t gpus, std::size_t width) {
  const auto count = [](std::uint64_t value) { return human_count(static_cast<double>(value)); };
  const Volume& volume = prediction.volume;
  const Calibration& calibration = prediction.calibration;
  std::string text;
  const auto add = [&](std::string_view title, const std::string& value) {
    text += prediction_line(title, value, width);
  };
  add("run time, about", human_duration(prediction.minutes * 60));
  add("memory, about", human_bytes(static_cast<double>(prediction.memory)));
  add("ranks", fmt::format("{} on {} GPUs", prediction.ranks, gpus));
  for (const PlannedMemory& planned : prediction.gpu_memory) {
    add("memory of a GPU",
        fmt::format("{}rank {}{}: {}", prediction.gpu_memory.size() > 1 ? printable(planned.job) + ", " : "",
                    planned.peak.rank, screen::of_capacity(planned.capacity), planned.peak.use.text()));
  }
  for (const PlannedLaunches& planned : prediction.launches)
    text +=
        launches_text(planned, prediction.launches.size() > 1 ? printable(planned.job) + ", " : "", width);
  add("tasks", count(volume.tasks));
  add("over the fabric", fmt::format("{}, {} flows", human_bytes(static_cast<double>(volume.scale_out_bytes)),
                                     count(volume.flows)));
  add("over all links",
      fmt::format("{} data packets, {} packet-hops", count(volume.packets), count(volume.hops())));
  if (prediction.most_hops > prediction.least_hops) {
    add("detours", fmt::format("{} packet-hops without any, {} if all packets make one",
                               count(prediction.least_hops), count(prediction.most_hops)));
  }
  add("calibration", calibration.complete
                         ? "the whole run: " + human_seconds(calibration.end.seconds)
                         : fmt::format("{} of the run itself, {:.2g} % of its work",
                                       human_seconds(calibration.end.seconds), 100 * prediction.share));
  return text;
}

}  // namespace netsim
