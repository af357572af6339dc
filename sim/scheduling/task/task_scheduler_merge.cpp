// merge: MG-WFBP (Shi et al., INFOCOM 2019; TPDS 2021). Gradients are merged before the job begins, where
// that saves more start-up time than it delays. The merged collectives are launched in the order in which
// they become ready, one after the other.
#include <memory>

#include "sim/core/registry.h"
#include "sim/scheduling/task/fusion.h"
#include "sim/scheduling/task/lanes.h"
#include "sim/scheduling/task/mg_wfbp.h"
#include "sim/scheduling/task/task_scheduler.h"

namespace netsim {
namespace {

struct MergeParameters {
  Time startup = 236 * kMicrosecond;  // alpha of 16 workers on 56 Gb/s in HKBU-HPML/MG-WFBP 5b8ad54
};

const Parameters<MergeParameters>& merge_parameters() {
  static const auto parameters = Parameters<MergeParameters>().time(
      "startup", &MergeParameters::startup, {0, kSecond},
      "time that a collective takes beside the transfer of its bytes, the paper's alpha");
  return parameters;
}

class Merge final : public TaskScheduler {
 public:
  explicit Merge(const MergeParameters& p) : p_(p) {}
  TaskNeeds needs() const override { return {.profile = true}; }
  bool is_agreed(const CommunicationFacts& facts) const override { return may_be_gradient(facts); }
  LaunchPlan plan(const JobProfile& profile) const override {
    LaunchPlan plan;
    plan.fused = fuse(profile, [this](std::span<const FusionTensor> tensors) {
                   return mg_wfbp_fusion(tensors, p_.startup);
                 }).buckets;
    return plan;
  }
  Launch next(const RankView& rank, std::span<const Candidate> candidates) const override {
    return {first_ready_alone(rank, candidates)};
  }

 private:
  MergeParameters p_;
};

const Registration<TaskScheduler> kMerge{
    "merge", "MG-WFBP: gradients are merged where that saves more start-up time than it delays",
    merge_parameters(),
    [](const MergeParameters& p, const ConfigNode&) { return std::make_unique<Merge>(p); }};

}  // namespace
}  // namespace netsim
