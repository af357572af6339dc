// Joins operations of the GPU in a Kineto trace with the calls of the CUDA runtime that launched them. It
// also joins them with the calls of the communication library that they run.
#pragma once

#include "sim/workload/trace/kineto_trace.h"

namespace netsim {

// Finds the launch of each operation of the GPU, and sorts operations by their launches.
void find_kineto_launches(KinetoTrace& trace);
// Finds the calls of kernels that do not describe them. They have the kernel's External id, its launch is
// during them, or their group ended with it. `trace` is sorted by its launches.
void find_kineto_calls(KinetoTrace& trace);

}  // namespace netsim
