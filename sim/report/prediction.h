// Prediction: how big a run will be, before it is done: for --dry-run and for the progress display.
//
// Packets and hops are counted from the tasks. Every message's packets take the way that its queue pair gets
// in the idle network, or the switches that copy and add up. Time and memory are extrapolated from a piece
// of the run itself (Calibration), because nothing is known of the machine beforehand.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/collectives/execution/executor.h"
#include "sim/core/units.h"
#include "sim/topology/topology.h"
#include "sim/transport/packet_network.h"
#include "sim/workload/memory_plan.h"
#include "sim/workload/task.h"

namespace netsim {

// Volume counts what a run has to do, or has done. A prediction is exact where nothing is lost, no link is
// down and packets go straight. Packets that always make a detour by chance (valiant) cross links as many as
// on average.
struct Volume {
  bool known = true;  // predicted: false where only playing the workload tells what it does
  std::uint64_t tasks = 0;
  Bytes scale_out_bytes = 0;       // payload over the fabric
  std::uint64_t flows = 0;         // messages over the fabric
  std::uint64_t packets = 0;       // data packets over the fabric and pieces within hosts, as delivered
  std::uint64_t queue_pairs = 0;   // within hosts too; predicted: those that more than one message uses
  std::uint64_t single_flows = 0;  // predicted: flows on a queue pair of their own, which is used again
  HopCounts packet_hops{};
  // Prediction of packet_hops if all packets made a detour, where each packet decides by the queues that it
  // meets (ugal). Equal to packet_hops otherwise.
  HopCounts most_hops{};

  std::uint64_t hops() const;
};

// A piece of the run, played to learn what it costs here.
struct Calibration {
  // What had been done `seconds` (of a Stopwatch) after the run's start.
  struct Mark {
    double seconds = 0;
    Volume done;
    std::uint64_t memory = 0;  // largest so far, bytes
  };
  double setup_seconds = 0;  // until the run's start
  Mark early, end;           // after the caches have got warm; at the end of the piece
  bool complete = false;     // the piece is the whole run
  std::uint64_t memory = 0;  // with the report of the piece, as the run has one at its end
  Time simulated = 0;        // by the piece
  Time timer = 0;            // how long the timer of a flow on a queue pair of its own may outlive it
};

// What the fullest GPU of a job needs, in the order of its program.
struct PlannedMemory {
  std::string job;
  MemoryPeak peak;
  Bytes capacity = 0;  // 0: not known
};

struct Prediction {
  std::uint32_t ranks = 0;
  Volume volume;
  // Hops if no packet makes a detour that it need not make, and if all do (ugal); otherwise both the
  // volume's.
  std::uint64_t least_hops = 0, most_hops = 0;
  double minutes = 0;        // of the whole run with this machine to itself, set-up included
  std::uint64_t memory = 0;  // largest resident memory, bytes
  Calibration calibration;
  double share = 0;                       // of the run's work that the calibration did
  std::vector<PlannedMemory> gpu_memory;  // of the jobs that know it
};

// Which part of the work of `all` is done, 0 to 1: for the progress display.
double share_done(const Volume& done, const Volume& all);

// Walks all tasks of all ranks of a job, whose ranks are on these GPUs. Not known where the source cannot
// say. `network`: null where it is ideal.
Volume predict_volume(const TaskSource& source, const std::vector<std::uint32_t>& gpus, Executor& executor,
                      const Cluster& cluster, const PacketNetwork* network);
// Of several jobs together.
void add_volume(Volume& sum, const Volume& more);

// Extrapolates the calibration to the whole volume. Of packets that may make a detour as many do so as in the
// calibration.
Prediction extrapolate(std::uint32_t ranks, const Volume& predicted, const Calibration& calibration);

// Largest memory, and address space, of this process so far, bytes; 0 where the system does not tell.
std::uint64_t peak_memory();
std::uint64_t peak_address_space();

}  // namespace netsim
