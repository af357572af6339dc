#!/usr/bin/env python3
"""Instructions per data packet-hop, counted by callgrind: the guard against slow growth that no load disturbs.

    scripts/instructions.py [--binary NETSIM] [--only SCENARIO] [--update]

Each scenario runs with two lengths; the difference over the packet-hops in between is the cost of a hop, without
start and set-up. ACKs, congestion notifications, PFC frames and timers are in it: they are part of what a data
packet costs. Exits with 1 where a scenario costs over 10 % more than tests/performance/instructions.json says, with
77 (ctest: skipped) where there is no valgrind. --update writes the figures anew; then the commit says why they
changed. They are of the Release build with Debian 12's GCC 12; another compiler may need other ones.
"""

import argparse
import json
import pathlib
import sys
import tempfile

from netsim_runs import execution

LIMIT = 0.10
SKIPPED = 77

FAT_TREE = "topology: {kind: fat_tree, k: 4, rate: 100 Gbps, delay: 1 us}\nhost: single_nic\n"
STAR = "topology: {kind: star, hosts: 9, rate: 100 Gbps, delay: 1 us}\nhost: single_nic\n"
DCQCN = "transport: {acknowledge: {every: 1}, congestion_control: dcqcn}\n"
LINE_RATE = "transport: {acknowledge: {every: 1}, congestion_control: none}\n"

# Name: configuration, workload, the two lengths that its {length} takes.
SCENARIOS = {
    # Every flow crosses the core; collisions of ECMP, marks, notifications.
    "permutation": (FAT_TREE + DCQCN, "{{kind: permutation, ranks: 16, shift: 8, bytes: {length} MB}}\n", (1, 4)),
    # One full port, senders paused by PFC most of the time.
    "incast_pfc": (STAR + LINE_RATE, "{{kind: incast, senders: 8, receiver: 8, bytes: {length} MB}}\n", (3, 12)),
    # Short messages of a collective, four packets each: executor, queue pairs, an uncongested network.
    "ring_all_reduce": (FAT_TREE + DCQCN, "{{kind: collective, collective: all_reduce, bytes: 1 MB, "
                                          "repeat: {length}}}\n", (1, 4)),
}


def total(binary, directory, name, length):
    """Instructions and data packet-hops of one run."""
    config, workload, _ = SCENARIOS[name]
    (directory / "config.yaml").write_text(config)
    (directory / "workload.yaml").write_text(workload.format(length=length))
    count, output = execution.instructions([str(binary), "--config", str(directory / "config.yaml"), "--workload",
                                          str(directory / "workload.yaml"), "--quiet", "--json", "-",
                                          "--threads", "1"])  # more would count their waiting for each other
    return count, json.loads(output)["packet_hops"]["total"]


def per_hop(binary, name):
    with tempfile.TemporaryDirectory() as directory:
        (count0, hops0), (count1, hops1) = (total(binary, pathlib.Path(directory), name, length)
                                            for length in SCENARIOS[name][2])
    return (count1 - count0) / (hops1 - hops0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    execution.add_binary(parser)
    parser.add_argument("--stored", type=pathlib.Path, default=execution.ROOT / "tests/performance/instructions.json")
    parser.add_argument("--only", choices=SCENARIOS, help="the scenario to run (default: all)")
    parser.add_argument("--update", action="store_true", help="write the figures measured into the file")
    options = parser.parse_args()
    binary = execution.find_binary(options.binary)
    if not execution.has_callgrind():
        print("skipped: valgrind is not installed")
        return SKIPPED
    measured = {name: round(per_hop(binary, name), 1) for name in SCENARIOS
                if options.only in (None, name)}
    if options.update:
        if options.only:
            parser.error("--update needs all scenarios, and --only was given")
        options.stored.write_text(json.dumps({"instructions_per_hop": measured}, indent=2) + "\n")
    stored = json.loads(options.stored.read_text())["instructions_per_hop"]
    print(f"{'instructions per hop':<22} {'stored':>8} {'now':>8} {'change':>8}")
    for name, now in measured.items():
        print(f"{name:<22} {stored[name]:>8.1f} {now:>8.1f} {now / stored[name] - 1:>+8.1%}")
    worse = [name for name, now in measured.items() if now > stored[name] * (1 + LIMIT)]
    if worse:
        print(f"over {LIMIT:.0%} more than stored: {', '.join(worse)}; if it is worth it, --update and say why")
    elif all(now < stored[name] * (1 - LIMIT) for name, now in measured.items()):
        print("all much less than stored: --update, so that the gain is kept")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
