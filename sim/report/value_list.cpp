#include "sim/report/value_list.h"

#include <algorithm>

namespace netsim {

ValueList::ValueList(std::initializer_list<std::int64_t> values) {
  for (const std::int64_t value : values) add(value);
}

ValueList::ValueList(const std::vector<std::int64_t>& values) {
  for (const std::int64_t value : values) add(value);
}

void ValueList::add(std::int64_t value) {
  if (size_ % kPiece == 0) pieces_.push_back(std::make_unique_for_overwrite<Piece>());
  (*pieces_.back())[size_ % kPiece] = value;
  ++size_;
}

std::span<std::int64_t> ValueList::piece(std::size_t i) const {
  return {pieces_[i]->data(), std::min(kPiece, size_ - i * kPiece)};
}

void ValueList::for_each(const std::function<void(std::int64_t)>& visit) const {
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    for (const std::int64_t value : piece(i)) visit(value);
  }
}

void ValueList::sort_pieces() const {
  if (sorted_ == size_) return;
  for (std::size_t i = sorted_ / kPiece; i < pieces_.size(); ++i) std::sort(piece(i).begin(), piece(i).end());
  sorted_ = size_;
}

// Searches by halving the range of values.
std::int64_t ValueList::smallest(std::span<const ValueList* const> lists, std::uint64_t rank) {
  std::vector<std::span<const std::int64_t>> pieces;
  for (const ValueList* list : lists) {
    list->sort_pieces();
    for (std::size_t i = 0; i < list->pieces_.size(); ++i) pieces.emplace_back(list->piece(i));
  }
  std::int64_t low = INT64_MAX, high = INT64_MIN;
  for (const auto& piece : pieces) {
    low = std::min(low, piece.front());
    high = std::max(high, piece.back());
  }
  while (low < high) {
    const std::int64_t middle =
        low +
        static_cast<std::int64_t>((static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low)) / 2);
    std::uint64_t count = 0;
    for (const auto& piece : pieces)
      count +=
          static_cast<std::uint64_t>(std::upper_bound(piece.begin(), piece.end(), middle) - piece.begin());
    if (count >= rank) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

}  // namespace netsim
