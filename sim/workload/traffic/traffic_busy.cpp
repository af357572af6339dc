// busy: GPUs that compute for a given time and send nothing. It is a job of which only the length is known,
// for studies of job schedulers.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "sim/core/errors.h"
#include "sim/core/registry.h"
#include "sim/workload/traffic/busy_source.h"
#include "sim/workload/traffic/traffic.h"
#include "sim/workload/workload.h"

namespace netsim {

namespace {

struct BusyParameters {
  std::string name = "busy";
  std::int64_t ranks = 1;
  Time duration = kSecond;
  std::int64_t iterations = 1;
};

const Parameters<BusyParameters>& traffic_busy_parameters() {
  using P = BusyParameters;
  static const auto p =
      Parameters<P>()
          .text("name", &P::name, "name of the job")
          .integer("ranks", &P::ranks, {1, kMaxTrafficRanks}, "number of GPUs that it keeps busy")
          .time("duration", &P::duration, {1, 1'000'000 * kSecond}, "time that each rank computes in all")
          .integer("iterations", &P::iterations, {1, 1'000'000},
                   "number of equal iterations of that time; a job can only be paused between two of them");
  return p;
}

class Busy final : public WorkloadKind {
 public:
  Busy(BusyParameters p, const ConfigNode& where) : p_(std::move(p)) {
    if (p_.duration >= p_.iterations) return;
    throw InputError(place_of(where, "iterations"), "an iteration takes less than a picosecond");
  }
  std::unique_ptr<TaskSource> tasks(const WorkloadContext&) const override {
    return std::make_unique<BusySource>(p_.name, static_cast<std::uint32_t>(p_.ranks), p_.duration,
                                        static_cast<std::uint32_t>(p_.iterations));
  }

 private:
  BusyParameters p_;
};

const Registration<WorkloadKind> kTrafficBusy{
    "busy", "GPUs compute for a given time and send nothing: a job of which only the length is known",
    traffic_busy_parameters(),
    [](const BusyParameters& p, const ConfigNode& where) { return std::make_unique<Busy>(p, where); }};

}  // namespace

}  // namespace netsim
