// Tests further parts of DeepSeek-V3's training, with FLOPs and bytes by hand. These are recomputed modules,
// operands scaled by blocks, and tokens that travel without copies. In pairs of a forward and a backward each
// hides the other's communication.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "sim/core/errors.h"
#include "tests/support/paths.h"
#include "tests/support/tasks_of.h"
#include "tests/workload/program/small_programs.h"
#include "tests/workload/task_player.h"

namespace netsim::recomputation_test {
namespace {

using netsim::test::parse_workload;
using netsim::test::TaskPlayer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::int64_t kHidden = 256, kTokens = 64, kQuery = 128, kKeyValue = 64, kRotary = 16, kInner = 128;
constexpr std::int64_t kDown = kQuery + kKeyValue + kRotary;
constexpr std::int64_t kQueries = 4 * (32 + kRotary), kKeysValues = 4 * (32 + 32), kValues = 4 * 32;
constexpr std::int64_t kCopies = 2 * kTokens;

std::string yaml(int layers, const std::string& more) {
  return "{kind: ptdp, model: {kind: llama, layers: " + std::to_string(layers) +
         ", hidden: 256, heads: 4, inner: 192, sequence: 64, vocabulary: 128, latent: {query: 128, "
         "key_value: 64, "
         "plain: 32, rotary: 16, value: 32}, experts: {count: 8, top_k: 2, inner: 128, shared: 1}}, "
         "optimizer: "
         "none, " +
         more + "}";
}
std::unique_ptr<TaskSource> job(const std::string& more, int layers = 2) {
  return parse_workload(yaml(layers, more))->tasks(4);
}

struct Sum {
  std::int64_t kernels = 0;
  Bytes bytes = 0;
  double flops = 0;
  bool operator==(const Sum&) const = default;
};
// Returns a rank's kernels by name; with `task` only those of its tasks of that name.
std::map<std::string, Sum> kernels(const TaskSource& source, const std::string& task_name = "") {
  std::map<std::string, Sum> sums;
  for (const Task& task : test::tasks_of(source, 0)) {
    if (task.kind() != TaskKind::compute) continue;
    if (!task_name.empty() && source.names()[task.name] != task_name) continue;
    for (const Kernel& kernel : source.works()[task.work()].kernels) {
      Sum& sum = sums[kernel.name];
      ++sum.kernels;
      sum.bytes += kernel.bytes;
      sum.flops += 2.0 * static_cast<double>(kernel.m) * static_cast<double>(kernel.n) *
                   static_cast<double>(kernel.k) * static_cast<double>(kernel.batch);
    }
  }
  return sums;
}

TEST(ModuleRecomputation, ComputesThemAgainWhereTheirBackwardIs) {
  const auto plain = job("recompute: none"), again = job("recompute: [norms, latent_up, activations]");
  const auto of = [&](const char* task) { return kernels(*again, task); };
  EXPECT_EQ(of("attention_backward").at("rms_norm_recompute"), (Sum{2, 2 * 4 * kTokens * kHidden, 0}));
  EXPECT_EQ(of("attention_backward").at("latent_norm_recompute"), (Sum{2, 2 * 4 * kTokens * kDown, 0}));
  EXPECT_EQ(of("attention_backward").at("query_up_gemm_recompute"),
            (Sum{2, 0, 2 * 2.0 * kTokens * kQuery * kQueries}));
  EXPECT_EQ(of("attention_backward").at("key_value_up_gemm_recompute"),
            (Sum{2, 0, 2 * 2.0 * kTokens * kKeyValue * kKeysValues}));
  EXPECT_EQ(of("attention_backward").at("rotary_recompute"), (Sum{2, 2 * 4 * kTokens * kQueries, 0}));
  EXPECT_EQ(of("moe_router_backward").at("rms_norm_recompute"), (Sum{2, 2 * 4 * kTokens * kHidden, 0}));
  EXPECT_EQ(of("experts_backward").at("swiglu_recompute"), (Sum{2, 2 * 6 * kCopies * kInner, 0}));
  EXPECT_EQ(of("shared_experts_backward").at("swiglu_recompute"), (Sum{2, 2 * 6 * kTokens * kInner, 0}));
  auto rest = kernels(*again);
  std::erase_if(rest, [](const auto& entry) { return entry.first.ends_with("_recompute"); });
  EXPECT_EQ(rest, kernels(*plain));
  EXPECT_EQ(kernels(*job("recompute: norms")).count("swiglu_recompute"), 0U);
  EXPECT_EQ(kernels(*job("recompute: norms")).at("rms_norm_recompute").kernels, 4);
}

TEST(ModuleRecomputation, DoesNotKeepWhatTheyGive) {
  const auto of_layer = [](const std::string& recompute) {
    const auto most = [&](int layers) {
      const auto source = job("recompute: " + recompute, layers);
      return source->memory()->planned()[source->memory()->role(0)].use[MemoryKind::activations];
    };
    return most(3) - most(2);
  };
  const Bytes all = of_layer("none");
  // Inputs of the projection down and up, and of the router, which shares its with the shared expert.
  EXPECT_EQ(all - of_layer("norms"), 2 * kTokens * (kHidden + kQuery + kKeyValue + kHidden));
  EXPECT_EQ(all - of_layer("latent_up"), 2 * kTokens * (2 * kQueries + kValues));
  EXPECT_EQ(all - of_layer("activations"), 2 * (kCopies + kTokens) * kInner);
  EXPECT_EQ(all - of_layer("[norms, activations]"), 2 * all - of_layer("norms") - of_layer("activations"));
}

TEST(ModuleRecomputation, RefusesWhatIsNotThere) {
  const auto refusal = [](const std::string& text) -> std::string {
    try {
      parse_workload(text)->tasks(1);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(refusal("{kind: ptdp, model: {kind: llama}, recompute: latent_up}"),
              HasSubstr("no layer of the model has latent_up"));
  EXPECT_THAT(refusal("{kind: ptdp, recompute: norms}"), HasSubstr("no layer of the model has norms"));
  EXPECT_THAT(refusal(yaml(2, "recompute: [full, norms]")), HasSubstr("'full' covers all activations"));
  EXPECT_THAT(refusal(yaml(2, "recompute: [norm]")),
              HasSubstr("'norm' is not one of: full, selective, none, norms"));
  EXPECT_THAT(refusal(yaml(2, "scaling: blocks")), HasSubstr("precision has to be fp8"));
}

// Returns the bytes of a cast of m x k elements, with `read` and `written` bytes of each. There is a scale
// for 128 written elements.
Bytes cast(std::int64_t read, std::int64_t written, std::int64_t m, std::int64_t k) {
  return (read + written) * m * k + 4 * written * m * std::max<std::int64_t>(1, k / 128);
}

// Inputs and outputs of a layer's GEMMs: rows, channels in and out.
struct Gemm {
  std::int64_t rows, in, out;
};
constexpr Gemm kGemms[] = {{kTokens, kHidden, kDown},         {kTokens, kQuery, kQueries},
                           {kTokens, kKeyValue, kKeysValues}, {kTokens, kValues, kHidden},
                           {kCopies, kHidden, 2 * kInner},    {kCopies, kInner, kHidden},
                           {kTokens, kHidden, 2 * kInner},    {kTokens, kInner, kHidden}};

TEST(BlockScaling, CastsByKernelsOfItsOwn) {
  const auto source = job("parallel: {data: 4, expert: 4}, recompute: none, precision: fp8, scaling: blocks");
  const auto sums = kernels(*source);
  Bytes forward = 0, gradients = 0, kept = 0;
  for (const Gemm& gemm : kGemms) {
    forward += 2 * cast(2, 1, gemm.rows, gemm.in);
    gradients += 2 * cast(2, 2, gemm.rows, gemm.out);
    kept += 2 * cast(1, 1, gemm.in, gemm.rows);
  }
  EXPECT_EQ(sums.at("cast"), (Sum{16, forward, 0}));
  EXPECT_EQ(sums.at("cast_gradient"), (Sum{16, gradients, 0}));
  EXPECT_EQ(sums.at("cast_kept"), (Sum{16, kept, 0}));
  // Apart from the casts, scaling by blocks runs the same kernels as scaling by tensors.
  auto by_tensor = kernels(*job("parallel: {data: 4, expert: 4}, recompute: none, precision: fp8"));
  auto rest = sums;
  for (const char* name : {"cast", "cast_gradient", "cast_kept"}) {
    by_tensor.erase(name);
    rest.erase(name);
  }
  EXPECT_EQ(rest, by_tensor);
}

// GEMMs of gradients of weights add them up in fp32. Gradients without a GEMM are added as before: 10 bytes
// an element of the embedding.
TEST(FusedAccumulation, IsInTheGemmsThatComputeGradientsOfWeights) {
  const std::string rest = "parallel: {data: 4, expert: 4}, recompute: none, precision: fp8, scaling: blocks";
  const auto fused = job(rest + ", gradient: {dtype: fp32, accumulation: fused}");
  const auto separate = job(rest + ", gradient: {dtype: fp32}");
  EXPECT_EQ(kernels(*fused).at("gradient_accumulation"), (Sum{1, 10 * 128 * kHidden, 0}));
  std::int64_t adding = 0;
  for (const Work& work : fused->works()) {
    for (const Kernel& kernel : work.kernels) {
      const bool of_weights = kernel.name.ends_with("_wgrad");
      EXPECT_EQ(kernel.weight_gradient, of_weights) << kernel.name;
      EXPECT_EQ(kernel.accumulates, of_weights) << kernel.name;
      EXPECT_EQ(kernel.element_bytes, of_weights ? 4 : 2) << kernel.name;
      adding += of_weights ? 1 : 0;
    }
  }
  EXPECT_GE(adding, 10) << "eight of a layer, its router's and the logits'";
  for (const Work& work : separate->works()) {
    for (const Kernel& kernel : work.kernels) {
      EXPECT_FALSE(kernel.accumulates) << kernel.name;
      EXPECT_EQ(kernel.element_bytes, 2) << kernel.name;
    }
  }
  auto others = kernels(*separate), left = kernels(*fused);
  others.erase("gradient_accumulation");
  left.erase("gradient_accumulation");
  EXPECT_EQ(left, others);
  EXPECT_THAT(kernels(*job("gradient: {accumulation: fused}, parallel: {data: 4}")),
              ::testing::Contains(::testing::Key("gradient_accumulation")));
}

// In all models GEMMs compute gradients. Only those of an embedding or a convolution are left to add.
TEST(FusedAccumulation, LeavesToKernelsWhatNoGemmOfMatricesComputes) {
  const auto added = [](const std::string& model, const char* accumulation) {
    const auto source = parse_workload("{kind: ptdp, model: " + model +
                                       ", optimizer: none, recompute: none, gradient: "
                                       "{accumulation: " +
                                       accumulation + "}}")
                            ->tasks(1);
    const auto sums = kernels(*source);
    const auto found = sums.find("gradient_accumulation");
    return found == sums.end() ? 0 : found->second.bytes;
  };
  EXPECT_EQ(added("{kind: gpt, layers: 2, hidden: 64, heads: 4, sequence: 32, vocabulary: 128}", "fused"),
            6 * 128 * 64);
  EXPECT_GT(added("{kind: resnet}", "fused"), 0);
  EXPECT_LT(added("{kind: resnet}", "fused"), added("{kind: resnet}", "separate"));
}

// Tokens come in FP8, and gradients, which have to be scaled along the tokens, too.
TEST(BlockScaling, TakesWhatIsDispatchedAsItIs) {
  const auto sums =
      kernels(*job("parallel: {data: 4, expert: 4, expert_exchange: dispatch}, dispatch: {precision: "
                   "fp8}, recompute: none, precision: fp8, scaling: blocks"));
  Bytes forward = 0, gradients = 0;
  for (const Gemm& gemm : kGemms) {
    const bool up = gemm.rows == kCopies && gemm.in == kHidden, down = gemm.rows == kCopies && !up;
    forward += up ? 0 : 2 * cast(2, 1, gemm.rows, gemm.in);
    gradients += 2 * (down ? cast(1, 1, gemm.rows, gemm.out) : cast(2, 2, gemm.rows, gemm.out));
  }
  EXPECT_EQ(sums.at("cast"), (Sum{14, forward, 0}));
  EXPECT_EQ(sums.at("cast_gradient"), (Sum{16, gradients, 0}));
}

// One operand is cast as in the forward.
TEST(BlockScaling, CastsWhatIsComputedAgain) {
  const std::string job_of = "parallel: {data: 4, expert: 4}, precision: fp8, scaling: blocks, recompute: ";
  const auto with = kernels(*job(job_of + "latent_up")), without = kernels(*job(job_of + "none"));
  EXPECT_EQ(with.at("cast").bytes - without.at("cast").bytes,
            2 * (cast(2, 1, kTokens, kQuery) + cast(2, 1, kTokens, kKeyValue)));
}

TEST(Dispatch, NeedsNoCopiesAtWhoSends) {
  const std::string dispatch = "recompute: none, parallel: {data: 4, expert: 4, expert_exchange: ";
  const auto copies = kernels(*job(dispatch + "all_to_all}"));
  auto tokens = kernels(*job(dispatch + "dispatch}, dispatch: {precision: fp8}"));
  EXPECT_EQ(copies.at("sort_copies"), (Sum{8, 8 * 4 * kCopies * kHidden, 0}));
  EXPECT_EQ(tokens.at("sort_copies"), (Sum{8, 4 * (2 + 4) * kCopies * kHidden, 0}));
  for (const char* name : {"permute", "unpermute", "permute_backward"}) {
    EXPECT_EQ(copies.count(name), 1U) << name;
    EXPECT_EQ(tokens.count(name), 0U) << name;
    tokens[name] = copies.at(name);
  }
  tokens["sort_copies"] = copies.at("sort_copies");
  EXPECT_EQ(tokens, copies);
}

// Each chain up to its next communication; gradients of weights behind it.
TEST(Pairs, HideTheCommunicationOfBoth) {
  const auto source = job(
      "parallel: {data: 4, expert: 4, expert_exchange: dispatch, virtual_stages: 2, schedule: dual_pipe_v}, "
      "microbatches: 2, recompute: none",
      4);
  std::vector<std::string> names;
  for (const Task& task : test::tasks_of(*source, 0)) names.push_back(source->names()[task.name]);
  // The pair is the one with gradients of experts' weights behind a forward's dispatch.
  const auto is = [&](std::size_t i, const char* name) { return i < names.size() && names[i] == name; };
  std::size_t begin = 0;
  while (begin < names.size() &&
         !(is(begin, "shared_experts_backward") && is(begin + 3, "attention_forward")))
    ++begin;
  ASSERT_LT(begin + 30, names.size());
  EXPECT_THAT(
      std::vector<std::string>(names.begin() + static_cast<std::ptrdiff_t>(begin),
                               names.begin() + static_cast<std::ptrdiff_t>(begin) + 23),
      ElementsAre("shared_experts_backward", "moe_combine_backward", "ep_combine_backward",
                  "attention_forward", "moe_router_forward", "ep_dispatch_forward", "shared_experts_weights",
                  "experts_backward", "ep_dispatch_backward", "experts_forward", "ep_combine_forward",
                  "experts_weights", "moe_router_backward", "attention_backward", "attention_down_backward",
                  "layer_begin_backward", "moe_router_weights", "attention_weights", "attention_down_weights",
                  "shared_experts_backward", "moe_combine_backward", "ep_combine_backward",
                  "shared_experts_forward"));
  TaskPlayer player(*source, 5);
  player.run();
  EXPECT_TRUE(player.all_done());
  EXPECT_FALSE(player.mismatched);
  const auto whole =
      job("parallel: {data: 4, expert: 4, expert_exchange: dispatch}, microbatches: 2, recompute: none", 4);
  EXPECT_EQ(kernels(*source), kernels(*whole));
}

TEST(Pairs, OfTheShippedJobsAreThere) {
  for (const char* name : {"steps", "optimizer"}) {
    const auto source =
        load_workload(source_directory() + "/configs/reality/deepseek_v3_" + name + ".yaml", 256);
    EXPECT_EQ(source->ranks(), std::string(name) == "steps" ? 64U : 256U);
    const auto tasks = test::tasks_of(*source, 0);
    EXPECT_TRUE(std::any_of(tasks.begin(), tasks.end(), [&](const Task& task) {
      return source->names()[task.name] == "experts_weights";
    }));
  }
}

}  // namespace
}  // namespace netsim::recomputation_test
