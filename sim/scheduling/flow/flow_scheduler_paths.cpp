// paths: each new flow gets the path whose most loaded link has the least load, by an estimate of what all
// flows would need. Source: Al-Fares et al., "Hedera: dynamic flow scheduling for data center networks",
// NSDI 2010. Flows keep their paths, so no packet overtakes another one.
//
// With `by: loads` the load of a link is what its port has transmitted, from the view `loads`, instead of the
// estimate. With `by: queues` it is the queue of its port, from the view `queues`. DRILL
// (Ghorbani et al., SIGCOMM 2017) compares queues too, in switches and for each packet. With `avoid_failed` a
// flow gets a path over links that are down, from the view `failures`, only if it has no other. It cannot do
// without `topology`. `sizes` says when it sees flows, and all count alike. Without `loads` or `queues` all
// links are equally loaded but for the flows of the same interval; without `failures` no link is avoided.
#include <map>
#include <memory>

#include "sim/core/registry.h"
#include "sim/scheduling/flow/path_placement.h"
#include "sim/scheduling/flow/rule_view.h"

namespace netsim {
namespace {

struct PathsParameters {
  std::int64_t most_paths = 64;
  bool waits = true;
  LoadSource by = LoadSource::demands;
  bool avoid_failed = false;
};

const Parameters<PathsParameters>& paths_parameters() {
  using P = PathsParameters;
  static const auto parameters =
      Parameters<P>()
          .integer("most_paths", &P::most_paths, {1, 4096},
                   "paths of a flow that are looked at, the first ones")
          .choice("new_flows", &P::waits, {{"wait", true}, {"send", false}},
                  "what a new flow does until it has its path: `wait` for it, or `send` on the path that "
                  "routing chose and change to the other one")
          .choice(
              "by", &P::by,
              {{"demands", LoadSource::demands},
               {"loads", LoadSource::loads},
               {"queues", LoadSource::queues}},
              "the load of a link: the estimated `demands` of the flows on it, the measured `loads` of the "
              "last scheduling.views.loads.every, or the `queues` of ports")
          .flag("avoid_failed", &P::avoid_failed,
                "new flows get no path over links that are known to be down, where they have another one");
  return parameters;
}

class Paths final : public FlowScheduler {
 public:
  explicit Paths(const PathsParameters& p) : p_(p) {}
  FlowNeeds needs() const override {
    ViewFields views{ViewField::topology, ViewField::sizes};
    if (p_.by == LoadSource::loads) views = views | ViewFields{ViewField::loads};
    if (p_.by == LoadSource::queues) views = views | ViewFields{ViewField::queues};
    if (p_.avoid_failed) views = views | ViewFields{ViewField::failures};
    return {.central = true, .views = views, .required = {ViewField::topology}};
  }
  FlowTreatment admit(const FlowView& flow) const override { return admit_centrally(flow, p_.waits); }
  void decide(const FlowsView& view, FlowDecisions& decisions) override {
    PathPlacement placement(static_cast<std::uint32_t>(p_.most_paths), p_.by);
    const std::vector<BitRate> demands = demands_of(view);
    std::map<FlowId, std::uint32_t> kept;
    std::vector<std::size_t> fresh;
    std::vector<BitRate> fresh_demands;
    for (std::size_t i = 0; i < view.flows.size(); ++i) {
      const FlowView& flow = view.flows[i];
      if (const auto placed = placed_.find(flow.id); placed != placed_.end()) {
        kept.insert(*placed);
        if (p_.by == LoadSource::demands) placement.add_load(view, flow, placed->second, demands[i]);
      } else {
        fresh.push_back(i);
        fresh_demands.push_back(demands[i]);
      }
    }
    const std::vector<std::uint32_t> hints = placement.place(view, fresh, fresh_demands);
    for (std::size_t i = 0; i < fresh.size(); ++i) {
      const FlowId id = view.flows[fresh[i]].id;
      kept.emplace(id, hints[i]);
      decisions.path(id, hints[i]);
      decisions.release(id);
    }
    placed_ = std::move(kept);
  }

 private:
  PathsParameters p_;
  std::map<FlowId, std::uint32_t> placed_;  // path of each flow that has bytes left
};

const Registration<FlowScheduler> kPaths{
    "paths",
    "Hedera: each new flow gets the path with the least load. It cannot do without the view `topology`; "
    "without `loads` or `queues` links count as empty, and without `failures` none is avoided",
    paths_parameters(),
    [](const PathsParameters& p, const ConfigNode&) { return std::make_unique<Paths>(p); }};

}  // namespace
}  // namespace netsim
