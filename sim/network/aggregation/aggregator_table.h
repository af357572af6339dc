// AggregatorTable: the aggregators of a switch, which all best-effort aggregation groups share. The source is
// ATP (Lao et al., NSDI 2021) and its program (in-ATP/ATP, p4src/p4ml.p4).
//
// A packet names an aggregator by its job and number. An empty aggregator takes the packet. Packets with the
// same job and number are added to it, and the last one of them goes on as their sum. If the aggregator holds
// another sum, the packet goes on by itself to the parameter server. That is a collision.
//
// A result on its way back frees the aggregator. A packet that was sent again takes what the aggregator holds
// along and frees it. It never occupies one, so each packet reaches the server in the end.
//
// AggregatorIndices: the aggregators that the packets of one session use, which all its switches share.
#pragma once

#include <cstdint>
#include <vector>

namespace netsim {

// The workers whose data a packet or an aggregator holds.
struct Contribution {
  std::uint64_t workers = 0;  // a bit for each worker
  std::uint32_t value = 0;    // sum of the values of their packets (PoolWindow::value)
  bool marked = false;        // ECN: one of the packets experienced congestion
  bool collided = false;      // one of the packets found an aggregator that held another sum
};

class AggregatorTable {
 public:
  // How a packet goes on. With `joins` it does not, because the aggregator keeps it.
  enum class Outcome : std::uint8_t { joins, completes, passes, collides, flushes };
  struct Key {
    std::uint32_t session = 0, psn = 0;
    bool operator==(const Key&) const = default;
  };

  static constexpr std::uint32_t kMostAggregators = 1U << 20;
  static constexpr std::uint32_t kMostWorkers = 64;

  explicit AggregatorTable(std::uint32_t size) : aggregators_(size) {}

  // Handles a packet of a group with the workers `all` below the switch. `packet` becomes what goes on.
  // `again` means that the packet was sent again.
  Outcome add(std::uint32_t index, Key key, std::uint64_t all, bool again, Contribution& packet);
  // Called when the result of the packet passes.
  void free(std::uint32_t index, Key key);

  std::uint32_t size() const { return static_cast<std::uint32_t>(aggregators_.size()); }
  // Returns the largest number of aggregators that were occupied at once.
  std::uint32_t most_used() const { return most_used_; }

 private:
  struct Aggregator {
    Key key;
    Contribution sum;  // no workers: it is empty
  };
  Outcome flush(Aggregator* held, Contribution& packet);
  void clear(Aggregator& aggregator);

  std::vector<Aggregator> aggregators_;
  std::uint32_t used_ = 0, most_used_ = 0;
};

class AggregatorIndices {
 public:
  // A session whose packets are at most `window` apart uses aggregators `first` to `first` + `count` - 1.
  // `count` may be 0. `seed` differs by session.
  AggregatorIndices(std::uint64_t seed, std::uint32_t window, std::uint32_t first, std::uint32_t count);

  // Returns the aggregator of packet `psn`, which the packet and its result carry.
  std::uint32_t of(std::uint32_t psn) const { return first_ + by_packet_[psn & mask_]; }
  // Called when the server has the sum of a packet. The packet one window later uses the same aggregator, or
  // another one after a collision.
  void choose_next(std::uint32_t psn, bool collided);

 private:
  std::uint32_t unused_index();

  std::uint64_t seed_;
  std::uint32_t window_, mask_, first_, count_;
  std::vector<std::uint32_t> by_packet_;  // by psn modulo its size
  std::vector<bool> used_;                // by index, whether a packet of the session ever used it
  std::uint32_t unused_;                  // number of indices that none has used
  std::uint64_t tried_ = 0;               // number of hashes drawn so far
};

}  // namespace netsim
