#!/usr/bin/env python3
"""Plays the jobs behind Megatron-LM's other published figures (configs/studies/megatron/study.csv), and prints them beside the papers'.

    scripts/megatron.py [FIGURE...] [--cases CASE...] [--out DIR] [--again] [--list] [--binary NETSIM] [--study STUDY.csv]

- scatter_gather: what it gains with interleaved schedules and stages that wait for their sends, and what interleaving gains with and
  without it (Narayanan et al., SC'21, figures 12 and 18; 175B on 96 GPUs);
- tensor: the mesh of 162B on 64 GPUs (figure 13);
- zero: ZeRO-3 beside PTD-P on as many and on twice as many GPUs (table 2; 175B and 530B);
- weak_scaling: tensor parallelism on a DGX-2H (Megatron-LM, Shoeybi et al., 2019).

A case is a job of the study: what is laid over its files, the line that it lies on where it is long (scripts/netsim_runs/steps.py), the TFLOP/s per GPU
that the paper has, and another case with which its TFLOP/s are compared. "inside" or the difference in points stand behind what the
paper says of that ratio. What DIR (results/megatron) has already for the same program and files is not played again.
"""
import argparse
import csv
import dataclasses
import pathlib
import re
import shlex
import sys

from netsim_runs import execution
from netsim_runs import steps

STUDY = execution.ROOT / "configs" / "studies" / "megatron" / "study.csv"
COLUMNS = ("figure", "case", "gpus", "config", "workload", "set", "line", "paper", "against", "ratio")


@dataclasses.dataclass(frozen=True)
class Case:
    figure: str
    name: str
    gpus: int
    job: steps.Job
    line: steps.Line  # or None
    paper: float  # TFLOP/s per GPU; None: not published, or not known
    calibrates: bool  # the compute model's clock is taken from it
    against: str  # another case of the figure; "": none
    ratio: str  # what the paper says of TFLOP/s over those of that case: N, N to N, above N, below N, or nothing


def is_ratio(text):
    number = r"\d+(\.\d+)?"
    return re.fullmatch(f"({number}|{number} to {number}|above {number}|below {number})?", text) is not None


def case_of(entry, folder):
    line, words = steps.read_line(entry["line"]), entry["paper"].split()
    if not is_ratio(entry["ratio"]) or (entry["ratio"] and not entry["against"]):
        raise ValueError(f"ratio: '{entry['ratio']}' was given; N, N to N, above N or below N are expected, of a case `against`")
    job = steps.Job(f"{entry['figure']}_{entry['case']}", folder / entry["config"], folder / entry["workload"],
                    tuple(overlay for overlay in entry["set"].split(";") if overlay))
    for file in (job.config, job.workload):
        if not file.is_file():
            raise ValueError(f"there is no {file}")
    return Case(entry["figure"], entry["case"], int(entry["gpus"]), job, line, float(words[0]) if words else None,
                words[1:] == ["clock"], entry["against"], entry["ratio"])


def read_study(path=STUDY):
    """Its cases; SystemExit with the line where one is wrong."""
    cases = []
    with open(path, encoding="utf-8") as lines:
        numbered = [(number, line) for number, line in enumerate(lines, 1) if not line.startswith("#")]
    for (number, _), entry in zip(numbered[1:], csv.DictReader(line for _, line in numbered)):
        try:
            if tuple(entry) != COLUMNS or None in entry.values():
                raise ValueError(f"a row is {','.join(COLUMNS)}")
            case = case_of(entry, path.parent)
            if any((other.figure, other.name) == (case.figure, case.name) for other in cases):
                raise ValueError(f"{case.figure}, {case.name} is there twice")
            if case.against and not any((other.figure, other.name) == (case.figure, case.against) for other in cases):
                raise ValueError(f"no case '{case.against}' of {case.figure} is above")
        except ValueError as error:
            raise SystemExit(f"{path}:{number}: {error}") from error
        cases.append(case)
    return cases


def judged(ratio, said):
    """`ratio` beside what the paper says of it."""
    if not said:
        return ""
    numbers = [float(word) for word in re.findall(r"[\d.]+", said)]
    if said[0].isdigit() and len(numbers) == 1:
        return f"{100 * (ratio - numbers[0]):+.1f} points"
    low = -float("inf") if said.startswith("below") else numbers[0]
    high = float("inf") if said.startswith("above") else numbers[-1]
    return "inside" if low <= ratio <= high else "outside"


def line_of(case, played):
    times, rate = played[case.name], steps.tflops(played[case.name])
    exposed = ", ".join(f"{times['exposed_s'][stream]:.2f}" for stream in ("tp", "pp", "dp"))
    error = "" if case.paper is None else "(clock)" if case.calibrates else f"{100 * (rate / case.paper - 1):+.1f} %"
    ratio = f"{rate / steps.tflops(played[case.against]):.3f}" if case.against else ""
    return (f"| `{case.name}` | {case.gpus} | {times['step_s']:.2f} | {times['compute_s']:.2f} | {exposed} | {times['idle_s']:.2f} | {rate:.1f} "
            f"| {'' if case.paper is None else f'{case.paper:g}'} | {error} | {f'`{case.against}`' if case.against else ''} | {ratio} "
            f"| {case.ratio} | {judged(float(ratio), case.ratio) if ratio else ''} |")


def needed(cases, chosen):
    """`chosen`, and those of `cases` that they are compared with, in the order of the study."""
    wanted = {(case.figure, case.name) for case in chosen} | {(case.figure, case.against) for case in chosen if case.against}
    if all((case.figure, case.name) in wanted for case in chosen) and len(wanted) == len(chosen):
        return chosen
    return needed(cases, [case for case in cases if (case.figure, case.name) in wanted])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("figure", nargs="*", help="these only (default: all)")
    parser.add_argument("--cases", nargs="+", default=[], metavar="CASE", help="these only, and those that they are compared with")
    parser.add_argument("--study", type=pathlib.Path, default=STUDY, metavar="STUDY.csv", help="cases of another study")
    parser.add_argument("--out", type=pathlib.Path, default=execution.ROOT / "results" / "megatron", metavar="DIR",
                        help="where results are kept (default: results/megatron)")
    parser.add_argument("--again", action="store_true", help="play again what is there")
    parser.add_argument("--most-hops", type=float, default=1e8, metavar="HOPS",
                        help="packet-hops above which a job has large packets (default: 1e8)")
    parser.add_argument("--list", action="store_true", help="print the commands, play nothing")
    execution.add_binary(parser)
    options = parser.parse_args()
    cases = read_study(options.study)
    for given, there, what in ((options.figure, [case.figure for case in cases], "figure"),
                               (options.cases, [case.name for case in cases], "case")):
        for name in given:
            if name not in there:
                parser.error(f"no {what} '{name}'; there are {', '.join(dict.fromkeys(there))}")
    chosen = needed(cases, [case for case in cases if (not options.figure or case.figure in options.figure)
                            and (not options.cases or case.name in options.cases)])
    if not chosen:
        parser.error("no figure has one of these cases")
    binary = execution.find_binary(options.binary)
    if options.list:
        for case in chosen:
            for job in dict.fromkeys(case.line.parts(case.job) if case.line else (case.job,)):
                print(shlex.join(job.call(binary)))
        return
    player = steps.Player(binary, options.out, options.again, options.most_hops, lambda text: print(text, file=sys.stderr, flush=True))
    for figure in dict.fromkeys(case.figure for case in chosen):
        print(f"\n{figure}:\n\n| case | GPUs | step s | compute s | exposed TP, PP, DP s | idle s | TFLOP/s | paper | error | against | ratio "
              "| paper | |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|")
        played = {}
        for case in chosen:
            if case.figure != figure:
                continue
            played[case.name] = player.step(case.job, case.line)
            if played[case.name]["ranks"] != case.gpus:
                raise SystemExit(f"{case.name}: the job has {played[case.name]['ranks']} GPUs, the study says {case.gpus}")
            print(line_of(case, played), flush=True)


if __name__ == "__main__":
    main()
