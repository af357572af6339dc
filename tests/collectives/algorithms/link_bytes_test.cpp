// Checks the bytes that each rank sends to each other rank, by every algorithm with its own pattern, against
// the pattern in its paper. On a network that links all ranks these are the bytes of every link.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "sim/collectives/execution/executor.h"
#include "tests/collectives/algorithms/algorithm_cases.h"
#include "tests/collectives/fake_endpoint.h"
#include "tests/support/test_size.h"

namespace netsim::link_bytes_test {
namespace {

using Kind = CollectiveKind;
using test::any;
using test::power_of_two;

// Bytes by sender and receiver; entries of 0 are left out.
class Links {
 public:
  explicit Links(std::uint32_t ranks) : ranks_(ranks) {}
  std::uint32_t ranks() const { return ranks_; }
  // Receivers are counted around, so that -1 is the last rank.
  void add(std::uint32_t from, std::int64_t to, Bytes bytes) {
    const std::int64_t p = ranks_;
    if (bytes > 0) bytes_[{from, static_cast<std::uint32_t>((to % p + p) % p)}] += bytes;
  }
  // From each rank to the one so far behind it.
  void shift(std::int64_t distance, Bytes bytes) {
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) add(rank, rank + distance, bytes);
  }
  void all_pairs(Bytes bytes) {
    for (std::uint32_t distance = 1; distance < ranks_; ++distance) shift(distance, bytes);
  }
  const std::map<std::pair<std::uint32_t, std::uint32_t>, Bytes>& bytes() const { return bytes_; }

 private:
  std::uint32_t ranks_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Bytes> bytes_;
};

Links sent_by(const std::string& algorithm, Kind kind, std::uint32_t ranks, Bytes n) {
  EventLoop loop;
  FakeEndpoint endpoint(loop, ranks, 1, {}, {8 * kGbps, kMicrosecond});
  Completions done(loop);
  const auto executor = Executor::create(
      loop, endpoint,
      parse_config(std::string(to_string(kind)) + ": " + algorithm + "\nslots: 0\nslice: 1 GiB\n",
                   "test.yaml"),
      100'000);
  executor->set_listener(&done);
  const auto members = everyone(ranks);
  start_all(*executor, kind, members, n);
  loop.run();
  EXPECT_EQ(done.done.size(), ranks);
  Links links(ranks);
  for (const auto& [message, time] : endpoint.sent)
    links.add(message.source, message.destination, message.bytes);
  return links;
}

// A pattern for a buffer of n bytes. n is a multiple of the number of parts.
struct Pattern {
  const char* algorithm;
  Kind kind;
  bool (*suits)(std::uint32_t p);
  void (*draw)(Links& links, Bytes n);
};
void PrintTo(const Pattern& pattern, std::ostream* out) {
  *out << to_string(pattern.kind) << " by " << pattern.algorithm;
}

// One way around, a chunk a step.
template <int times>
void ring(Links& links, Bytes n) {
  links.shift(1, times * (links.ranks() - 1) * (n / links.ranks()));
}
// Half of the buffer each way.
template <int times>
void both_ways(Links& links, Bytes n) {
  for (const int way : {1, -1}) links.shift(way, times * (links.ranks() - 1) * (n / 2 / links.ranks()));
}
// The first four distances without a common divisor with p, a quarter of the buffer each.
template <int times>
void four_rings(Links& links, Bytes n) {
  std::uint32_t rings = 0;
  for (std::uint32_t distance = 1; rings < 4; ++distance) {
    if (std::gcd(distance, links.ranks()) != 1) continue;
    links.shift(distance, times * (links.ranks() - 1) * (n / 4 / links.ranks()));
    ++rings;
  }
}
bool has_four_rings(std::uint32_t p) { return p == 5 || p > 6; }
bool three_or_more(std::uint32_t p) { return p > 2; }

template <int times>
void pairs(Links& links, Bytes n) {
  links.all_pairs(times * (n / links.ranks()));
}

// The members of a hypercube. If p is a power of two, these are all ranks. Otherwise they are the odd ones of
// the first 2r ranks, and then the others. Each even rank hands `before` over to the next rank and gets
// `after` from it.
struct Hypercube {
  explicit Hypercube(std::uint32_t p) : members(std::bit_floor(p)), extra(p - members) {}
  std::uint32_t rank(std::uint32_t member) const { return member < extra ? 2 * member + 1 : member + extra; }
  // Blocks of the ranks that members [first, first + count) act for.
  std::uint32_t blocks(std::uint32_t first, std::uint32_t count) const {
    return count + std::min(first + count, extra) - std::min(first, extra);
  }
  template <class Bytes_>
  void exchange(Links& links, Bytes_ bytes) const {
    for (std::uint32_t distance = 1; distance < members; distance *= 2) {
      for (std::uint32_t member = 0; member < members; ++member)
        links.add(rank(member), rank(member ^ distance), bytes(member, distance));
    }
  }
  void hand_over(Links& links, Bytes before, Bytes after) const {
    for (std::uint32_t member = 0; member < extra; ++member) {
      links.add(2 * member, 2 * member + 1, before);
      links.add(2 * member + 1, 2 * member, after);
    }
  }
  std::uint32_t members, extra;
};
void whole_buffers(Links& links, Bytes n) {
  const Hypercube cube(links.ranks());
  cube.hand_over(links, n, n);
  cube.exchange(links, [n](std::uint32_t, std::uint32_t) { return n; });
}
// An all-reduce is divided among the members, whichever ranks they act for.
void halving_and_doubling(Links& links, Bytes n) {
  const Hypercube cube(links.ranks());
  cube.hand_over(links, n, n);
  cube.exchange(links,
                [&](std::uint32_t, std::uint32_t distance) { return 2 * distance * (n / cube.members); });
}
// At a distance d a member has what those have that share its bits from d on.
void doubling(Links& links, Bytes n) {
  const Hypercube cube(links.ranks());
  const Bytes block = n / links.ranks();
  cube.hand_over(links, block, n);
  cube.exchange(links, [&](std::uint32_t member, std::uint32_t distance) {
    return cube.blocks(member & ~(distance - 1), distance) * block;
  });
}
void halving(Links& links, Bytes n) {
  const Hypercube cube(links.ranks());
  const Bytes block = n / links.ranks();
  cube.hand_over(links, n, block);
  cube.exchange(links, [&](std::uint32_t member, std::uint32_t distance) {
    return cube.blocks((member ^ distance) & ~(distance - 1), distance) * block;
  });
}
// rho(s) = 1 - 2 + 4 - ...: even ranks to c + rho(s), odd ones to c - rho(s), and the mirror image.
void swing(Links& links, Bytes n) {
  std::int64_t rho = 0, power = 1;
  for (Bytes part = n / 4; part >= n / 2 / links.ranks(); part /= 2, power *= -2) {
    rho += power;
    for (std::uint32_t rank = 0; rank < links.ranks(); ++rank) {
      for (const int mirror : {1, -1})
        links.add(rank, rank + mirror * (rank % 2 == 0 ? rho : -rho), 2 * part);
    }
  }
}

void bruck_gather(Links& links, Bytes n) {
  for (std::uint32_t distance = 1; distance < links.ranks(); distance *= 2)
    links.shift(-std::int64_t{distance}, std::min(distance, links.ranks() - distance) * (n / links.ranks()));
}
// A block for the rank at distance `block` travels once for each one bit of that distance.
void bruck_exchange(Links& links, Bytes n) {
  for (std::uint32_t block = 1; block < links.ranks(); ++block) {
    for (std::uint32_t bit = 1; bit <= block; bit *= 2) {
      if ((block & bit) != 0) links.shift(bit, n / links.ranks());
    }
  }
}
// A rank's chunk goes down a binomial tree with this rank as its root. A rank gets it from the one that is
// closer by the lowest bit of its distance. A reduce-scatter is the same backwards.
template <int way>
void pat(Links& links, Bytes n) {
  for (std::uint32_t block = 1; block < links.ranks(); ++block)
    links.shift(way * std::int64_t{block & (~block + 1)}, n / links.ranks());
}

// The parent of rank `v` of a binomial tree is v without its lowest bit. Its subtree holds the ranks after
// it, up to the next rank with as many trailing zeros.
template <bool down, bool up, bool parts>
void binomial(Links& links, Bytes n) {
  for (std::uint32_t v = 1; v < links.ranks(); ++v) {
    const std::uint32_t bit = v & (~v + 1);
    const Bytes bytes = parts ? std::min(bit, links.ranks() - v) * (n / links.ranks()) : n;
    if (down) links.add(v - bit, v, bytes);
    if (up) links.add(v, v - bit, bytes);
  }
}
template <bool down, bool up>
void binary(Links& links, Bytes n) {
  for (std::uint32_t v = 1; v < links.ranks(); ++v) {
    if (down) links.add((v - 1) / 2, v, n);
    if (up) links.add(v, (v - 1) / 2, n);
  }
}
// Half of the buffer goes over each of two trees, numbered as in NCCL. With b the lowest bit of i, its parent
// is (i ^ b) | 2b, or i ^ b if there is no such rank. The other tree is the mirror image, or shifted by one
// if the number of ranks is odd.
void two_trees(Links& links, Bytes n) {
  const std::uint32_t p = links.ranks();
  for (std::uint32_t i = 1; i < p; ++i) {
    const std::uint32_t bit = i & (~i + 1);
    const std::uint32_t above = (i ^ bit) | 2 * bit, parent = above < p ? above : i ^ bit;
    const auto mirror = [&](std::uint32_t v) { return p % 2 == 0 ? p - 1 - v : (v + 1) % p; };
    for (const bool second : {false, true}) {
      const std::uint32_t below = second ? mirror(i) : i, over = second ? mirror(parent) : parent;
      links.add(below, over, n / 2);
      links.add(over, below, n / 2);
    }
  }
}

template <bool reduces>
void chain(Links& links, Bytes n) {
  for (std::uint32_t i = 0; i + 1 < links.ranks(); ++i)
    links.add(reduces ? i + 1 : i, reduces ? i + 2 : i + 1, n);
}

// The buffer goes around the rings of each dimension, of which the first varies fastest. Each share that is
// left goes around in turn, and all of them again backwards.
void dimensions(Links& links, Bytes n, const std::vector<std::uint32_t>& sizes) {
  std::uint32_t stride = 1;
  for (const std::uint32_t size : sizes) {
    for (std::uint32_t rank = 0; rank < links.ranks(); ++rank) {
      const std::uint32_t place = rank / stride % size;
      const std::uint32_t next = rank - place * stride + (place + 1) % size * stride;
      links.add(rank, next, Bytes{2} * (size - 1) * (n / stride / size));
    }
    stride *= size;
  }
}
void prime_dimensions(Links& links, Bytes n) {
  std::vector<std::uint32_t> sizes;
  std::uint32_t left = links.ranks();
  for (std::uint32_t factor = 2; left > 1; ++factor) {
    for (; left % factor == 0; left /= factor) sizes.push_back(factor);
  }
  dimensions(links, n, sizes);
}
// As near to a square as p has it, rows longer than columns.
void near_square(Links& links, Bytes n) {
  std::uint32_t columns = 1;
  for (std::uint32_t factor = 1; factor * factor <= links.ranks(); ++factor) {
    if (links.ranks() % factor == 0) columns = factor;
  }
  dimensions(links, n, {links.ranks() / columns, columns});
}

bool fours(std::uint32_t p) { return p > 4 && p % 4 == 0; }
// Up and down the chain of each group, and around the leaders.
void leaders(Links& links, Bytes n) {
  const std::uint32_t groups = links.ranks() / 4;
  for (std::uint32_t rank = 0; rank < links.ranks(); ++rank) {
    if (rank % 4 != 3) links.add(rank, rank + 1, n);
    if (rank % 4 != 0) links.add(rank, rank - 1, n);
    if (rank % 4 == 0) links.add(rank, rank + 4, Bytes{2} * (groups - 1) * (n / groups));
  }
}
// Within a group what is for one rank of each group, between groups what the group has for a rank.
void two_steps(Links& links, Bytes n) {
  const std::uint32_t groups = links.ranks() / 4;
  const Bytes block = n / links.ranks();
  for (std::uint32_t rank = 0; rank < links.ranks(); ++rank) {
    for (std::uint32_t other = 1; other < 4; ++other)
      links.add(rank, rank / 4 * 4 + (rank + other) % 4, groups * block);
    for (std::uint32_t group = 1; group < groups; ++group) links.add(rank, rank + group * 4, 4 * block);
  }
}
// A block for another host goes through the GPU of the sender's host on the receiver's rail.
void by_rails(Links& links, Bytes n) {
  const Bytes block = n / links.ranks();
  for (std::uint32_t from = 0; from < links.ranks(); ++from) {
    for (std::uint32_t to = 0; to < links.ranks(); ++to) {
      const std::uint32_t rail = from / 4 == to / 4 ? to : from / 4 * 4 + to % 4;
      if (rail != from) links.add(from, rail, block);
      if (rail != to) links.add(rail, to, block);
    }
  }
}

const std::vector<Pattern>& patterns() {
  static const std::vector<Pattern> all = {
      {"ring", Kind::all_reduce, any, ring<2>},
      {"ring", Kind::all_gather, any, ring<1>},
      {"ring", Kind::reduce_scatter, any, ring<1>},
      {"bidirectional_ring", Kind::all_reduce, any, both_ways<2>},
      {"bidirectional_ring", Kind::all_gather, any, both_ways<1>},
      {"bidirectional_ring", Kind::reduce_scatter, any, both_ways<1>},
      {"torus_bucket", Kind::all_reduce, three_or_more, both_ways<2>},
      {"{kind: multi_ring, rings: 4}", Kind::all_reduce, has_four_rings, four_rings<2>},
      {"{kind: multi_ring, rings: 4}", Kind::all_gather, has_four_rings, four_rings<1>},
      {"{kind: multi_ring, rings: 4}", Kind::reduce_scatter, has_four_rings, four_rings<1>},
      {"recursive_doubling", Kind::all_reduce, any, whole_buffers},
      {"recursive_doubling", Kind::all_gather, any, doubling},
      {"halving_doubling", Kind::all_reduce, any, halving_and_doubling},
      {"halving_doubling", Kind::all_gather, any, doubling},
      {"halving_doubling", Kind::reduce_scatter, any, halving},
      {"swing", Kind::all_reduce, power_of_two, swing},
      {"bruck", Kind::all_gather, any, bruck_gather},
      {"bruck", Kind::all_to_all, any, bruck_exchange},
      {"pat", Kind::all_gather, any, pat<1>},
      {"pat", Kind::reduce_scatter, any, pat<-1>},
      {"pairwise", Kind::all_to_all, any, pairs<1>},
      {"direct", Kind::all_to_all, any, pairs<1>},
      {"direct", Kind::all_gather, any, pairs<1>},
      {"direct", Kind::reduce_scatter, any, pairs<1>},
      {"direct", Kind::all_reduce, any, pairs<2>},
      {"direct", Kind::scatter, any,
       [](Links& links, Bytes n) {
         for (std::uint32_t rank = 1; rank < links.ranks(); ++rank) links.add(0, rank, n / links.ranks());
       }},
      {"direct", Kind::gather, any,
       [](Links& links, Bytes n) {
         for (std::uint32_t rank = 1; rank < links.ranks(); ++rank) links.add(rank, 0, n / links.ranks());
       }},
      {"parameter_server", Kind::all_reduce, any, pairs<2>},
      {"binomial_tree", Kind::broadcast, any, binomial<true, false, false>},
      {"binomial_tree", Kind::reduce, any, binomial<false, true, false>},
      {"binomial_tree", Kind::all_reduce, any, binomial<true, true, false>},
      {"binomial_tree", Kind::scatter, any, binomial<true, false, true>},
      {"binomial_tree", Kind::gather, any, binomial<false, true, true>},
      {"binary_tree", Kind::broadcast, any, binary<true, false>},
      {"binary_tree", Kind::reduce, any, binary<false, true>},
      {"binary_tree", Kind::all_reduce, any, binary<true, true>},
      {"{kind: chained_trees, trees: 1}", Kind::all_reduce, any, binary<true, true>},
      {"double_binary_tree", Kind::all_reduce, any, two_trees},
      {"chain", Kind::broadcast, any, chain<false>},
      {"chain", Kind::reduce, any, chain<true>},
      {"torus_2d", Kind::all_reduce, any, near_square},
      {"blueconnect", Kind::all_reduce, any, prime_dimensions},
      {"{kind: hierarchical, group: 4}", Kind::all_reduce, fours, leaders},
      {"{kind: two_step, group: 4}", Kind::all_to_all, fours, two_steps},
      {"{kind: nccl_p2p, group: 4, channels: 8, per_peer: 1}", Kind::all_to_all, fours, by_rails},
      {"{kind: nccl_p2p, group: 4, channels: 8, per_peer: 1, pxn: false}", Kind::all_to_all, fours, pairs<1>},
  };
  return all;
}

class LinkBytes : public ::testing::TestWithParam<Pattern> {};

// Parts of p, of the members of a hypercube, of four and more slices and of 16 chunks are whole.
TEST_P(LinkBytes, AreThoseOfThePattern) {
  for (const std::uint32_t p : test::group_sizes(GetParam().suits)) {
    const Bytes n = Bytes{p} * 64 * 64;
    Links expected(p);
    GetParam().draw(expected, n);
    EXPECT_EQ(sent_by(GetParam().algorithm, GetParam().kind, p, n).bytes(), expected.bytes()) << "p = " << p;
  }
}

INSTANTIATE_TEST_SUITE_P(Patterns, LinkBytes, ::testing::ValuesIn(patterns()), [](const auto& named) {
  return test::name_of({named.param.algorithm, named.param.kind, nullptr, nullptr}) + "_" +
         std::to_string(named.index);
});

}  // namespace
}  // namespace netsim::link_bytes_test
