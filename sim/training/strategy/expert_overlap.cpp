// Exchanges of expert parallelism in pieces, beside GEMMs of the experts (Comet: Zhang et al., MLSys 2025,
// arXiv 2502.19811). A GEMM waits for the pieces, or they wait for it. It concerns the all-to-all before the
// first GEMM, forward and backward, and the one behind the last. Tiles of one grouped GEMM wait for pieces or
// release them (docs/concepts/progress_points.md). Tiles read copies of tokens where they arrive, so no
// kernel sorts them.
//
// - collective: each piece is an all-to-all of the library.
// - direct: each rank stores its copies at the ranks of their experts, the next rank's first. The GEMM begins
//   with the rank's own. Behind the last GEMM each piece of the results is stored at all ranks at once: Comet
//   decomposes that GEMM along the hidden size.
//
// In the backward, gradients of weights are computed beside the exchange of the gradients of tokens.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "sim/training/strategy/piece_messages.h"
#include "sim/training/strategy/strategy.h"
#include "sim/workload/routing/router.h"

namespace netsim {
namespace {

enum class ExchangeOverlap : std::uint8_t { none, collective, direct };

struct ExpertOverlapParameters {
  ExchangeOverlap exchanges = ExchangeOverlap::none;
  std::int64_t pieces = 4;           // of each exchange, or of what a rank stores at another one
  std::int64_t multiprocessors = 0;  // that communication takes from the GEMMs
};

bool sorts_copies(const Operator& op) { return op.name == "sort_copies"; }
bool of_weights(const Operator& op) { return op.weight_gradient || is_accumulation(op); }
bool is_expert_gemm(const Operator& op) {
  return op.kind == Kernel::Kind::gemm && op.linear && !op.weight_gradient;
}
bool is_exchange(const GraphNode& node) {
  return node.kind == GraphNode::Kind::collective && node.stream == Stream::ep &&
         (node.collective == CollectiveKind::all_to_all || node.collective == CollectiveKind::all_to_all_v);
}

// OverlappedExperts: rewrites the chains of layers with experts.
class OverlappedExperts {
 public:
  using Number = ChainEditor::Number;
  using Numbers = ChainEditor::Numbers;

  // `key` is the place of errors.
  OverlappedExperts(const ExpertOverlapParameters& p, TrainingGraph& graph, const PieceMessages& messages,
                    const ConfigNode& key)
      : p_(p), graph_(graph), ranks_(graph.mesh.size("ep")), messages_(messages), key_(key) {}

  Chain rewritten(const Chain& chain) const {
    ChainEditor edit(chain);
    for (std::size_t i = 0; i < chain.size();) i = next(chain, i, edit);
    return edit.finish();
  }

 private:
  // Experts: the computation of a node between two exchanges.
  struct Experts {
    std::vector<Operator> operators;  // without the kernels that sort copies
    std::size_t last = 0;             // number of the GEMM whose results are exchanged; the size: none
  };
  // Returns the node of the exchange that sends node i's results, or the size of the chain. Sums that no rank
  // divides may lie between; they do nothing.
  static std::size_t exchange_behind(const Chain& chain, std::size_t i) {
    std::size_t behind = i + 1;
    while (behind < chain.size() && chain[behind].kind == GraphNode::Kind::sum && chain[behind].after.empty())
      ++behind;
    const bool found = behind < chain.size() && is_exchange(chain[behind]) && chain[behind].after.empty();
    return found ? behind : chain.size();
  }
  static Experts experts_of(const Chain& chain, std::size_t i) {
    Experts found;
    std::copy_if(chain[i].operators.begin(), chain[i].operators.end(), std::back_inserter(found.operators),
                 [](const Operator& op) { return !sorts_copies(op); });
    found.last = found.operators.size();
    if (exchange_behind(chain, i) == chain.size()) return found;
    std::size_t last = found.operators.size();
    while (last > 0 && of_weights(found.operators[last - 1])) --last;
    if (last > 0 && is_expert_gemm(found.operators[last - 1])) found.last = last - 1;
    return found;
  }
  static bool computes_experts(const Chain& chain, std::size_t i) {
    if (i >= chain.size() || chain[i].kind != GraphNode::Kind::compute || !chain[i].after.empty())
      return false;
    const auto gemm = std::find_if_not(chain[i].operators.begin(), chain[i].operators.end(), sorts_copies);
    return gemm != chain[i].operators.end() && is_expert_gemm(*gemm);
  }

  // Rewrites an exchange, the experts behind it and the exchange behind these. Returns the node after them.
  std::size_t next(const Chain& chain, std::size_t i, ChainEditor& edit) const {
    const Numbers after = edit.waits_for(i);
    if (!is_exchange(chain[i]) || !computes_experts(chain, i + 1)) {
      edit.stands(i, edit.add(chain[i], after));
      return i + 1;
    }
    const Experts experts = experts_of(chain, i + 1);
    const auto [exchanged, first] = awaiting(edit, chain[i], part(chain[i + 1], experts, 0, 1), after);
    edit.stands(i, exchanged);
    const std::size_t size = experts.operators.size();
    Number computed = first;
    const std::size_t before = std::max<std::size_t>(1, std::min(experts.last, size));
    if (before > 1) computed = edit.add(part(chain[i + 1], experts, 1, before), {computed});
    if (experts.last == 0 || experts.last == size) {
      edit.stands(i + 1, computed);
      return i + 2;
    }
    const GraphNode gemm = part(chain[i + 1], experts, experts.last, experts.last + 1);
    const std::size_t back = exchange_behind(chain, i + 1);
    const auto [released, returned] = releasing(edit, chain[back], gemm, {computed});
    computed = released;
    if (experts.last + 1 < size)
      computed = edit.add(part(chain[i + 1], experts, experts.last + 1, size), {computed});
    for (std::size_t done = i + 1; done < back; ++done) edit.stands(done, computed);
    edit.stands(back, returned);
    return back + 1;
  }
  static GraphNode part(const GraphNode& node, const Experts& experts, std::size_t begin, std::size_t end) {
    const auto at = [&](std::size_t i) { return experts.operators.begin() + static_cast<std::ptrdiff_t>(i); };
    GraphNode made = with_operators(node, {at(begin), at(end)});
    if (end - begin == experts.operators.size()) made.name = made.work.name = node.name;
    return made;
  }

  GraphNode slice_of(GraphNode gemm, std::int64_t i, std::int64_t count, bool awaits) const {
    Operator& op = gemm.operators.front();
    op.held_multiprocessors = p_.multiprocessors;
    op.slice = {i, count, awaits};
    return gemm;
  }
  Bytes stored_bytes(const GraphNode& exchange) const { return exchange.bytes / (ranks_ * p_.pieces); }

  // Appends an exchange and the GEMM whose tiles wait for its pieces. Returns the nodes that complete them.
  std::pair<Number, Number> awaiting(ChainEditor& edit, const GraphNode& exchange, const GraphNode& gemm,
                                     const Numbers& after) const {
    if (p_.exchanges == ExchangeOverlap::direct) {
      return messages_.store_at_all(edit, ranks_, p_.pieces, stored_bytes(exchange), after,
                                    [&](std::int64_t i, const Numbers& received) {
                                      return edit.add(slice_of(gemm, i, ranks_ * p_.pieces, true), received);
                                    });
    }
    Numbers received = after;
    Number computed = 0;
    for (std::int64_t i = 0; i < p_.pieces; ++i) {
      received = {edit.add(piece_of(exchange, i), after)};
      computed = edit.add(slice_of(gemm, i, p_.pieces, true), received);
    }
    return {received.front(), computed};
  }
  // Appends a GEMM whose tiles release pieces of an exchange. Returns the nodes that complete them.
  std::pair<Number, Number> releasing(ChainEditor& edit, const GraphNode& exchange, const GraphNode& gemm,
                                      const Numbers& after) const {
    Numbers received = after;
    Number computed = 0;
    for (std::int64_t i = 0; i < p_.pieces; ++i) {
      computed = edit.add(slice_of(gemm, i, p_.pieces, false), after);
      if (p_.exchanges == ExchangeOverlap::collective) {
        received = {edit.add(piece_of(exchange, i), {computed})};
        continue;
      }
      for (std::size_t distance = 1; distance < static_cast<std::size_t>(ranks_); ++distance) {
        messages_.send(edit, distance, stored_bytes(exchange), true, {computed});
        received = {messages_.receive(edit, distance, stored_bytes(exchange), true, received)};
      }
    }
    return {computed, received.front()};
  }

  // Returns piece i of an exchange by the library.
  GraphNode piece_of(GraphNode exchange, std::int64_t i) const {
    cut_into(exchange, p_.pieces, "parallel.expert_overlap");
    if (exchange.counts_plus_one == 0) {
      exchange.bytes /= p_.pieces;
      return exchange;
    }
    exchange.counts_plus_one = counts_of_piece(exchange.counts_plus_one - 1, i, exchange.name) + 1;
    if (exchange.choice_plus_one != 0) {
      std::vector<std::int64_t> choice = graph_.builder.program().tables[exchange.choice_plus_one - 1];
      for (std::int64_t& counts : choice)
        counts = counts_of_piece(static_cast<std::uint32_t>(counts), i, exchange.name);
      exchange.choice_plus_one = graph_.builder.table(std::move(choice)) + 1;
    }
    return exchange;
  }
  // Returns the number of the counts that have piece i of each block.
  std::uint32_t counts_of_piece(std::uint32_t counts, std::int64_t i, const std::string& name) const {
    const BlockCounts& whole = graph_.builder.program().counts[counts];
    std::vector<Bytes> rows(whole.rows().begin(), whole.rows().end());
    for (Bytes& block : rows) block = block * (i + 1) / p_.pieces - block * i / p_.pieces;
    BlockCounts piece(whole.members(), std::move(rows));
    if (piece.busiest() == 0) key_.fail("a piece of '" + name + "' carries nothing: give fewer pieces");
    return graph_.builder.counts(std::move(piece));
  }

  ExpertOverlapParameters p_;
  TrainingGraph& graph_;
  std::int64_t ranks_;
  const PieceMessages& messages_;
  const ConfigNode& key_;
};

class ExpertOverlap final : public Strategy {
 public:
  explicit ExpertOverlap(const ExpertOverlapParameters& p) : p_(p) {}

  StrategyOrder order() const override {
    return {.after = {"expert_parallel", "sequence_parallel", "tensor_overlap"},
            .before = {"full_recomputation", "selective_recomputation", "sub_batches"}};
  }
  bool takes_part(const JobShape& job) const override {
    return p_.exchanges != ExchangeOverlap::none && job.has_experts() && job.expert > 1;
  }
  double operations_of_layer(const JobShape& job) const override {
    if (p_.exchanges == ExchangeOverlap::none) return 0;
    const bool direct = p_.exchanges == ExchangeOverlap::direct;
    return 16.0 * static_cast<double>(p_.pieces) * static_cast<double>(direct ? job.expert : 1);
  }
  void check(const JobShape& job) const override {
    if (p_.exchanges == ExchangeOverlap::none) return;
    const ConfigNode& key = job.key("parallel", "expert_overlap");
    if (!job.has_experts()) key.fail("expert_overlap needs a model whose layers have routed experts");
    if (job.expert_exchange != ExpertExchange::all_to_all) {
      key.fail(
          "expert_overlap needs expert_exchange: all_to_all: kernels of dispatch move all tokens at once, "
          "and with fetch no token moves");
    }
    if (job.expert > 1 && job.expert_tensor() > 1) {
      key.fail("expert_overlap needs expert_tensor: 1; else copies are gathered between exchange and GEMM");
    }
    if (p_.exchanges == ExchangeOverlap::direct) check_direct(job, key);
  }
  std::vector<std::string> notes(const JobShape& job) const override {
    if (p_.exchanges == ExchangeOverlap::none || job.expert > 1) return {};
    return {"parallel.expert_overlap does not act: parallel.expert is 1, so no token leaves its rank"};
  }
  void apply(TrainingGraph& graph, const JobShape& job) const override {
    const bool direct = p_.exchanges == ExchangeOverlap::direct;
    const PeersOnRing peers = peers_on_ring(graph, "ep", direct ? graph.mesh.size("ep") - 1 : 0);
    const PieceMessages forward(peers, Stream::ep, "ep", "forward", "parallel.expert_overlap");
    const PieceMessages backward(peers, Stream::ep, "ep", "backward", "parallel.expert_overlap");
    const ConfigNode& key = job.key("parallel", "expert_overlap");
    for (LayerGraph& layer : graph.layers) {
      layer.forward = OverlappedExperts(p_, graph, forward, key).rewritten(layer.forward);
      layer.backward = OverlappedExperts(p_, graph, backward, key).rewritten(layer.backward);
    }
  }

 private:
  void check_direct(const JobShape& job, const ConfigNode& key) const {
    const ConfigNode* router = job.where.find("router");
    if (router != nullptr && !Registry<Router>::instance().create(*router, "uniform")->even())
      key.fail("direct needs a router that gives all experts equally many tokens; collective needs none");
    const ExpertsModel& experts = *job.model->experts();
    const std::int64_t tokens = job.sub_batch() * job.model->sequence() / job.context / job.tensor;
    if (experts.copies_of(tokens) % (job.expert * p_.pieces) != 0) {
      key.fail("the " + std::to_string(experts.copies_of(tokens)) +
               " copies of a rank's tokens cannot be divided by " + std::to_string(p_.pieces) +
               " pieces x expert");
    }
    const std::optional<Mesh> mesh = job.mesh_with_experts();
    if (mesh && job.expert > 1 && !mesh->is_plain("ep"))
      key.fail("direct needs the ranks of expert along one axis: those of data, or those of tensor");
  }

  ExpertOverlapParameters p_;
};

Parameters<ExpertOverlapParameters> expert_overlap_parameters() {
  using P = ExpertOverlapParameters;
  return in_section(
      kParallelSection,
      Parameters<P>().section(
          "expert_overlap",
          Parameters<P>()
              .choice("exchanges", &P::exchanges,
                      {{"none", ExchangeOverlap::none},
                       {"collective", ExchangeOverlap::collective},
                       {"direct", ExchangeOverlap::direct}},
                      "how copies of tokens go to experts and back while tiles of the experts' GEMMs run: "
                      "each piece is an all-to-all, or ranks store their pieces at each other")
              .integer("pieces", &P::pieces, {1, 1024},
                       "number of pieces of an exchange (collective), or of what each rank stores at another "
                       "one (direct)")
              .integer("multiprocessors", &P::multiprocessors, {0, 100'000},
                       "multiprocessors that communication takes from the GEMMs beside it"),
          "exchanges of expert parallelism beside the GEMMs of the experts"));
}

const Registration<Strategy> kExpertOverlap{
    "expert_overlap",
    "exchanges of expert parallelism in pieces, beside tiles of the experts' GEMMs (Comet, arXiv 2502.19811)",
    ptdp_keys(expert_overlap_parameters()),
    [](const ExpertOverlapParameters& p, const ConfigNode&) { return std::make_unique<ExpertOverlap>(p); }};

}  // namespace
}  // namespace netsim
