#!/usr/bin/env python3
"""Runs the benchmarks of configs/bench/ beside the bare model and prints a Markdown table.

    scripts/bench.py                            # all but the main job
    scripts/bench.py P128 P1024 --repeat 5 --out speed.md
    scripts/bench.py P1024 main --threads 1 2 8 # wall time by number of threads, and whether the answers agree
    scripts/bench.py main-16-layers --outputs   # what tables, timelines and the page cost beside a run without them
    scripts/bench.py P128 -- --seed 7           # what follows -- goes to netsim
    scripts/bench.py --list

It builds nothing of netsim's: `--binary` is what it runs. Times are CPU times of the process, user and system, from
start to end, set-up included; the best of `--repeat` runs. The bare model (`--bare`: its binary or its source, which is
then compiled into a temporary directory) does the least work that a packet simulator can do with the same packets:
no PFC, ECN, congestion control or statistics. Its runs alternate with netsim's, so that both meet the same machine;
of the bucket exponents that suit a size the faster one counts. Both rates are data packet-hops a second: netsim's
`packet_hops` are data packets times links, and of the bare model's the ACKs, half of what it prints, are left out.
On a machine that others use too only the ratio means anything. Without --threads everything runs on one thread.

With --outputs the runs of all kinds of output alternate. A ratio is the median of the runs' own ratios to the run beside them that
writes nothing, or that writes the tables only.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

from netsim_runs import execution

ROOT = execution.ROOT
BENCH = "configs/bench/"
LINE_RATE = ("transport.congestion_control=none",)


@dataclasses.dataclass
class Case:
    config: str
    workload: str
    overlays: tuple = ()
    bare: tuple = ()  # K, megabytes and the bucket exponents to try, where the bare model can do this work


P128 = Case(BENCH + "permutation_k8.yaml", BENCH + "permutation_10MB.yaml", bare=(8, 10, (13,)))
P1024 = Case(BENCH + "permutation_k16.yaml", BENCH + "permutation_10MB_1024.yaml", bare=(16, 10, (8, 10)))
P8192 = Case(BENCH + "permutation_k32.yaml", BENCH + "permutation_1MB_8192.yaml", bare=(32, 1, (8, 10)))
P65536 = Case(BENCH + "permutation_k64.yaml", BENCH + "permutation_256KB_65536.yaml", bare=(64, 0.256, (8, 10)))
RAILS8192 = Case(BENCH + "permutation_rails_8192.yaml", BENCH + "permutation_1MB_8192.yaml")
A128 = Case(BENCH + "all_to_all_k8.yaml", BENCH + "all_to_all_1MB.yaml")
R128 = Case(BENCH + "ring_k8.yaml", BENCH + "ring_1MB_254.yaml")


def with_overlays(case, *overlays):
    return dataclasses.replace(case, overlays=overlays)


CASES = {
    "P128": P128,
    "P1024": P1024,
    "P8192": P8192,
    "P65536": P65536,
    "rails-8192": RAILS8192,
    "rails-65536": Case(BENCH + "rails_65536.yaml", BENCH + "next_host_of_8.yaml"),
    "torus-32768": Case(BENCH + "torus_32768.yaml", BENCH + "next_host.yaml"),
    "P128-ack16": with_overlays(P128, "transport.acknowledge.every=16"),
    "P1024-ack16": with_overlays(P1024, "transport.acknowledge.every=16"),
    "P128-line-rate": with_overlays(P128, *LINE_RATE),
    "P1024-line-rate": with_overlays(P1024, *LINE_RATE),
    "A128": A128,
    "A128-line-rate": with_overlays(A128, *LINE_RATE),
    "R128": R128,
    "R128-line-rate": with_overlays(R128, *LINE_RATE),
    "ring-1024": Case(BENCH + "ring_all_reduce_k16.yaml", BENCH + "ring_all_reduce_32MB.yaml"),
    "incast-128": Case(BENCH + "incast_128to1.yaml", BENCH + "incast_128to1_10MB.yaml"),
    "main": Case("configs/fat_tree.yaml", "traces/gpt3_ptdp.pb"),
    # The main job with a sixth of its layers and half of its microbatches: as many tasks and messages for each packet.
    "main-16-layers": Case("configs/fat_tree.yaml", "configs/workloads/gpt3_ptdp.yaml",
                           overlays=("workload.model.layers=16", "workload.microbatches=8")),
}
NOT_BY_DEFAULT = {"main", "main-16-layers"}

# What a run with --out writes besides its tables, by the names of result sinks.
OUTPUTS = {"tables": "", "perfetto": "[perfetto]", "perfetto without messages": "[{kind: perfetto, messages: false}]",
           "kineto": "[kineto]", "nccl_inspector": "[nccl_inspector]", "all three": "[perfetto, kineto, nccl_inspector]"}


def bare_binary(path, directory):
    """The bare model to run, compiled where `path` is its source; None where that cannot be."""
    if path is None or not path.exists():
        return None
    if path.suffix != ".cpp":
        return path
    compiler = next((c for c in (os.environ.get("CXX"), "g++", "c++") if c and shutil.which(c)), None)
    if compiler is None:
        return None
    binary = pathlib.Path(directory) / "bare_model"
    subprocess.run([compiler, "-O3", "-march=native", "-o", str(binary), str(path)], check=True)
    return binary


def bare_rate(binary, k, megabytes, exponents):
    """Data packet-hops a second of CPU time, with the best exponent."""
    hosts = k**3 // 4
    hops = hosts * int(megabytes * 1e6 / 4096 + 1) * 6  # every flow crosses the core: six links
    best = 0.0
    for exponent in exponents:
        cost = execution.run([str(binary), str(k), str(megabytes), str(exponent)])
        printed = float(re.search(r"pkthops=([\d.]+)M", cost.output).group(1)) * 1e6
        if abs(printed - 2 * hops) > 0.051e6:
            raise SystemExit(f"the bare model counted {printed:.0f} hops, expected {2 * hops} (data and ACKs)")
        best = max(best, hops / cost.seconds)
    return best


def netsim_call(binary, case, threads, extra):
    call = [str(binary), "--threads", str(threads), "--config", str(ROOT / case.config), "--workload", str(ROOT / case.workload)]
    for overlay in case.overlays:
        call += ["--set", overlay]
    return call + ["--quiet", "--json", "-", *extra]


@dataclasses.dataclass
class Result:
    summary: dict
    costs: list
    bare_rates: list  # of the runs beside them; empty where there is none

    @property
    def hops(self):
        return self.summary["packet_hops"]["total"]

    @property
    def seconds(self):
        return min(cost.seconds for cost in self.costs)

    def ratios(self):
        return [self.hops / c.seconds / rate for c, rate in zip(self.costs, self.bare_rates)]


def measure_case(name, case, options, bare):
    result = Result({}, [], [])
    for _ in range(options.repeat):
        if bare and case.bare:
            result.bare_rates.append(bare_rate(bare, *case.bare))
        cost = execution.run(netsim_call(options.binary, case, 1, options.extra))
        summary = json.loads(cost.output)
        if result.summary and summary != result.summary:
            raise SystemExit(f"{name}: two runs, two summaries")
        result.summary = summary
        result.costs.append(cost)
    return result


def thread_rows(name, case, options):
    """A row for each number of threads: the least wall time, and what it is of the first number's."""
    best, summary = {}, None
    for _ in range(options.repeat):
        for threads in options.threads:
            cost = execution.run(netsim_call(options.binary, case, threads, options.extra))
            answer = json.loads(cost.output)
            if summary is not None and answer != summary:
                raise SystemExit(f"{name}: {threads} threads give another summary")
            summary = answer
            if threads not in best or cost.wall < best[threads].wall:
                best[threads] = cost
    first = best[options.threads[0]].wall
    for threads in options.threads:
        cost = best[threads]
        yield (f"| {name} | {threads} | {cost.wall:.2f} | {cost.seconds:.2f} | {first / cost.wall:.2f} | "
               f"{cost.megabytes:.0f} |")


def output_calls(call, directory, page):
    """The calls by kind of output, and the directory of each. `page` says whether netsim writes a page that --report leaves out."""
    calls = {"nothing": (call, None)}
    without = ["--report", "no"] if page else []
    for name, sinks in OUTPUTS.items():
        out = pathlib.Path(directory) / name.replace(" ", "_")
        calls[name] = ([*call, "--out", str(out), *without, *(["--set", f"output.sinks={sinks}"] if sinks else [])], out)
    if page:
        out = pathlib.Path(directory) / "page"
        calls["tables and page"] = ([*call, "--out", str(out)], out)
    return calls


def output_rows(name, case, options):
    """A row for each kind of output: CPU time, and what it is of the runs beside it without output and with tables only."""
    call = netsim_call(options.binary, case, 1, options.extra)
    with tempfile.TemporaryDirectory() as directory:
        calls = output_calls(call, directory, "--report" in execution.run([str(options.binary), "--help"]).output)
        costs, sizes, prints = {kind: [] for kind in calls}, dict.fromkeys(calls, 0), set()
        for _ in range(options.repeat):
            for kind, (words, out) in calls.items():
                costs[kind].append(execution.run(words))
                prints.add(json.dumps(json.loads(costs[kind][-1].output)["fingerprint"]))
                if out is not None:
                    sizes[kind] = sum(path.stat().st_size for path in out.iterdir()) / 1e6
                    shutil.rmtree(out)
    if len(prints) != 1:
        raise SystemExit(f"{name}: outputs change the run")

    def ratio(kind, other):
        return statistics.median(a.seconds / b.seconds for a, b in zip(costs[kind], costs[other]))

    for kind, of_kind in costs.items():
        yield (f"| {name} | {kind} | {statistics.median(cost.seconds for cost in of_kind):.2f} | {ratio(kind, 'nothing'):.3f} | "
               f"{ratio(kind, 'tables'):.3f} | {max(cost.megabytes for cost in of_kind):.0f} | {sizes[kind]:.1f} |")


OUTPUTS_HEADER = ("| benchmark | output | CPU s | to no output | to tables | MB of memory | MB of files |\n"
                  "|---|---|---|---|---|---|---|")

THREADS_HEADER = ("| benchmark | threads | wall s | CPU s | speed-up | MB |\n"
                  "|---|---|---|---|---|---|")


def row(name, result):
    rate = result.hops / result.seconds
    cells = [name, f"{result.summary['packets']:,}", f"{result.hops:,}", f"{result.summary['events']:,}",
             f"{result.seconds:.2f}", f"{rate / 1e6:.2f}"]
    if result.bare_rates:
        best = max(result.bare_rates)
        ratios = result.ratios()
        cells += [f"{best / 1e6:.2f}", f"{rate / best:.2f} ({min(ratios):.2f} to {max(ratios):.2f})"]
    else:
        cells += ["", ""]
    cells.append(f"{max(cost.megabytes for cost in result.costs):.0f}")
    return "| " + " | ".join(cells) + " |"


HEADER = ("| benchmark | packets | data packet-hops | events | CPU s | M hops/s | bare model, M hops/s | ratio (of single runs) | MB |\n"
          "|---|---|---|---|---|---|---|---|---|")


def machine():
    info = pathlib.Path("/proc/cpuinfo")
    model = re.search(r"model name\s*:\s*(.+)", info.read_text()) if info.exists() else None
    return f"{model.group(1) if model else 'unknown CPU'}, {os.cpu_count()} cores"


def commit():
    def git(*arguments):
        done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False)
        return done.stdout.strip() if done.returncode == 0 else ""
    return (git("rev-parse", "--short=12", "HEAD") or "unknown") + (" with changes" if git("status", "--porcelain") else "")


def heading(options):
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    text = f"{machine()}; load {load}; commit {commit()}; {options.repeat} runs each"
    return text + (f"; netsim {' '.join(options.extra)}" if options.extra else "")


def parse(arguments):
    extra = []
    if "--" in arguments:
        split = arguments.index("--")
        arguments, extra = arguments[:split], arguments[split + 1:]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="which; none: all but the main job")
    execution.add_binary(parser)
    parser.add_argument("--bare", type=pathlib.Path, default=ROOT.parent / "shared/reference/bare_model.cpp",
                        help="the bare model, its binary or its .cpp")
    parser.add_argument("--threads", type=int, nargs="+", metavar="N", help="compare these numbers of threads")
    parser.add_argument("--outputs", action="store_true", help="measure what the tables, the timelines and the page cost")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--out", type=pathlib.Path, help="write the table to this file too")
    parser.add_argument("--list", action="store_true", help="list the benchmarks")
    options = parser.parse_args(arguments)
    options.extra = extra
    if options.outputs and options.threads:
        parser.error("--outputs and --threads exclude each other")
    unknown = [name for name in options.names if name not in CASES]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(CASES)}")
    if not options.list:
        options.binary = execution.find_binary(options.binary)
    return options


def main():
    options = parse(sys.argv[1:])
    if options.list:
        for name, case in CASES.items():
            print(f"{name:<16} {case.config} {case.workload} {' '.join(case.overlays)}")
        return 0
    rows_of = output_rows if options.outputs else thread_rows if options.threads else None
    lines = [heading(options), "", OUTPUTS_HEADER if options.outputs else THREADS_HEADER if options.threads else HEADER]
    print("\n".join(lines), flush=True)
    with tempfile.TemporaryDirectory() as directory:
        bare = None if rows_of else bare_binary(options.bare, directory)
        if bare is None and not rows_of:
            print("no bare model: --bare, or no compiler; without ratios", file=sys.stderr)
        for name in options.names or [n for n in CASES if n not in NOT_BY_DEFAULT]:
            if rows_of:
                rows = list(rows_of(name, CASES[name], options))
            else:
                rows = [row(name, measure_case(name, CASES[name], options, bare))]
            lines += rows
            print("\n".join(rows), flush=True)
    if options.out:
        options.out.write_text("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
