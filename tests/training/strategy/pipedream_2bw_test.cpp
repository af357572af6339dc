// Tests PipeDream-2BW: batches follow each other without a bubble, two versions of the weights are in use,
// and gradients are one update old.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "sim/core/errors.h"
#include "sim/training/strategy/scheduled_pipeline.h"
#include "tests/support/tasks_of.h"
#include "tests/training/strategy/played_jobs.h"
#include "tests/workload/program/small_programs.h"
#include "tests/workload/task_player.h"

namespace netsim::pipedream_2bw_test {
namespace {

using netsim::test::parse_workload;
using netsim::test::PlayedTask;
using netsim::test::TaskPlayer;
using ::testing::HasSubstr;

std::string schedule(Time batch) { return "{kind: pipedream_2bw, batch: " + std::to_string(batch) + "}"; }

// Returns the end of one iteration, whose reductions take `reduction` each.
Time end_of(Time stages, Time microbatches, Time batch, Time forward, Time backward, Time reduction) {
  return test::end_with_durations("{kind: pipeline, replicas: 2, stages: " + std::to_string(stages) +
                                      ", microbatches: " + std::to_string(microbatches) + ", forward: " +
                                      std::to_string(forward) + " ps, backward: " + std::to_string(backward) +
                                      " ps, bytes: 64 B, gradients: " + std::to_string(reduction) +
                                      " B, schedule: " + schedule(batch) + "}",
                                  static_cast<std::uint32_t>(2 * stages));
}

// Each further batch takes its own work and nothing else, whatever its updates take up to the time of a batch
// without the warm-up. Only the last update shows.
TEST(PipeDream2BW, HasNoBubbleBetweenBatches) {
  for (const Time p : {1, 2, 4, 8}) {
    for (const Time m : {p, 2 * p, 3 * p}) {
      for (const Time reduction : {10, 700}) {
        const Time forward = 700, backward = 1300, work = forward + backward;
        for (const Time batches : {1, 2, 3, 6}) {
          EXPECT_EQ(end_of(p, batches * m, m, forward, backward, reduction),
                    batches * m * work + (p - 1) * work + reduction)
              << p << " " << m << " " << batches;
        }
      }
    }
  }
  // With flushes each batch of 1F1B has a bubble of its own.
  const Time flushed = 3 * (4 + 3) * 2000, continuous = (3 * 4 + 3) * 2000;
  EXPECT_EQ(end_of(4, 12, 4, 700, 1300, 10), continuous + 10);
  EXPECT_LT(continuous, flushed);
}

// Updates that take longer than a batch bound the throughput: one stage, one update after the other.
TEST(PipeDream2BW, WaitsForTheUpdateBeforeTheLast) {
  const Time batch = 4 * 2000, reduction = 3 * batch;
  const Time six = end_of(1, 6 * 4, 4, 700, 1300, reduction),
             five = end_of(1, 5 * 4, 4, 700, 1300, reduction);
  EXPECT_EQ(six - five, reduction);
}

ScheduledPipeline plan_of(std::uint32_t stages, std::uint32_t batch, std::uint32_t microbatches) {
  return schedule_pipeline(parse_config(schedule(batch), "schedule.yaml"), ConfigNode(),
                           {stages, 1, microbatches});
}

// A batch computes with the weights that the batches before its predecessor have updated. So gradients are
// applied to weights one update newer, and a stage has two versions in use at most.
TEST(PipeDream2BW, UsesTwoVersionsOneUpdateApart) {
  for (const std::uint32_t p : {1U, 2U, 4U, 8U}) {
    for (const std::uint32_t batch : {p, p + 1, 3 * p}) {
      const ScheduledPipeline plan = plan_of(p, batch, 6 * batch);
      EXPECT_EQ(prove_pipeline(plan).refusal, "");
      std::size_t most = 0;
      for (const std::vector<PipelineStep>& steps : plan.steps) {
        std::uint32_t version = 0, updates = 0;
        std::map<std::uint32_t, std::uint32_t> in_flight;  // version by microbatch
        for (const PipelineStep& step : steps) {
          if (step.kind == PipelineStepKind::update) {
            if (step.waits) {
              version = (step.microbatch + 1) / batch;
              EXPECT_LE(version, updates);
            } else {
              EXPECT_EQ(step.microbatch + 1, ++updates * batch);
            }
            continue;
          }
          if (step.kind == PipelineStepKind::forward) {
            const std::uint32_t number = step.microbatch / batch;
            EXPECT_EQ(version, number == 0 ? 0 : number - 1);
            in_flight[step.microbatch] = version;
          }
          std::set<std::uint32_t> versions{version};
          for (const auto& [microbatch, used] : in_flight) versions.insert(used);
          most = std::max(most, versions.size());
          if (step.kind == PipelineStepKind::backward) in_flight.erase(step.microbatch);
        }
        EXPECT_EQ(updates, 6U);
      }
      EXPECT_EQ(most, p == 1 ? 1U : 2U);
      // Activations are those of 1F1B.
      EXPECT_EQ(prove_pipeline(plan).in_flight.front(), p);
    }
  }
}

std::string gpt(const std::string& more) {
  return "{kind: ptdp, model: {layers: 4, hidden: 64, heads: 4, sequence: 16, vocabulary: 128}, recompute: "
         "none, " +
         more + "}";
}

// In a training job the first forward of batch k begins behind update k - 2, and beside update k - 1.
TEST(PipeDream2BW, ComputesBesideTheLastUpdate) {
  const auto source =
      parse_workload(gpt("microbatches: 16, parallel: {pipeline: 2, data: 2, schedule: " + schedule(4) + "}"))
          ->tasks(4);
  TaskPlayer player(*source, 1);
  player.compute_time = [&](std::uint32_t, const Task& task) -> Time {
    const std::string& name = source->names()[task.name];
    return name == "optimizer" ? 700 : name == "attention_forward" ? 100 : name == "mlp_backward" ? 200 : 0;
  };
  player.transfer_time = [](const Task&) { return Time{5}; };
  player.run();
  ASSERT_TRUE(player.all_done());
  ASSERT_FALSE(player.mismatched);
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    std::vector<Time> begins, updates, update_begins;
    for (const PlayedTask& one : player.played) {
      if (one.rank != rank) continue;
      const std::string& name = source->names()[one.task.name];
      if (name == "optimizer") {
        updates.push_back(one.end);
        update_begins.push_back(one.ready);
      }
      if (name == "attention_forward") begins.push_back(one.ready);
    }
    std::sort(begins.begin(), begins.end());
    ASSERT_EQ(updates.size(), 4U);
    ASSERT_EQ(begins.size(), 32U);  // two layers of 16 microbatches
    for (std::size_t batch = 2; batch < 4; ++batch) {
      EXPECT_GE(begins[8 * batch], updates[batch - 2]);
      EXPECT_LT(begins[8 * batch], updates[batch - 1]);
    }
  }
}

TEST(PipeDream2BW, HoldsTwoVersionsOfTheWeights) {
  const auto use = [](const std::string& which, MemoryKind kind) {
    const auto source =
        parse_workload(gpt("microbatches: 8, parallel: {pipeline: 2, data: 2, schedule: " + which + "}"))
            ->tasks(4);
    return source->memory()->planned()[source->memory()->role(3)].use[kind];
  };
  for (const MemoryKind kind : {MemoryKind::gradients, MemoryKind::optimizer, MemoryKind::activations})
    EXPECT_EQ(use("pipedream_2bw", kind), use("one_f_one_b", kind));
  EXPECT_EQ(use("pipedream_2bw", MemoryKind::parameters), 2 * use("one_f_one_b", MemoryKind::parameters));
}

std::map<std::string, Bytes> bytes_of(const std::string& text, std::uint32_t ranks) {
  const auto source = parse_workload(text)->tasks(ranks);
  std::map<std::string, Bytes> all;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    for (const Task& task : test::tasks_of(*source, rank)) {
      if (is_communication(task)) all[source->names()[task.name]] += task.bytes();
    }
  }
  return all;
}

// Each batch sums its gradients, as an iteration of 1F1B with as many microbatches does.
TEST(PipeDream2BW, MovesWhatItsBatchesMove) {
  struct Product {
    std::uint32_t ranks;
    std::string parallel, more;
  };
  for (const Product& product : std::vector<Product>{
           {4, "pipeline: 2, data: 2", ""},
           {8, "tensor: 2, pipeline: 2, data: 2", ", gradient: {bucket: 20 KB}"},
           {8, "tensor: 2, sequence: true, pipeline: 2, data: 2", ", optimizer: distributed_adam"},
           {8, "tensor: 2, context: 2, context_exchange: all_gather, pipeline: 2", ""},
           {4, "tensor: 2, pipeline: 2", ", microbatch: 2, strategies: [sub_batches]"}}) {
    SCOPED_TRACE(product.parallel);
    const auto text = [&](const std::string& which, int microbatches) {
      return gpt("microbatches: " + std::to_string(microbatches) + ", parallel: {" + product.parallel +
                 ", schedule: " + which + "}" + product.more);
    };
    std::map<std::string, Bytes> one = bytes_of(text("one_f_one_b", 4), product.ranks);
    for (auto& [name, bytes] : one) bytes *= 3;
    EXPECT_EQ(bytes_of(text(schedule(4), 12), product.ranks), one);
    test::expect_done_in_any_order(text(schedule(4), 12), product.ranks);
  }
}

TEST(PipeDream2BW, RefusesWhatNeedsAFlush) {
  const auto refusal = [](const std::string& more) -> std::string {
    try {
      parse_workload(gpt(more));
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(refusal("microbatches: 4, parallel: {pipeline: 4, schedule: " + schedule(2) + "}"),
              HasSubstr("a third version of the weights"));
  EXPECT_THAT(refusal("microbatches: 6, parallel: {pipeline: 4, schedule: pipedream_2bw}"),
              HasSubstr("a multiple of its batch of 4: 6 are not"));
  EXPECT_THAT(refusal("microbatches: 4, parallel: {pipeline: 2, virtual_stages: 2, schedule: pipedream_2bw}"),
              HasSubstr("virtual_stages has to be 1"));
  EXPECT_THAT(
      refusal("microbatches: 4, gradient: {bucket: 1 MB, overlap: true}, parallel: {pipeline: 2, data: "
              "2, schedule: pipedream_2bw}"),
      HasSubstr("gradient.overlap has to be false"));
  EXPECT_THAT(refusal("microbatches: 4, offload: {optimizer: 1}, parallel: {pipeline: 2, schedule: "
                      "pipedream_2bw}"),
              HasSubstr("no optimizer of the hosts"));
  EXPECT_THAT(
      refusal("microbatches: 4, optimizer: distributed_adam, overlap_parameter_gather: true, parallel: "
              "{pipeline: 2, data: 2, schedule: pipedream_2bw}"),
      HasSubstr("overlap_parameter_gather"));
}

}  // namespace
}  // namespace netsim::pipedream_2bw_test
