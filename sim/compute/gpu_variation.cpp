#include "sim/compute/gpu_variation.h"

#include <array>
#include <cmath>
#include <utility>

#include "sim/core/parameters.h"
#include "sim/core/text.h"
#include "sim/core/time_limits.h"

namespace netsim {
namespace {

constexpr std::int64_t kMaxIteration = 1'000'000'000;

struct Entry {
  std::string gpu, host;
  double slowdown = 1;
  std::int64_t first_iteration = 0, last_iteration = kMaxIteration;
};

const Parameters<Entry>& entry_parameters() {
  static const auto p =
      Parameters<Entry>()
          .text("gpu", &Entry::gpu, "the GPU by its name in tables: host0/gpu3")
          .text("host", &Entry::host, "all GPUs of a host: host2")
          .real("slowdown", &Entry::slowdown, {1, 1000}, "factor on the time of each computation")
          .required()
          .integer("first_iteration", &Entry::first_iteration, {0, kMaxIteration},
                   "first slow iteration of the job, from 0")
          .integer("last_iteration", &Entry::last_iteration, {0, kMaxIteration},
                   "last slow iteration of the job");
  return p;
}

struct FailureEntry {
  std::string host;
  Time at = 0;
};

const Parameters<FailureEntry>& failure_parameters() {
  static const auto p =
      Parameters<FailureEntry>()
          .text("host", &FailureEntry::host, "the host by its name in tables: host2")
          .required()
          .time("at", &FailureEntry::at, {0, 1'000'000 * kSecond}, "simulated time of the failure")
          .required();
  return p;
}

// Returns the GPUs that the entry names.
std::vector<GpuId> gpus_of(const Entry& entry, const ConfigNode& node, const Cluster& cluster) {
  if (entry.gpu.empty() == entry.host.empty()) node.fail("one of 'gpu' and 'host' is needed, and not both");
  const bool whole = entry.gpu.empty();
  const std::string& name = whole ? entry.host : entry.gpu;
  const auto name_of = [&](const Gpu& gpu) {
    const std::string& full = cluster.graph.node(gpu.node).name;
    return whole ? full.substr(0, full.find('/')) : full;
  };
  std::vector<GpuId> found;
  for (GpuId gpu = 0; gpu < cluster.gpus.size(); ++gpu) {
    if (name_of(cluster.gpus[gpu]) == name) found.push_back(gpu);
  }
  if (!found.empty()) return found;
  std::vector<std::string> names;
  names.reserve(cluster.gpus.size());
  for (const Gpu& gpu : cluster.gpus) names.push_back(name_of(gpu));
  node.find(whole ? "host" : "gpu")
      ->fail("no " + std::string(whole ? "host" : "GPU") + " '" + name + "'" + did_you_mean(name, names) +
             " (names are those of links.csv)");
}

// Returns a random number with mean 0 and variance 1, as described at VaryingTimes.
double deviate(RandomStream random) {
  double z = -6;
  for (int i = 0; i < 12; ++i) z += random.uniform();
  return z;
}

// Returns c[0] + c[1] x + c[2] x^2 ...
template <std::size_t size>
double polynomial(const std::array<double, size>& c, double x) {
  double value = 0;
  for (std::size_t i = size; i > 0; --i) value = value * x + c[i - 1];
  return value;
}

// Returns the quantile p of the normal distribution, 0 < p < 1 (PPND7 of AS 241, to seven digits).
double normal_quantile(double p) {
  const double q = p - 0.5;
  if (q >= -0.425 && q <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * polynomial<4>({3.3871327179, 50.434271938, 159.29113202, 59.109374720}, r) /
           polynomial<4>({1, 17.895169469, 78.757757664, 67.187563600}, r);
  }
  const double r = std::sqrt(-portable_log(q < 0 ? p : 1 - p));
  const double z = r <= 5
                       ? polynomial<4>({1.4234372777, 2.7568153900, 1.3067284816, 0.17023821103}, r - 1.6) /
                             polynomial<3>({1, 0.73700164250, 0.12021132975}, r - 1.6)
                       : polynomial<4>({6.6579051150, 3.0812263860, 0.42868294337, 0.017337203997}, r - 5) /
                             polynomial<3>({1, 0.24197894225, 0.012258202635}, r - 5);
  return q < 0 ? -z : z;
}

}  // namespace

std::vector<double> slowness_of_gpus(std::uint32_t gpus, double deviation, std::uint64_t seed) {
  std::vector<double> slowness;
  // Each round adds one quantile in the middle of every gap between the quantiles so far.
  for (std::uint64_t more = 1; slowness.size() < gpus; more *= 2) {
    const std::size_t first = slowness.size();
    for (std::uint64_t j = 0; j < more; ++j)
      slowness.push_back(1 + deviation *
                                 normal_quantile((static_cast<double>(j) + 0.5) / static_cast<double>(more)));
    RandomStream random(seed, "slowness of GPUs", more);
    for (std::uint64_t left = more; left > 1; --left)
      std::swap(slowness[first + left - 1], slowness[first + random.below(left)]);
  }
  slowness.resize(gpus);
  return slowness;
}

std::vector<Straggler> read_stragglers(const ConfigNode& list, const Cluster& cluster) {
  std::vector<Straggler> stragglers;
  if (list.is_null()) return stragglers;
  if (!list.is_sequence()) list.fail("a list of {gpu, slowdown} or {host, slowdown}");
  for (const ConfigNode& node : list.items()) {
    const Entry entry = entry_parameters().parse(node);
    if (entry.last_iteration < entry.first_iteration)
      node.find("last_iteration")->fail("last_iteration is before first_iteration");
    for (const GpuId gpu : gpus_of(entry, node, cluster)) {
      stragglers.push_back({gpu, entry.slowdown, static_cast<std::uint32_t>(entry.first_iteration),
                            static_cast<std::uint32_t>(entry.last_iteration)});
    }
  }
  return stragglers;
}

std::vector<HostFailure> read_failures(const ConfigNode& list, const Cluster& cluster) {
  std::vector<HostFailure> failures;
  if (list.is_null()) return failures;
  if (!list.is_sequence()) list.fail("a list of {host, at}");
  for (const ConfigNode& node : list.items()) {
    const FailureEntry entry = failure_parameters().parse(node);
    Entry host;
    host.host = entry.host;
    failures.push_back({cluster.gpus[gpus_of(host, node, cluster).front()].host, entry.at});
  }
  return failures;
}

VaryingTimes::VaryingTimes(std::unique_ptr<ComputeTimes> times, const GpuVariation& how,
                           const std::vector<GpuId>& gpus, std::uint64_t seed, const std::string& job)
    : times_(std::move(times)),
      jitter_(how.jitter),
      key_(RandomStream(seed, "compute jitter of " + job).key()) {
  for (const GpuId gpu : gpus) {
    if (!how.slowness.empty()) slowness_.push_back(how.slowness.at(gpu));
    if (how.stragglers.empty()) continue;
    std::vector<Straggler>& mine = by_rank_.emplace_back();
    for (const Straggler& straggler : how.stragglers) {
      if (straggler.gpu == gpu) mine.push_back(straggler);
    }
  }
}

Time VaryingTimes::duration(RankId rank, const ComputeRequest& task) const {
  if (task.on_host) return times_->duration(rank, task);
  double factor = slowness_.empty() ? 1 : slowness_[rank];
  if (!by_rank_.empty()) {
    for (const Straggler& straggler : by_rank_[rank]) {
      if (task.iteration >= straggler.first && task.iteration <= straggler.last) factor *= straggler.slowdown;
    }
  }
  if (jitter_ > 0) factor *= 1 + jitter_ * deviate(RandomStream(key_, "", hash_combine(rank, task.task)));
  const Time time = times_->duration(rank, task);
  return factor == 1 ? time : bounded_time(static_cast<double>(time) * factor + 0.5);
}

}  // namespace netsim
