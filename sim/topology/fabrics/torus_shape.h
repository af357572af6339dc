// The arithmetic of tori: coordinates of routers, and shortest routes as displacements (torus.cpp).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace netsim {

inline constexpr std::size_t kMostTorusDimensions = 4;

// Displacement: the number of links along each dimension; the sign gives the direction.
using Displacement = std::array<std::int16_t, kMostTorusDimensions>;

// TorusShape: sizes, closed dimensions and twist of a grid, and the shortest routes between its routers.
// Routers are numbered with the first dimension fastest.
class TorusShape {
 public:
  // `sizes` and `wrap` are by dimension.
  TorusShape(std::vector<std::int32_t> sizes, std::vector<bool> wrap, bool twist);

  std::size_t dimensions() const { return sizes_.size(); }
  std::int32_t size(std::size_t dimension) const { return sizes_[dimension]; }
  std::uint32_t routers() const { return routers_; }
  bool wraps(std::size_t dimension) const { return wrap_[dimension]; }
  bool wraps() const { return std::find(wrap_.begin(), wrap_.end(), true) != wrap_.end(); }

  std::int32_t coordinate(std::uint32_t router, std::size_t dimension) const {
    for (std::size_t d = 0; d < dimension; ++d) router /= static_cast<std::uint32_t>(sizes_[d]);
    return static_cast<std::int32_t>(router % static_cast<std::uint32_t>(sizes_[dimension]));
  }
  // Returns the router's coordinates.
  Displacement place(std::uint32_t router) const;
  // Returns the router at these coordinates. They may lie outside the grid in dimensions that wrap.
  std::uint32_t router(Displacement at) const;

  // Returns the number of ways to resolve ties. A way is a direction for each dimension. In a twisted torus
  // it is also an order of the dimensions, in which the longest part comes first.
  std::uint32_t choices() const;
  // Returns the shortest route that decision number `choice` selects. The rule depends only on lengths, so
  // every router on the route continues with the same one.
  Displacement shortest(std::uint32_t from, std::uint32_t to, std::uint32_t choice) const;
  // Returns a mask of directions. Bit 2 d is set if some shortest route goes backward in dimension d, and bit
  // 2 d + 1 if one goes forward.
  std::uint32_t directions(std::uint32_t from, std::uint32_t to) const;
  // Returns the dimension of the route's next hop. Short dimensions come first, because going round one of
  // them moves a packet along the long ones.
  std::size_t first_dimension(const Displacement& way) const;
  // Returns whether a route that still goes `links` links along a dimension from this router crosses the
  // dateline.
  bool crosses(std::uint32_t router, std::size_t dimension, std::int32_t links) const;

 private:
  // Moves the position into the grid along dimension d.
  void turn_back(Displacement& at, std::size_t d) const;
  // Applies the twist: each turn round dimension d, if it is a short one, shifts the long ones.
  void shift(Displacement& at, std::size_t d, std::int32_t turns) const;
  std::int32_t shortest_size() const { return *std::min_element(sizes_.begin(), sizes_.end()); }

  // Returns a shortest route without a twist. Bit d of `choice` selects the direction where both are equally
  // long.
  Displacement along_each(std::uint32_t from, std::uint32_t to, std::uint32_t choice) const;

  // Returns all shortest routes with a twist, from the table.
  std::span<const Displacement> all_twisted(std::uint32_t from, std::uint32_t to) const;
  // Returns whether `a` is better than `b` for a choice. The longer part in the dimension that the choice
  // names first decides, then the next dimension; for equal lengths, the direction.
  bool better(const Displacement& a, const Displacement& b, std::uint32_t choice) const;

  // Stores all shortest displacements from router 0 to each other router. Candidates go round the short
  // dimensions a number of times, and then directly along the long ones.
  void build_table();
  // Replaces each route by those that also go round dimension d, up to twice in each direction.
  void go_round(std::vector<Displacement>& ways, std::size_t d) const;
  void keep_shortest(std::vector<Displacement>& ways) const;

  std::vector<std::int32_t> sizes_;
  std::vector<bool> wrap_;
  bool twist_;
  std::uint32_t routers_ = 1;
  std::vector<std::size_t> begin_;  // by the router at the difference from router 0: range of ways_
  std::vector<Displacement> ways_;
};

}  // namespace netsim
