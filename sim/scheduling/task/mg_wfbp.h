// MG-WFBP merges gradients so that their all-reduces begin neither late nor too often. The rule is that of
// its published code (HKBU-HPML/MG-WFBP, distributed_optimizer.py, _generate_groups_mgwfbp). Source: Shi et
// al., "MG-WFBP: Efficient Data Communication for Distributed Synchronous SGD", INFOCOM 2019. Extended in
// TPDS 2021, "Merging Gradients Wisely for Efficient Communication".
#pragma once

#include <span>

#include "sim/core/units.h"
#include "sim/scheduling/task/fusion.h"

namespace netsim {

// Returns the merged gradients. A communication takes `startup` (the paper's alpha) and its transfer. The
// rule goes through the gradients in the order in which they become ready. It merges one into the next if the
// next is ready before this one's communication begins. It also merges if the next is ready while this one's
// communication runs, and less than `startup` after its begin.
FusionMap mg_wfbp_fusion(std::span<const FusionTensor> tensors, Time startup);

}  // namespace netsim
