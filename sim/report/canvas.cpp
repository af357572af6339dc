#include "sim/report/canvas.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <pugixml.hpp>
#include <sstream>

#include "sim/core/text.h"

namespace netsim {
namespace {

constexpr double kLetter = 6.2;    // width of a letter in kPictureFont
constexpr double kSmallest = 6.5;  // font below which names of boxes are left out
constexpr double kHead = 7;        // length of an arrow's head, and diameter of its cycle

constexpr const char* fill(Style style) {
  switch (style) {
    case Style::network:
      return "#dfe9f5";
    case Style::gpu:
      return "#e4f3df";
    case Style::nic:
      return "#fdf0d5";
    default:
      return "#eeeeee";
  }
}

std::string number(double value) { return fmt::format("{:.1f}", value); }

void set(pugi::xml_node node, const char* name, double value) {
  node.append_attribute(name) = number(value).c_str();
}
void set(pugi::xml_node node, const char* name, const std::string& value) {
  node.append_attribute(name) = value.c_str();
}

std::string straight(Point from, Point to) {
  return fmt::format("M{:.1f} {:.1f} L{:.1f} {:.1f}", from.x, from.y, to.x, to.y);
}

// Returns the largest font, up to that of pictures, in which the words fit a box of this width.
double fitting_font(const std::string& words, double width) {
  return std::min(kPictureFont, kPictureFont * (width - 4) / std::max(1.0, text_width(words)));
}

}  // namespace

double text_width(const std::string& words, double font) {
  return kLetter / kPictureFont * font * static_cast<double>(columns(words));
}

struct Canvas::Document {
  pugi::xml_document document;
  pugi::xml_node svg, background, lines, boxes;

  pugi::xml_node path(const std::string& points, const std::string& colour, double width) {
    pugi::xml_node path = lines.append_child("path");
    set(path, "d", points);
    set(path, "fill", "none");
    set(path, "stroke", colour);
    set(path, "stroke-width", width);
    return path;
  }
};

Canvas::Canvas() : document_(std::make_unique<Document>()) {
  Document& d = *document_;
  d.svg = d.document.append_child("svg");
  set(d.svg, "xmlns", "http://www.w3.org/2000/svg");
  set(d.svg, "font-family", "sans-serif");
  set(d.svg, "font-size", kPictureFont);
  d.background = d.svg.append_child("rect");
  d.lines = d.svg.append_child("g");
  d.boxes = d.svg.append_child("g");
}

Canvas::~Canvas() = default;

void Canvas::line(Point from, Point to, const char* colour, std::uint64_t links, const std::string& title) {
  document_->path(straight(from, to), colour, std::min(4.0, 0.6 + 0.4 * static_cast<double>(links)))
      .append_child("title")
      .text()
      .set(title.c_str());
}

void Canvas::path(const Path& path, const LineStyle& style, const std::string& title) {
  std::string points;
  for (std::size_t i = 0; i < path.points.size(); ++i)
    points += fmt::format("{}{:.1f} {:.1f}",
                          i == 0                  ? "M"
                          : i == 1 && path.curved ? " C"
                          : path.curved           ? " "
                                                  : " L",
                          path.points[i].x, path.points[i].y);
  pugi::xml_node node = document_->path(points, style.colour, style.width);
  if (!style.dash.empty()) set(node, "stroke-dasharray", style.dash);
  if (!title.empty()) node.append_child("title").text().set(title.c_str());
}

void Canvas::arrow(Point from, Point to, const std::string& colour, double width, Head head,
                   const std::string& title) {
  const double length = std::max(1.0, std::hypot(to.x - from.x, to.y - from.y));
  const Point along{(to.x - from.x) / length, (to.y - from.y) / length};
  const Point neck{to.x - kHead * along.x, to.y - kHead * along.y};
  document_->path(straight(from, neck), colour, width).append_child("title").text().set(title.c_str());
  if (head == Head::plus) {
    const Point centre{(neck.x + to.x) / 2, (neck.y + to.y) / 2};
    const double r = kHead / 2;
    document_->path(
        fmt::format("M{0:.1f} {1:.1f} a{2} {2} 0 1 0 {3} 0 a{2} {2} 0 1 0 -{3} 0 h{3} m-{2} -{2} v{3}",
                    centre.x - r, centre.y, r, kHead),
        colour, 1.2);
    return;
  }
  const Point left{neck.x - 0.4 * kHead * along.y, neck.y + 0.4 * kHead * along.x};
  const Point right{neck.x + 0.4 * kHead * along.y, neck.y - 0.4 * kHead * along.x};
  pugi::xml_node triangle = document_->lines.append_child("path");
  set(triangle, "d",
      fmt::format("M{:.1f} {:.1f} L{:.1f} {:.1f} L{:.1f} {:.1f} Z", to.x, to.y, left.x, left.y, right.x,
                  right.y));
  set(triangle, "fill", colour);
}

void Canvas::area(Point corner, Point opposite, const std::string& colour, const std::string& title) {
  pugi::xml_node rect = document_->boxes.append_child("rect");
  set(rect, "x", std::min(corner.x, opposite.x));
  set(rect, "y", std::min(corner.y, opposite.y));
  set(rect, "width", std::abs(opposite.x - corner.x));
  set(rect, "height", std::abs(opposite.y - corner.y));
  set(rect, "fill", colour);
  rect.append_child("title").text().set(title.c_str());
}

bool Canvas::box(const Box& box, Style style, const std::string& name, const std::string& title,
                 const std::string& border) {
  pugi::xml_node rect = document_->boxes.append_child("rect");
  const double height = std::min(kBoxHeight, std::max(4.0, box.width));
  set(rect, "x", box.centre.x - box.width / 2);
  set(rect, "y", box.centre.y - height / 2);
  set(rect, "width", box.width);
  set(rect, "height", height);
  set(rect, "rx", "3");
  set(rect, "fill", fill(style));
  set(rect, "stroke", border.empty() ? "#555555" : border);
  set(rect, "stroke-width", border.empty() ? 0.6 : 2);
  rect.append_child("title").text().set(title.c_str());
  const Point at = box.centre;
  const double font = fitting_font(name, box.width);
  const std::size_t cut = name.find('/');
  if (font < 8 && cut != std::string::npos) {
    const std::string upper = name.substr(0, cut), lower = name.substr(cut + 1);
    const double small = std::min({8.0, fitting_font(upper, box.width), fitting_font(lower, box.width)});
    if (small < kSmallest) return false;
    text({at.x, at.y - 1.5}, upper, small, "middle");
    text({at.x, at.y + 7.5}, lower, small, "middle");
    return true;
  }
  if (font < kSmallest) return name.empty();
  text({at.x, at.y + font / 3}, name, font, "middle");
  return true;
}

void Canvas::text(Point at, const std::string& words, double font, const char* anchor,
                  const std::string& colour) {
  pugi::xml_node text = document_->boxes.append_child("text");
  set(text, "x", at.x);
  set(text, "y", at.y);
  set(text, "font-size", font);
  set(text, "text-anchor", anchor);
  if (!colour.empty()) set(text, "fill", colour);
  text.text().set(words.c_str());
}

std::string Canvas::finish(double width, double height) {
  Document& d = *document_;
  set(d.svg, "viewBox", fmt::format("0 0 {:.0f} {:.0f}", width, height));
  set(d.svg, "width", width);
  set(d.svg, "height", height);
  set(d.background, "width", width);
  set(d.background, "height", height);
  set(d.background, "fill", "white");
  std::ostringstream out;
  d.document.save(out, " ");
  return out.str();
}

}  // namespace netsim
