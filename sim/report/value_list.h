// ValueList: a list of integers for quantiles, 8 bytes each. It is stored in pieces, so that growing never
// copies all values, and reading a quantile needs no extra memory.
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
  // Returns the rank-th smallest of all values of the lists; `rank` is from 1 to the number of values.
  static std::int64_t smallest(std::span<const ValueList* const> lists, std::uint64_t rank);

 private:
  static constexpr std::size_t kPiece = 8192;
  using Piece = std::array<std::int64_t, kPiece>;

  std::span<std::int64_t> piece(std::size_t i) const;
  void sort_pieces() const;  // each piece by itself

  std::vector<std::unique_ptr<Piece>> pieces_;
  std::size_t size_ = 0;
  mutable std::size_t sorted_ = 0;  // number of values when the pieces were last sorted
};

}  // namespace netsim
