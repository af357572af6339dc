#!/usr/bin/env python3
"""Compares what --dry-run predicts with what the run then takes, for the benchmarks of scripts/bench.py.

    scripts/dry_run_check.py                     # all but the main job
    scripts/dry_run_check.py P8192 main --out check.md

Predicted over measured: packets and packet-hops, largest resident memory, seconds. Seconds are the smaller of CPU and
wall time, with one thread therefore CPU time, on both sides: other users of the machine disturb it least that way, but
caches and memory are shared all the same.
"""

import argparse
import json
import pathlib
import sys

import bench
from netsim_runs import execution

HEADER = ("| benchmark | packets, predicted / counted | packet-hops | MB | seconds | calibrated with |\n"
          "|---|---|---|---|---|---|")


def number(value):
    return f"{value:,.0f}" if value >= 10 else f"{value:.2f}"


def ratio(predicted, measured):
    return f"{number(predicted)} / {number(measured)} = {predicted / measured:.2f}" if measured else number(predicted)


def share(predicted, counted):
    return "exact" if predicted == counted else f"{predicted:,} / {counted:,} = {predicted / counted:.4f}"


def row(name, case, options):
    call = bench.netsim_call(options.binary, case, options.threads, options.extra)
    prediction = json.loads(execution.run(call + ["--dry-run"]).output)
    cost = execution.run(call)
    summary = json.loads(cost.output)
    calibration = prediction["calibration"]
    if calibration["complete"]:
        piece = "the whole run"
    else:
        piece = f"{calibration['run_s']:.1f} s, {100 * calibration['share_of_work']:.2g} %"
    return "| " + " | ".join([
        name,
        share(prediction["packets"], summary["packets"]),
        share(prediction["packet_hops"]["total"], summary["packet_hops"]["total"]),
        ratio(prediction["memory_bytes"] / 1e6, cost.megabytes),
        ratio(prediction["minutes"] * 60, min(cost.seconds, cost.wall)),
        piece]) + " |"


def main():
    extra = []
    arguments = sys.argv[1:]
    if "--" in arguments:
        split = arguments.index("--")
        arguments, extra = arguments[:split], arguments[split + 1:]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="which; none: all but the main job")
    execution.add_binary(parser)
    parser.add_argument("--threads", type=int, default=1, metavar="N")
    parser.add_argument("--out", type=pathlib.Path, help="write the table to this file too")
    options = parser.parse_args(arguments)
    options.extra = extra
    unknown = [name for name in options.names if name not in bench.CASES]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(bench.CASES)}")
    options.binary = execution.find_binary(options.binary)
    options.repeat = 1
    lines = [bench.heading(options), "", HEADER]
    print("\n".join(lines), flush=True)
    for name in options.names or [n for n in bench.CASES if n not in bench.NOT_BY_DEFAULT]:
        lines.append(row(name, bench.CASES[name], options))
        print(lines[-1], flush=True)
    if options.out:
        options.out.write_text("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
