#!/usr/bin/env python3
"""PTD-P's table 1 (Narayanan et al., SC'21) against netsim's compute model and NVLink simulation.

For each row netsim plays one tensor-parallel group on one DGX A100, packet by packet, with one layer and with two; the
difference is a layer's time per microbatch, the rest the embedding, logits and loss. The pipeline is then put together by
its law: m microbatches through the slowest stage plus a bubble of (p - 1) / v stage times; data parallelism and
optimizer follow. Rows 1 and 10 are the two that `sustained` of the compute model is calibrated on; the paper gives
times for rows 3 and 6 too, which are predictions.

usage: scripts/ptdp_table.py [path of netsim] [--sustained X]
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

# params 10^9, heads, hidden, layers, t, p, GPUs, batch, TFLOP/s per GPU in the paper (None: not in our notes)
ROWS = [
    (1.7, 24, 2304, 24, 1, 1, 32, 512, 137),
    (3.6, 32, 3072, 30, 2, 1, 64, 512, None),
    (7.5, 32, 4096, 36, 4, 1, 128, 512, 142),
    (18.4, 48, 6144, 40, 8, 1, 256, 1024, None),
    (39.1, 64, 8192, 48, 8, 2, 512, 1536, None),
    (76.1, 80, 10240, 60, 8, 4, 1024, 1792, 140),
    (145.6, 96, 12288, 80, 8, 8, 1536, 2304, None),
    (310.1, 128, 16384, 96, 8, 16, 1920, 2160, None),
    (529.6, 128, 20480, 105, 8, 35, 2520, 2520, None),
    (1008.0, 160, 25600, 128, 8, 64, 3072, 3072, 163),
]
SEQUENCE, VOCABULARY = 2048, 51200
GOODPUT = 200e9 / 8 * 4096 / 4178  # bytes/s of RoCE payload on one 200 Gb/s NIC
ADAM_BYTES, HBM = 60, 2039e9 * 0.85  # per parameter: see sim/workload/transformer.cpp


def microbatch_seconds(netsim, layers, heads, hidden, tensor, size, sustained):
    """Forward, recomputation and backward of one microbatch through `layers` layers, embedding and logits included."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder)
        (path / "host.yaml").write_text(
            "topology: {kind: star, hosts: 8, rate: 200 Gbps}\nhosts: 1\nhost: dgx_a100\n")
        job = (
            "kind: ptdp\n"
            f"model: {{layers: {layers}, hidden: {hidden}, heads: {heads}, sequence: {SEQUENCE}, "
            f"vocabulary: {VOCABULARY}}}\n"
            f"parallel: {{tensor: {tensor}, pipeline: 1, data: 1}}\n"
            f"microbatch: {size}\n")
        times = []
        for count in (1, 2):  # the difference leaves out what happens once an iteration (optimizer)
            (path / "job.yaml").write_text(f"{job}microbatches: {count}\n")
            command = [netsim, "--config", str(path / "host.yaml"), "--workload", str(path / "job.yaml"),
                       "--json", "-", "--quiet"]
            if sustained:
                command += ["--set", f"compute={{kind: a100_80gb, sustained: {sustained}}}"]
            answer = subprocess.run(command, capture_output=True, text=True, check=False)
            if answer.returncode != 0:
                sys.exit(answer.stderr)
            times.append(json.loads(answer.stdout)["jobs"][0]["iteration_time_s"])
        return times[1] - times[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("netsim", nargs="?", default="build/release/netsim")
    parser.add_argument("--sustained", type=float)
    options = parser.parse_args()
    print("| model | t, p, d | microbatch x number | layer ms | bubble | DP s | iteration s | TFLOP/s | paper | error |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for params, heads, hidden, layers, t, p, gpus, batch, paper in ROWS:
        d = gpus // (t * p)
        size = 4 if p == 1 else 1  # not in the paper; larger ones fit only where the pipeline is short
        number = batch // (d * size)
        v = 2 if p > 1 and layers % (2 * p) == 0 else 1
        one = microbatch_seconds(options.netsim, 1, heads, hidden, t, size, options.sustained)
        two = microbatch_seconds(options.netsim, 2, heads, hidden, t, size, options.sustained)
        layer, ends = two - one, 2 * one - two
        stage = layers / p * layer
        slowest = stage + ends / (1 if p == 1 else 2)  # logits and loss, the larger half, are the last stage's
        weights = params * 1e9 / (t * p)
        data = 2 * 2 * weights * (d - 1) / d / (GOODPUT * (1 if t == 8 else 8 / t * 1.0)) if d > 1 else 0
        iteration = number * slowest + (p - 1) / v * stage + data + weights * ADAM_BYTES / HBM
        flops = 96 * batch * SEQUENCE * layers * hidden**2 * (
            1 + SEQUENCE / (6 * hidden) + VOCABULARY / (16 * layers * hidden))
        rate = flops / iteration / gpus / 1e12
        error = f"{(rate / paper - 1) * 100:+.1f} %" if paper else ""
        print(f"| {params}B | {t}, {p}, {d} | {size} x {number} | {layer * 1e3:.2f} | "
              f"{(p - 1) / v / number * 100:.1f} % | {data:.2f} | {iteration:.2f} | {rate:.1f} | {paper or ''} | {error} |",
              flush=True)


if __name__ == "__main__":
    main()
