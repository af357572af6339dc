#include "sim/report/node_link_picture.h"

#include <algorithm>
#include <tuple>

#include "sim/report/link_paths.h"

namespace netsim {
namespace {

constexpr double kRowDistance = 110, kUpperEdge = -kBoxHeight / 2, kLowerEdge = kBoxHeight / 2;
constexpr double kFirstArc = 10, kArcStep = 9, kHighestArc = 100;
constexpr double kShareOfStep = 0.8;  // width of a box in a row

// LinkEnd: the end of a link at the upper or lower edge of a box. Ends share an edge, sorted by their peers.
struct LinkEnd {
  std::size_t node = 0;
  bool upper = false;
  double peer = 0;  // abscissa of the peer
  std::size_t link = 0;
  bool first = false;  // whether it is the link's `from`
};

class RowLayout {
 public:
  RowLayout(const NodeLinkPicture& picture, const std::vector<std::vector<std::size_t>>& rows, double top,
            double width)
      : picture_(picture), rows_(rows), places_(picture.nodes.size()) {
    for (std::size_t row = 0; row < rows.size(); ++row) {
      for (std::size_t column = 0; column < rows[row].size(); ++column)
        places_[rows[row][column]] = {row, column, {}};
    }
    double y = top + kBoxHeight / 2;
    for (std::size_t row = 0; row < rows.size(); ++row) {
      y += highest_arc(row);
      const double step = (width - 2 * kPictureMargin) / static_cast<double>(rows[row].size());
      for (std::size_t i = 0; i < rows[row].size(); ++i)
        places_[rows[row][i]].box = {{kPictureMargin + (static_cast<double>(i) + 0.5) * step, y},
                                     std::min(kWidestBox, kShareOfStep * step)};
      bottom_ = y + kBoxHeight / 2;
      y += kRowDistance;
    }
    find_ends();
  }

  double bottom() const { return bottom_; }
  const Box& box(std::size_t node) const { return places_[node].box; }

  // Draws the links, in their order.
  void draw_links(Canvas& canvas) const {
    std::vector<Box> boxes;
    for (std::size_t node = 0; node < places_.size(); ++node) {
      if (!picture_.nodes[node].gap) boxes.push_back(places_[node].box);
    }
    std::sort(boxes.begin(), boxes.end(), [](const Box& a, const Box& b) { return a.centre.x < b.centre.x; });
    const LinkPaths paths(boxes);
    for (std::size_t i = 0; i < picture_.links.size(); ++i) {
      const PictureLink& link = picture_.links[i];
      const Point from = points_[i][0], to = points_[i][1];
      const Path path = is_arc(link) ? LinkPaths::arc(from, to, arc_height(link))
                                     : paths.down(from.y < to.y ? from : to, from.y < to.y ? to : from);
      canvas.path(path, link.style, link.title);
    }
  }

 private:
  struct Place {
    std::size_t row = 0, column = 0;
    Box box = {};
  };
  bool is_arc(const PictureLink& link) const { return places_[link.from].row == places_[link.to].row; }

  double arc_height(const PictureLink& link) const {
    const std::size_t a = places_[link.from].column, b = places_[link.to].column;
    return std::min(kHighestArc, kFirstArc + kArcStep * static_cast<double>(std::max(a, b) - std::min(a, b)));
  }
  // Returns the height of a row's highest arc, or 0.
  double highest_arc(std::size_t row) const {
    double highest = 0;
    for (const PictureLink& link : picture_.links) {
      if (is_arc(link) && places_[link.from].row == row) highest = std::max(highest, arc_height(link));
    }
    return highest;
  }

  // Spreads the links' ends over the edges of their boxes.
  void find_ends() {
    std::vector<LinkEnd> ends;
    ends.reserve(2 * picture_.links.size());
    for (std::size_t i = 0; i < picture_.links.size(); ++i) {
      const PictureLink& link = picture_.links[i];
      const Place &a = places_[link.from], &b = places_[link.to];
      ends.push_back({link.from, a.row >= b.row, b.box.centre.x, i, true});
      ends.push_back({link.to, b.row >= a.row, a.box.centre.x, i, false});
    }
    std::stable_sort(ends.begin(), ends.end(), [](const LinkEnd& a, const LinkEnd& b) {
      return std::tie(a.node, a.upper, a.peer) < std::tie(b.node, b.upper, b.peer);
    });
    points_.resize(picture_.links.size());
    for (std::size_t begin = 0; begin < ends.size();) {
      std::size_t end = begin;
      while (end < ends.size() && ends[end].node == ends[begin].node && ends[end].upper == ends[begin].upper)
        ++end;
      for (std::size_t i = begin; i < end; ++i) {
        const Box& at = places_[ends[i].node].box;
        const double share = static_cast<double>(i - begin + 1) / static_cast<double>(end - begin + 1);
        points_[ends[i].link][ends[i].first ? 0 : 1] = {
            at.centre.x + at.width * (share - 0.5), at.centre.y + (ends[i].upper ? kUpperEdge : kLowerEdge)};
      }
      begin = end;
    }
  }

  const NodeLinkPicture& picture_;
  const std::vector<std::vector<std::size_t>>& rows_;
  std::vector<Place> places_;                 // by node
  std::vector<std::array<Point, 2>> points_;  // by link: its ends
  double bottom_ = 0;
};

}  // namespace

double NodeLinkPicture::draw_rows(Canvas& canvas, const std::vector<std::vector<std::size_t>>& rows,
                                  double top, double width) const {
  const RowLayout layout(*this, rows, top, width);
  layout.draw_links(canvas);
  for (const std::vector<std::size_t>& row : rows) {
    for (const std::size_t i : row) {
      const PictureNode& node = nodes[i];
      const Box& box = layout.box(i);
      if (node.gap)
        canvas.text({box.centre.x, box.centre.y + 4}, node.name, kPictureFont, "middle");
      else
        canvas.box(box, node.style, node.name, node.title, node.border);
    }
  }
  return layout.bottom();
}

NodeLinkPicture::Placed NodeLinkPicture::draw_placed(Canvas& canvas, double narrowest) const {
  std::vector<Box> boxes;
  boxes.reserve(nodes.size());
  for (const PictureNode& node : nodes) boxes.push_back({node.at, node.width});
  LinkPaths router(boxes);
  struct Line {
    Path path;
    const PictureLink* link;
  };
  std::vector<Line> lines;
  lines.reserve(2 * links.size());
  std::size_t stubs = 0;
  for (const PictureLink& link : links) {
    lines.push_back({router.between(link.from, link.to), &link});
    if (!lines.back().path.points.empty()) continue;
    lines.back().path = router.stub(link.from, link.to);
    lines.push_back({router.stub(link.to, link.from), &link});
    ++stubs;
  }
  std::erase_if(lines, [](const Line& line) { return line.path.points.empty(); });
  Outline all = router.bounds();
  for (const Line& line : lines) {
    for (const Point& at : flattened(line.path)) all.extend(at);
  }
  const double wide = all.high.x - all.low.x + 2 * kPictureMargin;
  Placed placed{std::max(narrowest, wide), kPictureMargin + all.high.y - all.low.y, 0, stubs};
  const Point shift{kPictureMargin - all.low.x + (placed.width - wide) / 2, kPictureMargin - all.low.y};
  for (Line& line : lines) {
    for (Point& at : line.path.points) at = {at.x + shift.x, at.y + shift.y};
    canvas.path(line.path, line.link->style, line.link->title);
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Box box{{nodes[i].at.x + shift.x, nodes[i].at.y + shift.y}, nodes[i].width};
    if (!canvas.box(box, nodes[i].style, nodes[i].name, nodes[i].title, nodes[i].border)) ++placed.unnamed;
  }
  return placed;
}

}  // namespace netsim
