#include "sim/network/aggregation/key_table.h"

namespace netsim {

KeyTable::KeyTable(const SwitchProtocol::Group& group, std::uint32_t front, std::uint32_t back)
    : keys_(group.keys),
      own_(std::make_unique<KeyStore>(front, back)),
      store_(*own_),
      tree_(own_->add_tree(0)),
      come_(group.slots, 0) {}

KeyTable::KeyTable(const SwitchProtocol::Group& group, KeyStore& store, std::uint32_t tree)
    : keys_(group.keys), store_(store), tree_(tree), come_(group.slots, 0) {}

SwitchSums::Arrival KeyTable::add(std::uint32_t /*member*/, Addend& addend) {
  KeyStore::Sum sum = store_.arriving;
  sum.addend = addend;
  sum.tree = tree_;
  store_.count_packet(tree_);
  std::uint32_t& come = come_[addend.psn & (come_.size() - 1)];
  come += addend.value;
  Arrival arrival = Arrival::waits;
  if (const std::uint32_t all = aggregation_value(keys_, addend.psn); come == all) {
    come = 0;
    store_.take(sum);
    arrival = sum.addend.value == all ? Arrival::completes : Arrival::unfinished;
  } else if (store_.put(sum)) {
    arrival = Arrival::unfinished;
  }
  store_.leaving = sum;
  addend = sum.addend;
  return arrival;
}

}  // namespace netsim
