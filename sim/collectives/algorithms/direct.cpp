// Direct: rank 0 sends its buffer to rank 1.
#include "sim/collectives/algorithm.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

class DirectPlan final : public Plan {
 public:
  CollectiveKind kind() const override { return CollectiveKind::point_to_point; }
  const char* algorithm() const override { return "direct"; }
  std::uint32_t ranks() const override { return 2; }
  std::uint32_t chunks() const override { return 1; }
  bool in_place() const override { return true; }  // each rank has one buffer
  std::uint32_t blocks(std::uint32_t) const override { return 1; }
  std::uint32_t steps(std::uint32_t, std::uint32_t) const override { return 1; }
  Step step(std::uint32_t rank, std::uint32_t, std::uint32_t) const override {
    Step step;
    step.kind = rank == 0 ? Step::Kind::send : Step::Kind::receive;
    step.destination = {Buffer::output, 0};
    (rank == 0 ? step.to : step.from) = {1 - rank, 0};
    return step;
  }
};

class Direct final : public CollectiveAlgorithm {
 public:
  bool supports(CollectiveKind kind) const override { return kind == CollectiveKind::point_to_point; }
  std::unique_ptr<Plan> plan(CollectiveKind, std::uint32_t ranks, std::uint32_t) const override {
    NETSIM_CHECK(ranks == 2, "point_to_point of " + std::to_string(ranks) + " ranks");
    return std::make_unique<DirectPlan>();
  }
};

const Registration<CollectiveAlgorithm> kRegistration{
    "direct", "point-to-point: one rank sends, the other receives", Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<Direct>(); }};

}  // namespace
}  // namespace netsim
