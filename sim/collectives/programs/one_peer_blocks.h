// Converts any plan to a program. The steps of a thread block with several partners are shared out to several
// thread blocks. Each of these sends to one rank and receives from one, as MSCCL requires.
#pragma once

#include "sim/collectives/programs/program_plan.h"

namespace netsim {

// A plan that already has this form keeps its thread blocks, channels and steps. In any other plan each
// connection (thread block to thread block) becomes a connection between two new thread blocks:
//
// - A thread block keeps its incoming and an outgoing connection together where a step needs both, and where
//   it can. Where it cannot, a fused step becomes a receive (and reduction) and a send. Data that it stored
//   nowhere goes to new scratch chunks.
// - The new blocks wait for each other so that all steps begin in the order of the plan, within a round. A
//   step can wait for one step only. Where it must wait for two, a nop before it waits for one of them.
// - Channels are renumbered, as few as possible, because two connections of the same two ranks differ only by
//   their channel.
//
// The messages, and their order on each connection, are those of the plan. Throws InputError for a plan
// beyond the limits of programs.
CollectiveProgram program_of(const Plan& plan);

}  // namespace netsim
