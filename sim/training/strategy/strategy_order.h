// The order in which the strategies of a training job are applied.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/core/config.h"

namespace netsim {

// StrategyOrder: the names of strategies between which a strategy is applied. Names of strategies that a job
// does not have constrain nothing.
struct StrategyOrder {
  std::vector<std::string> after = {};   // strategies that are applied before this one
  std::vector<std::string> before = {};  // strategies that are applied after this one
};

struct OrderedStrategy {
  std::string name;
  StrategyOrder order;
};

// Returns the indices of the strategies in the order in which they are applied. Among the strategies that may
// come next, the first of the list does. Throws ConfigError at `where` for constraints that contradict each
// other, and for names that no strategy has; both name the strategies.
std::vector<std::size_t> order_strategies(const std::vector<OrderedStrategy>& strategies,
                                          const ConfigNode& where);

}  // namespace netsim
