"""Does scripts/resharding_table.py know AlpaComm's cases, and are its bounds bounds? NETSIM_BINARY names the program."""

import os
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
sys.dont_write_bytecode = True
import resharding_table

BINARY = os.environ.get("NETSIM_BINARY") or str(ROOT / "build/release/netsim")


class Table(unittest.TestCase):
    def test_bounds(self):
        tensor = 1024 * 1024 * 512 * 4 * 8 / 10e9  # seconds over one link
        bounds = {name: resharding_table.lower_bound(sizes, source, destination)
                  for name, sizes, source, destination in resharding_table.cases(1)}
        for name in ("1", "2", "3", "4", "5", "9"):
            self.assertAlmostEqual(bounds[name], tensor / 2)
        self.assertAlmostEqual(bounds["6"], 3 * 1024 * 1024 * 170 * 32 / 10e9 / 2)
        self.assertAlmostEqual(bounds["7"], tensor)
        self.assertAlmostEqual(bounds["to (4,2)"], (1 << 28) * 32 / 10e9)

    def test_rows(self):
        rows = []
        resharding_table.table(BINARY, 4, ["to (1,4)", "4", "6"], report=rows.append)
        self.assertEqual(len(rows), 2 + 3)
        for row in rows[2:]:
            cells = [cell.strip() for cell in row.strip("|").split("|")]
            self.assertGreaterEqual(float(cells[-1]), 1)
            self.assertLess(float(cells[-1]), 1.15)
            self.assertGreater(float(cells[-2]), 1)
        self.assertAlmostEqual(float(rows[2].strip("|").split("|")[-2]), 4, delta=0.4)


if __name__ == "__main__":
    unittest.main()
