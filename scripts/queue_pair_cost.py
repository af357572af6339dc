#!/usr/bin/env python3
"""What a packet costs with 10 and with 10,000 queue pairs on one NIC: instructions (callgrind) and time.

    scripts/queue_pair_cost.py [--binary NETSIM] [--time-only]

All flows go from host 0 to host 1, each on a queue pair of its own, all at time 0 and with the same number of
packets in all. Each case runs with two lengths; the difference over the packets in between is the cost of a
packet, without what it costs to begin and to set up queue pairs. Exits with 1 where the requirements are not
met: instructions within 10 %, time within a factor of 1.5.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile
import time

from netsim_runs import execution

MTU = 4096
CASES = (10, 10_000)  # queue pairs
PACKETS = (100_000, 300_000)  # in all, of the two lengths
CONFIG = """\
topology: {kind: star, hosts: 2, rate: 100 Gbps, delay: 1 us}
network: {switch: {marker: none}}
transport: {congestion_control: none}
"""


def flow_list(directory, queue_pairs, packets):
    path = directory / f"flows_{queue_pairs}_{packets}.csv"
    size = packets // queue_pairs * MTU
    lines = ["source,destination,bytes,start_s"] + [f"0,1,{size},0"] * queue_pairs
    path.write_text("\n".join(lines) + "\n")
    return path


def command(binary, directory, flows):
    return [str(binary), "--config", str(directory / "star.yaml"), "--workload", str(flows), "--quiet"]


def instructions(call):
    return execution.instructions(call)[0]


def seconds(call):
    """Of the run itself, the best of three."""
    best = None
    for _ in range(3):
        begin = time.monotonic()
        subprocess.run(call, capture_output=True, check=True)
        took = time.monotonic() - begin
        best = took if best is None else min(best, took)
    return best


def per_packet(measure, binary, directory, queue_pairs, lengths):
    costs = [measure(command(binary, directory, flow_list(directory, queue_pairs, n))) for n in lengths]
    return (costs[1] - costs[0]) / (lengths[1] - lengths[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    execution.add_binary(parser)
    parser.add_argument("--time-only", action="store_true", help="without callgrind")
    options = parser.parse_args()
    binary = execution.find_binary(options.binary)
    count = not options.time_only and execution.has_callgrind()
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        (directory / "star.yaml").write_text(CONFIG)
        times = [per_packet(seconds, binary, directory, n, [10 * p for p in PACKETS]) for n in CASES]
        counts = [per_packet(instructions, binary, directory, n, PACKETS) for n in CASES] if count else None
    print(f"{'queue pairs':>12} {'ns/packet':>10} {'instructions/packet':>20}")
    for i, n in enumerate(CASES):
        print(f"{n:>12} {times[i] * 1e9:>10.1f} {counts[i] if counts else float('nan'):>20.1f}")
    ratio = times[1] / times[0]
    print(f"{'ratio':>12} {ratio:>10.3f} {counts[1] / counts[0] if counts else float('nan'):>20.4f}")
    ok = ratio <= 1.5 and (counts is None or abs(counts[1] / counts[0] - 1) <= 0.1)
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
