// Tests the buffer of a switch if none is given: as in switch chips, with enough for the headroom of its
// links. Tests also the message for one that is too small.
#include <gtest/gtest.h>

#include <string>

#include "tests/support/packet_fixture.h"
#include "tests/support/star.h"

namespace netsim::buffer_test {
namespace {

using test::PacketFixture;
using test::star;

// Returns the length of a lossy queue that may take 1024 times the free buffer. It fills the buffer but for a
// 1025th and a packet.
Bytes buffer_of(int hosts, const std::string& links, std::uint32_t senders, const std::string& more = "") {
  PacketFixture f(star(hosts, "switch: {marker: none, flow_control: none, alpha: 1024" + more + "}",
                       ", retransmission_timeout: 10 s, retries: 0", links));
  for (std::uint32_t i = 0; i < senders; ++i) f.send(i, static_cast<std::uint32_t>(hosts) - 1, 30'000'000);
  while (f.network->counters().drops == 0 && f.loop.run_some(10'000) > 0) {
  }
  EXPECT_GT(f.network->counters().drops, 0u);
  return f.network->counters().max_queue;
}

TEST(Buffer, IsThatOfASwitchChipOfTheSameBandwidth) {
  const Bytes packet = 4096 + 78;
  const auto expect = [&](Bytes found, Bytes buffer) {
    EXPECT_LE(found, buffer);
    EXPECT_GT(found, buffer - buffer / 1025 - packet);
  };
  expect(buffer_of(9, "rate: 100 Gbps", 8), 32 * kMegabyte);
  expect(buffer_of(32, "rate: 100 Gbps", 8), 32 * kMegabyte);
  expect(buffer_of(33, "rate: 100 Gbps", 8), 42 * kMegabyte);
  expect(buffer_of(64, "rate: 100 Gbps", 8), 42 * kMegabyte);
  expect(buffer_of(65, "rate: 100 Gbps", 8), 64 * kMegabyte);
  expect(buffer_of(32, "rate: 800 Gbps", 8), 113 * kMegabyte);
  expect(buffer_of(33, "rate: 800 Gbps", 16), 165 * kMegabyte);
  expect(buffer_of(33, "rate: 800 Gbps", 8, ", buffer: 20 MB"), 20 * kMegabyte);
  expect(buffer_of(128, "rate: 800 Gbps", 24), 330 * kMegabyte);
}

// With the headroom of its own default, whatever the ports.
TEST(Buffer, HoldsTheHeadroomOfAnyStar) {
  for (const char* links : {"rate: 100 Gbps, delay: 1 us", "rate: 400 Gbps, delay: 5 us",
                            "rate: 400 Gbps, delay: 500 us", "rate: 800 Gbps, delay: 10 ms"}) {
    for (const int hosts : {2, 9, 64, 256, 1024})
      EXPECT_NO_THROW(PacketFixture(star(hosts, "", "", links))) << links << " " << hosts;
  }
  EXPECT_NO_THROW(PacketFixture(star(64, "switch: {classes: 6}", "", "rate: 400 Gbps, delay: 50 us")));
}

TEST(Buffer, ThatIsTooSmallIsToldWithItsPlaceAndWhatWouldDo) {
  try {
    PacketFixture f(star(64, "switch: {buffer: 20 MB}", "", "rate: 400 Gbps, delay: 5 us"));
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    const std::string what = error.what();
    // 64 links: 10 us at 50 B/ns, a full packet, a PFC frame, two packets more, a reserve of 4096 B.
    const Bytes needed = 64 * (500'000 + (4174 + 20) + (64 + 20) + 2 * 4174 + 4096);
    EXPECT_EQ(what.find("test.yaml:3:28: network.switch.buffer: 20000000 B"), 0u) << what;
    EXPECT_NE(what.find("switch0's 64 links, " + std::to_string(needed) + " B"), std::string::npos) << what;
    EXPECT_NE(what.find("more than that, 0 (computed: 113000000 B)"), std::string::npos) << what;
  }
}

}  // namespace
}  // namespace netsim::buffer_test
