// ColumnsOnDemand: a list of columns of routes, each of which is made when it is first asked for, by
// whichever thread asks, while others that want one wait. A column stays where it is; asking again costs one
// atomic load.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace netsim {

template <class Column>
class ColumnsOnDemand {
 public:
  // Once, before any is asked for.
  void resize(std::size_t count) { slots_ = std::vector<Slot>(count); }

  // `make`: the column, by value; what it makes depends on the number only.
  template <class Make>
  const Column& get(std::uint32_t number, Make make) {
    Slot& slot = slots_[number];
    const Column* made = slot.made.load(std::memory_order_acquire);
    if (made != nullptr) [[likely]]
      return *made;
    const std::lock_guard lock(making_);
    if (slot.column == nullptr) {
      slot.column = std::make_unique<const Column>(make());
      slot.made.store(slot.column.get(), std::memory_order_release);
    }
    return *slot.column;
  }

 private:
  struct Slot {
    std::atomic<const Column*> made{nullptr};
    std::unique_ptr<const Column> column;
  };

  std::vector<Slot> slots_;
  std::mutex making_;
};

}  // namespace netsim
