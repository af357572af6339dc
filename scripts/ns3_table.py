#!/usr/bin/env python3
"""netsim against the HPCC-family ns-3 RDMA model: runs every scenario and prints the table of docs/evidence/ns3.md.

    scripts/ns3_table.py [--binary NETSIM] [--only TEXT] [--seeds 20] [--jobs N] [--imported DIR]

What ns-3 said is in configs/validation/ns3/reference.csv. Where ns-3's runs differ by random marking, netsim runs with as
many seeds and the means are compared; elsewhere one run is compared. With --imported netsim reads ns-3's own configuration
files, DIR/conf/RUN.txt, instead of configs/validation/ns3/; queues are then not sampled. Exit code 1 if a row is outside
its tolerance.
"""
import argparse
import concurrent.futures
import csv
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from netsim_runs import execution

CONFIGS = execution.ROOT / "configs" / "validation" / "ns3"

HOSTS = {"a_2to1_10MB": 3, "b_8to1_1MB": 9, "d_late_10MB": 3}
RED = "network.switch.marker={kind: red, kmin: 400 KB, kmax: 1600 KB, pmax: 0.2}"
WINDOW = ["transport.window_scales=true"]
DCQCN = ("fast_recovery_steps: 1, rate_ai: 20 Mbps, rate_hai: 200 Mbps, minimum_rate: 1 Gbps")
HPCC = ("eta: 0.95, rate_ai: 40 Mbps, minimum_rate: 1 Gbps, fast_reaction: true, quantise: true, "
        "unit_multiplier: 4, data_header: 42, ack_header: 28")
TIMELY = ("alpha: 0.875, beta: 0.8, t_low: 50 us, t_high: 500 us, minimum_rtt: 20 us, rate_ai: 100 Mbps, "
          "rate_hai: 500 Mbps, hai_after: 5, minimum_rate: 1 Gbps, header: 8")


def control(text):
    return f"transport.congestion_control={{{text}}}"


# Maps each congestion control of the reference's README to netsim's configuration.
CONTROLS = {
    "pfconly": [control("kind: none")],
    "dcqcn": [RED, control(f"kind: dcqcn, profile: vendor, {DCQCN}")],
    "dcqcn_paper": [RED, control(f"kind: dcqcn, profile: vendor, alpha_timer: 50 us, decrease_interval: 50 us, "
                                 f"increase_timer: 55 us, {DCQCN}")],
    "dcqcn_vwin": [RED, control(f"kind: dcqcn, profile: vendor, {DCQCN}")] + WINDOW,
    "hpcc": [RED, control(f"kind: hpcc, max_stage: 0, {HPCC}")] + WINDOW,
    "hpcc_mi5": [RED, control(f"kind: hpcc, max_stage: 5, {HPCC}")] + WINDOW,
    "timely": [RED, control(f"kind: timely, {TIMELY}")],
    "timely_vwin": [RED, control(f"kind: timely, {TIMELY}")] + WINDOW,
    "dctcp": ["network.switch.marker={kind: step, threshold: 300 KB, at: dequeue}",
              control("kind: dctcp, form: rate, g: 0.0625, rate_ai: 615 Mbps, minimum_rate: 1 Gbps")] + WINDOW,
}
BASE_RTT_NS = {1000: 4160, 4096: 4654}


def parts(run):
    """a_2to1_10MB_dcqcn_paper_1000_b32 -> scenario, control, payload, buffer in MiB."""
    scenario = next(s for s in HOSTS if run.startswith(s + "_"))
    name, payload, buffer = run[len(scenario) + 1:].rsplit("_", 2)
    return scenario, name, int(payload), int(buffer[1:])


def overlays(run):
    scenario, name, payload, buffer = parts(run)
    rtt = BASE_RTT_NS[payload]
    sets = [f"topology.hosts={HOSTS[scenario]}", f"transport.mtu={payload} B", f"transport.base_rtt={rtt} ns",
            f"network.switch.buffer={buffer} MiB"] + CONTROLS[name]
    if WINDOW[0] in sets:
        sets.append(f"transport.window={rtt * 100 // 8} B")  # 100 Gb/s x base RTT
    return sets


def simulate(arguments):
    netsim, run, seed, sampled, imported = arguments
    scenario = parts(run)[0]
    with tempfile.TemporaryDirectory() as out:
        command = [netsim, "--quiet", "--seed", str(seed), "--out", out, "--config"]
        if imported:
            command.append(imported / f"{run}.txt")
        else:
            command += [CONFIGS / "star.yaml", "--workload", CONFIGS / f"{scenario}.yaml"]
            for item in overlays(run):
                command += ["--set", item]
        receiver = f"switch0->host{HOSTS[scenario] - 1}"
        if sampled:
            command += ["--set", f"output.sample={{interval: 100 ns, queues: true, links: false, flows: false, "
                                 f"ports: [\"{receiver}\"]}}"]
        # ns-3's files name each other relative to the folder above their own.
        subprocess.run([str(c) for c in command], check=True, cwd=imported.parent if imported else None)
        with open(Path(out) / "flows.csv") as file:
            flows = list(csv.DictReader(file))
        with open(Path(out) / "summary.json") as file:
            network = json.load(file)["network"]
        times = sorted((int(f["acknowledged_ps"]) - int(f["start_ps"])) / 1e6 for f in flows)
        last = max(int(f["acknowledged_ps"]) for f in flows) / 1e6
        result = {"times": times, "last": last, "mean": sum(times) / len(times), "pauses": network["pfc_pauses"],
                  "peak": network["max_queue_bytes"] / 1000, "marks": network["ecn_marks"], "queue": None}
        if sampled:
            with open(Path(out) / "queue_samples.csv") as file:
                total = sum(int(row["queue_bytes"]) for row in csv.DictReader(file))
            result["queue"] = total / (last * 10) / 1000  # samples of 100 ns
        return result


def read_table(path):
    with open(path) as file:
        return {row["run"]: row for row in csv.DictReader(line for line in file if not line.startswith("#"))}


def beyond_rounding(value, reference, half_digit):
    """The reference's value that is nearest to ours among those which its printed digits stand for."""
    return min(max(value, reference - half_digit), reference + half_digit)


def off(value, reference):
    return 100 * (value - reference) / reference if reference else (0.0 if value == 0 else float("inf"))


def checks(run, results, ns3):
    """(name, netsim, ns-3, deviation in % or counts, inside its tolerance)."""
    _, name, payload, _ = parts(run)
    mean = lambda key: sum(r[key] for r in results) / len(results)
    reference = {"last": float(ns3["last_us"]), "mean": float(ns3["fct_mean_us"]), "pauses": float(ns3["pauses"]),
                 "peak": float(ns3["peak_KB"]), "queue": float(ns3["queue_mean_KB"])}
    marks = int(ns3["marks"])
    packet = (payload + 78) / 1000

    def relative(key, percent):
        return abs(off(mean(key), reference[key])) <= percent

    def row(key, inside):
        return key, mean(key), reference[key], off(mean(key), reference[key]), inside

    rows = []
    if name in ("pfconly", "dctcp") or (name.endswith("vwin") and marks == 0):
        times = [float(t) for t in ns3["fct_us"].split()]
        worst = max((off(a, b) for a, b in zip(results[0]["times"], sorted(times))), key=abs)
        rows.append(("each FCT", results[0]["times"][-1], max(times), worst, abs(worst) <= 1))
        rows.append(row("peak", relative("peak", 5) or abs(mean("peak") - reference["peak"]) <= packet))
        rows.append(row("pauses", relative("pauses", 5)))
    elif name.startswith("timely"):
        rows += [row("mean", relative("mean", 2)), row("last", relative("last", 2))]
        rows.append(row("pauses", relative("pauses", 10)))
    elif name.startswith("hpcc"):
        rows += [row("mean", relative("mean", 4)), row("last", relative("last", 3))]
        rows.append(row("peak", relative("peak", 5) or abs(mean("peak") - reference["peak"]) <= packet))
        if results[0]["queue"] is None:
            return rows
        reference["queue"] = beyond_rounding(mean("queue"), reference["queue"], 0.05)  # KB with one decimal
        rows.append(row("queue", relative("queue", 10)))
    else:
        rows.append(row("mean", relative("mean", 2 + 0.65 * float(ns3["fct_sd_percent"]))))
        rows.append(row("last", relative("last", 2 + 0.65 * float(ns3["last_sd_percent"]))))
        rows.append(row("peak", relative("peak", 15)))
        rows.append(row("pauses", relative("pauses", 30) or abs(mean("pauses") - reference["pauses"]) <= 3))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    execution.add_binary(parser)
    parser.add_argument("--only", default="", help="runs whose name contains this")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--imported", type=Path, metavar="DIR", help="run ns-3's own configuration files, DIR/conf/RUN.txt")
    execution.add_jobs(parser, "runs")
    arguments = parser.parse_args()
    netsim = execution.find_binary(arguments.binary)
    imported = (arguments.imported / "conf").resolve() if arguments.imported else None
    if imported and not imported.is_dir():
        parser.error(f"--imported: there is no folder {imported}")
    figures = read_table(CONFIGS / "reference.csv")
    runs = [run for run in figures if arguments.only in run]
    if not runs:
        parser.error(f"--only: no run has '{arguments.only}' in its name; there are {', '.join(figures)}")
    work = []
    for run in runs:
        random = figures[run]["varied"] == "seed" and int(figures[run]["marks"]) > 0
        sampled = parts(run)[1].startswith("hpcc") and not arguments.imported
        work += [(netsim, run, seed, sampled, imported)
                 for seed in range(1, (arguments.seeds if random else 1) + 1)]
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        results = list(pool.map(simulate, work))
    failed = 0
    print("| run | figure | netsim | ns-3 | deviation | |")
    print("|---|---|---:|---:|---:|---|")
    for run in runs:
        mine = [r for w, r in zip(work, results) if w[1] == run]
        for name, value, reference, deviation, inside in checks(run, mine, figures[run]):
            failed += not inside
            print(f"| {run} | {name} | {value:.4g} | {reference:.4g} | {deviation:+.2f} % | "
                  f"{'' if inside else 'outside'} |")
    print(f"\n{len(runs)} runs, {failed} figures outside their tolerance", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
