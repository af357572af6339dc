// Weights in slices of columns. The GEMM whose results tensor-parallel ranks sum up is cut along the columns
// of its weights. While the result of one slice is summed, the GPU computes the next one. The slices lie side
// by side in the result, and what follows needs all of them. So communication hides within a layer only.
//
// The source is Domino, which divides the batch too (sub_batches.cpp). It is Wang et al., "Domino:
// Eliminating Communication in LLM Training via Generic Tensor Slicing and Overlapping", arXiv 2409.15241. In
// the backward the GEMM computes the gradient of the layer's input. Gradients of weights that are computed
// behind it run beside the sums.
//
// A GEMM of g and a sum of x in k slices take k max(g/k, x/k) + min(g/k, x/k) instead of g + x.
#include <algorithm>
#include <utility>
#include <vector>

#include "sim/training/strategy/piece_messages.h"
#include "sim/training/strategy/strategy.h"

namespace netsim {
namespace {

struct ColumnSliceParameters {
  std::int64_t count = 2;
};

// SlicedColumns: cuts the GEMMs of a chain.
class SlicedColumns {
 public:
  using Numbers = ChainEditor::Numbers;
  using Operators = std::vector<Operator>;

  SlicedColumns(std::int64_t count, const ConfigNode& where) : count_(count), where_(where) {}

  Chain rewritten(const Chain& chain) const {
    ChainEditor edit(chain);
    for (std::size_t i = 0; i < chain.size(); ++i) {
      const Numbers after = edit.waits_for(i);
      const bool summed = i + 1 < chain.size() && is_dense_sum(chain[i + 1]);
      const Operators& operators = chain[i].operators;
      const auto gemm = summed ? summed_gemm(operators) : operators.end();
      if (gemm == operators.end()) {
        edit.stands(i, edit.add(chain[i], after));
        continue;
      }
      slice(edit, chain, i, static_cast<std::size_t>(gemm - operators.begin()), after);
      ++i;
    }
    return edit.finish();
  }

 private:
  static bool is_dense_sum(const GraphNode& node) {
    const bool sums =
        node.collective == CollectiveKind::all_reduce || node.collective == CollectiveKind::reduce_scatter;
    return node.kind == GraphNode::Kind::collective && node.stream == Stream::tp && sums &&
           !node.sum.name.empty() && node.sum.over != Dimension::expert_inner && node.after.empty();
  }
  // Returns the GEMM whose results are summed: the last operator but for gradients of weights.
  static Operators::const_iterator summed_gemm(const Operators& operators) {
    auto last = operators.end();
    while (last != operators.begin() && (last - 1)->weight_gradient) --last;
    if (last == operators.begin()) return operators.end();
    const Operator& op = *--last;
    return op.kind == Kernel::Kind::gemm && op.linear && op.pieces == 1 ? last : operators.end();
  }

  // Appends node i, whose operator at `at` is cut, and the sum behind it.
  void slice(ChainEditor& edit, const Chain& chain, std::size_t i, std::size_t at, Numbers after) const {
    const GraphNode& node = chain[i];
    const auto begin = node.operators.begin(), gemm = begin + static_cast<std::ptrdiff_t>(at);
    if (gemm != begin) after = {edit.add(with_operators(node, {begin, gemm}), after)};
    GraphNode piece = with_operators(node, {*gemm}), sum = chain[i + 1];
    Extent& columns = piece.operators.front().n;
    if (columns.size % count_ != 0) {
      where_.fail("the " + std::to_string(columns.size) + " columns of '" + gemm->name +
                  "' cannot be divided into " + std::to_string(count_) + " column_slices");
    }
    columns.size /= count_;
    sum.bytes /= count_;
    for (GraphNode* cut : {&piece, &sum}) cut_into(*cut, count_, "strategies: column_slices.count");
    Numbers summed;
    ChainEditor::Number computed = 0;
    for (std::int64_t k = 0; k < count_; ++k) {
      computed = edit.add(piece, after);
      summed.push_back(edit.add(sum, {computed}));
    }
    const Operators behind(gemm + 1, node.operators.end());
    if (!behind.empty()) computed = edit.add(with_operators(node, behind), {computed});
    edit.stands(i, computed);
    edit.stands(i + 1, std::move(summed));
  }

  std::int64_t count_;
  const ConfigNode& where_;
};

class ColumnSlices final : public Strategy {
 public:
  ColumnSlices(const ColumnSliceParameters& p, ConfigNode where) : p_(p), where_(std::move(where)) {}

  StrategyOrder order() const override {
    return {.after = {"tensor_parallel", "sequence_parallel", "tensor_overlap", "expert_overlap"},
            .before = {"full_recomputation", "selective_recomputation", "sub_batches", "pipeline_parallel"}};
  }
  double operations_of_layer(const JobShape&) const override { return 16.0 * static_cast<double>(p_.count); }
  void check(const JobShape& job) const override {
    if (std::count(job.strategies.begin(), job.strategies.end(), "column_slices") > 1)
      where_.fail("column_slices is listed twice: a GEMM is cut once");
    if (job.gives("parallel", "tensor_overlap")) {
      job.key("parallel", "tensor_overlap")
          .fail("cuts the same GEMMs, along their tokens: no column_slices beside it");
    }
    if (job.has("sliced_boundaries"))
      where_.fail("sliced_boundaries leaves the last sum of a stage whole on no rank: no column_slices");
  }
  std::vector<std::string> notes(const JobShape& job) const override {
    if (job.tensor > 1) return {};
    return {"column_slices changes nothing: no ranks of '" + job.name +
            "' sum up results of GEMMs (parallel.tensor)"};
  }
  void apply(TrainingGraph& graph, const JobShape&) const override {
    const SlicedColumns columns(p_.count, where_);
    for (LayerGraph& layer : graph.layers) {
      if (!layer.repeats) continue;
      layer.forward = columns.rewritten(layer.forward);
      layer.backward = columns.rewritten(layer.backward);
    }
  }

 private:
  ColumnSliceParameters p_;
  ConfigNode where_;
};

const Registration<Strategy> kColumnSlices{
    "column_slices",
    "weights in slices of columns, so that the sum of one slice hides behind the GEMM of the next (Domino)",
    Parameters<ColumnSliceParameters>().integer("count", &ColumnSliceParameters::count, {2, 64},
                                                "slices of each GEMM whose results are summed up"),
    [](const ColumnSliceParameters& p, const ConfigNode& where) {
      return std::make_unique<ColumnSlices>(p, where);
    }};

}  // namespace
}  // namespace netsim
