// Are strategies applied in the order in which ptdp once listed them by name? Are constraints that contradict
// each other refused? Does a strategy of the user's own take its place among those of netsim?
#include "sim/training/strategy/strategy_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "sim/core/errors.h"
#include "sim/training/strategy/job_strategies.h"
#include "tests/support/paths.h"
#include "tests/support/tasks_of.h"
#include "tests/workload/program/small_programs.h"

namespace netsim::strategy_order_test {
namespace {

using netsim::test::parse_workload;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// ---- Strategies of the user's own, as a plugin has them

struct MarkParameters {
  std::int64_t bytes = 8;
};

// Adds a node before the stages divide the layers, and refuses jobs without data parallelism.
class Mark final : public Strategy {
 public:
  explicit Mark(const MarkParameters& p) : p_(p) {}

  StrategyOrder order() const override {
    return {.after = {"tensor_parallel", "test_unused"}, .before = {"pipeline_parallel"}};
  }
  void check(const JobShape& job) const override {
    if (job.data == 1) job.key("parallel", "data").fail("a mark needs replicas");
    if (!job.has("test_mark") || !job.has("pipeline_parallel") || job.has("local_steps"))
      job.where.fail("the strategies that take part are not known");
  }
  void apply(TrainingGraph& graph, const JobShape& job) const override {
    if (!graph.stages.empty()) job.where.fail("the mark came too late");
    for (LayerGraph& layer : graph.layers) {
      if (!layer.repeats) continue;
      GraphNode node;
      node.kind = GraphNode::Kind::collective;
      node.name = "mark_" + std::to_string(p_.bytes);
      node.stream = Stream::dp;
      node.group = graph.builder.group(graph.mesh.along({"dp"}));
      node.bytes = p_.bytes;
      layer.forward.push_back(std::move(node));
    }
  }

 private:
  MarkParameters p_;
};
const Registration<Strategy> kMark{
    "test_mark", "a collective behind each layer",
    Parameters<MarkParameters>().integer("bytes", &MarkParameters::bytes, {1, 1000}, "of each"),
    [](const MarkParameters& p, const ConfigNode&) { return std::make_unique<Mark>(p); }};

// Does nothing, at the place that its order says.
template <int kPlace>
class Placed final : public Strategy {
 public:
  StrategyOrder order() const override {
    if (kPlace == 0) return {.after = {"optimizer"}, .before = {"tensor_parallel"}};
    if (kPlace == 1) return {.after = {"tensor_paralel"}};
    return {};
  }
  void apply(TrainingGraph&, const JobShape&) const override {}
};
template <int kPlace>
std::unique_ptr<Strategy> placed(const NoParameters&, const ConfigNode&) {
  return std::make_unique<Placed<kPlace>>();
}
const Registration<Strategy> kContradicting{"test_contradicting", "is after the last and before the first",
                                            Parameters<NoParameters>(), placed<0>};
const Registration<Strategy> kMisspelt{"test_misspelt", "names no strategy", Parameters<NoParameters>(),
                                       placed<1>};
const Registration<Strategy> kUnused{"test_unused", "is in no job", Parameters<NoParameters>(), placed<2>};

// ---- Orders

std::vector<std::string> sorted(const std::vector<OrderedStrategy>& strategies) {
  std::vector<std::string> names;
  for (const std::size_t i : order_strategies(strategies, ConfigNode()))
    names.push_back(strategies[i].name + "#" + std::to_string(i));
  return names;
}

TEST(StrategyOrder, KeepsTheListWhereNothingIsSaid) {
  EXPECT_THAT(sorted({{"b", {}}, {"a", {}}, {"a", {}}}), ElementsAre("b#0", "a#1", "a#2"));
}

TEST(StrategyOrder, FollowsConstraintsAndPassesThemOn) {
  EXPECT_THAT(sorted({{"a", {{"c"}, {}}}, {"b", {}}, {"c", {{"d"}, {}}}, {"d", {}}}),
              ElementsAre("b#1", "d#3", "c#2", "a#0"));
  EXPECT_THAT(sorted({{"a", {}}, {"b", {}}, {"c", {{}, {"a", "b"}}}}), ElementsAre("c#2", "a#0", "b#1"));
}

TEST(StrategyOrder, ConstrainsAllOfAName) {
  EXPECT_THAT(sorted({{"b", {{"a"}, {}}}, {"a", {}}, {"c", {}}, {"a", {}}}),
              ElementsAre("a#1", "c#2", "a#3", "b#0"));
}

TEST(StrategyOrder, IgnoresStrategiesThatTheJobDoesNotHave) {
  EXPECT_THAT(sorted({{"b", {{"test_unused"}, {"optimizer"}}}}), ElementsAre("b#0"));
}

std::string order_refusal(const std::vector<OrderedStrategy>& strategies) {
  try {
    order_strategies(strategies, ConfigNode());
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(StrategyOrder, NamesTheStrategiesOfACycle) {
  EXPECT_THAT(order_refusal({{"outside", {}}, {"a", {{"c"}, {}}}, {"b", {{"a"}, {}}}, {"c", {{"b"}, {}}}}),
              AllOf(HasSubstr("'a' before 'b' before 'c' before 'a'"), ::testing::Not(HasSubstr("outside"))));
  EXPECT_THAT(order_refusal({{"a", {{"a"}, {}}}}), HasSubstr("'a' before 'a'"));
  EXPECT_THAT(order_refusal({{"a", {{"b"}, {}}}, {"b", {{"a"}, {}}}, {"waits", {{"b"}, {}}}}),
              HasSubstr("'a' before 'b' before 'a'"));
}

// ---- The order of netsim's own strategies

// Returns the names of the strategies that take part in a job, in the order of their application.
std::string applied(const ConfigNode& workload) {
  const JobStrategies strategies("ptdp", workload, ConfigNode());
  JobShape job;
  job.where = workload;
  const auto value = [&](const char* key) {
    return workload.find(key) != nullptr ? read_integer(*workload.find(key)) : 1;
  };
  const ConfigNode* model = workload.find("model");
  job.model = Registry<ModelKind>::instance().create(model != nullptr ? *model : ConfigNode(), "gpt");
  job.microbatch = value("microbatch");
  job.microbatches = value("microbatches");
  job.iterations = value("iterations");
  strategies.describe(job);
  strategies.complete(job);
  std::string names;
  for (const std::string& name : job.strategies) names += (names.empty() ? "" : " ") + name;
  return names;
}

// The file has one line for each job: its strategies in the order of their application, and the job.
TEST(StrategyOrder, IsThatOfTheListThatPtdpHad) {
  std::ifstream file(source_directory() + "/tests/training/strategy/strategy_orders.txt");
  ASSERT_TRUE(file.good());
  int jobs = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("#")) continue;
    const std::size_t bar = line.find(" | ");
    ASSERT_NE(bar, std::string::npos);
    const std::string job = line.substr(bar + 3);
    const ConfigNode workload =
        job.starts_with("{") ? parse_config(job, "job") : load_config(source_directory() + "/" + job);
    EXPECT_EQ(applied(workload), line.substr(0, bar)) << job;
    ++jobs;
  }
  EXPECT_GT(jobs, 150);
}

// Every pair of strategies whose order was fixed is constrained, directly or through others. So another order
// of the list changes nothing.
TEST(StrategyOrder, DoesNotRestOnTheNames) {
  std::vector<OrderedStrategy> forward;
  for (const ComponentInfo* info : Catalogue::instance().keys_of("workload", "ptdp"))
    forward.push_back(
        {info->name, Registry<Strategy>::instance().create_named(info->name, ConfigNode())->order()});
  ASSERT_GT(forward.size(), 20U);
  const std::vector<OrderedStrategy> reverse(forward.rbegin(), forward.rend());
  const auto place = [](const std::vector<OrderedStrategy>& all, const std::string& name) {
    const std::vector<std::size_t> order = order_strategies(all, ConfigNode());
    std::size_t at = 0;
    while (all[order[at]].name != name) ++at;
    return at;
  };
  // Only one of the strategies in a set takes part.
  const std::vector<std::vector<std::string>> alternatives{
      {"full_recomputation", "selective_recomputation"},
      {"data_parallel", "local_steps", "parameter_servers", "sharded_replicas"},
      {"optimizer", "optimizer_offload"}};
  for (const OrderedStrategy& strategy : forward) {
    const bool alternative = std::any_of(alternatives.begin(), alternatives.end(), [&](const auto& set) {
      return std::find(set.begin(), set.end(), strategy.name) != set.end();
    });
    if (alternative) continue;
    EXPECT_EQ(place(forward, strategy.name), place(reverse, strategy.name)) << strategy.name;
  }
}

// ---- Strategies of the list

std::string job(const std::string& more) {
  return "kind: ptdp\nmodel: {layers: 4, hidden: 64, heads: 4, sequence: 16, vocabulary: 128}\n"
         "parallel: {tensor: 2, data: 2}\nmicrobatches: 3\nrecompute: none\n" +
         more + "\n";
}

std::string refusal(const std::string& text) {
  try {
    parse_workload(text)->tasks(1 << 20);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(ListedStrategies, TakeTheirPlaceWithTheirParameters) {
  const auto source = parse_workload(job("strategies: [{kind: test_mark, bytes: 24}, test_mark]"))->tasks(4);
  int first = 0, second = 0;
  for (const Task& task : test::tasks_of(*source, 3)) {
    first += source->names()[task.name] == "mark_24" && task.bytes() == 24 ? 1 : 0;
    second += source->names()[task.name] == "mark_8" && task.bytes() == 8 ? 1 : 0;
  }
  EXPECT_EQ(first, 4 * 3);  // layers x microbatches
  EXPECT_EQ(second, 4 * 3);
}

TEST(ListedStrategies, CheckTheJob) {
  EXPECT_THAT(refusal("{kind: ptdp, parallel: {tensor: 2, data: 1}, strategies: [test_mark]}"),
              AllOf(HasSubstr("parallel.data"), HasSubstr("a mark needs replicas")));
  // Each mesh of stages that are not alike is a job of its own.
  EXPECT_THAT(
      refusal("kind: ptdp\nparallel:\n  pipeline: 2\n  data: 2\n  stages:\n    - {tensor: 1, data: 2}\n"
              "    - {tensor: 2, data: 1}\nstrategies: [test_mark]\n"),
      AllOf(HasSubstr("test.yaml:7:"), HasSubstr("a mark needs replicas")));
}

TEST(ListedStrategies, RefuseWrongParametersNamesAndOrders) {
  EXPECT_THAT(refusal(job("strategies: [{kind: test_mark, bytes: 0}]")),
              AllOf(HasSubstr("test.yaml:6:39"), HasSubstr("1 to 1000")));
  EXPECT_THAT(refusal(job("strategies: [{kind: test_mark, byte: 3}]")), HasSubstr("'bytes'"));
  EXPECT_THAT(refusal(job("strategies: [test_mork]")),
              AllOf(HasSubstr("unknown strategy 'test_mork', did you mean 'test_mark'"),
                    ::testing::Not(HasSubstr("tensor_parallel"))));
  EXPECT_THAT(refusal(job("strategies: test_mark")), HasSubstr("expected a list of strategies"));
  EXPECT_THAT(refusal(job("strategies: [{bytes: 3}]")), HasSubstr("'kind' is missing: which strategy"));
  EXPECT_THAT(refusal(job("strategies: [test_contradicting]")),
              AllOf(HasSubstr("contradict each other"), HasSubstr("'test_contradicting' before"),
                    HasSubstr("'tensor_parallel'"), HasSubstr("before 'test_contradicting'")));
  EXPECT_THAT(
      refusal(job("strategies: [test_misspelt]")),
      HasSubstr("strategy 'test_misspelt' names 'tensor_paralel', which is no strategy; did its author "
                "mean 'tensor_parallel'?"));
}

TEST(ListedStrategies, AreNotThoseWithKeysOfPtdp) {
  EXPECT_THAT(
      refusal(job("strategies: [sharded_replicas]")),
      HasSubstr("strategy 'sharded_replicas' is not listed: the keys of ptdp (sharding) say whether"));
}

}  // namespace
}  // namespace netsim::strategy_order_test
