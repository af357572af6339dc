"""Do task schedulers launch in the order of their published rules, replayed in Python (task_scheduler_replays.py)?

A run has one job of two hosts for each random graph. NETSIM_BINARY names the program. With NETSIM_TEST_SIZE=full there are 100 graphs for each
scheduler instead of ten, 200 for each comparison with the optimum, and 1,000 chains. It then prints ratios to the optimum.
"""

import collections
import csv
import dataclasses
import functools
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.dont_write_bytecode = True
import schedule_optimum
import task_graphs
import task_scheduler_replays as replays

BINARY = os.environ.get("NETSIM_BINARY") or str(ROOT / "build/release/netsim")
FULL = os.environ.get("NETSIM_TEST_SIZE") == "full"


def configuration(hosts, section):
    return {
        "topology": {"kind": "star", "hosts": hosts, "rate": "100 Gbps", "delay": "1 ns", "overhead": 0},
        "host": "single_nic",
        "transport": {"queue_pairs": 1, "acknowledge": {"every": 256}},
        "collectives": {"library": "as_configured", "base_latency_ring": 0, "hop_latency_net_ring": 0},
        "scheduling": {"tasks": section, "latency": "1 ns"},
    }


def run(workloads, section):
    """Runs the workloads, by name, as jobs of two ranks; the rows of tasks.csv and flows.csv, by job."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "config.yaml").write_text(json.dumps(configuration(2 * len(workloads), section)))
        (folder / "jobs.yaml").write_text(json.dumps({"jobs": [{"name": job, "workload": workload} for job, workload in workloads.items()]}))
        done = subprocess.run([BINARY, "--config", folder / "config.yaml", "--workload", folder / "jobs.yaml", "--quiet", "--out", folder / "out"],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise AssertionError(f"{section}: netsim ended with {done.returncode}: {done.stderr}")
        return [by_job(folder / "out" / table) for table in ("tasks.csv", "flows.csv")]


def by_job(path):
    rows = collections.defaultdict(list)
    with open(path, encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            rows[row["job"]].append(row)
    return rows


class Parts:
    """The parts that rank 0 launched, by the first name of their bucket, iteration and number: when, and how long they were in flight."""

    def __init__(self, tasks, flows):
        first = min(int(row["source_gpu"]) for row in flows)
        whole = {}
        for row in tasks:
            if int(row["rank"]) == 0 and row["kind"] in ("collective", "send"):
                whole[row["name"], int(row["iteration"])] = row
        parts = collections.defaultdict(lambda: collections.defaultdict(list))
        for row in flows:
            parts[row["name"]][row["communication"], row["part"]].append(row)
        self.start = {}
        self.time = {(row["name"], int(row["iteration"]), None): int(row["end_ps"]) - int(row["start_ps"])
                     for row in tasks if int(row["rank"]) == 0 and row["kind"] == "compute"}
        for name, flying in parts.items():
            spans = sorted(self.span(rows, first) for rows in flying.values())
            iterations = sorted(iteration for task, iteration in whole if task == name)
            for index, (start, end) in enumerate(spans):
                iteration, part = divmod(index, len(spans) // len(iterations))
                key = name, iterations[iteration], part
                self.start[key], self.time[key] = start, end - start

    @staticmethod
    def span(rows, first):
        """From the launch at rank 0 to its end there: of a collective when the last message has come, of a message when it is acknowledged."""
        start = min(int(row["start_ps"]) for row in rows if int(row["source_gpu"]) == first)
        ends = [int(row["end_ps"]) for row in rows if int(row["source_gpu"]) != first]
        return start, max(ends or [int(row["acknowledged_ps"]) for row in rows])


def launches(graph, rule, parts):
    """The launches that the replay predicts, with the measured times of the parts."""
    replayed = replays.Replay(graph, rule, lambda *key: parts.time.get(key, 1)).run()  # 1: it was not launched
    return {key: time for time, *key in replayed for key in [tuple(key)]}


class Replayed(unittest.TestCase):
    maxDiff = None

    def compare(self, graph, rule, tasks, flows):
        """Every part begins at rank 0 exactly when the replay says, and the other rank launches in this order what both agree on."""
        parts = Parts(tasks, flows)
        self.assertEqual(launches(graph, rule, parts), parts.start)
        first, other = ([row[1:] for row in sorted((int(row["start_ps"]), row["iteration"], row["name"])
                                                   for row in tasks if row["rank"] == rank and row["kind"] == "collective"
                                                   and row["collective"] not in rule.at_once)] for rank in "01")
        self.assertEqual(first, other)

    def run_and_compare(self, graphs, rule):
        """Returns the rows of tasks.csv by graph."""
        tasks, flows = run({graph.name: graph.workload() for graph in graphs}, rule.section)
        for graph in graphs:
            with self.subTest(scheduler=rule.section, graph=graph.name):
                self.compare(graph, rule, tasks[graph.name], flows[graph.name])
        return tasks


class Orders(Replayed):
    """The rules of replays.RULES. Rules of fusion get gradients, and those that follow paths get computations in no order of the program, too."""

    def check(self, name):
        rule = replays.RULES[name]
        families = [task_graphs.training, task_graphs.mixed]
        if name not in ("merge", "ddp"):
            families.append(task_graphs.served)
        if name == "trirace":
            families.append(task_graphs.three_kinds)
        if name in ("pace", "tic", "tac"):
            families += [task_graphs.mixed_branches, task_graphs.served_branches]
        self.run_and_compare(task_graphs.random_graphs(100 if FULL else 10, name, families), rule)


for scheduler in replays.RULES:
    setattr(Orders, f"test_{scheduler}", lambda self, name=scheduler: self.check(name))


class Joins(unittest.TestCase):
    def test_flows_of_parts_join_with_their_task(self):
        """Each flow has the id of a task that is called as it is, and the flows of a task have the numbers of all its parts."""
        graphs = task_graphs.random_graphs(4, "joins", (task_graphs.mixed, task_graphs.served))
        tasks, flows = run({graph.name: graph.workload() for graph in graphs}, {"kind": "fifo", "part": "32 KiB"})
        for graph in graphs:
            with self.subTest(graph=graph.name):
                whole = {row["communication"]: (row["name"], int(row["parts"])) for row in tasks[graph.name] if row["communication"]}
                parts = collections.defaultdict(set)
                for row in flows[graph.name]:
                    self.assertEqual(row["name"], whole[row["communication"]][0])
                    parts[row["communication"]].add(row["part"])
                self.assertEqual(parts, {one: {str(part) for part in range(count)} if count > 1 else {""} for one, (_, count) in whole.items()})
                self.assertGreater(max(count for _, count in whole.values()), 1)


class Fusions(Replayed):
    def test_pace_fuses_as_well_as_the_best_of_all_groups(self):
        section = {"kind": "priority", "order": "tail", "part": "32 KiB", "fuse": True, "startup": "3 us"}
        graphs = task_graphs.random_graphs(100 if FULL else 8, "fuse", (task_graphs.chain, task_graphs.mixed))
        tasks, flows = run({graph.name: graph.workload() for graph in graphs}, section)
        for graph in graphs:
            with self.subTest(graph=graph.name):
                groups = self.groups(graph, tasks[graph.name])
                rule = dataclasses.replace(replays.RULES["pace"], section=section, buckets=lambda graph, groups=groups: groups)
                self.compare(graph, rule, tasks[graph.name], flows[graph.name])
                end = functools.partial(schedule_optimum.fused_end, replays.fusible(graph), 3_000_000)
                self.assertEqual([name for group in groups for name in group], [task.name for task, *_ in replays.fusible(graph)])
                if graph.name.startswith("chain"):
                    self.assertEqual(end(groups), min(map(end, schedule_optimum.groupings([name for group in groups for name in group]))))
                else:
                    self.assertLessEqual(end(groups), end([[name] for group in groups for name in group]))

    @staticmethod
    def groups(graph, rows):
        """The all-reduces of the first iteration that began and ended together at rank 0, by their place in the order of readiness."""
        spans = {row["name"]: (row["start_ps"], row["end_ps"]) for row in rows if row["rank"] == "0" and row["iteration"] == "0"}
        names = [task.name for task, *_ in replays.fusible(graph)]
        return [list(group) for _, group in itertools.groupby(names, key=spans.get)]


class WaitFreeBackpropagation(Replayed):
    def test_its_recurrence_is_exact_on_chains(self):
        """e(l) = max(e(l + 1), ready(l)) + c(l), and an iteration takes the forwards and e of the first layer. The times c are those of an all-reduce
        alone."""
        graphs = task_graphs.random_graphs(1000 if FULL else 24, "wfbp", (task_graphs.chain,))
        sizes = sorted({task.size for graph in graphs for task in graph.communications()})
        alone = {f"alone{size}": task_graphs.Graph("", [task_graphs.Task("g", "all_reduce", size)]) for size in sizes}
        workloads = {name: graph.workload() for name, graph in [*alone.items(), *((graph.name, graph) for graph in graphs)]}
        tasks, _ = run(workloads, replays.RULES["fifo"].section)
        time = {size: max(int(row["end_ps"]) for row in tasks[f"alone{size}"]) for size in sizes}
        for graph in graphs:
            with self.subTest(graph=graph.name):
                self.recur(graph, time, {(row["name"], row["iteration"]): row for row in tasks[graph.name] if row["rank"] == "0"})

    def recur(self, graph, time, rows):
        layers = len(graph.communications())
        size = {task.name: task.size for task in graph.tasks}
        forwards = sum(size[f"f{layer}"] for layer in range(layers))
        ready = end = calculated = forwards
        for layer in reversed(range(layers)):
            row = rows[f"g{layer}", "0"]
            ready += size[f"b{layer}"]
            self.assertEqual(int(row["start_ps"]), max(end, ready))
            end = int(row["end_ps"])
            calculated = max(calculated, ready) + time[size[f"g{layer}"]]
        self.assertGreaterEqual(end, calculated)
        self.assertLessEqual(end - calculated, layers * 30 * task_graphs.NS)  # acknowledgements of the all-reduce before, 26 ns
        self.assertEqual(int(rows["f0", "1"]["start_ps"]), end)
        self.assertEqual(int(rows["f0", "1"]["end_ps"]) + sum(size[f"f{layer}"] for layer in range(1, layers)) - end, forwards)


class Optima(Replayed):
    """On chains TicTac and PACE reach the best of all orders. On other graphs the ratio to it is printed."""

    def graphs(self, *families):
        return task_graphs.random_graphs(200 if FULL else 4, self._testMethodName, families)

    def ratios(self, what, ends):
        ratios = sorted(end / least for end, least in ends)
        self.assertGreater(ratios[0], 1 - 1e-9)
        if FULL:
            above = [sum(ratio > bound for ratio in ratios) for bound in (1 + 1e-9, 1.01)]
            print(f"{what}: {len(ratios)} graphs, {above[0]} above the optimum, {above[1]} by more than 1 %; mean {sum(ratios) / len(ratios):.4f}, "
                  f"worst {ratios[-1]:.3f}")

    def tac_ends(self, graphs, end):
        tasks = self.run_and_compare(graphs, replays.RULES["tac"])
        for graph in graphs:
            sent = sorted((int(row["start_ps"]), row["name"]) for row in tasks[graph.name] if row["kind"] == "send")
            yield end(graph, {name: place for place, (_, name) in enumerate(sent)}), schedule_optimum.best(graph, end)

    def pace_ends(self, graphs, end):
        self.run_and_compare(graphs, replays.RULES["pace"])
        return [(end(graph, replays.tails(graph)), schedule_optimum.best(graph, end)) for graph in graphs]

    def test_tac_on_chains(self):
        for end, best in self.tac_ends(self.graphs(task_graphs.served_chain), schedule_optimum.served_end):
            self.assertEqual(end, best)

    def test_tac(self):
        self.ratios("TAC", self.tac_ends(self.graphs(task_graphs.served_branches), schedule_optimum.preemptive_end))

    def test_pace_on_chains(self):
        for end, best in self.pace_ends(self.graphs(task_graphs.chain), schedule_optimum.chain_end):
            self.assertEqual(end, best)

    def test_pace(self):
        self.ratios("PACE", self.pace_ends(self.graphs(task_graphs.mixed_branches), schedule_optimum.preemptive_end))


if __name__ == "__main__":
    unittest.main()
