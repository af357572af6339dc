#include "sim/training/checkpoint/checkpoint.h"

namespace netsim {

const Parameters<CheckpointParameters>& checkpoint_parameters() {
  using P = CheckpointParameters;
  static const auto p =
      Parameters<P>()
          .integer("every", &P::every, {0, 1'000'000},
                   "iterations between two checkpoints; 0: there are none")
          .flag("asynchronous", &P::asynchronous,
                "training continues while the copy in the hosts' memory is written to storage; false: "
                "training waits until it is written")
          .flag("divided", &P::divided,
                "each replica writes a part of the state that all replicas hold; false: the first replica "
                "writes all of it")
          .integer("servers", &P::servers, {0, 65'536},
                   "storage servers that checkpoints are written to; 0: all")
          .bytes("piece", &P::piece, {4096, 1000 * kGigabyte}, "size of the pieces that are sent and written")
          .rate("write_rate", &P::write_rate, {1 * kMbps, 1'000'000 * kGbps},
                "rate at which the drives of a server write together")
          .rate("snapshot_rate", &P::snapshot_rate, {1 * kMbps, 1'000'000 * kGbps},
                "asynchronous: rate of copies from a GPU to its host's memory");
  return p;
}

const Parameters<RecoveryParameters>& recovery_parameters() {
  using P = RecoveryParameters;
  static const auto p = Parameters<P>()
                            .time("detection", &P::detection, {0, 1'000'000 * kSecond},
                                  "time from the failure of a host until the job is stopped everywhere")
                            .time("restart", &P::restart, {0, 1'000'000 * kSecond},
                                  "time from then until the job restarts, on that host or on a spare one");
  return p;
}

}  // namespace netsim
