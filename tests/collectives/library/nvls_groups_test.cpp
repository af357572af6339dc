// Tests which communicators get multicast groups of NVSwitches, where their number is limited.
#include "sim/collectives/library/nvls_groups.h"

#include <gtest/gtest.h>

#include "tests/support/without_handles.h"

namespace netsim::nvls_groups_test {
namespace {

// Hosts of four GPUs, whose NVSwitch is node 100 + its host and holds `groups` groups.
class Hosts final : public test::WithoutHandles<Endpoint> {
 public:
  explicit Hosts(std::int64_t groups) : groups_(groups) {}
  void set_listener(MessageListener*) override {}
  MessageHandle send(const SendRequest&) override { return {}; }
  std::uint32_t gpu_count() const override { return 16; }
  GpuSite site(GpuId gpu) const override { return {gpu / 4, {gpu}, 0, 0, {}}; }
  Reach reach(GpuId source, GpuId destination) const override {
    return source / 4 == destination / 4 ? Reach::scale_up : Reach::scale_out;
  }
  MulticastSwitch multicast_switch(const SwitchAggregation& aggregation) const override {
    return {100 + aggregation.head / 4, groups_};
  }
  bool limits_multicast() const override { return groups_ > 0; }

 private:
  std::int64_t groups_;
};

TEST(NvlsGroups, ACommunicatorTakesGroupsOnce) {
  const Hosts hosts(4);
  NvlsGroups groups(hosts, 2);
  EXPECT_TRUE(groups.take(0, {0, 1, 2, 3}));
  EXPECT_TRUE(groups.take(0, {0, 1, 2, 3}));
  EXPECT_EQ(groups.held(100), 2);
  EXPECT_TRUE(groups.take(0, {0, 1}));
  EXPECT_FALSE(groups.take(0, {2, 3}));
  EXPECT_FALSE(groups.may_have(0, {2, 3}));
  EXPECT_TRUE(groups.may_have(0, {4, 5})) << "it has not asked";
  EXPECT_TRUE(groups.take(0, {4, 5})) << "of another host";
}

TEST(NvlsGroups, AllHostsOrNone) {
  const Hosts hosts(2);
  NvlsGroups groups(hosts, 2);
  EXPECT_TRUE(groups.take(0, {4, 5, 6, 7}));
  EXPECT_FALSE(groups.take(0, {0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(groups.held(100), 0);
  EXPECT_TRUE(groups.take(0, {0, 1, 2, 3}));
}

TEST(NvlsGroups, AJobThatEndsGivesItsGroupsBack) {
  const Hosts hosts(2);
  NvlsGroups groups(hosts, 2);
  EXPECT_TRUE(groups.take(0, {0, 1, 2, 3}));
  EXPECT_FALSE(groups.take(1, {0, 1, 2, 3}));
  groups.end_job(0);
  groups.end_job(0);
  EXPECT_EQ(groups.held(100), 0);
  EXPECT_FALSE(groups.take(1, {0, 1, 2, 3})) << "it does not try again";
  EXPECT_TRUE(groups.take(2, {0, 1, 2, 3}));
}

TEST(NvlsGroups, WithoutALimitNothingIsCounted) {
  const Hosts hosts(0);
  NvlsGroups groups(hosts, 2);
  EXPECT_FALSE(groups.limited());
  EXPECT_TRUE(groups.take(0, {0, 1, 2, 3}));
  EXPECT_EQ(groups.held(100), 0);
}

}  // namespace
}  // namespace netsim::nvls_groups_test
