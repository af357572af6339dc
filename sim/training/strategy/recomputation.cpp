// Recomputation: activations that a forward does not keep, and that the backward computes again. The key
// `recompute` says which.
//
// Full recomputation (full_recomputation): activations of the body's layers are not kept. Each backward
// computes the layer's forward again, with its communication (Chen et al., arXiv 1604.06174; Megatron-LM's
// --recompute-granularity full).
//
// Selective recomputation (selective_recomputation): the activations in the core of the attention, which grow
// with the square of the sequence, are not kept. Each backward first computes the core of its layer's forward
// again, with the communication of context parallelism. It is Megatron-LM's --recompute-granularity selective
// (Korthikanti et al., arXiv 2205.05198, section 5). As in Megatron, this includes a fused attention,
// although that keeps no scores.
//
// Recomputation of modules (module_recomputation): the results of some modules of a layer are not kept. The
// backward of the part that contains a module computes it again first (Megatron-Core's --recompute-modules;
// DeepSeek-V3, arXiv 2412.19437, sections 3.2.3 and 3.3.3, has all three). It has to be the first strategy,
// so that the recomputation is divided and cast as the forward is.
#include <algorithm>
#include <utility>

#include "sim/core/errors.h"
#include "sim/training/strategy/chain_editor.h"
#include "sim/training/strategy/strategy.h"

namespace netsim {
namespace {

// Returns the name of a recomputation: "attention_forward" -> "attention_recompute".
std::string recomputed(const std::string& name) {
  constexpr std::string_view kForward = "forward";
  const std::size_t at = name.find(kForward);
  return at == std::string::npos ? name : std::string(name).replace(at, kForward.size(), "recompute");
}

class FullRecomputation final : public Strategy {
 public:
  StrategyOrder order() const override {
    return {.after = {"tensor_overlap", "expert_parallel"}, .before = {"pipeline_parallel"}};
  }
  bool takes_part(const JobShape& job) const override { return job.recompute == Recompute::full; }
  void apply(TrainingGraph& graph, const JobShape&) const override {
    for (LayerGraph& layer : graph.layers) {
      if (!layer.repeats) continue;
      layer.recompute = layer.forward;
      for (GraphNode& node : layer.recompute) node.name = recomputed(node.name);
    }
  }
};

class SelectiveRecomputation final : public Strategy {
 public:
  StrategyOrder order() const override {
    return {.after = {"tensor_overlap", "expert_parallel"}, .before = {"pipeline_parallel"}};
  }
  void check(const JobShape& job) const override {
    if (takes_part(job) && !job.some_operator([](const Operator& op) { return op.core.has_value(); }))
      job.key("recompute")
          .fail("selective computes the attention's core again, and no layer of the model has one");
  }
  bool takes_part(const JobShape& job) const override { return job.recompute == Recompute::selective; }
  void apply(TrainingGraph& graph, const JobShape&) const override {
    for (LayerGraph& layer : graph.layers) {
      if (!layer.repeats) continue;
      layer.forward = isolate_core(layer.forward);
      const Chain backward = isolate_core(layer.backward);
      ChainEditor edit(backward);
      bool again = false;
      for (std::size_t i = 0; i < backward.size(); ++i) {
        ChainEditor::Numbers after = edit.waits_for(i);
        if (backward[i].core && !again) after = {repeat_core(layer.forward, edit, after)};
        again = again || backward[i].core;
        edit.stands(i, edit.add(backward[i], after));
      }
      layer.backward = edit.finish();
    }
  }

 private:
  // Appends the core of a forward, whose nodes are consecutive. Returns its last node.
  static ChainEditor::Number repeat_core(const Chain& forward, ChainEditor& edit,
                                         const ChainEditor::Numbers& after) {
    std::size_t begin = 0;
    while (begin < forward.size() && !forward[begin].core) ++begin;
    ChainEditor::Numbers done;  // by node of the core
    for (std::size_t i = begin; i < forward.size() && forward[i].core; ++i) {
      ChainEditor::Numbers waits;
      for (const std::uint32_t back :
           forward[i].after.empty() ? std::vector<std::uint32_t>{1} : forward[i].after) {
        if (back > i - begin) {
          waits.insert(waits.end(), after.begin(), after.end());
        } else {
          waits.push_back(done[i - begin - back]);
        }
      }
      GraphNode node = forward[i];
      node.name = recomputed(node.name);
      done.push_back(edit.add(std::move(node), waits));
    }
    return edit.last();
  }
};

// RecomputedModules: the values of the key `recompute`.
struct RecomputedModules {
  bool norms = false, latent_up = false, activations = false;
  Recompute layers = Recompute::none;
  bool has(Module module) const {
    return (module == Module::norm && norms) || (module == Module::latent_up && latent_up) ||
           (module == Module::activation && activations);
  }
};

struct RecomputationParameters {
  ConfigNode recompute;
};

RecomputedModules read_recomputed(const ConfigNode& key) {
  const std::vector<ConfigNode> names = read_names(key, "full");
  RecomputedModules read;
  for (const ConfigNode& node : names) {
    const std::string name = read_text(node);
    if (names.size() > 1 && (name == "full" || name == "none"))
      node.fail("'" + name + "' covers all activations, so no other name may stand beside it");
    if (name == "full") {
      read.layers = Recompute::full;
    } else if (name == "selective") {
      read.layers = Recompute::selective;
    } else if (name == "norms") {
      read.norms = true;
    } else if (name == "latent_up") {
      read.latent_up = true;
    } else if (name == "activations") {
      read.activations = true;
    } else if (name != "none") {
      node.fail("'" + name + "' is not one of: full, selective, none, norms, latent_up, activations");
    }
  }
  return read;
}

class ModuleRecomputation final : public Strategy {
 public:
  explicit ModuleRecomputation(const RecomputationParameters& p) : modules_(read_recomputed(p.recompute)) {}

  StrategyOrder order() const override {
    return {.before = {"fused_accumulation", "reduced_precision", "context_parallel", "tensor_parallel"}};
  }
  void describe(JobShape& job) const override { job.recompute = modules_.layers; }
  void check(const JobShape& job) const override {
    for (const auto& [module, name] :
         {std::pair{Module::norm, "norms"}, std::pair{Module::latent_up, "latent_up"},
          std::pair{Module::activation, "activations"}}) {
      const Module wanted = module;
      if (modules_.has(wanted) &&
          !job.some_operator([wanted](const Operator& op) { return op.module == wanted; }))
        job.key("recompute")
            .fail(std::string("no layer of the model has ") + name + " that it can recompute");
    }
  }
  void apply(TrainingGraph& graph, const JobShape&) const override {
    for (LayerGraph& layer : graph.layers) {
      std::erase_if(layer.saved, [this](const Saved& saved) { return modules_.has(saved.of); });
      for (const GraphNode& node : layer.forward) {
        std::vector<Operator> again = recomputed_of(node);
        if (again.empty()) continue;
        std::vector<Operator>& operators = backward_of(node, layer.backward).operators;
        operators.insert(operators.begin(), again.begin(), again.end());
      }
    }
  }

 private:
  std::vector<Operator> recomputed_of(const GraphNode& node) const {
    std::vector<Operator> again;
    for (const Operator& op : node.operators) {
      if (!modules_.has(op.module)) continue;
      again.push_back(op);
      again.back().name += "_recompute";
      again.back().module = Module::none;
      again.back().recomputed = true;
    }
    return again;
  }
  // Returns the backward of a forward: "experts_forward" -> "experts_backward".
  static GraphNode& backward_of(const GraphNode& forward, Chain& backward) {
    constexpr std::string_view kForward = "forward";
    std::string name = forward.name;
    const std::size_t at = name.find(kForward);
    NETSIM_CHECK(at != std::string::npos, "a part of a forward that recomputes is named so");
    name.replace(at, kForward.size(), "backward");
    const auto node =
        std::find_if(backward.begin(), backward.end(), [&](const GraphNode& n) { return n.name == name; });
    NETSIM_CHECK(node != backward.end(), "a part of a forward that recomputes has a backward");
    return *node;
  }

  RecomputedModules modules_;
};

const Registration<Strategy> kModuleRecomputation{
    "module_recomputation", "results of some modules of a layer are computed again in the backward",
    ptdp_keys(Parameters<RecomputationParameters>().names(
        "recompute", &RecomputationParameters::recompute, "full",
        "activations: full, every layer's forward is computed again before its backward; none, they "
        "are kept; or what of them is computed again, one or several of selective (the core of the "
        "attention), norms, latent_up (latent attention's projections up), activations (of MLPs and "
        "experts)")),
    [](const RecomputationParameters& p, const ConfigNode&) {
      return std::make_unique<ModuleRecomputation>(p);
    }};
const Registration<Strategy> kFullRecomputation{
    "full_recomputation", "with recompute: full, each backward computes its layer's forward again",
    ptdp_keys(Parameters<NoParameters>()),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<FullRecomputation>(); }};
const Registration<Strategy> kSelectiveRecomputation{
    "selective_recomputation", "with recompute: selective, each backward computes the attention's core again",
    ptdp_keys(Parameters<NoParameters>()),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<SelectiveRecomputation>(); }};

}  // namespace
}  // namespace netsim
