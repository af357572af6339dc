"""Is what scripts/ptdp_table.py puts together from small runs what netsim says of the whole job? NETSIM_BINARY names the program."""

import os
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
sys.dont_write_bytecode = True
import ptdp_table

BINARY = os.environ.get("NETSIM_BINARY") or str(ROOT / "build/release/netsim")


def small(tensor, pipeline, gpus, batch, layers=4, hidden=2048):
    parameters = 12 * layers * hidden**2 * (1 + 13 / (12 * hidden) + (51200 + 2048) / (12 * layers * hidden))
    return ptdp_table.Row(parameters / 1e9, 16, hidden, layers, tensor, pipeline, gpus, batch, None)


def whole(netsim, row, size, chunks):
    """Seconds of an iteration of the whole job, every packet of it."""
    config = f"topology: {{kind: star, hosts: {row.gpus}, rate: 200 Gbps}}\nhosts: {row.gpus // 8}\nhost: dgx_a100\n"
    job = (f"kind: ptdp\nmodel: {{layers: {row.layers}, hidden: {row.hidden}, heads: {row.heads}, sequence: 2048, vocabulary: 51200}}\n"
           f"parallel: {{tensor: {row.tensor}, pipeline: {row.pipeline}, data: {row.data}, virtual_stages: {chunks}}}\n"
           f"microbatch: {size}\nmicrobatches: {row.number(size)}\n")
    return netsim.play(config, job)[0]


class Table(unittest.TestCase):
    def setUp(self):
        self.netsim = ptdp_table.Netsim(BINARY, None)

    def test_data_parallelism_is_what_the_simulator_gives(self):
        # A ring has one NIC, whatever t is: with 8 / t the first two rows would be off by 15 % and more.
        for tensor, gpus in ((2, 16), (4, 32), (8, 32)):
            row = small(tensor, 1, gpus, batch=gpus // tensor * 4)
            parts, data = ptdp_table.simulate(self.netsim, row, 2, 1)
            everything = whole(self.netsim, row, 2, 1)
            self.assertGreater(data / parts, 0.05)
            self.assertAlmostEqual(parts / everything, 1, delta=0.03, msg=f"t={tensor}")

    def test_a_pipeline_is_what_the_simulator_gives(self):
        # Left out are the all-reduce of embeddings and the gathering of what came from the stage before.
        row = small(8, 2, 32, batch=16, layers=16, hidden=4096)
        parts, _ = ptdp_table.simulate(self.netsim, row, 1, 2)
        self.assertAlmostEqual(parts / whole(self.netsim, row, 1, 2), 1, delta=0.02)

    def test_choices_are_those_that_divide(self):
        rows = [ptdp_table.Row(*row) for row in ptdp_table.ROWS]
        self.assertEqual(list(rows[0].choices()), [(1, 1), (2, 1), (4, 1), (8, 1)])
        self.assertEqual(list(rows[5].choices()), [(1, 1), (1, 3), (2, 1), (2, 3), (4, 1), (8, 1)])  # 60 layers; 14 = 3.5 x 4
        self.assertEqual(list(rows[9].choices()), [(size, chunks) for size in (1, 2, 4, 8) for chunks in (1, 2)])


if __name__ == "__main__":
    unittest.main()
