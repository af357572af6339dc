#include "sim/collectives/proof/wording.h"

namespace netsim::proof {
namespace {

using Kind = Step::Kind;

std::string name(Partner partner) {
  return partner.aggregation != kNoIndex ? "aggregation group " + number(partner.aggregation)
                                         : place(partner.rank, partner.block);
}

bool same(ChunkAt a, ChunkAt b) { return a.buffer == b.buffer && a.chunk == b.chunk; }

std::string what_it_does(const Step& step) {
  const std::string source = text(step.source, step.count), destination = text(step.destination, step.count);
  std::string sum =
      "receive from " + name(step.from) + ", add " + source +
      (same(step.source, step.destination) ? " and put it there" : ", put the sum to " + destination);
  switch (step.kind) {
    case Kind::send:
      return "send " + source + " to " + name(step.to);
    case Kind::receive:
      return "receive " + destination + " from " + name(step.from);
    case Kind::copy:
      return "copy " + source + " to " + destination;
    case Kind::reduce:
      return "add " + source + " to " + destination;
    case Kind::receive_copy_send:
      return "receive " + destination + " from " + name(step.from) + " and send it on to " + name(step.to);
    case Kind::receive_reduce_send:
      return "receive from " + name(step.from) + ", add " + source + " and send the sum to " + name(step.to);
    case Kind::receive_reduce_copy:
      return sum;
    case Kind::receive_reduce_copy_send:
      return sum + " and send it to " + name(step.to);
    case Kind::nothing:
      break;
  }
  return "wait";
}

}  // namespace

std::string number(std::uint64_t value) { return std::to_string(value); }

std::string place(std::uint32_t rank, std::uint32_t block) {
  return "rank " + number(rank) + " thread block " + number(block);
}

std::string place(std::uint32_t rank, std::uint32_t block, std::uint32_t index) {
  return place(rank, block) + " step " + number(index);
}

const char* text(Buffer buffer) {
  switch (buffer) {
    case Buffer::input:
      return "input";
    case Buffer::output:
      return "output";
    case Buffer::scratch:
      break;
  }
  return "scratch";
}

std::string text(ChunkAt at, std::uint32_t count) {
  const std::string buffer = std::string(" of the ") + text(at.buffer);
  if (count == 1) return "chunk " + number(at.chunk) + buffer;
  return "chunks " + number(at.chunk) + "-" + number(std::uint64_t{at.chunk} + count - 1) + buffer;
}

std::string text(const Step& step) {
  if (step.after_block == kNoIndex) return what_it_does(step);
  return what_it_does(step) + " after step " + number(step.after_step) + " of thread block " +
         number(step.after_block);
}

}  // namespace netsim::proof
