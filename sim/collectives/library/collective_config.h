// CollectiveConfig: how a communication runs, as a library decides it and the executor plays it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/collectives/library/channel_orders.h"
#include "sim/collectives/library/chunking.h"
#include "sim/collectives/library/kernel_model.h"
#include "sim/collectives/library/step_costs.h"
#include "sim/collectives/plan.h"
#include "sim/core/index.h"

namespace netsim {

struct CollectiveConfig {
  // The plan that all members execute, for their number and the request's kind. It belongs to the run
  // (LibraryContext::plan()) or to the library, and lives as long as the executor.
  const Plan* plan = nullptr;
  // The library's channels, each a thread block on every GPU. They are more than those of `chunking` where
  // channels are simulated together.
  std::uint32_t channels = 1;
  Chunking chunking;     // how the buffer is cut into messages; default: one message
  ChannelOrders orders;  // which member is which rank of the plan, on each channel of `chunking`
  StepCosts costs;       // latencies besides the network; default: none
  // Kernels that do not run by the protocol's parameters; nullopt: the parameters apply.
  std::optional<KernelModel> kernels;
  double aggregation_share = 1;  // SwitchAggregation::share of all aggregation groups
  // For a lone send: the GPU beside the sender that forwards its messages and the credits for them. kNoIndex:
  // none.
  std::uint32_t forwarding_gpu = kNoIndex;
  // The reason for all this in words, for the tables' column `why`. It may be empty unless
  // LibraryRequest::explain asks for it.
  std::string why;
};

}  // namespace netsim
