#!/usr/bin/env python3
"""Runs netsim once for each point of a sweep file, and makes one table of all summaries, and pictures of it.

    scripts/sweep.py configs/sweeps/incast.yaml              # run what is missing, write results/sweeps/incast/results.csv
    scripts/sweep.py configs/sweeps/incast.yaml --plot       # and draw the pictures that the file describes
    scripts/sweep.py configs/sweeps/incast.yaml --dry-run    # the points and their existing runs; nothing is run

A run is kept under a hash of all that it depends on, so that a sweep that was interrupted or killed goes on where it was,
and one that was changed runs only what is new. docs/how-to/sweeps.md explains the file's format. Debian's packages:

    apt install python3-yaml python3-matplotlib

Exit codes: 0 all runs gave an answer, 1 some failed (the table says which and why), 2 the sweep cannot be run, 130 interrupted.
"""

import argparse
import concurrent.futures
import contextlib
import csv
import dataclasses
import fcntl
import io
import json
import os
import pathlib
import re
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time

from netsim_runs import execution, pictures, results_cache

try:
    import yaml

    import sweep_file
    import sweep_plot
except ModuleNotFoundError as error:
    raise SystemExit(f"scripts/sweep.py needs {error.name}, which {sys.executable} does not have: "
                     "apt install python3-yaml") from None

# Matches the partial files of write_whole() and of pictures.
PARTIAL = re.compile(r"\..+\.\d+(\.[0-9a-f]{8})?\.partial")
ANSWERS = (0, 5, 6)  # exit codes with a summary: done, stalled, limit reached
INTERRUPTED = 130


class Stopped(Exception):
    """The sweep is being stopped: what a run says now is no result."""


class LocalPool:
    """Runs programs on this machine, some at a time. An executor has run(), which may be called by many threads, each(),
    which calls a function for all items and yields (item, result) as they end, and stop(). What `netsim` answers and
    where it is kept is not its business."""

    def __init__(self, jobs):
        self.pool = concurrent.futures.ThreadPoolExecutor(jobs)
        self.jobs = jobs
        self.running = set()
        self.lock = threading.Lock()
        self.stopping = False

    def run(self, command, folder):
        """(exit code, standard output, standard error) of a program."""
        with self.lock:
            if self.stopping:
                raise Stopped
            process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, text=True, errors="replace")
            self.running.add(process)
        try:
            output, errors = process.communicate()
        finally:
            with self.lock:
                self.running.discard(process)
        if self.stopping or process.returncode == INTERRUPTED:
            raise Stopped
        return process.returncode, output, errors

    def each(self, function, items):
        futures = {self.pool.submit(function, item): item for item in items}
        for future in concurrent.futures.as_completed(futures):
            with contextlib.suppress(Stopped):
                yield futures[future], future.result()

    def stop(self):
        with self.lock:
            self.stopping = True
            for process in self.running:
                process.terminate()
        self.pool.shutdown(cancel_futures=True)


class Progress:
    """On a terminal one line that is written anew; elsewhere a line every half minute."""

    def __init__(self, what, total, stream=sys.stderr):
        self.what, self.total, self.stream = what, total, stream
        self.done = self.failed = 0
        self.begin = self.shown = time.monotonic()
        self.terminal = stream.isatty()

    def add(self, failed=False):
        self.done += 1
        self.failed += failed
        now = time.monotonic()
        if now - self.shown >= (0.1 if self.terminal else 30) and self.done < self.total:
            self.shown = now
            self.show(self.text())

    def text(self):
        elapsed = time.monotonic() - self.begin
        line = f"{self.done} of {self.total} {self.what}, {span(elapsed)}"
        line += f", {span(elapsed / self.done * (self.total - self.done))} to go" if self.done else ""
        return line + (f", {self.failed} failed" if self.failed else "")

    def show(self, line):
        if self.terminal:
            width = shutil.get_terminal_size().columns - 1
            self.stream.write("\r" + line[:width] + "\x1b[K")
        else:
            self.stream.write(line + "\n")
        self.stream.flush()

    def finish(self):
        if self.terminal:
            self.stream.write("\r\x1b[K")


def span(seconds):
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


@dataclasses.dataclass
class Plan:
    """What a point comes to: the key of its run, or why there is none."""
    key: str = ""
    message: str = ""


def content_hash(path):
    try:
        return results_cache.content_hash(path)
    except OSError as error:
        raise sweep_file.SweepError(f"{path}: {error.strerror}") from None


class Runner:
    """Asks netsim about points, runs them, and keeps the answers in `folder`."""

    def __init__(self, binary, sweep, folder, executor):
        self.binary, self.sweep, self.folder, self.executor = str(binary), sweep, folder, executor
        self.results = results_cache.ResultsCache(folder / "runs")
        self.program = [content_hash(each) for each in (binary, *sweep.plugins)]

    def netsim(self, point, *options):
        return self.executor.run([self.binary, *point.arguments(), *options], self.sweep.folder)

    def plan(self, point):
        """The key is a hash of what determines the answer: program and plugins, resolved configuration, seed, end, and the
        content of all files but the configuration's, whose comments and order do not matter."""
        code, output, errors = self.netsim(point, "--print-config", "--json", "-")
        if code != 0:
            return Plan(message=last_line(errors) or f"exit code {code}")
        return Plan(results_cache.run_key(self.program, json.loads(output), without=(point.config,)))

    def path(self, key):
        return self.results.path(key)

    def kept(self, key):
        return self.results.kept(key)

    def run(self, key, point):
        """Plays the point and keeps what came out, failures too."""
        code, output, errors = self.netsim(point, "--threads", "1", "--quiet", "--json", "-")
        record = {"point": point.title(), "arguments": point.arguments(), "exit_code": code}
        if code in ANSWERS:
            record["summary"] = json.loads(output)
        else:
            record["message"] = last_line(errors) or (f"killed by signal {-code}" if code < 0 else f"exit code {code}")
        self.results.keep(key, record)
        return record


def last_line(errors):
    """netsim's one line about what is wrong, without its name."""
    lines = errors.strip().splitlines()
    line = next((each for each in lines if each.startswith("netsim: error: ")), lines[-1] if lines else "")
    return line.removeprefix("netsim: error: ")


def figures(value, name=""):
    """A summary as flat (name, value) pairs; entries of a list by what names them, else by number."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from figures(inner, f"{name}.{key}" if name else key)
    elif isinstance(value, list) and all(isinstance(each, dict) for each in value) and value:
        for i, each in enumerate(value):
            label = each.get("below_bytes", i) if "below_bytes" in each else i
            yield from figures(each, f"{name}.{'above' if label is None else label}")
    elif isinstance(value, list):
        yield name, " | ".join(str(each) for each in value)
    else:
        yield name, value


def cell(value):
    if value is None:
        return ""
    return json.dumps(value) if isinstance(value, (bool, float)) else str(value)


def rows_of(sweep, points, plans, runner):
    """A dictionary for each point that has an answer or a message, in the order of the axes."""
    for point, plan in zip(points, plans):
        row = dict(zip(sweep.columns(), sweep.cells(point)))
        record = runner.kept(plan.key) if plan.key else {"message": plan.message}
        if record is None:
            continue
        summary = record.get("summary")
        row.update(run=plan.key, outcome=summary["outcome"] if summary else "failed", message=record.get("message", ""))
        if summary:
            row.update((name, cell(value)) for name, value in figures(summary) if name != "outcome")
        yield row


def table(sweep, rows):
    columns = dict.fromkeys(sweep.columns() + list(sweep_file.RESERVED))
    for row in rows:
        columns.update(dict.fromkeys(row))
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(columns), restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


class OwnFiles:
    """Which files of sweeps lie in a folder: `sweep.json` there names them, with a hash of each. A file that it does not
    name, or that has become another, is not the sweep's, and is never replaced or removed."""

    NAME = "sweep.json"

    def __init__(self, sweep, folder, names):
        self.sweep, self.folder, self.path = sweep, folder, folder / self.NAME
        self.plan, self.files = "", {}  # a hash of what the files show; by name the hash, None: whatever it is
        if self.path.exists() or self.path.is_symlink():
            self.read()
        elif any(folder.glob("runs/" + "[0-9a-f]" * 24 + ".json")):  # of a sweep that kept no such record yet
            self.files = dict.fromkeys(name for name in names if (folder / name).exists())
        for name in names:
            self.require_own(name)

    def read(self):
        try:
            value = json.loads(self.path.read_text(encoding="utf-8")) if self.path.is_file() else {}
            self.plan, self.files = value["plan"], dict(value["files"])
        except (ValueError, KeyError, TypeError):
            raise self.foreign(self.path) from None

    def save(self):
        execution.write_json(self.path, {"sweep": str(self.sweep.path), "plan": self.plan, "files": self.files})

    @staticmethod
    def foreign(path):
        return sweep_file.SweepError(f"{path}: is not replaced: no sweep has written it as it is (--out names another folder)")

    def is_own(self, name):
        path = self.folder / name
        if name not in self.files or path.is_symlink() or not path.is_file():
            return False
        return self.files[name] in (None, results_cache.content_hash(path))

    def require_own(self, name):
        path = self.folder / name
        if (path.exists() or path.is_symlink()) and not self.is_own(name):
            raise self.foreign(path)

    def clear(self, plan):
        """Removes the files of sweeps, which show something else than `plan`."""
        for name in self.files:
            if self.is_own(name):
                (self.folder / name).unlink()
        self.plan, self.files = plan, {}
        self.save()

    def put(self, name, make):
        """`make(path)` writes the file. It is named before, so that it is the sweep's however this ends."""
        self.require_own(name)
        self.files[name] = None
        self.save()
        made = make(self.folder / name)
        self.files[name] = results_cache.content_hash(self.folder / name)
        self.save()
        return made


def open_lock(path):
    """Opens the lock without changing a file that lies there."""
    number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(f"{path}: is no regular file")
    return os.fdopen(number, "r")


@contextlib.contextmanager
def owned(folder):
    """One sweep at a time has the folder; the lock goes with its process, however that ends."""
    (folder / "runs").mkdir(parents=True, exist_ok=True)
    try:
        lock = open_lock(folder / "lock")
    except OSError as error:
        raise sweep_file.SweepError(f"{folder}: the folder cannot be locked: {error}") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise sweep_file.SweepError(f"{folder}: another sweep is running there (--out names another folder)") from None
        for torn in [*folder.glob(".*.partial"), *folder.glob("*/.*.partial")]:
            if PARTIAL.fullmatch(torn.name) and torn.is_file() and not torn.is_symlink():
                torn.unlink()
        yield


def plan_all(runner, points):
    """The plans of all points, the first one's before the others': a path that does not exist is said once."""
    first = runner.plan(points[0])
    if first.message:
        raise sweep_file.SweepError(f"{runner.sweep.path}: the first point ({points[0].title()}) is refused: {first.message}")
    plans = [first] + [None] * (len(points) - 1)
    progress = Progress("points looked at", len(points))
    for i, plan in runner.executor.each(lambda i: runner.plan(points[i]), range(1, len(points))):
        plans[i] = plan
        progress.add(bool(plan.message))
    progress.finish()
    return plans


def missing_runs(runner, points, plans, retry):
    """A point for each key that has no answer yet."""
    missing = {}
    for point, plan in zip(points, plans):
        record = runner.kept(plan.key) if plan.key else {}
        if record is None or (retry and plan.key and "message" in record):
            missing.setdefault(plan.key, point)
    return missing


def run_missing(runner, points, plans, missing):
    """Plays what has no answer yet, each key once."""
    keys = {plan.key for plan in plans if plan.key}
    print(f"{len(points)} points, {len(keys)} runs: {len(keys) - len(missing)} kept, {len(missing)} to do, "
          f"{runner.executor.jobs} at a time", file=sys.stderr)
    progress = Progress("runs", len(missing))
    # In the order of their hashes, which is as good as shuffled: those done are a sample of those to come, for the ETA.
    for key, record in runner.executor.each(lambda key: runner.run(key, missing[key]), sorted(missing)):
        progress.add("message" in record)
    progress.finish()


def show_plan(runner, points, plans):
    for point, plan in zip(points, plans):
        record = runner.kept(plan.key) if plan.key else None
        state = f"refused: {plan.message}" if plan.message else "kept" if record else "to do"
        if record and "message" in record:
            state = f"failed: {record['message']}"
        print(f"{point.title()}: {state}\n    netsim {' '.join(point.arguments())}")


def draw(plots, rows, folder, own):
    """Draws into the folder of the sweep, or into one that --plot names. There the user has named the files, too."""
    folder.mkdir(parents=True, exist_ok=True)
    for plot in plots:
        path = folder / plot.file
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise OwnFiles.foreign(path)
        make = lambda file, plot=plot: plot.draw(rows, file)
        left_out = own.put(plot.file, make) if folder == own.folder else make(path)
        print(f"{path}" + (f": without {left_out} points that have no value" if left_out else ""), file=sys.stderr)


def finish(sweep, runner, points, plans, plots, own, options):
    rows = list(rows_of(sweep, points, plans, runner))
    own.put("results.csv", lambda path: execution.write_whole(path, table(sweep, rows)))
    failed = [row for row in rows if row["outcome"] == "failed"]
    for row in failed[:5]:
        print(f"failed: {', '.join(f'{name}={row[name]}' for name in sweep.columns())}: {row['message']}", file=sys.stderr)
    if failed:
        print(f"{len(failed)} of {len(rows)} points failed; column 'message' says why, --retry-failed runs them again",
              file=sys.stderr)
    print(f"{runner.folder / 'results.csv'}: {len(rows)} rows", file=sys.stderr)
    if options.plot is not None:
        draw(plots, rows, picture_folder(options, own.folder), own)
    return 1 if failed else 0


def picture_folder(options, folder):
    return pathlib.Path(options.plot).resolve() if options.plot else folder


def open_own_files(sweep, folder, plots, options):
    """Refuses files in the way before anything runs."""
    drawn = options.plot is not None and picture_folder(options, folder) == folder
    return OwnFiles(sweep, folder, ["results.csv"] + ([plot.file for plot in plots] if drawn else []))


def interrupt(*_):
    raise KeyboardInterrupt


def sweep_run(options):
    sweep = sweep_file.Sweep(options.sweep, options.plugin)
    plots = sweep_plot.read_plots(sweep)
    if options.plot is not None:
        require_plots(sweep, plots)
    folder = (options.out or pathlib.Path("results/sweeps") / pathlib.Path(options.sweep).stem).resolve()
    executor = LocalPool(options.jobs)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)
    with owned(folder):
        try:
            own = open_own_files(sweep, folder, plots, options)
            runner = Runner(execution.find_binary(options.binary), sweep, folder, executor)
            points = list(sweep.points(folder / "workloads"))
            plans = plan_all(runner, points)
            if options.dry_run:
                show_plan(runner, points, plans)
                return 0
            missing = missing_runs(runner, points, plans, options.retry_failed)
            plan = results_cache.digest([dataclasses.astuple(plan) for plan in plans], sweep.columns())
            if missing or own.plan != plan:  # no table of another sweep, should this one be interrupted
                own.clear(plan)
            run_missing(runner, points, plans, missing)
            return finish(sweep, runner, points, plans, plots, own, options)
        except KeyboardInterrupt:
            executor.stop()
            print(f"\ninterrupted: finished runs are kept in {folder}; run the same command again to continue", file=sys.stderr)
            return INTERRUPTED
        finally:
            executor.stop()


def require_plots(sweep, plots):
    """Said before hours of runs, not after them."""
    if not plots:
        raise sweep_file.SweepError(f"{sweep.path}: --plot, but the file describes no 'plots'")
    if not pictures.available():
        raise sweep_file.SweepError(f"--plot needs matplotlib, which {sys.executable} does not have: "
                                    "apt install python3-matplotlib")


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sweep", metavar="SWEEP.yaml")
    parser.add_argument("--out", type=pathlib.Path, metavar="DIR", help="where runs and table are kept "
                        "(default: results/sweeps/NAME)")
    execution.add_jobs(parser, "runs, each with one thread,")
    parser.add_argument("--plot", nargs="?", const="", metavar="DIR",
                        help="draw the pictures that the file describes, into DIR (default: beside the table)")
    parser.add_argument("--plugin", action="append", default=[], metavar="LIB.so",
                        help="a plugin of netsim that all runs load, besides those of the file; may be given several times")
    parser.add_argument("--retry-failed", action="store_true", help="run again what failed")
    parser.add_argument("--dry-run", action="store_true", help="show the points and check them; run nothing")
    execution.add_binary(parser)
    return parser.parse_args(arguments)


def main():
    try:
        return sweep_run(parse(sys.argv[1:]))
    except sweep_file.SweepError as error:
        print(f"sweep: error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
