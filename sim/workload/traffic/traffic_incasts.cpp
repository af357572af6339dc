// incasts: repeatedly, several random senders send one message each to a random receiver, as when a request
// is spread over many servers. HPCC and earlier transports are measured with such traffic. HPCC's incasts
// have 60 senders of 500 KB each and take 2 % of the network's capacity (Li et al., SIGCOMM 2019, section
// 5.1).
//
//   kind: incasts
//   senders: 60
//   bytes: 500 KB
//   rate: 100 Gbps
//   load: 2 %
//   duration: 10 ms
//
// Times, receivers and senders have random streams of their own. So the n-th incast has the same members
// whatever the load.
#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/errors.h"
#include "sim/core/random.h"
#include "sim/core/registry.h"
#include "sim/workload/traffic/flow_source.h"
#include "sim/workload/traffic/traffic.h"
#include "sim/workload/workload.h"

namespace netsim {

namespace {

constexpr double kMaxIncastFlows = 1 << 24;

struct IncastsParameters {
  std::int64_t hosts = 0;
  std::int64_t senders = 0;
  Bytes bytes = 500 * kKilobyte;
  bool poisson = true;
  Time interval = 0;
  double load = 0;
  BitRate rate = 0;
  Time duration = 0;
  std::int64_t seed = 0;
};

const Parameters<IncastsParameters>& traffic_incasts_parameters() {
  using P = IncastsParameters;
  static const auto p =
      Parameters<P>()
          .integer("hosts", &P::hosts, {0, kMaxTrafficRanks},
                   "number of ranks that send and receive; 0: all GPUs of the cluster")
          .integer("senders", &P::senders, {1, kMaxTrafficRanks - 1},
                   "number of different ranks that send in each incast, its receiver excluded")
          .required()
          .bytes("bytes", &P::bytes, kMessageSizes, "size of each sender's message")
          .choice("arrivals", &P::poisson, {{"poisson", true}, {"periodic", false}},
                  "times between incasts: exponentially distributed, or all the same")
          .time("interval", &P::interval, {0, 1'000 * kSecond}, "mean time between two incasts; 0: by `load`")
          .real("load", &P::load, {0, 10},
                "payload that all incasts offer on average, as a share of the `rate` of all hosts together; "
                "0: by `interval`")
          .rate("rate", &P::rate, {0, 100'000 * kGbps}, "rate of a host's link, to which `load` refers")
          .time("duration", &P::duration, {1 * kNanosecond, 1'000 * kSecond},
                "incasts start within this time from the beginning, the first one an interval after it")
          .required()
          .integer("seed", &P::seed, {0, INT64_MAX},
                   "seed of times, receivers and senders; 0: the run's --seed");
  return p;
}

class Incasts final : public WorkloadKind {
 public:
  Incasts(const IncastsParameters& p, const ConfigNode& where)
      : p_(p),
        hosts_place_(place_of(where, "hosts")),
        senders_place_(place_of(where, "senders")),
        duration_place_(place_of(where, "duration")) {
    if (p.interval > 0 && (p.load > 0 || p.rate > 0)) {
      throw ConfigError(place_of(where, p.load > 0 ? "load" : "rate"),
                        "'interval' already sets how often; allowed: 'interval', or 'load' and 'rate'");
    }
    if (p.interval == 0 && (p.load == 0 || p.rate == 0)) {
      throw ConfigError(
          place_of(where, "load"),
          "the frequency is missing: give 'interval', or 'load' and the 'rate' to which it refers");
    }
  }

  std::unique_ptr<TaskSource> tasks(const WorkloadContext& context) const override {
    const std::uint32_t hosts = traffic_ranks(p_.hosts, context, hosts_place_);
    if (p_.senders >= std::int64_t{hosts}) {
      throw InputError(senders_place_, "senders " + std::to_string(p_.senders) + ", of " +
                                           std::to_string(hosts) + " ranks; allowed: 1 to " +
                                           std::to_string(hosts - 1));
    }
    const double interval = mean_interval(hosts);
    const double expected = static_cast<double>(p_.duration) / interval * static_cast<double>(p_.senders);
    if (expected > kMaxIncastFlows) {
      throw InputError(duration_place_,
                       "about " + std::to_string(static_cast<std::int64_t>(expected)) + " flows; at most " +
                           std::to_string(static_cast<std::int64_t>(kMaxIncastFlows)) + " are allowed");
    }
    auto source = std::make_unique<FlowSource>("incasts", hosts);
    source->reserve(static_cast<std::size_t>(expected * 1.1));
    add_incasts(*source, hosts, interval, p_.seed == 0 ? context.seed : static_cast<std::uint64_t>(p_.seed));
    if (source->flow_count() == 0) {
      throw InputError(duration_place_, "no incast starts within " + format_time(p_.duration) +
                                            ": the mean time between two is " +
                                            format_time(static_cast<Time>(interval)));
    }
    source->seal();
    return source;
  }

 private:
  // Returns the mean interval in picoseconds, at least 1.
  double mean_interval(std::uint32_t hosts) const {
    if (p_.interval > 0) return static_cast<double>(p_.interval);
    const double bits = static_cast<double>(p_.senders) * static_cast<double>(p_.bytes) * 8;
    return std::max(1.0, bits * 1e12 / (static_cast<double>(p_.rate) * p_.load * hosts));
  }

  void add_incasts(FlowSource& source, std::uint32_t hosts, double interval, std::uint64_t seed) const {
    RandomStream gaps(seed, "workload.incasts.gaps");
    RandomStream receivers(seed, "workload.incasts.receivers");
    std::vector<std::uint32_t> ranks(hosts);
    std::iota(ranks.begin(), ranks.end(), 0U);
    Time start = 0;
    for (std::uint32_t number = 0;; ++number) {
      const double gap = p_.poisson ? gaps.exponential(interval) : interval;
      if (gap >= static_cast<double>(p_.duration - start)) return;
      start += static_cast<Time>(gap);
      const auto receiver = static_cast<std::uint32_t>(receivers.below(hosts));
      RandomStream senders(seed, "workload.incasts.senders", number);
      add_incast(
          source, ranks,
          {.to = receiver, .bytes = p_.bytes, .start = start, .name = source.numbered_name("incast", number)},
          senders);
    }
  }

  // Adds an incast. Its senders are the first steps of a shuffle of all others (Fisher and Yates), which is
  // undone afterwards.
  void add_incast(FlowSource& source, std::vector<std::uint32_t>& ranks, Flow flow,
                  RandomStream& draw) const {
    const auto others = static_cast<std::uint32_t>(ranks.size() - 1);
    std::swap(ranks[flow.to], ranks[others]);
    std::vector<std::uint32_t> swapped;
    for (std::uint32_t i = 0; i < p_.senders; ++i) {
      swapped.push_back(i + static_cast<std::uint32_t>(draw.below(others - i)));
      std::swap(ranks[i], ranks[swapped[i]]);
      flow.from = ranks[i];
      source.add(flow);
    }
    for (std::size_t i = swapped.size(); i-- > 0;) std::swap(ranks[i], ranks[swapped[i]]);
    std::swap(ranks[flow.to], ranks[others]);
  }

  IncastsParameters p_;
  Place hosts_place_, senders_place_, duration_place_;
};

const Registration<WorkloadKind> kTrafficIncasts{
    "incasts",
    "repeated incasts at a given interval or load: random ranks send one message each to a random receiver",
    traffic_incasts_parameters(),
    [](const IncastsParameters& p, const ConfigNode& where) { return std::make_unique<Incasts>(p, where); }};

}  // namespace

}  // namespace netsim
