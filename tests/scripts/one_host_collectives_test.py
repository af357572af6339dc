"""Are netsim's collectives of 2, 4 and 8 GPUs of one host as near to the measured ones as the evidence says?

The measured curves lie beside the repository, in ../shared. Where they are not, only the arithmetic of the script is tested.
NETSIM_BINARY names the program.
"""

import csv
import os
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
sys.dont_write_bytecode = True
import one_host_collectives as collectives

BINARY = os.environ.get("NETSIM_BINARY") or str(ROOT / "build/release/netsim")
CURVES = ROOT.parent / "shared/reference/measured/nccl_one_host/curves.csv"
TABLE = ROOT / "docs/evidence/data/one_host_collectives.csv"
ROUNDING = 0.11  # of percentages with one decimal


class Script(unittest.TestCase):
    def test_errors(self):
        measured = {512: 10.0, 1024: 20.0, 4 << 20: 100.0}
        simulated = {512: (8.0, ""), 1024: (20.0, ""), 4 << 20: (118.0, "")}
        small, large, last = collectives.errors(measured, simulated, 2.0)
        self.assertAlmostEqual(small, 100 * (1.1 ** 0.5 - 1))
        self.assertAlmostEqual(large, 20)
        self.assertAlmostEqual(last, 20)

    def test_curves_of_several_versions_count_with_their_median(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "curves.csv"
            rows = "".join(f"h100_sxm,v,alltoall,2,half,512,{us}\n" for us in (5, 90, 6))
            path.write_text("gpu,nccl,op,gpus,dtype,bytes,us\n" + rows)
            self.assertEqual(collectives.read_curves(path), {("h100_sxm", "all_to_all", 2): {512: 6.0}})


@unittest.skipUnless(CURVES.is_file(), "the measured curves are not there")
class Curves(unittest.TestCase):
    def test_no_error_is_larger_than_the_evidence_says(self):
        measured = collectives.read_curves(CURVES)
        simulated, launches = collectives.play(BINARY, measured, list(measured), [], 2)
        with open(TABLE) as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(len(rows), len(measured))
        for row in rows:
            gpu, ranks = row["gpu"], int(row["gpus"])
            curve = gpu, row["operation"], ranks
            small, large, last = collectives.errors(measured[curve], simulated[curve], launches[gpu, ranks])
            self.assertLess(small, float(row["error_below_4_MiB_percent"]) + ROUNDING, curve)
            self.assertLess(large, float(row["error_from_4_MiB_percent"]) + ROUNDING, curve)
            self.assertAlmostEqual(last, float(row["error_at_largest_percent"]), delta=ROUNDING, msg=str(curve))

    # The rates of thread blocks decide for the largest buffers.
    def test_large_buffers(self):
        with open(TABLE) as file:
            for row in csv.DictReader(file):
                if row["operation"] != "all_to_all":
                    self.assertLess(abs(float(row["error_at_largest_percent"])), 12, row)


if __name__ == "__main__":
    unittest.main()
