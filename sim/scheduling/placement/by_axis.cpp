// The placement `by_axis` follows the axes of the parallelization strategy. Ranks that differ only on the
// axes `inside` are packed into hosts, or into racks where NVLink connects hosts. The first named axis is
// fastest. No such group is divided between two hosts or racks; GPUs left over in one stay free.
//
// The axes `along` come next and go from host to host. Neighbours on them have the same number within their
// hosts, and so are on one rail of a rail-optimised fabric. Axes that are not named follow, in program order.
#include <fmt/format.h>

#include <algorithm>

#include "sim/core/errors.h"
#include "sim/core/registry.h"
#include "sim/core/text.h"
#include "sim/scheduling/placement.h"

namespace netsim {
namespace {

struct ByAxisParameters : PlacementParameters {
  ConfigNode inside, along;
};

std::vector<ConfigNode> named(const ConfigNode& node) {
  return node.is_null() ? std::vector<ConfigNode>{} : read_names(node, "");
}

class ByAxis final : public Placement {
 public:
  ByAxis(const ByAxisParameters& p, const ConfigNode& where)
      : Placement(p.share), inside_(named(p.inside)), along_(named(p.along)), where_(where.place()) {}

  std::vector<GpuId> place(const PlacementView& view) const override {
    const std::vector<std::size_t> order = order_of(view);
    check_hosts(view);
    const std::vector<GpuId> free = gpus_for(view);
    std::vector<GpuId> gpus(view.ranks);
    for (RankId rank = 0; rank < view.ranks; ++rank) gpus[rank] = free[number_in_order(view, order, rank)];
    return gpus;
  }

 private:
  // Returns the axes, fastest first.
  std::vector<std::size_t> order_of(const PlacementView& view) const {
    if (view.axes.empty())
      throw ConfigError(where_, fmt::format("job '{}' has no axes: its ranks are a list", view.job));
    std::vector<std::size_t> order;
    for (const auto* list : {&inside_, &along_}) {
      for (const ConfigNode& node : *list) order.push_back(axis(view, node, order));
    }
    for (std::size_t axis = 0; axis < view.axes.size(); ++axis) {
      if (std::find(order.begin(), order.end(), axis) == order.end()) order.push_back(axis);
    }
    return order;
  }

  static std::size_t axis(const PlacementView& view, const ConfigNode& node,
                          const std::vector<std::size_t>& named) {
    const std::string name = read_text(node);
    std::string known;
    for (std::size_t i = 0; i < view.axes.size(); ++i) {
      if (view.axes[i].first != name) {
        append_item(known, view.axes[i].first);
        continue;
      }
      if (std::find(named.begin(), named.end(), i) != named.end())
        node.fail("axis '" + name + "' is named twice");
      return i;
    }
    node.fail(fmt::format("job '{}' has no axis '{}' (it has {})", view.job, name, known));
  }

  // Returns the number of ranks on the axes inside hosts.
  std::size_t inside(const PlacementView& view) const {
    std::size_t ranks = 1;
    for (const auto& [name, size] : view.axes) {
      const auto is = [&name = name](const ConfigNode& node) { return read_text(node) == name; };
      if (std::any_of(inside_.begin(), inside_.end(), is)) ranks *= size;
    }
    return ranks;
  }

  // Returns the free GPUs, from each host or rack as many as whole groups fill. Returns all if no host or
  // rack holds a whole group.
  std::vector<GpuId> gpus_for(const PlacementView& view) const {
    std::vector<GpuId> free = enough_gpus(view, where_);
    const std::size_t group = inside(view);
    std::vector<GpuId> taken;
    for (std::size_t begin = 0, end = 0; begin < free.size(); begin = end) {
      for (end = begin + 1; end < free.size() && near(view.cluster, free[begin], free[end]);) ++end;
      const std::size_t whole = (end - begin) / group * group;
      taken.insert(taken.end(), free.begin() + static_cast<std::ptrdiff_t>(begin),
                   free.begin() + static_cast<std::ptrdiff_t>(begin + whole));
    }
    if (taken.empty()) return free;
    if (taken.size() >= view.ranks) return taken;
    throw ConfigError(where_, fmt::format("job '{}': {} groups of {} ranks each fit into hosts and racks "
                                          "without being divided, the job has {}",
                                          view.job, taken.size() / group, group, view.ranks / group));
  }
  static bool near(const Cluster& cluster, GpuId a, GpuId b) {
    return cluster.same_host(a, b) || cluster.way(a, b) == HostRouteKind::nvlink_fabric;
  }

  // Checks that the inside axes fill whole hosts. Otherwise neighbours along an axis are not on one rail.
  void check_hosts(const PlacementView& view) const {
    if (along_.empty()) return;
    const Cluster& cluster = view.cluster;
    const std::size_t filled = inside(view);
    for (const HostGroup& group : cluster.groups) {
      if (filled % group.gpus == 0) continue;
      along_.front().fail(
          fmt::format("the axes inside hosts have {} ranks together, which do not fill hosts of {} GPUs: "
                      "neighbours along this axis would not be on one rail",
                      filled, group.gpus));
    }
  }

  std::vector<ConfigNode> inside_, along_;
  Place where_;
};

const Registration<Placement> kByAxis{
    "by_axis", "by the strategy's axes: some stay inside a host, others go along a rail",
    placement_parameters<ByAxisParameters>()
        .list("inside", &ByAxisParameters::inside,
              "axes whose neighbours share a host, or a rack that NVLink joins, fastest first")
        .list("along", &ByAxisParameters::along,
              "axes that go from host to host next: their neighbours have the same number in their hosts"),
    [](const ByAxisParameters& p, const ConfigNode& where) { return std::make_unique<ByAxis>(p, where); }};

}  // namespace
}  // namespace netsim
