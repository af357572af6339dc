#include "sim/simulation/simulation.h"

#include <algorithm>
#include <utility>

#include "sim/simulation/used_views.h"

namespace netsim {

Simulation::Simulation(SimulationSetup setup)
    : setup_(std::move(setup)),
      system_(setup_.config, setup_.seed, setup_.threads,
              [this](const FlowRecord& flow) {
                recorder_->record(flow);
                if (traffic_ != nullptr) traffic_->record(flow.message, flow.bytes, flow.queue_pair);
              }),
      intervals_(system_.engine(), system_.scheduling().interval) {
  std::vector<JobDescription> descriptions = std::move(setup_.jobs);
  if (descriptions.empty()) {
    WorkloadContext context = system_.workload_context(setup_.seed);
    context.assignments = setup_.workload_assignments;
    descriptions = load_jobs(setup_.workload, context);
  }
  jobs_ = std::make_unique<JobSet>(system_.loops(), system_.set_of_gpu(), system_.executor(),
                                   system_.devices(), system_.next_origin(), observer());
  views_ = std::make_unique<ViewKeeper>(system_.engine(), system_.scheduling().views, intervals_.interval(),
                                        used_views(setup_.config));
  if (system_.flows() != nullptr) {
    // A job of a trace that has ended has no names any more, and an aged view may still show its flows.
    const auto name = [this](JobId job, std::uint32_t number) {
      const Job& run = jobs_->job(job);
      const bool closed = run.done() && manager_->descriptions()[job].at_begin;
      return closed ? std::string() : run.plan().source->name(number);
    };
    system_.flows()->connect(intervals_, name, views_.get());
  }
  connect_journals();
  manager_ = std::make_unique<JobManager>(
      JobManager::Environment{setup_.config, system_.engine(), system_.cluster(), system_.models(), *jobs_,
                              system_.circuits(), system_.packets() != nullptr, intervals_, setup_.seed,
                              system_.workload_context(setup_.seed).classes, has_nic_priorities(),
                              system_.phases()},
      std::move(descriptions));
  measure_traffic();
  manager_->on_job_added([this](const JobDescription& job) {
    recorder_->add_job();
    if (sinks_ != nullptr) sinks_->add_job({job.name, job.source.get()});
  });
  connect_views();
  progress_ = std::make_unique<RunProgress>(manager_->descriptions(), *jobs_, system_.engine(),
                                            system_.cluster(), system_.executor(), system_.packets());
  choices_ = std::make_unique<RecordedChoices>(*jobs_, system_.executor(), system_.cluster(),
                                               system_.packets() != nullptr);
  cuts_ = std::make_unique<CutCosts>(*jobs_);
  open_outputs();
  loop_ = std::make_unique<RunLoop>(system_.engine(), *jobs_, *manager_, system_.packets(), sampler_.get(),
                                    setup_.workload.text());
}

bool Simulation::has_nic_priorities() const {
  const std::vector<TransportFigures>& transports = system_.transports();
  return std::any_of(transports.begin(), transports.end(),
                     [](const TransportFigures& transport) { return transport.priorities; });
}

// Counts the traffic of jobs, if a scheduler of jobs or flows needs it.
void Simulation::measure_traffic() {
  ScheduledEndpoint* flows = system_.flows();
  const bool flows_need_it = flows != nullptr && flows->needs_jobs();
  if (!flows_need_it && !manager_->needs_traffic()) return;
  traffic_ = std::make_unique<JobTraffic>(
      system_.cluster(), [this](const Message& message) { return system_.packets()->path_of(message); });
  manager_->set_traffic(*traffic_);
  if (flows_need_it) flows->set_jobs([this](JobId job) { return manager_->facts(job); }, *traffic_);
}

JobObserver Simulation::observer() {
  JobObserver observer{[this](const TaskRecord& task) {
                         recorder_->record(task);
                         cuts_->add(task);
                       },
                       [this](const CommunicationRecord& communication) {
                         const LibraryChoice choice = choices_->choice(communication);
                         recorder_->record(communication, choice);
                         cuts_->add(communication, choice);
                       },
                       [this](JobId job, std::uint32_t iteration, Time end) {
                         manager_->iteration_ended(job);
                         if (on_iteration_) on_iteration_(job, iteration, end);
                       },
                       {},
                       [this](const MemoryRecord& memory) { recorder_->record(memory); }};
  if (system_.output().critical_path) {
    observer.path = [this](JobId job, std::uint32_t iteration, const PathStep& step) {
      recorder_->record(job, iteration, step);
    };
  }
  return observer;
}

void Simulation::connect_journals() {
  journal_ = std::make_unique<JournalOf<JobRecord, JobSet>>(*jobs_, &JobSet::apply);
  journal_reader_ = system_.engine().add_reader(*journal_);
  transfers_ =
      std::make_unique<JournalInParts<TransferRecord, PortDelay, JobSet>>(*jobs_, &JobSet::apply_transfer);
  transfer_reader_ = system_.engine().add_reader(*transfers_);
}

void Simulation::connect_views() {
  network_reader_ = std::make_unique<NetworkReader>(
      *views_, NetworkReader::Sources{system_.cluster().graph, system_.packets(),
                                      [this] { return manager_->failed_hosts(); },
                                      [this] { return jobs_->stalls(); }});
  demand_reader_ = std::make_unique<DemandReader>(*views_, *manager_);
  manager_->set_views(*views_);
}

void Simulation::open_outputs() {
  const Cluster& cluster = system_.cluster();
  const std::vector<JobDescription>& jobs = manager_->descriptions();
  if (!setup_.output_directory.empty()) {
    RunView run;
    run.output = system_.output();
    run.report = setup_.report;
    for (const JobDescription& job : jobs) run.jobs.push_back({job.name, job.source.get()});
    run.nic_names = nic_names(cluster);
    run.cluster = &cluster;
    run.aggregates = system_.packets() != nullptr && system_.packets()->aggregates();
    run.queue = manager_->has_queue();
    run.payload = first_packet_transport(cluster, system_.transports()).mtu;
    run.gpu_of = [this](JobId job, RankId rank) {
      const std::vector<GpuId>& gpus = jobs_->job(job).plan().gpus;
      return rank < gpus.size() ? gpus[rank] : GpuId::none();
    };
    run.model_of = [this](GpuId gpu) { return system_.models().of_gpu(gpu); };
    sinks_ = std::make_unique<ResultSinks>(setup_.output_directory, std::move(run));
  }
  recorder_ = std::make_unique<Recorder>(sinks_.get(), cluster.graph, jobs.size());
  if (const SampleParameters& sample = system_.output().sample; sample.interval > 0)
    sampler_ = std::make_unique<Sampler>(sample, *system_.packets(), cluster.graph, sinks_.get());
}

void Simulation::begin() {
  if (sinks_ != nullptr) sinks_->begin();
  views_->begin(intervals_);
  manager_->begin();
  jobs_->set_journal([this](std::uint32_t set, const JobRecord& record) {
    system_.engine().set(set).write(journal_reader_, record);
  });
  jobs_->set_transfer_journal(
      [this](std::uint32_t set, const TransferRecord& record, std::span<const PortDelay> ports) {
        system_.engine().set(set).write(transfer_reader_, record, ports);
      });
}

SimulationState Simulation::state() const {
  SimulationState state;
  state.now = system_.engine().now();
  state.events = system_.engine().executed();
  state.done = manager_->done();
  for (std::uint32_t number = 0; number < jobs_->size(); ++number) {
    const Job& job = jobs_->job(number);
    state.jobs.push_back({job.plan().name, job.begun(), job.done(), job.tasks_done(),
                          static_cast<std::uint32_t>(job.iteration_ends().size())});
  }
  if (system_.packets() != nullptr) state.network = system_.packets()->counters();
  return state;
}

Results Simulation::run(const Watch& watch) {
  const WallClock::time_point start = WallClock::now();
  begin();
  const Outcome outcome = loop_->play(watch, *progress_);
  Results results = end(outcome, watch);
  results.wall_seconds = seconds_since(start);
  return results;
}

Results Simulation::results(Time until) {
  Watch watch;
  watch.until = until;
  if (manager_->done()) return end(Outcome::done, watch);
  return end(loop_->stalled()  ? Outcome::stalled
             : until != kNever ? Outcome::limit
                               : Outcome::interrupted,
             watch);
}

Results Simulation::end(Outcome outcome, const Watch& watch) {
  if (outcome == Outcome::done) loop_->settle(watch);
  if (system_.packets() != nullptr) system_.packets()->report_unacknowledged();
  loop_->finish_samples(outcome, watch.until);
  return build_results(parts(), outcome, watch.until);
}

RunParts Simulation::parts() const {
  return {setup_.config,
          setup_.notes,
          system_.cluster(),
          system_.engine(),
          system_.packets(),
          system_.transports(),
          system_.executor(),
          system_.models(),
          *jobs_,
          *manager_,
          system_.output(),
          *recorder_,
          *cuts_,
          sampler_.get(),
          sinks_.get(),
          intervals_,
          system_.flows(),
          system_.splits()};
}

Prediction Simulation::predict(double seconds, const Watch& watch) {
  Calibrator calibrator(*progress_, seconds, since_creation_.seconds());
  Watch piece;
  piece.until = watch.until;
  piece.interrupted = [&] { return calibrator.enough() || (watch.interrupted && watch.interrupted()); };
  const bool complete = run(piece).outcome != Outcome::interrupted;
  const Calibration calibration = calibrator.finish(complete, system_.engine().now(), system_.transports());
  Prediction prediction = extrapolate(jobs_->ranks(), progress_->whole(), calibration);
  for (JobId job = 0; job < jobs_->size(); ++job) {
    const JobPlan& plan = jobs_->job(job).plan();
    if (plan.gpus.empty()) continue;
    if (auto planned = planned_launches(plan.name, *plan.source, plan.scheduling.get()))
      prediction.launches.push_back(std::move(*planned));
    if (plan.source->memory() == nullptr) continue;
    const MemoryPeak peak = planned_memory(*plan.source->memory());
    prediction.gpu_memory.push_back({plan.name, peak, system_.models().memory_of(plan.gpus[peak.rank])});
  }
  return prediction;
}

void Simulation::finish_files(const Results& results, const RunText* text) {
  if (sinks_ != nullptr) sinks_->finish(results, text);
}

}  // namespace netsim
