#include "sim/training/strategy/job_shape.h"

#include <algorithm>
#include <utility>

#include "sim/core/config_entries.h"

namespace netsim {
namespace {

std::uint32_t size_of(std::int64_t ranks) { return static_cast<std::uint32_t>(ranks); }

// Returns the axes of a stage, as tensor, context and data parallelism count its ranks.
std::vector<ProgramAxis> axes_of_stage(const JobShape& job) {
  std::vector<ProgramAxis> axes{{"tp", size_of(job.tensor)}};
  if (job.context > 1 && job.hybrid_context()) {
    axes.push_back({"cp_heads", size_of(job.context_heads_given)});
    axes.push_back({"cp_tokens", size_of(job.context / job.context_heads_given)});
  } else if (job.context > 1) {
    axes.push_back({"cp", size_of(job.context)});
  }
  if (job.shard_group == 0) {
    axes.push_back({"dp", size_of(job.data + job.servers)});
  } else {
    axes.push_back({"dp_shards", size_of(job.shard_group)});
    axes.push_back({"dp_unsharded", size_of(job.data / job.shard_group)});
  }
  return axes;
}

std::int64_t product(const std::vector<ProgramAxis>& axes) {
  std::int64_t ranks = 1;
  for (const ProgramAxis& axis : axes) ranks *= axis.size;
  return ranks;
}

void name_products(const JobShape& job, Mesh& mesh) {
  const bool context = job.context > 1;
  if (context && job.hybrid_context()) mesh.combine("cp", {"cp_heads", "cp_tokens"});
  if (job.shard_group != 0) {
    mesh.combine("dp", {"dp_shards", "dp_unsharded"});
    mesh.combine("shards", context ? std::vector<std::string>{"cp", "dp_shards"}
                                   : std::vector<std::string>{"dp_shards"});
  }
  mesh.combine("replicas", context ? std::vector<std::string>{"cp", "dp"} : std::vector<std::string>{"dp"});
}

}  // namespace

bool JobShape::has(const std::string& strategy) const {
  return std::find(strategies.begin(), strategies.end(), strategy) != strategies.end();
}

bool JobShape::stages_share_parameters() const { return pipeline > 1 && !model->make(1, 2).shared.empty(); }

bool JobShape::some_operator(const std::function<bool(const Operator&)>& property) const {
  const Model made = model->make(1, 2);
  return std::any_of(made.kinds.begin(), made.kinds.end(), [&](const ModelLayer& layer) {
    return std::any_of(layer.forward.begin(), layer.forward.end(), [&](const ModelPart& part) {
      return std::any_of(part.operators.begin(), part.operators.end(), property);
    });
  });
}

std::int64_t JobShape::context_heads() const {
  return hybrid_context()                                  ? context_heads_given
         : context_exchange == ContextExchange::all_to_all ? context
                                                           : 1;
}

std::int64_t JobShape::experts_per_host() const { return std::min(ranks_per_host, expert); }

Mesh JobShape::mesh() const {
  return has_experts() ? *mesh_with_experts() : mesh_of({"pp", size_of(pipeline)});
}

Mesh JobShape::mesh_of(const ProgramAxis& stages) const {
  std::vector<ProgramAxis> axes = axes_of_stage(*this);
  axes.push_back(stages);
  Mesh mesh(axes);
  name_products(*this, mesh);
  return mesh;
}

std::optional<Mesh> JobShape::mesh_with_experts() const {
  const bool fetches = expert_exchange == ExpertExchange::fetch;
  const std::int64_t within = experts_per_host();
  std::vector<ProgramAxis> axes{{"etp", size_of(expert_tensor())}};
  if (fetches) {
    axes.push_back({"ep_within", size_of(within)});
    axes.push_back({"ep_across", size_of(expert / within)});
  } else {
    axes.push_back({"ep", size_of(expert)});
  }
  axes.push_back({"edp", size_of(ranks_of_stage() / expert_tensor() / expert)});
  const std::vector<ProgramAxis> of_stage = axes_of_stage(*this);
  if (product(axes) != ranks_of_stage() || product(of_stage) != ranks_of_stage()) return {};
  std::optional<Mesh> mesh = folded_mesh(of_stage, axes, {"pp", size_of(pipeline)});
  if (mesh && fetches) mesh->combine("ep", {"ep_within", "ep_across"});
  if (mesh) name_products(*this, *mesh);
  return mesh;
}

JobShape JobShape::on_mesh(const StageDegrees& mesh) const {
  JobShape job = *this;
  job.microbatch = microbatch * data / mesh.data;
  job.tensor = mesh.tensor;
  job.data = mesh.data;
  job.stage = mesh.where;
  return job;
}

const ConfigNode& JobShape::key(const char* entry) const { return entry_or_self(where, entry); }

const ConfigNode& JobShape::key(const char* section, const char* entry) const {
  const bool degree = std::string(entry) == "tensor" || std::string(entry) == "data";
  if (!stage.is_null() && degree && std::string(section) == "parallel") return entry_or_self(stage, entry);
  const ConfigNode* outer = where.find(section);
  return outer != nullptr ? entry_or_self(*outer, entry) : where;
}

bool JobShape::gives(const char* section, const char* entry) const {
  const ConfigNode* outer = where.find(section);
  return outer != nullptr && outer->find(entry) != nullptr;
}

void JobShape::require_divides(const char* degree_name, std::int64_t degree, const std::string& what,
                               std::int64_t value) const {
  if (value % degree == 0) return;
  const bool stages = std::string(degree_name) == "pipeline";
  key("parallel", degree_name)
      .fail(what + " (" + std::to_string(value) + ") cannot be divided by " + std::to_string(degree) + ": " +
            degree_name + (stages ? " x virtual_stages" : "") + " has to be a divisor" +
            (stages ? ", or parallel.layers to say how many each has" : ""));
}

}  // namespace netsim
