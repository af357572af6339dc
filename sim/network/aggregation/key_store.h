// KeyStore: the front and the back table in which a switch keeps sums by key. The source is SwitchAgg (Yang
// et al., 2019). A tree has a store of its own, or all trees of a switch share one, those of all jobs.
//
// The front table takes each packet. Where another key has the place, that key's sum moves to the back table.
// Where a third key has the place there, the third one's sum leaves the switch unfinished. The key of a sum
// is its tree and the number of its packets.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/core/ids.h"
#include "sim/network/aggregation/switch_sums.h"

namespace netsim {

class KeyStore {
 public:
  // A sum, the tree that it belongs to, and how it goes on. SwitchAggregations gives the number of the
  // aggregation group and the index in the paths with each packet.
  struct Sum {
    Addend addend;
    std::uint32_t tree = 0, group = 0, path = 0;
  };
  // Counts what happened to the packets of a tree.
  struct Use {
    JobId job = 0;
    std::uint64_t packets = 0;     // packets that came
    std::uint64_t unfinished = 0;  // sums that left for lack of a place
  };

  // `front` and `back` are the numbers of places of the tables, each for the sums of a packet. Both may be 0.
  KeyStore(std::uint32_t front, std::uint32_t back) : front_(front), back_(back) {}

  // Adds a tree of the job. Returns its number.
  std::uint32_t add_tree(JobId job) {
    uses_.push_back({job});
    return static_cast<std::uint32_t>(uses_.size() - 1);
  }
  // Adds what the tables have of the sum's key to it, and removes that from them.
  void take(Sum& sum);
  // Puts a sum into the tables. Returns whether one leaves, which is then in `sum`.
  bool put(Sum& sum);
  void count_packet(std::uint32_t tree) { ++uses_[tree].packets; }

  // By tree, in the order of add_tree().
  const std::vector<Use>& uses() const { return uses_; }
  std::uint32_t places() const { return static_cast<std::uint32_t>(front_.size() + back_.size()); }
  std::uint32_t most_used() const { return most_used_; }

  // The packet that comes now, and the sum that goes on for it. The switch sets the one and reads the other.
  Sum arriving, leaving;

 private:
  struct Place {
    Sum sum;
    bool used = false;
  };
  static Place* place(std::vector<Place>& table, const Sum& sum);
  void take_from(std::vector<Place>& table, Sum& sum);
  bool put_into(std::vector<Place>& table, Sum& sum);

  std::vector<Place> front_, back_;
  std::vector<Use> uses_;
  std::uint32_t used_ = 0, most_used_ = 0;
};

}  // namespace netsim
