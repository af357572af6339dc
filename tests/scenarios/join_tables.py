#!/usr/bin/env python3
"""Loads all tables of a training run, of one on Ethernet hosts and of traffic with pandas and joins them.

    join_tables.py NETSIM

Exits with 77 where there is no pandas.
"""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import pandas
except ImportError:
    # The interpreter that was found may not be the system's, which has the package.
    if sys.executable != "/usr/bin/python3" and os.path.exists("/usr/bin/python3"):
        os.execv("/usr/bin/python3", ["/usr/bin/python3"] + sys.argv)
    print("no pandas: apt install python3-pandas")
    sys.exit(77)

ROOT = Path(__file__).resolve().parents[2]
IDS = {"flow": "f", "communication": "c", "task": "t"}


def require(condition, message):
    if not condition:
        sys.exit(f"failed: {message}")


def run(netsim, directory, config, workload, *more):
    command = [netsim, "--config", ROOT / config, "--workload", ROOT / workload, "--quiet", "--out", directory]
    subprocess.run([str(word) for word in command] + list(more), check=True)
    return {path.stem: pandas.read_csv(path) for path in Path(directory).glob("*.csv")}


def check_ids(tables):
    for table, frame in tables.items():
        for column, letter in IDS.items():
            if column not in frame or frame.empty:
                continue
            given = frame[column].dropna()
            require(frame[column].dtype == object or given.empty, f"{table}.{column} is read as {frame[column].dtype}")
            require(given.map(lambda value: isinstance(value, str) and value[0] == letter).all(),
                    f"{table}.{column} has values without its letter")


def check_joins(tables):
    tasks, collectives, flows = tables["tasks"], tables["collectives"], tables["flows"]
    for table, key in (("tasks", ["job", "task"]), ("collectives", ["job", "communication"]), ("flows", ["flow"])):
        require(not tables[table].duplicated(key).any(), f"{table} has a key twice")
    communicating = tasks[tasks.kind != "compute"]
    require(tasks[tasks.kind == "compute"].communication.isna().all(), "a compute task has a communication")
    joined = communicating.merge(collectives, on=["job", "communication"], how="left", validate="many_to_one",
                                 suffixes=("", "_of_all"))
    require(len(joined) == len(communicating) and joined.end_ps_of_all.notna().all(),
            "a communication task is not in collectives.csv")
    require((joined.end_ps <= joined.end_ps_of_all).all(), "a task ends after its communication")
    require(communicating.groupby("communication").size().sum() == collectives.ranks.sum(),
            "the tasks of a communication are not its ranks")
    sent = flows.merge(collectives, on=["job", "communication"], how="left", validate="many_to_one",
                       suffixes=("", "_of_all"))
    require(sent.end_ps_of_all.notna().all(), "a flow has no communication")
    require((sent.name == sent.name_of_all).all(), "a flow is called otherwise than its communication")
    require((sent.start_ps >= sent.first_start_ps).all(), "a flow starts before its communication")
    numbers = flows.groupby("communication").part.agg(["nunique", "max"]).join(communicating.groupby("communication").parts.max())
    cut = numbers.parts > 1
    require((numbers["nunique"] == numbers.parts.where(cut, 0)).all() and (numbers["max"] == numbers.parts - 1)[cut].all(),
            "the flows of a communication do not have the numbers of its parts")
    ranks = tables["ranks"]
    ends = flows.merge(ranks, left_on=["job", "source_gpu"], right_on=["job", "gpu"], how="left")
    require((ends.source == ends.nic).all(), "a flow's source is not the NIC of its GPU")
    first = set(tables["links"].link.str.split("->").str[0])
    require(set(flows.source) <= first and set(flows.destination) <= first, "a flow's NIC has no link")
    return len(joined), len(sent)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    runs = [("configs/two_dgx.yaml", "configs/workloads/small_gpt_ptdp.yaml"),
            ("configs/two_dgx.yaml", "configs/workloads/small_gpt_ptdp.yaml", "--set", "scheduling.tasks={kind: credit, part: 1 MB}"),
            ("configs/collectives/ring.yaml", "configs/collectives/all_reduce.yaml"),
            ("configs/traffic/star17.yaml", "configs/traffic/poisson.yaml"),
            ("configs/import/ns3/config.txt", "configs/import/ns3/flow.txt"),
            ("configs/import/htsim.yaml", "configs/import/htsim/connections.cm")]
    for config, workload, *more in runs:
        with tempfile.TemporaryDirectory() as directory:
            tables = run(sys.argv[1], directory, config, workload, *more)
            check_ids(tables)
            tasks, flows = check_joins(tables)
            require(tasks > 0 and flows > 0, f"{workload} has nothing to join")
            require((tables["tasks"].parts.max() > 1) == bool(more), f"{workload} is not cut by its scheduler alone")
            print(f"{workload}: {tasks} tasks and {flows} flows joined")
    names = set(tables["flows"].name)
    require(any(name.startswith("connection ") for name in names), "htsim's ids are lost")


main()
