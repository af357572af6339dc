#include "sim/network/aggregation/key_table.h"

#include <utility>

namespace netsim {

KeyTable::KeyTable(const SwitchProtocol::Group& group, std::uint32_t front, std::uint32_t back)
    : keys_(group.keys), front_(front), back_(back), come_(group.slots, 0) {}

// Returns the place of a key; null if the table has none.
KeyTable::Place* KeyTable::place(std::vector<Place>& table, std::uint32_t psn) {
  return table.empty() ? nullptr : &table[psn % table.size()];
}

// Adds a table's sum of the same key to `sum`, and removes it from the table.
void KeyTable::take(std::vector<Place>& table, Addend& sum) {
  Place* const found = place(table, sum.psn);
  if (found == nullptr || !found->used || found->sum.psn != sum.psn) return;
  sum.value += found->sum.value;
  found->used = false;
}

// Puts a sum into a table. Returns whether another one leaves it, or the table has no places. `sum` is then
// the sum that leaves.
bool KeyTable::put(std::vector<Place>& table, Addend& sum) {
  Place* const found = place(table, sum.psn);
  if (found == nullptr) return true;
  if (found->used && found->sum.psn != sum.psn) {
    std::swap(found->sum, sum);
    return true;
  }
  if (found->used) sum.value += found->sum.value;
  *found = {sum, true};
  return false;
}

SwitchSums::Arrival KeyTable::add(std::uint32_t /*member*/, Addend& addend) {
  std::uint32_t& come = come_[addend.psn & (come_.size() - 1)];
  come += addend.value;
  if (const std::uint32_t all = aggregation_value(keys_, addend.psn); come == all) {
    come = 0;
    take(front_, addend);
    take(back_, addend);
    return addend.value == all ? Arrival::completes : Arrival::unfinished;
  }
  return put(front_, addend) && put(back_, addend) ? Arrival::unfinished : Arrival::waits;
}

}  // namespace netsim
