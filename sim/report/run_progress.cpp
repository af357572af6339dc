#include "sim/report/run_progress.h"

#include <algorithm>

#include "sim/core/input_file.h"

namespace netsim {
namespace {

// Above this number of tasks progress counts tasks only, because counting their packets takes too long.
constexpr std::uint64_t kPredictTasks = 20'000'000;

}  // namespace

Volume RunProgress::done() const {
  Volume done;
  done.tasks = jobs_.tasks_done();
  if (packets_ == nullptr) return done;
  const NetworkCounters counters = packets_->counters();
  done.scale_out_bytes = counters.bytes_delivered;
  done.flows = counters.flows_done;
  done.packets = counters.packets;
  done.queue_pairs = packets_->queue_pairs().size();
  done.packet_hops = counters.packet_hops;
  return done;
}

Volume RunProgress::whole() const {
  Volume sum;
  for (JobId job = 0; job < jobs_.size(); ++job) {
    if (jobs_.job(job).plan().gpus.empty()) {  // its messages are not known before it has GPUs
      const auto tasks = descriptions_[job].source->total_tasks();
      sum.known = sum.known && tasks.has_value();
      sum.tasks += tasks.value_or(0);
      continue;
    }
    add_volume(sum, naming_file(descriptions_[job].file, [&] {
                 const JobPlan& plan = jobs_.job(job).plan();
                 return predict_volume(*descriptions_[job].source, plan.gpus, executor_, cluster_, packets_,
                                       plan.scheduling.get());
               }));
  }
  return sum;
}

// Returns the work of the run, or only the number of tasks if there are more than kPredictTasks.
Volume RunProgress::predicted() const {
  Volume volume;
  for (const JobDescription& job : descriptions_) {
    const auto total = job.source->total_tasks();
    volume.known = volume.known && total;
    volume.tasks += total.value_or(0);
  }
  return volume.known && volume.tasks <= kPredictTasks ? whole() : volume;
}

Advance RunProgress::advance() {
  if (!all_) all_ = predicted();
  if (!all_->known) return {-1, engine_.now(), engine_.executed()};
  Volume so_far = done();
  if (all_->packets == 0) so_far.packet_hops = {};  // only tasks are counted
  return {share_done(so_far, *all_), engine_.now(), engine_.executed()};
}

bool Calibrator::enough() {
  constexpr double kWarmUp = 0.3;  // share of the calibration
  constexpr double kLongest = 4;   // times the requested seconds
  const double now = since_start_.seconds();
  if (checks_++ == 0) begin_ = calibration_.early.seconds = now;  // the job has started
  const Volume& early = calibration_.early.done;
  if (early.tasks == 0 && early.hops() == 0 && checks_ >= kChecks / 4 && now - begin_ >= kWarmUp * seconds_)
    calibration_.early = mark(now);
  const bool enough = now - begin_ >= seconds_ && (checks_ >= kChecks || now - begin_ >= kLongest * seconds_);
  if (enough) calibration_.end = mark(now);
  return enough;
}

Calibration Calibrator::finish(bool complete, Time simulated,
                               const std::vector<TransportFigures>& transports) {
  calibration_.complete = complete;
  if (calibration_.end.seconds <= 0) calibration_.end = mark(since_start_.seconds());
  calibration_.memory = peak_memory();
  calibration_.simulated = simulated;
  for (const TransportFigures& transport : transports)
    calibration_.timer = std::max(calibration_.timer, transport.timeout);
  return calibration_;
}

}  // namespace netsim
