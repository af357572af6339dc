// Tests messages that are held, released, preferred, cancelled and limited. Their packets leave at exact
// times on one link, within a host and on the ideal network. No message is lost, whatever happens to it.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "sim/core/event_loop.h"
#include "sim/transport/ideal_endpoint.h"
#include "tests/support/scripted_messages.h"

namespace netsim::message_handle_test {
namespace {

using test::ScriptedMessages;

constexpr Bytes kMtu = 4096;
constexpr Bytes kHeader = 62, kFirstHeader = 16, kAck = 66;
constexpr Time kDelay = kMicrosecond;
const std::string kPair =
    "topology: {kind: star, hosts: 3, rate: 100 Gbps, delay: 1 us}\n"
    "network: {switch: {marker: none}}\n";
const std::string kPlain = kPair + "transport: {congestion_control: none}\n";

// From GPU 0 to GPU 1.
Message message_of(Bytes bytes) {
  Message message;
  message.source = 0;
  message.destination = 1;
  message.bytes = bytes;
  return message;
}

Time wire(Bytes bytes) { return transmission_time(bytes + 20, 100 * kGbps); }
const Time kFull = wire(kMtu + kHeader);

// When a packet is at its destination, and when its ACK is back.
struct Arrival {
  Time there = 0, acknowledged = 0;
};

// The packets of host 0 on its wire, one by one, and the ACKs that come back over the switch.
class Wire {
 public:
  // The packet leaves when the wire is free, but not before `earliest`.
  Arrival put(Bytes payload, bool first = false, Time earliest = 0) {
    const Time time = wire(payload + kHeader + (first ? kFirstHeader : 0)), ack = wire(kAck);
    begin_ = std::max(earliest, free_);
    free_ = begin_ + time;
    out_ = std::max(out_, free_ + kDelay) + time;
    back_ = std::max(back_, out_ + kDelay) + ack;
    back_out_ = std::max(back_out_, back_ + kDelay) + ack;
    return {out_ + kDelay, back_out_ + kDelay};
  }
  Arrival put_many(int packets) {
    Arrival last;
    for (int i = 0; i < packets; ++i) last = put(kMtu);
    return last;
  }
  // In the middle of the packet that was put last.
  Time middle() const { return (begin_ + free_) / 2; }

 private:
  Time begin_ = 0, free_ = 0, out_ = 0;  // of the wire, and of that behind the switch
  Time back_ = 0, back_out_ = 0;         // of the wires of the ACKs
};

void expect_whole(const ScriptedMessages& run, std::size_t message, const Arrival& last) {
  const ScriptedMessages::Fate& fate = run.fates[message];
  EXPECT_EQ(fate.delivered, last.there);
  EXPECT_EQ(fate.sent, last.acknowledged);
  EXPECT_EQ(fate.bytes, run.messages[message].bytes);
  EXPECT_FALSE(fate.truncated);
  EXPECT_EQ(fate.deliveries, 1);
  EXPECT_EQ(fate.sents, 1);
}

void expect_conserved(const ScriptedMessages& run) {
  const NetworkCounters c = run.network->counters();
  EXPECT_EQ(c.bytes_sent, c.bytes_delivered);
  EXPECT_EQ(c.flows_started, c.flows_done);
  EXPECT_EQ(c.flows_done, run.flows.size());
  Bytes asked = 0;
  for (const Message& message : run.messages) asked += message.bytes;
  EXPECT_EQ(c.bytes_sent + c.bytes_cancelled, asked);
}

// ---- Hold and release

TEST(MessageHandle, HeldBeforeItsFirstPacketItStartsAtTheRelease) {
  ScriptedMessages run(kPlain);
  const std::size_t held = run.send(0, 0, 1, 3 * kMtu), other = run.send(0, 0, 1, 2 * kMtu);
  const std::size_t hold = run.hold(0, held), again = run.hold(0, held);
  const Time later = 20 * kMicrosecond;
  const std::size_t release = run.release(later, held), twice = run.release(later, held);
  run.run();
  Wire wire;
  wire.put(kMtu, true);
  expect_whole(run, other, wire.put(kMtu));
  wire.put(kMtu, true, later);
  expect_whole(run, held, wire.put_many(2));
  for (const std::size_t answer : {hold, again, release, twice}) EXPECT_EQ(run.answers[answer], 1);
  EXPECT_EQ(run.flows[1].start, 0) << "a flow counts from send()";
  expect_conserved(run);
}

TEST(MessageHandle, HeldInTheMiddleItGoesOnWhereItStopped) {
  ScriptedMessages run(kPlain);
  const std::size_t held = run.send(0, 0, 1, 5 * kMtu + 100), other = run.send(0, 0, 1, kMtu + 1);
  Wire wire;
  wire.put(kMtu, true);
  wire.put(kMtu);
  run.hold(wire.middle(), held);
  wire.put(kMtu, true);
  const Arrival other_there = wire.put(1);
  const Time later = 10 * kMicrosecond;
  run.release(later, held);
  wire.put(kMtu, false, later);
  wire.put_many(2);
  const Arrival held_there = wire.put(100);
  run.run();
  expect_whole(run, other, other_there);
  expect_whole(run, held, held_there);
  expect_conserved(run);
}

TEST(MessageHandle, OfAMessageThatHasLeftDoesNothingAndSaysSo) {
  ScriptedMessages run(kPlain);
  const std::size_t message = run.send(0, 0, 1, 2 * kMtu);
  Wire wire;
  wire.put(kMtu, true);
  const Arrival there = wire.put(kMtu);
  std::vector<std::size_t> late;
  for (const Time at : {wire.middle(), there.there + 1, there.acknowledged + 1}) {
    late.push_back(run.hold(at, message));
    late.push_back(run.release(at, message));
    late.push_back(run.prefer(at, message, 3));
    late.push_back(run.cancel(at, message));
  }
  // Its slot is another's then.
  const std::size_t second = run.send(there.acknowledged + 2, 0, 1, kMtu);
  late.push_back(run.cancel(there.acknowledged + 3, message));
  run.run();
  for (const std::size_t answer : late) EXPECT_EQ(run.answers[answer], 0);
  expect_whole(run, message, there);
  EXPECT_EQ(run.fates[second].bytes, kMtu);
  EXPECT_FALSE(run.network->hold(MessageHandle()));
  EXPECT_EQ(run.network->cancel(MessageHandle()), 0);
  expect_conserved(run);
}

// A run that only waits for a message that is held says so.
TEST(MessageHandle, HeldForEverItIsNamedByTheStallReport) {
  ScriptedMessages run(kPlain);
  run.hold(0, run.send(0, 0, 1, kMtu));
  run.run();
  ASSERT_EQ(run.network->waiting(10).size(), 1U);
  EXPECT_NE(run.network->waiting(10)[0].find("0 of 0 packets acknowledged, 1 messages held back"),
            std::string::npos)
      << run.network->waiting(10)[0];
  EXPECT_TRUE(run.network->queue_pair_view(run.network->queue_pairs()[0]).busy);
}

// Two packets that asked for no acknowledgement have left. No timer runs for ever because of them.
TEST(MessageHandle, HeldInTheMiddleForEverTheRunComesToAnEnd) {
  for (const char* reliability : {"go_back_n", "irn"}) {
    ScriptedMessages run(kPair +
                         "transport: {congestion_control: none, acknowledge: {every: 256}, reliability: " +
                         reliability + "}\n");
    const std::size_t held = run.send(0, 0, 1, 5 * kMtu);
    Wire wire;
    wire.put(kMtu, true);
    wire.put(kMtu);
    run.hold(wire.middle(), held);
    ASSERT_EQ(run.engine.run_some(1000, 100 * kSecond) < 1000, true);
    EXPECT_EQ(run.engine.pending(), 0U);
    EXPECT_NE(run.network->waiting(10).at(0).find("0 of 2 packets acknowledged, 1 messages held back"),
              std::string::npos)
        << run.network->waiting(10)[0];
  }
}

// ---- Priorities

TEST(MessageHandle, HigherPriorityOvertakesBetweenPackets) {
  ScriptedMessages run(kPlain);
  const std::size_t low = run.send(0, 0, 1, 6 * kMtu);
  Wire wire;
  wire.put(kMtu, true);
  wire.put(kMtu);
  const std::size_t high = run.send(wire.middle(), 0, 1, 2 * kMtu, 1);
  wire.put(kMtu, true);
  const std::size_t highest = run.send(wire.middle(), 0, 1, 7, 2);
  const Arrival highest_there = wire.put(7, true);
  const Arrival high_there = wire.put(kMtu);
  const Arrival low_there = wire.put_many(4);
  run.run();
  expect_whole(run, low, low_there);
  expect_whole(run, high, high_there);
  expect_whole(run, highest, highest_there);
  expect_conserved(run);
}

TEST(MessageHandle, ReprioritisedWhileAnotherIsUnderWay) {
  ScriptedMessages run(kPlain);
  const std::size_t a = run.send(0, 0, 1, 5 * kMtu, 3), b = run.send(0, 0, 1, 3 * kMtu, 3);
  const std::size_t c = run.send(0, 0, 1, kMtu, 3);
  Wire wire;
  wire.put(kMtu, true);
  run.prefer(wire.middle(), b, 4);  // b goes next
  wire.put(kMtu, true);
  run.prefer(wire.middle(), b, 2);  // a again, and then c
  const Arrival a_there = wire.put_many(4);
  const Arrival c_there = wire.put(kMtu, true);
  const Arrival b_there = wire.put_many(2);
  run.run();
  expect_whole(run, a, a_there);
  expect_whole(run, b, b_there);
  expect_whole(run, c, c_there);
  expect_conserved(run);
}

// A change that leaves the order as it is changes nothing, and one of a held message counts at its release.
TEST(MessageHandle, PrioritiesOfWhatIsHeldCountLater) {
  ScriptedMessages run(kPlain);
  const std::size_t a = run.send(0, 0, 1, 2 * kMtu), b = run.send(0, 0, 1, 2 * kMtu),
                    c = run.send(0, 0, 1, 2 * kMtu);
  run.hold(0, c);
  run.prefer(0, c, 9);
  run.prefer(0, a, 1);
  Wire wire;
  wire.put(kMtu, true);
  run.release(wire.middle(), c);
  wire.put(kMtu, true);
  const Arrival c_there = wire.put(kMtu), a_there = wire.put(kMtu);
  wire.put(kMtu, true);
  const Arrival b_there = wire.put(kMtu);
  run.run();
  expect_whole(run, c, c_there);
  expect_whole(run, a, a_there);
  expect_whole(run, b, b_there);
}

// ---- Cancel

TEST(MessageHandle, CancelledBeforeItsFirstPacketItVanishes) {
  ScriptedMessages run(kPlain);
  const std::size_t first = run.send(0, 0, 1, 3 * kMtu), gone = run.send(0, 0, 1, 2 * kMtu),
                    held = run.send(0, 0, 1, 9), last = run.send(0, 0, 1, kMtu);
  run.hold(0, held);
  Wire wire;
  wire.put(kMtu, true);
  const std::size_t cancel = run.cancel(wire.middle(), gone), of_held = run.cancel(wire.middle(), held);
  const std::size_t once_more = run.cancel(wire.middle(), gone), release = run.release(wire.middle(), held);
  const Arrival first_there = wire.put_many(2), last_there = wire.put(kMtu, true);
  run.run();
  EXPECT_EQ(run.answers[cancel], 2 * kMtu);
  EXPECT_EQ(run.answers[of_held], 9);
  EXPECT_EQ(run.answers[once_more], 0);
  EXPECT_EQ(run.answers[release], 0);
  expect_whole(run, first, first_there);
  expect_whole(run, last, last_there);
  EXPECT_EQ(run.fates[gone], ScriptedMessages::Fate());
  EXPECT_EQ(run.fates[held], ScriptedMessages::Fate());
  EXPECT_EQ(run.flows.size(), 2U);
  EXPECT_TRUE(run.network->waiting(10).empty());
  expect_conserved(run);
}

// Two packets have left, a third one of headers only closes the message; it goes before another one's rest.
TEST(MessageHandle, CancelledInTheMiddleItIsClosedInBand) {
  ScriptedMessages run(kPlain);
  const std::size_t cut = run.send(0, 0, 1, 5 * kMtu + 7), other = run.send(0, 0, 1, kMtu, 0);
  Wire wire;
  wire.put(kMtu, true);
  wire.put(kMtu);
  const std::size_t cancel = run.cancel(wire.middle(), cut), release = run.release(wire.middle(), cut);
  const Arrival cut_there = wire.put(0), other_there = wire.put(kMtu, true);
  run.run();
  EXPECT_EQ(run.answers[cancel], 3 * kMtu + 7);
  EXPECT_EQ(run.answers[release], 0);
  const ScriptedMessages::Fate expected{
      cut_there.there, cut_there.acknowledged, 2 * kMtu, 2 * kMtu, true, 1, 1};
  EXPECT_EQ(run.fates[cut], expected);
  expect_whole(run, other, other_there);
  EXPECT_EQ(run.flows[0].bytes, 2 * kMtu);
  EXPECT_LT(run.flows[0].bytes, run.flows[0].message.bytes);
  expect_conserved(run);
}

// The message is held, overtaken, then cancelled. Its last packet does not wait.
TEST(MessageHandle, CancelledWhileItIsHeld) {
  ScriptedMessages run(kPlain);
  const std::size_t cut = run.send(0, 0, 1, 5 * kMtu), other = run.send(0, 0, 1, 4 * kMtu, 200);
  run.hold(0, other);
  Wire wire;
  wire.put(kMtu, true);
  run.hold(wire.middle(), cut);
  run.release(wire.middle(), other);
  wire.put(kMtu, true);
  wire.put(kMtu);
  const std::size_t cancel = run.cancel(wire.middle(), cut);
  const Arrival cut_there = wire.put(0), other_there = wire.put_many(2);
  run.run();
  EXPECT_EQ(run.answers[cancel], 4 * kMtu);
  EXPECT_EQ(run.fates[cut].delivered, cut_there.there);
  EXPECT_EQ(run.fates[cut].bytes, kMtu);
  EXPECT_TRUE(run.fates[cut].truncated);
  expect_whole(run, other, other_there);
  expect_conserved(run);
}

// ---- Rate limits

TEST(MessageHandle, ARateLimitSpacesThePackets) {
  ScriptedMessages run(kPlain);
  Message slow = message_of(4 * kMtu);
  slow.traits.rate_limit = 10 * kGbps;
  const std::size_t limited = run.send(0, slow), free = run.send(0, 0, 1, 2 * kMtu);
  run.run();
  const auto space = [](Bytes bytes) { return transmission_time(bytes + 20, 10 * kGbps); };
  Wire wire;
  wire.put(kMtu, true);
  Time next = space(kMtu + kHeader + kFirstHeader);
  Arrival there;
  for (int i = 0; i < 3; ++i) {
    there = wire.put(kMtu, false, next);
    next += space(kMtu + kHeader);
  }
  expect_whole(run, limited, there);
  wire.put(kMtu, true, next);  // the wait that the last limited packet began
  expect_whole(run, free, wire.put(kMtu));
}

// Counted from the message's last packet, for the next message only.
TEST(MessageHandle, AGapStandsBeforeTheNextMessage) {
  ScriptedMessages run(kPlain);
  Message first = message_of(2 * kMtu);
  first.traits.gap = 5 * kMicrosecond;
  const std::size_t spaced = run.send(0, first), next = run.send(0, 0, 1, 2 * kMtu);
  run.run();
  Wire line;
  line.put(kMtu, true);
  expect_whole(run, spaced, line.put(kMtu));
  line.put(kMtu, true, 5 * kMicrosecond + wire(kMtu + kHeader + kFirstHeader) + kFull);
  expect_whole(run, next, line.put(kMtu));
}

// Channels 0 and 4 share a queue pair. A gap holds only data of its channel and communication: the thread
// block of that connection makes it (src/device/prims_simple.h in NCCL). Credits are its receiver's.
TEST(MessageHandle, AGapHoldsItsConnectionAlone) {
  ScriptedMessages run(kPlain);
  Message first = message_of(2 * kMtu);
  first.traits.gap = 50 * kMicrosecond;
  Message other_channel = first, other_communication = first, credit = message_of(64);
  other_channel.traits.channel = 4;
  other_communication.communication = 1;
  credit.credit = true;
  const std::size_t spaced = run.send(0, first), next = run.send(0, first),
                    channel = run.send(0, other_channel), communication = run.send(0, other_communication),
                    back = run.send(0, credit), late = run.send(70 * kMicrosecond, first);
  run.run();
  Wire line;
  const auto two = [&](Time from) {
    line.put(kMtu, true, from);
    return line.put(kMtu);
  };
  const Time last = wire(kMtu + kHeader + kFirstHeader) + kFull;  // the first message is through
  expect_whole(run, spaced, two(0));
  expect_whole(run, channel, two(0));
  expect_whole(run, communication, two(0));
  expect_whole(run, back, line.put(64, true));
  expect_whole(run, next, two(50 * kMicrosecond + last));
  expect_whole(run, late, two(2 * (50 * kMicrosecond + last)));
}

// Within a host no event keeps the gap unless another message waits for it.
TEST(MessageHandle, AGapWithinAHostHoldsWhatComesLater) {
  const std::string dgx = "topology: {kind: star, hosts: 8}\nhost: dgx_a100\nhosts: 1\n";
  Message asked = message_of(240'000);  // 1 us
  asked.traits.gap = 10 * kMicrosecond;
  ScriptedMessages alone(dgx), spaced(dgx);
  const std::size_t lone = alone.send(0, asked);
  alone.run();
  const Time whole = alone.fates[lone].delivered;
  const std::size_t messages[] = {spaced.send(0, asked), spaced.send(0, asked),
                                  spaced.send(14 * kMicrosecond, asked),
                                  spaced.send(90 * kMicrosecond, asked)};
  spaced.run();
  const Time starts[] = {0, 11 * kMicrosecond, 22 * kMicrosecond, 90 * kMicrosecond};
  for (int i = 0; i < 4; ++i) EXPECT_EQ(spaced.fates[messages[i]].delivered, starts[i] + whole) << i;
}

TEST(MessageHandle, ALimitAboveTheWiresRateIsNone) {
  for (const BitRate limit : {BitRate{0}, 100 * kGbps, 800 * kGbps}) {
    ScriptedMessages run(kPlain);
    Message asked = message_of(4 * kMtu);
    asked.traits.rate_limit = limit;
    const std::size_t message = run.send(0, asked);
    run.run();
    Wire wire;
    wire.put(kMtu, true);
    expect_whole(run, message, wire.put_many(3));
  }
}

// With a congestion control that paces, the smaller of the two rates counts, and a queue pair's changed rate
// does not undo a limit.
TEST(MessageHandle, ALimitHoldsBesideCongestionControl) {
  for (const char* control : {"dcqcn", "hpcc", "timely", "ib_cct"}) {
    ScriptedMessages run(kPair + "transport: {congestion_control: " + control + "}\n");
    Message asked = message_of(50 * kMtu);
    asked.traits.rate_limit = 5 * kGbps;
    const std::size_t message = run.send(0, asked);
    run.run();
    EXPECT_GE(run.fates[message].delivered, transmission_time(49 * (kMtu + kHeader + 20), 5 * kGbps))
        << control;
    EXPECT_LT(run.fates[message].delivered, transmission_time(53 * (kMtu + kHeader + 20), 5 * kGbps))
        << control;
  }
}

// ---- Jobs

// Messages of two jobs take turns, packet by packet. Those of one job would go one after the other. The
// numbers of the jobs have no effect.
TEST(MessageHandle, JobsHaveQueuePairsOfTheirOwn) {
  std::vector<std::vector<std::uint64_t>> ids;
  std::vector<std::uint64_t> packets;
  for (const auto& [one, other] : std::vector<std::pair<std::uint32_t, std::uint32_t>>{{0, 1}, {7, 3}}) {
    ScriptedMessages run(kPlain);
    for (const std::uint32_t job : {one, other}) {
      Message asked = message_of(4 * kMtu);
      asked.traits.job = job;
      run.send(0, asked);
    }
    run.run();
    EXPECT_EQ(run.network->queue_pairs().size(), 2U);
    EXPECT_LT(run.fates[1].delivered - run.fates[0].delivered, 2 * kFull);
    packets.push_back(run.network->packets_fingerprint());
    ids.emplace_back();
    for (const FlowRecord& flow : run.flows) ids.back().push_back(flow.id);
  }
  EXPECT_EQ(packets[0], packets[1]);
  EXPECT_EQ(ids[0], ids[1]);
}

// ---- Within a host

const std::string kDgx = "topology: {kind: star, hosts: 16, rate: 200 Gbps}\nhost: dgx_a100\nhosts: 2\n";

// Returns the time of message 0 of `bytes` alone.
Time alone(const std::string& cluster, std::uint32_t from, std::uint32_t to, Bytes bytes) {
  ScriptedMessages run(cluster);
  run.send(0, from, to, bytes);
  run.run();
  return run.fates[0].delivered;
}

TEST(MessageHandle, WithinAHostHoldReleaseAndPriorityCount) {
  const Bytes bytes = 1'000'000;
  const Time whole = alone(kDgx, 0, 1, bytes), both = alone(kDgx, 0, 1, 2 * bytes);
  ScriptedMessages run(kDgx);
  const std::size_t held = run.send(0, 0, 1, bytes), low = run.send(0, 0, 1, bytes);
  run.hold(0, held);
  const std::size_t high = run.send(whole / 2, 0, 1, bytes, 1);
  const Time later = 10 * both;
  run.release(later, held);
  run.run();
  EXPECT_EQ(run.fates[held].delivered, later + whole);
  EXPECT_EQ(run.fates[held].sent, later + whole);
  EXPECT_LT(run.fates[high].delivered, run.fates[low].delivered);
  EXPECT_LT(run.fates[high].delivered, whole / 2 + whole + whole / 10);
  EXPECT_NEAR(static_cast<double>(run.fates[low].delivered), static_cast<double>(both),
              static_cast<double>(whole) / 50);
  EXPECT_TRUE(run.flows.empty());
}

TEST(MessageHandle, WithinAHostCancelClosesTheMessage) {
  const Bytes bytes = 1'000'000;
  const Time whole = alone(kDgx, 0, 1, bytes);
  ScriptedMessages run(kDgx);
  const std::size_t cut = run.send(0, 0, 1, bytes), gone = run.send(0, 0, 1, bytes),
                    last = run.send(0, 0, 1, bytes);
  const std::size_t cancel = run.cancel(whole / 2, cut), vanish = run.cancel(whole / 2, gone);
  run.run();
  EXPECT_EQ(run.answers[vanish], bytes);
  EXPECT_EQ(run.fates[gone], ScriptedMessages::Fate());
  EXPECT_NEAR(static_cast<double>(run.answers[cancel]), 0.5e6, 0.1e6);
  EXPECT_EQ(run.fates[cut].bytes, bytes - run.answers[cancel]);
  EXPECT_TRUE(run.fates[cut].truncated);
  EXPECT_EQ(run.fates[cut].sent, run.fates[cut].delivered);
  EXPECT_LT(run.fates[cut].delivered, whole);
  EXPECT_EQ(run.fates[last].bytes, bytes);
  EXPECT_LT(run.fates[last].delivered, 2 * whole);
  EXPECT_TRUE(run.network->waiting(10).empty());
}

// Its packets are of 512 KiB there.
TEST(MessageHandle, WithinAHostARateLimitCounts) {
  ScriptedMessages run(kDgx);
  Message asked = message_of(20'000'000);
  asked.traits.rate_limit = 10 * kGbps;
  run.send(0, asked);
  run.run();
  const Time all = transmission_time(asked.bytes, 10 * kGbps),
             one = transmission_time(512 * 1024, 10 * kGbps);
  EXPECT_GE(run.fates[0].delivered, all - one);
  EXPECT_LT(run.fates[0].delivered, all);
}

// ---- The ideal network

class IdealRun : public MessageListener {
 public:
  explicit IdealRun(Time delay) : endpoint(loop, 2, delay, 0) { endpoint.set_listener(this); }
  MessageHandle send(Bytes bytes) { return endpoint.send({message_of(bytes)}); }
  void message_delivered(const Delivery& delivery) override {
    delivered[delivery.bytes].push_back(loop.now());
  }
  void message_sent(const SendCompletion&) override { ++sent; }
  EventLoop loop;
  IdealEndpoint endpoint;
  std::map<Bytes, std::vector<Time>> delivered;  // by size
  int sent = 0;
};

TEST(MessageHandle, OnTheIdealNetworkADelayBeginsAtTheRelease) {
  IdealRun run(100);
  const MessageHandle held = run.send(1), cancelled = run.send(2), whole = run.send(3), at_once = run.send(4);
  EXPECT_TRUE(run.endpoint.hold(held));
  EXPECT_TRUE(run.endpoint.hold(at_once));
  EXPECT_TRUE(run.endpoint.release(at_once));
  EXPECT_TRUE(run.endpoint.set_priority(whole, 7));
  run.loop.run(40);
  EXPECT_EQ(run.endpoint.cancel(cancelled), 2);
  EXPECT_EQ(run.endpoint.cancel(cancelled), 0);
  const MessageHandle in_its_place = run.send(5);
  EXPECT_FALSE(run.endpoint.hold(cancelled));
  run.loop.run(1000);
  EXPECT_FALSE(run.endpoint.cancel(whole));
  EXPECT_FALSE(run.endpoint.hold(in_its_place));
  EXPECT_TRUE(run.endpoint.hold(held));
  EXPECT_TRUE(run.endpoint.release(held));
  EXPECT_TRUE(run.endpoint.release(held));
  const Time released = run.loop.now();
  run.loop.run();
  const std::map<Bytes, std::vector<Time>> expected{
      {1, {released + 100}}, {3, {100}}, {4, {100}}, {5, {run.delivered[5].at(0)}}};
  EXPECT_EQ(run.delivered, expected);
  EXPECT_EQ(run.delivered[5].at(0) % 100, 0);
  EXPECT_EQ(run.sent, 4);
  EXPECT_FALSE(run.endpoint.release(held));
  EXPECT_FALSE(run.endpoint.hold(MessageHandle()));
}

// ---- Whatever is done to them

struct Deed {
  int kind;  // 0 hold, 1 release, 2 priority, 3 cancel
  Time at;
  std::size_t message;
  std::uint8_t priority;
};
struct Script {
  struct Send {
    Time at;
    std::uint32_t from, to;
    Bytes bytes;
    std::uint8_t priority;
    std::uint32_t job, channel;
    BitRate limit;
    bool only;
  };
  std::vector<Send> sends;
  std::vector<Deed> deeds;
};

Script any_script(std::uint32_t gpus, Time end) {
  Script script;
  const int sends = *rc::gen::inRange(1, 25);
  for (int i = 0; i < sends; ++i) {
    const auto from = *rc::gen::inRange<std::uint32_t>(0, gpus);
    const bool limited = *rc::gen::inRange(0, 5) == 0;
    script.sends.push_back(
        {*rc::gen::inRange<Time>(0, end), from, (from + *rc::gen::inRange<std::uint32_t>(1, gpus)) % gpus,
         *rc::gen::inRange<Bytes>(1, 30'000), *rc::gen::inRange<std::uint8_t>(0, 4),
         *rc::gen::inRange<std::uint32_t>(0, 2), *rc::gen::inRange<std::uint32_t>(0, 2),
         limited ? *rc::gen::inRange<BitRate>(kGbps, 50 * kGbps) : 0, *rc::gen::inRange(0, 4) == 0});
  }
  const int deeds = *rc::gen::inRange(0, 60);
  for (int i = 0; i < deeds; ++i) {
    const auto message = *rc::gen::inRange<std::size_t>(0, script.sends.size());
    const Time after = script.sends[message].at;
    script.deeds.push_back({*rc::gen::inRange(0, 4), after + *rc::gen::inRange<Time>(1, end), message,
                            *rc::gen::inRange<std::uint8_t>(0, 4)});
  }
  return script;
}

// All that is still held in the end is released.
void play(ScriptedMessages& run, const Script& script, Time end) {
  std::uint32_t own_channels = 0;
  for (const Script::Send& s : script.sends) {
    Message message;
    message.source = s.from;
    message.destination = s.to;
    message.bytes = s.bytes;
    message.traits.priority = s.priority;
    message.traits.job = s.job;
    message.traits.channel = s.only ? 100 + own_channels++ : s.channel;
    message.traits.rate_limit = s.limit;
    message.traits.own_queue_pair = message.traits.only_message = s.only;
    run.send(s.at, message);
  }
  for (const Deed& deed : script.deeds) {
    if (deed.kind == 0) run.hold(deed.at, deed.message);
    if (deed.kind == 1) run.release(deed.at, deed.message);
    if (deed.kind == 2) run.prefer(deed.at, deed.message, deed.priority);
    if (deed.kind == 3) run.cancel(deed.at, deed.message);
  }
  for (std::size_t message = 0; message < script.sends.size(); ++message)
    run.release(2 * end + static_cast<Time>(message), message);
  run.run();
}

// The bytes that were taken back from each message. The sends are the first actions.
std::vector<Bytes> taken_back(const ScriptedMessages& run, const Script& script) {
  std::vector<Bytes> bytes(script.sends.size(), 0);
  for (std::size_t i = 0; i < script.deeds.size(); ++i) {
    if (script.deeds[i].kind == 3) bytes[script.deeds[i].message] += run.answers[script.sends.size() + i];
  }
  return bytes;
}

void check_all(const ScriptedMessages& run, const Script& script) {
  const std::vector<Bytes> back = taken_back(run, script);
  Bytes carried = 0;
  std::size_t told = 0;
  const NetworkCounters c = run.network->counters();
  for (std::size_t i = 0; i < script.sends.size(); ++i) {
    const ScriptedMessages::Fate& fate = run.fates[i];
    const bool vanished = back[i] == script.sends[i].bytes;
    RC_ASSERT(fate.deliveries == (vanished ? 0 : 1));
    RC_ASSERT(fate.sents == (vanished ? 0 : 1));
    if (vanished) continue;
    RC_ASSERT(fate.bytes == script.sends[i].bytes - back[i]);
    RC_ASSERT(fate.bytes_sent == fate.bytes);
    RC_ASSERT(fate.truncated == (back[i] != 0));
    RC_ASSERT(fate.sent >= fate.delivered);
    const Message& message = run.messages[i];
    if (run.network->reach(message.source, message.destination) == Reach::scale_out) {
      carried += fate.bytes;
      ++told;
    }
  }
  RC_ASSERT(c.bytes_sent == carried);
  RC_ASSERT(c.bytes_delivered == carried);
  RC_ASSERT(c.flows_done == told);
  RC_ASSERT(c.flows_started == told);
  RC_ASSERT(run.flows.size() == told);
  RC_ASSERT(run.network->waiting(10).empty());
  for (const FlowRecord& flow : run.flows) {
    RC_ASSERT(flow.end == run.fates[flow.message.tag].delivered);
    RC_ASSERT(flow.acknowledged == run.fates[flow.message.tag].sent);
  }
}

class AnyScript : public ::testing::TestWithParam<const char*> {};

TEST_P(AnyScript, LosesNoMessageAndDoublesNone) {
  const Time end = 30 * kMicrosecond;
  EXPECT_TRUE(rc::check([&] {
    const Script script = any_script(3, end);
    const int loss = *rc::gen::inRange(0, 3);
    ScriptedMessages run(
        "topology: {kind: star, hosts: 3, rate: 100 Gbps, delay: 1 us}\n"
        "network: {switch: {marker: none}" +
        std::string(loss == 0 ? "" : ", faults: [{link: host0-switch0, loss: 0.05}]") +
        "}\ntransport: {mtu: 1000 B, retransmission_timeout: 60 us, retries: 1000, queue_pairs: 1, " +
        GetParam() + "}\n");
    play(run, script, end);
    check_all(run, script);
  }));
}

INSTANTIATE_TEST_SUITE_P(
    Reliability, AnyScript,
    ::testing::Values("congestion_control: none",
                      "congestion_control: none, window: 4000 B, acknowledge: {every: 4}",
                      "congestion_control: dcqcn, reliability: {kind: go_back_n, repeat_nack: true}",
                      "congestion_control: none, reliability: irn",
                      "congestion_control: timely, reliability: {kind: irn, in_flight: selective}"));

TEST(AnyScript, WithinHostsAndOverPcieToo) {
  const Time end = 30 * kMicrosecond;
  EXPECT_TRUE(rc::check([&] {
    const Script script = any_script(16, end);
    ScriptedMessages run(kDgx + "transport: {mtu: 1000 B}\n");
    play(run, script, end);
    check_all(run, script);
  }));
}

// The sets that the network is cut into, and the threads, decide nothing.
TEST(AnyScriptThreads, DoNotShowInAnyNumberOfSets) {
  const Time end = 30 * kMicrosecond;
  const std::string cluster =
      "topology: {kind: fat_tree, k: 4, rate: 100 Gbps, delay: 1 us}\n"
      "network: {faults: [{link: edge0-agg0, loss: 0.05}]}\n"
      "transport: {mtu: 1000 B, retransmission_timeout: 60 us, retries: 1000, queue_pairs: 1, reliability: ";
  EXPECT_TRUE(rc::check([&] {
    const Script script = any_script(16, end);
    for (const char* reliability : {"go_back_n}\n", "irn}\n"}) {
      ScriptedMessages one(cluster + reliability);
      play(one, script, end);
      check_all(one, script);
      for (const std::uint32_t threads : {1U, 2U}) {
        ScriptedMessages many(cluster + reliability, 6, threads);
        RC_ASSERT(many.partition.sets > 1);
        play(many, script, end);
        RC_ASSERT(many.fates == one.fates);
        RC_ASSERT(many.answers == one.answers);
        RC_ASSERT(many.network->events_fingerprint() == one.network->events_fingerprint());
        RC_ASSERT(many.network->packets_fingerprint() == one.network->packets_fingerprint());
      }
    }
  }));
}

// Queue pairs of one message that vanished serve the next one.
TEST(MessageHandle, QueuePairsOfMessagesThatVanishedAreUsedAgain) {
  ScriptedMessages run(kPlain);
  for (std::uint32_t i = 0; i < 50; ++i) {
    Message asked = message_of(10 * kMtu);
    asked.traits.channel = i;
    asked.traits.own_queue_pair = asked.traits.only_message = true;
    const Time at = i * 100 * kMicrosecond;
    const std::size_t message = run.send(at, asked);
    run.hold(at, message);
    run.cancel(at + kMicrosecond, message);
  }
  std::size_t most = 0;
  while (run.engine.run_some(3) > 0) most = std::max(most, run.network->queue_pairs().size());
  EXPECT_LE(most, 6U);
  EXPECT_EQ(run.network->counters().packets, 0U);
  EXPECT_EQ(run.network->counters().bytes_cancelled, 50 * 10 * kMtu);
}

}  // namespace
}  // namespace netsim::message_handle_test
