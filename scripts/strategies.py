#!/usr/bin/env python3
"""Plays one model under many parallelization strategies on several clusters, and prints what an iteration of each costs.

    scripts/strategies.py [--models MODEL...] [--clusters CLUSTER...] [--strategies NAME...] [--plot PICTURE.svg]
                          [--table TABLE.csv] [--out DIR] [--again] [--jobs N] [--binary NETSIM] [--study STUDY.csv]

The study (configs/studies/strategies/study.csv) has a row for each model and strategy, with its workload; the clusters are the
files of clusters/ beside it. Every row is played on every cluster, packet by packet. What DIR (results/strategies) has already for
the same program and the same files is not played again, so a study that was stopped goes on where it was. A table for each
model and cluster has the completion time of the job (one iteration), and where a GPU's time went, in milliseconds: computing,
exposed communication by stream, and waiting for other GPUs with nothing on its way (of pipelines the bubble); and how many
gigabytes a GPU sends, in all and through NICs. The shortest is in bold. --plot draws the same as bars (python3-matplotlib), and
--table writes a row for each model and strategy, with all clusters.
"""
import argparse
import concurrent.futures
import csv
import dataclasses
import json
import pathlib
import subprocess
import sys
import tempfile

from netsim_runs import execution, pictures, results_cache
from netsim_runs.streams import PARALLEL_STREAMS

STUDY = execution.ROOT / "configs" / "studies" / "strategies" / "study.csv"


@dataclasses.dataclass(frozen=True)
class Row:
    model: str
    strategy: str
    workload: pathlib.Path


@dataclasses.dataclass(frozen=True)
class Run:
    cluster: str
    config: pathlib.Path
    row: Row

    def name(self):
        return f"{self.cluster}.{self.row.model}.{self.row.workload.stem}"

    def call(self, binary):
        return [str(binary), "--config", str(self.config), "--workload", str(self.row.workload)]


def read_study(path=STUDY):
    """Its rows, and its clusters as (name, configuration). SystemExit with the line where one is wrong."""
    rows = []
    with open(path, encoding="utf-8") as lines:
        for number, entry in enumerate(csv.DictReader(lines), 2):
            if None in entry or None in entry.values() or not {"model", "strategy", "workload"} <= entry.keys():
                raise SystemExit(f"{path}:{number}: a row is model,strategy,workload")
            rows.append(Row(entry["model"], entry["strategy"], path.parent / entry["workload"]))
            if not rows[-1].workload.is_file():
                raise SystemExit(f"{path}:{number}: there is no {rows[-1].workload}")
            if any((row.model, row.strategy) == (rows[-1].model, rows[-1].strategy) for row in rows[:-1]):
                raise SystemExit(f"{path}:{number}: {rows[-1].model}, {rows[-1].strategy} is there twice")
    clusters = [(config.stem, config) for config in sorted((path.parent / "clusters").glob("*.yaml"))]
    if not rows or not clusters:
        raise SystemExit(f"{path}: no {'rows' if not rows else 'clusters/*.yaml beside it'}")
    return rows, clusters


def key_of(run, binary):
    """Returns what a result depends on: the program, and all files that netsim reads for it, as its manifest has them."""
    done = subprocess.run([*run.call(binary), "--print-config", "--json", "-"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{run.name()}: {done.stderr.strip()}")
    version = subprocess.run([str(binary), "--version"], capture_output=True, text=True, check=True).stdout
    return results_cache.run_key(version, json.loads(done.stdout))


def sent_by_stream(path, gpus):
    """Bytes that a GPU sends on average, by stream: what nccl-tests' factor says of a collective, and messages as they are."""
    sent = dict.fromkeys(PARALLEL_STREAMS, 0.0)
    with open(path, encoding="utf-8") as lines:
        for entry in csv.DictReader(lines):
            size, ranks = int(entry["bytes"]), int(entry["ranks"])
            if entry["kind"] == "point_to_point":
                sent[entry["stream"]] += size
            elif entry["kind"] == "all_reduce":
                sent[entry["stream"]] += 2 * (ranks - 1) * size
            else:  # all-gather, reduce-scatter and all-to-all: `size` is the whole buffer
                sent[entry["stream"]] += (ranks - 1) * size
    return {stream: size / gpus for stream, size in sent.items()}


def play(run, binary, out, again):
    """The run's result: of an earlier one, or of one now."""
    results, key = results_cache.ResultsCache(out), key_of(run, binary)
    kept = results.kept(f"{run.name()}.{key}")
    if kept is not None and not again:
        return kept
    with tempfile.TemporaryDirectory(dir=out) as folder:
        done = subprocess.run([*run.call(binary), "--threads", "1", "--quiet", "--out", folder], capture_output=True, text=True,
                              check=False)
        if done.returncode != 0:
            raise SystemExit(f"{run.name()}: netsim ended with {done.returncode}: {done.stderr.strip()}")
        summary = json.loads((pathlib.Path(folder) / "summary.json").read_text())
        job = summary["jobs"][0]
        sent = sent_by_stream(pathlib.Path(folder) / "collectives.csv", job["ranks"])
    result = {"jct_s": job["jct_s"], "compute_s": job["compute_s"], "idle_s": job["idle_s"],
              "exposed_s": {stream: job["exposed_by"][stream] for stream in PARALLEL_STREAMS}, "sent_bytes": sent,
              "nic_bytes": summary["network"]["bytes_delivered"] / job["ranks"], "tflops": job["tflops_per_gpu"]}
    results.keep(f"{run.name()}.{key}", result)
    return result


def table(runs, results):
    """Lines of the table of one model on one cluster."""
    best = min(results[run]["jct_s"] for run in runs)
    lines = ["| strategy | JCT | compute | exposed TP | CP | EP | PP | DP | bubble | GB sent | by NICs |",
             "|---|---|---|---|---|---|---|---|---|---|---|"]
    for run in runs:
        result = results[run]
        jct = f"{1e3 * result['jct_s']:.1f}"
        jct = f"**{jct}**" if result["jct_s"] == best else jct
        exposed = " | ".join(f"{1e3 * result['exposed_s'][stream]:.1f}" if result["sent_bytes"][stream] else ""
                             for stream in PARALLEL_STREAMS)
        lines.append(f"| {run.row.strategy} | {jct} | {1e3 * result['compute_s']:.1f} | {exposed} | {1e3 * result['idle_s']:.1f} "
                     f"| {sum(result['sent_bytes'].values()) / 1e9:.2f} | {result['nic_bytes'] / 1e9:.2f} |")
    return lines


def write_table(path, groups, results):
    """A row for each model and strategy. What NICs send is of the first cluster."""
    clusters = list(dict.fromkeys(cluster for _, cluster in groups))
    rows = {}
    for (model, cluster), runs in groups.items():
        for run in runs:
            result = results[run]
            row = rows.setdefault((model, run.row.strategy), {"model": model, "strategy": run.row.strategy, "produced_by": "scripts/strategies.py"})
            row.setdefault("sent_a_gpu_GB", f"{sum(result['sent_bytes'].values()) / 1e9:.2f}")
            row.setdefault(f"sent_by_nics_on_{clusters[0]}_GB", f"{result['nic_bytes'] / 1e9:.2f}")
            for column, seconds in (("jct", result["jct_s"]), ("exposed", sum(result["exposed_s"].values())), ("bubble", result["idle_s"])):
                row[f"{cluster}_{column}_ms"] = f"{1e3 * seconds:.0f}"
    columns = ["model", "strategy", "sent_a_gpu_GB", f"sent_by_nics_on_{clusters[0]}_GB",
               *(f"{cluster}_{column}_ms" for cluster in clusters for column in ("jct", "exposed", "bubble")), "produced_by"]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows.values())


PARTS = {"compute": "#c6dbef", "bubble": "#dddddd",
         **{stream.upper(): pictures.COLOURS[place] for stream, place in zip(PARALLEL_STREAMS, (1, 3, 2, 5, 0))}}


def plot(path, groups, results):
    """Bars: a model in a row, a cluster in a column, each to a scale of its own."""
    pyplot = pictures.pyplot()
    models = list(dict.fromkeys(model for model, _ in groups))
    clusters = list(dict.fromkeys(cluster for _, cluster in groups))
    heights = [max(len(runs) for (of, _), runs in groups.items() if of == model) for model in models]
    figure, grid = pyplot.subplots(len(models), len(clusters), squeeze=False, figsize=(1.6 + 3.4 * len(clusters), 1 + 0.27 * sum(heights)),
                                   gridspec_kw={"height_ratios": heights}, sharey="row")
    for (model, cluster), runs in groups.items():
        axes = grid[models.index(model)][clusters.index(cluster)]
        left = [0.0] * len(runs)
        for part, colour in PARTS.items():
            widths = [1e3 * {"compute": results[run]["compute_s"], "bubble": results[run]["idle_s"]}.get(
                part, results[run]["exposed_s"].get(part.lower(), 0)) for run in runs]
            axes.barh([run.row.strategy for run in runs], widths, left=left, color=colour, height=0.75,
                      label=part if part in ("compute", "bubble") else f"exposed {part}")
            left = [sum(pair) for pair in zip(left, widths)]
        axes.set_title(f"{model}, {cluster}", fontsize=9)
        axes.tick_params(labelsize=7)
        axes.set_xlabel("ms", fontsize=8)
    for row in grid:
        row[0].invert_yaxis()
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncol=len(PARTS), fontsize=8, frameon=False)
    figure.tight_layout(rect=(0, 0.035, 1, 1))
    pictures.save(figure, path)


def choose(parser, given, there, what):
    for name in given:
        if name not in there:
            parser.error(f"no {what} '{name}'; there are {', '.join(dict.fromkeys(there))}")
    return [name for name in dict.fromkeys(there) if not given or name in given]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=[], metavar="MODEL", help="these only")
    parser.add_argument("--clusters", nargs="+", default=[], metavar="CLUSTER", help="these only")
    parser.add_argument("--strategies", nargs="+", default=[], metavar="NAME", help="these only, as the table calls them")
    parser.add_argument("--study", type=pathlib.Path, default=STUDY, metavar="STUDY.csv", help="rows of another study")
    parser.add_argument("--out", type=pathlib.Path, default=execution.ROOT / "results" / "strategies", metavar="DIR",
                        help="where results are kept (default: results/strategies)")
    parser.add_argument("--again", action="store_true", help="play again what is there")
    execution.add_jobs(parser, "runs")
    parser.add_argument("--plot", type=pathlib.Path, metavar="PICTURE.svg", help="bars of the same (python3-matplotlib)")
    parser.add_argument("--table", type=pathlib.Path, metavar="TABLE.csv", help="a row for each model and strategy")
    execution.add_binary(parser)
    options = parser.parse_args()
    if options.plot and options.plot.suffix not in pictures.ENDINGS:
        parser.error(f"--plot: {options.plot}: a picture's name ends in {', '.join(pictures.ENDINGS)}")
    rows, clusters = read_study(options.study)
    models = choose(parser, options.models, [row.model for row in rows], "model")
    names = choose(parser, options.clusters, [name for name, _ in clusters], "cluster")
    strategies = choose(parser, options.strategies, [row.strategy for row in rows], "strategy")
    rows = [row for row in rows if row.model in models and row.strategy in strategies]
    groups = {(model, name): [Run(name, config, row) for row in rows if row.model == model]
              for model in models for name, config in clusters if name in names}
    groups = {key: runs for key, runs in groups.items() if runs}
    if not groups:
        parser.error("no model has one of these strategies")
    runs = [run for group in groups.values() for run in group]
    binary = execution.find_binary(options.binary)
    options.out.mkdir(parents=True, exist_ok=True)
    results = {}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        futures = {pool.submit(play, run, binary, options.out, options.again): run for run in runs}
        try:
            for future in concurrent.futures.as_completed(futures):
                results[futures[future]] = future.result()
                print(f"{futures[future].name()} ({len(results)} of {len(runs)})", file=sys.stderr)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    for (model, cluster), group in groups.items():
        print(f"\n{model} on {cluster}, ms:\n")
        print("\n".join(table(group, results)))
    if options.table:
        write_table(options.table, groups, results)
    if options.plot:
        plot(options.plot, groups, results)


if __name__ == "__main__":
    main()
