// PoolWindow: the packets that a member of an aggregation group may send if its packets may be lost. Sender
// asks it for the next packet, and tells it about sums and timeouts.
#pragma once

#include <cstdint>

#include "sim/core/units.h"
#include "sim/network/aggregation/switch_sums.h"

namespace netsim {

class PoolWindow {
 public:
  // `key` is the odd number by which the member's packets differ from those of other members.
  explicit PoolWindow(std::uint32_t key) : key_(key) {}
  PoolWindow(const PoolWindow&) = delete;
  PoolWindow& operator=(const PoolWindow&) = delete;
  virtual ~PoolWindow() = default;

  // Returns the value of a packet. The value of a sum is the sum of those of all members.
  static std::uint32_t value(std::uint32_t keys, std::uint32_t psn) { return aggregation_value(keys, psn); }
  virtual std::uint32_t value(std::uint32_t psn) const { return value(key_, psn); }

  // Adds the packets up to `end` - 1 to those that are to be sent.
  virtual void extend(std::uint32_t end) = 0;
  virtual bool has_ready() const = 0;
  // Returns the packet to be sent next. There must be one.
  virtual std::uint32_t next() const = 0;
  // Called when that packet is sent. Returns whether it was sent before.
  virtual bool take(Time now) = 0;
  // Returns whether packets that are lost are sent again.
  virtual bool repairs() const { return true; }
  // Return whether switches must know that this packet is sent again, and whether it is sent with an ECN
  // mark. It was taken just now.
  virtual bool is_again(std::uint32_t /*psn*/) const { return false; }
  virtual bool is_marked(std::uint32_t /*psn*/) const { return false; }
  // Returns the bit of the member in Contribution::workers; 0 if it is no worker of a best-effort group.
  virtual std::uint64_t worker() const { return 0; }
  // Called when the sum of a packet has arrived, `marked` with an ECN mark. Returns false if it had arrived
  // before, or is dropped.
  virtual bool take_sum(std::uint32_t psn, bool marked) = 0;
  // Returns whether the sum of a packet has arrived, which is at most one pool before the next one.
  virtual bool has_sum(std::uint32_t psn) const = 0;
  // Returns when the oldest packet without a sum must be sent again; kNever if there is none.
  virtual Time due() const = 0;
  // Makes all packets that are due be sent again, and returns their number.
  virtual std::uint32_t time_out(Time now) = 0;
  // Returns how often each packet in flight was sent again since the last sum arrived, on average.
  virtual std::uint64_t fruitless_rounds() const { return 0; }

 private:
  std::uint32_t key_;
};

}  // namespace netsim
