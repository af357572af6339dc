#!/usr/bin/env python3
"""Random scenarios end alike with any number of threads and sets of atoms.

    tests/scenarios/random_scenarios.py --binary build/run/netsim [--count 300] [--seed 1]

A scenario draws a topology, routing, flow control, congestion control, reliability, faults and a workload. It runs with
one thread in the computed number of sets, and with several threads in 1, 2, 3 and 7 sets. All runs must have the same
exit code, fingerprints and results. A configuration that netsim refuses must be refused by all runs with the same line.
"""
import argparse
import json
import random
import subprocess
import sys
import tempfile
import pathlib

WAYS = [(1, 0), (2, 1), (2, 2), (3, 3), (4, 7)]  # (threads, sets)
ALLOWED = {0, 2, 3, 5, 6}
TIMEOUT_S = 120

TOPOLOGIES = [
    ("{kind: star, hosts: 9, rate: 100 Gbps, delay: 500 ns}", 9),
    ("{kind: fat_tree, k: 4, rate: 100 Gbps, delay: 500 ns}", 16),
    ("{kind: leaf_spine, leaves: 4, spines: 3, hosts_per_leaf: 4, rate: 100 Gbps}", 16),
    ("{kind: torus, sizes: [3, 3], rate: 100 Gbps, delay: 300 ns}", 9),
    ("{kind: dragonfly, a: 4, h: 2, p: 2, rate: 100 Gbps}", 16),
    ("{kind: hyperx, sizes: [3, 3], hosts_per_switch: 1, rate: 100 Gbps}", 9),
    ("{kind: jellyfish, switches: 6, hosts_per_switch: 2, degree: 3, rate: 100 Gbps}", 12),
]
ROUTING = ["ecmp", "ecmp", "spray", "adaptive"]
CONTROLS = ["none", "dcqcn", "dctcp", "hpcc", "swift", "timely", "powertcp"]
RELIABILITY = ["go_back_n", "go_back_n", "{kind: irn, reorder_tolerance: 200}"]


def draw(random_, hosts):
    """Returns the network, transport and workload of a scenario on so many hosts."""
    ranks = random_.randint(2, hosts)
    size = random_.choice(["1 B", "5 KB", "100 KB", "1 MB"])
    collective = random_.choice(["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast"])
    workloads = [
        f"kind: collective\ncollective: {collective}\nbytes: {size}\nranks: {ranks}\n",
        f"kind: incast\nsenders: {max(1, ranks - 1)}\nbytes: {size}\n",
        f"kind: permutation\nbytes: {size}\n",
        "kind: phases\niterations: 2\nranks: %d\nphases: [{compute: 20 us}, {collective: %s, bytes: %s}]\n" % (ranks, collective, size),
        "kind: flows\nflows:\n" + "".join(
            f"  - {{from: {a}, to: {(a + random_.randint(1, hosts - 1)) % hosts}, bytes: {random_.randint(1, 300000)} B, "
            f"start: {random_.randint(0, 50)} us}}\n" for a in random_.choices(range(hosts), k=8)),
    ]
    flow_control = random_.choice(["pfc", "pfc", "credits", "none"])
    marker = random_.choice(["none", "{kind: red}"])
    network = f"{{switch: {{flow_control: {flow_control}, marker: {marker}, routing: {random_.choice(ROUTING)}}}"
    if random_.random() < 0.3:
        network += f", faults: [{{link: host0-{{}}, rate: 40 Gbps, at: {random_.randint(1, 40)} us}}]"
    network += "}"
    transport = (f"{{congestion_control: {random_.choice(CONTROLS)}, reliability: {random_.choice(RELIABILITY)}, "
                 f"queue_pairs: {random_.choice([1, 2, 4])}, retransmission_timeout: 200 us}}")
    return network, transport, random_.choice(workloads)


def first_switch(binary, directory, topology):
    """Returns the name of the switch that host0 hangs on, from the table of links of a small run, or None."""
    (directory / "probe.yaml").write_text(f"topology: {topology}\nhost: single_nic\n")
    (directory / "probe_w.yaml").write_text("kind: flows\nflows: [{from: 0, to: 1, bytes: 1 KB}]\n")
    run(binary, directory, "probe.yaml", "probe_w.yaml", 1, 0, out="probe")
    for line in (directory / "probe" / "links.csv").read_text().splitlines():
        if line.startswith("host0->"):
            return line.split(",")[0].split("->")[1]
    return None


def run(binary, directory, config, workload, threads, sets, out=None):
    words = [binary, "--quiet", "--threads", str(threads), "--config", config, "--workload", workload, "--until", "200ms"]
    words += ["--out", out] if out else ["--json", "-"]
    if sets:
        words += ["--set", f"engine.sets={sets}"]
    return subprocess.run(words, cwd=directory, capture_output=True, text=True, timeout=TIMEOUT_S)


def answer(ended):
    """Returns what must be equal in all runs of a scenario."""
    if ended.returncode in {2, 3}:
        return ended.returncode, ended.stderr
    if not ended.stdout:
        return ended.returncode, ended.stderr
    summary = json.loads(ended.stdout)
    kept = {key: summary[key] for key in ("fingerprint", "simulated_time_s", "packets", "packet_hops", "network", "flows", "jobs")}
    return ended.returncode, json.dumps(kept, sort_keys=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--count", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    binary = str(pathlib.Path(options.binary).resolve())
    bad, codes = [], {}
    with tempfile.TemporaryDirectory() as folder:
        directory = pathlib.Path(folder)
        switches = {}
        for number in range(options.count):
            random_ = random.Random(f"{options.seed} {number}")
            topology, hosts = random_.choice(TOPOLOGIES)
            network, transport, workload = draw(random_, hosts)
            if "host0-{}" in network:
                if topology not in switches:
                    switches[topology] = first_switch(binary, directory, topology)
                network = network.replace("{}", switches[topology])
            config = f"topology: {topology}\nhost: single_nic\nnetwork: {network}\ntransport: {transport}\n"
            (directory / "c.yaml").write_text(config)
            (directory / "w.yaml").write_text(workload)
            answers = [answer(run(binary, directory, "c.yaml", "w.yaml", *way)) for way in WAYS]
            code = answers[0][0]
            codes[code] = codes.get(code, 0) + 1
            differs = [way for way, other in zip(WAYS, answers) if other != answers[0]]
            if code not in ALLOWED or differs:
                bad.append(number)
                print(f"scenario {number} of seed {options.seed}: exit code {code}, differs with (threads, sets) {differs}\n{config}{workload}")
                for way, other in zip(WAYS, answers):
                    print(f"  {way}: {other[0]} {other[1][:300]}")
    print(f"{options.count} scenarios, exit codes {dict(sorted(codes.items()))}: {len(bad)} differ or end badly")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
