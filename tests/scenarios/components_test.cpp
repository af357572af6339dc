// Tests that every component has a shipped configuration, and that the ones for collectives and pipelines
// run.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "sim/core/registry.h"
#include "sim/report/result_sink.h"
#include "sim/simulation/simulation.h"
#include "tests/support/paths.h"
#include "tests/support/test_size.h"

namespace netsim::components_test {
namespace {

const std::string kConfigs = source_directory() + "/configs/";

struct Case {
  const char* config;
  const char* workload;
  std::vector<std::string> smaller = {};  // assignments that make it shorter, outside full runs
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.config << " " << c.workload; }

class ShippedConfigs : public ::testing::TestWithParam<Case> {};

TEST_P(ShippedConfigs, Run) {
  SimulationSetup setup;
  setup.config = load_config(kConfigs + GetParam().config);
  setup.workload = kConfigs + GetParam().workload;
  if (!test::full_size()) setup.workload_assignments = GetParam().smaller;
  const Results results = Simulation(std::move(setup)).run({});
  EXPECT_EQ(results.outcome, Outcome::done);
  EXPECT_EQ(results.jobs.back().tasks_done, results.jobs.back().tasks_total);
  EXPECT_GT(results.simulated, 0);
}

const std::vector<std::string> kShort = {"microbatches=2", "model.sequence=128", "model.hidden=512",
                                         "model.vocabulary=1024"};
const std::vector<std::string> kFewBytes = {"bytes=1 MB", "repeat=1"};
const std::vector<std::string> kFewRanks = {"bytes=1 MB", "repeat=1", "ranks=32"};
const std::vector<std::string> kSmallGradients = {"scale.bytes=0.02", "iterations=2"};
const std::vector<std::string> kShortLayers = {"model.sequence=128"};
const std::vector<std::string> kShortGpt = {"model.sequence=128", "model.vocabulary=1024"};
const std::vector<std::string> kFewIterations = {"iterations=2"};

INSTANTIATE_TEST_SUITE_P(
    Collectives, ShippedConfigs,
    ::testing::Values(Case{"collectives/ring.yaml", "collectives/all_reduce.yaml"},
                      Case{"collectives/ring.yaml", "collectives/all_to_all.yaml"},
                      Case{"collectives/ring.yaml", "collectives/broadcast.yaml"},
                      Case{"collectives/ring.yaml", "collectives/reduce.yaml"},
                      Case{"collectives/tree.yaml", "collectives/all_reduce.yaml"},
                      Case{"collectives/line.yaml", "collectives/broadcast.yaml"},
                      Case{"collectives/binary_tree.yaml", "collectives/broadcast.yaml"},
                      Case{"collectives/as_configured.yaml", "collectives/all_reduce.yaml"},
                      Case{"collectives/bidirectional_ring.yaml", "collectives/all_reduce.yaml"},
                      Case{"collectives/binomial_tree.yaml", "collectives/gather.yaml"},
                      Case{"collectives/binomial_tree.yaml", "collectives/scatter.yaml"},
                      Case{"collectives/blueconnect.yaml", "collectives/all_reduce.yaml"},
                      Case{"collectives/blueconnect_rails.yaml", "collectives/all_reduce.yaml"},
                      Case{"collectives/bruck.yaml", "collectives/all_gather.yaml"},
                      Case{"collectives/bruck.yaml", "collectives/all_to_all.yaml"},
                      Case{"collectives/camdoop.yaml", "collectives/reduce.yaml"},
                      Case{"collectives/chained_trees.yaml", "collectives/all_reduce.yaml"},
                      Case{"collectives/choices.yaml", "collectives/all_reduce.yaml"},
                      Case{"collectives/collnet_chain.yaml", "collectives/all_reduce.yaml"},
                      Case{"collectives/direct.yaml", "collectives/all_reduce.yaml"},
                      Case{"collectives/direct.yaml", "collectives/all_to_all.yaml"},
                      Case{"collectives/direct.yaml", "collectives/gather.yaml"},
                      Case{"collectives/direct.yaml", "collectives/scatter.yaml"},
                      Case{"collectives/halving_doubling.yaml", "collectives/all_reduce.yaml"},
                      Case{"collectives/fpisa.yaml", "collectives/all_reduce.yaml"},
                      Case{"collectives/hierarchical.yaml", "collectives/all_reduce.yaml"},
                      Case{"collectives/msccl.yaml", "collectives/all_reduce.yaml"},
                      Case{"collectives/multi_ring.yaml", "collectives/all_reduce.yaml"},
                      Case{"collectives/nccl_collnet.yaml", "collectives/all_reduce.yaml"},
                      Case{"collectives/nccl_graph.yaml", "collectives/all_reduce.yaml"},
                      Case{"collectives/nccl_p2p.yaml", "collectives/all_to_all.yaml"},
                      Case{"collectives/pat.yaml", "collectives/all_gather.yaml"},
                      Case{"collectives/recursive_doubling.yaml", "collectives/all_reduce.yaml"},
                      Case{"collectives/ring.yaml", "collectives/grouped.yaml"},
                      Case{"collectives/sccl.yaml", "collectives/all_gather.yaml"},
                      Case{"collectives/sharp.yaml", "collectives/all_gather.yaml"},
                      Case{"collectives/netagg.yaml", "collectives/netagg_reduce.yaml", kFewBytes},
                      Case{"collectives/netagg_leaf_spine.yaml", "collectives/netagg_reduce.yaml", kFewBytes},
                      Case{"collectives/netreduce.yaml", "collectives/all_reduce.yaml"},
                      Case{"collectives/switchagg.yaml", "collectives/all_reduce.yaml"},
                      Case{"collectives/switchml.yaml", "collectives/all_reduce.yaml"},
                      Case{"collectives/tenants.yaml", "collectives/tenants_jobs.yaml"},
                      Case{"collectives/sharp.yaml", "collectives/broadcast.yaml"},
                      Case{"collectives/swing.yaml", "collectives/all_reduce.yaml"},
                      Case{"collectives/themis.yaml", "collectives/all_reduce.yaml"},
                      Case{"collectives/three_step.yaml", "collectives/all_to_all.yaml"},
                      Case{"collectives/torus_2d.yaml", "collectives/all_reduce.yaml"},
                      Case{"collectives/torus_bucket.yaml", "collectives/all_reduce.yaml"},
                      Case{"collectives/two_step.yaml", "collectives/all_to_all.yaml"}));
INSTANTIATE_TEST_SUITE_P(
    Hosts, ShippedConfigs,
    ::testing::Values(Case{"topologies/aws_p4de.yaml", "collectives/all_reduce.yaml", kFewBytes},
                      Case{"topologies/dgx_1.yaml", "collectives/all_reduce.yaml", kFewBytes},
                      Case{"topologies/dgx_1v.yaml", "collectives/all_reduce.yaml", kFewBytes},
                      Case{"topologies/dgx_2.yaml", "collectives/all_reduce.yaml", kFewBytes},
                      Case{"topologies/dgx_a100.yaml", "collectives/all_reduce.yaml", kFewRanks},
                      Case{"topologies/dgx_b200.yaml", "collectives/all_reduce.yaml", kFewBytes},
                      Case{"topologies/dgx_h100.yaml", "collectives/all_reduce.yaml", kFewBytes},
                      Case{"topologies/dgx_h200.yaml", "collectives/all_reduce.yaml", kFewBytes},
                      Case{"topologies/full_mesh.yaml", "collectives/all_reduce.yaml", kFewBytes},
                      Case{"topologies/gb200.yaml", "collectives/all_reduce.yaml", kFewRanks},
                      Case{"topologies/mixed.yaml", "collectives/all_reduce.yaml", kFewBytes},
                      Case{"topologies/nccl_xml.yaml", "collectives/all_reduce.yaml", kFewBytes},
                      Case{"topologies/pcie_server.yaml", "collectives/all_reduce.yaml", kFewBytes},
                      Case{"topologies/single_nic.yaml", "collectives/all_reduce.yaml", kFewBytes},
                      Case{"topologies/storage_server.yaml", "collectives/all_reduce.yaml", kFewBytes},
                      Case{"topologies/tpu_v4.yaml", "collectives/all_reduce.yaml", kFewBytes},
                      Case{"topologies/two_fabrics.yaml", "collectives/all_reduce.yaml", kFewBytes}));
INSTANTIATE_TEST_SUITE_P(
    Pipelines, ShippedConfigs,
    ::testing::Values(Case{"pipeline/ideal.yaml", "pipeline/breadth_first.yaml"},
                      Case{"pipeline/ideal.yaml", "pipeline/chimera.yaml"},
                      Case{"pipeline/ideal.yaml", "pipeline/depth_first.yaml"},
                      Case{"pipeline/ideal.yaml", "pipeline/dual_pipe.yaml"},
                      Case{"pipeline/ideal.yaml", "pipeline/dual_pipe_v.yaml"},
                      Case{"pipeline/ideal.yaml", "pipeline/eager_1f1b.yaml"},
                      Case{"pipeline/ideal.yaml", "pipeline/fold3d.yaml"},
                      Case{"pipeline/ideal.yaml", "pipeline/forward_only.yaml"},
                      Case{"pipeline/ideal.yaml", "pipeline/gpipe.yaml"},
                      Case{"pipeline/ideal.yaml", "pipeline/interleaved.yaml"},
                      Case{"pipeline/ideal.yaml", "pipeline/listed.yaml"},
                      Case{"pipeline/ideal.yaml", "pipeline/one_f_one_b.yaml"},
                      Case{"pipeline/ideal.yaml", "pipeline/pipedream_2bw.yaml"},
                      Case{"pipeline/ideal.yaml", "pipeline/zb_h1.yaml"},
                      Case{"pipeline/ideal.yaml", "pipeline/zb_h2.yaml"},
                      Case{"pipeline/ideal.yaml", "pipeline/zb_v.yaml"},
                      Case{"pipeline/accelerator.yaml", "pipeline/communication.yaml"},
                      Case{"pipeline/accelerator.yaml", "pipeline/small_gpt_chimera.yaml", kShortGpt},
                      Case{"pipeline/accelerator.yaml", "workloads/small_gpt_ptdp.yaml", kShort},
                      Case{"compute/a100_40gb.yaml", "workloads/small_gpt_ptdp.yaml", kShort},
                      Case{"compute/failures.yaml", "workloads/small_gpt_checkpoints.yaml"},
                      Case{"compute/measured.yaml", "workloads/small_gpt_ptdp.yaml", kShort},
                      Case{"compute/stragglers.yaml", "workloads/small_gpt_ptdp.yaml", kShort},
                      Case{"topologies/dgx_h100.yaml", "workloads/llama_3_70b_fp8.yaml", kShortLayers},
                      Case{"topologies/dgx_h100.yaml", "workloads/small_llama_fp8_parameters.yaml",
                           kShortLayers},
                      Case{"pipeline/accelerator.yaml", "pipeline/small_gpt_dual_pipe.yaml", kShortGpt},
                      Case{"topologies/two_fabrics.yaml", "workloads/small_gpt_checkpoints.yaml"},
                      Case{"two_dgx.yaml", "workloads/small_moe_ptdp.yaml", kShortLayers},
                      Case{"two_dgx.yaml", "workloads/small_moe_dispatch.yaml", kShortLayers},
                      Case{"collectives/deepep.yaml", "workloads/small_moe_dispatch.yaml", kShortLayers},
                      Case{"two_dgx.yaml", "workloads/small_moe_fetch.yaml", kShortLayers},
                      Case{"two_dgx.yaml", "workloads/small_moe_counts.yaml", kShortLayers},
                      Case{"two_dgx.yaml", "workloads/small_moe_even.yaml", kShortLayers},
                      Case{"two_dgx.yaml", "workloads/small_moe_host_launches.yaml", kShortLayers},
                      Case{"compute/aws_p3_8xlarge.yaml", "workloads/stage_meshes.yaml"},
                      Case{"pipeline/accelerator.yaml", "pipeline/small_gpt_zb_v.yaml", kShortGpt}));
INSTANTIATE_TEST_SUITE_P(
    Models, ShippedConfigs,
    ::testing::Values(
        Case{"two_dgx.yaml", "workloads/resnet_50.yaml"}, Case{"two_dgx.yaml", "workloads/vgg_16.yaml"},
        Case{"two_dgx.yaml", "workloads/bert_large.yaml"}, Case{"two_dgx.yaml", "workloads/vit_l_16.yaml"},
        Case{"two_dgx.yaml", "workloads/small_gpt_layer_optimizer.yaml", kShortLayers},
        Case{"two_dgx.yaml", "workloads/small_gpt_recompute_windows.yaml", kShortLayers},
        Case{"two_dgx.yaml", "workloads/small_gpt_sliced_boundaries.yaml", kShortLayers},
        Case{"two_dgx.yaml", "workloads/small_gpt_sub_batches.yaml", kShortLayers},
        Case{"two_dgx.yaml", "workloads/dlrm.yaml"}, Case{"two_dgx.yaml", "workloads/local_sgd.yaml"},
        Case{"compute/parameter_server.yaml", "workloads/parameter_server.yaml"},
        Case{"compute/single_nic_stragglers.yaml", "workloads/stale_synchronous.yaml", kFewIterations}));
INSTANTIATE_TEST_SUITE_P(
    Layers, ShippedConfigs,
    ::testing::Values(
        Case{"topologies/single_nic.yaml", "workloads/layers/bert_large.yaml", kSmallGradients},
        Case{"two_dgx.yaml", "workloads/layers/bert_large_centauri.yaml", kSmallGradients},
        Case{"topologies/single_nic.yaml", "workloads/layers/moe.yaml", kSmallGradients},
        Case{"topologies/single_nic.yaml", "workloads/layers/out_of_order.yaml", kSmallGradients},
        Case{"topologies/single_nic.yaml", "workloads/layers/resnet_50.yaml", kSmallGradients},
        Case{"topologies/single_nic.yaml", "workloads/layers/vgg_19.yaml", kSmallGradients},
        Case{"topologies/single_nic.yaml", "workloads/layers/vgg_19_factors.yaml", kSmallGradients},
        Case{"topologies/single_nic.yaml", "workloads/layers/vgg_19_servers.yaml", kSmallGradients}));
INSTANTIATE_TEST_SUITE_P(
    TaskSchedulers, ShippedConfigs,
    ::testing::Values(Case{"scheduling/credit.yaml", "workloads/layers/vgg_19.yaml", kSmallGradients},
                      Case{"scheduling/ddp.yaml", "workloads/layers/moe.yaml", kSmallGradients},
                      Case{"scheduling/fifo.yaml", "workloads/layers/vgg_19_servers.yaml", kSmallGradients},
                      Case{"scheduling/merge.yaml", "workloads/layers/moe.yaml", kSmallGradients},
                      Case{"scheduling/preferred.yaml", "workloads/layers/moe.yaml", kSmallGradients},
                      Case{"scheduling/trirace.yaml", "workloads/small_gpt_pipedream_2bw.yaml"},
                      Case{"scheduling/priority.yaml", "workloads/layers/vgg_19.yaml", kSmallGradients}));
INSTANTIATE_TEST_SUITE_P(FlowSchedulers, ShippedConfigs,
                         ::testing::Values(Case{"scheduling/deadline.yaml", "traffic/coflows.yaml"},
                                           Case{"scheduling/echelon.yaml", "traffic/coflows.yaml"},
                                           Case{"scheduling/fair.yaml", "traffic/coflows.yaml"},
                                           Case{"scheduling/fastpass.yaml", "traffic/coflows.yaml"},
                                           Case{"scheduling/las.yaml", "traffic/coflows.yaml"},
                                           Case{"scheduling/max_min.yaml", "traffic/coflows.yaml"},
                                           Case{"scheduling/splits.yaml", "traffic/coflows.yaml"},
                                           Case{"scheduling/sincronia.yaml", "traffic/coflows.yaml"},
                                           Case{"scheduling/slack.yaml", "traffic/two_needs.yaml"},
                                           Case{"scheduling/srpt.yaml", "traffic/coflows.yaml"},
                                           Case{"scheduling/strict.yaml", "traffic/coflows.yaml"},
                                           Case{"scheduling/streams.yaml", "traffic/two_streams.yaml"},
                                           Case{"scheduling/varys.yaml", "traffic/coflows.yaml"},
                                           Case{"scheduling/paths.yaml", "traffic/shift_4.yaml"}));

std::string all_configs() {
  std::ostringstream text;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kConfigs)) {
    if (entry.path().extension() == ".yaml") text << std::ifstream(entry.path()).rdbuf();
  }
  return text.str();
}

// Whether a configuration chooses the name: as the value of a key, in a map or alone on its line.
bool chosen(const std::string& text, const std::string& name) {
  for (std::size_t at = text.find(": " + name); at != std::string::npos;
       at = text.find(": " + name, at + 1)) {
    const char next = text[at + 2 + name.size()];
    if (next == '\n' || next == ',' || next == '}' || next == ' ') return true;
  }
  return false;
}

bool is_in_every_run(const ComponentInfo& component) {
  return component.kind == ResultSink::kComponentKind &&
         Registry<ResultSink>::instance().create(component.name)->in_every_run();
}

TEST(Components, EachIsInAShippedConfiguration) {
  // Components that no configuration names, and who uses them.
  const std::map<std::string, std::string> used_by = {
      {"direct", "pipeline/one_f_one_b.yaml"},  // every point-to-point transfer
      {"a100_80gb", "two_dgx.yaml"},            // GPUs of the hosts
      {"v100_sxm2", "topologies/dgx_1v.yaml"},
      {"h200_sxm", "topologies/dgx_h200.yaml"},
      {"h800_sxm", "topologies/hgx_h800.yaml"},
      {"h20_sxm", "topologies/hgx_h20.yaml"},
      {"b200", "topologies/dgx_b200.yaml"},
      {"mi300x", "topologies/full_mesh.yaml"},
      {"chakra", "import/chakra/step.0.et"},
      {"aicb_csv", "import/aicb/steps.csv"},
      {"astra_text", "import/astra/layers.txt"},
      {"simgrid_replay", "import/simgrid/actions.txt"},
      {"csv", "traffic/flows.csv"},
      {"goal", "import/goal/steps.goal"},
      {"flexflow", "import/flexflow/step.fbuf"},
      {"mlperf_log", "import/mlperf/result.txt"},
      {"philly", "jobs/philly.yaml"},  // recognised by the content of the trace
      {"helios", "jobs/helios.yaml"},
      {"alibaba", "jobs/alibaba.yaml"},
      {"alibaba_pods", "jobs/pods.yaml"},
      {"ns3_flows", "import/ns3/flow.txt"},
      {"htsim_cm", "import/htsim/connections.cm"},
      {"netsim_program", "../traces/gpt3_ptdp.pb"}};
  const std::string text = all_configs();
  for (const ComponentInfo* component : Catalogue::instance().all()) {
    // Other tests of this program register these.
    if (component->kind.starts_with("test_") || component->name.starts_with("test_")) continue;
    if (is_in_every_run(*component)) continue;  // a result sink that no configuration has to name
    if (!component->has_map()) {                // chosen by keys of another component
      EXPECT_TRUE(chosen(text, component->owner)) << component->kind << " " << component->name;
      continue;
    }
    const auto user = used_by.find(component->name);
    const bool covered = user != used_by.end() ? std::filesystem::exists(kConfigs + user->second)
                                               : chosen(text, component->name);
    EXPECT_TRUE(covered) << component->kind << " " << component->name;
    EXPECT_FALSE(component->summary.empty()) << component->name;
    EXPECT_FALSE(describe(*component).empty()) << component->name;
  }
}

}  // namespace
}  // namespace netsim::components_test
