// Deficit round robin (Shreedhar and Varghese, SIGCOMM 1995): classes share a link in proportion to their
// quanta, whatever the sizes of their packets.
#include "sim/core/registry.h"
#include "sim/network/policies.h"

namespace netsim {
namespace {

struct DrrParameters {
  ConfigNode quantum;
};

Parameters<DrrParameters> drr_parameters() {
  return Parameters<DrrParameters>().list(
      "quantum", &DrrParameters::quantum,
      "bytes a class may send in each round, one entry a class; default: 4160 B each, one full packet");
}

constexpr Range<Bytes> kQuanta{64, 1 * kGigabyte};
constexpr Bytes kFullPacket = 4160;  // 4096 B of payload and RoCE headers

class Drr final : public QueueDiscipline {
 public:
  Drr(std::vector<Bytes> quanta, ConfigNode node) : quanta_(std::move(quanta)), node_(std::move(node)) {}

  DisciplinePlan compile(std::uint32_t classes) const override {
    if (!quanta_.empty() && quanta_.size() != classes) {
      node_.fail("'quantum' has " + std::to_string(quanta_.size()) + " entries for " +
                 std::to_string(classes) + " data classes: one for each is needed");
    }
    DisciplinePlan plan;
    plan.kind = DisciplinePlan::Kind::deficit_round_robin;
    for (std::uint32_t c = 0; c < classes; ++c) {
      plan.shares.push_back({static_cast<std::uint8_t>(c), quanta_.empty() ? kFullPacket : quanta_[c]});
    }
    return plan;
  }

 private:
  std::vector<Bytes> quanta_;
  ConfigNode node_;
};

std::unique_ptr<QueueDiscipline> make(const DrrParameters& p, const ConfigNode& node) {
  std::vector<Bytes> quanta;
  if (!p.quantum.is_null() && !p.quantum.is_sequence()) p.quantum.fail("expected a list of bytes");
  for (const ConfigNode& item : p.quantum.items()) {
    quanta.push_back(read_bytes(item));
    if (quanta.back() < kQuanta.minimum || quanta.back() > kQuanta.maximum) {
      out_of_range(item, format_bytes(kQuanta.minimum), format_bytes(kQuanta.maximum));
    }
  }
  return std::make_unique<Drr>(std::move(quanta), node);
}

const Registration<QueueDiscipline> kDrr{
    "drr", "deficit round robin: classes share the link in proportion to their quanta", drr_parameters(),
    make};

}  // namespace
}  // namespace netsim
