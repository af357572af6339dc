// Canvas: the elements of a picture as an SVG document (pugixml stays inside canvas.cpp). Lengths are pixels,
// y grows downward; lines lie behind everything else, and what is added later before what was added earlier.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace netsim {

struct Point {
  double x = 0, y = 0;
};

inline constexpr double kBoxHeight = 22, kWidestBox = 90, kPictureFont = 10;

// What stands for something in a picture.
struct Box {
  Point centre;
  double width = kWidestBox;
};

// By what a box is: switches, GPUs, NICs.
enum class Style { network, gpu, nic, other };

class Canvas {
 public:
  Canvas();
  ~Canvas();

  // As thick as so many links; `bend`: how far the middle is from the straight line, to its right. Titles are
  // shown where the mouse is.
  void line(Point from, Point to, const char* colour, std::uint64_t links, const std::string& title,
            double bend = 0);
  // A straight line of this width with a head at its end: a triangle, or a circled plus sign.
  enum class Head { triangle, plus };
  void arrow(Point from, Point to, const std::string& colour, double width, Head head,
             const std::string& title);
  // With its name, in smaller letters where the box is narrow.
  void box(const Box& box, Style style, const std::string& name, const std::string& title);
  void text(Point at, const std::string& words, double font = kPictureFont, const char* anchor = "start",
            const std::string& colour = "");

  // The document, of which this much is seen.
  std::string finish(double width, double height);

 private:
  struct Document;
  std::unique_ptr<Document> document_;
};

}  // namespace netsim
