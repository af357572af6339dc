"""Does scripts/schedulers.py simulate a study with all schedulers, keep results, find the best sizes, and say what is wrong?

NETSIM_BINARY names the program. With NETSIM_TEST_SIZE=full the whole study is simulated and compared with the table of
docs/evidence/data/; otherwise a few rows are. Exit code 77 (ctest: skipped) without PyYAML.
"""

import contextlib
import csv
import io
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
sys.dont_write_bytecode = True
try:
    import yaml
except ModuleNotFoundError as error:
    print(f"skipped: no {error.name}")
    sys.exit(77)
import evidence
import schedulers
from netsim_runs import steps

FULL = os.environ.get("NETSIM_TEST_SIZE") == "full"
BINARY = pathlib.Path(os.environ.get("NETSIM_BINARY") or str(ROOT / "build/release/netsim"))
# A network on which all-reduces have no start-up time.
NETWORK = """\
topology: {kind: star, hosts: 2, rate: 100 Gbps, delay: 1 ns, overhead: 0}
host: single_nic
transport: {queue_pairs: 1, acknowledge: {every: 256}}
collectives: {library: as_configured, base_latency_ring: 0, hop_latency_net_ring: 0}
scheduling: {latency: 1 ns}
"""
CHAIN = "kind: layers\nname: chain\nreplicas: 2\niterations: 4\nwarm_up: 3\nlayers: [{LAYERS, bytes: BYTES}]\n"
SCHEDULERS = {"fifo": None, "priority": {"whole": {"part": 0}, "thirds": {"part": "10 MB"}}}


class Folder(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = pathlib.Path(directory.name)
        (self.path / "network.yaml").write_text(NETWORK)
        self.study = {"networks": {"fast": "network.yaml"},
                      "workloads": {"chain": {"workload": "chain.yaml", "exchanges": {"all-reduce": {"kind": "all_reduce"}}}},
                      "schedulers": SCHEDULERS}
        self.errors = io.StringIO()
        self.write()

    def write(self, layers="count: 4, forward: 1 ms, backward: 2 ms", size="30 MB"):
        (self.path / "chain.yaml").write_text(CHAIN.replace("LAYERS", layers).replace("BYTES", size))
        (self.path / "study.yaml").write_text(yaml.safe_dump(self.study, sort_keys=False))

    def main(self, *more):
        words = ["schedulers.py", "--out", str(self.path / "out"), "--binary", str(BINARY), *map(str, more)]
        output = io.StringIO()
        with unittest.mock.patch.object(sys, "argv", words), contextlib.redirect_stdout(output), contextlib.redirect_stderr(self.errors):
            schedulers.main()
        return output.getvalue()

    def rows(self, *more):
        self.main("--study", self.path / "study.yaml", "--csv", self.path / "table.csv", *more)
        with open(self.path / "table.csv", encoding="utf-8") as lines:
            return {row["scheduler"]: row for row in csv.DictReader(lines)}

    def overlaps(self, *more):
        self.main("--study", self.path / "study.yaml", "--overlaps", "--csv", self.path / "table.csv", *more)
        with open(self.path / "table.csv", encoding="utf-8") as lines:
            return {row["way"]: row for row in csv.DictReader(lines)}

    def refused(self, *more):
        with self.assertRaises(SystemExit) as refused:
            self.main(*more)
        return f"{refused.exception} {self.errors.getvalue()}"


class Study(Folder):
    def test_a_chain_of_four_takes_what_the_papers_rules_say(self):
        # Forward 1, backward 2 and communication 3 for each of four layers: 18 in order, 17 whole, 15 in thirds.
        # A computation is a little shorter, so that no gradient comes just when a communication has ended.
        self.write("forward: 0 ms, backward: 0 ms")
        alone = steps.Job("alone", self.path / "network.yaml", self.path / "chain.yaml")
        unit = 1e3 * schedulers.play(steps.Player(BINARY, self.path / "out"), alone)["iteration_s"] / 3
        self.write(f"count: 4, forward: {0.9995 * unit:.6f} ms, backward: {1.999 * unit:.6f} ms")
        rows = self.rows()
        for name, units in (("none", 18), ("fifo", 18), ("whole", 17), ("thirds", 15)):
            with self.subTest(name):
                self.assertAlmostEqual(float(rows[name]["iteration_ms"]) / unit, units, delta=0.02)
                self.assertAlmostEqual(float(rows[name]["gain"]), 18 / units, delta=0.002)
                self.assertAlmostEqual(float(rows[name]["exposed_ms"]) / unit, units - 12, delta=0.02)
        self.assertEqual([rows[name]["parts"] for name in ("none", "fifo", "whole", "thirds")], ["", "4.0", "4.0", "12.0"])
        self.assertEqual(float(rows["fifo"]["reordered"]), 0)
        self.assertGreater(float(rows["thirds"]["reordered"]), 0)

    def test_kinds_that_the_study_does_not_name_run_with_their_defaults(self):
        study = schedulers.read_study(self.path / "study.yaml", ["fifo", "priority", "new"])
        self.assertEqual(list(study.schedulers), ["none", "fifo", "whole", "thirds", "new"])
        self.assertEqual(study.schedulers["new"], ('scheduling.tasks={"kind": "new"}',))

    def test_ways_to_overlap_have_rows_over_the_run_without_them(self):
        file, config = self.path / "study.yaml", {"config": "network.yaml", "workload": "chain.yaml"}
        ways = {"none": {}, "twice": {"layers": "[{count: 8, forward: 1 ms, backward: 2 ms, bytes: 30 MB}]"}}
        file.write_text(yaml.safe_dump({**self.study, "overlaps": {"long": {**config, "ways": ways}}}))
        rows = self.overlaps()
        self.assertEqual(list(rows), ["none", "twice"])
        self.assertAlmostEqual(float(rows["twice"]["gain"]), float(rows["none"]["batch_ms"]) / float(rows["twice"]["batch_ms"]), 2)
        self.assertLess(float(rows["twice"]["gain"]), 0.6)
        file.write_text(yaml.safe_dump({**self.study, "overlaps": {"long": {**config, "ways": {"twice": {}}}}}))
        self.assertIn("long: ways: there is no 'none'", self.refused("--study", file))
        file.write_text(yaml.safe_dump({**self.study, "overlaps": {"long": {**config, "ways": ways, "batches": {"thrice": 2}}}}))
        self.assertIn("long: batches: no way 'thrice'; there are none, twice", self.refused("--study", file))

    def test_ways_have_figures_batches_and_configurations(self):
        way = {"config": "network.yaml", "workload": "chain.yaml", "ways": {"none": {}, "P3": {}, "half": None},
               "configuration": {"P3": {"scheduling.tasks": {"kind": "priority", "part": "10 MB"}}}, "batches": {"half": 2},
               "figures": {"P3": {"closed_form": 1.2, "published": "1.3 to 1.7"}, "half": {"published": 4}}}
        (self.path / "study.yaml").write_text(yaml.safe_dump({**self.study, "overlaps": {"chain": way}}))
        rows = self.overlaps()
        self.assertEqual([rows["P3"][key] for key in ("closed_form", "published", "error_percent")], ["1.2", "1.3 to 1.7", ""])
        self.assertGreater(float(rows["P3"]["gain"]), 1)
        self.assertEqual([rows["half"][key] for key in ("gain", "error_percent")], ["2.000", "-50.0"])
        self.assertIn("--networks chooses networks of task schedulers", self.refused("--overlaps", "--networks", "fast"))

    def test_a_study_goes_on_where_it_stopped(self):
        self.rows("--schedulers", "fifo")
        kept = {path: path.stat().st_mtime_ns for path in (self.path / "out").glob("*.json")}
        self.assertEqual(len(kept), 2)  # none and fifo
        self.rows("--schedulers", "fifo", "whole")
        self.assertEqual({path: path.stat().st_mtime_ns for path in kept}, kept)
        self.assertEqual(len(list((self.path / "out").glob("*.json"))), 3)

    def test_the_picture_has_all_panels_and_schedulers(self):
        try:
            import matplotlib  # noqa: F401
        except ModuleNotFoundError:
            self.skipTest("no matplotlib")
        self.rows("--schedulers", "fifo", "thirds", "--plot", self.path / "lines.svg")
        picture = (self.path / "lines.svg").read_text()
        for word in ("chain, fast", "thirds", "all-reduce", "time of an iteration, ms"):
            self.assertIn(f"<!-- {word} -->", picture)

    def test_what_is_wrong_is_named(self):
        file = self.path / "study.yaml"
        self.assertIn("no scheduler 'lifo'; there are none, fifo, whole, thirds", self.refused("--study", file, "--schedulers", "lifo"))
        self.assertIn("picture's name ends in", self.refused("--study", file, "--plot", "picture.txt"))
        self.assertIn("belong to --search", self.refused("--study", file, "--config", "network.yaml"))
        self.assertIn("--search needs --workload and --config", self.refused("--search", "credit"))
        for change, message in (({"schedulers": {"lifo": None}}, "no task scheduler 'lifo'"), ({"networks": {}}, "'networks' is missing"),
                                ({"networks": {"fast": "no.yaml"}}, "there is no "),
                                ({"workloads": {"chain": {"workload": "chain.yaml"}}}, "chain: 'exchanges' is missing")):
            file.write_text(yaml.safe_dump({**self.study, **change}))
            self.assertIn(message, self.refused("--study", file))


class Search(Folder):
    def test_finds_the_minimum_of_a_smooth_function_in_few_points(self):
        asked = []

        def measure(points):
            asked.extend(points)
            return {(part, number): math.log2(part / 3e6)**2 + math.log2(number / 7)**2 for part, number in points}

        times = schedulers.search(measure)
        part, number = schedulers.best(times)
        self.assertLess(max(part / 3e6, 3e6 / part), 1.3)
        self.assertLess(max(number / 7, 7 / number), 1.3)
        self.assertEqual(len(asked), len(set(asked)))
        self.assertLess(len(asked), 50)

    def test_of_equal_points_the_smallest_parts_are_best_and_the_search_ends(self):
        times = schedulers.search(lambda points: dict.fromkeys(points, 1.0))
        self.assertEqual(schedulers.best(times), min(times))

    def test_the_landscape_has_all_points_and_marks_the_best(self):
        header, rows = schedulers.landscape({(1000, 1): 0.003, (1000, 4): 0.001, (2000, 4): 0.002})
        self.assertEqual(header, ["part_KB", "1_in_flight_ms", "4_in_flight_ms"])
        self.assertEqual(rows, [["1", "3.00", "1.00*"], ["2", "", "2.00"]])

    def test_finds_sizes_that_are_no_worse_than_the_defaults(self):
        self.write("count: 3, forward: 1 ms, backward: 1 ms", "30 MB" if FULL else "10 MB")
        call = ("--workload", self.path / "chain.yaml", "--config", self.path / "network.yaml", "--csv", self.path / "table.csv")
        output = self.main("--search", "credit", *call)
        self.assertIn("best: {'kind': 'credit', 'part': '", output)
        self.assertEqual(output.count("*"), 1)
        table = evidence.read(self.path / "table.csv")
        found = min(float(cell) for row in table.rows for cell in row[1:] if cell)
        player = steps.Player(BINARY, self.path / "out")
        default = schedulers.play(player, steps.Job("default", self.path / "network.yaml", self.path / "chain.yaml",
                                                    ("scheduling.tasks=credit",)))
        self.assertLessEqual(found, 1e3 * default["iteration_s"] + 0.005)


class Shipped(unittest.TestCase):
    def test_netsim_can_read_all_of_the_study(self):
        study = schedulers.read_study(schedulers.STUDY, schedulers.list_kinds(BINARY))
        runs = list(study.runs())
        self.assertEqual(len(study.networks), 3)
        first = runs[0]
        some = [*study.overlaps, *(run for run in runs if run.scheduler == schedulers.NONE or run.group() == first.group())]
        for run in some[::1 if FULL else 3]:
            done = subprocess.run([*run.job.call(BINARY), "--print-config", "--json", "-"], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, f"{run.job.name}\n{done.stderr}")

    def test_the_table_of_ways_to_overlap_is_that_of_the_study(self):
        table = evidence.read(evidence.DATA / "overlaps.csv")
        study = schedulers.read_study(schedulers.STUDY, schedulers.list_kinds(BINARY))
        runs = [run for run in study.overlaps if FULL or run.workload == "Pipeline of 4 stages"]
        with tempfile.TemporaryDirectory() as folder:
            player = steps.Player(BINARY, pathlib.Path(folder))
            results = schedulers.play_all(player, [run.job for run in runs], 1 if not FULL else os.cpu_count())
        rows = schedulers.overlap_table(runs, results)
        self.assertEqual([row for row in table.rows if FULL or row[0] == "Pipeline of 4 stages"], rows)
        self.assertEqual(len(table.rows), len(study.overlaps))

    def test_the_table_of_the_page_is_that_of_the_study(self):
        table = evidence.read(evidence.DATA / "schedulers.csv")
        with tempfile.TemporaryDirectory() as folder:
            player = steps.Player(BINARY, pathlib.Path(folder))
            study = schedulers.read_study(schedulers.STUDY, schedulers.list_kinds(BINARY))
            runs = [run for run in study.runs()
                    if FULL or run.group() == ("ResNet-50", "all-reduce", "400 Gb/s") and run.scheduler in ("none", "FIFO", "ByteScheduler")]
            results = schedulers.play_all(player, [run.job for run in runs], 1 if not FULL else os.cpu_count())
            rows = schedulers.table(runs, results, "scripts/schedulers.py")
        self.assertEqual(tuple(table.header), schedulers.HEADER)
        if FULL:
            self.assertEqual(table.rows, rows)
        for row in rows:
            self.assertIn(row, table.rows)


if __name__ == "__main__":
    unittest.main()
