// Tests that every format is recognised by its content and told from all others. The inputs are small
// examples of each, and real files of other tools if they are there.
#include "sim/core/recognise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sim/configuration/load_run.h"
#include "sim/core/errors.h"
#include "sim/core/output.h"
#include "sim/workload/workload.h"
#include "tests/support/shared.h"
#include "tests/support/workload_files.h"

namespace netsim::recognise_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Names of the formats that say yes, "a+b" for several.
std::string formats_of(std::string_view content, const std::string& path = "file") {
  const Excerpt file(content, content.size());
  std::string names;
  for (const Format* format : matching_formats(file, path))
    names += (names.empty() ? "" : "+") + format->name;
  return names;
}

std::string bytes(std::initializer_list<int> values) {
  std::string result;
  for (const int value : values) result += static_cast<char>(value);
  return result;
}

// A protobuf field that holds `content`.
std::string field(int number, const std::string& content) {
  return bytes({number << 3 | 2, static_cast<int>(content.size())}) + content;
}
std::string delimited(const std::string& message) {
  return bytes({static_cast<int>(message.size())}) + message;
}

std::string chakra_node() { return bytes({8, 1}) + field(2, "all_reduce") + bytes({0x18, 7}); }

// A task graph without any task: the root's offset, eleven fields, the root, five empty vectors.
std::string task_graph() {
  std::string result = bytes({0x20, 0, 0, 0, 0, 0, 26, 0, 48, 0});
  for (int i = 0; i < 11; ++i) result += bytes({44 - 4 * i, 0});
  result += bytes({26, 0, 0, 0});
  for (int slot = 4; slot < 48; slot += 4) result += bytes({slot < 24 ? 48 - slot : 1, 0, 0, 0});
  return result + std::string(8, '\0');
}

std::string tar() {
  std::string result(512, '\0');
  result.replace(0, 7, "a.et.et");
  result.replace(257, 5, "ustar");
  return result;
}

const std::vector<std::pair<std::string, std::string>>& inputs() {
  static const std::vector<std::pair<std::string, std::string>> list = {
      // Formats that netsim reads.
      {"csv", "source,destination,bytes,start\n0,1,1,0\n"},
      {"csv", "\xef\xbb\xbf# comment\n\n \"bytes\" , start_us,source,destination\r\n"},
      {"ns3_flows", "2\n0 1 3 100 10 2.0\n0 1 3 100 10 2.0\n"},
      {"ns3_flows", "0\n"},
      {"htsim_cm", "# comment\nNodes 16\nConnections 1\n0->1 start 0 size 1\n"},
      {"htsim_topology", "Nodes 8\nTiers 3\nPodsize 4\nTier 0\nRadix_Down 2\n"},
      {"htsim_topology", "# comment\nNodes 8\n# comment\nTIERS 2\nPodsize 4\n"},
      {"ns3_topology", "4 1 3\n3\n0 3 100Gbps 1us 0\n1 3 100Gbps 1us 0\n2 3 100Gbps 1us 0\n"},
      {"ns3_topology", "2 0 1\n\n0 1 25Gb/s 0.005ms 0\n"},
      {"ns3_config", "ENABLE_QCN 1\nUSE_DYNAMIC_PFC_THRESHOLD 1\n"},
      {"netsim_program", "\x0a\x0fnetsim-workload\x10\x01"},
      {"netsim_workload", "kind: incast\nsenders: 3\n"},
      {"netsim_workload", "{kind: incast, senders: 3}\n"},
      {"netsim_job_trace", "submitted_s,gpus,duration_s\n0,8,3600\n"},
      {"netsim_jobs", "# two\njobs:\n  - name: a\n    workload: b.pb\n"},
      {"netsim_configuration", "# comment\ntopology: {kind: star}\nhost: single_nic\n"},
      // Formats that netsim does not read.
      {"chakra_et", delimited(field(1, "0.0.4")) + delimited(chakra_node())},
      {"chakra_et", delimited(field(2, field(1, "schema"))) + delimited(chakra_node())},
      {"chakra_et", delimited(chakra_node()) + delimited(chakra_node())},
      {"chakra_json", R"({"workload_graph": [{"Id": 1}]})"},
      {"pytorch_et", R"({"schema": "1.0.2-chakra.0.0.4", "pid": 7, "nodes": []})"},
      {"chakra_jsonized", R"({"version": "0.0.4"}{"id": "1", "type": "COMM_COLL_NODE"})"},
      {"chakra_groups", R"({"1": [0, 1], "2": [2, 3]})"},
      {"astra_text", "DATA\n1\nconv1 -1 1000 NONE 0 900 NONE 0 1100 ALLREDUCE 37632 10\n"},
      {"astra_text", "HYBRID_TRANSFORMER\tmodel_parallel_NPU_group: 8\n0\n"},
      {"astra_system", R"({"scheduling-policy": "LIFO", "endpoint-delay": 10})"},
      {"astra_network", "topology: [ Ring ]\nnpus_count: [ 16 ]\nbandwidth: [ 50.0 ]\n"},
      {"astra_dimensions", R"({"logical-dims": ["8", "2"]})"},
      {"astra_memory", R"({"memory-type": "NO_MEMORY_EXPANSION"})"},
      {"simai_topology", "28 8 2 10 48 H100\n16 17\n0 16 2880Gbps 0.000025ms 0\n"},
      {"simai_busbw", "test\nTP:\nallreduce,: 300\n"},
      {"simai_ratio", "Size,1 Node(NVLink),2Node-16GPU(NIC)\n16777216,0.44,0.52\n"},
      {"aicb_csv", "[rank0 ~ rank127]\ncomm_type,comm_group,msg_size,stage\nCommType.all_reduce,,8,init\n"},
      {"aicb_models", "id\tName\tParameter_size\tHidden_size\n1\tLLaMA\t7B\t4096\n"},
      {"aiob", "train_iter:10\nEmb:\n    time_gpu_max: 857\n"},
      {"msccl_xml", "<!-- c -->\n<algo name=\"ring\" ngpus=\"4\"><gpu id=\"0\"/></algo>"},
      {"msccl_list", "<msccl_algos><load path=\"ring.xml\"/></msccl_algos>"},
      {"sccl_json", R"({"msccl_type": "algorithm", "name": "x", "topology": {}})"},
      {"taccl_sketch", R"({"nnodes": 2, "intranode_sketch": {}})"},
      {"taccl_topology", R"({"name": "NDv2", "gpus_per_node": 8, "alpha": 0.3})"},
      {"teccl_input", R"({"TopologyParams": {"name": "DGX2"}})"},
      {"teccl_schedule", R"({"1-Epoch_Duration": 1.0, "7-Flows": []})"},
      {"goal", "// made by hand\nnum_ranks 2\nrank 0 {\nl1: send 8b to 1\n}\n"},
      {"goal_binary", bytes({0x7f, 0x10, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 1, 1})},
      {"goal_merge", R"({"mode": "multi-job", "goal_files": []})"},
      {"goal_nodes", "num_of_nodes: 4\nnum_gpus_per_node: 1\n"},
      {"npkit", R"({"NPKIT_EVENT_GPU_SEND": {"4": [1]}})"},
      {"nccl_topology", "<?xml version='1.0'?>\n<system version=\"1\"><cpu numaid=\"0\"/></system>"},
      {"nccl_graph", "<graphs version=\"1\"></graphs>"},
      {"nccl_tuner", "# comment\nallreduce,0,65536,tree,ll,4,-1,-1\n"},
      {"expert_counts", "# a run\nlayer,expert,tokens\n0,0,17\n"},
      {"measured_kernels", "# ours\nkernel,m,n,k,batch,precision,time_us\nqkv_gemm,1,2,3,1,half,4.5\n"},
      {"nccl_inspector",
       R"({"header":{"id":"0x1"},"metadata":{"inspector_output_format_version":"v4.0"},"coll_perf":{}})"},
      {"nccl_tests", "# nccl-tests version 2.19.6\n# nThread 1 nGpus 8 minBytes 8 maxBytes 128\n"},
      {"nccl_tests", "[1,0]<stdout>:# nThreads: 1 nGpus: 1 minBytes: 8 maxBytes: 1073741824\n"},
      {"nccl_tests_json", R"({"version":3,"nccl_version":23000,"config":{"nthreads":1}})"},
      {"mlperf_log", ":::MLLOG {\"namespace\": \"\", \"key\": \"run_start\"}\n"},
      {"flexflow", task_graph()},
      {"topoopt_measurements", R"({"batch_size": 1, "ngpus": 128, "measurements": []})"},
      {"kineto", R"({"schemaVersion": 1, "deviceProperties": [], "traceEvents": []})"},
      {"kineto", R"({"traceEvents": [{"ph": "X", "cat": "cpu_op"}]})"},
      {"chrome_trace", R"({"displayTimeUnit":"ns","traceEvents":[{"ph": "M"}]})"},
      {"perfetto", field(1, bytes({0x40, 0, 0x50, 1}))},
      {"perfetto_text", "# c\npacket {\n  trusted_packet_sequence_id: 1\n}\n"},
      {"infragraph", "name: fabric\ndevices:\n- name: host\n"},
      {"infragraph", R"({"infrastructure": {"name": "fabric"}})"},
      {"infragraph_pb", field(1, "fabric") + field(2, "a fabric") + field(3, field(1, "host"))},
      {"simgrid_platform",
       "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"s.dtd\">\n<platform version=\"4.1\"/>"},
      {"simgrid_replay", "0 init\n0 send 1 0 1e6\n"},
      {"simgrid_manifest", "# ranks\nactions0.txt\nfolder/actions1.txt\n"},
      {"mpi_trace", "# clockdiff 0\nMPI_Init:1000:-:2000\n"},
      {"ember", "[JOB_ID] 10\n[NID_LIST] 0-63\n"},
      {"philly_jobs", R"([{"status": "Pass", "vc": "6214e9", "jobid": "a", "attempts": []}])"},
      {"philly_utilisation", "2017-10-03 00:08:00 PDT,m29,60.8\n"},
      {"gavel_jobs", "Transformer\tpython3 train.py\t-step\t1\t15486530\t0.0\t1\n"},
      {"helios_jobs", "job_id,user,vc,gpu_num\n1,u,v,8\n"},
      {"alibaba_pai_jobs",
       "4b3f04b66a525d2df903eb16,8cb3bec23d14,58540f191766,Terminated,4550879.0,4551416.0\n"},
      {"alibaba_pods", "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,6000,8192,1,460\n"},
      {"helios_gpus", "date,vcEwI,vcWoR\n2020-04-01,248,96\n"},
      {"alibaba_pai_tables", "machine,gpu_type,cap_cpu,cap_mem,cap_gpu\n"},
      {"ns3_trace_nodes", "3\n0 1 2\n"},
      {"size_distribution", "0 0\n10000 15\n30000000 100\n"},
      {"netsim_sweep",
       "base: {config: c.yaml, workload: w.yaml}\naxes:\n  - {vary: topology.k, values: [4, 8]}\n"},
      {"packed_file", "BZh91AY&SY\x01"},
      {"packed_file", bytes({0x28, 0xb5, 0x2f, 0xfd, 4})},
      {"tar", tar()},
  };
  return list;
}

TEST(Recognise, EveryFormatByItsContent) {
  for (const auto& [name, content] : inputs()) EXPECT_EQ(formats_of(content), name) << content.substr(0, 60);
}

TEST(Recognise, EveryFormatHasAnInput) {
  for (const Format& format : formats()) {
    const bool there = std::any_of(inputs().begin(), inputs().end(),
                                   [&](const auto& input) { return input.first == format.name; });
    EXPECT_TRUE(there) << format.name;
    EXPECT_FALSE(format.what.empty()) << format.name;
  }
}

TEST(Recognise, NothingWhereThereIsNothing) {
  for (const char* text : {"", "\n\n", "just words\n", "a, b, c\n", "1\n", "1 2\n", "[", "{", "<", "<!--",
                           "x: 1\n", "Nodes: 16\n", "\"", "{\"", "# only a comment\n"}) {
    EXPECT_THAT(formats_of(text), ::testing::AnyOf("", "ns3_flows")) << text;
  }
  EXPECT_EQ(formats_of(std::string("\x07\xff\x00\x13garbage", 11)), "");
  EXPECT_EQ(formats_of(std::string("\x00\x01\x02\x03", 4)), "");
  EXPECT_EQ(formats_of(read_file(netsim_binary()).substr(0, 1 << 20)), "");
}

// Cut anywhere, no format reads beyond the end.
TEST(Recognise, BeginningsAreSafe) {
  for (const auto& [name, content] : inputs()) {
    for (std::size_t length = 0; length < content.size(); ++length) {
      const std::string part = content.substr(0, length);  // of its own, for the sanitizers
      formats_of(part);
    }
  }
}

class RecogniseFiles : public test::FolderTest {
 protected:
  // Exit code and message behind the path; "" where nothing is wrong.
  static std::string error(const std::string& path, const std::function<void()>& load) {
    try {
      load();
    } catch (const Error& wrong) {
      const std::string message = wrong.what();
      const std::size_t at = message.find(path);
      return std::to_string(static_cast<int>(wrong.code())) + " " +
             (at == std::string::npos ? message : message.substr(at + path.size()));
    }
    return {};
  }
  static std::string as_workload(const std::string& path) {
    return error(path, [&] { load_workload(path, 16); });
  }
  static std::string as_config(const std::string& path) {
    return error(path, [&] { load_run(path); });
  }
};

// Whatever is not read is named in one line with the file, wherever it is given.
TEST_F(RecogniseFiles, RefusalsNameTheFormat) {
  const std::map<std::string, const Format*> by_name = [] {
    std::map<std::string, const Format*> result;
    for (const Format& format : formats()) result[format.name] = &format;
    return result;
  }();
  std::size_t unread = 0;
  for (const auto& [name, content] : inputs()) {
    const Format& format = *by_name.at(name);
    if (format.use != Format::Use::none) continue;
    ++unread;
    const std::string path = write("input", content);
    EXPECT_THAT(as_workload(path), StartsWith("3 : is " + format.what)) << name;
    EXPECT_THAT(as_config(path), StartsWith("2 : is " + format.what)) << name;
  }
  EXPECT_GT(unread, 30u);
}

TEST_F(RecogniseFiles, WhatIsGivenForSomethingElseIsToldItsUse) {
  const std::string topo = write("a.topo", "Nodes 8\nTiers 3\nPodsize 4\nTier 0\nRadix_Down 2\n");
  EXPECT_THAT(as_workload(topo),
              AllOf(StartsWith("3 : is a fat tree of htsim (.topo)"), HasSubstr("give it as --config"),
                    HasSubstr("topology: {kind: htsim, file: ...}")));
  const std::string flows = write("flow.txt", "1\n0 1 3 100 10 2.0\n");
  EXPECT_THAT(as_config(flows), AllOf(StartsWith("2 : is a flow.txt"), HasSubstr("give it as --workload")));
  const std::string config = write("c.yaml", "topology: star\n");
  EXPECT_THAT(as_workload(config), HasSubstr("is a configuration of netsim: give it as --config"));
  const std::string workload = write("w.yaml", "kind: incast\n");
  EXPECT_THAT(as_config(workload), HasSubstr("is a workload of netsim: give it as --workload"));
  const std::string sizes = write("sizes.cdf", "0 0\n100 100\n");
  EXPECT_THAT(as_workload(sizes), HasSubstr("`cdf` of a workload of kind poisson"));
}

TEST_F(RecogniseFiles, TheFilesOfOtherTools) {
  NETSIM_NEEDS_SHARED("samples");
  // The formats that a folder's files are of; the rest of each folder is explained by the others.
  const std::map<std::string, std::string> formats_of_folder = {
      {"aicb_csv", "aicb_csv aicb_models aiob"},
      {"astra_sim_cfg", "astra_network astra_dimensions astra_system astra_memory ns3_topology"},
      {"chakra_et", "chakra_et chakra_json chakra_groups pytorch_et astra_text tar"},
      {"goal", "goal goal_binary goal_merge goal_nodes npkit"},
      {"htsim_cm", "htsim_cm"},
      {"htsim_topo", "htsim_topology"},
      {"infragraph", "infragraph infragraph_pb"},
      {"job_traces",
       "philly_jobs philly_utilisation gavel_jobs helios_jobs helios_gpus alibaba_pai_jobs "
       "alibaba_pai_tables"},
      {"kineto", "kineto"},
      {"mlperf_log", "mlperf_log"},
      {"msccl_xml", "msccl_xml"},
      {"nccl_inspector", "nccl_inspector"},
      {"nccl_tests_log", "nccl_tests nccl_tests_json"},
      {"nccl_topo_xml", "nccl_topology nccl_graph"},
      {"nccl_tuner", "nccl_tuner"},
      {"ns3_hpcc", "ns3_config ns3_flows ns3_topology ns3_trace_nodes size_distribution"},
      {"perfetto", "perfetto perfetto_text chrome_trace"},
      {"sccl_json", "sccl_json msccl_xml"},
      {"simai_topo", "simai_topology simai_ratio"},
      {"simai_txt", "astra_text simai_busbw"},
      {"simgrid", "simgrid_platform simgrid_replay"},
      {"taccl_json", "taccl_sketch taccl_topology"},
      {"teccl_json", "teccl_input teccl_schedule"},
      {"topoopt_fbuf", "flexflow topoopt_measurements"}};
  std::size_t known = 0;
  for (const std::string& path : test::shared_files("samples", "")) {
    const std::string below = path.substr((test::shared_folder() + "/samples/").size());
    const std::string folder = below.substr(0, below.find('/'));
    const std::string content = read_file(path);
    const std::string found = formats_of(content, path);
    // Notes, expected results and a schema are no files of these formats, and are taken for none.
    if (below.find("SOURCES") != std::string::npos || below.find("EXPECTED") != std::string::npos ||
        below.ends_with(".edges.tsv") || below.ends_with(".fbs")) {
      EXPECT_EQ(found, "") << below;
      continue;
    }
    ++known;
    const auto expected = formats_of_folder.find(folder);
    ASSERT_NE(expected, formats_of_folder.end()) << below;
    EXPECT_THAT(" " + expected->second + " ", HasSubstr(" " + found + " ")) << below;
    const Format* file = recognise_file(path);
    ASSERT_NE(file, nullptr) << below;
    EXPECT_EQ(file->name, found) << below;
  }
  EXPECT_GT(known, 400u);
}

TEST_F(RecogniseFiles, ItsOwnFilesAreWhatTheyAre) {
  const std::string configs = source_directory() + "/configs";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(configs)) {
    const std::string path = entry.path().string();
    if (!entry.is_regular_file() || path.ends_with(".md") || path.ends_with("/reference.csv") ||
        path.ends_with("/ranks.csv") || path.ends_with("/userbuffers.csv") ||
        path.ends_with("/recipes.csv") || path.ends_with("/tiles/layers.csv") ||
        path.ends_with("/study.csv") || path.ends_with("/study.yaml") ||
        path.find("/survey_fig5b/job_") != std::string::npos ||
        (path.find("/studies/worth/") != std::string::npos && path.ends_with(".csv")) ||
        path.ends_with("/all_to_all_v.csv"))
      continue;
    const std::string found = formats_of(read_file(path), path);
    EXPECT_THAT(found,
                ::testing::AnyOf(
                    "aicb_csv", "astra_network", "astra_text", "kineto", "simgrid_replay", "chakra_et",
                    "chakra_groups", "netsim_workload", "netsim_jobs", "nccl_inspector", "flexflow",
                    "mlperf_log", "simgrid_manifest", "philly_jobs", "helios_jobs", "alibaba_pai_jobs",
                    "alibaba_pods", "gavel_jobs", "netsim_job_trace", "netsim_configuration", "netsim_sweep",
                    "csv", "expert_counts", "goal", "goal_binary", "htsim_cm", "htsim_topology", "infragraph",
                    "measured_kernels", "nccl_graph", "sccl_json", "msccl_xml", "nccl_topology", "nccl_tuner",
                    "ns3_config", "ns3_flows", "ns3_topology", "simai_topology", "size_distribution"))
        << path;
  }
}

}  // namespace
}  // namespace netsim::recognise_test
