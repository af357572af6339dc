// Paths of a picture's links between its boxes. A path leaves its own boxes at their edges and passes beside
// all other boxes where it can, so that no line crosses a name.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "sim/report/canvas.h"

namespace netsim {

// Outline: the rectangle of a box or of a text.
struct Outline {
  Point low, high;
  bool holds(Point at) const { return at.x > low.x && at.x < high.x && at.y > low.y && at.y < high.y; }
  // Makes it hold the point on its edge or inside.
  void extend(Point at) {
    low = {std::min(low.x, at.x), std::min(low.y, at.y)};
    high = {std::max(high.x, at.x), std::max(high.y, at.y)};
  }
};
// Returns the outline of a box, larger by `margin` on each side.
Outline outline_of(const Box& box, double margin = 0);
bool overlap(const Outline& a, const Outline& b);

// Returns points along the path, whose straight lines are nearly the path.
std::vector<Point> flattened(const Path& path);
// Returns whether the straight line between two points has a point in the outline.
bool crosses(Point from, Point to, const Outline& outline);

class LinkPaths {
 public:
  // Takes the boxes of the picture. There is at least one.
  explicit LinkPaths(const std::vector<Box>& boxes);

  // Returns a path between two boxes by their numbers. It is the straight one, or else the first of ever
  // longer detours that passes no other box and no earlier path's line. It is empty if there is none.
  Path between(std::size_t from, std::size_t to);
  // Returns the short beginning of a path that is not drawn as a whole, at the edge of `from`. It is
  // empty if there is no room for it.
  Path stub(std::size_t from, std::size_t to) const;
  // Returns a path from one row of boxes down to another. It begins and ends at these points of their edges
  // and passes the rows between through the gaps of their boxes.
  Path down(Point from, Point to) const;
  // Returns an arc of this height above two points of a row's upper edge.
  static Path arc(Point from, Point to, double height);
  // Returns the outline of all boxes.
  const Outline& bounds() const { return bounds_; }

 private:
  std::size_t crossings(const Path& path, std::size_t from, std::size_t to) const;
  bool runs_along(const Path& path) const;
  bool take(const Path& path, std::size_t from, std::size_t to);
  Path clipped(std::size_t from, std::size_t to, double near_from, double near_to) const;
  Path straight(std::size_t from, std::size_t to) const;
  std::vector<Path> detours(std::size_t from, std::size_t to) const;

  std::vector<Box> boxes_;
  std::vector<Outline> outlines_;
  Outline bounds_;
  std::vector<std::pair<Point, Point>> level_, upright_;  // lines of earlier paths, from the lower end
};

}  // namespace netsim
