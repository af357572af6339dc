#include "sim/report/page/iteration_timeline.h"

#include <algorithm>
#include <limits>

namespace netsim {
namespace {

std::int32_t common(std::int32_t a, std::int32_t b) { return a == b ? a : TimelineBox::kUnknown; }

// Returns the number of boxes of all tracks.
std::size_t count_boxes(const ShownIteration& shown) {
  std::size_t boxes = 0;
  for (const ShownStream& stream : shown.streams) {
    for (const BoxTrack& track : stream.tracks) boxes += track.boxes().size();
  }
  return boxes;
}

std::uint32_t slot_of(const Task& task) {
  const bool on_cpu = task.kind() == TaskKind::host_thread || task.kind() == TaskKind::host_compute;
  return on_cpu && task.stream == Stream::compute ? kTimelineCpu : static_cast<std::uint32_t>(task.stream);
}

// Merges narrow boxes until at most `most` are left, or one in each track.
void merge_narrow(ShownIteration& shown, std::size_t most) {
  const Time span = std::max<Time>(shown.end - shown.begin, 1);
  for (Time width = span / IterationTimeline::kNarrowest;; width = 2 * width + 1) {
    for (ShownStream& stream : shown.streams) {
      for (BoxTrack& track : stream.tracks) track.merge(width);
    }
    if (width >= span || count_boxes(shown) <= most) return;
  }
}

}  // namespace

const char* slot_name(std::uint32_t slot) {
  return slot == kTimelineCpu ? "cpu" : to_string(static_cast<Stream>(slot));
}

void TimelineBox::merge(const TimelineBox& next) {
  end = std::max(end, next.end);
  layer = common(layer, next.layer);
  microbatch = common(microbatch, next.microbatch);
  chunk = common(chunk, next.chunk);
  tasks += next.tasks;
}

void BoxTrack::add(const TimelineBox& box) {
  boxes_.push_back(box);
  if (boxes_.size() < 2 * most_) return;
  const Time span = boxes_.back().end - boxes_.front().begin;
  for (Time width = std::max(width_, span / IterationTimeline::kNarrowest);; width = 2 * width) {
    merge(width);
    if (boxes_.size() <= most_ || width > span) return;
  }
}

void BoxTrack::merge(Time width) {
  width_ = std::max<Time>(width, 1);
  std::size_t last = 0;
  for (std::size_t i = 1; i < boxes_.size(); ++i) {
    if (boxes_[i].end - boxes_[last].begin <= width) {
      boxes_[last].merge(boxes_[i]);
    } else {
      boxes_[++last] = boxes_[i];
    }
  }
  if (!boxes_.empty()) boxes_.resize(last + 1);
}

IterationTimeline::IterationTimeline(const TaskSource& source)
    : source_(source), groups_(rank_groups(source, source.ranks() - source.storage_ranks(), kMostRanks)) {
  const auto all = static_cast<std::uint32_t>(groups_.groups.size());
  const std::uint32_t count = std::min(all, kMostRanks);
  shown_.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t group = i * all / count;
    rank_[groups_.groups[group].ranks.front()] = i;
    shown_.push_back(group);
  }
}

// Returns the iteration, or null where it is older than those that are kept.
IterationTimeline::Kept* IterationTimeline::kept(std::uint32_t iteration) {
  const auto found = iterations_.find(iteration);
  if (found != iterations_.end()) return &found->second;
  if (iterations_.size() == kMostIterations) {
    if (iteration < iterations_.begin()->first) return nullptr;
    drop_oldest();
  }
  return &iterations_[iteration];
}

Time IterationTimeline::duration(const Kept& kept) { return std::max<Time>(kept.end - kept.begin, 0); }

void IterationTimeline::drop_oldest() {
  auto oldest = iterations_.extract(iterations_.begin());
  if (!longest_ || duration(oldest.mapped()) > duration(longest_->second))
    longest_.emplace(oldest.key(), std::move(oldest.mapped()));
}

TimelineBox IterationTimeline::box_of(const TaskRecord& record) const {
  TimelineBox box{record.start, record.end, record.task.name};
  const std::optional<PipelineMark> mark = source_.pipeline_mark(record.rank, record.task.id);
  if (!mark) return box;
  box.microbatch = static_cast<std::int32_t>(mark->microbatch);
  box.chunk = static_cast<std::int32_t>(mark->chunk);
  if (mark->layer) box.layer = static_cast<std::int32_t>(*mark->layer);
  return box;
}

void IterationTimeline::add(const TaskRecord& record) {
  const auto rank = rank_.find(record.rank);
  if (rank == rank_.end()) return;
  Kept* iteration = kept(record.task.iteration);
  if (iteration == nullptr) return;
  LanedStream& tracks = iteration->streams[rank->second * kTimelineSlots + slot_of(record.task)];
  const std::uint32_t lane = tracks.lanes.take(record.start, record.end);
  if (lane >= kMostTracks) {
    ++iteration->omitted;
    return;
  }
  iteration->begin = std::min(iteration->begin, record.start);
  iteration->end = std::max(iteration->end, record.end);
  if (lane == tracks.tracks.size()) tracks.tracks.emplace_back(kKeptBoxes / shown_.size());
  tracks.tracks[lane].add(box_of(record));
}

IterationTimeline::Iterations::const_iterator IterationTimeline::last_ended(std::size_t ended) const {
  const auto next = iterations_.lower_bound(
      static_cast<std::uint32_t>(std::min<std::size_t>(ended, std::numeric_limits<std::uint32_t>::max())));
  return next == iterations_.begin() ? iterations_.end() : std::prev(next);
}

std::optional<ShownIteration> IterationTimeline::show(const Iterations::value_type& chosen, bool complete,
                                                      std::size_t most) const {
  const auto& [number, kept] = chosen;
  ShownIteration shown{number, complete, kept.begin, kept.end, kept.omitted, {}};
  shown.streams.reserve(kept.streams.size());
  for (const auto& [key, stream] : kept.streams) {
    const std::uint32_t group = shown_[key / kTimelineSlots];
    if (stream.tracks.empty()) continue;
    shown.streams.push_back(
        {group, groups_.groups[group].ranks.front(), key % kTimelineSlots, stream.tracks});
  }
  if (shown.streams.empty()) return std::nullopt;
  merge_narrow(shown, most);
  return shown;
}

std::optional<ShownIteration> IterationTimeline::shown(std::size_t ended, std::size_t most) const {
  if (iterations_.empty()) return std::nullopt;
  const auto last = last_ended(ended);
  const bool complete = last != iterations_.end();
  return show(complete ? *last : *std::prev(iterations_.end()), complete, most);
}

std::optional<ShownIteration> IterationTimeline::longest(std::size_t ended, std::size_t most) const {
  const auto last = last_ended(ended);
  if (last == iterations_.end()) return std::nullopt;
  const Iterations::value_type* found = longest_ ? &*longest_ : nullptr;
  for (auto at = iterations_.begin(); at != last; ++at) {
    if (found == nullptr || duration(at->second) > duration(found->second)) found = &*at;
  }
  if (found == nullptr || 4 * duration(found->second) < 5 * duration(last->second)) return std::nullopt;
  return show(*found, true, most);
}

}  // namespace netsim
