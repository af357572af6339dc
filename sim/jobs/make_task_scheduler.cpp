#include "sim/jobs/make_task_scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "sim/collectives/collective_names.h"
#include "sim/core/errors.h"
#include "sim/core/registry.h"
#include "sim/core/stream.h"
#include "sim/core/text.h"
#include "sim/scheduling/scheduling_parameters.h"

namespace netsim {
namespace {

bool is_among(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Returns whether the scheduler takes this value of the key `key` of the section for a parameter of its own.
bool is_own_parameter(const ComponentInfo& scheduler, const ParameterInfo& key, const ConfigNode& value) {
  const auto own = std::find_if(scheduler.parameters.begin(), scheduler.parameters.end(),
                                [&](const ParameterInfo& one) { return one.name == key.name; });
  if (own == scheduler.parameters.end()) return false;
  return own->type != "choice" || !value.is_scalar() || is_among(own->choices, value.text()) ||
         !is_among(key.choices, value.text());
}

// Refuses a key of the section that stands among the parameters of the scheduler.
void refuse_keys_of_section(const ConfigNode& node) {
  const std::string name = task_scheduler_name(node);
  const ComponentInfo* scheduler = Catalogue::instance().find(TaskScheduler::kComponentKind, name);
  if (scheduler == nullptr || !node.is_map()) return;
  for (const ParameterInfo& key : scheduling_parameters().table()) {
    const ConfigNode* value = node.find(key.name);
    if (value == nullptr || key.type == "component" || is_own_parameter(*scheduler, key, *value)) continue;
    const std::string given = value->is_scalar() ? key.name + ": " + value->text() : key.name;
    throw ConfigError(value->key_place(),
                      fmt::format("'{}' is no parameter of task scheduler '{}'; write it beside `tasks`, as "
                                  "scheduling.{}",
                                  given, name, key.name));
  }
}

// Returns all that CommunicationFacts may have as its kind or its stream.
std::vector<std::string> names_of_communications() {
  std::vector<std::string> names;
  for (const auto& [name, kind] : collectives_by_name()) names.push_back(name);
  names.emplace_back("message");
  for (const Stream stream : kCommunicationStreams) names.emplace_back(to_string(stream));
  return names;
}

void refuse_unknown_names(const TaskScheduler& scheduler) {
  const std::vector<std::string> known = names_of_communications();
  for (const ConfigNode& node : scheduler.named_communications()) {
    const std::string name = read_text(node);
    if (is_among(known, name)) continue;
    std::string allowed;
    for (const std::string& one : known) append_item(allowed, one);
    node.fail(fmt::format("no collective and no stream is called '{}'{} (allowed: {})", name,
                          did_you_mean(name, known), allowed));
  }
}

}  // namespace

std::string task_scheduler_name(const ConfigNode& node) {
  return component_name(node, "", TaskScheduler::kComponentKind);
}

std::unique_ptr<TaskScheduler> make_task_scheduler(const ConfigNode& node) {
  refuse_keys_of_section(node);
  std::unique_ptr<TaskScheduler> scheduler = Registry<TaskScheduler>::instance().create(node, "");
  refuse_unknown_names(*scheduler);
  return scheduler;
}

}  // namespace netsim
