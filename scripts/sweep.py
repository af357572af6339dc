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
import contextlib
import dataclasses
import pathlib
import shlex
import signal
import sys

from netsim_runs import execution, pictures, results_cache

try:
    from netsim_sweeps import plots as sweep_plots
    from netsim_sweeps import sweep_file
    from netsim_sweeps import table as sweep_table
    from netsim_sweeps.local_pool import INTERRUPTED, LocalPool, Progress
    from netsim_sweeps.own_files import OwnFiles, owned
    from netsim_sweeps.runner import Runner
except ModuleNotFoundError as error:
    raise SystemExit(f"scripts/sweep.py needs {error.name}, which {sys.executable} does not have: "
                     "apt install python3-yaml") from None


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


@contextlib.contextmanager
def current_table(table, missing, executor):
    """Keeps the table current. However the block ends, the table then has all runs that have ended."""
    table.start(missing)
    try:
        yield
    except BaseException:
        executor.stop()
        raise
    finally:
        table.close()


def run_missing(runner, points, plans, missing, table):
    """Plays what has no answer yet, each key once."""
    keys = {plan.key for plan in plans if plan.key}
    print(f"{len(points)} points, {len(keys)} runs: {len(keys) - len(missing)} kept, {len(missing)} to do, "
          f"{runner.executor.jobs} at a time", file=sys.stderr)
    progress = Progress("runs", len(missing))

    def run(key):
        record = runner.run(key, missing[key])
        table.add(key, record)
        return record

    # In the order of their hashes, which is as good as shuffled: those done are a sample of those to come, for the ETA.
    for _, record in runner.executor.each(run, sorted(missing)):
        progress.add("message" in record)
    progress.finish()


def show_plan(runner, points, plans):
    print(f"cd {shlex.quote(str(runner.sweep.folder))}  # the commands below name files from here")
    for point, plan in zip(points, plans):
        record = runner.kept(plan.key) if plan.key else None
        state = f"refused: {plan.message}" if plan.message else "kept" if record else "to do"
        if record and "message" in record:
            state = f"failed: {record['message']}"
        print(f"{point.title()}: {state}\n    {shlex.join(['netsim', *point.arguments()])}")


def draw(plots, rows, runner, folder, own):
    """Draws into the folder of the sweep, or into one that --plot names. There the user has named the files, too."""
    folder.mkdir(parents=True, exist_ok=True)
    for plot in plots:
        path = folder / plot.file
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise OwnFiles.foreign(path)
        make = lambda file, plot=plot: plot.draw(rows, file, runner.column)
        left_out = own.put(plot.file, make) if folder == own.folder else make(path)
        print(f"{path}" + (f": without {left_out} points that have no value" if left_out else ""), file=sys.stderr)


def finish(sweep, runner, rows, plots, own, options):
    failed = [row for row in rows if row["outcome"] == "failed"]
    for row in failed[:5]:
        print(f"failed: {', '.join(f'{name}={row[name]}' for name in sweep.columns())}: {row['message']}", file=sys.stderr)
    if failed:
        print(f"{len(failed)} of {len(rows)} points failed; column 'message' says why, --retry-failed runs them again",
              file=sys.stderr)
    print(f"{runner.folder / sweep_table.NAME}: {len(rows)} rows", file=sys.stderr)
    if options.plot is not None:
        draw(plots, rows, runner, picture_folder(options, own.folder), own)
    return 1 if failed else 0


def picture_folder(options, folder):
    return pathlib.Path(options.plot).resolve() if options.plot else folder


def open_own_files(sweep, folder, plots, options):
    """Refuses files in the way before anything runs."""
    drawn = options.plot is not None and picture_folder(options, folder) == folder
    return OwnFiles(sweep, folder, [sweep_table.NAME] + ([plot.file for plot in plots] if drawn else []))


def interrupt(*_):
    raise KeyboardInterrupt


def sweep_run(options):
    sweep = sweep_file.Sweep(options.sweep, options.plugin)
    plots = sweep_plots.read_plots(sweep)
    if options.plot is not None:
        require_plots(sweep, plots)
    folder = (options.out or pathlib.Path("results/sweeps") / pathlib.Path(options.sweep).stem).resolve()
    executor = LocalPool(options.jobs)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)
    with owned(folder):
        try:
            own = open_own_files(sweep, folder, plots, options)
            runner = Runner(execution.find_binary(options.binary), sweep, folder, executor,
                            [plot.table for plot in plots if plot.table])
            points = list(sweep.points(folder / "workloads"))
            plans = plan_all(runner, points)
            if options.dry_run:
                show_plan(runner, points, plans)
                return 0
            missing = missing_runs(runner, points, plans, options.retry_failed)
            plan = results_cache.digest([dataclasses.astuple(plan) for plan in plans], sweep.columns())
            if own.plan != plan:  # no table of another sweep, should this one be interrupted
                own.clear(plan)
            elif missing:  # no pictures that lack points
                own.clear(plan, but=(sweep_table.NAME,))
            table = sweep_table.LiveTable(sweep, points, plans, runner, own)
            with current_table(table, missing, executor):
                run_missing(runner, points, plans, missing, table)
            return finish(sweep, runner, table.finished(), plots, own, options)
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
