#include "sim/training/layers/timed_layer.h"

#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "sim/core/config_entries.h"
#include "sim/core/errors.h"
#include "sim/core/input_file.h"
#include "sim/workload/program/program.h"

namespace netsim {
namespace {

constexpr std::int64_t kMaxLayers = 100'000;
constexpr std::int64_t kMaxMatrix = 1LL << 24;  // rows, and columns

// LayerEntry: an entry of the list of layers, which may stand for several equal ones.
struct LayerEntry {
  std::string name = "layer";
  std::int64_t count = 1;
  Time forward = 0, backward = 0, weight_gradient = 0;
  std::optional<Bytes> bytes;
  Bytes all_to_all = 0;
  ConfigNode matrix, after;
};

const Parameters<LayerEntry>& layer_parameters() {
  using E = LayerEntry;
  static constexpr Range<Time> kTimes{0, ProgramLimits::kKernelTime};
  static constexpr Range<Bytes> kSizes{0, 100 * kGigabyte};
  static const auto p =
      Parameters<E>()
          .text("name", &E::name, "name of the layer, by which others name it; with count > 1 name_1, name_2")
          .integer("count", &E::count, {1, kMaxLayers}, "number of such layers, one after the other")
          .time("forward", &E::forward, kTimes, "time of the forward")
          .time("backward", &E::backward, kTimes,
                "time of the gradient of the input; of the whole backward if weight_gradient is 0")
          .time("weight_gradient", &E::weight_gradient, kTimes,
                "time of the gradient of the parameters, as a computation of its own")
          .bytes("bytes", &E::bytes, kSizes, "0, or those of the matrix",
                 "bytes of the gradient of the parameters; 0: nothing is exchanged")
          .bytes("all_to_all", &E::all_to_all, kSizes,
                 "bytes that a worker sends in each of two all-to-alls, one before and one after the layer, "
                 "in forward and backward; they dispatch tokens to experts and combine their results")
          .list("matrix", &E::matrix, "[rows, columns] of a fully connected layer's parameters")
          .list("after", &E::after,
                "names of the layers whose outputs it reads, [] for none; default: the layer before in the "
                "list");
  return p;
}

// LayerReader: makes the layers of the entries, first in the order of the list.
class LayerReader {
 public:
  explicit LayerReader(const LayerInput& input) : input_(input) {}

  std::vector<TimedLayer> read(const std::vector<ConfigNode>& entries) {
    for (const ConfigNode& node : entries) {
      if (!node.is_map()) node.fail("a layer is expected: {name: conv1, forward: 1 ms, backward: 2 ms}");
      add(node, layer_parameters().parse(node));
    }
    connect();
    return in_order();
  }

 private:
  void add(const ConfigNode& node, const LayerEntry& entry) {
    if (static_cast<std::int64_t>(layers_.size()) + entry.count > kMaxLayers)
      entry_or_self(node, "count").fail("at most " + std::to_string(kMaxLayers) + " layers are allowed");
    TimedLayer layer;
    layer.where = node;
    layer.forward = scaled(node, "forward", entry.forward, input_.scale.forward);
    layer.backward = scaled(node, "backward", entry.backward, input_.scale.backward);
    layer.weight_gradient =
        scaled(node, "weight_gradient", entry.weight_gradient, input_.scale.weight_gradient);
    if (!entry.matrix.is_null()) read_matrix(entry.matrix, layer);
    const Bytes bytes = bytes_of(node, entry, layer);
    layer.bytes = scaled(node, "bytes", bytes, input_.scale.bytes);
    layer.all_to_all = scaled(node, "all_to_all", entry.all_to_all, input_.scale.bytes);
    for (std::int64_t i = 1; i <= entry.count; ++i) {
      layer.name = entry.count == 1 ? name_of(node, entry) : entry.name + "_" + std::to_string(i);
      const auto index = static_cast<std::uint32_t>(layers_.size());
      if (!index_.emplace(layer.name, index).second)
        entry_or_self(node, "name").fail("there are two layers '" + layer.name + "'");
      layers_.push_back(layer);
      after_.push_back(i == 1 ? entry.after : ConfigNode());
    }
  }
  // Returns the name of a layer that is alone in its entry. Without one it is numbered in the network.
  std::string name_of(const ConfigNode& node, const LayerEntry& entry) const {
    if (node.find("name") != nullptr) return entry.name;
    return entry.name + "_" + std::to_string(layers_.size() + 1);
  }
  static void read_matrix(const ConfigNode& node, TimedLayer& layer) {
    const std::vector<std::int64_t> shape = read_sizes(node, "[rows, columns]", 2, 2, kMaxMatrix);
    layer.rows = shape[0];
    layer.columns = shape[1];
  }
  // Returns the bytes of the gradient. A matrix may have a bias of a row or a column beside it.
  Bytes bytes_of(const ConfigNode& node, const LayerEntry& entry, const TimedLayer& layer) const {
    if (layer.rows == 0) return entry.bytes.value_or(0);
    const Bytes matrix = layer.rows * layer.columns * input_.element_bytes;
    if (!entry.bytes) return matrix;
    const Bytes bias = *entry.bytes - matrix;
    if (bias != 0 && bias != layer.rows * input_.element_bytes &&
        bias != layer.columns * input_.element_bytes) {
      entry_or_self(node, "bytes")
          .fail(format_bytes(*entry.bytes) + " contradicts the matrix, whose " +
                std::to_string(layer.rows * layer.columns) + " elements of " +
                std::to_string(input_.element_bytes) + " bytes have " + format_bytes(matrix) +
                ", or a bias more");
    }
    return *entry.bytes;
  }
  static std::int64_t scaled(const ConfigNode& node, const char* key, std::int64_t value, double factor) {
    if (factor == 1 || value == 0) return value;
    const double result = static_cast<double>(value) * factor;
    if (result > 1e17) entry_or_self(node, key).fail("is too large when it is scaled");
    return std::llround(result);
  }

  void connect() {
    for (std::uint32_t i = 0; i < layers_.size(); ++i) {
      if (after_[i].is_null()) {
        if (i > 0) layers_[i].after = {i - 1};
        continue;
      }
      if (!after_[i].is_sequence()) after_[i].fail("a list of names of layers is expected: [conv1, conv2]");
      std::set<std::uint32_t> before;
      for (const ConfigNode& item : after_[i].items()) {
        const auto found = index_.find(read_text(item));
        if (found == index_.end()) item.fail("there is no layer '" + item.text() + "'");
        if (!before.insert(found->second).second) item.fail("'" + item.text() + "' is named twice");
      }
      layers_[i].after.assign(before.begin(), before.end());
    }
  }

  // Returns the layers so that each is behind those that it reads.
  std::vector<TimedLayer> in_order() {
    std::vector<std::uint32_t> open(layers_.size());
    std::vector<std::vector<std::uint32_t>> readers(layers_.size());
    std::set<std::uint32_t> ready;
    for (std::uint32_t i = 0; i < layers_.size(); ++i) {
      open[i] = static_cast<std::uint32_t>(layers_[i].after.size());
      if (open[i] == 0) ready.insert(i);
      for (const std::uint32_t before : layers_[i].after) readers[before].push_back(i);
    }
    std::vector<TimedLayer> ordered;
    std::vector<std::uint32_t> place(layers_.size());
    while (!ready.empty()) {
      const std::uint32_t next = *ready.begin();
      ready.erase(ready.begin());
      place[next] = static_cast<std::uint32_t>(ordered.size());
      ordered.push_back(layers_[next]);
      for (std::uint32_t& before : ordered.back().after) before = place[before];
      for (const std::uint32_t reader : readers[next]) {
        if (--open[reader] == 0) ready.insert(reader);
      }
    }
    if (ordered.size() < layers_.size()) refuse_cycle(open);
    return ordered;
  }
  [[noreturn]] void refuse_cycle(const std::vector<std::uint32_t>& open) const {
    std::uint32_t at = 0;
    while (open[at] == 0) ++at;
    // Each step goes to a layer that waits too, so after as many steps as layers it is in the cycle.
    std::vector<std::uint32_t> path;
    for (std::size_t i = 0; i < 2 * layers_.size(); ++i) {
      if (i >= layers_.size()) path.push_back(at);
      if (i > layers_.size() && at == path.front()) break;
      for (const std::uint32_t before : layers_[at].after) {
        if (open[before] == 0) continue;
        at = before;
        break;
      }
    }
    std::string names;
    for (std::size_t i = 0; i < path.size() && i < 8; ++i)
      names += (i > 0 ? ", " : "") + layers_[path[i]].name;
    entry_or_self(layers_[at].where, "after").fail("these layers wait for each other: " + names);
  }

  const LayerInput& input_;
  std::vector<TimedLayer> layers_;
  std::vector<ConfigNode> after_;  // by layer, as given
  std::map<std::string, std::uint32_t> index_;
};

}  // namespace

ParameterTable layer_table() { return layer_parameters().table(); }

TimedLayers read_layers(const LayerInput& input) {
  const bool has_list = !input.list.is_null(), has_file = !input.file.empty();
  if (has_list && has_file) input.list.fail("the layers are in 'file' too: give one of the two");
  if (!has_list && !has_file)
    input.where.fail("'layers' is missing: a list of layers, or 'file', a CSV with them");
  if (has_list && (!input.list.is_sequence() || input.list.items().empty()))
    input.list.fail("a list of layers is expected: [{name: conv1, forward: 1 ms, backward: 2 ms}]");
  TimedLayers result;
  if (has_list) {
    result.layers = LayerReader(input).read(input.list.items());
    return result;
  }
  const std::vector<ConfigNode> rows = read_layer_file(input, result.notes);
  if (rows.empty()) entry_or_self(input.where, "file").fail(input.file + " has no layers");
  result.layers = as_input([&] { return LayerReader(input).read(rows); });
  return result;
}

}  // namespace netsim
