#!/usr/bin/env python3
"""Writes the table of traces: files, ranks, tasks, bytes and what is left out, as `netsim describe-trace` says it.

    scripts/trace_table.py ../shared/samples --out docs/evidence/traces.csv

FOLDER holds files of other tools, in a folder for each format. A trace of several files is one row. A file that netsim refuses has
the reason in its row. Files of a size above --largest are left out.
"""

import argparse
import csv
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ["aicb_csv", "chakra_et", "goal", "htsim_cm", "kineto", "mlperf_log", "nccl_inspector", "ns3_hpcc", "simai_txt", "simgrid",
           "topoopt_fbuf"]
COLUMNS = ["format", "trace", "files", "ranks", "tasks", "bytes", "path_s", "notes", "refused"]
NO_TRACES = {".md", ".py", ".yaml", ".yml", ".fbs", ".tsv"}
# Files of several ranks whose names do not tell it, below FOLDER. They are one trace.
TOGETHER = ["kineto/synthetic_4rank/rank*.json", "nccl_inspector/generated/nccl-inspector-4242/*.log", "simgrid/actions[01].txt"]


def inputs(root, folder):
    """The traces below a folder: the files that are given, and their number. Of Chakra's ranks, the first one is given."""
    together = {path: sorted(root.glob(pattern)) for pattern in TOGETHER for path in root.glob(pattern)}
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or path.suffix in NO_TRACES or path.name.startswith("EXPECTED"):
            continue
        ranks = re.fullmatch(r"(.+)\.(\d+)\.et(\.gz)?", path.name)
        if path in together:
            if path == together[path][0]:
                yield together[path], len(together[path])
        elif not ranks:
            yield [path], 1
        elif ranks[2] == "0":
            yield [path], len(list(path.parent.glob(f"{ranks[1]}.*.et*")))


def row_of(netsim, root, paths, files):
    done = subprocess.run([netsim, "describe-trace", *paths, "--json", "-"], capture_output=True, text=True, check=False)
    path = paths[0]
    row = {"format": path.relative_to(root).parts[0], "trace": path.relative_to(root), "files": files}
    if done.returncode != 0:
        row["refused"] = done.stderr.strip().removeprefix("netsim: error: ").replace(f"{root}/", "")
        return row
    facts = json.loads(done.stdout)
    row.update(ranks=facts["ranks"], tasks=facts["tasks"], bytes=int(sum(kind["bytes"] for kind in facts["kinds"])),
               path_s=facts["critical_path"]["time_s"], notes="; ".join(facts["notes"]))
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, help="the CSV file (default: stdout)")
    parser.add_argument("--binary", default=str(ROOT / "build/run/netsim"), help="the program")
    parser.add_argument("--largest", type=int, default=100_000_000, help="bytes of the largest file that is read")
    options = parser.parse_args()
    if not options.folder.is_dir():
        sys.exit(f"{options.folder}: is no folder")
    rows = []
    for name in FOLDERS:
        for paths, files in inputs(options.folder, options.folder / name):
            if max(path.stat().st_size for path in paths) <= options.largest:
                rows.append(row_of(options.binary, options.folder, paths, files))
    with (options.out.open("w", newline="") if options.out else sys.stdout) as file:
        writer = csv.DictWriter(file, COLUMNS, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
