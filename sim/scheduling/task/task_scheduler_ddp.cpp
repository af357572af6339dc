// ddp: the buckets of PyTorch's DistributedDataParallel, by the rule of its reducer
// (torch/csrc/distributed/c10d/reducer.{hpp,cpp}), as they are from the second training step on. Gradients
// fill buckets in the order in which they come. A bucket is launched when all its gradients are ready and the
// bucket before it was launched.
#include <memory>
#include <vector>

#include "sim/core/registry.h"
#include "sim/scheduling/task/ddp_buckets.h"
#include "sim/scheduling/task/fusion.h"
#include "sim/scheduling/task/lanes.h"
#include "sim/scheduling/task/task_scheduler.h"

namespace netsim {
namespace {

const Parameters<DdpLimits>& ddp_parameters() {
  static const auto parameters =
      Parameters<DdpLimits>()
          .bytes("first_bucket", &DdpLimits::first, {1, 1000 * kGigabyte}, "size of the first bucket")
          .bytes("bucket", &DdpLimits::other, {1, 1000 * kGigabyte}, "size of all other buckets");
  return parameters;
}

class Ddp final : public TaskScheduler {
 public:
  explicit Ddp(const DdpLimits& limits) : limits_(limits) {}
  TaskNeeds needs() const override { return {.profile = true}; }
  bool is_agreed(const CommunicationFacts& facts) const override { return may_be_gradient(facts); }
  LaunchPlan plan(const JobProfile& profile) const override {
    LaunchPlan plan;
    const auto rule = [this](std::span<const FusionTensor> tensors) { return ddp_buckets(tensors, limits_); };
    plan.fused = fuse(profile, rule, true).buckets;
    const ProfileTask* before = nullptr;
    for (const std::vector<std::uint32_t>& bucket : plan.fused) {
      const ProfileTask& task = profile.task_of(bucket.front());
      if (before == nullptr || sequence_key(*before) != sequence_key(task)) plan.sequences.emplace_back();
      plan.sequences.back().push_back(bucket.front());
      before = &task;
    }
    return plan;
  }
  Launch next(const RankView& rank, std::span<const Candidate> candidates) const override {
    return {first_ready_alone(rank, candidates)};
  }

 private:
  DdpLimits limits_;
};

const Registration<TaskScheduler> kDdp{
    "ddp", "PyTorch's DistributedDataParallel: gradients in buckets, which are launched in order",
    ddp_parameters(),
    [](const DdpLimits& limits, const ConfigNode&) { return std::make_unique<Ddp>(limits); }};

}  // namespace
}  // namespace netsim
