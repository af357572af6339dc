"""Asks netsim about the points of a sweep, runs them, and keeps the answers in the sweep's folder."""

import csv
import dataclasses
import json
import os
import shutil

from netsim_runs import execution, results_cache
from netsim_sweeps.nodes import SweepError

ANSWERS = (0, 5, 6)  # exit codes with a summary: done, stalled, limit reached


@dataclasses.dataclass
class Plan:
    """What a point comes to: the key of its run, or why there is none."""
    key: str = ""
    message: str = ""


def content_hash(path):
    try:
        return results_cache.content_hash(path)
    except OSError as error:
        raise SweepError(f"{path}: {error.strerror}") from None


class Runner:
    """Keeps `runs/KEY.json` for each run, and beside it those of netsim's tables whose names are in `tables`."""

    def __init__(self, binary, sweep, folder, executor, tables=()):
        self.binary, self.sweep, self.folder, self.executor = str(binary), sweep, folder, executor
        self.tables = sorted(set(tables))
        self.results = results_cache.ResultsCache(folder / "runs")
        self.program = [content_hash(each) for each in (binary, *execution.own_libraries(binary), *sweep.plugins)]

    def netsim(self, point, *options):
        return self.executor.run([self.binary, *point.arguments(), *options], self.sweep.folder)

    def plan(self, point):
        """The key is a hash of what determines the answer: program and plugins, resolved configuration, seed, end, and the
        content of all files but the configuration's, whose comments and order do not matter."""
        code, output, errors = self.netsim(point, "--print-config", "--json", "-")
        if code != 0:
            return Plan(message=last_line(errors) or f"exit code {code}")
        return Plan(results_cache.run_key(self.program, json.loads(output), without=(point.config,)))

    def kept(self, key):
        """Returns the answer, or None where there is none, or one without a table that is wanted now."""
        record = self.results.kept(key)
        if record and "summary" in record and not all(self.results.path(key, f".{name}").is_file() for name in self.tables):
            return None
        return record

    def run(self, key, point):
        """Plays the point and keeps what came out, failures too. The record is written last."""
        folder = self.results.path(f".{key}", f".{os.getpid()}.partial")
        options = ["--out", str(folder), "--report", "no"] if self.tables else []
        code, output, errors = self.netsim(point, "--threads", "1", "--quiet", "--json", "-", *options)
        record = {"point": point.title(), "arguments": point.arguments(), "exit_code": code}
        missing = [name for name in self.tables if not (folder / name).is_file()]
        if code not in ANSWERS:
            record["message"] = last_line(errors) or (f"killed by signal {-code}" if code < 0 else f"exit code {code}")
        elif missing:
            there = ", ".join(sorted(path.name for path in folder.glob("*.csv")))
            record["message"] = f"the run wrote no table '{missing[0]}' (it wrote {there})"
        else:
            record["summary"] = json.loads(output)
            for name in self.tables:
                os.replace(folder / name, self.results.path(key, f".{name}"))
        shutil.rmtree(folder, ignore_errors=True)
        self.results.keep(key, record)
        return record

    def column(self, key, table, name):
        """Returns the cells of a column of a kept table, or None where the table has no such column."""
        with open(self.results.path(key, f".{table}"), newline="", encoding="utf-8") as stream:
            rows = csv.reader(stream)
            header = next(rows, [])
            return [row[header.index(name)] for row in rows] if name in header else None


def last_line(errors):
    """netsim's one line about what is wrong, without its name."""
    lines = errors.strip().splitlines()
    line = next((each for each in lines if each.startswith("netsim: error: ")), lines[-1] if lines else "")
    return line.removeprefix("netsim: error: ")
