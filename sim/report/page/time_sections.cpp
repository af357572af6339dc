// The sections about the time of jobs: breakdowns, timelines and critical paths.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/report/page/page_sections.h"
#include "sim/report/screen/path_text.h"

namespace netsim {
namespace {

constexpr std::size_t kMostBrokenDown = 32;  // jobs with a breakdown
constexpr std::size_t kMostPathJobs = 8;     // jobs with their critical paths
constexpr std::size_t kMostPathRows = 40, kMostPairs = 20;
constexpr std::size_t kBoxes = 24'000;         // of all timelines of the page
constexpr std::uint32_t kMostRanksAlone = 16;  // ranks that have a row each

// ---- Breakdowns

// Returns a job that has only these ranks, so that summarise() returns their means.
JobResult part_of(const JobResult& job, const std::vector<std::uint32_t>& ranks) {
  JobResult part;
  part.iterations = job.iterations;
  part.done = job.done;
  part.arrival = job.arrival;
  part.begin = job.begin;
  part.end = job.end;
  part.iteration_ends = job.iteration_ends;
  part.warm_up = job.warm_up;
  for (const std::uint32_t rank : ranks) {
    part.gpus.push_back(job.gpus[rank]);
    part.rank_times.push_back(job.rank_times[rank]);
    if (!job.warm_up_times.empty()) part.warm_up_times.push_back(job.warm_up_times[rank]);
  }
  return part;
}

// Returns the streams in which the job has exposed communication.
std::vector<Stream> exposed_streams(const JobSummary& summary) {
  std::vector<Stream> streams;
  for (const Stream stream : kCommunicationStreams) {
    if (summary.exposed_by_s[static_cast<std::size_t>(stream)] > 0) streams.push_back(stream);
  }
  return streams;
}

void write_shares(JsonWriter& json, const std::string& label, const JobSummary& summary,
                  const std::vector<Stream>& streams) {
  std::vector<double> seconds{summary.compute_s};
  for (const Stream stream : streams)
    seconds.push_back(summary.exposed_by_s[static_cast<std::size_t>(stream)]);
  seconds.push_back(summary.idle_s);
  json.field("label", label);
  json.list("s", seconds);
  json.array("text", [&] {
    for (const double part : seconds) json.value(human_seconds(part));
  });
  json.seconds("total", summary.compute_s + summary.exposed_s + summary.idle_s);
}

const char* unit_name(RankGroups::Unit unit) {
  if (unit == RankGroups::Unit::rank) return "rank";
  return unit == RankGroups::Unit::stage ? "stage" : "ranks";
}

void write_breakdown(JsonWriter& json, const JobResult& job, const WorkloadDescription& workload) {
  const JobSummary mean = summarise(job);
  const std::vector<Stream> streams = exposed_streams(mean);
  const RankGroups groups =
      rank_groups(workload, static_cast<std::uint32_t>(job.rank_times.size()), kMostRanksAlone);
  json.field("job", job.name);
  json.field("per", unit_name(groups.unit));
  if (!job.done) json.field("note", "The job did not end. The times are totals so far.");
  json.array("categories", [&] {
    json.value("compute");
    for (const Stream stream : streams) json.value(std::string("exposed ") + to_string(stream));
    json.value("idle");
  });
  json.array("rows", [&] {
    for (const RankGroups::Group& group : groups.groups) {
      json.object([&] { write_shares(json, group.label, summarise(part_of(job, group.ranks)), streams); });
    }
  });
  json.object("mean", [&] { write_shares(json, "mean", mean, streams); });
}

// ---- Timelines

// NameTable: the names of a timeline, numbered in the order of their first box.
class NameTable {
 public:
  explicit NameTable(const JobView& job) : job_(job) {}
  std::uint32_t number(std::uint32_t name) {
    const auto [found, fresh] = numbers_.try_emplace(name, static_cast<std::uint32_t>(names_.size()));
    if (fresh) names_.push_back(job_.task_name(name));
    return found->second;
  }
  const std::vector<std::string>& names() const { return names_; }

 private:
  const JobView& job_;
  std::map<std::uint32_t, std::uint32_t> numbers_;
  std::vector<std::string> names_;
};

bool has_merged_boxes(const ShownIteration& shown) {
  for (const ShownStream& stream : shown.streams) {
    for (const BoxTrack& track : stream.tracks) {
      for (const TimelineBox& box : track.boxes()) {
        if (box.tasks > 1) return true;
      }
    }
  }
  return false;
}

std::string timeline_note(const IterationTimeline& timeline, const ShownIteration& shown) {
  const RankGroups& groups = timeline.groups();
  const std::size_t all = groups.groups.size(), drawn = timeline.shown_groups().size();
  std::string note;
  if (groups.unit != RankGroups::Unit::rank) {
    note = fmt::format("Each {} is shown by its first rank.",
                       groups.unit == RankGroups::Unit::stage ? "pipeline stage" : "range of ranks");
  }
  if (drawn < all) append_item(note, fmt::format("{} of {} are drawn.", drawn, all), " ");
  if (shown.omitted > 0) {
    append_item(note,
                fmt::format("{} that overlap with {} others of their stream are left out.",
                            counted(shown.omitted, "task"), IterationTimeline::kMostTracks),
                " ");
  }
  if (has_merged_boxes(shown)) {
    append_item(note,
                fmt::format("A box of several tasks stands for narrow ones that follow each other, together "
                            "below 1/{} of the iteration or what the size of the page allows.",
                            IterationTimeline::kNarrowest),
                " ");
  }
  return note;
}

void write_box(JsonWriter& json, const TimelineBox& box, Time origin, std::uint32_t name,
               std::uint32_t category) {
  const std::int64_t begin = nanoseconds(box.begin - origin), end = nanoseconds(box.end - origin);
  json.array([&] {
    for (const std::int64_t number :
         {begin, end - begin, std::int64_t{name}, std::int64_t{category}, std::int64_t{box.layer},
          std::int64_t{box.microbatch}, std::int64_t{box.chunk}, std::int64_t{box.tasks}}) {
      json.value(number);
    }
  });
}

void write_tracks(JsonWriter& json, const IterationTimeline& timeline, const ShownIteration& shown,
                  const std::vector<std::uint32_t>& slots, NameTable& names) {
  const auto category_of = [&](std::uint32_t slot) {
    return static_cast<std::uint32_t>(std::find(slots.begin(), slots.end(), slot) - slots.begin());
  };
  const auto write_track = [&](const ShownStream& stream, const BoxTrack& track) {
    json.field("group", timeline.groups().groups[stream.group].label);
    json.field("label", fmt::format("rank {}, {}", stream.rank, slot_name(stream.slot)));
    json.array("boxes", [&] {
      for (const TimelineBox& box : track.boxes())
        write_box(json, box, shown.begin, names.number(box.name), category_of(stream.slot));
    });
  };
  json.array("tracks", [&] {
    for (const ShownStream& stream : shown.streams) {
      for (const BoxTrack& track : stream.tracks) json.object([&] { write_track(stream, track); });
    }
  });
}

// PlacedTimeline: an iteration of a job that is drawn.
struct PlacedTimeline {
  JobId job;
  bool longest;  // rather than the last one
  ShownIteration shown;
};

// Returns when the iteration ended at all ranks, also those that are not drawn.
Time end_of(const JobResult& job, const ShownIteration& shown) {
  if (!shown.complete || shown.iteration >= job.iteration_ends.size()) return shown.end;
  return std::max(shown.end, job.iteration_ends[shown.iteration]);
}

void write_timeline(JsonWriter& json, const PageInput& input, const IterationTimeline& timeline,
                    const PlacedTimeline& placed) {
  const JobResult& job = input.results().jobs[placed.job];
  const ShownIteration& shown = placed.shown;
  std::vector<std::uint32_t> slots;
  for (const ShownStream& stream : shown.streams) slots.push_back(stream.slot);
  std::sort(slots.begin(), slots.end());
  slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
  NameTable names(input.view.jobs[placed.job]);
  json.field("job", job.name);
  json.field("iteration", shown.iteration);
  json.field("complete", shown.complete);
  json.seconds("begin", shown.begin);
  json.field("duration_ns", nanoseconds(end_of(job, shown) - shown.begin));
  std::string note = placed.longest ? "This is the longest iteration of the job." : "";
  if (const std::string parts = timeline_note(timeline, shown); !parts.empty()) append_item(note, parts, " ");
  if (input.records.further_jobs) append_item(note, "Further jobs have no timeline here.", " ");
  json.field("note", note);
  write_tracks(json, timeline, shown, slots, names);
  json.list("names", names.names());
  json.array("categories", [&] {
    for (const std::uint32_t slot : slots) json.value(slot_name(slot));
  });
}

// ---- Critical paths

void write_path_ports(JsonWriter& json, const JobResult& job, double iterations) {
  const auto mean = [iterations](Time all) { return to_seconds(all) / iterations; };
  json.array("ports", [&] {
    for (std::size_t i = 0; i < std::min(kMostPathRows, job.path_ports.size()); ++i) {
      const PathPort& port = job.path_ports[i];
      json.object([&] {
        json.field("label", port.name);
        json.field("s", mean(port.delay.sum()));
        json.field("text", human_seconds(mean(port.delay.sum())));
        json.field("transmission_s", mean(port.delay.transmission));
        json.field("queueing_s", mean(port.delay.queueing));
        json.field("paused_s", mean(port.delay.paused));
      });
    }
  });
}

void write_path(JsonWriter& json, const Results& results, const JobResult& job) {
  const double iterations = static_cast<double>(job.paths.size());
  const auto entry = [&](const std::string& label, Time all) {
    const double seconds = to_seconds(all) / iterations;
    json.field("label", label);
    json.field("s", seconds);
    json.field("text", human_seconds(seconds));
  };
  const std::vector<std::pair<std::string, Time>> parts = screen::path_parts(results, job);
  Time total = 0;
  for (const auto& [label, time] : parts) total += time;
  json.field("job", job.name);
  json.field("iterations", job.paths.size());
  json.seconds("total", to_seconds(total) / iterations);
  json.array("causes", [&] {
    for (const auto& [label, time] : parts) {
      if (time > 0) json.object([&, &name = label, all = time] { entry(name, all); });
    }
  });
  json.array("collectives", [&] {
    for (std::size_t i = 0; i < std::min(kMostPathRows, job.path_shares.size()); ++i) {
      json.object([&] {
        entry(screen::share_text(job.path_shares[i]), job.path_shares[i].time);
        json.field("steps", job.path_shares[i].steps);
      });
    }
  });
  write_path_ports(json, job, iterations);
  json.array("pairs", [&] {
    for (std::size_t i = 0; i < std::min(kMostPairs, job.path_pairs.size()); ++i) {
      const PathPair& pair = job.path_pairs[i];
      json.object([&] {
        entry(results.gpu_names[pair.source] + " -> " + results.gpu_names[pair.destination], pair.time);
      });
    }
  });
}

}  // namespace

void write_breakdowns(JsonWriter& json, const PageInput& input) {
  const std::vector<JobResult>& jobs = input.results().jobs;
  std::vector<std::size_t> shown;
  for (std::size_t i = 0; i < jobs.size() && shown.size() < kMostBrokenDown; ++i) {
    const JobSummary summary = summarise(jobs[i]);
    if (jobs[i].computes && summary.compute_s + summary.exposed_s + summary.idle_s > 0) shown.push_back(i);
  }
  if (shown.empty()) return;
  json.array("breakdowns", [&] {
    for (const std::size_t i : shown)
      json.object([&] { write_breakdown(json, jobs[i], *input.view.jobs[i].source); });
  });
}

void write_timelines(JsonWriter& json, const PageInput& input) {
  const std::map<JobId, IterationTimeline>& timelines = input.records.timelines;
  std::vector<PlacedTimeline> all;
  for (const auto& [id, timeline] : timelines) {
    const std::vector<Time>& ends = input.results().jobs[id].iteration_ends;
    const std::size_t most = kBoxes / timelines.size();
    if (auto last = timeline.shown(ends.size(), most)) all.push_back({id, false, std::move(*last)});
    if (auto longest = timeline.longest(ends.size(), most / 2))
      all.push_back({id, true, std::move(*longest)});
  }
  if (all.empty()) return;
  json.array("timelines", [&] {
    for (const PlacedTimeline& one : all)
      json.object([&] { write_timeline(json, input, timelines.at(one.job), one); });
  });
}

void write_paths(JsonWriter& json, const PageInput& input) {
  std::vector<const JobResult*> jobs;
  for (const JobResult& job : input.results().jobs) {
    if (!job.paths.empty() && jobs.size() < kMostPathJobs) jobs.push_back(&job);
  }
  if (jobs.empty()) return;
  json.array("paths", [&] {
    for (const JobResult* job : jobs) json.object([&] { write_path(json, input.results(), *job); });
  });
}

}  // namespace netsim
