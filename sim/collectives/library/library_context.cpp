#include "sim/collectives/library/library_context.h"

#include "sim/collectives/library/domains.h"
#include "sim/collectives/library/graph_writer.h"
#include "sim/core/errors.h"
#include "sim/core/registry.h"
#include "sim/topology/linked_gpus.h"

namespace netsim {
namespace {

constexpr const char* kDefaultLibrary = "nccl";

}  // namespace

LibraryState::LibraryState(const ConfigNode& section, const Endpoint& endpoint)
    : parameters(parse_collectives(section)),
      algorithms(parameters),
      network(endpoint),
      library(Registry<CollectiveLibrary>::instance().create(parameters.library, kDefaultLibrary)),
      layouts(endpoint, [this](const std::vector<GpuId>& members,
                               CommunicatorLayout& layout) { library->adjust(members, layout); }),
      nvls_groups(endpoint, parameters.nvls_groups) {
  library->prepare({section, parameters, algorithms, network});
}

const std::vector<std::vector<GpuId>>& LibraryState::linked_gpus() {
  std::call_once(linked_found_, [this] {
    const auto* fabric = dynamic_cast<const KnowsLinkedGpus*>(&network);
    if (fabric != nullptr) linked_ = fabric->linked_gpus();
  });
  return linked_;
}

// Counts are not compared, so a communication with counts is never the last one.
bool LibraryContext::is_last(const CommunicationRequest& request) const {
  return asked_.members != nullptr && request.counts == nullptr && asked_.kind == request.kind &&
         asked_.bytes == request.bytes && asked_.root == request.root && asked_.raw == request.raw &&
         asked_.algorithm == request.algorithm && asked_.grouped == request.grouped &&
         asked_.communication == request.communication && asked_.traits.job == request.traits.job &&
         members_ == *request.members;
}

const CollectiveConfig& LibraryContext::configure(const CommunicationRequest& request) {
  if (is_last(request)) return config_;
  asked_.members = nullptr;
  config_ = state_.library->configure({request, *this});
  if (request.counts != nullptr) return config_;
  members_ = *request.members;
  asked_ = request;
  asked_.members = &members_;
  return config_;
}

CollectiveConfig LibraryContext::explain(const CommunicationRequest& request) {
  return state_.library->configure({request, *this, true});
}

std::string LibraryContext::nccl_graph(const std::vector<GpuId>& members) {
  const auto* writer = dynamic_cast<const GraphWriter*>(state_.library.get());
  if (writer == nullptr)
    throw InputError("the library that collectives.library names has no rings and trees to write as a graph");
  return writer->nccl_graph(members, *this);
}

const std::vector<RankSite>& LibraryContext::sites(const std::vector<GpuId>& members) {
  const auto [known, fresh] = sites_.try_emplace(&layout(members));
  if (fresh) known->second = sites_of(members, state_.network);
  return known->second;
}

}  // namespace netsim
