// LibraryChoice: what runs a communication, for tables.
#pragma once

#include <cstdint>
#include <string>

#include "sim/collectives/protocol.h"

namespace netsim {

struct LibraryChoice {
  std::string algorithm;  // as Plan::algorithm()
  Protocol protocol = Protocol::simple;
  std::uint32_t channels = 1;  // the library's, each a thread block on every GPU
  // Who chose algorithm and protocol, in words: "default", "configured", a rule of a tuner's file, or NCCL's
  // cost model, with its estimate and that of the next best.
  std::string why;
  std::string own = {};  // OwnAlgorithm::name, where the workload names one
  // Who does a part of what the ranks would have to: switches that add up or copy, or ranks that contribute
  // nothing.
  enum class Help : std::uint8_t { none, switches, servers } help = Help::none;
};

}  // namespace netsim
