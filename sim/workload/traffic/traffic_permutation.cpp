// permutation: rank i sends one message to rank (i + shift) mod ranks, all at time 0.
#include <memory>
#include <string>
#include <utility>

#include "sim/core/errors.h"
#include "sim/core/registry.h"
#include "sim/workload/traffic/simple_source.h"
#include "sim/workload/traffic/traffic.h"
#include "sim/workload/workload.h"

namespace netsim {

namespace {

struct PermutationParameters {
  Bytes bytes = 10 * kMegabyte;
  std::int64_t shift = 0;
  std::int64_t ranks = 0;
};

const Parameters<PermutationParameters>& traffic_permutation_parameters() {
  using P = PermutationParameters;
  static const auto p = Parameters<P>()
                            .bytes("bytes", &P::bytes, kMessageSizes, "size of each message")
                            .integer("shift", &P::shift, {0, kMaxTrafficRanks},
                                     "rank i sends to rank (i + shift) mod ranks; 0: half of the ranks")
                            .integer("ranks", &P::ranks, {0, kMaxTrafficRanks},
                                     "number of ranks that take part; 0: all GPUs of the cluster");
  return p;
}

class Permutation final : public WorkloadKind {
 public:
  Permutation(const PermutationParameters& p, const ConfigNode& where)
      : p_(p), ranks_place_(place_of(where, "ranks")), shift_place_(place_of(where, "shift")) {}

  std::unique_ptr<TaskSource> tasks(const WorkloadContext& context) const override {
    const std::uint32_t ranks = traffic_ranks(p_.ranks, context, ranks_place_);
    const std::uint32_t shift = shift_for(ranks);
    auto source = std::make_unique<SimpleSource>("permutation", ranks);
    const std::uint32_t name = source->add_name("permutation");
    for (std::uint32_t i = 0; i < ranks; ++i)
      source->add_message(i, (i + shift) % ranks, 0, p_.bytes, 0, name);
    return source;
  }

 private:
  std::uint32_t shift_for(std::uint32_t ranks) const {
    const std::uint32_t shift = p_.shift == 0 ? ranks / 2 : static_cast<std::uint32_t>(p_.shift);
    if (shift % ranks == 0) {
      throw InputError(shift_place_,
                       "with a shift of " + std::to_string(shift) + " each of " + std::to_string(ranks) +
                           " ranks sends to itself; allowed: no multiple of the number of ranks");
    }
    return shift;
  }

  PermutationParameters p_;
  Place ranks_place_, shift_place_;
};

const Registration<WorkloadKind> kTrafficPermutation{
    "permutation",
    "rank i sends one message to rank i + shift, all at once: for studies of a fabric under full load",
    traffic_permutation_parameters(), [](const PermutationParameters& p, const ConfigNode& where) {
      return std::make_unique<Permutation>(p, where);
    }};

}  // namespace

}  // namespace netsim
