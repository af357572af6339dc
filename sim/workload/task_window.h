// TaskWindow: which tasks of one rank have ended, for sources whose ids are dense and in program order. It
// stores the range from the oldest task that has not ended to the last one that has. That is a few hundred
// bits, however long the program is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace netsim {

class TaskWindow {
 public:
  // Returns the first task that has not ended.
  std::uint32_t base() const { return base_; }
  bool ended(std::uint32_t id) const {
    return id < base_ || (id - base_ < ended_.size() - head_ && ended_[head_ + (id - base_)]);
  }
  // Marks a task as ended. It must not have ended before.
  void end(std::uint32_t id) {
    const std::size_t at = head_ + (id - base_);
    if (at >= ended_.size()) ended_.resize(at + 1, false);
    ended_[at] = true;
    while (head_ < ended_.size() && ended_[head_]) ++head_, ++base_;
    if (head_ < kKept || head_ * 2 < ended_.size()) return;
    ended_.erase(ended_.begin(), ended_.begin() + static_cast<std::ptrdiff_t>(head_));
    head_ = 0;
  }

 private:
  static constexpr std::size_t kKept = 64;
  std::vector<bool> ended_;  // from head_ on: ended tasks among base_, base_ + 1, ...
  std::size_t head_ = 0;
  std::uint32_t base_ = 0;
};

}  // namespace netsim
