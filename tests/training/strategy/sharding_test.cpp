// Tests sequence parallelism, the distributed optimizer and reduced precision: their data, computation and
// overlap.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>

#include "sim/core/errors.h"
#include "sim/simulation/simulation.h"
#include "tests/report/fixtures.h"
#include "tests/support/memory_of.h"
#include "tests/support/tasks_of.h"
#include "tests/workload/program/small_programs.h"
#include "tests/workload/task_player.h"

namespace netsim::sharding_test {
namespace {

using netsim::test::parse_workload;
using netsim::test::PlayedTask;
using netsim::test::TaskPlayer;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr std::int64_t kLayers = 4, kHidden = 64, kSequence = 16, kVocabulary = 128;

std::unique_ptr<TaskSource> job(const std::string& kind, const std::string& more, std::uint32_t gpus) {
  const std::string model = kind == "gpt" ? "kind: gpt" : "kind: llama, groups: 4, inner: 96";
  return parse_workload("{kind: ptdp, model: {" + model +
                        ", layers: 4, hidden: 64, heads: 4, sequence: 16, vocabulary: 128}, " + more + "}")
      ->tasks(gpus);
}

struct Tally {
  std::uint64_t tasks = 0;
  Bytes bytes = 0;
};
std::map<std::string, Tally> tally(const TaskSource& source, std::uint32_t rank) {
  std::map<std::string, Tally> result;
  for (const Task& task : test::tasks_of(source, rank)) {
    if (!is_communication(task)) continue;
    const std::string kind =
        task.kind() == TaskKind::collective ? to_string(task.collective().collective) : "message";
    Tally& entry = result[kind + " " + source.names()[task.name]];
    ++entry.tasks;
    entry.bytes += task.bytes();
  }
  return result;
}

// Kernels of a rank by name, as often as they run.
std::map<std::string, std::vector<Kernel>> kernels(const TaskSource& source, std::uint32_t rank) {
  std::map<std::string, std::vector<Kernel>> result;
  for (const Task& task : test::tasks_of(source, rank)) {
    if (task.kind() != TaskKind::compute) continue;
    for (const Kernel& kernel : source.works()[task.work()].kernels) result[kernel.name].push_back(kernel);
  }
  return result;
}

// A gather and a reduce-scatter replace each of the two all-reduces of bsh elements a layer and direction.
// That is 8 b s h (t-1)/t elements a layer and microbatch, as before. The inputs are gathered once more: 2 b
// s h (t-1)/t (Korthikanti et al., section 4.2.2, whose f and g these are).
TEST(SequenceParallel, MovesWhatAllReducesDidAndTheInputsOnceMore) {
  constexpr Bytes kActivation = 2 * kSequence * kHidden;
  constexpr std::uint64_t kMicrobatches = 3;
  for (const char* kind : {"gpt", "llama"}) {
    SCOPED_TRACE(kind);
    const auto divided =
        job(kind, "parallel: {tensor: 4, sequence: true}, microbatches: 3, recompute: none", 4);
    const auto tasks = tally(*divided, 2);
    const std::uint64_t each = 2 * kLayers * kMicrobatches;
    EXPECT_EQ(tasks.at("reduce_scatter tp_forward").tasks, each);
    EXPECT_EQ(tasks.at("reduce_scatter tp_forward").bytes, static_cast<Bytes>(each) * kActivation);
    EXPECT_EQ(tasks.at("reduce_scatter tp_backward").tasks, each);
    // The count includes logits and embedding.
    EXPECT_EQ(tasks.at("all_gather tp_gather_forward").tasks, each + kMicrobatches);
    EXPECT_EQ(tasks.at("all_gather tp_gather_backward").tasks, each + kMicrobatches);
    EXPECT_EQ(tasks.at("all_gather tp_gather_input").tasks, each + kMicrobatches);
    EXPECT_EQ(tasks.at("all_gather tp_gather_input").bytes,
              static_cast<Bytes>(each + kMicrobatches) * kActivation);
    EXPECT_EQ(tasks.at("reduce_scatter tp_embedding").tasks, kMicrobatches);
    EXPECT_EQ(tasks.at("reduce_scatter tp_logits_backward").tasks, kMicrobatches);
    EXPECT_EQ(tasks.at("all_reduce tp_loss").tasks, 3 * kMicrobatches);
    EXPECT_EQ(tasks.count("all_reduce tp_forward"), 0U);
  }
}

TEST(SequenceParallel, RecomputesGathersToo) {
  const auto divided = job("gpt", "parallel: {tensor: 4, sequence: true}, recompute: full", 4);
  const auto tasks = tally(*divided, 0);
  EXPECT_EQ(tasks.at("all_gather tp_gather_recompute").tasks, 2U * kLayers);
  EXPECT_EQ(tasks.at("reduce_scatter tp_recompute").tasks, 2U * kLayers);
}

constexpr const char* kByToken[] = {"layer_norm",         "rms_norm",           "residual",
                                    "bias_dropout",       "position_embedding", "embedding_dropout",
                                    "embedding_transpose"};

TEST(SequenceParallel, ComputesTheSameGemmsAndAPartOfTheRest) {
  for (const char* kind : {"gpt", "llama"}) {
    const auto whole = kernels(*job(kind, "parallel: {tensor: 4}", 4), 1);
    const auto divided = kernels(*job(kind, "parallel: {tensor: 4, sequence: true}", 4), 1);
    for (const auto& [name, list] : whole) {
      SCOPED_TRACE(name);
      ASSERT_EQ(divided.count(name), 1U);
      const std::string& kernel_name = name;
      ASSERT_EQ(divided.at(name).size(), list.size());
      const Kernel &one = list.front(), &other = divided.at(name).front();
      EXPECT_EQ(one.m * one.n * one.k * one.batch, other.m * other.n * other.k * other.batch);
      const bool by_token = std::any_of(
          std::begin(kByToken), std::end(kByToken),
          [&kernel_name](const char* part) { return kernel_name.find(part) != std::string::npos; });
      EXPECT_EQ(one.bytes, by_token ? 4 * other.bytes : one.bytes);
    }
  }
}

// Ranks have their part of the activations between stages already.
TEST(SequenceParallel, StagesSendTheirPart) {
  const auto tasks =
      tally(*job("gpt", "parallel: {tensor: 2, pipeline: 2, sequence: true}, microbatches: 4", 4), 0);
  EXPECT_EQ(tasks.at("message send_forward").bytes, 4 * 2 * kSequence * kHidden / 2);
  EXPECT_EQ(tasks.count("all_gather gather_backward"), 0U);
}

// Two norms of a layer have 2 parameters a hidden unit each, and two biases are not divided; the last norm.
TEST(SequenceParallel, SumsGradientsOfWhatIsNotDivided) {
  const auto tasks = tally(*job("gpt", "parallel: {tensor: 2, sequence: true}", 2), 0);
  EXPECT_EQ(tasks.at("all_reduce tp_norm_gradients").bytes, 2 * (kLayers * 6 * kHidden + 2 * kHidden));
  EXPECT_EQ(tally(*job("gpt", "parallel: {tensor: 2}", 2), 0).count("all_reduce tp_norm_gradients"), 0U);
}

std::vector<PlayedTask> played(TaskSource& source) {
  TaskPlayer player(source, 1, std::vector<Time>(source.works().size(), 10));
  player.run();
  EXPECT_TRUE(player.all_done());
  return player.played;
}

// The gradient's reduce-scatter starts when the gradient of the input is ready, beside the gradients of
// weights. The input is gathered beside the gradient of the input.
TEST(SequenceParallel, CommunicatesBesideTheGradientsOfWeights) {
  const auto source = job("gpt", "parallel: {tensor: 2, sequence: true}, recompute: none", 2);
  const std::vector<PlayedTask> tasks = played(*source);
  const auto all = [&](const std::string& name) {
    std::vector<const PlayedTask*> found;
    for (const PlayedTask& task : tasks) {
      if (task.rank == 0 && source->names()[task.task.name] == name) found.push_back(&task);
    }
    return found;
  };
  const auto dgrad = all("mlp_backward.mlp_up_gemm_dgrad"), wgrad = all("mlp_backward.mlp_up_gemm_wgrad");
  const auto scatter = all("tp_backward"), gather = all("tp_gather_input");
  ASSERT_EQ(dgrad.size(), 4U);
  ASSERT_EQ(wgrad.size(), 4U);
  for (std::size_t i = 0; i < dgrad.size(); ++i) {
    EXPECT_EQ(wgrad[i]->ready, dgrad[i]->end);
    const auto ready_at = [](Time time) { return [time](const PlayedTask* t) { return t->ready == time; }; };
    EXPECT_TRUE(std::any_of(scatter.begin(), scatter.end(), ready_at(dgrad[i]->end)));
    EXPECT_TRUE(std::any_of(gather.begin(), gather.end(), ready_at(dgrad[i]->ready)));
  }
}

TEST(SequenceParallel, RefusesASequenceThatCannotBeDivided) {
  EXPECT_THAT([] { job("gpt", "parallel: {tensor: 32, sequence: true}", 32); },
              ThrowsMessage<ConfigError>(HasSubstr("cannot be divided by 32")));
}

std::int64_t parameters_of_rank() {
  return kLayers * (12 * kHidden * kHidden + 13 * kHidden) + (kVocabulary + kSequence + 2) * kHidden;
}

// Gradients 2P (d-1)/d and parameters 2P (d-1)/d bytes in half precision, as an all-reduce would be.
TEST(DistributedOptimizer, ScattersGradientsAndGathersParameters) {
  for (const char* more :
       {"", ", overlap_parameter_gather: true", ", gradient: {bucket: 100 kB, overlap: true}",
        ", gradient: {bucket: 100 kB, overlap: true}, overlap_parameter_gather: true"}) {
    SCOPED_TRACE(more);
    const auto source = job(
        "gpt", std::string("parallel: {data: 4}, microbatches: 2, optimizer: distributed_adam") + more, 4);
    const auto tasks = tally(*source, 3);
    EXPECT_EQ(tasks.at("reduce_scatter dp_gradients").bytes, 2 * parameters_of_rank());
    EXPECT_EQ(tasks.at("all_gather dp_parameters").bytes, 2 * parameters_of_rank());
    EXPECT_EQ(tasks.count("all_reduce dp_gradients"), 0U);
    EXPECT_EQ(tasks.at("all_gather dp_parameters").tasks > 1,
              std::string(more).find("bucket") != std::string::npos);
    const auto of_rank = kernels(*source, 3);
    EXPECT_EQ(of_rank.at("adam").front().bytes, 28 * ((parameters_of_rank() + 3) / 4));
    TaskPlayer player(*source, 7);
    player.run();
    EXPECT_TRUE(player.all_done());
  }
}

// Overlapped, the gathers come first, and each layer waits for the parameters that it needs, no further ones.
TEST(DistributedOptimizer, GathersWhileTheFirstMicrobatchIsComputed) {
  const auto source =
      job("gpt",
          "parallel: {data: 2}, microbatches: 2, recompute: none, optimizer: distributed_adam, "
          "gradient: {bucket: 100 kB}, overlap_parameter_gather: true",
          2);
  std::map<std::string, std::uint32_t> seen;
  std::vector<std::string> order;
  for (const Task& task : test::tasks_of(*source, 0)) order.push_back(source->names()[task.name]);
  // 98.6 kB a layer, 17.5 kB in the embedding: buckets of embedding and one layer, two layers, one layer and
  // head.
  const auto gathers = std::count(order.begin(), order.end(), "dp_parameters");
  EXPECT_EQ(gathers, 3);
  EXPECT_EQ(order.front(), "dp_parameters");
  const auto optimizer = std::find(order.begin(), order.end(), "optimizer");
  EXPECT_EQ(std::count(optimizer, order.end(), "dp_parameters"), 0);
  // The second bucket is no reason for the first layer to wait.
  std::vector<Task> ready;
  source->start(0, ready);
  ASSERT_EQ(ready.size(), 1U);  // the stream has one at a time
  const Task first = ready.front();
  EXPECT_EQ(source->names()[first.name], "dp_parameters");
  ready.clear();
  source->complete(0, first.id, ready);
  std::vector<std::string> released;
  released.reserve(ready.size());
  for (const Task& task : ready) released.push_back(source->names()[task.name]);
  EXPECT_THAT(released, ::testing::UnorderedElementsAre("dp_parameters", "embedding_lookup"));
}

TEST(DistributedOptimizer, BidirectionalPipelinesDivideAmongBothCopies) {
  const auto source =
      job("gpt",
          "parallel: {data: 2, pipeline: 2, schedule: dual_pipe}, microbatches: 8, optimizer: "
          "distributed_adam, overlap_parameter_gather: true",
          4);
  const auto tasks = tally(*source, 0);
  EXPECT_EQ(tasks.at("reduce_scatter dp_gradients").bytes, tasks.at("all_gather dp_parameters").bytes);
  TaskPlayer player(*source, 3);
  player.run();
  EXPECT_TRUE(player.all_done());
  EXPECT_FALSE(player.mismatched);
}

TEST(DistributedOptimizer, RefusesAnOverlapOfWhatIsNotGathered) {
  EXPECT_THAT([] { job("gpt", "overlap_parameter_gather: true", 1); },
              ThrowsMessage<ConfigError>(HasSubstr("only distributed_adam gathers parameters")));
}

// ---- ZeRO-2, ZeRO-3, FSDP

std::string sharded(const std::string& sharding, const std::string& more = "") {
  return "microbatches: 3, recompute: none, optimizer: distributed_adam, sharding: {" + sharding + "}" + more;
}
std::int64_t parameters_of_layers() { return kLayers * (12 * kHidden * kHidden + 13 * kHidden); }

// Gradients are summed for each microbatch, as no rank keeps them whole; parameters are gathered once.
TEST(ShardedReplicas, GradientsAreScatteredForEachMicrobatch) {
  const auto source = job("gpt", "parallel: {data: 4}, " + sharded("what: gradients"), 4);
  const auto tasks = tally(*source, 1);
  EXPECT_EQ(tasks.at("reduce_scatter dp_gradients").bytes, 3 * 2 * parameters_of_rank());
  EXPECT_EQ(tasks.at("reduce_scatter dp_gradients").tasks, 3U * (kLayers + 2));
  EXPECT_EQ(tasks.at("all_gather dp_parameters").bytes, 2 * parameters_of_rank());
  EXPECT_EQ(kernels(*source, 1).at("adam").front().bytes, 28 * ((parameters_of_rank() + 3) / 4));
}

// 3 P (d-1)/d elements a microbatch (Rajbhandari et al., section 7.2.2): P gathered for the forward, P for
// the backward, P scattered. FSDP's root keeps embedding and logits; with nothing given up it is 2 P.
TEST(ShardedReplicas, ParametersAreGatheredForForwardAndBackward) {
  const std::map<std::string, Bytes> again{
      {"all", parameters_of_rank()}, {"layers", parameters_of_layers()}, {"nothing", 0}};
  for (const auto& [reshard, bytes] : again) {
    SCOPED_TRACE(reshard);
    const auto source =
        job("gpt", "parallel: {data: 4}, " + sharded("what: parameters, reshard: " + reshard), 4);
    const auto tasks = tally(*source, 2);
    EXPECT_EQ(tasks.at("all_gather dp_parameters").bytes, 3 * 2 * (parameters_of_rank() + bytes));
    EXPECT_EQ(tasks.at("reduce_scatter dp_gradients").bytes, 3 * 2 * parameters_of_rank());
    const auto of_rank = kernels(*source, 2);
    EXPECT_EQ(of_rank.at("adam").front().bytes, 28 * ((parameters_of_rank() + 3) / 4));
  }
}

// Layers take 10 ps and gathers 10. One layer ahead, all gathers hide except the first of a forward and a
// backward. Not ahead, none does.
TEST(ShardedReplicas, GatherAheadOfWhatIsComputed) {
  const auto end = [](const std::string& ahead) {
    const auto source = job("llama",
                            "parallel: {data: 2}, microbatches: 1, recompute: none, optimizer: "
                            "distributed_adam, sharding: {what: parameters, reshard: layers, ahead: " +
                                ahead + "}",
                            2);
    std::vector<Time> durations;
    for (const Work& work : source->works()) durations.push_back(work.name.find("mlp_") == 0 ? 10 : 0);
    TaskPlayer player(*source, 1, durations);
    player.transfer_time = [&](const Task& task) {
      return source->names()[task.name] == "dp_parameters" ? Time{10} : Time{0};
    };
    player.run();
    EXPECT_TRUE(player.all_done());
    return player.end();
  };
  // Forward: embedding, four layers, head gathered; backward: four layers.
  EXPECT_EQ(end("0"), 10 + 4 * 20 + 10 + 4 * 20);
  // Head and layers are gathered while the layer before is computed; the first layer after the embedding.
  EXPECT_EQ(end("1"), 10 + 10 + 4 * 10 + 10 + 4 * 10);
}

// Four matrices a layer, the words and the positions each have a list of as many tensors as ranks. One
// precedes each forward. Before each backward there is one for gathered parameters and one for the gradients.
TEST(ShardedReplicas, ListsTakeTheirTime) {
  const auto lists_of = [](const std::string& sharding, const std::string& recompute) {
    const auto source =
        parse_workload(
            "{kind: ptdp, model: {kind: gpt, layers: 3, hidden: 512, heads: 4, sequence: 256, vocabulary: "
            "1024}, parallel: {data: 8}, microbatches: 2, optimizer: distributed_adam, recompute: " +
            recompute + ", sharding: {what: parameters, " + sharding + "}}")
            ->tasks(8);
    const auto found = kernels(*source, 5);
    Time sum = 0;
    if (found.count("parameter_lists") != 0)
      for (const Kernel& kernel : found.at("parameter_lists")) sum += kernel.duration;
    return sum;
  };
  for (const char* recompute : {"none", "full"}) {
    EXPECT_EQ(lists_of("reshard: all", recompute), 0);
    EXPECT_EQ(lists_of("reshard: all, list_entry: 3 us", recompute),
              2 * 3 * (3 * 4 + 2) * 8 * 3 * kMicrosecond);
    // Words and positions stay after the forward.
    EXPECT_EQ(lists_of("reshard: layers, list_entry: 3 us", recompute),
              2 * (3 * (3 * 4) + 2 * 2) * 8 * 3 * kMicrosecond);
    EXPECT_EQ(lists_of("reshard: layers, group: 4, list_entry: 3 us", recompute),
              2 * (3 * (3 * 4) + 2 * 2) * 4 * 3 * kMicrosecond);
  }
  EXPECT_THAT(
      [] { job("gpt", "parallel: {data: 4}, optimizer: distributed_adam, sharding: {list_entry: 1 us}", 4); },
      ThrowsMessage<ConfigError>(HasSubstr("lists of tensors are of what: parameters")));
}

// A layer is computed when its parameters are gathered and their lists handled. No gather runs meanwhile.
TEST(ShardedReplicas, NothingIsComputedBesideLists) {
  const auto source = parse_workload(
                          "{kind: ptdp, model: {kind: gpt, layers: 2, hidden: 512, heads: 4, sequence: 256, "
                          "vocabulary: 1024}, parallel: {data: 2}, recompute: none, optimizer: "
                          "distributed_adam, sharding: {what: parameters, reshard: all, ahead: 0, "
                          "list_entry: 1 us}}")
                          ->tasks(2);
  std::vector<Time> durations;
  for (const Work& work : source->works()) durations.push_back(work.name == "parameter_lists" ? 7 : 0);
  TaskPlayer player(*source, 1, durations);
  player.transfer_time = [&](const Task& task) {
    return source->names()[task.name] == "dp_parameters" ? Time{10} : Time{0};
  };
  player.run();
  EXPECT_TRUE(player.all_done());
  // Embedding, two layers and the head are gathered twice. The norm before the head has no list, so its
  // forward needs none. Before its backward there are the lists of the words, which it shares.
  EXPECT_EQ(player.end(), 2 * 4 * 10 + (3 + 4) * 7);
}

// The sums of a group are completed among the groups.
TEST(ShardedReplicas, GroupsHaveCopiesOfTheirOwn) {
  const auto source =
      job("gpt", "parallel: {data: 4}, " + sharded("what: parameters, reshard: all, group: 2"), 4);
  const auto tasks = tally(*source, 3);
  EXPECT_EQ(tasks.at("all_gather dp_parameters").bytes, 3 * 2 * 2 * parameters_of_rank());
  EXPECT_EQ(tasks.at("reduce_scatter dp_gradients").bytes, 3 * 2 * parameters_of_rank());
  EXPECT_EQ(tasks.at("all_reduce dp_gradient_parts").bytes, 3 * parameters_of_rank());
  EXPECT_EQ(kernels(*source, 3).at("adam").front().bytes, 28 * ((parameters_of_rank() + 1) / 2));
  std::set<std::vector<RankId>> gathers, parts;
  for (const Task& task : test::tasks_of(*source, 3)) {
    if (task.kind() != TaskKind::collective) continue;
    const std::string& name = source->names()[task.name];
    if (name == "dp_parameters") gathers.insert(source->group(task.group()));
    if (name == "dp_gradient_parts") parts.insert(source->group(task.group()));
  }
  EXPECT_EQ(gathers, (std::set<std::vector<RankId>>{{2, 3}}));
  EXPECT_EQ(parts, (std::set<std::vector<RankId>>{{1, 3}}));
}

// HybridEnd is when a job of 2 groups of 2 replicas ends, and how many all-reduces a rank has. Its layers
// take 10 ps a pass.
struct HybridEnd {
  Time end = 0;
  std::uint64_t all_reduces = 0;
  bool operator==(const HybridEnd&) const = default;
};
void PrintTo(const HybridEnd& end, std::ostream* out) { *out << end.end << " ps, " << end.all_reduces; }
HybridEnd hybrid(int microbatches, const std::string& more, Time gather, Time scatter, Time all_reduce) {
  const auto source =
      job("llama",
          "parallel: {data: 4}, recompute: none, optimizer: distributed_adam, microbatches: " +
              std::to_string(microbatches) + ", sharding: {what: parameters, reshard: layers, group: 2" +
              more + "}",
          4);
  std::vector<Time> durations;
  for (const Work& work : source->works()) durations.push_back(work.name.find("mlp_") == 0 ? 10 : 0);
  TaskPlayer player(*source, 1, durations);
  player.transfer_time = [&](const Task& task) {
    const std::string& name = source->names()[task.name];
    return name == "dp_parameters" ? gather : name == "dp_gradients" ? scatter : all_reduce;
  };
  player.run();
  EXPECT_TRUE(player.all_done());
  EXPECT_FALSE(player.mismatched);
  return {player.end(), tally(*source, 0).at("all_reduce dp_gradient_parts").tasks};
}

// All-reduces of groups run beside gathers and reduce-scatters, as in PyTorch since 2023 (pull request
// 106080; all_reduce_stream in _fsdp_param_group.py). The forward takes the gathers of embedding and first
// layer and 4 layers: 4 + 4 + 4 x 10. The backward takes the last layer's gather and 4 layers of 10, of which
// gathers and reduce-scatters fill 8 each. Behind it come two reduce-scatters and two all-reduces.
TEST(ShardedReplicas, AllReducesOfGroupsRunBesideGathers) {
  EXPECT_EQ(hybrid(1, "", 4, 4, 0).end, 48 + 4 + 40 + 4 + 4);
  // The layers hide the first 4 of 6 all-reduces.
  EXPECT_EQ(hybrid(1, "", 4, 4, 9).end, 48 + 4 + 40 + 4 + 9 + 9);
  // The head's begins behind the last layer's gather and its own reduce-scatter. All follow each other at
  // once.
  EXPECT_EQ(hybrid(1, "", 4, 4, 30).end, 48 + 4 + 4 + 6 * 30);
}

TEST(ShardedReplicas, AllReducesOfGroupsMayBeOfTheLastMicrobatchOnly) {
  EXPECT_EQ(hybrid(3, "", 0, 0, 0), (HybridEnd{3 * 80, 3 * (kLayers + 2)}));
  EXPECT_EQ(hybrid(3, ", all_reduce: last", 0, 0, 0), (HybridEnd{3 * 80, kLayers + 2}));
  // Layers of 10 cannot hide all-reduces of 30. There are 6 for each microbatch, or 6 of the last one, which
  // begin with its head.
  EXPECT_EQ(hybrid(3, "", 0, 0, 30).end, 40 + 18 * 30);
  EXPECT_EQ(hybrid(3, ", all_reduce: last", 0, 0, 30).end, 2 * 80 + 40 + 6 * 30);
}

// One communicator runs gathers and reduce-scatters one after the other. Two run both at a time (PyTorch's
// set_separate_reduce_scatter_group()), and a backward of 10 hides 7 and 7 then.
TEST(ShardedReplicas, ReduceScattersMayHaveACommunicatorOfTheirOwn) {
  const HybridEnd shared = hybrid(1, "", 7, 7, 0);
  const HybridEnd apart = hybrid(1, ", separate_reduce_scatter: true", 7, 7, 0);
  EXPECT_EQ(apart.end, 7 + 7 + 40 + 7 + 40 + 7 + 7);
  // The three layers behind the first each begin 7 + 7 behind the one before.
  EXPECT_EQ(shared.end, 7 + 7 + 40 + 7 + 3 * (7 + 7) + 10 + 7 + 7);
  const auto source =
      job("gpt", "parallel: {data: 2}, " + sharded("what: parameters, separate_reduce_scatter: true"), 2);
  std::set<std::uint32_t> gathers, scatters;
  for (const Task& task : test::tasks_of(*source, 0)) {
    if (source->names()[task.name] == "dp_parameters") gathers.insert(task.group());
    if (source->names()[task.name] == "dp_gradients") scatters.insert(task.group());
  }
  ASSERT_EQ(gathers.size(), 1U);
  ASSERT_EQ(scatters.size(), 1U);
  EXPECT_NE(*gathers.begin(), *scatters.begin());
  EXPECT_EQ(source->group(*gathers.begin()), source->group(*scatters.begin()));
}

TEST(ShardedReplicas, CombineWithAllElse) {
  for (const char* parallel :
       {"data: 2, tensor: 2, sequence: true", "data: 2, context: 2, context_exchange: all_gather",
        "data: 2, pipeline: 2, virtual_stages: 2", "data: 2, pipeline: 2, schedule: zb_h1",
        "data: 2, pipeline: 2, schedule: dual_pipe_v, virtual_stages: 2"}) {
    for (const char* what : {"gradients", "parameters"}) {
      SCOPED_TRACE(std::string(parallel) + " " + what);
      const auto source =
          job("llama",
              std::string("microbatches: 4, recompute: none, optimizer: distributed_adam, parallel: {") +
                  parallel + "}, sharding: {what: " + what + ", reshard: all}",
              8);
      TaskPlayer player(*source, 5);
      player.run();
      EXPECT_TRUE(player.all_done());
      EXPECT_FALSE(player.mismatched);
    }
  }
}

TEST(ShardedReplicas, RefuseWhatDoesNotFit) {
  const auto refused = [](const std::string& more, const std::string& message) {
    EXPECT_THAT([&] { job("gpt", more, 8); }, ThrowsMessage<ConfigError>(HasSubstr(message))) << more;
  };
  refused("parallel: {data: 2}, sharding: {what: gradients}", "needs optimizer: distributed_adam");
  refused("parallel: {data: 4}, " + sharded("what: parameters, group: 3"), "cannot be divided by it");
  refused("parallel: {data: 4}, " + sharded("group: 2"), "a group divides gradients or parameters");
  refused("parallel: {data: 2}, " + sharded("what: gradients", ", gradient: {bucket: 1 MB, overlap: true}"),
          "no bucket, no overlap");
  refused("parallel: {data: 2}, " + sharded("what: parameters", ", overlap_parameter_gather: true"),
          "before each use");
  refused("parallel: {data: 2, pipeline: 2}, " + sharded("what: parameters"), "share an embedding");
  refused("parallel: {data: 4}, " + sharded("what: parameters, all_reduce: last"), "nothing is all-reduced");
  refused("parallel: {data: 4}, " + sharded("what: parameters, group: 4, all_reduce: last"),
          "nothing is all-reduced");
  refused("parallel: {data: 4}, " + sharded("what: parameters, group: 2, all_reduce: last",
                                            ", offload: {optimizer: 1, gradients: true}"),
          "sharding.all_reduce has to be every");
  refused("parallel: {data: 4}, " + sharded("what: gradients, separate_reduce_scatter: true"),
          "no gathers run beside reduce-scatters");
}

// The core of the forward runs once more, right before its backward (Korthikanti et al., section 5). That is
// 4 b s^2 h operations a layer and microbatch. All else is unchanged.
TEST(SelectiveRecomputation, ComputesTheCoreOfTheAttentionAgain) {
  for (const char* kind : {"gpt", "llama"}) {
    for (const char* parallel :
         {"tensor: 1", "tensor: 2, sequence: true",
          "tensor: 2, context: 2, context_exchange: all_gather, pipeline: 2, schedule: zb_h1"}) {
      SCOPED_TRACE(parallel);
      const std::string more = std::string("microbatches: 3, parallel: {") + parallel + "}, recompute: ";
      const auto kept = job(kind, more + "none", 8), again = job(kind, more + "selective", 8);
      const auto once = kernels(*kept, 0), twice = kernels(*again, 0);
      ASSERT_EQ(once.size(), twice.size());
      const std::set<std::string> core{"attention_scores",  "softmax",           "attention_dropout",
                                       "attention_context", "context_transpose", "flash_attention"};
      for (const auto& [name, list] : once)
        EXPECT_EQ(twice.at(name).size(), list.size() * (core.count(name) > 0 ? 2 : 1)) << name;
      TaskPlayer player(*again, 2);
      player.run();
      EXPECT_TRUE(player.all_done());
      EXPECT_FALSE(player.mismatched);
    }
  }
  const auto source = job("gpt", "recompute: selective", 1);
  double operations = 0;
  const auto of_rank = kernels(*source, 0);
  for (const char* name : {"attention_scores", "attention_context"}) {
    for (const Kernel& k : of_rank.at(name))
      operations += 2.0 * static_cast<double>(k.m * k.n) * static_cast<double>(k.k * k.batch);
  }
  EXPECT_DOUBLE_EQ(operations, 2 * 4.0 * kLayers * kSequence * kSequence * kHidden);
}

TEST(SelectiveRecomputation, CommunicatesForItAgain) {
  const auto source = job("llama", "parallel: {context: 4}, recompute: selective", 4);
  const auto tasks = tally(*source, 0);
  EXPECT_EQ(tasks.at("message cp_send_recompute").bytes, tasks.at("message cp_send_forward").bytes);
  std::vector<std::string> order;
  for (const Task& task : test::tasks_of(*source, 0)) {
    const std::string& name = source->names()[task.name];
    if (name.find("cp_send") == 0 && (order.empty() || order.back() != name)) order.push_back(name);
  }
  ASSERT_EQ(order.size(), 1U + 2 * kLayers);
  EXPECT_EQ(order[1], "cp_send_recompute");
  EXPECT_EQ(order[2], "cp_send_backward");
}

// Weights' GEMMs are reduced, all else is not; where no kernel that is bound by memory writes the operand
// there is a cast.
TEST(ReducedPrecision, IsThatOfTheWeightsGemms) {
  const auto reduced = kernels(*job("llama", "precision: fp8, recompute: none", 1), 0);
  const auto half = kernels(*job("llama", "recompute: none", 1), 0);
  for (const auto& [name, list] : reduced) {
    const bool logits = name.find("logits") != std::string::npos;
    const bool weights = name.find("gemm") != std::string::npos && !logits;
    const Kernel& kernel = list.front();
    if (kernel.kind == Kernel::Kind::memory) continue;
    EXPECT_EQ(kernel.precision, weights ? Precision::fp8 : Precision::half) << name;
  }
  EXPECT_EQ(half.count("cast"), 0U);
  // Forward: the output of attention. Backward: the gradient that enters the down projection.
  ASSERT_EQ(reduced.at("cast").size(), static_cast<std::size_t>(kLayers) * 2);
  EXPECT_EQ(reduced.at("cast").front().bytes, 4 * kSequence * kHidden);
}

TEST(ReducedPrecision, GathersWhatIsReducedAlready) {
  const std::string parallel = "parallel: {tensor: 2, sequence: true}, recompute: none";
  const auto half = tally(*job("gpt", parallel, 2), 0);
  const auto reduced = tally(*job("gpt", parallel + ", precision: fp8", 2), 0);
  const Bytes activation = 2 * kSequence * kHidden;
  // All but those of logits and embedding.
  EXPECT_EQ(half.at("all_gather tp_gather_forward").bytes, (2 * kLayers + 1) * activation);
  EXPECT_EQ(reduced.at("all_gather tp_gather_forward").bytes, kLayers * activation + activation);
  EXPECT_EQ(reduced.at("all_gather tp_gather_backward").bytes, kLayers * activation + activation);
  EXPECT_EQ(reduced.at("reduce_scatter tp_forward").bytes, half.at("reduce_scatter tp_forward").bytes);
}

// ---- Parameters in FP8

// Weights of a rank. GPT has GEMMs of 12 h^2 weights a layer. Llama has queries, output, keys and values (of
// all heads, or groups of them) and a gated MLP.
constexpr std::int64_t kGptWeights = kLayers * 12 * kHidden * kHidden;
constexpr std::int64_t kLlamaWeights = kLayers * (4 * kHidden * kHidden + 3 * kHidden * 96);

std::string reduced(const std::string& more) {
  return more + ", precision: fp8, parameter_precision: fp8, optimizer: distributed_adam";
}

// Weights of the GEMMs take one byte each wherever parameters are gathered; all others take two.
TEST(ReducedParameters, AreGatheredAsOneByte) {
  for (const char* kind : {"gpt", "llama"}) {
    const std::int64_t weights = kind == std::string("gpt") ? kGptWeights : kLlamaWeights;
    for (const char* more :
         {"parallel: {data: 4}", "parallel: {data: 2, context: 2, context_exchange: all_gather}",
          "parallel: {data: 4}, overlap_parameter_gather: true",
          "parallel: {data: 4}, overlap_parameter_gather: true, gradient: {bucket: 100 KB}",
          "parallel: {data: 4}, gradient: {bucket: 30 KB}",
          "parallel: {data: 4}, sharding: {what: gradients}",
          "parallel: {data: 4}, sharding: {what: parameters, reshard: nothing}"}) {
      SCOPED_TRACE(std::string(kind) + " " + more);
      const auto half = job(kind, more + std::string(", precision: fp8, optimizer: distributed_adam"), 4);
      const auto fp8 = job(kind, reduced(more), 4);
      const auto before = tally(*half, 1), after = tally(*fp8, 1);
      EXPECT_EQ(before.at("all_gather dp_parameters").bytes - after.at("all_gather dp_parameters").bytes,
                weights);
      EXPECT_GT(after.at("all_gather dp_parameters").bytes, weights);
      // In as many pieces; gradients are as they were.
      EXPECT_EQ(before.at("all_gather dp_parameters").tasks, after.at("all_gather dp_parameters").tasks);
      for (const auto& [name, moved] : before) {
        if (name == "all_gather dp_parameters") continue;
        EXPECT_EQ(moved.bytes, after.at(name).bytes) << name;
      }
    }
  }
}

// Divided among tensor-parallel ranks and stages, in pieces beside what is gathered, and gathered again for
// the backward of each microbatch.
TEST(ReducedParameters, AreThoseOfTheRank) {
  const auto less = [](const std::string& kind, const std::string& more, std::uint32_t ranks,
                       std::uint32_t rank) {
    const auto half = job(kind, more + ", precision: fp8, optimizer: distributed_adam", ranks);
    return tally(*half, rank).at("all_gather dp_parameters").bytes -
           tally(*job(kind, reduced(more), ranks), rank).at("all_gather dp_parameters").bytes;
  };
  EXPECT_EQ(less("llama", "parallel: {data: 2, tensor: 2, pipeline: 2}", 8, 5), kLlamaWeights / 4);
  for (const char* method : {"ring_exchange", "pipelined"}) {
    EXPECT_EQ(less("llama",
                   std::string("parallel: {data: 2, tensor: 4, sequence: true, tensor_overlap: {gathers: ") +
                       method + ", reduce_scatters: " + method + ", pieces: 2}}",
                   8, 3),
              kLlamaWeights / 4);
  }
  EXPECT_EQ(
      less("gpt", "parallel: {data: 2}, microbatches: 3, sharding: {what: parameters, reshard: all}", 2, 0),
      3 * 2 * kGptWeights);
  EXPECT_EQ(less("gpt", "parallel: {data: 4}, sharding: {what: parameters, reshard: layers, group: 2}", 4, 0),
            2 * kGptWeights);
  EXPECT_EQ(less("llama", "parallel: {data: 2, pipeline: 2, schedule: chimera}, microbatches: 2", 4, 1),
            kLlamaWeights);
}

TEST(ReducedParameters, OfExpertsAreGatheredAmongTheirCopies) {
  const std::string moe =
      "{kind: ptdp, model: {kind: llama, layers: 2, hidden: 64, heads: 4, groups: 4, inner: 96, "
      "sequence: 16, vocabulary: 128, experts: {count: 4, top_k: 2, inner: 32, shared: 1}}, parallel: {data: "
      "4, expert: 2}, precision: fp8, "
      "optimizer: distributed_adam, parameter_precision: ";
  const auto half = parse_workload(moe + "half}")->tasks(4), fp8 = parse_workload(moe + "fp8}")->tasks(4);
  const auto less = [&](const char* name) {
    return tally(*half, 2).at(name).bytes - tally(*fp8, 2).at(name).bytes;
  };
  // Two of four experts, gated; attention and the shared expert, and not the router.
  EXPECT_EQ(less("all_gather edp_parameters"), 2 * 2 * 3 * 64 * 32);
  EXPECT_EQ(less("all_gather dp_parameters"), 2 * (4 * 64 * 64 + 3 * 64 * 32));
}

// In memory a byte each and one for the transpose, instead of half precision, a copy and its transpose. The
// optimizer writes one byte.
TEST(ReducedParameters, TakeHalfOfTheMemory) {
  const std::string whole = "parallel: {data: 4}", sharded = whole + ", sharding: {what: parameters}";
  const auto resident = [](const std::string& more) {
    return job("gpt", more, 4)->memory()->resident(1)[MemoryKind::parameters];
  };
  EXPECT_EQ(resident(whole + ", precision: fp8, optimizer: distributed_adam") - resident(reduced(whole)),
            2 * kGptWeights);
  EXPECT_EQ(resident(sharded + ", precision: fp8, optimizer: distributed_adam") - resident(reduced(sharded)),
            kGptWeights / 4);
  EXPECT_EQ(test::most_of(*job("gpt", sharded + ", precision: fp8, optimizer: distributed_adam", 4), 0,
                          MemoryKind::gathered) -
                test::most_of(*job("gpt", reduced(sharded), 4), 0, MemoryKind::gathered),
            kGptWeights / kLayers * 2);  // a layer, and the one ahead
  const auto of_rank = kernels(*job("gpt", reduced(whole), 4), 0);
  EXPECT_EQ(of_rank.at("parameter_to_fp8").front().bytes, 5 * kGptWeights / 4);
  EXPECT_EQ(of_rank.at("parameter_to_fp16").front().bytes,
            6 * ((parameters_of_rank() + 3) / 4 - kGptWeights / 4));
}

// Counts the bytes on the network. A ring's all-gather takes each byte to the three ranks that lack it.
TEST(ReducedParameters, TakeOneByteOfTheNetwork) {
  const test::Directory directory;
  const auto delivered = [&](const std::string& precision) {
    SimulationSetup setup;
    setup.config = parse_config(
        "{topology: {kind: star, hosts: 4, rate: 400 Gbps}, host: single_nic, compute: h100_sxm, "
        "collectives: {all_gather: "
        "ring, reduce_scatter: ring, all_reduce: ring}}",
        "cluster.yaml");
    setup.workload = directory.path() + "/job.yaml";
    setup.threads = 1;
    std::ofstream(setup.workload.text())
        << "{kind: ptdp, model: {layers: 4, hidden: 64, heads: 4, sequence: 16, "
           "vocabulary: 128}, parallel: {data: "
           "4}, precision: fp8, optimizer: distributed_adam, parameter_precision: "
        << precision << "}";
    const Results results = Simulation(std::move(setup)).run({});
    EXPECT_TRUE(results.jobs[0].done);
    return results.network.bytes_delivered;
  };
  EXPECT_EQ(delivered("half") - delivered("fp8"), 3 * kGptWeights);
}

TEST(ReducedParameters, RefuseWhatDoesNotFit) {
  const auto refused = [](const std::string& more, const std::string& message) {
    EXPECT_THAT([&] { job("llama", more, 8); }, ThrowsMessage<ConfigError>(HasSubstr(message))) << more;
  };
  refused("parallel: {data: 2}, parameter_precision: fp8, optimizer: distributed_adam",
          "precision has to be fp8");
  refused("parallel: {data: 2}, parameter_precision: fp8, precision: fp8",
          "need optimizer: distributed_adam");
  refused(reduced("parallel: {data: 2}, offload: {optimizer: 1}"), "leave offload.optimizer out");
  refused("parallel: {data: 2}, parameter_precision: fp4", "'fp4'");
}

}  // namespace
}  // namespace netsim::sharding_test
