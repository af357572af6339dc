// Tests offload to the hosts' memory. The bytes that cross PCIe are exactly those of gradients, parameters
// and activations. Times are exact, alone and with shared links or CPUs. The GPU's memory drops by exactly
// the offloaded bytes. Impossible combinations are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <numeric>

#include "sim/core/errors.h"
#include "sim/simulation/simulation.h"
#include "sim/workload/program/program_file.h"
#include "tests/report/fixtures.h"
#include "tests/support/memory_of.h"
#include "tests/support/tasks_of.h"
#include "tests/workload/program/small_programs.h"

namespace netsim::offload_test {
namespace {

using netsim::test::fixed_work;
using netsim::test::parse_workload;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::int64_t kS = 32, kH = 64, kA = 4, kV = 128, kLayers = 4;
constexpr std::int64_t kLayer = 12 * kH * kH + 13 * kH;
constexpr std::int64_t kParameters = kLayers * kLayer + kV * kH + kS * kH + 2 * kH;

std::string gpt(const std::string& more) {
  return fmt::format(
      "{{kind: ptdp, model: {{layers: {}, hidden: {}, heads: {}, sequence: {}, vocabulary: {}}}, {}}}",
      kLayers, kH, kA, kS, kV, more);
}
std::unique_ptr<TaskSource> job(const std::string& more, std::uint32_t gpus = 1) {
  return parse_workload(gpt(more))->tasks(gpus);
}
// Bytes of a rank's copies, by name.
std::map<std::string, Bytes> copies(const TaskSource& source, std::uint32_t rank = 0) {
  std::map<std::string, Bytes> bytes;
  for (const Task& task : test::tasks_of(source, rank)) {
    if (!is_copy(task.kind())) continue;
    EXPECT_EQ(task.stream, Stream::offload);
    bytes[source.names()[task.name]] += task.bytes();
  }
  return bytes;
}
Time cpu_time(const TaskSource& source, const std::string& name) {
  Time time = 0;
  for (const Task& task : test::tasks_of(source, 0)) {
    if (task.kind() == TaskKind::host_compute && source.names()[task.name] == name)
      time += source.works()[task.work()].kernels.front().duration;
  }
  return time;
}

// ---- Volumes

TEST(Offload, MovesGradientsOutAndParametersIn) {
  using Expected = std::map<std::string, Bytes>;
  const auto expect = [](const std::string& more, std::uint32_t gpus, std::int64_t parameters,
                         Bytes gradient) {
    SCOPED_TRACE(more);
    EXPECT_EQ(copies(*job(more, gpus)),
              (Expected{{"gradient_offload", gradient * parameters}, {"parameter_load", 2 * parameters}}));
  };
  expect("offload: {optimizer: 1}", 1, kParameters, 2);
  expect("offload: {optimizer: 1, bucket: 1 KB}", 1, kParameters, 2);
  expect("offload: {optimizer: 1}, gradient: {dtype: fp32}", 1, kParameters, 4);
  expect("offload: {optimizer: 0.5}", 1, kParameters / 2, 2);
  expect("offload: {optimizer: 1}, microbatches: 3", 1, kParameters, 2);
  expect("offload: {optimizer: 1}, parallel: {data: 4}, optimizer: distributed_adam", 4, kParameters / 4, 2);
  const std::string sharded = "parallel: {data: 4}, optimizer: distributed_adam, sharding: {what: ";
  expect("offload: {optimizer: 1}, " + sharded + "gradients}", 4, kParameters / 4, 2);
  expect("offload: {optimizer: 1, gradients: true}, " + sharded + "gradients}", 4, kParameters / 4, 2);
  expect("offload: {optimizer: 1, gradients: true}, " + sharded + "parameters}", 4, kParameters / 4, 2);
  // Each microbatch's gradients leave when they are computed.
  expect("offload: {optimizer: 1, gradients: true}", 1, kParameters, 2);
  EXPECT_EQ(copies(*job("offload: {optimizer: 1, gradients: true}, microbatches: 3")),
            (Expected{{"gradient_offload", 3 * 2 * kParameters}, {"parameter_load", 2 * kParameters}}));
}

// Experts have copies of their own.
TEST(Offload, CountsExpertsAsTheyAreDivided) {
  const auto source =
      parse_workload(
          "{kind: ptdp, model: {kind: llama, layers: 2, hidden: 64, heads: 4, groups: 4, inner: "
          "96, sequence: 32, vocabulary: 128, experts: {count: 4, top_k: 2, inner: 96}}, "
          "parallel: {data: 4, expert: 4}, optimizer: distributed_adam, offload: {optimizer: "
          "1}}")
          ->tasks(4);
  const Bytes states = source->memory()->resident(0)[MemoryKind::host] / (12 + 2);
  EXPECT_EQ(copies(*source).at("gradient_offload"), 2 * states);
  EXPECT_EQ(copies(*source).at("parameter_load"), 2 * states);
  EXPECT_GT(states, 2 * 3 * 64 * 96);  // the experts of a rank, whole, and its part of the rest
}

// ZeRO-Offload's CPU-Adam: 28 bytes of the memory a parameter.
TEST(Offload, UpdatesAtTheCpusMemoryBandwidth) {
  const auto source = job("offload: {optimizer: 1, cpu_bandwidth: 28 GB/s, bucket: 0}");
  EXPECT_EQ(cpu_time(*source, "cpu_adam"), kParameters * kNanosecond);
  const auto sums =
      job("offload: {optimizer: 1, gradients: true, cpu_bandwidth: 6 GB/s, bucket: 0}, microbatches: 2");
  EXPECT_NEAR(static_cast<double>(cpu_time(*sums, "gradient_sum")),
              static_cast<double>(2 * kParameters * kNanosecond), 100.0);
}

TEST(Offload, MovesWhatForwardsKeepOutAndBack) {
  for (const char* recompute : {"none", "selective", "full"}) {
    SCOPED_TRACE(recompute);
    const std::string plain = fmt::format("recompute: {}, microbatch: 2", recompute);
    const Bytes whole = test::most_of(*job(plain), 0, MemoryKind::activations);
    // Half of the layers, the first ones, are offloaded. Memory is highest at the end of the forward.
    const auto half = job(plain + ", offload: {activations: 0.5}");
    const std::map<std::string, Bytes> moved = copies(*half);
    EXPECT_EQ(moved.at("activation_offload"), moved.at("activation_load"));
    EXPECT_EQ(whole - test::most_of(*half, 0, MemoryKind::activations), moved.at("activation_offload"));
    EXPECT_EQ(test::most_of(*half, 0, MemoryKind::host), moved.at("activation_offload"));
    if (std::string(recompute) == "full") {
      EXPECT_EQ(moved.at("activation_offload"), kLayers / 2 * 2 * kS * 2 * kH);  // their inputs
    }
    const auto again = copies(*job(plain + ", offload: {activations: 0.5}, microbatches: 3"));
    EXPECT_EQ(again.at("activation_load"), 3 * moved.at("activation_load"));
  }
}

// Also where a stage has several microbatches in flight, and where a step is a forward and a backward at
// once.
TEST(Offload, OfActivationsWorksInPipelines) {
  for (const char* parallel :
       {"{pipeline: 2}", "{pipeline: 2, virtual_stages: 2}", "{pipeline: 2, schedule: zb_h1}",
        "{pipeline: 2, virtual_stages: 2, schedule: dual_pipe_v}"}) {
    SCOPED_TRACE(parallel);
    const auto source =
        job(fmt::format("parallel: {}, microbatches: 4, offload: {{activations: 1}}", parallel), 2);
    for (const std::uint32_t rank : {0U, 1U}) {
      const auto moved = copies(*source, rank);
      EXPECT_EQ(moved.at("activation_offload"), 4 * kLayers / 2 * kS * 2 * kH);
      EXPECT_EQ(moved.at("activation_load"), moved.at("activation_offload"));
      EXPECT_GT(test::most_of(*source, rank, MemoryKind::host), 0);
    }
  }
}

// ---- Memory

TEST(Offload, DropsStatesAndGradientsFromTheGpu) {
  const auto use = [](const std::string& more) { return job(more)->memory()->resident(0); };
  const MemoryUse plain = use("optimizer: adam"), half = use("offload: {optimizer: 0.5}"),
                  all = use("offload: {optimizer: 1, gradients: true}");
  EXPECT_EQ(plain[MemoryKind::host], 0);
  const std::int64_t away = kParameters / 2;
  EXPECT_EQ(plain.total() - half.total(), 12 * away);
  EXPECT_EQ(half[MemoryKind::host], 14 * away);
  EXPECT_EQ(plain.total() - all.total(), 14 * kParameters);
  EXPECT_EQ(all[MemoryKind::host], 14 * kParameters);
  EXPECT_EQ(all[MemoryKind::parameters], 2 * kParameters);
  EXPECT_EQ(all[MemoryKind::gradients], 0);
  // A layer's are there until they have left.
  const auto source = job("offload: {optimizer: 1, gradients: true}");
  EXPECT_EQ(test::most_of(*source, 0, MemoryKind::gradients), 2 * kLayer);
  EXPECT_THAT(all.text(), HasSubstr("; host "));
}

TEST(Offload, SurvivesAFile) {
  const auto kind =
      parse_workload(gpt("offload: {optimizer: 1, gradients: true, activations: 1}, microbatches: 2"));
  const auto direct = kind->tasks(1);
  const auto read = make_role_program_source(parse_program(kind->compile(), "job.pb"), "job.pb");
  const auto a = test::tasks_of(*direct, 0), b = test::tasks_of(*read, 0);
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].kind(), b[i].kind());
    EXPECT_EQ(a[i].stream, b[i].stream);
    EXPECT_EQ(a[i].bytes(), b[i].bytes());
  }
  EXPECT_TRUE(read->uses_hosts());
  EXPECT_FALSE(job("optimizer: adam")->uses_hosts());
}

// ---- Runs

constexpr const char* kServer =
    "topology: {kind: star, hosts: 8, rate: 100 Gbps, delay: 1 us}, host: pcie_server";
// Figures of pcie_server: PCIe Gen4 x16 without packet overhead, half of 300 ns a link, and pieces of 16 KiB.
constexpr BitRate kPcie = 252 * kGbps * 256 / 280;
constexpr Time kHop = 150 * kNanosecond;
constexpr Bytes kPiece = 16 * kKibibyte;

struct Written {
  explicit Written(const std::string& yaml) : path(directory.path() + "/job.yaml") { write(yaml); }
  explicit Written(const Program& program) : path(directory.path() + "/job.pb") {
    write(serialize_program(program));
  }
  void write(const std::string& text) const { std::ofstream(path, std::ios::binary) << text; }
  Results run(const std::string& config = std::string(kServer) + ", compute: a100_80gb") const {
    SimulationSetup setup;
    setup.config = parse_config("{" + config + "}", "cluster.yaml");
    setup.workload = path;
    setup.threads = 1;
    return Simulation(std::move(setup)).run({});
  }
  std::string refusal(const std::string& config) const {
    try {
      run(config);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  }
  test::Directory directory;
  std::string path;
};

Bytes wire_bytes(const Results& results, const std::string& link) {
  const auto at = std::find_if(results.links.begin(), results.links.end(),
                               [&](const LinkResult& one) { return one.name == link; });
  EXPECT_NE(at, results.links.end()) << link;
  return at == results.links.end() ? 0 : at->counters.wire_bytes;
}

ProgramOp copy_op(ProgramBuilder& builder, TaskKind kind, Bytes bytes, std::uint32_t queue = 0) {
  ProgramOp op;
  op.kind = kind;
  op.stream = Stream::offload;
  op.queue = queue;
  op.bytes = bytes;
  op.name = builder.name("copy");
  return op;
}
// Each rank does the same.
Program ranks_that(std::uint32_t ranks, const std::function<void(ProgramBuilder&, BlockBuilder&)>& act) {
  ProgramBuilder builder("copies");
  builder.axis("dp", ranks);
  BlockBuilder main(builder, "rank");
  act(builder, main);
  builder.role({"rank", {}, main.finish()});
  return builder.finish();
}
Time jct(const Results& results) { return results.jobs.at(0).end; }

// Pieces one after the other over two links of one rate.
TEST(OffloadRun, ACopyTakesWhatItsLinksTake) {
  constexpr std::int64_t kPieces = 1000;
  const Time piece = transmission_time(kPiece, kPcie);
  for (const TaskKind kind : {TaskKind::copy_to_host, TaskKind::copy_from_host}) {
    const Written one(ranks_that(1, [kind](ProgramBuilder& builder, BlockBuilder& main) {
      main.add(copy_op(builder, kind, kPieces * kPiece), {});
    }));
    const Results results = one.run();
    EXPECT_EQ(jct(results), (kPieces + 1) * piece + 2 * kHop);
    const bool out = kind == TaskKind::copy_to_host;
    EXPECT_EQ(wire_bytes(results, "host0/gpu0->host0/pcie0"), out ? kPieces * kPiece : 0);
    EXPECT_EQ(wire_bytes(results, "host0/pcie0->host0/cpu0"), out ? kPieces * kPiece : 0);
    EXPECT_EQ(wire_bytes(results, "host0/cpu0->host0/pcie0"), out ? 0 : kPieces * kPiece);
    EXPECT_EQ(wire_bytes(results, "host0/pcie0->host0/gpu0"), out ? 0 : kPieces * kPiece);
    const RankTimes& times = results.jobs[0].rank_times.at(0);
    EXPECT_EQ(times.exposed_by[static_cast<std::size_t>(Stream::offload)], jct(results));
  }
}

// Links have both directions; two GPUs share the way from their switch to the CPU, four GPUs have two.
TEST(OffloadRun, CopiesShareTheWayToTheCpu) {
  constexpr std::int64_t kPieces = 500;
  const Time piece = transmission_time(kPiece, kPcie);
  const auto both = [](ProgramBuilder& builder, BlockBuilder& main) {
    main.add(copy_op(builder, TaskKind::copy_to_host, kPieces * kPiece, 0), {});
    main.add(copy_op(builder, TaskKind::copy_from_host, kPieces * kPiece, 1), {});
  };
  EXPECT_EQ(jct(Written(ranks_that(1, both)).run()), (kPieces + 1) * piece + 2 * kHop);
  const auto out = [](ProgramBuilder& builder, BlockBuilder& main) {
    main.add(copy_op(builder, TaskKind::copy_to_host, kPieces * kPiece), {});
  };
  for (const std::uint32_t ranks : {2U, 4U})
    EXPECT_EQ(jct(Written(ranks_that(ranks, out)).run()), (2 * kPieces + 1) * piece + 2 * kHop);
}

// Data for another host leaves a GPU by the same link as its copies to the host. The two take turns, packet
// by piece.
TEST(OffloadRun, CopiesShareTheGpusLinkWithItsNic) {
  constexpr Bytes kBytes = 64 * kMebibyte;
  const auto program = [](bool copies, bool sends) {
    ProgramBuilder builder("both");
    const std::uint32_t axis = builder.axis("dp", 16);
    BlockBuilder first(builder, "first"), other(builder, "other"), last(builder, "last");
    ProgramOp message;
    message.bytes = kBytes;
    message.raw = true;
    message.stream = Stream::dp;
    message.name = builder.name("message");
    if (copies) first.add(copy_op(builder, TaskKind::copy_to_host, 2 * kBytes), {});
    if (sends) {
      message.kind = TaskKind::send;
      message.peer = {PeerExpression::Kind::rank, false, 0, 0, 15};
      first.add(message, {});
      message.kind = TaskKind::receive;
      message.peer.rank = 0;
      last.add(message, {});
    } else {
      last.compute(fixed_work("nothing", 1));
    }
    other.compute(fixed_work("nothing", 1));
    builder.role({"first", {{axis, {0}}}, first.finish()});
    builder.role({"last", {{axis, {15}}}, last.finish()});
    std::vector<std::uint32_t> others(14);
    std::iota(others.begin(), others.end(), 1U);
    builder.role({"other", {{axis, others}}, other.finish()});
    return builder.finish();
  };
  const std::string config =
      "topology: {kind: star, hosts: 8, rate: 100 Gbps, delay: 1 us}, host: {kind: pcie_server, pcie_piece: "
      "4 "
      "KiB}";
  const Results copy = Written(program(true, false)).run(config),
                message = Written(program(false, true)).run(config),
                both = Written(program(true, true)).run(config);
  EXPECT_EQ(wire_bytes(both, "host0/gpu0->host0/pcie0"),
            wire_bytes(copy, "host0/gpu0->host0/pcie0") + wire_bytes(message, "host0/gpu0->host0/pcie0"));
  const Bytes all = wire_bytes(both, "host0/gpu0->host0/pcie0");
  EXPECT_GT(jct(both), std::max(jct(copy), jct(message)));
  EXPECT_GE(jct(both), transmission_time(all, kPcie));
  EXPECT_LT(jct(both), transmission_time(all, kPcie) * 21 / 20);
}

TEST(OffloadRun, RanksOfAHostShareItsCpus) {
  const auto act = [](ProgramBuilder& builder, BlockBuilder& main) {
    ProgramOp op;
    op.kind = TaskKind::host_compute;
    op.stream = Stream::offload;
    op.work = builder.work(fixed_work("update", 10 * kMicrosecond));
    op.name = builder.name("update");
    main.add(op, {});
    main.compute(fixed_work("beside", 10 * kMicrosecond));  // of the GPU's own
  };
  const auto time = [&](std::uint32_t ranks, const char* placement) {
    const Results results =
        Written(ranks_that(ranks, act))
            .run(fmt::format("{}, compute: a100_80gb, placement: {}", kServer, placement));
    EXPECT_EQ(results.jobs[0].rank_times.at(0).compute, 10 * kMicrosecond);
    return jct(results);
  };
  EXPECT_EQ(time(1, "packed"), 10 * kMicrosecond);
  EXPECT_EQ(time(4, "packed"), 40 * kMicrosecond);
  EXPECT_EQ(time(2, "spread"), 10 * kMicrosecond);
}

// After the backward, gradients go out, the CPUs step, and parameters come in, one after the other. Only the
// exposed part makes the iteration longer.
TEST(OffloadRun, AStepTakesWhatItsPartsTake) {
  const Results plain = Written(gpt("optimizer: none")).run(),
                offloaded = Written(gpt("offload: {optimizer: 1, bucket: 0, cpu_bandwidth: 28 GB/s}")).run();
  const Time piece = transmission_time(kPiece, kPcie);
  const Bytes bytes = 2 * kParameters, whole = bytes / kPiece, rest = bytes % kPiece;
  ASSERT_GT(rest, 0);
  // The last piece, which is shorter, comes to the second link while that has the one before, and waits.
  const Time copy = (whole + 1) * piece + transmission_time(rest, kPcie) + 2 * kHop;
  const Time more = 2 * copy + kParameters * kNanosecond;
  EXPECT_EQ(jct(offloaded) - jct(plain), more);
  const RankTimes& times = offloaded.jobs[0].rank_times.at(0);
  EXPECT_EQ(times.exposed_by[static_cast<std::size_t>(Stream::offload)], more);
  EXPECT_EQ(times.compute, jct(plain));
  EXPECT_EQ(wire_bytes(offloaded, "host0/gpu0->host0/pcie0"), bytes);
  EXPECT_EQ(wire_bytes(offloaded, "host0/pcie0->host0/gpu0"), bytes);
  EXPECT_EQ(offloaded.jobs[0].memory->host, 14 * kParameters);
}

// Four ranks that divide the optimizer: the counters of each GPU's link have its part.
TEST(OffloadRun, BytesAreThoseOfTheCounters) {
  const Results results = Written(gpt("parallel: {data: 4}, optimizer: distributed_adam, sharding: {what: "
                                      "gradients}, offload: {optimizer: 1, gradients: true, activations: 1}, "
                                      "microbatches: 2"))
                              .run(
                                  "topology: {kind: star, hosts: 8, rate: 100 Gbps}, host: {kind: dgx_a100, "
                                  "cpus: 2}");
  const Bytes activations = 2 * kLayers * kS * 2 * kH;  // two microbatches' inputs of layers
  for (int gpu = 0; gpu < 4; ++gpu) {
    const std::string to = fmt::format("host0/gpu{}->host0/pcie{}", gpu, gpu),
                      from = fmt::format("host0/pcie{}->host0/gpu{}", gpu, gpu);
    EXPECT_EQ(wire_bytes(results, to), 2 * 2 * kParameters / 4 + activations);
    EXPECT_EQ(wire_bytes(results, from), 2 * kParameters / 4 + activations);
  }
}

TEST(OffloadRun, MakesAPlanFit) {
  const std::string model = "optimizer: adam, recompute: none, microbatch: 16";
  const Bytes needs = Written(gpt(model)).run().jobs[0].memory->use.total();
  const std::string less =
      fmt::format("{}, compute: {{kind: a100_80gb, memory: {} B}}", kServer, needs * 9 / 10);
  EXPECT_THAT(Written(gpt(model)).refusal(less), HasSubstr("does not fit"));
  EXPECT_EQ(Written(gpt(model + ", offload: {optimizer: 1}")).refusal(less), "accepted");
  EXPECT_EQ(Written(gpt(model + ", offload: {activations: 1}")).refusal(less), "accepted");
}

// Critical paths include copies, and still add up to the iteration.
TEST(OffloadRun, IsOnCriticalPaths) {
  const Results results =
      Written(gpt("offload: {optimizer: 1, bucket: 0}"))
          .run(std::string(kServer) + ", compute: a100_80gb, output: {critical_path: true}");
  const PathSummary& path = results.jobs[0].paths.at(0);
  const Time offload = path.communication[static_cast<std::size_t>(Stream::offload)];
  EXPECT_EQ(path.compute + path.held + offload, jct(results));
  EXPECT_GT(path.transmission, 0);
  EXPECT_EQ(offload, results.jobs[0].rank_times.at(0).exposed_by[static_cast<std::size_t>(Stream::offload)]);
}

TEST(OffloadRun, NeedsAHostWithACpu) {
  EXPECT_THAT(
      Written(gpt("offload: {optimizer: 1}")).refusal("topology: {kind: star, hosts: 8}, host: dgx_h100"),
      AllOf(HasSubstr("rank 0 offloads to its host's memory"), HasSubstr("dgx_h100 with cpus")));
}

TEST(Offload, RefusesWhatCannotBe) {
  const auto refusal = [](const std::string& more) -> std::string {
    try {
      job(more, 8);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(refusal("offload: {optimizer: 1.5}"), AllOf(HasSubstr("test.yaml:1:"), HasSubstr("0 to 1")));
  EXPECT_THAT(refusal("offload: {optimiser: 1}"), HasSubstr("optimizer"));
  EXPECT_THAT(refusal("offload: {optimizer: 1}, optimizer: none"), HasSubstr("no optimizer to offload"));
  EXPECT_THAT(refusal("offload: {gradients: true}"), HasSubstr("has to be more than 0"));
  EXPECT_THAT(refusal("offload: {optimizer: 1, gradients: true}, parallel: {data: 2}"),
              HasSubstr("sharding.what has to be gradients or parameters"));
  EXPECT_THAT(refusal("offload: {optimizer: 1, gradients: true}, parallel: {tensor: 2, sequence: true}"),
              HasSubstr("gradients of norms"));
  EXPECT_THAT(refusal("offload: {optimizer: 1, gradients: true}, parallel: {pipeline: 2}, microbatches: 2"),
              HasSubstr("share an embedding"));
  EXPECT_THAT(refusal("offload: {optimizer: 1}, parallel: {data: 4, servers: 2}"),
              HasSubstr("leave parallel.servers out"));
  EXPECT_THAT(
      refusal("offload: {activations: 1, ahead: 2}, parallel: {data: 4}, optimizer: distributed_adam, "
              "sharding: {what: parameters}"),
      HasSubstr("has to be the same"));
}

}  // namespace
}  // namespace netsim::offload_test
