#!/usr/bin/env python3
"""PTD-P's table 1 (Narayanan et al., SC'21) beside what netsim's parts say, over the choices that the paper leaves open.

    scripts/ptdp_table.py                 # the span of TFLOP/s over microbatches and interleaving, row by row
    scripts/ptdp_table.py --rows 1 3 --all    # some rows, every choice

The paper gives neither the microbatch size b nor the model chunks per stage v for this table: all of b = 1, 2, 4, 8 and
v = 1, 2, 3 that divide are simulated. Whole jobs of up to 3,072 GPUs would take days, so what repeats is simulated once:

- a layer, and what is not in the layers (embedding, logits, loss), of one microbatch, and the optimizer: `ptdp` on one
  DGX A100, packet by packet, with one and two layers and one and two microbatches; time is linear in both;
- with a pipeline, what the last stage has beyond its layers, for which the others wait: `ptdp` with two stages of one layer on
  two DGX A100, and two and four microbatches;
- the pipeline: `pipeline` with p stages of the layers' duration and their messages over 200 Gb/s, with p and 2 p microbatches;
  every further one takes as long as those in between. A backward, which recomputes, is three forwards;
- data parallelism: `ptdp` with t x d GPUs on DGX A100 and two small sizes of gradients; time is linear in the size.

Rows 1 and 10 are the two that `sustained` of the compute model was calibrated on (with b = 4 and b = 1, v = 2).
"""
import argparse
import concurrent.futures
import csv
import dataclasses
import functools
import json
import os
import pathlib
import subprocess
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
        """(b, v) that divide: the batch, the layers, and with v > 1 the microbatches by the stages."""
        for size in MICROBATCHES:
            if self.batch % (self.data * size) != 0:
                continue
            for chunks in CHUNKS if self.pipeline > 1 else (1,):
                whole = self.layers % (self.pipeline * chunks) == 0
                if whole and (chunks == 1 or self.number(size) % self.pipeline == 0):
                    yield size, chunks

    def number(self, size):
        return self.batch // (self.data * size)

    def flops(self):
        s, h = SEQUENCE, self.hidden
        return 96 * self.batch * s * self.layers * h**2 * (1 + s / (6 * h) + VOCABULARY / (16 * self.layers * h))


class Netsim:
    """Plays small jobs; each once."""

    def __init__(self, binary, sustained):
        self.binary = str(binary)
        self.compute = ["--set", f"compute={{kind: a100_80gb, sustained: {sustained}}}"] if sustained else []

    def play(self, config, workload, *options):
        """Seconds of an iteration, and (seconds, bytes) of the slowest data-parallel collective, if there is one."""
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "config.yaml").write_text(config)
            (folder / "workload.yaml").write_text(workload)
            call = [self.binary, "--config", folder / "config.yaml", "--workload", folder / "workload.yaml", "--threads", "1",
                    "--out", folder / "out", "--quiet", *options]
            answer = subprocess.run(call, capture_output=True, text=True, check=False)
            if answer.returncode != 0:
                raise SystemExit(answer.stderr)
            with open(folder / "out" / "collectives.csv", encoding="utf-8") as file:
                reduced = [(1e-12 * (int(line["end_ps"]) - int(line["last_start_ps"])), int(line["bytes"]))
                           for line in csv.DictReader(file) if line["stream"] == "dp"]
            summary = json.loads((folder / "out" / "summary.json").read_text())
            return summary["jobs"][0]["iteration_time_s"], max(reduced, default=None)

    @functools.cache
    def microbatch(self, hidden, heads, tensor, size):
        """Seconds of a microbatch's layer, of the rest of it, of the optimizer per layer, and of its rest."""
        times = {(layers, number): self.job(hidden, heads, tensor, size, 1, layers, number)
                 for layers in (1, 2) for number in (1, 2)}
        one, two = (times[layers, 2] - times[layers, 1] for layers in (1, 2))
        once = [times[layers, 1] - each for layers, each in ((1, one), (2, two))]
        return two - one, 2 * one - two, once[1] - once[0], 2 * once[0] - once[1]

    @functools.cache
    def last_stage(self, hidden, heads, tensor, size):
        """Seconds that a microbatch takes in the last of two stages of one layer, which is the slower one."""
        two, four = (self.job(hidden, heads, tensor, size, 2, 2, number) for number in (2, 4))
        return (four - two) / 2

    def job(self, hidden, heads, tensor, size, stages, layers, number):
        """Seconds of an iteration of a small job, a DGX A100 for each stage."""
        config = f"topology: {{kind: star, hosts: {8 * stages}, rate: 200 Gbps}}\nhosts: {stages}\nhost: dgx_a100\n"
        job = (f"kind: ptdp\nmodel: {{layers: {layers}, hidden: {hidden}, heads: {heads}, sequence: {SEQUENCE}, "
               f"vocabulary: {VOCABULARY}}}\nparallel: {{tensor: {tensor}, pipeline: {stages}, data: 1}}\n"
               f"microbatch: {size}\nmicrobatches: {number}\n")
        return self.play(config, job, *self.compute)[0]

    @functools.cache
    def pipeline(self, stages, chunks, number, stage, size):
        """Seconds of `number` microbatches through equal stages."""
        forward = 6 * round(stage * 1e12 / 4 / 6)  # ps that any number of chunks divides
        def seconds(number):
            config = (f"topology: {{kind: star, hosts: {stages}, rate: 200 Gbps}}\nhost: single_nic\n"
                      "transport: {mtu: 64 KiB, congestion_control: none}\n")
            job = (f"kind: pipeline\nstages: {stages}\nvirtual_stages: {chunks}\nmicrobatches: {number}\n"
                   f"forward: {forward} ps\nbackward: {3 * forward} ps\nbytes: {size} B\n")
            return self.play(config, job)[0]
        if number <= 2 * stages:
            return seconds(number)
        once, twice = seconds(stages), seconds(2 * stages)
        return once + (twice - once) / stages * (number - stages)

    @functools.cache
    def data_parallel(self, tensor, data):
        """(seconds per byte, seconds) of the all-reduce of gradients."""
        def measured(layers):
            nodes = -(-tensor * data // 8)
            config = f"topology: {{kind: star, hosts: {8 * nodes}, rate: 200 Gbps}}\nhosts: {nodes}\nhost: dgx_a100\n"
            job = (f"kind: ptdp\nmodel: {{layers: {layers}, hidden: 1024, heads: 8, sequence: 8, vocabulary: 1024}}\n"
                   f"parallel: {{tensor: {tensor}, pipeline: 1, data: {data}}}\noptimizer: none\n")
            return self.play(config, job)[1]
        (less, small), (more, large) = measured(2 * tensor), measured(4 * tensor)
        slope = (more - less) / (large - small)
        return slope, less - slope * small


def simulate(netsim, row, size, chunks):
    """(seconds of an iteration, of it data parallelism's)."""
    layer, ends, optimizer, optimizer_ends = netsim.microbatch(row.hidden, row.heads, row.tensor, size)
    number, layers = row.number(size), row.layers / row.pipeline
    if row.pipeline == 1:
        compute = number * (layers * layer + ends)
    else:
        message = size * SEQUENCE * row.hidden * 2 // row.tensor
        last = netsim.last_stage(row.hidden, row.heads, row.tensor, size) - layer
        compute = netsim.pipeline(row.pipeline, chunks, number, layers * layer, message) + number * last
    slope, constant = netsim.data_parallel(row.tensor, row.data)
    data = slope * 2 * row.params * 1e9 / (row.tensor * row.pipeline) + constant
    return compute + data + optimizer * layers + optimizer_ends, data


def rated(netsim, row):
    """(TFLOP/s per GPU, b, v, iteration s, data parallelism s) of all choices, the slowest first."""
    found = []
    for size, chunks in row.choices():
        iteration, data = simulate(netsim, row, size, chunks)
        found.append((row.flops() / iteration / row.gpus / 1e12, size, chunks, iteration, data))
    return sorted(found)


def line(row, rate, size, chunks, iteration, data):
    error = f"{(rate / row.paper - 1) * 100:+.1f} %" if row.paper else ""
    return (f"| {row.params}B | {row.tensor}, {row.pipeline}, {row.data} | {size} x {row.number(size)} | {chunks} | {data:.2f} | "
            f"{iteration:.2f} | {rate:.1f} | {row.paper or ''} | {error} |")


def span_line(row, found):
    low, high = found[0], found[-1]
    choice = " to ".join(f"{each[1]}, {each[2]}" for each in (low, high))
    error = " to ".join(f"{(each[0] / row.paper - 1) * 100:+.1f}" for each in (low, high)) + " %" if row.paper else ""
    return (f"| {row.params}B | {row.tensor}, {row.pipeline}, {row.data} | {low[4]:.2f} | {100 * low[4] / low[3]:.1f} to "
            f"{100 * high[4] / high[3]:.1f} % | {choice} | {low[3]:.2f} to {high[3]:.2f} | {low[0]:.1f} to {high[0]:.1f} | "
            f"{row.paper or ''} | {error} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    measure.add_binary(parser)
    parser.add_argument("--rows", type=int, nargs="+", choices=range(1, len(ROWS) + 1), default=range(1, len(ROWS) + 1),
                        metavar="N", help="1 to 10")
    parser.add_argument("--all", action="store_true", help="every choice instead of the slowest and the fastest")
    parser.add_argument("--sustained", type=float)
    parser.add_argument("-j", "--jobs", type=int, default=len(os.sched_getaffinity(0)), metavar="N", help="rows at a time")
    options = parser.parse_args()
    netsim = Netsim(measure.find_binary(options.binary), options.sustained)
    rows = [Row(*ROWS[number - 1]) for number in options.rows]
    if options.all:
        print("| model | t, p, d | b x m | v | DP s | iteration s | TFLOP/s | paper | error |\n|---|---|---|---|---|---|---|---|---|")
    else:
        print("| model | t, p, d | DP s | DP of all | b, v: slowest to fastest | iteration s | TFLOP/s | paper | error |\n"
              "|---|---|---|---|---|---|---|---|---|")
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for row, found in zip(rows, pool.map(lambda row: rated(netsim, row), rows)):
            lines = [line(row, *each) for each in found] if options.all else [span_line(row, found)]
            print("\n".join(lines), flush=True)


if __name__ == "__main__":
    main()
