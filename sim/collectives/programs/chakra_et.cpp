#include "sim/collectives/programs/chakra_et.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/collectives/programs/chakra_chunks.h"
#include "sim/collectives/programs/chakra_messages.h"
#include "sim/collectives/programs/chakra_trace.h"
#include "sim/collectives/programs/program_file.h"
#include "sim/core/errors.h"
#include "sim/core/text.h"

namespace netsim {
namespace {

// Names are compared by their letters only: "allreduce", "reduce_scatter".
constexpr std::pair<const char*, CollectiveKind> kChakraNames[] = {
    {"allreduce", CollectiveKind::all_reduce},         {"allgather", CollectiveKind::all_gather},
    {"reducescatter", CollectiveKind::reduce_scatter}, {"alltoall", CollectiveKind::all_to_all},
    {"broadcast", CollectiveKind::broadcast},          {"reduce", CollectiveKind::reduce}};

// ---- The program

class Assembler {
 public:
  Assembler(const ChakraMessages& messages, const ChakraChunks& chunks)
      : messages_(messages), chunks_(chunks), reduced_(messages.reduced(chunks.kind)) {}

  CollectiveProgram assemble() {
    program_.name = messages_.trace().name;
    program_.kind = chunks_.kind;
    program_.root = chunks_.root;
    program_.chunks = chunks_.chunks;
    program_.channels = messages_.channels();
    program_.in_place = is_in_place(chunks_.kind);
    program_.ranks.resize(messages_.ranks());
    for (std::uint32_t rank = 0; rank < messages_.ranks(); ++rank) {
      program_.ranks[rank].scratch_chunks = chunks_.scratch[rank];
      add_rank(rank);
    }
    if (!program_.in_place) add_copies();
    if (const auto fault = connect(program_))
      throw InputError(Place{messages_.trace().ranks[0].path, 0, 0, ""}, to_string(*fault));
    return std::move(program_);
  }

 private:
  // Steps that must be finished: the last step of each thread block of a rank.
  using Steps = std::map<std::uint32_t, std::uint32_t>;

  void add_rank(std::uint32_t rank) {
    const ChakraRank& file = messages_.trace().ranks[rank];
    std::map<std::tuple<bool, std::uint32_t, std::uint32_t>, std::uint32_t> blocks;
    std::vector<Steps> done(file.nodes.size());
    for (const std::uint32_t position : file.in_order) {
      const ChakraNode& node = file.nodes[position];
      Steps before;
      for (const std::vector<std::uint32_t>* list : {&node.data, &node.control}) {
        for (const std::uint32_t other : *list) {
          for (const auto& [block, step] : done[other]) before[block] = std::max(before[block], step);
        }
      }
      const bool sending = node.kind == ChakraNode::Kind::send;
      if (!sending && node.kind != ChakraNode::Kind::receive) {
        done[position] = std::move(before);
        continue;
      }
      const std::uint32_t message = messages_.of({rank, position});
      const std::uint32_t channel = messages_.all()[message].channel;
      std::vector<CollectiveProgramBlock>& all = program_.ranks[rank].blocks;
      const auto [entry, fresh] =
          blocks.try_emplace({sending, node.peer, channel}, static_cast<std::uint32_t>(all.size()));
      if (fresh) {
        CollectiveProgramBlock& block = all.emplace_back();
        block.channel = channel;
        (sending ? block.send_peer : block.receive_peer) = node.peer;
      }
      add(all[entry->second].steps, step_of(message, sending), entry->second, before);
      done[position] = {{entry->second, static_cast<std::uint32_t>(all[entry->second].steps.size() - 1)}};
    }
  }

  Step step_of(std::uint32_t message, bool sending) const {
    const ChakraChunks::Carried& carried = chunks_.carried[message];
    Step step;
    step.kind = sending             ? Step::Kind::send
                : reduced_[message] ? Step::Kind::receive_reduce_copy
                                    : Step::Kind::receive;
    step.source = sending ? carried.source : carried.destination;
    step.destination = carried.destination;
    step.count = carried.count;
    return step;
  }

  // Adds a step that waits for steps of other thread blocks. A step can wait for one only, so nops wait for
  // the others.
  static void add(std::vector<Step>& steps, const Step& step, std::uint32_t block, Steps before) {
    before.erase(block);  // steps of one thread block are executed in order
    std::size_t left = before.size();
    for (const auto& [after_block, after_step] : before) {
      Step waiting = --left == 0 ? step : Step{};
      waiting.after_block = after_block;
      waiting.after_step = after_step;
      steps.push_back(waiting);
    }
    if (before.empty()) steps.push_back(step);
  }

  // Adds copies of the blocks that a rank keeps in an all-to-all. Converters write compute nodes without
  // information for them.
  void add_copies() {
    const std::uint32_t each = chunks_.chunks / messages_.ranks();
    for (std::uint32_t rank = 0; rank < messages_.ranks() && each > 0; ++rank) {
      Step step;
      step.kind = Step::Kind::copy;
      step.source = {Buffer::input, rank * each};
      step.destination = {Buffer::output, rank * each};
      step.count = each;
      program_.ranks[rank].blocks.emplace_back().steps.push_back(step);
    }
  }

  const ChakraMessages& messages_;
  const ChakraChunks& chunks_;
  std::vector<bool> reduced_;
  CollectiveProgram program_;
};

// Returns the kind that the trace names. Otherwise it returns all kinds that add up, or all others, according
// to the trace's nodes.
std::vector<CollectiveKind> kinds_of_messages(const ChakraMessages& messages) {
  const ChakraTrace& trace = messages.trace();
  const std::vector<bool> reduced = messages.reduced(CollectiveKind::all_reduce);
  const bool sums = std::find(reduced.begin(), reduced.end(), true) != reduced.end();
  std::string name, allowed;
  for (const char c : trace.collective) {
    if (std::isalpha(static_cast<unsigned char>(c)) != 0)
      name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  std::vector<CollectiveKind> all;
  for (const auto& [known, kind] : kChakraNames) {
    if (!trace.collective.empty() && name == known) return {kind};
    append_item(allowed, known);
    if (can_reduce(kind) == sums) all.push_back(kind);
  }
  if (trace.collective.empty()) return all;
  throw InputError(Place{trace.ranks[0].path, 0, 0, ""},
                   "is of the collective '" + trace.collective + "'; allowed: " + allowed);
}

}  // namespace

CollectiveProgram read_chakra_et(std::string text, const std::string& path) {
  const ChakraTrace trace = read_chakra_trace(text, path);
  const ChakraMessages messages(trace);
  const std::vector<CollectiveKind> kinds = kinds_of_messages(messages);
  const bool says = says_chunks(messages);
  std::optional<CollectiveProgram> first;
  for (const CollectiveKind kind : kinds) {
    std::optional<ChakraInterpretations> guess;
    if (!says) guess.emplace(messages, kind);
    for (int way = 0; way < (says ? 1 : ChakraInterpretations::kWays); ++way) {
      const auto chunks = says ? said_chunks(messages, kind) : guess->chunks(way);
      const bool parts = chunks && has_parts(kind) && chunks->chunks % trace.ranks.size() != 0;
      if (!chunks || (parts && kinds.size() > 1)) continue;
      CollectiveProgram program = Assembler(messages, *chunks).assemble();
      if (prove(program).empty()) return program;
      if (!first) first = std::move(program);
    }
  }
  if (first && kinds.size() == 1) return *std::move(first);
  throw InputError(
      Place{trace.ranks[0].path, 0, 0, ""},
      kinds.size() == 1
          ? "is of the collective '" + trace.collective +
                "', but its messages do not perform it; allowed: each chunk goes from a rank that has it to "
                "a rank that needs it, with one root for a broadcast or a reduce"
          : std::string("does not name its collective, and its messages perform none; allowed: `collective` "
                        "among the attributes of its first record, or a trace that performs one"));
}

}  // namespace netsim
