// SwitchAgg: an all-reduce whose key-value pairs switches add up in tables of limited size. The source is
// Yang et al., SwitchAgg: A Further Step Towards In-Network Computation, 2019 (arXiv:1904.04024).
//
// A payload analyser takes the pairs out of packets. A small, fast table adds up pairs with equal keys. What
// has no place there moves to a larger table in slower memory (key_table.h). What has no place there either
// leaves the switch as it is, and reducers add it up.
//
// Here each element of the buffer is a pair. Its key is its index, which is on the wire beside the value. The
// root of the tree sends its sums to all hosts, which add up what comes unfinished.
//
// SwitchAgg's tables keep a sum until all senders have ended. netsim sends it on when all have sent the key.
// A host has `window` packets in flight until their sums are back. A packet that is lost ends the run.
#include <algorithm>
#include <memory>
#include <string>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/algorithms/pool_plan.h"
#include "sim/core/registry.h"
#include "sim/network/aggregation/key_table.h"

namespace netsim {
namespace {

constexpr Bytes kElement = 4;  // bytes of a value
constexpr std::int64_t kMostPacketsInFlight = 1 << 20;

struct SwitchAggParameters : PoolParameters {
  std::int64_t front = 16'384;
  std::int64_t back = 1 << 20;
  Bytes key = 4;
  Bytes payload = 512;
  Bytes header = 46;
  std::int64_t window = 256;

  std::uint32_t pairs() const { return static_cast<std::uint32_t>(std::max<Bytes>(payload / kElement, 1)); }
  // Returns the places of a table with so many pairs, each for the pairs of a packet.
  std::uint32_t places(std::int64_t of_table) const { return static_cast<std::uint32_t>(of_table / pairs()); }
};

Parameters<SwitchAggParameters> switchagg_parameters() {
  using P = SwitchAggParameters;
  return with_pool_latencies(
             pool_parameters<P>()
                 .integer("front", &P::front, {0, 1 << 28},
                          "pairs of the front table of each tree at a switch, in fast memory (assumed)")
                 .integer("back", &P::back, {0, 1 << 28},
                          "pairs of the back table, in slower memory (assumed); 0: there is none")
                 .bytes("key", &P::key, {0, 64}, "bytes of a key beside each value of 4 B (assumed)")
                 .bytes("payload", &P::payload, {4, 65536}, "bytes of the values in a packet, without keys")
                 .bytes("header", &P::header, {1, 1024},
                        "headers of a packet: 18 B of Ethernet with its checksum, 20 of IP, 8 of UDP")
                 .integer("window", &P::window, {1, kMostPacketsInFlight},
                          "packets that a host has in flight, a power of two"))
      .bytes(
          "chunk", &P::chunk, {0, kGibibyte},
          "largest message between the ranks of a host and into a tree; 0: all of a rank's part where hosts "
          "have one rank each, else 512 KiB");
}

class KeyTables final : public SwitchProtocol, public SharesKeyTables {
 public:
  // A packet has `pairs` pairs.
  KeyTables(std::uint32_t front, std::uint32_t back, std::uint32_t pairs)
      : front_(front), back_(back), pairs_(pairs) {}
  std::uint32_t kept(std::uint32_t /*slots*/) const override { return front_ + back_; }
  std::unique_ptr<SwitchSums> sums(const Group& group) const override {
    return std::make_unique<KeyTable>(group, front_, back_);
  }
  bool leaves_unfinished() const override { return true; }
  std::uint32_t pairs_of_packet() const override { return pairs_; }

 private:
  std::uint32_t front_, back_, pairs_;
};

class SwitchAgg final : public CollectiveAlgorithm, public WithKernels {
 public:
  explicit SwitchAgg(const SwitchAggParameters& p)
      : p_(p), tables_(std::make_shared<KeyTables>(p.places(p.front), p.places(p.back), p.pairs())) {}
  bool supports(CollectiveKind kind) const override { return kind == CollectiveKind::all_reduce; }
  PlanTraits traits() const override {
    return {.protocol = Protocol::simple, .hosts = true, .sums = PlanTraits::FabricSums::of_data};
  }
  std::unique_ptr<Plan> plan(CollectiveKind, const GroupShape& shape) const override {
    return p_.plan(shape, "switchagg",
                   {.slots = static_cast<std::uint32_t>(p_.window),
                    .payload = p_.payload,
                    .header = p_.header + (p_.payload + kElement - 1) / kElement * p_.key,
                    .protocol = tables_});
  }
  KernelModel kernel_model(const KernelLoad& load) const override {
    return p_.kernel_model(load, p_.payload, 512 * kKibibyte);
  }

 private:
  SwitchAggParameters p_;
  std::shared_ptr<const SwitchProtocol> tables_;
};

const Registration<CollectiveAlgorithm> kSwitchAgg{
    "switchagg",
    "switches add up key-value pairs in tables of limited size, and what has no place goes on (SwitchAgg, "
    "2019)",
    switchagg_parameters(), [](const SwitchAggParameters& p, const ConfigNode& node) {
      check_power_of_two(node, "window", p.window, kMostPacketsInFlight,
                         "the place of a packet in the window is taken from bits of its number");
      return std::make_unique<SwitchAgg>(p);
    }};

}  // namespace
}  // namespace netsim
