// poisson: every host starts flows at random times to random hosts, with sizes from a published distribution.
// The hosts' links have a given load. It is the open-loop traffic of the congestion-control literature
// (DCTCP, SIGCOMM 2010; pFabric, SIGCOMM 2013; HPCC, SIGCOMM 2019).
//
//   kind: poisson
//   rate: 100 Gbps
//   load: 0.5
//   duration: 10 ms
//   cdf: web_search.cdf
//
// Each host has random streams of its own. So a host's flows do not depend on the number of other hosts,
// except for their destinations.
#include <memory>
#include <string>
#include <utility>

#include "sim/core/errors.h"
#include "sim/core/random.h"
#include "sim/core/registry.h"
#include "sim/core/time_limits.h"
#include "sim/workload/traffic/flow_source.h"
#include "sim/workload/traffic/size_distribution.h"
#include "sim/workload/traffic/traffic.h"
#include "sim/workload/workload.h"

namespace netsim {

namespace {

constexpr double kMaxPoissonFlows = 1 << 24;

struct PoissonParameters {
  std::int64_t hosts = 0;
  double load = 0.5;
  BitRate rate = 0;
  Time duration = 0;
  std::int64_t seed = 0;
};

const Parameters<PoissonParameters>& traffic_poisson_parameters() {
  using P = PoissonParameters;
  static const auto p =
      Parameters<P>()
          .integer("hosts", &P::hosts, {0, kMaxTrafficRanks},
                   "number of ranks that send and receive; 0: all GPUs of the cluster")
          .real("load", &P::load, {1e-6, 10},
                "payload that a host offers on average, as a share of `rate`; headers are additional")
          .rate("rate", &P::rate, {1 * kMbps, 100'000 * kGbps},
                "rate of a host's link, to which `load` refers")
          .required()
          .time("duration", &P::duration, {1 * kNanosecond, 1'000 * kSecond},
                "flows start within this time from the beginning")
          .required()
          .integer("seed", &P::seed, {0, INT64_MAX},
                   "seed of sizes, times and destinations; 0: the run's --seed");
  return p;
}

class Poisson final : public WorkloadKind {
 public:
  Poisson(const PoissonParameters& p, SizeDistribution sizes, const ConfigNode& where)
      : p_(p),
        sizes_(std::move(sizes)),
        hosts_place_(place_of(where, "hosts")),
        duration_place_(place_of(where, "duration")) {}

  std::unique_ptr<TaskSource> tasks(const WorkloadContext& context) const override {
    const std::uint32_t hosts = traffic_ranks(p_.hosts, context, hosts_place_);
    const double mean_gap = sizes_.mean() * 8e12 / (static_cast<double>(p_.rate) * p_.load);  // picoseconds
    const double expected = static_cast<double>(p_.duration) / mean_gap * hosts;
    if (expected > kMaxPoissonFlows) {
      throw InputError(duration_place_,
                       "about " + std::to_string(static_cast<std::int64_t>(expected)) + " flows; at most " +
                           std::to_string(static_cast<std::int64_t>(kMaxPoissonFlows)) + " are allowed");
    }
    auto source = std::make_unique<FlowSource>("poisson", hosts);
    source->reserve(static_cast<std::size_t>(expected * 1.1));
    const std::uint32_t name = source->add_name("flow");
    const std::uint64_t seed = p_.seed == 0 ? context.seed : static_cast<std::uint64_t>(p_.seed);
    for (std::uint32_t host = 0; host < hosts; ++host) add_flows(*source, host, hosts, mean_gap, seed, name);
    if (source->flow_count() == 0) {
      throw InputError(duration_place_, "no flow starts within " + format_time(p_.duration) +
                                            ": the mean time between two of a host is " +
                                            format_time(bounded_time(mean_gap)));
    }
    source->seal();
    return source;
  }

 private:
  void add_flows(FlowSource& source, std::uint32_t host, std::uint32_t hosts, double mean_gap,
                 std::uint64_t seed, std::uint32_t name) const {
    RandomStream gaps(seed, "workload.poisson.gaps", host);
    RandomStream sizes(seed, "workload.poisson.sizes", host);
    RandomStream destinations(seed, "workload.poisson.destinations", host);
    Time start = 0;
    while (true) {
      const double gap = gaps.exponential(mean_gap);
      if (gap >= static_cast<double>(p_.duration - start)) return;
      start += static_cast<Time>(gap);
      const auto other = static_cast<std::uint32_t>(destinations.below(hosts - 1));
      source.add({.from = host,
                  .to = other < host ? other : other + 1,
                  .bytes = sizes_.quantile(sizes.uniform()),
                  .start = start,
                  .name = name});
    }
  }

  PoissonParameters p_;
  SizeDistribution sizes_;
  Place hosts_place_, duration_place_;
};

// `cdf` is the name of a file or a list.
ParameterTable poisson_table() {
  ParameterInfo cdf;
  cdf.name = "cdf";
  cdf.type = "list";
  cdf.required = true;
  cdf.doc = "sizes: a file of lines 'bytes percent', or a list [[bytes, percent], ...]; linear in between";
  ParameterTable table = traffic_poisson_parameters().table();
  table.push_back(cdf);
  return table;
}

const Registration<WorkloadKind> kTrafficPoisson{
    "poisson",
    "flows at random times between random hosts, sizes from a distribution, at a given load of the hosts' "
    "links",
    poisson_table(), [](const ConfigNode& node) {
      const PoissonParameters p =
          traffic_poisson_parameters().parse(node.is_scalar() ? ConfigNode() : node, {"kind", "cdf"});
      const ConfigNode* sizes = node.find("cdf");
      if (sizes == nullptr || sizes->is_null()) {
        node.fail("'cdf' is missing: a file of lines 'bytes percent', or a list [[bytes, percent], ...]");
      }
      return std::make_unique<Poisson>(p, read_size_distribution(*sizes), node);
    }};

}  // namespace

}  // namespace netsim
