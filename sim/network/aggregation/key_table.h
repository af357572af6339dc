// KeyTable: the sums that a switch keeps by key in tables of limited size. The source is SwitchAgg (Yang et
// al., 2019). A key is the number of a packet; its place in a table is the key modulo the table's size.
//
// The front table takes each packet. Where another key has the place, that key's sum moves to the back table.
// Where a third key has the place there, the third one's sum leaves the switch unfinished.
//
// A sum leaves the switch when all packets of its key have come, those that left before included. So the
// hosts get each packet once, in one sum or in several.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/network/aggregation/switch_sums.h"

namespace netsim {

class KeyTable final : public SwitchSums {
 public:
  // `front` and `back` are the numbers of places of the tables, which may be 0.
  KeyTable(const SwitchProtocol::Group& group, std::uint32_t front, std::uint32_t back);
  Arrival add(std::uint32_t member, Addend& addend) override;

 private:
  struct Place {
    Addend sum;
    bool used = false;
  };
  static Place* place(std::vector<Place>& table, std::uint32_t psn);
  static void take(std::vector<Place>& table, Addend& sum);
  static bool put(std::vector<Place>& table, Addend& sum);

  std::uint32_t keys_;
  std::vector<Place> front_, back_;
  std::vector<std::uint32_t> come_;  // by slot: sum of the values that have come of its packet
};

}  // namespace netsim
