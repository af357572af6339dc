// Does the configuration say what holds, given or by default?
#include "sim/configuration/configuration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "sim/core/registry.h"
#include "tests/support/fits.h"

namespace netsim::configuration_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

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

TEST(DescribeOverview, AnswersAnyPathOfTheSchemaAndAllThatIsListed) {
  for (const char* name : {"hosts",
                           "network.switch",
                           "switch",
                           "transport.mtu",
                           "mtu",
                           "faults",
                           "network",
                           "network.ideal",
                           "ideal",
                           "topology",
                           "topology.rate",
                           "star.rate",
                           "topology.star.rate",
                           "transport",
                           "transport.congestion_control",
                           "transport.congestion_control.alpha_timer",
                           "dcqcn.alpha_timer",
                           "congestion_control",
                           "dcqcn",
                           "output.sample",
                           "output.sample.interval",
                           "network.switch.marker",
                           "marker",
                           "red",
                           "engine",
                           "scheduling",
                           "scheduling.interval",
                           "compute",
                           "compute_model",
                           "workload",
                           "incast",
                           "incast.senders",
                           "incasts.load",
                           "collectives",
                           "host",
                           "dgx_a100"}) {
    EXPECT_NO_THROW({
      const std::string text = describe_subject(name, 80);
      EXPECT_NE(text, "") << name;
      test::expect_fits(text, 80);
    }) << name;
  }
  std::istringstream listed(list_components("", 1000));
  for (std::string line; std::getline(listed, line);) {
    if (!line.starts_with("  ")) continue;
    EXPECT_NO_THROW(describe_subject(line.substr(2, line.find(' ', 2) - 2), 80)) << line;
  }
}

TEST(DescribeOverview, SaysWhatAndWhere) {
  EXPECT_THAT(describe_subject("mtu", 80), StartsWith("transport.mtu\n"));
  EXPECT_THAT(describe_subject("hosts", 80), HasSubstr("as many as the"));
  EXPECT_THAT(describe_subject("switch", 80),
              AllOf(StartsWith("network.switch (packet)\n"), HasSubstr("buffer: bytes")));
  EXPECT_THAT(describe_subject("topology.rate", 80), AllOf(HasSubstr("(star)"), HasSubstr("(fat_tree)")));
  EXPECT_THAT(describe_subject("alpha_timer", 80),
              StartsWith("transport.congestion_control.alpha_timer (dcqcn)\n"));
  EXPECT_THAT(describe_subject("transport.reliability", 80), HasSubstr("go_back_n"));
  EXPECT_EQ(describe_subject("transport.congestion_control.dcqcn", 80), describe_subject("dcqcn", 80));
  EXPECT_EQ(describe_subject("network.switch.marker.red", 80), describe_subject("marker.red", 80));
  EXPECT_EQ(describe_subject("workload.ptdp.model.gpt", 80), describe_subject("model.gpt", 80));
  // The components that a key takes are shown with their keys.
  EXPECT_THAT(describe_subject("transport.congestion_control", 80),
              HasSubstr("  congestion_control.dcqcn: profile"));
  EXPECT_THAT(describe_subject("compute", 200), HasSubstr("  compute_model.a100_40gb, a100_80gb, b200, "));
  EXPECT_THAT(describe_subject("compute", 200), Not(HasSubstr("compute_model.b200")));
  EXPECT_THAT(describe_subject("transport", 80), HasSubstr("keys of the kinds that these keys take\n"));
  EXPECT_THAT(describe_subject("workload.ptdp", 80),
              HasSubstr("  pipeline_schedule.depth_first, interleaved: group\n"));
  // A component that may hold one of its own kind is named at its place, not at the deepest possible level.
  EXPECT_THAT(describe_subject("compute.file", 80), StartsWith("compute.file (measured)\n"));
  EXPECT_THAT(describe_subject("file", 80), Not(HasSubstr("otherwise.otherwise")));
  try {
    describe_subject("transport.mtv", 80);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("did you mean 'transport.mtu'?"));
  }
}

TEST(DescribeOverview, LinesFitWhateverTheWidth) {
  for (const std::size_t width : {80u, 120u, 200u}) {
    for (const ParameterInfo& info : configuration_table())
      test::expect_fits(describe_subject(info.name, width), width);
    for (const ComponentInfo* info : Catalogue::instance().all())
      test::expect_fits(describe_subject(info->kind + "." + info->name, width), width);
    test::expect_fits(list_components("", width), width);
  }
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
}  // namespace netsim::configuration_test
