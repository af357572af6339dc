// A schedule written out as tables, so that tests can damage it or write one by hand.
#pragma once

#include <vector>

#include "sim/collectives/schedule.h"

namespace netsim {

class TableSchedule final : public Schedule {
 public:
  TableSchedule(CollectiveKind kind, std::uint32_t ranks, std::uint32_t threads, std::uint32_t divisions)
      : kind_(kind), ranks_(ranks), threads_(threads), divisions_(divisions), chunks_(divisions) {
    lists_.resize(std::size_t{ranks} * threads);
  }
  explicit TableSchedule(const Schedule& other)
      : TableSchedule(other.kind(), other.ranks(), other.thread_blocks(), other.divisions()) {
    root_ = other.root();
    chunks_ = other.chunks();
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      for (std::uint32_t thread = 0; thread < threads_; ++thread) {
        for (std::uint32_t i = 0; i < other.instructions(rank, thread); ++i) {
          list(rank, thread).push_back(other.instruction(rank, thread, i));
        }
      }
    }
  }

  std::vector<Instruction>& list(std::uint32_t rank, std::uint32_t thread) {
    return lists_[std::size_t{rank} * threads_ + thread];
  }
  void set_root(std::uint32_t root) { root_ = root; }
  void set_chunks(std::uint32_t chunks) { chunks_ = chunks; }

  CollectiveKind kind() const override { return kind_; }
  const char* algorithm() const override { return "table"; }
  std::uint32_t ranks() const override { return ranks_; }
  std::uint32_t root() const override { return root_; }
  std::uint32_t thread_blocks() const override { return threads_; }
  std::uint32_t divisions() const override { return divisions_; }
  std::uint32_t chunks() const override { return chunks_; }
  std::uint32_t instructions(std::uint32_t rank, std::uint32_t thread) const override {
    return static_cast<std::uint32_t>(lists_[std::size_t{rank} * threads_ + thread].size());
  }
  Instruction instruction(std::uint32_t rank, std::uint32_t thread, std::uint32_t index) const override {
    return lists_[std::size_t{rank} * threads_ + thread][index];
  }

 private:
  CollectiveKind kind_;
  std::uint32_t ranks_, threads_, divisions_, chunks_;
  std::uint32_t root_ = 0;
  std::vector<std::vector<Instruction>> lists_;
};

}  // namespace netsim
