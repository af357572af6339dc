// ColumnsOnDemand: a list of columns of routes. Each column is computed at the first request, by the thread
// that makes it; other threads that need a column wait meanwhile. A column never moves in memory, and later
// requests cost one atomic load.
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
  // Sets the number of columns. Must be called once, before the first get().
  void resize(std::size_t count) { slots_ = std::vector<Slot>(count); }

  // Returns a column. `make` returns it by value; its result may depend on the number only.
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
