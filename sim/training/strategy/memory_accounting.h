// The memory that a job needs on each GPU, from its graph.
#pragma once

#include "sim/training/strategy/job_shape.h"
#include "sim/training/strategy/training_graph.h"

namespace netsim {

// Says how much memory the job needs (LayerMemory, StageGraph::resident, GraphNode::memory). It counts:
// - parameters in half precision. In reduced precision there is also a copy and its transpose; parameters
//   that are kept in FP8 have only the transpose beside them.
// - sums of gradients.
// - for Adam in mixed precision 12 bytes a parameter, a copy in fp32 and two moments (Rajbhandari et al.,
//   SC'20).
// - activations from a layer's forward to its backward, by what its operators save.
//
// Does nothing for a model whose layers do not say what they save. All strategies have to be applied before.
void account_memory(TrainingGraph& graph, const JobShape& job);

// Returns the memory that a forward keeps of a layer of the body for its backward. That is everything that
// its operators save. Results inside the attention's core are left out where the core is computed again. Only
// the layer's input is kept where the whole layer is computed again.
MemoryChange kept_activations(TrainingGraph& graph, const LayerGraph& layer, Recompute recompute);

}  // namespace netsim
