// The JSON form of Chakra's traces, which its feeder reads: a list of nodes.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sim/core/errors.h"
#include "sim/workload/trace/chakra_node.h"

namespace netsim {
namespace {

// Returns the integer that a number is, or nothing for a real number beyond all integers.
std::optional<std::int64_t> json_integer(const nlohmann::json& number) {
  return number.is_number_float() ? integer_of(number.get<double>()) : number.get<std::int64_t>();
}

// Returns the integer of a key. A value of another type counts as missing, and a number beyond all integers
// is noted.
std::optional<std::int64_t> json_number(const nlohmann::json& given, const char* key, RecordedNode& node) {
  const auto found = given.find(key);
  if (found == given.end() || !found->is_number()) return std::nullopt;
  const auto number = json_integer(*found);
  if (!number) node.problem = fmt::format("has {} {}; allowed: up to 9e18", key, found->get<double>());
  return number;
}

RecordedNode read_json_node(const nlohmann::json& given) {
  RecordedNode node;
  node.id = static_cast<std::uint64_t>(json_number(given, "Id", node).value_or(0));
  if (const auto name = given.find("Name"); name != given.end() && name->is_string()) node.name = *name;
  node.type = static_cast<std::uint64_t>(json_number(given, "NodeType", node).value_or(0));
  node.kind = chakra_kind(node.type);
  for (const char* key : {"ctrlDeps", "ctrl_deps", "dataDeps", "data_deps"}) {
    const auto list = given.find(key);
    if (list == given.end() || !list->is_array()) continue;
    for (const nlohmann::json& id : *list) {
      if (const auto number = id.is_number() ? json_integer(id) : std::nullopt)
        node.waits.push_back(static_cast<std::uint64_t>(*number));
    }
  }
  node.duration_us = static_cast<std::uint64_t>(json_number(given, "runtime", node).value_or(0));
  if (const auto cpu = given.find("is_cpu_op"); cpu != given.end())
    node.on_cpu =
        cpu->is_boolean() ? cpu->get<bool>() : json_number(given, "is_cpu_op", node).value_or(0) != 0;
  node.operations = json_number(given, "num_ops", node);
  node.tensor_bytes = json_number(given, "tensor_size", node);
  node.collective = json_number(given, "comm_type", node);
  node.bytes = json_number(given, "comm_size", node);
  node.source = json_number(given, "comm_src", node);
  node.destination = json_number(given, "comm_dst", node);
  node.tag = json_number(given, "comm_tag", node);
  return node;
}

}  // namespace

void for_each_chakra_json_node(const InputSet::File& file, const std::function<void(RecordedNode&)>& visit) {
  const nlohmann::json document = nlohmann::json::parse(read_file(file), nullptr, false);
  const auto graph = document.is_object() ? document.find("workload_graph") : document.end();
  if (document.is_discarded() || graph == document.end() || !graph->is_array())
    fail_file(file.path, "is no JSON with a list 'workload_graph'");
  for (const nlohmann::json& given : *graph) {
    if (!given.is_object()) fail_file(file.path, "an entry of 'workload_graph' is no node");
    RecordedNode node = read_json_node(given);
    visit(node);
  }
}

}  // namespace netsim
