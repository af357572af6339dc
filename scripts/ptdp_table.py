#!/usr/bin/env python3
"""PTD-P's table 1 (Narayanan et al., SC'21) beside whole jobs, over the choices that the paper leaves open.

    scripts/ptdp_table.py                      # the span of TFLOP/s over microbatches and interleaving, row by row
    scripts/ptdp_table.py --rows 1 3 --all     # some rows, every choice
    scripts/ptdp_table.py --rows 5 --exact     # without either shortcut, beside what they give

The paper gives neither the microbatch size b nor the model chunks per stage v for this table: all of b = 1, 2, 4, 8 and
v = 1, 2, 3 that divide are simulated. Each is a job of all GPUs of its row, packet by packet, with two shortcuts where it is large:

- microbatches: a step is affine in their number from some on (`Choice.number`). The job of all GPUs has as many as that;
  what one more takes is what jobs of one replica (t x p GPUs) take with as many and with twice as many, whose difference is
  that of whole rounds of the pipeline;
- packets: a job above 15 G packet-hops (by --dry-run) carries what leaves hosts in packets of 64 KiB.

Choices that do not fit into 80 GiB are left out.

The first and the last row are those that `sustained` of the compute model was calibrated on.
"""
import argparse
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import measure

# params 10^9, heads, hidden, layers, t, p, GPUs, batch, TFLOP/s per GPU in the paper (None: not in our notes)
ROWS = [
    (1.7, 24, 2304, 24, 1, 1, 32, 512, 137),
    (3.6, 32, 3072, 30, 2, 1, 64, 512, None),
    (7.5, 32, 4096, 36, 4, 1, 128, 512, 142),
    (18.4, 48, 6144, 40, 8, 1, 256, 1024, None),
    (39.1, 64, 8192, 48, 8, 2, 512, 1536, None),
    (76.1, 80, 10240, 60, 8, 4, 1024, 1792, 140),
    (145.6, 96, 12288, 80, 8, 8, 1536, 2304, None),
    (310.1, 128, 16384, 96, 8, 16, 1920, 2160, None),
    (529.6, 128, 20480, 105, 8, 35, 2520, 2520, None),
    (1008.0, 160, 25600, 128, 8, 64, 3072, 3072, 163),
]
SEQUENCE, VOCABULARY = 2048, 51200
MICROBATCHES, CHUNKS = (1, 2, 4, 8), (1, 2, 3)
MOST_HOPS = 15e9
COLLECTIVES = "{all_reduce: nccl, all_gather: nccl, reduce_scatter: nccl, protocol: auto}"


@dataclasses.dataclass
class Row:
    params: float
    heads: int
    hidden: int
    layers: int
    tensor: int
    pipeline: int
    gpus: int
    batch: int
    paper: int

    @property
    def data(self):
        return self.gpus // (self.tensor * self.pipeline)

    def choices(self):
        """Those that divide: the batch, the layers, and with v > 1 the microbatches by the stages."""
        for size in MICROBATCHES:
            if self.batch % (self.data * size) != 0:
                continue
            for chunks in CHUNKS if self.pipeline > 1 else (1,):
                choice = Choice(self, size, chunks)
                whole = self.layers % (self.pipeline * chunks) == 0
                if whole and (chunks == 1 or choice.microbatches % self.pipeline == 0):
                    yield choice

    def flops(self):
        s, h = SEQUENCE, self.hidden
        return 96 * self.batch * s * self.layers * h**2 * (1 + s / (6 * h) + VOCABULARY / (16 * self.layers * h))


@dataclasses.dataclass
class Choice:
    row: Row
    size: int  # b
    chunks: int  # v

    @property
    def microbatches(self):
        return self.row.batch // (self.row.data * self.size)

    @property
    def number(self):
        """Microbatches from which on every further round of the pipeline takes as long as the one before."""
        return max(2, self.row.pipeline)

    def __str__(self):
        return f"{self.row.params}B, b = {self.size}, v = {self.chunks}"


@dataclasses.dataclass
class Played:
    step: float  # seconds
    data: float  # of it exposed communication of data parallelism


class DoesNotFit(Exception):
    """The GPUs have less memory than the job needs."""


class Netsim:
    """Plays jobs."""

    def __init__(self, binary, sustained=None, report=lambda text: None):
        self.binary, self.report = str(binary), report
        self.compute = ["--set", f"compute={{kind: a100_80gb, sustained: {sustained}}}"] if sustained else []

    def play(self, choice, microbatches, data, packets=None):
        """With so many microbatches and replicas; packets of `packets` (None: as large as the job is small enough for)."""
        row, gpus = choice.row, choice.row.tensor * choice.row.pipeline * data
        hosts = -(-gpus // 8)
        job = (f"kind: ptdp\nmodel: {{layers: {row.layers}, hidden: {row.hidden}, heads: {row.heads}, sequence: {SEQUENCE}, "
               f"vocabulary: {VOCABULARY}}}\nparallel: {{tensor: {row.tensor}, pipeline: {row.pipeline}, data: {data}, "
               f"virtual_stages: {choice.chunks}}}\nmicrobatch: {choice.size}\nmicrobatches: {microbatches}\n")
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "workload.yaml").write_text(job)

            def call(packets, *options):
                (folder / "config.yaml").write_text(
                    f"topology: {{kind: rail_optimized, units: {-(-hosts // 32)}, rate: 200 Gbps}}\nhost: dgx_a100\nhosts: {hosts}\n"
                    f"collectives: {COLLECTIVES}\ntransport: {{mtu: {packets or '4 KiB'}}}\n")
                done = subprocess.run([self.binary, "--config", folder / "config.yaml", "--workload", folder / "workload.yaml",
                                       *self.compute, *options], capture_output=True, text=True, check=False)
                if "does not fit into" in done.stderr:
                    raise DoesNotFit(done.stderr)
                if done.returncode != 0:
                    raise SystemExit(f"{choice}, {microbatches} microbatches, {data} replicas: {done.stderr}")
                return done.stdout

            if packets is None and packet_hops(call(None, "--dry-run")) > MOST_HOPS:
                packets = "64 KiB"
            call(packets, "--threads", "1", "--out", folder / "out", "--quiet")
            done = json.loads((folder / "out" / "summary.json").read_text())["jobs"][0]
        self.report(f"{choice}: {microbatches} microbatches, {data} replicas, {packets or '4 KiB'} packets: "
                    f"{done['iteration_time_s']:.3f} s")
        return Played(done["iteration_time_s"], done["exposed_by"]["dp"])

    def step(self, choice):
        """Of the whole job; by the shortcuts where it has more microbatches than they need."""
        row, number, every = choice.row, choice.number, choice.microbatches
        if every <= 2 * number:
            return self.play(choice, every, row.data)
        some, more = (self.play(choice, count, 1).step for count in (number, 2 * number))
        begun = self.play(choice, number, row.data)
        return Played(begun.step + (more - some) / number * (every - number), begun.data)


def packet_hops(prediction):
    """As --dry-run prints them."""
    found = re.search(r"([\d.]+) ?([kMGT]?) packet-hops", prediction)
    if not found:
        raise SystemExit(f"no packet-hops in what --dry-run says:\n{prediction}")
    return float(found[1]) * {"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}[found[2]]


def rate_of(choice, played):
    """TFLOP/s per GPU."""
    return choice.row.flops() / played.step / choice.row.gpus / 1e12


def rated(netsim, choices):
    """(TFLOP/s per GPU, choice, played) of each, the slowest first."""
    played = []
    for choice in choices:
        try:
            played.append((choice, netsim.step(choice)))
        except DoesNotFit as why:
            netsim.report(f"{choice}: left out, {why}")
    return sorted(((rate_of(*each), *each) for each in played), key=lambda entry: entry[0])


def line(rate, choice, played):
    row = choice.row
    error = f"{(rate / row.paper - 1) * 100:+.1f} %" if row.paper else ""
    return (f"| {row.params}B | {row.tensor}, {row.pipeline}, {row.data} | {choice.size} x {choice.microbatches} | {choice.chunks} | "
            f"{played.data:.2f} | {played.step:.2f} | {rate:.1f} | {row.paper or ''} | {error} |")


def span_line(row, found):
    (low, slowest, most), (high, fastest, least) = found[0], found[-1]
    choice = " to ".join(f"{each.size}, {each.chunks}" for each in (slowest, fastest))
    error = " to ".join(f"{(each / row.paper - 1) * 100:+.1f}" for each in (low, high)) + " %" if row.paper else ""
    return (f"| {row.params}B | {row.tensor}, {row.pipeline}, {row.data} | {most.data:.2f}, {least.data:.2f} | {choice} | "
            f"{most.step:.2f} to {least.step:.2f} | {low:.1f} to {high:.1f} | {row.paper or ''} | {error} |")


def exact_line(netsim, choice):
    """The step without shortcuts, beside the one with both."""
    try:
        short = netsim.step(choice).step
    except DoesNotFit:
        return f"| {choice.row.params}B | {choice.size} x {choice.microbatches} | {choice.chunks} | does not fit | | | | |"
    whole = netsim.play(choice, choice.microbatches, choice.row.data, packets="4 KiB").step
    large = netsim.play(choice, choice.microbatches, choice.row.data, packets="64 KiB").step
    return (f"| {choice.row.params}B | {choice.size} x {choice.microbatches} | {choice.chunks} | {whole:.3f} | {large:.3f} | "
            f"{(large / whole - 1) * 100:+.2f} % | {short:.3f} | {(short / whole - 1) * 100:+.2f} % |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    measure.add_binary(parser)
    parser.add_argument("--rows", type=int, nargs="+", choices=range(1, len(ROWS) + 1), default=range(1, len(ROWS) + 1),
                        metavar="N", help="1 to 10")
    parser.add_argument("--all", action="store_true", help="every choice instead of the slowest and the fastest")
    parser.add_argument("--exact", action="store_true", help="what the shortcuts change, for every choice of the rows")
    parser.add_argument("--sizes", type=int, nargs="+", choices=MICROBATCHES, metavar="B", help="these sizes of a microbatch only")
    parser.add_argument("--chunks", type=int, nargs="+", choices=CHUNKS, metavar="V", help="these numbers of chunks only")
    parser.add_argument("--sustained", type=float, help="of the GPU's compute model (default: the model's)")
    parser.add_argument("-j", "--jobs", type=int, default=len(os.sched_getaffinity(0)), metavar="N", help="rows at a time")
    options = parser.parse_args()
    netsim = Netsim(measure.find_binary(options.binary), options.sustained,
                    lambda text: print(text, file=sys.stderr, flush=True))
    rows = [Row(*ROWS[number - 1]) for number in options.rows]

    def chosen(row):
        return [choice for choice in row.choices() if choice.size in (options.sizes or MICROBATCHES)
                and choice.chunks in (options.chunks or CHUNKS)]

    def lines(row):
        choices = chosen(row)
        if options.exact:
            return [exact_line(netsim, choice) for choice in choices]
        found = rated(netsim, choices)
        if not found:
            return []
        return [line(*each) for each in found] if options.all else [span_line(row, found)]

    if options.exact:
        print("| model | b x m | v | whole s | 64 KiB packets | | fewer microbatches, too | |\n|---|---|---|---|---|---|---|---|")
    elif options.all:
        print("| model | t, p, d | b x m | v | exposed DP s | step s | TFLOP/s | paper | error |\n|---|---|---|---|---|---|---|---|---|")
    else:
        print("| model | t, p, d | exposed DP s | b, v: slowest to fastest | step s | TFLOP/s | paper | error |\n"
              "|---|---|---|---|---|---|---|---|")
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for found in pool.map(lines, rows):
            print("\n".join(found), flush=True)


if __name__ == "__main__":
    main()
