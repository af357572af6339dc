"""Do the shortcuts of scripts/ptdp_table.py give what the whole job takes, and its choices what divides? NETSIM_BINARY names the program."""

import os
import pathlib
import sys
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
sys.dont_write_bytecode = True
import ptdp_table

BINARY = os.environ.get("NETSIM_BINARY") or str(ROOT / "build/release/netsim")


def small(tensor, pipeline, gpus, batch, layers=4, hidden=2048):
    return ptdp_table.Row(1, 16, hidden, layers, tensor, pipeline, gpus, batch, None)


def choice_of(row, size, chunks):
    return next(choice for choice in row.choices() if (choice.size, choice.chunks) == (size, chunks))


class Table(unittest.TestCase):
    def setUp(self):
        self.reports = []
        self.netsim = ptdp_table.Netsim(BINARY, report=self.reports.append)

    def test_fewer_microbatches_are_enough(self):
        for row, size, chunks, counts in ((small(2, 1, 16, 64), 1, 1, [2, 4, 2]), (small(8, 2, 32, 32), 1, 1, [2, 4, 2]),
                                          (small(4, 4, 32, 48, layers=8), 1, 2, [4, 8, 4])):
            choice = choice_of(row, size, chunks)
            whole = self.netsim.play(choice, choice.microbatches, row.data)
            self.reports.clear()
            short = self.netsim.step(choice)
            played = [int(text.split(": ")[1].split()[0]) for text in self.reports]
            self.assertEqual(played, counts)
            self.assertLess(max(counts), choice.microbatches)
            self.assertAlmostEqual(short.step / whole.step, 1, delta=0.005, msg=choice)
            self.assertAlmostEqual(short.data / whole.data, 1, delta=0.03, msg=choice)

    def test_few_microbatches_are_played_as_they_are(self):
        choice = choice_of(small(8, 2, 16, 4), 1, 1)
        self.netsim.step(choice)
        self.assertEqual(len(self.reports), 1)
        self.assertIn("4 microbatches, 1 replicas, 4 KiB packets", self.reports[0])

    def test_large_jobs_have_large_packets(self):
        choice = choice_of(small(4, 1, 32, 32), 1, 1)
        exact = self.netsim.play(choice, 4, 8)
        with mock.patch.object(ptdp_table, "MOST_HOPS", 1000):
            large = self.netsim.play(choice, 4, 8)
        self.assertIn("64 KiB packets", self.reports[-1])
        self.assertNotEqual(large.step, exact.step)
        self.assertLess(large.data, exact.data)  # fewer headers
        self.assertAlmostEqual(large.step / exact.step, 1, delta=0.01)

    def test_what_does_not_fit_is_left_out(self):
        row = small(1, 1, 8, 32, layers=24, hidden=6144)
        self.assertEqual(ptdp_table.rated(self.netsim, [choice_of(row, 4, 1)]), [])
        self.assertIn("left out", self.reports[-1])
        self.assertIn("does not fit into the 80.00 GiB", self.reports[-1])

    def test_reads_what_dry_run_says(self):
        self.assertEqual(ptdp_table.packet_hops("everywhere   6.95 M data packets, 26.5 M packet-hops\n"), 26.5e6)
        self.assertEqual(ptdp_table.packet_hops("everywhere   12 data packets, 30 packet-hops\n"), 30)
        with self.assertRaises(SystemExit):
            ptdp_table.packet_hops("nothing")

    def test_choices_are_those_that_divide(self):
        def found(number):
            return [(choice.size, choice.chunks) for choice in ptdp_table.Row(*ptdp_table.ROWS[number - 1]).choices()]
        self.assertEqual(found(1), [(1, 1), (2, 1), (4, 1), (8, 1)])
        self.assertEqual(found(6), [(1, 1), (1, 3), (2, 1), (2, 3), (4, 1), (8, 1)])  # 60 layers; 14 = 3.5 x 4
        self.assertEqual(found(10), [(size, chunks) for size in (1, 2, 4, 8) for chunks in (1, 2)])


if __name__ == "__main__":
    unittest.main()
