#include "sim/scheduling/flow/rules/crux.h"

#include <algorithm>
#include <numeric>

#include "sim/core/index.h"
#include "sim/core/random.h"

namespace netsim {
namespace {

constexpr double kMostCorrection = 2;
constexpr Time kIterationsOfWindow = 3;

Time alone(const JobPhases& job) { return std::max(job.compute, job.offset + job.communication); }

// Returns how much of the interval lies within 0 to `window`.
Time within(Time begin, Time end, Time window) {
  return std::max<Time>(0, std::min(end, window) - std::max<Time>(begin, 0));
}

// Returns the communication in seconds that belongs to so much computation of the job.
double progress(const JobPhases& job, Time computed) {
  if (job.compute == 0) return 0;
  return static_cast<double>(computed) / static_cast<double>(job.compute) * to_seconds(job.communication);
}

// LinkLoads: bytes on each link, with the links that have any.
class LinkLoads {
 public:
  explicit LinkLoads(std::span<const BitRate> capacity) : capacity_(capacity), bytes_(capacity.size(), 0) {}

  void add(const std::vector<LinkBytes>& option) {
    for (const LinkBytes& next : option) bytes_[next.link] += next.bytes;
  }

  // Returns the time of the fullest link in picoseconds, t of the paper, at least 1 if there are bytes.
  Time longest() const {
    Time longest = 0;
    for (std::size_t link = 0; link < bytes_.size(); ++link)
      longest = std::max(longest, transmission_time(bytes_[link], capacity_[link]));
    return longest;
  }

  Bytes total() const { return std::accumulate(bytes_.begin(), bytes_.end(), Bytes{0}); }

  std::vector<std::uint32_t> links() const {
    std::vector<std::uint32_t> result;
    for (std::uint32_t link = 0; link < bytes_.size(); ++link) {
      if (bytes_[link] > 0) result.push_back(link);
    }
    return result;
  }

 private:
  std::span<const BitRate> capacity_;
  std::vector<Bytes> bytes_;
};

using Options = std::vector<std::uint32_t>;

LinkLoads loads_of(std::span<const BitRate> capacity, const CruxJob& job, const Options& options) {
  LinkLoads loads(capacity);
  for (std::size_t i = 0; i < options.size(); ++i) loads.add(job.traffic[i].options[options[i]]);
  return loads;
}

JobPhases phases_of(const CruxJob& job, const LinkLoads& loads) {
  return {job.compute, job.offset, loads.longest()};
}

double intensity_of(const CruxJob& job, Time communication) {
  return communication == 0 ? 0 : job.work / to_seconds(communication);
}

std::vector<std::uint32_t> falling(const std::vector<double>& values) {
  std::vector<std::uint32_t> order(values.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return values[a] > values[b]; });
  return order;
}

// PathSelection: options of jobs, with the use of each link by the jobs that have chosen.
class PathSelection {
 public:
  explicit PathSelection(std::span<const BitRate> capacity) : capacity_(capacity), use_(capacity.size(), 0) {}

  // Chooses for a job whose iterations take `iteration` seconds.
  Options choose(const CruxJob& job, double iteration) {
    std::vector<double> largest;
    largest.reserve(job.traffic.size());
    for (const PathChoice& choice : job.traffic) largest.push_back(bytes_of(choice));
    Options options(job.traffic.size(), 0);
    for (const std::uint32_t index : falling(largest)) {
      const auto& all = job.traffic[index].options;
      std::vector<double> unused;
      unused.reserve(all.size());
      for (const auto& option : all) unused.push_back(-fullest_with(option, iteration));
      options[index] = falling(unused).front();
      for (const LinkBytes& next : all[options[index]]) use_[next.link] += use_of(next, iteration);
    }
    return options;
  }

 private:
  static double bytes_of(const PathChoice& choice) {
    double bytes = 0;
    for (const LinkBytes& next : choice.options.front()) bytes += static_cast<double>(next.bytes);
    return bytes;
  }

  double use_of(const LinkBytes& traffic, double iteration) const {
    return static_cast<double>(traffic.bytes) * 8 / static_cast<double>(capacity_[traffic.link]) / iteration;
  }

  double fullest_with(const std::vector<LinkBytes>& option, double iteration) const {
    double fullest = 0;
    for (const LinkBytes& next : option)
      fullest = std::max(fullest, use_[next.link] + use_of(next, iteration));
    return fullest;
  }

  std::span<const BitRate> capacity_;
  std::vector<double> use_;
};

// ContentionGraph: which job loses its intensity if it shares its level with which other one.
class ContentionGraph {
 public:
  explicit ContentionGraph(std::span<const ContendingJob> jobs) : jobs_(jobs), later_(jobs.size()) {
    std::vector<double> priority;
    for (const ContendingJob& job : jobs) priority.push_back(job.priority);
    by_priority_ = falling(priority);
    for (std::size_t i = 0; i < by_priority_.size(); ++i) {
      for (std::size_t j = i + 1; j < by_priority_.size(); ++j) {
        if (share_a_link(by_priority_[i], by_priority_[j]))
          later_[by_priority_[i]].push_back(by_priority_[j]);
      }
    }
  }

  const std::vector<std::uint32_t>& by_priority() const { return by_priority_; }

  std::vector<std::uint32_t> random_order(RandomStream& random) const {
    std::vector<std::uint32_t> waits_for(jobs_.size(), 0), free, order;
    for (const auto& later : later_) {
      for (const std::uint32_t job : later) ++waits_for[job];
    }
    for (std::uint32_t job = 0; job < jobs_.size(); ++job) {
      if (waits_for[job] == 0) free.push_back(job);
    }
    while (!free.empty()) {
      std::swap(free[random.below(free.size())], free.back());
      order.push_back(free.back());
      free.pop_back();
      for (const std::uint32_t job : later_[order.back()]) {
        if (--waits_for[job] == 0) free.push_back(job);
      }
    }
    return order;
  }

  // Returns, by i and k, the weight of edges from the first i jobs of the order to the first k.
  std::vector<std::vector<double>> sums(const std::vector<std::uint32_t>& order) const {
    const std::size_t count = order.size();
    std::vector<std::uint32_t> place(count);
    for (std::uint32_t i = 0; i < count; ++i) place[order[i]] = i;
    std::vector<std::vector<double>> sum(count + 1, std::vector<double>(count + 1, 0));
    for (std::size_t i = 0; i < count; ++i) {
      for (const std::uint32_t job : later_[order[i]]) sum[i + 1][place[job] + 1] = jobs_[order[i]].intensity;
    }
    for (std::size_t i = 1; i <= count; ++i) {
      for (std::size_t k = 1; k <= count; ++k) sum[i][k] += sum[i - 1][k] + sum[i][k - 1] - sum[i - 1][k - 1];
    }
    return sum;
  }

 private:
  bool share_a_link(std::uint32_t a, std::uint32_t b) const {
    const auto &of_a = jobs_[a].links, &of_b = jobs_[b].links;
    for (std::size_t i = 0, j = 0; i < of_a.size() && j < of_b.size();) {
      if (of_a[i] == of_b[j]) return true;
      of_a[i] < of_b[j] ? ++i : ++j;
    }
    return false;
  }

  std::span<const ContendingJob> jobs_;
  std::vector<std::vector<std::uint32_t>> later_;  // by job: jobs of less priority that share a link with it
  std::vector<std::uint32_t> by_priority_;
};

// SequenceCut: the best cut of an order into consecutive levels. It gives the weight of all edges between
// levels.
struct SequenceCut {
  double weight = -1;
  std::vector<std::uint32_t> level;  // by job
};

SequenceCut best_cut(const ContentionGraph& graph, const std::vector<std::uint32_t>& order,
                     std::uint32_t levels) {
  const std::size_t count = order.size();
  const auto sums = graph.sums(order);
  // best[k][i]: the most weight that the first i jobs can have between k + 1 levels; from[k][i]: jobs before
  // the last.
  std::vector<std::vector<double>> best(levels, std::vector<double>(count + 1, 0));
  std::vector<std::vector<std::size_t>> from(levels, std::vector<std::size_t>(count + 1, 0));
  for (std::uint32_t k = 1; k < levels; ++k) {
    for (std::size_t i = 1; i <= count; ++i) {
      best[k][i] = -1;
      for (std::size_t j = 0; j <= i; ++j) {
        const double weight = best[k - 1][j] + sums[j][i] - sums[j][j];
        if (weight <= best[k][i]) continue;
        best[k][i] = weight;
        from[k][i] = j;
      }
    }
  }
  SequenceCut cut{best[levels - 1][count], std::vector<std::uint32_t>(count, 0)};
  for (std::size_t end = count, k = levels - 1; k > 0; end = from[k][end], --k) {
    for (std::size_t i = from[k][end]; i < end; ++i) cut.level[order[i]] = static_cast<std::uint32_t>(k);
  }
  return cut;
}

// Returns the job with the most bytes per time; kNoIndex if none has any.
std::uint32_t busiest(std::span<const JobPhases> phases, const std::vector<LinkLoads>& loads) {
  std::uint32_t reference = kNoIndex;
  double most = 0;
  for (std::uint32_t job = 0; job < phases.size(); ++job) {
    if (phases[job].communication == 0) continue;
    const double rate = static_cast<double>(loads[job].total()) / to_seconds(alone(phases[job]));
    if (rate <= most) continue;
    most = rate;
    reference = job;
  }
  return reference;
}

}  // namespace

LinkShares share_link(const JobPhases& first, const JobPhases& second, Time window) {
  LinkShares shares;
  const Time period = alone(first);
  for (Time begin = 0; begin < window + first.offset; begin += period) {
    shares.first_sent += within(begin, begin + first.communication, window);
    shares.first_computed += within(begin - first.offset, begin - first.offset + first.compute, window);
  }
  for (Time begin = -second.offset; begin < window;) {
    Time now = begin + second.offset, left = second.communication;
    while (left > 0 && now < window) {
      const Time busy_until = now / period * period + first.communication;
      now = std::max(now, busy_until);
      const Time sent = std::min(left, (now - first.communication) / period * period + period - now);
      shares.second_sent += within(now, now + sent, window);
      left -= sent;
      now += sent;
    }
    shares.second_computed += within(begin, begin + second.compute, window);
    begin = left > 0 ? window : std::max(begin + second.compute, now);
  }
  return shares;
}

double correction_factor(const JobPhases& reference, const JobPhases& job) {
  const Time window = kIterationsOfWindow * std::max(alone(reference), alone(job));
  const LinkShares behind = share_link(reference, job, window), ahead = share_link(job, reference, window);
  const double gain = progress(job, ahead.first_computed - behind.second_computed);
  const double loss = progress(reference, behind.first_computed - ahead.second_computed);
  if (gain == loss) return 1;
  if (loss <= 0) return kMostCorrection;
  return std::clamp(gain / loss, 1 / kMostCorrection, kMostCorrection);
}

std::vector<std::vector<std::uint32_t>> crux_paths(std::span<const BitRate> capacity,
                                                   std::span<const CruxJob> jobs) {
  std::vector<double> intensity, iteration;
  for (const CruxJob& job : jobs) {
    const LinkLoads loads = loads_of(capacity, job, PathSelection(capacity).choose(job, 1));
    intensity.push_back(intensity_of(job, loads.longest()));
    iteration.push_back(std::max(to_seconds(alone(phases_of(job, loads))), 1e-12));
  }
  PathSelection selection(capacity);
  std::vector<Options> options(jobs.size());
  for (const std::uint32_t job : falling(intensity))
    options[job] = selection.choose(jobs[job], iteration[job]);
  return options;
}

std::vector<std::uint32_t> compress_priorities(std::span<const ContendingJob> jobs, std::uint32_t levels,
                                               std::uint32_t samples) {
  const ContentionGraph graph(jobs);
  SequenceCut best = best_cut(graph, graph.by_priority(), levels);
  RandomStream random(0, "crux topological orders");
  for (std::uint32_t sample = 1; sample < samples; ++sample) {
    SequenceCut next = best_cut(graph, graph.random_order(random), levels);
    if (next.weight > best.weight) best = std::move(next);
  }
  return best.level;
}

CruxPlan crux_plan(std::span<const BitRate> capacity, std::span<const CruxJob> jobs, std::uint32_t levels) {
  CruxPlan plan{crux_paths(capacity, jobs), {}, {}, {}};
  std::vector<LinkLoads> loads;
  std::vector<JobPhases> phases;
  for (std::size_t job = 0; job < jobs.size(); ++job) {
    loads.push_back(loads_of(capacity, jobs[job], plan.option[job]));
    phases.push_back(phases_of(jobs[job], loads.back()));
    plan.intensity.push_back(intensity_of(jobs[job], phases.back().communication));
  }
  const std::uint32_t reference = busiest(phases, loads);
  std::vector<ContendingJob> contending;
  for (std::uint32_t job = 0; job < jobs.size(); ++job) {
    const bool corrected = job != reference && phases[job].communication > 0;
    const double factor = corrected ? correction_factor(phases[reference], phases[job]) : 1;
    plan.priority.push_back(factor * plan.intensity[job]);
    contending.push_back({plan.intensity[job], plan.priority[job], loads[job].links()});
  }
  plan.level = compress_priorities(contending, levels);
  return plan;
}

}  // namespace netsim
