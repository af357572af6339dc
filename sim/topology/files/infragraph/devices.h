// Devices of an InfraGraph document: their components, links and edges.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/core/config.h"
#include "sim/topology/files/infragraph/edges.h"
#include "sim/topology/files/infragraph/paths.h"
#include "sim/topology/files/infragraph/readings.h"

namespace netsim::infragraph {

struct Device;

// Component: a component of a device with all of its copies.
struct Component {
  std::uint32_t first = 0, count = 0;  // index of its first node in the device, and number of copies
  const Device* device = nullptr;      // for choice `device`
  std::uint32_t size() const;          // number of nodes of one copy
};

// Device: a device of the document, with the contents of the devices inside it.
struct Device {
  std::map<std::string, Component> components;
  std::vector<Part> parts;         // its nodes
  std::vector<std::string> names;  // names of its nodes, without the instance's
  Wires wires;
  EdgeSet edges;
};

// Devices: the devices of a document by name. A device is read when another one or an instance first needs
// it.
class Devices {
 public:
  // `list` must outlive this.
  explicit Devices(const std::vector<ConfigNode>& list);

  // Returns the device of that name; `at` is the place of an error.
  const Device& get(const std::string& name, const ConfigNode& at);
  // Reads all devices, so that errors in devices without instances are found too.
  void read_all();
  // Returns the nodes that a path of components selects, e.g. card[1].port. `from` is its first step that
  // counts.
  static std::vector<std::uint32_t> choose(const Device& device, const std::vector<Step>& steps,
                                           const ConfigNode& at, std::size_t from = 0);

 private:
  void read(const ConfigNode& node, Device& device);
  void add_component(const ConfigNode& item, Device& device);

  std::map<std::string, const ConfigNode*> nodes_;
  std::map<std::string, Device> made_;
  std::vector<std::string> open_;  // devices being read, the outermost first
};

}  // namespace netsim::infragraph
