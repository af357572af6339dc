// Any plan as a program: what a thread block does with several partners is shared out to thread blocks that
// send to one rank and receive from one, as MSCCL wants them.
#pragma once

#include "sim/collectives/programs/program_plan.h"

namespace netsim {

// A plan that is like that already keeps its thread blocks, channels and steps. Of another one, each
// connection (thread block to thread block) becomes one of its own between two new thread blocks:
//
// - A thread block keeps its incoming and an outgoing connection together where a step needs both, and where
//   it can. Where it cannot, a fused step becomes a receive (and reduction) and a send; what it stored
//   nowhere goes to scratch of its own.
// - The new blocks wait for each other so that all steps begin in the order of the plan, within a round;
//   where a step then has two to wait for, a nop before it waits for one of them.
// - Channels are numbered anew, as few as possible, because two connections of the same two ranks differ by
//   their channel only.
//
// InputError for a plan beyond the limits of programs. The messages, and their order on each connection, are
// the plan's.
CollectiveProgram program_of(const Plan& plan);

}  // namespace netsim
