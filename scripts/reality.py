#!/usr/bin/env python3
"""Plays the measured training steps of configs/reality/reference.csv, every packet of them, and prints them beside what was measured.

    scripts/reality.py [FAMILY...] [--rows ROW...] [--out DIR] [--again] [--binary NETSIM] [--plot PICTURE.svg] [--list]

A row that DIR (results/reality) has already for the same files and the same program is not played again, so a run that was
stopped goes on where it was. The table has the measured and the simulated step in seconds, the error, and where a GPU's time
went: computing, exposed communication by stream, idle. Compute is calibrated by one constant for each GPU and precision,
taken from the row that says so; all other rows are predictions. A row without a measurement (?) is one, too.

A row with many microbatches may say in its column `microbatches` three numbers, as `16 32 288`: the job is played with 16 and with 32,
and what the 16 more take is the same from some rounds of the pipeline on, so the step of 288 is that of 16 and 17 times this. With
`replica` behind them what more take is played with one data-parallel replica. The column `set` may have larger packets (transport.mtu).
"""
import argparse
import csv
import dataclasses
import hashlib
import json
import pathlib
import subprocess
import sys
import time

import measure

CONFIGS = measure.ROOT / "configs" / "reality"
TABLE = CONFIGS / "reference.csv"
STREAMS = ("tp", "cp", "ep", "pp", "dp", "io", "offload")


@dataclasses.dataclass
class Row:
    name: str
    family: str
    gpus: int
    precision: str
    config: pathlib.Path
    workload: pathlib.Path
    overlays: list
    calibrates: bool
    measured: float  # seconds; None: not published
    microbatches: tuple  # few, more, all; (): as the workload says
    by_replica: bool  # what more take is that of one replica

    def parts(self):
        """(name, overlays) of the jobs that are played for it, the first of them with all GPUs."""
        if not self.microbatches:
            return [(self.name, [])]
        few, more, _ = (f"workload.microbatches={number}" for number in self.microbatches)
        if not self.by_replica:
            return [(self.name, [few]), (f"{self.name}_more", [more])]
        alone = ["workload.parallel.data=1", "gpus.overcommit_memory=true"]  # an optimizer that is not divided needs not fit
        return [(self.name, [few]), (f"{self.name}_few", [few, *alone]), (f"{self.name}_more", [more, *alone])]

    def call(self, binary, out, also=()):
        overlays = [part for overlay in [*self.overlays, *also] for part in ("--set", overlay)]
        return [str(binary), "--config", str(self.config), "--workload", str(self.workload), *overlays, "--out", str(out)]


def microbatches_of(text):
    """Row.microbatches and Row.by_replica."""
    words = text.split()
    by_replica = words[3:] == ["replica"]
    numbers = tuple(int(word) for word in (words[:3] if by_replica else words))
    if numbers and not (len(numbers) == 3 and 0 < numbers[0] < numbers[1] <= numbers[2]):
        raise ValueError(f"microbatches: '{text}' was given; few, more, all and perhaps 'replica' are expected")
    return numbers, by_replica


def read_rows(path=TABLE):
    """The rows of the table; SystemExit with the line where one is wrong."""
    rows = []
    with open(path, encoding="utf-8") as lines:
        numbered = [(number, line) for number, line in enumerate(lines, 1) if not line.startswith("#")]
    for (number, _), entry in zip(numbered[1:], csv.DictReader(line for _, line in numbered)):
        try:
            overlays = [f"compute={{kind: {entry['gpu']}, clock: {float(entry['clock'])}}}"]
            overlays += [overlay for overlay in entry["set"].split(";") if overlay]
            measured = None if entry["measured_s"] == "?" else float(entry["measured_s"])
            rows.append(Row(entry["row"], entry["family"], int(entry["gpus"]), entry["precision"],
                            path.parent / entry["config"], path.parent / entry["workload"], overlays,
                            entry["calibrates"] == "yes", measured, *microbatches_of(entry["microbatches"])))
        except (KeyError, TypeError, ValueError) as error:
            raise SystemExit(f"{path}:{number}: {error}") from error
        for file in (rows[-1].config, rows[-1].workload):
            if not file.is_file():
                raise SystemExit(f"{path}:{number}: there is no {file}")
    return rows


def key_of(row, binary):
    """What a result depends on: the files, the overlays and the program."""
    version = subprocess.run([str(binary), "--version"], capture_output=True, text=True, check=True).stdout
    digest = hashlib.sha256(version.encode())
    for text in (row.config.read_text(), row.workload.read_text(), *row.overlays, str((row.microbatches, row.by_replica))):
        digest.update(text.encode() + b"\0")
    return digest.hexdigest()


def play_part(row, name, also, binary, out):
    """Where the time of one job goes, and its packet-hops."""
    done = subprocess.run(row.call(binary, out / name, also), stdout=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{name}: netsim ended with {done.returncode}")
    summary = json.loads((out / name / "summary.json").read_text())
    job = summary["jobs"][0]
    if name == row.name and job["ranks"] != row.gpus:
        raise SystemExit(f"{name}: {row.workload} is for {job['ranks']} GPUs, the table says {row.gpus}")
    times = {"step_s": job["iteration_time_s"], "compute_s": job["compute_s"], "idle_s": job["idle_s"],
             "exposed_s": {stream: job["exposed_by"][stream] for stream in STREAMS}}
    return times, summary["packet_hops"]["total"]


def extended(row, times):
    """Of the whole step: the times of the first job, and as many microbatches more as it lacks."""
    if not row.microbatches:
        return times[0]
    few, more, every = row.microbatches
    share = (every - few) / (more - few)

    def of(whole, less, longer):
        if isinstance(whole, dict):
            return {key: of(whole[key], less[key], longer[key]) for key in whole}
        return whole + share * (longer - less)
    return of(times[0], times[-2], times[-1])


def play(row, binary, out, again):
    """The row's result: of an earlier run, or of one now."""
    kept, key = out / f"{row.name}.json", key_of(row, binary)
    if kept.is_file() and not again:
        result = json.loads(kept.read_text())
        if result["key"] == key:
            return result
    begin = time.monotonic()
    played = [play_part(row, name, also, binary, out) for name, also in row.parts()]
    result = {"key": key, **extended(row, [times for times, _ in played]), "packet_hops": sum(hops for _, hops in played),
              "wall_s": round(time.monotonic() - begin, 1)}
    kept.write_text(json.dumps(result, indent=1) + "\n")
    return result


def error_of(row, result):
    """Relative error of the step; None where nothing was measured, or where the clock was taken from the row."""
    return None if row.measured is None or row.calibrates else result["step_s"] / row.measured - 1


def line_of(row, result):
    exposed = ", ".join(f"{result['exposed_s'][stream]:.2f}" for stream in STREAMS)
    error = error_of(row, result)
    shown = f"{100 * error:+.1f} %" if error is not None else "(clock)" if row.calibrates else ""
    measured = f"{row.measured:.3f}" if row.measured is not None else "?"
    return (f"| `{row.name}` | {row.gpus} | {row.precision} | {measured} | {result['step_s']:.3f} | {shown} "
            f"| {result['compute_s']:.2f} | {exposed} | {result['idle_s']:.2f} |")


def summary_of(errors):
    if not errors:
        return "no row was predicted and measured"
    worst = max(errors, key=abs)
    mean = sum(abs(error) for error in errors) / len(errors)
    within = sum(abs(error) <= 0.05 for error in errors)
    return (f"{len(errors)} rows predicted and measured: mean absolute error {100 * mean:.1f} %, largest {100 * worst:+.1f} %, "
            f"{within} within 5 %")


def plot(path, played):
    """Simulated over measured steps, by precision."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    figure, axes = pyplot.subplots(figsize=(5.5, 5.5))
    measured = [(row, result) for row, result in played if row.measured is not None]
    for precision in sorted({row.precision for row, _ in measured}):
        points = [(row, result) for row, result in measured if row.precision == precision]
        axes.scatter([row.measured for row, _ in points], [result["step_s"] for _, result in points], label=precision)
    for place, (row, result) in enumerate(sorted(measured, key=lambda entry: entry[0].measured)):  # names left and right in turn
        axes.annotate(row.name, (row.measured, result["step_s"]), fontsize=6, textcoords="offset points",
                      **({"xytext": (5, -6)} if place % 2 else {"xytext": (-5, 4), "ha": "right"}))
    ends = [0, 1.1 * max(max(row.measured, result["step_s"]) for row, result in measured)]
    axes.plot(ends, ends, color="black", linewidth=0.8)
    axes.fill_between(ends, [0.95 * end for end in ends], [1.05 * end for end in ends], alpha=0.15, color="grey", label="5 %")
    axes.set(xlabel="measured step, s", ylabel="netsim's step, s", xlim=ends, ylim=ends)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("family", nargs="*", help="families of rows (default: all)")
    parser.add_argument("--rows", nargs="+", default=[], metavar="ROW", help="these rows only")
    parser.add_argument("--out", type=pathlib.Path, default=measure.ROOT / "results" / "reality", metavar="DIR",
                        help="where results are kept (default: results/reality)")
    parser.add_argument("--again", action="store_true", help="play rows again that are there")
    parser.add_argument("--list", action="store_true", help="print the rows and their commands, play nothing")
    parser.add_argument("--plot", type=pathlib.Path, metavar="PICTURE.svg", help="a scatter plot (python3-matplotlib)")
    measure.add_binary(parser)
    options = parser.parse_args()
    rows = read_rows()
    for given, there, what in ((options.family, {row.family for row in rows}, "family"),
                               (options.rows, {row.name for row in rows}, "row")):
        for name in given:
            if name not in there:
                parser.error(f"no {what} '{name}'; there are {', '.join(sorted(there))}")
    rows = [row for row in rows if (not options.family or row.family in options.family)
            and (not options.rows or row.name in options.rows)]
    binary = measure.find_binary(options.binary)
    if options.list:
        for row in rows:
            for name, also in row.parts():
                print(" ".join(f"'{part}'" if " " in part else part for part in row.call(binary, options.out / name, also)))
        return
    options.out.mkdir(parents=True, exist_ok=True)
    played = []
    print("| row | GPUs | precision | measured s | netsim s | error | compute s | exposed TP, CP, EP, PP, DP, IO s | idle s |")
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    for number, row in enumerate(rows, 1):
        print(f"{row.name} ({number} of {len(rows)})", file=sys.stderr)
        played.append((row, play(row, binary, options.out, options.again)))
        print(line_of(*played[-1]), flush=True)
    print("\n" + summary_of([error for row, result in played if (error := error_of(row, result)) is not None]))
    if options.plot:
        plot(options.plot, played)


if __name__ == "__main__":
    main()
