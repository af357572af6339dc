// philly: the trace of Microsoft's Philly clusters (cluster_job_log, github.com/msr-fiddle/philly-traces), a
// list of jobs in JSON. A job has the most GPUs of its attempts, and takes as long as all attempts together.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "sim/core/errors.h"
#include "sim/core/recognise.h"
#include "sim/core/registry.h"
#include "sim/core/text.h"
#include "sim/workload/job_traces/submitted_jobs.h"
#include "sim/workload/trace/kineto_bytes.h"

namespace netsim {
namespace {

// PhillyParser: takes what nlohmann's parser finds. The list of jobs has depth 1, a job 2, an attempt 4, a
// host of an attempt 6 and its GPUs 7.
class PhillyParser {
 public:
  PhillyParser(const KinetoBytes& bytes, std::string path, std::uint32_t file, SubmittedJobs& jobs)
      : bytes_(bytes), path_(std::move(path)), file_(file), jobs_(jobs) {}

  // ---- nlohmann's interface
  bool null() { return value({}); }
  bool boolean(bool) { return value("bool"); }
  bool number_integer(std::int64_t number) { return value(std::to_string(number)); }
  bool number_unsigned(std::uint64_t number) { return value(std::to_string(number)); }
  bool number_float(double, const std::string& text) { return value(text); }
  bool string(const std::string& text) { return value(text); }
  static bool binary(std::vector<std::uint8_t>&) { return true; }
  bool start_object(std::size_t) {
    if (depth_ == 0) fail("a list of jobs is expected");
    ++depth_;
    if (depth_ == kJob) job_ = {};
    if (depth_ == kAttempt && section_ == "attempts") attempt_ = {};
    return true;
  }
  bool end_object() {
    if (depth_ == kAttempt && section_ == "attempts") end_attempt();
    if (depth_ == kJob) end_job();
    --depth_;
    return true;
  }
  bool start_array(std::size_t) {
    ++depth_;
    return true;
  }
  bool end_array() {
    --depth_;
    return true;
  }
  bool key(const std::string& name) {
    if (depth_ == kJob) section_ = name;
    key_ = name;
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& error) {
    const std::string_view text = error.what();
    const std::size_t rest = text.find(": ");
    fail("is no JSON: " + printable(rest == std::string_view::npos ? text : text.substr(rest + 2)));
  }

 private:
  static constexpr int kJobs = 1, kJob = 2, kAttempt = 4, kGpus = 7;

  struct Attempt {
    std::string start, end;
    std::uint32_t gpus = 0;
  };
  struct Job {
    std::string id, vc, status, submitted;
    std::uint32_t gpus = 0, attempts = 0;
    std::int64_t duration = 0;  // us
    std::string missing = {};   // what an attempt does not have
    int missing_line = 0;
  };

  bool value(const std::string& text) {
    if (depth_ == 0 || depth_ == kJobs) fail("a job, an object in braces, is expected");
    const std::string known = is_missing_value(text) ? std::string() : text;
    if (depth_ == kJob) {
      std::string* const to = key_ == "jobid"            ? &job_.id
                              : key_ == "vc"             ? &job_.vc
                              : key_ == "status"         ? &job_.status
                              : key_ == "submitted_time" ? &job_.submitted
                                                         : nullptr;
      if (to != nullptr) *to = known;
    } else if (depth_ == kAttempt && section_ == "attempts") {
      if (key_ == "start_time") attempt_.start = known;
      if (key_ == "end_time") attempt_.end = known;
    } else if (depth_ == kGpus && section_ == "attempts" && key_ == "gpus" && attempt_.gpus < 1 << 20) {
      ++attempt_.gpus;
    }
    return true;
  }
  Place here() const { return {path_, bytes_.line(), 0, ""}; }
  [[noreturn]] void fail(const std::string& message) const { throw InputError(here(), message); }

  void end_attempt() {
    ++job_.attempts;
    job_.gpus = std::max(job_.gpus, attempt_.gpus);
    if (attempt_.start.empty() || attempt_.end.empty()) {
      job_.missing = attempt_.start.empty() ? "the start_time is missing" : "the end_time is missing";
      job_.missing_line = bytes_.line();
      return;
    }
    const std::int64_t begin = time(attempt_.start, "start_time"), end = time(attempt_.end, "end_time");
    if (end < begin) fail("the end_time is before the start_time");
    job_.duration += end - begin;
  }
  // Reads a time. The place is found only where it is wrong, because that takes a while.
  std::int64_t time(const std::string& text, const char* what) const {
    try {
      return date_microseconds(text, what, {});
    } catch (const InputError& error) {
      fail(error.what());
    }
  }

  void end_job() {
    const bool succeeded = job_.status == "Pass";
    const auto incomplete = [&](const std::string& reason) { jobs_.incomplete(here(), reason, succeeded); };
    if (job_.attempts == 0) return incomplete("the job has no attempts");
    if (job_.gpus == 0) return jobs_.leave_out("without GPUs");
    if (!job_.missing.empty())
      return jobs_.incomplete({path_, job_.missing_line, 0, ""}, job_.missing, succeeded);
    if (job_.duration == 0) return incomplete("the job takes no time");
    if (job_.id.empty()) return incomplete("the jobid is missing");
    if (job_.submitted.empty()) return incomplete("the submitted_time is missing");
    SubmittedJob job;
    job.submitted = submitted_at(time(job_.submitted, "submitted_time"));
    job.name = printable(job_.id.substr(0, 200));
    job.vc = printable(job_.vc.substr(0, 200));
    job.gpus = job_.gpus;
    job.duration = trace_duration(job_.duration);
    job.place = job.gpus_cell = {file_, 0, 1};
    jobs_.add(std::move(job), succeeded, path_);
  }

  const KinetoBytes& bytes_;
  std::string path_;
  std::uint32_t file_;
  SubmittedJobs& jobs_;
  int depth_ = 0;
  std::string section_, key_;  // key of the job, and the last one at any depth
  Job job_;
  Attempt attempt_;
};

class PhillyReader final : public JobTraceReader {
 public:
  void read(const InputSet& input, SubmittedJobs& jobs) const override {
    for (std::uint32_t i = 0; i < input.files().size(); ++i) {
      KinetoBytes bytes(input.files()[i]);
      PhillyParser parser(bytes, input.files()[i].path, i, jobs);
      nlohmann::json::sax_parse(KinetoIterator(&bytes), KinetoIterator(nullptr), &parser);
    }
  }
};

const FormatRegistration kPhillyFormat{
    {.name = "philly_jobs",
     .what = "a job trace of Philly",
     .use = Format::Use::part,
     .matches =
         [](const Excerpt& f) {
           return f.has_keys({"jobid", "attempts"}) && f.has_any_key({"submitted_time", "vc"});
         },
     .component = "philly",
     .advice = "a list of jobs names it: `jobs: {trace: FILE}`",
     .endings = {".json"}}};

const Registration<JobTraceReader> kPhilly{
    "philly", "jobs of Microsoft's Philly clusters (cluster_job_log)", Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<PhillyReader>(); }};

}  // namespace
}  // namespace netsim
