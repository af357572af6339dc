// NodeLinkPicture: boxes joined by lines, in rows or at given places.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/report/canvas.h"

namespace netsim {

// PictureNode: a box with its name, or the words of a gap ("+12") without a box.
struct PictureNode {
  std::string name, title;
  Style style = Style::network;
  std::string border;  // colour of the border; empty: grey
  bool gap = false;
  Point at = {};  // of boxes that are not in rows
  double width = kWidestBox;
};

struct PictureLink {
  std::size_t from = 0, to = 0;  // numbers of nodes
  LineStyle style;
  std::string title;
};

struct NodeLinkPicture {
  std::vector<PictureNode> nodes;
  std::vector<PictureLink> links;

  // Draws the nodes in these rows of node numbers, from top to bottom, on the whole width. Each node is in
  // one row. A link joins nodes of different rows, or is an arc above its row. Returns the lower end.
  double draw_rows(Canvas& canvas, const std::vector<std::vector<std::size_t>>& rows, double top,
                   double width) const;
  // Draws each node at its place, with room for all boxes and lines and not narrower than `narrowest`. Nodes
  // have their `width`.
  struct Placed {
    double width = 0, bottom = 0;
    std::size_t unnamed = 0;  // number of names that have no room
    std::size_t stubs = 0;    // number of links that have no free path, of which only the ends are drawn
  };
  Placed draw_placed(Canvas& canvas, double narrowest) const;
};

inline constexpr double kPictureMargin = 40;

}  // namespace netsim
