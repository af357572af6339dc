#!/usr/bin/env python3
"""Writes a large Chakra trace and measures how long netsim takes to load it, and in how much memory.

    scripts/large_trace.py --ranks 3072 --nodes 1000

Each rank has computations that alternate with an all-reduce in groups of 8 ranks, every tenth of all ranks that have the same place in
their group. The trace is generated, and is deleted at the end. The time is that of one core for `netsim describe-trace`, which loads the trace,
counts its tasks and plays them on the ideal network.
"""

import argparse
import json
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
GROUP = 8


def varint(value):
    data = bytearray()
    while value >= 0x80:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    data.append(value)
    return bytes(data)


def number(field, value):
    return varint(field << 3) + varint(value)


def text(field, value):
    return varint(field << 3 | 2) + varint(len(value)) + value


def record(message):
    return varint(len(message)) + message


def attribute(name, field, value):
    return text(10, text(1, name) + (number(field, value) if isinstance(value, int) else text(field, value)))


def node(index, rank, ranks):
    head = number(1, index) + (text(5, varint(index - 1)) if index > 0 else b"")
    if index % 2 == 0:
        return record(head + text(2, b"kernel") + number(3, 4) + number(7, 5 + index % 7) + attribute(b"is_cpu_op", 27, 0))
    across = index % 20 == 19 and ranks > GROUP
    name = ranks // GROUP + 1 + rank % GROUP if across else rank // GROUP + 1
    return record(head + text(2, b"all_reduce") + number(3, 7) + attribute(b"is_cpu_op", 27, 0) + attribute(b"comm_type", 9, 0) +
                  attribute(b"comm_size", 9, 1 << 20) + attribute(b"pg_name", 29, str(name).encode()))


def write(folder, ranks, nodes):
    groups = {str(g + 1): list(range(g * GROUP, (g + 1) * GROUP)) for g in range(ranks // GROUP)}
    groups.update({str(ranks // GROUP + 1 + place): list(range(place, ranks, GROUP)) for place in range(GROUP)})
    (folder / "large.json").write_text(json.dumps(groups))
    for rank in range(ranks):
        (folder / f"large.{rank}.et").write_bytes(record(text(1, b"1.0.0")) + b"".join(node(i, rank, ranks) for i in range(nodes)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, default=3072, help=f"a multiple of {GROUP}")
    parser.add_argument("--nodes", type=int, default=1000, help="nodes of a rank")
    parser.add_argument("--binary", default=str(ROOT / "build/run/netsim"), help="the program")
    parser.add_argument("--seconds", type=float, help="exit code 1 if it takes longer")
    parser.add_argument("--gib", type=float, help="exit code 1 if it takes more memory")
    options = parser.parse_args()
    if options.ranks < GROUP or options.ranks % GROUP:
        sys.exit(f"--ranks: {options.ranks} was given; allowed: a multiple of {GROUP}")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="netsim_large_trace_"))
    try:
        write(folder, options.ranks, options.nodes)
        done = subprocess.run([options.binary, "describe-trace", folder, "--json", "-"], capture_output=True, text=True, check=False)
    finally:
        shutil.rmtree(folder)
    if done.returncode != 0:
        sys.exit(done.stderr)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds, gib = used.ru_utime + used.ru_stime, used.ru_maxrss / (1 << 20)
    facts = json.loads(done.stdout)
    print(f"{facts['ranks']} ranks, {facts['tasks']} tasks: {seconds:.1f} s, {gib:.2f} GiB")
    sys.exit(int((options.seconds is not None and seconds > options.seconds) or (options.gib is not None and gib > options.gib)))


if __name__ == "__main__":
    main()
