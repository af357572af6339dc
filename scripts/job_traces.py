#!/usr/bin/env python3
"""Converts public traces of GPU clusters to netsim's table of jobs.

    scripts/job_traces.py philly cluster_job_log --out jobs.csv
    scripts/job_traces.py helios cluster_log.csv --out jobs.csv
    scripts/job_traces.py alibaba pai_task_table.csv pai_job_table.csv --out jobs.csv

The table has a line for each job, by submission: submitted_s (since the first job), gpus, duration_s, workload, vc, weight, deadline_s and
name. Where a value is missing, the script ends with its place; with --skip-incomplete it counts such jobs and leaves them out.

Philly (github.com/msr-fiddle/philly-traces): a job has the most GPUs of its attempts, and takes as long as all attempts together.
Helios (github.com/S-Lab-System-Group/HeliosData): a row is a job with gpu_num GPUs, which takes `duration`.
Alibaba (github.com/alibaba/clusterdata, cluster-trace-gpu-v2020): the job table says when a job was submitted. Its GPUs are
inst_num x plan_gpu / 100 of all tasks, rounded up; an empty plan_gpu is 0. It takes from the first begin to the last end of tasks with
GPUs. The trace has no virtual clusters, so vc is the user. Jobs without GPUs are left out of all traces and counted.
"""
import argparse
import bisect
import collections
import csv
import dataclasses
import datetime
import decimal
import json
import math
import os
import pathlib
import re
import sys
import typing

HEADER = ("submitted_s", "gpus", "duration_s", "workload", "vc", "weight", "deadline_s", "name")
HELIOS = ("job_id", "user", "vc", "gpu_num", "cpu_num", "node_num", "state", "submit_time", "start_time", "end_time", "duration", "queue")
ALIBABA_TASKS = ("job_name", "task_name", "inst_num", "status", "start_time", "end_time", "plan_cpu", "plan_mem", "plan_gpu", "gpu_type")
ALIBABA_JOBS = ("job_name", "inst_id", "user", "status", "start_time", "end_time")
SUCCESSFUL = {"Pass", "COMPLETED", "Terminated"}
MISSING = {"", "None", "NaN", "nan", "NA", "null"}
CELL = re.compile(r'("(?:[^"]|"")*"|[^,"]*)(,|$)')
NO_GPUS = "without GPUs"
UNSUCCESSFUL = "that did not succeed"


@dataclasses.dataclass
class Job:
    name: str
    submitted: decimal.Decimal  # seconds, from any begin
    gpus: int
    duration: decimal.Decimal  # seconds
    vc: str


class Incomplete(Exception):
    """A value of a job is missing: its place and which one."""

    def __init__(self, place, reason):
        super().__init__(f"{place}: {reason}")
        self.reason = reason


class LeftOut(Exception):
    """A job is complete, and not of those that are wanted."""


def fail(place, what):
    raise SystemExit(f"{place}: {what}")


# ---- Values
def read_number(text):
    """The number of a text, or None."""
    try:
        number = decimal.Decimal(text)
    except decimal.InvalidOperation:
        return None
    return number if number.is_finite() else None


class Cell(typing.NamedTuple):
    """A text of the trace and where it stands."""
    name: str
    text: str
    path: pathlib.Path
    line: int
    column: int

    @property
    def place(self):
        return f"{self.path}:{self.line}:{self.column}"

    def required(self):
        if self.text.strip() in MISSING:
            raise Incomplete(self.place, f"the {self.name} is missing")
        return self.text.strip()

    def number(self, least=0):
        text = self.required()
        number = read_number(text)
        if number is None:
            fail(self.place, f"the {self.name} '{text}' is no number")
        if number < least:
            fail(self.place, f"the {self.name} is {text}; at least {least} is allowed")
        return number

    def whole(self):
        number = self.number()
        if number != number.to_integral_value():
            fail(self.place, f"the {self.name} '{self.text}' is no whole number")
        return int(number)

    def date(self):
        """Seconds; times of a trace are of one zone."""
        text = self.required()
        try:
            return decimal.Decimal((datetime.datetime.strptime(text, "%Y-%m-%d %H:%M:%S") - datetime.datetime(2000, 1, 1)) // datetime.timedelta(seconds=1))
        except ValueError:
            fail(self.place, f"the {self.name} '{text}' is no time (allowed: YYYY-MM-DD hh:mm:ss)")


def span(begin, end, first, last):
    """The time between two cells, of which `first` and `last` are the values; a job that takes no time is incomplete."""
    if last < first:
        fail(end.place, f"the {end.name} is before the {begin.name}")
    return last - first


# ---- Tables
class Row(typing.NamedTuple):
    """A line of a table. It is kept as a text, because a trace has millions."""
    names: list
    path: pathlib.Path
    number: int
    line: str

    def cells(self):
        """The cells by column."""
        return {name: Cell(name, text, self.path, self.number, column) for name, (text, column) in zip(self.names, split(self.path, self.number, self.line))}


def read_table(path, columns, header):
    """Yields the rows. The first line may be, or with `header` has to be, the names of columns."""
    names = None if header else columns
    with open(path, encoding="utf-8", newline="") as lines:
        for number, line in enumerate(lines, 1):
            line = line.rstrip("\r\n")
            if not line:
                continue
            cells = split(path, number, line)
            texts = [text for text, _ in cells]
            if number == 1 and (header or texts[0] == columns[0]):
                names = texts
                for column in columns:
                    if column not in names:
                        fail(f"{path}:1:1", f"there is no column '{column}' (the header has {', '.join(names)})")
                continue
            if len(cells) != len(names):
                fail(f"{path}:{number}:1", f"{len(cells)} values were given; {len(names)} are expected")
            yield Row(names, path, number, line)


def split(path, number, line):
    """The texts of a line and their columns."""
    cells, begin = [], 0
    while True:
        match = CELL.match(line, begin)
        if not match:
            fail(f"{path}:{number}:{begin + 1}", "a quotation mark is not closed, or stands within a value")
        text = match[1]
        cells.append((text[1:-1].replace('""', '"') if text.startswith('"') else text, begin + 1))
        begin = match.end()
        if not match[2]:
            return cells


# ---- Philly
class JsonJobs:
    """The objects of the list that a JSON file is, one after the other, with the places of their keys."""

    def __init__(self, path):
        self.path = path
        self.text = path.read_text(encoding="utf-8")
        self.lines = [0] + [match.end() for match in re.finditer("\n", self.text)]

    def cell(self, name, text, offset):
        line = bisect.bisect_right(self.lines, offset)
        return Cell(name, text, self.path, line, offset - self.lines[line - 1] + 1)

    def place(self, offset):
        return self.cell("", "", offset).place

    def skip(self, offset):
        while offset < len(self.text) and self.text[offset].isspace():
            offset += 1
        return offset

    def expect(self, offset, allowed):
        offset = self.skip(offset)
        if offset >= len(self.text) or self.text[offset] not in allowed:
            fail(self.place(min(offset, len(self.text))), f"{' or '.join(repr(one) for one in allowed)} is expected")
        return self.text[offset], offset + 1

    def __iter__(self):
        """Yields (object, begin, end)."""
        decoder = json.JSONDecoder()
        _, offset = self.expect(0, "[")
        offset = self.skip(offset)
        while self.text[offset:offset + 1] != "]":
            begin = self.skip(offset)
            try:
                value, offset = decoder.raw_decode(self.text, begin)
            except json.JSONDecodeError as error:
                fail(self.place(error.pos), error.msg)
            if not isinstance(value, dict):
                fail(self.place(begin), "a job, an object in braces, is expected")
            yield value, begin, offset
            mark, offset = self.expect(offset, ",]")
            if mark == "]":
                return

    def cells(self, value, keys, begin, end):
        """Cells of all keys with these names below an object, in the order of the file, by key."""
        found = collections.defaultdict(list)
        places = {key: [begin + match.start() for match in re.finditer(rf'"{key}"\s*:', self.text[begin:end])] for key in keys}
        def walk(value):
            if isinstance(value, dict):
                for key, below in value.items():
                    if key in places:
                        offset = (places[key] or [begin])[min(len(found[key]), max(len(places[key]) - 1, 0))]
                        found[key].append(self.cell(key, "" if below is None else str(below), offset))
                    walk(below)
            elif isinstance(value, list):
                for below in value:
                    walk(below)
        walk(value)
        return found


def read_philly(paths):
    trace = JsonJobs(paths[0])
    keys = ("jobid", "status", "vc", "submitted_time", "attempts", "start_time", "end_time")
    for value, begin, end in trace:
        cells = trace.cells(value, keys, begin, end)
        def one(key):
            return cells[key][0] if cells[key] else trace.cell(key, "", begin)
        yield lambda: philly_job(value, one, cells), one("status").text


def philly_job(value, one, cells):
    attempts = value.get("attempts") or []
    if not attempts:
        raise Incomplete(one("attempts").place, "the job has no attempts")
    gpus = max(sum(len(host.get("gpus") or ()) for host in attempt.get("detail") or ()) for attempt in attempts)
    if not gpus:
        raise LeftOut(NO_GPUS)
    if not len(cells["start_time"]) == len(cells["end_time"]) == len(attempts):
        raise Incomplete(one("attempts").place, "the start_time or end_time of an attempt is missing")
    duration = sum(span(begin, end, begin.date(), end.date()) for begin, end in zip(cells["start_time"], cells["end_time"]))
    return Job(one("jobid").required(), one("submitted_time").date(), gpus, positive(duration, one("attempts").place), one("vc").text)


def positive(duration, place):
    if not duration:
        raise Incomplete(place, "the job takes no time")
    return duration


# ---- Helios
def read_helios(paths):
    for row in map(Row.cells, read_table(paths[0], HELIOS, header=True)):
        yield lambda row=row: helios_job(row), row["state"].text


def helios_job(row):
    gpus = row["gpu_num"].whole()
    if not gpus:
        raise LeftOut(NO_GPUS)
    duration = positive(row["duration"].number(), row["duration"].place)
    return Job(row["job_id"].required(), row["submit_time"].date(), gpus, duration, row["vc"].text)


# ---- Alibaba
def read_alibaba(paths):
    tasks = collections.defaultdict(list)
    for row in read_table(paths[0], ALIBABA_TASKS, header=False):
        tasks[row.cells()["job_name"].text].append(row)
    for row in map(Row.cells, read_table(paths[1], ALIBABA_JOBS, header=False)):
        own = [task.cells() for task in tasks.pop(row["job_name"].text, ())]
        yield lambda row=row, own=own: alibaba_job(row, own), row["status"].text
    for left in tasks.values():
        own = [task.cells() for task in left]
        yield lambda own=own: alibaba_job(None, own), own[0]["status"].text


def alibaba_job(row, tasks):
    if row is None:
        raise Incomplete(tasks[0]["job_name"].place, "the job is not in the job table")
    if not tasks:
        raise Incomplete(row["job_name"].place, "the job is not in the task table")
    computing = [task for task in tasks if task["plan_gpu"].text.strip() not in MISSING and task["plan_gpu"].number()]
    if not computing:
        raise LeftOut(NO_GPUS)
    gpus = math.ceil(sum(task["inst_num"].whole() * task["plan_gpu"].number() for task in computing) / 100)
    if not gpus:
        raise LeftOut(NO_GPUS)
    begins, ends = [task["start_time"].number() for task in computing], [task["end_time"].number() for task in computing]
    first, last = min(range(len(begins)), key=begins.__getitem__), max(range(len(ends)), key=ends.__getitem__)
    duration = span(computing[first]["start_time"], computing[last]["end_time"], begins[first], ends[last])
    return Job(row["job_name"].required(), row["start_time"].number(), gpus, positive(duration, row["job_name"].place), row["user"].text)


# ---- The table
READERS = {"philly": (read_philly, ("cluster_job_log",)),
           "helios": (read_helios, ("cluster_log.csv",)),
           "alibaba": (read_alibaba, ("pai_task_table.csv", "pai_job_table.csv"))}


def collect(candidates, skip_incomplete, successful):
    """The jobs by submission, and how many were left out by reason."""
    jobs, left_out = [], collections.Counter()
    for make, status in candidates:
        try:
            job = make()
            if successful and status not in SUCCESSFUL:
                raise LeftOut(UNSUCCESSFUL)
            jobs.append(job)
        except LeftOut as reason:
            left_out[str(reason)] += 1
        except Incomplete as error:
            if successful and status not in SUCCESSFUL:
                left_out[UNSUCCESSFUL] += 1
            elif skip_incomplete:
                left_out[f"where {error.reason}"] += 1
            else:
                raise SystemExit(f"{error} (--skip-incomplete leaves such jobs out)") from None
    return sorted(jobs, key=lambda job: job.submitted), left_out


def seconds(number):
    """A number with at most six digits behind the point, which are microseconds."""
    text = f"{number:.6f}"
    return text.rstrip("0").rstrip(".")


def table(jobs, workloads, deadline):
    for job in jobs:
        submitted = job.submitted - jobs[0].submitted
        late = seconds(submitted + deadline * job.duration) if deadline else ""
        yield seconds(submitted), job.gpus, seconds(job.duration), workloads.get(job.gpus, ""), job.vc, 1, late, job.name


def workload(text):
    gpus, equals, path = text.partition("=")
    if not (gpus.isdecimal() and equals and path):
        raise argparse.ArgumentTypeError(f"'{text}' was given; GPUS=FILE is expected")
    return int(gpus), path


def factor(text):
    number = read_number(text)
    if number is None or number < 1:
        raise argparse.ArgumentTypeError(f"'{text}' was given; a number of at least 1 is expected")
    return number


def count(text):
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' was given; a number of at least 1 is expected")
    return int(text)


def read_arguments(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("trace", choices=READERS, help="where the files are from")
    parser.add_argument("files", nargs="+", type=pathlib.Path, metavar="FILE", help="; ".join(f"{name}: {' '.join(files)}" for name, (_, files) in READERS.items()))
    parser.add_argument("--out", type=pathlib.Path, metavar="JOBS.csv", help="the table (default: standard output)")
    parser.add_argument("--skip-incomplete", action="store_true", help="leave out jobs of which a value is missing, and count them")
    parser.add_argument("--successful", action="store_true", help="only jobs that succeeded: Pass, COMPLETED or Terminated")
    parser.add_argument("--first", type=count, metavar="N", help="only the N jobs that were submitted first")
    parser.add_argument("--workload", type=workload, action="append", default=[], metavar="GPUS=FILE",
                        help="workload of the jobs with so many GPUs; others keep their GPUs busy for their duration")
    parser.add_argument("--deadline", type=factor, metavar="FACTOR", help="deadline of a job, in its durations after its submission (default: none)")
    given = parser.parse_args(arguments)
    expected = READERS[given.trace][1]
    if len(given.files) != len(expected):
        parser.error(f"{given.trace} has {len(expected)} file{'s' * (len(expected) > 1)}: {' '.join(expected)}")
    return given


def write(rows, out):
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(HEADER)
    writer.writerows(rows)


def main(arguments=None):
    given = read_arguments(arguments)
    try:
        jobs, left_out = collect(READERS[given.trace][0](given.files), given.skip_incomplete, given.successful)
    except OSError as error:
        raise SystemExit(f"{error.filename}: {os.strerror(error.errno)}") from None
    except UnicodeDecodeError as error:
        raise SystemExit(f"{' '.join(map(str, given.files))}: not UTF-8 at byte {error.start}") from None
    if not jobs:
        raise SystemExit(f"{given.files[0]}: no jobs are left")
    rows = table(jobs[:given.first], dict(given.workload), given.deadline)
    if given.out:
        with open(given.out, "w", encoding="utf-8", newline="") as out:
            write(rows, out)
    else:
        write(rows, sys.stdout)
    print(f"{len(jobs[:given.first])} jobs", file=sys.stderr)
    for reason, number in sorted(left_out.items()):
        print(f"left out: {number} {reason}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
