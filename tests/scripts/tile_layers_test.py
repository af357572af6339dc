"""Are netsim's layers with tile-wise overlap as near to the published ones as the evidence says?

NETSIM_BINARY names the program. With NETSIM_TEST_SIZE=full all rows are played, otherwise FLUX's and a few of the others.
"""

import csv
import os
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
sys.dont_write_bytecode = True
import tile_layers as tiles

BINARY = os.environ.get("NETSIM_BINARY") or str(ROOT / "build/release/netsim")
FULL = os.environ.get("NETSIM_TEST_SIZE") == "full"
TABLE = ROOT / "docs/evidence/data/tile_layers.csv"
ROUNDING = 0.0011  # milliseconds with three decimals
SOME = {"flashoverlap": 14, "decomposition": 28, "comet": 8, "flux_experts": 4}  # of so many rows one is played


def rows():
    return tiles.read_rows(tiles.STUDY / "layers.csv")


def chosen():
    count = {}
    for row in rows():
        count[row.system] = count.get(row.system, 0) + 1
        if FULL or (count[row.system] - 1) % SOME.get(row.system, 1) == 0:
            yield row


class Layers(unittest.TestCase):
    def test_rows_are_as_the_table_says(self):
        with open(TABLE, encoding="utf-8", newline="") as file:
            shown = {tuple(line[:9]): line for line in csv.reader(file)}
        self.assertEqual(len(shown), len(rows()) + 1)
        for row in chosen():
            played = tiles.simulate(BINARY, row)
            line = tiles.line_of(row, played)
            table = shown[tuple(map(str, line[:9]))]
            with self.subTest(line[:9]):
                self.assertAlmostEqual(played.overlapped, float(table[tiles.HEADER.index("netsim_overlapped_ms")]), delta=ROUNDING)
                self.assertAlmostEqual(played.serial, float(table[tiles.HEADER.index("netsim_serial_ms")]), delta=ROUNDING)
                self.assertEqual(float(table[tiles.HEADER.index("measured_overlapped_ms")]), row.overlapped_ms)

    def test_dense_layers_are_within_15_percent_but_for_two(self):
        with open(TABLE, encoding="utf-8", newline="") as file:
            errors = [abs(float(line["error_percent"])) for line in csv.DictReader(file) if line["system"] in ("flux", "flashoverlap")]
        self.assertEqual(len(errors), 62)
        self.assertEqual(sum(error > 15 for error in errors), 2)

    def test_an_error_is_the_mean_of_ratios(self):
        self.assertAlmostEqual(tiles.error([(2, 1), (1, 2)]), 100)
        self.assertAlmostEqual(tiles.error([(3, 3), (1, 1.21)]), 10)

    def test_a_part_begins_when_the_last_rank_is_ready_for_it(self):
        tasks = [{"rank": rank, "name": name, "start_ps": begin * 10 ** 9, "end_ps": end * 10 ** 9} for rank, name, begin, end in (
            ("0", "mlp_forward.rms_norm", 0, 2), ("1", "mlp_forward.rms_norm", 0, 3), ("0", "mlp_forward.x.mlp_up_gemm", 2, 6),
            ("1", "mlp_forward.x.mlp_up_gemm", 3, 7), ("0", "mlp_forward.x.mlp_down_gemm", 7, 9), ("1", "mlp_forward.x.mlp_down_gemm", 8, 9),
            ("0", "layer_end_forward.residual", 12, 12), ("1", "layer_end_forward.residual", 11, 12))]
        self.assertEqual({part: tiles.milliseconds(tasks, part) for part in ("gather", "reduce_scatter", "layer")},
                         {"gather": 4, "reduce_scatter": 4, "layer": 9})


if __name__ == "__main__":
    unittest.main()
