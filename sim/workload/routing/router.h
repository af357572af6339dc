// Router: which experts every token of a mixture of experts goes to. One .cpp for each; a router answers
// token by token, and what ranks send each other and compute is counted from that (token_counts.h), for
// training jobs and for collectives by themselves (token_section.h).
//
// All copies of the model route alike: a router knows the ranks that share the experts of a layer among them,
// not which of their groups asks. A microbatch's routing is that of its iteration.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/core/config.h"
#include "sim/workload/routing/experts.h"

namespace netsim {

// What is routed in a layer.
struct RoutingShape {
  std::uint32_t sources = 1;  // ranks that tokens come from
  std::uint32_t tokens = 1;   // of each
  std::uint32_t experts = 1, top_k = 1;
  // The experts lie in so many groups of one size; those of a token in at most `group_limit` of them.
  std::uint32_t groups = 1, group_limit = 1;
  // Tokens of a source that an expert takes; what is beyond them is dropped. 0: it takes all.
  std::int64_t capacity = 0;
};
RoutingShape routing_shape(const RoutedExperts& experts, std::uint32_t sources, std::int64_t tokens);

class Router {
 public:
  static constexpr const char* kComponentKind = "router";
  virtual ~Router() = default;

  // Whether every expert gets as many tokens of every rank, and every token's experts are in as many groups
  // as may be: then nobody needs to count.
  virtual bool even() const { return false; }
  // Whether an iteration may route otherwise than the one before.
  virtual bool changes() const { return false; }
  // ConfigError for a job that the router cannot serve. `layers`: that have experts.
  virtual void check(const RoutingShape&, std::uint32_t /*layers*/) const {}
  // The experts of all tokens of a rank, top_k different ones for each token after the other. `layer`: of
  // those that have experts. Depends on its arguments only.
  virtual std::vector<std::uint32_t> route(const RoutingShape& shape, std::uint32_t layer,
                                           std::uint32_t iteration, std::uint32_t source) const = 0;
};

// For routers by popularity: every token draws its experts, one after the other without putting back, each
// with the probability that is its share of what is left. Once they lie in as many groups as they may, the
// others are left out. So does a router that takes the best random scores in the groups of the highest ones
// (DeepEP's tests/test_internode.py, with all experts as popular): independent ones come in just this order
// (Efraimidis and Spirakis, IPL 97, 2006). DeepSeek-V3's own takes the groups by the sum of the best two of
// each (arXiv 2412.19437, section 2.1.2). `key` names the draw.
std::vector<std::uint32_t> draw_experts(const RoutingShape& shape, const std::vector<double>& popularity,
                                        std::uint64_t key);
// e to the x in our own arithmetic: same bits on every machine, relative error below 1e-14 for |x| < 700.
double portable_exp(double x);

}  // namespace netsim
