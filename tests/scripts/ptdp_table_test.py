"""Do the shortcuts of scripts/netsim_runs/steps.py give what the whole job takes, and PTD-P's table its choices? NETSIM_BINARY names the program.
With NETSIM_TEST_SIZE=full more jobs are compared.
"""

import os
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
sys.dont_write_bytecode = True
import ptdp_table
from netsim_runs import steps

FULL = os.environ.get("NETSIM_TEST_SIZE") == "full"
BINARY = os.environ.get("NETSIM_BINARY") or str(ROOT / "build/release/netsim")


def small(tensor, pipeline, gpus, batch, layers=4, hidden=2048):
    return ptdp_table.Row(1, 16, hidden, layers, tensor, pipeline, gpus, batch, None)


def choice_of(row, size, chunks):
    return next(choice for choice in row.choices() if (choice.size, choice.chunks) == (size, chunks))


class Table(unittest.TestCase):
    def setUp(self):
        self.reports = []
        self.player = steps.Player(BINARY, report=self.reports.append)

    def test_a_line_of_one_replica_is_the_whole_step(self):
        lines = [(small(2, 1, 16, 64), 1, 1, (2, 4)), (small(8, 2, 32, 32), 2, 1, (2, 4)), (small(8, 4, 64, 24, layers=8), 1, 2, (4, 8))]
        for row, size, chunks, counts in lines if FULL else lines[1:2]:
            choice = choice_of(row, size, chunks)
            line = choice.line()
            self.assertEqual((line.few, line.more, line.every, line.replicas, line.short), (*counts, choice.microbatches, 1, 2))
            whole, short = self.player.play(choice.job())["times"], self.player.step(choice.job(), line)
            self.assertEqual(short["ranks"], row.gpus)
            self.assertAlmostEqual(short["step_s"] / whole["step_s"], 1, delta=0.005, msg=choice)
            self.assertAlmostEqual(short["exposed_s"]["dp"] / whole["exposed_s"]["dp"], 1, delta=0.03, msg=choice)
            self.assertAlmostEqual(short["flops"] / whole["flops"], 1, delta=1e-6, msg=choice)
            parts = short["compute_s"] + short["idle_s"] + sum(short["exposed_s"].values())
            self.assertAlmostEqual(parts, short["step_s"], delta=1e-9)
            self.assertLess(self.player.alone(choice.job(), line)["step_s"], short["step_s"])

    def test_few_microbatches_are_played_as_they_are(self):
        choice = choice_of(small(8, 2, 16, 4), 1, 1)
        self.assertIsNone(choice.line())
        self.player.step(choice.job(), choice.line())
        self.assertEqual(len(self.reports), 1)

    def test_large_jobs_have_large_packets(self):
        job = choice_of(small(4, 1, 32, 32), 1, 1).job()
        exact = self.player.step(job)
        large = steps.Player(BINARY, most_hops=1000, report=self.reports.append).step(job)
        self.assertIn("_64k", self.reports[-1])
        self.assertNotEqual(large["step_s"], exact["step_s"])
        self.assertLess(large["exposed_s"]["dp"], exact["exposed_s"]["dp"])  # fewer headers
        self.assertAlmostEqual(large["step_s"] / exact["step_s"], 1, delta=0.01)

    def test_what_was_played_is_kept(self):
        job = choice_of(small(4, 1, 32, 32), 1, 1).job()
        with tempfile.TemporaryDirectory() as folder:
            def played(**options):
                player = steps.Player(BINARY, pathlib.Path(folder), report=self.reports.append, **options)
                self.reports.clear()
                return player.step(job), player.step(job), len(self.reports)
            first, again, count = played()
            self.assertEqual((first, count), (again, 1))
            self.assertEqual(played(), (first, first, 0))
            self.assertEqual(played(again=True), (first, first, 1))

    def test_what_does_not_fit_is_left_out(self):
        row = small(1, 1, 8, 32, layers=24, hidden=6144)
        self.assertEqual(list(ptdp_table.fitting(self.player, [choice_of(row, 4, 1)])), [])
        self.assertIn("left out", self.reports[-1])
        self.assertIn("does not fit into the 80.00 GiB", self.reports[-1])

    def test_one_job_of_all_gpus_serves_all_choices(self):
        choices = list(small(8, 2, 32, 64).choices())
        self.assertEqual(len(choices), 8)
        choices = choices if FULL else choices[::7]
        with tempfile.TemporaryDirectory() as folder:
            found = ptdp_table.rated(steps.Player(BINARY, pathlib.Path(folder), report=self.reports.append).step, choices)
        self.assertEqual(sum("32 GPUs" in text for text in self.reports), 1)
        self.assertEqual(found, sorted(found, key=lambda entry: entry[0]))
        for rate, choice, times in (found[0], found[-1]) if FULL else found[:1]:
            exact = self.player.play(choice.job())["times"]
            self.assertAlmostEqual(times["step_s"] / exact["step_s"], 1, delta=0.005, msg=choice)

    def test_reads_lines(self):
        self.assertIsNone(steps.read_line(""))
        self.assertEqual(steps.read_line("model.layers 2 4 96"), steps.Line("model.layers", 2, 4, 96))
        self.assertEqual(steps.read_line("microbatches 8 16 64 replicas 2"), steps.Line("microbatches", 8, 16, 64, 2))
        self.assertEqual(steps.read_line("microbatches 8 16 64 replicas 1 short 2"), steps.Line("microbatches", 8, 16, 64, 1, 2))
        for wrong in ("microbatches", "microbatches 8 4 64", "microbatches 8 16 x", "microbatches 8 16 64 2", "microbatches 8 16 64 replicas 0",
                      "microbatches 8 16 64 short 2", "microbatches 8 16 64 replicas 1 short"):
            with self.assertRaisesRegex(ValueError, "KEY FEW MORE ALL"):
                steps.read_line(wrong)

    def test_choices_are_those_that_divide(self):
        def found(number):
            return [(choice.size, choice.chunks) for choice in ptdp_table.Row(*ptdp_table.ROWS[number - 1]).choices()]
        self.assertEqual(found(1), [(1, 1), (2, 1), (4, 1), (8, 1)])
        self.assertEqual(found(6), [(1, 1), (1, 3), (2, 1), (2, 3), (4, 1), (8, 1)])  # 60 layers; 14 = 3.5 x 4
        self.assertEqual(found(10), [(size, chunks) for size in (1, 2, 4, 8) for chunks in (1, 2)])


if __name__ == "__main__":
    unittest.main()
