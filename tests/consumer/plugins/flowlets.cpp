// A routing policy that is called for each packet: flowlet switching (Vanini et al., Let It Flow, NSDI 2017).
// A burst of a flow that comes long enough after the one before takes a new way. It is the less loaded of two
// random ones (Ghorbani et al., DRILL, SIGCOMM 2017).
#include <memory>
#include <tuple>
#include <vector>

#include "sim/core/plugin.h"
#include "sim/core/registry.h"
#include "sim/network/policies.h"

NETSIM_PLUGIN

namespace netsim {
namespace {

// LetFlow, section 3.2: a gap of 500 us on links of 10 Gb/s; here that of faster links.
struct FlowletParameters {
  Time gap = 20 * kMicrosecond;
  std::int64_t entries = 4096;
};

class FlowletSwitch final : public SwitchRouter {
 public:
  FlowletSwitch(const FlowletParameters& p, const RandomStream& random)
      : gap_(p.gap), random_(random), table_(static_cast<std::size_t>(p.entries)) {}

  std::uint32_t choose(const PacketView& packet, NodeId destination, const NextHops& hops,
                       Time now) override {
    Entry& entry = table_[hash_combine(packet.tag.flow, destination) % table_.size()];
    if (now - entry.last > gap_ || entry.hop >= hops.size()) entry.hop = less_loaded_of_two(hops);
    entry.last = now;
    return entry.hop;
  }

 private:
  struct Entry {
    Time last = INT64_MIN / 2;
    std::uint32_t hop = 0;
  };

  std::uint32_t less_loaded_of_two(const NextHops& hops) {
    const auto one = static_cast<std::uint32_t>(random_.below(hops.size()));
    const auto other = static_cast<std::uint32_t>(random_.below(hops.size()));
    const PortLoad a = hops.load(one), b = hops.load(other);
    return std::tuple(b.stopped, b.waiting, b.busy) < std::tuple(a.stopped, a.waiting, a.busy) ? other : one;
  }

  Time gap_;
  RandomStream random_;
  std::vector<Entry> table_;
};

class Flowlets final : public RoutingPolicy {
 public:
  explicit Flowlets(const FlowletParameters& p) : p_(p) {}
  RoutingPlan compile() const override { return {.choice = RoutingPlan::Choice::own}; }
  std::unique_ptr<SwitchRouter> make_switch(const SwitchContext& context) const override {
    return std::make_unique<FlowletSwitch>(p_, context.random);
  }

 private:
  FlowletParameters p_;
};

const Registration<RoutingPolicy> kRegistration{
    "flowlets", "each burst of a flow takes the less loaded of two random next hops",
    Parameters<FlowletParameters>()
        .time("gap", &FlowletParameters::gap, {0, 1 * kSecond},
              "time after which a burst may take another way")
        .integer("entries", &FlowletParameters::entries, {1, 1 << 20}, "places of a switch's table of flows"),
    [](const FlowletParameters& p, const ConfigNode&) { return std::make_unique<Flowlets>(p); }};

}  // namespace
}  // namespace netsim
