#!/usr/bin/env python3
"""Cross-mesh resharding: AlpaComm's cases (Zhuang et al., MLSys 2023) by each strategy, beside the lower bound, as a table.

    scripts/resharding_table.py                      # all, tensors of the paper's size
    scripts/resharding_table.py --shrink 4 --cases 4 9    # some, smaller by so many times in each dimension

Cases and tensors are those of the authors' repository (alpa-projects/alpa, benchmark/alpa/resharding/suite.py), on hosts of four GPUs that share 10 Gb/s. The
lower bound is what the busiest host has to take in, or what holders have to send, at 10 Gb/s, without headers.
"""
import argparse
import itertools
import json
import sys
import tempfile

from netsim_runs import execution

CONFIG = execution.ROOT / "configs/compute/aws_p3_8xlarge.yaml"
WORKLOAD = execution.ROOT / "configs/workloads/resharding.yaml"
STRATEGIES = ("send_recv", "all_gather", "broadcast")
RATE = 10e9
# From one GPU to (hosts, GPUs of each), whole everywhere; then the nine from mesh to mesh: hosts, spec, hosts, spec, tensor.
ONE_TO_MANY = [(1, 1), (1, 2), (1, 3), (1, 4), (2, 2), (3, 2), (4, 2)]
NINE = [(2, "S0RR", 2, "S0RR"), (2, "RRR", 2, "S0RR"), (2, "RS0R", 2, "S0RR"), (2, "RS01R", 2, "S01RR"), (2, "S1RR", 2, "S0RR"),
        (2, "S0RR", 3, "S0RR"), (1, "S1RR", 2, "RRR"), (1, "S1RR", 2, "RRR"), (2, "RS0R", 2, "RRS0")]


def cases(shrink):
    """(name, tensor, (rows, columns, spec) from, the same to)"""
    for rows, columns in ONE_TO_MANY:
        yield f"to ({rows},{columns})", [(1 << 28) // shrink**3], (1, 1, "R"), (rows, columns, "R")
    for number, (here, spec, there, spec_there) in enumerate(NINE, 1):
        tensor = [3 * 1024, 1024, 170] if there == 3 else [1024, 1024, 512]
        yield (str(number), [size // shrink if size % shrink == 0 else size for size in tensor], (here, 4, spec), (there, 4, spec_there))


def divided(length, mesh, axes):
    """The boundaries of a dimension that the axes of the mesh divide, and of each GPU (row, column) which part it has."""
    rows, columns, _ = mesh
    sizes = [rows if axis == "0" else columns for axis in axes]
    parts = 1
    for size in sizes:
        parts *= size
    part = {}
    for row, column in itertools.product(range(rows), range(columns)):
        index = 0
        for axis, size in zip(axes, sizes):
            index = index * size + (row if axis == "0" else column)
        part[row, column] = (index * length // parts, (index + 1) * length // parts)
    return part


def tiles(tensor, mesh):
    """Of each GPU its tile, an interval for each dimension."""
    spec = [text for text in mesh[2].replace("R", " R").replace("S", " S").split()]
    along = [divided(length, mesh, text[1:]) for length, text in zip(tensor, spec)]
    return {gpu: [part[gpu] for part in along] for gpu in along[0]}


def volume(tile):
    product = 1
    for begin, end in tile:
        product *= max(0, end - begin)
    return product


def lower_bound(tensor, source, destination):
    """Seconds: a host takes in each element that one of its GPUs needs; what only one host has, it sends; all together send all."""
    element = 4
    into = {}
    for (row, _), tile in tiles(tensor, destination).items():
        into.setdefault(row, set()).add(tuple(tile))
    # Tiles of a host are alike or apart.
    most = max(sum(volume(tile) for tile in of_host) for of_host in into.values())
    here = tiles(tensor, source)
    hosts = {row for row, _ in here}
    whole = 1
    for length in tensor:
        whole *= length
    alone = 0
    for host in hosts:
        own = {tuple(tile) for (row, _), tile in here.items() if row == host}
        others = {tuple(tile) for (row, _), tile in here.items() if row != host}
        alone = max(alone, sum(volume(tile) for tile in own - others))
    return max(most, alone, whole / len(hosts)) * element * 8 / RATE


def play(binary, tensor, source, destination, strategy):
    """Seconds, and bytes that came into the destination's hosts."""
    def mesh(of):
        return f"{{mesh: [{of[0]}, {of[1]}], spec: {of[2]}}}"
    with tempfile.TemporaryDirectory() as out:
        execution.run([str(binary), "--config", str(CONFIG), "--workload", str(WORKLOAD), "--threads", "1", "--quiet", "--out", out,
                     "--set", f"workload.tensor={tensor}", "--set", f"workload.from={mesh(source)}",
                     "--set", f"workload.to={mesh(destination)}", "--set", f"workload.strategy={strategy}",
                     "--set", "workload.gpus_per_host=4"])
        with open(f"{out}/summary.json", encoding="utf-8") as file:
            summary = json.load(file)
    return summary["jobs"][0]["jct_s"], summary["network"]["bytes_delivered"]


def table(binary, shrink, wanted, report=print):
    report("| case | from | to | bound s | " + " | ".join(f"{name} s" for name in STRATEGIES) + " | send_recv : broadcast | broadcast : bound |")
    report("|---" * (len(STRATEGIES) + 6) + "|")
    for name, tensor, source, destination in cases(shrink):
        if wanted and name not in wanted:
            continue
        bound = lower_bound(tensor, source, destination)
        seconds = [play(binary, tensor, source, destination, strategy)[0] for strategy in STRATEGIES]
        ends = [f"({rows},{columns}) {spec}" for rows, columns, spec in (source, destination)]
        report(f"| {name} | {ends[0]} | {ends[1]} | {bound:.4g} | " + " | ".join(f"{value:.4g}" for value in seconds)
               + f" | {seconds[0] / seconds[2]:.2f} | {seconds[2] / bound:.3f} |")
        sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    execution.add_binary(parser)
    parser.add_argument("--shrink", type=int, default=1, metavar="N", help="dimensions are so many times smaller (default 1)")
    parser.add_argument("--cases", nargs="+", metavar="CASE", help='some of them, as 4 or "to (1,4)"')
    arguments = parser.parse_args()
    known = [name for name, *_ in cases(1)]
    for name in arguments.cases or []:
        if name not in known:
            parser.error(f"no case {name} (known: {', '.join(known)})")
    table(execution.find_binary(arguments.binary), arguments.shrink, arguments.cases)


if __name__ == "__main__":
    main()
