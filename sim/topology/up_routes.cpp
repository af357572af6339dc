#include "sim/topology/up_routes.h"

#include <utility>

namespace netsim {
namespace {

class UpRoutes final : public Routes {
 public:
  UpRoutes(std::unique_ptr<Routes> up, std::unique_ptr<Routes> all)
      : up_(std::move(up)), all_(std::move(all)) {}
  std::span<const PortId> next_hops(NodeId at, NodeId destination) const override {
    const auto hops = up_->next_hops(at, destination);
    return hops.empty() ? all_->next_hops(at, destination) : hops;
  }

 private:
  std::unique_ptr<Routes> up_, all_;
};

}  // namespace

std::unique_ptr<Routes> up_routes(const Graph& graph, std::span<const HostPort> nics,
                                  const std::vector<bool>& avoided) {
  auto up = shortest_path_routes(graph, nics, avoided);
  if (graph.optical_switches().empty()) return up;
  return std::make_unique<UpRoutes>(std::move(up), shortest_path_routes(graph, nics));
}

}  // namespace netsim
