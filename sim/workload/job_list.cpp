#include "sim/workload/job_list.h"

#include <algorithm>
#include <utility>

#include "sim/core/errors.h"
#include "sim/core/input_file.h"
#include "sim/core/random.h"
#include "sim/core/registry.h"
#include "sim/core/text.h"
#include "sim/workload/deferred_source.h"
#include "sim/workload/job_trace.h"
#include "sim/workload/traffic/traffic.h"

namespace netsim {
namespace {

constexpr Range<Time> kArrivalTimes{0, 1'000'000 * kSecond};

// JobEntry: the keys of one job of a list, or of one kind of jobs that arrive at random.
struct JobEntry {
  std::string name;
  Time arrival = 0;
  ConfigNode placement;
  std::int64_t priority = 0;
  std::int64_t traffic_class = 0;
  std::int64_t seed = 0;
  double weight = 1;
  Time deadline = kNever;
  Time duration = 0;
  Time iteration = 0;
  ConfigNode phases;
  double share = 1;
};

// The keys that both have. kNever is no value that a user can write, so it has no range of its own.
Parameters<JobEntry> entry_parameters() {
  using P = JobEntry;
  return Parameters<P>()
      .text("name", &P::name, "name of the job in tables and messages")
      .required()
      .component("placement", &P::placement, "placement", "packed", "placement of the ranks on GPUs")
      .integer("priority", &P::priority, {0, 255},
               "least priority of its messages among those of one queue pair; it has an effect between "
               "jobs, which never share a queue pair, only with transport.nic_priorities")
      .integer("class", &P::traffic_class, kTrafficClasses,
               "data class of those of its messages that name none or class 0")
      .integer("seed", &P::seed, {0, INT64_MAX}, "seed of the workload's random draws; 0: the run's seed")
      .real("weight", &P::weight, {1e-9, 1e9}, "importance of the job, for job schedulers")
      .time("deadline", &P::deadline, {1, kNever},
            "time at which it should have ended, for job schedulers; in `of` it counts from the arrival")
      .time("duration", &P::duration, {0, 1'000'000 * kSecond},
            "time that job schedulers expect the job to run; 0: they use the time that its workload states")
      .time("iteration", &P::iteration, {0, 1'000'000 * kSecond},
            "time of one iteration without other jobs, for `phases`")
      .list("phases", &P::phases,
            "communication phases of an iteration, for job schedulers that shift jobs: "
            "{begin, end, rate}; default: they are measured");
}

const Parameters<GivenPhase>& given_phase_parameters() {
  using P = GivenPhase;
  static const auto parameters =
      Parameters<P>()
          .time("begin", &P::begin, {0, 1'000'000 * kSecond}, "begin, from that of the iteration on")
          .time("end", &P::end, {1, 1'000'000 * kSecond}, "end, from the begin of the iteration on")
          .required()
          .rate("rate", &P::rate, {1, 1'000'000 * kGbps},
                "rate that the job demands of each link that it crosses")
          .required();
  return parameters;
}

GivenPhases given_phases(const JobEntry& entry, const ConfigNode& job) {
  GivenPhases given;
  if (entry.phases.is_null() && entry.iteration != 0)
    job.find("iteration")->fail("`iteration` has no effect without `phases`");
  if (entry.phases.is_null()) return given;
  if (entry.iteration == 0)
    entry.phases.fail("'phases' needs `iteration`, the time of one iteration without other jobs");
  given.iteration = entry.iteration;
  for (const ConfigNode& node : entry.phases.items()) {
    const GivenPhase phase = given_phase_parameters().parse(node);
    if (phase.begin >= phase.end) node.fail("the phase does not end after its begin");
    if (phase.end > given.iteration)
      node.fail("the phase ends after the iteration (allowed: at most " + format_time(given.iteration) + ")");
    given.phases.push_back(phase);
  }
  if (given.phases.empty()) entry.phases.fail("'phases' is empty: a sequence of {begin, end, rate}");
  return given;
}

const Parameters<JobEntry>& listed_job_parameters() {
  static const auto parameters =
      entry_parameters().time("arrival", &JobEntry::arrival, kArrivalTimes, "time at which the job begins");
  return parameters;
}

const Parameters<JobEntry>& drawn_job_parameters() {
  static const auto parameters = entry_parameters().real("share", &JobEntry::share, {1e-9, 1e9},
                                                         "how often it is drawn, relative to the others");
  return parameters;
}

void require_name(const std::string& name, const ConfigNode& node) {
  if (const auto found = find_not_name(name); found) node.fail("the name '" + name + "': " + found->what);
}

const ConfigNode& workload_of(const ConfigNode& node) {
  const ConfigNode* workload = node.find("workload");
  if (workload == nullptr || workload->is_null())
    node.fail(
        "'workload' is missing: a file, a folder, a sequence of files, or {kind: ...} (netsim --list "
        "workload)");
  return *workload;
}

WorkloadContext context_of(const JobEntry& entry, const WorkloadContext& context) {
  WorkloadContext own = context;
  own.assignments.clear();
  if (entry.seed != 0) own.seed = static_cast<std::uint64_t>(entry.seed);
  return own;
}

JobDescription describe_entry(const JobEntry& entry, const ConfigNode& node, const WorkloadContext& context) {
  if (const std::string problem = class_problem(entry.traffic_class, context.classes); !problem.empty())
    node.find("class")->fail(problem);
  JobDescription job;
  job.traffic_class = static_cast<std::uint8_t>(entry.traffic_class);
  job.name = entry.name;
  job.priority = static_cast<std::uint8_t>(entry.priority);
  job.placement = entry.placement;
  job.weight = entry.weight;
  job.duration = entry.duration;
  job.phases = given_phases(entry, node);
  return job;
}

JobDescription read_job(const ConfigNode& node, const WorkloadContext& context, const std::string& path) {
  const JobEntry entry = listed_job_parameters().parse(node, {"workload"});
  JobDescription job = describe_entry(entry, node, context);
  job.file = path;
  job.source = read_job_source(workload_of(node), context_of(entry, context), job.file);
  job.arrival = entry.arrival;
  job.deadline = entry.deadline;
  if (job.deadline <= job.arrival) node.fail("the deadline is not after the job's arrival");
  return job;
}

std::vector<JobDescription> read_list(const ConfigNode& list, const WorkloadContext& context,
                                      const std::string& path) {
  std::vector<JobDescription> jobs;
  for (const ConfigNode& node : list.items()) {
    jobs.push_back(read_job(node, context, path));
    const std::string& name = jobs.back().name;
    const auto same = [&name](const JobDescription& other) { return other.name == name; };
    if (std::count_if(jobs.begin(), jobs.end(), same) > 1) node.fail("a second job is called '" + name + "'");
    require_name(name, node);
  }
  return jobs;
}

// ---- Random arrivals

struct PoissonArrivals {
  std::int64_t poisson = 0;
  Time gap = kSecond;
  ConfigNode of;
};

const Parameters<PoissonArrivals>& poisson_arrivals_parameters() {
  using P = PoissonArrivals;
  static const auto parameters =
      Parameters<P>()
          .integer("poisson", &P::poisson, {1, kMostJobs}, "number of jobs that arrive")
          .required()
          .time("gap", &P::gap, {1, 1'000'000 * kSecond}, "mean time between two arrivals")
          .list("of", &P::of, "the kinds of jobs: {name, workload, share, ...}");
  return parameters;
}

// DrawnJob: a kind of jobs that arrive at random.
struct DrawnJob {
  JobEntry entry;
  JobDescription job;  // without name, source and times
  std::shared_ptr<const DeferredSource::Facts> facts;
  DeferredSource::Make make;
};

DrawnJob read_drawn_job(const ConfigNode& node, const WorkloadContext& context, const std::string& path) {
  DrawnJob drawn;
  drawn.entry = drawn_job_parameters().parse(node, {"workload"});
  require_name(drawn.entry.name, node);
  drawn.job = describe_entry(drawn.entry, node, context);
  drawn.job.file = path;
  drawn.make = [node = workload_of(node), own = context_of(drawn.entry, context)] {
    std::string file;
    return read_job_source(node, own, file);
  };
  const std::unique_ptr<TaskSource> first = drawn.make();
  if (const std::string why = refuse_deferred(*first); !why.empty()) node.fail(why);
  drawn.facts = std::make_shared<const DeferredSource::Facts>(*first);
  return drawn;
}

// Returns the number of the kind into whose share `draw`, from [0, 1), falls.
std::size_t drawn_kind(const std::vector<DrawnJob>& kinds, double draw) {
  double sum = 0;
  for (const DrawnJob& kind : kinds) sum += kind.entry.share;
  double left = draw * sum;
  for (std::size_t kind = 0; kind + 1 < kinds.size(); ++kind) {
    if (left < kinds[kind].entry.share) return kind;
    left -= kinds[kind].entry.share;
  }
  return kinds.size() - 1;
}

JobDescription draw_job(const DrawnJob& kind, std::size_t number, Time arrival) {
  JobDescription job;
  job.name = kind.entry.name + " " + std::to_string(number);
  job.source = std::make_unique<DeferredSource>(job.name, kind.facts, kind.make);
  job.arrival = arrival;
  job.priority = kind.job.priority;
  job.traffic_class = kind.job.traffic_class;
  job.placement = kind.job.placement;
  job.file = kind.job.file;
  job.weight = kind.job.weight;
  job.duration = kind.job.duration;
  job.phases = kind.job.phases;
  if (kind.entry.deadline != kNever) job.deadline = arrival + kind.entry.deadline;
  job.at_begin = true;
  return job;
}

std::vector<JobDescription> draw_jobs(const ConfigNode& node, const WorkloadContext& context,
                                      const std::string& path) {
  const PoissonArrivals p = poisson_arrivals_parameters().parse(node);
  if (!p.of.is_sequence() || p.of.items().empty())
    node.fail("'of' is missing: a sequence of {name, workload, share, ...}");
  std::vector<DrawnJob> kinds;
  for (const ConfigNode& item : p.of.items()) kinds.push_back(read_drawn_job(item, context, path));
  RandomStream gaps(context.seed, "jobs.poisson.gaps"), draws(context.seed, "jobs.poisson.kinds");
  std::vector<JobDescription> jobs;
  Time arrival = 0;
  for (std::int64_t number = 0; number < p.poisson; ++number) {
    arrival += static_cast<Time>(gaps.exponential(static_cast<double>(p.gap)));
    if (arrival > kArrivalTimes.maximum) node.fail("the last jobs would arrive after 1,000,000 s");
    jobs.push_back(draw_job(kinds[drawn_kind(kinds, draws.uniform())], jobs.size(), arrival));
  }
  return jobs;
}

}  // namespace

std::unique_ptr<TaskSource> read_job_source(const ConfigNode& node, const WorkloadContext& context,
                                            std::string& file) {
  if (!node.is_scalar() && !node.is_sequence())
    return Registry<WorkloadKind>::instance().create(node, "")->tasks(context);
  const InputPaths input = named_input(node);
  file = input.text();
  return load_workload(input, context);
}

const ParameterTable& listed_job_table() { return listed_job_parameters().table(); }

const ParameterTable& random_jobs_table() { return poisson_arrivals_parameters().table(); }

std::string refuse_deferred(const TaskSource& source) {
  if (!source.circuits().empty()) return "its tasks ask for circuits: such a job must be in a list of jobs";
  if (source.storage_ranks() > 0) return "it uses storage servers: such a job must be in a list of jobs";
  return {};
}

std::vector<JobDescription> read_jobs(const ConfigNode& root, const WorkloadContext& context,
                                      const std::string& path) {
  root.allow_keys({"jobs"});
  const ConfigNode& jobs = *root.find("jobs");
  if (jobs.is_map()) {
    if (jobs.find("trace") != nullptr) return read_job_trace(jobs, context);
    if (jobs.find("poisson") != nullptr) return draw_jobs(jobs, context, path);
  }
  if (!jobs.is_sequence() || jobs.items().empty()) {
    jobs.fail(
        "a sequence of {name, workload, ...} is expected, or {trace: FILE, ...}, or {poisson: NUMBER, ...}");
  }
  return read_list(jobs, context, path);
}

}  // namespace netsim
