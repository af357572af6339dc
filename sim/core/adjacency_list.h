// AdjacencyList: lists of lists of numbers, stored flat. Task graphs keep the successors of every task in
// one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace netsim {

class AdjacencyList {
 public:
  // An edge leads from a source to a target.
  using Edge = std::pair<std::uint32_t, std::uint32_t>;

  // Builds the lists from edges in any order. The targets of a source are in ascending order.
  void build(std::size_t sources, const std::vector<Edge>& edges);
  // Returns the targets of a source; none before the first build().
  std::span<const std::uint32_t> of(std::uint32_t source) const {
    if (begin_.empty()) return {};
    return {targets_.data() + begin_[source], begin_[source + 1] - begin_[source]};
  }
  // Returns the number of sources.
  std::size_t size() const { return begin_.empty() ? 0 : begin_.size() - 1; }

 private:
  std::vector<std::uint32_t> begin_;
  std::vector<std::uint32_t> targets_;
};

}  // namespace netsim
