#include "sim/workload/traffic/size_distribution.h"

#include <algorithm>
#include <utility>

#include "sim/core/input_file.h"
#include "sim/core/output.h"

namespace netsim {
namespace {

constexpr Range<double> kSizes{0, 1e11};
constexpr Range<double> kPercents{0, 100};

// Reads a size. Plain numbers are bytes.
double read_flow_size(const ConfigNode& node) {
  const std::string text = read_text(node);
  const bool plain = text.find_first_not_of("0123456789.") == std::string::npos;
  const double size = plain ? read_real(node) : static_cast<double>(read_bytes(node));
  if (size > kSizes.maximum) node.fail("a flow of " + text + "; at most 100 GB are allowed");
  return size;
}

std::vector<SizeDistribution::Point> listed_points(const ConfigNode& list) {
  std::vector<SizeDistribution::Point> points;
  for (const ConfigNode& item : list.items()) {
    if (!item.is_sequence() || item.items().size() != 2) item.fail("a pair [bytes, percent] is expected");
    const double percent = read_real(item.items()[1]);
    if (percent < 0 || percent > 100) item.items()[1].fail("a percentage from 0 to 100 is expected");
    points.push_back({read_flow_size(item.items()[0]), percent, item.place()});
  }
  return points;
}

std::vector<SizeDistribution::Point> file_points(const std::string& path) {
  const std::string text = read_file(path, 16 << 20);
  TextReader reader(text, path);
  std::vector<SizeDistribution::Point> points;
  for (std::vector<Word> words; reader.next_line(words);) {
    if (words[0].text.starts_with('#')) continue;
    const bool comment = words.size() > 2 && words[2].text.starts_with('#');
    if (words.size() != 2 && !comment) reader.fail(words[0], "a line 'bytes percent' is expected");
    points.push_back({reader.real(words[0], "the size in bytes", kSizes),
                      reader.real(words[1], "the percentage", kPercents), reader.place(words[0])});
  }
  return points;
}

}  // namespace

SizeDistribution::SizeDistribution(std::vector<Point> points, const Place& whole)
    : points_(std::move(points)) {
  if (points_.empty()) throw InputError(whole, "a size distribution needs at least one point");
  for (std::size_t i = 1; i < points_.size(); ++i) {
    if (points_[i].bytes <= points_[i - 1].bytes || points_[i].percent < points_[i - 1].percent) {
      throw InputError(points_[i].place, "sizes must rise and percentages must not fall");
    }
  }
  if (points_.back().percent != 100) {
    throw InputError(points_.back().place,
                     "the last percentage is " + format_real(points_.back().percent) + "; it must be 100");
  }
  if (mean() <= 0) throw InputError(whole, "the mean size is 0");
}

Bytes SizeDistribution::quantile(double u) const {
  const double percent = u * 100;
  const auto above =
      std::find_if(points_.begin(), points_.end(), [&](const Point& p) { return p.percent > percent; });
  double bytes = points_.back().bytes;
  if (above == points_.begin()) {
    bytes = above->bytes;
  } else if (above != points_.end()) {
    const Point& below = *(above - 1);
    bytes = below.bytes +
            (above->bytes - below.bytes) * ((percent - below.percent) / (above->percent - below.percent));
  }
  return std::max<Bytes>(1, static_cast<Bytes>(bytes));
}

double SizeDistribution::mean() const {
  double sum = points_.front().bytes * points_.front().percent;
  for (std::size_t i = 1; i < points_.size(); ++i) {
    sum += (points_[i].bytes + points_[i - 1].bytes) / 2 * (points_[i].percent - points_[i - 1].percent);
  }
  return sum / 100;
}

SizeDistribution read_size_distribution(const ConfigNode& node) {
  if (node.is_sequence()) return {listed_points(node), node.place()};
  const std::string path = find_input_file(read_text(node), node.place());
  return {file_points(path), Place{path, 0, 0, ""}};
}

}  // namespace netsim
