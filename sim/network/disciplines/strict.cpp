// Strict priority: the lowest class that may send goes first.
#include "sim/core/registry.h"
#include "sim/network/policies.h"

namespace netsim {
namespace {

class Strict final : public QueueDiscipline {
 public:
  DisciplinePlan compile(std::uint32_t) const override { return {}; }
};

const Registration<QueueDiscipline> kStrict{
    "strict", "the lowest-numbered class that may send goes first, however long the others wait",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<Strict>(); }};

}  // namespace
}  // namespace netsim
