// LineReader: reads a text line by line. It holds one buffer of a file, which grows only for longer lines.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/input_set.h"

namespace netsim {

class LineReader {
 public:
  // Largest length of a line of a file, in bytes.
  static constexpr std::size_t kLongest = std::size_t{16} << 20;
  static constexpr std::size_t kBuffer = std::size_t{256} << 10;  // bytes of the buffer at the beginning

  // Reads a text, which must outlive the reader and the lines.
  explicit LineReader(std::string_view text) : rest_(text) {}
  // Reads a file without its byte order mark, in pieces of `buffer` bytes. A line is valid until the next
  // one.
  explicit LineReader(const InputSet::File& file, std::size_t buffer = kBuffer);

  // Moves to the next line and returns false at the end. Throws InputError if a line of a file is longer than
  // kLongest or is not UTF-8 text without control characters. Throws IoError as InputStream does.
  bool next();
  // Returns the line without its line feed.
  std::string_view line() const { return line_; }
  // Returns the number of the line, from 1; 0 before the first one.
  int number() const { return number_; }
  // Returns whether the line ends with a line feed; only the last line of a text may have none.
  bool has_line_feed() const { return has_line_feed_; }

 private:
  bool fill();
  void check() const;

  std::string_view rest_;              // bytes that were read and are not yet part of a line
  std::string_view line_;              // current line
  std::string file_;                   // path, for messages
  std::optional<InputStream> stream_;  // empty for a text
  std::vector<char> buffer_;
  int number_ = 0;
  bool has_line_feed_ = false;
};

}  // namespace netsim
