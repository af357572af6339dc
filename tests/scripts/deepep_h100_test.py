"""Are netsim's dispatches and combines as near to DeepEP on H100 as the evidence says?

The measured table lies beside the repository, in ../shared. Where it is not, only the arithmetic of the script is tested.
NETSIM_BINARY names the program; with NETSIM_TEST_SIZE=full the rows of 256 tokens over eight hosts are played too.
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
PLAYED = ROOT / "docs/evidence/data/deepep_h100_rows.csv"
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

    def test_rows_that_were_not_played_go_on_at_the_last_rate(self):
        times = {row(tokens=1024): 100.0, row(tokens=2048): 150.0, row(tokens=1): 20.0, row(tokens=2048, hosts=4): 999.0}
        self.assertAlmostEqual(deepep.continued(row(tokens=8192, measured=7), times), 150 + 6 * 50)

    def test_rows_with_a_slow_link_go_on_at_its_rate_once_buffers_are_full(self):
        def at(tokens):
            return row(hosts=8, tokens=tokens, kernel="combine")
        fast = {at(1024): 1024.0, at(2048): 2048.0, at(4096): 4096.0}
        self.assertIsNone(deepep.continued(at(16384), fast))
        link = 3.5 * 14336 * 8 / deepep.SLOW_RATE
        self.assertAlmostEqual(deepep.continued(at(16384), fast | {at(8192): 12000.0}), 12000 + 8192 * link)

    def test_played_rows_are_kept_in_the_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "rows.csv"
            deepep.Played(path).add(row(tokens=1024), (12.346, 8))
            again = deepep.Played(path)
            self.assertEqual(again[row(tokens=1024, measured=99)], (12.35, 8))
            self.assertNotIn(row(tokens=2048), again)
            self.assertEqual(deepep.known_chunks(row(tokens=2048), again), (8,))
            self.assertIsNone(deepep.known_chunks(row(tokens=512), again))

    def test_the_evidence_meets_the_aim(self):
        with open(TABLE) as file:
            cells = list(csv.DictReader(file))
        errors = [float(cell[column]) for cell in cells for column in ("dispatch_error_percent", "combine_error_percent")]
        self.assertEqual(len(errors), 46)
        self.assertLess(sum(errors) / len(errors), MOST)


@unittest.skipUnless(ROWS.is_file(), "the measured rows are not there")
class Rows(unittest.TestCase):
    def times(self, wanted):
        return {one: deepep.simulate(BINARY, one, 0)[0] for one in deepep.read_rows(ROWS) if wanted(one)}

    # The errors of the page are those of the file of played rows.
    def test_the_table_is_that_of_the_played_rows(self):
        rows, played = deepep.read_rows(ROWS), deepep.Played(PLAYED)
        cells = deepep.compare(deepep.all_times(rows, played))
        self.assertLess(deepep.error([pair for pairs in cells.values() for pair in pairs]), MOST)
        with open(TABLE) as file:
            for cell in csv.DictReader(file):
                key = cell["mode"], int(cell["hosts"]), int(cell["multiprocessors"])
                for kernel in ("dispatch", "combine"):
                    self.assertEqual(f"{deepep.error(cells[*key, kernel]):.1f}", cell[f"{kernel}_error_percent"], key)

    def test_rows_play_as_the_evidence_says(self):
        played, tokens = deepep.Played(PLAYED), 256 if FULL else 16
        few = [one for one in deepep.read_rows(ROWS) if one.tokens == tokens and one.hosts in ((2, 4, 8) if FULL else (1, 2))
               and one.multiprocessors in (0, 4, 20)]
        self.assertGreater(len(few), 8)
        for one in few:
            time, chunk = played[one]
            self.assertAlmostEqual(deepep.run(BINARY, one, chunk, 0) / time, 1, 3, one)

    # Combines of a GPU 0 wait for a slow GPU of their hosts only when its buffers are full, dispatches from the start.
    def test_a_slow_link_holds_up_dispatches_at_once_and_combines_late(self):
        dispatch, combine = (row(hosts=8, tokens=256, multiprocessors=24, kernel=kernel) for kernel in ("dispatch", "combine"))
        slow = [deepep.run(BINARY, one, 16, 0) for one in (dispatch, combine)]
        saved, deepep.SLOW = deepep.SLOW, {}
        try:
            even = [deepep.run(BINARY, one, 16, 0) for one in (dispatch, combine)]
        finally:
            deepep.SLOW = saved
        self.assertGreater(slow[0], 1.5 * even[0])
        self.assertLess(slow[1], 1.1 * even[1])

    # By low latency each copy travels. The normal kernels send fewer, because popular experts share hosts.
    def test_skewed_tokens_take_longer(self):
        alike, skewed = (deepep.simulate(BINARY, row("ll", 2, 128, 0), exponent)[0] for exponent in (0.001, 1.0))
        self.assertGreater(skewed, 1.05 * alike)


if __name__ == "__main__":
    unittest.main()
