#!/usr/bin/env python3
"""Writes the tables of conversions: does a workload run as before when it was written in another notation?

    scripts/conversion_table.py samples ../shared/samples --out docs/evidence/data/conversions.csv
    scripts/conversion_table.py runs --out docs/evidence/data/own_traces.csv

`samples` converts each trace of other tools that netsim reads to `.pb`, Chakra and GOAL. Runs of `.pb` and Chakra must have the same
fingerprint of results on a cluster of DGX A100. Runs of GOAL must have the same ends of ranks on the ideal network.

`runs` takes workloads of this repository with their clusters. It converts the workload, and lets a run write its own trace as Chakra and as
Kineto. Each result runs on the same cluster, and its time is compared with that of the run.
"""

import argparse
import csv
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from netsim_runs.execution import add_binary, find_binary
from trace_table import FOLDERS, inputs

ROOT = pathlib.Path(__file__).resolve().parent.parent
# With paths to CPUs for copies, and the compute model of an A100 for computations without a time. Large packets shorten the runs.
SERVERS = """topology: {{kind: star, hosts: {ports}, rate: 200 Gbps, delay: 1 us}}
host: {{kind: dgx_a100, cpus: 2}}
transport: {{mtu: 64 KiB}}
"""
# Messages take their delay only, so the order of messages that leave at the same time has no effect. A step of an algorithm is one message.
IDEAL = """topology: {{kind: star, hosts: {ranks}, rate: 100 Gbps, delay: 1 us}}
host: single_nic
network: {{kind: ideal, delay: 1 us}}
compute: h100_sxm
collectives: {{library: as_configured, slots: 0, slice: 1 GiB, slices_per_chunk: 1, scale_out_channels: 1}}
"""
# Clusters, sections that are added to them, and workloads.
TWO_DGX = "configs/two_dgx.yaml"
SMALL_GPT, RESNET = "configs/workloads/small_gpt_ptdp.yaml", "configs/workloads/resnet_50.yaml"
OWN_RUNS = [(TWO_DGX, "", SMALL_GPT),
            (TWO_DGX, "", "configs/pipeline/small_gpt_dual_pipe.yaml"),
            (TWO_DGX, "", "configs/workloads/small_moe_even.yaml"),
            (TWO_DGX, "", "configs/workloads/small_moe_ptdp.yaml"),
            ("configs/collectives/deepep.yaml", "", "configs/workloads/small_moe_dispatch.yaml"),
            (TWO_DGX, "", "configs/workloads/small_llama_fsdp.yaml"),
            ("configs/collectives/sharp.yaml", "", "configs/workloads/small_llama_fsdp.yaml"),
            ("configs/collectives/switchml.yaml", "", "configs/collectives/all_reduce.yaml"),
            (TWO_DGX, "scheduling: {tasks: {kind: priority, order: use, part: 4 MB, in_flight: 2}}", RESNET),
            (TWO_DGX, "scheduling: {tasks: {kind: priority, order: tac, part: 4 MB, in_flight: 2}}", RESNET),
            (TWO_DGX, "scheduling: {tasks: {kind: credit, part: 4 MB, credit: 16 MB}}", RESNET),
            (TWO_DGX, "scheduling: {tasks: {kind: ddp, first_bucket: 1 MiB, bucket: 25 MiB}}", RESNET),
            (TWO_DGX, "scheduling: {tasks: {kind: merge, startup: 236 us}}", RESNET),
            (TWO_DGX, "scheduling: {tasks: {kind: preferred, prefer: all_to_all, part: 4 MB}}", "configs/workloads/small_moe_even.yaml"),
            (TWO_DGX, "scheduling: {tasks: {kind: trirace, part: 4 MB, in_flight: 2}}", SMALL_GPT),
            (TWO_DGX, "scheduling: {tasks: {kind: compiler_overlap, prefetch: 2, in_flight: 1 GB}}", "configs/workloads/small_llama_fsdp.yaml"),
            (TWO_DGX, "", "configs/workloads/layers/bert_large_centauri.yaml"),
            ("configs/compute/parameter_server.yaml", "", "configs/workloads/parameter_server.yaml"),
            ("configs/compute/offload.yaml", "", "configs/workloads/small_gpt_offload.yaml"),
            ("configs/compute/stragglers.yaml", "", SMALL_GPT),
            ("configs/compute/aws_p3_8xlarge.yaml", "", "configs/workloads/stage_meshes.yaml"),
            (TWO_DGX, "", "configs/workloads/dlrm.yaml"),
            (TWO_DGX, "", RESNET),
            (TWO_DGX, "", "configs/workloads/local_sgd.yaml"),
            ("configs/topologies/dgx_h100.yaml", "", "configs/workloads/small_llama_tiles.yaml"),
            (TWO_DGX, "", "configs/jobs/two_jobs.yaml"),
            ("configs/import/kineto.yaml", "", "configs/import/kineto"),
            ("configs/import/inspector.yaml", "", "configs/import/inspector"),
            ("configs/import/simgrid.yaml", "", "configs/import/simgrid/actions.txt")]
SINKS = "output.sinks=[{kind: chakra}, {kind: kineto}]"
RUN_COLUMNS = ["config", "section", "workload", "ranks", "time_s", "pb", "chakra", "own_chakra", "own_kineto", "goal"]
MOST_ROWS = 1_000_000  # of tasks.csv
# Larger traces run on the ideal network in all notations.
LARGEST_BYTES, LARGEST_TASKS = 5e10, 10_000
SAMPLE_COLUMNS = ["format", "trace", "ranks", "tasks", "bytes", "network", "time_s", "pb", "chakra", "goal"]


class Refused(Exception):
    """netsim refused a command; the message is its own."""


class Runs:
    """Runs of one program in one folder. `limit` is the longest time of a run in seconds."""

    def __init__(self, binary, folder, limit=None):
        self.binary, self.folder, self.limit = binary, pathlib.Path(folder), limit

    def answer(self, *words):
        done = subprocess.run([self.binary, *map(str, words)], capture_output=True, text=True, check=False, timeout=self.limit)
        if done.returncode != 0:
            raise Refused(done.stderr.strip().removeprefix("netsim: error: ").replace(f"{self.folder}/", "").replace(f"{ROOT}/", ""))
        return done.stdout

    def config(self, text, ranks):
        path = self.folder / "cluster.yaml"
        path.write_text(text.format(ranks=max(ranks, 2), ports=max(-(-ranks // 8) * 8, 16)), encoding="utf-8")
        return path

    def run(self, config, workloads, *words):
        """The summary of a run. Its tables are in the folder `run`."""
        given = [word for path in workloads for word in ("--workload", path)]
        return json.loads(self.answer("--config", config, *given, "--out", self.folder / "run", "--report", "no", "--json", "-", *words))

    def convert(self, config, workloads, target):
        """Writes the workload, and returns what to run and the notes."""
        target = self.folder / target
        target.parent.mkdir(exist_ok=True)
        for old in target.parent.iterdir():
            old.unlink()
        said = self.answer("convert", *workloads, "--to", target, "--config", config)
        notes = re.findall(r"^note: (.*(?:\n      .*)*)", said, re.MULTILINE)
        return [target.parent if target.suffix == ".et" else target], [re.sub(r"\s+", " ", note) for note in notes]

    def rank_ends(self):
        """When each rank is done, in ps. A send counts until it is handed over: in GOAL it ends with its acknowledgement."""
        ends, rows = {}, 0
        with (self.folder / "run" / "tasks.csv").open(newline="", encoding="utf-8") as file:
            for rows, values in enumerate(csv.DictReader(file), 1):
                end = int(values["start_ps" if values["kind"] == "send" else "end_ps"])
                if values["kind"] == "receive":
                    end = max(end, int(values["posted_ps"]))
                ends[values["rank"]] = max(ends.get(values["rank"], 0), end)
        if rows == MOST_ROWS:
            raise Refused(f"not compared: more than {MOST_ROWS} messages")
        return {rank: end for rank, end in ends.items() if end > 0}


def compared(make, compare):
    """The word for a cell: that of `compare` for what `make` gives, or why there is none."""
    try:
        return compare(*make())
    except Refused as refusal:
        return str(refusal) if str(refusal).startswith("not compared") else f"refused: {refusal}"
    except subprocess.TimeoutExpired:
        return "not run: takes too long"


def fingerprints(summary):
    return summary["fingerprint"]["results"], summary["fingerprint"]["packets"]


def compared_ends(before, after, notes):
    """`same`, or how much the ends of ranks differ."""
    if before == after:
        return "same"
    largest = max(abs(before.get(rank, 0) - after.get(rank, 0)) for rank in before.keys() | after.keys())
    reasons = [note for note in notes if not note.startswith("calls of ranks")]
    return f"differs by up to {largest / 1e3:g} ns" + "".join(f"; {note}" for note in reasons)


def same_results(runs, text, paths, facts, target):
    """`same` if the run of a conversion has the fingerprint of the run of the workload, which is made first, and its time in seconds."""
    config = runs.config(text, facts["ranks"])
    before = runs.run(config, paths)

    def compare_with(name):
        def compare(workloads, _):
            after = runs.run(config, workloads)
            if fingerprints(before) == fingerprints(after):
                return "same"
            return f"differs: {after['jobs'][0]['jct_s']:.9g} s"
        return compared(lambda: runs.convert(config, paths, name), compare)

    return before["jobs"][0]["jct_s"], [compare_with(name) for name in target]


def same_ends(runs, paths, facts):
    """`same` if the ranks of the conversion to GOAL end at the same times."""
    config = runs.config(IDEAL, facts["ranks"])

    def compare(workloads, notes):
        runs.run(config, paths)
        before = runs.rank_ends()
        runs.run(config, workloads)
        return compared_ends(before, runs.rank_ends(), notes)

    return compared(lambda: runs.convert(config, paths, "converted/trace.bin"), compare)


def sample_row(runs, root, paths, facts):
    """A row of the table of samples."""
    row = {"format": paths[0].relative_to(root).parts[0], "trace": paths[0].relative_to(root), "ranks": facts["ranks"], "tasks": facts["tasks"],
           "bytes": int(sum(kind["bytes"] for kind in facts["kinds"]))}
    large = row["bytes"] > LARGEST_BYTES or row["tasks"] > LARGEST_TASKS
    row["network"] = "ideal" if large else "packet"
    try:
        cluster = SERVERS + ("network: {{kind: ideal, delay: 1 us}}\n" if large else "")
        time_s, (row["pb"], row["chakra"]) = same_results(runs, cluster, paths, facts, ("converted/trace.pb", "converted/trace.et"))
        row["time_s"] = f"{time_s:.9g}"
    except Refused as refusal:
        row["pb"] = f"does not run: {refusal}"
        return row
    except subprocess.TimeoutExpired:
        row["pb"] = "not run: takes too long"
        return row
    row["goal"] = same_ends(runs, paths, facts)
    return row


def described_samples(runs, root):
    """The traces below a folder that netsim reads, with their facts, those with the fewest tasks and bytes first."""
    found = []
    for name in FOLDERS:
        for paths, _ in inputs(root, root / name):
            try:
                facts = json.loads(runs.answer("describe-trace", *paths, "--json", "-"))
            except Refused:
                continue
            found.append((paths, facts))
    return sorted(found, key=lambda one: sum(kind["bytes"] for kind in one[1]["kinds"]) + 1e5 * one[1]["tasks"])


def sample_rows(options, runs):
    if not options.folder or not options.folder.is_dir():
        sys.exit(f"{options.folder}: is no folder")
    for paths, facts in described_samples(runs, options.folder):
        begin = time.monotonic()
        if re.search(options.only, str(paths[0])):
            yield sample_row(runs, options.folder, paths, facts)
            print(f"{time.monotonic() - begin:8.1f} s  {paths[0]}", file=sys.stderr, flush=True)


def own_trace(runs, pattern):
    """The files that the last run wrote, in a folder of their own: the next run writes into the same folder."""
    target = runs.folder / "own"
    target.mkdir(exist_ok=True)
    for old in target.iterdir():
        old.unlink()
    for path in (runs.folder / "run").glob(pattern):
        path.rename(target / path.name)
    if not list(target.iterdir()):
        raise Refused("the run wrote no trace")
    return [target], []


def compared_times(before, after, notes):
    """`same`, or how much longer the run took."""
    times = [summary["jobs"][0]["jct_s"] for summary in (before, after)]
    same = times[0] == times[1]
    exact = "" if fingerprints(before) == fingerprints(after) else ", other fingerprint"
    return ("same" if same else f"{(times[1] - times[0]) * 1e6:+.6f} us") + exact + "".join(f"; {note}" for note in notes)


def run_row(runs, config, section, workload):
    """A row of the table of runs."""
    row = {"config": config, "section": section, "workload": workload}
    config, workload = ROOT / config, ROOT / workload
    if section:
        given, config = config, runs.folder / "cluster.yaml"
        config.write_text(f"{given.read_text(encoding='utf-8')}{section}\n", encoding="utf-8")
    try:
        before = runs.run(config, [workload], "--set", SINKS)
    except (Refused, subprocess.TimeoutExpired) as reason:
        row["goal"] = f"does not run: {reason}"
        return row
    row["ranks"], row["time_s"] = before["jobs"][0]["ranks"], f"{before['jobs'][0]['jct_s']:.12g}"
    for column, make in (("own_chakra", lambda: own_trace(runs, "chakra*")), ("own_kineto", lambda: own_trace(runs, "kineto_rank_*.json")),
                         ("pb", lambda: runs.convert(config, [workload], "converted/trace.pb")),
                         ("chakra", lambda: runs.convert(config, [workload], "converted/trace.et")),
                         ("goal", lambda: runs.convert(config, [workload], "converted/trace.bin"))):
        if column == "own_kineto":
            runs.run(config, [workload], "--set", SINKS)
        row[column] = compared(make, lambda given, notes: compared_times(before, runs.run(config, given), notes))
    return row


def run_rows(options, runs):
    for config, section, workload in OWN_RUNS:
        begin = time.monotonic()
        if re.search(options.only, f"{config} {section} {workload}"):
            yield run_row(runs, config, section, workload)
            print(f"{time.monotonic() - begin:8.1f} s  {config} {section} {workload}", file=sys.stderr, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", choices=["samples", "runs"])
    parser.add_argument("folder", type=pathlib.Path, nargs="?", help="the samples")
    parser.add_argument("--out", type=pathlib.Path, help="the CSV file (default: stdout)")
    parser.add_argument("--only", default="", metavar="TEXT", help="rows whose name fits this regular expression")
    parser.add_argument("--limit", type=float, metavar="SECONDS", help="the longest time of a run")
    add_binary(parser)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="netsim_conversions_") as folder, \
            (options.out.open("w", newline="", encoding="utf-8") if options.out else sys.stdout) as file:
        runs = Runs(find_binary(options.binary), folder, options.limit)
        make_rows, columns = (sample_rows, SAMPLE_COLUMNS) if options.table == "samples" else (run_rows, RUN_COLUMNS)
        writer = csv.DictWriter(file, columns, restval="", lineterminator="\n")
        writer.writeheader()
        for row in make_rows(options, runs):
            writer.writerow(row)
            file.flush()


if __name__ == "__main__":
    main()
