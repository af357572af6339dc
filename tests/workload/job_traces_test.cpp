// Tests that the traces of Philly, Helios and Alibaba become jobs, and that missing and wrong values are
// refused with their place. The traces are made up; their columns and keys are those of the public files.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "sim/core/errors.h"
#include "sim/workload/workload.h"
#include "tests/support/mutations.h"
#include "tests/support/shared.h"
#include "tests/support/workload_files.h"

namespace netsim::job_traces_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::string attempt(const std::string& begin, const std::string& end, const std::vector<int>& hosts) {
  std::string list;
  for (const int gpus : hosts) {
    std::string names;
    for (int i = 0; i < gpus; ++i) names += fmt::format("{}\"gpu{}\"", i == 0 ? "" : ", ", i);
    list += fmt::format("{}{{\"ip\": \"m1\", \"gpus\": [{}]}}", list.empty() ? "" : ", ", names);
  }
  return fmt::format(R"({{"start_time": {}, "end_time": {}, "detail": [{}]}})", begin, end, list);
}
std::string at(const std::string& time) { return "\"2017-10-" + time + "\""; }
std::string philly(const std::string& id, const std::string& submitted, const std::string& attempts,
                   const std::string& status = "Pass") {
  return fmt::format(
      "{{\"status\": \"{}\", \"vc\": \"ee9e8c\", \"jobid\": \"{}\",\n \"attempts\": [{}],\n "
      "\"submitted_time\": {}, "
      "\"user\": \"ce\"}}",
      status, id, attempts, submitted);
}
const std::string kLate =
    philly("late", at("08 00:00:10"), attempt(at("08 00:01:00"), at("08 00:02:40"), {8, 8}));
const std::string kRetried = philly("retried", at("07 23:59:50"),
                                    attempt(at("08 00:00:00"), at("08 00:00:07"), {4}) + ", " +
                                        attempt(at("08 00:10:00"), at("08 00:10:13"), {2}),
                                    "Failed");
const std::string kEndless =
    philly("endless", at("08 00:00:00"), attempt(at("08 00:01:00"), "\"None\"", {1}));

const std::string kHelios =
    "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
    "7,uA,vcOne,8,16,1,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:41:01,2020-06-10 04:55:09,36848,0\n"
    "8,uB,vcTwo,0,4,1,COMPLETED,2020-06-09 18:41:02,2020-06-09 18:41:03,2020-06-09 18:41:13,10,1\n"
    "9,uC,vcOne,16,16,2,FAILED,2020-06-09 18:41:31,2020-06-09 18:41:31,2020-06-09 18:45:40,249,0\n";

const std::string kTaskNames =
    "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type\n";
const std::string kTasks =
    "jobA,ps,1.0,Terminated,110.0,200.0,600.0,29.3,0.0,MISC\n"
    "jobA,worker,3.0,Terminated,120.0,195.5,600.0,29.3,50.0,T4\n"
    "jobA,evaluator,1.0,Terminated,130.0,180.0,600.0,29.3,,T4\n"
    "jobB,tensorflow,1.0,Terminated,90.0,100.0,600.0,29.3,800.0,V100\n"
    "jobC,tensorflow,1.0,Terminated,90.0,100.0,600.0,29.3,,\n";
const std::string kJobNames = "job_name,inst_id,user,status,start_time,end_time\n";
const std::string kJobs =
    "jobA,idA,userA,Terminated,105.0,201.0\n"
    "jobB,idB,userB,Failed,85.0,101.0\n"
    "jobC,idC,userC,Terminated,80.0,101.0\n";

class JobTraces : public test::FolderTest {
 protected:
  std::vector<JobDescription> load(const std::string& keys) const {
    return load_jobs(write("jobs.yaml", "jobs: {" + keys + "}\n"), WorkloadContext(64));
  }
  // Returns each job as "arrival [s], GPUs, duration [s], virtual cluster, name".
  std::vector<std::string> jobs(const std::string& keys) const {
    std::vector<std::string> words;
    for (const JobDescription& job : load(keys))
      words.push_back(fmt::format("{} {} {} {} {}", to_seconds(job.arrival), job.source->ranks(),
                                  to_seconds(job.duration), job.vc, job.name));
    return words;
  }
  std::vector<std::string> notes(const std::string& keys) const { return load(keys).front().source->notes(); }
  std::string refused(const std::string& keys) const {
    try {
      load(keys);
    } catch (const Error& error) {
      return std::string(error.what()).substr(folder_.string().size() + 1);
    }
    return "accepted";
  }
  std::string of_philly(const std::vector<std::string>& list, const std::string& keys = "") const {
    write("log.json", fmt::format("[{}]", fmt::join(list, ",\n")));
    return "trace: log.json" + keys;
  }
  std::string of_helios(const std::string& text, const std::string& keys = "") const {
    write("log.csv", text);
    return "trace: log.csv" + keys;
  }
  std::string of_alibaba(const std::string& tasks, const std::string& table,
                         const std::string& keys = "") const {
    write("tasks.csv", kTaskNames + tasks);
    write("table.csv", kJobNames + table);
    return "trace: [tasks.csv, table.csv]" + keys;
  }
};

TEST_F(JobTraces, AttemptsOfPhillyAddUp) {
  EXPECT_THAT(jobs(of_philly({kLate, kRetried})),
              ElementsAre("0 4 20 ee9e8c retried", "20 16 100 ee9e8c late"));
  EXPECT_THAT(jobs(of_philly({kLate, kRetried}, ", successful: true")), ElementsAre("0 16 100 ee9e8c late"));
  EXPECT_THAT(notes(of_philly({kLate, kRetried}, ", successful: true")),
              ElementsAre("jobs of the trace that did not succeed, left out: 1"));
}

TEST_F(JobTraces, IncompleteJobsOfPhillyAreErrorsOrCountedByReason) {
  const std::string none = philly("none", at("08 00:00:00"), ""),
                    idle =
                        philly("idle", at("08 00:00:00"), attempt(at("08 00:01:00"), at("08 00:01:00"), {1})),
                    lost = philly("lost", "null", attempt(at("08 00:01:00"), at("08 00:01:01"), {1})),
                    cpu =
                        philly("cpu", at("08 00:00:00"), attempt(at("08 00:01:00"), at("08 00:01:01"), {0}));
  EXPECT_THAT(refused(of_philly({kLate, kEndless})),
              HasSubstr("log.json:5: the end_time is missing: with the key jobs.skip_incomplete"));
  const std::string keys =
      of_philly({kEndless, kEndless, none, kLate, idle, lost, cpu}, ", skip_incomplete: true");
  EXPECT_THAT(jobs(keys), ElementsAre("0 16 100 ee9e8c late"));
  EXPECT_THAT(notes(keys), ElementsAre("jobs of the trace where the end_time is missing, left out: 2",
                                       "jobs of the trace where the job has no attempts, left out: 1",
                                       "jobs of the trace where the job takes no time, left out: 1",
                                       "jobs of the trace where the submitted_time is missing, left out: 1",
                                       "jobs of the trace without GPUs, left out: 1"));
}

TEST_F(JobTraces, WrongOnesOfPhillyAreRefused) {
  const auto with = [&](const std::string& end) {
    return philly("a", at("08 00:00:00"), attempt(at("08 00:01:00"), end, {1}));
  };
  EXPECT_THAT(refused(of_philly({with("\"yesterday\"")})),
              HasSubstr("log.json:2: the end_time 'yesterday' is no time; allowed: YYYY-MM-DD"));
  EXPECT_THAT(refused(of_philly({with(at("32 00:00:00"))})), HasSubstr("is no time"));
  EXPECT_THAT(refused(of_philly({with(at("01 00:00:00"))})),
              HasSubstr("log.json:2: the end_time is before the start_time"));
  EXPECT_THAT(refused(of_philly({kLate, "3"})), HasSubstr("a job, an object in braces, is expected"));
  EXPECT_THAT(refused(of_philly({kLate, "{\"a\" 1}"})), HasSubstr("log.json:4: is no JSON"));
  EXPECT_THAT(refused(of_philly({kLate, kLate})), HasSubstr("log.json: a second job is called 'late'"));
  EXPECT_THAT(refused(of_philly({kRetried}, ", successful: true")),
              HasSubstr("log.json: no jobs are left (jobs of the trace that did not succeed"));
}

TEST_F(JobTraces, RowsOfHeliosAreJobs) {
  EXPECT_THAT(jobs(of_helios(kHelios)), ElementsAre("0 8 36848 vcOne 7", "30 16 249 vcOne 9"));
  EXPECT_THAT(notes(of_helios(kHelios)), ElementsAre("jobs of the trace without GPUs, left out: 1"));
  EXPECT_THAT(jobs(of_helios(kHelios, ", first: 1")), SizeIs(1));
  // Files of pandas have another column and numbers with a point, and ends of lines of Windows.
  std::string odd = kHelios;
  odd.replace(odd.find("queue\n"), 6, "queue,note\r\n");
  odd.replace(odd.find("36848,0\n"), 8, "36848.0,0,\"a, \"\"b\"\"\"\r\n");
  odd.resize(odd.find("8,uB"));
  EXPECT_THAT(jobs(of_helios(odd)), ElementsAre("0 8 36848 vcOne 7"));
  EXPECT_THAT(jobs(of_helios("user,job_id,vc,gpu_num,state,submit_time,duration\n"
                             "u,7,vcOne,8,COMPLETED,2020-09-01 09:00:00,1200\n")),
              ElementsAre("0 8 1200 vcOne 7"));
}

TEST_F(JobTraces, PodsOfAlibabaAreJobs) {
  const std::string pods =
      "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,"
      "scheduled_time\n"
      "p0,12000,16384,1,460,,LS,Running,50,1250,60\np1,88000,327680,8,1000,G2,BE,Succeeded,70,170,80\n"
      "p2,20000,65536,0,0,,LS,Running,60,90,60\n";
  EXPECT_THAT(jobs(of_helios(pods)), ElementsAre("0 1 1190 LS p0", "20 8 90 BE p1"));
  EXPECT_THAT(jobs(of_helios(pods, ", successful: true")), ElementsAre("0 8 90 BE p1"));
  EXPECT_THAT(notes(of_helios(pods)), ElementsAre("jobs of the trace without GPUs, left out: 1"));
  EXPECT_THAT(refused(of_helios(pods + "p3,1,1,1,1000,,LS,Pending,80,90,\n")),
              HasSubstr("log.csv:5:33: the scheduled_time is missing"));
}

TEST_F(JobTraces, KeysGiveWorkloadsAndDeadlines) {
  write("pair.yaml", "{kind: collective, collective: all_reduce, bytes: 1 MB, ranks: 16}\n");
  const auto list = load(of_helios(kHelios, ", deadline: 1.5, workloads: [{gpus: 16, workload: pair.yaml}]"));
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0].deadline, 55'272 * kSecond);
  EXPECT_EQ(list[1].deadline, 403'500 * kMillisecond);
  EXPECT_THAT(list[1].file, HasSubstr("pair.yaml"));
  EXPECT_THAT(refused(of_helios(kHelios, ", workloads: [{gpus: 8, workload: pair.yaml}]")),
              HasSubstr("log.csv:2:12: the workload"));
}

TEST_F(JobTraces, WrongOnesOfHeliosAreRefusedWithTheirPlace) {
  for (const auto& [old, text, message] : std::vector<std::tuple<std::string, std::string, std::string>>{
           {",249,0", ",,0", "log.csv:4:87: the duration is missing"},
           {"vcOne,16", "vcOne,many", "log.csv:4:12: the gpu_num is 'many'"},
           {"vcOne,16", "vcOne,1.5", "log.csv:4:12: the gpu_num is '1.5'"},
           {",249,0", ",-1,0", "log.csv:4:87: the duration is '-1'; allowed: a number of seconds"},
           {",249,0", ",249", "log.csv:4:1: 11 cells; allowed: 12"},
           {"gpu_num", "gpus", "log.csv:1:1: there is no column 'gpu_num'; the file has job_id, user"}}) {
    std::string wrong = kHelios;
    wrong.replace(wrong.find(old), old.size(), text);
    EXPECT_THAT(refused(of_helios(wrong)), HasSubstr(message)) << text;
  }
}

TEST_F(JobTraces, TasksOfAlibabaAddUp) {
  // Job A has three workers with half a GPU each.
  EXPECT_THAT(jobs(of_alibaba(kTasks, kJobs)), ElementsAre("0 8 10 userB jobB", "20 2 75.5 userA jobA"));
  EXPECT_THAT(notes(of_alibaba(kTasks, kJobs)), ElementsAre("jobs of the trace without GPUs, left out: 1"));
  // The public files have no names of columns.
  write("b.csv", "0123456789abcdef,worker,3.0,Terminated,120.0,195.5,600.0,29.3,50.0,T4\n");
  write("a.csv", "0123456789abcdef,idA,userA,Terminated,105.0,201.0\n");
  EXPECT_THAT(jobs("trace: [a.csv, b.csv]"), ElementsAre("0 2 75.5 userA 0123456789abcdef"));
}

TEST_F(JobTraces, WrongOnesOfAlibabaAreRefusedWithTheirPlace) {
  const auto without = [](std::string text, const std::string& part, const std::string& instead) {
    return text.replace(text.find(part), part.size(), instead);
  };
  EXPECT_THAT(refused(of_alibaba(without(kTasks, "jobC", "jobA"), kJobs)),
              HasSubstr("table.csv:4:1: the job is not in the task table"));
  EXPECT_THAT(refused(of_alibaba(kTasks, kJobs.substr(0, kJobs.find("jobB")))),
              HasSubstr("tasks.csv:5:1: the job is not in the job table"));
  const std::string open = without(kTasks, "120.0,195.5", "120.0,");
  EXPECT_THAT(refused(of_alibaba(open, kJobs)), HasSubstr("tasks.csv:3:34: the end_time is missing"));
  EXPECT_THAT(jobs(of_alibaba(open, kJobs, ", skip_incomplete: true")), ElementsAre("0 8 10 userB jobB"));
  EXPECT_THAT(refused(of_alibaba(without(kTasks, "195.5", "19.5"), kJobs)),
              HasSubstr("tasks.csv:3:34: the end_time is before the start_time"));
  write("tasks.csv", kTaskNames + kTasks);
  EXPECT_THAT(refused("trace: tasks.csv"),
              HasSubstr("two files are expected: the task table and the job table"));
}

TEST_F(JobTraces, KeysOfClustersAreRefusedForTheOwnTable) {
  write("own.csv", "submitted_s,gpus,duration_s\n0,1,1\n");
  EXPECT_THAT(refused("trace: own.csv, successful: true"),
              HasSubstr("jobs.yaml:1:36: jobs.successful: the key is for traces of clusters"));
}

TEST_F(JobTraces, LateAndLongJobsAreLeftOut) {
  const std::string keys =
      of_helios(kHelios +
                "10,u,v,1,1,1,COMPLETED,2020-07-09 18:41:31,x,x,5,0\n11,u,v,1,1,1,COMPLETED,2020-06-09 "
                "18:41:31,x,x,2000000,0\n");
  EXPECT_THAT(jobs(keys), SizeIs(2));
  EXPECT_THAT(notes(keys),
              Contains("jobs of the trace submitted more than 1,000,000 s after the first one, left out: 1"));
  EXPECT_THAT(notes(keys), Contains("jobs of the trace that take more than 1,000,000 s, left out: 1"));
}

TEST_F(JobTraces, DamagedOnesEndInOneError) {
  test::expect_sane(
      kHelios, [this](const std::string& given) { load(of_helios(given)); }, 200);
  test::expect_sane(
      fmt::format("[{}]", kRetried),
      [this](const std::string& given) {
        load(of_philly({given.substr(std::min<std::size_t>(1, given.size()))}));
      },
      200);
  test::expect_sane(
      kTasks, [this](const std::string& given) { load(of_alibaba(given, kJobs)); }, 200);
}

TEST_F(JobTraces, SamplesAreRead) {
  NETSIM_NEEDS_SHARED("samples/job_traces");
  const std::string folder = test::shared_folder() + "/samples/job_traces/";
  const std::string skip = ", skip_incomplete: true";
  EXPECT_FALSE(load("trace: " + folder + "philly/generated_cluster_job_log.json" + skip).empty());
  EXPECT_FALSE(load("trace: " + folder + "philly/readme_example_cluster_job_log.json" + skip).empty());
  double gpu_seconds = 0;
  const auto helios = load("trace: " + folder + "helios/generated_cluster_log.csv");
  for (const JobDescription& job : helios) gpu_seconds += job.source->ranks() * to_seconds(job.duration);
  EXPECT_EQ(helios.size(), 178u);
  EXPECT_EQ(gpu_seconds, 6185658);
  EXPECT_FALSE(load("trace: " + folder + "helios/readme_example_cluster_log.csv" + skip).empty());
  const std::string pai = folder + "alibaba_pai_v2020/";
  EXPECT_THAT(refused("trace: [" + pai + "pai_task_table.csv, " + pai + "pai_job_table.csv]"),
              HasSubstr("not in the"));
}

}  // namespace
}  // namespace netsim::job_traces_test
