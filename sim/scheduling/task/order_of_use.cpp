#include "sim/scheduling/task/order_of_use.h"

#include <algorithm>

#include "sim/scheduling/task/operation_graph.h"

namespace netsim {
namespace {

// FirstUses: by node, the position of the first computation that waits for its end.
class FirstUses {
 public:
  explicit FirstUses(const JobProfile& profile) : profile_(profile), graph_(profile) {
    within_.assign(graph_.size(), kNoIndex);
    next_.assign(graph_.size(), kNoIndex);
    const std::vector<std::uint32_t>& order = graph_.order();
    for (auto node = order.rbegin(); node != order.rend(); ++node) {
      for (const std::uint32_t successor : graph_.successors().of(*node))
        within_[*node] = std::min(within_[*node], use(successor));
    }
    for (auto node = order.rbegin(); node != order.rend(); ++node) {
      for (const std::uint32_t successor : graph_.next_successors().of(*node))
        next_[*node] = std::min(next_[*node], use(successor));
      for (const std::uint32_t successor : graph_.successors().of(*node)) {
        if (!counts(successor)) next_[*node] = std::min(next_[*node], next_[successor]);
      }
    }
  }

  // Returns a key that is less where the communication is needed earlier.
  std::uint64_t key(std::uint32_t communication) const {
    const std::uint32_t node = graph_.of_communication(communication);
    if (within_[node] != kNoIndex) return within_[node];
    return (std::uint64_t{1} << 32) + next_[node];
  }

 private:
  bool counts(std::uint32_t node) const { return profile_.in_ordinary_queue(graph_.task(node)); }
  // Returns the position of the node, if it is a computation that counts, or of the first one after it.
  std::uint32_t use(std::uint32_t node) const {
    return counts(node) ? profile_.tasks[graph_.task(node)].position : within_[node];
  }

  const JobProfile& profile_;
  OperationGraph graph_;
  std::vector<std::uint32_t> within_;  // in the same iteration
  std::vector<std::uint32_t> next_;    // in the next iteration
};

}  // namespace

std::vector<std::uint32_t> order_of_use(const JobProfile& profile) {
  const FirstUses uses(profile);
  std::vector<std::uint64_t> keys;
  for (std::uint32_t i = 0; i < profile.communications(); ++i) keys.push_back(uses.key(i));
  return dense_order(keys);
}

}  // namespace netsim
