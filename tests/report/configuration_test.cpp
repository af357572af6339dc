// Does the configuration say what holds, given or by default?
#include "sim/report/configuration.h"

#include <gtest/gtest.h>

namespace netsim {
namespace {

std::string at(const std::string& yaml, const std::string& path) {
  return configured(parse_config(yaml, "test.yaml"), path);
}

TEST(ReportConfigured, IsTheDefaultWhereNothingIsGiven) {
  EXPECT_EQ(at("{}", "transport.congestion_control"), "dcqcn");
  EXPECT_EQ(at("{}", "network"), "packet");
  EXPECT_EQ(at("{}", "network.switch.marker"), "red");
  EXPECT_EQ(at("{}", "network.switch.routing"), "ecmp");
  EXPECT_EQ(at("network: {switch: }", "network.switch.marker"), "red");
  EXPECT_EQ(at("{}", "output.max_rows"), "1000000");
  EXPECT_EQ(at("{}", "network.switch.flow_control"), "pfc");
}

TEST(ReportConfigured, IsWhatIsGiven) {
  EXPECT_EQ(at("transport: {congestion_control: none}", "transport.congestion_control"), "none");
  EXPECT_EQ(at("transport: {congestion_control: {kind: none}}", "transport.congestion_control"), "none");
  EXPECT_EQ(at("transport: {congestion_control: {profile: vendor}}", "transport.congestion_control"),
            "dcqcn");
  EXPECT_EQ(at("network: {switch: {marker: {kind: none}}}", "network.switch.marker"), "none");
  EXPECT_EQ(at("network: {switch: {marker: {kmin: 7 B}}}", "network.switch.marker.kmin"), "7 B");
  EXPECT_EQ(at("output: {sample: {queues: false}}", "output.sample.queues"), "false");
}

TEST(ReportConfigured, IsNothingWhereThereIsNoOneText) {
  EXPECT_EQ(at("{}", "network.switch.nonsense"), "");
  EXPECT_EQ(at("{}", "nonsense.switch"), "");
  EXPECT_EQ(at("network: ideal", "network.switch.marker"), "");
  EXPECT_EQ(at("{}", "topology"), "");
  EXPECT_EQ(at("{}", "output.sample"), "");
  EXPECT_EQ(at("output: {sample: {ports: [a, b]}}", "output.sample.ports"), "");
}

}  // namespace
}  // namespace netsim
