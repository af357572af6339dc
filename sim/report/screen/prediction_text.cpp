// The text of --dry-run: render_prediction() of screen.h.
#include <fmt/format.h>

#include <iterator>

#include "sim/core/text.h"
#include "sim/report/screen/screen.h"
#include "sim/report/screen/screen_text.h"

namespace netsim {

namespace {

// Says what the task scheduler of a job will launch, and whether tasks could wait for one another.
std::string launches_text(const PlannedLaunches& planned, const std::string& whose) {
  const std::string counts = planned.counts ? fmt::format("{} communications in {} parts; {} cut, {} fused",
                                                          planned.counts->launches, planned.counts->parts,
                                                          planned.counts->cut, planned.counts->fused)
                                            : "only the run shows what it launches";
  const std::string text = fmt::format("scheduling         {}{}: {}\n", whose, planned.scheduler, counts);
  const char* waits = planned.checked  ? "one iteration was played, and no tasks wait in a circle"
                      : planned.agreed ? "circular waits were not searched for"
                                       : "ranks that choose different orders may wait for each other";
  return text + fmt::format("launch order       {}: {}\n", planned.agreed ? "agreed" : "local", waits);
}

}  // namespace

std::string render_prediction(const Prediction& prediction, std::uint32_t gpus) {
  const auto count = [](std::uint64_t value) { return human_count(static_cast<double>(value)); };
  const Volume& volume = prediction.volume;
  const Calibration& calibration = prediction.calibration;
  std::string text;
  const screen::Text out = std::back_inserter(text);
  fmt::format_to(out, "run time, about    {}\n", human_duration(prediction.minutes * 60));
  fmt::format_to(out, "memory, about      {}\n", human_bytes(static_cast<double>(prediction.memory)));
  fmt::format_to(out, "ranks              {} on {} GPUs\n", prediction.ranks, gpus);
  for (const PlannedMemory& planned : prediction.gpu_memory) {
    fmt::format_to(out, "memory of a GPU    {}rank {}{}: {}\n",
                   prediction.gpu_memory.size() > 1 ? printable(planned.job) + ", " : "", planned.peak.rank,
                   screen::of_capacity(planned.capacity), planned.peak.use.text());
  }
  for (const PlannedLaunches& planned : prediction.launches)
    text += launches_text(planned, prediction.launches.size() > 1 ? printable(planned.job) + ", " : "");
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
