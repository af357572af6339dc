#!/usr/bin/env python3
"""Plays the measured training steps of configs/reality/reference.csv and prints them beside what was measured.

    scripts/reality.py [FAMILY...] [--rows ROW...] [--chosen] [--without-clock] [--most-gpus N] [--out DIR] [--again] [--jobs N] [--threads N] [--packets HOPS] [--binary NETSIM]
                       [--plot PICTURE.svg]
                       [--list | --dry-run | --kept | --common | --shortcuts [HOPS]]
    scripts/reality.py --calibrate [FAMILY...]

A job that DIR (results/reality) has already for the same files, values and program is not played again, so a run that was stopped goes
on where it was. The table has the measured and the simulated step in seconds, the error, and where a GPU's time went: computing,
exposed communication by stream, idle. Behind it stand the mean absolute error, how steps grow when only data parallelism does, and what
the critical path of each miss consists of: a row that misses by more than 5 % is played once more for that.

Compute is calibrated by one constant for each family, GPU and precision, `clock` of the row that `calibrates` (yes); all other rows are
predictions. Families without such a row, or whose clock was not looked for yet, have the clock of the row that says `common` for its GPU and precision; --common plays the
calibrating rows with that one, the stricter test. --calibrate finds the clocks by a few runs each and writes them into the table.

--without-clock plays rows by the compute model of their GPU whose clock follows from power (kind GPU_power), so that all rows are predictions.
What a calibrated clock stands for too is then as the recipes have it: the multiprocessors that communication of tensor parallelism holds
(configs/reality/userbuffers.csv) and messages between stages, other settings (configs/reality/recipes.csv), and casts and copies that Megatron-Core
does not fuse. --chosen plays a set of rows that takes under an hour on two cores.

GPUs are not all alike: each takes longer or shorter than its model says, by VARIATION in the standard deviation, and the step waits for the slowest.
While gradients and parameters travel, each channel of the library holds a multiprocessor (HOLDING), and computing has the others.

A row with many microbatches may say in its column `microbatches` three numbers, as `16 32 288`: the job is played with 16 and with 32,
and what the 16 more take is the same from some rounds of the pipeline on, so the step of 288 is that of 16 and 17 times this. With
`replicas 1` behind them what more take is played with one data-parallel replica, that of the slowest GPU (scripts/netsim_runs/steps.py). A job above 15 G
packet-hops by --dry-run (--packets) carries traffic between hosts in packets of 64 KiB, marked * in the table. --shortcuts prints what both
change, for rows that are affordable without them. Rows NAME@SETTING differ
in what was not published: the span over them is printed, and whether what was measured lies inside.
"""
import argparse
import concurrent.futures
import csv
import dataclasses
import functools
import math
import pathlib
import re
import sys

from netsim_runs import execution
from netsim_runs import steps

CONFIGS = execution.ROOT / "configs" / "reality"
TABLE = CONFIGS / "reference.csv"
USERBUFFERS = CONFIGS / "userbuffers.csv"  # multiprocessors beside GEMMs, by family
RECIPES = CONFIGS / "recipes.csv"  # other settings of the recipes, by family
MODELS = execution.ROOT / "configs" / "models"
MEGATRON_CORE = "workload.tensor_copies=megatron_core"  # copies that all runs of NeMo make, which is Megatron-Core
# Megatron-Core posts receives between stages ahead. They hold multiprocessors while they wait, one for each channel of a peer, of which NCCL's
# library has as many as the fabric needs.
POSTED_RECEIVES = ("gpus.channels_hold_multiprocessors=[dp, pp]", "collectives.point_to_point.kind=nccl_p2p")
BLACKWELL = ("b200", "gb200")  # GPUs whose GEMMs in FP8 need no transposed operands (Transformer Engine, is_non_tn_fp8_gemm_supported)
VARIATION = 0.015  # of GPUs of one kind (Sinha et al., SC 2022; docs/concepts/compute.md)
HOLDING = "dp"  # streams whose channels hold multiprocessors: those beside which there is always something to compute
WITHOUT_CLOCK = "_power"  # end of the names of compute models that choose their clock
CALIBRATED = 1.5e-3  # relative error of a step that a clock was found for
MISS = 0.05  # relative error of a step from which on its critical path is asked for


@dataclasses.dataclass
class Row:
    name: str
    family: str
    gpu: str
    gpus: int
    hosts: int
    data: int  # 0: as the workload says
    precision: str
    config: pathlib.Path
    workload: pathlib.Path
    values: list
    clock: float  # of this row's compute model; None: the model of its GPU whose clock follows from power
    calibrates: bool  # the clock is taken from this row
    calibrated: bool  # and has been
    common: bool  # it is that of families without such a row, too
    chosen: bool  # it is one of the set that --chosen plays
    measured: float  # seconds; None: not published
    line: steps.Line  # of its microbatches; None: the step is simulated as it is
    number: int  # of its line in the table

    def without_clock(self):
        """The row by the compute model alone: its clock follows from power, and settings that a clock stands for are as the recipes have them."""
        values = list(self.values)
        held = multiprocessors_beside_gemms().get(self.family)
        if held and "tensor_overlap" in self.workload.read_text():
            values.append(f"workload.parallel.tensor_overlap.multiprocessors={{{held}}}")
        if self.precision == "FP8":
            values.append("workload.fused_casts=norms")
            if self.gpu in BLACKWELL:
                values.append("workload.transposed_operands=false")
        values += [MEGATRON_CORE, *(POSTED_RECEIVES if self.stages() > 1 else ()), *settings_of_recipes().get(self.family, [])]
        return dataclasses.replace(self, clock=None, calibrates=False, calibrated=False, common=False, values=values)

    def job(self):
        model = f"kind: {self.gpu}, clock: {self.clock}" if self.clock else f"kind: {self.gpu}{WITHOUT_CLOCK}"
        values = [f"compute={{{model}}}", f"gpus.variation={VARIATION}", f"gpus.channels_hold_multiprocessors={HOLDING}",
                  f"hosts={self.hosts}", *self.values]
        if self.data:
            values.append(f"{steps.DATA}={self.data}")
        if self.precision != "BF16":
            values.append(f"workload.precision={self.precision.lower()}")
        return steps.Job(self.name, self.config, self.workload, tuple(values))

    def parts(self):
        """The jobs that are played for it, but for where those of few replicas are."""
        return self.line.parts(self.job())[:3] if self.line else (self.job(),)

    def grid(self):
        """How its ranks lie: GPUs of a host, and ranks of a stage of one replica."""
        return steps.Grid(self.gpus // self.hosts, self.data, self.gpus // (self.data * self.stages()))

    def stages(self):
        """Of its pipeline; 1: it has none."""
        pipelines = re.findall(r"\bpipeline[:=] *(\d+)", "\n".join([self.workload.read_text(), *self.values]))
        return int(pipelines[-1]) if pipelines else 1

    def weak_scaling(self):
        """What rows have in common that differ in data parallelism only."""
        every = self.line.every if self.line else 0
        return self.family, self.gpu, self.precision, self.workload, every, tuple(without_size(self.values))


def entries_of(path):
    """The rows of a table whose lines of comments begin with #."""
    with open(path, encoding="utf-8") as lines:
        return list(csv.DictReader(line for line in lines if not line.startswith("#")))


@functools.cache
def multiprocessors_beside_gemms():
    """Keys of tensor_overlap.multiprocessors as text, by family."""
    return {entry["family"]: ", ".join(f"{key}: {value}" for key, value in entry.items() if key not in ("family", "source"))
            for entry in entries_of(USERBUFFERS)}


@functools.cache
def settings_of_recipes():
    """What is laid over the rows of a family, as a list. MODELS stands for the folder of the models."""
    return {entry["family"]: entry["set"].replace("MODELS", str(MODELS)).split(";") for entry in entries_of(RECIPES)}


def without_size(values):
    """The values that do not say how large the fabric is."""
    return [value for value in values if not value.startswith(("topology.", "fabrics."))]


def read_rows(path=TABLE):
    """The rows of the table; SystemExit with the line where one is wrong."""
    rows = []
    with open(path, encoding="utf-8") as lines:
        numbered = [(number, line) for number, line in enumerate(lines, 1) if not line.startswith("#")]
    for (number, _), entry in zip(numbered[1:], csv.DictReader(line for _, line in numbered)):
        try:
            calibrates, chosen = {"": False, "yes": True, "common": True}, {"": False, "yes": True}
            if (entry.get("chosen") or "") not in chosen:
                raise ValueError(f"chosen: '{entry['chosen']}' was given; yes or nothing is expected")
            if entry["calibrates"] not in calibrates:
                raise ValueError(f"calibrates: '{entry['calibrates']}' was given; yes, common or nothing is expected")
            measured = None if entry["measured_s"] == "?" else float(entry["measured_s"])
            if calibrates[entry["calibrates"]] and measured is None:
                raise ValueError("a row that calibrates needs a measured step")
            if entry["calibrates"] == "common" and not entry["clock"]:
                raise ValueError("a common row needs a clock")
            line = steps.read_line(f"microbatches {entry['microbatches']}" if entry["microbatches"] else "")
            if line and line.replicas and not entry["data"]:
                raise ValueError("a row with 'replicas' needs the number of all in its column data")
            rows.append(Row(entry["row"], entry["family"], entry["gpu"], int(entry["gpus"]), int(entry["hosts"]), int(entry["data"] or 0),
                            entry["precision"], path.parent / entry["config"], path.parent / entry["workload"],
                            [value for value in entry["set"].split(";") if value], float(entry["clock"] or 0),
                            calibrates[entry["calibrates"]], bool(calibrates[entry["calibrates"]] and entry["clock"]),
                            entry["calibrates"] == "common", chosen[entry.get("chosen") or ""], measured, line, number))
        except (KeyError, TypeError, ValueError) as error:
            raise SystemExit(f"{path}:{number}: {error}") from error
        for file in (rows[-1].config, rows[-1].workload):
            if not file.is_file():
                raise SystemExit(f"{path}:{number}: there is no {file}")
    for row in rows:
        if not row.clock:
            clocks = [other.clock for other in rows if other.calibrated and other.family == row.family and alike(other, row)]
            row.clock = (clocks or [common_clock(rows, row)])[0]
        if not row.clock:
            raise SystemExit(f"{path}:{row.number}: no row of {row.family} calibrates {row.gpu} in {row.precision}, and no common one does")
    return rows


def alike(row, other):
    return row.gpu == other.gpu and row.precision == other.precision


def common_clock(rows, row):
    """That of the common row for the row's GPU and precision; None where there is none."""
    return next((other.clock for other in rows if other.common and alike(other, row)), None)


def play(player, row):
    """The times of the row's whole step."""
    result = player.step(row.job(), row.line, row.grid() if row.line and row.line.replicas else None)
    if result["ranks"] != row.gpus:
        raise SystemExit(f"{row.name}: {row.workload} is for {result['ranks']} GPUs, the table says {row.gpus}")
    return result


def shortcuts(player, row, affordable):
    """What the shortcuts make of the row's step, relative: both, only few microbatches, only large packets; with the step itself in
    seconds before. None where that has more than `affordable` packet-hops, or where nothing is left out."""
    whole = row.job().also("_whole", *([f"workload.{row.line.key}={row.line.every}"] if row.line else []))
    hops = player.hops(whole)
    if hops > affordable or (not row.line and hops <= player.most_hops):
        return None
    step = player.play(whole)["times"]["step_s"]
    few = play(player.with_most_hops(math.inf), row)["step_s"] if row.line else step
    large = player.play(steps.with_packets(whole, True))["times"]["step_s"]
    both = play(player.with_most_hops(0), row)["step_s"]
    return step, both / step - 1, few / step - 1, large / step - 1


def calibrate(player, row):
    """The clock at which the row takes what was measured. What computes takes a time in proportion to 1 / clock, nearly: secants."""
    clock, points = row.clock, []
    for _ in range(4):
        played = play(player, dataclasses.replace(row, clock=clock))
        print(f"{row.name}: clock {clock:.4f} takes {played['step_s']:.4f} s of {row.measured:.3f} s", file=sys.stderr)
        if abs(played["step_s"] / row.measured - 1) < CALIBRATED:
            break
        points.append((1 / clock, played["step_s"]))
        slope = played["compute_s"] * clock
        if len(points) > 1:
            slope = (points[-1][1] - points[-2][1]) / (points[-1][0] - points[-2][0])
        clock = round(1 / (points[-1][0] + (row.measured - played["step_s"]) / slope), 4)
    return clock


def write_clocks(path, clocks):
    """Replaces the clock of each line of the table that `clocks` names."""
    lines = path.read_text(encoding="utf-8").splitlines()
    column = next(csv.reader([next(line for line in lines if not line.startswith("#"))])).index("clock")
    for number, clock in clocks.items():
        cells = next(csv.reader([lines[number - 1]]))
        cells[column] = f"{clock:.4f}"
        lines[number - 1] = ",".join(f'"{cell}"' if "," in cell else cell for cell in cells)
    execution.write_whole(path, "\n".join(lines) + "\n")


def error_of(row, result):
    """Relative error of the step; None where nothing was measured, or where the clock was taken from the row."""
    return None if row.measured is None or row.calibrated else result["step_s"] / row.measured - 1


def line_of(row, result):
    exposed = ", ".join(f"{result['exposed_s'][stream]:.2f}" for stream in steps.STREAMS)
    error = error_of(row, result)
    shown = f"{100 * error:+.1f} %" if error is not None else "(clock)" if row.calibrated else ""
    measured = f"{row.measured:.3f}" if row.measured is not None else "?"
    mark = "*" if result["large_packets"] else ""
    return (f"| `{row.name}`{mark} | {row.gpus} | {row.precision} | {measured} | {result['step_s']:.3f} | {shown} "
            f"| {result['compute_s']:.2f} | {exposed} | {result['idle_s']:.2f} |")


def summary_of(errors):
    if not errors:
        return "no row was predicted and measured"
    worst = max(errors, key=abs)
    mean = sum(abs(error) for error in errors) / len(errors)
    within = sum(abs(error) <= MISS for error in errors)
    return (f"{len(errors)} rows predicted and measured: mean absolute error {100 * mean:.1f} %, largest {100 * worst:+.1f} %, "
            f"{within} within 5 %")


def slopes(played):
    """Lines about steps that grow with data parallelism alone, in points of the step: from 128 to 512 GPUs, or what there is of it."""
    groups, lines = {}, []
    for row, result in played:
        groups.setdefault(row.weak_scaling(), {})[row.gpus] = (row, result)
    for (family, gpu, precision, *_), rows in groups.items():
        for first, last in {(128 if 128 in rows and max(rows) > 128 else min(rows), 512 if 512 in rows and min(rows) < 512 else max(rows)),
                            (min(rows), max((gpus for gpus, (row, _) in rows.items() if row.measured is not None), default=min(rows)))}:
            if first < last:
                (small, of_small), (large, of_large) = rows[first], rows[last]
                measured = f"{100 * (large.measured / small.measured - 1):+.2f}" if small.measured and large.measured else "?"
                simulated = 100 * (of_large["step_s"] / of_small["step_s"] - 1)
                lines.append(f"| {family} | {gpu} | {precision} | {first} to {last} | {measured} | {simulated:+.2f} |")
    return sorted(lines)


def spans(played):
    """Lines about rows whose settings were not published: NAME@SETTING."""
    groups, lines = {}, []
    for row, result in played:
        if "@" in row.name:
            groups.setdefault(row.name.split("@")[0], []).append((row.measured, result["step_s"]))
    for name, steps in groups.items():
        measured, low, high = steps[0][0], min(step for _, step in steps), max(step for _, step in steps)
        verdict = "" if measured is None else "inside" if low <= measured <= high else f"{100 * (min(low, high, key=lambda end: abs(end - measured)) / measured - 1):+.1f} % beside it"
        lines.append(f"| {name} | {len(steps)} | {low:.3f} to {high:.3f} | {'?' if measured is None else f'{measured:.3f}'} | {verdict} |")
    return lines


def misses(player, played):
    """Lines about what the critical path of each row that misses consists of."""
    for row, result in played:
        error = error_of(row, result)
        if error is None or abs(error) <= MISS or "@" in row.name:
            continue
        try:
            result = play(player, dataclasses.replace(row, values=[*row.values, "output.critical_path=true"]))
        except steps.NotPlayed:
            yield f"{row.name} {100 * error:+.1f} %: not played with critical paths"
            continue
        shares = sorted(result["critical_s"].items(), key=lambda entry: -entry[1])
        yield f"{row.name} {100 * error:+.1f} %: " + ", ".join(f"{what} {time:.2f} s" for what, time in shares if time >= 0.005)


def plot(path, played):
    """Simulated over measured steps, by precision; those that miss by more than 5 % have their names."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    figure, axes = pyplot.subplots(figsize=(5.5, 5.5))
    measured = [(row, result) for row, result in played if row.measured is not None]
    for precision in sorted({row.precision for row, _ in measured}):
        points = [(row, result) for row, result in measured if row.precision == precision]
        axes.scatter([row.measured for row, _ in points], [result["step_s"] for _, result in points], label=precision, s=14)
    for row, result in measured:
        if abs(error_of(row, result) or 0) > MISS:
            axes.annotate(row.name, (row.measured, result["step_s"]), fontsize=6, textcoords="offset points", xytext=(5, -6))
    times = [time for row, result in measured for time in (row.measured, result["step_s"])]
    ends = [0.8 * min(times), 1.25 * max(times)]
    axes.plot(ends, ends, color="black", linewidth=0.8)
    axes.fill_between(ends, [0.95 * end for end in ends], [1.05 * end for end in ends], alpha=0.15, color="grey", label="5 %")
    axes.set(xlabel="measured step, s", ylabel="netsim's step, s", xscale="log", yscale="log", xlim=ends, ylim=ends)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("family", nargs="*", help="families of rows (default: all)")
    parser.add_argument("--rows", nargs="+", default=[], metavar="ROW", help="these rows only")
    parser.add_argument("--chosen", action="store_true", help="the chosen set of rows only: each family and precision, under an hour on two cores")
    parser.add_argument("--without-clock", action="store_true", help="by the compute model alone, whose clock follows from power")
    parser.add_argument("--most-gpus", type=int, metavar="N", help="rows of at most so many GPUs only")
    parser.add_argument("--out", type=pathlib.Path, default=execution.ROOT / "results" / "reality", metavar="DIR",
                        help="where results are kept (default: results/reality)")
    parser.add_argument("--again", action="store_true", help="play rows again that are there")
    execution.add_jobs(parser, "rows")
    parser.add_argument("--threads", type=int, default=0, metavar="N", help="threads of netsim (default: the cores shared out among rows)")
    parser.add_argument("--packets", type=float, default=15e9, metavar="HOPS",
                        help="packet-hops above which a job carries traffic between hosts in packets of 64 KiB (default: 15e9)")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--list", action="store_true", help="print the rows' commands, play nothing")
    what.add_argument("--dry-run", action="store_true", help="print packet-hops and minutes of each job as it would be played, and of all; play nothing")
    what.add_argument("--kept", action="store_true", help="the table of those rows that were played, with whatever --packets; play nothing")
    what.add_argument("--calibrate", action="store_true", help="find the clocks of the families and write them into the table")
    what.add_argument("--common", action="store_true", help="play the rows that calibrate with the common clock")
    what.add_argument("--shortcuts", type=float, nargs="?", const=5e9, metavar="HOPS",
                      help="play rows without shortcuts that then have at most so many packet-hops (default: 5e9), and print what both change")
    parser.add_argument("--plot", type=pathlib.Path, metavar="PICTURE.svg", help="a scatter plot (python3-matplotlib)")
    execution.add_binary(parser)
    options = parser.parse_args()
    everything = rows = read_rows()
    for given, there, kind in ((options.family, {row.family for row in rows}, "family"),
                               (options.rows, {row.name for row in rows}, "row")):
        for name in given:
            if name not in there:
                parser.error(f"no {kind} '{name}'; there are {', '.join(sorted(there))}")
    rows = [row for row in rows if (not options.family or row.family in options.family)
            and (not options.rows or row.name in options.rows) and (not options.chosen or row.chosen) and (options.most_gpus is None or row.gpus <= options.most_gpus)]
    if not rows:
        parser.error("no row is left")
    if options.without_clock:
        if options.calibrate or options.common:
            parser.error("--without-clock has no clock that --calibrate or --common could set")
        rows = [row.without_clock() for row in rows]
    threads = options.threads or max(1, execution.cores() // min(options.jobs, len(rows)))
    player = steps.Player(execution.find_binary(options.binary), options.out, options.again, None if options.kept else options.packets,
                          lambda text: print(text, file=sys.stderr, flush=True), threads)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        try:
            run(options, player, pool, everything, rows)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def predictions(player, row):
    """Each job of the row as it would be played, with large packets where it has too many hops, and what --dry-run says of it."""
    return [(part, player.predict(part)) for part in player.sized(*row.parts())]


def run(options, player, pool, everything, rows):
    """What was asked for, of these rows of all."""
    if options.list:
        for part in (part for row in rows for part in row.parts()):
            print(" ".join(f"'{word}'" if " " in word else word for word in part.call(player.binary)))
        return
    if options.dry_run:
        hops = minutes = 0
        for part, predicted in (pair for pairs in pool.map(lambda row: predictions(player, row), rows) for pair in pairs):
            print(f"{part.name}: {predicted['packet_hops'] / 1e9:.2f} G packet-hops, {predicted['minutes']:.1f} minutes", flush=True)
            hops, minutes = hops + predicted["packet_hops"], minutes + predicted["minutes"]
        print(f"in all {hops / 1e9:.2f} G packet-hops, {minutes / 60:.1f} hours of a core")
        return
    if options.calibrate:
        rows = [row for row in rows if row.calibrates]
        for row, clock in zip(rows, pool.map(lambda row: calibrate(player, row), rows)):
            write_clocks(TABLE, {row.number: clock})
            print(f"{row.name}: clock {clock:.4f}", flush=True)
        return
    if options.shortcuts is not None:
        print("| row | GPUs | precision | whole s | both shortcuts | few microbatches | packets of 64 KiB |\n|---|---|---|---|---|---|---|", flush=True)
        for row, found in zip(rows, pool.map(lambda row: shortcuts(player, row, options.shortcuts), rows)):
            if found:
                print(f"| `{row.name}` | {row.gpus} | {row.precision} | {found[0]:.4f} | " + " | ".join(f"{100 * part:+.3f} %" for part in found[1:]) + " |", flush=True)
        return
    if options.common:
        rows = [dataclasses.replace(row, clock=common_clock(everything, row), calibrated=False)
                for row in rows if row.calibrates and not row.common and common_clock(everything, row)]
    played = []

    def play_numbered(numbered):
        number, row = numbered
        if not options.kept:
            print(f"{row.name} ({number} of {len(rows)})", file=sys.stderr)
        try:
            return row, play(player, row)
        except steps.NotPlayed:
            return None

    print("| row | GPUs | precision | measured s | netsim s | error | compute s | exposed TP, CP, EP, PP, DP, IO, offload s | idle s |")
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    for found in filter(None, pool.map(play_numbered, enumerate(rows, 1))):
        played.append(found)
        print(line_of(*found), flush=True)
    print("\n" + summary_of([error for row, result in played if "@" not in row.name and (error := error_of(row, result)) is not None]))
    for title, lines in (("| weak scaling | GPU | precision | GPUs | measured, points | netsim, points |\n|---|---|---|---|---|---|", slopes(played)),
                         ("| settings not published | runs | netsim s | measured s | |\n|---|---|---|---|---|", spans(played)),
                         ("Critical paths of what misses by more than 5 %:", list(misses(player, played)))):
        if lines:
            print("\n" + "\n".join([title, *lines]))
    if options.plot:
        plot(options.plot, played)


if __name__ == "__main__":
    main()
