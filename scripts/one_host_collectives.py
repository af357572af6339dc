#!/usr/bin/env python3
"""netsim against measured collectives of 2, 4 and 8 GPUs of one host: runs every curve and prints the table of errors.

    scripts/one_host_collectives.py CURVES.csv [--gpus h100_sxm ...] [--ranks 2 4 8] [--operations all_gather ...] [--sizes] [--set KEY=VALUE]

CURVES.csv has the columns gpu, op, gpus, bytes and us of nccl-tests out of place; a size that was measured several times counts
with its median. The launch constant is the only figure that is taken from the measurements: one for each GPU type and number of
GPUs, from the smallest all-reduce. It is what that measurement takes beyond netsim's time, and may be negative where NCCL's
tables say more than was measured. An error is the mean of |ln(netsim / measured)| over the sizes, as a percentage.
"""
import argparse
import collections
import concurrent.futures
import csv
import json
import math
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from netsim_runs import execution

OPERATIONS = {"all_reduce": "all_reduce", "all_gather": "all_gather", "reduce_scatter": "reduce_scatter", "alltoall": "all_to_all"}
# The host kind of each GPU type, and what its configuration says besides.
HOSTS = {"a100": "{kind: dgx_a100}", "h100": "{kind: dgx_h100}", "h200": "{kind: dgx_h100}", "b200": "{kind: dgx_b200}",
         "b300": "{kind: dgx_b200}", "gb200": "{kind: gb200}", "gb300": "{kind: gb200}"}
# A100's all-to-alls were measured with a library that chose LL by the channels of a peer.
ALL_TO_ALL = {"a100": "{kind: nccl_p2p, ll_by_peer: true}"}
COLLECTIVES = "{all_reduce: nccl, all_gather: nccl, reduce_scatter: nccl, protocol: auto, in_place: false, all_to_all: %s}"
LARGE = 4 << 20  # sizes from here on are judged apart from those below


def read_curves(path):
    """(gpu, operation, ranks) -> bytes -> microseconds."""
    measured = collections.defaultdict(lambda: collections.defaultdict(list))
    with open(path) as file:
        for row in csv.DictReader(file):
            operation = OPERATIONS[row["op"]]
            measured[row["gpu"], operation, int(row["gpus"])][int(row["bytes"])].append(float(row["us"]))
    return {key: {size: statistics.median(times) for size, times in sorted(sizes.items())} for key, sizes in measured.items()}


def simulate(netsim, curve, sizes, settings):
    """bytes -> (microseconds, what ran) of one curve by netsim, without a launch constant."""
    gpu, operation, ranks = curve
    with tempfile.TemporaryDirectory() as folder:
        config, workload = Path(folder) / "config.yaml", Path(folder) / "workload.yaml"
        model = gpu.split("_")[0]
        config.write_text(f"topology: {{kind: star, hosts: 8, rate: 400 Gbps}}\nhosts: {1 if ranks <= 4 or 'gb' not in gpu else 2}\n"
                          f"host: {HOSTS[model]}\ncollectives: {COLLECTIVES % ALL_TO_ALL.get(model, 'nccl_p2p')}\n")
        workload.write_text(f"kind: collective\ncollective: {operation}\nranks: {ranks}\n"
                            f"sizes: {{from: {min(sizes)} B, to: {max(sizes)} B, factor: 2}}\n")
        command = [netsim, "--quiet", "--threads", "1", "--config", config, "--workload", workload, "--json", "-"]
        for item in settings:
            command += ["--set", item]
        shown = subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True).stdout
    return {row["bytes"]: (row["time_s"] * 1e6, f"{row['algorithm']} {row['protocol']} {row['channels']}")
            for row in json.loads(shown)["collectives"]}


def geometric_mean_error(pairs):
    if not pairs:
        return float("nan")
    return 100 * (math.exp(sum(abs(math.log(ours / theirs)) for ours, theirs in pairs) / len(pairs)) - 1)


def print_sizes(curve, measured, simulated, launch):
    print(f"\n{' '.join(map(str, curve))}, launch {launch:+.2f} us\n")
    print("| bytes | measured us | netsim us | error | ran |\n|---:|---:|---:|---:|---|")
    for size, theirs in measured.items():
        time, ran = simulated[size]
        print(f"| {size} | {theirs:.1f} | {time + launch:.1f} | {100 * ((time + launch) / theirs - 1):+.1f} % | {ran} |")


def launch_constants(measured, simulated):
    """(gpu, ranks) -> microseconds, of all curves."""
    launches = {}
    for gpu, operation, ranks in simulated:
        if operation == "all_reduce":
            curve = gpu, operation, ranks
            smallest = min(measured[curve])
            launches[gpu, ranks] = measured[curve][smallest] - simulated[curve][smallest][0]
    return launches


def play(netsim, measured, wanted, settings, jobs):
    """Simulates the curves and returns their times, and the launch constants."""
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        runs = pool.map(lambda curve: simulate(netsim, curve, measured[curve], settings), wanted)
        simulated = dict(zip(wanted, runs))
    return simulated, launch_constants(measured, simulated)


def errors(measured, simulated, launch):
    """Percentages of one curve: below LARGE, from there on, and that of the largest size with its sign."""
    pairs = {size: (simulated[size][0] + launch, theirs) for size, theirs in measured.items()}
    last = pairs[max(pairs)]
    return (geometric_mean_error([pair for size, pair in pairs.items() if size < LARGE]),
            geometric_mean_error([pair for size, pair in pairs.items() if size >= LARGE]), 100 * (last[0] / last[1] - 1))


def print_csv(rows):
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["gpu", "gpus", "launch_us", "operation", "error_below_4_MiB_percent", "error_from_4_MiB_percent",
                     "error_at_largest_percent"])
    for (gpu, ranks), launch, cells in rows:
        for operation, values in cells.items():
            writer.writerow([gpu, ranks, f"{launch:.2f}", operation] + [f"{value:.1f}" for value in values])


def print_table(rows, operations):
    print(f"\n| GPUs | launch us | {' | '.join(operations)} |\n|---|---:|{'---|' * len(operations)}")
    for (gpu, ranks), launch, cells in rows:
        shown = [f"{small:.1f} / {large:.1f}, {last:+.0f} %" for small, large, last in cells.values()]
        print(f"| {gpu}, {ranks} | {launch:+.2f} | {' | '.join(shown)} |")
    print(f"\nErrors: geometric mean below / from {LARGE >> 20} MiB on, and that of the largest size.", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    execution.add_binary(parser)
    parser.add_argument("curves", type=Path, metavar="CURVES.csv")
    parser.add_argument("--gpus", nargs="+", help="GPU types (default: all of the file)")
    parser.add_argument("--ranks", nargs="+", type=int, help="numbers of GPUs (default: all of the file)")
    parser.add_argument("--operations", nargs="+", choices=list(OPERATIONS.values()), help="operations (default: all)")
    parser.add_argument("--sizes", action="store_true", help="print every size of every curve")
    parser.add_argument("--csv", action="store_true", help="print the table as CSV")
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE", help="settings of netsim besides")
    execution.add_jobs(parser, "runs")
    arguments = parser.parse_args()
    netsim = execution.find_binary(arguments.binary)
    measured = read_curves(arguments.curves)
    operations = arguments.operations or list(OPERATIONS.values())
    wanted = [curve for curve in measured if (not arguments.gpus or curve[0] in arguments.gpus)
              and (not arguments.ranks or curve[2] in arguments.ranks) and curve[1] in [*operations, "all_reduce"]]
    if not wanted:
        parser.error(f"no curve is left; the file has {', '.join(sorted({curve[0] for curve in measured}))}")
    simulated, launches = play(netsim, measured, wanted, arguments.set, arguments.jobs)
    rows = []
    for (gpu, ranks), launch in sorted(launches.items()):
        curves = {operation: (gpu, operation, ranks) for operation in operations}
        rows.append(((gpu, ranks), launch, {operation: errors(measured[curve], simulated[curve], launch)
                                            for operation, curve in curves.items()}))
        for curve in curves.values() if arguments.sizes else []:
            print_sizes(curve, measured[curve], simulated[curve], launch)
    if arguments.csv:
        print_csv(rows)
    else:
        print_table(rows, operations)
    return 0


if __name__ == "__main__":
    sys.exit(main())
