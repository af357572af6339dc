// Tests the order in which strategies are applied: constraints hold, the list decides what they leave open,
// and contradictions name the strategies.
#include "sim/training/strategy/strategy_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/core/errors.h"

namespace netsim::strategy_order_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string error_of(const std::vector<OrderedStrategy>& strategies) {
  try {
    order_strategies(strategies, parse_config("{kind: ptdp}", "w.yaml"));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(StrategyOrder, KeepsTheListWhereNothingIsSaid) {
  EXPECT_THAT(order_strategies({{"optimizer", {}}, {"tensor_parallel", {}}, {"context_parallel", {}}}, {}),
              ElementsAre(0u, 1u, 2u));
}

TEST(StrategyOrder, HoldsConstraintsOfBothKinds) {
  // The second waits for the third, and the fourth precedes the first.
  EXPECT_THAT(order_strategies({{"optimizer", {}},
                                {"sequence_parallel", {.after = {"tensor_parallel"}}},
                                {"tensor_parallel", {}},
                                {"context_parallel", {.before = {"optimizer"}}}},
                               {}),
              ElementsAre(2u, 1u, 3u, 0u));
}

TEST(StrategyOrder, IgnoresStrategiesThatTheJobDoesNotHave) {
  EXPECT_THAT(order_strategies({{"optimizer", {.after = {"data_parallel"}}}}, {}), ElementsAre(0u));
}

TEST(StrategyOrder, NamesTheStrategiesOfAContradiction) {
  const std::string error = error_of({{"optimizer", {.after = {"tensor_parallel"}}},
                                      {"tensor_parallel", {.after = {"context_parallel"}}},
                                      {"context_parallel", {.after = {"optimizer"}}},
                                      {"data_parallel", {}}});
  EXPECT_THAT(error, HasSubstr("contradict each other"));
  for (const char* name : {"'optimizer'", "'tensor_parallel'", "'context_parallel'"})
    EXPECT_THAT(error, HasSubstr(name));
  EXPECT_THAT(error, ::testing::Not(HasSubstr("'data_parallel'")));
}

TEST(StrategyOrder, RefusesANameThatNoStrategyHas) {
  EXPECT_THAT(
      error_of({{"optimizer", {.after = {"tensor_paralel"}}}}),
      HasSubstr("names 'tensor_paralel', which is no strategy; did its author mean 'tensor_parallel'?"));
}

}  // namespace
}  // namespace netsim::strategy_order_test
