#!/usr/bin/env python3
"""PTD-P's table 1 (Narayanan et al., SC'21) beside whole jobs, over the choices that the paper leaves open.

    scripts/ptdp_table.py                      # the span of TFLOP/s over microbatches and interleaving, row by row
    scripts/ptdp_table.py --rows 1 3 --all     # some rows, every choice
    scripts/ptdp_table.py --rows 3 --exact     # without either shortcut, beside what they give

The paper gives neither the microbatch size b nor the model chunks per stage v for this table: all of b = 1, 2, 4, 8 and
v = 1, 2, 3 that divide are simulated. Each is a job of all GPUs of its row, packet by packet, with two shortcuts where it is large
(scripts/netsim_runs/steps.py):

- microbatches: a step is affine in their number from some on (`Choice.number`), so it is put together out of steps of one
  replica (t x p GPUs) with as many and with some more (interleaved: a whole round of the pipeline), and of what the other replicas
  add to a job with two microbatches of one sequence;
- packets: a job above --most-hops packet-hops (by --dry-run) carries what leaves hosts in packets of 64 KiB.

So one job of all GPUs serves all choices of a row. Those that do not fit into 80 GiB are left out. What DIR (results/ptdp) has already for the same program and files is not played again,
so a table that was stopped goes on where it was.

The first and the last row are those that `sustained` of the compute model was calibrated on.
"""
import argparse
import concurrent.futures
import dataclasses
import pathlib
import sys

from netsim_runs import execution
from netsim_runs import steps

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
SHORT = 2  # microbatches of jobs that measure the time that replicas add to a step
STUDY = execution.ROOT / "configs" / "studies" / "megatron"
HOSTS_OF_A_UNIT = 32


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

    def line(self):
        """How the step is put together; None where it is played as it is."""
        every, replicas = self.microbatches, (1, SHORT) if self.row.data > 1 else ()
        more = 2 * self.number if self.chunks > 1 else self.number + 2
        if every > more:
            return steps.Line("microbatches", self.number, more, every, *replicas)
        return steps.Line("microbatches", every, every, every, *replicas) if replicas and every > SHORT else None

    def job(self, *overlays):
        """The whole of it."""
        row, hosts = self.row, -(-self.row.gpus // 8)
        chunks = (f"{steps.CHUNKS}={self.chunks}",) if self.chunks > 1 else ()
        return steps.Job(
            f"{row.params}B_b{self.size}_v{self.chunks}", STUDY / "dgx_a100.yaml", STUDY / "gpt.yaml",
            (f"hosts={hosts}", f"topology.units={-(-hosts // HOSTS_OF_A_UNIT)}",
             f"workload.model={{layers: {row.layers}, hidden: {row.hidden}, heads: {row.heads}, sequence: {SEQUENCE}, "
             f"vocabulary: {VOCABULARY}}}",
             f"workload.parallel={{tensor: {row.tensor}, pipeline: {row.pipeline}, data: {row.data}, virtual_stages: 1}}",
             f"workload.microbatch={self.size}", f"workload.microbatches={self.microbatches}", *chunks, *overlays))

    def __str__(self):
        return f"{self.row.params}B, b = {self.size}, v = {self.chunks}"


def fitting(player, choices, overlays=()):
    """Those that the GPUs have the memory for."""
    for choice in choices:
        try:
            player.hops(choice.job(*overlays))
            yield choice
        except steps.DoesNotFit as why:
            player.report(f"{choice}: left out, {why}")


def rated(play, choices, overlays=()):
    """(TFLOP/s per GPU, choice, times) of each, the slowest first; `play` is the player's step or alone."""
    played = [(choice, play(choice.job(*overlays), choice.line())) for choice in choices]
    return sorted(((steps.tflops(times), choice, times) for choice, times in played), key=lambda entry: entry[0])


def seconds(times):
    """Step, computing, exposed TP, PP and DP, idle."""
    exposed = ", ".join(f"{times['exposed_s'][stream]:.2f}" for stream in ("tp", "pp", "dp"))
    return f"{times['step_s']:.2f} | {times['compute_s']:.2f} | {exposed} | {times['idle_s']:.2f}"


def line(rate, choice, times):
    row = choice.row
    error = f"{(rate / row.paper - 1) * 100:+.1f} %" if row.paper else ""
    return (f"| {row.params}B | {row.tensor}, {row.pipeline}, {row.data} | {choice.size} x {choice.microbatches} | {choice.chunks} | "
            f"{seconds(times)} | {rate:.1f} | {row.paper or '?'} | {error} |")


def span_line(row, found):
    (low, slowest, most), (high, fastest, least) = found[0], found[-1]
    choice = " to ".join(f"{each.size}, {each.chunks}" for each in (slowest, fastest))
    error = " to ".join(f"{(each / row.paper - 1) * 100:+.1f}" for each in (low, high)) + " %" if row.paper else ""
    return (f"| {row.params}B | {row.tensor}, {row.pipeline}, {row.data} | {choice} | {most['step_s']:.2f} to {least['step_s']:.2f} | "
            f"{low:.1f} to {high:.1f} | {row.paper or '?'} | {error} |")


def exact_line(player, choice):
    """The step without shortcuts, beside the one with both."""
    try:
        short = player.step(choice.job(), choice.line())["step_s"]
    except steps.DoesNotFit:
        return f"| {choice.row.params}B | {choice.size} x {choice.microbatches} | {choice.chunks} | does not fit | | | | |"
    whole = player.play(choice.job())["times"]["step_s"]
    large = player.play(choice.job().also("_64k", steps.LARGE_PACKETS))["times"]["step_s"]
    return (f"| {choice.row.params}B | {choice.size} x {choice.microbatches} | {choice.chunks} | {whole:.3f} | {large:.3f} | "
            f"{(large / whole - 1) * 100:+.2f} % | {short:.3f} | {(short / whole - 1) * 100:+.2f} % |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    execution.add_binary(parser)
    parser.add_argument("--rows", type=int, nargs="+", choices=range(1, len(ROWS) + 1), default=range(1, len(ROWS) + 1),
                        metavar="N", help="1 to 10")
    parser.add_argument("--all", action="store_true", help="every choice instead of the slowest and the fastest")
    parser.add_argument("--alone", action="store_true",
                        help="by one replica only: all but the data parallelism, in a fraction of the time")
    parser.add_argument("--exact", action="store_true", help="what the shortcuts change, for every choice of the rows")
    parser.add_argument("--sizes", type=int, nargs="+", choices=MICROBATCHES, metavar="B", help="these sizes of a microbatch only")
    parser.add_argument("--chunks", type=int, nargs="+", choices=CHUNKS, metavar="V", help="these numbers of chunks only")
    parser.add_argument("--sustained", type=float, help="of the GPU's compute model (default: the model's)")
    parser.add_argument("--most-hops", type=float, default=5e8, metavar="HOPS",
                        help="packet-hops above which a job has large packets (default: 5e8)")
    parser.add_argument("--out", type=pathlib.Path, default=execution.ROOT / "results" / "ptdp", metavar="DIR",
                        help="where results are kept (default: results/ptdp)")
    parser.add_argument("--again", action="store_true", help="play again what is there")
    execution.add_jobs(parser, "rows")
    options = parser.parse_args()
    player = steps.Player(execution.find_binary(options.binary), options.out, options.again, options.most_hops,
                          lambda text: print(text, file=sys.stderr, flush=True))
    overlays = (f"compute={{kind: a100_80gb, sustained: {options.sustained}}}",) if options.sustained else ()
    rows = [Row(*ROWS[number - 1]) for number in options.rows]

    def chosen(row):
        return [choice for choice in row.choices() if choice.size in (options.sizes or MICROBATCHES)
                and choice.chunks in (options.chunks or CHUNKS)]

    def lines(row):
        choices = chosen(row)
        if options.exact:
            return [exact_line(player, choice) for choice in choices]
        choices = fitting(player, choices, overlays)
        found = rated(player.alone if options.alone else player.step, choices, overlays)
        if not found:
            return []
        return [line(*each) for each in found] if options.all else [span_line(row, found)]

    if options.exact:
        print("| model | b x m | v | whole s | 64 KiB packets | | by the shortcuts | |\n|---|---|---|---|---|---|---|---|")
    elif options.all:
        print("| model | t, p, d | b x m | v | step s | compute s | exposed TP, PP, DP s | idle s | TFLOP/s | paper | error |\n"
              "|---|---|---|---|---|---|---|---|---|---|---|")
    else:
        print("| model | t, p, d | b, v: slowest to fastest | step s | TFLOP/s | paper | error |\n|---|---|---|---|---|---|---|")
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for found in pool.map(lines, rows):
            print("\n".join(found), flush=True)


if __name__ == "__main__":
    main()
