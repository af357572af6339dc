"""Does scripts/job_traces.py convert the traces of Philly, Helios and Alibaba, and say where a value is missing or wrong?

The samples are made up; their columns and keys are those of the public files.
"""

import contextlib
import csv
import io
import json
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
sys.dont_write_bytecode = True
import job_traces


def attempt(begin, end, gpus):
    hosts = [{"ip": f"m{host}", "gpus": [f"gpu{i}" for i in range(number)]} for host, number in enumerate(gpus)]
    return {"start_time": begin, "end_time": end, "detail": hosts}


def philly(jobid, submitted, *attempts, status="Pass"):
    return {"status": status, "vc": "ee9e8c", "jobid": jobid, "attempts": list(attempts), "submitted_time": submitted, "user": "ce2f4c"}


LATE = philly("application_2", "2017-10-08 00:00:10", attempt("2017-10-08 00:01:00", "2017-10-08 00:02:40", [8, 8]))
RETRIED = philly("application_1", "2017-10-07 23:59:50", attempt("2017-10-08 00:00:00", "2017-10-08 00:00:07", [4]),
                 attempt("2017-10-08 00:10:00", "2017-10-08 00:10:13", [2]), status="Failed")
ENDLESS = philly("application_3", "2017-10-08 00:00:00", attempt("2017-10-08 00:01:00", "None", [1]))

HELIOS = """\
job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue
7,uA,vcOne,8,16,1,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:41:01,2020-06-10 04:55:09,36848,0
8,uB,vcTwo,0,4,1,COMPLETED,2020-06-09 18:41:02,2020-06-09 18:41:03,2020-06-09 18:41:13,10,1
9,uC,vcOne,16,16,2,FAILED,2020-06-09 18:41:31,2020-06-09 18:41:31,2020-06-09 18:45:40,249,0
"""

TASKS = """\
jobA,ps,1.0,Terminated,110.0,200.0,600.0,29.3,0.0,MISC
jobA,worker,3.0,Terminated,120.0,195.5,600.0,29.3,50.0,T4
jobA,evaluator,1.0,Terminated,130.0,180.0,600.0,29.3,,T4
jobB,tensorflow,1.0,Terminated,90.0,100.0,600.0,29.3,800.0,V100
jobC,tensorflow,1.0,Terminated,90.0,100.0,600.0,29.3,,
"""
JOBS = """\
jobA,idA,userA,Terminated,105.0,201.0
jobB,idB,userB,Failed,85.0,101.0
jobC,idC,userC,Terminated,80.0,101.0
"""


class Traces(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = pathlib.Path(directory.name)
        self.errors = ""

    def file(self, name, text):
        (self.path / name).write_text(text, encoding="utf-8")
        return str(self.path / name)

    def convert(self, *arguments):
        """The rows of the table, each without its workload and deadline where they are empty."""
        out, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            job_traces.main(list(arguments))
        self.errors = errors.getvalue()
        rows = list(csv.DictReader(io.StringIO(out.getvalue())))
        self.assertEqual(tuple(rows[0]), job_traces.HEADER)
        return [" ".join(value for value in row.values() if value) for row in rows]

    def philly(self, jobs, *options):
        return self.convert("philly", self.file("log", json.dumps(jobs, indent=1)), *options)

    def alibaba(self, tasks=TASKS, jobs=JOBS, *options):
        return self.convert("alibaba", self.file("tasks.csv", tasks), self.file("jobs.csv", jobs), *options)

    def expect_failure(self, message, call, *arguments):
        with self.assertRaises(SystemExit) as raised:
            call(*arguments)
        self.assertEqual(str(raised.exception).replace(f"{self.path}/", ""), message)


class Philly(Traces):
    def test_attempts_add_up(self):
        self.assertEqual(self.philly([LATE, RETRIED]), ["0 4 20 ee9e8c 1 application_1", "20 16 100 ee9e8c 1 application_2"])
        self.assertEqual(self.errors, "2 jobs\n")

    def test_a_missing_end_has_a_place(self):
        lines = json.dumps([LATE, ENDLESS], indent=1).split("\n")
        line = next(i for i, text in enumerate(lines, 1) if '"end_time": "None"' in text)
        column = lines[line - 1].index('"end_time"') + 1
        self.expect_failure(f"log:{line}:{column}: the end_time is missing (--skip-incomplete leaves such jobs out)", self.philly, [LATE, ENDLESS])

    def test_incomplete_jobs_are_counted_by_reason(self):
        none = philly("application_4", "2017-10-08 00:00:00")
        idle = philly("application_5", "2017-10-08 00:00:00", attempt("2017-10-08 00:01:00", "2017-10-08 00:01:00", [1]))
        lost = philly("application_6", None, attempt("2017-10-08 00:01:00", "2017-10-08 00:01:01", [1]))
        cpu = philly("application_7", "2017-10-08 00:00:00", attempt("2017-10-08 00:01:00", "2017-10-08 00:01:01", [0]))
        rows = self.philly([ENDLESS, ENDLESS, none, LATE, idle, lost, cpu], "--skip-incomplete")
        self.assertEqual(rows, ["0 16 100 ee9e8c 1 application_2"])
        self.assertEqual(self.errors.split("\n"), ["1 jobs", "left out: 2 where the end_time is missing", "left out: 1 where the job has no attempts",
                                                   "left out: 1 where the job takes no time", "left out: 1 where the submitted_time is missing",
                                                   "left out: 1 without GPUs", ""])

    def test_only_successful_jobs(self):
        self.assertEqual(self.philly([LATE, RETRIED], "--successful"), ["0 16 100 ee9e8c 1 application_2"])
        self.assertIn("left out: 1 that did not succeed", self.errors)

    def test_a_file_that_is_no_list_of_jobs(self):
        for text, message in [("{}", "log:1:1: '[' is expected"), ("[3]", "log:1:2: a job, an object in braces, is expected"),
                              ('[{"a" 1}]', "log:1:7: Expecting ':' delimiter"), ("[]", "log: no jobs are left"),
                              ('[{}]', "log:1:2: the job has no attempts (--skip-incomplete leaves such jobs out)")]:
            with self.subTest(text=text):
                self.expect_failure(message, self.convert, "philly", self.file("log", text))

    def test_a_file_that_ends_early(self):
        self.expect_failure("log:3:1: ',' or ']' is expected", self.convert, "philly", self.file("log", "[\n{}\n"), "--skip-incomplete")

    def test_a_wrong_time_is_an_error_in_any_case(self):
        wrong = philly("application_1", "yesterday", attempt("2017-10-08 00:01:00", "2017-10-08 00:01:10", [1]))
        text = json.dumps([wrong])
        column = text.index('"submitted_time"') + 1
        self.expect_failure(f"log:1:{column}: the submitted_time 'yesterday' is no time (allowed: YYYY-MM-DD hh:mm:ss)",
                            self.convert, "philly", self.file("log", text), "--skip-incomplete")


class Helios(Traces):
    def convert_text(self, text, *options):
        return self.convert("helios", self.file("log.csv", text), *options)

    def test_rows_are_jobs(self):
        self.assertEqual(self.convert_text(HELIOS), ["0 8 36848 vcOne 1 7", "30 16 249 vcOne 1 9"])
        self.assertEqual(self.errors, "2 jobs\nleft out: 1 without GPUs\n")

    def test_workloads_and_deadlines(self):
        rows = self.convert_text(HELIOS, "--workload", "16=resnet.yaml", "--deadline", "1.5", "--first", "2")
        self.assertEqual(rows, ["0 8 36848 vcOne 1 55272 7", "30 16 249 resnet.yaml vcOne 1 403.5 9"])
        self.assertEqual(len(self.convert_text(HELIOS, "--first", "1")), 1)

    def test_places(self):
        for old, new, message in [
                (",249,0", ",,0", "log.csv:4:87: the duration is missing (--skip-incomplete leaves such jobs out)"),
                ("vcOne,16", "vcOne,many", "log.csv:4:12: the gpu_num 'many' is no number"),
                ("vcOne,16", "vcOne,1.5", "log.csv:4:12: the gpu_num '1.5' is no whole number"),
                (",249,0", ",-1,0", "log.csv:4:87: the duration is -1; at least 0 is allowed"),
                (",249,0", ",249", "log.csv:4:1: 11 values were given; 12 are expected"),
                ("9,uC", '9,"uC', "log.csv:4:3: a quotation mark is not closed, or stands within a value"),
                ("gpu_num", "gpus", "log.csv:1:1: there is no column 'gpu_num' (the header has job_id, user, vc, gpus, cpu_num, node_num, state, "
                                    "submit_time, start_time, end_time, duration, queue)")]:
            with self.subTest(new=new):
                self.expect_failure(message, self.convert_text, HELIOS.replace(old, new))

    def test_quoted_cells(self):
        self.assertEqual(self.convert_text(HELIOS.replace("vcOne,16", '"vc, ""2""",16'))[1], '30 16 249 vc, "2" 1 9')


class Alibaba(Traces):
    def test_tasks_add_up_to_jobs(self):
        # Job A has three workers with half a GPU each.
        self.assertEqual(self.alibaba(), ["0 8 10 userB 1 jobB", "20 2 75.5 userA 1 jobA"])
        self.assertIn("left out: 1 without GPUs", self.errors)

    def test_headers_may_be_there(self):
        header = ",".join(job_traces.ALIBABA_TASKS) + "\n", ",".join(job_traces.ALIBABA_JOBS) + "\n"
        self.assertEqual(len(self.alibaba(header[0] + TASKS, header[1] + JOBS)), 2)

    def test_each_table_has_all_jobs(self):
        self.expect_failure("jobs.csv:3:1: the job is not in the task table (--skip-incomplete leaves such jobs out)",
                            self.alibaba, TASKS.replace("jobC", "jobA"), JOBS)
        self.expect_failure("tasks.csv:5:1: the job is not in the job table (--skip-incomplete leaves such jobs out)",
                            self.alibaba, TASKS, "".join(JOBS.splitlines(True)[:2]))

    def test_a_missing_end(self):
        tasks = TASKS.replace("120.0,195.5", "120.0,")
        self.expect_failure("tasks.csv:2:34: the end_time is missing (--skip-incomplete leaves such jobs out)", self.alibaba, tasks)
        self.assertEqual(self.alibaba(tasks, JOBS, "--skip-incomplete"), ["0 8 10 userB 1 jobB"])

    def test_an_end_before_the_begin(self):
        self.expect_failure("tasks.csv:2:34: the end_time is before the start_time", self.alibaba, TASKS.replace("195.5", "19.5"), JOBS)

    def test_one_file_is_not_enough(self):
        with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()) as errors:
            job_traces.main(["alibaba", "tasks.csv"])
        self.assertIn("alibaba has 2 files: pai_task_table.csv pai_job_table.csv", errors.getvalue())


class Output(Traces):
    def test_a_file_and_a_missing_one(self):
        out = self.path / "out.csv"
        with contextlib.redirect_stderr(io.StringIO()):
            job_traces.main(["helios", self.file("log.csv", HELIOS), "--out", str(out)])
        self.assertEqual(out.read_text(encoding="utf-8").split("\n")[1], "0,8,36848,,vcOne,1,,7")
        self.expect_failure("none.csv: No such file or directory", job_traces.main, ["helios", str(self.path / "none.csv")])


if __name__ == "__main__":
    unittest.main()
