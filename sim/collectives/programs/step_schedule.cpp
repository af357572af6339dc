#include "sim/collectives/programs/step_schedule.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "sim/collectives/programs/program_file.h"

namespace netsim {
namespace {

using Send = StepSchedule::Send;

// A step of a rank, by thread block and index.
struct StepAt {
  std::uint32_t block = 0, step = 0;
};

// Held: the content of an address at a rank, and the last steps that used its chunk.
struct Held {
  ChunkAt at;
  std::vector<bool> contributions;  // by rank; empty: the rank does not have the address
  std::vector<StepAt> writers;      // at most one
  std::vector<StepAt> readers;      // readers since it was written
};

class Builder {
 public:
  explicit Builder(const StepSchedule& schedule) : schedule_(schedule) {}

  CollectiveProgram build() {
    make_head();
    for (std::uint32_t rank = 0; rank < ranks(); ++rank) place_input(rank);
    for (const std::vector<Send>& step : schedule_.steps) add_step(step);
    if (const auto fault = connect(program_)) throw InputError(schedule_.place, to_string(*fault));
    return std::move(program_);
  }

 private:
  [[noreturn]] static void fail(const Place& place, const std::string& message) {
    throw InputError(place, message);
  }
  std::uint32_t ranks() const { return static_cast<std::uint32_t>(schedule_.inputs.size()); }
  const CollectiveGoal& goal() const { return info_of(schedule_.kind).goal; }
  bool reduces() const { return goal().contributors == ChunkRanks::all; }

  // ---- Buffers

  void make_head() {
    program_.name = schedule_.name;
    program_.kind = schedule_.kind;
    program_.in_place = goal().contributors != ChunkRanks::source;
    program_.ranks.resize(ranks());
    program_.root = root();
    const std::vector<std::uint32_t>& whole =
        (goal().contributors == ChunkRanks::all || !program_.in_place ? schedule_.inputs
                                                                      : schedule_.outputs)[program_.root];
    program_.chunks = static_cast<std::uint32_t>(whole.size());
    if (auto fault = connect(program_)) fail(schedule_.place, fault->message);  // a fault in its numbers
    const ProgramPlan plan(program_);
    for (std::uint32_t rank = 0; rank < ranks(); ++rank) {
      check_size(plan, rank, Buffer::input, schedule_.inputs[rank], goal().contributors);
      check_size(plan, rank, Buffer::output, schedule_.outputs[rank], goal().holders);
    }
  }

  // Returns the first rank that has an input, or an output, for kinds in which only the root has.
  std::uint32_t root() const {
    if (!has_root(schedule_.kind)) return 0;
    const auto& of = goal().contributors == ChunkRanks::root ? schedule_.inputs : schedule_.outputs;
    const auto first = std::find_if(of.begin(), of.end(), [](const auto& chunks) { return !chunks.empty(); });
    return first == of.end() ? 0 : static_cast<std::uint32_t>(first - of.begin());
  }

  void check_size(const ProgramPlan& plan, std::uint32_t rank, Buffer buffer,
                  const std::vector<std::uint32_t>& given, ChunkRanks of) const {
    const bool nothing = of == ChunkRanks::root && rank != program_.root;
    const std::uint32_t expected = nothing ? 0 : chunks_of(plan, rank, buffer);
    if (given.size() == expected || (nothing && given.size() == program_.chunks)) return;
    fail(schedule_.place, "rank " + std::to_string(rank) + " has " + std::to_string(given.size()) +
                              " chunks of " + (buffer == Buffer::input ? "input" : "output") +
                              "; allowed: " + std::to_string(expected) + ", because the " +
                              to_string(schedule_.kind) + " is of " + std::to_string(program_.chunks) +
                              " chunks and " + std::to_string(ranks()) + " ranks");
  }

  // Sets the rank's initial content. Where input and output are two buffers, data that stays is copied.
  void place_input(std::uint32_t rank) {
    const std::vector<std::uint32_t>& input = schedule_.inputs[rank];
    if (goal().contributors == ChunkRanks::root && rank != program_.root) return;
    for (std::uint32_t chunk = 0; chunk < input.size(); ++chunk) {
      pieces_.try_emplace(input[chunk], piece_of(ProgramPlan(program_), rank, {Buffer::input, chunk}));
      Held& held = held_[{rank, input[chunk]}];
      if (!held.contributions.empty())
        fail(schedule_.place, "rank " + std::to_string(rank) + " has address " +
                                  std::to_string(input[chunk]) + " twice in its input");
      held.contributions.assign(reduces() ? ranks() : 1, !reduces());
      if (reduces()) held.contributions[rank] = true;
      const auto result = position(schedule_.outputs[rank], input[chunk]);
      held.at = {Buffer::input, chunk};
      if (!result) continue;
      if (program_.in_place) {
        check_one_place(rank, input[chunk], chunk, *result);
      } else {
        add_copy(rank, held.at, {Buffer::output, *result});
      }
    }
  }

  static std::optional<std::uint32_t> position(const std::vector<std::uint32_t>& list,
                                               std::uint32_t address) {
    const auto found = std::find(list.begin(), list.end(), address);
    if (found == list.end()) return std::nullopt;
    return static_cast<std::uint32_t>(found - list.begin());
  }

  void check_one_place(std::uint32_t rank, std::uint32_t address, std::uint32_t input,
                       std::uint32_t output) const {
    const std::uint32_t part = program_.chunks / ranks();
    if (goal().contributors == ChunkRanks::owner) input += rank * part;
    if (goal().holders == ChunkRanks::owner) output += rank * part;
    if (input != output) {
      fail(schedule_.place, "address " + std::to_string(address) + " of rank " + std::to_string(rank) +
                                " is chunk " + std::to_string(input) + " of its input and chunk " +
                                std::to_string(output) +
                                " of its output; allowed: the same, because both are one buffer");
    }
  }

  void add_copy(std::uint32_t rank, ChunkAt source, ChunkAt destination) {
    Step step;
    step.kind = Step::Kind::copy;
    step.source = source;
    step.destination = destination;
    program_.ranks[rank].blocks[block_of(rank, kNoIndex, kNoIndex)].steps.push_back(step);
  }

  // Returns where the rank keeps an address that it receives: its place in the output, or scratch.
  ChunkAt place_for(std::uint32_t rank, std::uint32_t address) {
    if (const auto chunk = position(schedule_.outputs[rank], address)) return {Buffer::output, *chunk};
    const std::uint32_t piece = pieces_.at(address);
    const std::uint32_t chunk = scratch_used_[{rank, piece}]++ * program_.chunks + piece;
    std::uint32_t& chunks = program_.ranks[rank].scratch_chunks;
    chunks = std::max(chunks, chunk + 1);
    return {Buffer::scratch, chunk};
  }

  // ---- Steps

  // Adds all sends, then all receives, in the same order at both ends of every connection.
  void add_step(const std::vector<Send>& given) {
    std::vector<Send> sends = given;
    std::stable_sort(sends.begin(), sends.end(), [](const Send& a, const Send& b) {
      return std::tie(a.address, a.from, a.to) < std::tie(b.address, b.from, b.to);
    });
    std::vector<std::vector<bool>> contributions;
    contributions.reserve(sends.size());
    for (const Send& send : sends) contributions.push_back(add_send(send));
    for (std::size_t i = 0; i < sends.size(); ++i) add_receive(sends[i], contributions[i]);
  }

  // Adds a send and returns the contributions that it sends.
  std::vector<bool> add_send(const Send& send) {
    if (std::max(send.from, send.to) >= ranks() || send.from == send.to) {
      fail(send.place, "a send from rank " + std::to_string(send.from) + " to rank " +
                           std::to_string(send.to) + "; allowed: two of the " + std::to_string(ranks()) +
                           " ranks");
    }
    const auto found = held_.find({send.from, send.address});
    if (found == held_.end()) {
      fail(send.place, "rank " + std::to_string(send.from) + " sends address " +
                           std::to_string(send.address) + ", which it does not have when the step begins");
    }
    Held& held = found->second;
    Step step;
    step.kind = Step::Kind::send;
    step.source = held.at;
    held.readers.push_back(add(send.from, block_of(send.from, send.to, kNoIndex), step, held.writers));
    return held.contributions;
  }

  void add_receive(const Send& send, const std::vector<bool>& contributions) {
    const auto [entry, fresh] = held_.try_emplace({send.to, send.address});
    Held& held = entry->second;
    if (fresh) held.at = place_for(send.to, send.address);
    Step step;
    step.kind =
        add_contributions(send, held, contributions) ? Step::Kind::receive_reduce_copy : Step::Kind::receive;
    step.source = step.destination = held.at;
    std::vector<StepAt> before = held.writers;
    before.insert(before.end(), held.readers.begin(), held.readers.end());
    held.writers = {add(send.to, block_of(send.to, kNoIndex, send.from), step, before)};
    held.readers.clear();
  }

  // Returns whether arriving data is added to the present data.
  bool add_contributions(const Send& send, Held& held, const std::vector<bool>& given) const {
    bool common = false, missing = false;
    for (std::size_t rank = 0; rank < held.contributions.size(); ++rank) {
      common = common || (held.contributions[rank] && given[rank]);
      missing = missing || (held.contributions[rank] && !given[rank]);
    }
    if (common && missing) {
      fail(send.place, "rank " + std::to_string(send.from) + " sends address " +
                           std::to_string(send.address) + " to rank " + std::to_string(send.to) +
                           ", which has some of its contributions and others");
    }
    const bool added = !common && missing;
    if (!added) held.contributions.assign(given.size(), false);
    for (std::size_t rank = 0; rank < given.size(); ++rank)
      held.contributions[rank] = held.contributions[rank] || given[rank];
    return added;
  }

  // ---- Thread blocks

  std::uint32_t block_of(std::uint32_t rank, std::uint32_t to, std::uint32_t from) {
    std::vector<CollectiveProgramBlock>& blocks = program_.ranks[rank].blocks;
    const auto [entry, fresh] =
        blocks_.try_emplace({rank, to, from}, static_cast<std::uint32_t>(blocks.size()));
    if (fresh) {
      CollectiveProgramBlock& block = blocks.emplace_back();
      block.send_peer = to;
      block.receive_peer = from;
    }
    return entry->second;
  }

  // Adds a step that waits for steps of other thread blocks of the rank. A step can wait for one only, so
  // nops wait for the others.
  StepAt add(std::uint32_t rank, std::uint32_t block, Step step, const std::vector<StepAt>& before) {
    std::map<std::uint32_t, std::uint32_t> last;  // by thread block
    for (const StepAt& at : before) {
      if (at.block != block) last[at.block] = std::max(last[at.block], at.step);
    }
    std::vector<Step>& steps = program_.ranks[rank].blocks[block].steps;
    std::size_t left = last.size();
    for (const auto& [after_block, after_step] : last) {
      Step waiting = --left == 0 ? step : Step{};
      waiting.after_block = after_block;
      waiting.after_step = after_step;
      steps.push_back(waiting);
    }
    if (last.empty()) steps.push_back(step);
    return {block, static_cast<std::uint32_t>(steps.size() - 1)};
  }

  const StepSchedule& schedule_;
  CollectiveProgram program_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Held> held_;  // by rank and address
  std::map<std::uint32_t, std::uint32_t> pieces_;                 // piece of the buffer, by address
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> scratch_used_;  // by rank and piece
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::uint32_t> blocks_;
};

}  // namespace

CollectiveProgram program_of(const StepSchedule& schedule) { return Builder(schedule).build(); }

}  // namespace netsim
