"""Does scripts/reality.py play the rows of its table, keep what it played, and say what is wrong? NETSIM_BINARY names the program."""

import os
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
sys.dont_write_bytecode = True
import reality

BINARY = os.environ.get("NETSIM_BINARY") or str(ROOT / "build/release/netsim")
HEAD = "row,family,gpus,precision,config,workload,set,gpu,clock,calibrates,measured_s\n"
CLUSTER = "topology: {kind: star, hosts: 16, rate: 400 Gbps}\nhost: dgx_h100\n"
JOB = ("kind: ptdp\nmodel: {kind: llama, layers: 2, hidden: 1024, heads: 8, groups: 8, inner: 2048, sequence: 1024, vocabulary: 32000}\n"
       "parallel: {tensor: 2}\nrecompute: none\n")


class Table(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = pathlib.Path(directory.name)
        (self.path / "cluster.yaml").write_text(CLUSTER)
        (self.path / "job.yaml").write_text(JOB)

    def rows(self, *lines):
        (self.path / "reference.csv").write_text("# about it\n" + HEAD + "".join(line + "\n" for line in lines))
        return reality.read_rows(self.path / "reference.csv")

    def test_a_row_is_played_once(self):
        slow, fast = self.rows("slow,f,2,BF16,cluster.yaml,job.yaml,transport.acknowledge.every=1,h100_sxm,0.5,yes,1.0",
                               "fast,f,2,BF16,cluster.yaml,job.yaml,,h100_sxm,1.0,,0.001")
        first = reality.play(slow, pathlib.Path(BINARY), self.path, False)
        other = reality.play(fast, pathlib.Path(BINARY), self.path, False)
        self.assertGreater(first["compute_s"], 1.1 * other["compute_s"])
        self.assertAlmostEqual(sum(other["exposed_s"].values()) + other["compute_s"] + other["idle_s"], other["step_s"], delta=1e-6)
        kept = (self.path / "slow.json").stat().st_mtime_ns
        self.assertEqual(reality.play(slow, pathlib.Path(BINARY), self.path, False), first)
        self.assertEqual((self.path / "slow.json").stat().st_mtime_ns, kept)
        (self.path / "job.yaml").write_text(JOB + "microbatches: 2\n")
        again = reality.play(slow, pathlib.Path(BINARY), self.path, False)
        self.assertGreater(again["step_s"], 1.5 * first["step_s"])

    def test_a_line_through_two_runs_is_the_whole_job(self):
        (self.path / "job.yaml").write_text(JOB + "microbatches: 7\n")
        head = HEAD.strip() + ",microbatches\n"
        (self.path / "experts.csv").write_text(head + "short,f,2,BF16,cluster.yaml,job.yaml,,h100_sxm,1.0,,?,1 3\n"
                                               "whole,f,2,BF16,cluster.yaml,job.yaml,,h100_sxm,1.0,,?,\n")
        short, whole = (reality.play(row, pathlib.Path(BINARY), self.path, False) for row in reality.read_rows(self.path / "experts.csv"))
        self.assertAlmostEqual(short["step_s"] / whole["step_s"], 1, delta=1e-3)
        self.assertAlmostEqual(short["packet_hops"] / whole["packet_hops"], 1, delta=1e-3)

    def test_errors_are_of_predictions(self):
        rows = self.rows("a,f,2,BF16,cluster.yaml,job.yaml,,h100_sxm,1,yes,1.0", "b,f,2,BF16,cluster.yaml,job.yaml,,h100_sxm,1,,2.0",
                         "c,f,2,BF16,cluster.yaml,job.yaml,,h100_sxm,1,,?")
        errors = [reality.error_of(row, {"step_s": 1.9}) for row in rows]
        self.assertIsNone(errors[0])
        self.assertAlmostEqual(errors[1], -0.05)
        self.assertIsNone(errors[2])
        self.assertIn("largest -6.0 %, 1 within", reality.summary_of([0.02, -0.06]))

    def test_wrong_rows_are_named(self):
        for line, message in (("a,f,two,BF16,cluster.yaml,job.yaml,,h100_sxm,1,,1.0", "reference.csv:3"),
                              ("a,f,2,BF16,cluster.yaml,no.yaml,,h100_sxm,1,,1.0", "there is no"),
                              ("a,f,2,BF16,cluster.yaml", "reference.csv:3")):
            with self.assertRaises(SystemExit) as refused:
                self.rows(line)
            self.assertIn(message, str(refused.exception))
        row = self.rows("a,f,4,BF16,cluster.yaml,job.yaml,,h100_sxm,1,,1.0")[0]
        with self.assertRaises(SystemExit) as refused:
            reality.play(row, pathlib.Path(BINARY), self.path, False)
        self.assertIn("is for 2 GPUs, the table says 4", str(refused.exception))

    def test_the_shipped_table_is_whole(self):
        rows = reality.read_rows()
        for clock in {row.overlays[0] for row in rows}:
            self.assertEqual(sum(row.calibrates for row in rows if row.overlays[0] == clock), 1, clock)
        self.assertIn("no row", reality.summary_of([]))


if __name__ == "__main__":
    unittest.main()
