#!/usr/bin/env python3
"""netsim against published times of layers whose communication overlaps with tiles of their GEMMs (FLUX, Comet, FlashOverlap).

    scripts/tile_layers.py [--only TEXT ...] [--rows] [--csv TABLE.csv] [--layers LAYERS.csv] [--jobs N] [--binary NETSIM]

LAYERS.csv (configs/studies/tiles/layers.csv) has a row for each published time. `part` says what was timed: a gather and the GEMM
behind it, a GEMM and the reduce-scatter or all-reduce behind it, or a layer with both. serial_ms is the time without overlap, and
overlapped_ms with it. Times of the GEMMs are the published ones, if there are any: serial_gemm_ms and gemm_ms. Otherwise they are those of
the GPU's model at the clock of long runs. A GPU is a configuration beside LAYERS.csv.

Layers with experts whose tokens are gathered by tensor-parallel ranks exchange the same bytes as a dense layer. So they are played as one
whose GEMMs take as long as the grouped GEMMs of the experts on a rank.

Without overlap a collective of the library follows the GEMM, or precedes it. With overlap each system has the keys of
tensor_overlap in SYSTEMS. FlashOverlap's tuner chooses the number of pieces, so the number that takes least counts, and 1 is among them.
--rows prints all rows, otherwise the script prints a summary by system, part and GPU.
"""
import argparse
import collections
import concurrent.futures
import csv
import math
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from netsim_runs import execution

STUDY = execution.ROOT / "configs" / "studies" / "tiles"
PARTS = {"gather": "gathers", "reduce_scatter": "reduce_scatters", "all_reduce": "all_reduces"}
UP, DOWN, BETWEEN = "mlp_up_gemm", "mlp_down_gemm", "squared_relu"
# FLUX gathers by one copy for each rank, behind which a flag is set (all_gather_gemm_op.cc), and stores tiles of sums. On PCIe both go
# around a ring. A kernel then adds up what came, unless the store itself does (ring of the report's L20).
FLUX = ("gathers: direct, reduce_scatters: direct, pieces: 1, kernels: sliced",)
RING = ("gathers: ring_exchange, reduce_scatters: ring_exchange, kernels: sliced, transfers: stores, sums: memory",)
# Comet's second kernel has 26 blocks that only communicate, of 132 (docs/tuning_guide.md of bytedance/flux). The rest multiplies.
BLOCKS, OTHER_BLOCKS = 132, 106
COMET = ("gathers: direct, reduce_scatters: direct, pieces: 1, kernels: sliced, multiprocessors: {mlp_down: 26}",)
FLASH = tuple(f"{{part}}: pipelined, pieces: {pieces}, kernels: sliced, launches: next_wave" for pieces in (1, 2, 4, 8, 16))
DECOMPOSED = tuple(f"{{part}}: pipelined, pieces: {pieces}" for pieces in (1, 2, 4, 8, 16))  # several GEMMs of the library
# Models of the GPUs' kernels whose times are not given. The L20 has that of its configuration.
MODELS = {"a800": "a100_80gb_power", "h800": "h800_sxm_power", "h100": "h100_sxm_power"}
SYSTEMS = {"flux": FLUX, "flux_experts": COMET, "comet": COMET, "flashoverlap": FLASH, "decomposition": DECOMPOSED}
NUMBERS = ("ranks", "tokens", "hidden", "inner", "experts", "top_k")
TIMES = ("serial_gemm_ms", "gemm_ms", "serial_ms", "overlapped_ms")
Row = collections.namedtuple("Row", ("system", "part", "gpu", *NUMBERS, *TIMES))
Played = collections.namedtuple("Played", "serial overlapped")  # milliseconds
HEADER = ("system", "part", "gpu", *NUMBERS, "measured_serial_ms",
          "netsim_serial_ms", "measured_overlapped_ms", "netsim_overlapped_ms", "error_percent", "measured_gain", "netsim_gain", "produced_by")


def read_rows(path):
    def number(text, kind):
        return kind(text) if text else None

    with open(path, encoding="utf-8", newline="") as file:
        return [Row(line["system"], line["part"], line["gpu"], *(number(line[name], int) for name in NUMBERS),
                    *(number(line[name], float) for name in TIMES)) for line in csv.DictReader(file)]


def workload(row, overlap):
    """A job of one layer: dense, or its experts where `overlap` is None."""
    model = f"kind: llama, layers: 1, hidden: {row.hidden}, heads: 64, groups: 64, sequence: {row.tokens}, vocabulary: 1024, gated: false"
    if overlap is None:
        experts = f"count: {row.experts}, top_k: {row.top_k}, inner: {row.inner}"
        return (f"kind: ptdp\nmodel: {{{model}, experts: {{{experts}}}}}\n"
                f"parallel: {{tensor: {row.ranks}, sequence: true}}\nrecompute: none\noptimizer: none\n")
    sequence = "false" if row.part == "all_reduce" else "true"
    return (f"kind: ptdp\nmodel: {{{model}, inner: {row.inner}}}\n"
            f"parallel: {{tensor: {row.ranks}, sequence: {sequence}, tensor_overlap: {{{overlap}}}}}\nrecompute: none\noptimizer: none\n")


def play(netsim, row, overlap, kernels, settings=()):
    """The tasks of a job whose kernels take so many milliseconds: lines of tasks.csv."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lines = [f"{kernel},{1000 * time:.6f}\n" for kernel, time in kernels.items()]
        (folder / "kernels.csv").write_text("kernel,time_us\n" + "".join(lines or ["no_kernel,0\n"]))
        (folder / "workload.yaml").write_text(workload(row, overlap))
        model = MODELS.get(row.gpu)
        measured = f"compute={{kind: measured, file: {folder / 'kernels.csv'}, otherwise: {model}}}" if model else None
        command = [netsim, "--quiet", "--threads", "1", "--report", "no", "--config", STUDY / f"{row.gpu}.yaml", "--workload",
                   folder / "workload.yaml", "--out", folder / "out"]
        for item in (measured or f"compute.file={folder / 'kernels.csv'}", *settings):
            command += ["--set", item]
        done = subprocess.run([str(part) for part in command], check=False, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"{row}\n{done.stderr.strip()}")
        with open(folder / "out" / "tasks.csv", encoding="utf-8", newline="") as file:
            return [line for line in csv.DictReader(file) if "backward" not in line["name"]]


def milliseconds(tasks, part):
    """Returns how long a part of the layer's MLP took: from the first rank's begin to the last one's end."""
    def last(chosen, column, of_rank):
        found = collections.defaultdict(list)
        for line in tasks:
            if chosen(line["name"]):
                found[line["rank"]].append(int(line[column]) / 1e9)
        return max(of_rank(times) for times in found.values())

    if part in ("gather", "layer"):
        begin = last(lambda name: name.startswith("mlp_forward") and name.endswith(("norm", "residual")), "end_ps", max)
    else:
        begin = last(lambda name: name.endswith("." + DOWN), "start_ps", min)
    if part == "gather":
        return last(lambda name: name.endswith("." + UP), "end_ps", max) - begin
    return last(lambda name: name.startswith("layer_end_forward"), "start_ps", min) - begin


def experts_time(netsim, row, kernel):
    """Milliseconds of a kernel of a rank's experts; all others take none."""
    names = {UP: "expert_up_gemm", DOWN: "expert_down_gemm", BETWEEN: BETWEEN}
    tasks = play(netsim, row, None, {name: 0 for key, name in names.items() if key != kernel})
    return statistics.mean((int(line["end_ps"]) - int(line["start_ps"])) / 1e9 for line in tasks if "experts_forward" in line["name"]
                           and line["kind"] == "compute")


def kernels_of(netsim, row, overlapped):
    """Milliseconds of the kernels that do not have those of the GPU's model."""
    if row.experts:
        times = {kernel: experts_time(netsim, row, kernel) for kernel in (UP, DOWN, BETWEEN)}
        if overlapped and row.gpu in MODELS:
            times[DOWN] *= BLOCKS / OTHER_BLOCKS
        return times
    time = row.gemm_ms if overlapped else row.serial_gemm_ms
    return {UP if row.part == "gather" else DOWN: time} if time else {}


def simulate(netsim, row):
    parts = ("gather", "reduce_scatter") if row.part == "layer" else (row.part,)
    serial = ", ".join(f"{PARTS[part]}: pipelined" for part in parts) + ", pieces: 1"
    systems = RING if row.gpu == "l20" else SYSTEMS[row.system]
    settings = ("gpus.channels_hold_multiprocessors=tp",) if "pipelined" in systems[0] else ()
    kernels = kernels_of(netsim, row, True)
    times = [milliseconds(play(netsim, row, overlap.replace("{part}", PARTS.get(row.part, "")), kernels, settings), row.part)
             for overlap in systems]
    return Played(milliseconds(play(netsim, row, serial, kernels_of(netsim, row, False)), row.part), min(times))


def error(pairs):
    return 100 * (math.exp(sum(abs(math.log(ours / theirs)) for ours, theirs in pairs) / len(pairs)) - 1)


def line_of(row, played):
    def gain(serial, overlapped):
        return f"{serial / overlapped:.3f}" if serial else ""

    return (row.system, row.part, row.gpu, *("" if value is None else value for value in row[3:9]), row.serial_ms or "", f"{played.serial:.3f}",
            row.overlapped_ms, f"{played.overlapped:.3f}", f"{100 * (played.overlapped / row.overlapped_ms - 1):.1f}",
            gain(row.serial_ms, row.overlapped_ms), gain(row.serial_ms and played.serial, played.overlapped), "scripts/tile_layers.py")


def print_summary(times):
    cells = collections.defaultdict(list)
    for row, played in times.items():
        cells[row.system, row.part, row.gpu].append((row, played))
    print("| system | part | GPU | rows | mean error, % | largest | within 15 % | error without overlap |\n|---|---|---|---:|---:|---:|---:|---:|")
    for key, found in cells.items():
        errors = [100 * (played.overlapped / row.overlapped_ms - 1) for row, played in found]
        serial = [(played.serial, row.serial_ms) for row, played in found if row.serial_ms]
        print(f"| {' | '.join(key)} | {len(found)} | {error([(played.overlapped, row.overlapped_ms) for row, played in found]):.1f} | "
              f"{max(errors, key=abs):+.1f} | {sum(abs(value) <= 15 for value in errors)} | {f'{error(serial):.1f}' if serial else ''} |")
    print(f"all rows: {error([(played.overlapped, row.overlapped_ms) for row, played in times.items()]):.1f} %", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    execution.add_binary(parser)
    parser.add_argument("--layers", type=Path, default=STUDY / "layers.csv", metavar="LAYERS.csv", help="the published times (default: %(default)s)")
    parser.add_argument("--only", nargs="+", default=[], metavar="TEXT", help="rows whose system, part or GPU is one of these")
    parser.add_argument("--rows", action="store_true", help="print every row instead of the summary")
    parser.add_argument("--csv", type=Path, metavar="TABLE.csv", help="write every row to a file, too")
    execution.add_jobs(parser, "rows")
    arguments = parser.parse_args()
    netsim = execution.find_binary(arguments.binary)
    rows = [row for row in read_rows(arguments.layers) if all(text in row[:3] for text in arguments.only)]
    if not rows:
        parser.error("no row is left")
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        times = dict(zip(rows, pool.map(lambda row: simulate(netsim, row), rows)))
    lines = [HEADER, *(line_of(row, played) for row, played in times.items())]
    if arguments.csv:
        execution.write_whole(arguments.csv, "".join(",".join(map(str, line)) + "\n" for line in lines))
    if arguments.rows:
        print("\n".join(",".join(map(str, line[:-1])) for line in lines))
    else:
        print_summary(times)
    return 0


if __name__ == "__main__":
    sys.exit(main())
