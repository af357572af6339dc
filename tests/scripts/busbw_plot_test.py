"""Does scripts/busbw_plot.py compare netsim's collectives with what nccl-tests prints? NETSIM_BINARY names the program."""

import contextlib
import csv
import io
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
sys.dont_write_bytecode = True
import busbw_plot
from netsim_runs import pictures

BINARY = os.environ.get("NETSIM_BINARY") or str(ROOT / "build/release/netsim")
HEADER = """# nccl-tests version 2.19.6 nccl-headers=23000 nccl-library=23000
#  Rank  0 Group  0 Pid  41234 on      node0 device  0 [0000:18:00] GPU
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)
"""


def row(size, microseconds, in_place=None, factor=1.5, root=" -1", wrong="0"):
    """A line as nccl-tests prints it for an all-reduce of 4 ranks."""
    def half(time):
        algbw = size / time * 1e-3
        return f"{time:9.2f} {algbw:7.2f} {algbw * factor:7.2f} {wrong:>6}"
    return f"{size:12} {size // 4:13}     float     sum{root} {half(microseconds)} {half(in_place or microseconds)}\n"


class BusbwPlot(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="netsim_busbw_"))
        self.addCleanup(shutil.rmtree, self.folder)

    def write(self, name, text):
        (self.folder / name).write_text(text)
        return str(self.folder / name)

    def simulated(self, rows, name="summary.json"):
        """(bytes, seconds) of an all-reduce of 4 ranks."""
        return self.write(name, json.dumps({"collectives": [
            {"collective": "all_reduce", "ranks": 4, "bytes": size, "count": 1, "time_s": seconds,
             "algbw_GBps": size / seconds * 1e-9, "busbw_GBps": 1.5 * size / seconds * 1e-9} for size, seconds in rows]}))

    def test_algorithms_of_a_workload_are_curves_of_their_own(self):
        rows = [("ring", 1024, 1e-5), ("tree", 1024, 2e-5), (None, 1024, 4e-5)]
        path = self.write("summary.json", json.dumps({"collectives": [
            {"collective": "all_reduce", "ranks": 4, "bytes": size, "time_s": seconds, "algbw_GBps": 1, "busbw_GBps": 1.5,
             "own_algorithm": own} for own, size, seconds in rows]}))
        curves = busbw_plot.read_simulated("a=" + path)
        self.assertEqual([(curve.name, curve.times) for curve in curves],
                         [("a (all_reduce, 4 ranks, ring)", {1024: 1e-5}), ("a (all_reduce, 4 ranks, tree)", {1024: 2e-5}),
                          ("a (all_reduce, 4 ranks)", {1024: 4e-5})])

    def call(self, *arguments):
        """(exit code, stdout, stderr)."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = busbw_plot.main([str(each) for each in arguments])
            except SystemExit as ended:
                code = ended.code
        return code, out.getvalue(), err.getvalue()

    def test_errors_and_their_geometric_mean(self):
        # 10 % too slow, as much too fast, and a size that only one of them has; out of place all is 2 us slower.
        measured = self.write("m.txt", HEADER + row(1024, 12, 10) + row(1 << 20, 112, 110) + row(1 << 30, 9e4, 9e4) + "#\n")
        simulated = self.simulated([(1024, 11e-6), (1 << 20, 100e-6), (1 << 21, 200e-6)])
        code, out, err = self.call(f"sim={simulated}", "--measured", f"lab={measured}", "--csv", self.folder / "t.csv")
        self.assertEqual((code, err), (0, ""))
        self.assertIn("measured: lab\nnetsim:   sim (all_reduce, 4 ranks)\n", out)
        self.assertIn("        1024           10           11   +10.0 %", out)
        self.assertIn("     1048576          110          100    -9.1 %", out)
        self.assertIn("geometric mean of the errors 10.0 %, largest +10.0 % at 1024 B, -9.1 %\nat the largest size; 2 sizes", out)
        self.assertLessEqual(max(map(len, out.splitlines())), 80)
        with open(self.folder / "t.csv", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([each["bytes"] for each in rows], ["1024", "1048576"])
        self.assertAlmostEqual(float(rows[1]["error"]), 100 / 110 - 1)
        self.assertAlmostEqual(float(rows[1]["measured_busbw_GBps"]), 1.5 * (1 << 20) / 110e-6 * 1e-9, places=2)
        _, out, _ = self.call(simulated, "--measured", measured, "--out-of-place")
        self.assertIn("        1024           12           11    -8.3 %", out)

    def test_what_else_is_in_a_log(self):
        lines = ["node1:12:12 [0] NCCL INFO comm 0x1 rank 0 nranks 4 cudaDev 0 busId 1000 - Init COMPLETE\n", "\n",
                 "[1,0]<stdout>:" + row(4096, 20, root=""),       # tagged by mpirun; of rccl-tests before roots were shown
                 "[1,0]<stdout>:" + row(1 << 20, 200, wrong="N/A"), row(1 << 20, 220), row(0, 1)]  # a size twice: the mean
        code, out, err = self.call(self.simulated([(4096, 20e-6), (1 << 20, 210e-6)]), "--measured",
                                   self.write("log.txt", "".join(lines)))
        self.assertEqual((code, err), (0, ""))
        self.assertIn("     1048576          210          210    +0.0 %", out)
        self.assertIn("geometric mean of the errors 0.0 %", out)

    def test_only_what_is_of_one_kind_is_compared(self):
        simulated = self.simulated([(1 << 20, 1e-4)])
        other = self.write("other.txt", row(1 << 20, 100, factor=0.75))  # an all-gather
        code, out, err = self.call(simulated, "--measured", other)
        self.assertEqual((code, out), (2, ""))
        self.assertIn("no measured curve is of a simulated collective", err)
        self.assertRegex(err, r"other.txt: 0.7(49|50)")
        same = self.write("same.txt", row(1 << 20, 100))
        code, out, _ = self.call(simulated, "--measured", other, "--measured", same)
        self.assertEqual((code, out.count("geometric mean")), (0, 1))

    def test_wrong_input_is_told_in_a_line(self):
        simulated = self.simulated([(1 << 20, 1e-4)])
        broken = self.write("broken.txt", HEADER + row(1024, 10) + row(2048, 10).replace("10.00", "ten"))
        nothing = self.write("nothing.txt", HEADER)
        empty = self.write("empty.json", '{"collectives": []}')
        for arguments, part in (
                ([], "nothing to draw"), ([self.folder / "none"], "none: cannot be read"), ([empty], "no collective has ended"),
                ([nothing], "nothing.txt: is no summary.json"), ([simulated, "--measured", broken], "broken.txt:6: no row of nccl-tests"),
                ([simulated, "--measured", nothing], "nothing.txt: holds no rows"),
                ([simulated, "--measured", self.write("s.txt", row(8, 100))], "all bandwidths are 0"),
                ([simulated, "--out", "a.gif"], "ends in .svg, .png, .pdf"), ([simulated, "--csv", "a.csv"], "the table compares")):
            with self.subTest(part):
                code, out, err = self.call(*arguments)
                self.assertEqual((code, out), (2, ""), err)
                self.assertIn(part, err)

    def test_what_netsim_writes_is_read(self):
        self.write("star.yaml", "topology: {kind: star, hosts: 4, rate: 100 Gbps, delay: 1 us}\nhost: single_nic\n")
        self.write("sizes.yaml", "kind: collective\ncollective: all_reduce\nsizes: {from: 1 KiB, to: 1 MiB, factor: 32}\n")
        subprocess.run([BINARY, "--config", "star.yaml", "--workload", "sizes.yaml", "--out", "out", "--quiet"], cwd=self.folder, check=True)
        with open(self.folder / "out" / "bandwidths.csv", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([each["bytes"] for each in rows], ["1024", "32768", "1048576"])
        measured = "".join(row(int(each["bytes"]), 1.25e6 * float(each["time_s"])) for each in rows)
        code, out, err = self.call(self.folder / "out", "--measured", self.write("m.txt", measured), "--csv", self.folder / "t.csv")
        self.assertEqual((code, err), (0, ""))
        self.assertIn("geometric mean of the errors 25.0 %", out)
        with open(self.folder / "t.csv", encoding="utf-8") as file:
            for ours, compared in zip(rows, csv.DictReader(file)):
                self.assertTrue(math.isclose(float(ours["busbw_GBps"]), float(compared["simulated_busbw_GBps"]), rel_tol=1e-5))

    @unittest.skipUnless(pictures.available(), "no matplotlib")
    def test_pictures(self):
        measured = self.write("m.txt", row(1024, 12) + row(1 << 20, 112))
        simulated = self.simulated([(1024, 11e-6), (1 << 20, 100e-6)])
        for name, arguments in (("both.svg", [f"sim={simulated}", "--measured", f"lab={measured}"]), ("one.png", [simulated, "--log"]),
                                ("measured.pdf", ["--measured", measured])):
            code, _, err = self.call(*arguments, "--out", self.folder / name)
            self.assertEqual((code, err), (0, ""))
            self.assertGreater((self.folder / name).stat().st_size, 4000)
        first = (self.folder / "both.svg").read_bytes()
        self.call(f"sim={simulated}", "--measured", f"lab={measured}", "--out", self.folder / "both.svg")
        self.assertEqual(first, (self.folder / "both.svg").read_bytes(), "the same values give the same bytes")


if __name__ == "__main__":
    unittest.main()
