// TimedLayer: a layer of a network as `kind: layers` has it, with times instead of shapes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/parameters.h"
#include "sim/core/units.h"

namespace netsim {

struct TimedLayer {
  std::string name;
  Time forward = 0;
  // Time of the gradient of the layer's input, or of the whole backward where `weight_gradient` is 0.
  Time backward = 0;
  // Time of the gradient of the layer's parameters, where it is a computation of its own; otherwise 0.
  Time weight_gradient = 0;
  Bytes bytes = 0;  // bytes of the gradient of the parameters; 0 where none is exchanged
  // Bytes that each worker sends in the all-to-all before and in the one after the layer; 0: there are none.
  Bytes all_to_all = 0;
  std::int64_t rows = 0, columns = 0;  // shape of a fully connected layer's matrix; 0 where it is not given
  std::vector<std::uint32_t> after;    // indices of the layers whose outputs it reads, all before it
  ConfigNode where;                    // its description, for the place of errors
};

// LayerScale: the factors by which the times and sizes of all layers are multiplied.
struct LayerScale {
  double forward = 1, backward = 1, weight_gradient = 1, bytes = 1;
};

// TimedLayers: the layers of a network in an order in which they can be computed.
struct TimedLayers {
  std::vector<TimedLayer> layers;
  std::vector<std::string> notes;  // what the user should know about the file that was read
};

// Returns the table of the keys of one layer, for --describe.
ParameterTable layer_table();

// LayerInput: the part of the description that has the layers. One of `list` and `file` is given.
struct LayerInput {
  ConfigNode where;  // the whole description
  ConfigNode list;   // a sequence of layers
  std::string file;  // path of a CSV, relative to the description
  std::int64_t element_bytes = 4;
  LayerScale scale;
};
// Reads the layers and puts them into the order of the network. Layers that could run in either order keep
// the order of the list. Throws ConfigError or InputError with the place for a wrong value, an unknown or
// repeated name, a cycle, and a matrix that contradicts the bytes.
TimedLayers read_layers(const LayerInput& input);

// Returns one description for each row of a CSV, in the form of an entry of the list. The first form is a
// table with a line of column names, which are the keys of a layer.
//
// The second form is that of SwitchML's DNN benchmark (p4lang/p4app-switchML, dnn_benchmark). Its rows have
// three numbers: elements of the gradient, forward and backward in nanoseconds. A note says that it was read.
std::vector<ConfigNode> read_layer_file(const LayerInput& input, std::vector<std::string>& notes);

}  // namespace netsim
