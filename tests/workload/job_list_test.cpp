// Are jobs read from traces and drawn at random as their pages say?
#include "sim/workload/job_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "sim/core/errors.h"
#include "sim/workload/workload.h"
#include "tests/report/fixtures.h"

namespace netsim::job_list_test {
namespace {

using ::testing::HasSubstr;

class JobList : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) const {
    const std::string path = directory_.path() + "/" + name;
    std::ofstream(path) << text;
    return path;
  }
  std::vector<JobDescription> load(const std::string& jobs, std::uint64_t seed = 1) const {
    WorkloadContext context(64);
    context.seed = seed;
    return load_jobs(write("jobs.yaml", jobs), context);
  }

 private:
  test::Directory directory_;
};

TEST_F(JobList, ReadsATraceWithItsDefaults) {
  write("pair.yaml", "{kind: collective, collective: all_reduce, bytes: 1 MB, ranks: 2}\n");
  write("trace.csv",
        "name,gpus,submitted_s,duration,iterations,workload,vc,weight,deadline_s\n"
        "first,4,1.5,10 s,,,research,2,100\n"
        ",2,0,,,pair.yaml,,,\n"
        ",1,3,1 s,4,,,,\n");
  const std::vector<JobDescription> jobs = load("jobs: {trace: trace.csv, iteration: 3 s}\n");
  ASSERT_EQ(jobs.size(), 3U);
  EXPECT_EQ(jobs[0].name, "first");
  EXPECT_EQ(jobs[0].arrival, 1500 * kMillisecond);
  EXPECT_EQ(jobs[0].deadline, 100 * kSecond);
  EXPECT_EQ(jobs[0].weight, 2);
  EXPECT_EQ(jobs[0].vc, "research");
  EXPECT_EQ(jobs[0].source->ranks(), 4U);
  EXPECT_EQ(jobs[0].source->iterations(), 4U) << "10 s in iterations of at most 3 s";
  EXPECT_EQ(jobs[1].name, "job1");
  EXPECT_EQ(jobs[1].deadline, kNever);
  EXPECT_EQ(jobs[1].source->ranks(), 2U);
  EXPECT_EQ(jobs[2].source->iterations(), 4U);
  for (const JobDescription& job : jobs) EXPECT_TRUE(job.at_begin);
  EXPECT_EQ(load("jobs: {trace: trace.csv, first: 2}\n").size(), 2U);
}

TEST_F(JobList, DrawsJobsByTheSeedAlone) {
  const std::string text =
      "jobs:\n  poisson: 2000\n  gap: 10 s\n  of:\n"
      "    - {name: short, share: 3, deadline: 60 s, workload: {kind: busy, duration: 1 s}}\n"
      "    - {name: long, workload: {kind: busy, ranks: 8, duration: 9 s}}\n";
  const std::vector<JobDescription> jobs = load(text), same = load(text), other = load(text, 2);
  ASSERT_EQ(jobs.size(), 2000U);
  std::size_t shorts = 0;
  bool differs = false;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    EXPECT_EQ(jobs[i].arrival, same[i].arrival);
    EXPECT_EQ(jobs[i].name, same[i].name);
    differs = differs || jobs[i].arrival != other[i].arrival;
    const bool is_short = jobs[i].source->ranks() == 1;
    shorts += is_short ? 1 : 0;
    EXPECT_EQ(jobs[i].deadline, is_short ? jobs[i].arrival + 60 * kSecond : kNever);
    if (i > 0) {
      EXPECT_GE(jobs[i].arrival, jobs[i - 1].arrival);
    }
  }
  EXPECT_TRUE(differs);
  // Four standard deviations of a Poisson process and of 2,000 draws.
  EXPECT_NEAR(to_seconds(jobs.back().arrival), 20'000, 4 * 450);
  EXPECT_NEAR(static_cast<double>(shorts), 1500, 4 * 20);
}

TEST_F(JobList, RefusesAnUnknownColumn) {
  write("trace.csv", "submitted_s,gpus,duration_s,colour\n0,1,1,red\n");
  try {
    load("jobs: {trace: trace.csv}\n");
    FAIL() << "no error";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("trace.csv:1:"));
    EXPECT_THAT(error.what(), HasSubstr("colour"));
  }
}

}  // namespace
}  // namespace netsim::job_list_test
