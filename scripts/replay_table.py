#!/usr/bin/env python3
"""Writes the table of replays: the recorded time of each trace with recorded times, that of its replay, and what explains the difference.

    scripts/replay_table.py ../shared/samples --out docs/evidence/data/replays.csv

The recorded time is that between the begin of the first operation of a GPU and the end of the last one in the file of rank 0, or that which the
sample states. `step_s` is the length of the profiler's steps, which also have the CPU's work before and behind the GPU's. TRACES names the interconnect on which each trace is replayed. `computation_s`, `cpu_s`, `communication_s` and `waiting_s` are the
parts of the replay's critical path. `left_out_s` is the waiting in the trace that no recorded cause explains.
"""

import argparse
import csv
import gzip
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
COLUMNS = ["trace", "interconnect", "recorded_s", "replayed_s", "difference_percent", "step_s", "step_difference_percent", "computation_s", "cpu_s", "communication_s", "waiting_s",
           "left_out_s"]
ONE_GPU = ("one GPU", "topology: {kind: star, hosts: 2, rate: 100 Gbps, delay: 1 us}\nhost: single_nic\n")
# The A100 of its devices are in one host. NCCL's channels there are those of NVSwitch.
DGX_A100 = ("2 GPUs of a DGX A100 (NVSwitch)", "topology: {kind: star, hosts: 16, rate: 200 Gbps, delay: 1 us}\nhost: dgx_a100\ncollectives: {all_reduce: nccl, protocol: auto}\n")
# The sample states that a step takes 6 us and moves its bytes at 40 GB/s. Here each pair of ranks has a link of its own.
STATED = ("40 GB/s and 6 us a step, as stated",
          "topology: {kind: star, hosts: 4, rate: 100 Gbps, delay: 1 us}\n"
          "host: {kind: full_mesh, gpus: 4, nvlink_rate: 320 Gbps, nvlink_efficiency: 1, nvlink_delay: 0}\n"
          "collectives: {library: as_configured, all_reduce: ring, all_gather: ring, reduce_scatter: ring, slots: 0, slice: 1 GiB, slices_per_chunk: 1, "
          "base_latency_ring: 0, hop_latency_nvlink_ring: 6 us}\n")
TRACES = [("kineto/synthetic_4rank", STATED), ("kineto/hta/resnet_ddp_2gpu_rank0_step5.json.gz", DGX_A100), ("kineto/hta/alexnet_1gpu.json.gz", ONE_GPU),
          ("kineto/hta/event_sync.json.gz", ONE_GPU), ("kineto/hta/event_sync_multi_stream.json.gz", ONE_GPU),
          ("kineto/hta/mi250_rocm.json.gz", ONE_GPU), ("kineto/tracelens/sglang_qwen3_8b_decode_mi300x.json.gz", ONE_GPU)]
GPU_EVENTS = {"kernel", "gpu_memcpy", "gpu_memset"}


def recorded(path):
    """Seconds from the first operation of a GPU to the end of the last one, and those of the profiler's steps (None: it has none)."""
    first = path / "rank0.json" if path.is_dir() else path
    with (gzip.open(first) if first.suffix == ".gz" else first.open("rb")) as file:
        events = json.load(file)["traceEvents"]
    steps = [event["dur"] for event in events if event.get("name", "").startswith("ProfilerStep#") and event.get("cat") == "user_annotation"]
    of_gpu = [event for event in events if event.get("cat", "").lower() in GPU_EVENTS]
    span = max(event["ts"] + event["dur"] for event in of_gpu) - min(event["ts"] for event in of_gpu)
    if path.is_dir():
        span = json.loads((path / "EXPECTED.json").read_text(encoding="utf-8"))["makespan_us"]
    return span * 1e-6, sum(steps) * 1e-6 if steps else None


def seconds_in(note):
    """The time in brackets at the end of a note: 'left out: 99 (391 ms)'."""
    found = re.search(r"\(([\d.]+) (s|ms|us|ns)\)$", note)
    return float(found[1]) * {"s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}[found[2]] if found else 0


def path_parts(table):
    """Seconds on the critical path by computation, work of the CPU, communication and waiting."""
    parts = dict.fromkeys(("computation_s", "cpu_s", "communication_s", "waiting_s"), 0.0)
    for row in csv.DictReader(table.open(encoding="utf-8")):
        if row["name"] == "cpu":
            row["kind"] = "host_thread"
        kind = {"compute": "computation_s", "host_thread": "cpu_s", "host_compute": "cpu_s", "held": "waiting_s"}.get(row["kind"], "communication_s")
        parts[kind] += (int(row["duration_ps"])) * 1e-12
    return parts


def row_of(binary, folder, name, cluster):
    path = folder / name
    inputs = sorted(path.glob("rank*.json")) if path.is_dir() else [path]
    with tempfile.TemporaryDirectory(prefix="netsim_replay_") as out:
        config = pathlib.Path(out) / "cluster.yaml"
        config.write_text(cluster[1] + "output: {critical_path: true}\n", encoding="utf-8")
        command = [binary, "--config", config, *[word for one in inputs for word in ("--workload", one)], "--out", f"{out}/run", "--report", "no", "--json", "-"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{name}: {done.stderr}")
        parts = path_parts(pathlib.Path(out) / "run/critical_path.csv")
    summary = json.loads(done.stdout)
    (given, step), again = recorded(path), summary["jobs"][0]["jct_s"]
    left_out = sum(seconds_in(note) for note in summary["notes"] if "longer waiting that no recorded cause explains" in note)
    return {"trace": name, "interconnect": cluster[0], "recorded_s": f"{given:.6f}", "replayed_s": f"{again:.6f}",
            "difference_percent": f"{100 * (again / given - 1):.1f}", "step_s": f"{step:.6f}" if step else "none",
            "step_difference_percent": f"{100 * (again / step - 1):.1f}" if step else "none", "left_out_s": f"{left_out:.6f}",
            **{part: f"{time:.6f}" for part, time in parts.items()}}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, help="the CSV file (default: stdout)")
    parser.add_argument("--binary", default=str(ROOT / "build/run/netsim"), help="the program")
    options = parser.parse_args()
    if not options.folder.is_dir():
        sys.exit(f"{options.folder}: is no folder")
    rows = [row_of(options.binary, options.folder, name, cluster) for name, cluster in TRACES]
    with (options.out.open("w", newline="") if options.out else sys.stdout) as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
