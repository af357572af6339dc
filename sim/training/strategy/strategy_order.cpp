#include "sim/training/strategy/strategy_order.h"

#include <algorithm>

#include "sim/core/registry.h"
#include "sim/core/text.h"
#include "sim/training/strategy/strategy.h"

namespace netsim {
namespace {

// OrderGraph: which strategies precede which, by their indices.
class OrderGraph {
 public:
  OrderGraph(const std::vector<OrderedStrategy>& strategies, const ConfigNode& where)
      : strategies_(strategies), where_(where), precede_(strategies.size()) {
    for (std::size_t i = 0; i < strategies.size(); ++i) {
      for (const std::string& name : strategies[i].order.after)
        for (const std::size_t other : called(name, i)) precede_[i].push_back(other);
      for (const std::string& name : strategies[i].order.before)
        for (const std::size_t other : called(name, i)) precede_[other].push_back(i);
    }
  }

  std::vector<std::size_t> sorted() const {
    std::vector<std::size_t> order;
    std::vector<bool> done(strategies_.size(), false);
    const auto ready = [&](std::size_t i) {
      return std::all_of(precede_[i].begin(), precede_[i].end(), [&](std::size_t p) { return done[p]; });
    };
    while (order.size() < strategies_.size()) {
      std::size_t next = 0;
      while (next < strategies_.size() && (done[next] || !ready(next))) ++next;
      if (next == strategies_.size()) refuse_cycle(done);
      done[next] = true;
      order.push_back(next);
    }
    return order;
  }

 private:
  // Returns the strategies of that name, which may be none of the job's.
  std::vector<std::size_t> called(const std::string& name, std::size_t by) const {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < strategies_.size(); ++i)
      if (strategies_[i].name == name) found.push_back(i);
    const Catalogue& catalogue = Catalogue::instance();
    if (found.empty() && catalogue.find(Strategy::kComponentKind, name) == nullptr) {
      const std::string near = nearest(name, catalogue.names(Strategy::kComponentKind));
      where_.fail("the order of strategy '" + strategies_[by].name + "' names '" + name +
                  "', which is no strategy" + (near.empty() ? "" : "; did its author mean '" + near + "'?"));
    }
    return found;
  }

  // Every strategy that is left waits for another one that is left, so a walk from one to the next meets one
  // of them again.
  [[noreturn]] void refuse_cycle(const std::vector<bool>& done) const {
    std::vector<std::size_t> walk;
    const auto left = [&](std::size_t i) { return !done[i]; };
    std::size_t at = static_cast<std::size_t>(std::find(done.begin(), done.end(), false) - done.begin());
    while (std::find(walk.begin(), walk.end(), at) == walk.end()) {
      walk.push_back(at);
      at = *std::find_if(precede_[at].begin(), precede_[at].end(), left);
    }
    walk.erase(walk.begin(), std::find(walk.begin(), walk.end(), at));
    std::string chain = "'" + strategies_[at].name + "'";
    for (std::size_t i = walk.size(); i-- > 0;) chain += " before '" + strategies_[walk[i]].name + "'";
    where_.fail("the strategies cannot be put in order, because their constraints contradict each other: " +
                chain);
  }

  const std::vector<OrderedStrategy>& strategies_;
  const ConfigNode& where_;
  std::vector<std::vector<std::size_t>> precede_;  // by strategy: those that are applied before it
};

}  // namespace

std::vector<std::size_t> order_strategies(const std::vector<OrderedStrategy>& strategies,
                                          const ConfigNode& where) {
  return OrderGraph(strategies, where).sorted();
}

}  // namespace netsim
