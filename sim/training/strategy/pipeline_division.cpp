#include "sim/training/strategy/pipeline_division.h"

#include <numeric>
#include <string>

namespace netsim {
namespace {

using Layers = std::vector<std::int64_t>;  // by part

class Divider {
 public:
  Divider(const PipelineDivision& division, std::int64_t layers, const PipelinePlacement& placement,
          const ConfigNode& where)
      : d_(division), layers_(layers), placement_(placement), where_(where) {}

  Layers divide() const {
    const bool listed = !d_.stages.is_null(), ends = d_.first_stage || d_.last_stage;
    const bool counted = d_.count_embedding || d_.count_loss;
    if (int{listed} + int{ends} + int{counted} > 1) {
      where_.fail(
          "stages, first_stage and last_stage, and count_embedding and count_loss are three ways to say one "
          "thing: give one of them");
    }
    Layers layers = listed ? as_listed() : ends ? by_stages() : counted_alike();
    refuse_empty(layers);
    return layers;
  }

 private:
  std::uint32_t parts() const { return placement_.parts(); }
  const ConfigNode& key(const char* name) const {
    const ConfigNode* found = where_.find(name);
    return found != nullptr ? *found : where_;
  }
  // Returns the number of parts of a route that a stage holds.
  std::int64_t parts_of(std::uint32_t stage) const {
    std::int64_t parts = 0;
    for (std::uint32_t part = 0; part < placement_.parts(); ++part)
      parts += placement_.at(0, part).stage == stage ? 1 : 0;
    return parts;
  }

  Layers counted_alike() const {
    const std::int64_t counted = layers_ + (d_.count_embedding ? 1 : 0) + (d_.count_loss ? 1 : 0);
    if (counted % parts() != 0) {
      const std::string ends = d_.count_embedding && d_.count_loss ? ", with embedding and loss"
                               : d_.count_embedding                ? ", with the embedding"
                               : d_.count_loss                     ? ", with the loss"
                                                                   : "";
      where_.fail(std::to_string(counted) + " layers" + ends + " cannot be divided by " +
                  std::to_string(parts()) + ", pipeline x virtual_stages");
    }
    Layers layers(parts(), counted / parts());
    if (d_.count_embedding) --layers.front();
    if (d_.count_loss) --layers.back();
    return layers;
  }

  Layers by_stages() const {
    const std::uint32_t first = placement_.at(0, 0).stage, last = placement_.stages() - 1;
    if (placement_.stages() < 2) where_.fail("a first and a last stage need a pipeline of at least 2 stages");
    std::int64_t others = placement_.stages(), left = layers_;
    for (const auto& own : {d_.first_stage, d_.last_stage}) {
      others -= own ? 1 : 0;
      left -= own.value_or(0);
    }
    if (left < 0 || (others == 0 ? left != 0 : left % others != 0)) {
      where_.fail("of " + std::to_string(layers_) + " layers " + std::to_string(left) +
                  " are left for the other " + std::to_string(others) +
                  " stages, which cannot be divided alike");
    }
    Layers layers;
    for (std::uint32_t part = 0; part < parts(); ++part) {
      const std::uint32_t stage = placement_.at(0, part).stage;
      const bool is_first = stage == first && d_.first_stage, is_last = stage == last && d_.last_stage;
      const std::int64_t of_stage = is_first ? *d_.first_stage : is_last ? *d_.last_stage : left / others;
      if (of_stage % parts_of(stage) != 0) {
        key(is_first  ? "first_stage"
            : is_last ? "last_stage"
                      : "")
            .fail(std::to_string(of_stage) + " layers of a stage cannot be divided among its " +
                  std::to_string(parts_of(stage)) + " chunks");
      }
      layers.push_back(of_stage / parts_of(stage));
    }
    return layers;
  }

  static std::int64_t number(const ConfigNode& node) {
    const std::int64_t value = read_integer(node);
    if (value < 0 || value > 100'000) node.fail("a number of layers is from 0 to 100000");
    return value;
  }
  // Returns the given numbers of a stage as a list, one for each chunk.
  Layers of_stage(std::uint32_t stage) const {
    const ConfigNode& given = d_.stages.items()[stage];
    const std::uint32_t chunks = placement_.chunks(stage);
    if (!given.is_sequence() && chunks == 1) return {number(given)};
    if (!given.is_sequence() || given.items().size() != chunks) {
      given.fail("stage " + std::to_string(stage) + " has " + std::to_string(chunks) +
                 " chunks: give a list with the layers of each");
    }
    Layers layers;
    for (const ConfigNode& item : given.items()) layers.push_back(number(item));
    return layers;
  }
  Layers as_listed() const {
    if (!d_.stages.is_sequence() || d_.stages.items().size() != placement_.stages()) {
      d_.stages.fail("stages has to be a list of the layers of each of the " +
                     std::to_string(placement_.stages()) + " stages");
    }
    constexpr std::int64_t kUnknown = -1;
    Layers layers(parts(), kUnknown);
    for (std::uint32_t stage = 0; stage < placement_.stages(); ++stage) {
      const Layers of_chunks = of_stage(stage);
      for (std::uint32_t chunk = 0; chunk < of_chunks.size(); ++chunk) {
        const std::uint32_t part = placement_.held(stage, chunk).part;
        if (layers[part] != kUnknown && layers[part] != of_chunks[chunk]) {
          d_.stages.items()[stage].fail("part " + std::to_string(part) + " of the model has " +
                                        std::to_string(layers[part]) + " layers in its other copy");
        }
        layers[part] = of_chunks[chunk];
      }
    }
    const std::int64_t all = std::accumulate(layers.begin(), layers.end(), std::int64_t{0});
    if (all != layers_)
      d_.stages.fail("these are " + std::to_string(all) + " layers, the model has " +
                     std::to_string(layers_));
    return layers;
  }

  void refuse_empty(const Layers& layers) const {
    for (std::uint32_t part = 0; part < layers.size(); ++part) {
      if (layers[part] > 0 || part == 0 || part + 1 == layers.size()) continue;
      const auto [stage, chunk] = placement_.at(0, part);
      where_.fail("chunk " + std::to_string(chunk) + " of stage " + std::to_string(stage) +
                  " has no layer, and neither the embedding nor the loss");
    }
  }

  const PipelineDivision& d_;
  std::int64_t layers_;
  const PipelinePlacement& placement_;
  const ConfigNode& where_;
};

}  // namespace

const Parameters<PipelineDivision>& pipeline_division_parameters() {
  using P = PipelineDivision;
  static const auto p =
      Parameters<P>()
          .flag("count_embedding", &P::count_embedding,
                "the embedding counts as a layer: the first part has one less of the body")
          .flag("count_loss", &P::count_loss,
                "logits and loss count as a layer: the last part has one less of the body")
          .integer("first_stage", &P::first_stage, {0, 100'000}, "as the rest", "layers of the first stage")
          .integer("last_stage", &P::last_stage, {0, 100'000}, "as the rest", "layers of the last stage")
          .list("stages", &P::stages,
                "layers of each stage; of one with several chunks a list with those of each");
  return p;
}

std::vector<std::uint32_t> layers_of_parts(const PipelineDivision& division, std::int64_t layers,
                                           const PipelinePlacement& placement, const ConfigNode& where) {
  const Layers divided = Divider(division, layers, placement, where).divide();
  return {divided.begin(), divided.end()};
}

std::vector<Tensor> boundary_tensors(const Model& model, const std::vector<std::uint32_t>& layers) {
  std::vector<Tensor> tensors;
  std::size_t end = 0;
  for (std::size_t part = 0; part + 1 < layers.size(); ++part) {
    end += layers[part];
    const Tensor& output = end == 0 ? model.boundary : model.kinds[model.body[end - 1]].output;
    tensors.push_back(output.empty() ? model.boundary : output);
  }
  return tensors;
}

}  // namespace netsim
