#!/usr/bin/env python3
"""The main job's iteration time, rung by rung, beside what the paper's 140 TFLOP/s says.

Runs the job on `network: ideal` (compute, bubble and optimizer alone), reads the packet-level run from an output
directory, and prints a Markdown table.

    scripts/ptdp_ladder.py results/main
"""
import argparse
import json
import pathlib
import subprocess

from netsim_runs import execution

MICROBATCHES, PIPELINE, CHUNKS, DATA = 16, 8, 2, 2
GRADIENT_BYTES = 5.46e9  # per GPU, fp16
GOODPUT = 200e9 / 8 * 4096 / 4178
# F = 96 B s l h^2 (1 + s / 6h + V / 16 l h) of one microbatch, over the 64 GPUs of a pipeline.
FLOPS = 96 * 2048 * 96 * 12288**2 * (1 + 2048 / (6 * 12288) + 51200 / (16 * 96 * 12288)) / 64


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=pathlib.Path, metavar="DIR", help="what --out named when the main job ran")
    execution.add_binary(parser)
    options = parser.parse_args()
    summary = options.run / "summary.json"
    if not summary.exists():
        parser.error(f"{summary} is not there: netsim --config configs/fat_tree.yaml --workload traces/gpt3_ptdp.pb "
                     f"--out {options.run} makes it")
    job = json.loads(summary.read_text())["jobs"][0]
    answer = subprocess.run([execution.find_binary(options.binary), "--config", execution.ROOT / "configs/fat_tree.yaml",
                             "--workload", execution.ROOT / "traces/gpt3_ptdp.pb", "--set", "network={kind: ideal}", "--json",
                             "-", "--quiet"], capture_output=True, text=True, check=True)
    ideal = json.loads(answer.stdout)["jobs"][0]
    paper = [FLOPS / 140e12 / (1 + (PIPELINE - 1) / (v * 96)) for v in (2, 1)]
    rescaled = [MICROBATCHES * FLOPS / (t * (MICROBATCHES + (PIPELINE - 1) / CHUNKS)) / 1e12 for t in paper]
    exposed = job["exposed_by"]
    rows = [
        ("paper: time per microbatch and stage at 140 TFLOP/s, 96 microbatches (bubble with v = 2 / v = 1)",
         f"{paper[0]:.3f} / {paper[1]:.3f} s"),
        ("paper, rescaled to 16 microbatches with v = 2, nothing else", f"{rescaled[0]:.0f} / {rescaled[1]:.0f} TFLOP/s"),
        ("ours: compute per microbatch, mean over GPUs (optimizer included)", f"{ideal['compute_s'] / MICROBATCHES:.3f} s"),
        ("ours: the same with exposed TP",
         f"{(job['compute_s'] + exposed['tp']) / MICROBATCHES:.3f} s"),
        ("compute of 16 microbatches and optimizer", f"{ideal['compute_s']:.3f} s"),
        ("idle on the ideal network: bubble (law: 7/32 of the compute) and stages that differ", f"{ideal['idle_s']:.3f} s"),
        ("iteration on the ideal network", f"{ideal['iteration_time_s']:.3f} s, {ideal['tflops_per_gpu']:.1f} TFLOP/s"),
        ("exposed TP (NVLink all-reduces)", f"{exposed['tp']:.3f} s"),
        ("exposed PP (transfers, gathers, embedding all-reduce with its wait)", f"{exposed['pp']:.3f} s"),
        ("DP all-reduce, ideal: 2 (d-1)/d n / goodput", f"{2 * (DATA - 1) / DATA * GRADIENT_BYTES / GOODPUT:.3f} s"),
        ("DP all-reduce as simulated, mean over GPUs (ECMP collisions, DCQCN)", f"{exposed['dp']:.3f} s"),
        ("idle: bubble of compute and TP, waiting for the slowest DP pair", f"{job['idle_s']:.3f} s"),
        ("iteration", f"{job['iteration_time_s']:.3f} s, {job['tflops_per_gpu']:.1f} TFLOP/s"),
    ]
    print("| rung | value |\n|---|---|")
    for name, value in rows:
        print(f"| {name} | {value} |")


if __name__ == "__main__":
    main()
