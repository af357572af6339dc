#include "sim/scheduling/job/rules/cassini.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <map>
#include <numeric>
#include <utility>

namespace netsim {
namespace {

// CirclePiece: the demand from `begin` to the next piece. The pieces of a profile cover the circle from time
// 0.
struct CirclePiece {
  Time begin = 0;
  BitRate demand = 0;
};
using CircleProfile = std::vector<CirclePiece>;
using Excess = Int128;  // demand above the capacity, times its duration

Time scaled(Time time, Time to, Time from) {
  return static_cast<Time>(static_cast<Int128>(time) * to / from);
}

// CircleSize: perimeter of the circle, and iteration time of each demand on it.
struct CircleSize {
  Time perimeter = 0;
  std::vector<Time> iterations;
};

// Returns the circle with this resolution, or a perimeter of 0 if a job has more iterations than `most`.
CircleSize circle_of(const SharedLink& link, Time resolution, std::uint32_t most) {
  CircleSize circle;
  for (const PeriodicDemand& demand : link.demands)
    circle.iterations.push_back(std::max<Time>(1, (demand.iteration + resolution / 2) / resolution) *
                                resolution);
  const Time longest = *std::min_element(circle.iterations.begin(), circle.iterations.end()) * most;
  circle.perimeter = resolution;
  for (const Time iteration : circle.iterations) {
    const Time factor = iteration / std::gcd(circle.perimeter, iteration);
    if (circle.perimeter > longest / factor) return {};
    circle.perimeter *= factor;
  }
  return circle;
}

CircleSize circle_of(const SharedLink& link, const CassiniSettings& settings) {
  for (Time resolution = settings.resolution;; resolution *= 2)
    if (CircleSize circle = circle_of(link, resolution, settings.steps); circle.perimeter > 0) return circle;
}

// Sums up changes of demand, by time, to a profile.
CircleProfile sum_of_changes(const std::map<Time, BitRate>& changes) {
  CircleProfile profile;
  BitRate demand = 0;
  for (const auto& [time, change] : changes) profile.push_back({time, demand += change});
  return profile;
}

// Returns the demand around the circle when the job's iterations begin `shift` later.
CircleProfile around(const PeriodicDemand& demand, Time iteration, Time perimeter, Time shift) {
  std::map<Time, BitRate> changes{{0, 0}};
  for (Time start = shift; start < shift + perimeter; start += iteration)
    for (const DemandArc& arc : demand.arcs) {
      const Time first = scaled(arc.begin, iteration, demand.iteration),
                 last = scaled(arc.end, iteration, demand.iteration);
      if (first == last) continue;
      const Time begin = (start + first) % perimeter, end = (start + last) % perimeter;
      changes[begin] += arc.rate;
      changes[end] -= arc.rate;
      if (end <= begin) changes[0] += arc.rate;  // it goes over the end of the circle
    }
  return sum_of_changes(changes);
}

// Calls visit(demand, duration) for each piece of the sum of two profiles.
template <class Visit>
void for_each_sum(const CircleProfile& a, const CircleProfile& b, Time perimeter, const Visit& visit) {
  Time now = 0;
  for (std::size_t i = 0, j = 0; now < perimeter;) {
    const Time next_a = i + 1 < a.size() ? a[i + 1].begin : perimeter,
               next_b = j + 1 < b.size() ? b[j + 1].begin : perimeter, next = std::min(next_a, next_b);
    visit(now, a[i].demand + b[j].demand, next - now);
    i += next_a == next;
    j += next_b == next;
    now = next;
  }
}

CircleProfile sum_of(const CircleProfile& a, const CircleProfile& b, Time perimeter) {
  CircleProfile sum;
  for_each_sum(a, b, perimeter, [&](Time begin, BitRate demand, Time) { sum.push_back({begin, demand}); });
  return sum;
}

CircleProfile idle() { return {{0, 0}}; }

// Returns the excess of the sum of two profiles.
Excess excess_of(const CircleProfile& a, const CircleProfile& b, BitRate capacity, Time perimeter) {
  Excess sum = 0;
  for_each_sum(a, b, perimeter, [&](Time, BitRate demand, Time duration) {
    if (demand > capacity) sum += static_cast<Excess>(demand - capacity) * duration;
  });
  return sum;
}

double score_of(const CircleProfile& profile, BitRate capacity, Time perimeter) {
  return 1.0 - static_cast<double>(excess_of(profile, idle(), capacity, perimeter)) /
                   (static_cast<double>(capacity) * static_cast<double>(perimeter));
}

// RotationSearch: looks for the rotation of each demand of a link, in steps, with the least excess.
class RotationSearch {
 public:
  RotationSearch(const SharedLink& link, const CassiniSettings& settings)
      : capacity_(link.capacity), circle_(circle_of(link, settings)), most_(settings.most_combinations) {
    const auto& iterations = circle_.iterations;
    const auto fixed = std::max_element(iterations.begin(), iterations.end()) - iterations.begin();
    for (std::size_t i = 0; i < iterations.size(); ++i) {
      auto& profiles = rotated_.emplace_back();
      for (std::uint32_t step = 0; step < settings.steps; ++step) {
        const Time shift = scaled(circle_.perimeter, step, settings.steps);
        if (shift >= iterations[i]) break;
        if (step > 0 && static_cast<std::ptrdiff_t>(i) == fixed) break;
        profiles.push_back(around(link.demands[i], iterations[i], circle_.perimeter, shift));
      }
    }
    best_.assign(rotated_.size(), 0);
  }

  const CircleSize& circle() const { return circle_; }

  // Returns whether all combinations may be tried.
  bool is_small() const {
    std::size_t combinations = 1;
    for (const auto& profiles : rotated_) {
      combinations *= profiles.size();
      if (combinations > most_) return false;
    }
    return true;
  }

  // Returns the best rotation of each demand, in steps.
  std::vector<std::uint32_t> search() {
    best_excess_ = excess(total(), idle());
    if (is_small()) {
      std::vector<std::uint32_t> rotations(rotated_.size(), 0);
      try_all(idle(), rotations, 0);
    } else {
      search_one_by_one();
    }
    return best_;
  }

  // Returns the score with the rotations found, or with none before the search.
  double score() const { return score_of(total(), capacity_, circle_.perimeter); }

 private:
  Excess excess(const CircleProfile& a, const CircleProfile& b) const {
    return excess_of(a, b, capacity_, circle_.perimeter);
  }

  // Returns the sum of the demands with the best rotations so far, without that of `left_out`.
  CircleProfile total(std::size_t left_out = SIZE_MAX) const {
    CircleProfile sum = idle();
    for (std::size_t i = 0; i < rotated_.size(); ++i)
      if (i != left_out) sum = sum_of(sum, rotated_[i][best_[i]], circle_.perimeter);
    return sum;
  }

  void try_all(const CircleProfile& others, std::vector<std::uint32_t>& rotations, std::size_t demand) {
    for (rotations[demand] = 0; rotations[demand] < rotated_[demand].size(); ++rotations[demand]) {
      const CircleProfile& own = rotated_[demand][rotations[demand]];
      if (demand + 1 < rotated_.size()) {
        try_all(sum_of(others, own, circle_.perimeter), rotations, demand + 1);
      } else if (const Excess found = excess(others, own); found < best_excess_) {
        best_excess_ = found;
        best_ = rotations;
      }
    }
  }

  // Gives one demand its best rotation beside `others`, and returns the excess then.
  Excess turn(std::size_t demand, const CircleProfile& others) {
    Excess least = excess(others, rotated_[demand][best_[demand]]);
    for (std::uint32_t step = 0; step < rotated_[demand].size(); ++step) {
      const Excess found = excess(others, rotated_[demand][step]);
      if (found < least) {
        least = found;
        best_[demand] = step;
      }
    }
    return least;
  }

  void search_one_by_one() {
    CircleProfile placed = idle();
    for (std::size_t i = 0; i < rotated_.size(); ++i) {
      turn(i, placed);
      placed = sum_of(placed, rotated_[i][best_[i]], circle_.perimeter);
    }
    for (Excess least = excess(placed, idle()), before = least + 1; least < before;) {
      before = least;
      for (std::size_t i = 0; i < rotated_.size(); ++i) least = turn(i, total(i));
    }
    if (excess(total(), idle()) > best_excess_) best_.assign(rotated_.size(), 0);
  }

  BitRate capacity_;
  CircleSize circle_;
  std::uint32_t most_;
  std::vector<std::vector<CircleProfile>> rotated_;  // by demand and rotation
  std::vector<std::uint32_t> best_;                  // by demand, in steps
  Excess best_excess_ = 0;
};

// Returns the indexes of the links that several jobs share. If links are equal, only the first is there.
std::vector<std::size_t> distinct_links(std::span<const SharedLink> links) {
  std::vector<std::size_t> distinct;
  for (std::size_t i = 0; i < links.size(); ++i) {
    const bool known = std::any_of(distinct.begin(), distinct.end(),
                                   [&](std::size_t other) { return links[other] == links[i]; });
    if (links[i].demands.size() > 1 && !known) distinct.push_back(i);
  }
  return distinct;
}

// AffinityGraph: jobs and the links that several of them share.
class AffinityGraph {
 public:
  explicit AffinityGraph(std::span<const SharedLink> links)
      : links_(links), distinct_(distinct_links(links)) {
    for (const std::size_t link : distinct_)
      for (const PeriodicDemand& demand : links[link].demands) links_of_[demand.job].push_back(link);
  }

  const std::vector<std::size_t>& distinct() const { return distinct_; }

  // Returns whether two different ways lead from one job to another. A component without loops has one edge
  // less than it has jobs and links.
  bool has_loop() const {
    std::size_t edges = 0, components = 0;
    std::map<JobId, bool> seen;
    for (const auto& [job, links] : links_of_) {
      edges += links.size();
      if (seen[job]) continue;
      ++components;
      walk(
          job, [&](JobId, const PeriodicDemand&, std::size_t, std::size_t) {}, seen);
    }
    return edges + components > links_of_.size() + distinct_.size();
  }

  // Visits the component of `first` breadth-first. Calls step(from, demand of the job reached, link, place of
  // that demand) for each job that is reached.
  template <class Step>
  void walk(JobId first, const Step& step, std::map<JobId, bool>& seen) const {
    std::deque<JobId> queue{first};
    for (seen[first] = true; !queue.empty(); queue.pop_front())
      for (const std::size_t link : links_of_.at(queue.front()))
        for (std::size_t place = 0; place < links_[link].demands.size(); ++place) {
          const PeriodicDemand& demand = links_[link].demands[place];
          if (std::exchange(seen[demand.job], true)) continue;
          step(queue.front(), demand, link, place);
          queue.push_back(demand.job);
        }
  }

  const std::map<JobId, std::vector<std::size_t>>& links_of() const { return links_of_; }

 private:
  std::span<const SharedLink> links_;
  std::vector<std::size_t> distinct_;
  std::map<JobId, std::vector<std::size_t>> links_of_;
};

std::size_t place_of(const SharedLink& link, JobId job) {
  const auto found = std::find_if(link.demands.begin(), link.demands.end(),
                                  [&](const PeriodicDemand& demand) { return demand.job == job; });
  return static_cast<std::size_t>(found - link.demands.begin());
}

Time modulo(Time time, Time by) { return (time % by + by) % by; }

}  // namespace

double compatibility_score(const SharedLink& link, std::span<const Time> shifts,
                           const CassiniSettings& settings) {
  const CircleSize circle = circle_of(link, settings);
  CircleProfile sum = idle();
  for (std::size_t i = 0; i < link.demands.size(); ++i) {
    const Time shift = shifts.empty() ? 0 : modulo(shifts[i], circle.perimeter);
    sum =
        sum_of(sum, around(link.demands[i], circle.iterations[i], circle.perimeter, shift), circle.perimeter);
  }
  return score_of(sum, link.capacity, circle.perimeter);
}

LinkRotations best_rotations(const SharedLink& link, const CassiniSettings& settings) {
  RotationSearch search(link, settings);
  LinkRotations result{search.circle().perimeter, {}, search.score(), 0, search.is_small()};
  const std::vector<std::uint32_t> steps = search.search();
  result.score = search.score();
  for (std::size_t i = 0; i < steps.size(); ++i)
    result.shifts.push_back(scaled(result.perimeter, steps[i], settings.steps) % link.demands[i].iteration);
  return result;
}

std::optional<std::vector<JobShift>> time_shifts(std::span<const SharedLink> links,
                                                 std::span<const LinkRotations> rotations) {
  const AffinityGraph graph(links);
  if (graph.has_loop()) return std::nullopt;
  std::map<JobId, Time> shifts;
  std::map<JobId, bool> seen;
  for (const auto& [job, unused] : graph.links_of()) {
    if (seen[job]) continue;
    shifts[job] = 0;
    graph.walk(
        job,
        [&](JobId from, const PeriodicDemand& to, std::size_t link, std::size_t place) {
          const std::vector<Time>& on_link = rotations[link].shifts;
          shifts[to.job] =
              modulo(shifts[from] - on_link[place_of(links[link], from)] + on_link[place], to.iteration);
        },
        seen);
  }
  std::vector<JobShift> result;
  result.reserve(shifts.size());
  for (const auto& [job, shift] : shifts) result.push_back({job, shift});
  return result;
}

std::vector<RankedPlacement> rank_placements(std::span<const std::vector<SharedLink>> candidates,
                                             const CassiniSettings& settings) {
  std::vector<RankedPlacement> ranked;
  for (std::uint32_t i = 0; i < candidates.size(); ++i) {
    const std::vector<SharedLink>& links = candidates[i];
    const AffinityGraph graph(links);
    if (graph.has_loop()) continue;
    std::vector<LinkRotations> rotations(links.size());
    double sum = 0, shared = 0;
    for (const std::size_t link : graph.distinct()) {
      rotations[link] = best_rotations(links[link], settings);
      const auto equal = static_cast<double>(std::count(links.begin(), links.end(), links[link]));
      sum += rotations[link].score * equal;
      shared += equal;
    }
    ranked.push_back({i, shared > 0 ? sum / shared : 1.0, *time_shifts(links, rotations)});
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const RankedPlacement& a, const RankedPlacement& b) { return a.score > b.score; });
  return ranked;
}

Time realignment_delay(Time aligned, Time begin, Time iteration, double tolerance) {
  const Time late = modulo(begin - aligned, iteration), off = std::min(late, iteration - late);
  return off > static_cast<Time>(tolerance * static_cast<double>(iteration)) ? iteration - late : 0;
}

}  // namespace netsim
