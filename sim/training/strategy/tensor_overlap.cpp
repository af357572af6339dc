// Communication of sequence parallelism in pieces, beside the GEMM of a body's layer that it waits for or
// that waits for it. It concerns inputs that are gathered before a GEMM, and sums that are reduce-scattered
// behind one. Communication beside the gradients of weights stays as it is (Transformer Engine's "bulk"
// overlap).
// - ring_exchange: a rank computes with its own tokens while it passes them on and gets those of the next
//   rank. Partial sums are passed on and added to. Transformer Engine calls it "ring_exchange" (Wang et al.,
//   "Overlap Communication with Dependent Computation via Decomposition in Large Deep Learning Models",
//   ASPLOS 2023).
// - pipelined: the collective and the GEMM are cut into equally many pieces. A piece is gathered while the
//   piece before is computed, or summed while the next one is computed (Transformer Engine's "pipeline").
//
// The GEMMs of the pieces fill each other's last waves. They do so on Transformer Engine's compute streams,
// several of which split_overlap_rs() and split_overlap_ag() of its userbuffers take in turn.
//
// `multiprocessors` are held by communication while a GEMM runs: its "num_sm", for each GEMM that pipelined
// or bulk communication overlaps with. NeMo's tp_overlap_configs/userbuffers.py has them for its recipes;
// Transformer Engine's default is 16 (initialize_ub). A ring exchange copies by copy engines and holds none.
#include <utility>

#include "sim/training/strategy/chain_editor.h"
#include "sim/training/strategy/strategy.h"

namespace netsim {
namespace {

using Number = ChainEditor::Number;
using Numbers = ChainEditor::Numbers;

// Returns whether an operator is a GEMM of a layer's weights for all tokens, which can be computed for some
// of them at a time.
bool by_tokens(const Operator& op) {
  return op.kind == Kernel::Kind::gemm && op.linear && !op.weight_gradient && op.m.along == Dimension::tokens;
}
bool is_collective(const GraphNode& node, CollectiveKind kind) {
  return node.kind == GraphNode::Kind::collective && node.collective == kind && node.stream == Stream::tp;
}

// OverlapMultiprocessors: SMs held beside each GEMM; Transformer Engine's names are in the comments.
struct OverlapMultiprocessors {
  std::int64_t projection = 0, mlp_down = 0;        // proj_fprop, fc2_fprop
  std::int64_t qkv_dgrad = 0, qkv_wgrad = 0;        // qkv_dgrad, qkv_wgrad
  std::int64_t mlp_up_dgrad = 0, mlp_up_wgrad = 0;  // fc1_dgrad, fc1_wgrad
  std::int64_t beside(const std::string& gemm) const {
    if (gemm == "projection_gemm") return projection;
    if (gemm == "mlp_down_gemm") return mlp_down;
    if (gemm == "qkv_gemm_dgrad") return qkv_dgrad;
    if (gemm == "qkv_gemm_wgrad") return qkv_wgrad;
    if (gemm == "mlp_up_gemm_dgrad") return mlp_up_dgrad;
    return gemm == "mlp_up_gemm_wgrad" ? mlp_up_wgrad : 0;
  }
};

enum class OverlapMethod : std::uint8_t { none, ring_exchange, pipelined };
struct TensorOverlap {
  OverlapMethod gathers = OverlapMethod::none;
  OverlapMethod reduce_scatters = OverlapMethod::none;
  std::int64_t pieces = 4;  // pipelined: number of pieces; Transformer Engine's num_splits
  OverlapMultiprocessors multiprocessors;
  bool uses(OverlapMethod method) const { return gathers == method || reduce_scatters == method; }
};

class Overlap {
 public:
  // `to` and `from` are the next rank on the ring and the one before.
  Overlap(const TensorOverlap& p, std::uint32_t ranks, const PeerExpression& to, const PeerExpression& from,
          const std::string& direction)
      : p_(p),
        ranks_(ranks),
        ring_{"tp_send_" + direction, "tp_receive_" + direction, Stream::tp, to, from, false} {}

  Chain rewritten(const Chain& chain) const {
    ChainEditor edit(chain);
    for (std::size_t i = 0; i < chain.size();) i = next(chain, i, edit);
    return edit.finish();
  }

 private:
  // Returns whether node i is a gather that the next GEMM waits for, and nothing else.
  bool overlaps_gather(const Chain& chain, std::size_t i) const {
    if (p_.gathers == OverlapMethod::none || i + 1 >= chain.size()) return false;
    const GraphNode &gather = chain[i], &node = chain[i + 1];
    return is_collective(gather, CollectiveKind::all_gather) && !gather.weight_gradient &&
           !node.operators.empty() && node.after.empty() && by_tokens(node.operators.front()) &&
           node.operators.front().gathers;
  }
  // Returns whether the node after i is a reduce-scatter of the result of node i's last GEMM. A
  // reduce-scatter beside gradients of weights overlaps already.
  bool overlaps_scatter(const Chain& chain, std::size_t i) const {
    if (p_.reduce_scatters == OverlapMethod::none || i + 1 >= chain.size()) return false;
    const GraphNode &node = chain[i], &scatter = chain[i + 1];
    return is_collective(scatter, CollectiveKind::reduce_scatter) && scatter.after.empty() &&
           !node.operators.empty() && by_tokens(node.operators.back());
  }

  // Rewrites node i and the nodes that overlap with it. Returns the node after them.
  std::size_t next(const Chain& chain, std::size_t i, ChainEditor& edit) const {
    const bool gathers = overlaps_gather(chain, i);
    const std::size_t at = gathers ? i + 1 : i;
    const GraphNode& node = chain[at];
    const bool scatters = overlaps_scatter(chain, at) && !(gathers && node.operators.size() == 1);
    Numbers after = edit.waits_for(i);
    if (!gathers && !scatters) {
      edit.stands(i, edit.add(node, after));
      return i + 1;
    }
    auto begin = node.operators.begin(), end = node.operators.end();
    if (gathers) {
      const auto [gathered, computed] = gather(edit, chain[i], part_of(node, {*begin++}), after);
      edit.stands(i, gathered);
      after = {computed};
    }
    if (scatters) --end;
    if (begin != end) after = {edit.add(part_of(node, {begin, end}), after)};
    if (!scatters) {
      edit.stands(at, after.front());
      return at + 1;
    }
    const auto [computed, summed] = scatter(edit, part_of(node, {*end}), chain[at + 1], after);
    edit.stands(at, computed);
    edit.stands(at + 1, summed);
    return at + 2;
  }
  static GraphNode part_of(const GraphNode& node, std::vector<Operator> operators) {
    GraphNode part = node;
    if (operators.size() < node.operators.size()) part.name = node.name + "." + operators.front().name;
    part.work.name = part.name;
    part.operators = std::move(operators);
    return part;
  }

  std::int64_t pieces(OverlapMethod method) const {
    return method == OverlapMethod::ring_exchange ? ranks_ : p_.pieces;
  }
  static GraphNode piece_of(GraphNode gemm, std::int64_t pieces) {
    gemm.operators.front().m.size /= pieces;
    gemm.operators.front().pieces = pieces;
    return gemm;
  }

  // Returns the nodes that complete the gather and the GEMM.
  std::pair<Number, Number> gather(ChainEditor& edit, GraphNode gather, const GraphNode& gemm,
                                   const Numbers& after) const {
    const std::int64_t count = pieces(p_.gathers);
    const GraphNode piece = piece_of(gemm, count);
    gather.bytes /= count;
    Numbers here = after;  // input of the next piece; the rank's own part needs no gather
    Number gathered = after.front(), computed = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      if (p_.gathers == OverlapMethod::pipelined) here = {gathered = edit.add(gather, after)};
      const Numbers now = here;
      if (p_.gathers == OverlapMethod::ring_exchange && i + 1 < count)
        here = {gathered = pass_on(edit, ring_, gather.bytes, now)};
      computed = edit.add(piece, now);
    }
    return {gathered, computed};
  }

  // Returns the nodes that complete the GEMM and the sum.
  std::pair<Number, Number> scatter(ChainEditor& edit, const GraphNode& gemm, GraphNode scatter,
                                    const Numbers& after) const {
    const std::int64_t count = pieces(p_.reduce_scatters);
    const GraphNode piece = piece_of(gemm, count);
    scatter.bytes /= count;
    Number computed = 0, summed = 0, received = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      summed = computed = edit.add(piece, after);
      if (p_.reduce_scatters == OverlapMethod::pipelined) {
        summed = edit.add(scatter, {computed});
        continue;
      }
      if (i > 0) summed = edit.add(addition(piece), {computed, received});
      if (i + 1 < count) received = pass_on(edit, ring_, scatter.bytes, {summed});
    }
    return {computed, summed};
  }
  // Returns the node that adds the received partial sum and the computed one.
  static GraphNode addition(const GraphNode& piece) {
    const Operator& gemm = piece.operators.front();
    GraphNode node = piece;
    node.name = piece.name + ".partial_sum";
    node.work.name = node.name;
    node.operators = {memory_bound("partial_sum", 6, {gemm.m, gemm.n})};
    return node;
  }

  TensorOverlap p_;
  std::uint32_t ranks_;
  RingMessages ring_;
};

class TensorOverlapped final : public Strategy {
 public:
  explicit TensorOverlapped(const TensorOverlap& p) : p_(p) {}

  StrategyOrder order() const override {
    return {.after = {"sequence_parallel"}, .before = {"full_recomputation", "selective_recomputation"}};
  }
  bool takes_part(const JobShape& job) const override { return job.sequence; }
  double operations_of_layer(const JobShape& job) const override {
    const double tensor = p_.uses(OverlapMethod::ring_exchange) ? static_cast<double>(job.tensor) : 1;
    const double pieces = p_.uses(OverlapMethod::pipelined) ? static_cast<double>(p_.pieces) : 1;
    return 20.0 * (tensor - 1) + 20.0 * (pieces - 1);
  }
  void check(const JobShape& job) const override {
    const bool rings = p_.uses(OverlapMethod::ring_exchange), cuts = p_.uses(OverlapMethod::pipelined);
    if (!rings && !cuts) return;
    const ConfigNode& key = job.key("parallel", "tensor_overlap");
    if (!job.sequence) {
      key.fail(
          "tensor_overlap needs parallel.sequence: without it there are all-reduces, which no GEMM's input "
          "can be cut out of");
    }
    const std::int64_t tokens = job.sub_batch() * job.model->sequence() / job.context;
    if (cuts && tokens % (p_.pieces * job.tensor) != 0) {
      key.fail("the " + std::to_string(tokens) + " tokens of a microbatch and rank cannot be divided by " +
               std::to_string(p_.pieces) + " pieces x tensor");
    }
    if (!rings || job.tensor == 1 || !job.has_experts()) return;
    // A rank on an axis that experts split into two has no next rank.
    const std::optional<Mesh> mesh = job.mesh_with_experts();
    if (mesh && !mesh->is_plain("tp"))
      key.fail(
          "ring_exchange needs expert_tensor to be 1 or that of tensor, and expert not to divide tensor");
  }
  void apply(TrainingGraph& graph, const JobShape&) const override {
    const std::uint32_t ranks = graph.mesh.size("tp");
    if (ranks == 1) return;
    const bool rings = p_.uses(OverlapMethod::ring_exchange);
    const auto neighbour = [&](std::int32_t offset) {
      return rings ? graph.mesh.next(graph.builder, "tp", offset) : PeerExpression{};
    };
    const PeerExpression to = neighbour(1), from = neighbour(-1);
    for (LayerGraph& layer : graph.layers) {
      if (!layer.repeats) continue;
      layer.forward = Overlap(p_, ranks, to, from, "forward").rewritten(layer.forward);
      layer.backward = Overlap(p_, ranks, to, from, "backward").rewritten(layer.backward);
      for (Chain* chain : {&layer.forward, &layer.backward}) hold(*chain);
    }
  }

 private:
  void hold(Chain& chain) const {
    for (GraphNode& node : chain) {
      for (Operator& op : node.operators) {
        const std::int64_t held = p_.multiprocessors.beside(op.name);
        if (op.linear && held > 0) op.held_multiprocessors = held;
      }
    }
  }

  TensorOverlap p_;
};

Parameters<OverlapMultiprocessors> overlap_multiprocessors() {
  using P = OverlapMultiprocessors;
  const auto most = [](const char* what) {
    return std::string("multiprocessors that communication holds beside the GEMM of ") + what;
  };
  constexpr Range<std::int64_t> kHeld{0, 100'000};
  return Parameters<P>()
      .integer("projection", &P::projection, kHeld, most("attention's output (proj_fprop)"))
      .integer("mlp_down", &P::mlp_down, kHeld, most("the MLP's output (fc2_fprop)"))
      .integer("qkv_dgrad", &P::qkv_dgrad, kHeld, most("the gradient of attention's input"))
      .integer("qkv_wgrad", &P::qkv_wgrad, kHeld, most("the gradient of attention's input weights"))
      .integer("mlp_up_dgrad", &P::mlp_up_dgrad, kHeld, most("the gradient of the MLP's input (fc1_dgrad)"))
      .integer("mlp_up_wgrad", &P::mlp_up_wgrad, kHeld,
               most("the gradient of the MLP's input weights (fc1_wgrad)"));
}

Parameters<TensorOverlap> tensor_overlap_parameters() {
  using P = TensorOverlap;
  const std::vector<std::pair<std::string, OverlapMethod>> methods{
      {"none", OverlapMethod::none},
      {"ring_exchange", OverlapMethod::ring_exchange},
      {"pipelined", OverlapMethod::pipelined}};
  return in_section(
      kParallelSection,
      Parameters<P>().section(
          "tensor_overlap",
          Parameters<P>()
              .choice("gathers", &P::gathers, methods,
                      "how inputs are gathered before a GEMM, while the GEMM of the piece before runs: ranks "
                      "pass pieces on in a ring, or each piece is all-gathered")
              .choice("reduce_scatters", &P::reduce_scatters, methods,
                      "how sums are reduce-scattered after a GEMM, while the GEMM of the next piece runs: "
                      "ranks pass pieces on in a ring and add to them, or each piece is reduce-scattered")
              .integer("pieces", &P::pieces, {2, 1024},
                       "number of pieces into which pipelined communication is cut")
              .section(
                  "multiprocessors", &P::multiprocessors, overlap_multiprocessors(),
                  "multiprocessors that communication holds beside GEMMs, as Transformer Engine's num_sm"),
          "communication of sequence parallelism beside the GEMMs that wait for it"));
}

const Registration<Strategy> kTensorOverlap{
    "tensor_overlap", "communication of sequence parallelism in pieces, beside the GEMMs that wait for it",
    ptdp_keys(tensor_overlap_parameters()),
    [](const TensorOverlap& p, const ConfigNode&) { return std::make_unique<TensorOverlapped>(p); }};

}  // namespace
}  // namespace netsim
