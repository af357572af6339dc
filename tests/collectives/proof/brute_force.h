// Executes a plan with real lists of contributions, in an order of steps that chance or a test chooses. It
// shares nothing with the proof but the plan, and knows the kinds by their definition.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/collectives/plan.h"
#include "tests/collectives/aggregation_ends.h"

namespace netsim {

struct StepAt {
  std::uint32_t rank = 0, block = 0, index = 0;
  bool operator==(const StepAt&) const = default;
};

class BruteForce {
 public:
  BruteForce(const Plan& plan, std::uint32_t slots)
      : plan_(plan), slots_(slots), name_(to_string(plan.kind())), part_(plan.chunks() / plan.ranks()) {}

  // Executes the whole plan. `choose` returns which of the thread blocks that can continue runs a step.
  // Returns "" if the result is the collective's, else the first error.
  using Choose = std::function<std::size_t(const std::vector<StepAt>&)>;
  std::string run(const Choose& choose) {
    reset();
    for (;;) {
      const std::vector<StepAt> ready = find_ready();
      if (!wrong_.empty()) return wrong_;
      if (ready.empty()) break;
      perform(ready[choose(ready)]);
      if (!wrong_.empty()) return wrong_;
    }
    return end();
  }

  // Any thread block, each time.
  static Choose any(std::mt19937& random) {
    return [&random](const std::vector<StepAt>& ready) { return random() % ready.size(); };
  }
  // Thread blocks in an order of rank that changes now and then, so that some are far ahead of others.
  static Choose by_priority(std::mt19937& random) {
    return [&random, priority = std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t>()](
               const std::vector<StepAt>& ready) mutable {
      std::size_t best = 0;
      std::uint32_t highest = 0;
      for (std::size_t i = 0; i < ready.size(); ++i) {
        auto& mine =
            priority
                .try_emplace({ready[i].rank, ready[i].block}, 1 + static_cast<std::uint32_t>(random() % 1000))
                .first->second;
        if (mine > highest) best = i, highest = mine;
      }
      if (random() % 20 == 0)
        priority[{ready[best].rank, ready[best].block}] = 1 + static_cast<std::uint32_t>(random() % 1000);
      return best;
    };
  }
  // Returns whether `second` can run before `first` if the thread block of `first` takes its time. Slots do
  // not hold it back: there may be more of them.
  bool can_come_before(StepAt second, StepAt first) {
    slots_ = UINT32_MAX;
    bool done = false;
    run([&](const std::vector<StepAt>& ready) {
      std::size_t chosen = 0;
      for (std::size_t i = 0; i < ready.size(); ++i) {
        if (ready[chosen] == first) chosen = i;
      }
      if (ready[chosen] == first && !done) wrong_ = "only the other way round";
      done = done || ready[chosen] == second;
      return chosen;
    });
    return done;
  }

 private:
  using Contribution = std::pair<std::uint32_t, std::uint32_t>;  // of a rank, a chunk of its input
  using Contributions = std::multiset<Contribution>;             // none: never written

  // --- The kinds, as MPI and NCCL define them.
  bool is(const char* name) const { return name_ == name; }
  bool has_part_as_input() const {
    return is("all_gather") || is("gather") || is("barrier") || is("dispatch");
  }
  bool has_part_as_output() const { return is("reduce_scatter") || is("scatter") || is("combine"); }
  bool has_input(std::uint32_t rank) const {
    return rank == plan_.root() || !(is("broadcast") || is("point_to_point") || is("scatter"));
  }
  // Nothing: does not matter.
  Contributions expected(std::uint32_t rank, std::uint32_t chunk) const {
    if ((is("reduce") || is("gather")) && rank != plan_.root()) return {};
    const std::uint32_t chunk_of_part = rank * part_ + (part_ == 0 ? 0 : chunk % part_);
    if (is("broadcast") || is("point_to_point")) return {{plan_.root(), chunk}};
    if (is("scatter")) return {{plan_.root(), rank * part_ + chunk}};
    if (is("all_gather") || is("gather") || is("barrier") || is("dispatch"))
      return {{chunk / part_, chunk % part_}};
    if (is("all_to_all") || is("all_to_all_v")) return {{chunk / part_, chunk_of_part}};
    Contributions sum;
    for (std::uint32_t r = 0; r < plan_.ranks(); ++r)
      sum.insert({r, has_part_as_output() ? rank * part_ + chunk : chunk});
    return sum;
  }
  std::uint32_t size(std::uint32_t rank, Buffer buffer) const {
    if (buffer == Buffer::scratch) return plan_.scratch_chunks(rank);
    const bool part = buffer == Buffer::input ? has_part_as_input() : has_part_as_output();
    return part ? part_ : plan_.chunks();
  }

  // --- Memory: input, output and scratch, one after the other; in place, output is input.
  std::size_t address(std::uint32_t rank, ChunkAt at) const {
    if (at.buffer == Buffer::scratch) return 2 * std::size_t{plan_.chunks()} + at.chunk;
    const bool input = at.buffer == Buffer::input;
    const bool part = input ? has_part_as_input() : has_part_as_output();
    const std::size_t base = input || plan_.in_place() ? 0 : plan_.chunks();
    return base + (part && plan_.in_place() ? std::size_t{rank} * part_ : 0) + at.chunk;
  }
  void reset() {
    wrong_.clear();
    memory_.assign(plan_.ranks(), {});
    done_.assign(plan_.ranks(), {});
    queues_.clear();
    for (std::uint32_t rank = 0; rank < plan_.ranks(); ++rank) {
      done_[rank].assign(plan_.blocks(rank), 0);
      memory_[rank].resize(2 * std::size_t{plan_.chunks()} + plan_.scratch_chunks(rank));
      for (std::uint32_t i = 0; has_input(rank) && i < size(rank, Buffer::input); ++i)
        memory_[rank][address(rank, {Buffer::input, i})] = {{rank, i}};
    }
  }

  // --- Steps.
  using Ends = test::Ends;
  std::vector<Ends> sent_on(StepAt at, const Step& step) const {
    return test::ends_of(plan_, at.rank, at.block, step.to, true);
  }
  std::vector<Ends> received_from(StepAt at, const Step& step) const {
    return test::ends_of(plan_, at.rank, at.block, step.from, false);
  }
  std::uint32_t slots(const Ends& ends) const {
    return ends.second.first == test::kInFan && slots_ != UINT32_MAX ? kReductionSlots : slots_;
  }
  bool is_valid(StepAt at, const Step& step) const {
    const auto inside = [&](ChunkAt place) {
      return std::uint64_t{place.chunk} + step.count <= size(at.rank, place.buffer);
    };
    const auto there = [&](Partner partner) {
      if (partner.aggregation != kNoIndex) return test::is_end(plan_, at.rank, at.block, partner);
      return partner.rank < plan_.ranks() && partner.rank != at.rank &&
             partner.block < plan_.blocks(partner.rank);
    };
    if (step.after_block != kNoIndex &&
        (step.after_block >= plan_.blocks(at.rank) || step.after_block == at.block ||
         step.after_step >= plan_.steps(at.rank, step.after_block)))
      return false;
    if (step.kind == Step::Kind::nothing) return true;
    return step.count > 0 && (!reads_source(step.kind) || inside(step.source)) &&
           (!writes_destination(step.kind) || inside(step.destination)) && !overlap(at.rank, step) &&
           (!sends(step.kind) || there(step.to)) && (!receives(step.kind) || there(step.from));
  }
  // No rule sets the order in which chunks move, and here it would matter.
  bool overlap(std::uint32_t rank, const Step& step) const {
    if (!reads_source(step.kind) || !writes_destination(step.kind)) return false;
    const std::size_t from = address(rank, step.source), to = address(rank, step.destination);
    return from != to && std::max(from, to) - std::min(from, to) < step.count;
  }
  std::vector<StepAt> find_ready() {
    std::vector<StepAt> ready;
    for (std::uint32_t rank = 0; rank < plan_.ranks(); ++rank) {
      for (std::uint32_t block = 0; block < plan_.blocks(rank); ++block) {
        const StepAt at{rank, block, done_[rank][block]};
        if (at.index == plan_.steps(rank, block)) continue;
        const Step step = plan_.step(rank, block, at.index);
        if (!is_valid(at, step)) wrong_ = "impossible";
        if (wrong_.empty() && can_begin(at, step)) ready.push_back(at);
      }
    }
    return ready;
  }
  bool can_begin(StepAt at, const Step& step) {
    if (step.after_block != kNoIndex && done_[at.rank][step.after_block] <= step.after_step) return false;
    if (receives(step.kind)) {
      for (const Ends& ends : received_from(at, step)) {
        if (queues_[ends].empty()) return false;
      }
    }
    if (!sends(step.kind)) return true;
    for (const Ends& ends : sent_on(at, step)) {
      if (queues_[ends].size() >= slots(ends)) return false;
    }
    return true;
  }
  void perform(StepAt at) {
    const Step step = plan_.step(at.rank, at.block, at.index);
    std::vector<Contributions> values(step.count);
    if (receives(step.kind)) {
      for (const Ends& ends : received_from(at, step)) {
        auto& queue = queues_[ends];
        const std::vector<Contributions> message = queue.front();
        queue.pop_front();
        if (message.size() != step.count) wrong_ = "a message of another size";
        for (std::uint32_t i = 0; i < step.count && wrong_.empty(); ++i)
          values[i] = sum(values[i], message[i]);
      }
    }
    for (std::uint32_t i = 0; i < step.count && wrong_.empty(); ++i) {
      if (reads_source(step.kind)) values[i] = sum(values[i], read(at.rank, step.source, i));
      if (step.kind == Step::Kind::reduce) values[i] = sum(values[i], read(at.rank, step.destination, i));
    }
    for (std::uint32_t i = 0; i < step.count && wrong_.empty(); ++i) {
      if (!writes_destination(step.kind)) break;
      memory_[at.rank][address(at.rank, {step.destination.buffer, step.destination.chunk + i})] = values[i];
    }
    if (sends(step.kind) && wrong_.empty()) {
      for (const Ends& ends : sent_on(at, step)) queues_[ends].push_back(values);
    }
    ++done_[at.rank][at.block];
  }
  Contributions read(std::uint32_t rank, ChunkAt at, std::uint32_t i) {
    const Contributions& value = memory_[rank][address(rank, {at.buffer, at.chunk + i})];
    if (value.empty()) wrong_ = "reads what nobody wrote";
    return value;
  }
  // No collective adds up two contributions of one rank, or of different chunks. A kind without a reduction
  // adds up nothing.
  Contributions sum(Contributions a, const Contributions& b) {
    const bool adds = !a.empty();
    const bool may = is("all_reduce") || is("reduce") || is("reduce_scatter") || is("combine");
    for (const Contribution& one : b) {
      if (adds && (!may || a.count(one) != 0 || a.begin()->second != one.second)) wrong_ = "a wrong sum";
      a.insert(one);
    }
    return a;
  }
  std::string end() const {
    for (std::uint32_t rank = 0; rank < plan_.ranks(); ++rank) {
      for (std::uint32_t block = 0; block < plan_.blocks(rank); ++block) {
        if (done_[rank][block] != plan_.steps(rank, block)) return "deadlock";
      }
    }
    for (const auto& [ends, queue] : queues_) {
      if (!queue.empty()) return "a message is left";
    }
    for (std::uint32_t rank = 0; rank < plan_.ranks(); ++rank) {
      for (std::uint32_t i = 0; i < size(rank, Buffer::output); ++i) {
        const Contributions wanted = expected(rank, i);
        if (!wanted.empty() && memory_[rank][address(rank, {Buffer::output, i})] != wanted)
          return "a wrong result";
      }
    }
    return "";
  }

  const Plan& plan_;
  std::uint32_t slots_;
  std::string name_;
  std::uint32_t part_;
  std::vector<std::vector<Contributions>> memory_;                 // by rank and address
  std::vector<std::vector<std::uint32_t>> done_;                   // steps, by rank and thread block
  std::map<Ends, std::deque<std::vector<Contributions>>> queues_;  // messages, by thread blocks
  std::string wrong_;
};

}  // namespace netsim
