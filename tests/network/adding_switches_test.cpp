// Tests which switches of a fabric add up, and the names that the configuration may give.
#include "sim/network/aggregation/adding_switches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/core/errors.h"
#include "sim/network/fabric_parameters.h"
#include "sim/topology/topology.h"

namespace netsim::adding_switches_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

// Returns the names of the switches that add up in a fabric of two leaves and a spine.
std::vector<std::string> adders(const std::string& of_switch) {
  const ConfigNode root = parse_config(
      "topology: {kind: leaf_spine, leaves: 2, spines: 1, hosts_per_leaf: 1, rate: 100 Gbps}\n"
      "network: {switch: {" +
          of_switch + "}}\n",
      "test.yaml");
  const Cluster cluster = build_cluster(root);
  const ConfigNode& network = *root.find("network");
  const FabricParameters parameters = fabric_parameters().parse(network, {"kind"});
  const FabricState state(cluster.graph, common_rules(parameters, network, cluster.graph), 1, network);
  const std::vector<bool> adds = adding_switches(state);
  std::vector<std::string> names;
  for (NodeId node = 0; node < cluster.graph.node_count(); ++node) {
    if (adds[node]) names.push_back(cluster.graph.node(node).name);
  }
  return names;
}

TEST(AddingSwitches, AreAllUnlessTheyAreListed) {
  EXPECT_THAT(adders("aggregation: true"), ElementsAre("leaf0", "leaf1", "spine0"));
  EXPECT_THAT(adders("aggregation: true, aggregation_switches: [spine0, leaf1]"),
              ElementsAre("leaf1", "spine0"));
  EXPECT_THAT(adders("aggregation: true, aggregation_switches: []"), IsEmpty());
}

TEST(AddingSwitches, AreNoneWithoutAggregation) {
  EXPECT_THAT(adders(""), IsEmpty());
  EXPECT_THAT(adders("aggregation_switches: [leaf0]"), IsEmpty());
}

TEST(AddingSwitches, HaveNamesOfSwitches) {
  const auto with = [](const std::string& names) {
    return [names] { adders("aggregation: true, aggregation_switches: [" + names + "]"); };
  };
  EXPECT_THAT(with("leaf0, leaf2"), ThrowsMessage<ConfigError>(HasSubstr("test.yaml:2:69: ")));
  EXPECT_THAT(with("leaf2"), ThrowsMessage<ConfigError>(HasSubstr("no switch of the fabric 'leaf2'")));
  EXPECT_THAT(with("host0"), ThrowsMessage<ConfigError>(HasSubstr("no switch of the fabric 'host0'")));
  EXPECT_THAT([] { adders("aggregation: true, aggregation_switches: leaf0"); },
              ThrowsMessage<ConfigError>(HasSubstr("a list of names of switches is expected")));
  EXPECT_THAT(with("[leaf0]"), ThrowsMessage<ConfigError>(HasSubstr("aggregation_switches")));
}

}  // namespace
}  // namespace netsim::adding_switches_test
