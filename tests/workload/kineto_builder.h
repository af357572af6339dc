// Builder: writes the text of a Kineto trace of one rank for the tests of its reader.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "sim/workload/trace/kineto_job.h"

namespace netsim::kineto_test {

// Builder: writes the events of one rank. Times are microseconds.
class Builder {
 public:
  explicit Builder(std::uint32_t rank = 0, std::uint32_t world = 1, std::string groups = "",
                   const std::string& more = "") {
    head_ = fmt::format(
        R"({{"schemaVersion": 1, "distributedInfo": {{"rank": {}, "world_size": {}, "pg_config": [{}]}},{})",
        rank, world, groups, more);
  }
  // Adds a call of the runtime and returns its correlation.
  int call(const char* name, double begin, double duration = 1) {
    ++last_;
    event("cuda_runtime", name, 1, 1, begin, duration, fmt::format(R"("correlation": {})", last_));
    return last_;
  }
  void kernel(const char* name, int stream, double launch, double start, double duration,
              const std::string& more = "") {
    const int correlation = call("cudaLaunchKernel", launch);
    event("kernel", name, 0, stream, start, duration,
          fmt::format(R"("correlation": {}{})", correlation, more));
  }
  void collective(const char* name, int elements, double launch, double start, double duration,
                  const std::string& group = "0") {
    kernel("ncclDevKernel_X", 20, launch, start, duration,
           fmt::format(
               R"(, "Collective name": "{}", "In msg nelems": {}, "Out msg nelems": {}, "dtype": "Float", )"
               R"("Process Group Name": "{}")",
               name, elements, elements, group));
  }
  void message(const char* name, int peer, double launch, double start, double duration) {
    kernel("ncclDevKernel_SendRecv", 24, launch, start, duration,
           fmt::format(
               R"(, "Collective name": "{}", "In msg nelems": 256, "Out msg nelems": 256, "dtype": "Half", )"
               R"("{} Rank": {})",
               name, std::string(name) == "send" ? "Dst" : "Src", peer));
  }
  // A stream waits for what another one did until the event was recorded.
  void wait(int stream, int on, int recorded, double begin) {
    const int correlation = call("cudaStreamWaitEvent", begin);
    event("cuda_sync", "Stream Wait Event", 0, stream, begin, 1,
          fmt::format(R"("correlation": {}, "stream": {}, "wait_on_stream": {}, )"
                      R"("wait_on_cuda_event_record_corr_id": {})",
                      correlation, stream, on, recorded));
  }
  void event(const char* category, const char* name, int pid, int tid, double begin, double duration,
             const std::string& args) {
    events_ += fmt::format(R"({}{{"ph": "X", "cat": "{}", "name": "{}", "pid": {}, "tid": {}, "ts": {:.3f}, )"
                           R"("dur": {:.3f}, "args": {{{}}}}})",
                           events_.empty() ? "" : ",\n", category, name, pid, tid, begin, duration, args);
  }
  std::string text() const { return head_ + "\n\"traceEvents\": [\n" + events_ + "\n]}"; }
  KinetoJob job() const { return KinetoJob(InputSet::in_memory({{"rank.json", text()}})); }

 private:
  std::string head_, events_;
  int last_ = 0;
};

inline std::string two_ranks(const char* name = "0") {
  return fmt::format(R"({{"pg_name": "{}", "pg_desc": "mesh_dp", "ranks": [0, 1]}})", name);
}

// Returns the text with all occurrences of `from` replaced, of which there must be one.
inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  EXPECT_NE(text.find(from), std::string::npos) << from;
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

}  // namespace netsim::kineto_test
