// Prediction: estimates the size of a run in advance, for --dry-run and for the progress display.
//
// Packets and hops are counted from the tasks. The packets of a message take the route that its queue pair
// gets in the idle network, or the switches that copy and reduce. Time and memory are extrapolated from a
// simulated piece of the run (Calibration), because nothing is known of the machine beforehand.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/collectives/execution/executor.h"
#include "sim/core/ids.h"
#include "sim/core/units.h"
#include "sim/jobs/planned_operations.h"
#include "sim/topology/topology.h"
#include "sim/transport/packet_network.h"
#include "sim/workload/memory_plan.h"
#include "sim/workload/task_source.h"

namespace netsim {

// Volume: counts the work of a run, predicted or done. A prediction is exact if nothing is lost, no link is
// down and packets take direct routes. Packets that always make a random detour (valiant) count the average
// number of links.
struct Volume {
  bool known = true;  // predicted: false if only simulating the workload shows its tasks
  std::uint64_t tasks = 0;
  Bytes scale_out_bytes = 0;  // payload over the fabric
  std::uint64_t flows = 0;    // messages over the fabric
  std::uint64_t packets = 0;  // data packets over the fabric and pieces within hosts, as delivered
  // Queue pairs, also within hosts. A prediction counts those that more than one message uses.
  std::uint64_t queue_pairs = 0;
  std::uint64_t single_flows = 0;  // predicted: flows on a queue pair of their own, whose memory is reused
  HopCounts packet_hops{};
  // Prediction of packet_hops if all packets made a detour, where each packet decides by the queues on its
  // route (ugal). Otherwise equal to packet_hops.
  HopCounts most_hops{};

  std::uint64_t hops() const;
};

// Calibration: a piece of the run that is simulated to learn the cost of the run on this machine.
struct Calibration {
  // Mark: the work done `seconds` (of a Stopwatch) after the run's start.
  struct Mark {
    double seconds = 0;
    Volume done;
    std::uint64_t memory = 0;  // peak so far, bytes
  };
  double setup_seconds = 0;  // from the program's start to the run's start
  Mark early, end;           // `early` is taken when the caches are warm, `end` at the end of the piece
  bool complete = false;     // the piece is the whole run
  // Peak in bytes, with the report of the piece, because the whole run has a report at its end.
  std::uint64_t memory = 0;
  Time simulated = 0;  // simulated time of the piece
  Time timer = 0;  // longest time by which the timer of a flow on a queue pair of its own outlives the flow
};

// PlannedMemory: the memory that the fullest GPU of a job needs, in program order.
struct PlannedMemory {
  std::string job;
  MemoryPeak peak;
  Bytes capacity = 0;  // bytes; 0: unknown
};

struct Prediction {
  std::uint32_t ranks = 0;
  Volume volume;
  // Hops if no packet makes an avoidable detour, and if all do (ugal). Otherwise both equal the volume's
  // hops.
  std::uint64_t least_hops = 0, most_hops = 0;
  double minutes = 0;        // of the whole run, set-up included, if nothing else runs on this machine
  std::uint64_t memory = 0;  // peak resident memory, bytes
  Calibration calibration;
  double share = 0;                       // share of the run's work that the calibration did
  std::vector<PlannedMemory> gpu_memory;  // only of jobs whose workload gives it
  std::vector<PlannedLaunches> launches;  // only of jobs with a task scheduler
};

// Returns the share of the work of `all` that is done, 0 to 1, for the progress display.
double share_done(const Volume& done, const Volume& all);

// Counts the work of a job by walking all tasks of all its ranks. `gpus` holds the GPU of each rank;
// `network` is null if it is ideal, and `scheduling` if the job has no task scheduler. Volume::known is false
// if the source cannot list its tasks.
Volume predict_volume(const TaskSource& source, const std::vector<GpuId>& gpus, Executor& executor,
                      const Cluster& cluster, const PacketNetwork* network, const TaskScheduling* scheduling);
// Adds the volume of another job.
void add_volume(Volume& sum, const Volume& more);

// Extrapolates the calibration to the whole volume. Packets that may make a detour do so as often as in the
// calibration.
Prediction extrapolate(std::uint32_t ranks, const Volume& predicted, const Calibration& calibration);

// Return the peak memory and peak address space of this process so far, bytes; 0 if the system does not tell.
std::uint64_t peak_memory();
std::uint64_t peak_address_space();

}  // namespace netsim
