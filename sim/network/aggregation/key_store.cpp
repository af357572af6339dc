#include "sim/network/aggregation/key_store.h"

#include <algorithm>
#include <utility>

namespace netsim {
namespace {

bool is_same_key(const KeyStore::Sum& a, const KeyStore::Sum& b) {
  return a.tree == b.tree && a.addend.psn == b.addend.psn;
}

}  // namespace

// Returns the place of a key; null if the table has none. Trees begin at different places.
KeyStore::Place* KeyStore::place(std::vector<Place>& table, const Sum& sum) {
  constexpr std::uint64_t kApart = 0x9e3779b9;
  return table.empty() ? nullptr : &table[(sum.addend.psn + kApart * sum.tree) % table.size()];
}

void KeyStore::take_from(std::vector<Place>& table, Sum& sum) {
  Place* const found = place(table, sum);
  if (found == nullptr || !found->used || !is_same_key(found->sum, sum)) return;
  sum.addend.value += found->sum.addend.value;
  found->used = false;
  --used_;
}

void KeyStore::take(Sum& sum) {
  take_from(front_, sum);
  take_from(back_, sum);
}

// Puts a sum into a table. Returns whether another one leaves it, or the table has no places. `sum` is then
// the sum that leaves.
bool KeyStore::put_into(std::vector<Place>& table, Sum& sum) {
  Place* const found = place(table, sum);
  if (found == nullptr) return true;
  if (found->used && !is_same_key(found->sum, sum)) {
    std::swap(found->sum, sum);
    return true;
  }
  if (found->used) {
    sum.addend.value += found->sum.addend.value;
  } else {
    most_used_ = std::max(most_used_, ++used_);
  }
  *found = {sum, true};
  return false;
}

bool KeyStore::put(Sum& sum) {
  if (!put_into(front_, sum) || !put_into(back_, sum)) return false;
  ++uses_[sum.tree].unfinished;
  return true;
}

}  // namespace netsim
