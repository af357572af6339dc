// Canvas: builds a picture as an SVG document (pugixml is used in canvas.cpp only). Lengths are pixels, and y
// grows downward. Lines lie behind everything else, and later elements lie in front of earlier ones.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace netsim {

struct Point {
  double x = 0, y = 0;
};

inline constexpr double kBoxHeight = 22, kWidestBox = 90, kPictureFont = 10;

// The colours of Okabe and Ito, which people who are colour-blind tell apart. Their yellow is darker here, so
// that it is seen on white.
inline constexpr std::array<const char*, 8> kDistinctColours{"#0072b2", "#e69f00", "#009e73", "#d55e00",
                                                             "#cc79a7", "#56b4e9", "#000000", "#b8a800"};

// Box: a rectangle for a node of the picture.
struct Box {
  Point centre;
  double width = kWidestBox;
};

// Style: the kind of node that a box shows: switches, GPUs, NICs.
enum class Style { network, gpu, nic, other };

// Path: straight lines from point to point, or one cubic curve with four control points.
struct Path {
  std::vector<Point> points;
  bool curved = false;
};

struct LineStyle {
  std::string colour;
  double width = 1;
  std::string dash;  // lengths of strokes and gaps as in SVG; empty: a continuous line
};

// Returns the width of a text, a little above that of common fonts.
double text_width(const std::string& words, double font = kPictureFont);

class Canvas {
 public:
  Canvas();
  ~Canvas();

  // Draws a straight line with a thickness for `links` links. Titles are shown under the mouse pointer.
  void line(Point from, Point to, const char* colour, std::uint64_t links, const std::string& title);
  void path(const Path& path, const LineStyle& style, const std::string& title);
  // Draws a straight line of this width with a head at its end: a triangle, or a circled plus sign.
  enum class Head { triangle, plus };
  void arrow(Point from, Point to, const std::string& colour, double width, Head head,
             const std::string& title);
  // Draws a filled rectangle between two opposite corners.
  void area(Point corner, Point opposite, const std::string& colour, const std::string& title);
  // Draws a box with its name, in smaller letters if the box is narrow. "plane0/leaf1" then takes two lines.
  // Returns false if the name has no room and is left out. `border` is its colour; empty: grey.
  bool box(const Box& box, Style style, const std::string& name, const std::string& title,
           const std::string& border = "");
  void text(Point at, const std::string& words, double font = kPictureFont, const char* anchor = "start",
            const std::string& colour = "");

  // Returns the document with this visible size.
  std::string finish(double width, double height);

 private:
  struct Document;
  std::unique_ptr<Document> document_;
};

}  // namespace netsim
