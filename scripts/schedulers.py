#!/usr/bin/env python3
"""Simulates training with each task scheduler, and prints what an iteration of each takes; or searches the sizes of one scheduler.

    scripts/schedulers.py [--workloads NAME...] [--networks NAME...] [--schedulers NAME...] [--csv TABLE.csv] [--plot PICTURE.svg]
                          [--study STUDY.yaml] [--out DIR] [--again] [--jobs N] [--binary NETSIM]
    scripts/schedulers.py --overlaps [--workloads NAME...] [--schedulers NAME...] [--csv TABLE.csv] [--plot PICTURE.svg]
    scripts/schedulers.py --search KIND --workload W.yaml --config C.yaml [--set PATH=VALUE...] [--csv TABLE.csv]

The study (configs/studies/schedulers/study.yaml) names workloads, with the exchanges of gradients, and networks. A run without a
scheduler comes first, then those that the study names. Kinds of `netsim --list task_scheduler` that it does not name run with their
defaults. Results are kept in DIR (results/schedulers), so a study that was stopped continues there.

--overlaps plays the study's `overlaps` instead: ways to rewrite the graph of a workload, or to order its communication, so that more of
it hides. Its table has the gain over the run without, beside the system's closed form and the published figure. Where the figure is
of the same setting, and so a number, the error is in percent. The picture has a bar for each.

Columns of the table: the time of an iteration, and the exposed communication in it, in milliseconds. That is the time in which a worker
does not compute. The gain is the time without a scheduler over the time with it. The last columns count, by rank and iteration, the
parts that were launched, and those launched before an earlier communication of the program. --plot draws both times
(python3-matplotlib).

--search KIND looks for the size of a part, and for the bytes or parts in flight, with the shortest iteration. It simulates a coarse grid
and then finer ones around the best, and prints all that it simulated. KIND is credit, priority or fifo.
"""
import argparse
import concurrent.futures
import csv
import dataclasses
import functools
import io
import itertools
import json
import math
import pathlib
import re
import sys
import tempfile

import evidence
from netsim_runs import execution, pictures, steps

STUDY = execution.ROOT / "configs" / "studies" / "schedulers" / "study.yaml"
NONE = "none"  # a run without a scheduler
NUMBER = re.compile(r"\d+(\.\d+)?")
OVERLAP_HEADER = ("workload", "configuration", "file", "way", "batch_ms", "exposed_ms", "gain", "closed_form", "published", "error_percent",
                  "produced_by")
HEADER = ("workload", "exchange", "network", "scheduler", "iteration_ms", "exposed_ms", "gain", "parts", "reordered", "produced_by")


@dataclasses.dataclass(frozen=True)
class Run:
    workload: str
    exchange: str
    network: str
    scheduler: str
    job: steps.Job
    batches: int = 1  # in an iteration
    closed_form: str = ""  # the gain by the system's closed form, and what its paper says
    published: str = ""

    def group(self):
        """Runs that differ in their scheduler only."""
        return self.workload, self.exchange, self.network


@dataclasses.dataclass(frozen=True)
class Study:
    networks: dict  # configuration by name
    workloads: dict  # (workload, overlays) by (name, exchange)
    schedulers: dict  # overlays by name, those of NONE first
    overlaps: tuple = ()  # runs of ways to overlap, which have no exchange

    def runs(self):
        """The runs with task schedulers."""
        for (network, config), ((workload, exchange), (path, overlays)), (scheduler, more) in itertools.product(
                self.networks.items(), self.workloads.items(), self.schedulers.items()):
            names = (workload, exchange, network, scheduler)
            yield Run(*names, steps.Job("; ".join(names), config, path, (*overlays, *more)))


def overlay(path, value):
    """An assignment as `netsim --set` takes it; JSON is YAML."""
    return f"{path}={value if isinstance(value, str) else json.dumps(value)}"


def list_kinds(binary):
    """The kinds of task schedulers that the program has."""
    lines = execution.run([str(binary), "--list", "task_scheduler"]).output.splitlines()
    return [line.split()[0] for line in lines[1:] if line.startswith("  ") and not line.startswith("   ")]


def read_study(path, kinds):
    """The study of a file, with those of `kinds` that it does not name; SystemExit where it is wrong."""
    import yaml

    def fail(what):
        raise SystemExit(f"{path}: {what}")

    def map_at(node, key, where):
        value = node.get(key) if isinstance(node, dict) else None
        if not isinstance(value, dict) or not value:
            fail(f"{where}'{key}' is missing, or is no map")
        return value

    def file_at(name):
        file = path.parent / str(name)
        return file.resolve() if file.is_file() else fail(f"there is no {file}")

    study = yaml.safe_load(path.read_text(encoding="utf-8"))
    networks = {str(name): file_at(file) for name, file in map_at(study, "networks", "").items()}
    workloads = {}
    for name, entry in map_at(study, "workloads", "").items():
        overlays = [overlay(f"workload.{key}", value) for key, value in (entry.get("set") or {}).items()]
        for exchange, node in map_at(entry, "exchanges", f"{name}: ").items():
            workloads[name, exchange] = file_at(entry.get("workload")), (*overlays, overlay("workload.exchange", node))
    named = map_at(study, "schedulers", "")
    for kind in named:
        if kind not in kinds:
            fail(f"schedulers: no task scheduler '{kind}'; there are {', '.join(kinds)}")
    schedulers = {NONE: ()}
    for kind in [*named, *(kind for kind in kinds if kind not in named)]:
        for label, parameters in (named.get(kind) or {kind: {}}).items():
            schedulers[label] = (overlay("scheduling.tasks", {"kind": kind, **(parameters or {})}),)
    overlaps = []
    for name, entry in (study.get("overlaps") or {}).items():
        config, workload = file_at(entry.get("config")), file_at(entry.get("workload"))
        ways = map_at(entry, "ways", f"{name}: ")
        if NONE not in ways:
            fail(f"{name}: ways: there is no '{NONE}', which gains are over")
        for key in ("configuration", "batches", "figures"):
            for way in entry.get(key) or {}:
                if way not in ways:
                    fail(f"{name}: {key}: no way '{way}'; there are {', '.join(ways)}")
        for way, values in ways.items():
            overlays = [overlay(f"workload.{key}", value) for key, value in (values or {}).items()]
            overlays += [overlay(key, value) for key, value in ((entry.get("configuration") or {}).get(way) or {}).items()]
            job = steps.Job(f"{name}; {way}", config, workload, tuple(overlays))
            figures = (entry.get("figures") or {}).get(way) or {}
            overlaps.append(Run(name, "", config.stem, way, job, (entry.get("batches") or {}).get(way, 1),
                                str(figures.get("closed_form", "")), str(figures.get("published", ""))))
    return Study(networks, workloads, schedulers, tuple(overlaps))


def play(player, job):
    """What a run took: of an earlier one, or of one now."""
    key = player.key(job)
    kept = player.results.kept(key)
    if kept is not None and not player.again:
        return kept
    with tempfile.TemporaryDirectory() as folder:
        player.run(job, "--quiet", "--set", "output.max_rows=0", "--out", folder)
        result = {"name": job.name, **read_result(pathlib.Path(folder))}
    player.results.keep(key, result)
    return result


def read_result(folder):
    """Of what netsim wrote.

    The computing time is that of rank 0, a worker; the means of summary.json are over servers, too.
    """
    of = json.loads((folder / "summary.json").read_text(encoding="utf-8"))["jobs"][0]
    with open(folder / "ranks.csv", encoding="utf-8") as lines:
        compute = int(next(csv.DictReader(lines))["compute_ps"]) * 1e-12 / of["iterations_done"]
    return {"iteration_s": of["iteration_time_s"], "exposed_s": of["iteration_time_s"] - compute,
            "turns": of["ranks"] * of["iterations_done"], "scheduling": of["scheduling"]}


def play_all(player, jobs, at_a_time):
    """The results by job, some at a time."""
    results = {}
    with concurrent.futures.ThreadPoolExecutor(at_a_time) as pool:
        futures = {pool.submit(play, player, job): job for job in jobs}
        try:
            for future in concurrent.futures.as_completed(futures):
                results[futures[future]] = future.result()
                print(f"{futures[future].name} ({len(results)} of {len(futures)})", file=sys.stderr)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return results


# ---- Tables

def table(runs, results, produced_by):
    """The cells of the table, a row for each run."""
    without = {run.group(): results[run.job]["iteration_s"] for run in runs if run.scheduler == NONE}
    rows = []
    for run in runs:
        result = results[run.job]
        counts = result["scheduling"] or {}
        gain = f"{without[run.group()] / result['iteration_s']:.3f}" if run.group() in without else ""
        rows.append([run.workload, run.exchange, run.network, run.scheduler, f"{1e3 * result['iteration_s']:.2f}",
                     f"{1e3 * result['exposed_s']:.2f}", gain,
                     *(f"{counts[key] / result['turns']:.1f}" if counts else "" for key in ("parts", "reordered")), produced_by])
    return rows


def overlap_table(runs, results):
    """The cells of the table of ways to overlap. Times are those of a batch."""
    time = {run: 1e3 * results[run.job]["iteration_s"] / run.batches for run in runs}
    without = {run.group(): time[run] for run in runs if run.scheduler == NONE}
    rows = []
    for run in runs:
        exposed = 1e3 * results[run.job]["exposed_s"] / run.batches
        gain = without[run.group()] / time[run] if run.group() in without else None
        miss = f"{100 * (gain / float(run.published) - 1):+.1f}" if gain and NUMBER.fullmatch(run.published) else ""
        rows.append([run.workload, from_root(run.job.config), from_root(run.job.workload), run.scheduler, f"{time[run]:.3f}",
                     f"{exposed:.3f}", f"{gain:.3f}" if gain else "", run.closed_form, run.published, miss,
                     "scripts/schedulers.py --overlaps"])
    return rows


def from_root(path):
    return (path.relative_to(execution.ROOT) if path.is_relative_to(execution.ROOT) else path).as_posix()


def write_csv(path, header, rows):
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    execution.write_whole(path, text.getvalue())


# ---- The picture

def plot(path, runs, results):
    """A line for each scheduler: a marker at the time of an iteration, behind the communication that is exposed."""
    pyplot = pictures.pyplot()
    workloads, networks, exchanges, schedulers = (list(dict.fromkeys(getattr(run, key) for run in runs))
                                                  for key in ("workload", "network", "exchange", "scheduler"))
    figure, grid = pyplot.subplots(len(workloads), len(networks), squeeze=False, sharey=True,
                                   figsize=(1.6 + 2.8 * len(networks), 0.8 + len(workloads) * (0.6 + 0.19 * len(schedulers))))
    for row, workload in zip(grid, workloads):
        for axes, network in zip(row, networks):
            shown = [run for run in runs if (run.workload, run.network) == (workload, network)]
            draw_panel(axes, shown, results, exchanges, schedulers)
            axes.set_title(f"{workload}, {network}", fontsize=9)
    for axes in grid[-1]:
        axes.set_xlabel("time of an iteration, ms", fontsize=8)
    handles = {label: handle for axes in grid.flat for handle, label in zip(*axes.get_legend_handles_labels())}
    figure.legend(handles.values(), handles, loc="lower center", ncol=len(handles), fontsize=8, frameon=False,
                  title="marker: time of an iteration; line before it: exposed communication", title_fontsize=8)
    figure.tight_layout(rect=(0, 0.55 / figure.get_figheight(), 1, 1))
    pictures.save(figure, path)


def draw_panel(axes, runs, results, exchanges, schedulers):
    there = [exchange for exchange in exchanges if any(run.exchange == exchange for run in runs)]
    for run in runs:
        place, result, number = there.index(run.exchange), results[run.job], exchanges.index(run.exchange)
        y = schedulers.index(run.scheduler) + 0.26 * (place - (len(there) - 1) / 2)
        end, exposed = 1e3 * result["iteration_s"], 1e3 * result["exposed_s"]
        axes.plot([end - exposed, end], [y, y], color=pictures.COLOURS[number], linewidth=1.6, solid_capstyle="butt")
        style = {**pictures.style(number), "markersize": 3.5, "linestyle": ""}
        axes.plot([end], [y], label=run.exchange if run.scheduler == NONE else None, **style)
    for place in range(0, len(schedulers), 2):
        axes.axhspan(place - 0.5, place + 0.5, color="#f2f2f2", zorder=0)
    axes.set_yticks(range(len(schedulers)), schedulers)
    axes.set_ylim(len(schedulers) - 0.5, -0.5)
    axes.set_xlim(0, 1.05 * max(1e3 * results[run.job]["iteration_s"] for run in runs))
    axes.tick_params(labelsize=7.5)


def plot_overlaps(path, rows):
    """A bar for each way, with marks at the closed form and at the published gain. What is published of other settings is a line from its
    least, or from 1, to its most."""
    pyplot = pictures.pyplot()
    shown = [row for row in rows if row[3] != NONE]
    figure, axes = pyplot.subplots(figsize=(7.5, 0.9 + 0.21 * len(shown)))
    for place, row in enumerate(shown):
        axes.barh(place, float(row[6]) - 1, left=1, height=0.6, color=pictures.COLOURS[0], label="netsim" if place == 0 else None)
    for column, label, number in ((7, "closed form", 1), (8, "published", 2)):
        points = [(float(row[column]), place) for place, row in enumerate(shown) if NUMBER.fullmatch(row[column])]
        style = {**pictures.style(number), "markersize": 5, "linestyle": ""}
        axes.plot(*zip(*points), label=label, **style)
    for place, row in enumerate(shown):
        span = [float(number) for number in re.findall(r"\d+\.\d+|\d+", row[8])]
        if not NUMBER.fullmatch(row[8]) and span:
            axes.plot([span[0] if len(span) > 1 else 1, span[-1]], [place + 0.38] * 2, color=pictures.COLOURS[2], linewidth=1.2)
    axes.set_xlim(0.9, 1.1 * max(float(row[6]) for row in shown))
    axes.set_yticks(range(len(shown)), [f"{row[3]}: {row[0]}" for row in shown], fontsize=7)
    axes.set_ylim(len(shown) - 0.5, -0.5)
    axes.axvline(1, color="#808080", linewidth=0.8)
    axes.set_xlabel("time without over time with", fontsize=8)
    axes.tick_params(axis="x", labelsize=7.5)
    axes.legend(fontsize=7.5, frameon=False)
    figure.tight_layout()
    pictures.save(figure, path)


# ---- The search

COARSE = tuple(itertools.product((250_000 * 4**i for i in range(5)), (1, 4, 16)))  # parts of 250 KB to 64 MB
FACTORS = (2, math.sqrt(2))  # of the finer grids


def sized(kind, part, number):
    """A scheduler with parts of so many bytes, of which so many are in flight."""
    bound = {"credit": f"{part * number} B"} if kind == "credit" else {"in_flight": number}
    return {"kind": kind, "part": f"{part} B", **bound}


def search(measure):
    """Finds the point (part, number) with the least time; all times by point. `measure` returns the times of a list of points."""
    times = {}

    def look_at(points):
        times.update(measure([point for point in points if point not in times]))

    look_at(COARSE)
    for factor in FACTORS:
        centre = None
        while centre != best(times):  # a grid whose centre is the best is the last one of its factor
            centre = best(times)
            around = (1 / factor, 1, factor)
            look_at(sorted({(max(1, round(centre[0] * wide)), max(1, round(centre[1] * high)))
                            for wide, high in itertools.product(around, around)}))
    return times


def best(times):
    """The point with the least time; of equal ones the one with the smallest parts and the fewest in flight."""
    return min(times, key=lambda point: (times[point], point))


def landscape(times):
    """The header and rows of a table: parts by row, numbers in flight by column; a star is at the best."""
    parts, numbers = (sorted({point[place] for point in times}) for place in (0, 1))
    found = best(times)

    def cell(point):
        return "" if point not in times else f"{1e3 * times[point]:.2f}{'*' if point == found else ''}"
    return ["part_KB", *(f"{number}_in_flight_ms" for number in numbers)], [
        [f"{part / 1e3:.0f}", *(cell((part, number)) for number in numbers)] for part in parts]


def print_search(options, player):
    def measure(points):
        jobs = {point: steps.Job(f"{options.search}.{point[0]}B.{point[1]}", options.config, options.workload,
                                 (*options.set, overlay("scheduling.tasks", sized(options.search, *point)))) for point in points}
        results = play_all(player, jobs.values(), options.jobs)
        return {point: results[job]["iteration_s"] for point, job in jobs.items()}

    times = search(measure)
    without = play(player, steps.Job(NONE, options.config, options.workload, tuple(options.set)))["iteration_s"]
    header, rows = landscape(times)
    print("\n".join(evidence.aligned(header, rows)))
    found = best(times)
    print(f"best: {sized(options.search, *found)}: {1e3 * times[found]:.2f} ms, {without / times[found]:.3f} times as fast as without "
          f"a scheduler ({1e3 * without:.2f} ms); {len(times)} simulated")
    if options.csv:
        write_csv(options.csv, header, [[cell.rstrip("*") for cell in row] for row in rows])


# ---- The command line

def choose(parser, given, there, what):
    for name in given:
        if name not in there:
            parser.error(f"no {what} '{name}'; there are {', '.join(dict.fromkeys(there))}")
    return [name for name in dict.fromkeys(there) if not given or name in given]


def print_study(parser, options, player):
    study = read_study(options.study, list_kinds(player.binary))
    if options.overlaps:
        return print_overlaps(parser, options, player, study.overlaps)
    workloads = choose(parser, options.workloads, [name for name, _ in study.workloads], "workload")
    networks = choose(parser, options.networks, study.networks, "network")
    schedulers = choose(parser, options.schedulers, study.schedulers, "scheduler")
    runs = [run for run in study.runs()
            if run.workload in workloads and run.network in networks and run.scheduler in (NONE, *schedulers)]
    results = play_all(player, [run.job for run in runs], options.jobs)
    rows = table(runs, results, "scripts/schedulers.py")
    print("\n".join(evidence.aligned(HEADER[:-1], [row[:-1] for row in rows])))
    if options.csv:
        write_csv(options.csv, HEADER, rows)
    if options.plot:
        plot(options.plot, runs, results)


def print_overlaps(parser, options, player, overlaps):
    workloads = choose(parser, options.workloads, [run.workload for run in overlaps], "workload")
    ways = choose(parser, options.schedulers, [run.scheduler for run in overlaps], "scheduler")
    runs = [run for run in overlaps if run.workload in workloads and run.scheduler in (NONE, *ways)]
    runs = [run for run in runs if any(other.group() == run.group() and other.scheduler != NONE for other in runs)]
    rows = overlap_table(runs, play_all(player, [run.job for run in runs], options.jobs))
    columns = [0, 3, 4, 5, 6, 7, 8, 9]
    print("\n".join(evidence.aligned([OVERLAP_HEADER[i] for i in columns], [[row[i] for i in columns] for row in rows])))
    if options.csv:
        write_csv(options.csv, OVERLAP_HEADER, rows)
    if options.plot:
        plot_overlaps(options.plot, rows)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for key in ("workload", "network", "scheduler"):
        parser.add_argument(f"--{key}s", nargs="+", default=[], metavar="NAME", help="these only, as the table calls them")
    path = functools.partial(parser.add_argument, type=pathlib.Path)
    path("--study", default=STUDY, metavar="STUDY.yaml", help="another study")
    parser.add_argument("--overlaps", action="store_true", help="the ways to overlap instead of task schedulers")
    path("--csv", metavar="TABLE.csv", help="write the table to this file, too")
    path("--plot", metavar="PICTURE.svg", help="draw the table (python3-matplotlib)")
    parser.add_argument("--search", choices=("credit", "priority", "fifo"), help="search the sizes of this scheduler")
    path("--workload", metavar="W.yaml", help="workload of the search")
    path("--config", metavar="C.yaml", help="configuration of the search")
    parser.add_argument("--set", action="append", default=[], metavar="PATH=VALUE", help="of the search, as of netsim")
    path("--out", default=execution.ROOT / "results" / "schedulers", metavar="DIR",
         help="where results are kept (default: results/schedulers)")
    parser.add_argument("--again", action="store_true", help="simulate again what is there")
    execution.add_jobs(parser, "runs")
    execution.add_binary(parser)
    options = parser.parse_args()
    if options.plot and options.plot.suffix not in pictures.ENDINGS:
        parser.error(f"--plot: {options.plot}: a picture's name ends in {', '.join(pictures.ENDINGS)}")
    if options.search and not (options.workload and options.config):
        parser.error("--search needs --workload and --config")
    if options.search and options.overlaps:
        parser.error("--overlaps belongs to the study, not to --search")
    if options.overlaps and options.networks:
        parser.error("--networks chooses networks of task schedulers; ways to overlap have one each")
    if not options.search and (options.workload or options.config or options.set):
        parser.error("--workload, --config and --set belong to --search")
    return parser, options


def main():
    parser, options = parse()
    player = steps.Player(execution.find_binary(options.binary), options.out, options.again)
    if options.search:
        print_search(options, player)
    else:
        print_study(parser, options, player)


if __name__ == "__main__":
    main()
