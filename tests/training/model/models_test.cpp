// Tests that the shipped models have the published parameters, and that their operators add up to the FLOPs
// of the formulas. A divided model computes as much in all as the whole one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "sim/core/errors.h"
#include "sim/core/registry.h"
#include "sim/training/model/llama.h"
#include "sim/training/model/model_kind.h"
#include "sim/workload/workload.h"
#include "tests/support/paths.h"
#include "tests/workload/task_player.h"

namespace netsim::models_test {
namespace {

using ::testing::HasSubstr;

const std::string kModels = source_directory() + "/configs/models/";

std::unique_ptr<ModelKind> model_of(const std::string& name) {
  return Registry<ModelKind>::instance().create(load_config(kModels + name + ".yaml"), "");
}
std::int64_t parameters(const std::string& name) { return parameters_of(model_of(name)->make(1, 4)); }

// The number of elements of the published checkpoints.
TEST(Models, LlamasHaveTheParametersOfTheirCheckpoints) {
  EXPECT_EQ(parameters("llama_7b"), 6'738'415'616);
  EXPECT_EQ(parameters("llama_2_7b"), 6'738'415'616);
  EXPECT_EQ(parameters("llama_2_13b"), 13'015'864'320);
  EXPECT_EQ(parameters("llama_2_70b"), 68'976'648'192);
  EXPECT_EQ(parameters("llama_3_8b"), 8'030'261'248);
  EXPECT_EQ(parameters("llama_3_70b"), 70'553'706'496);
  EXPECT_EQ(parameters("llama_3_405b"), 405'853'388'800);
}

// The billions in a name are rounded; the papers count the shared embedding once.
TEST(Models, OthersHaveThoseOfTheirNames) {
  std::size_t checked = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kModels)) {
    const std::string name = entry.path().stem().string();
    if (name.find("ptdp_") != 0 && name.find("megatron_core_") != 0 && name.find("nemotron") != 0) continue;
    std::string size = name.substr(name.find('_', name.find("core") != std::string::npos ? 12 : 0) + 1);
    if (name.find("nemotron") == 0) size = name.substr(11);
    std::replace(size.begin(), size.end(), '_', '.');
    const double billions = std::stod(size);
    EXPECT_NEAR(static_cast<double>(parameters(name)) / 1e9, billions, 0.05 * billions) << name;
    ++checked;
  }
  EXPECT_EQ(checked, 21U);
}

// These are the counts of the checkpoints, if published, and the billions of the papers: of the experts of a
// token and all else. DeepSeek-V2-Lite's 2.4 billion exclude the embedding, which computes nothing.
TEST(Models, MixturesOfExpertsHaveTheParametersThatArePublished) {
  struct Published {
    const char* name;
    double billions, active;
  };
  EXPECT_EQ(parameters("mixtral_8x7b"), 46'702'792'704);
  EXPECT_EQ(parameters("mixtral_8x22b"), 140'620'634'112);
  EXPECT_EQ(parameters("deepseek_v3"), 671'026'404'352);
  EXPECT_EQ(parameters("deepseek_v2_lite"), 15'706'484'224);
  for (const Published& published : {Published{"mixtral_8x7b", 46.7, 12.9},
                                     {"mixtral_8x22b", 141, 39},
                                     {"grok_1", 314, 0},
                                     {"dbrx", 132, 36},
                                     {"deepseek_v3", 671, 37},
                                     {"deepseek_v2", 236, 21},
                                     {"deepseek_v2_lite", 15.7, 2.4},
                                     {"olmoe_1b_7b", 6.9, 1.28},
                                     {"kimi_k2", 1040, 32.6}}) {
    SCOPED_TRACE(published.name);
    const Model model = model_of(published.name)->make(1, 4);
    const double all = static_cast<double>(parameters_of(model)) / 1e9;
    EXPECT_NEAR(all, published.billions, 0.015 * published.billions);
    ASSERT_TRUE(model.routed);
    std::int64_t of_experts = 0;
    for (const std::uint32_t kind : model.body) {
      for (const Tensor& tensor : model.kinds[kind].parameters)
        of_experts += of_routed_experts(tensor) ? Sharding().local(tensor) : 0;
    }
    const ExpertsModel& experts = model.routed->experts;
    const std::int64_t idle = of_experts / experts.count * (experts.count - experts.top_k);
    double active = all - static_cast<double>(idle) / 1e9;
    if (std::string(published.name) == "deepseek_v2_lite") active -= 102400 * 2048 / 1e9;
    if (published.active == 0) continue;  // Grok-1's is not published
    EXPECT_NEAR(active, published.active, 0.025 * published.active);
  }
}

TEST(Models, ThereAreSixtyOfThem) {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kModels)) {
    EXPECT_GT(parameters(entry.path().stem().string()), 10'000'000) << entry.path();
    ++files;
  }
  EXPECT_GE(files, 60U);
}

struct Operations {
  double gemm = 0, attention = 0;
};
void add(const std::vector<ModelPart>& parts, const Sharding& sharding, Operations& sum) {
  for (const ModelPart& part : parts) {
    for (const Kernel& k : work_of(part.name, part.operators, sharding).kernels) {
      const double operations = 2.0 * static_cast<double>(k.m) * static_cast<double>(k.n) *
                                static_cast<double>(k.k) * static_cast<double>(k.batch);
      if (k.kind == Kernel::Kind::gemm) sum.gemm += operations;
      if (k.kind == Kernel::Kind::attention) sum.attention += operations;
    }
  }
}
Operations operations_of(const Model& model, const Sharding& sharding) {
  Operations sum;
  for (const ModelLayer* end : {&model.first, &model.last}) {
    add(end->forward, sharding, sum);
    add(end->backward, sharding, sum);
  }
  for (const std::uint32_t kind : model.body) {
    add(model.kinds[kind].forward, sharding, sum);
    add(model.kinds[kind].backward, sharding, sum);
  }
  return sum;
}

// GEMMs are all of the formula but the attention. The mask leaves half of that. The backward of fused
// attention computes the scores again: 2 + 5 products instead of 2 + 4.
TEST(Models, OperatorsOfALlamaAddUpToItsFlops) {
  for (const bool gated : {true, false}) {
    LlamaModel model{8, 1024, 16, 4, 2816, 512, 32000, gated, false, {}, {}, false};
    const double all = llama_flops(model, 3), attention = 12.0 * 8 * 1024 * 512 * 512 * 3;
    const Operations sum = operations_of(make_llama(model, 3, 4), {});
    EXPECT_DOUBLE_EQ(sum.gemm, all - attention);
    EXPECT_DOUBLE_EQ(sum.attention, attention / 12 * 7);
  }
}

// GEMMs and attention also add up to the formula's FLOPs where some layers have experts. So they do with
// latent attention, whose keys are longer than its values.
TEST(Models, OperatorsOfAMixtureOfExpertsAddUpToItsFlops) {
  LlamaModel model{8, 1024, 16, 16, 2816, 512, 32000, true, false, {}, {}, false};
  model.experts.count = 16;
  model.experts.top_k = 3;
  model.experts.inner = 704;
  model.experts.shared = 2;
  model.experts.every = 2;
  model.experts.first_dense = 1;
  const double plain = 12.0 * 8 * 1024 * 512 * 512 * 3;
  EXPECT_DOUBLE_EQ(operations_of(make_llama(model, 3, 4), {}).gemm, llama_flops(model, 3) - plain);
  for (const std::int64_t query : {0, 384}) {
    model.latent = {128, query, 64, 32, 48};
    const double pairs = 6.0 * 8 * 512 * 512 * 16 * 3;  // and a query, forward and backward: 96 + 48 each
    const Operations sum = operations_of(make_llama(model, 3, 4), {});
    EXPECT_DOUBLE_EQ(sum.gemm, llama_flops(model, 3) - pairs * (96 + 48));
    EXPECT_DOUBLE_EQ(sum.attention, pairs / 6 * (96 + 48 + 3 * 96 + 2 * 48));
  }
}

// The module has 11.5 billion parameters beside embedding and logits, which it shares (README_WEIGHTS.md of
// the checkpoint): its layer, its projection, and norms.
TEST(Models, MultiTokenPredictionIsALayerMore) {
  const std::int64_t more = parameters("deepseek_v3_prediction") - parameters("deepseek_v3");
  EXPECT_NEAR(static_cast<double>(more), 11.5e9, 0.15e9);
  const Model model = model_of("deepseek_v3")->make(1, 4);
  const Sharding whole;
  EXPECT_EQ(more, parameters_of(model.kinds[1].parameters, whole) + 2 * 7168 * 7168 + 3 * 7168);
  for (const bool tied : {false, true}) {
    LlamaModel small{8, 1024, 16, 16, 2816, 512, 32000, true, tied, {}, {}, true};
    const double attention = 12.0 * 9 * 1024 * 512 * 512 * 3;
    EXPECT_DOUBLE_EQ(operations_of(make_llama(small, 3, 4), {}).gemm, llama_flops(small, 3) - attention);
    small.experts.count = 8;
    EXPECT_DOUBLE_EQ(operations_of(make_llama(small, 3, 4), {}).gemm, llama_flops(small, 3) - attention);
    LlamaModel without = small;
    without.multi_token = false;
    EXPECT_EQ(parameters_of(make_llama(small, 1, 4)) - parameters_of(make_llama(without, 1, 4)),
              parameters_of(make_llama(small, 1, 4).kinds[0].parameters, whole) + 2 * 1024 * 1024 + 3 * 1024);
  }
}

// 256 experts on 64 ranks are four each, which get the tokens of all of them; every rank does as much as
// before.
TEST(Models, DividedExpertsComputeTheTokensOfAllRanks) {
  const Model model = model_of("deepseek_v3")->make(1, 4);
  Sharding divided;
  divided.divide(Dimension::experts, 64);
  const Operations whole = operations_of(model, {}), part = operations_of(model, divided);
  EXPECT_DOUBLE_EQ(part.gemm, whole.gemm);
  const auto up = [&](const Sharding& sharding) {
    for (const ModelPart& layer : model.kinds[1].forward) {
      for (const Operator& op : layer.operators) {
        if (op.name == "expert_up_gemm") return kernel_of(op, sharding);
      }
    }
    return Kernel{};
  };
  EXPECT_EQ(up({}).batch, 256);
  EXPECT_EQ(up({}).m, 4096 * 8 / 256);
  EXPECT_EQ(up(divided).batch, 4);
  EXPECT_EQ(up(divided).m, 4096 * 8 / 4);
  divided.set_routed(1000);  // by a router: 250 each
  EXPECT_EQ(up(divided).m, 250);
}

TEST(Models, EveryRankDoesItsPart) {
  for (const char* name : {"llama_3_70b", "nemotron_4_15b", "gpt3_175b"}) {
    const Model model = model_of(name)->make(1, 4);
    Sharding eighth;
    for (const Dimension dimension : {Dimension::heads, Dimension::inner, Dimension::vocabulary})
      eighth.divide(dimension, 8);
    const Operations whole = operations_of(model, {}), part = operations_of(model, eighth);
    EXPECT_DOUBLE_EQ(part.gemm * 8, whole.gemm) << name;
    EXPECT_DOUBLE_EQ(part.attention * 8, whole.attention) << name;
  }
}

TEST(Models, AJobOfAFileIsPlayedAndMayBePartOfTheModel) {
  const auto source = load_workload(source_directory() + "/configs/workloads/llama_3_8b.yaml", 16);
  EXPECT_DOUBLE_EQ(source->model_flops(), llama_flops({}, 8));
  test::TaskPlayer player(*source, 4);
  player.run();
  EXPECT_TRUE(player.all_done());
  const auto part = Registry<ModelKind>::instance().create(
      parse_config("{kind: file, file: llama_3_405b.yaml, layers: 7, sequence: 4096}", kModels + "x.yaml"),
      "");
  EXPECT_EQ(part->layers(), 7);
  EXPECT_EQ(part->sequence(), 4096);
}

std::string refusal(const std::string& yaml) {
  try {
    Registry<ModelKind>::instance().create(parse_config(yaml, kModels + "x.yaml"), "gpt");
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Models, RefuseWhatDoesNotFit) {
  EXPECT_THAT(refusal("{kind: llama, heads: 30}"), HasSubstr("hidden (4096) cannot be divided by 30 heads"));
  EXPECT_THAT(refusal("{kind: llama, groups: 5}"), HasSubstr("heads (32) cannot be divided by 5 groups"));
  EXPECT_THAT(refusal("{kind: lama}"), HasSubstr("did you mean 'llama'"));
  EXPECT_THAT(refusal("{kind: file, file: none.yaml}"), HasSubstr("none.yaml"));
  EXPECT_THAT(refusal("{kind: file, file: ../workloads/incast_1MB.yaml}"), HasSubstr("incast"));
  EXPECT_THAT(refusal("{groups: 8}"), HasSubstr("unknown key 'groups'"));
}

}  // namespace
}  // namespace netsim::models_test
