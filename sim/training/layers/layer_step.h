// LayerStep: one training iteration of a chain or graph of layers, while it is written.
//
// The exchange (gradient_exchange.h) writes it: the forwards in the order of the layers, the backward, and
// the communications. It says of each layer which operations end its exchange. The workload (layers.cpp) then
// adds the optimizer's operations. The forward of a layer waits for the exchange and the update of that layer
// in the iteration before, and for nothing else of it.
//
// All computations of a worker are in one stream and run in the order in which they are written. Collectives
// of gradients are in stream dp, queue 0, and are launched one after the other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/config.h"
#include "sim/training/layers/backward_order.h"
#include "sim/training/layers/timed_layer.h"
#include "sim/workload/program/program.h"

namespace netsim {

class LayerStep {
 public:
  // Node: number of an operation of the worker's program, in the order in which they are written.
  using Node = std::uint32_t;
  static constexpr Node kNoNode = UINT32_MAX;

  // Ranks 0 to workers - 1 train; the `servers` ranks behind them belong to the exchange. Without servers,
  // `per_host` consecutive workers are on a host; it divides the workers. The order is one that
  // backward_problem() accepts. `builder`, `layers` and `order` must outlive the step.
  LayerStep(ProgramBuilder& builder, const std::vector<TimedLayer>& layers,
            const std::vector<BackwardStep>& order, std::uint32_t workers, std::uint32_t servers,
            std::uint32_t per_host = 1);

  const std::vector<TimedLayer>& layers() const { return layers_; }
  std::uint32_t workers() const { return workers_; }
  std::uint32_t servers() const { return servers_; }
  std::uint32_t ranks() const { return workers_ + servers_; }
  // Returns the axis of all ranks, workers first; with several workers on a host, that of the hosts.
  std::uint32_t axis() const { return axis_; }
  ProgramBuilder& builder() { return builder_; }

  // Appends the forward of a layer, with its all-to-alls. It waits for the layers that it reads and for
  // `before`. forwards() appends those of all layers, which wait for nothing else.
  void forward(std::uint32_t layer, const std::vector<Node>& before);
  void forwards();
  // Appends the gradients of all layers, in the order of the backward. Called once, after the forwards.
  void backward();

  // Returns the layers whose gradients are exchanged, in the order in which backward() computes them.
  const std::vector<std::uint32_t>& ready() const { return ready_; }
  // Returns the operation that computes a layer's gradient, or kNoNode before backward().
  Node gradient(std::uint32_t layer) const { return gradient_[layer]; }
  // Return the computation of a layer's forward, and the last computation written so far.
  Node forward_of(std::uint32_t layer) const { return forward_[layer]; }
  Node last_compute() const { return last_compute_; }

  // Each of these appends one operation that waits for `after`. A computation is in the stream of the GPU if
  // it is `ordered`; otherwise it shares the GPU with what else runs there.
  Node compute(const std::string& name, Time time, const std::vector<Node>& after, bool ordered = true);
  // A collective among all workers; `bytes` as workload.proto counts them.
  Node collective(const std::string& name, CollectiveKind kind, Bytes bytes, const std::vector<Node>& after);
  // Also among the workers of a host, or those that have the same place on all hosts; in a queue of stream
  // dp.
  enum class Span : std::uint8_t { all, within_host, between_hosts };
  Node collective(const std::string& name, CollectiveKind kind, Bytes bytes, const std::vector<Node>& after,
                  Span span, std::uint32_t queue);
  Node add(ProgramOp op, const std::vector<Node>& after);
  // Replaces the bytes of an operation by a table of the program, with a value for each rank and iteration.
  void set_table(Node node, std::uint32_t table) { ops_[node].op.table_plus_one = table + 1; }

  // Says that the gradient of a layer, or its new parameters, are at the worker when `node` has ended. All
  // nodes of a layer have to end.
  void exchanged(std::uint32_t layer, Node node) { exchanged_[layer].push_back(node); }
  // Returns the operations of exchanged().
  const std::vector<Node>& exchanged_by(std::uint32_t layer) const { return exchanged_[layer]; }
  // Makes `node` wait for `earlier` of the previous iteration.
  void wait_for_previous(Node node, Node earlier) { ops_[node].previous.push_back(earlier); }

  // Adds the program as a role of the workers.
  void finish();

 private:
  struct Written {
    ProgramOp op;
    std::vector<Node> after, previous;
  };

  Node all_to_all(const std::string& name, Bytes bytes, const std::vector<Node>& after);
  // Returns what computations of a layer's backward wait for; the first call appends its all-to-all.
  const std::vector<Node>& arrived(std::uint32_t layer);
  void input_gradient(std::uint32_t layer);
  std::uint32_t group(Span span);

  ProgramBuilder& builder_;
  const std::vector<TimedLayer>& layers_;
  const std::vector<BackwardStep>& order_;
  std::uint32_t workers_, servers_;
  std::optional<std::uint32_t> local_;  // axis of the workers of a host
  std::uint32_t axis_;
  std::vector<Written> ops_;
  Node last_compute_ = kNoNode;
  std::vector<std::vector<std::uint32_t>> readers_;     // by layer: the layers that read it
  std::vector<Node> forward_, forward_end_;             // by layer
  std::vector<Node> input_end_, gradient_;              // by layer; kNoNode: not yet
  std::vector<std::vector<Node>> arrived_, exchanged_;  // by layer; empty: not yet
  std::vector<std::uint32_t> ready_;
};

// Returns a computation of a fixed time.
Work fixed_time_work(const std::string& name, Time time);

}  // namespace netsim
