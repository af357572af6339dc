// Virtual lane arbitration of InfiniBand (InfiniBand Architecture Specification 1.4, volume 1, section
// 7.6.9). There are two tables of (virtual lane, weight). The entries of a table are served in turn, each for
// its weight's worth of bytes.
//
// An entry of weight 0 is skipped, as in OpenSM's own tables. The high-priority table goes first, until it
// has sent its limit while the other one waits.
#include "sim/core/registry.h"
#include "sim/network/policies.h"

namespace netsim {
namespace {

constexpr std::int64_t kWeightUnit = 64;   // bytes
constexpr std::int64_t kLimitUnit = 4096;  // bytes

struct VlParameters {
  ConfigNode high, low;
  std::int64_t limit_of_high_priority = 255;
};

Parameters<VlParameters> vl_arbitration_parameters() {
  using P = VlParameters;
  return Parameters<P>()
      .list(
          "high", &P::high,
          "high-priority table: entries [virtual lane, weight]; weights count 64 B, an entry of weight 0 is "
          "skipped")
      .list("low", &P::low,
            "low-priority table, in the same form; default: every virtual lane with weight 64 that is not in "
            "`high`")
      .integer("limit_of_high_priority", &P::limit_of_high_priority, {0, 255},
               "units of 4096 B that the high-priority table may send before a waiting packet of the "
               "low-priority table; 0: one packet, 255: no limit");
}

std::vector<DisciplinePlan::Share> read_table(const ConfigNode& table) {
  std::vector<DisciplinePlan::Share> shares;
  if (!table.is_null() && !table.is_sequence()) table.fail("expected a list of [virtual lane, weight]");
  for (const ConfigNode& entry : table.items()) {
    if (!entry.is_sequence() || entry.items().size() != 2) entry.fail("expected [virtual lane, weight]");
    const std::int64_t lane = read_integer(entry.items()[0]);
    const std::int64_t weight = read_integer(entry.items()[1]);
    if (lane < 0 || lane >= kMaxClasses) {
      out_of_range(entry.items()[0], "0", std::to_string(kMaxClasses - 1));
    }
    if (weight < 0 || weight > 255) out_of_range(entry.items()[1], "0", "255");
    if (weight > 0) shares.push_back({static_cast<std::uint8_t>(lane), weight * kWeightUnit});
  }
  return shares;
}

class VlArbitration final : public QueueDiscipline {
 public:
  VlArbitration(const VlParameters& p, ConfigNode node)
      : high_(read_table(p.high)),
        low_(read_table(p.low)),
        low_given_(!p.low.items().empty()),
        limit_(p.limit_of_high_priority),
        given_(p),
        node_(std::move(node)) {}

  DisciplinePlan compile(std::uint32_t classes) const override {
    for (const ConfigNode* table : {&given_.high, &given_.low}) check_lanes(*table, classes);
    DisciplinePlan plan;
    plan.kind = DisciplinePlan::Kind::vl_arbitration;
    plan.high_shares = high_;
    plan.shares = low_;
    plan.high_limit = limit_ == 255 ? INT64_MAX : limit_ * kLimitUnit;
    for (std::uint32_t lane = 0; lane < classes; ++lane) {
      if (listed(high_, lane) || listed(low_, lane)) continue;
      if (low_given_) {
        node_.fail("virtual lane " + std::to_string(lane) +
                   " has no weight in either table and would never be served");
      }
      plan.shares.push_back({static_cast<std::uint8_t>(lane), 64 * kWeightUnit});
    }
    return plan;
  }

 private:
  static bool listed(const std::vector<DisciplinePlan::Share>& table, std::uint32_t lane) {
    for (const auto& share : table) {
      if (share.traffic_class == lane) return true;
    }
    return false;
  }
  // An entry of weight 0 is skipped, so it may name any lane.
  static void check_lanes(const ConfigNode& table, std::uint32_t classes) {
    for (const ConfigNode& entry : table.items()) {
      const ConfigNode& lane = entry.items()[0];
      if (read_integer(lane) < classes || read_integer(entry.items()[1]) == 0) continue;
      lane.fail("there is no virtual lane " + lane.text() + ": network.switch.classes is " +
                std::to_string(classes) + "; allowed: 0 to " + std::to_string(classes - 1));
    }
  }
  std::vector<DisciplinePlan::Share> high_, low_;
  bool low_given_;
  std::int64_t limit_;
  VlParameters given_;
  ConfigNode node_;
};

const Registration<QueueDiscipline> kVlArbitration{
    "vl_arbitration", "InfiniBand's two tables of weighted virtual lanes with a limit of high priority",
    vl_arbitration_parameters(),
    [](const VlParameters& p, const ConfigNode& node) { return std::make_unique<VlArbitration>(p, node); }};

}  // namespace
}  // namespace netsim
