#include "sim/collectives/execution/stall_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace netsim {
namespace {

// Returns "all_reduce 0x2a", or "part 3 of all_reduce 0x2a"; for jobs other than the first, "all_reduce 0x2a
// of job 1".
std::string communication_name(const char* kind, const CommunicationRequest& request) {
  const bool whole = request.part == kNoIndex;
  const std::string part = whole ? "" : fmt::format("part {} of ", request.part);
  const std::string name =
      fmt::format("{}{} {:#x}", part, kind, whole ? request.communication : request.whole);
  return request.traits.job == 0 ? name : fmt::format("{} of job {}", name, request.traits.job);
}

std::string chunks(const ChunkAt& at, std::uint32_t count) {
  static constexpr const char* kBuffers[] = {"input", "output", "scratch"};
  const char* buffer = kBuffers[static_cast<std::size_t>(at.buffer)];
  return count == 1 ? fmt::format("chunk {} of the {}", at.chunk, buffer)
                    : fmt::format("chunks {} to {} of the {}", at.chunk, at.chunk + count - 1, buffer);
}

// Returns why the thread block does not continue.
std::string cause(const Operation& operation, std::uint32_t number) {
  const ThreadBlock& block = operation.thread_blocks[number];
  const Step& step = block.step;
  const auto other = [&](const Partner& partner) {
    return partner.aggregation != kNoIndex ? fmt::format("aggregation group {}", partner.aggregation)
                                           : fmt::format("gpu {}", operation.gpu_of(partner.rank, number));
  };
  if (receives(step.kind) && operation.arrived.get({peer_of(step.from), number}) == 0) {
    return fmt::format("waits to {} {} from {}", reduces(step.kind) ? "reduce" : "receive",
                       chunks(writes_destination(step.kind) ? step.destination : step.source, step.count),
                       other(step.from));
  }
  if (sends(step.kind) && !can_continue(operation, number)) {
    const std::uint32_t filled = operation.filled.get({peer_of(step.to), number});
    if (filled > 0)
      return fmt::format("waits to send {} to {} ({} slots filled there)",
                         chunks(what_is_sent(step), step.count), other(step.to), filled);
  }
  return fmt::format("waits for step {} of thread block {}", step.after_step, step.after_block);
}

std::string describe_block(const Operation& operation, std::uint32_t number) {
  const ThreadBlock& block = operation.thread_blocks[number];
  return fmt::format("round {} of {}: channel {} thread block {} {}", block.round + 1, block.rounds,
                     number / operation.blocks_per_channel, number % operation.blocks_per_channel,
                     cause(operation, number));
}

bool is_announced(const Operation& operation) { return operation.phase == Operation::Phase::announced; }

// Returns the job and the communication that an operation belongs to.
std::pair<JobId, std::uint64_t> id_of(const Operation& operation) {
  return {operation.request.traits.job, operation.request.communication};
}

}  // namespace

std::string describe(const Operation& operation, const CommunicationRequest* started) {
  if (is_announced(operation)) {
    const std::string name = started != nullptr ? communication_name(to_string(started->kind), *started)
                                                : communication_name("communication", operation.request);
    return fmt::format("gpu {}: {} messages of {} arrived, which the GPU has not started", operation.gpu,
                       operation.arrived.total(), name);
  }
  const std::string name = fmt::format(
      "gpu {}: {}", operation.gpu, communication_name(to_string(operation.request.kind), operation.request));
  if (operation.phase == Operation::Phase::entered) return name + " is in its base latency";
  for (std::uint32_t number = 0; number < operation.thread_blocks.size(); ++number) {
    if (!operation.thread_blocks[number].done()) return name + " " + describe_block(operation, number);
  }
  return fmt::format("{} waits for the acknowledgement of {} messages", name, operation.in_flight);
}

std::vector<std::string> describe_all(std::span<const Operation* const> operations, std::size_t limit) {
  std::map<std::pair<JobId, std::uint64_t>, const CommunicationRequest*> started;
  for (const Operation* operation : operations) {
    if (!is_announced(*operation)) started.emplace(id_of(*operation), &operation->request);
  }
  std::vector<std::string> lines;
  for (const Operation* operation : operations.first(std::min(limit, operations.size()))) {
    const auto known = started.find(id_of(*operation));
    lines.push_back(describe(*operation, known == started.end() ? nullptr : known->second));
  }
  return lines;
}

}  // namespace netsim
