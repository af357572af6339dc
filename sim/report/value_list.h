// ValueList: integers to take quantiles of: 8 bytes each, in pieces, so that no growth needs room for all of
// them twice, and looking at them none at all.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

namespace netsim {

class ValueList {
 public:
  ValueList() = default;
  // NOLINTBEGIN(google-explicit-constructor): values are a list of values
  ValueList(std::initializer_list<std::int64_t> values);
  ValueList(const std::vector<std::int64_t>& values);
  // NOLINTEND(google-explicit-constructor)

  void add(std::int64_t value);
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  void for_each(const std::function<void(std::int64_t)>& visit) const;  // in any order
  // The rank-th smallest of all values of the lists; rank from 1 to as many as there are.
  static std::int64_t smallest(std::span<const ValueList* const> lists, std::uint64_t rank);

 private:
  static constexpr std::size_t kPiece = 8192;
  using Piece = std::array<std::int64_t, kPiece>;

  std::span<std::int64_t> piece(std::size_t i) const;
  void sort_pieces() const;  // each for itself

  std::vector<std::unique_ptr<Piece>> pieces_;
  std::size_t size_ = 0;
  mutable std::size_t sorted_ = 0;  // values, when the pieces were last sorted
};

}  // namespace netsim
