// Checks the geometry of a picture: that nothing is cut off, no two names overlap and no line crosses a name.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <pugixml.hpp>
#include <sstream>
#include <string>
#include <vector>

namespace netsim::test {

struct Rectangle {
  double left = 0, top = 0, right = 0, bottom = 0;
  std::string name;
  bool overlaps(const Rectangle& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
};
struct Spot {
  double x = 0, y = 0;
};
struct Segment {
  Spot from, to;
};

// Returns the rectangle of a text. Letters of common sans-serif fonts are at most 0.62 of
// the font size wide on average.
inline Rectangle rectangle_of_text(pugi::xml_node text) {
  const std::string words = text.text().get(), anchor = text.attribute("text-anchor").value();
  const double font = text.attribute("font-size").as_double();
  const double width = 0.62 * font * static_cast<double>(words.size());
  const double x = text.attribute("x").as_double(), y = text.attribute("y").as_double();
  const double left = anchor == "middle" ? x - width / 2 : anchor == "end" ? x - width : x;
  return {left, y - 0.75 * font, left + width, y + 0.2 * font, words};
}

// Appends the straight lines of a path of M, L, Q and C. Other letters (circles of arrow heads) end it.
inline void append_segments(const std::string& path, std::vector<Segment>& segments) {
  std::istringstream in(path);
  Spot at;
  for (char letter = 0; in >> letter;) {
    if (std::string("MLQC").find(letter) == std::string::npos) return;
    const std::size_t more = letter == 'Q' ? 2 : letter == 'C' ? 3 : 1;
    std::vector<Spot> points{at};
    for (Spot next; points.size() <= more && in >> next.x >> next.y;) points.push_back(next);
    constexpr int kPieces = 64;
    for (int i = 1; letter != 'M' && i <= (more > 1 ? kPieces : 1); ++i) {
      std::vector<Spot> mixed = points;
      const double share = more > 1 ? static_cast<double>(i) / kPieces : 1;
      for (std::size_t left = mixed.size() - 1; left > 0; --left) {
        for (std::size_t k = 0; k < left; ++k)
          mixed[k] = {mixed[k].x + share * (mixed[k + 1].x - mixed[k].x),
                      mixed[k].y + share * (mixed[k + 1].y - mixed[k].y)};
      }
      segments.push_back({at, mixed.front()});
      at = mixed.front();
    }
    at = points.back();
  }
}

// Returns whether a line has a point inside a rectangle (Liang and Barsky).
inline bool crosses(const Segment& line, const Rectangle& area) {
  double begin = 0, end = 1;
  const auto clip = [&](double at, double step, double low, double high) {
    if (std::abs(step) < 1e-9) {
      if (at <= low || at >= high) end = -1;
      return;
    }
    begin = std::max(begin, std::min((low - at) / step, (high - at) / step));
    end = std::min(end, std::max((low - at) / step, (high - at) / step));
  };
  clip(line.from.x, line.to.x - line.from.x, area.left, area.right);
  clip(line.from.y, line.to.y - line.from.y, area.top, area.bottom);
  return begin < end;
}

// The parts of a picture. Boxes have a border and room for a name; bars and small marks are none.
struct PictureParts {
  explicit PictureParts(const std::string& svg) {
    pugi::xml_document document;
    if (!document.load_string(svg.c_str())) return;
    const pugi::xml_node root = document.child("svg");
    page = {0, 0, root.attribute("width").as_double(), root.attribute("height").as_double(), "page"};
    for (const auto& found : root.select_nodes("//text")) names.push_back(rectangle_of_text(found.node()));
    for (const auto& found : root.select_nodes("//rect[@stroke]")) {
      const pugi::xml_node rect = found.node();
      if (rect.attribute("width").as_double() < 10) continue;
      const double x = rect.attribute("x").as_double(), y = rect.attribute("y").as_double();
      boxes.push_back({x, y, x + rect.attribute("width").as_double(),
                       y + rect.attribute("height").as_double(), rect.child("title").text().get()});
    }
    for (const auto& found : root.select_nodes("//path"))
      append_segments(found.node().attribute("d").value(), lines);
  }
  Rectangle page;
  std::vector<Rectangle> names, boxes;
  std::vector<Segment> lines;
};

// Returns a line of text for each fault of a picture. Faults are names and boxes that are cut off, overlap
// another one or are crossed by a line.
inline std::string faults_of(const std::string& svg) {
  const PictureParts parts(svg);
  std::string faults;
  const auto inside = [&](const Rectangle& a) {
    return a.left >= 0 && a.top >= 0 && a.right <= parts.page.right && a.bottom <= parts.page.bottom;
  };
  const auto check = [&](const std::vector<Rectangle>& all, double margin) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!inside(all[i])) faults += fmt::format("'{}' is cut off\n", all[i].name);
      for (std::size_t k = 0; k < i; ++k) {
        if (all[i].overlaps(all[k])) faults += fmt::format("'{}' is on '{}'\n", all[i].name, all[k].name);
      }
      const Rectangle within{all[i].left + margin, all[i].top + margin, all[i].right - margin,
                             all[i].bottom - margin, ""};
      if (std::any_of(parts.lines.begin(), parts.lines.end(),
                      [&](const Segment& line) { return crosses(line, within); }))
        faults += fmt::format("a line crosses '{}'\n", all[i].name);
    }
  };
  check(parts.names, 0);
  check(parts.boxes, 0.5);  // coordinates are rounded to tenths
  for (const Segment& line : parts.lines) {
    if (!inside({line.to.x, line.to.y, line.to.x, line.to.y, ""})) faults += "a line leaves the page\n";
  }
  return faults;
}

}  // namespace netsim::test
