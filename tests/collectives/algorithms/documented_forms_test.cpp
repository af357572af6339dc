// Checks that plans take the steps and send the bytes that docs/reference/collective_algorithms.md says.
// Every row of the page has an entry here with the page's own words, so that neither changes without the
// other.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/collectives/algorithms/algorithm_cases.h"
#include "tests/collectives/algorithms/plan_run.h"
#include "tests/support/paths.h"

namespace netsim::documented_forms_test {
namespace {

using test::any;
using test::ceil_log2;
using test::floor_log2;
using test::make_plan;
using test::multiple_of;
using test::power_of_two;
using Kind = CollectiveKind;

Bytes busiest(const Plan& plan, Bytes n) {
  Bytes most = 0;
  for (std::uint32_t rank = 0; rank < plan.ranks(); ++rank) most = std::max(most, bytes_sent(plan, rank, n));
  return most;
}
// Returns the bytes that the busiest rank sends, of messages whose sender and receiver `counts` accepts.
Bytes busiest_to(const Plan& plan, Bytes n, const std::function<bool(std::uint32_t, std::uint32_t)>& counts) {
  Bytes most = 0;
  for (std::uint32_t rank = 0; rank < plan.ranks(); ++rank) {
    Bytes sum = 0;
    for (std::uint32_t block = 0; block < plan.blocks(rank); ++block) {
      for (std::uint32_t i = 0; i < plan.steps(rank, block); ++i) {
        const Step step = plan.step(rank, block, i);
        if (sends(step.kind) && counts(rank, step.to.rank)) sum += bytes_sent(plan, rank, step, n);
      }
    }
    most = std::max(most, sum);
  }
  return most;
}

// One way to check a row: for p ranks and n bytes, which is a multiple of all parts.
struct Check {
  const char* algorithm;
  Kind kind;
  bool (*suits)(std::uint32_t p) = any;
  std::uint32_t (*steps)(std::uint32_t p) = nullptr;
  Bytes (*bytes)(std::uint32_t p, Bytes n) = nullptr;
  // Checks all else that the row says.
  void (*more)(const Plan& plan, Bytes n) = nullptr;
};
struct Row {
  const char* name;
  const char* kinds;
  const char* steps;  // as the page has them, and what follows
  const char* bytes;
  std::vector<Check> checks = {};
};

std::uint32_t once(std::uint32_t) { return 1; }
std::uint32_t twice(std::uint32_t) { return 2; }
std::uint32_t ring_steps(std::uint32_t p) { return p - 1; }
std::uint32_t two_rings(std::uint32_t p) { return 2 * (p - 1); }
Bytes all(std::uint32_t, Bytes n) { return n; }
Bytes least(std::uint32_t p, Bytes n) { return n - n / p; }
Bytes twice_least(std::uint32_t p, Bytes n) { return 2 * (n - n / p); }
Bytes times_log(std::uint32_t p, Bytes n) { return n * ceil_log2(p); }
bool from_three(std::uint32_t p) { return p > 2; }
template <std::uint32_t size>
bool only(std::uint32_t p) {
  return p == size;
}
// Groups of 4, several of them.
bool fours(std::uint32_t p) { return p > 4 && p % 4 == 0; }

const std::vector<Row>& rows() {
  static const std::vector<Row> all_rows = {
      {"ring",
       "all_reduce",
       "2(p-1)",
       "2n(p-1)/p",
       {{"ring", Kind::all_reduce, any, two_rings, twice_least}}},
      {"ring",
       "all_gather, reduce_scatter",
       "p-1",
       "n(p-1)/p",
       {{"ring", Kind::all_gather, any, ring_steps, least},
        {"ring", Kind::reduce_scatter, any, ring_steps, least}}},
      {"bidirectional_ring",
       "as `ring`",
       "as `ring`",
       "the same, half in each direction",
       {{"bidirectional_ring", Kind::all_reduce, from_three, two_rings, twice_least,
         [](const Plan& plan, Bytes n) {
           for (const std::uint32_t distance : {1U, plan.ranks() - 1}) {
             EXPECT_EQ(busiest_to(plan, n,
                                  [&](std::uint32_t from, std::uint32_t to) {
                                    return (to + plan.ranks() - from) % plan.ranks() == distance;
                                  }),
                       n - n / plan.ranks());
           }
         }},
        {"bidirectional_ring", Kind::all_gather, any, ring_steps, least},
        {"bidirectional_ring", Kind::reduce_scatter, any, ring_steps, least}}},
      {"multi_ring",
       "as `ring`",
       "as `ring`",
       "the same, over `rings` rings that share no links",
       {{"{kind: multi_ring, rings: 2}", Kind::all_reduce, from_three, two_rings, twice_least},
        {"{kind: multi_ring, rings: 2}", Kind::all_gather, from_three, ring_steps, least},
        {"{kind: multi_ring, rings: 2}", Kind::reduce_scatter, from_three, ring_steps, least}}},
      {"torus_bucket",
       "all_reduce",
       "2 (sum of sizes - d)",
       "2n(p-1)/p, over 2d links at once",
       {{"{kind: torus_bucket, dimensions: [4, 3]}", Kind::all_reduce, only<12>,
         [](std::uint32_t) { return 2U * (4 + 3 - 2); }, twice_least},
        {"{kind: torus_bucket, dimensions: [4, 3, 5]}", Kind::all_reduce, only<60>,
         [](std::uint32_t) { return 2U * (4 + 3 + 5 - 3); }, twice_least}}},
      {"themis",
       "all_reduce",
       "2 (sum of sizes - d) with one chunk",
       "2n(p-1)/p",
       {{"{kind: themis, dimensions: [4, 3], chunks: 1}", Kind::all_reduce, only<12>,
         [](std::uint32_t) { return 2U * (4 + 3 - 2); }, twice_least}}},
      {"camdoop",
       "reduce, all_reduce",
       "1 + sum of sizes - d; all_reduce twice",
       "n over 2d links, all_reduce 2n",
       {{"{kind: camdoop, dimensions: [4, 3]}", Kind::reduce, only<12>,
         [](std::uint32_t) { return 1U + 4 + 3 - 2; }, all},
        {"{kind: camdoop, dimensions: [4, 3, 5]}", Kind::reduce, only<60>,
         [](std::uint32_t) { return 1U + 4 + 3 + 5 - 3; }, all},
        {"camdoop", Kind::reduce, any, ring_steps, all},
        {"{kind: camdoop, dimensions: [4, 3, 5]}", Kind::all_reduce, only<60>,
         [](std::uint32_t) { return 2U * (1 + 4 + 3 + 5 - 3); },
         [](std::uint32_t, Bytes n) { return 2 * n; }}}},
      {"camdoop",
       "reduce_scatter",
       "",
       "n(p-1)/p, over 2d links at once",
       {{"{kind: camdoop, dimensions: [4, 3]}", Kind::reduce_scatter, only<12>, nullptr, least},
        {"camdoop", Kind::reduce_scatter, any, nullptr, least}}},
      {"torus_2d",
       "all_reduce",
       "2(X+Y-2)",
       "2n(p-1)/p",
       {{"{kind: torus_2d, dimensions: [3, 5]}", Kind::all_reduce, only<15>,
         [](std::uint32_t) { return 2U * (3 + 5 - 2); }, twice_least}}},
      {"blueconnect",
       "all_reduce",
       "2 sum of (p_i - 1)",
       "2n(p-1)/p, of it 2n (p_i - 1)/(p_0 ... p_i) on level i",
       {{"{kind: blueconnect, dimensions: [8, 4]}", Kind::all_reduce, only<32>,
         [](std::uint32_t) { return 2U * (7 + 3); }, twice_least,
         [](const Plan& plan, Bytes n) {
           const auto on_level_0 = [](std::uint32_t from, std::uint32_t to) { return from / 8 == to / 8; };
           EXPECT_EQ(busiest_to(plan, n, on_level_0), 2 * n * 7 / 8);
           EXPECT_EQ(busiest_to(plan, n, std::not_fn(on_level_0)), 2 * n * 3 / 32);
         }}}},
      {"hierarchical",
       "all_reduce",
       "4(k-1) + 2(p/k-1) of n/k and n/(p/k)",
       "n + 2n (g-1)/g at a leader of g = p/k groups",
       {{"{kind: hierarchical, group: 4}", Kind::all_reduce, fours, nullptr,
         [](std::uint32_t p, Bytes n) { return n + 2 * (n - n / (p / 4)); }}}},
      {"recursive_doubling",
       "all_reduce",
       "L",
       "n L",
       {{"recursive_doubling", Kind::all_reduce, power_of_two, floor_log2, times_log}}},
      {"recursive_doubling",
       "all_gather",
       "L",
       "n(p-1)/p",
       {{"recursive_doubling", Kind::all_gather, power_of_two, floor_log2, least}}},
      {"halving_doubling",
       "all_reduce",
       "2L",
       "2n(p-1)/p",
       {{"halving_doubling", Kind::all_reduce, power_of_two,
         [](std::uint32_t p) { return 2 * floor_log2(p); }, twice_least}}},
      {"halving_doubling",
       "all_gather, reduce_scatter",
       "L",
       "n(p-1)/p",
       {{"halving_doubling", Kind::all_gather, power_of_two, floor_log2, least},
        {"halving_doubling", Kind::reduce_scatter, power_of_two, floor_log2, least}}},
      {"swing",
       "all_reduce",
       "2L",
       "2n(p-1)/p, between near ranks of a torus of `dimensions`",
       {{"swing", Kind::all_reduce, power_of_two, [](std::uint32_t p) { return 2 * floor_log2(p); },
         twice_least}}},
      {"bruck", "all_gather", "ceil(L)", "n(p-1)/p", {{"bruck", Kind::all_gather, any, ceil_log2, least}}},
      {"bruck",
       "all_to_all",
       "ceil(L)",
       "about n L / 2",
       {{"bruck", Kind::all_to_all, power_of_two, ceil_log2,
         [](std::uint32_t p, Bytes n) { return n * floor_log2(p) / 2; }}}},
      {"bruck", "barrier", "ceil(L)", "", {{"bruck", Kind::barrier, any, ceil_log2}}},
      {"pat",
       "all_gather, reduce_scatter",
       "ceil(L)",
       "n(p-1)/p; an all_gather up to a byte a message less",
       {{"pat", Kind::all_gather, any, ceil_log2, least},
        {"pat", Kind::reduce_scatter, any, ceil_log2, least}}},
      {"direct", "all_reduce", "2", "2n(p-1)/p", {{"direct", Kind::all_reduce, any, twice, twice_least}}},
      {"direct",
       "all_gather, reduce_scatter, all_to_all, gather, scatter",
       "1",
       "n(p-1)/p; a gather: at the root's links",
       {{"direct", Kind::all_gather, any, once, least},
        {"direct", Kind::reduce_scatter, any, once, least},
        {"direct", Kind::all_to_all, any, once, least},
        {"direct", Kind::scatter, any, once, least},
        {"direct", Kind::gather, any, once, [](std::uint32_t p, Bytes n) { return n / p; },
         [](const Plan& plan, Bytes n) {
           Bytes in = 0;
           for (std::uint32_t rank = 0; rank < plan.ranks(); ++rank) in += bytes_sent(plan, rank, n);
           EXPECT_EQ(in, n - n / plan.ranks());
         }}}},
      {"direct", "all_to_all_v", "1", "what the counts say", {{"direct", Kind::all_to_all_v, any, once}}},
      {"direct",
       "dispatch, combine",
       "1",
       "each token once for each rank",
       {{"direct", Kind::dispatch, any, once}, {"direct", Kind::combine, any, once}}},
      {"deepep",
       "dispatch, combine",
       "2",
       "each token once for each host, and there over NVLink for each rank",
       {{"{kind: deepep, group: 4}", Kind::dispatch, fours, twice},
        {"{kind: deepep, group: 4}", Kind::combine, fours, twice}}},
      {"deepep_low_latency",
       "dispatch, combine",
       "1",
       "each token once for each expert",
       {{"deepep_low_latency", Kind::dispatch, any, once}, {"deepep_low_latency", Kind::combine, any, once}}},
      {"pairwise",
       "all_to_all, all_to_all_v",
       "p-1",
       "n(p-1)/p",
       {{"pairwise", Kind::all_to_all, any, ring_steps, least},
        {"pairwise", Kind::all_to_all_v, any, ring_steps}}},
      {"nccl_p2p",
       "all_to_all, all_to_all_v",
       "2 with `pxn`, else 1",
       "n(p-k)/p at NICs; over NVLink n(k-1)/p, with `pxn` + n(k-1)(p-k)/(k p)",
       {{"{kind: nccl_p2p, group: 4}", Kind::all_to_all, fours, twice, nullptr,
         [](const Plan& plan, Bytes n) {
           const Bytes p = plan.ranks(), k = 4;
           const auto in_host = [](std::uint32_t from, std::uint32_t to) { return from / 4 == to / 4; };
           EXPECT_EQ(busiest_to(plan, n, std::not_fn(in_host)), n * (p - k) / p);
           EXPECT_EQ(busiest_to(plan, n, in_host), n * (k - 1) / p + n * (k - 1) * (p - k) / (k * p));
         }},
        {"{kind: nccl_p2p, group: 4, pxn: false}", Kind::all_to_all, fours, once, nullptr,
         [](const Plan& plan, Bytes n) {
           const Bytes p = plan.ranks(), k = 4;
           const auto in_host = [](std::uint32_t from, std::uint32_t to) { return from / 4 == to / 4; };
           EXPECT_EQ(busiest_to(plan, n, std::not_fn(in_host)), n * (p - k) / p);
           EXPECT_EQ(busiest_to(plan, n, in_host), n * (k - 1) / p);
         }}}},
      {"two_step",
       "all_to_all",
       "2",
       "n(k-1)/k in the group, n(p-k)/p between groups",
       {{"{kind: two_step, group: 4}", Kind::all_to_all, fours, twice, nullptr,
         [](const Plan& plan, Bytes n) {
           const Bytes p = plan.ranks(), k = 4;
           const auto in_group = [](std::uint32_t from, std::uint32_t to) { return from / 4 == to / 4; };
           EXPECT_EQ(busiest_to(plan, n, in_group), n * (k - 1) / k);
           EXPECT_EQ(busiest_to(plan, n, std::not_fn(in_group)), n * (p - k) / p);
         }}}},
      {"three_step",
       "all_to_all",
       "3",
       "(k-1)(2p/k-1) n/p in the group, n(p-k)/p between groups; see below",
       {{"{kind: three_step, group: 4}", Kind::all_to_all, fours, [](std::uint32_t) { return 3U; }, nullptr,
         [](const Plan& plan, Bytes n) {
           const Bytes p = plan.ranks(), k = 4, others = p / k - 1, m = (others + k - 1) / k;
           const auto in_group = [](std::uint32_t from, std::uint32_t to) { return from / 4 == to / 4; };
           if (others % k == 0) {
             EXPECT_EQ(busiest_to(plan, n, in_group), (k - 1) * (2 * p / k - 1) * (n / p));
             EXPECT_EQ(busiest_to(plan, n, std::not_fn(in_group)), n * (p - k) / p);
           } else {
             EXPECT_EQ(busiest_to(plan, n, in_group), (m * (k - 1) * k + (others - m) * k + k - 1) * (n / p));
             EXPECT_EQ(busiest_to(plan, n, std::not_fn(in_group)), m * k * k * (n / p));
           }
         }}}},
      {"binomial_tree",
       "broadcast, reduce",
       "floor(L), ceil(L) on one port",
       "n ceil(L) at the root of a broadcast, else n",
       {{"binomial_tree", Kind::broadcast, any, floor_log2, times_log},
        {"binomial_tree", Kind::reduce, any, floor_log2, all}}},
      {"binomial_tree",
       "all_reduce",
       "2 floor(L), 2 ceil(L) on one port",
       "n ceil(L)",
       {{"binomial_tree", Kind::all_reduce, any, [](std::uint32_t p) { return 2 * floor_log2(p); },
         times_log}}},
      {"binomial_tree",
       "gather, scatter",
       "floor(L), ceil(L) on one port",
       "n(p-1)/p at a scatter's root",
       {{"binomial_tree", Kind::gather, any, floor_log2},
        {"binomial_tree", Kind::scatter, any, floor_log2, least}}},
      {"binary_tree",
       "broadcast, reduce, all_reduce",
       "h = floor(L), twice for all_reduce; 2(h+k-1) for k rounds on one port",
       "2n, reduce n, all_reduce 3n",
       {{"binary_tree", Kind::broadcast, from_three, floor_log2,
         [](std::uint32_t, Bytes n) { return 2 * n; }},
        {"binary_tree", Kind::reduce, any, floor_log2, all},
        {"binary_tree", Kind::all_reduce, [](std::uint32_t p) { return p >= 5; },
         [](std::uint32_t p) { return 2 * floor_log2(p); }, [](std::uint32_t, Bytes n) { return 3 * n; }}}},
      {"double_binary_tree",
       "all_reduce",
       "about 2L",
       "2n",
       {{"double_binary_tree", Kind::all_reduce, [](std::uint32_t p) { return p > 4 && p % 2 == 0; }, nullptr,
         [](std::uint32_t, Bytes n) { return 2 * n; }}}},
      {"tree", "all_reduce", "2(k-1) + 2 log2 N over N hosts of k", "2n at a host's NICs"},
      {"nccl", "all_reduce, all_gather, reduce_scatter, broadcast, reduce", "", ""},
      {"chained_trees",
       "all_reduce",
       "2h + k - 1 for `chunks` k, 2(h+k-1) with `chained: false`",
       "2n with two `trees`",
       {{"chained_trees", Kind::all_reduce, only<15>, nullptr,
         [](std::uint32_t, Bytes n) { return 2 * n; }}}},
      {"nvls",
       "all_reduce",
       "2",
       "n(1 + 1/p), and as many come",
       {{"nvls", Kind::all_reduce, [](std::uint32_t p) { return p <= 32; }, twice,
         [](std::uint32_t p, Bytes n) { return n + n / p; }}}},
      {"nvls",
       "all_gather, reduce_scatter",
       "1",
       "n/p and n come, or n and n/p come",
       {{"nvls", Kind::all_gather, any, once, [](std::uint32_t p, Bytes n) { return n / p; }},
        {"nvls", Kind::reduce_scatter, any, once, all}}},
      {"nvls_tree", "all_reduce", "2 and 2 log2(p/k) between hosts",
       "n(1 + 1/k) over NVLink, about 2n/k at a NIC"},
      {"sharp",
       "all_reduce",
       "4, of which 2 in the host",
       "n out of each host's NICs and n in; over NVLink 2n(k-1)/k, with `nvls` n(1 + 1/k)",
       {{"{kind: sharp, group: 4}", Kind::all_reduce, fours, nullptr,
         [](std::uint32_t, Bytes n) { return 2 * n * 3 / 4 + n / 4; }}}},
      {"sharp",
       "reduce_scatter, all_gather",
       "3, of which 1 in the host",
       "n out of each host's NICs and n/N in, or n/N and n; over NVLink n(k-1)/k",
       {{"{kind: sharp, group: 4}", Kind::reduce_scatter, fours, nullptr,
         [](std::uint32_t, Bytes n) { return n * 3 / 4 + n / 4; }},
        {"{kind: sharp, group: 4}", Kind::all_gather, fours, nullptr,
         [](std::uint32_t p, Bytes n) { return n * 3 / 4 + n / p; }}}},
      {"sharp", "broadcast, reduce", "4, of which 2 in the host",
       "n into each host's NICs, or out of them; over NVLink n(k-1)/k, at the root's twice that"},
      {"switchml",
       "all_reduce",
       "4, of which 2 in the host",
       "n out of each host's NICs and n in; over NVLink 2n(k-1)/k",
       {{"{kind: switchml, group: 4}", Kind::all_reduce, fours, nullptr,
         [](std::uint32_t, Bytes n) { return 2 * n * 3 / 4 + n / 4; }}}},
      {"atp",
       "all_reduce",
       "4, of which 2 in the host",
       "n at workers' NICs each way, n (x + (1-x) w) into the server's",
       {{"{kind: atp, group: 4}", Kind::all_reduce, fours, nullptr,
         [](std::uint32_t, Bytes n) { return 2 * n * 3 / 4 + n / 4; }}}},
      {"netreduce",
       "all_reduce",
       "4, of which 2 in the host",
       "n out of each host's NICs and n in; over NVLink 2n(k-1)/k",
       {{"{kind: netreduce, group: 4}", Kind::all_reduce, fours, nullptr,
         [](std::uint32_t, Bytes n) { return 2 * n * 3 / 4 + n / 4; }}}},
      {"netagg",
       "all_reduce",
       "2",
       "n out of each host and n in",
       {{"{kind: netagg, group: 1}", Kind::all_reduce, fours, nullptr,
         [](std::uint32_t, Bytes n) { return n; }}}},
      {"switchagg",
       "all_reduce",
       "2",
       "n out of each host and n in; more where tables are small",
       {{"{kind: switchagg, group: 1}", Kind::all_reduce, fours, nullptr,
         [](std::uint32_t, Bytes n) { return n; }}}},
      {"collnet_chain",
       "all_reduce",
       "2k, of which 2(k-1) in the host",
       "n out of each host's NICs and n in; over NVLink 2n",
       {{"{kind: collnet_chain, group: 4}", Kind::all_reduce, fours, nullptr,
         [](std::uint32_t, Bytes n) { return 2 * n; }}}},
      {"chain",
       "broadcast, reduce",
       "p - 2 + k for k rounds",
       "n; of several hosts each channel has a ring of its own, so all NICs share it",
       {{"chain", Kind::broadcast, any, ring_steps, all}, {"chain", Kind::reduce, any, ring_steps, all}}},
      {"parameter_server",
       "all_reduce",
       "2",
       "2w(w-1)n / (w^2 + kw - 2k) at all ports, k < w",
       {{"parameter_server", Kind::all_reduce, any, twice}}},
  };
  return all_rows;
}

// The cells of a row between its bars, without blanks around them.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream text(line.substr(1));
  for (std::string cell; std::getline(text, cell, '|');) {
    const std::size_t first = cell.find_first_not_of(' '), last = cell.find_last_not_of(' ');
    cells.push_back(first == std::string::npos ? "" : cell.substr(first, last - first + 1));
  }
  return cells;
}

TEST(DocumentedForms, AreThoseOfThePage) {
  std::ifstream page(source_directory() + "/docs/reference/collective_algorithms.md");
  std::vector<std::array<std::string, 4>> documented;  // name, kinds, steps, bytes
  bool inside = false;
  for (std::string line, name; std::getline(page, line);) {
    if (line.starts_with("| name | kinds | ranks | steps | bytes |")) {
      inside = true;
      std::getline(page, line);
      continue;
    }
    if (!inside) continue;
    if (!line.starts_with("|")) break;
    const std::vector<std::string> cells = cells_of(line);
    ASSERT_EQ(cells.size(), 6U) << line;
    if (!cells[0].empty()) name = cells[0].substr(1, cells[0].size() - 2);  // without its marks
    documented.push_back({name, cells[1], cells[3], cells[4]});
  }
  ASSERT_EQ(documented.size(), rows().size());
  for (std::size_t i = 0; i < documented.size(); ++i) {
    const Row& row = rows()[i];
    EXPECT_EQ(documented[i], (std::array<std::string, 4>{row.name, row.kinds, row.steps, row.bytes}));
  }
}

TEST(DocumentedForms, AreWhatPlansDo) {
  for (const Row& row : rows()) {
    for (const Check& check : row.checks) {
      for (std::uint32_t p = 2; p <= 64; ++p) {
        if (!check.suits(p)) continue;
        SCOPED_TRACE(std::string(check.algorithm) + " " + to_string(check.kind) + " of " + std::to_string(p));
        const auto plan = make_plan(check.algorithm, check.kind, p);
        const Bytes n = Bytes{24} * 64 * p;
        if (check.bytes != nullptr) {
          EXPECT_EQ(busiest(*plan, n), check.bytes(p, n));
        }
        if (check.more != nullptr) check.more(*plan, n);
        if (check.steps != nullptr && (p <= 20 || p == 32 || p == 60)) {
          const test::PlanRun run(*plan, kSlots);
          ASSERT_EQ(run.error(), "");
          EXPECT_EQ(run.longest_chain(), check.steps(p));
        }
      }
    }
  }
}

// Chunks in scratch are as large as pieces of the buffer in their order there, which is not that of the
// ranks. With p = 2^L ranks an all-gather sends the first 2^i of them in a message, floor(n 2^i / p) bytes. A
// reduce-scatter sends those from 2^i to 2^(i+1), which adds up to all but the first chunk.
TEST(DocumentedForms, MessagesOfPatAreWholeBytes) {
  for (const std::uint32_t p : {2U, 4U, 8U, 16U, 64U}) {
    for (const Bytes n : {Bytes{1}, Bytes{p - 1}, Bytes{p + 1}, Bytes{1000}, Bytes{1'000'003}}) {
      Bytes gathered = 0;
      for (std::uint32_t i = 0; i < floor_log2(p); ++i) gathered += (n << i) / p;
      const auto gather = make_plan("pat", Kind::all_gather, p);
      const auto scatter = make_plan("pat", Kind::reduce_scatter, p);
      for (std::uint32_t rank = 0; rank < p; ++rank) {
        EXPECT_EQ(bytes_sent(*gather, rank, n), gathered);
        EXPECT_EQ(bytes_sent(*scatter, rank, n), n - n / p);
      }
    }
  }
}

}  // namespace
}  // namespace netsim::documented_forms_test
