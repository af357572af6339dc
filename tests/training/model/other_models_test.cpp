// Tests encoders, encoder-decoders, convolutional networks and a recommendation model. They have the
// published parameters and multiply-adds. Covers the output of their layers and the parameters that they
// refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "sim/compute/roofline.h"
#include "sim/core/errors.h"
#include "sim/core/registry.h"
#include "sim/training/model/model_kind.h"
#include "sim/workload/program/program_file.h"
#include "tests/support/paths.h"
#include "tests/support/tasks_of.h"
#include "tests/workload/program/small_programs.h"
#include "tests/workload/task_player.h"

namespace netsim::other_models_test {
namespace {

using netsim::test::parse_workload;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

const std::string kModels = source_directory() + "/configs/models/";

std::unique_ptr<ModelKind> model_of(const std::string& yaml) {
  return Registry<ModelKind>::instance().create(parse_config(yaml, kModels + "x.yaml"), "");
}
std::unique_ptr<ModelKind> shipped(const std::string& name) {
  return Registry<ModelKind>::instance().create(load_config(kModels + name + ".yaml"), "");
}

// Elements of the published checkpoints: Hugging Face's bert-*-uncased for pre-training and t5-*,
// torchvision's vit_*, resnet* and vgg*. The papers' numbers are in millions.
TEST(OtherModels, HaveTheParametersOfTheirCheckpoints) {
  struct Published {
    const char* name;
    std::int64_t parameters;
    double millions;
  };
  for (const Published& p : {Published{"bert_base", 110'106'428, 110},
                             {"bert_large", 336'226'108, 340},
                             {"t5_small", 60'506'624, 60},
                             {"t5_base", 222'903'552, 220},
                             {"t5_large", 737'668'096, 770},
                             {"t5_3b", 2'851'598'336, 2800},
                             {"t5_11b", 11'307'321'344, 11000},
                             {"vit_b_16", 86'567'656, 86},
                             {"vit_l_16", 304'326'632, 307},
                             {"vit_h_14", 632'045'800, 632},
                             {"resnet_18", 11'689'512, 11.7},
                             {"resnet_34", 21'797'672, 21.8},
                             {"resnet_50", 25'557'032, 25.6},
                             {"resnet_101", 44'549'160, 44.5},
                             {"resnet_152", 60'192'808, 60.2},
                             {"vgg_16", 138'357'544, 138},
                             {"vgg_19", 143'667'240, 144}}) {
    const std::int64_t parameters = parameters_of(shipped(p.name)->make(1, 4));
    EXPECT_EQ(parameters, p.parameters) << p.name;
    EXPECT_NEAR(static_cast<double>(parameters) / 1e6, p.millions, 0.05 * p.millions) << p.name;
    EXPECT_EQ(parameters_of(shipped(p.name)->make(64, 2)), p.parameters) << p.name;
  }
}

// Billions of multiply-adds of the forward for an image, from torchvision's tables of its weights. He et al.
// report 3.8, 7.6, 11.3 for networks with the stride in the first convolution of a block.
TEST(OtherModels, ComputeTheMultiplyAddsThatArePublished) {
  const std::map<std::string, double> published{
      {"resnet_18", 1.81},   {"resnet_34", 3.66}, {"resnet_50", 4.09}, {"resnet_101", 7.80},
      {"resnet_152", 11.51}, {"vgg_16", 15.47},   {"vgg_19", 19.63},   {"vit_b_16", 17.56},
      {"vit_l_16", 61.55},   {"vit_h_14", 167.29}};
  for (const auto& [name, billions] : published) {
    const auto model = shipped(name);
    EXPECT_NEAR(forward_flops(model->make(1, 4)) / 2e9, billions, 0.005 * billions) << name;
    EXPECT_DOUBLE_EQ(model->flops(7, false), 7 * 3 * forward_flops(model->make(1, 4))) << name;
  }
}

// For a sequence s, a layer of an encoder multiplies 12 s h^2 + 2 s^2 h times. BERT's head multiplies h^2 and
// V h times for each masked token, and has a pooler.
TEST(OtherModels, ComputeTheMultiplyAddsOfTheirFormulas) {
  const double s = 512, h = 1024, v = 30522;
  EXPECT_DOUBLE_EQ(forward_flops(shipped("bert_large")->make(3, 4)) / 2,
                   3 * (24 * (12 * s * h * h + 2 * s * s * h) + 80 * (h * h + v * h) + h * h + 2 * h));
  // In T5 a layer of the encoder has 4 projections and an MLP for each token. A layer of the decoder has 2
  // for each source token and 6 for each target. Scores and sums count all pairs that attend.
  const double d = 1024, heads = 16384, f = 65536, t = 114, words = 32128;
  const double encoder = s * (4 * d * heads + 2 * d * f) + 2 * s * s * heads;
  const double decoder = t * (6 * d * heads + 2 * d * f) + s * 2 * d * heads + 2 * (t * t + t * s) * heads;
  EXPECT_DOUBLE_EQ(forward_flops(shipped("t5_11b")->make(2, 4)) / 2,
                   2 * (24 * (encoder + decoder) + t * words * d));
  // MLPerf's DLRM: the weights of both MLPs, and 27 x 27 products of 128 elements.
  const double bottom = 13 * 512 + 512 * 256 + 256 * 128,
               top = 479 * 1024 + 1024 * 1024 + 1024 * 512 + 512 * 256 + 256;
  EXPECT_DOUBLE_EQ(forward_flops(shipped("dlrm_mlperf")->make(5, 4)) / 2, 5 * (bottom + top + 27 * 27 * 128));
}

// Backward, GEMMs multiply twice as often, but for the gradient of what is read first, and split sums are
// rounded up.
TEST(OtherModels, MultiplyTwiceAsOftenBackward) {
  const auto multiply_adds = [](const std::vector<ModelPart>& parts) {
    double all = 0;
    for (const ModelPart& part : parts) {
      for (const Kernel& k : work_of(part.name, part.operators, {}).kernels)
        all += k.kind == Kernel::Kind::gemm ? static_cast<double>(k.m) * static_cast<double>(k.n) *
                                                  static_cast<double>(k.k) * static_cast<double>(k.batch)
                                            : 0;
    }
    return all;
  };
  for (const char* name : {"bert_large", "t5_large", "resnet_50", "vgg_16"}) {
    const Model model = shipped(name)->make(8, 4);
    for (const ModelLayer& layer : model.kinds) {
      const double forward = multiply_adds(layer.forward), backward = multiply_adds(layer.backward);
      EXPECT_NEAR(backward, 2 * forward, 0.01 * forward) << name << " " << layer.name;
    }
  }
}

TEST(OtherModels, RecommendationsHaveTheirTablesApart) {
  const Model model = shipped("dlrm_mlperf")->make(1, 4);
  EXPECT_EQ(parameters_of(model), 204'184'588LL * 128 + 2'368'897);  // 26.1 billion
  EXPECT_EQ(parameters_of(model.first.parameters, {}), 171'392);     // the MLP of the dense features
  EXPECT_EQ(parameters_of(model.first.tables, {}), 204'184'588LL * 128);
}

TEST(OtherModels, TensorParallelRanksDoTheirPart) {
  for (const char* name : {"bert_large", "t5_11b", "vit_l_16"}) {
    const Model model = shipped(name)->make(2, 4);
    Sharding half;
    half.divide(Dimension::heads, 2);
    half.divide(Dimension::inner, 2);
    for (const ModelLayer& layer : model.kinds) {
      for (const std::vector<ModelPart>* parts : {&layer.forward, &layer.backward}) {
        double whole = 0, part = 0;
        for (const ModelPart& p : *parts) {
          for (const Operator& op : p.operators) {
            const Kernel a = kernel_of(op, {}), b = kernel_of(op, half);
            whole += static_cast<double>(a.m * a.n) * static_cast<double>(a.k * a.batch);
            part += static_cast<double>(b.m * b.n) * static_cast<double>(b.k * b.batch);
          }
        }
        EXPECT_DOUBLE_EQ(2 * part, whole) << name << " " << layer.name;
      }
    }
  }
}

std::vector<Task> tasks(const TaskSource& source, std::uint32_t rank, const std::string& name) {
  std::vector<Task> found;
  for (const Task& task : test::tasks_of(source, rank)) {
    if (source.names()[task.name] == name) found.push_back(task);
  }
  return found;
}
Bytes bytes(const std::vector<Task>& tasks) {
  Bytes all = 0;
  for (const Task& task : tasks) all += task.bytes();
  return all;
}
std::unique_ptr<TaskSource> job(const std::string& rest, std::uint32_t gpus = 64) {
  return parse_workload("{kind: ptdp, recompute: none, " + rest + "}")->tasks(gpus);
}

// The gradients of all parameters, in buckets of at least 25 MB that layers fill during the backward, and the
// rest.
TEST(OtherModels, GradientsOfAllAreReducedInBuckets) {
  for (const char* name : {"bert_base", "t5_base", "vit_b_16", "resnet_50", "vgg_16"}) {
    SCOPED_TRACE(name);
    const auto source = job("model: {kind: file, file: " + kModels + name +
                            ".yaml}, parallel: {data: 4}, gradient: {bucket: 25 MB, overlap: true}");
    const std::vector<Task> reduced = tasks(*source, 1, "dp_gradients");
    EXPECT_EQ(bytes(reduced), 2 * parameters_of(shipped(name)->make(1, 2)));
    EXPECT_GT(reduced.size(), 1U);
    EXPECT_GE(reduced.front().bytes(), 25'000'000);
    test::TaskPlayer player(*source, 3);
    player.run();
    EXPECT_TRUE(player.all_done());
  }
}

// ResNet-50 in four stages of four blocks has images of 56, 28 and 14 pixels with 256, 512 and 1024 channels.
// After the twelfth block there are 14 pixels again.
TEST(OtherModels, StagesSendWhatLiesBetweenThem) {
  const auto source = job("model: {kind: resnet}, parallel: {pipeline: 4}, microbatch: 8, microbatches: 2");
  const Bytes images = 2 * 8 * 2;
  EXPECT_EQ(bytes(tasks(*source, 0, "send_forward")),
            images * 28 * 28 * 512);  // 3 blocks of 56 pixels, 1 of 28
  EXPECT_EQ(bytes(tasks(*source, 1, "send_forward")), images * 14 * 14 * 1024);
  EXPECT_EQ(bytes(tasks(*source, 2, "send_forward")), images * 14 * 14 * 1024);
  EXPECT_EQ(bytes(tasks(*source, 1, "receive_forward")), images * 28 * 28 * 512);
  EXPECT_EQ(bytes(tasks(*source, 1, "send_backward")), images * 28 * 28 * 512);
  EXPECT_EQ(bytes(tasks(*source, 0, "receive_backward")), images * 28 * 28 * 512);
  test::TaskPlayer player(*source, 5);
  player.run();
  EXPECT_TRUE(player.all_done());
  const auto t5 = job("model: {kind: file, file: " + kModels + "t5_base.yaml}, parallel: {pipeline: 4}");
  for (const std::uint32_t rank : {0U, 1U, 2U})
    EXPECT_EQ(bytes(tasks(*t5, rank, "send_forward")), 2 * (512 + 114) * 768) << rank;
}

// Each sum of the encoder covers the source's tokens, each of the decoder the target's. A layer's cross
// attention has one more in the backward, of the gradient of the encoder's output.
TEST(OtherModels, TensorParallelismCompletesTheSumsOfBothSequences) {
  const auto source = job("model: {kind: file, file: " + kModels + "t5_base.yaml}, parallel: {tensor: 4}");
  const Bytes read = 2 * 512 * 768, written = 2 * 114 * 768;
  EXPECT_EQ(bytes(tasks(*source, 0, "tp_forward")), 12 * (2 * read + 3 * written));
  EXPECT_EQ(bytes(tasks(*source, 0, "tp_backward")), 12 * (2 * read + 3 * written + read));
  EXPECT_EQ(bytes(tasks(*source, 0, "tp_embedding")), read + written);
  EXPECT_EQ(tasks(*source, 0, "tp_loss").size(), 3U);
  const auto divided = job("model: {kind: bert, vocabulary: 30528}, parallel: {tensor: 4, sequence: true}");
  const Bytes all = 2 * 512 * 1024;
  EXPECT_EQ(bytes(tasks(*divided, 0, "tp_forward")), 24 * 2 * all);
  EXPECT_EQ(bytes(tasks(*divided, 0, "tp_logits_backward")), 2 * 80 * 1024);
  EXPECT_EQ(tasks(*divided, 0, "tp_logits_backward").front().collective().collective,
            CollectiveKind::all_reduce);
  test::TaskPlayer player(*divided, 7);
  player.run();
  EXPECT_TRUE(player.all_done());
}

TEST(OtherModels, SelectiveRecomputationRepeatsTheCoreOfAttention) {
  const auto count = [](const TaskSource& source, const std::string& kernel) {
    std::size_t all = 0;
    for (const Task& task : test::tasks_of(source, 0)) {
      if (task.kind() != TaskKind::compute) continue;
      for (const Kernel& k : source.works()[task.work()].kernels) all += k.name == kernel ? 1 : 0;
    }
    return all;
  };
  const auto source =
      parse_workload("{kind: ptdp, recompute: selective, model: {kind: bert, layers: 3}}")->tasks(1);
  EXPECT_EQ(count(*source, "attention_scores"), 6U);
  EXPECT_EQ(count(*source, "qkv_gemm"), 3U);
}

// A convolution of 3 x 3 reads its image once and not nine times.
TEST(OtherModels, ConvolutionsReadTheirImagesOnce) {
  const Model model = model_of("{kind: vgg, depth: 16}")->make(4, 4);
  const Kernel first = kernel_of(model.kinds[0].forward.front().operators.front(), {});
  EXPECT_EQ(first.m, 4 * 224 * 224);
  EXPECT_EQ(first.n, 64);
  EXPECT_EQ(first.k, 64 * 9);
  EXPECT_EQ(first.bytes, 2 * (2 * 4 * 224 * 224 * 64 + 9 * 64 * 64));
  RooflineParameters slow;  // memory so slow that nothing else counts
  slow.hbm_bandwidth = 8 * kGbps;
  slow.hbm_efficiency = 1;
  slow.launch = 0;
  EXPECT_EQ(make_roofline(slow)->duration(first), first.bytes * kNanosecond);
  Kernel plain = first;
  plain.bytes = 0;
  EXPECT_GT(make_roofline(slow)->duration(plain), 4 * make_roofline(slow)->duration(first));
  // A program keeps what goes through the memory.
  const auto compiled = parse_workload("{kind: ptdp, recompute: none, model: {kind: vgg}}")->compile();
  EXPECT_THAT(compiled, HasSubstr("convolution_3x3"));
  const Program program = parse_program(compiled, "vgg.pb");
  const auto has_bytes = [&](const Work& work) {
    return std::any_of(work.kernels.begin(), work.kernels.end(), [&](const Kernel& k) {
      return k.kind == Kernel::Kind::gemm && k.m == 224 * 224 && k.k == 576 &&
             k.bytes == first.bytes / 4 + 3 * 9 * 64 * 64 / 2;
    });
  };
  EXPECT_TRUE(std::any_of(program.works.begin(), program.works.end(), has_bytes));
}

// Each sample of a rank has indices for all tables, 8 bytes each, and gets as many rows of 128 half-precision
// elements back.
TEST(OtherModels, ReplicasDivideEmbeddingTables) {
  const std::string model = "model: {kind: dlrm, tables: 64, rows: 6400, pooling: 3}, microbatch: 256, ";
  const Bytes indices = 256 * 64 * 3 * 8, rows = 256 * 64 * 128 * 2;
  const auto source = job(model + "parallel: {data: 16}");
  for (const auto& [name, expected] :
       std::map<std::string, Bytes>{{"ep_indices", indices}, {"ep_rows", rows}, {"ep_row_gradients", rows}}) {
    const std::vector<Task> found = tasks(*source, 3, name);
    ASSERT_EQ(found.size(), 1U) << name;
    EXPECT_EQ(found.front().collective().collective, CollectiveKind::all_to_all);
    EXPECT_EQ(found.front().stream, Stream::ep);
    EXPECT_EQ(found.front().bytes(), expected) << name;
  }
  const std::int64_t top =
      2'208 * 1024 + 1024 + 1024 * 1024 + 1024 + 1024 * 512 + 512 + 512 * 256 + 256 + 256 + 1;
  EXPECT_EQ(bytes(tasks(*source, 3, "dp_gradients")), 2 * (171'392 + top));  // no table's

  const auto by_rows = job(model + "parallel: {data: 12, embedding: rows}");
  const auto task_of = [&](const char* name) { return tasks(*by_rows, 3, name).front(); };
  EXPECT_EQ(task_of("ep_indices").collective().collective, CollectiveKind::all_gather);
  EXPECT_EQ(task_of("ep_indices").bytes(), 12 * indices);
  EXPECT_EQ(task_of("ep_rows").collective().collective, CollectiveKind::reduce_scatter);
  EXPECT_EQ(task_of("ep_rows").bytes(), 12 * rows);
  EXPECT_EQ(task_of("ep_row_gradients").collective().collective, CollectiveKind::all_gather);
  EXPECT_TRUE(tasks(*job(model + "parallel: {data: 1}"), 0, "ep_rows").empty());
}

// Rows travel while the dense features' MLP is computed, and their gradients during its backward. The
// products of pairs wait for both, and so does the update of the tables.
TEST(OtherModels, EmbeddingsTravelBesideTheDenseFeaturesMlp) {
  const auto source =
      job("model: {kind: dlrm, tables: 64, rows: 6400}, microbatch: 256, parallel: {data: 16}");
  test::TaskPlayer player(*source, 1, std::vector<Time>(source->works().size(), 10));
  player.transfer_time = [](const Task& task) { return task.stream == Stream::ep ? Time{100} : Time{0}; };
  player.run();
  ASSERT_TRUE(player.all_done());
  std::map<std::string, test::PlayedTask> of_rank;
  for (const test::PlayedTask& task : player.played) {
    if (task.rank == 5) of_rank.emplace(source->names()[task.task.name], task);
  }
  EXPECT_EQ(of_rank.at("embedding_lookup").end, 10 + 100 + 10);
  EXPECT_EQ(of_rank.at("ep_rows").end, 220);
  EXPECT_EQ(of_rank.at("bottom_forward").end, 130);
  EXPECT_EQ(of_rank.at("interaction_forward").end, 230);
  const Time gradients = of_rank.at("interaction_backward").end;
  EXPECT_EQ(of_rank.at("bottom_backward").end, gradients + 10);
  EXPECT_EQ(of_rank.at("ep_row_gradients").end, gradients + 100);
  EXPECT_EQ(of_rank.at("embedding_update").end, gradients + 110);
}

std::string refusal(const std::string& rest) {
  try {
    job(rest);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(OtherModels, AreRefusedWhatTheyCannotBeDividedBy) {
  EXPECT_THAT(refusal("model: {kind: resnet}, parallel: {tensor: 2}"),
              HasSubstr("has neither heads nor an MLP"));
  EXPECT_THAT(refusal("model: {kind: vgg}, parallel: {context: 2}"), HasSubstr("has no sequence"));
  EXPECT_THAT(refusal("model: {kind: vgg}, parallel: {sequence: true}"), HasSubstr("has neither heads"));
  EXPECT_THAT(refusal("model: {kind: resnet}, parallel: {pipeline: 5}"), HasSubstr("model.layers (16)"));
  EXPECT_THAT(refusal("model: {kind: bert}, parallel: {context: 2}"),
              HasSubstr("context parallelism is for decoders"));
  EXPECT_THAT(refusal("model: {kind: bert}, parallel: {tensor: 4}"), HasSubstr("model.vocabulary (30522)"));
  EXPECT_THAT(refusal("model: {kind: vit}, parallel: {tensor: 2, sequence: true}"),
              HasSubstr("model.sequence (197)"));
  EXPECT_THAT(refusal("model: {kind: t5}, parallel: {tensor: 4, sequence: true}"),
              HasSubstr("model.target (114)"));
  EXPECT_THAT(refusal("model: {kind: dlrm}, parallel: {pipeline: 2}"), HasSubstr("no layers can be divided"));
  EXPECT_THAT(refusal("model: {kind: dlrm}, parallel: {data: 4}"), HasSubstr("parallel.embedding: rows"));
  EXPECT_THAT(refusal("model: {kind: dlrm}, parallel: {data: 4, embedding: rows}"), HasSubstr("accepted"));
  EXPECT_THAT(refusal("model: {kind: vit}, parallel: {embedding: rows}"), HasSubstr("no embedding tables"));
  EXPECT_THAT(refusal("model: {kind: resnet}, precision: fp8"), HasSubstr("it has to be half"));
  EXPECT_THROW(parse_workload("{kind: ptdp, recompute: selective, model: {kind: resnet}}"), ConfigError);
}

TEST(OtherModels, AreRefusedWhatDoesNotFitTogether) {
  const auto of_model = [](const std::string& yaml) {
    try {
      model_of(yaml);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_THAT(of_model("{kind: bert, heads: 15}"), HasSubstr("cannot be divided by 15 heads"));
  EXPECT_THAT(of_model("{kind: bert, sequence: 1024}"), HasSubstr("there are 512 positions"));
  EXPECT_THAT(of_model("{kind: bert, sequence: 64}"), HasSubstr("cannot have 80 masked ones"));
  EXPECT_THAT(of_model("{kind: vit, patch: 15}"), HasSubstr("image (224) cannot be divided by patch (15)"));
  EXPECT_THAT(of_model("{kind: vgg, image: 100}"), HasSubstr("cannot be halved five times"));
  EXPECT_THAT(of_model("{kind: resnet, depth: 51}"), HasSubstr("51"));
  EXPECT_THAT(of_model("{kind: dlrm, bottom: [512, 64]}"),
              HasSubstr("as many as a row ('dimension') are needed: 128"));
  EXPECT_THAT(of_model("{kind: dlrm, bottom: 128}"), HasSubstr("expected a list"));
  EXPECT_THAT(of_model("{kind: file, file: resnet_50.yaml, layers: 8}"),
              HasSubstr("the layers that its depth says"));
  EXPECT_THAT(of_model("{kind: file, file: vit_l_16.yaml, sequence: 8}"), HasSubstr("change image or patch"));
  EXPECT_THAT(of_model("{kind: file, file: bert_large.yaml, sequence: 1024}"), HasSubstr("to 512 tokens"));
  const auto part = model_of("{kind: file, file: t5_11b.yaml, layers: 3, sequence: 256}");
  EXPECT_EQ(part->layers(), 6);
  EXPECT_EQ(part->sequence(), 256);
}

}  // namespace
}  // namespace netsim::other_models_test
