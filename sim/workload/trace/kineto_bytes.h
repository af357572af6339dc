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
  explicit KinetoBytes(const InputSet::File& file) : stream_(file), buffer_(kBytes, '\0') { fill(); }
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
    buffer_.resize(kBytes);
    filled_ = stream_.read(buffer_.data(), buffer_.size());
    // A word and an escape are not cut.
    while (filled_ > 0 && (is_word(buffer_[filled_ - 1]) || buffer_[filled_ - 1] == '\\')) {
      char next = 0;
      if (stream_.read(&next, 1) == 0) break;
      buffer_.resize(filled_);
      buffer_.push_back(next);
      ++filled_;
    }
    clean();
    at_ = 0;
  }

  static bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-'; }
  // Profilers write some numbers (nan, inf) and texts (control characters) that are no JSON. None of them is
  // used here. Replaces them by bytes that are, so that places stay. A line feed in a text counts as no line.
  void clean() {
    for (std::size_t i = 0; i < filled_; ++i) {
      const char c = buffer_[i];
      if (in_text_) {
        if (c == '\\') {
          ++i;
        } else if (c == '"') {
          in_text_ = false;
        } else if (static_cast<unsigned char>(c) < 0x20) {
          buffer_[i] = ' ';
        }
      } else if (c == '"') {
        in_text_ = true;
      } else if (is_word(c)) {
        i = clean_word(i);
      }
    }
  }
  // Returns the last byte of the word that begins at `first`.
  std::size_t clean_word(std::size_t first) {
    std::size_t end = first;
    while (end < filled_ && is_word(buffer_[end])) ++end;
    std::string word = buffer_.substr(first, end - first);
    if (word.front() == '-') word.erase(0, 1);
    for (char& c : word) c = static_cast<char>(c | 0x20);
    if (word == "nan" || word == "inf" || word == "infinity") {
      std::fill(buffer_.begin() + static_cast<std::ptrdiff_t>(first),
                buffer_.begin() + static_cast<std::ptrdiff_t>(end), ' ');
      buffer_[first] = buffer_[first + 1] = '"';
    }
    return end - 1;
  }

  static constexpr std::size_t kBytes = std::size_t{1} << 18;
  InputStream stream_;
  std::string buffer_;
  std::size_t at_ = 0, filled_ = 0;
  int line_ = 1;
  bool in_text_ = false;  // whether the next byte is one of a text
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
