// KeyTable: the sums that a switch keeps by key for an aggregation group, in tables of limited size
// (key_store.h). A key is the number of a packet.
//
// A sum leaves the switch when all packets of its key have come, those that left before included. So the
// hosts get each packet once, in one sum or in several.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/network/aggregation/key_store.h"
#include "sim/network/aggregation/switch_sums.h"

namespace netsim {

class KeyTable final : public SwitchSums {
 public:
  // Makes tables of so many places, which may be 0.
  KeyTable(const SwitchProtocol::Group& group, std::uint32_t front, std::uint32_t back);
  // Uses the tables of a switch as tree `tree` of it. What leaves may then belong to another tree
  // (KeyStore::leaving).
  KeyTable(const SwitchProtocol::Group& group, KeyStore& store, std::uint32_t tree);
  Arrival add(std::uint32_t member, Addend& addend) override;

 private:
  std::uint32_t keys_;
  std::unique_ptr<KeyStore> own_;  // null: the switch's
  KeyStore& store_;
  std::uint32_t tree_ = 0;
  std::vector<std::uint32_t> come_;  // by slot: sum of the values that have come of its packet
};

// SharesKeyTables: a protocol whose trees can share the tables of a switch.
class SharesKeyTables {
 public:
  virtual ~SharesKeyTables() = default;
  // Returns the number of key-value pairs of a packet, for which a place of a table has room.
  virtual std::uint32_t pairs_of_packet() const = 0;
};

}  // namespace netsim
