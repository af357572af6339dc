#!/usr/bin/env python3
"""netsim against DeepEP as it was measured on H100: plays the rows of a table and prints the errors.

    scripts/deepep_h100.py DEEPEP.csv [--modes ll normal] [--hosts 1 2 4 8] [--most-tokens 1024] [--rows] [--csv]

DEEPEP.csv has the columns mode, nodes, tokens, topk, experts, sms, dispatch_us and combine_us. A row of the normal kernels is played
with half as many channels as it has multiprocessors, and by the chunk of RDMA that takes least, as DeepEP's test chooses it. A
launch constant is taken from the row with the fewest tokens, one for each mode, number of hosts and kernel. It may be negative,
because the measured times leave out the kernel with the barriers. DeepEP's test prints the time of one rank, and netsim's counts with
the mean of its ranks. An error is the mean of |ln(netsim / measured)|, as a percentage. Rows whose experts cannot be divided evenly
are left out.
"""
import argparse
import collections
import concurrent.futures
import csv
import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path

from netsim_runs import execution

CONFIGS = {"normal": "deepep_h100.yaml", "ll": "deepep_h100_low_latency.yaml"}
BYTES = {("normal", "dispatch"): 7392, ("ll", "dispatch"): 7408, ("normal", "combine"): 14336, ("ll", "combine"): 14336}
RANKS = 8  # GPUs of a host
# Chunks, in tokens, among which the test chooses (tune of test_internode.py); of every second one of its list.
CHUNKS = {"dispatch": (4, 8, 16, 32), "combine": (8, 16, 32)}
Row = collections.namedtuple("Row", "mode hosts tokens top_k experts multiprocessors kernel measured")


def read_rows(path):
    rows = []
    with open(path) as file:
        for line in csv.DictReader(file):
            for kernel in ("dispatch", "combine"):
                rows.append(Row(line["mode"], int(line["nodes"]), int(line["tokens"]), int(line["topk"]), int(line["experts"]),
                                int(line["sms"] or 0), kernel, float(line[f"{kernel}_us"])))
    return [row for row in rows if row.experts % (RANKS * row.hosts) == 0]


def run(netsim, row, chunk, exponent):
    """Microseconds of one row by netsim, with RDMA chunks of so many tokens: the mean of all ranks."""
    experts = f"count: {row.experts}, top_k: {row.top_k}"
    if row.mode == "normal" and row.hosts > 4:
        experts += f", groups: {row.hosts}, group_limit: 4"
    with tempfile.TemporaryDirectory() as folder:
        workload = Path(folder) / "workload.yaml"
        workload.write_text(f"kind: collective\ncollective: {row.kernel}\n"
                            f"tokens: {{per_rank: {row.tokens}, bytes: {BYTES[row.mode, row.kernel]} B, ranks_per_host: {RANKS}, "
                            f"experts: {{{experts}}}, router: {{kind: zipf, exponent: {exponent}}}}}\n")
        command = [netsim, "--quiet", "--threads", "1", "--config", execution.ROOT / "configs/collectives" / CONFIGS[row.mode],
                   "--workload", workload, "--json", "-", "--set", f"hosts={row.hosts}",
                   "--set", f"topology.hosts_per_leaf={max(2, row.hosts)}", "--set", f"topology.spines={max(2, row.hosts)}"]
        if row.mode == "normal":
            channels = max(1, row.multiprocessors // 2)
            command += ["--set", f"transport.queue_pairs={channels}", "--set", f"collectives.{row.kernel}.channels={channels}",
                        "--set", f"collectives.{row.kernel}.chunk={chunk}"]
        shown = subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True).stdout
    return json.loads(shown)["jobs"][0]["communication_s"] * 1e6


def simulate(netsim, row, exponent):
    """Microseconds of the chunk that takes least, without a launch constant."""
    chunks = CHUNKS[row.kernel] if row.mode == "normal" and row.hosts > 1 else (16,)
    return min(run(netsim, row, chunk, exponent) for chunk in chunks)


def launch_constants(times):
    """(mode, hosts, kernel) -> microseconds, from the row with the fewest tokens and the most multiprocessors."""
    launches = {}
    for row, time in sorted(times.items(), key=lambda item: (item[0].tokens, -item[0].multiprocessors, item[0].experts)):
        launches.setdefault((row.mode, row.hosts, row.kernel), row.measured - time)
    return launches


def error(pairs):
    if not pairs:
        return float("nan")
    return 100 * (math.exp(sum(abs(math.log(ours / theirs)) for ours, theirs in pairs) / len(pairs)) - 1)


def compare(times):
    """(mode, hosts, multiprocessors, kernel) -> pairs of netsim's and the measured time."""
    launches, cells = launch_constants(times), collections.defaultdict(list)
    for row, time in times.items():
        ours = time + launches[row.mode, row.hosts, row.kernel]
        cells[row.mode, row.hosts, row.multiprocessors, row.kernel].append((ours, row.measured))
    return cells


def print_rows(times):
    launches = launch_constants(times)
    print("mode,hosts,multiprocessors,tokens,experts,kernel,measured_us,netsim_us,error_percent")
    for row, time in times.items():
        ours = time + launches[row.mode, row.hosts, row.kernel]
        print(f"{row.mode},{row.hosts},{row.multiprocessors},{row.tokens},{row.experts},{row.kernel},{row.measured:.1f},{ours:.1f},"
              f"{100 * (ours / row.measured - 1):.1f}")


def print_cells(cells, as_csv):
    table = sorted({key[:3] for key in cells})
    if as_csv:
        print("mode,hosts,multiprocessors,rows,dispatch_error_percent,combine_error_percent")
    else:
        print("| mode | hosts | multiprocessors | rows | dispatch | combine |\n|---|---:|---:|---:|---:|---:|")
    for key in table:
        values = [*key, len(cells[*key, "dispatch"]), *(f"{error(cells[*key, kernel]):.1f}" for kernel in ("dispatch", "combine"))]
        print(",".join(map(str, values)) if as_csv else f"| {' | '.join(map(str, values))} |")
    print(f"all rows: {error([pair for pairs in cells.values() for pair in pairs]):.1f} %", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    execution.add_binary(parser)
    parser.add_argument("table", type=Path, metavar="DEEPEP.csv")
    parser.add_argument("--modes", nargs="+", choices=list(CONFIGS), default=list(CONFIGS), help="kernels (default: both)")
    parser.add_argument("--hosts", nargs="+", type=int, help="numbers of hosts (default: all of the file)")
    parser.add_argument("--multiprocessors", nargs="+", type=int, help="of the normal kernels (default: all of the file)")
    parser.add_argument("--most-tokens", type=int, default=1024, help="leave out rows with more (default: %(default)s)")
    parser.add_argument("--exponent", type=float, default=0, help="popularity of experts: 0 alike, as measured (default)")
    parser.add_argument("--rows", action="store_true", help="print every row instead of the table")
    parser.add_argument("--csv", action="store_true", help="print the table as CSV")
    execution.add_jobs(parser, "runs")
    arguments = parser.parse_args()
    netsim = execution.find_binary(arguments.binary)
    rows = [row for row in read_rows(arguments.table)
            if row.mode in arguments.modes and (not arguments.hosts or row.hosts in arguments.hosts)
            and row.tokens <= arguments.most_tokens
            and (row.mode == "ll" or not arguments.multiprocessors or row.multiprocessors in arguments.multiprocessors)]
    if not rows:
        parser.error("no row is left")
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        times = dict(zip(rows, pool.map(lambda row: simulate(netsim, row, arguments.exponent), rows)))
    if arguments.rows:
        print_rows(times)
    else:
        print_cells(compare(times), arguments.csv)
    return 0


if __name__ == "__main__":
    sys.exit(main())
