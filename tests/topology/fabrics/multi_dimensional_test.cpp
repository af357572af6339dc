// Tests that grids of rings, full meshes and switches have the links of their dimensions, shortest paths, and
// no cycles of waiting packets. ASTRA-sim's network files are read as they are meant.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "sim/core/errors.h"
#include "sim/topology/channel_dependencies.h"
#include "tests/support/shared.h"
#include "tests/topology/build.h"

namespace netsim::multi_dimensional_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct Dimension {
  std::string shape;
  std::uint32_t size;
};

std::string yaml(const std::vector<Dimension>& dimensions) {
  std::string list;
  for (const Dimension& d : dimensions)
    list += (list.empty() ? "" : ", ") + ("{shape: " + d.shape) + ", size: " + std::to_string(d.size) + "}";
  return "topology: {kind: multi_dimensional, dimensions: [" + list + "]}\n";
}

std::vector<Dimension> any_grid() {
  std::vector<Dimension> grid(static_cast<std::size_t>(*rc::gen::inRange(1, 4)));
  for (Dimension& d : grid)
    d = {*rc::gen::element(std::string("ring"), std::string("full_mesh"), std::string("switch")),
         *rc::gen::inRange<std::uint32_t>(1, 7)};
  return grid;
}

// Links between two routers: along each dimension as its shape says.
std::uint32_t distance(const std::vector<Dimension>& grid, std::uint32_t from, std::uint32_t to) {
  std::uint32_t links = 0;
  for (const Dimension& d : grid) {
    const std::uint32_t a = from % d.size, b = to % d.size, apart = a < b ? b - a : a - b;
    links += d.shape == "ring" ? std::min(apart, d.size - apart) : a == b ? 0 : d.shape == "switch" ? 2 : 1;
    from /= d.size;
    to /= d.size;
  }
  return links;
}

TEST(MultiDimensional, TakesShortestWays) {
  EXPECT_TRUE(rc::check("ways of random grids", [] {
    const std::vector<Dimension> grid = any_grid();
    const Cluster cluster = cluster_of(yaml(grid));
    const auto hosts = static_cast<std::uint32_t>(cluster.nics.size());
    for (std::uint32_t from = 0; from < hosts; ++from) {
      for (std::uint32_t to = 0; to < hosts; ++to) {
        if (from != to)
          RC_ASSERT(walk(cluster, cluster.nics[from].nic, cluster.nics[to].nic, 0) ==
                    distance(grid, from, to) + 2);
      }
    }
  }));
}

TEST(MultiDimensional, HasNoCircleOfWaitingPackets) {
  constexpr std::uint64_t kEffort = 10'000'000;
  EXPECT_TRUE(rc::check("channel dependencies of random grids", [] {
    const Cluster cluster = cluster_of(yaml(any_grid()));
    RC_ASSERT(find_cycle(cluster.graph, *cluster.routes, RoutingFreedom::none, {}, kEffort).hops.empty());
  }));
  const Cluster ring = cluster_of(yaml({{"ring", 8}}));
  EXPECT_EQ(ring.routes->channels(RoutingFreedom::none), 2u);
  EXPECT_TRUE(find_cycle(ring.graph, *ring.routes, RoutingFreedom::none, {}, kEffort).hops.empty());
}

TEST(MultiDimensional, HasTheLinksOfItsDimensions) {
  const Cluster cluster = cluster_of(yaml({{"ring", 2}, {"full_mesh", 4}, {"switch", 3}, {"ring", 3}}));
  const std::size_t nodes = 2 * 4 * 3 * 3;
  // The links are one for each pair, and 6 for each group of 4. Each node has one to its switch, each ring of
  // 3 has 3, and each NIC has one.
  EXPECT_EQ(cluster.graph.port_count(), 2 * (nodes / 2 + nodes / 4 * 6 + nodes + nodes + nodes));
  EXPECT_EQ(cluster.nics.size(), nodes);
}

TEST(MultiDimensional, RefusesWhatHasNoShape) {
  const auto error = [](const std::string& more) {
    return cluster_error("topology: {kind: multi_dimensional" + more + "}\n");
  };
  EXPECT_THAT(error(""), HasSubstr("'dimensions' is missing"));
  EXPECT_THAT(error(", dimensions: []"), AllOf(HasSubstr("topology.dimensions"), HasSubstr("1 to 8")));
  EXPECT_THAT(error(", dimensions: [{shape: star, size: 4}]"), HasSubstr("topology.dimensions.0.shape"));
  EXPECT_THAT(error(", dimensions: [{shape: ring}]"), HasSubstr("'size' is missing"));
  EXPECT_THAT(error(", dimensions: [{shape: ring, size: 60000}, {shape: ring, size: 60000}]"),
              HasSubstr("host ports"));
}

class AstraNetwork : public ::testing::Test {
 protected:
  ~AstraNetwork() override { std::filesystem::remove(path_); }
  std::string file(const std::string& text) {
    std::ofstream(path_) << text;
    return path_;
  }
  std::string error(const std::string& text) {
    try {
      cluster_of("topology: {kind: astra_sim, file: " + file(text) + "}");
    } catch (const Error& found) {
      return found.what();
    }
    return {};
  }

 private:
  std::string path_ = ::testing::TempDir() + "netsim_" +
                      ::testing::UnitTest::GetInstance()->current_test_info()->name() + "_network.yml";
};

TEST_F(AstraNetwork, IsWhatTheFileSays) {
  const std::string text =
      "topology: [ Ring, Switch ]\nnpus_count: [ 2, 4 ]\nbandwidth: [ 100.0, 25.5 ]  # GB/s\nlatency: [ "
      "50.0, 3.39 ]\n";
  const Cluster cluster = cluster_of("topology: {kind: astra_sim, file: " + file(text) + "}");
  ASSERT_EQ(cluster.nics.size(), 8u);
  const NodeId router = access_switch(cluster.graph, cluster.nics[0].nic);
  std::map<Time, BitRate> links;
  for (const PortId port : cluster.graph.ports_of(router))
    links[cluster.graph.port(port).link.delay] = cluster.graph.port(port).link.rate;
  EXPECT_EQ(links.at(50 * kNanosecond), 800 * kGbps);
  EXPECT_EQ(links.at(3390), 204 * kGbps);
  const Cluster binary =
      cluster_of("topology: {kind: astra_sim, gigabyte: binary, file: " + file(text) + "}");
  const PortId port = binary.graph.ports_of(access_switch(binary.graph, binary.nics[0].nic))[1];
  EXPECT_EQ(binary.graph.port(port).link.rate, 858'993'459'200);
}

TEST_F(AstraNetwork, SaysWhereItIsWrong) {
  EXPECT_THAT(error("topology: [ Ring ]\nnpus_count: [ 4 ]\nbandwidth: [ tbd ]\nlatency: [ 5 ]\n"),
              AllOf(HasSubstr("network.yml:3:14"), HasSubstr("tbd")));
  EXPECT_THAT(error("topology: [ Ring ]\nnpus_count: [ 4, 2 ]\nbandwidth: [ 1 ]\nlatency: [ 5 ]\n"),
              AllOf(HasSubstr("network.yml:2:"), HasSubstr("2 entries; 1 are expected")));
  EXPECT_THAT(error("topology: [ Mesh ]\nnpus_count: [ 4 ]\nbandwidth: [ 1 ]\nlatency: [ 5 ]\n"),
              AllOf(HasSubstr("network.yml:1:"), HasSubstr("Ring, FullyConnected, Switch")));
  EXPECT_THAT(error("topology: [ Ring ]\nnpus_count: [ 4 ]\nbandwidth: [ 1 ]\n"),
              HasSubstr("'latency' is missing"));
  EXPECT_THAT(error("topology: [ Ring ]\nnpus_count: [ 4 ]\nbandwidth: [ 0 ]\nlatency: [ 5 ]\n"),
              HasSubstr("out of range"));
}

TEST_F(AstraNetwork, ReadsTheSamples) {
  NETSIM_NEEDS_SHARED("samples/astra_sim_cfg");
  std::size_t read = 0;
  for (const std::string& path : test::shared_files("samples/astra_sim_cfg/network_analytical", ".yml")) {
    if (path.ends_with("dgx_v100_8gpu.yml")) {  // its figures are "tbd"
      EXPECT_THROW(cluster_of("topology: {kind: astra_sim, file: " + path + "}"), InputError) << path;
      continue;
    }
    const Cluster cluster = cluster_of("topology: {kind: astra_sim, file: " + path + "}");
    EXPECT_GT(cluster.nics.size(), 1u) << path;
    ++read;
  }
  EXPECT_GT(read, 10u);
}

}  // namespace
}  // namespace netsim::multi_dimensional_test
