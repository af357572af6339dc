// NcclGraph: the rings and trees of a host as NCCL writes them (NCCL_GRAPH_DUMP_FILE). NCCL reads such a file
// instead of searching (NCCL_GRAPH_FILE). Elements and attributes are those of ncclTopoGetXmlFromGraph and
// ncclTopoGetGraphFromXml in src/graph/search.cc of NCCL 2.30:
//
//   <graphs version="1">
//     <graph id="0" pattern="4" crossnic="2" nchannels="8" speedintra="24" speedinter="24" latencyinter="0"
//            typeintra="NVL" typeinter="PXB" samechannels="0">
//       <channel><net dev="0"/><gpu dev="0"/> ... <gpu dev="0x1"/><net dev="0x1"/></channel>
//
// Graph 0 holds the rings, 1 the trees, 2 CollNet's chains, 3 the heads of NVLS, 4 CollNet's direct graph. A
// channel is an order of the GPUs of a host. With several hosts it includes the NICs by which it enters and
// leaves; each host has the same channels. The library runs each channel twice. Graphs other than rings and
// trees are read and written again, but not used.
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

  // Device: a GPU by its number in its host. Among hosts that NVLink joins, `host` is the host's number.
  struct Device {
    std::uint32_t host = 0, number = 0;
    auto operator<=>(const Device&) const = default;
  };
  struct Channel {
    // NICs of a host: the one by which the channel enters and the one by which it leaves, or none.
    std::vector<std::uint32_t> nets;
    std::vector<Device> gpus;
    Place place;
  };
  struct Graph {
    std::uint32_t id = kRing;
    std::uint32_t pattern = 4;    // for trees: 1 balanced, 2 split, 3 plain
    std::uint32_t cross_nic = 0;  // 2: in every other host the channels of each pair are swapped
    // GB/s of a channel, as NCCL's cost model counts it: on up to two hosts, and on more.
    double speed_intra = 0, speed_inter = 0;
    double latency_inter = 0;
    // Type of the longest path between GPUs, and of that from a GPU to a NIC.
    std::string type_intra = "NVL", type_inter = "PXB";
    bool same_channels = false;
    std::vector<Channel> channels;
    Place place;

    TreePattern tree_pattern() const {
      return pattern == 2 ? TreePattern::split : pattern == 3 ? TreePattern::plain : TreePattern::balanced;
    }
    // Returns the order of channel `channel` in host `host` of a group, both numbered from 0.
    const Channel& channel(std::size_t channel, std::size_t host) const {
      const bool swapped = cross_nic == 2 && channels.size() % 2 == 0 && host % 2 == 1;
      return channels[swapped ? channel ^ 1U : channel];
    }
  };

  // Returns the graph with this id; null: the file has none.
  const Graph* find(std::uint32_t id) const;
  std::string path;
  std::vector<Graph> graphs;
};

// Reads a graph file. Throws InputError with the place for a text that is not such a file, or has neither
// rings nor trees.
NcclGraph read_nccl_graph(std::string text, const std::string& path);
std::string write_nccl_graph(const NcclGraph& graph);

}  // namespace netsim
