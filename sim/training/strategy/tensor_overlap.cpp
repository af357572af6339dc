// Communication of tensor parallelism in pieces, beside the GEMM of a body's layer that it waits for or that
// waits for it. With sequence parallelism these are gathers before a GEMM and reduce-scatters behind one,
// without it all-reduces behind one. Communication beside the gradients of weights stays as it is
// (Transformer Engine's "bulk" overlap).
// - ring_exchange: a rank computes with its own tokens while it passes them on and gets those of the next
//   rank. Partial sums are passed on and added to. Transformer Engine calls it "ring_exchange" (Wang et al.,
//   "Overlap Communication with Dependent Computation via Decomposition in Large Deep Learning Models",
//   ASPLOS 2023).
// - pipelined: the collective and the GEMM are cut into equally many pieces. A piece is gathered while the
//   piece before is computed, or summed while the next one is computed (Transformer Engine's "pipeline").
// - direct: each piece is stored straight into the memory of the rank that needs it. A rank computes for its
//   own tokens first when it gathers, and last when it sums up (FLUX: Chang et al., arXiv 2406.06858).
//
// The pieces of a GEMM are kernels of their own, or slices of one kernel, whose tiles wait for a piece or
// release one (docs/concepts/progress_points.md).
// - Kernels of their own fill each other's last waves. They do so on Transformer Engine's compute streams,
//   several of which split_overlap_rs() and split_overlap_ag() of its userbuffers take in turn.
// - FlashOverlap (Hong et al., arXiv 2504.19519) is `pipelined` with slices. T3 (Pati et al., ASPLOS 2024) is
//   `ring_exchange` with slices, stores, and sums that the memory adds up.
//
// `multiprocessors` are held by communication while a GEMM runs: its "num_sm", for each GEMM that pipelined
// or bulk communication overlaps with. NeMo's tp_overlap_configs/userbuffers.py has them for its recipes;
// Transformer Engine's default is 16 (initialize_ub). A ring exchange copies by copy engines and holds none.
#include <string>
#include <utility>
#include <vector>

#include "sim/training/strategy/piece_messages.h"
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
  std::int64_t qkv = 0, mlp_up = 0;                 // qkv_fprop, fc1_fprop
  std::int64_t projection = 0, mlp_down = 0;        // proj_fprop, fc2_fprop
  std::int64_t qkv_dgrad = 0, qkv_wgrad = 0;        // qkv_dgrad, qkv_wgrad
  std::int64_t mlp_up_dgrad = 0, mlp_up_wgrad = 0;  // fc1_dgrad, fc1_wgrad
  std::int64_t beside(const std::string& gemm) const {
    if (gemm == "qkv_gemm") return qkv;
    if (gemm == "mlp_up_gemm") return mlp_up;
    if (gemm == "projection_gemm") return projection;
    if (gemm == "mlp_down_gemm") return mlp_down;
    if (gemm == "qkv_gemm_dgrad") return qkv_dgrad;
    if (gemm == "qkv_gemm_wgrad") return qkv_wgrad;
    if (gemm == "mlp_up_gemm_dgrad") return mlp_up_dgrad;
    return gemm == "mlp_up_gemm_wgrad" ? mlp_up_wgrad : 0;
  }
};

enum class OverlapMethod : std::uint8_t { none, ring_exchange, pipelined, direct };
// PieceKernels: whether pieces of a GEMM are separate kernels or slices of one.
enum class PieceKernels : std::uint8_t { separate, sliced };
// PieceTransfers: whether kernels of the collective library carry the messages of a ring, or stores and DMA
// engines that take no multiprocessor.
enum class PieceTransfers : std::uint8_t { library, stores };
// PieceLaunches: when a kernel of the collective library begins that waits for a slice of a GEMM.
enum class PieceLaunches : std::uint8_t { at_once, next_wave };
// PieceSums: whether a kernel adds up partial sums, or the memory does as they arrive.
enum class PieceSums : std::uint8_t { kernel, memory };

struct TensorOverlap {
  OverlapMethod gathers = OverlapMethod::none;
  OverlapMethod reduce_scatters = OverlapMethod::none;
  OverlapMethod all_reduces = OverlapMethod::none;  // none or pipelined
  std::int64_t pieces = 4;  // pipelined, direct: number of pieces; Transformer Engine's num_splits
  PieceKernels kernels = PieceKernels::separate;
  PieceTransfers transfers = PieceTransfers::library;
  PieceLaunches launches = PieceLaunches::at_once;
  PieceSums sums = PieceSums::kernel;
  OverlapMultiprocessors multiprocessors;
  bool uses(OverlapMethod method) const {
    return gathers == method || reduce_scatters == method || all_reduces == method;
  }
  // Returns whether gathers or reduce-scatters overlap, which sequence parallelism has.
  bool of_sequences() const {
    return gathers != OverlapMethod::none || reduce_scatters != OverlapMethod::none;
  }
  bool acts() const { return of_sequences() || all_reduces != OverlapMethod::none; }
  // Returns whether ranks exchange messages with other ranks of their group.
  bool has_peers() const { return uses(OverlapMethod::ring_exchange) || uses(OverlapMethod::direct); }
};

class Overlap {
 public:
  Overlap(const TensorOverlap& p, std::uint32_t ranks, const PieceMessages& messages)
      : p_(p), ranks_(ranks), messages_(messages) {}

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
  // Returns how a sum behind a GEMM overlaps with it.
  OverlapMethod method_of(const GraphNode& sum) const {
    if (is_collective(sum, CollectiveKind::reduce_scatter)) return p_.reduce_scatters;
    return is_collective(sum, CollectiveKind::all_reduce) ? p_.all_reduces : OverlapMethod::none;
  }
  // Returns whether the node after i sums up the result of node i's last GEMM, and overlaps with it. A sum
  // beside gradients of weights overlaps already.
  bool overlaps_sum(const Chain& chain, std::size_t i) const {
    if (i + 1 >= chain.size()) return false;
    const GraphNode &node = chain[i], &sum = chain[i + 1];
    return method_of(sum) != OverlapMethod::none && sum.after.empty() && !node.operators.empty() &&
           by_tokens(node.operators.back());
  }

  // Rewrites node i and the nodes that overlap with it. Returns the node after them.
  std::size_t next(const Chain& chain, std::size_t i, ChainEditor& edit) const {
    const bool gathers = overlaps_gather(chain, i);
    const std::size_t at = gathers ? i + 1 : i;
    const GraphNode& node = chain[at];
    const bool sums = overlaps_sum(chain, at) && !(gathers && node.operators.size() == 1);
    Numbers after = edit.waits_for(i);
    if (!gathers && !sums) {
      edit.stands(i, edit.add(node, after));
      return i + 1;
    }
    auto begin = node.operators.begin(), end = node.operators.end();
    if (gathers) {
      const auto [gathered, computed] = gather(edit, chain[i], with_operators(node, {*begin++}), after);
      edit.stands(i, gathered);
      after = {computed};
    }
    if (sums) --end;
    if (begin != end) after = {edit.add(with_operators(node, {begin, end}), after)};
    if (!sums) {
      edit.stands(at, after.front());
      return at + 1;
    }
    const auto [computed, summed] = sum_up(edit, with_operators(node, {*end}), chain[at + 1], after);
    edit.stands(at, computed);
    edit.stands(at + 1, summed);
    return at + 2;
  }
  std::int64_t pieces(OverlapMethod method) const {
    switch (method) {
      case OverlapMethod::ring_exchange:
        return ranks_;
      case OverlapMethod::direct:
        return ranks_ * p_.pieces;
      default:
        return p_.pieces;
    }
  }
  // Returns whether kernels of the library carry the pieces of a method.
  bool carried_by_kernels(OverlapMethod method) const {
    return method == OverlapMethod::pipelined ||
           (method == OverlapMethod::ring_exchange && p_.transfers == PieceTransfers::library);
  }
  // Returns piece i of `count` of a GEMM, which waits for a piece of its input.
  GraphNode awaiting_piece(const GraphNode& gemm, std::int64_t i, std::int64_t count) const {
    return piece_of(gemm, {i, count, true});
  }
  // Returns piece i of `count` of a GEMM, for whose result a communication of a method waits.
  GraphNode released_piece(const GraphNode& gemm, std::int64_t i, std::int64_t count,
                           OverlapMethod method) const {
    const bool waits = p_.launches == PieceLaunches::next_wave && carried_by_kernels(method);
    return piece_of(gemm, {.index = i, .count = count, .starts_kernel = waits});
  }
  GraphNode piece_of(GraphNode gemm, const KernelSlice& slice) const {
    Operator& op = gemm.operators.front();
    if (p_.kernels == PieceKernels::sliced) {
      op.slice = slice;
      return gemm;
    }
    op.m.size /= slice.count;
    op.pieces = slice.count;
    cut_into(gemm, slice.count, kKey);
    return gemm;
  }
  // Passes a piece on around the ring. Returns the receive of the piece that comes.
  Number pass_on(ChainEditor& edit, Bytes bytes, const Numbers& after) const {
    const bool stored = p_.transfers == PieceTransfers::stores;
    messages_.send(edit, 1, bytes, stored, after);
    return messages_.receive(edit, 1, bytes, stored, after);
  }

  // Returns the nodes that complete the gather and the GEMM.
  std::pair<Number, Number> gather(ChainEditor& edit, GraphNode gather, const GraphNode& gemm,
                                   const Numbers& after) const {
    const std::int64_t count = pieces(p_.gathers);
    gather.bytes /= count;
    if (p_.gathers == OverlapMethod::direct) {
      return messages_.store_at_all(edit, ranks_, p_.pieces, gather.bytes, after,
                                    [&](std::int64_t i, const Numbers& received) {
                                      return edit.add(awaiting_piece(gemm, i, count), received);
                                    });
    }
    cut_into(gather, count, kKey);
    Numbers here = after;  // input of the next piece; the rank's own part needs no gather
    Number gathered = after.front(), computed = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      if (p_.gathers == OverlapMethod::pipelined) here = {gathered = edit.add(gather, after)};
      const Numbers now = here;
      if (p_.gathers == OverlapMethod::ring_exchange && i + 1 < count)
        here = {gathered = pass_on(edit, gather.bytes, now)};
      computed = edit.add(awaiting_piece(gemm, i, count), now);
    }
    return {gathered, computed};
  }
  // Returns the nodes that complete the GEMM and the sum.
  std::pair<Number, Number> sum_up(ChainEditor& edit, const GraphNode& gemm, GraphNode sum,
                                   const Numbers& after) const {
    const OverlapMethod method = method_of(sum);
    const std::int64_t count = pieces(method);
    sum.bytes /= count;
    cut_into(sum, count, kKey);
    if (method == OverlapMethod::direct) return scatter_direct(edit, gemm, sum.bytes, after);
    Number computed = 0, received = 0;
    Numbers summed;
    for (std::int64_t i = 0; i < count; ++i) {
      summed = {computed = edit.add(released_piece(gemm, i, count, method), after)};
      if (method == OverlapMethod::pipelined) {
        summed = {edit.add(sum, {computed})};
        continue;
      }
      if (i > 0) summed.push_back(received);
      if (i > 0 && p_.sums == PieceSums::kernel)
        summed = {edit.add(addition(gemm, count, 6), {computed, received})};
      if (i + 1 < count) received = pass_on(edit, sum.bytes, summed);
    }
    return {computed, joined(edit, gemm, summed)};
  }
  // Each rank stores partial sums at the ranks of their tokens, the next rank's first.
  std::pair<Number, Number> scatter_direct(ChainEditor& edit, const GraphNode& gemm, Bytes bytes,
                                           const Numbers& after) const {
    const std::int64_t count = pieces(p_.reduce_scatters);
    Numbers received = after;
    Number computed = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      computed = edit.add(released_piece(gemm, i, count, OverlapMethod::direct), after);
      const auto distance = static_cast<std::size_t>(i / p_.pieces + 1);
      if (distance == ranks_) continue;
      messages_.send(edit, distance, bytes, true, {computed});
      received = {messages_.receive(edit, distance, bytes, true, received)};
    }
    const Numbers parts{computed, received.front()};
    if (p_.sums == PieceSums::memory) return {computed, joined(edit, gemm, parts)};
    return {computed, edit.add(addition(gemm, ranks_, 2 * (std::int64_t{ranks_} + 1)), parts)};
  }
  // Returns the node that adds up partial sums of one of `parts` of the GEMM's rows. It moves so many bytes
  // for each element of them.
  static GraphNode addition(const GraphNode& gemm, std::int64_t parts, std::int64_t bytes_per_element) {
    const Operator& op = gemm.operators.front();
    Extent rows = op.m;
    rows.size /= parts;
    GraphNode node = gemm;
    node.name = gemm.name + ".partial_sum";
    node.work.name = node.name;
    node.operators = {memory_bound("partial_sum", bytes_per_element, {rows, op.n})};
    return node;
  }

  static constexpr const char* kKey = "parallel.tensor_overlap";
  TensorOverlap p_;
  std::uint32_t ranks_;
  const PieceMessages& messages_;
};

class TensorOverlapped final : public Strategy {
 public:
  explicit TensorOverlapped(const TensorOverlap& p) : p_(p) {}

  StrategyOrder order() const override {
    return {.after = {"sequence_parallel"}, .before = {"full_recomputation", "selective_recomputation"}};
  }
  bool takes_part(const JobShape& job) const override {
    return job.sequence || p_.all_reduces != OverlapMethod::none;
  }
  double operations_of_layer(const JobShape& job) const override {
    const double tensor = p_.has_peers() ? static_cast<double>(job.tensor) : 1;
    const bool cuts = p_.uses(OverlapMethod::pipelined) || p_.uses(OverlapMethod::direct);
    const double pieces = cuts ? static_cast<double>(p_.pieces) : 1;
    if (p_.uses(OverlapMethod::direct)) return 20.0 * tensor * pieces;
    return 20.0 * (tensor - 1) + 20.0 * (pieces - 1);
  }
  void check(const JobShape& job) const override {
    const bool direct = p_.uses(OverlapMethod::direct);
    const bool rings = p_.has_peers(), cuts = direct || p_.uses(OverlapMethod::pipelined);
    if (!p_.acts()) return;
    const ConfigNode& key = job.key("parallel", "tensor_overlap");
    if (!job.sequence && p_.of_sequences()) {
      key.fail(
          "gathers and reduce_scatters of tensor_overlap need parallel.sequence: without it there are "
          "all-reduces, whose key is all_reduces");
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
      key.fail(std::string(direct ? "direct" : "ring_exchange") +
               " needs expert_tensor to be 1 or that of tensor, and expert not to divide tensor");
  }
  std::vector<std::string> notes(const JobShape& job) const override {
    const TensorOverlap otherwise;
    std::string unused;
    const auto check = [&](bool given, const char* key, const char* why) {
      if (given) unused += (unused.empty() ? "" : ", ") + std::string(key) + " (" + why + ")";
    };
    const bool sums =
        p_.reduce_scatters != OverlapMethod::ring_exchange && p_.reduce_scatters != OverlapMethod::direct;
    check(!p_.acts() && p_.kernels != otherwise.kernels, "kernels", "nothing overlaps");
    check(job.sequence && p_.all_reduces != otherwise.all_reduces, "all_reduces",
          "parallel.sequence makes them reduce-scatters and gathers");
    check(p_.kernels == PieceKernels::separate && p_.launches != otherwise.launches, "launches",
          "GEMMs have no slices");
    check(!p_.uses(OverlapMethod::ring_exchange) && p_.transfers != otherwise.transfers, "transfers",
          "no method is ring_exchange");
    check(sums && p_.sums != otherwise.sums, "sums", "ranks add up nothing piece by piece");
    if (unused.empty() || !takes_part(job)) return {};
    return {"parallel.tensor_overlap: these keys do not act: " + unused};
  }
  void apply(TrainingGraph& graph, const JobShape&) const override {
    const std::uint32_t ranks = graph.mesh.size("tp");
    if (ranks == 1) return;
    const std::uint32_t most = !p_.has_peers() ? 0 : p_.uses(OverlapMethod::direct) ? ranks - 1 : 1;
    const PeersOnRing peers = peers_on_ring(graph, "tp", most);
    const PieceMessages forward(peers, Stream::tp, "tp", "forward", "parallel.tensor_overlap");
    const PieceMessages backward(peers, Stream::tp, "tp", "backward", "parallel.tensor_overlap");
    for (LayerGraph& layer : graph.layers) {
      if (!layer.repeats) continue;
      layer.forward = Overlap(p_, ranks, forward).rewritten(layer.forward);
      layer.backward = Overlap(p_, ranks, backward).rewritten(layer.backward);
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
      .integer("qkv", &P::qkv, kHeld, most("attention's input (qkv_fprop)"))
      .integer("mlp_up", &P::mlp_up, kHeld, most("the MLP's input (fc1_fprop)"))
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
      {"pipelined", OverlapMethod::pipelined},
      {"direct", OverlapMethod::direct}};
  return in_section(
      kParallelSection,
      Parameters<P>().section(
          "tensor_overlap",
          Parameters<P>()
              .choice("gathers", &P::gathers, methods,
                      "how inputs are gathered before a GEMM, while the GEMM of the piece before runs: ranks "
                      "pass pieces on in a ring, each piece is all-gathered, or each rank stores its pieces "
                      "at all others")
              .choice("reduce_scatters", &P::reduce_scatters, methods,
                      "how sums are reduce-scattered after a GEMM, while the GEMM of the next piece runs: "
                      "ranks pass pieces on in a ring and add to them, each piece is reduce-scattered, or "
                      "each is stored at the rank of its tokens")
              .choice("all_reduces", &P::all_reduces,
                      {{"none", OverlapMethod::none}, {"pipelined", OverlapMethod::pipelined}},
                      "without sequence parallelism, how sums are all-reduced after a GEMM of the forward: "
                      "each piece is all-reduced while the GEMM of the next piece runs")
              .integer("pieces", &P::pieces, {1, 1024},
                       "number of pieces of pipelined communication, or of what each rank stores at another "
                       "one (direct)")
              .choice("kernels", &P::kernels,
                      {{"separate", PieceKernels::separate}, {"sliced", PieceKernels::sliced}},
                      "what computes a piece: a GEMM of its own, or tiles of one GEMM, which wait for pieces "
                      "or release them at the ends of waves (T3, FLUX, FlashOverlap)")
              .choice("transfers", &P::transfers,
                      {{"library", PieceTransfers::library}, {"stores", PieceTransfers::stores}},
                      "what carries the messages of ring_exchange: kernels of the collective library, or "
                      "stores to the peer's memory")
              .choice("launches", &P::launches,
                      {{"at_once", PieceLaunches::at_once}, {"next_wave", PieceLaunches::next_wave}},
                      "sliced: when a kernel of the collective library begins that waits for a slice: at "
                      "once, or a wave later, because tiles of the next wave have the multiprocessors")
              .choice("sums", &P::sums, {{"kernel", PieceSums::kernel}, {"memory", PieceSums::memory}},
                      "ring_exchange, direct: a kernel adds up partial sums, or the memory does as they "
                      "arrive (T3's near-memory reduction, FLUX's reduction in the store)")
              .section(
                  "multiprocessors", &P::multiprocessors, overlap_multiprocessors(),
                  "multiprocessors that communication holds beside GEMMs, as Transformer Engine's num_sm"),
          "communication of tensor parallelism beside the GEMMs that wait for it"));
}

const Registration<Strategy> kTensorOverlap{
    "tensor_overlap", "communication of tensor parallelism in pieces, beside the GEMMs that wait for it",
    ptdp_keys(tensor_overlap_parameters()),
    [](const TensorOverlap& p, const ConfigNode&) { return std::make_unique<TensorOverlapped>(p); }};

}  // namespace
}  // namespace netsim
