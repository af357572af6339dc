// A key that was given and has no effect is reported, with the other key that is the reason. A key with an
// effect is not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/packet_fixture.h"

namespace netsim::idle_keys_test {
namespace {

using test::PacketFixture;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> idle(const std::string& yaml, const std::string& host = "single_nic") {
  const PacketFixture f("topology: {kind: star, hosts: 8, rate: 100 Gbps}\nhost: " + host + "\n" + yaml);
  std::vector<std::string> found;
  for (const std::string& note : f.network->notes()) {
    if (note.find(" effect: ") != std::string::npos) found.push_back(note);
  }
  return found;
}
std::vector<std::string> idle_transport(const std::string& keys) {
  return idle("transport: {" + keys + "}\n");
}
std::vector<std::string> idle_switch(const std::string& keys) {
  return idle("network: {switch: {" + keys + "}}\n");
}

TEST(IdleKeys, NothingIsSaidOfDefaultsAndOfWhatActs) {
  EXPECT_THAT(idle(""), IsEmpty());
  EXPECT_THAT(idle_transport("congestion_control: dcqcn, ecn_echo: cnp, cnp_delay: 1 us, window: 1 MB, "
                             "window_scales: true, retransmission_timeout: 1 ms"),
              IsEmpty());
  EXPECT_THAT(idle_transport("congestion_control: hpcc, base_rtt: 9 us"), IsEmpty());
  EXPECT_THAT(idle_transport("congestion_control: none, reliability: irn, base_rtt: 9 us"), IsEmpty());
  EXPECT_THAT(idle_switch("pfc_response: 1 us, resume_offset: 1 KB, alpha: 1, buffer: 1 MB"), IsEmpty());
  EXPECT_THAT(idle_switch("flow_control: credits, credit_buffer: 64 KB"), IsEmpty());
  EXPECT_THAT(idle_switch("classes: 2, scheduler: {kind: drr, quantum: [4 KB, 4 KB]}"), IsEmpty());
  EXPECT_THAT(idle("transport: {nic_buffer: 128 KiB}\n", "dgx_a100"), IsEmpty());
  EXPECT_THAT(idle("network: {detection_delay: 1 us, faults: [{link: host0-switch0, down: 1 s, up: 2 s}]}\n"),
              IsEmpty());
}

TEST(IdleKeys, MarksThatNobodyHears) {
  EXPECT_THAT(idle_transport("congestion_control: none, cnp_delay: 55 us"),
              Contains("transport.cnp_delay has no effect: the congestion control does not react to marks"));
  EXPECT_THAT(idle_transport("congestion_control: dctcp, cnp_delay: 55 us, ecn_echo: cnp"),
              Contains("transport.ecn_echo, transport.cnp_delay have no effect: the congestion control needs "
                       "marks in ACKs"));
  EXPECT_THAT(idle_transport("congestion_control: dcqcn, cnp_delay: 55 us, ecn_echo: ack"),
              Contains(AllOf(HasSubstr("cnp_delay"), HasSubstr("ecn_echo: ack"))));
}

TEST(IdleKeys, OfTheTransport) {
  EXPECT_THAT(idle_transport("congestion_control: dcqcn, base_rtt: 9 us"),
              Contains(HasSubstr("transport.base_rtt")));
  EXPECT_THAT(idle_transport("congestion_control: {kind: hpcc, base_rtt: 8 us}, base_rtt: 9 us"),
              Contains(HasSubstr("transport.base_rtt")));
  EXPECT_THAT(idle_transport("window_scales: true"), Contains(HasSubstr("there is no window")));
  EXPECT_THAT(idle_transport("reliability: irn, retransmission_timeout: 1 ms"),
              Contains(AllOf(HasSubstr("retransmission_timeout"), HasSubstr("gives up"))));
  EXPECT_THAT(idle_transport("nic_buffer: 128 KiB"),
              Contains(HasSubstr("no NIC of the cluster is behind PCIe")));
}

TEST(IdleKeys, OfTheCongestionControlItself) {
  EXPECT_THAT(idle_transport("congestion_control: {kind: dctcp, form: window, rate_ai: 1 Gbps}"),
              Contains("transport.congestion_control.rate_ai has no effect: it belongs to form: rate"));
  EXPECT_THAT(idle_transport("congestion_control: {kind: dctcp, form: rate, initial_window: 1 MB}"),
              Contains(HasSubstr("initial_window has no effect")));
  EXPECT_THAT(idle_transport("congestion_control: {kind: hpcc, unit_multiplier: 2}"),
              Contains(HasSubstr("unit_multiplier has no effect")));
  EXPECT_THAT(idle_transport("congestion_control: {kind: swift, fs_range: 0, fs_max_cwnd: 50}"),
              Contains(HasSubstr("fs_max_cwnd has no effect")));
  EXPECT_THAT(idle_transport("congestion_control: {kind: powertcp, form: delay, eta: 0.9}"),
              Contains(HasSubstr("eta has no effect")));
  EXPECT_THAT(idle_transport("ecn_echo: ack, congestion_control: {kind: dcqcn, cnp_interval: 1 us}"),
              Contains(HasSubstr("cnp_interval has no effect")));
  EXPECT_THAT(idle_transport("congestion_control: {kind: powertcp, eta: 0.9}"), IsEmpty());
}

TEST(IdleKeys, OfFlowControlThatIsAnother) {
  EXPECT_THAT(idle_switch("credit_buffer: 64 KB"), Contains(HasSubstr("flow_control is pfc")));
  EXPECT_THAT(idle_switch("lossless: none, headroom: 10 KB, pfc_frame: 64 B"),
              Contains(AllOf(HasSubstr("network.switch.headroom, network.switch.pfc_frame have no effect"),
                             HasSubstr("no class is lossless"))));
  EXPECT_THAT(idle_switch("headroom: 100 KB, pfc_response: 1 us"), Contains(HasSubstr("computed headroom")));
  EXPECT_THAT(idle_switch("flow_control: none, resume_offset: 1 KB"),
              Contains(HasSubstr("nothing is held back")));
  EXPECT_THAT(idle_switch("flow_control: credits, alpha: 1, buffer: 2 MB"),
              Contains(HasSubstr("credit_buffer")));
}

TEST(IdleKeys, OfTheRestOfTheNetwork) {
  EXPECT_THAT(idle_switch("scheduler: {kind: drr, quantum: [4 KB]}"), Contains(HasSubstr("classes: 1")));
  EXPECT_THAT(idle_switch("header: 64 B"), Contains(HasSubstr("store_and_forward")));
  EXPECT_THAT(idle_switch("aggregation_latency: 1 us"), Contains(HasSubstr("aggregation: false")));
  EXPECT_THAT(idle("network: {detection_delay: 1 us}\n"), Contains(HasSubstr("no link fails")));
  EXPECT_THAT(idle("network: {circuits: {guard: 1 us}}\n"), Contains(HasSubstr("no optical switches")));
}

}  // namespace
}  // namespace netsim::idle_keys_test
