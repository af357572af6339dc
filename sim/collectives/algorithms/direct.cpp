// Direct: rank 0 sends its buffer to rank 1.
#include "sim/collectives/algorithm.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

class DirectSchedule final : public Schedule {
 public:
  CollectiveKind kind() const override { return CollectiveKind::point_to_point; }
  const char* algorithm() const override { return "direct"; }
  std::uint32_t ranks() const override { return 2; }
  std::uint32_t thread_blocks() const override { return 1; }
  std::uint32_t divisions() const override { return 1; }
  std::uint32_t instructions(std::uint32_t, std::uint32_t) const override { return 1; }
  Instruction instruction(std::uint32_t rank, std::uint32_t, std::uint32_t) const override {
    return {rank == 0 ? Instruction::Op::send : Instruction::Op::receive, 1 - rank, 0};
  }
};

class Direct final : public CollectiveAlgorithm {
 public:
  bool supports(CollectiveKind kind) const override { return kind == CollectiveKind::point_to_point; }
  std::unique_ptr<Schedule> schedule(CollectiveKind, std::uint32_t ranks, std::uint32_t) const override {
    NETSIM_CHECK(ranks == 2, "point_to_point of " + std::to_string(ranks) + " ranks");
    return std::make_unique<DirectSchedule>();
  }
};

const Registration<CollectiveAlgorithm> kRegistration{
    "direct", "point-to-point: one rank sends, the other receives", Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<Direct>(); }};

}  // namespace
}  // namespace netsim
