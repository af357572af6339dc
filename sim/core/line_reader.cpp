#include "sim/core/line_reader.h"

#include <algorithm>
#include <climits>
#include <cstring>

#include "sim/core/errors.h"
#include "sim/core/text.h"

namespace netsim {
namespace {

[[noreturn]] void refuse_length(const std::string& file, int line) {
  throw InputError(Place{file, line, 1, ""},
                   "the line is longer than " + std::to_string(LineReader::kLongest >> 20) + " MiB");
}

}  // namespace

LineReader::LineReader(const InputSet::File& file, std::size_t buffer)
    : file_(file.path),
      stream_(std::in_place, file),
      buffer_(static_cast<std::size_t>(
          std::min<std::uint64_t>(std::max<std::size_t>(buffer, 1), file.size + 1))) {}

bool LineReader::next() {
  std::size_t end = rest_.find('\n');
  for (std::size_t searched = rest_.size(); end == std::string_view::npos && fill();) {
    end = rest_.find('\n', searched);
    searched = rest_.size();
  }
  if (end == std::string_view::npos && rest_.empty()) return false;
  has_line_feed_ = end != std::string_view::npos;
  line_ = rest_.substr(0, end);
  rest_.remove_prefix(has_line_feed_ ? end + 1 : rest_.size());
  if (number_ == INT_MAX)
    throw InputError(Place{file_, 0, 0, ""}, "has more than " + std::to_string(INT_MAX) + " lines");
  ++number_;
  if (stream_) {
    check();
    constexpr std::string_view kMark = "\xef\xbb\xbf";  // byte order mark of UTF-8
    if (number_ == 1 && line_.starts_with(kMark)) line_.remove_prefix(kMark.size());
  }
  return true;
}

// Reads more bytes of the file behind rest_, which moves to the beginning of the buffer. Returns false at the
// end.
bool LineReader::fill() {
  if (!stream_) return false;
  const std::size_t kept = rest_.size();
  if (kept > kLongest) refuse_length(file_, number_ + 1);
  if (kept > 0) std::memmove(buffer_.data(), rest_.data(), kept);
  if (kept == buffer_.size()) buffer_.resize(2 * kept);
  const std::size_t read = stream_->read(buffer_.data() + kept, buffer_.size() - kept);
  rest_ = {buffer_.data(), kept + read};
  return read > 0;
}

// Refuses a line that is too long, and bytes that may not appear in tables and on terminals.
void LineReader::check() const {
  if (line_.size() > kLongest) refuse_length(file_, number_);
  if (const auto found = find_not_text(line_); found)
    throw InputError(Place{file_, number_, static_cast<int>(found->offset) + 1, ""}, found->what);
}

}  // namespace netsim
