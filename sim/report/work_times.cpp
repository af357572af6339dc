#include "sim/report/work_times.h"

namespace netsim {

Time WorkTimes::of(const TaskRecord& record) {
  const GpuId gpu = run_.gpu(job_, record.rank);
  const ComputeModel* model = run_.model_of && gpu != GpuId::none() ? run_.model_of(gpu) : nullptr;
  const auto [known, is_new] = times_.try_emplace({model, record.task.work()});
  if (is_new) known->second = time_of_work(model, run_.jobs[job_].source->works()[record.task.work()]);
  return known->second.value_or(record.end - record.start);
}

}  // namespace netsim
