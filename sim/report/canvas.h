// Canvas: builds a picture as an SVG document (pugixml is used in canvas.cpp only). Lengths are pixels, and y
// grows downward. Lines lie behind everything else, and later elements lie in front of earlier ones.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace netsim {

struct Point {
  double x = 0, y = 0;
};

inline constexpr double kBoxHeight = 22, kWidestBox = 90, kPictureFont = 10;

// Box: a rectangle for a node of the picture.
struct Box {
  Point centre;
  double width = kWidestBox;
};

// Style: the kind of node that a box shows: switches, GPUs, NICs.
enum class Style { network, gpu, nic, other };

class Canvas {
 public:
  Canvas();
  ~Canvas();

  // Draws a line with a thickness for `links` links. `bend` is the distance of its middle from the straight
  // line, to its right. Titles are shown under the mouse pointer.
  void line(Point from, Point to, const char* colour, std::uint64_t links, const std::string& title,
            double bend = 0);
  // Draws a straight line of this width with a head at its end: a triangle, or a circled plus sign.
  enum class Head { triangle, plus };
  void arrow(Point from, Point to, const std::string& colour, double width, Head head,
             const std::string& title);
  // Draws a filled rectangle between two opposite corners.
  void area(Point corner, Point opposite, const std::string& colour, const std::string& title);
  // Draws a box with its name, in smaller letters if the box is narrow.
  void box(const Box& box, Style style, const std::string& name, const std::string& title);
  void text(Point at, const std::string& words, double font = kPictureFont, const char* anchor = "start",
            const std::string& colour = "");

  // Returns the document with this visible size.
  std::string finish(double width, double height);

 private:
  struct Document;
  std::unique_ptr<Document> document_;
};

}  // namespace netsim
