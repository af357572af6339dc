#include "sim/topology/files/infragraph/edges.h"

#include <algorithm>
#include <utility>

namespace netsim::infragraph {
namespace {

enum class Scheme : std::uint8_t { one2one, many2many, ring };

Scheme scheme_of(const ConfigNode& edge) {
  const ConfigNode& node = needed(edge, "scheme");
  const std::string name = read_text(node);
  if (name == "one2one") return Scheme::one2one;
  if (name == "many2many") return Scheme::many2many;
  if (name == "ring") return Scheme::ring;
  node.fail("'" + name + "' is none of one2one, many2many, ring");
}

// Calls join(a, b) for each pair of the scheme, except pairs of a node with itself.
template <class Join>
void join_by(Scheme scheme, const std::vector<std::uint32_t>& a, const std::vector<std::uint32_t>& b,
             Join join) {
  const auto pair = [&](std::uint32_t from, std::uint32_t to) {
    if (from != to) join(from, to);
  };
  const std::size_t shorter = std::min(a.size(), b.size());
  switch (scheme) {
    case Scheme::one2one:
      for (std::size_t i = 0; i < shorter; ++i) pair(a[i], b[i]);
      return;
    case Scheme::many2many:
      for (const std::uint32_t from : a) {
        for (const std::uint32_t to : b) pair(from, to);
      }
      return;
    case Scheme::ring:
      for (std::size_t i = 0; i < shorter; ++i) pair(a[i], b[(i + 1) % shorter]);
      return;
  }
}

}  // namespace

void EdgeSet::add(Edge edge, const ConfigNode& at) {
  const std::uint64_t key = std::uint64_t{std::min(edge.a, edge.b)} << 32 | std::max(edge.a, edge.b);
  const auto [known, made] = known_.emplace(key, edges_.size());
  if (edges_.size() >= kMostEdges) at.fail("more than " + std::to_string(kMostEdges) + " edges");
  if (made) {
    edges_.push_back(std::move(edge));
  } else {
    edges_[known->second] = std::move(edge);
  }
}

void add_edges(const ConfigNode& item, const Wires& wires, const std::string& owner,
               const std::function<std::vector<std::uint32_t>(const char* end)>& nodes_of, EdgeSet& edges) {
  item.allow_keys({"ep1", "ep2", "scheme", "link"});
  const ConfigNode& link = needed(item, "link");
  const auto wire = wires.find(read_text(link));
  if (wire == wires.end()) unknown(link, read_text(link), wires, "link of " + owner);
  const auto a = nodes_of("ep1"), b = nodes_of("ep2");
  join_by(scheme_of(item), a, b, [&](std::uint32_t from, std::uint32_t to) {
    edges.add({from, to, &wire->second, item.place()}, item);
  });
}

}  // namespace netsim::infragraph
