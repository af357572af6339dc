// InspectorJob: the communications of a job as NCCL's inspector recorded them at its processes. The records
// of one communication are brought together, the processes are numbered as ranks, and their clocks are
// aligned.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/core/ids.h"
#include "sim/workload/trace/inspector_log.h"

namespace netsim {

class InspectorJob {
 public:
  // Instance: a collective, or a message with both of its ends.
  struct Instance {
    std::uint32_t communicator = 0;
    bool message = false;
    CollectiveKind collective = CollectiveKind::all_reduce;
    std::uint32_t from = 0, to = 0;  // of a message: its ends in the communicator
    Bytes bytes = 0;
    std::int64_t time = 0;  // when its first recorded member ended [us]
    std::vector<std::pair<std::uint32_t, std::uint32_t>> members;  // rank in the communicator, record
  };

  // Reads the files. Throws InputError as read_inspector() does, for members that disagree about the bytes of
  // a collective, and for more ranks than `most_ranks`.
  InspectorJob(const InputSet& input, std::uint32_t most_ranks);

  const InspectorLog& log() const { return log_; }
  std::uint32_t ranks() const { return world_; }
  // Returns the ranks of each communicator. Each is in it once.
  const std::vector<std::vector<RankId>>& members() const { return members_; }
  // Returns all communications in an order that every rank can follow: that in which they ended.
  const std::vector<Instance>& instances() const { return instances_; }
  // Return when a record began and ended, in microseconds since the first begin of all.
  std::int64_t start(std::uint32_t record) const { return log_.records[record].start - shift(record); }
  std::int64_t end(std::uint32_t record) const { return log_.records[record].end - shift(record); }

  std::size_t actors() const { return actors_.size(); }            // GPUs that were recorded
  std::uint64_t repeated() const { return repeated_; }             // records that are there twice
  std::uint64_t filled() const { return filled_; }                 // members whose process is not recorded
  std::uint64_t unaligned() const { return unaligned_; }           // GPUs that no collective aligns
  std::int64_t largest_offset() const { return largest_offset_; }  // us
  bool numbered() const { return numbered_; }                      // whether a communicator has all ranks

 private:
  // Actor: a GPU of a process. Processes with several GPUs have the same rank in all communicators.
  struct Actor {
    std::uint32_t process = 0;
    std::uint32_t part = 0;  // rank in the communicators, for processes with several GPUs
    RankId rank = 0;
    bool aligned = false;
    std::int64_t offset = 0;  // clock minus that of the first actor [us]
  };
  using Messages = std::vector<std::uint32_t>;

  void find_actors();
  void number_actors();
  void number_by_hosts();
  void find_members();
  void fill(std::vector<std::optional<RankId>>& members);
  bool fill_regular(std::vector<std::optional<RankId>>& members) const;
  void match();
  void add_collective(std::uint32_t record);
  void match_messages(std::uint32_t communicator, std::uint32_t from, std::uint32_t to, const Messages& sent,
                      const Messages& received);
  void align();
  void sort();
  std::int64_t shift(std::uint32_t record) const { return actors_[actor_of_[record]].offset + origin_; }

  InspectorLog log_;
  std::uint32_t most_ranks_;
  std::vector<Actor> actors_;
  std::vector<std::uint32_t> actor_of_;  // by record
  std::uint32_t world_ = 0;
  std::vector<bool> is_recorded_;             // by rank
  std::vector<std::vector<RankId>> members_;  // by communicator
  std::vector<Instance> instances_;
  // By communicator, function and number.
  std::map<std::tuple<std::uint32_t, CollectiveKind, std::int64_t>, std::uint32_t> collectives_;
  std::int64_t origin_ = 0;
  std::uint64_t repeated_ = 0, filled_ = 0, unaligned_ = 0;
  std::int64_t largest_offset_ = 0;
  bool numbered_ = true;
};

}  // namespace netsim
