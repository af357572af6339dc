#include "sim/training/strategy/stage_degrees.h"

#include <optional>
#include <string>

namespace netsim {
namespace {

struct Entry {
  std::optional<std::int64_t> tensor, data;
};
const Parameters<Entry>& entry_parameters() {
  static const auto p =
      Parameters<Entry>()
          .integer("tensor", &Entry::tensor, {1, 65'536}, "parallel.tensor", "tensor-parallel ranks")
          .integer("data", &Entry::data, {1, 1'000'000}, "parallel.data", "data-parallel replicas");
  return p;
}

}  // namespace

std::vector<StageDegrees> read_stage_degrees(const ConfigNode& list, std::uint32_t stages,
                                             const StageDegrees& others) {
  if (!list.is_sequence() || list.items().size() != stages) {
    list.fail("expected a list of the degrees of each of the " + std::to_string(stages) +
              " stages, as [{tensor: 2, data: 2}, {tensor: 4, data: 1}]");
  }
  std::vector<StageDegrees> degrees;
  degrees.reserve(stages);
  for (const ConfigNode& item : list.items()) {
    const Entry entry = entry_parameters().parse(item);
    degrees.push_back({entry.tensor.value_or(others.tensor), entry.data.value_or(others.data), item});
  }
  return degrees;
}

const Parameters<StageResharding>& stage_resharding_parameters() {
  using P = StageResharding;
  static const auto p = Parameters<P>()
                            .choice("strategy", &P::strategy, resharding_strategies(), kReshardingStrategies)
                            .choice("balance", &P::balance, resharding_balances(), kReshardingBalances)
                            .integer("ranks_per_host", &P::ranks_per_host, {1, 1 << 20},
                                     "number of consecutive ranks of the job on a host");
  return p;
}

}  // namespace netsim
