// Tests stages with different meshes. Each stage does what it does in a job of its mesh. Stages of all
// degrees exchange exactly their tiles, by every strategy and schedule. Times and bytes are those of
// independent computations. Equal stages are as before, and impossible combinations are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <fstream>
#include <map>
#include <numeric>

#include "sim/core/errors.h"
#include "sim/simulation/simulation.h"
#include "sim/training/strategy/stage_reshardings.h"
#include "sim/workload/program/program_file.h"
#include "tests/report/fixtures.h"
#include "tests/support/tasks_of.h"
#include "tests/workload/program/small_programs.h"
#include "tests/workload/task_player.h"

namespace netsim::stage_meshes_test {
namespace {

using netsim::test::parse_workload;
using netsim::test::TaskPlayer;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::int64_t kSequence = 64, kHidden = 64;

std::string model(int layers, std::int64_t hidden = kHidden) {
  return fmt::format(
      "model: {{kind: llama, layers: {}, hidden: {}, heads: 8, groups: 8, inner: 96, sequence: {}, "
      "vocabulary: 128, tied: false}}",
      layers, hidden, kSequence);
}

struct Degrees {
  std::int64_t tensor = 1, data = 1;
};
std::string list_of(const std::vector<Degrees>& stages) {
  std::string list;
  for (const Degrees& stage : stages)
    list += fmt::format("{}{{tensor: {}, data: {}}}", list.empty() ? "" : ", ", stage.tensor, stage.data);
  return "[" + list + "]";
}
std::string ptdp(const std::string& what) { return "{kind: ptdp, " + what + "}"; }

std::string compiled(const std::string& what) { return parse_workload(ptdp(what))->compile(); }

// ---- Alike stages

TEST(StageMeshes, AlikeStagesAreAsIfNobodyHadSaidSo) {
  const std::string more = ", microbatches: 4, " + model(4),
                    pipeline = "parallel: {pipeline: 2, virtual_stages: 2, ";
  const std::string plain = compiled(pipeline + "tensor: 2, data: 2}, microbatch: 2" + more);
  EXPECT_EQ(
      compiled(pipeline +
               "tensor: 2, data: 2, stages: [{tensor: 2, data: 2}, {}], resharding: {strategy: send_recv}}, "
               "microbatch: 2" +
               more),
      plain);
  // The four sequences of a microbatch, said in another way.
  EXPECT_EQ(
      compiled(pipeline + "stages: [{tensor: 2, data: 2}, {tensor: 2, data: 2}]}, microbatch: 4" + more),
      plain);
}

// ---- What a stage computes and has

// A task, apart from what passes between stages; members of its group, and its peer, as stages and ranks of
// them.
struct Done {
  std::string what;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> group;
  auto operator<=>(const Done&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Done& done) {
  return out << done.what << " " << ::testing::PrintToString(done.group);
}

// `firsts`: of each stage.
std::vector<Done> within_stage(const TaskSource& source, std::uint32_t rank,
                               const std::vector<std::uint32_t>& firsts) {
  const auto place = [&](std::uint32_t of) {
    const auto next = std::upper_bound(firsts.begin(), firsts.end(), of);
    return std::pair(static_cast<std::uint32_t>(next - firsts.begin() - 1), of - *(next - 1));
  };
  std::vector<Done> all;
  for (const Task& task : test::tasks_of(source, rank)) {
    if (task.stream == Stream::pp) continue;
    Done done{fmt::format("{} {} {} {} of {}", to_string(task.kind()), to_string(task.stream),
                          source.names()[task.name], task.bytes(), task.iteration),
              {}};
    if (task.kind() == TaskKind::compute) {
      for (const Kernel& kernel : source.works()[task.work()].kernels)
        done.what += fmt::format(", {} {} {} {} {} {}", kernel.name, kernel.m, kernel.n, kernel.k,
                                 kernel.batch, kernel.bytes);
    }
    if (task.kind() == TaskKind::send || task.kind() == TaskKind::receive)
      done.what += " peer " + ::testing::PrintToString(place(task.message().peer));
    if (task.kind() == TaskKind::collective) {
      for (const std::uint32_t member : source.group(task.group())) done.group.push_back(place(member));
    }
    all.push_back(std::move(done));
  }
  return all;
}

struct Stages {
  std::vector<Degrees> stages;
  std::int64_t context = 1;
  std::string more;        // beside parallel
  std::string parallel{};  // more of it
  std::int64_t sequences = 4;
  int layers = 6;

  std::int64_t ranks(std::size_t stage) const { return stages[stage].tensor * stages[stage].data * context; }
  std::int64_t first(std::size_t stage) const {
    std::int64_t first = 0;
    for (std::size_t s = 0; s < stage; ++s) first += ranks(s);
    return first;
  }
  std::string text(const std::string& of_stages, std::int64_t microbatch) const {
    return ptdp(fmt::format("parallel: {{pipeline: {}, context: {}, {}{}}}, microbatch: {}, {}{}",
                            stages.size(), context, of_stages, parallel, microbatch, model(layers), more));
  }
  std::unique_ptr<TaskSource> mixed() const {
    return parse_workload(text("stages: " + list_of(stages), sequences))
        ->tasks(static_cast<std::uint32_t>(first(stages.size())));
  }
  // As if all stages were as one of them.
  std::unique_ptr<TaskSource> alike(std::size_t stage) const {
    const Degrees& d = stages[stage];
    return parse_workload(text(fmt::format("tensor: {}, data: {}", d.tensor, d.data), sequences / d.data))
        ->tasks(static_cast<std::uint32_t>(ranks(stage) * static_cast<std::int64_t>(stages.size())));
  }
};

const std::vector<Stages>& jobs() {
  static const std::vector<Stages> jobs{
      {{{2, 2}, {4, 1}}, 1, ", microbatches: 3"},
      {{{2, 2}, {4, 1}}, 1, ", microbatches: 4, recompute: selective", ", sequence: true, virtual_stages: 3"},
      {{{1, 4}, {2, 1}, {4, 2}}, 1, ", microbatches: 3, recompute: none, optimizer: distributed_adam"},
      {{{1, 4}, {8, 1}, {1, 4}},
       1,
       ", microbatches: 3, gradient: {bucket: 40 KB, overlap: true}, optimizer: distributed_adam, "
       "overlap_parameter_gather: true",
       ", virtual_stages: 2"},
      {{{2, 1}, {1, 2}}, 2, ", microbatches: 2, recompute: none", ", sequence: true"},
      {{{2, 1}, {1, 2}},
       4,
       ", microbatches: 2",
       ", context_exchange: hybrid, context_heads: 2, sequence: true, tensor_overlap: {gathers: "
       "ring_exchange}"},
      {{{2, 2}, {1, 4}},
       1,
       ", microbatches: 2, recompute: none, optimizer: distributed_adam, sharding: {what: parameters, group: "
       "2}"},
      {{{2, 2}, {1, 4}}, 1, ", microbatches: 2, optimizer: distributed_adam, offload: {optimizer: 1}"},
      {{{2, 1}, {1, 4}}, 1, ", microbatches: 2, gradient: {local_steps: 2}", ", schedule: gpipe"},
      {{{2, 1}, {1, 4}}, 1, ", microbatches: 4", ", schedule: zb_h1"},
      {{{2, 2}, {1, 2}, {1, 2}, {2, 2}},
       1,
       ", microbatches: 8, recompute: none, optimizer: distributed_adam",
       ", schedule: dual_pipe",
       4,
       4},
  };
  return jobs;
}

// Its groups, gradients, optimizer, parameters that are gathered, and memory.
TEST(StageMeshes, EachStageDoesWhatItDoesInAJobOfItsMesh) {
  for (const Stages& job : jobs()) {
    SCOPED_TRACE(list_of(job.stages) + job.parallel + job.more);
    const auto mixed = job.mixed();
    ASSERT_EQ(mixed->ranks(), job.first(job.stages.size()));
    std::vector<std::uint32_t> firsts;
    for (std::size_t s = 0; s < job.stages.size(); ++s)
      firsts.push_back(static_cast<std::uint32_t>(job.first(s)));
    for (std::uint32_t s = 0; s < job.stages.size(); ++s) {
      const auto alike = job.alike(s);
      std::vector<std::uint32_t> firsts_alike;
      for (std::uint32_t i = 0; i < job.stages.size(); ++i)
        firsts_alike.push_back(i * static_cast<std::uint32_t>(job.ranks(s)));
      for (std::uint32_t i = 0; i < job.ranks(s); ++i) {
        const std::uint32_t rank = firsts[s] + i, rank_alike = firsts_alike[s] + i;
        const std::vector<Done> done = within_stage(*mixed, rank, firsts);
        ASSERT_FALSE(done.empty());
        ASSERT_EQ(done, within_stage(*alike, rank_alike, firsts_alike)) << "rank " << rank;
        const MemoryPlan *memory = mixed->memory(), *memory_alike = alike->memory();
        ASSERT_NE(memory, nullptr);
        EXPECT_EQ(memory->resident(rank), memory_alike->resident(rank_alike));
        EXPECT_EQ(memory->planned()[memory->role(rank)].use,
                  memory_alike->planned()[memory_alike->role(rank_alike)].use);
      }
    }
    EXPECT_EQ(mixed->model_flops(), job.alike(0)->model_flops());
  }
}

TEST(StageMeshes, RanksWriteTheirPartsOfACheckpoint) {
  Stages job{{{2, 2}, {1, 2}, {2, 2}}, 1, ", microbatches: 2, checkpoint: {every: 1, divided: true}"};
  const auto written = [](const Stages& of, const std::string& degrees, std::int64_t microbatch,
                          std::uint32_t ranks) {
    WorkloadContext context(ranks + 1);
    context.drives = {ranks};
    const auto source = parse_workload(of.text(degrees, microbatch))->tasks(context);
    std::vector<Bytes> bytes;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      bytes.push_back(0);
      for (const Task& task : test::tasks_of(*source, rank))
        bytes.back() += task.stream == Stream::io && task.kind() == TaskKind::send ? task.bytes() : 0;
    }
    return bytes;
  };
  const std::vector<Bytes> mixed = written(job, "stages: " + list_of(job.stages), 4, 10);
  const std::vector<Bytes> two = written(job, "tensor: 2, data: 2", 2, 12);
  const std::vector<Bytes> one = written(job, "tensor: 1, data: 2", 2, 6);
  ASSERT_GT(mixed[0], 0);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(mixed[i], two[i]);
    EXPECT_EQ(mixed[6 + i], two[8 + i]);
  }
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(mixed[4 + i], one[2 + i]);
}

// The two ends of a model with tied embeddings sum up gradients rank by rank, whatever lies between them.
TEST(StageMeshes, EndsOfOneMeshShareTheEmbedding) {
  const std::string tied =
      "model: {layers: 6, hidden: 64, heads: 8, sequence: 64, vocabulary: 128}, microbatch: 4, ";
  const auto source =
      parse_workload(ptdp(tied +
                          "parallel: {pipeline: 3, stages: [{tensor: 2, data: 2}, {tensor: 1, data: 1}, "
                          "{tensor: 2, data: 2}]}"))
          ->tasks(9);
  for (std::uint32_t i = 0; i < 4; ++i) {
    for (const std::uint32_t rank : {i, 5 + i}) {
      std::vector<std::vector<RankId>> groups;
      for (const Task& task : test::tasks_of(*source, rank)) {
        if (source->names()[task.name] == "pp_embedding_gradients")
          groups.push_back(source->group(task.group()));
      }
      EXPECT_EQ(groups, (std::vector<std::vector<RankId>>{{i, 5 + i}}));
    }
  }
  TaskPlayer player(*source);
  player.run();
  EXPECT_TRUE(player.all_done());
}

struct Shared {
  std::vector<Degrees> stages;
  std::int64_t context;
  std::string more;
};

// Ends with different degrees exchange gradients before replicas sum up theirs. Each replica of one end sends
// all of its gradients to one replica of the other. So every sum contains each of them once.
TEST(StageMeshes, UnlikeEndsExchangeTheEmbeddingsGradients) {
  constexpr Bytes kEmbedding = 2 * 128 * 64;
  for (const Shared& job : {Shared{{{2, 2}, {4, 1}}, 1, ""}, Shared{{{1, 4}, {8, 1}, {2, 2}}, 1, ""},
                            Shared{{{4, 1}, {1, 4}}, 2, ""}, Shared{{{2, 4}, {1, 2}}, 1, "send_recv"},
                            Shared{{{1, 2}, {4, 4}}, 1, "all_gather"}}) {
    SCOPED_TRACE(list_of(job.stages) + job.more);
    std::vector<std::int64_t> firsts{0};
    for (const Degrees& d : job.stages) firsts.push_back(firsts.back() + d.tensor * d.data * job.context);
    const std::string resharding =
        job.more.empty() ? "" : fmt::format(", resharding: {{strategy: {}}}", job.more);
    const auto source =
        parse_workload(
            ptdp(fmt::format(
                "model: {{layers: 6, hidden: 64, heads: 8, sequence: 64, vocabulary: 128}}, "
                "microbatch: 4, microbatches: 2, recompute: none, parallel: {{pipeline: {}, context: "
                "{}, context_exchange: all_gather, stages: {}{}}}",
                job.stages.size(), job.context, list_of(job.stages), resharding)))
            ->tasks(static_cast<std::uint32_t>(firsts.back()));
    const Degrees &front = job.stages.front(), &back = job.stages.back();
    const auto first_of_back = static_cast<std::uint32_t>(firsts[job.stages.size() - 1]);
    // The number of a rank's replica, of data and context.
    const auto replica = [&](std::uint32_t rank) {
      return rank < first_of_back ? rank / front.tensor : (rank - first_of_back) / back.tensor;
    };
    const auto is_front = [&](std::uint32_t rank) { return rank < first_of_back; };
    using FromTo = std::pair<std::int64_t, std::int64_t>;
    std::map<FromTo, Bytes> to_front, to_back;  // by replicas, from and to
    const auto moved = [&](std::uint32_t from, std::uint32_t to, Bytes bytes) {
      ASSERT_NE(is_front(from), is_front(to));
      (is_front(to) ? to_front : to_back)[{replica(from), replica(to)}] += bytes;
    };
    for (std::uint32_t rank = 0; rank < source->ranks(); ++rank) {
      Bytes got = 0, summed = 0;
      for (const Task& task : test::tasks_of(*source, rank)) {
        const std::string& name = source->names()[task.name];
        if (name == "embedding_gradient_sum") summed += source->works()[task.work()].kernels.at(0).bytes;
        if (!name.ends_with("_embedding_gradients")) continue;
        if (task.kind() == TaskKind::send) moved(rank, task.message().peer, task.bytes());
        if (task.kind() == TaskKind::receive) got += task.bytes();
        if (task.kind() != TaskKind::collective) continue;
        ASSERT_EQ(task.collective().collective, CollectiveKind::broadcast);
        const auto& group = source->group(task.group());
        if (group.front() != rank) {
          got += task.bytes();
          moved(group.front(), rank, task.bytes());
        }
      }
      EXPECT_EQ(summed, 3 * got);
    }
    const std::int64_t fronts = front.data * job.context, backs = back.data * job.context;
    for (const auto& [ways, from, to] :
         {std::tuple(to_front, backs, fronts), std::tuple(to_back, fronts, backs)}) {
      std::vector<int> gives(static_cast<std::size_t>(from)), gets(static_cast<std::size_t>(to));
      for (const auto& [way, bytes] : ways) {
        EXPECT_EQ(bytes, kEmbedding);
        ++gives[static_cast<std::size_t>(way.first)];
        ++gets[static_cast<std::size_t>(way.second)];
      }
      EXPECT_THAT(gives, ::testing::Each(1));
      EXPECT_LE(*std::max_element(gets.begin(), gets.end()), (from + to - 1) / to);
    }
    TaskPlayer player(*source);
    player.transfer_time = [](const Task& task) { return Time{1} + task.bytes() % 17; };
    player.run();
    EXPECT_TRUE(player.all_done());
    EXPECT_FALSE(player.mismatched);
    std::vector<Time> exchanged(source->ranks(), 0);
    for (const netsim::test::PlayedTask& played : player.played) {
      const std::string& name = source->names()[played.task.name];
      if (name.ends_with("embedding_gradients") || name == "embedding_gradient_sum")
        exchanged[played.rank] = std::max(exchanged[played.rank], played.end);
    }
    for (const netsim::test::PlayedTask& played : player.played) {
      if (source->names()[played.task.name] != "dp_gradients") continue;
      EXPECT_GE(played.ready, exchanged[played.rank]);
    }
  }
}

// ---- What passes between stages

struct Passing {
  Bytes got = 0, gathered = 0;  // gathers hold what was received
  Bytes all() const { return gathered > 0 ? gathered : got; }
};
// The data that crosses the boundaries between stages forward or backward, by rank.
std::vector<Passing> passing(const TaskSource& source, const std::string& direction) {
  std::vector<Passing> passing(source.ranks());
  for (std::uint32_t rank = 0; rank < source.ranks(); ++rank) {
    for (const Task& task : test::tasks_of(source, rank)) {
      const std::string& name = source.names()[task.name];
      if (task.stream != Stream::pp || !name.ends_with(direction)) continue;
      if (task.kind() == TaskKind::receive) passing[rank].got += task.bytes();
      if (task.kind() != TaskKind::collective) continue;
      if (task.collective().collective == CollectiveKind::all_gather) passing[rank].gathered += task.bytes();
      if (task.collective().collective == CollectiveKind::broadcast &&
          source.group(task.group())[task.collective().root] != rank)
        passing[rank].got += task.bytes();
    }
  }
  return passing;
}

// Each rank gets exactly its tile of every microbatch, and everything ends, whatever the order of events.
TEST(StageMeshes, OfAllDegreesMeetBySchedulesAndStrategies) {
  EXPECT_TRUE(rc::check([] {
    const auto power = [](int most) { return std::int64_t{1} << *rc::gen::inRange(0, most + 1); };
    const std::string schedule = *rc::gen::elementOf(std::vector<std::string>{
        "one_f_one_b", "eager_1f1b", "gpipe", "interleaved", "depth_first", "breadth_first", "zb_h1", "zb_h2",
        "zb_v", "dual_pipe_v", "chimera", "dual_pipe"});
    const bool in_v = schedule == "zb_v" || schedule == "dual_pipe_v";
    const bool chunks =
        in_v || schedule == "interleaved" || schedule == "depth_first" || schedule == "breadth_first";
    const std::int64_t v = chunks ? 2 : 1;
    Stages job;
    job.context = power(1);
    const bool both_ways = schedule == "chimera" || schedule == "dual_pipe";
    const auto p = both_ways ? 4 : *rc::gen::inRange<std::size_t>(2, 5);
    for (std::size_t s = 0; s < p; ++s) job.stages.push_back({power(3), power(2)});
    const bool sequence = *rc::gen::arbitrary<bool>(), overlap = *rc::gen::arbitrary<bool>();
    const std::string strategy =
        *rc::gen::elementOf(std::vector<std::string>{"send_recv", "all_gather", "broadcast"});
    const std::int64_t m = 2 * static_cast<std::int64_t>(p);
    job.layers = static_cast<int>(v * static_cast<std::int64_t>(p));
    job.more = fmt::format(", microbatches: {}, recompute: none, overlap_p2p: {}, scatter_gather: {}", m,
                           overlap, *rc::gen::arbitrary<bool>());
    const bool alike = std::all_of(job.stages.begin(), job.stages.end(), [&](const Degrees& d) {
      return d.tensor == job.stages[0].tensor && d.data == job.stages[0].data;
    });
    if (alike) job.stages[0].tensor = job.stages[0].tensor == 8 ? 4 : 2 * job.stages[0].tensor;
    for (std::size_t s = 0; both_ways && s < p; ++s) job.stages[s] = job.stages[std::min(s, p - 1 - s)];
    if (both_ways && job.stages[0].tensor == job.stages[1].tensor && job.stages[0].data == job.stages[1].data)
      job.stages[1].data = job.stages[2].data = job.stages[1].data == 4 ? 1 : 4;
    job.parallel = fmt::format(
        ", sequence: {}, virtual_stages: {}, schedule: {}, resharding: {{strategy: {}, "
        "balance: {}, ranks_per_host: {}}}",
        sequence, v, schedule, strategy,
        *rc::gen::elementOf(std::vector<std::string>{"none", "size", "order"}), power(3));
    const auto source = job.mixed();
    TaskPlayer player(*source, *rc::gen::inRange<std::uint64_t>(1, 1000));
    player.compute_time = [](std::uint32_t rank, const Task& task) {
      return Time{1} + (task.work() * 7 + rank * 13) % 11;
    };
    player.transfer_time = [](const Task& task) { return Time{1} + task.bytes() % 17; };
    player.run();
    RC_ASSERT(player.all_done());
    RC_ASSERT(!player.mismatched);
    // Where a stage's neighbour is itself (the point of a V) nothing passes. Each of two copies of the model
    // gets half of the microbatches.
    const std::int64_t whole = 2 * 4 * kSequence * kHidden / job.context, times = both_ways ? m / 2 : m;
    const auto forward = passing(*source, "_forward"), backward = passing(*source, "_backward");
    for (std::size_t s = 0; s < p; ++s) {
      const bool first = s == 0, last = s + 1 == p;
      const std::int64_t around = first || last ? 1 : 2;
      const std::int64_t forwards = in_v || both_ways ? around : v - (first ? 1 : 0);
      const std::int64_t backwards = in_v || both_ways ? around : v - (last ? 1 : 0);
      const std::int64_t tile = whole / job.stages[s].data / (sequence ? job.stages[s].tensor : 1);
      for (std::int64_t i = 0; i < job.ranks(s); ++i) {
        const auto rank = static_cast<std::size_t>(job.first(s) + i);
        // Where a stage has one neighbour with its mesh and one with another, only some of it is gathered.
        const auto expect = [&](const Passing& passed, std::int64_t parts) {
          if (passed.gathered == 0) RC_ASSERT(passed.got == times * parts * tile);
          RC_ASSERT(passed.gathered <= times * parts * tile);
          RC_ASSERT(passed.got <= times * parts * tile);
        };
        expect(forward[rank], forwards);
        expect(backward[rank], backwards);
      }
    }
  }));
}

// The calls of a stage's ranks are those of a plan over the whole stages, made apart.
TEST(StageMeshes, MessagesAreThoseOfThePlan) {
  for (const char* strategy : {"send_recv", "all_gather", "broadcast"}) {
    SCOPED_TRACE(strategy);
    Stages job{{{2, 2}, {4, 1}}, 1, ", microbatches: 5, recompute: none"};
    job.parallel = fmt::format(", resharding: {{strategy: {}, ranks_per_host: 4}}", strategy);
    const auto source = job.mixed();
    const ReshardingStrategy how = strategy[0] == 's'   ? ReshardingStrategy::send_recv
                                   : strategy[0] == 'a' ? ReshardingStrategy::all_gather
                                                        : ReshardingStrategy::broadcast;
    for (const bool forward : {true, false}) {
      ShardedMesh two{2, 2, {{0}, {}}}, four{1, 4, {{0}, {}}};
      two.hosts_of = {0, 0, 0, 0};
      const MeshResharding plan = make_resharding({4, kSequence * kHidden}, 2, forward ? two : four,
                                                  forward ? four : two, how, ReshardingBalance::order);
      std::map<std::uint32_t, std::vector<Bytes>> planned, called;  // by rank
      for (const ReshardingStep& step : plan.steps) {
        const Bytes bytes = step.end - step.begin;
        if (step.kind != ReshardingStep::Kind::gather)
          planned[step.from + (forward ? 0 : 4)].push_back(bytes);
        for (const std::uint32_t gpu : step.to) planned[gpu + (forward ? 4 : 0)].push_back(bytes);
      }
      for (std::uint32_t rank = 0; rank < 8; ++rank) {
        for (const Task& task : test::tasks_of(*source, rank)) {
          const std::string& name = source->names()[task.name];
          if (task.stream == Stream::pp && name.ends_with(forward ? "_forward" : "_backward"))
            called[rank].push_back(task.bytes());
        }
      }
      std::map<std::uint32_t, std::vector<Bytes>> of_five;  // microbatches
      for (const auto& [rank, bytes] : planned) {
        for (int i = 0; i < 5; ++i) of_five[rank].insert(of_five[rank].end(), bytes.begin(), bytes.end());
      }
      EXPECT_EQ(called, of_five);
    }
  }
}

// Stage 0 has two replicas of one rank, stage 1 one rank: by hand, 1F1B of three microbatches, each message
// its bytes in picoseconds. Rank 2 sends gradients one after the other. It gets the two halves at once, but
// of broadcasts, which take both ends, one after the other.
TEST(StageMeshes, TakeTheTimeOfAReplayByHand) {
  constexpr Time kMessage = 2 * kSequence * kHidden;  // of a sequence
  const std::array<Time, 3> forward{10'000, 14'000, 9'000}, backward{21'000, 17'000, 23'000};
  for (const bool overlap : {true, false}) {
    for (const bool broadcasts : {true, false}) {
      SCOPED_TRACE(fmt::format("{} {}", overlap, broadcasts));
      Stages job{
          {{1, 2}, {1, 1}}, 1, fmt::format(", microbatches: 3, recompute: none, overlap_p2p: {}", overlap)};
      job.sequences = 2;
      job.layers = 2;
      job.parallel = fmt::format(", resharding: {{strategy: {}}}", broadcasts ? "broadcast" : "send_recv");
      const auto source = job.mixed();
      TaskPlayer player(*source);
      player.compute_time = [&](std::uint32_t rank, const Task& task) {
        const std::string& name = source->names()[task.name];
        return name == "attention_forward"    ? forward[rank]
               : name == "attention_backward" ? backward[rank]
                                              : 0;
      };
      player.transfer_time = [&](const Task& task) { return task.stream == Stream::pp ? task.bytes() : 0; };
      player.run();
      ASSERT_TRUE(player.all_done());

      // F0 F1 B0 F2 B1 B2 of the replicas, F0 B0 F1 B1 F2 B2 of rank 2. arrival[r][i]: of microbatch i's half
      // from replica r; gradient[r][i]: of its gradient there.
      std::array<std::array<Time, 3>, 2> arrival{}, gradient{};
      std::array<Time, 2> free{},
          link{};  // of replica r: when it may compute, when its last message is there
      Time free_2 = 0, sent_2 = 0, got_2 = 0;
      const auto replicas_forward = [&](std::size_t i) {
        for (std::size_t r = 0; r < 2; ++r) {
          free[r] += forward[r];
          const Time begin = std::max({link[r], free[r], broadcasts ? got_2 : 0});
          got_2 = link[r] = arrival[r][i] = begin + kMessage;
          if (!overlap) free[r] = arrival[r][i];
        }
      };
      const auto replicas_backward = [&](std::size_t i) {
        for (std::size_t r = 0; r < 2; ++r) free[r] = std::max(free[r], gradient[r][i]) + backward[r];
      };
      const auto rank_2 = [&](std::size_t i) {
        free_2 = std::max({free_2, arrival[0][i], arrival[1][i]}) + forward[2] + backward[2];
        for (std::size_t r = 0; r < 2; ++r) sent_2 = gradient[r][i] = std::max(sent_2, free_2) + kMessage;
        if (!overlap) free_2 = sent_2;
      };
      replicas_forward(0);
      replicas_forward(1);
      rank_2(0);
      replicas_backward(0);
      replicas_forward(2);
      rank_2(1);
      rank_2(2);
      replicas_backward(1);
      replicas_backward(2);
      EXPECT_EQ(player.end(), std::max({free[0], free[1], free_2, sent_2}));
    }
  }
}

// Returns a job of 32 * `scale` ranks whose stages have two layouts.
std::unique_ptr<WorkloadKind> two_layouts(unsigned scale) {
  return parse_workload(ptdp(fmt::format(
      "model: {{kind: llama, layers: 16, hidden: 1024, heads: 16, groups: 8, inner: 2816, sequence: 1024, "
      "vocabulary: 32000, tied: false}}, microbatch: 1024, microbatches: 8, parallel: {{pipeline: 4, "
      "sequence: true, stages: [{{tensor: 8, data: {0}}}, {{tensor: 4, data: {1}}}, {{tensor: 4, data: "
      "{1}}}, {{tensor: 8, data: {0}}}]}}",
      scale, 2 * scale)));
}

// Returns the processor time of this thread that making the job's tasks takes, in seconds. Other processes
// do not count.
double seconds_of_tasks(const WorkloadKind& kind, std::uint32_t ranks) {
  const auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  const double begin = now();
  EXPECT_EQ(kind.tasks(ranks)->ranks(), ranks);
  return now() - begin;
}

// Nothing grows with ranks x ranks: roles are those of the stages and what their ranks send. A job of 32
// times as many ranks takes far less than 32 * 32 times as long.
TEST(StageMeshes, OfManyRanksHaveFewRoles) {
  const auto kind = two_layouts(512);
  const double few = seconds_of_tasks(*two_layouts(16), 512);
  EXPECT_LT(seconds_of_tasks(*kind, 16'384), 300 * few);
  const Program program = parse_program(kind->compile(), "job.pb");
  EXPECT_EQ(rank_count(program), 16'384U);
  EXPECT_LE(program.roles.size(), 64U);
  EXPECT_LE(program.tables.size(), 64U);
  EXPECT_LE(program.groups.size(), 64U);
}

// ---- Runs

struct Played {
  Played(const std::string& cluster, const std::string& text) {
    const test::Directory directory;
    const std::string path = directory.path() + "/job.yaml";
    std::ofstream(path) << text;
    SimulationSetup setup;
    setup.config = parse_config(cluster, "cluster.yaml");
    setup.workload = path;
    setup.threads = 1;
    results = Simulation(std::move(setup)).run({});
    EXPECT_EQ(results.outcome, Outcome::done);
  }
  double seconds() const { return to_seconds(results.jobs.at(0).end); }
  double out_of(int host) const {
    const std::string name = fmt::format("host{}/nic0->", host);
    for (const LinkResult& link : results.links) {
      if (link.name.starts_with(name) && link.name.find("switch0") != std::string::npos)
        return static_cast<double>(link.counters.wire_bytes);
    }
    return -1;
  }
  Results results;
};

// The network delivers exactly the bytes of the tasks, on hosts with a GPU each. The test takes two
// microbatches, and the difference between a hidden size of 128 and of 64, so that credits do not count.
TEST(StageMeshesRun, MoveTheBytesOfThePlan) {
  for (const char* strategy : {"send_recv", "all_gather", "broadcast"}) {
    for (const bool sequence : {false, true}) {
      SCOPED_TRACE(fmt::format("{} {}", strategy, sequence));
      Bytes moved = 0, planned = 0;
      for (const std::int64_t hidden : {64, 128}) {
        for (const int microbatches : {3, 1}) {
          const std::string text = ptdp(fmt::format(
              "parallel: {{pipeline: 2, sequence: {}, stages: [{{tensor: 1, data: 2}}, {{tensor: 4, data: "
              "1}}], resharding: {{strategy: {}, ranks_per_host: 1}}}}, recompute: none, microbatch: 2, "
              "microbatches: {}, {}",
              sequence, strategy, microbatches, model(2, hidden)));
          const Played run("{topology: {kind: star, hosts: 6}, compute: a100_80gb}", text);
          const Bytes sign = (hidden == 128 ? 1 : -1) * (microbatches == 3 ? 1 : -1);
          moved += sign * run.results.network.bytes_delivered;
          const auto source = parse_workload(text)->tasks(6);
          for (std::uint32_t rank = 0; rank < 6; ++rank) {
            for (const Task& task : test::tasks_of(*source, rank)) {
              if (task.kind() == TaskKind::receive) planned += sign * task.bytes();
              if (task.kind() != TaskKind::collective) continue;
              const auto& group = source->group(task.group());
              const auto n = static_cast<Bytes>(group.size());
              if (group.front() != rank) continue;
              // By rings and chains.
              const bool all_reduce = task.collective().collective == CollectiveKind::all_reduce;
              planned += sign * (all_reduce ? 2 : 1) * (n - 1) * task.bytes();
            }
          }
        }
      }
      EXPECT_GT(moved, 0);
      EXPECT_EQ(moved, planned);
    }
  }
}

// Two hosts have four GPUs and a NIC each. Forward, each half of a microbatch goes to four GPUs; backward, to
// two. So send_recv takes 6 times the time in which each link carries a microbatch once, and broadcast and
// all_gather 2. AlpaComm's ratio for these is the number of receivers.
TEST(StageMeshesRun, BroadcastGainsWhatAlpaCommSays) {
  const auto run = [](const char* strategy, const char* rate) {
    return Played(
        fmt::format("{{topology: {{kind: star, hosts: 2, rate: {}, delay: 1 us}}, host: {{kind: pcie_server, "
                    "gpus: 4, nics: 1, cpus: 1, switches: 1, pcie_rate: 504 Gbps}}, compute: v100_sxm2}}",
                    rate),
        ptdp(fmt::format(
            "parallel: {{pipeline: 2, stages: [{{tensor: 2, data: 2}}, {{tensor: 4, data: 1}}], "
            "resharding: {{strategy: {}, ranks_per_host: 4}}}}, recompute: none, microbatch: 4, "
            "microbatches: 1, model: {{kind: llama, layers: 2, hidden: 1024, heads: 8, groups: 8, "
            "inner: 1024, sequence: 512, vocabulary: 1024, tied: false}}",
            strategy)));
  };
  const auto boundary = static_cast<double>(2 * 4 * 512 * 1024);
  std::map<std::string, double> seconds;  // that the links take, of 10 Gb/s
  for (const char* strategy : {"send_recv", "all_gather", "broadcast"}) {
    SCOPED_TRACE(strategy);
    const Played slow = run(strategy, "10 Gbps"), fast = run(strategy, "20 Gbps");
    const bool copies = std::string(strategy) == "send_recv";
    EXPECT_NEAR(slow.out_of(0) / boundary, copies ? 4 : 1, copies ? 0.15 : 0.05);
    EXPECT_NEAR(slow.out_of(1) / boundary, copies ? 2 : 1, copies ? 0.1 : 0.05);
    seconds[strategy] = 2 * (slow.seconds() - fast.seconds());
  }
  EXPECT_NEAR(seconds["broadcast"], 2 * boundary * 8 / 10e9, 0.1 * 2 * boundary * 8 / 10e9);
  EXPECT_NEAR(seconds["send_recv"] / seconds["broadcast"], 3, 0.3);
  EXPECT_NEAR(seconds["all_gather"] / seconds["broadcast"], 1, 0.1);
}

// ---- Refusals

TEST(StageMeshes, RefusesWhatCannotBe) {
  const auto refusal = [](const std::string& what) -> std::string {
    try {
      parse_workload(ptdp(what))->tasks(64);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  const std::string small = model(4) + ", microbatch: 4, microbatches: 4, ";
  const auto stages = [&](const std::string& list, const std::string& more = "") {
    return refusal(small + "parallel: {pipeline: 2, stages: " + list + more + "}");
  };
  EXPECT_EQ(stages("[{tensor: 2, data: 2}, {tensor: 4}]"), "accepted");
  EXPECT_THAT(
      stages("[{tensor: 2, data: 2}, {tensor: 4}]",
             ", schedule: {kind: listed, steps: [F0 F1 SF0 SF1 B0 B1 F2 B2 F3 B3, F0 F1 B0 B1 F2 B2 F3 "
             "B3]}"),
      HasSubstr("steps that communicate"));
  EXPECT_THAT(stages("[{tensor: 2}]"),
              AllOf(HasSubstr("test.yaml:1:"), HasSubstr("degrees of each of the 2 stages")));
  EXPECT_THAT(stages("{tensor: 2}"), HasSubstr("degrees of each of the 2 stages"));
  EXPECT_THAT(stages("[{tensor: 2}, {tenser: 4}]"), HasSubstr("tensor"));
  EXPECT_THAT(stages("[{tensor: 2}, {tensor: 0}]"), HasSubstr("1 to 65536"));
  EXPECT_THAT(stages("[{tensor: 2}, 4]"), HasSubstr("test.yaml:1:"));
  EXPECT_THAT(
      stages("[{data: 2}, {data: 3}]"),
      HasSubstr("the 4 sequences of a microbatch (microbatch x parallel.data) cannot be divided among 3"));
  EXPECT_THAT(stages("[{tensor: 2}, {tensor: 3}]"), HasSubstr("model.heads (8) cannot be divided by 3"));
  EXPECT_THAT(stages("[{tensor: 2}, {tensor: 4}]", ", resharding: {strategy: teleport}"),
              HasSubstr("teleport"));
  EXPECT_THAT(refusal(small + "parallel: {pipeline: 2, resharding: {strategy: broadcast}}"),
              HasSubstr("no parallel.stages"));
  EXPECT_THAT(stages("[{tensor: 2}, {tensor: 4}]", ", schedule: chimera"),
              HasSubstr("copies of the same layers in a bidirectional pipeline"));
  EXPECT_EQ(
      refusal(small + "parallel: {pipeline: 4, stages: [{tensor: 2}, {tensor: 4}, {tensor: 4}, {tensor: "
                      "2}], schedule: chimera}"),
      "accepted");
  EXPECT_THAT(
      refusal("model: {kind: llama, layers: 4, hidden: 64, heads: 8, groups: 8, inner: 96, sequence: 64, "
              "vocabulary: 128, experts: {count: 8, top_k: 2}}, parallel: {pipeline: 2, sequence: true, "
              "stages: [{tensor: 2}, {tensor: 4}]}"),
      HasSubstr("routed experts"));
}

// The place of a degree that does not fit is that of the stage's entry.
TEST(StageMeshes, AnErrorIsAtTheStage) {
  try {
    parse_workload(
        "kind: ptdp\n" + model(4) +
        "\nmicrobatch: 4\nparallel:\n  pipeline: 2\n  stages:\n    - {tensor: 2}\n    - {tensor: 3}\n");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("test.yaml:8:16"));
  }
}

}  // namespace
}  // namespace netsim::stage_meshes_test
