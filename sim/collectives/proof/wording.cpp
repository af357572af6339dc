#include "sim/collectives/proof/wording.h"

namespace netsim::proof {

using Op = Instruction::Op;

std::string number(std::uint64_t value) { return std::to_string(value); }

std::string place(std::uint32_t rank, std::uint32_t thread_block, std::uint32_t index) {
  return "rank " + number(rank) + " thread block " + number(thread_block) + " instruction " + number(index);
}

std::string text(const Instruction& instruction) {
  switch (instruction.op) {
    case Op::send:
      return "send chunk " + number(instruction.chunk) + " to rank " + number(instruction.peer);
    case Op::receive:
      return "receive chunk " + number(instruction.chunk) + " from rank " + number(instruction.peer);
    case Op::reduce:
      return "reduce chunk " + number(instruction.chunk) + " from rank " + number(instruction.peer);
    case Op::wait:
      break;
  }
  return "wait for " + number(instruction.chunk) + " instructions of thread block " +
         number(instruction.peer);
}

}  // namespace netsim::proof
