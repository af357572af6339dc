// Do the copies of tensors move the bytes that they should, where tensors are divided as the kernels
// beside them are?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "sim/core/errors.h"
#include "tests/support/tasks_of.h"
#include "tests/workload/program/small_programs.h"

namespace netsim::tensor_copies_test {
namespace {

using netsim::test::parse_workload;
using ::testing::HasSubstr;

constexpr std::int64_t kTokens = 64, kHidden = 256, kQueries = 256, kKeys = 128;  // 4 heads of 64, 2 groups

// Returns the first rank's kernels, of one layer and one microbatch.
std::vector<Kernel> kernels(const std::string& more, int groups = 2, const std::string& recompute = "none") {
  const auto source =
      parse_workload("{kind: ptdp, model: {kind: llama, layers: 1, hidden: 256, heads: 4, groups: " +
                     std::to_string(groups) +
                     ", inner: 192, sequence: 64, vocabulary: 128, "
                     "experts: {count: 8, top_k: 2, inner: 128}}, optimizer: none, recompute: " +
                     recompute + more + "}")
          ->tasks(4);
  std::vector<Kernel> all;
  for (const Task& task : test::tasks_of(*source, 0)) {
    if (task.kind() != TaskKind::compute) continue;
    const std::vector<Kernel>& of_task = source->works()[task.work()].kernels;
    all.insert(all.end(), of_task.begin(), of_task.end());
  }
  return all;
}
// Returns the bytes of these kernels by name.
std::map<std::string, Bytes> bytes(const std::string& more, int groups = 2,
                                   const std::string& recompute = "none") {
  std::map<std::string, Bytes> sums;
  for (const Kernel& kernel : kernels(more, groups, recompute)) sums[kernel.name] += kernel.bytes;
  return sums;
}
// Returns why a workload is refused.
std::string error_of(const std::string& yaml) {
  try {
    parse_workload(yaml)->tasks(1);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "it is not refused";
}
// Returns those of these kernels with a name.
std::vector<Kernel> named(const std::vector<Kernel>& all, const std::string& name) {
  std::vector<Kernel> found;
  std::copy_if(all.begin(), all.end(), std::back_inserter(found),
               [&](const Kernel& kernel) { return kernel.name == name; });
  return found;
}

TEST(TensorCopies, AreNoneUnlessAsked) {
  auto plain = bytes(", parallel: {data: 4}");
  for (const char* name : {"query_copy", "value_copy", "qkv_join_backward", "concatenation"})
    EXPECT_EQ(plain.count(name), 0) << name;
  EXPECT_EQ(plain["unpermute"], 2 * 2 * kTokens * kHidden + 2 * kTokens * kHidden);
}

TEST(TensorCopies, StandAroundAttention) {
  auto copies = bytes(", parallel: {data: 4}, tensor_copies: megatron_core");
  EXPECT_EQ(copies["query_copy"], 4 * kTokens * kQueries);
  EXPECT_EQ(copies["value_copy"], 4 * kTokens * kKeys);
  EXPECT_EQ(copies["qkv_join_backward"], 4 * kTokens * (kQueries + 2 * kKeys));
  auto divided = bytes(", parallel: {tensor: 2, data: 2, sequence: true}, tensor_copies: megatron_core");
  EXPECT_EQ(divided["value_copy"], 4 * kTokens * kKeys / 2);
  auto alike = bytes(", parallel: {data: 4}, tensor_copies: megatron_core", 4);
  EXPECT_EQ(alike.count("query_copy"), 0) << "without groups, queries can be viewed as they are";
}

// Each token has two copies. Four ranks have two experts each, and equally many copies as before.
TEST(TensorCopies, StandAroundExperts) {
  const std::string where = ", parallel: {data: 4, expert: 4}, tensor_copies: ";
  auto grouped = bytes(where + "megatron_core"), sequential = bytes(where + "megatron_core_sequential");
  EXPECT_EQ(grouped.count("concatenation"), 0);
  EXPECT_EQ(sequential["concatenation"], 2 * 4 * 2 * kTokens * kHidden) << "forward and backward";
  const Bytes tokens = kTokens * kHidden, copies = 2 * tokens;
  EXPECT_EQ(grouped["unpermute"], 4 * copies) << "the product with probabilities";
  EXPECT_EQ(grouped["unpermute_zeroes"], 2 * tokens);
  EXPECT_EQ(grouped["unpermute_add"], 6 * copies);
  EXPECT_EQ(grouped["unpermute_backward"] + grouped["unpermute_product_backward"], (4 + 4) * copies);
  EXPECT_EQ(grouped["score_product"] + grouped["score_sum"], (6 + 2) * copies);
  EXPECT_EQ(grouped["permute_zeroes"], 2 * tokens);
  EXPECT_EQ(grouped["permute_backward"], 6 * copies);
  auto one_each = bytes(", parallel: {data: 4}, tensor_copies: megatron_core_sequential");
  EXPECT_EQ(one_each["concatenation"], 2 * 4 * 2 * kTokens * kHidden) << "a rank has all eight";
}

// Copies are added to the sums by atomic operations, forward and backward; nothing else is.
TEST(TensorCopies, SumsByTokenAreAtomic) {
  std::map<std::string, std::int64_t> adds;
  for (const Kernel& kernel : kernels(", parallel: {data: 4}, tensor_copies: megatron_core"))
    if (kernel.atomic_adds > 0) adds[kernel.name] += kernel.atomic_adds;
  const std::map<std::string, std::int64_t> expected{{"unpermute_add", 2 * kTokens * kHidden},
                                                     {"permute_backward", 2 * kTokens * kHidden}};
  EXPECT_EQ(adds, expected);
}

// Two experts a rank. Each has kernels of its own, which move and compute as much as one for both.
TEST(TensorCopies, ExpertsAreComputedInTurn) {
  const std::string where = ", parallel: {data: 4, expert: 4}, tensor_copies: ";
  const auto grouped = kernels(where + "megatron_core"),
             in_turn = kernels(where + "megatron_core_sequential");
  for (const char* name :
       {"expert_up_gemm", "expert_down_gemm", "expert_up_gemm_dgrad", "expert_up_gemm_wgrad"}) {
    const auto one = named(grouped, name), each = named(in_turn, name);
    ASSERT_EQ(one.size(), 1U) << name;
    ASSERT_EQ(each.size(), 2U) << name;
    EXPECT_EQ(one.front().batch, 2) << name;
    for (const Kernel& kernel : each) {
      EXPECT_EQ(kernel.batch, 1) << name;
      EXPECT_EQ(kernel.m, one.front().m) << name;
      EXPECT_EQ(kernel.n, one.front().n) << name;
    }
  }
  const auto one = named(grouped, "swiglu"), each = named(in_turn, "swiglu");
  ASSERT_EQ(each.size(), 2U);
  EXPECT_EQ(each[0].bytes + each[1].bytes, one.front().bytes);
  EXPECT_EQ(named(in_turn, "gradient_accumulation").size(), named(grouped, "gradient_accumulation").size());
}

TEST(TensorCopies, AFewExpertsAreComputedInTurn) {
  const std::string refused = error_of(
      "{kind: ptdp, model: {kind: llama, layers: 1, hidden: 256, heads: 4, groups: 4, inner: 192, sequence: "
      "64, "
      "vocabulary: 128, experts: {count: 64, top_k: 2}}, tensor_copies: megatron_core_sequential}");
  EXPECT_THAT(refused, HasSubstr("at most 50 of them; a rank has 64"));
}

// The router's kernels are those of PyTorch, each of which moves a few bytes for each score.
TEST(RoutingKernels, StandForTheOnesOfAFusedRouter) {
  const auto fused = kernels(", parallel: {data: 4}"),
             apart = kernels(", parallel: {data: 4}, routing_kernels: megatron_core");
  EXPECT_EQ(named(fused, "router_top_k").size(), 1U);
  EXPECT_EQ(named(apart, "router_top_k").size(), 2U);
  EXPECT_EQ(named(apart, "router_scatter").size(), 8U);
  EXPECT_EQ(named(apart, "balance_loss").size(), 7U);
  EXPECT_EQ(named(apart, "balance_loss").front().bytes, 8 * kTokens * 8);
  EXPECT_EQ(apart.size(), fused.size() - 2 + 35 + 15) << "forward and backward";
}

TEST(RoutingKernels, NeedRoutedExperts) {
  const std::string refused = error_of(
      "{kind: ptdp, model: {kind: llama, layers: 1, hidden: 256, heads: 4, groups: 4, inner: 192, sequence: "
      "64, "
      "vocabulary: 128}, routing_kernels: megatron_core}");
  EXPECT_THAT(refused, HasSubstr("no layer of the model has routed experts"));
}

// Returns the bytes of the kernels of a layer with experts whose activations, or rotations too, are unfused.
std::map<std::string, Bytes> unfused(const std::string& kernels, const std::string& recompute = "none") {
  return bytes(", parallel: {data: 4, expert: 4}, unfused_kernels: " + kernels, 2, recompute);
}

TEST(UnfusedKernels, StandForTheActivation) {
  constexpr Bytes kInner = 2 * kTokens * 128;  // elements of the activations of two copies of each token
  auto none = unfused("none"), apart = unfused("activation");
  EXPECT_EQ(none["swiglu"] + none["swiglu_backward"], (6 + 10) * kInner);
  EXPECT_EQ(apart.count("swiglu") + apart.count("swiglu_backward"), 0U);
  EXPECT_EQ(apart["silu"] + apart["gate_product"], (4 + 6) * kInner);
  EXPECT_EQ(apart["gate_gradient"] + apart["silu_output_gradient"], (6 + 6) * kInner);
  EXPECT_EQ(apart["silu_backward"] + apart["halves_join_backward"], (6 + 8) * kInner);
  EXPECT_EQ(apart["rotary"], none["rotary"]);
  auto again = unfused("activation", "activations");
  EXPECT_EQ(again["silu_recompute"] + again["gate_product_recompute"], (4 + 6) * kInner);
}

TEST(UnfusedKernels, StandForTheRotationOfQueriesAndKeys) {
  auto none = unfused("none"), apart = unfused("activation_rotary");
  constexpr Bytes kRotated = kTokens * (kQueries + kKeys);
  EXPECT_EQ(none["rotary"] + none["rotary_backward"], (4 + 4) * kRotated);
  EXPECT_EQ(apart.count("rotary") + apart.count("rotary_backward"), 0U);
  Bytes forward = 0, backward = 0;
  for (const auto& [name, moved] : apart) {
    if (name.rfind("rotary_", 0) != 0) continue;
    (name.find("_backward") == std::string::npos ? forward : backward) += moved;
  }
  EXPECT_EQ(forward, (2 + 4 + 4 + 4 + 6 + 4) * kRotated);
  EXPECT_EQ(backward, (4 + 2 + 4 + 4 + 6 + 2 + 6) * kRotated);
  const std::string where = ", parallel: {data: 4}, unfused_kernels: activation_rotary";
  EXPECT_EQ(named(kernels(where), "rotary_sum").size(), 2U) << "queries and keys";
}

TEST(UnfusedKernels, NeedAGatedActivation) {
  EXPECT_THAT(error_of("{kind: ptdp, model: {kind: gpt, layers: 1, hidden: 256, heads: 4, sequence: 64, "
                       "vocabulary: 128}, unfused_kernels: activation}"),
              HasSubstr("no layer of the model has a gated activation"));
}

}  // namespace
}  // namespace netsim::tensor_copies_test
