// as_configured: the library that chooses nothing. Each communication runs by the algorithm that is named for
// it, or by the kind's default. Protocol, channels and latencies are those of the section `collectives`.
// Nothing that NCCL knows is applied: no cost model, no channels of its search, no limits of its thread
// blocks, no PXN.
#include <memory>

#include "sim/collectives/library/candidates.h"
#include "sim/collectives/library/standard_config.h"
#include "sim/core/errors.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

[[noreturn]] void refuse_choice(CollectiveKind kind, const Place* place) {
  const std::string text = std::string(to_string(kind)) +
                           ": the library as_configured chooses no algorithm, but the named one needs a "
                           "choice; set 'library: nccl'";
  if (place == nullptr) throw InputError(text);
  throw InputError(*place, text);
}

class AsConfigured final : public CollectiveLibrary {
 public:
  void prepare(const LibrarySetup& setup) override {
    const CollectivesParameters& parameters = setup.parameters;
    for (const ConfigNode* node :
         {&parameters.nccl_algo, &parameters.nccl_proto, &parameters.tuner, &parameters.graph}) {
      if (!node->is_null()) node->fail("only the library nccl reads it, and the library is as_configured");
    }
    if (!parameters.protocol) {
      setup.section.find("protocol")
          ->fail("'auto' is for the library nccl; as_configured chooses none (allowed: simple, ll, ll128)");
    }
  }

  CollectiveConfig configure(const LibraryRequest& request) const override {
    const NamedAlgorithm named = named_algorithm(request);
    const CollectiveKind kind = plan_kind_of(*named.algorithm, request.communication.kind);
    if (!candidates_of(*named.algorithm, kind).empty()) refuse_choice(kind, named.place);
    CollectiveConfig config = configured(request, *named.algorithm);
    if (request.explain) config.why = reason_of(named);
    return config;
  }
};

const Registration<CollectiveLibrary> kAsConfigured{
    "as_configured",
    "each communication runs by the algorithm that is named for its kind, with the section's protocol and "
    "channels",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<AsConfigured>(); }};

}  // namespace
}  // namespace netsim
