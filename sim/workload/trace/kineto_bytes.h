// KinetoBytes: the bytes of a file for nlohmann's parser, which reads them through an iterator.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>

#include "sim/core/input_set.h"

namespace netsim {

class KinetoBytes {
 public:
  explicit KinetoBytes(const InputSet::File& file) : stream_(file), buffer_(std::size_t{1} << 18, '\0') {
    fill();
  }
  bool at_end() const { return at_ == filled_; }
  char get() const { return buffer_[at_]; }
  void advance() {
    if (++at_ == filled_) fill();
  }
  int line() const {
    return line_ + static_cast<int>(
                       std::count(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(at_), '\n'));
  }

 private:
  void fill() {
    line_ += static_cast<int>(
        std::count(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(filled_), '\n'));
    filled_ = stream_.read(buffer_.data(), buffer_.size());
    at_ = 0;
  }

  InputStream stream_;
  std::string buffer_;
  std::size_t at_ = 0, filled_ = 0;
  int line_ = 1;
};

class KinetoIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = char;

  explicit KinetoIterator(KinetoBytes* bytes) : bytes_(bytes) {}
  char operator*() const { return bytes_->get(); }
  KinetoIterator& operator++() {
    bytes_->advance();
    return *this;
  }
  bool operator==(const KinetoIterator& other) const { return ended() == other.ended(); }
  bool operator!=(const KinetoIterator& other) const { return !(*this == other); }

 private:
  bool ended() const { return bytes_ == nullptr || bytes_->at_end(); }
  KinetoBytes* bytes_;  // null: the end
};

}  // namespace netsim
