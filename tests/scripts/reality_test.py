"""Does scripts/reality.py play the rows of its table, keep what it played, calibrate, and say what is wrong?

NETSIM_BINARY names the program. With NETSIM_TEST_SIZE=full jobs are larger, and more clocks are found.
"""

import collections
import concurrent.futures
import dataclasses
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

try:
    import yaml
except ImportError:
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
sys.dont_write_bytecode = True
import reality
from netsim_runs import steps

BINARY = pathlib.Path(os.environ.get("NETSIM_BINARY") or ROOT / "build/release/netsim")
FULL = os.environ.get("NETSIM_TEST_SIZE") == "full"
HEAD = "row,family,gpu,gpus,hosts,data,precision,config,workload,set,microbatches,clock,calibrates,measured_s\n"
CLUSTER = "topology: {kind: star, hosts: 128, rate: 400 Gbps}\nhost: dgx_h100\n"
JOB = ("kind: ptdp\nmodel: {kind: llama, layers: 2, hidden: 1024, heads: 8, groups: 8, inner: 2048, sequence: 1024, vocabulary: 32000}\n"
       "parallel: {tensor: 2}\nrecompute: none\n")


class Table(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = pathlib.Path(directory.name)
        self.table = self.path / "reference.csv"
        (self.path / "cluster.yaml").write_text(CLUSTER)
        (self.path / "job.yaml").write_text(JOB)
        (self.path / "many.yaml").write_text(JOB.replace("{tensor: 2}", "{tensor: 2, pipeline: 2, data: 2}") + "microbatches: 24\n")

    def rows(self, *lines):
        self.table.write_text("# about it\n" + HEAD + "".join(line + "\n" for line in lines))
        return reality.read_rows(self.table)

    def player(self, **options):
        return steps.Player(BINARY, self.path / "out", **options)

    def test_a_row_is_played_once(self):
        slow, fast = self.rows("slow,f,h100_sxm,2,16,,BF16,cluster.yaml,job.yaml,transport.acknowledge.every=1,,0.5,,1.0",
                               "fast,f,h100_sxm,2,16,,BF16,cluster.yaml,job.yaml,,,1.0,,0.001")
        first, other = reality.play(self.player(), slow), reality.play(self.player(), fast)
        self.assertGreater(first["compute_s"], 1.1 * other["compute_s"])
        self.assertAlmostEqual(sum(first["exposed_s"].values()) + first["compute_s"] + first["idle_s"], first["step_s"], delta=1e-6)
        kept = {path: path.stat().st_mtime_ns for path in self.path.glob("out/*.json")}
        self.assertEqual(len(kept), 2)
        self.assertEqual(reality.play(self.player(), slow), first)
        self.assertEqual({path: path.stat().st_mtime_ns for path in kept}, kept)
        self.assertEqual(reality.play(self.player(most_hops=None), slow), first)
        (self.path / "job.yaml").write_text(JOB + "microbatches: 2\n")
        with self.assertRaises(steps.NotPlayed):
            reality.play(self.player(most_hops=None), slow)
        self.assertGreater(reality.play(self.player(), slow)["step_s"], 1.5 * first["step_s"])

    def test_a_row_without_a_clock_is_a_prediction(self):
        overlap = JOB.replace("{tensor: 2}", "{tensor: 2, sequence: true, tensor_overlap: {gathers: ring_exchange}}")
        (self.path / "overlap.yaml").write_text(overlap)
        row, plain = self.rows("row,llama_3_70b,h100_sxm,2,16,,FP8,cluster.yaml,overlap.yaml,,,0.9,yes,1.0",
                               "plain,llama_3_8b,h100_sxm,2,16,,BF16,cluster.yaml,job.yaml,,,0.9,,1.0")
        without = row.without_clock()
        self.assertEqual(without.job().overlays[0], "compute={kind: h100_sxm_power}")
        self.assertIn("workload.parallel.tensor_overlap.multiprocessors={projection: 24, mlp_down: 16, qkv_dgrad: 4, qkv_wgrad: 24, "
                      "mlp_up_dgrad: 2, mlp_up_wgrad: 4}", without.job().overlays)
        self.assertIn("workload.fused_casts=norms", without.job().overlays)
        transposes = "workload.transposed_operands=false"
        self.assertNotIn(transposes, without.job().overlays)
        self.assertIn(transposes, dataclasses.replace(row, gpu="gb200").without_clock().job().overlays)
        self.assertIn("workload.tensor_copies=megatron_core", without.job().overlays)
        self.assertFalse(any("tensor_overlap.multiprocessors=" in value for value in plain.without_clock().job().overlays))
        result = reality.play(self.player(), without)
        self.assertIsNone(reality.error_of(row, result))
        self.assertEqual(reality.error_of(without, result), result["step_s"] - 1)
        self.assertNotEqual(result["compute_s"], reality.play(self.player(), row)["compute_s"])

    def test_recipes_settings_are_laid_over_their_families(self):
        row, staged = self.rows("row,nemotron_4_340b,h100_sxm,2,16,,BF16,cluster.yaml,job.yaml,,,0.9,,1.0",
                                "staged,nemotron_4_340b,h100_sxm,4,16,,BF16,cluster.yaml,job.yaml,workload.parallel.pipeline=2,,0.9,,1.0")
        overlays = row.without_clock().job().overlays
        receives = "gpus.channels_hold_multiprocessors=[dp, pp]"
        self.assertNotIn(receives, overlays)
        self.assertIn(receives, staged.without_clock().job().overlays)
        self.assertIn("compute.attention=flash_attention_2", overlays)
        self.assertIn("workload.recompute=selective", overlays)
        self.assertNotIn("workload.recompute=selective", row.job().overlays, "a clock stands for it")
        self.assertLessEqual(set(reality.settings_of_recipes()), {row.family for row in reality.read_rows()})
        models = [value.split("=", 1)[1] for values in reality.settings_of_recipes().values() for value in values if value.startswith("workload.model.file=")]
        self.assertTrue(models)
        for model in models:
            self.assertTrue(pathlib.Path(model).is_file(), model)

    def test_each_family_and_precision_has_chosen_rows(self):
        rows = reality.read_rows()
        measured = {(row.family, row.precision) for row in rows if row.measured and "@" not in row.name and not row.family.startswith("mlperf")}
        self.assertEqual(measured, {(row.family, row.precision) for row in rows if row.chosen and not row.family.startswith("mlperf")})
        self.assertLessEqual(max(row.gpus for row in rows if row.chosen), 512)
        for row in rows:
            if row.chosen and "tensor_overlap" in row.workload.read_text():
                self.assertIn(row.family, reality.multiprocessors_beside_gemms())
        with self.assertRaises(SystemExit) as refused:
            self.table.write_text(HEAD.replace("measured_s", "measured_s,chosen") + "a,f,h100_sxm,2,16,,BF16,cluster.yaml,job.yaml,,,1,,1.0,no\n")
            reality.read_rows(self.table)
        self.assertIn("chosen: 'no' was given; yes or nothing is expected", str(refused.exception))

    def test_what_is_kept_may_move(self):
        line = "plain,f,h100_sxm,2,16,,BF16,cluster.yaml,job.yaml,transport.acknowledge.every=1,,1,,1.0"
        here, = self.rows(line)
        moved = self.path / "moved"
        moved.mkdir()
        for file in ("cluster.yaml", "job.yaml", "reference.csv"):
            (moved / file).write_text((self.path / file).read_text())
        there, = reality.read_rows(moved / "reference.csv")
        self.assertEqual(self.player().key(here.job()), self.player().key(there.job()))
        (moved / "job.yaml").write_text(JOB + "microbatches: 2\n")
        self.assertNotEqual(self.player().key(here.job()), self.player().key(there.job()))

    def test_few_microbatches_are_enough(self):
        rows = self.rows("whole,f,h100_sxm,8,1,2,BF16,cluster.yaml,many.yaml,,,1,,1.0",
                         "all,f,h100_sxm,8,1,2,BF16,cluster.yaml,many.yaml,,4 8 24,1,,1.0",
                         "one,f,h100_sxm,8,1,2,BF16,cluster.yaml,many.yaml,,4 8 24 replicas 1,1,,1.0")
        whole, *short = (reality.play(self.player(), row) for row in rows)
        for extended in short:
            self.assertAlmostEqual(extended["step_s"] / whole["step_s"], 1, delta=0.005)
            self.assertAlmostEqual(sum(extended["exposed_s"].values()) + extended["compute_s"] + extended["idle_s"],
                                   extended["step_s"], delta=1e-6)
        for wrong in ("8 4 24", "4 8", "0 1 2", "4 8 24 x", "4 8 24 replicas"):
            with self.assertRaises(SystemExit) as refused:
                self.rows(f"short,f,h100_sxm,8,1,2,BF16,cluster.yaml,many.yaml,,{wrong},1,,1.0")
            self.assertIn("microbatches", str(refused.exception))

    def test_the_replica_of_the_slowest_gpu_is_played(self):
        self.assertEqual(self.rows("many,f,h100_sxm,64,8,16,BF16,cluster.yaml,many.yaml,,4 8 24 replicas 1,1,,1.0")[0].grid(),
                         steps.Grid(8, 16, 2))
        gpus = 64 if FULL else 16
        job = f"f,h100_sxm,{gpus},{gpus // 8},{gpus // 4},BF16,cluster.yaml,many.yaml"
        row, = self.rows(f"many,{job},,4 8 24 replicas 1,1,,1.0")
        self.assertEqual(steps.Grid(8, 16, 2).of_replicas(36, 1, 64), [4, 5, 36, 37])
        self.assertEqual(steps.Grid(8, 16, 2).of_replicas(38, 4, 64), [0, 1, 2, 3, 4, 5, 6, 7, 32, 33, 34, 35, 36, 37, 38, 39])
        result = self.player().play(row.parts()[2])
        placed, = self.path.glob("out/placement-*.csv") if reality.play(self.player(), row) else ()
        there = row.grid().of_replicas(result["slowest"], 1, gpus)
        self.assertEqual(placed.read_text().split()[1:], [f"{rank},{gpu // 8},{gpu % 8}" for rank, gpu in enumerate(there)])
        whole, = self.rows(f"whole,{job},,,1,,1.0")
        self.assertAlmostEqual(reality.play(self.player(), row)["step_s"] / reality.play(self.player(), whole)["step_s"], 1, delta=0.005)

    def test_much_traffic_goes_in_large_packets(self):
        row, = self.rows("whole,f,h100_sxm,16,2,4,BF16,cluster.yaml,many.yaml,,,1,,1.0")
        small, large = reality.play(self.player(), row), reality.play(self.player(most_hops=1), row)
        self.assertEqual((small["large_packets"], large["large_packets"]), (False, True))
        self.assertIn("`whole`* |", reality.line_of(row, large))
        self.assertAlmostEqual(large["step_s"] / small["step_s"], 1, delta=0.005)
        self.assertEqual(reality.play(self.player(), row), small)

    def test_what_shortcuts_change_is_found(self):
        row, plain = self.rows("many,f,h100_sxm,16,2,4,BF16,cluster.yaml,many.yaml,,2 4 16 replicas 1,1,,1.0",
                               "plain,f,h100_sxm,2,16,,BF16,cluster.yaml,job.yaml,,,1,,1.0")
        step, both, few, large = reality.shortcuts(self.player(), row, 1e9)
        whole, = self.rows("whole,f,h100_sxm,16,2,4,BF16,cluster.yaml,many.yaml,workload.microbatches=16,,1,,1.0")
        self.assertEqual(step, reality.play(self.player(), whole)["step_s"])
        self.assertAlmostEqual(step * (1 + few), reality.play(self.player(), row)["step_s"])
        self.assertAlmostEqual(step * (1 + large), reality.play(self.player(most_hops=0), whole)["step_s"])
        self.assertAlmostEqual(step * (1 + both), reality.play(self.player(most_hops=0), row)["step_s"])
        for change in (both, few, large):
            self.assertNotEqual(change, 0)
            self.assertLess(abs(change), 0.005)
        self.assertIsNone(reality.shortcuts(self.player(), row, 1e3))
        self.assertIsNone(reality.shortcuts(self.player(), plain, 1e9))

    def test_a_clock_is_found_and_written(self):
        slow, = self.rows("slow,f,h100_sxm,2,16,,BF16,cluster.yaml,job.yaml,,,0.7,,1.0")
        step = reality.play(self.player(), slow)["step_s"]
        row, other = self.rows(f"slow,f,h100_sxm,2,16,,BF16,cluster.yaml,job.yaml,,,1.0,yes,{step}",
                               "other,f,h100_sxm,2,16,,FP8,cluster.yaml,job.yaml,,,1.0,yes,0.123")
        clock = reality.calibrate(self.player(), row)
        self.assertAlmostEqual(clock, 0.7, delta=0.003)
        if FULL:
            many = "many,f,h100_sxm,8,1,2,BF16,cluster.yaml,many.yaml,,4 8 24 replicas 1,{},{},{}"
            fast, = self.rows(many.format(0.9, "", 1))
            step = reality.play(self.player(), fast)["step_s"]
            self.assertAlmostEqual(reality.calibrate(self.player(), self.rows(many.format(0.6, "yes", step))[0]), 0.9, delta=0.005)
        row, other = self.rows("slow,f,h100_sxm,2,16,,BF16,cluster.yaml,job.yaml,,,1.0,yes,1.0",
                               "other,f,h100_sxm,2,16,,FP8,cluster.yaml,job.yaml,,,1.0,yes,0.123")
        before = self.table.read_text().splitlines()
        reality.write_clocks(self.table, {row.number: clock})
        again = reality.read_rows(self.table)
        self.assertEqual([found.clock for found in again], [clock, other.clock])
        self.assertEqual(sum(line != old for line, old in zip(self.table.read_text().splitlines(), before)), 1)

    def test_clocks_are_those_of_a_family_or_common(self):
        line = "{},{},h100_sxm,2,16,,{},cluster.yaml,job.yaml,,,{},{},1.0"
        rows = self.rows(line.format("a", "f", "BF16", 0.8, "common"), line.format("b", "g", "BF16", 0.7, "yes"), line.format("c", "g", "BF16", "", ""),
                         line.format("d", "h", "BF16", "", ""), line.format("e", "h", "BF16", 0.6, ""), line.format("i", "i", "BF16", "", "yes"))
        self.assertEqual([row.clock for row in rows], [0.8, 0.7, 0.7, 0.8, 0.6, 0.8])
        self.assertEqual([row.calibrated for row in rows], [True, True, False, False, False, False])
        self.assertEqual(reality.common_clock(rows, rows[1]), 0.8)
        with self.assertRaises(SystemExit) as refused:
            self.rows(line.format("a", "f", "BF16", 0.8, "common"), line.format("d", "h", "FP8", "", ""))
        self.assertIn("no row of h calibrates", str(refused.exception))

    def test_errors_are_of_predictions(self):
        line = "{},f,h100_sxm,2,16,,BF16,cluster.yaml,job.yaml,,,1,{},{}"
        rows = self.rows(line.format("a", "yes", 1.0), line.format("b", "", 2.0), line.format("c", "", "?"))
        errors = [reality.error_of(row, {"step_s": 1.9}) for row in rows]
        self.assertIsNone(errors[0])
        self.assertAlmostEqual(errors[1], -0.05)
        self.assertIsNone(errors[2])
        self.assertIn("largest -6.0 %, 1 within", reality.summary_of([0.02, -0.06]))
        self.assertIn("no row", reality.summary_of([]))

    def test_what_misses_has_its_critical_path_shown(self):
        row, = self.rows("a,f,h100_sxm,2,16,,BF16,cluster.yaml,job.yaml,,,0.05,,10.0")
        result = reality.play(self.player(), row)
        self.assertNotIn("critical_s", result)
        self.assertEqual(list(reality.misses(self.player(), [(row, {"step_s": 9.6})])), [])
        unknown, = reality.misses(self.player(most_hops=None), [(row, result)])
        self.assertIn("not played with critical paths", unknown)
        line, = reality.misses(self.player(), [(row, result)])
        self.assertRegex(line, r"^a [+-][0-9.]+ %: compute [0-9.]+ s")
        shown = sum(float(time) for time in re.findall(r"([0-9.]+) s", line))
        self.assertAlmostEqual(shown, result["step_s"], delta=0.02 * result["step_s"] + 0.02)
        self.assertEqual(list(reality.misses(self.player(most_hops=None), [(row, result)])), [line])

    def test_rows_are_played_beside_each_other(self):
        rows = self.rows(*(f"{name},f,h100_sxm,2,16,,BF16,cluster.yaml,job.yaml,,,{clock},,1.0"
                           for name, clock in (("a", 0.5), ("b", 0.5), ("c", 1.0), ("d", 1.0))))
        player = self.player()
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            results = list(pool.map(lambda row: reality.play(player, row), rows))
        self.assertEqual(results, [reality.play(player, row) for row in rows])
        self.assertEqual(len(list(self.path.glob("out/*.json"))), 2)
        self.assertEqual(list(self.path.glob("out/*.new")), [])

    def test_slopes_and_spans(self):
        line = "{},f,h100_sxm,{},16,{},BF16,cluster.yaml,many.yaml,{},,1,,{}"
        rows = self.rows(line.format("a", 64, 16, "", 1.0), line.format("b", 128, 32, "topology.hosts=32", 1.01), line.format("c", 512, 128, "", "?"))
        steps = [(row, {"step_s": step}) for row, step in zip(rows, (1.0, 1.02, 1.0302))]
        self.assertEqual(reality.slopes(steps), ["| f | h100_sxm | BF16 | 128 to 512 | ? | +1.00 |", "| f | h100_sxm | BF16 | 64 to 128 | +1.00 | +2.00 |"])
        rows = self.rows(line.format("a@1", 64, 16, "", 1.0), line.format("a@2", 64, 16, "", 1.0), line.format("b@1", 64, 16, "", 2.0))
        steps = [(row, {"step_s": step}) for row, step in zip(rows, (0.9, 1.1, 1.9))]
        self.assertEqual(reality.spans(steps), ["| a | 2 | 0.900 to 1.100 | 1.000 | inside |", "| b | 1 | 1.900 to 1.900 | 2.000 | -5.0 % beside it |"])

    def test_wrong_rows_are_named(self):
        for line, message in (("a,f,h100_sxm,two,16,,BF16,cluster.yaml,job.yaml,,,1,,1.0", "reference.csv:3"),
                              ("a,f,h100_sxm,2,16,,BF16,cluster.yaml,no.yaml,,,1,,1.0", "there is no"),
                              ("a,f,h100_sxm,2,16,,BF16,cluster.yaml,job.yaml,,,1,maybe,1.0", "maybe"),
                              ("a,f,h100_sxm,2,16,,BF16,cluster.yaml,job.yaml,,,1,yes,?", "needs a measured step"),
                              ("a,f,h100_sxm,2,16,,BF16,cluster.yaml,job.yaml,,,,common,1.0", "needs a clock"),
                              ("a,f,h100_sxm,8,16,,BF16,cluster.yaml,job.yaml,,1 2 3 replicas 1,1,,1.0", "in its column data"),
                              ("a,f,h100_sxm,2,16", "reference.csv:3")):
            with self.assertRaises(SystemExit) as refused:
                self.rows(line)
            self.assertIn(message, str(refused.exception))
        row, = self.rows("a,f,h100_sxm,4,16,,BF16,cluster.yaml,job.yaml,,,1,,1.0")
        with self.assertRaises(SystemExit) as refused:
            reality.play(self.player(), row)
        self.assertIn("is for 2 GPUs, the table says 4", str(refused.exception))

    def test_a_number_of_rows_at_a_time_is_one_at_least(self):
        for given in ("0", "-1", "two"):
            called = subprocess.run([sys.executable, reality.__file__, f"--jobs={given}", "--list"], capture_output=True, text=True, check=False)
            self.assertEqual((called.returncode, called.stdout), (2, ""))
            self.assertIn(f"'{given}' was given; a number of at least 1 is expected", called.stderr)


class Shipped(unittest.TestCase):
    def test_names_and_clocks_are_there_once(self):
        rows = reality.read_rows()
        self.assertEqual(len({row.name for row in rows}), len(rows))
        calibrating = collections.Counter((row.family, row.gpu, row.precision) for row in rows if row.calibrates)
        self.assertEqual(set(calibrating.values()), {1})
        common = collections.Counter((row.gpu, row.precision) for row in rows if row.common)
        self.assertEqual(set(common.values()), {1})

    def test_its_jobs_are_as_large_as_it_says(self):
        for row in reality.read_rows():
            parallel = yaml.safe_load(row.workload.read_text())["parallel"]
            for value in [*row.values, *([f"workload.parallel.data={row.data}"] if row.data else [])]:
                path, given = value.split("=", 1)
                if path.startswith("workload.parallel."):
                    parallel[path.removeprefix("workload.parallel.")] = given
            ranks = 1
            for axis in ("tensor", "context", "pipeline", "data"):
                ranks *= int(parallel.get(axis, 1))
            self.assertEqual(ranks, row.gpus, row.name)
            self.assertEqual(row.hosts * (4 if row.gpu == "gb200" else 8), row.gpus, row.name)


if __name__ == "__main__":
    unittest.main()
