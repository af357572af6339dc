#include "sim/collectives/execution/executor.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "sim/collectives/execution/aggregation_cache.h"
#include "sim/collectives/execution/executor_shard.h"
#include "sim/collectives/execution/message_batches.h"
#include "sim/collectives/execution/stall_report.h"
#include "sim/collectives/library/library_context.h"
#include "sim/core/errors.h"

namespace netsim {
namespace {

// Hands each call to the shard of the GPU's logical process.
class ScheduleExecutor final : public Executor {
 public:
  ScheduleExecutor(const std::vector<EventLoop*>& loops, const std::vector<std::uint32_t>& set_of_gpu,
                   Endpoint& endpoint, const ConfigNode& section, std::uint32_t first_origin);

  void set_listener(CommunicationListener* listener) override { listener_ = listener; }
  void set_trace(TransferTrace trace) override {
    trace_ = std::move(trace);
    endpoint_.tell_delays();
  }
  std::uint32_t start(GpuId gpu, const CommunicationRequest& request) override {
    return part_of(gpu).start(gpu, request);
  }
  void message_delivered(const Delivery& delivery) override {
    part_of(delivery.message.destination).message_delivered(delivery);
  }
  void message_sent(const SendCompletion& completion) override {
    part_of(completion.request.message.source).message_sent(completion);
  }
  void message_left(const SendRequest& request) override {
    part_of(request.message.source).message_left(request);
  }
  std::vector<std::string> waiting(std::size_t limit) const override;
  Bytes scale_out_bytes(GpuId gpu, const CommunicationRequest& request) override {
    return batches_.scale_out_bytes(gpu, request);
  }
  void end_job(JobId job) override { library_.nvls_groups.end_job(job); }
  bool ends_matter() const override { return library_.nvls_groups.limited(); }
  LibraryChoice choice(const CommunicationRequest& request) override {
    const CollectiveConfig config = context_.explain(request);
    const Plan& plan = *config.plan;
    const auto help = plan.workers() < plan.ranks() ? LibraryChoice::Help::servers
                      : plan.aggregations() > 0     ? LibraryChoice::Help::switches
                                                    : LibraryChoice::Help::none;
    return {plan.algorithm(),
            config.chunking.protocol,
            config.channels * plan.channels(),
            config.why,
            request.algorithm != nullptr ? request.algorithm->name : "",
            help,
            config.costs.base};
  }
  std::vector<MessageStep> steps(const CommunicationRequest& request) override {
    return message_steps(context_.configure(request), request);
  }
  std::string nccl_graph(const std::vector<GpuId>& members) override { return context_.nccl_graph(members); }
  void for_each_batch(GpuId gpu, const CommunicationRequest& request, const BatchVisitor& visit) override {
    batches_.for_each(gpu, request, visit);
  }

 private:
  ExecutorShard& part_of(GpuId gpu) { return *part_of_gpu_[gpu]; }

  Endpoint& endpoint_;
  LibraryState library_;
  AggregationCache aggregations_;
  CommunicationListener* listener_ = nullptr;
  TransferTrace trace_;  // empty: no trace
  std::vector<ExecutorGpu> gpus_;
  std::deque<ExecutorShard> parts_;  // by logical process
  std::vector<ExecutorShard*> part_of_gpu_;
  MessageBatches batches_;
  LibraryContext context_{library_};
};

ScheduleExecutor::ScheduleExecutor(const std::vector<EventLoop*>& loops,
                                   const std::vector<std::uint32_t>& set_of_gpu, Endpoint& endpoint,
                                   const ConfigNode& section, std::uint32_t first_origin)
    : endpoint_(endpoint),
      library_(section, endpoint),
      aggregations_(endpoint, library_.parameters),
      batches_(library_, aggregations_, endpoint) {
  NETSIM_CHECK(set_of_gpu.size() == endpoint.gpu_count(), "one set per GPU");
  for (EventLoop* loop : loops)
    parts_.emplace_back(*loop, endpoint, library_, aggregations_, gpus_, listener_, trace_);
  for (std::uint32_t gpu = 0; gpu < set_of_gpu.size(); ++gpu) {
    NETSIM_CHECK(set_of_gpu[gpu] < loops.size(), "GPU " + std::to_string(gpu) + " is in no set");
    gpus_.emplace_back(first_origin + gpu);
    part_of_gpu_.push_back(&parts_[set_of_gpu[gpu]]);
  }
  endpoint.set_listener(this);
}

// The order is by GPU, and each GPU's oldest operation comes first.
std::vector<std::string> ScheduleExecutor::waiting(std::size_t limit) const {
  std::vector<const Operation*> unfinished;
  for (const ExecutorShard& part : parts_) {
    for (const Operation& operation : part.operations()) {
      if (operation.phase != Operation::Phase::recycled) unfinished.push_back(&operation);
    }
  }
  std::sort(unfinished.begin(), unfinished.end(), [](const Operation* a, const Operation* b) {
    return std::pair(a->gpu, a->number) < std::pair(b->gpu, b->number);
  });
  return describe_all(unfinished, limit);
}

}  // namespace

std::unique_ptr<Executor> Executor::create(const std::vector<EventLoop*>& loops,
                                           const std::vector<std::uint32_t>& set_of_gpu, Endpoint& endpoint,
                                           const ConfigNode& section, std::uint32_t first_origin) {
  return std::make_unique<ScheduleExecutor>(loops, set_of_gpu, endpoint, section, first_origin);
}

std::unique_ptr<Executor> Executor::create(EventLoop& loop, Endpoint& endpoint, const ConfigNode& section,
                                           std::uint32_t first_origin) {
  return create({&loop}, std::vector<std::uint32_t>(endpoint.gpu_count(), 0), endpoint, section,
                first_origin);
}

const ParameterTable& Executor::parameter_table() { return collectives_parameters().table(); }

}  // namespace netsim
