// The shipped algorithms, with the parameters that tests give them, and what is known of them.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "sim/collectives/algorithm.h"
#include "sim/core/config.h"
#include "sim/core/registry.h"

namespace netsim::test {

constexpr std::uint32_t floor_log2(std::uint32_t p) {
  return static_cast<std::uint32_t>(std::bit_width(p)) - 1;
}
constexpr std::uint32_t ceil_log2(std::uint32_t p) {
  return static_cast<std::uint32_t>(std::bit_width(p - 1));
}

struct AlgorithmCase {
  const char* algorithm;  // as the configuration has it
  CollectiveKind kind;
  bool (*suits)(std::uint32_t p);
  // Messages that follow from each other, where n is one round.
  std::uint32_t (*chain)(std::uint32_t p);
};
inline void PrintTo(const AlgorithmCase& c, std::ostream* out) {
  *out << to_string(c.kind) << " by " << c.algorithm;
}
// For the names of tests.
inline std::string name_of(const AlgorithmCase& c) {
  std::string name = std::string(c.algorithm) + "_" + to_string(c.kind);
  std::erase_if(name, [](char x) { return x != '_' && (std::isalnum(static_cast<unsigned char>(x)) == 0); });
  return name;
}

inline std::unique_ptr<CollectiveAlgorithm> make_algorithm(const std::string& text) {
  return Registry<CollectiveAlgorithm>::instance().create(parse_config(text, "test.yaml"), "");
}
inline std::unique_ptr<Plan> make_plan(const std::string& text, CollectiveKind kind, std::uint32_t ranks,
                                       std::uint32_t root = 0) {
  return make_algorithm(text)->plan(kind, {ranks, root});
}

inline bool any(std::uint32_t) { return true; }
inline bool power_of_two(std::uint32_t p) { return std::has_single_bit(p); }
template <std::uint32_t group>
bool multiple_of(std::uint32_t p) {
  return p <= group || p % group == 0;
}
template <std::uint32_t size>
bool only(std::uint32_t p) {
  return p == size;
}
inline std::uint32_t ring_steps_of(std::uint32_t p) { return p - 1; }
inline std::uint32_t two_rings_of(std::uint32_t p) { return 2 * (p - 1); }
template <std::uint32_t steps>
std::uint32_t always(std::uint32_t) {
  return steps;
}
inline std::uint32_t aside(std::uint32_t p) { return power_of_two(p) ? 0 : 2; }
inline std::uint32_t doubling(std::uint32_t p) { return floor_log2(p) + aside(p); }
inline std::uint32_t halving_and_doubling(std::uint32_t p) { return 2 * floor_log2(p) + aside(p); }
// Returns the largest number of one bits in any place below p.
inline std::uint32_t binomial_depth(std::uint32_t p) {
  std::uint32_t most = 0;
  for (std::uint32_t place = 0; place < p; ++place)
    most = std::max(most, static_cast<std::uint32_t>(std::popcount(place)));
  return most;
}
inline std::uint32_t prime_steps(std::uint32_t p) {
  std::uint32_t steps = 0;
  for (std::uint32_t factor = 2; p > 1; ++factor) {
    for (; p % factor == 0; p /= factor) steps += 2 * (factor - 1);
  }
  return steps;
}
inline std::uint32_t square_steps(std::uint32_t p) {
  std::uint32_t smaller = 1;
  for (std::uint32_t factor = 1; factor * factor <= p; ++factor) {
    if (p % factor == 0) smaller = factor;
  }
  return 2 * (smaller + p / smaller - 2);
}
template <std::uint32_t group>
std::uint32_t once_or_twice(std::uint32_t p) {
  return p <= group ? 1 : 2;
}
template <std::uint32_t group>
std::uint32_t once_or_three_times(std::uint32_t p) {
  return p <= group ? 1 : 3;
}
template <std::uint32_t group>
std::uint32_t leader_steps(std::uint32_t p) {
  return p <= group ? 2 * (p - 1) : 2 * (group - 1) + 2 * (p / group - 1);
}

inline const std::vector<AlgorithmCase>& algorithm_cases() {
  using Kind = CollectiveKind;
  static const std::vector<AlgorithmCase> cases = {
      {"ring", Kind::all_reduce, any, two_rings_of},
      {"ring", Kind::all_gather, any, ring_steps_of},
      {"ring", Kind::reduce_scatter, any, ring_steps_of},
      {"bidirectional_ring", Kind::all_reduce, any, two_rings_of},
      {"bidirectional_ring", Kind::all_gather, any, ring_steps_of},
      {"bidirectional_ring", Kind::reduce_scatter, any, ring_steps_of},
      {"{kind: multi_ring, rings: 2}", Kind::all_reduce, [](std::uint32_t p) { return p > 2; }, two_rings_of},
      {"{kind: multi_ring, rings: 2}", Kind::all_gather, [](std::uint32_t p) { return p > 2; },
       ring_steps_of},
      {"{kind: multi_ring, rings: 4}", Kind::reduce_scatter,
       [](std::uint32_t p) { return p == 5 || (p > 6 && p != 6); }, ring_steps_of},
      {"{kind: torus_bucket, dimensions: [7]}", Kind::all_reduce, only<7>, always<12>},
      {"{kind: torus_bucket, dimensions: [4, 3]}", Kind::all_reduce, only<12>, always<10>},
      {"{kind: torus_bucket, dimensions: [4, 1, 2]}", Kind::all_reduce, only<8>, always<8>},
      {"{kind: torus_bucket, dimensions: [4, 3, 5]}", Kind::all_reduce, only<60>, always<18>},
      {"torus_bucket", Kind::all_reduce, any, two_rings_of},
      {"{kind: themis, dimensions: [4, 3], chunks: 1}", Kind::all_reduce, only<12>, always<10>},
      {"{kind: themis, dimensions: [4, 3], chunks: 6}", Kind::all_reduce, only<12>, nullptr},
      {"{kind: themis, dimensions: [4, 3], chunks: 6, in_flight: 2, queue: fifo}", Kind::all_reduce, only<12>,
       nullptr},
      {"{kind: themis, dimensions: [4, 1, 2, 3], rates: [4, 1, 2, 1], chunks: 1, directions: 1}",
       Kind::all_reduce, only<24>, always<12>},
      {"{kind: themis, dimensions: [4, 1, 2, 3], rates: [4, 1, 2, 1], chunks: 6, directions: 1}",
       Kind::all_reduce, only<24>, nullptr},
      {"{kind: themis, dimensions: [4, 3], chunks: 3, order: fixed}", Kind::all_reduce, only<12>, nullptr},
      {"{kind: themis, chunks: 1}", Kind::all_reduce, any, square_steps},
      {"{kind: camdoop, dimensions: [3, 4]}", Kind::reduce, only<12>, always<6>},
      {"{kind: camdoop, dimensions: [3, 3, 3]}", Kind::reduce, only<27>, always<7>},
      {"{kind: camdoop, dimensions: [3, 1, 3]}", Kind::all_reduce, only<9>, nullptr},
      {"{kind: camdoop, dimensions: [2, 4]}", Kind::all_reduce, only<8>, nullptr},
      {"{kind: camdoop, dimensions: [4, 4]}", Kind::reduce_scatter, only<16>, nullptr},
      {"camdoop", Kind::reduce, any, ring_steps_of},
      {"camdoop", Kind::all_reduce, any, two_rings_of},
      {"camdoop", Kind::reduce_scatter, any, ring_steps_of},
      {"torus_2d", Kind::all_reduce, any, square_steps},
      {"{kind: torus_2d, dimensions: [3, 5]}", Kind::all_reduce, only<15>, always<12>},
      {"blueconnect", Kind::all_reduce, any, prime_steps},
      {"{kind: blueconnect, dimensions: [8, 4]}", Kind::all_reduce, only<32>, always<20>},
      {"{kind: hierarchical, group: 4}", Kind::all_reduce, multiple_of<4>, leader_steps<4>},
      {"{kind: hierarchical, group: 1}", Kind::all_reduce, any, two_rings_of},
      {"recursive_doubling", Kind::all_reduce, any, doubling},
      {"recursive_doubling", Kind::all_gather, any, doubling},
      {"halving_doubling", Kind::all_reduce, any, halving_and_doubling},
      {"halving_doubling", Kind::all_gather, any, doubling},
      {"halving_doubling", Kind::reduce_scatter, any, doubling},
      {"swing", Kind::all_reduce, power_of_two, halving_and_doubling},
      {"{kind: swing, dimensions: [4, 8]}", Kind::all_reduce, only<32>, always<10>},
      {"{kind: swing, dimensions: [2, 8, 4]}", Kind::all_reduce, only<64>, always<12>},
      {"bruck", Kind::all_gather, any, ceil_log2},
      {"bruck", Kind::all_to_all, any, ceil_log2},
      {"pat", Kind::all_gather, any, ceil_log2},
      {"pat", Kind::reduce_scatter, any, ceil_log2},
      {"direct", Kind::all_reduce, any, always<2>},
      {"parameter_server", Kind::all_reduce, any, always<2>},
      {"direct", Kind::all_gather, any, always<1>},
      {"direct", Kind::reduce_scatter, any, always<1>},
      {"direct", Kind::all_to_all, any, always<1>},
      {"direct", Kind::gather, any, always<1>},
      {"direct", Kind::scatter, any, always<1>},
      {"nvls", Kind::all_reduce, any, always<2>},
      {"nvls", Kind::all_gather, any, always<1>},
      {"nvls", Kind::reduce_scatter, any, always<1>},
      {"{kind: nvls_tree, group: 4}", Kind::all_reduce, multiple_of<4>, nullptr},
      {"{kind: sharp, group: 4}", Kind::all_reduce, multiple_of<4>, nullptr},
      {"{kind: sharp, group: 1}", Kind::all_reduce, any, always<2>},
      {"{kind: switchml, group: 4}", Kind::all_reduce, multiple_of<4>, nullptr},
      {"{kind: switchml, group: 1}", Kind::all_reduce, any, always<2>},
      {"{kind: atp, group: 4}", Kind::all_reduce, multiple_of<4>, nullptr},
      {"{kind: atp, group: 1}", Kind::all_reduce, any, always<2>},
      {"{kind: netreduce, group: 4}", Kind::all_reduce, multiple_of<4>, nullptr},
      {"{kind: netreduce, group: 1}", Kind::all_reduce, any, always<2>},
      {"{kind: switchagg, group: 1}", Kind::all_reduce, any, always<2>},
      {"{kind: netagg, group: 1}", Kind::all_reduce, any, always<2>},
      {"{kind: netagg, group: 1}", Kind::reduce, any, always<2>},
      {"{kind: sharp, group: 4}", Kind::all_gather, multiple_of<4>, nullptr},
      {"{kind: sharp, group: 1}", Kind::all_gather, any, always<2>},
      {"{kind: sharp, group: 4}", Kind::reduce_scatter, multiple_of<4>, nullptr},
      {"{kind: sharp, group: 1}", Kind::reduce_scatter, any, always<2>},
      {"{kind: sharp, group: 4}", Kind::broadcast, multiple_of<4>, nullptr},
      {"{kind: sharp, group: 1}", Kind::broadcast, any, always<2>},
      {"{kind: sharp, group: 4}", Kind::reduce, multiple_of<4>, nullptr},
      {"{kind: sharp, group: 1}", Kind::reduce, any, always<2>},
      {"{kind: collnet_chain, group: 4}", Kind::all_reduce, multiple_of<4>, nullptr},
      {"{kind: collnet_chain, group: 1}", Kind::all_reduce, any, always<2>},
      {"direct", Kind::all_to_all_v, any, always<1>},
      {"direct", Kind::dispatch, any, always<1>},
      {"direct", Kind::combine, any, always<1>},
      {"{kind: deepep, group: 4}", Kind::dispatch, multiple_of<4>, once_or_twice<4>},
      {"{kind: deepep, group: 4}", Kind::combine, multiple_of<4>, once_or_twice<4>},
      {"{kind: deepep, group: 1}", Kind::dispatch, any, always<1>},
      {"{kind: deepep, group: 1}", Kind::combine, any, always<1>},
      {"deepep_low_latency", Kind::dispatch, any, always<1>},
      {"deepep_low_latency", Kind::combine, any, always<1>},
      {"pairwise", Kind::all_to_all, any, ring_steps_of},
      {"pairwise", Kind::all_to_all_v, any, ring_steps_of},
      {"bruck", Kind::barrier, any, ceil_log2},
      {"{kind: two_step, group: 4}", Kind::all_to_all, multiple_of<4>, once_or_twice<4>},
      {"{kind: two_step, group: 1}", Kind::all_to_all, any, always<1>},
      {"{kind: three_step, group: 2}", Kind::all_to_all, multiple_of<2>, once_or_three_times<2>},
      {"{kind: three_step, group: 4}", Kind::all_to_all, multiple_of<4>, once_or_three_times<4>},
      {"{kind: three_step, group: 7}", Kind::all_to_all, multiple_of<7>, once_or_three_times<7>},
      {"{kind: three_step, group: 1}", Kind::all_to_all, any, always<1>},
      {"{kind: nccl_p2p, group: 4}", Kind::all_to_all, multiple_of<4>, once_or_twice<4>},
      {"{kind: nccl_p2p, group: 4}", Kind::all_to_all_v, multiple_of<4>, once_or_twice<4>},
      {"{kind: nccl_p2p, group: 4, pxn: false}", Kind::all_to_all, multiple_of<4>, always<1>},
      {"{kind: nccl_p2p, group: 1, channels: 1, per_peer: 8}", Kind::all_to_all, any, ring_steps_of},
      {"binomial_tree", Kind::broadcast, any, binomial_depth},
      {"binomial_tree", Kind::reduce, any, binomial_depth},
      {"binomial_tree", Kind::all_reduce, any, [](std::uint32_t p) { return 2 * binomial_depth(p); }},
      {"binomial_tree", Kind::gather, any, binomial_depth},
      {"binomial_tree", Kind::scatter, any, binomial_depth},
      {"binary_tree", Kind::broadcast, any, floor_log2},
      {"binary_tree", Kind::reduce, any, floor_log2},
      {"binary_tree", Kind::all_reduce, any, [](std::uint32_t p) { return 2 * floor_log2(p); }},
      {"chained_trees", Kind::all_reduce, any, [](std::uint32_t p) { return 2 * floor_log2(p); }},
      {"{kind: chained_trees, trees: 1, chunks: 3, chained: false}", Kind::all_reduce, any,
       [](std::uint32_t p) { return 2 * floor_log2(p); }},
      {"double_binary_tree", Kind::all_reduce, any, nullptr},
      {"tree", Kind::all_reduce, any, nullptr},
      {"chain", Kind::broadcast, any, ring_steps_of},
      {"chain", Kind::reduce, any, ring_steps_of},
  };
  return cases;
}

}  // namespace netsim::test
