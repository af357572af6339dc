#!/usr/bin/env python3
"""netsim against DeepEP as it was measured on H100: plays the rows of a table and prints the errors.

    scripts/deepep_h100.py DEEPEP.csv [--played ROWS.csv] [--modes ll normal] [--hosts 1 2 4 8] [--most-tokens 1024] [--rows | --by KEY]

DEEPEP.csv has the columns mode, nodes, tokens, topk, experts, sms, dispatch_us and combine_us. A row of the normal kernels is played
with half as many channels as it has multiprocessors, and by the chunk of RDMA that takes least, as DeepEP's test chooses it. Rows of
more than 1,024 tokens take the chunk of that row, and those of more than 4,096 tokens take 16. Rows of more than --largest tokens are
not played: they go on from the two largest played ones at the same rate.

DeepEP's test prints the time of GPU 0. netsim's is the mean of the GPUs with this number in all hosts. A launch constant is taken from
the row with the fewest tokens, one for each mode, number of hosts and kernel. It may be negative, because the measured times leave out
the kernel with the barriers. An error is the mean of |ln(netsim / measured)|, as a percentage. Rows whose experts cannot be divided
evenly are left out.

--played keeps the times of all played rows in a file, so that a run that was stopped goes on. The smallest rows are played first.
"""
import argparse
import collections
import concurrent.futures
import csv
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
CHUNKS_ONE_HOST = (16,)
MOST_FOR_CHUNKS = 1024  # tokens of the largest row that is played with all chunks
MOST_FOR_BEST_CHUNK, LARGE_CHUNK = 4096, 16  # larger rows are played with one chunk, because many small messages take long to play
# The link that stands for what slowed down the measured normal kernels over eight hosts (docs/evidence/deepep.md). Its rate is that
# of the row with 131,072 tokens on 24 multiprocessors. The low-latency kernels were not slow, so they do not have it.
SLOW_RATE = 137e3  # bits a microsecond
SLOW = {("normal", 8): f"[{{link: host7/nic3-leaf3, rate: {SLOW_RATE / 1e3} Gbps, at: 0 s}}]"}
HOSTS_A_TOKEN = 4  # at most (group_limit); almost all tokens of eight hosts go to as many
COLUMNS = ("mode", "hosts", "multiprocessors", "tokens", "experts", "kernel", "chunk", "played_us")
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
    """Microseconds of one row by netsim, with RDMA chunks of so many tokens: of the GPUs 0, or of the last GPU if tokens are skewed."""
    experts = f"count: {row.experts}, top_k: {row.top_k}"
    if row.mode == "normal" and row.hosts > 4:
        experts += f", groups: {row.hosts}, group_limit: 4"
    with tempfile.TemporaryDirectory() as folder:
        workload = Path(folder) / "workload.yaml"
        workload.write_text(f"kind: collective\ncollective: {row.kernel}\n"
                            f"tokens: {{per_rank: {row.tokens}, bytes: {BYTES[row.mode, row.kernel]} B, ranks_per_host: {RANKS}, "
                            f"experts: {{{experts}}}, router: {{kind: zipf, exponent: {exponent}}}}}\n")
        command = [netsim, "--quiet", "--threads", "1", "--config", execution.ROOT / "configs/collectives" / CONFIGS[row.mode],
                   "--workload", workload, "--out", folder, "--report", "no", "--set", f"hosts={row.hosts}",
                   "--set", f"topology.hosts_per_leaf={max(2, row.hosts)}", "--set", f"topology.spines={max(2, row.hosts)}"]
        if row.mode == "normal":
            channels = max(1, row.multiprocessors // 2)
            command += ["--set", f"transport.queue_pairs={channels}", "--set", f"collectives.{row.kernel}.channels={channels}",
                        "--set", f"collectives.{row.kernel}.chunk={chunk}",
                        "--set", f"network.faults={SLOW.get((row.mode, row.hosts), '[]')}"]
        subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True)
        with open(Path(folder) / "ranks.csv") as file:
            times = [int(line["communication_ps"]) / 1e6 for line in csv.DictReader(file)]
    return max(times) if exponent > 0 else sum(times[::RANKS]) / len(times[::RANKS])


def chunks_of(row):
    return CHUNKS[row.kernel] if row.mode == "normal" and row.hosts > 1 else CHUNKS_ONE_HOST


def simulate(netsim, row, exponent, chunks=None):
    """Microseconds of the chunk that takes least, without a launch constant, and that chunk."""
    return min((run(netsim, row, chunk, exponent), chunk) for chunk in chunks or chunks_of(row))


class Played:
    """The times and chunks of played rows, kept in a file where one is given."""

    def __init__(self, path):
        self.path, self.rows = path, {}
        if path and path.is_file():
            with open(path) as file:
                for line in csv.DictReader(file):
                    self.rows[self.key_of(line)] = float(line["played_us"]), int(line["chunk"])

    @staticmethod
    def key_of(line):
        return (line["mode"], *(int(line[name]) for name in COLUMNS[1:5]), line["kernel"])

    @staticmethod
    def key(row):
        return row.mode, row.hosts, row.multiprocessors, row.tokens, row.experts, row.kernel

    def __contains__(self, row):
        return self.key(row) in self.rows

    def __getitem__(self, row):
        return self.rows[self.key(row)]

    def add(self, row, result):
        self.rows[self.key(row)] = result
        if self.path:
            lines = [",".join(COLUMNS)]
            lines += [",".join(map(str, (*key, chunk, f"{time:.2f}"))) for key, (time, chunk) in sorted(self.rows.items())]
            execution.write_whole(self.path, "\n".join(lines) + "\n")


def known_chunks(row, played):
    """The one chunk with which a large row is played; None: all chunks."""
    if row.tokens <= MOST_FOR_CHUNKS or row.mode != "normal":
        return None
    if row.tokens > MOST_FOR_BEST_CHUNK:
        return (LARGE_CHUNK,)
    smaller = row._replace(tokens=MOST_FOR_CHUNKS)
    return (played[smaller][1],) if smaller in played else None


def play(netsim, rows, arguments, played):
    """Plays the rows that are not known yet, those with few tokens first."""
    for some in ([row for row in rows if row.tokens <= MOST_FOR_CHUNKS], [row for row in rows if row.tokens > MOST_FOR_CHUNKS]):
        wanted = sorted((row for row in some if row not in played and row.tokens <= arguments.largest), key=lambda row: row.tokens)
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            work = {pool.submit(simulate, netsim, row, arguments.exponent, known_chunks(row, played)): row for row in wanted}
            for done in concurrent.futures.as_completed(work):
                played.add(work[done], done.result())


def continued(row, times):
    """Microseconds of a row that was not played, at the rate between the two largest played ones of the same kernel; None: not known.

    With a slow link GPU 0 ends up as slow as that link, when its buffers for the slow GPU are full. So rows go on at the link's rate
    from where the buffers were full, and nothing is known of them before.
    """
    alike = sorted((one.tokens, time) for one, time in times.items()
                   if one._replace(tokens=0, measured=0) == row._replace(tokens=0, measured=0))
    rates = [(longer - time) / (more - few) for (few, time), (more, longer) in zip(alike, alike[1:])]
    rate = rates[-1]
    if (row.mode, row.hosts) in SLOW:
        slowest = HOSTS_A_TOKEN * (1 - 1 / row.hosts) * BYTES[row.mode, row.kernel] * 8 / SLOW_RATE
        if rate < 0.95 * slowest:
            if rate < 1.3 * rates[-2]:
                return None
            rate = slowest
    return alike[-1][1] + (row.tokens - alike[-1][0]) * rate


def all_times(rows, played):
    """Row -> microseconds, played or continued."""
    times = {row: played[row][0] for row in rows if row in played}
    others = {row: continued(row, times) for row in rows if row not in played}
    return times | {row: time for row, time in others.items() if time is not None}


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


def print_by(times, fields):
    """Prints the error of all rows that have the same values of `fields`."""
    launches, groups = launch_constants(times), collections.defaultdict(list)
    for row, time in times.items():
        groups[tuple(getattr(row, field) for field in fields)].append((time + launches[row.mode, row.hosts, row.kernel], row.measured))
    print(",".join((*fields, "rows", "error_percent")))
    for values, pairs in sorted(groups.items()):
        print(",".join(map(str, (*values, len(pairs), f"{error(pairs):.1f}"))))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    execution.add_binary(parser)
    parser.add_argument("table", type=Path, metavar="DEEPEP.csv")
    parser.add_argument("--modes", nargs="+", choices=list(CONFIGS), default=list(CONFIGS), help="kernels (default: both)")
    parser.add_argument("--kernels", nargs="+", choices=["dispatch", "combine"], default=["dispatch", "combine"], help="(default: both)")
    parser.add_argument("--hosts", nargs="+", type=int, help="numbers of hosts (default: all of the file)")
    parser.add_argument("--multiprocessors", nargs="+", type=int, help="of the normal kernels (default: all of the file)")
    parser.add_argument("--most-tokens", type=int, default=math.inf, help="leave out rows with more (default: all)")
    parser.add_argument("--largest", type=int, default=4096, help="tokens of the largest row that is played (default: %(default)s)")
    parser.add_argument("--played", type=Path, metavar="ROWS.csv", help="keep the times of played rows here, and play only what it lacks")
    parser.add_argument("--exponent", type=float, default=0,
                        help="popularity of experts: 0 alike, as measured (default); with more, times are those of the last GPU")
    parser.add_argument("--rows", action="store_true", help="print every row instead of the table")
    parser.add_argument("--by", nargs="+", choices=["mode", "hosts", "tokens", "multiprocessors", "kernel"], default=[],
                        help="print the errors by these instead")
    parser.add_argument("--csv", action="store_true", help="print the table as CSV")
    execution.add_jobs(parser, "runs")
    arguments = parser.parse_args()
    netsim = execution.find_binary(arguments.binary)
    rows = [row for row in read_rows(arguments.table)
            if row.mode in arguments.modes and row.kernel in arguments.kernels and (not arguments.hosts or row.hosts in arguments.hosts)
            and row.tokens <= arguments.most_tokens
            and (row.mode == "ll" or not arguments.multiprocessors or row.multiprocessors in arguments.multiprocessors)]
    if not rows:
        parser.error("no row is left")
    played = Played(arguments.played)
    play(netsim, rows, arguments, played)
    times = all_times(rows, played)
    print(f"{len(rows)} rows: {sum(row in played for row in rows)} played, {len(rows) - len(times)} not known", file=sys.stderr)
    if arguments.rows:
        print_rows(times)
    elif arguments.by:
        print_by(times, arguments.by)
    else:
        print_cells(compare(times), arguments.csv)
    return 0


if __name__ == "__main__":
    sys.exit(main())
