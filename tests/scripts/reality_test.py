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
HEAD = "row,family,gpus,precision,config,workload,set,microbatches,gpu,clock,calibrates,measured_s\n"
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
        slow, fast = self.rows("slow,f,2,BF16,cluster.yaml,job.yaml,transport.acknowledge.every=1,,h100_sxm,0.5,yes,1.0",
                               "fast,f,2,BF16,cluster.yaml,job.yaml,,,h100_sxm,1.0,,0.001")
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

    def test_few_microbatches_are_enough(self):
        (self.path / "many.yaml").write_text(JOB.replace("{tensor: 2}", "{tensor: 2, pipeline: 2, data: 2}") + "microbatches: 24\n")
        rows = self.rows("whole,f,8,BF16,cluster.yaml,many.yaml,,,h100_sxm,1,,1.0",
                         "all,f,8,BF16,cluster.yaml,many.yaml,,4 8 24,h100_sxm,1,,1.0",
                         "one,f,8,BF16,cluster.yaml,many.yaml,,4 8 24 replica,h100_sxm,1,,1.0")
        whole, *short = (reality.play(row, pathlib.Path(BINARY), self.path, False) for row in rows)
        for extended in short:
            self.assertAlmostEqual(extended["step_s"] / whole["step_s"], 1, delta=0.005)
            self.assertAlmostEqual(sum(extended["exposed_s"].values()) + extended["compute_s"] + extended["idle_s"],
                                   extended["step_s"], delta=1e-6)
        for wrong in ("8 4 24", "4 8", "0 1 2", "4 8 24 x"):
            with self.assertRaises(SystemExit) as refused:
                self.rows(f"short,f,8,BF16,cluster.yaml,many.yaml,,{wrong},h100_sxm,1,,1.0")
            self.assertIn("microbatches" if wrong[-1] != "x" else "x", str(refused.exception))

    def test_errors_are_of_predictions(self):
        rows = self.rows("a,f,2,BF16,cluster.yaml,job.yaml,,,h100_sxm,1,yes,1.0", "b,f,2,BF16,cluster.yaml,job.yaml,,,h100_sxm,1,,2.0",
                         "c,f,2,BF16,cluster.yaml,job.yaml,,,h100_sxm,1,,?")
        errors = [reality.error_of(row, {"step_s": 1.9}) for row in rows]
        self.assertIsNone(errors[0])
        self.assertAlmostEqual(errors[1], -0.05)
        self.assertIsNone(errors[2])
        self.assertIn("largest -6.0 %, 1 within", reality.summary_of([0.02, -0.06]))

    def test_wrong_rows_are_named(self):
        for line, message in (("a,f,two,BF16,cluster.yaml,job.yaml,,,h100_sxm,1,,1.0", "reference.csv:3"),
                              ("a,f,2,BF16,cluster.yaml,no.yaml,,,h100_sxm,1,,1.0", "there is no"),
                              ("a,f,2,BF16,cluster.yaml", "reference.csv:3")):
            with self.assertRaises(SystemExit) as refused:
                self.rows(line)
            self.assertIn(message, str(refused.exception))
        row = self.rows("a,f,4,BF16,cluster.yaml,job.yaml,,,h100_sxm,1,,1.0")[0]
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
