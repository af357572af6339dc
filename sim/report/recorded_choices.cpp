#include "sim/report/recorded_choices.h"

#include <fmt/format.h>

namespace netsim {

LibraryChoice RecordedChoices::choice(const CommunicationRecord& communication) {
  LibraryChoice choice;
  if (is_collective(communication.kind) && communication.ranks > 1) {
    const JobPlan& plan = jobs_.job(communication.job).plan();
    members_.clear();
    for (const RankId rank : plan.source->group(communication.group)) members_.push_back(plan.gpus[rank]);
    CommunicationRequest request;
    request.kind = communication.kind;
    request.members = &members_;
    request.root = communication.root;
    request.bytes = communication.bytes;
    request.counts = communication.counts;
    request.grouped = communication.grouped;
    request.algorithm = communication.algorithm;
    request.traits.job = communication.job;
    choice = executor_.choice(request);
    check_bound(communication, choice);
  }
  return choice;
}

// Checks that the collective took at least the lower bound set by the links of its members (`members_`).
void RecordedChoices::check_bound(const CommunicationRecord& communication, const LibraryChoice& choice) {
  if (!has_links_) return;
  if (!bounds_) bounds_.emplace(cluster_);
  const Time takes = communication.end - communication.first_start;
  const Time least = bounds_->least(communication.kind, communication.bytes, members_, choice.help);
  NETSIM_CHECK(takes >= least,
               fmt::format("{} of {} among {} ranks by {} took {}, its links need {}",
                           to_string(communication.kind), format_bytes(communication.bytes),
                           communication.ranks, choice.algorithm, format_time(takes), format_time(least)));
}

}  // namespace netsim
