// Do the copies of tensors move the bytes that they should, where tensors are divided as the kernels
// beside them are?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tests/support/tasks_of.h"
#include "tests/workload/program/small_programs.h"

namespace netsim::tensor_copies_test {
namespace {

using netsim::test::parse_workload;

constexpr std::int64_t kTokens = 64, kHidden = 256, kQueries = 256, kKeys = 128;  // 4 heads of 64, 2 groups

// Returns the bytes of the first rank's kernels by name, of one layer and one microbatch.
std::map<std::string, Bytes> bytes(const std::string& more, int groups = 2) {
  const auto source =
      parse_workload("{kind: ptdp, model: {kind: llama, layers: 1, hidden: 256, heads: 4, groups: " +
                     std::to_string(groups) +
                     ", inner: 192, sequence: 64, vocabulary: 128, "
                     "experts: {count: 8, top_k: 2, inner: 128}}, optimizer: none, recompute: none" +
                     more + "}")
          ->tasks(4);
  std::map<std::string, Bytes> sums;
  for (const Task& task : test::tasks_of(*source, 0)) {
    if (task.kind() != TaskKind::compute) continue;
    for (const Kernel& kernel : source->works()[task.work()].kernels) sums[kernel.name] += kernel.bytes;
  }
  return sums;
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
  EXPECT_EQ(grouped["unpermute"], 10 * 2 * kTokens * kHidden + 2 * kTokens * kHidden);
  EXPECT_EQ(grouped["unpermute_backward"], 16 * 2 * kTokens * kHidden);
  EXPECT_EQ(grouped["permute_backward"], 6 * 2 * kTokens * kHidden + 2 * kTokens * kHidden);
  auto one_each = bytes(", parallel: {data: 4}, tensor_copies: megatron_core_sequential");
  EXPECT_EQ(one_each["concatenation"], 2 * 4 * 2 * kTokens * kHidden) << "a rank has all eight";
}

}  // namespace
}  // namespace netsim::tensor_copies_test
