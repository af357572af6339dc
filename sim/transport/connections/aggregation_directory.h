// AggregationDirectory: the sessions of aggregation groups (aggregation_sessions.h). That of trees is shared
// by all logical processes, because the members of a tree may belong to several of them.
//
// Whoever sends first creates a session, with the queue pairs of all members and the groups of all switches.
// The directory's lock protects that. Which of several equal sessions a communication gets depends on
// threads then, and nothing observable reads it. What a session consists of follows from its key and the
// state of links, which changes between events only.
//
// With several logical processes AggregationLedger assigns the numbers of trees and flows in the order of all
// events, and the memory that trees take.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "sim/core/engine.h"
#include "sim/core/reserved_array.h"
#include "sim/network/aggregation/aggregator_table.h"
#include "sim/transport/connections/aggregation_memory.h"
#include "sim/transport/connections/aggregation_places.h"
#include "sim/transport/connections/aggregation_table.h"
#include "sim/transport/flow_ends.h"

namespace netsim {

// Queue pairs of aggregation groups have numbers above all channels. A session inside a host has 2 numbers,
// one for each direction at the switch; a tree has 1.
inline constexpr std::uint32_t kBeyondChannels = 1U << 31;

struct AggregationSession {
  std::vector<std::uint32_t> in;   // queue pairs into the switch: of the head, or by member
  std::vector<PortId> ports;       // of a tree: the ports on the way up
  std::vector<std::uint32_t> out;  // of a multicast: queue pairs by member
  std::vector<GpuId> gpus;         // of a tree: the GPU of each queue pair into it
  // For a tree: whether the GPU sends, and whether it receives the sums.
  std::vector<std::uint8_t> gives, takes;
  std::uint32_t header = 1;  // of a tree: bytes of a packet without data
  std::uint32_t keys = 0;    // of a tree with a pool of slots: sum of the keys of all members
  // Where unfinished sums leave switches: the sum of what has come, by member and slot.
  std::vector<std::uint32_t> parts;
  std::unique_ptr<AggregatorIndices> indices;    // of a best-effort group
  std::uint32_t server = 0;                      // of a best-effort group: its member that is the server
  std::vector<AggregationMemory::Share> memory;  // of a tree: what it takes of the memory of its switches
  bool gave_back = false;                        // the memory was given to another tree
  // For a multicast, and a tree with GPUs that send nothing: `copies` counts the messages delivered to each
  // member. `open` holds messages that some members have not received yet, the first of which is number
  // first_open. `lock` protects both lists and the first number.
  struct Open {
    Message message;
    Time start = 0;
    std::uint32_t left = 0;
  };
  std::vector<std::uint64_t> copies;
  std::deque<Open> open;
  std::uint64_t first_open = 0;
  std::mutex lock;
};

class AggregationDirectory;

// AggregationLedger: gives trees and their flows the numbers that one logical process would give them. It
// reads what members send and receive in the order of all events.
class AggregationLedger {
 public:
  struct Began {
    AggregationKey key;
    std::uint32_t session = 0, member = 0;  // the session that carries the message
  };
  // `sends`: the message of a member has ended. Otherwise a copy has reached a member that sends nothing.
  struct Ended {
    AggregationKey key;
    std::uint32_t member = 0;
    bool sends = true;
  };
  AggregationLedger(Engine& engine, AggregationDirectory& directory);
  AggregationLedger(const AggregationLedger&) = delete;
  AggregationLedger& operator=(const AggregationLedger&) = delete;

  std::uint32_t began_reader() const { return began_reader_; }
  std::uint32_t ended_reader() const { return ended_reader_; }
  // Return the numbers of the tree and of the message within its queue pair, of the message that ended last.
  std::uint32_t tree() const { return last_.tree; }
  std::uint32_t message() const { return last_.message; }
  // Closes trees as AggregationTable::close(). `breaks` takes numbers in the directory.
  void close(const std::function<bool(std::uint32_t)>& breaks);

 private:
  struct Name {
    std::uint32_t session = 0, tree = 0, message = 0;
  };
  struct Tree {
    std::uint32_t carrier = 0;            // its number in the directory
    std::vector<std::uint32_t> messages;  // messages so far, by member
  };
  struct Place {
    AggregationKey key;
    std::uint32_t member = 0;
    bool operator==(const Place&) const = default;
  };
  struct PlaceHash {
    std::size_t operator()(const Place& place) const {
      return AggregationKeyHash()(place.key) ^ place.member * std::size_t{0x9e3779b97f4a7c15};
    }
  };
  void began(const Began& message);
  void ended(const Ended& message);

  AggregationDirectory& directory_;
  AggregationTable table_;
  std::vector<Tree> trees_;                                              // by number in table_
  std::unordered_map<Place, std::deque<Name>, PlaceHash> on_their_way_;  // never iterated
  Name last_;
  JournalOf<Began, AggregationLedger> began_journal_{*this, &AggregationLedger::began};
  JournalOf<Ended, AggregationLedger> ended_journal_{*this, &AggregationLedger::ended};
  std::uint32_t began_reader_ = 0, ended_reader_ = 0;
};

class AggregationDirectory {
 public:
  AggregationDirectory() = default;
  AggregationDirectory(const AggregationDirectory&) = delete;
  AggregationDirectory& operator=(const AggregationDirectory&) = delete;

  // Must be called before the first message where there are several logical processes.
  void open_ledger(Engine& engine) { ledger = std::make_unique<AggregationLedger>(engine, *this); }
  // Called between events when links are known to have gone down or come up. Closes the trees that use a link
  // that is down.
  void close_broken(const std::vector<bool>& down);

  std::mutex mutex;  // for all members but sessions that exist, and for the groups at switches
  AggregationTable table;
  ReservedArray<AggregationSession> sessions{std::size_t{1} << 20,
                                             Reserve::when_used};  // by number in `table`
  // The trees of groups, by AggregationId. All sessions of a group have the same tree, until a link of it
  // goes down.
  std::map<std::uint32_t, std::unique_ptr<const MemberTree>> laid;
  std::uint32_t spare = kNone;  // session that was added, and whose tree found no memory
  std::uint32_t trees = 0;      // trees created so far
  AggregationMemory memory;
  std::unique_ptr<AggregationLedger> ledger;  // null with one logical process
  // Keys of pools' switches that are given and act on other trees only.
  bool pool_has_payload = false, pool_has_outstanding = false;
};

}  // namespace netsim
