// Workloads: from what the user has (a .pb, a .yaml) to a TaskSource. The kind is recognised by content.
#pragma once

#include <memory>
#include <string>

#include "sim/core/config.h"
#include "sim/workload/task.h"

namespace netsim {

// Reads `path`. InputError (place: the file; offset where there is one) for what cannot be understood:
// missing magic, newer schema, unknown fields, truncated or empty data, another message, degrees that do not
// divide, peers out of range. IoError for what cannot be read. `cluster_gpus`: patterns without a size of
// their own use that many ranks.
std::unique_ptr<TaskSource> load_workload(const std::string& path, std::uint32_t cluster_gpus);

// Compiles a YAML description (model x strategy) into the bytes of a workload .pb, deterministically.
std::string compile_workload(const std::string& yaml_path);

// YAML workload kinds: a file `{kind: NAME, ...}` with one reader each.
class WorkloadKind {
 public:
  static constexpr const char* kComponentKind = "workload";
  virtual ~WorkloadKind() = default;
  // The serialized workload.proto message, or "" where the kind has no .pb form (then tasks() is used).
  virtual std::string compile() const { return {}; }
  virtual std::unique_ptr<TaskSource> tasks(std::uint32_t cluster_gpus) const = 0;
};

}  // namespace netsim
