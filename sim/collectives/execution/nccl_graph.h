// NcclGraph: the rings and trees of a host as NCCL writes them (NCCL_GRAPH_DUMP_FILE) and reads them instead
// of searching (NCCL_GRAPH_FILE); elements and attributes as of ncclTopoGetXmlFromGraph and
// ncclTopoGetGraphFromXml in src/graph/search.cc of NCCL 2.30:
//
//   <graphs version="1">
//     <graph id="0" pattern="4" crossnic="2" nchannels="8" speedintra="24" speedinter="24" latencyinter="0"
//            typeintra="NVL" typeinter="PXB" samechannels="0">
//       <channel><net dev="0"/><gpu dev="0"/> ... <gpu dev="0x1"/><net dev="0x1"/></channel>
//
// Graph 0 has the rings, 1 the trees, 2 CollNet's chains, 3 the heads of NVLS, 4 CollNet's direct way. A
// channel is a way through the GPUs of a host, with the NICs by which it is entered and left where there are
// several hosts; each host has the same. The library runs each channel twice. What is no ring and no tree is
// read, kept and written again, and used for nothing.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/collectives/algorithm.h"
#include "sim/core/errors.h"

namespace netsim {

struct NcclGraph {
  static constexpr std::uint32_t kRing = 0, kTree = 1, kNvls = 3;

  // A GPU by its number in its host, and of hosts that NVLink joins the host's number among them.
  struct Device {
    std::uint32_t host = 0, number = 0;
    auto operator<=>(const Device&) const = default;
  };
  struct Channel {
    std::vector<std::uint32_t> nets;  // none, or two: it is entered by the first and left by the second
    std::vector<Device> gpus;
    Place place;
  };
  struct Graph {
    std::uint32_t id = kRing;
    std::uint32_t pattern = 4;    // of trees: 1 balanced, 2 split, 3 plain
    std::uint32_t cross_nic = 0;  // 2: every other host has its channels in pairs the other way round
    // GB/s of a channel, as NCCL's cost model counts it: on up to two hosts, and on more.
    double speed_intra = 0, speed_inter = 0;
    double latency_inter = 0;
    std::string type_intra = "NVL", type_inter = "PXB";  // the farthest between GPUs, and from GPU to NIC
    bool same_channels = false;
    std::vector<Channel> channels;
    Place place;

    TreePattern tree_pattern() const {
      return pattern == 2 ? TreePattern::split : pattern == 3 ? TreePattern::plain : TreePattern::balanced;
    }
    // The way of channel `channel` through host `host` of a group, both numbered from 0.
    const Channel& channel(std::size_t channel, std::size_t host) const {
      const bool swapped = cross_nic == 2 && channels.size() % 2 == 0 && host % 2 == 1;
      return channels[swapped ? channel ^ 1U : channel];
    }
  };

  // Null: the file has none.
  const Graph* find(std::uint32_t id) const;
  std::string path;
  std::vector<Graph> graphs;
};

// InputError with the place for what is no such file, or has neither rings nor trees.
NcclGraph read_nccl_graph(std::string text, const std::string& path);
std::string write_nccl_graph(const NcclGraph& graph);

}  // namespace netsim
