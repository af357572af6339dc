// Tests that algorithms take as long as their closed forms. A message of m bytes takes alpha + m beta on an
// idle network, with p = 2 to 64 and 1 B to 1 GB. Algorithms for tori and meshes also run over packets. The
// network fits each form. Ranks have one port to send on, or a link to each other rank, or share hosts within
// which nothing takes time. All of these limit what is sent, none what arrives.
//
// Forms: Thakur, Rabenseifner, Gropp 2005, section 4; Patarasuk & Yuan 2009; Mikami et al. 2018; Cho et al.
// 2019 (BlueConnect).
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <numeric>
#include <set>

#include "sim/collectives/execution/executor.h"
#include "tests/collectives/algorithms/algorithm_cases.h"
#include "tests/collectives/fake_endpoint.h"
#include "tests/collectives/packet_collectives.h"
#include "tests/support/packet_fixture.h"
#include "tests/support/test_size.h"

namespace netsim::timed_test {
namespace {

using test::ceil_log2;
using test::floor_log2;

constexpr Time kAlpha = 5 * kMicrosecond;
constexpr BitRate kRate = 8 * kGbps;  // beta: 1 ns a byte

// One channel, one message a step, no latencies of the library, no limit on messages in flight.
std::string settings_of(const std::string& algorithm, CollectiveKind kind, const std::string& slice,
                        std::uint32_t slots = 0) {
  return std::string(to_string(kind)) + ": " + algorithm +
         "\nbase_latency_ring: 0\nbase_latency_tree: 0\nhop_latency_net_ring: 0\nhop_latency_net_tree: 0\n"
         "hop_latency_nvlink_ring: 0\nhop_latency_nvlink_tree: 0\nbase_latency_pat: 0\nrank_latency_pat: 0\n"
         "scale_out_channels: 1\nslices_per_chunk: 1\nslots: " +
         std::to_string(slots) + "\nslice: " + slice + "\n";
}

double seconds(Time time) { return static_cast<double>(time) / kSecond; }

struct Network {
  std::uint32_t per_host = 1;
  FakeEndpoint::Link inside = {}, between = {kRate, kAlpha};
  bool port_each = false;
  std::uint32_t slots = 0;  // unbounded
};

// When the last rank is done.
Time time_of(const std::string& algorithm, CollectiveKind kind, std::uint32_t p, Bytes n,
             const std::string& slice = "1 GiB", const Network& network = {}) {
  EventLoop loop;
  FakeEndpoint endpoint(loop, p, network.per_host, network.inside, network.between);
  endpoint.port_each = network.port_each;
  Completions done(loop);
  const auto executor = Executor::create(
      loop, endpoint, parse_config(settings_of(algorithm, kind, slice, network.slots), "test.yaml"), 100'000);
  executor->set_listener(&done);
  std::vector<GpuId> members(p);
  std::iota(members.begin(), members.end(), 0U);
  start_all(*executor, kind, members, n);
  loop.run();
  EXPECT_EQ(done.done.size(), p);
  return done.last();
}

double alpha(double count) { return count * static_cast<double>(kAlpha); }
// Returns the time on a link for this many bytes.
double beta(double bytes) { return bytes * static_cast<double>(kNanosecond); }

struct Form {
  const char* algorithm;
  CollectiveKind kind;
  bool (*suits)(std::uint32_t p);
  double (*time)(double p, double n);
  Network network = {};
};
void PrintTo(const Form& form, std::ostream* out) {
  *out << to_string(form.kind) << " by " << form.algorithm;
}

double log2_of(double p) { return floor_log2(static_cast<std::uint32_t>(p)); }
double log2_up(double p) { return ceil_log2(static_cast<std::uint32_t>(p)); }
double two_more(double p, double n) { return std::exp2(log2_of(p)) == p ? 0 : alpha(2) + beta(2 * n); }
double ring(double p, double n) { return alpha(p - 1) + beta(n * (p - 1) / p); }
double doubling(double p, double n) { return alpha(log2_up(p)) + beta(n * (p - 1) / p); }

double whole_doubling(double p, double n) {
  return alpha(log2_of(p)) + beta(log2_of(p) * n) + two_more(p, n);
}

const Network kPortEach{.port_each = true};
const Network kHostsOfFour{.per_host = 4};

// Exchanges of recursive halving or doubling (Thakur et al., 4.1, 4.4, 4.5) if p is no power of two. Each
// even one of the first 2 (p - 2^k) ranks hands its part to the next rank, which acts for both, and gets the
// result. Members then own one block or two, so their exchanges have unequal sizes and begin at unequal
// times. A member continues when its partner's data has arrived. Its port is busy with what it sent before.
struct Members {
  std::uint32_t count, pairs;
  std::vector<double> ready, port;
  double block;

  Members(std::uint32_t p, double n)
      : count(std::bit_floor(p)), pairs(p - count), ready(count), port(count), block(n / p) {}
  // Returns the blocks of the members from `first` on.
  double blocks(std::uint32_t first, std::uint32_t number) const {
    const std::uint32_t end = first + number;
    return block * (number + std::min(end, pairs) - std::min(first, pairs));
  }
  void hand_over(double bytes) {
    for (std::uint32_t i = 0; i < pairs; ++i) ready[i] = alpha(1) + beta(bytes);
  }
  // With the member at `distance`; of what a member sends, bytes(member).
  template <class Bytes>
  void exchange(std::uint32_t distance, Bytes bytes) {
    std::vector<double> came(count);
    for (std::uint32_t i = 0; i < count; ++i) {
      port[i] = std::max(port[i], ready[i]) + beta(bytes(i));
      came[i ^ distance] = port[i] + alpha(1);
    }
    for (std::uint32_t i = 0; i < count; ++i) ready[i] = std::max(ready[i], came[i]);
  }
  // When the last rank is done, with or without such that stand aside.
  double hand_back(double bytes) const {
    double last = *std::max_element(ready.begin(), ready.end());
    for (std::uint32_t i = 0; i < pairs; ++i)
      last = std::max(last, std::max(port[i], ready[i]) + alpha(1) + beta(bytes));
    return last;
  }
};
double doubling_of_all(double p, double n) {
  Members members(static_cast<std::uint32_t>(p), n);
  members.hand_over(n);
  for (std::uint32_t distance = 1; distance < members.count; distance *= 2)
    members.exchange(distance, [&](std::uint32_t) { return n; });
  return members.hand_back(n);
}
double doubling_gather(double p, double n) {
  Members members(static_cast<std::uint32_t>(p), n);
  members.hand_over(members.block);
  for (std::uint32_t distance = 1; distance < members.count; distance *= 2)
    members.exchange(distance,
                     [&](std::uint32_t i) { return members.blocks(i & ~(distance - 1), distance); });
  return members.hand_back(n);
}
double halving_scatter(double p, double n) {
  Members members(static_cast<std::uint32_t>(p), n);
  members.hand_over(n);
  for (std::uint32_t distance = members.count / 2; distance > 0; distance /= 2) {
    members.exchange(distance, [&](std::uint32_t i) {
      return members.blocks((i ^ distance) & ~(distance - 1), distance);
    });
  }
  return members.hand_back(members.block);
}

// A binomial tree: place i has the children i + 2^j below its lowest bit, the largest subtree first. Each
// child costs its parent's port a message. Returns when the last place below `place` has its `n(subtree)`
// bytes, counted from when `place` has them.
template <class Bytes>
double binomial_down(std::uint32_t p, std::uint32_t place, Bytes bytes) {
  double last = 0, sent = 0;
  for (std::uint32_t bit = place == 0 ? std::bit_ceil(p) / 2 : (place & (~place + 1)) / 2; bit > 0;
       bit /= 2) {
    if (place + bit >= p) continue;
    sent += beta(bytes(std::min(bit, p - place - bit)));
    last = std::max(last, sent + alpha(1) + binomial_down(p, place + bit, bytes));
  }
  return last;
}
// When `place` has what comes up from below it; each child has a port of its own.
template <class Bytes>
double binomial_up(std::uint32_t p, std::uint32_t place, Bytes bytes) {
  double last = 0;
  for (std::uint32_t bit = place == 0 ? std::bit_ceil(p) / 2 : (place & (~place + 1)) / 2; bit > 0;
       bit /= 2) {
    if (place + bit >= p) continue;
    last = std::max(
        last, binomial_up(p, place + bit, bytes) + alpha(1) + beta(bytes(std::min(bit, p - place - bit))));
  }
  return last;
}
double binomial_broadcast(double p, double n) {
  return binomial_down(static_cast<std::uint32_t>(p), 0, [n](std::uint32_t) { return n; });
}
double binomial_reduce(double p, double n) {
  return test::binomial_depth(static_cast<std::uint32_t>(p)) * (alpha(1) + beta(n));
}

// A complete binary tree: the second child's message leaves behind the first one's. Place v, counted from 1,
// is where the bits of v behind its highest one lead, second children where they are set.
double binary_broadcast(double p, double n) {
  double last = 0;
  for (std::uint32_t v = 2; v <= static_cast<std::uint32_t>(p); ++v) {
    const std::uint32_t depth = floor_log2(v), seconds = static_cast<std::uint32_t>(std::popcount(v)) - 1;
    last = std::max(last, alpha(depth) + beta((depth + seconds) * n));
  }
  return last;
}
double binary_reduce(double p, double n) { return log2_of(p) * (alpha(1) + beta(n)); }

// k slices of the buffer travel around k rings on one port, with one message of each per step. A ring's next
// message leaves when its last one has arrived, or when those of the other rings have left.
double rings_on_one_port(double k, double p, double n, double steps) {
  const double m = beta(n / (k * p));
  return alpha(1) + k * m + (steps - 1) * std::max(alpha(1) + m, k * m);
}
// Two slices, mirror images of each other, halve and double at once.
double swing_on_one_port(double p, double n) {
  std::vector<double> sizes;
  for (double part = n / 4; part > n / 2 / p * 0.99; part /= 2) sizes.push_back(beta(part));
  for (std::size_t i = sizes.size(); i > 0; --i) sizes.push_back(sizes[i - 1]);
  double first = -alpha(1), second = -alpha(1);  // when their messages have left
  for (const double size : sizes) {
    first = std::max(first + alpha(1), second) + size;
    second = std::max(second + alpha(1), first) + size;
  }
  return second + alpha(1);
}
// Chunks that follow each other up a tree of h levels, and down.
double chunks_on_a_way(double levels, double chunks, double n) {
  return levels * (alpha(1) + beta(n / chunks)) + beta((chunks - 1) * n / chunks);
}
// Jia: 2 (k-1) steps of n/k each way in a group of k, and the leaders' ring. The parts of a chain follow each
// other, so alpha counts only for the chain's length.
template <std::uint32_t k>
double in_groups_of(double p, double n) {
  return alpha(2 * (k - 1)) + beta(4.0 * (k - 1) * n / k) + 2 * ring(p / k, n);
}
template <std::uint32_t k>
bool groups_of(std::uint32_t p) {
  return p > k && p % k == 0;
}
bool no_power_of_two(std::uint32_t p) { return !std::has_single_bit(p); }
bool three_or_more(std::uint32_t p) { return p > 2; }
// Enough numbers below p without a common divisor with it.
bool has_four_rings(std::uint32_t p) { return p == 5 || p > 6; }
bool hosts_of_four(std::uint32_t p) { return p > 4 && p % 4 == 0; }
// Messages leave a NIC one after the other, and only they take time.
double between_hosts_of_four(double p, double n) { return alpha(1) + beta(n * (p - 4) / p); }

const std::vector<Form>& forms() {
  using Kind = CollectiveKind;
  using test::any;
  using test::power_of_two;
  static const std::vector<Form> all = {
      {"ring", Kind::all_reduce, any, [](double p, double n) { return 2 * ring(p, n); }},
      {"ring", Kind::all_gather, any, ring},
      {"ring", Kind::reduce_scatter, any, ring},
      {"recursive_doubling", Kind::all_reduce, power_of_two, whole_doubling},
      {"recursive_doubling", Kind::all_reduce, no_power_of_two, doubling_of_all},
      {"recursive_doubling", Kind::all_gather, power_of_two, doubling},
      {"recursive_doubling", Kind::all_gather, no_power_of_two, doubling_gather},
      {"halving_doubling", Kind::all_reduce, any,
       [](double p, double n) { return 2 * doubling(std::exp2(log2_of(p)), n) + two_more(p, n); }},
      {"halving_doubling", Kind::all_gather, power_of_two, doubling},
      {"halving_doubling", Kind::all_gather, no_power_of_two, doubling_gather},
      {"halving_doubling", Kind::reduce_scatter, power_of_two, doubling},
      {"halving_doubling", Kind::reduce_scatter, no_power_of_two, halving_scatter},
      {"bruck", Kind::all_gather, any, doubling},
      // In step k the blocks go whose distance has bit k.
      {"bruck", Kind::all_to_all, any,
       [](double p, double n) {
         double blocks = 0;
         for (std::uint32_t i = 1; i < static_cast<std::uint32_t>(p); ++i) blocks += std::popcount(i);
         return alpha(log2_up(p)) + beta(blocks * n / p);
       }},
      {"pat", Kind::all_gather, any, doubling},
      {"pat", Kind::reduce_scatter, any, doubling},
      {"pairwise", Kind::all_to_all, any, ring},
      {"direct", Kind::all_gather, any, [](double p, double n) { return alpha(1) + beta(n * (p - 1) / p); }},
      {"direct", Kind::reduce_scatter, any,
       [](double p, double n) { return alpha(1) + beta(n * (p - 1) / p); }},
      {"direct", Kind::all_to_all, any, [](double p, double n) { return alpha(1) + beta(n * (p - 1) / p); }},
      {"direct", Kind::scatter, any, [](double p, double n) { return alpha(1) + beta(n * (p - 1) / p); }},
      {"direct", Kind::gather, any, [](double p, double n) { return alpha(1) + beta(n / p); }},
      {"direct", Kind::all_reduce, any,
       [](double p, double n) { return alpha(2) + beta(2 * n * (p - 1) / p); }},
      {"parameter_server", Kind::all_reduce, any,
       [](double p, double n) { return alpha(2) + beta(2 * n * (p - 1) / p); }},
      {"binomial_tree", Kind::broadcast, power_of_two,
       [](double p, double n) { return alpha(log2_of(p)) + beta(log2_of(p) * n); }},
      {"binomial_tree", Kind::reduce, power_of_two,
       [](double p, double n) { return alpha(log2_of(p)) + beta(log2_of(p) * n); }},
      {"binomial_tree", Kind::all_reduce, power_of_two,
       [](double p, double n) { return alpha(2 * log2_of(p)) + beta(2 * log2_of(p) * n); }},
      {"binomial_tree", Kind::gather, power_of_two, doubling},
      {"binomial_tree", Kind::scatter, power_of_two, doubling},
      {"binomial_tree", Kind::broadcast, no_power_of_two, binomial_broadcast},
      {"binomial_tree", Kind::reduce, no_power_of_two, binomial_reduce},
      {"binomial_tree", Kind::all_reduce, no_power_of_two,
       [](double p, double n) { return binomial_reduce(p, n) + binomial_broadcast(p, n); }},
      {"binomial_tree", Kind::gather, no_power_of_two,
       [](double p, double n) {
         return binomial_up(static_cast<std::uint32_t>(p), 0,
                            [&](std::uint32_t size) { return size * n / p; });
       }},
      {"binomial_tree", Kind::scatter, no_power_of_two,
       [](double p, double n) {
         return binomial_down(static_cast<std::uint32_t>(p), 0,
                              [&](std::uint32_t size) { return size * n / p; });
       }},
      {"binary_tree", Kind::broadcast, any, binary_broadcast},
      {"binary_tree", Kind::reduce, any, binary_reduce},
      {"binary_tree", Kind::all_reduce, any,
       [](double p, double n) { return binary_reduce(p, n) + binary_broadcast(p, n); }},
      // C-Cube's tree has a link for each of its edges.
      {"{kind: chained_trees, trees: 1, chunks: 1}", Kind::all_reduce, any,
       [](double p, double n) { return binary_reduce(p, n) + binary_broadcast(p, n); }},
      {"{kind: chained_trees, trees: 1, chunks: 16}", Kind::all_reduce, any,
       [](double p, double n) { return chunks_on_a_way(2 * log2_of(p), 16, n); }, kPortEach},
      {"{kind: chained_trees, trees: 1, chunks: 16, chained: false}", Kind::all_reduce, any,
       [](double p, double n) { return 2 * chunks_on_a_way(log2_of(p), 16, n); }, kPortEach},
      // Half of the buffer over each tree of ceil(log2 p) levels. On one port messages of both trees meet, at
      // times that depend on each rank's places in both: there are bounds only
      // (DoubleBinaryTree.TakesTheBytesOfBothTreesAtMostOnOnePort).
      {"double_binary_tree", Kind::all_reduce, any,
       [](double p, double n) { return 2 * log2_up(p) * (alpha(1) + beta(n / 2)); }, kPortEach},
      {"bidirectional_ring", Kind::all_reduce, any,
       [](double p, double n) { return rings_on_one_port(2, p, n, 2 * (p - 1)); }},
      {"bidirectional_ring", Kind::all_gather, any,
       [](double p, double n) { return rings_on_one_port(2, p, n, p - 1); }},
      {"bidirectional_ring", Kind::reduce_scatter, any,
       [](double p, double n) { return rings_on_one_port(2, p, n, p - 1); }},
      {"bidirectional_ring", Kind::all_reduce, three_or_more,
       [](double p, double n) { return 2 * ring(p, n / 2); }, kPortEach},
      {"torus_bucket", Kind::all_reduce, three_or_more, [](double p, double n) { return 2 * ring(p, n / 2); },
       kPortEach},
      {"{kind: multi_ring, rings: 2}", Kind::all_reduce, three_or_more,
       [](double p, double n) { return rings_on_one_port(2, p, n, 2 * (p - 1)); }},
      {"{kind: multi_ring, rings: 4}", Kind::all_reduce, has_four_rings,
       [](double p, double n) { return 2 * ring(p, n / 4); }, kPortEach},
      {"{kind: multi_ring, rings: 4}", Kind::all_gather, has_four_rings,
       [](double p, double n) { return ring(p, n / 4); }, kPortEach},
      {"{kind: multi_ring, rings: 4}", Kind::reduce_scatter, has_four_rings,
       [](double p, double n) { return rings_on_one_port(4, p, n, p - 1); }},
      {"swing", Kind::all_reduce, power_of_two, swing_on_one_port},
      {"swing", Kind::all_reduce, [](std::uint32_t p) { return p > 2 && power_of_two(p); },
       [](double p, double n) { return 2 * doubling(p, n / 2); }, kPortEach},
      {"{kind: two_step, group: 4}", Kind::all_to_all, hosts_of_four, between_hosts_of_four, kHostsOfFour},
      {"{kind: nccl_p2p, group: 4, channels: 8, per_peer: 1}", Kind::all_to_all, hosts_of_four,
       between_hosts_of_four, kHostsOfFour},
      {"{kind: nccl_p2p, group: 4, channels: 8, per_peer: 1, pxn: false}", Kind::all_to_all, hosts_of_four,
       between_hosts_of_four, kHostsOfFour},
      // One operation at a time on each of eight channels, of an eighth of a block.
      {"{kind: nccl_p2p, group: 1, channels: 1, per_peer: 8}", Kind::all_to_all, any,
       [](double p, double n) { return rings_on_one_port(8, p, n, p - 1); }},
      {"torus_2d", Kind::all_reduce, any,
       [](double p, double n) {
         return alpha(test::square_steps(static_cast<std::uint32_t>(p))) + beta(2 * n * (p - 1) / p);
       }},
      {"blueconnect", Kind::all_reduce, any,
       [](double p, double n) {
         return alpha(test::prime_steps(static_cast<std::uint32_t>(p))) + beta(2 * n * (p - 1) / p);
       }},
      {"{kind: hierarchical, group: 2}", Kind::all_reduce, groups_of<2>, in_groups_of<2>},
      {"{kind: hierarchical, group: 3}", Kind::all_reduce, groups_of<3>, in_groups_of<3>},
      {"{kind: hierarchical, group: 4}", Kind::all_reduce, groups_of<4>, in_groups_of<4>},
      {"{kind: hierarchical, group: 5}", Kind::all_reduce, groups_of<5>, in_groups_of<5>},
      {"{kind: hierarchical, group: 8}", Kind::all_reduce, groups_of<8>, in_groups_of<8>},
      {"{kind: hierarchical, group: 16}", Kind::all_reduce, groups_of<16>, in_groups_of<16>},
      {"chain", Kind::broadcast, any, [](double p, double n) { return alpha(p - 1) + beta((p - 1) * n); }},
      {"chain", Kind::reduce, any, [](double p, double n) { return alpha(p - 1) + beta((p - 1) * n); }},
  };
  return all;
}

class ClosedForms : public ::testing::TestWithParam<Form> {};

// To the picosecond where all parts are whole bytes; every message rounds its time up otherwise.
TEST_P(ClosedForms, HoldWhereEveryPartIsWhole) {
  for (const std::uint32_t p : test::group_sizes(GetParam().suits)) {
    for (const Bytes part : {1, 1000, 4'000'000 / 64}) {
      if (part != 1000 && p > 10 && p % 9 != 1) continue;  // whether p is right, one size says
      const Bytes n = part * p * 64;
      EXPECT_EQ(static_cast<double>(
                    time_of(GetParam().algorithm, GetParam().kind, p, n, "1 GiB", GetParam().network)),
                std::round(GetParam().time(p, static_cast<double>(n))))
          << "p = " << p << ", " << n << " B";
    }
  }
}

TEST_P(ClosedForms, HoldWithinTwoPercentFromAByteToAGigabyte) {
  for (const std::uint32_t p : test::group_sizes(GetParam().suits)) {
    for (const Bytes n : {Bytes{1}, Bytes{999}, Bytes{100'003}, 10 * kMegabyte + 1, kGigabyte}) {
      const double form = GetParam().time(p, static_cast<double>(n));
      const auto time = static_cast<double>(
          time_of(GetParam().algorithm, GetParam().kind, p, n, "1 GiB", GetParam().network));
      EXPECT_NEAR(time / form, 1, 0.02) << "p = " << p << ", " << n << " B";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(AlphaBeta, ClosedForms, ::testing::ValuesIn(forms()), [](const auto& named) {
  // Some have a form for several networks, or for several numbers of ranks.
  return test::name_of({named.param.algorithm, named.param.kind, nullptr, nullptr}) + "_" +
         std::to_string(named.index);
});

// Each tree alone takes at least this long. At most its messages wait for all others of the ranks on their
// path, which send 2n in all.
TEST(DoubleBinaryTree, TakesTheBytesOfBothTreesAtMostOnOnePort) {
  for (const std::uint32_t p : test::group_sizes(test::any)) {
    for (const Bytes n : {Bytes{2}, Bytes{2000}, Bytes{200'000'000}}) {
      const double steps = 2 * ceil_log2(p), bytes = static_cast<double>(n);
      const auto time = static_cast<double>(time_of("double_binary_tree", CollectiveKind::all_reduce, p, n));
      EXPECT_GE(time, steps * (alpha(1) + beta(bytes / 2))) << p << " " << n;
      EXPECT_LE(time, steps * (alpha(1) + beta(2 * bytes))) << p << " " << n;
    }
  }
}

// Each of C-Cube's two trees alone takes at least the time in which its chunks follow each other up and down.
// At most its messages wait for all others on their path.
TEST(ChainedTrees, TakeNoLessThanOneOfThemOnALinkEach) {
  for (const std::uint32_t p : test::group_sizes(three_or_more)) {
    const Bytes n = Bytes{16} * 10'000;
    const double one = chunks_on_a_way(2 * floor_log2(p), 8, static_cast<double>(n) / 2);
    const auto time = static_cast<double>(time_of("chained_trees", CollectiveKind::all_reduce, p, n));
    EXPECT_GE(time, one) << p;
    EXPECT_LE(time, one + beta(2.0 * static_cast<double>(n) * 2 * floor_log2(p))) << p;
  }
}

// In k rounds, which follow each other through both trees, the bytes of the busiest port set the time. These
// are 2n from four ranks on (five for C-Cube). Each level adds at most half of the time that a message of
// both trees takes up and down. The sum is 2 n beta + about log2(p) (alpha + n/k beta). This holds with
// NCCL's slots. Without a bound, leaves fill their ports with all rounds at once, and messages for the other
// tree wait. With 5, 9, 13, ... ranks some ports then idle for up to an eighth of the time.
TEST(TwoTrees, HaveTheWholeBandwidthInRounds) {
  constexpr Bytes kRounds = 256;
  constexpr std::uint32_t kSlots = 8;
  const Bytes n = kRounds * 4'000'000;
  for (const std::string algorithm : {"double_binary_tree", "chained_trees"}) {
    const bool shifted = algorithm == "double_binary_tree";
    for (const std::uint32_t p : test::group_sizes(test::any)) {
      const auto plan = test::make_plan(algorithm, CollectiveKind::all_reduce, p);
      Bytes most = 0;
      for (std::uint32_t rank = 0; rank < p; ++rank) most = std::max(most, bytes_sent(*plan, rank, n));
      EXPECT_EQ(most, p == 2 ? n : p == 3 || (p == 4 && !shifted) ? n / 2 * 3 : 2 * n) << p;
      const auto time = [&](std::uint32_t slots) {
        return static_cast<double>(time_of(algorithm, CollectiveKind::all_reduce, p, n,
                                           std::to_string(n / kRounds / 2) + " B", {.slots = slots}));
      };
      const double bytes = beta(static_cast<double>(most));
      const double levels =
          2 * ceil_log2(p) * (alpha(1) + beta(static_cast<double>(n) / static_cast<double>(kRounds)));
      const double bounded = time(kSlots), unbounded = time(0);
      EXPECT_GE(bounded, bytes) << algorithm << " " << p;
      EXPECT_LE(bounded, bytes + 0.55 * levels) << algorithm << " " << p;
      EXPECT_LE(bounded, 1.02 * bytes) << algorithm << " " << p;
      EXPECT_GE(unbounded, bytes) << algorithm << " " << p;
      EXPECT_LE(unbounded, bytes * (shifted && p > 4 && p % 4 == 1 ? 1.125 : 1) + 0.55 * levels)
          << algorithm << " " << p;
    }
  }
}

// h levels, k rounds of n/k, on one port: the second child of each rank gets a round 2 n/k after the first.
TEST(BinaryTree, PipelinesRounds) {
  for (const std::uint32_t h : {1U, 2U, 3U, 5U}) {
    for (const std::uint32_t k : {1U, 4U, 64U}) {
      const std::uint32_t p = (2U << h) - 1;
      const Bytes n = Bytes{k} * 1024 * 100;
      EXPECT_EQ(static_cast<double>(time_of("binary_tree", CollectiveKind::broadcast, p, n, "100 KiB")),
                alpha(h) + beta(2.0 * (h + k - 1) * static_cast<double>(n) / k))
          << h << " " << k;
    }
  }
}

// All ways to lay p ranks on a torus of two or three dimensions.
std::vector<std::vector<std::uint32_t>> tori_of(std::uint32_t p) {
  std::vector<std::vector<std::uint32_t>> tori;
  for (std::uint32_t x = 2; x <= p / 2; ++x) {
    if (p % x != 0) continue;
    tori.push_back({x, p / x});
    for (std::uint32_t y = 2; y <= p / x / 2; ++y)
      if (p / x % y == 0) tori.push_back({x, y, p / x / y});
  }
  return tori;
}

// On a torus of d dimensions 2d slices of the buffer travel in all directions at once; `form(p, slice,
// steps)` holds for each. With equal dimensions the slices are always in different ones, and the form is
// exact. Otherwise they meet if one enters a dimension before another has left it. A dimension of two ranks
// has one link for both its directions. Up to three slices then take turns.
void check_tori(const char* kind, bool (*suits)(std::uint32_t size),
                double (*form)(double p, double slice, double steps)) {
  for (const std::uint32_t p : test::group_sizes([](std::uint32_t ranks) { return ranks >= 4; })) {
    for (const std::vector<std::uint32_t>& sizes : tori_of(p)) {
      if (!std::all_of(sizes.begin(), sizes.end(), suits)) continue;
      const bool exact = sizes[0] > 2 && std::set<std::uint32_t>(sizes.begin(), sizes.end()).size() == 1;
      const auto d = static_cast<double>(sizes.size());
      const double steps = std::accumulate(sizes.begin(), sizes.end(), 0.0) - d;
      const std::string algorithm =
          fmt::format("{{kind: {}, dimensions: [{}]}}", kind, fmt::join(sizes, ", "));
      const Bytes part = Bytes{p} * 12;  // all parts are whole
      for (const Bytes n : {part, part * 1000, kGigabyte / part * part}) {
        if (!exact && n != part * 1000) continue;
        const double least = std::round(form(p, static_cast<double>(n) / (2 * d), steps));
        const auto time =
            static_cast<double>(time_of(algorithm, CollectiveKind::all_reduce, p, n, "1 GiB", kPortEach));
        EXPECT_GE(time, least) << algorithm << " " << n;
        EXPECT_LE(time, (exact ? 1 : 3) * least) << algorithm << " " << n;
      }
    }
  }
}

TEST(TorusBucket, HasALinkForEachSliceOnEveryTorus) {
  check_tori("torus_bucket", test::any, [](double p, double slice, double steps) {
    return alpha(2 * steps) + beta(2 * slice * (p - 1) / p);
  });
}

TEST(Swing, HasALinkForEachSliceOnEveryTorus) {
  check_tori("swing", test::power_of_two,
             [](double p, double slice, double) { return 2 * doubling(p, slice); });
}

// Mikami et al.: 100 MB among 32 x 32 ranks, alpha = 10 us, 12.5 GB/s: 124 steps against 2,046, 17 ms
// against 36. The quick suite has 16 x 16 ranks.
TEST(Torus2d, TakesHalfOfARingsTime) {
  const Network network{.between = {100 * kGbps, 10 * kMicrosecond}};
  const std::uint32_t side = test::by_size(32U, 16U, 8U);
  const auto time = [&](const std::string& algorithm) {
    return seconds(
        time_of(algorithm, CollectiveKind::all_reduce, side * side, 100 * kMegabyte, "1 GiB", network));
  };
  const double bytes = 2 * 0.1 * (1 - 1.0 / (side * side)) / 12.5;
  const double torus = 4 * (side - 1) * 10e-6 + bytes, ring = 2 * (side * side - 1) * 10e-6 + bytes;
  EXPECT_NEAR(time(fmt::format("{{kind: torus_2d, dimensions: [{0}, {0}]}}", side)), torus, 0.02 * torus);
  EXPECT_NEAR(time("ring"), ring, 0.02 * ring);
}

// Jia et al.: below n* it is faster than a ring, above n* slower. At n*, 4(k-1) + 2(g-1) steps of n/k and n/g
// cost as much as the ring's 2(p-1) of n/p.
TEST(Hierarchical, CrossesTheRingWhereTheFormsDo) {
  const double p = 128, k = 4, g = 32;
  const double fewer_steps = 2 * (p - 1) - 4 * (k - 1) - 2 * (g - 1);
  const double more_bytes = 4 * (k - 1) / k + 2 * (g - 1) / g - 2 * (p - 1) / p;
  const double crossover = alpha(fewer_steps) / beta(more_bytes);
  const auto gain = [&](double n) {
    const auto bytes = static_cast<Bytes>(n);
    const Time leaders = time_of("{kind: hierarchical, group: 4}", CollectiveKind::all_reduce, 128, bytes);
    return time_of("ring", CollectiveKind::all_reduce, 128, bytes) - leaders;
  };
  EXPECT_GT(gain(0.9 * crossover), 0);
  EXPECT_LT(gain(1.1 * crossover), 0);
}

// MSCCLang's two-step all-to-all on 64 hosts of 8 GPUs, 1 MB a GPU. Between hosts a GPU sends 63 messages of
// 16 KB instead of 504 of 2 KB one after the other. With large buffers only bytes count.
TEST(TwoStep, GainsWhereMessagesAreSmall) {
  const Network network{
      .per_host = 8, .inside = {1920 * kGbps, 2 * kMicrosecond}, .between = {200 * kGbps, 5 * kMicrosecond}};
  const auto gain = [&](std::uint32_t ranks, Bytes bytes) {
    return seconds(time_of("pairwise", CollectiveKind::all_to_all, ranks, bytes, "1 GiB", network)) /
           seconds(time_of("{kind: two_step, group: 8}", CollectiveKind::all_to_all, ranks, bytes, "1 GiB",
                           network));
  };
  EXPECT_GE(gain(512, kMegabyte), 1.2);
  EXPECT_NEAR(gain(512, 8 * kGigabyte), 1, 0.1);
}

// The hosts are served one after the other, as in a pipeline of two stages. For each, k - 1 blocks move
// within the host and then k between hosts. The own host's blocks are the last.
TEST(TwoStep, TakesTheTimeOfItsSlowerStage) {
  const std::uint32_t k = 8;
  for (const BitRate between : {200 * kGbps, 3200 * kGbps}) {
    const Network network{
        .per_host = k, .inside = {1600 * kGbps, 2 * kMicrosecond}, .between = {between, 5 * kMicrosecond}};
    for (std::uint32_t hosts = 2; hosts <= 8; ++hosts) {
      for (const Bytes block : {Bytes{400}, 40 * kKilobyte, 4 * kMegabyte}) {
        const double first = (k - 1) * static_cast<double>(block) / 200e9,
                     second = k * static_cast<double>(block) * 8 / static_cast<double>(between);
        const double outside = 2e-6 + 5e-6 + first + second + (hosts - 2) * std::max(first, second);
        EXPECT_DOUBLE_EQ(seconds(time_of("{kind: two_step, group: 8}", CollectiveKind::all_to_all, k * hosts,
                                         block * k * hosts, "1 GiB", network)),
                         std::max(outside, 2e-6 + hosts * first))
            << hosts << " " << block;
      }
    }
  }
}

// MSCCL's three-step all-to-all with as many other hosts as GPUs in each. Each GPU gathers, for one other
// host, k blocks of each other GPU of its host. It sends them on and scatters what it receives. Transfers
// that stay in the host end long before.
TEST(ThreeStep, TakesTheSumOfItsSteps) {
  const Network network{
      .per_host = 8, .inside = {1920 * kGbps, 2 * kMicrosecond}, .between = {200 * kGbps, 5 * kMicrosecond}};
  for (const Bytes block : {Bytes{240}, 24 * kKilobyte, 4800 * kKilobyte}) {
    const auto n = static_cast<Bytes>(72 * block);
    const double one = static_cast<double>(block), inside = 2e-6 + 7 * 8 * one / 240e9,
                 between = 5e-6 + 64 * one / 25e9;
    EXPECT_DOUBLE_EQ(
        seconds(time_of("{kind: three_step, group: 8}", CollectiveKind::all_to_all, 72, n, "1 GiB", network)),
        2 * inside + between)
        << block;
  }
}

// With other numbers of hosts, transfers within hosts take no time. The busiest GPU serves (hosts - 1) / k
// other hosts, rounded up, one after the other. Chunks in scratch differ by a byte if n is no multiple of p.
TEST(ThreeStep, TakesTheMessagesOfTheBusiestNic) {
  for (const std::uint32_t k : {1U, 2U, 3U, 4U, 8U}) {
    const Network network{.per_host = k, .inside = {}, .between = {kRate, kAlpha}};
    const std::string algorithm = "{kind: three_step, group: " + std::to_string(k) + "}";
    for (std::uint32_t hosts = 2; k * hosts <= 64; hosts += test::by_size(1U, 3U, 5U)) {
      const std::uint32_t p = k * hosts, most = (hosts - 1 + k - 1) / k;
      for (const Bytes n : {Bytes{p}, Bytes{1000} * p, Bytes{1}, Bytes{999}, Bytes{100'003}, kGigabyte}) {
        const double form = alpha(1) + beta(static_cast<double>(n) * most * k * k / p);
        const auto time =
            static_cast<double>(time_of(algorithm, CollectiveKind::all_to_all, p, n, "1 GiB", network));
        if (n % p == 0) {
          EXPECT_EQ(time, std::round(form)) << k << " of " << p << ", " << n << " B";
        } else {
          EXPECT_NEAR(time / form, 1, 0.02) << k << " of " << p << ", " << n << " B";
        }
      }
    }
  }
}

// Cho et al.: 48 hosts of 4 GPUs. The faster links inside carry the most.
TEST(BlueConnect, TakesTheSumOfItsLevels) {
  const Network network{
      .per_host = 4, .inside = {320 * kGbps, 2 * kMicrosecond}, .between = {100 * kGbps, 10 * kMicrosecond}};
  const double n = 100e6, inside = 2 * 3 * (2e-6 + n / 4 / 40e9),
               between = 2 * 47 * (10e-6 + n / 192 / 12.5e9);
  const double flat = 2 * 191 * (10e-6 + n / 192 / 12.5e9);
  const auto time = [&](const char* algorithm) {
    return seconds(
        time_of(algorithm, CollectiveKind::all_reduce, 192, static_cast<Bytes>(n), "1 GiB", network));
  };
  EXPECT_NEAR(time("{kind: blueconnect, dimensions: [4, 48]}") / (inside + between), 1, 0.02);
  EXPECT_LT(time("{kind: blueconnect, dimensions: [4, 48]}"), 0.7 * flat);
}

// ---- Over packets

// n bytes among ranks with one NIC each on `topology`; latencies of the library as above.
double over_packets(const std::string& cluster, const std::string& algorithm, std::uint32_t p, Bytes n) {
  test::PacketFixture fixture(cluster +
                              "\nnetwork: {switch: {marker: none}}\n"
                              "transport: {congestion_control: none}\n");
  Completions done(fixture.loop.loop());
  const CollectiveKind kind = CollectiveKind::all_reduce;
  const auto executor = Executor::create(fixture.loop.loop(), *fixture.network,
                                         parse_config(settings_of(algorithm, kind, "1 GiB"), "test.yaml"),
                                         static_cast<std::uint32_t>(fixture.cluster.graph.port_count()));
  executor->set_listener(&done);
  std::vector<GpuId> members(p);
  std::iota(members.begin(), members.end(), 0U);
  start_all(*executor, kind, members, n);
  fixture.loop.run();
  EXPECT_EQ(done.done.size(), p);
  return seconds(done.last());
}

// Packets of 4096 B have headers of 62 B. In the other direction, which carries as much data, there is an ACK
// of 66 B for each. Preamble and gap take 20 B; links have 100 Gb/s.
double on_the_wire(double bytes) { return bytes * (4096 + 62 + 20 + 66 + 20) / 4096 / 12.5e9; }

// All 2d links of a rank carry a slice, in all phases.
TEST(TorusBucket, HasTheBandwidthOfAllLinks) {
  const struct {
    const char *sizes, *algorithm;
    std::uint32_t p, links;
  } tori[] = {{"[8]", "bidirectional_ring", 8, 2},
              {"[8]", "torus_bucket", 8, 2},
              {"[4, 4]", "{kind: torus_bucket, dimensions: [4, 4]}", 16, 4},
              {"[3, 3, 3]", "{kind: torus_bucket, dimensions: [3, 3, 3]}", 27, 6}};
  for (const auto& torus : tori) {
    const std::string cluster = std::string("topology: {kind: torus, sizes: ") + torus.sizes +
                                ", rate: 100 Gbps, delay: 500 ns}\nhost: single_nic";
    const double n = 64e6, p = torus.p, bytes = 2 * n * (p - 1) / p / torus.links;
    const double steps = over_packets(cluster, torus.algorithm, torus.p, torus.p);
    EXPECT_NEAR(
        over_packets(cluster, torus.algorithm, torus.p, static_cast<Bytes>(n)) / (steps + on_the_wire(bytes)),
        1, 0.02)
        << torus.sizes;
  }
}

// ACCL uses all NICs of a host. It runs reduce-scatter and all-gather in hosts, and between them an
// all-reduce of an eighth of the buffer on each rail. That takes an eighth of a ring over the hosts with one
// NIC each, +- 5 %. NVLinks are fast enough here that only the time between hosts counts. There are enough
// channels that thread blocks do not limit it.
TEST(BlueConnect, UsesAllNicsOfAHost) {
  const auto cluster_of = [](const std::string& algorithm) {
    return std::string(
               "topology: {kind: rail_optimized, rate: 200 Gbps, hosts_per_leaf: 4, units: 1, spines: 4}\n"
               "host: {kind: full_mesh, gpus: 8, nvlink_rate: 100 Tbps}\nhosts: 4\nnetwork: {switch: "
               "{marker: none}}\n"
               "transport: {congestion_control: none}\ncollectives: {all_reduce: ") +
           algorithm +
           ", slice: 1 GiB, slots: 0, slices_per_chunk: 1, scale_out_channels: 32, base_latency_ring: 0, "
           "hop_latency_net_ring: 0, hop_latency_nvlink_ring: 0}\n";
  };
  const Bytes n = 256 * kMegabyte;
  test::PacketCollectives rails(cluster_of("{kind: blueconnect, dimensions: [8, 4]}")),
      one(cluster_of("ring"));
  const auto all = everyone(32), first = test::every(8, 4);
  const double total = seconds(rails.run(test::request_of(CollectiveKind::all_reduce, all, n)));
  const double flat = seconds(one.run(test::request_of(CollectiveKind::all_reduce, first, n)));
  EXPECT_NEAR(total * 8 / flat, 1, 0.05);
  std::set<Bytes> sent;
  for (std::uint32_t i = 0; i < 32; ++i) {
    const std::string nic = "host" + std::to_string(i / 8) + "/nic" + std::to_string(i % 8);
    sent.insert(rails.packets.network->port_counters(rails.fabric_port(nic)).wire_bytes);
  }
  EXPECT_EQ(sent.size(), 1u);  // all as many, with headers no less than 2 (n/8) 3/4
  EXPECT_GE(*sent.begin(), 2 * n / 8 * 3 / 4);
  EXPECT_LE(*sent.begin(), 1.06 * 2 * n / 8 * 3 / 4);
}

// Its partners are near: on a torus packets of halving_doubling meet each other more often.
TEST(Swing, IsFasterThanHalvingAndDoublingOnATorus) {
  const std::string cluster =
      "topology: {kind: torus, sizes: [8, 8], rate: 100 Gbps, delay: 500 ns}\nhost: single_nic";
  const Bytes n = 8 * kMegabyte;
  EXPECT_LT(1.5 * over_packets(cluster, "{kind: swing, dimensions: [8, 8]}", 64, n),
            over_packets(cluster, "halving_doubling", 64, n));
}

// C-Cube with h = 3 levels, k = 64 chunks and a link for each edge of the tree. It takes 2h + k - 1 slots
// instead of 2 (h + k - 1), which is 1.91 times as fast.
TEST(ChainedTrees, OverlapTheBroadcastWithTheReduction) {
  const std::string cluster =
      "topology: {kind: star, hosts: 15, rate: 100 Gbps, delay: 1 us}\nhosts: 1\n"
      "host: {kind: full_mesh, gpus: 15, nvlink_piece: 16 MiB}";
  const auto time = [&](const char* chained) {
    return over_packets(cluster,
                        std::string("{kind: chained_trees, trees: 1, chunks: 64, chained: ") + chained + "}",
                        15, 64 * 8 * kMegabyte);
  };
  EXPECT_NEAR(time("false") / time("true"), 132.0 / 69, 0.01 * 132 / 69);
}

}  // namespace
}  // namespace netsim::timed_test
