// RunView: what a result sink may know of its run besides the records. It lives as long as the run's sinks.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/compute/compute_model.h"
#include "sim/core/ids.h"
#include "sim/report/output_parameters.h"
#include "sim/topology/topology.h"
#include "sim/workload/task_source.h"

namespace netsim {

// JobView: a job and the names of its tasks.
struct JobView {
  std::string name;
  const TaskSource* source = nullptr;  // outlives the view
  // Returns the name of a task or communication (Task::name).
  std::string task_name(std::uint32_t number) const { return source->name(number); }
};

// Returns the name of each GPU's NIC as in links.csv.
std::vector<std::string> nic_names(const Cluster& cluster);

struct RunView {
  OutputParameters output;
  std::vector<JobView> jobs;                // by number; a restarted job is added during the run
  bool report = true;                       // the run writes report.html
  std::vector<std::string> nic_names = {};  // by GPU, named as in links.csv; GPUs beyond the end have none
  const Cluster* cluster = nullptr;         // outlives the view; null: there is none
  bool queue = false;                       // jobs get their GPUs at their arrival or later
  bool aggregates = false;                  // switches of a fabric add up
  Bytes payload = 0;  // payload bytes of a packet of the first packet fabric; 0: there is none
  // Returns the GPU on which a rank of a job runs at present; empty: unknown.
  std::function<GpuId(JobId, RankId)> gpu_of = {};

  // Returns the compute model of a GPU, or null where it has none; empty: there are none.
  std::function<const ComputeModel*(GpuId)> model_of = {};

  // Returns the GPU on which a rank of a job runs at present, or GpuId::none() where it is unknown.
  GpuId gpu(JobId job, RankId rank) const { return gpu_of ? gpu_of(job, rank) : GpuId::none(); }
  // Returns the name of a GPU's NIC, or "".
  std::string_view nic(GpuId gpu) const {
    return gpu < nic_names.size() ? std::string_view(nic_names[gpu]) : std::string_view();
  }
};

}  // namespace netsim
