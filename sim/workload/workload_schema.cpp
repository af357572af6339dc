// The JSON schema of files that describe a workload or list jobs: workload_schema() of workload.h.
#include "sim/core/schema.h"
#include "sim/workload/job_list.h"
#include "sim/workload/job_trace.h"
#include "sim/workload/workload.h"

namespace netsim {

std::string workload_schema() {
  DocumentShape shape;
  shape.title = "netsim workload";
  shape.kind = WorkloadKind::kComponentKind;
  shape.list = "jobs";
  shape.item = listed_job_table();
  shape.source = "workload";
  shape.maps = {job_trace_table(), random_jobs_table()};
  return json_schema(shape, Catalogue::instance());
}

}  // namespace netsim
