#include "sim/training/checkpoint/checkpoint.h"

namespace netsim {

const Parameters<CheckpointParameters>& checkpoint_parameters() {
  using P = CheckpointParameters;
  static const auto p =
      Parameters<P>()
          .integer("every", &P::every, {0, 1'000'000},
                   "iterations between two checkpoints; 0: there are none")
          .flag("asynchronous", &P::asynchronous,
                "train on while a copy in the hosts' memory is written; false: wait until it is")
          .flag("divided", &P::divided,
                "replicas write a part each of what they all have; false: the first of them does")
          .integer("servers", &P::servers, {0, 65'536}, "storage servers that they are written to; 0: all")
          .bytes("piece", &P::piece, {4096, 1000 * kGigabyte}, "that is sent and written as one")
          .rate("write_rate", &P::write_rate, {1 * kMbps, 1'000'000 * kGbps},
                "of the drives of a server together")
          .rate("snapshot_rate", &P::snapshot_rate, {1 * kMbps, 1'000'000 * kGbps},
                "asynchronous: from a GPU to its host's memory");
  return p;
}

const Parameters<RecoveryParameters>& recovery_parameters() {
  using P = RecoveryParameters;
  static const auto p = Parameters<P>()
                            .time("detection", &P::detection, {0, 1'000'000 * kSecond},
                                  "from the failure of a host until the job is stopped everywhere")
                            .time("restart", &P::restart, {0, 1'000'000 * kSecond},
                                  "from then until it begins again, on that host or on a spare one");
  return p;
}

}  // namespace netsim
