// LibraryChoice: how the library runs a communication, for tables.
#pragma once

#include <cstdint>
#include <string>

#include "sim/collectives/protocol.h"
#include "sim/core/units.h"

namespace netsim {

struct LibraryChoice {
  std::string algorithm;  // Plan::algorithm()
  Protocol protocol = Protocol::simple;
  std::uint32_t channels = 1;  // the library's channels, each a thread block on every GPU
  // Reason for algorithm and protocol, in words. It is "default", "configured", a rule of a tuner's file, or
  // NCCL's cost model with its estimate and the next best one.
  std::string why;
  std::string own = {};  // OwnAlgorithm::name, where the workload names an algorithm
  // Other devices that do a part of the ranks' work: switches that add up or copy, or servers that contribute
  // nothing.
  enum class Help : std::uint8_t { none, switches, servers } help = Help::none;
  Time startup = 0;  // from a rank's start to its first step, the launch of the kernel included
};

}  // namespace netsim
