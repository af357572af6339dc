// Do rings and trees of a graph file of NCCL take the place of the library's own? Does the file that the
// library writes bring them back? Is a wrong file refused where it is wrong?
#include "sim/collectives/library/nccl/nccl_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "sim/collectives/library/communicator_layout.h"
#include "sim/collectives/library/nccl/graph_orders.h"
#include "sim/core/errors.h"
#include "sim/core/output.h"
#include "tests/collectives/fake_endpoint.h"
#include "tests/collectives/packet_collectives.h"
#include "tests/support/mutations.h"
#include "tests/support/program.h"
#include "tests/support/shared.h"

namespace netsim::nccl_graph_test {
namespace {

using test::every;
using test::PacketCollectives;
using test::request_of;
using ::testing::HasSubstr;

// Two GPUs with a NIC each.
constexpr const char* kPair = R"(<graphs version="1">
  <graph id="0" pattern="4" crossnic="2" nchannels="2" speedintra="20" speedinter="12.5" typeintra="NVL" typeinter="PXB" samechannels="0">
    <channel><net dev="0"/><gpu dev="0"/><gpu dev="1"/><net dev="1"/></channel>
    <channel><net dev="1"/><gpu dev="1"/><gpu dev="0"/><net dev="0"/></channel>
  </graph>
  <graph id="1" pattern="3" crossnic="0" nchannels="1" speedintra="20" speedinter="12.5" typeintra="NVL" typeinter="PXB">
    <channel><net dev="0"/><gpu dev="0x1"/><gpu dev="0x0"/><net dev="0"/></channel>
  </graph>
</graphs>
)";

NcclGraph pair() { return read_nccl_graph(kPair, "graph.xml"); }

CommunicatorLayout along_graph(const NcclGraph& graph, const std::vector<GpuId>& members,
                               const Endpoint& endpoint, LinkOrders& orders) {
  CommunicatorLayout layout = lay_out(members, endpoint, orders);
  take_orders(graph, members, endpoint, layout);
  index_rings(layout);
  return layout;
}

CommunicatorLayout layout_of(const std::vector<GpuId>& members, std::uint32_t per_host,
                             const NcclGraph* graph) {
  EventLoop loop;
  FakeEndpoint endpoint(loop, members.back() + 1, per_host, {}, {});
  LinkOrders orders;
  return graph == nullptr ? lay_out(members, endpoint, orders)
                          : along_graph(*graph, members, endpoint, orders);
}

std::string with(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(NcclGraphs, SayRingsAndTrees) {
  const NcclGraph graph = pair();
  const CommunicatorLayout layout = layout_of(everyone(6), 2, &graph);
  // The second host has its channels the other way round, as crossnic 2 says.
  EXPECT_EQ(layout.rings, (std::vector<std::vector<std::uint32_t>>{{0, 1, 3, 2, 4, 5}, {1, 0, 2, 3, 5, 4}}));
  EXPECT_EQ(layout.trees, TreePattern::plain);
  ASSERT_EQ(layout.chains.size(), 2U);
  EXPECT_EQ(layout.chains[0], (std::vector<std::uint32_t>{1, 0, 3, 2, 5, 4}));
  // On three hosts a channel counts what it has between them.
  EXPECT_EQ(layout.given_rings.channels, 2U);
  EXPECT_DOUBLE_EQ(layout.given_rings.bandwidth, 25);
  EXPECT_DOUBLE_EQ(layout_of(everyone(4), 2, &graph).given_rings.bandwidth, 40);
}

// For other groups the library finds its own graphs.
TEST(NcclGraphs, AreOfGroupsWithAllTheirGpus) {
  const NcclGraph graph = pair();
  for (const std::vector<GpuId>& members : {std::vector<GpuId>{0, 4, 8}, {0, 1, 4}, {0, 1, 2, 4, 5, 6}}) {
    const CommunicatorLayout own = layout_of(members, 4, nullptr), given = layout_of(members, 4, &graph);
    EXPECT_EQ(given.given_rings.channels, 0U);
    EXPECT_EQ(given.rings, own.rings);
    EXPECT_EQ(given.chains, own.chains);
  }
}

TEST(NcclGraphs, InOneHostOneOrderForAllChannelsIsOneRing) {
  const NcclGraph same = read_nccl_graph(
      with(kPair, "<gpu dev=\"1\"/><gpu dev=\"0\"/>", "<gpu dev=\"0\"/><gpu dev=\"1\"/>"), "a.xml");
  EXPECT_TRUE(layout_of(everyone(2), 2, &same).rings.empty());
  const NcclGraph graph = pair();
  EXPECT_EQ(layout_of(everyone(2), 2, &graph).rings.size(), 2U);
}

TEST(NcclGraphs, AreWrittenAsTheyAreRead) {
  const NcclGraph graph = pair();
  const std::string text = write_nccl_graph(graph);
  EXPECT_THAT(text, HasSubstr("<gpu dev=\"0x1\"/>"));
  const NcclGraph again = read_nccl_graph(text, "b.xml");
  EXPECT_EQ(write_nccl_graph(again), text);
  for (const std::uint32_t per_host : {2U, 4U, 8U}) {
    EventLoop loop;
    const std::vector<GpuId> members = everyone(3 * per_host);
    FakeEndpoint endpoint(loop, 3 * per_host, per_host, {}, {});
    LinkOrders orders;
    const CommunicatorLayout own = lay_out(members, endpoint, orders);
    NcclGraph found = graph_of(members, endpoint, own, 24);
    for (NcclGraph::Graph& one : found.graphs) one.speed_intra = one.speed_inter = 1;
    const NcclGraph read = read_nccl_graph(write_nccl_graph(found), "c.xml");
    const CommunicatorLayout given = along_graph(read, members, endpoint, orders);
    EXPECT_EQ(given.rings, own.rings);
    EXPECT_EQ(given.chains, own.chains);
    EXPECT_EQ(given.trees, own.trees);
  }
}

// ---- Over packets

constexpr const char* kTwoDgx =
    "topology: {kind: star, hosts: 16, rate: 200 Gbps}\nhosts: 2\nhost: dgx_a100\n"
    "transport: {congestion_control: none}\ncollectives: {all_reduce: ";

class NcclGraphFiles : public test::NetsimProgram {
 protected:
  Time time_of(const std::string& config, Bytes bytes, std::uint32_t ranks) {
    PacketCollectives cluster(config);
    const auto members = every(1, ranks);
    return cluster.run(request_of(CollectiveKind::all_reduce, members, bytes));
  }
  // A configuration with the graph that its own search finds.
  std::string with_own(const std::string& config, std::uint32_t ranks) {
    PacketCollectives cluster(config + "}");
    write("graph.xml", cluster.executor->nccl_graph(every(1, ranks)));
    return config + ", graph: '" + path("graph.xml") + "'}";
  }
};

// A graph that the library found, wrote and read again takes the same time.
TEST_F(NcclGraphFiles, BringBackTheLibrarysOwn) {
  for (const char* algorithm : {"ring", "tree", "nccl, protocol: auto"}) {
    const std::string config = std::string(kTwoDgx) + algorithm;
    const std::string given = with_own(config, 16);
    for (const Bytes bytes : {Bytes{4096}, 64 * kMebibyte})
      EXPECT_EQ(time_of(given, bytes, 16), time_of(config + "}", bytes, 16)) << algorithm << " " << bytes;
  }
  const std::string alone = with_own(std::string(kTwoDgx) + "nccl, protocol: auto", 8);
  EXPECT_EQ(time_of(alone, 64 * kMebibyte, 8),
            time_of(std::string(kTwoDgx) + "nccl, protocol: auto}", 64 * kMebibyte, 8));
}

// One ring leaves a host by one NIC: an eighth of the bandwidth.
TEST_F(NcclGraphFiles, DecideWhichNicsAreUsed) {
  const std::string config = std::string(kTwoDgx) + "ring, scale_out_channels: 1";
  NcclGraph graph;
  NcclGraph::Graph& rings = graph.graphs.emplace_back();
  rings.speed_intra = rings.speed_inter = 20;
  NcclGraph::Channel& channel = rings.channels.emplace_back();
  for (std::uint32_t gpu = 0; gpu < 8; ++gpu) channel.gpus.push_back({0, gpu});
  channel.nets = {0, 7};
  write("one.xml", write_nccl_graph(graph));
  const auto one =
      static_cast<double>(time_of(config + ", graph: '" + path("one.xml") + "'}", 256 * kMebibyte, 16));
  const auto eight = static_cast<double>(time_of(config + "}", 256 * kMebibyte, 16));
  EXPECT_NEAR(one / eight, 8, 0.8);
  channel.nets = {0, 3};
  write("far.xml", write_nccl_graph(graph));
  EXPECT_THAT([&] { time_of(config + ", graph: '" + path("far.xml") + "'}", kMebibyte, 16); },
              ::testing::ThrowsMessage<InputError>(AllOf(
                  HasSubstr("far.xml:3:"), HasSubstr("it ends with net 3, which is not nearest to the GPU "
                                                     "beside it; a GPU uses the nearest (here 7)"))));
}

TEST_F(NcclGraphFiles, OfAnotherMachineAreRefused) {
  write("graph.xml", with(with(kPair, "<gpu dev=\"1\"/><net dev=\"1\"/>", "<gpu dev=\"8\"/><net dev=\"1\"/>"),
                          "<gpu dev=\"1\"/><gpu dev=\"0\"/>", "<gpu dev=\"8\"/><gpu dev=\"0\"/>"));
  EXPECT_THAT([&] { PacketCollectives(std::string(kTwoDgx) + "ring, graph: '" + path("graph.xml") + "'}"); },
              ::testing::ThrowsMessage<InputError>(AllOf(
                  HasSubstr("graph.xml:3:6"), HasSubstr("GPU 0x8, and the hosts have 8 GPUs at most"))));
}

TEST_F(NcclGraphFiles, AreWrittenByTheProgram) {
  write("host.yaml", std::string(kTwoDgx) + "ring}\n");
  ASSERT_EQ(run("--config host.yaml --write-graph graph.xml").code, 0);
  const NcclGraph graph = read_nccl_graph(read_file(path("graph.xml")), "graph.xml");
  ASSERT_NE(graph.find(NcclGraph::kRing), nullptr);
  EXPECT_EQ(graph.find(NcclGraph::kRing)->channels.size(), 8U);
  EXPECT_EQ(graph.find(NcclGraph::kRing)->cross_nic, 2U);
  ASSERT_EQ(run("--config host.yaml --write-graph one.xml --ranks 8").code, 0);
  EXPECT_EQ(read_nccl_graph(read_file(path("one.xml")), "one.xml").graphs[0].channels.size(), 12U);
  expect_error("--config host.yaml --write-graph one.xml --ranks 17", ExitCode::usage,
               {"--ranks: 17 for a graph of a cluster of 16 GPUs (allowed: 2 to 16)"});
}

// ---- Wrong files

std::string error_of(const std::string& text) {
  try {
    read_nccl_graph(text, "graph.xml");
  } catch (const InputError& error) {
    return error.what();
  }
  return "none";
}

TEST(NcclGraphs, WhatIsWrongIsRefusedWhereItIs) {
  const auto wrong = [](const std::string& from, const std::string& to) {
    return error_of(with(kPair, from, to));
  };
  EXPECT_EQ(error_of(kPair), "none");
  EXPECT_THAT(wrong("version=\"1\"", "version=\"2\""), HasSubstr("graph.xml:1:2: <graphs>: version is '2'"));
  EXPECT_THAT(wrong("id=\"1\"", "id=\"0\""), HasSubstr("graph.xml:6:4: <graph>: graph 0 has the rings"));
  EXPECT_THAT(wrong("id=\"1\" pattern=\"3\"", "id=\"0\" pattern=\"4\""), HasSubstr("a second graph 0"));
  EXPECT_THAT(wrong("pattern=\"3\"", "pattern=\"5\""), HasSubstr("graph 1 has the trees"));
  EXPECT_THAT(wrong("nchannels=\"2\"", "nchannels=\"3\""),
              HasSubstr("nchannels is 3, and 2 channels are in it"));
  EXPECT_THAT(wrong("crossnic=\"2\"", ""), HasSubstr("'crossnic' is missing"));
  EXPECT_THAT(wrong("speedintra=\"20\"", "speedintra=\"fast\""), HasSubstr("speedintra is 'fast'"));
  EXPECT_THAT(wrong("speedintra=\"20\"", "speedintra=\"0\""), HasSubstr("are more than 0"));
  EXPECT_THAT(wrong("typeintra=\"NVL\"", "typeintra=\"WIRE\""),
              HasSubstr("typeintra is 'WIRE'; allowed: LOC"));
  EXPECT_THAT(wrong("<gpu dev=\"0\"/>", "<gpu dev=\"G\"/>"), HasSubstr("graph.xml:3:29: <gpu>: dev is 'G'"));
  EXPECT_THAT(wrong("<gpu dev=\"0\"/>", "<gpu dev=\"1\"/>"), HasSubstr("a channel passes GPU 0x1 twice"));
  EXPECT_THAT(wrong("<gpu dev=\"0\"/>", "<gpu dev=\"2\"/>"),
              HasSubstr("graph.xml:4:6: <channel>: it passes other GPUs than the first"));
  EXPECT_THAT(wrong("<net dev=\"1\"/></channel>", "</channel>"), HasSubstr("one net; allowed are none"));
  EXPECT_THAT(wrong("<gpu dev=\"1\"/><net dev=\"1\"/>", "<net dev=\"1\"/><gpu dev=\"1\"/>"),
              HasSubstr("this one is between GPUs"));
  EXPECT_THAT(wrong("<gpu dev=\"0\"/>", "<cpu dev=\"0\"/>"), HasSubstr("allowed in a channel: gpu, net"));
  EXPECT_THAT(error_of("<graphs version=\"1\"></graphs>"), HasSubstr("neither rings (graph 0) nor trees"));
  EXPECT_THAT(error_of("<system version=\"1\"></system>"), HasSubstr("graph.xml: "));
}

TEST(NcclGraphs, WhatIsBrokenIsRefused) {
  test::expect_sane(
      kPair, [](const std::string& given) { read_nccl_graph(given, "graph.xml"); }, 1000);
}

TEST(NcclGraphs, ThoseOfOthersAreRead) {
  NETSIM_NEEDS_SHARED("samples/nccl_topo_xml/azure");
  int graphs = 0;
  for (const std::string& file : test::shared_files("samples/nccl_topo_xml/azure", ".xml")) {
    const std::string text = read_file(file);
    if (text.find("<graphs") == std::string::npos) continue;
    const NcclGraph graph = read_nccl_graph(text, file);
    const std::string written = write_nccl_graph(graph);
    EXPECT_EQ(write_nccl_graph(read_nccl_graph(written, "again.xml")), written);
    ASSERT_NE(graph.find(NcclGraph::kRing), nullptr);
    EXPECT_EQ(graph.find(NcclGraph::kRing)->channels.size(), 2U);
    ++graphs;
  }
  EXPECT_EQ(graphs, 1);
}

}  // namespace
}  // namespace netsim::nccl_graph_test
