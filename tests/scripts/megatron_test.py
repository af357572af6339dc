"""Does scripts/megatron.py play a study's cases, compare them as the study says, and say what is wrong? And what scatter/gather does, in a
small case. NETSIM_BINARY names the program. With NETSIM_TEST_SIZE=full the small case has one chunk of layers for each stage, too."""

import contextlib
import io
import os
import pathlib
import sys
import tempfile
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
sys.dont_write_bytecode = True
import megatron
from netsim_runs import steps

BINARY = pathlib.Path(os.environ.get("NETSIM_BINARY") or str(ROOT / "build/release/netsim"))
FULL = os.environ.get("NETSIM_TEST_SIZE") == "full"
HEAD = ",".join(megatron.COLUMNS)
CLUSTER = "topology: {kind: star, hosts: 16, rate: 25 Gbps}\nhost: dgx_a100\nhosts: 2\ntransport: {mtu: 64 KiB}\n"
JOB = ("kind: ptdp\nmodel: {layers: 8, hidden: 2048, heads: 16, sequence: 2048, vocabulary: 4096}\nmicrobatches: 8\noverlap_p2p: false\n")


class Study(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = pathlib.Path(directory.name)
        (self.path / "cluster.yaml").write_text(CLUSTER)
        (self.path / "gpt.yaml").write_text(JOB)

    def write(self, *rows):
        (self.path / "study.csv").write_text("\n".join(("# a comment", HEAD, *rows)) + "\n")

    def main(self, *more):
        words = ["megatron.py", "--study", str(self.path / "study.csv"), "--out", str(self.path / "out"), "--binary", str(BINARY), *more]
        output, progress = io.StringIO(), io.StringIO()
        with unittest.mock.patch.object(sys, "argv", words), contextlib.redirect_stdout(output), contextlib.redirect_stderr(progress):
            megatron.main()
        return output.getvalue(), progress.getvalue()

    def refused(self, *rows):
        self.write(*rows)
        with self.assertRaises(SystemExit) as refused:
            self.main()
        return str(refused.exception)

    def step(self, *overlays):
        return steps.Player(BINARY).step(steps.Job("job", self.path / "cluster.yaml", self.path / "gpt.yaml",
                                                   tuple(f"workload.{overlay}" for overlay in overlays)))

    def test_scatter_gather_gains_where_stages_wait_and_nothing_without_tensor_parallelism(self):
        for chunks in (1, 2) if FULL else (2,):
            mesh = f"parallel={{tensor: 8, pipeline: 2, virtual_stages: {chunks}}}"
            whole, divided = self.step(mesh, "scatter_gather=false"), self.step(mesh)
            self.assertEqual(whole["compute_s"], divided["compute_s"])
            # A stage sends 8 MiB over its GPU's 25 Gb/s instead of 1 MiB, forward and backward, for each microbatch and chunk.
            sends = 2 * 8 * (2 * chunks - 1) / 2
            self.assertGreater(whole["step_s"] - divided["step_s"], 0.8 * sends * 7 / 8 * 8 * 2**20 / (25e9 / 8))
            alone = f"parallel={{pipeline: 2, virtual_stages: {chunks}}}"
            self.assertEqual(self.step(alone, "scatter_gather=false"), self.step(alone))

    def test_cases_are_compared_and_kept(self):
        self.write('one,whole,16,cluster.yaml,gpt.yaml,"workload.parallel={tensor: 8, pipeline: 2};workload.scatter_gather=false",,100,,',
                   'one,divided,16,cluster.yaml,gpt.yaml,"workload.parallel={tensor: 8, pipeline: 2}",microbatches 2 4 8,,whole,1.01 to 1.02',
                   'two,clock,1,cluster.yaml,gpt.yaml,,model.layers 2 4 8,120 clock,,')
        output, progress = self.main("one", "--cases", "divided")
        self.assertIn("| `whole` | 16 |", output)
        self.assertIn("| 100 | -", output)
        self.assertRegex(output, r"`divided` .*\| `whole` \| 1\.\d+ \| 1\.01 to 1\.02 \| outside \|")
        self.assertNotIn("two:", output)
        self.assertEqual(len(progress.splitlines()), 3)
        output, progress = self.main()
        self.assertEqual(len(progress.splitlines()), 2)
        self.assertIn("| 120 | (clock) |", output)
        commands, _ = self.main("two", "--list")
        self.assertIn("--set workload.model.layers=2\n", commands)
        self.assertEqual(len(commands.splitlines()), 2)

    def test_ratios_are_judged(self):
        for ratio, said, verdict in ((0.8, "0.77", "+3.0 points"), (1.1, "1.05 to 1.13", "inside"), (1.2, "1.05 to 1.13", "outside"),
                                     (1.2, "above 1", "inside"), (0.9, "above 1", "outside"), (0.9, "below 1", "inside"), (1.1, "below 1", "outside"),
                                     (1.1, "", "")):
            self.assertEqual(megatron.judged(ratio, said), verdict)

    def test_what_is_wrong_is_named(self):
        good = "one,a,1,cluster.yaml,gpt.yaml,,,,,"
        for rows, message in ((["one,a"], f"study.csv:3: a row is {HEAD}"), (["one,a,1,cluster.yaml,no.yaml,,,,,"], "study.csv:3: there is no"),
                              ([good, good], "study.csv:4: one, a is there twice"), (["one,a,1,cluster.yaml,gpt.yaml,,,,b,1"], "no case 'b' of one"),
                              (["one,a,1,cluster.yaml,gpt.yaml,,,,,2"], "ratio: '2' was given"), ([good, good.replace(",a,", ",b,")[:-1] + "a,about 2"],
                                                                                               "ratio: 'about 2' was given"),
                              (["one,a,1,cluster.yaml,gpt.yaml,,microbatches 8,,,"], "KEY FEW MORE ALL"),
                              (["one,a,2,cluster.yaml,gpt.yaml,,,,,"], "a: the job has 1 GPUs, the study says 2")):
            self.assertIn(message, self.refused(*rows))

    def test_the_shipped_study_is_whole(self):
        cases = megatron.read_study()
        self.assertEqual(list(dict.fromkeys(case.figure for case in cases)), ["scatter_gather", "tensor", "zero", "weak_scaling"])
        self.assertEqual([case.name for case in cases if case.calibrates], ["zero_175b_384", "t1"])


if __name__ == "__main__":
    unittest.main()
