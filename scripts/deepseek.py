#!/usr/bin/env python3
"""DeepSeek-V3's step on 2,048 H800 (arXiv 2505.09343, table 4) part by part, beside three reduced jobs.

    scripts/deepseek.py [--out DIR] [--again] [--exact] [--threads N] [--binary NETSIM]

- steps: 64 GPUs dispatch and combine tokens packet by packet and compute all kinds of steps of DualPipe, one layer a chunk;
- step: the whole pipeline, 16 stages and 120 microbatches, with two of the GPUs that divide the experts of a stage, joined by a link on which
  tokens take as long as they took in `steps`;
- optimizer: 256 GPUs from the last backward on, with two of the nine layers that the two stages in the middle have: 4.5 times this.

What each part takes is read from tasks.csv: of a rank's steps the time from their first computation to their last, communication that they
wait for included; the bubble is what is left until the last step of all, mean over the ranks.

DIR (results/deepseek) keeps what was played. In `step` and `optimizer` traffic between hosts is in packets of 64 KiB; --exact has those of 4 KiB.
"""
import argparse
import collections
import csv
import dataclasses
import json
import pathlib
import statistics
import sys

from netsim_runs import execution
from netsim_runs import steps

CONFIGS = execution.ROOT / "configs" / "reality"
# Seconds: forwards, backwards by themselves (gradients of inputs, or whole), those of weights, pairs, the optimizer, the rest.
MEASURED = {"1F": 1.13, "1B": 1.99, "1W": 0.48, "1F1B": 13.95, "bubble": 2.06, "optimizer": 0.29, "step": 19.926}
MICROBATCHES = 120
# The layers of each part of configs/reality/deepseek_v3.yaml, the module that predicts one token more among them.
LAYERS = [4] * 7 + [5] + [4] * 7 + [1]
OPTIMIZED = 2  # layers of configs/reality/deepseek_v3_optimizer.yaml
# The last task of a layer in each direction, and the computation of the model's ends after their last layer.
FORWARD, BACKWARD, WEIGHTS = "layer_end_forward", "layer_begin_backward", "attention_down_weights"
LAST = {"F": (FORWARD,), "B": (BACKWARD,), "I": (BACKWARD,), "W": (WEIGHTS,), "P": (FORWARD, BACKWARD, WEIGHTS)}
HEAD = ("logits_forward", "loss_")
EMBEDDING = {"B": ("embedding_backward",), "I": ("embedding_backward",), "W": ("embedding_weights",)}
PREDICTION = {"B": ("prediction_", "logits_backward", "final_norm_backward"), "W": ("prediction_", "logits_weights", "final_norm_weights")}
EMBEDDING["P"], PREDICTION["I"], PREDICTION["P"] = EMBEDDING["B"] + EMBEDDING["W"], PREDICTION["B"], PREDICTION["B"] + PREDICTION["W"]
PARTS = {"F": "1F", "B": "1B", "I": "1B", "W": "1W", "P": "1F1B"}
# Bytes of a token: 7,168 channels in FP8 with 56 scales, or in half precision.
TOKENS, DISPATCHED, COMBINED = 4096, 7168 + 56 * 4, 2 * 7168


@dataclasses.dataclass(frozen=True)
class Part:
    """Of the model, on a stage: its layers, and whether it has an end."""
    layers: int
    first: bool = False
    last: bool = False


@dataclasses.dataclass(frozen=True)
class Step:
    kind: str
    forward: Part = None
    backward: Part = None

    def behind(self):
        """How tasks begin that come behind the last layer's."""
        names = HEAD if self.forward and self.forward.last else ()
        if self.backward and (self.backward.first or self.backward.last):
            names += EMBEDDING[self.kind]
        return names + (PREDICTION[self.kind] if self.backward and self.backward.last else ())


def schedule(stage, layers, microbatches):
    """What DualPipe computes on a stage of a pipeline whose parts have so many layers."""
    parts = [Part(number, i == 0, i == len(layers) - 1) for i, number in enumerate(layers)]
    nearer = min(stage, len(parts) - 1 - stage)
    return dual_pipe(len(parts) // 2, nearer, microbatches // 2, parts[nearer], parts[len(parts) - 1 - nearer])


def dual_pipe(stages, stage, microbatches, early, late):
    """The steps of sim/training/strategy/dual_pipe_rule.h; `early`: the part that microbatches come to first."""
    ahead = stages - 1 - stage
    steps, put_off = [Step("F", early)] * (2 * ahead) + [Step("F", early), Step("F", late)] * (stage + 1), []

    def backward(part, split):
        steps.append(Step("I" if split else "B", None, part))
        if split:
            put_off.append(Step("W", None, part))

    for _ in range(ahead):
        backward(late, True)
        steps.append(put_off.pop(0))
        steps.append(Step("F", late))
    for i in range(microbatches - 2 * stages + stage + 1):
        if i == 0 and ahead == 0:
            steps.append(Step("F", early))
            backward(late, False)
        else:
            steps.append(Step("P", early, late))
        steps.append(Step("P", late, early))
    for _ in range(ahead):
        backward(late, False)
        steps.append(Step("P", late, early))
    for i in range(2 * (stage + 1)):
        backward(early if i % 2 else late, i > stage)
    for _ in range(ahead):
        steps.append(put_off.pop(0))
        backward(early, True)
    return steps + put_off


def tasks_of(path, rank=None):
    """Computations of tasks.csv by rank, in order: (name, start, end) in seconds."""
    tasks = collections.defaultdict(list)
    with open(path / "tasks.csv", newline="") as file:
        for row in csv.DictReader(file):
            if row["kind"] == "compute" and (rank is None or int(row["rank"]) == rank):
                tasks[int(row["rank"])].append((row["name"], int(row["start_ps"]) / 1e12, int(row["end_ps"]) / 1e12))
    return {rank: sorted(of_rank, key=lambda task: task[1:]) for rank, of_rank in tasks.items()}


def steps_of(tasks, steps):
    """(kind, begin, end) of each step of a rank, whose computations these are."""
    times, i = [], 0
    for step in steps:
        left = {name: (step.forward if name == FORWARD else step.backward).layers for name in LAST[step.kind]}
        begin = i
        while i < len(tasks) and (any(left.values()) or tasks[i][0].startswith(step.behind())):
            if tasks[i][0] in left:
                left[tasks[i][0]] -= 1
            i += 1
        if any(left.values()):
            raise ValueError(f"step {len(times)}, {step.kind}, has no end: {left}")
        times.append((step.kind, tasks[begin][1], tasks[i - 1][2]))
    if i != len(tasks):
        raise ValueError(f"{tasks[i][0]} is of no step")
    return times


def durations(path):
    """Of each kind of step of `steps`, seconds of the first, mean over the ranks."""
    seconds = collections.defaultdict(list)
    for tasks in tasks_of(path).values():
        kinds = {}
        for kind, begin, end in steps_of(tasks, dual_pipe(1, 0, 2, Part(1, first=True), Part(1, last=True))):
            kinds.setdefault(kind, end - begin)
        for kind, duration in kinds.items():
            seconds[kind].append(duration)
    return {kind: statistics.mean(of_kind) for kind, of_kind in seconds.items()}


def exchange_rate(path):
    """Bytes a second at which tokens reach one other rank in the time that the forwards of `steps` took to dispatch and combine theirs."""
    seconds = collections.defaultdict(list)
    with open(path / "tasks.csv", newline="") as file:
        for row in csv.DictReader(file):
            if row["name"] in ("ep_dispatch_forward", "ep_combine_forward"):
                seconds[row["name"]].append((int(row["end_ps"]) - int(row["start_ps"])) / 1e12)
    each = {name: statistics.median(times) for name, times in seconds.items()}
    return TOKENS * (DISPATCHED + COMBINED) / sum(each.values()), each


def parts_of(path, layers=LAYERS, microbatches=MICROBATCHES):
    """Seconds of each part of `step`, mean over its ranks."""
    parts, ranks = collections.Counter(), tasks_of(path)
    times = {rank: steps_of(tasks, schedule(rank * len(layers) // len(ranks), layers, microbatches)) for rank, tasks in ranks.items()}
    whole = max(of_rank[-1][2] for of_rank in times.values())
    for of_rank in times.values():
        for kind, begin, end in of_rank:
            parts[PARTS[kind]] += (end - begin) / len(ranks)
    return {**parts, "bubble": whole - sum(parts.values())}


def optimizer_of(path):
    """From the end of the last backward of any rank to the end of the job, for all layers of the stages that have most."""
    last = max(end for of_rank in tasks_of(path).values() for name, _, end in of_rank if name != "optimizer")
    return max(a + b for a, b in zip(LAYERS, reversed(LAYERS))) / OPTIMIZED * (json.loads((path / "summary.json").read_text())["jobs"][0]["iteration_time_s"] - last)


def play(player, name, config, workload, overlays=()):
    """The folder with the tables of a job."""
    return player.tables(steps.Job(name, CONFIGS / config, CONFIGS / workload, tuple(overlays)), "--set", "output.max_rows=3000000")


def table(parts):
    yield "| part | DeepSeek s | netsim s | error |"
    yield "|---|---|---|---|"
    for part, measured in MEASURED.items():
        yield f"| {part} | {measured} | {parts[part]:.3f} | {100 * (parts[part] / measured - 1):+.1f} % |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=execution.ROOT / "results" / "deepseek")
    parser.add_argument("--again", action="store_true", help="play what DIR has already")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--exact", action="store_true", help="no packets of 64 KiB")
    execution.add_binary(parser)
    arguments = parser.parse_args()
    binary = execution.find_binary(arguments.binary)
    packets = [] if arguments.exact else [steps.LARGE_PACKETS]
    player = steps.Player(binary, arguments.out, arguments.again, report=lambda text: print(text, file=sys.stderr, flush=True),
                          threads=arguments.threads)
    path = play(player, "steps", "h800_8.yaml", "deepseek_v3_steps.yaml")
    rate, each = exchange_rate(path)
    print("64 GPUs, ms: " + ", ".join(f"{name} {1000 * seconds:.2f}" for name, seconds in (*each.items(), *sorted(durations(path).items()))))
    parts = parts_of(play(player, "step", "h800_stages.yaml", "deepseek_v3.yaml", [*packets, f"host.nvlink_rate={8e-9 * rate:.3f} Gbps"]))
    parts["optimizer"] = optimizer_of(play(player, "optimizer", "h800_8.yaml", "deepseek_v3_optimizer.yaml",
                                                  ["hosts=32", "topology.hosts_per_leaf=32", *packets]))
    parts["step"] = sum(parts.values())
    for line in table(parts):
        print(line)


if __name__ == "__main__":
    main()
