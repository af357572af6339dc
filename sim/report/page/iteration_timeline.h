// IterationTimeline: the tasks of some iterations of a job at a few of its ranks, for the timelines of
// report.html. It keeps the last iterations and the longest one. Its memory is bounded, whatever the number
// of ranks, tasks and iterations is.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "sim/core/stream.h"
#include "sim/jobs/job.h"
#include "sim/report/page/rank_groups.h"
#include "sim/report/timeline.h"
#include "sim/workload/task_source.h"

namespace netsim {

// TimelineBox: a task, or tasks of one track that follow each other and are narrow.
struct TimelineBox {
  static constexpr std::int32_t kUnknown = -1;

  Time begin = 0, end = 0;
  std::uint32_t name = 0;  // Task::name of the first one
  // kUnknown where the workload does not say it, or where the tasks of the box differ.
  std::int32_t layer = kUnknown, microbatch = kUnknown, chunk = kUnknown;
  std::uint32_t tasks = 1;

  // Adds a box that begins at the end of this one or later.
  void merge(const TimelineBox& next);
};

// BoxTrack: boxes that do not overlap, in order of time. Where they would be too many, narrow ones are
// merged.
class BoxTrack {
 public:
  explicit BoxTrack(std::size_t most) : most_(most) {}
  void add(const TimelineBox& box);
  // Merges boxes that follow each other and together last at most `width`.
  void merge(Time width);
  const std::vector<TimelineBox>& boxes() const { return boxes_; }

 private:
  std::size_t most_;
  Time width_ = 1;  // of the last merge(), at least 1
  std::vector<TimelineBox> boxes_;
};

inline constexpr std::uint32_t kTimelineCpu = kStreams;
inline constexpr std::uint32_t kTimelineSlots = kStreams + 1;

// Returns the name of a slot: "compute", "tp", "cpu".
const char* slot_name(std::uint32_t slot);

// ShownStream: the tasks of a stream of a rank in one iteration, or of its CPU. Tasks that overlap are in
// several tracks.
struct ShownStream {
  std::uint32_t group = 0;  // index of the rank's group
  std::uint32_t rank = 0;
  // Its slot: that of its stream, or kTimelineCpu for computations of its CPU in the stream compute.
  std::uint32_t slot = 0;
  std::vector<BoxTrack> tracks;
};

// ShownIteration: an iteration that is drawn. Its boxes are merged to at most `most` in all, and those
// narrower than 1/4000 of it in any case.
struct ShownIteration {
  std::uint32_t iteration = 0;
  bool complete = false;  // all ranks have ended it
  Time begin = 0, end = 0;
  std::uint64_t omitted = 0;         // tasks that overlap with more others than there are tracks
  std::vector<ShownStream> streams;  // by group, rank and slot; none is empty
};

class IterationTimeline {
 public:
  static constexpr std::uint32_t kMostRanks = 16;    // ranks that are shown
  static constexpr std::size_t kMostTracks = 4;      // of a stream
  static constexpr std::size_t kMostIterations = 3;  // iterations that are kept during the run
  static constexpr std::size_t kKeptBoxes = 40'000;  // of all tracks of an iteration, while it is kept
  static constexpr Time kNarrowest = 4000;           // parts of an iteration

  // `source` must outlive the object. At most kMostRanks groups are shown, each by its first rank.
  explicit IterationTimeline(const TaskSource& source);
  void add(const TaskRecord& record);
  // Returns the last iteration that had ended at all ranks (`ended` is their number), or else the last one
  // with tasks. Returns nothing if no task of the shown ranks has ended.
  std::optional<ShownIteration> shown(std::size_t ended, std::size_t most) const;
  // Returns the longest iteration that had ended at all ranks. Returns nothing if it took less than 1.25
  // times as long as the last one.
  std::optional<ShownIteration> longest(std::size_t ended, std::size_t most) const;
  // Returns all groups of ranks, and the indices of those that are shown.
  const RankGroups& groups() const { return groups_; }
  const std::vector<std::uint32_t>& shown_groups() const { return shown_; }

 private:
  struct LanedStream {
    Lanes lanes;
    std::vector<BoxTrack> tracks;
  };
  struct Kept {
    std::uint64_t omitted = 0;
    Time begin = kNever, end = 0;                  // of all its boxes
    std::map<std::uint32_t, LanedStream> streams;  // by shown rank * kTimelineSlots + slot
  };

  using Iterations = std::map<std::uint32_t, Kept>;

  static Time duration(const Kept& kept);
  Kept* kept(std::uint32_t iteration);
  void drop_oldest();
  // Returns the last iteration before `ended`, or the end of iterations_.
  Iterations::const_iterator last_ended(std::size_t ended) const;
  std::optional<ShownIteration> show(const Iterations::value_type& chosen, bool complete,
                                     std::size_t most) const;
  TimelineBox box_of(const TaskRecord& record) const;

  const TaskSource& source_;
  RankGroups groups_;
  std::vector<std::uint32_t> shown_;                             // indices of groups
  std::map<std::uint32_t, std::uint32_t> rank_;                  // index in shown_ by rank
  Iterations iterations_;                                        // the last ones
  std::optional<std::pair<const std::uint32_t, Kept>> longest_;  // of those before
};

}  // namespace netsim
