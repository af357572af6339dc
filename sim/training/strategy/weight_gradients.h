// Gradients of weights apart from those of inputs. Only the optimizer waits for the former, so a chain may
// compute them later.
#pragma once

#include <string>
#include <utility>

#include "sim/training/strategy/training_graph.h"

namespace netsim {

// Returns the name for gradients of weights: "mlp_backward" -> "mlp_weights".
std::string weights_name(const std::string& name);

// Splits a computation into gradients of its input and gradients of weights. Either may have no operators.
std::pair<GraphNode, GraphNode> split_gradients(const GraphNode& node);

// Returns the backward with its gradients of weights behind the next communication, which they help to hide.
Chain put_off_weights(const Chain& backward);

}  // namespace netsim
