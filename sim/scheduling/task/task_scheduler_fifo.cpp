// fifo: launches communications in the order in which they become ready, each whole or in parts. It is the
// baseline of the other schedulers, and with parts what P3's and ByteScheduler's papers call sliced FIFO.
#include <memory>

#include "sim/core/registry.h"
#include "sim/scheduling/task/lanes.h"
#include "sim/scheduling/task/task_scheduler.h"

namespace netsim {
namespace {

struct FifoParameters {
  Bytes part = 0;
  std::int64_t in_flight = 1;
};

const Parameters<FifoParameters>& fifo_parameters() {
  using P = FifoParameters;
  static const auto parameters =
      Parameters<P>()
          .bytes("part", &P::part, {0, 1000 * kGigabyte}, "size of a part; 0: communications are not cut")
          .integer("in_flight", &P::in_flight, {1, 1 << 20},
                   "most parts that a rank has in flight at once in each group, and among all its messages");
  return parameters;
}

class Fifo final : public TaskScheduler {
 public:
  explicit Fifo(const FifoParameters& p) : p_(p) {}
  Bytes part_bytes(const CommunicationFacts&) const override { return p_.part; }
  Launch next(const RankView& rank, std::span<const Candidate> candidates) const override {
    const auto fits = [&](const Candidate& one) {
      return parts_in_lane(rank, one) < static_cast<std::size_t>(p_.in_flight);
    };
    return {first_candidate(candidates, fits, is_ready_before)};
  }

 private:
  FifoParameters p_;
};

const Registration<TaskScheduler> kFifo{
    "fifo", "communications are launched in the order in which they become ready", fifo_parameters(),
    [](const FifoParameters& p, const ConfigNode&) { return std::make_unique<Fifo>(p); }};

}  // namespace
}  // namespace netsim
