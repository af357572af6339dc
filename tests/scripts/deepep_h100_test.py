"""Are netsim's dispatches and combines as near to DeepEP on H100 as the evidence says?

The measured table lies beside the repository, in ../shared. Where it is not, only the arithmetic of the script is tested.
NETSIM_BINARY names the program; with NETSIM_TEST_SIZE=full all rows up to 1,024 tokens are played.
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
import deepep_h100 as deepep

BINARY = os.environ.get("NETSIM_BINARY") or str(ROOT / "build/release/netsim")
FULL = os.environ.get("NETSIM_TEST_SIZE") == "full"
ROWS = ROOT.parent / "shared/reference/measured/nccl_one_host/deepep_h100.csv"
TABLE = ROOT / "docs/evidence/data/deepep_h100.csv"
ROUNDING = 0.11  # of percentages with one decimal
MOST = 15  # per cent, the geometric mean over all rows


def row(mode="normal", hosts=2, tokens=1, multiprocessors=24, kernel="dispatch", measured=10.0):
    return deepep.Row(mode, hosts, tokens, 8, 256, multiprocessors, kernel, measured)


def mean_error(times):
    return deepep.error([pair for pairs in deepep.compare(times).values() for pair in pairs])


class Script(unittest.TestCase):
    def test_the_launch_constant_is_of_the_fewest_tokens_and_most_multiprocessors(self):
        times = {row(multiprocessors=4, measured=20): 5.0, row(measured=10): 12.0, row(tokens=64, measured=30): 26.0}
        self.assertEqual(deepep.launch_constants(times), {("normal", 2, "dispatch"): -2.0})
        cells = deepep.compare(times)
        self.assertEqual(cells["normal", 2, 24, "dispatch"], [(10.0, 10), (24.0, 30)])
        self.assertAlmostEqual(deepep.error([(24, 30), (30, 30)]), 100 * (1.25 ** 0.5 - 1))

    def test_rows_whose_experts_cannot_be_divided_are_left_out(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "rows.csv"
            path.write_text("mode,nodes,tokens,topk,experts,sms,dispatch_us,combine_us\n"
                            "ll,8,2,8,288,,1,2\nll,4,2,8,288,,3,4\nnormal,1,1,8,256,20,5,6\n")
            self.assertEqual([(one.hosts, one.kernel, one.measured) for one in deepep.read_rows(path)],
                             [(4, "dispatch", 3), (4, "combine", 4), (1, "dispatch", 5), (1, "combine", 6)])

    def test_the_evidence_meets_the_aim(self):
        with open(TABLE) as file:
            cells = list(csv.DictReader(file))
        errors = [float(cell[column]) for cell in cells for column in ("dispatch_error_percent", "combine_error_percent")]
        self.assertEqual(len(errors), 46)
        self.assertLess(sum(errors) / len(errors), MOST)


@unittest.skipUnless(ROWS.is_file(), "the measured rows are not there")
class Rows(unittest.TestCase):
    def times(self, wanted):
        return {one: deepep.simulate(BINARY, one, 0) for one in deepep.read_rows(ROWS) if wanted(one)}

    def test_few_rows(self):
        few = self.times(lambda one: one.tokens in (1, 2, 32, 128) and one.hosts <= 2 and one.multiprocessors in (0, 4, 20))
        self.assertEqual(len(few), 44)
        self.assertLess(mean_error(few), 10)

    # By low latency each copy travels. The normal kernels send fewer, because popular experts share hosts.
    def test_skewed_tokens_take_longer(self):
        alike, skewed = (deepep.simulate(BINARY, row("ll", 2, 128, 0), exponent) for exponent in (0, 1.0))
        self.assertGreater(skewed, 1.05 * alike)

    @unittest.skipUnless(FULL, "only in the full size")
    def test_no_error_is_larger_than_the_evidence_says(self):
        times = self.times(lambda one: one.tokens <= 1024)
        cells = deepep.compare(times)
        self.assertLess(mean_error(times), MOST)
        with open(TABLE) as file:
            for cell in csv.DictReader(file):
                key = cell["mode"], int(cell["hosts"]), int(cell["multiprocessors"])
                for kernel in ("dispatch", "combine"):
                    self.assertLess(deepep.error(cells[*key, kernel]), float(cell[f"{kernel}_error_percent"]) + ROUNDING, key)


if __name__ == "__main__":
    unittest.main()
