// Router: the experts that every token of a mixture of experts goes to. Each router has a .cpp file. A router
// answers token by token. From this the traffic and computation of ranks are counted (token_counts.h), for
// training jobs and for single collectives (token_section.h).
//
// All copies of the model route alike. A router knows the ranks that share the experts of a layer, but not
// which of their groups asks. A microbatch's routing is that of its iteration.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/core/config.h"
#include "sim/workload/routing/experts.h"

namespace netsim {

// RoutingShape: the numbers of a layer that is routed.
struct RoutingShape {
  std::uint32_t sources = 1;  // number of ranks that tokens come from
  std::uint32_t tokens = 1;   // tokens of each source
  std::uint32_t experts = 1, top_k = 1;
  // The experts form `groups` groups of one size. The experts of a token are in at most `group_limit` of
  // them.
  std::uint32_t groups = 1, group_limit = 1;
  // Number of tokens of a source that an expert takes; tokens beyond it are dropped. 0: it takes all.
  std::int64_t capacity = 0;
};
RoutingShape routing_shape(const RoutedExperts& experts, std::uint32_t sources, std::int64_t tokens);

class Router {
 public:
  static constexpr const char* kComponentKind = "router";
  virtual ~Router() = default;

  // Returns whether every expert gets equally many tokens of every rank, and every token's experts are in as
  // many groups as allowed. Then no counting is needed.
  virtual bool even() const { return false; }
  // Returns whether an iteration may route differently from the one before.
  virtual bool changes() const { return false; }
  // Throws ConfigError for a job that the router cannot serve. `layers` is the number of layers that have
  // experts.
  virtual void check(const RoutingShape&, std::uint32_t /*layers*/) const {}
  // Returns the experts of all tokens of a rank: top_k different ones for each token, one token after the
  // other. `layer` counts layers with experts. The result depends on the arguments only.
  virtual std::vector<std::uint32_t> route(const RoutingShape& shape, std::uint32_t layer,
                                           std::uint32_t iteration, std::uint32_t source) const = 0;
};

// Draws experts by popularity. Every token draws its experts one after the other, without replacement, each
// with its share of the remaining popularity as probability. Once they are in as many groups as allowed,
// experts of other groups are left out.
//
// This is equivalent to taking the best random scores in the groups of the highest ones (DeepEP's
// tests/test_internode.py, with all experts equally popular). Independent scores come in exactly this order
// (Efraimidis and Spirakis, IPL 97, 2006). DeepSeek-V3's own router ranks groups by the sum of the best two
// scores of each (arXiv 2412.19437, section 2.1.2). `key` identifies the random stream.
std::vector<std::uint32_t> draw_experts(const RoutingShape& shape, const std::vector<double>& popularity,
                                        std::uint64_t key);
// Returns e to the x in netsim's own arithmetic, with the same bits on every machine. The relative error is
// below 1e-14 for |x| < 700.
double portable_exp(double x);

}  // namespace netsim
