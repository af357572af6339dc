#include <algorithm>

#include "sim/core/errors.h"
#include "sim/training/strategy/chain_editor.h"
#include "sim/training/strategy/strategies.h"

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
  void apply(TrainingGraph& graph) const override {
    for (LayerGraph& layer : graph.layers) {
      if (!layer.repeats) continue;
      layer.recompute = layer.forward;
      for (GraphNode& node : layer.recompute) node.name = recomputed(node.name);
    }
  }
};

class SelectiveRecomputation final : public Strategy {
 public:
  void apply(TrainingGraph& graph) const override {
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

class ModuleRecomputation final : public Strategy {
 public:
  explicit ModuleRecomputation(const RecomputedModules& modules) : modules_(modules) {}

  void apply(TrainingGraph& graph) const override {
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

}  // namespace

std::unique_ptr<Strategy> module_recomputation(const RecomputedModules& modules) {
  return std::make_unique<ModuleRecomputation>(modules);
}
std::unique_ptr<Strategy> selective_recomputation() { return std::make_unique<SelectiveRecomputation>(); }
std::unique_ptr<Strategy> full_recomputation() { return std::make_unique<FullRecomputation>(); }

}  // namespace netsim
