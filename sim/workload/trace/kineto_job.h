// KinetoJob: the traces of a job's ranks by PyTorch's profiler, with their communications found and matched.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/collectives/collective_kind.h"
#include "sim/core/ids.h"
#include "sim/core/input_set.h"
#include "sim/core/units.h"
#include "sim/workload/trace/kineto_graph.h"
#include "sim/workload/trace/kineto_trace.h"

namespace netsim {

// KinetoCommunication: a communication kernel.
struct KinetoCommunication {
  enum class Kind : std::uint8_t { unknown, collective, send, receive };
  Kind kind = Kind::unknown;  // unknown: its size, group or peer is not known
  CollectiveKind collective = CollectiveKind::all_reduce;
  std::uint32_t op = 0;            // index in KinetoTrace::ops
  std::uint32_t call = kNoKineto;  // index in KinetoTrace::calls
  std::uint32_t group = 0;         // of a collective: index in KinetoJob::groups()
  std::uint32_t root = 0;          // of a collective: index in the group
  RankId peer = 0;                 // of a message
  Bytes bytes = 0;                 // as workload.proto counts them
  // The parts of an uneven all-to-all; null: not known.
  std::shared_ptr<const TraceBlocks> blocks = {};
  std::uint32_t instance = kNoKineto;  // index in KinetoJob::instances()
};

class KinetoJob {
 public:
  struct Group {
    std::vector<RankId> ranks;
    std::uint32_t communicator = 0;  // number among the groups with these ranks
    std::string description = {};    // "mesh_tp"
  };
  struct Rank {
    RankId rank = 0;
    KinetoTrace trace;
    std::vector<KinetoCommunication> communications;  // by op; those of a group follow each other
    KinetoGraph graph;
    std::uint64_t devices = 0;    // on which its kernels ran
    std::uint64_t conflicts = 0;  // calls whose group, by pg_config, has other ranks or another size
    bool aligned = false;         // whether its clock is known against that of the first rank
    std::int64_t offset = 0;      // its clock minus that of the first rank [ns]
    std::int64_t delay = 0;       // how long after the first rank it begins [ns]
  };
  // Instance: one collective or message of several ranks.
  struct Instance {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> members;  // index in ranks(), in communications
    // The shortest recorded time of the members [ns]. The others hold what they waited for each other.
    std::int64_t time = 0;
  };

  // Each file is a trace of one rank. `with_shapes` also reads the shapes of operators. Throws InputError for
  // two traces of one rank, and for a rank or group beyond the world's size.
  explicit KinetoJob(const InputSet& input, bool with_shapes = false);

  std::uint32_t world() const { return world_; }
  const std::vector<Rank>& ranks() const { return ranks_; }  // that were traced, sorted
  const std::vector<Group>& groups() const { return groups_; }
  const std::vector<Instance>& instances() const { return instances_; }
  // Returns the number of files whose ranks follow from their names or their order.
  std::uint64_t named() const { return named_; }

 private:
  void number_ranks(const InputSet& input);
  void find_communications(Rank& rank);
  static void count_devices(Rank& rank, const std::vector<bool>& communicates);
  void add_communications(Rank& rank, std::uint32_t op);
  // `index` is that of the call in KinetoTrace::calls, or kNoKineto.
  KinetoCommunication communication(Rank& rank, std::uint32_t op, std::uint32_t index);
  bool set_collective(Rank& rank, const KinetoCall& call, KinetoCommunication& to);
  static bool set_parts(const Rank& rank, const KinetoCall& call, std::size_t members,
                        KinetoCommunication& to);
  bool set_message(Rank& rank, const KinetoCall& call, KinetoCommunication& to);
  std::uint32_t group_of(Rank& rank, const KinetoCall& call);
  std::uint32_t group(const Rank& rank, Group group);
  void match();
  void complete_parts();
  void align();

  std::vector<Rank> ranks_;
  std::uint32_t world_ = 0;
  std::uint64_t named_ = 0;
  std::vector<Group> groups_;
  std::map<std::pair<std::vector<RankId>, std::uint32_t>, std::uint32_t> group_index_;
  std::vector<Instance> instances_;
};

}  // namespace netsim
