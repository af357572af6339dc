#include "sim/training/layers/layer_step.h"

#include <algorithm>

#include "sim/core/errors.h"

namespace netsim {

Work fixed_time_work(const std::string& name, Time time) {
  Kernel kernel;
  kernel.kind = Kernel::Kind::fixed;
  kernel.name = name;
  kernel.duration = time;
  return {name, {kernel}};
}

LayerStep::LayerStep(ProgramBuilder& builder, const std::vector<TimedLayer>& layers,
                     const std::vector<BackwardStep>& order, std::uint32_t workers, std::uint32_t servers,
                     std::uint32_t per_host)
    : builder_(builder),
      layers_(layers),
      order_(order),
      workers_(workers),
      servers_(servers),
      local_(per_host > 1 ? std::optional(builder.axis("local", per_host)) : std::nullopt),
      axis_(builder.axis("dp", (workers + servers) / per_host)),
      readers_(layers.size()),
      forward_(layers.size(), kNoNode),
      forward_end_(layers.size(), kNoNode),
      input_end_(layers.size(), kNoNode),
      gradient_(layers.size(), kNoNode),
      arrived_(layers.size()),
      exchanged_(layers.size()) {
  for (std::uint32_t i = 0; i < layers_.size(); ++i) {
    for (const std::uint32_t before : layers_[i].after) readers_[before].push_back(i);
  }
  for (const BackwardStep& next : order_) {
    if (makes_gradient(layers_[next.layer], next.weights) && layers_[next.layer].bytes > 0)
      ready_.push_back(next.layer);
  }
}

void LayerStep::forward(std::uint32_t layer, const std::vector<Node>& before) {
  const TimedLayer& facts = layers_[layer];
  std::vector<Node> inputs;
  for (const std::uint32_t read : facts.after) inputs.push_back(forward_end_[read]);
  if (facts.all_to_all > 0) inputs = {all_to_all("dispatch " + facts.name, facts.all_to_all, inputs)};
  inputs.insert(inputs.end(), before.begin(), before.end());
  forward_[layer] = forward_end_[layer] = compute("forward " + facts.name, facts.forward, inputs);
  if (facts.all_to_all > 0)
    forward_end_[layer] = all_to_all("combine " + facts.name, facts.all_to_all, {forward_[layer]});
}

void LayerStep::forwards() {
  for (std::uint32_t layer = 0; layer < layers_.size(); ++layer) forward(layer, {});
}

const std::vector<LayerStep::Node>& LayerStep::arrived(std::uint32_t layer) {
  std::vector<Node>& nodes = arrived_[layer];
  if (!nodes.empty()) return nodes;
  for (const std::uint32_t reader : readers_[layer]) nodes.push_back(input_end_[reader]);
  if (nodes.empty()) nodes.push_back(forward_end_[layer]);
  const TimedLayer& facts = layers_[layer];
  if (facts.all_to_all > 0) nodes = {all_to_all("combine_gradient " + facts.name, facts.all_to_all, nodes)};
  return nodes;
}

void LayerStep::backward() {
  for (const BackwardStep& next : order_) {
    const TimedLayer& facts = layers_[next.layer];
    if (!has_gradient(facts, next.weights)) continue;
    if (!next.weights) {
      input_gradient(next.layer);
    } else {
      gradient_[next.layer] =
          compute("weight_gradient " + facts.name, facts.weight_gradient, arrived(next.layer));
    }
  }
}

void LayerStep::input_gradient(std::uint32_t layer) {
  const TimedLayer& facts = layers_[layer];
  const Node node = compute("backward " + facts.name, facts.backward, arrived(layer));
  if (makes_gradient(facts, false)) gradient_[layer] = node;
  input_end_[layer] =
      facts.all_to_all > 0 ? all_to_all("dispatch_gradient " + facts.name, facts.all_to_all, {node}) : node;
}

LayerStep::Node LayerStep::compute(const std::string& name, Time time, const std::vector<Node>& after,
                                   bool ordered) {
  ProgramOp op;
  op.kind = TaskKind::compute;
  op.unordered = !ordered;
  op.name = builder_.name(name);
  op.work = builder_.work(fixed_time_work(name, time));
  const Node node = add(std::move(op), after);
  if (ordered) last_compute_ = node;
  return node;
}

LayerStep::Node LayerStep::collective(const std::string& name, CollectiveKind kind, Bytes bytes,
                                      const std::vector<Node>& after) {
  return collective(name, kind, bytes, after, Span::all, 0);
}

LayerStep::Node LayerStep::collective(const std::string& name, CollectiveKind kind, Bytes bytes,
                                      const std::vector<Node>& after, Span span, std::uint32_t queue) {
  ProgramOp op;
  op.kind = TaskKind::collective;
  op.collective = kind;
  op.stream = Stream::dp;
  op.queue = queue;
  op.group = group(span);
  op.bytes = bytes;
  op.name = builder_.name(name);
  return add(std::move(op), after);
}

LayerStep::Node LayerStep::all_to_all(const std::string& name, Bytes bytes, const std::vector<Node>& after) {
  const Node node = collective(name, CollectiveKind::all_to_all, bytes, after);
  ops_[node].op.stream = Stream::ep;
  return node;
}

std::uint32_t LayerStep::group(Span span) {
  if (local_ && span == Span::within_host) return builder_.group({{{*local_, {}}}, {}, 0});
  if (local_ && span == Span::all) return builder_.group({{{*local_, {}}, {axis_, {}}}, {}, 0});
  GroupExpression::AxisSubset members{axis_, {}};
  if (servers_ > 0) {
    for (std::uint32_t rank = 0; rank < workers_; ++rank) members.members.push_back(rank);
  }
  return builder_.group({{members}, {}, 0});
}

LayerStep::Node LayerStep::add(ProgramOp op, const std::vector<Node>& after) {
  ops_.push_back({std::move(op), after, {}});
  return static_cast<Node>(ops_.size() - 1);
}

void LayerStep::finish() {
  const bool reaches_back =
      std::any_of(ops_.begin(), ops_.end(), [](const Written& op) { return !op.previous.empty(); });
  BlockBuilder block(builder_, "worker");
  for (Node node = 0; node < ops_.size(); ++node) {
    Written& written = ops_[node];
    // Without this the operation would wait for all of the previous iteration.
    if (reaches_back && written.after.empty() && written.previous.empty())
      written.previous.push_back(last_compute_);
    for (const Node earlier : written.previous)
      written.op.after_previous.push_back(static_cast<std::int32_t>(std::int64_t{node} - earlier));
    block.add(std::move(written.op), written.after);
  }
  ProgramRole role{"worker", {}, block.finish()};
  if (servers_ > 0) {
    role.where.push_back({axis_, {}});
    for (std::uint32_t rank = 0; rank < workers_; ++rank) role.where.back().values.push_back(rank);
  }
  builder_.role(std::move(role));
}

}  // namespace netsim
