#include "sim/report/link_paths.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

namespace netsim {
namespace {

constexpr int kPieces = 48;           // straight lines that stand for a curve
constexpr double kClearance = 1.5;    // distance of paths from other boxes
constexpr double kOutside = 30;       // distance from all boxes that paths should not exceed
constexpr double kLongestBend = 0.5;  // share of the straight path's length
constexpr double kStub = 7;           // length of the drawn end of a link without a free path
constexpr double kHalfBox = kBoxHeight / 2;
// Distances of detours' middles from the straight path, to both sides.
constexpr std::array kBends{14.0, 24.0, 36.0, 50.0, 70.0, 95.0, 125.0, 160.0, 200.0, 260.0, 330.0};
constexpr std::array kBrackets{5.0, 9.0, 13.0, 17.0, 21.0};  // distances of brackets from their boxes' edges

Point mix(Point a, Point b, double share) { return {a.x + share * (b.x - a.x), a.y + share * (b.y - a.y)}; }

Point point_at(const Path& curve, double share) {
  const std::vector<Point>& p = curve.points;
  const Point a = mix(p[0], p[1], share), b = mix(p[1], p[2], share), c = mix(p[2], p[3], share);
  return mix(mix(a, b, share), mix(b, c, share), share);
}

// Returns the part of a curve up to this share of its parameter, or from there on.
Path first_part(const Path& curve, double share) {
  const std::vector<Point>& p = curve.points;
  const Point a = mix(p[0], p[1], share), b = mix(p[1], p[2], share), c = mix(p[2], p[3], share);
  const Point d = mix(a, b, share);
  return {{p[0], a, d, mix(d, mix(b, c, share), share)}, true};
}
Path reversed(Path path) {
  std::reverse(path.points.begin(), path.points.end());
  return path;
}

// Returns the curve without its beginning in the outline.
Path leaving(const Path& curve, const Outline& outline) {
  double inside = 0, outside = 1;
  for (int i = 1; i <= kPieces; ++i) {
    const double share = static_cast<double>(i) / kPieces;
    if (outline.holds(point_at(curve, share))) continue;
    inside = share - 1.0 / kPieces;
    outside = share;
    break;
  }
  for (int i = 0; i < 20; ++i) {
    const double middle = (inside + outside) / 2;
    (outline.holds(point_at(curve, middle)) ? inside : outside) = middle;
  }
  return reversed(first_part(reversed(curve), 1 - outside));
}

// Returns the curve between two points whose quarters are drawn this far beside the straight line, to its
// right.
Path bent(Point from, Point to, double near_from, double near_to) {
  const double length = std::max(1.0, std::hypot(to.x - from.x, to.y - from.y));
  const Point aside{-(to.y - from.y) / length * 4 / 3, (to.x - from.x) / length * 4 / 3};
  const Point first = mix(from, to, 0.25), second = mix(from, to, 0.75);
  return {{from,
           {first.x + near_from * aside.x, first.y + near_from * aside.y},
           {second.x + near_to * aside.x, second.y + near_to * aside.y},
           to},
          true};
}

}  // namespace

Outline outline_of(const Box& box, double margin) {
  const double half = std::min(kBoxHeight, std::max(4.0, box.width)) / 2 + margin;
  const double across = box.width / 2 + margin;
  return {{box.centre.x - across, box.centre.y - half}, {box.centre.x + across, box.centre.y + half}};
}

bool overlap(const Outline& a, const Outline& b) {
  return a.low.x < b.high.x && b.low.x < a.high.x && a.low.y < b.high.y && b.low.y < a.high.y;
}

std::vector<Point> flattened(const Path& path) {
  if (!path.curved) return path.points;
  std::vector<Point> points;
  points.reserve(kPieces + 1);
  for (int i = 0; i <= kPieces; ++i) points.push_back(point_at(path, static_cast<double>(i) / kPieces));
  return points;
}

bool crosses(Point from, Point to, const Outline& outline) {
  double begin = 0, end = 1;
  const auto clip = [&](double at, double step, double low, double high) {
    if (std::abs(step) < 1e-12) {
      if (at <= low || at >= high) end = -1;
      return;
    }
    const double a = (low - at) / step, b = (high - at) / step;
    begin = std::max(begin, std::min(a, b));
    end = std::min(end, std::max(a, b));
  };
  clip(from.x, to.x - from.x, outline.low.x, outline.high.x);
  clip(from.y, to.y - from.y, outline.low.y, outline.high.y);
  return begin < end;
}

LinkPaths::LinkPaths(const std::vector<Box>& boxes)
    : boxes_(boxes), bounds_(outline_of(boxes.front(), kClearance)) {
  outlines_.reserve(boxes.size());
  for (const Box& box : boxes) {
    outlines_.push_back(outline_of(box, kClearance));
    bounds_.extend(outlines_.back().low);
    bounds_.extend(outlines_.back().high);
  }
}

// Returns the number of other boxes that the path crosses. Paths far outside of all boxes count as crossings.
std::size_t LinkPaths::crossings(const Path& path, std::size_t from, std::size_t to) const {
  const std::vector<Point> points = flattened(path);
  Outline all{points.front(), points.front()};
  for (const Point& at : points) all.extend(at);
  all = {{all.low.x - 1, all.low.y - 1}, {all.high.x + 1, all.high.y + 1}};
  const bool outside = all.low.x < bounds_.low.x - kOutside || all.low.y < bounds_.low.y - kOutside ||
                       all.high.x > bounds_.high.x + kOutside || all.high.y > bounds_.high.y + kOutside;
  std::size_t found = outside ? 1 : 0;
  for (std::size_t i = 0; i < outlines_.size(); ++i) {
    if (i == from || i == to || !overlap(all, outlines_[i])) continue;
    bool crossed = false;
    for (std::size_t k = 1; k < points.size() && !crossed; ++k)
      crossed = crosses(points[k - 1], points[k], outlines_[i]);
    found += crossed ? 2 : 0;
  }
  return found;
}

// Returns a bent path (bent()) between the edges of two boxes.
Path LinkPaths::clipped(std::size_t from, std::size_t to, double near_from, double near_to) const {
  const Box &a = boxes_[from], &b = boxes_[to];
  const Path whole = bent(a.centre, b.centre, near_from, near_to);
  return reversed(leaving(reversed(leaving(whole, outline_of(a))), outline_of(b)));
}

Path LinkPaths::straight(std::size_t from, std::size_t to) const {
  const Path path = clipped(from, to, 0, 0);
  return {{path.points.front(), path.points.back()}};
}

// Returns the paths to be tried after the straight one, in their order.
std::vector<Path> LinkPaths::detours(std::size_t from, std::size_t to) const {
  const Box &a = boxes_[from], &b = boxes_[to];
  std::vector<Path> paths;
  paths.reserve(8 * kBends.size() + 4 * kBrackets.size());
  // Higher brackets leave nearer to the corners of the boxes, so that brackets do not share lines.
  double share = 0.12;
  for (const double reach : kBrackets) {
    const double far = b.centre.x > a.centre.x ? share * a.width : -share * a.width;
    const double low = (b.centre.y > a.centre.y ? 0.1 + share : -0.1 - share) * 0.85 * kBoxHeight;
    for (const double side : {-1.0, 1.0}) {
      const double x = side * a.width / 2, y = side * kHalfBox;
      if (std::abs(a.centre.y - b.centre.y) < 1)
        paths.push_back({{{a.centre.x + far, a.centre.y + y},
                          {a.centre.x + far, a.centre.y + y + side * reach},
                          {b.centre.x - far, a.centre.y + y + side * reach},
                          {b.centre.x - far, b.centre.y + y}}});
      if (std::abs(a.centre.x - b.centre.x) < 1)
        paths.push_back({{{a.centre.x + x, a.centre.y + low},
                          {a.centre.x + x + side * reach, a.centre.y + low},
                          {a.centre.x + x + side * reach, b.centre.y - low},
                          {b.centre.x + x, b.centre.y - low}}});
    }
    share += 0.08;
  }
  const double length = std::hypot(b.centre.x - a.centre.x, b.centre.y - a.centre.y);
  for (const double bend : kBends) {
    if (bend > kBends.front() + kLongestBend * length) break;
    for (const double side : {-bend, bend}) {
      paths.push_back(clipped(from, to, side, side));
      paths.push_back(clipped(from, to, side, 0));
      paths.push_back(clipped(from, to, 0, side));
      paths.push_back(clipped(from, to, side, -side));
    }
  }
  return paths;
}

bool LinkPaths::runs_along(const Path& path) const {
  if (path.curved) return false;
  constexpr double kSame = 3;
  for (std::size_t i = 1; i < path.points.size(); ++i) {
    const Point a = path.points[i - 1], b = path.points[i];
    const auto covers_level = [&](const auto& line) {
      return std::abs(line.first.y - a.y) < kSame && std::min(a.x, b.x) < line.second.x &&
             std::max(a.x, b.x) > line.first.x;
    };
    const auto covers_upright = [&](const auto& line) {
      return std::abs(line.first.x - a.x) < kSame && std::min(a.y, b.y) < line.second.y &&
             std::max(a.y, b.y) > line.first.y;
    };
    if (std::abs(a.y - b.y) < 1 && std::any_of(level_.begin(), level_.end(), covers_level)) return true;
    if (std::abs(a.x - b.x) < 1 && std::any_of(upright_.begin(), upright_.end(), covers_upright)) return true;
  }
  return false;
}

// Returns whether the path is free. Then its lines are no longer free for others.
bool LinkPaths::take(const Path& path, std::size_t from, std::size_t to) {
  if (runs_along(path) || crossings(path, from, to) > 0) return false;
  for (std::size_t i = 1; !path.curved && i < path.points.size(); ++i) {
    const Point a = path.points[i - 1], b = path.points[i];
    if (std::abs(a.y - b.y) < 1) level_.emplace_back(a.x < b.x ? a : b, a.x < b.x ? b : a);
    if (std::abs(a.x - b.x) < 1) upright_.emplace_back(a.y < b.y ? a : b, a.y < b.y ? b : a);
  }
  return true;
}

Path LinkPaths::between(std::size_t from, std::size_t to) {
  if (Path path = straight(from, to); take(path, from, to)) return path;
  for (Path& path : detours(from, to)) {
    if (take(path, from, to)) return std::move(path);
  }
  return {};
}

Path LinkPaths::stub(std::size_t from, std::size_t to) const {
  const Point a = boxes_[from].centre, b = boxes_[to].centre;
  const double length = std::max(1.0, std::hypot(b.x - a.x, b.y - a.y));
  const Point at = straight(from, to).points.front();
  Path path{{at, {at.x + kStub * (b.x - a.x) / length, at.y + kStub * (b.y - a.y) / length}}};
  if (crossings(path, from, to) == 0) return path;
  const double side = b.y > a.y ? kHalfBox : -kHalfBox;
  path.points = {{a.x, a.y + side}, {a.x, a.y + side + (side > 0 ? kStub : -kStub)}};
  return crossings(path, from, to) == 0 ? path : Path{};
}

Path LinkPaths::down(Point from, Point to) const {
  Path path{{from}};
  std::map<double, std::vector<Outline>> rows;  // the rows between, from top to bottom, by their middle
  for (std::size_t i = 0; i < boxes_.size(); ++i) {
    const double y = boxes_[i].centre.y;
    if (y > from.y + 1 && y < to.y - 1) rows[y].push_back(outlines_[i]);
  }
  for (const auto& [y, row] : rows) {
    const Point last = path.points.back();
    if (std::none_of(row.begin(), row.end(), [&](const Outline& box) { return crosses(last, to, box); }))
      continue;
    const double x = last.x + (y - last.y) / (to.y - last.y) * (to.x - last.x);
    double nearest = row.front().low.x - 4;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const double end = i + 1 < row.size() ? row[i + 1].low.x : row[i].high.x + 8;
      const double middle = (row[i].high.x + end) / 2;
      if (std::abs(middle - x) < std::abs(nearest - x)) nearest = middle;
    }
    path.points.push_back({nearest, row.front().low.y});
    path.points.push_back({nearest, row.front().high.y});
  }
  path.points.push_back(to);
  return path;
}

Path LinkPaths::arc(Point from, Point to, double height) {
  const double rise = height * 4 / 3;
  return {{from, {mix(from, to, 0.15).x, from.y - rise}, {mix(from, to, 0.85).x, to.y - rise}, to}, true};
}

}  // namespace netsim
